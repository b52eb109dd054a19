//! Partitions as they are at each time, searched for matches, and the changes between them.

use anabranch_spec::order::SortKey;
use anabranch_spec::recognize::{CellValue, Skip};
use std::collections::BTreeMap;

use anabranch_arrangement::{Floor, Layout, ValueOrder};
use anabranch_batch::{Batch, Columns, Diffs, Time, Times};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringViewArray, UInt32Array, new_null_array};
use std::sync::Arc;

use super::cells::{self, Match, SUM_OUT_OF_RANGE};
use super::decided::{Decided, Reach, is_open};
use super::search::Search;
use super::spec::{RecognizeSpec, VariableSpec, offset_from_row};
use crate::expression::evaluate;
use crate::ordered::instants::Instants;
use crate::ordered::trace::OrderedTrace;
use crate::ordered::versions::{Updates, Version, Versions, absorb};
use anabranch_flow::pending::Pending;
use anabranch_flow::tactic::{Output, Passed, Timed};

/// The tactic. See the page of [`super`].
pub struct Recognize {
    spec: RecognizeSpec,
    pending: Pending,
    trace: OrderedTrace,
    /// The input columns that anything reads, ascending.
    read: Vec<usize>,
    /// Whether some condition depends on the match so far.
    depends_on_match: bool,
    reach: Reach,
    decided: Decided,
}

/// Rows of a partition that are searched.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchRange {
    /// The partition, among all rows.
    pub from: usize,
    pub to: usize,
    /// The first row that a match may begin at, and where matches end at the latest.
    pub start: usize,
    pub end: usize,
    /// Matches that begin before.
    pub n_matches: i64,
}

/// All rows of all versions.
pub(super) struct Rows {
    /// By input column; those that no expression reads are missing.
    columns: BTreeMap<usize, ArrayRef>,
    /// The first order column, where matches are bounded.
    instants: Option<(Instants, ArrayRef)>,
}

/// A span that is searched.
#[derive(Clone, Copy)]
struct Searched<'a> {
    number: usize,
    span: &'a SearchRange,
    rows: &'a Rows,
    masks: &'a [Mask],
    nulls: &'a [ArrayRef],
    below: Option<i64>,
}

/// Where a condition is met.
enum Mask {
    /// Everywhere.
    All,
    /// On these rows.
    Rows(BooleanArray),
    /// It must be asked.
    Unknown,
}

/// Matches found.
#[derive(Default)]
pub(super) struct Found {
    /// Version, first row, where its labels begin, number.
    pub matches: Vec<(usize, usize, usize, i64)>,
    labels: Vec<usize>,
    /// Version and message.
    errors: Vec<(usize, String)>,
}

