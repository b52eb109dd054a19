//! From results before and after each segment to output rows.
//!
//! Law: for each segment, the old row leaves and the new row comes at the segment's time, unless
//! they are equal; a row exists while its group is alive; in place of a row one of whose results is
//! an error, the error leaves or comes.
//!
//! Results come as *pairs*: arrays with two entries a segment, before and after. Cost: one filter a
//! column, none when all pairs are put out.

use anabranch_batch::{Batch, Columns, Diffs, END, Time, Times, Until, equal, gather, numeric};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, NullBufferBuilder, PrimitiveArray, StringViewArray,
};
use arrow::compute::FilterBuilder;
use arrow::datatypes::{ArrowNativeTypeOp, ArrowPrimitiveType, DataType};
use arrow::util::display::array_value_to_string;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::aggregate::segments::Segments;
use crate::made::note_made;
use anabranch_flow::tactic::Output;

/// A result: a value, NULL, or the message of an error.
pub(crate) type Value<T> = Result<Option<T>, String>;

/// What is known of the pairs beside the result arrays.
pub(crate) struct GroupOutcome {
    /// For each segment, whether something differs between before and after.
    changed: Vec<bool>,
    /// For entries of pairs without a result, why.
    errors: BTreeMap<usize, String>,
}

impl GroupOutcome {
    /// Nothing has changed yet in `n_segments` segments.
    pub(crate) fn new(n_segments: usize) -> GroupOutcome {
        GroupOutcome { changed: vec![false; n_segments], errors: BTreeMap::new() }
    }

    /// For each segment, whether something differs between before and after.
    #[cfg(test)]
    pub(crate) fn changed(&self) -> &[bool] {
        &self.changed
    }

    /// Says that before and after differ in `segment`.
    #[inline]
    pub(crate) fn mark_if(&mut self, segment: usize, differs: bool) {
        self.changed[segment] |= differs;
    }

    /// Says where the pairs of an array differ.
    pub(crate) fn mark_pairs(&mut self, pairs: &ArrayRef) {
        let before: Vec<u32> = (0..self.changed.len() as u32).map(|segment| 2 * segment).collect();
        let after: Vec<u32> = before.iter().map(|entry| entry + 1).collect();
        let pairs = std::slice::from_ref(pairs);
        let equal = equal::rows_equal(pairs, &before, pairs, &after);
        equal.iter().enumerate().for_each(|(segment, &equal)| self.mark_if(segment, !equal));
    }

    /// Says why an entry has no result.
    pub(crate) fn fail(&mut self, entry: usize, message: String) {
        self.errors.entry(entry).or_insert(message);
    }

    /// The value, and NULL in place of an error, which is noted. The first call with an error names
    /// it.
    #[inline]
    fn note_error<T>(&mut self, entry: usize, value: Value<T>) -> Option<T> {
        match value {
            Ok(value) => value,
            Err(message) => {
                self.errors.entry(entry).or_insert(message);
                None
            }
        }
    }
}

/// Collects pairs of a primitive type.
pub(crate) struct Pairs<T: ArrowPrimitiveType> {
    values: Vec<[T::Native; 2]>,
    nulls: NullBufferBuilder,
}

impl<T: ArrowPrimitiveType> Pairs<T> {
    /// Room for the pairs of `n_segments`.
    pub(crate) fn with_capacity(n_segments: usize) -> Pairs<T> {
        Pairs { values: Vec::with_capacity(n_segments), nulls: NullBufferBuilder::new(2 * n_segments) }
    }

    /// Adds the pairs of the next segments, from `first` on, all of them values.
    #[inline]
    pub(crate) fn extend_full(
        &mut self,
        outcome: &mut GroupOutcome,
        first: usize,
        pairs: impl ExactSizeIterator<Item = [T::Native; 2]>,
    ) {
        let n_segments = pairs.len();
        self.extend(outcome, first, pairs);
        self.nulls.append_n_non_nulls(2 * n_segments);
    }

    /// Adds values of the next segments, from `first` on, and the default in place of NULL;
    /// [`extend_validity`](Pairs::extend_validity) follows.
    #[inline]
    pub(crate) fn extend(
        &mut self,
        outcome: &mut GroupOutcome,
        first: usize,
        pairs: impl ExactSizeIterator<Item = [T::Native; 2]>,
    ) {
        let changed = &mut outcome.changed[first..first + pairs.len()];
        let start = self.values.len();
        self.values.extend(pairs);
        let pairs = &self.values[start..];
        changed.iter_mut().zip(pairs).for_each(|(changed, [before, after])| *changed |= before.is_ne(*after));
    }

    /// Says which values of the next `n_segments`, from `first` on, are not NULL, if not all.
    #[inline]
    pub(crate) fn extend_validity(
        &mut self,
        outcome: &mut GroupOutcome,
        first: usize,
        n_segments: usize,
        exist: Option<impl Iterator<Item = [bool; 2]>>,
    ) {
        let Some(exist) = exist else { return self.nulls.append_n_non_nulls(2 * n_segments) };
        for (segment, [had, has]) in (first..).zip(exist) {
            outcome.mark_if(segment, had != has);
            self.nulls.append(had);
            self.nulls.append(has);
        }
    }

