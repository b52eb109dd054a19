//! Random lives of arrangements.

use crate::laws::check_life;
use crate::model::for_seeds;

#[test]
fn small_arrangements_equal_the_model() {
    for_seeds(300, |seed| check_life(seed, 30, 12));
}

#[test]
fn arrangements_of_many_chunks_equal_the_model() {
    for_seeds(6, |seed| check_life(1000 + seed, 9000, 8));
}
