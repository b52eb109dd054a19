//! Partitions as they are at each time, searched for matches, and the changes between them.

use std::ops::Range;
use std::sync::Arc;

use anabranch_arrangement::{Floor, Keys, Layout, ValueOrder};
use anabranch_batch::order::{Direction, prefixes};
use anabranch_batch::{Batch, Time};
use anabranch_spec::order::SortKey;
use arrow::array::{Array, ArrayRef, StringViewArray, UInt32Array};

use super::cells::{self, Match, SUM_OUT_OF_RANGE};
use super::cuts::{Cuts, Resumed};
use super::decided::{Decided, Reach};
use super::found::{Found, Rows, SearchRange};
use super::spec::{RecognizeSpec, VariableSpec, offset_from_row};
use crate::ordered::trace::{OrderedTrace, touched_times};
use crate::ordered::versions::{Touched, Updates, Version, Versions, versions_of};
use anabranch_flow::pending::Pending;
use anabranch_flow::tactic::{Output, Passed, Timed};

/// The tactic. See the page of [`super`].
pub struct Recognize {
    pub(super) spec: RecognizeSpec,
    pending: Pending,
    trace: OrderedTrace,
    /// The input columns that anything reads, ascending.
    pub(super) read: Vec<usize>,
    /// The column that words of rows are of; without one there are no cuts.
    pub(super) word: Option<(usize, Direction)>,
    /// Whether some condition depends on the match so far.
    pub(super) depends_on_match: bool,
    pub(super) reach: Reach,
    decided: Decided,
    cuts: Cuts,
}

impl Recognize {
    /// Looks for nothing yet.
    pub fn new(spec: RecognizeSpec) -> Recognize {
        let cells = spec.cells.iter().chain(&spec.output).filter_map(|cell| cell.value.column());
        let time = spec.within.map(|_| spec.order[0].column);
        let order: Vec<(usize, Direction)> =
            spec.order.iter().map(SortKey::pair).filter(|(column, _)| !spec.partition.contains(column)).collect();
        let word = order.first().copied();
        let of_word = word.map(|(column, _)| column);
        let mut read: Vec<usize> = spec.partition.iter().copied().chain(cells).chain(time).chain(of_word).collect();
        read.sort_unstable();
        read.dedup();
        let (key, types) = (spec.partition.clone(), spec.input_types.clone());
        let depends = |(variable, of): (usize, &VariableSpec)| {
            let condition = of.condition.iter();
            let mut cells = condition.flat_map(|condition| &condition.cells);
            cells.any(|cell| offset_from_row(&spec.cells[*cell].value, variable).is_none())
        };
        Recognize {
            reach: Reach::of(spec.cells.iter().chain(&spec.output)),
            decided: Decided::default(),
            depends_on_match: spec.variables.iter().enumerate().any(depends),
            trace: OrderedTrace::new(Layout { key, values: ValueOrder::Sorted(order), types }, spec.effort),
            cuts: Cuts::new(&spec.partition),
            pending: Pending::default(),
            word,
            read,
            spec,
        }
    }

    /// The words of rows: prefixes of their order.
    pub(super) fn words(&self, column: &ArrayRef) -> Vec<u64> {
        let direction = self.word.map_or(Direction::ASCENDING, |(_, direction)| direction);
        prefixes(std::slice::from_ref(column), &[direction], column.len()).0
    }

    /// The partitions that change, with what is known of their searches.
    fn resumed(&mut self, touched: &Touched) -> Vec<Resumed> {
        let Touched { batch, keys, of_row } = touched;
        let words = match self.word {
            Some((column, _)) => self.words(batch.column(column)),
            None => vec![0; batch.len()],
        };
        let mut spans = vec![(u64::MAX, u64::MIN); keys.len()];
        for (group, word) in of_row.iter().zip(words) {
            let (least, greatest) = &mut spans[*group as usize];
            (*least, *greatest) = (word.min(*least), word.max(*greatest));
        }
        let times = touched_times(of_row, batch.times());
        let groups = times.into_iter().zip(spans).enumerate();
        groups.map(|(group, (times, words))| Resumed::new(group, times, words, self.cuts.take(keys, group))).collect()
    }

    /// Searches stretches of partitions, and puts out what has changed. Returns the partitions of
    /// which that was too little.
    fn search_again(&mut self, open: Vec<Resumed>, keys: &Keys, out: &mut Output) -> Vec<Resumed> {
        let stretches = open.iter().map(|resumed| (resumed.stretch(), &*resumed.times));
        let Versions { versions, groups, columns, .. } = versions_of(&self.trace, keys, stretches, &self.read);
        if versions.is_empty() {
            open.into_iter().for_each(|resumed| self.cuts.put(keys, resumed.group, resumed.cuts));
            return vec![];
        }
        let rows = self.rows_with_words(columns);
        let spans = self.spans(&open, keys, (&versions, &groups), &rows);
        let (mut found, mut ends) = self.search(&spans, &rows, None);
        let (mut again, mut from) = (Vec::new(), 0);
        for mut resumed in open {
            let own = versions_of_group(&groups, resumed.group, from);
            let mut its_ends: Vec<_> = ends.drain(..own.len()).collect();
            from = own.end;
            if !resumed.fits(&spans[own.clone()], &its_ends, self.reach) {
                found.forget(&own);
                again.push(resumed);
                continue;
            }
            let cuts = match (spans[own].last(), its_ends.pop()) {
                (Some(span), Some(end)) => resumed.cuts_after(span, end),
                // (Nothing has changed.)
                _ => resumed.cuts,
            };
            self.cuts.put(keys, resumed.group, cuts);
        }
        self.give(&versions, &rows, found, out);
        again
    }

