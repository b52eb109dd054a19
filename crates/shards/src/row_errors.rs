//! Row errors of a run: what is told of them.
//!
//! Law: an error is told if it was in force at some time, as the row was that it is about. Taken
//! back at its own time it never was. An error from before all times that is taken back is that of
//! contents before the first row, such as a quotient by a count of nothing, and is not told.

use std::collections::BTreeMap;

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, Time};
use arrow::array::AsArray;

/// The least time of an event: contents from before all times are there by then.
const BEGINNING: Time = Time::MIN + 1;

/// Row errors that were not told.
#[derive(Debug, Default)]
pub struct RowErrors(Vec<Batch>);

impl RowErrors {
    /// Takes note of changes of errors: batches of one text column.
    pub fn note(&mut self, batch: Batch) {
        self.0.push(batch.without_key().flatten());
    }

    /// The first error that is to be told, in the order of time and then as they came. It is not
    /// told again, and neither are the others that are there.
    pub fn take_first(&mut self) -> Option<String> {
        let first = self.first();
        let changes = Batch::concat(&self.0).map(consolidate).filter(|changes| !changes.is_empty());
        self.0 = changes.into_iter().filter(|_| first.is_none()).collect();
        first
    }

    fn first(&self) -> Option<String> {
        let mut by_message: BTreeMap<&str, MessageChanges> = BTreeMap::new();
        for batch in &self.0 {
            let messages = batch.column(0).as_string_view();
            for row in 0..batch.len() {
                let place = by_message.len();
                let changes = by_message.entry(messages.value(row)).or_insert_with(|| MessageChanges::new(place));
                *changes.by_time.entry(batch.times().get(row)).or_default() += batch.diffs().get(row);
            }
        }
        let told = by_message.iter().filter_map(|(message, changes)| Some((changes.began()?, changes.place, *message)));
        told.min().map(|(.., message)| message.to_owned())
    }
}

/// Changes of one error.
struct MessageChanges {
    /// As which of all errors it came.
    place: usize,
    by_time: BTreeMap<Time, i64>,
}

impl MessageChanges {
    fn new(place: usize) -> MessageChanges {
        MessageChanges { place, by_time: BTreeMap::new() }
    }

    /// Since when it was in force, if it was.
    fn began(&self) -> Option<Time> {
        let last = self.by_time.keys().next_back().copied();
        let mut in_force = 0;
        self.by_time.iter().find_map(|(time, diff)| {
            in_force += diff;
            (in_force > 0 && (*time > BEGINNING || Some(*time) == last)).then_some(*time)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anabranch_batch::{Diffs, Times};
    use arrow::array::StringViewArray;

    use super::*;

    fn told(changes: &[(&str, Time, i64)]) -> Option<String> {
        let texts: StringViewArray = changes.iter().map(|change| Some(change.0)).collect();
        let times = Times::Column(changes.iter().map(|change| change.1).collect());
        let diffs = Diffs::Column(changes.iter().map(|change| change.2).collect::<Vec<_>>().into());
        let mut errors = RowErrors::default();
        errors.note(Batch::new(vec![Arc::new(texts)], times, diffs));
        let first = errors.take_first();
        assert_eq!(errors.take_first(), None, "once");
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
}
