//! Semi, anti and mark join: left rows, by whether the right side has a match for them.
//!
//! Law: a left row *matches* at a time when the right side then holds, with positive multiplicity
//! in sum, rows with an equal key that pass the residual predicate. Semi yields the left rows that
//! match, anti those that do not, mark all of them with a boolean; each with its multiplicity.
//!
//! Changelog in and out, semi join (row @time diff), key in front:
//!
//! ```text
//!     left  (1, a) @3 +1             (1, a) @5 +1
//!     right (1, x) @5 +1             (1, a) @9 -1
//!     right (1, y) @6 +1
//!     right (1, x) @8 -1
//!     right (1, y) @9 -1
//! ```
//!
//! Method: per left row (without a residual: per key) the times at which the answer flips are a
//! short list of transitions, +1 and -1; the output is the join of the left row's updates with that
//! list. Nothing but the two input arrangements is kept. New left rows need all transitions of
//! their key; old left rows only meet the new ones, so a key that flips nothing costs no visit to
//! its left rows. With a residual, pairs are formed for touched keys only, and the predicate is
//! evaluated over many pairs at once. A turn takes on a part of the changes; the frontier waits for
//! all.
//!
//! State: the two shared arrangements; rows that no change will concern are given up by a floor.
//! Cost: as the join, plus a sort of the matches of each row. Outer joins are an inner join and the
//! anti join's rows padded with NULLs. Source: TPC-H on differential dataflow (queries 4, 16, 21,
//! 22); the transitions are ours.

mod matching;
pub(in crate::relational) mod spec;
mod tactic;
mod timed;
mod transitions;

use anabranch_flow::chain::Chain;
use anabranch_flow::drive::HeldCapability;
use anabranch_flow::limit::Limit;
use anabranch_flow::line::{Feed, Frontiers};
use anabranch_flow::pulled::Pulled;
use anabranch_flow::runs::{Arranged, RunsFeed};
use anabranch_flow::{Edges, Open};
use matching::Matching;
pub use spec::{Keep, Residual, SemiJoinSpec};
pub use tactic::SemiJoin;
pub(crate) use tactic::changes;
pub use timed::TimedSemiJoin;

/// Runs a [`SemiJoin`] over two arrangements.
/// Rows of a side below its limit are looked at for no change to come.
pub fn semi_join<'s>(left: Arranged<'s>, right: Arranged<'s>, spec: SemiJoinSpec, limits: Vec<Limit>) -> Chain<'s> {
    let (scope, as_of, placed) = (left.scope(), spec.as_of, spec.placed());
    let edges = Edges::of_any([left.edges(), right.edges()]);
    let open: Open<'s> = Box::new(move |opening| {
        let (left_reader, left) = left.open(opening);
        let (right_reader, right) = right.open(opening);
        Box::new(SemiJoinFeed {
            sides: [left, right],
            matching: Matching::new(spec, left_reader, right_reader).limited(limits),
        })
    });
    Chain::of_feed(scope, "SemiJoin", as_of, edges, open).placed(placed)
}

/// The tactic as a feed: runs wait until both sides are complete.
struct SemiJoinFeed {
    sides: [Box<dyn RunsFeed>; 2],
    matching: Matching,
}

impl Feed for SemiJoinFeed {
    fn pull(&mut self, frontiers: &Frontiers, hold: &mut HeldCapability, pulled: &mut Pulled) {
        let SemiJoinFeed { sides, matching } = self;
        let sides = sides.iter_mut().zip(&mut matching.runs);
        let reached =
            sides.map(|(feed, runs)| feed.pull(frontiers, hold, pulled, &mut |sealed, _time| runs.extend(sealed)));
        let upto = reached.min().expect("there are two sides");
        let aim = matching.advance(upto, &mut pulled.out);
        if matching.is_under_way() {
            pulled.has_more = true;
            return pulled.reach(matching.done, Some(matching.done));
        }
        pulled.has_more |= aim < upto;
        let waits = matching.runs.iter().any(|runs| !runs.is_empty());
        pulled.reach(aim, waits.then_some(aim));
    }
}