    /// What is searched of each version. (Versions come group by group, in the order of stretches.)
    fn spans(
        &self,
        open: &[Resumed],
        keys: &Keys,
        (versions, groups): (&[Version], &[(usize, Time)]),
        rows: &Rows,
    ) -> Vec<SearchRange> {
        let starts = self.decided.starts(keys);
        let mut spans: Vec<SearchRange> = Vec::with_capacity(versions.len());
        for resumed in open {
            let own = versions_of_group(groups, resumed.group, spans.len());
            spans.extend(versions[own.clone()].iter().zip(&groups[own]).map(|(version, (group, time))| {
                let Version { from, to, .. } = *version;
                let decided = || starts[*group].at(*time);
                let ((n_before, n_matches), clean_from) = match resumed.begin() {
                    Some(cut) => ((cut.n_back, cut.n_matches), cut.clean_from),
                    None => (decided(), 0),
                };
                let start = (from + n_before).min(to);
                let n_to_stop = |word: u64| rows.words[from..to].partition_point(|of_row| *of_row < word);
                let stop = resumed.stop().map_or(to, |word| (from + n_to_stop(word)).max(start));
                SearchRange { from, to, start, stop, end: to, n_matches, clean_from }
            }));
        }
        spans
    }

    /// Whether some partition has cuts.
    #[cfg(test)]
    pub(super) fn has_cuts(&self) -> bool {
        self.cuts.size_bytes() > 0
    }

    /// Puts out what came and what went.
    fn give(&self, versions: &[Version], rows: &Rows, mut found: Found, out: &mut Output) {
        let matches: Vec<Match<'_>> = found
            .matches
            .iter()
            .map(|one| {
                let Version { from, to, .. } = versions[one.span];
                Match { from, to, start: one.start, labels: &found.labels[one.labels.clone()], number: one.number }
            })
            .collect();
        let starts: UInt32Array = matches.iter().map(|found| Some(found.start as u32)).collect();
        let mut columns: Vec<ArrayRef> =
            self.spec.partition.iter().map(|column| cells::take(&rows.columns[column], &starts)).collect();
        let mut failed = vec![false; matches.len()];
        let of_rows = |column: usize| rows.columns[&column].clone();
        for cell in &self.spec.output {
            let (column, failures) = cells::column(cell, &matches, &self.spec.variables, &of_rows);
            failures.into_iter().for_each(|n| failed[n] = true);
            columns.push(column);
        }
        let mut updates = Updates::default();
        for (n, one) in found.matches.iter().enumerate() {
            match failed[n] {
                false => updates.enter(n as u32, &versions[one.span]),
                true => found.errors.push((one.span, SUM_OUT_OF_RANGE.to_owned())),
            }
        }
        out.give_rows(updates.finish(&columns));
        let messages: ArrayRef =
            Arc::new(StringViewArray::from_iter_values(found.errors.iter().map(|(_, message)| message)));
        let mut updates = Updates::default();
        for (n, (version, _)) in found.errors.iter().enumerate() {
            updates.enter(n as u32, &versions[*version]);
        }
        out.give_errors(updates.finish(&[messages]));
    }
}

/// The versions of a group, the first of which is `from`.
fn versions_of_group(groups: &[(usize, Time)], group: usize, from: usize) -> Range<usize> {
    from..from + groups[from..].iter().take_while(|(of, _)| *of == group).count()
}

impl Timed for Recognize {
    fn push(&mut self, input: usize, batch: Batch) {
        assert_eq!(input, 0, "patterns are looked for in one input");
        self.pending.push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let Some(batch) = self.pending.take_before(upto) else { return };
        self.decided.note(batch.len());
        let touched = Touched::new(batch, &self.spec.partition);
        let mut open = self.resumed(&touched);
        let Touched { batch, keys, .. } = touched;
        let batch = match self.decided.take_leaving() {
            None => batch,
            // (They touch nothing.)
            Some(leaving) => {
                Batch::concat(&[batch, leaving]).map(|all| all.with_key(&self.spec.partition)).unwrap_or_default()
            }
        };
        self.trace.absorb(batch, upto);
        while !open.is_empty() {
            open = self.search_again(open, &keys, out);
        }
    }

    /// Partitions leave that no change will concern, and of others the rows that no match to come
    /// reads.
    fn free(&mut self, passed: &[Passed]) {
        let order = self.spec.order[0].column;
        for passed in passed {
            let Passed { column, below, .. } = *passed;
            if self.spec.partition.contains(&column) {
                self.trace.set_floor(Floor { column, below });
                self.cuts.set_floor(Floor { column, below });
            } else if column == order {
                let mut decided = std::mem::take(&mut self.decided);
                decided.look(&self.trace, (column, below), &self.read, self.reach, |spans, columns| {
                    let (found, ends) = self.search(spans, &self.rows(columns), Some(below));
                    (found, ends.into_iter().map(|end| end.map(|end| end.at)).collect())
                });
                if decided.has_leaving() {
                    self.cuts.forget();
                }
                self.decided = decided;
            }
        }
    }

    fn idle(&mut self) {
        self.trace.idle();
    }

    fn pending_from(&self) -> Option<Time> {
        self.pending.pending_from()
    }

    fn state_rows(&self) -> Option<usize> {
        Some(self.trace.n_rows())
    }

    fn size_bytes(&self) -> usize {
        self.pending.size_bytes() + self.trace.size_bytes() + self.decided.size_bytes() + self.cuts.size_bytes()
    }
}