    /// Adds the pair of the next segment.
    #[inline]
    pub(crate) fn push(
        &mut self,
        outcome: &mut GroupOutcome,
        segment: usize,
        before: Value<T::Native>,
        after: Value<T::Native>,
    ) {
        if let (Ok(Some(before)), Ok(Some(after))) = (&before, &after) {
            outcome.mark_if(segment, before.is_ne(*after));
            self.values.push([*before, *after]);
            return self.nulls.append_n_non_nulls(2);
        }
        let is_same_kind = before.is_ok() == after.is_ok();
        let before = outcome.note_error(2 * segment, before);
        let after = outcome.note_error(2 * segment + 1, after);
        let is_same = match (before, after) {
            (Some(before), Some(after)) => before.is_eq(after),
            (None, None) => is_same_kind,
            _ => false,
        };
        outcome.mark_if(segment, !is_same);
        self.values.push([before, after].map(Option::unwrap_or_default));
        self.nulls.append(before.is_some());
        self.nulls.append(after.is_some());
    }

    /// The pairs, as this type.
    pub(crate) fn finish(mut self, data_type: &DataType) -> ArrayRef {
        let values = self.values.into_flattened();
        Arc::new(PrimitiveArray::<T>::new(values.into(), self.nulls.finish()).with_data_type(data_type.clone()))
    }
}

/// Puts out the rows and errors that leave and come.
///
/// `keys` are the key columns of the batch, `alive` says for each segment whether the group has a
/// row before and after.
pub(crate) fn assemble(
    keys: &[ArrayRef],
    results: Vec<ArrayRef>,
    segments: &Segments,
    alive: &[[bool; 2]],
    outcome: &GroupOutcome,
    output: &mut Output,
) {
    let kept = Kept::new(alive, outcome);
    results.iter().for_each(note_made);
    if !kept.entries.is_empty() {
        let first_rows: Vec<u32> = kept.entries.iter().map(|&entry| segments.first_row[entry as usize / 2]).collect();
        let mut columns = gather::take(keys, &first_rows).to_vec();
        columns.extend(kept.filter(results));
        let columns = Columns::from(columns);
        let len = kept.entries.len();
        output.give_rows(Batch::with_len(columns, len, kept.times(segments), kept.diffs()));
    }
    if outcome.has_errors() {
        give_errors(keys, segments, alive, outcome, output);
    }
}

/// Puts out the pieces between segments as events: the piece that a slot's first segment ends, as
/// an end edge of the piece that began at `starts[slot]`; the pieces between its segments; and the
/// one that its last segment begins, as a start edge.
///
/// Arguments as in [`assemble`]; `starts` has an entry a slot and is brought up to date.
pub(crate) fn assemble_pieces(
    keys: &[ArrayRef],
    results: Vec<ArrayRef>,
    segments: &Segments,
    alive: &[[bool; 2]],
    starts: &mut [Time],
    outcome: &GroupOutcome,
    output: &mut Output,
) {
    let mut pieces = Pieces::default();
    let mut failed = Pieces::default();
    for range in segments.by_slot() {
        let start = &mut starts[segments.slot[range.start] as usize];
        if alive[range.start][0] {
            let entry = 2 * range.start;
            let pieces = if outcome.errors.contains_key(&entry) { &mut failed } else { &mut pieces };
            pieces.push(entry, segments.times.get(range.start), *start);
        }
        for segment in range.clone().filter(|&segment| alive[segment][1]) {
            let time = segments.times.get(segment);
            let is_last = segment + 1 == range.end;
            let until = if is_last { END } else { segments.times.get(segment + 1) };
            let entry = 2 * segment + 1;
            let pieces = if outcome.errors.contains_key(&entry) { &mut failed } else { &mut pieces };
            pieces.push(entry, time, until);
        }
        *start = segments.times.get(range.end - 1);
    }
    let first_rows: Vec<u32> = pieces.entries.iter().map(|&entry| segments.first_row[entry as usize / 2]).collect();
    let mut columns = gather::take(keys, &first_rows).to_vec();
    columns.extend(gather::take(&results, &pieces.entries).iter().cloned());
    output.give_rows(pieces.finish(columns));

    let message = |&entry: &u32| {
        let message = &outcome.errors[&(entry as usize)];
        format!("{message}{}", group_name(keys, segments.first_row[entry as usize / 2] as usize))
    };
    let messages: ArrayRef = Arc::new(StringViewArray::from_iter_values(failed.entries.iter().map(message)));
    output.give_errors(failed.finish(vec![messages]));
}

/// Events under construction.
#[derive(Default)]
struct Pieces {
    /// Entries of pairs.
    entries: Vec<u32>,
    times: Vec<Time>,
    untils: Vec<Time>,
}

