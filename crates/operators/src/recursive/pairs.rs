//! Joins inside of a loop.
//!
//! Law: each pair of updates is met once, in the epoch and round of the later one, and its time is
//! the later of the two rounds. The changes of one side meet all that the other side has before
//! this round; those of the other side meet that and the changes too.
//!
//! ```text
//!   round 5:  a row of round 2, added by this epoch at 5, meets a row of round 7 of an earlier epoch
//!             -> the pair is a change of round 7, and waits
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_arrangement::Run;
use anabranch_batch::{END, Time};

use super::moment::Moment;
use super::trace::{Entering, RoundTrace};
use crate::relational::join::{JoinSpec, RunPairs, SMALL_PART, Side};

/// One side of a join.
#[derive(Clone, Copy)]
pub(super) enum JoinSide<'a> {
    Inside(&'a RoundTrace),
    Outside(&'a Entering),
}

/// What is to be done for a join in this round.
pub(super) fn pairs_of(
    spec: &JoinSpec,
    left: JoinSide<'_>,
    right: JoinSide<'_>,
    moment: &Moment,
) -> VecDeque<RunPairs> {
    let mut meeting = Meeting { spec, moment, pairs: VecDeque::new() };
    match (left, right) {
        (JoinSide::Inside(left), JoinSide::Inside(right)) => meeting.inside(left, right),
        (JoinSide::Inside(left), JoinSide::Outside(right)) => meeting.outside(Side::Left, left, right),
        (JoinSide::Outside(left), JoinSide::Inside(right)) => meeting.outside(Side::Right, right, left),
        (JoinSide::Outside(_), JoinSide::Outside(_)) => {
            unreachable!("a join of what is outside is computed outside")
        }
    }
    meeting.pairs
}

struct Meeting<'a> {
    spec: &'a JoinSpec,
    moment: &'a Moment,
    pairs: VecDeque<RunPairs>,
}

impl Meeting<'_> {
    fn inside(&mut self, left: &RoundTrace, right: &RoundTrace) {
        if let Some(delta) = left.delta() {
            let mut others = right.runs_for(delta.len());
            others.extend(right.delta().cloned());
            self.add(Side::Left, delta, others, END, None);
        }
        if let Some(delta) = right.delta() {
            self.add(Side::Right, delta, left.runs_for(delta.len()), END, None);
        }
    }

    /// `side` is that of the rows inside. Rows from outside have the epoch as their time, and
    /// belong to round 1.
    fn outside(&mut self, side: Side, inside: &RoundTrace, outside: &Entering) {
        let timeless = Some(side.other());
        if let Some(delta) = inside.delta() {
            let others = outside.runs_for(delta.len());
            self.add(side, delta, others, self.moment.epoch.saturating_add(1), timeless);
        }
        // (The changes outside may be all rows of a relation: they are sorted only for an operator
        // that reads them.)
        let others = inside.runs_for(0);
        if !others.is_empty()
            && let Some(delta) = outside.delta(self.moment)
        {
            self.add(side.other(), delta, inside.runs_for(delta.len()), END, timeless);
        }
    }

    /// A run with those of the other side before a time; or, if these are far fewer, they are
    /// looked up in the run.
    fn add(&mut self, side: Side, run: &Arc<Run>, others: Vec<Arc<Run>>, before: Time, timeless: Option<Side>) {
        let is_small = others.iter().map(|other| other.len()).sum::<usize>() < run.len() / SMALL_PART;
        let mut add = |side, run: &Arc<Run>, others: Vec<Arc<Run>>, before| {
            for run in run.sorted_parts() {
                let pairs = RunPairs::new(self.spec, side, &run, others.clone(), before);
                self.pairs.push_back(pairs.in_round(self.moment.round, timeless));
            }
        };
        if is_small && others.iter().all(|other| other.is_before(before)) {
            return others.iter().for_each(|other| add(side.other(), other, vec![Arc::clone(run)], END));
        }
        add(side, run, others, before);
    }
}
