//! Random lives of arrangements.

use std::cell::Cell;

use crate::laws::check_life;
use crate::model::for_seeds;

#[test]
fn small_arrangements_equal_the_model() {
    for_seeds(300, |seed| assert_eq!(check_life(seed, 30, 12, false), 0));
}

#[test]
fn arrangements_of_many_chunks_equal_the_model() {
    for_seeds(6, |seed| assert_eq!(check_life(1000 + seed, 9000, 8, false), 0));
}

/// What is left to its origin, and had back, is what was written.
#[test]
fn dormant_arrangements_equal_the_model() {
    let recalls = Cell::new(0);
    let check = |seed: u64, batch_rows: u64, rounds: usize| {
        recalls.set(recalls.get() + check_life(seed, batch_rows, rounds, true));
    };
    for_seeds(300, |seed| check(2000 + seed, 30, 12));
    for_seeds(6, |seed| check(3000 + seed, 9000, 8));
    assert!(recalls.get() > 50, "{} recalls", recalls.get());
}