impl Pieces {
    #[inline]
    fn push(&mut self, entry: usize, time: Time, until: Time) {
        self.entries.push(entry as u32);
        self.times.push(time);
        self.untils.push(until);
    }

    fn finish(self, columns: Vec<ArrayRef>) -> Batch {
        let len = self.entries.len();
        let batch = Batch::with_len(Columns::from(columns), len, Times::Column(self.times.into()), Diffs::Constant(1));
        batch.with_until(Until::Column(self.untils.into()))
    }
}

/// So few entries are picked, not filtered.
const FEW_ENTRIES: usize = 8;

/// Entries of pairs that are put out.
struct Kept {
    entries: Vec<u32>,
    /// Which they are, unless all.
    mask: Option<BooleanArray>,
}

impl Kept {
    fn new(alive: &[[bool; 2]], outcome: &GroupOutcome) -> Kept {
        let n_entries = 2 * alive.len();
        let mut differing = alive.iter().zip(&outcome.changed);
        if !outcome.has_errors() && differing.all(|(&alive, &changed)| alive == [true, true] && changed) {
            return Kept { entries: (0..n_entries as u32).collect(), mask: None };
        }
        let mut mask = BooleanBufferBuilder::new(n_entries);
        let mut entries = Vec::with_capacity(n_entries);
        for (segment, &[before, after]) in alive.iter().enumerate() {
            let differs = before != after || outcome.changed[segment];
            for (entry, is_alive) in [(2 * segment, before), (2 * segment + 1, after)] {
                let keep = differs && is_alive && !(outcome.has_errors() && outcome.errors.contains_key(&entry));
                mask.append(keep);
                if keep {
                    entries.push(entry as u32);
                }
            }
        }
        Kept { entries, mask: Some(BooleanArray::new(mask.finish(), None)) }
    }

    fn filter(&self, results: Vec<ArrayRef>) -> Vec<ArrayRef> {
        let Some(mask) = &self.mask else { return results };
        if self.entries.len() <= FEW_ENTRIES {
            return gather::take(&results, &self.entries).to_vec();
        }
        let filter = FilterBuilder::new(mask).optimize().build();
        let filtered =
            results.iter().map(|result| filter.filter(result).expect("a result has two entries per segment"));
        filtered.collect()
    }

    fn times(&self, segments: &Segments) -> Times {
        match &segments.times {
            Times::Constant(time) => Times::Constant(*time),
            Times::Column(times) => {
                Times::Column(self.entries.iter().map(|&entry| times[entry as usize / 2]).collect())
            }
        }
    }

    fn diffs(&self) -> Diffs {
        let diffs = self.entries.iter().map(|entry| if entry % 2 == 0 { -1 } else { 1 });
        Diffs::Column(diffs.collect()).simplify()
    }
}

impl GroupOutcome {
    #[inline]
    fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }
}

/// Puts out the errors that leave and come, each naming its group.
fn give_errors(
    keys: &[ArrayRef],
    segments: &Segments,
    alive: &[[bool; 2]],
    outcome: &GroupOutcome,
    output: &mut Output,
) {
    let (mut messages, mut times, mut diffs) = (Vec::new(), Vec::new(), Vec::new());
    for (&entry, message) in &outcome.errors {
        let (segment, side) = (entry / 2, entry % 2);
        let is_in_both = alive[segment] == [true, true] && outcome.errors.get(&(entry ^ 1)) == Some(message);
        if alive[segment][side] && !is_in_both {
            messages.push(format!("{message}{}", group_name(keys, segments.first_row[segment] as usize)));
            times.push(segments.times.get(segment));
            diffs.push(if side == 0 { -1 } else { 1 });
        }
    }
    let messages: ArrayRef = Arc::new(StringViewArray::from_iter_values(messages));
    output.give_errors(Batch::new(vec![messages], Times::Column(times.into()), Diffs::Column(diffs.into())));
}

/// What a group is called, by any row of it: equal keys have one name.
fn group_name(keys: &[ArrayRef], row: usize) -> String {
    let cell = |key: &ArrayRef| match key.is_null(row) {
        true => "NULL".to_string(),
        false => {
            let name = match key.as_binary_opt::<i64>().map(|number| numeric::decode(number.value(row))) {
                Some(Some(number)) => {
                    let mut text = String::new();
                    numeric::write(&number, &mut text);
                    text
                }
                _ => array_value_to_string(key, row).unwrap_or_else(|_| "?".to_string()),
            };
            // (Zero equals zero, whatever its sign.)
            let is_zero = key.data_type().is_floating() && name.starts_with("-0") && name.parse() == Ok(0.0);
            if is_zero { name[1..].to_string() } else { name }
        }
    };
    let cells: Vec<String> = keys.iter().map(cell).collect();
    if cells.is_empty() { String::new() } else { format!(" (group {})", cells.join(", ")) }
}
