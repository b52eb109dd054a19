//! Semi, anti and mark join: left rows, by whether the right side has a match for them.
//!
//! Law: a left row *matches* at a time when the right side then holds, with positive multiplicity in sum, rows with an equal key
//! that pass the residual predicate. Semi yields the left rows that match, anti those that do not, mark all of them with a
//! boolean; each with its multiplicity.
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
//! Method: per left row (without a residual: per key) the times at which the answer flips are a short list of transitions, +1 and -1;
//! the output is the join of the left row's updates with that list. Nothing but the two input arrangements is kept. New left rows need all transitions of their
//! key; old left rows only meet the new ones, so a key that flips nothing costs no visit to its left rows. With a residual, pairs are
//! formed for touched keys only, and the predicate is evaluated over all pairs at once.
//!
//! State: the two shared arrangements. Cost: as the join, plus a sort of the matches of each row. Outer joins are an inner join and the anti join's
//! rows padded with NULLs. Source: TPC-H on differential dataflow (queries 4, 16, 21, 22); the transitions are ours.

mod tactic;
mod transitions;

use anabranch_arrangement::{NullKeys, Reader, Sealed};
use anabranch_batch::Time;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use crate::Stream;
use crate::arrange::Arranged;
use crate::drive::{Hold, frontier_of, send, union};
use crate::expression::ExpressionRef;
use crate::parcel::Parcel;
use crate::stage::Stage;
use crate::steps::Meter;
use crate::tactic::Output;
pub use tactic::Matched;

/// Which left rows to yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Those that match.
    Semi,
    /// Those that do not.
    Anti,
    /// All, with a last boolean column that tells.
    Mark,
}

/// A condition on pairs beyond equal keys.
#[derive(Clone)]
pub struct Residual {
    /// Columns of the left rows that it needs.
    pub gather_left: Vec<usize>,
    /// Columns of the right rows that it needs.
    pub gather_right: Vec<usize>,
    /// Boolean, over the gathered left columns followed by the gathered right ones.
    pub predicate: ExpressionRef,
}

/// What to match on, and what to yield.
#[derive(Clone)]
pub struct MatchedSpec {
    /// Key columns of the left arrangement.
    pub left_key: Vec<usize>,
    /// Key columns of the right arrangement.
    pub right_key: Vec<usize>,
    /// Whether NULL keys match each other.
    pub nulls: NullKeys,
    /// Which left rows to yield.
    pub keep: Keep,
    /// The condition beyond equal keys.
    pub residual: Option<Residual>,
    /// Columns of the left rows to yield (with [`Keep::Mark`], the mark follows them).
    pub gather: Vec<usize>,
    /// Applied to what is yielded.
    pub stage: Stage,
    /// Output times are at least this.
    pub as_of: Time,
}

/// Runs a [`Matched`] over two arrangements of one dataflow.
pub fn matched<'s>(left: Arranged<'s>, right: Arranged<'s>, name: &str, spec: MatchedSpec) -> Stream<'s> {
    let scope = left.sealed.scope();
    let as_of = spec.as_of;
    let mut operator = OperatorBuilder::new(format!("Match {name}"), scope);
    let mut left_input = operator.new_input(left.sealed, Pipeline);
    let mut right_input = operator.new_input(right.sealed, Pipeline);
    let (output, stream) = operator.new_output::<Parcel>();
    let mut output = OutputBuilder::<_, NoopBuilder<Parcel>>::from(output);
    let mut readers = Readers { left: left.reader, right: right.reader };
    operator.build(move |capabilities| {
        drop(capabilities);
        let mut tactic = Matched::new(spec);
        let mut hold = Hold::none();
        let mut left_runs: Vec<Sealed> = Vec::new();
        let mut right_runs: Vec<Sealed> = Vec::new();
        let mut done = Time::MIN;
        let meter = Meter::new("Match");
        move |frontiers| {
            let _step = meter.step();
            left_input.for_each(|capability, sealed| {
                left_runs.append(sealed);
                hold.lower_to(capability.retain_least(0).expect("a message has a time"));
            });
            right_input.for_each(|capability, sealed| {
                right_runs.append(sealed);
                hold.lower_to(capability.retain_least(0).expect("a message has a time"));
            });
            let upto = frontier_of(&frontiers[0]).min(frontier_of(&frontiers[1]));
            if upto <= done.max(as_of) {
                return;
            }
            if let Some(capability) = hold.capability() {
                let mut out = Output::default();
                let left = tactic::changes(&left_runs, done, upto);
                let right = tactic::changes(&right_runs, done, upto);
                tactic.advance(left, right, &readers.left.runs(), &readers.right.runs(), done, upto, &mut out);
                send(&mut out, capability, &mut output.activate());
            }
            done = upto;
            left_runs.retain(|sealed| sealed.upper > upto);
            right_runs.retain(|sealed| sealed.upper > upto);
            let waiting = !(left_runs.is_empty() && right_runs.is_empty());
            hold.release(waiting.then_some(upto));
            readers.forget_before(upto - 1);
        }
    });
    let mut streams = vec![stream];
    streams.extend(left.errors);
    streams.extend(right.errors);
    if streams.len() == 1 { streams.pop().expect("one stream") } else { union(scope, streams) }
}

struct Readers {
    left: Reader,
    right: Reader,
}

impl Readers {
    fn forget_before(&mut self, since: Time) {
        for reader in [&mut self.left, &mut self.right] {
            if since > reader.since() {
                reader.set_since(since);
            }
        }
    }
}
