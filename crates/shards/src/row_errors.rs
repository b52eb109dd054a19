//! Row errors of a run: what is told of them.
//!
//! Law: each change that brings an error is told once, if the error is in force then. One that is
//! taken back at its own time never was. An error from before all times that is taken back is that
//! of contents before the first row, such as a quotient by a count of nothing, and is not told.
//!
//! State: each error by the times of its changes, those before the frontier as one. Cost: a look at
//! the changes that have come since the last one, and at those of the same errors.

use std::collections::BTreeMap;

use anabranch_batch::{Batch, Time};
use arrow::array::AsArray;

/// The least time of an event: contents from before all times are there by then.
const BEGINNING: Time = Time::MIN + 1;

/// Changes of one error: how many rows have it more from a time on.
type ByTime = BTreeMap<Time, i64>;

/// Row errors of a run.
#[derive(Debug, Default)]
pub struct RowErrors {
    /// Those that were looked at.
    known: BTreeMap<String, ByTime>,
    /// Those that came since, and as which of them.
    fresh: BTreeMap<String, (usize, ByTime)>,
    /// Rows that have come to be in error, less those that are it no more.
    in_force: i64,
}

impl RowErrors {
    /// Takes note of changes of errors: a batch of one text column.
    pub fn note(&mut self, batch: &Batch) {
        let batch = batch.clone().without_key().flatten();
        let messages = batch.column(0).as_string_view();
        for row in 0..batch.len() {
            let place = self.fresh.len();
            let (_, changes) = self.fresh.entry(messages.value(row).to_owned()).or_insert((place, ByTime::new()));
            *changes.entry(batch.times().get(row)).or_default() += batch.diffs().get(row);
            self.in_force += batch.diffs().get(row);
        }
    }

    /// How many rows are in error, as of all changes that were noted.
    pub fn in_force(&self) -> u64 {
        // (The end of an error may come before its beginning, from another shard.)
        self.in_force.max(0).unsigned_abs()
    }

    /// The first error that is to be told of those that came since the last call, in the order of
    /// time and then as they came. No change before the frontier will come.
    pub fn take_first(&mut self, frontier: Time) -> Option<String> {
        let mut first: Option<(Time, usize, String)> = None;
        for (message, (place, changes)) in std::mem::take(&mut self.fresh) {
            let known = self.known.entry(message.clone()).or_default();
            changes.iter().for_each(|(time, diff)| *known.entry(*time).or_default() += diff);
            known.retain(|_, diff| *diff != 0);
            let told = changes.iter().find(|(time, diff)| **diff > 0 && is_in_force(known, **time));
            first = told.map(|(time, _)| (*time, place, message)).into_iter().chain(first).min();
        }
        self.known.retain(|_, changes| {
            let later = changes.split_off(&frontier);
            let before: i64 = std::mem::replace(changes, later).into_values().sum();
            if before != 0 {
                *changes.entry(frontier).or_default() += before;
            }
            !changes.is_empty()
        });
        first.map(|(.., message)| message)
    }
}

/// Whether some row has the error from a time on, and not only before the first row.
fn is_in_force(changes: &ByTime, time: Time) -> bool {
    let is_last = changes.keys().next_back().is_none_or(|last| *last <= time);
    changes.range(..=time).map(|(_, diff)| diff).sum::<i64>() > 0 && (time > BEGINNING || is_last)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anabranch_batch::{Diffs, Times};
    use arrow::array::StringViewArray;

    use super::*;

    fn note(errors: &mut RowErrors, changes: &[(&str, Time, i64)]) {
        let texts: StringViewArray = changes.iter().map(|change| Some(change.0)).collect();
        let times = Times::Column(changes.iter().map(|change| change.1).collect());
        let diffs = Diffs::Column(changes.iter().map(|change| change.2).collect::<Vec<_>>().into());
        errors.note(&Batch::new(vec![Arc::new(texts)], times, diffs));
    }

    fn told(changes: &[(&str, Time, i64)]) -> Option<String> {
        let mut errors = RowErrors::default();
        note(&mut errors, changes);
        let first = errors.take_first(Time::MIN);
        assert_eq!(errors.take_first(Time::MIN), None, "once");
        first
    }

    #[test]
    fn errors_are_told_that_were_in_force() {
        assert_eq!(told(&[("a", 3, 1)]).as_deref(), Some("a"));
        assert_eq!(told(&[("a", 3, 1), ("a", 3, -1)]), None);
        assert_eq!(told(&[("a", 3, -1), ("a", 3, 1), ("b", 9, 1), ("c", 4, 2)]).as_deref(), Some("c"));
        assert_eq!(told(&[("b", 4, 1), ("a", 4, 1)]).as_deref(), Some("b"), "as they came");
        assert_eq!(told(&[("a", 3, 1), ("a", 5, -1)]).as_deref(), Some("a"));
        assert_eq!(told(&[("a", Time::MIN, 1), ("a", 0, -1)]), None);
        assert_eq!(told(&[("a", BEGINNING, 1), ("a", 0, -1)]), None);
        assert_eq!(told(&[("a", Time::MIN, 1)]).as_deref(), Some("a"));
        assert_eq!(told(&[("a", Time::MIN, 1), ("a", 0, -1), ("a", 7, 1)]).as_deref(), Some("a"));
    }

    /// What was told was forgotten, so that its end was held against the next error of the same
    /// words, which was not told.
    #[test]
    fn an_error_that_comes_again_is_told_again() {
        let mut errors = RowErrors::default();
        for (frontier, changes, first) in [
            (0, vec![("a", Time::MIN, 1), ("a", 0, -1)], None),
            (4, vec![("a", 3, 1)], Some("a")),
            (6, vec![("a", 5, -1)], None),
            (6, vec![("a", 9, 1)], Some("a")),
            (10, vec![("a", 9, 1)], Some("a")),
            (20, vec![("a", 12, -2), ("b", 13, -1)], None),
            // (Of another shard, which was behind.)
            (20, vec![("b", 11, 1)], Some("b")),
            (30, vec![], None),
        ] {
            note(&mut errors, &changes);
            assert_eq!(errors.take_first(frontier).as_deref(), first, "{changes:?}");
        }
        assert!(errors.known.is_empty(), "{errors:?}");
    }
}
