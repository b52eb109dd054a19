//! The watermarks of inputs, as of each time, on a worker.
//!
//! Readers of one source can have inputs of their own (those that came late), each with the
//! watermark of the rows that it was given.
//!
//! Law: the value as of a time is the last one that the session told of that time or an earlier
//! one. Of old values some are forgotten: then an operator that is far behind frees by an older
//! one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anabranch_batch::Time;
use anabranch_flow::limit::Limit;
use anabranch_plan::bounds::Bound;

use super::spec::{CollectionId, LimitStep};

/// Values of a watermark that are remembered at most.
const REMEMBERED_MAX: usize = 64;

/// Watermarks by the number of the input whose rows they bound. Shared by all who look at them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks(Rc<RefCell<Values>>);

/// For each input, its watermark's values with the times from which they hold.
type Values = BTreeMap<u64, Vec<(Time, i64)>>;

impl Marks {
    /// Takes note of a watermark from a time on.
    pub fn note(&self, input: CollectionId, time: Time, value: i64) {
        let mut marks = self.0.borrow_mut();
        let values = marks.entry(input.0).or_default();
        values.push((time, value));
        if values.len() > REMEMBERED_MAX {
            let mut place = 0;
            values.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
    }

    /// Forgets the watermark of an input that is gone.
    pub fn forget(&self, input: CollectionId) {
        self.0.borrow_mut().remove(&input.0);
    }

    /// A bound of all updates at or after a time.
    fn at(&self, bound: &Bound, upto: Time) -> Option<i64> {
        let marks = self.0.borrow();
        bound.at(&|input| marks.get(&input)?.iter().rev().find(|(time, _)| *time < upto).map(|(_, value)| *value))
    }

    /// The limit that follows a bound.
    pub fn limit(&self, step: &LimitStep) -> Limit {
        let (marks, below) = (self.clone(), step.below.clone());
        Limit { input: step.input, column: step.column, at: Box::new(move |upto| marks.at(&below, upto)) }
    }

    /// The limits that follow some bounds.
    pub fn limits(&self, steps: &[LimitStep]) -> Vec<Limit> {
        steps.iter().map(|step| self.limit(step)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watermark_holds_from_its_commit_on() {
        let marks = Marks::default();
        let bound = Bound::Mark { id: 3, relation: "r".into() };
        for time in 1..=100 {
            marks.note(CollectionId(3), time, 10 * time);
        }
        // The rows of a commit are judged by the watermark before it.
        assert_eq!((marks.at(&bound, 101), marks.at(&bound, 100)), (Some(1000), Some(990)));
        // Of old values some are forgotten: an older one is as true.
        let old = marks.at(&bound, 51).expect("some value is remembered");
        assert!((400..=500).contains(&old));
        assert_eq!(marks.at(&bound, 1), None);
    }
}