impl Recognize {
    /// Looks for nothing yet.
    pub fn new(spec: RecognizeSpec) -> Recognize {
        let cells = spec.cells.iter().chain(&spec.output).filter_map(|cell| cell.value.column());
        let time = spec.within.map(|_| spec.order[0].column);
        let mut read: Vec<usize> = spec.partition.iter().copied().chain(cells).chain(time).collect();
        read.sort_unstable();
        read.dedup();
        let order =
            spec.order.iter().map(SortKey::pair).filter(|(column, _)| !spec.partition.contains(column)).collect();
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
            pending: Pending::default(),
            read,
            spec,
        }
    }

    /// The rows that are read.
    fn rows(&self, columns: Vec<ArrayRef>) -> Rows {
        let columns: BTreeMap<usize, ArrayRef> = self.read.iter().copied().zip(columns).collect();
        let time = self.spec.within.and_then(|_| columns.get(&self.spec.order[0].column));
        let instants = time.map(|column| (Instants::of(column), column.clone()));
        Rows { columns, instants }
    }

    /// Evaluates the conditions that depend on rows alone.
    fn masks(&self, spans: &[SearchRange], rows: &Rows) -> Vec<Mask> {
        let n_rows = spans.last().map_or(0, |span| span.to);
        let mask = |(variable, of): (usize, &VariableSpec)| {
            let Some(condition) = &of.condition else { return Mask::All };
            let mut columns = self.null_cells(n_rows);
            for &cell in &condition.cells {
                let Some(offset) = offset_from_row(&self.spec.cells[cell].value, variable) else {
                    return Mask::Unknown;
                };
                let column = &rows.columns[&self.spec.cells[cell].value.column().expect("it is of a row")];
                columns[cell] = if offset == 0 { column.clone() } else { cells::take(column, &moved(spans, offset)) };
            }
            let batch = Batch::with_len(Columns::from(columns), n_rows, Times::Constant(0), Diffs::Constant(1));
            // (A row on which it fails may be one that is never looked at.)
            evaluate(&condition.expression, &batch).map_or(Mask::Unknown, |met| Mask::Rows(met.as_boolean().clone()))
        };
        self.spec.variables.iter().enumerate().map(mask).collect()
    }

    fn null_cells(&self, len: usize) -> Vec<ArrayRef> {
        self.spec.cells.iter().map(|cell| new_null_array(&cell.data_type, len)).collect()
    }

    /// The matches of spans; and for each the first row that is not decided if rows below `below`
    /// are all there, none if all rows are. Of a span with an error there is none.
    fn search(&self, spans: &[SearchRange], rows: &Rows, below: Option<i64>) -> (Found, Vec<Result<usize, ()>>) {
        let masks = self.masks(spans, rows);
        let (mut found, mut decided) = (Found::default(), Vec::with_capacity(spans.len()));
        let mut search = Search::new(&self.spec.program, self.depends_on_match);
        let nulls = self.null_cells(1);
        for (number, span) in spans.iter().enumerate() {
            search.forget();
            let (n_matches, n_labels) = (found.matches.len(), found.labels.len());
            let searched = Searched { number, span, rows, masks: &masks, nulls: &nulls, below };
            decided.push(self.search_span(&searched, &mut search, &mut found).map_err(|message| {
                found.matches.truncate(n_matches);
                found.labels.truncate(n_labels);
                found.errors.push((number, message));
            }));
        }
        (found, decided)
    }

    fn search_span(
        &self,
        searched: &Searched<'_>,
        search: &mut Search<'_>,
        found: &mut Found,
    ) -> Result<usize, String> {
        let Searched { number, span, rows, masks, nulls, below } = *searched;
        let SearchRange { from, to, mut start, end: last, mut n_matches } = *span;
        while start < last {
            let end = rows.end_within(start, last, self.spec.within);
            if self.spec.within.is_some() {
                search.forget();
            }
            let mut meets = |row: usize, labels: &[usize]| {
                let variable = *labels.last().expect("a row is taken for a variable");
                match &masks[variable] {
                    Mask::All => Ok(true),
                    Mask::Rows(mask) => Ok(mask.is_valid(row) && mask.value(row)),
                    Mask::Unknown => {
                        self.ask(variable, Match { from, to, start, labels, number: n_matches + 1 }, rows, nulls)
                    }
                }
            };
            let is_match = search.run(start, end, &mut meets)?;
            if let Some(below) = below
                && search.came_to_end
                && end == last
                && is_open(rows, start, span, self.spec.within, below)
            {
                break;
            }
            if !is_match {
                start += 1;
                continue;
            }
            n_matches += 1;
            found.matches.push((number, start, found.labels.len(), n_matches));
            found.labels.extend_from_slice(&search.labels);
            start = self.resume(start, &search.labels)?;
        }
        Ok(start)
    }

    /// Asks whether the last row of a match so far meets the condition of the variable that it is
    /// taken for.
    fn ask(&self, variable: usize, so_far: Match<'_>, rows: &Rows, nulls: &[ArrayRef]) -> Result<bool, String> {
        let condition = self.spec.variables[variable].condition.as_ref().expect("what has no condition is met");
        let mut columns = nulls.to_vec();
        let of_rows = |column: usize| rows.columns[&column].clone();
        for &cell in &condition.cells {
            columns[cell] = match &self.spec.cells[cell].value {
                CellValue::Column { column, at } => match so_far.row(at) {
                    Some(row) => rows.columns[column].slice(row as usize, 1),
                    None => continue,
                },
                _ => {
                    let (value, failures) =
                        cells::column(&self.spec.cells[cell], &[so_far], &self.spec.variables, &of_rows);
                    if !failures.is_empty() {
                        return Err(SUM_OUT_OF_RANGE.to_owned());
                    }
                    value
                }
            };
        }
        let batch = Batch::with_len(Columns::from(columns), 1, Times::Constant(0), Diffs::Constant(1));
        let met = evaluate(&condition.expression, &batch)?;
        let met = met.as_boolean();
        Ok(met.is_valid(0) && met.value(0))
    }

    /// Where the search goes on after a match.
    fn resume(&self, start: usize, labels: &[usize]) -> Result<usize, String> {
        let (variable, place) = match self.spec.skip {
            Skip::PastLastRow => return Ok(start + labels.len()),
            Skip::ToNextRow => return Ok(start + 1),
            Skip::ToFirst(variable) => (variable, labels.iter().position(|label| *label == variable)),
            Skip::ToLast(variable) => (variable, labels.iter().rposition(|label| *label == variable)),
        };
        let name = &self.spec.variables[variable].name;
        match place {
            None => Err(format!("AFTER MATCH SKIP goes to {name}, but the match has no row of {name}")),
            Some(0) => Err(format!("AFTER MATCH SKIP goes to {name}, but {name} is the first row of the match")),
            Some(place) => Ok(start + place),
        }
    }

    /// Puts out what came and what went.
    fn give(&self, versions: &[Version], rows: &Rows, mut found: Found, out: &mut Output) {
        let ends = found.matches.iter().skip(1).map(|of| of.2).chain([found.labels.len()]);
        let matches: Vec<Match<'_>> = found
            .matches
            .iter()
            .zip(ends)
            .map(|(&(version, start, first, number), end)| {
                let Version { from, to, .. } = versions[version];
                Match { from, to, start, labels: &found.labels[first..end], number }
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
        for (n, &(version, ..)) in found.matches.iter().enumerate() {
            match failed[n] {
                false => updates.enter(n as u32, &versions[version]),
                true => found.errors.push((version, SUM_OUT_OF_RANGE.to_owned())),
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

/// For each row, the one so many rows on in its partition.
fn moved(spans: &[SearchRange], offset: i64) -> UInt32Array {
    let of_span = |span: &SearchRange| {
        let (from, to) = (span.from as i64, span.to as i64);
        (from..to).map(move |row| Some(row + offset).filter(|row| (from..to).contains(row)).map(|row| row as u32))
    };
    spans.iter().flat_map(of_span).collect()
}

impl Rows {
    /// The time of a row, where matches are bounded.
    pub fn instant(&self, row: usize) -> Option<i64> {
        let (instants, column) = self.instants.as_ref()?;
        column.is_valid(row).then(|| instants.at(row))
    }

    /// The end of the rows that may be in a match that begins at `start`.
    fn end_within(&self, start: usize, to: usize, within: Option<u64>) -> usize {
        let (Some(within), Some((instants, column))) = (within, &self.instants) else { return to };
        if column.is_null(start) {
            return start + 1;
        }
        let first = instants.at(start);
        let (mut low, mut high) = (start + 1, to);
        while low < high {
            let middle = low + (high - low) / 2;
            let is_near = column.is_valid(middle) && instants.at(middle).abs_diff(first) < within;
            if is_near { low = middle + 1 } else { high = middle }
        }
        low
    }
}

impl Timed for Recognize {
    fn push(&mut self, input: usize, batch: Batch) {
        assert_eq!(input, 0, "patterns are looked for in one input");
        self.pending.push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let Some(batch) = self.pending.take_before(upto) else { return };
        self.decided.note(batch.len());
        let leaving = self.decided.take_leaving();
        let (found, keys) = absorb(&mut self.trace, batch, leaving, &self.spec.partition, &self.read, upto);
        let Versions { versions, groups, columns, .. } = found;
        if versions.is_empty() {
            return;
        }
        let rows = self.rows(columns);
        let starts = self.decided.starts(&keys);
        let span = |(version, (group, time)): (&Version, &(usize, Time))| {
            let Version { from, to, .. } = *version;
            let (n_rows, n_matches) = starts[*group].at(*time);
            SearchRange { from, to, start: (from + n_rows).min(to), end: to, n_matches }
        };
        let spans: Vec<SearchRange> = versions.iter().zip(&groups).map(span).collect();
        let (found, _) = self.search(&spans, &rows, None);
        self.give(&versions, &rows, found, out);
    }

    /// Partitions leave that no change will concern, and of others the rows that no match to come
    /// reads.
    fn free(&mut self, passed: &[Passed]) {
        let order = self.spec.order[0].column;
        for passed in passed {
            let Passed { column, below, .. } = *passed;
            if self.spec.partition.contains(&column) {
                self.trace.set_floor(Floor { column, below });
            } else if column == order {
                let mut decided = std::mem::take(&mut self.decided);
                decided.look(&self.trace, (column, below), &self.read, self.reach, |spans, columns| {
                    self.search(spans, &self.rows(columns), Some(below))
                });
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
        self.pending.size_bytes() + self.trace.size_bytes() + self.decided.size_bytes()
    }
}
