//! The choices that must not show in results.

use anabranch_arrangement::MergeEffort;

use crate::rng::Rng;

/// One way to run a plan.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Worker threads; 0 runs everything inside the caller's calls.
    pub workers: usize,
    /// How hard arrangements work at merging.
    pub effort: MergeEffort,
    /// Rows of one pushed batch, at most.
    pub batch_rows_max: usize,
    /// Times between two advances of the frontier, at most.
    pub frontier_times_max: usize,
    /// Whether the inputs are arranged first and the plan reads the arrangements.
    pub arranged: bool,
    /// Whether the plan is installed only after a part of the history. Needs `arranged`.
    pub late: bool,
    /// Whether arrangements may forget history as times become complete.
    pub compacting: bool,
    /// Whether other dataflows of the same plan come and go meanwhile. Needs `arranged`.
    pub neighbours: bool,
    /// Whether an insertion and the removal that ends it may be one row with a lifetime.
    pub lifetimes: bool,
    /// Whether the caller waits for results at every frontier, or only at the end.
    pub waiting: bool,
    /// Decides the order of arrival, the cuts, and every other choice on the way.
    pub seed: u64,
}

impl Setting {
    /// A few settings that differ in everything. Every number of workers up to 3 occurs, and one up
    /// to 8 in a twentieth of them: more than there are processors.
    pub fn draw(rng: &mut Rng) -> Vec<Setting> {
        let first = rng.below(4);
        let workers = |rng: &mut Rng, at: usize| if rng.chance(5) { 4 + rng.below(5) } else { (first + at) % 4 };
        let mut drawn = Vec::new();
        for at in 0..3 {
            let workers = workers(rng, at);
            drawn.push(Setting::random(rng, workers));
        }
        drawn
    }

    /// A setting with this number of workers.
    pub fn random(rng: &mut Rng, workers: usize) -> Setting {
        let arranged = rng.chance(60);
        let late = arranged && rng.chance(50);
        let neighbours = arranged && rng.chance(40);
        Setting {
            workers,
            effort: *rng.pick(&[MergeEffort::EAGER, MergeEffort::LAZY, MergeEffort::default()]),
            batch_rows_max: *rng.pick(&[1, 3, 20, 1000]),
            frontier_times_max: *rng.pick(&[1, 1, 2, 100]),
            arranged,
            late,
            compacting: rng.chance(60),
            neighbours,
            lifetimes: rng.chance(50),
            waiting: rng.chance(70),
            seed: rng.bits(),
        }
    }
}
