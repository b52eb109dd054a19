//! The five laws, applied to a plan.
//!
//! Law under test: the accumulated output of a plan at every time is what the [naive
//! model](crate::model) computes from the inputs' contents at that time, whatever (1) the cut into
//! batches, (2) the arrival order between two frontiers, (3) the number of workers, (4) the merge
//! and compaction schedule, and also whatever the time at which the plan was installed, and whether
//! it reads inputs directly or through arrangements. (The fifth law, checkpoints, joins when there
//! are checkpoints.)
//!
//! [`hold`] draws some [`Setting`]s, runs the plan under each in a real
//! [`Cluster`](anabranch_engine::cluster), and compares the subscribed changes, accumulated at
//! every time, and the exported arrangement, read as of times on the way, with the model.
//!
//! Reading order: [`setting`], [`run`], [`feed`]; [`programs`] (many plans at once, sharing).

pub mod feed;
pub mod programs;
pub mod run;
pub mod setting;

use std::sync::{Arc, Once};

use anabranch_plan::Plan;

use crate::generator::history::History;
use crate::model::{Answer, evaluate};
use crate::rng::Rng;

pub use self::setting::Setting;

/// Relative difference up to which floats are the same: engine and model may add in different
/// orders.
const TOLERANCE: f64 = 1e-9;

/// Tries at making a failing history smaller.
const SHRINK_RUNS: usize = 300;

/// Checks the laws of a plan over a history under a few settings.
///
/// # Panics
/// If one does not hold; says the setting, the plan, the time and the rows that differ.
pub fn hold(rng: &mut Rng, plan: &Arc<Plan>, history: &History) {
    hold_under(plan, history, &Setting::draw(rng))
}

/// Checks the laws of a plan over a history under the given settings.
///
/// # Panics
/// As [`hold`].
pub fn hold_under(plan: &Arc<Plan>, history: &History, settings: &[Setting]) {
    collide_hashes_if_asked();
    let expected = expected(plan, history);
    for setting in settings {
        if let Err(difference) = run::compare(plan, history, setting, &expected) {
            let (history, difference) = shrink(plan, history, setting, difference);
            panic!("{}", report(plan, &history, setting, &difference));
        }
    }
}

/// The model's answers at every time of a history.
fn expected(plan: &Plan, history: &History) -> Vec<(i64, Answer)> {
    history.times.iter().map(|&time| (time, evaluate(plan, &history.contents_at(time)))).collect()
}

/// Leaves rows out of the history, with all their updates, as long as there still is a difference.
/// Stops after [`SHRINK_RUNS`] runs: they cost about a hundredth of a second each.
fn shrink(plan: &Arc<Plan>, history: &History, setting: &Setting, difference: String) -> (History, String) {
    let (mut smallest, mut difference) = (history.clone(), difference);
    let mut left = SHRINK_RUNS;
    let mut chunk = smallest.rows().len().div_ceil(2);
    while chunk > 0 && left > 0 {
        let mut start = 0;
        while start < smallest.rows().len() && left > 0 {
            let rows = smallest.rows();
            let smaller = smallest.without(&rows[start..(start + chunk).min(rows.len())]);
            left -= 1;
            match run::compare(plan, &smaller, setting, &expected(plan, &smaller)) {
                Err(found) => (smallest, difference) = (smaller, found),
                Ok(()) => start += chunk,
            }
        }
        chunk /= 2;
    }
    (smallest, difference)
}

fn report(plan: &Plan, history: &History, setting: &Setting, difference: &str) -> String {
    let shown = anabranch_plan::explain::explain(plan, &|_| None);
    let mut text = format!("{difference}\nunder {setting:?}\nof\n{shown}\n");
    if history.updates.len() <= 200 {
        text += "with\n";
        for update in &history.updates {
            let relation = &history.relations[update.relation].name;
            text += &format!("  {relation} at {}: {:+} {:?}\n", update.time, update.diff, update.row);
        }
    }
    text
}

/// Name of the variable that holds the bits of hashes to keep, as a number.
pub const HASH_MASK: &str = "ANABRANCH_TEST_HASH_MASK";

/// A deliberately bad hash for this whole process, if the environment asks for one.
fn collide_hashes_if_asked() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Ok(mask) = std::env::var(HASH_MASK) {
            let mask = mask.parse().expect("the hash mask is a number");
            anabranch_batch::hash::set_mask_for_tests(mask);
        }
    });
}
