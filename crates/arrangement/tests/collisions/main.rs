//! The same laws with a hash of which only a few bits are left: nearly all keys collide. A process
//! of its own, since the mask is process-wide.

#[path = "../it/laws.rs"]
mod laws;
#[path = "../it/model.rs"]
mod model;

use std::sync::Once;

static MASK: Once = Once::new();

fn spoil_hashes() {
    MASK.call_once(|| anabranch_batch::hash::set_mask_for_tests(0x8000_0000_0000_0001));
}

#[test]
fn collisions_never_change_an_answer() {
    spoil_hashes();
    model::for_seeds(300, |seed| _ = laws::check_life(seed, 30, 12, seed % 2 == 0));
}

#[test]
fn collisions_over_many_chunks_never_change_an_answer() {
    spoil_hashes();
    model::for_seeds(4, |seed| _ = laws::check_life(1000 + seed, 9000, 5, seed % 2 == 0));
}
