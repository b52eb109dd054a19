//! Spans of partitions, searched for matches.

use std::collections::BTreeMap;

use anabranch_batch::{Batch, Columns, Diffs, Times};
use anabranch_spec::recognize::{CellValue, Skip};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array, new_null_array};

use super::cells::{self, Match, SUM_OUT_OF_RANGE};
use super::decided::is_open;
use super::found::{CUT_ROWS, Cut, Found, FoundMatch, Rows, SearchRange, SpanEnd};
use super::search::Search;
use super::spec::{VariableSpec, offset_from_row};
use super::tactic::Recognize;
use crate::expression::evaluate;
use crate::ordered::instants::Instants;

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

impl Recognize {
    /// The rows that are read.
    pub(super) fn rows(&self, columns: Vec<ArrayRef>) -> Rows {
        let columns: BTreeMap<usize, ArrayRef> = self.read.iter().copied().zip(columns).collect();
        let time = self.spec.within.and_then(|_| columns.get(&self.spec.order[0].column));
        let instants = time.map(|column| (Instants::of(column), column.clone()));
        Rows { columns, instants, words: vec![] }
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

    /// The same with their words.
    pub(super) fn rows_with_words(&self, columns: Vec<ArrayRef>) -> Rows {
        let rows = self.rows(columns);
        let words = match self.word {
            Some((column, _)) => self.words(&rows.columns[&column]),
            None => vec![],
        };
        Rows { words, ..rows }
    }

    /// The matches of spans, and how the search of each ended; of a span with an error there is
    /// none. Where all rows below `below` are there, and not all others, it ends at the first row
    /// that is not decided.
    pub(super) fn search(
        &self,
        spans: &[SearchRange],
        rows: &Rows,
        below: Option<i64>,
    ) -> (Found, Vec<Result<SpanEnd, ()>>) {
        let masks = self.masks(spans, rows);
        let (mut found, mut ends) = (Found::default(), Vec::with_capacity(spans.len()));
        let mut search = Search::new(&self.spec.program, self.depends_on_match);
        let nulls = self.null_cells(1);
        for (number, span) in spans.iter().enumerate() {
            search.forget();
            let (n_matches, n_labels) = (found.matches.len(), found.labels.len());
            let searched = Searched { number, span, rows, masks: &masks, nulls: &nulls, below };
            ends.push(self.search_span(&searched, &mut search, &mut found).map_err(|message| {
                found.matches.truncate(n_matches);
                found.labels.truncate(n_labels);
                found.errors.push((number, message));
            }));
        }
        (found, ends)
    }

    fn search_span(
        &self,
        searched: &Searched<'_>,
        search: &mut Search<'_>,
        found: &mut Found,
    ) -> Result<SpanEnd, String> {
        let Searched { number, span, rows, masks, nulls, below } = *searched;
        let SearchRange { from, to, mut start, stop, end: last, mut n_matches, .. } = *span;
        let (mut cuts, mut cut_at) = (Vec::new(), start);
        search.read_to = start;
        while start < stop {
            if start - cut_at >= CUT_ROWS {
                cuts.extend(self.cut(rows, span, start, search.read_to, n_matches).inspect(|_| cut_at = start));
            }
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
            if search.came_to_end {
                // (That the row at the end is too far was read of it.)
                search.read_to = if end < last { search.read_to.max(end + 1) } else { usize::MAX };
            }
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
            let labels = found.labels.len()..found.labels.len() + search.labels.len();
            found.matches.push(FoundMatch { span: number, start, labels, number: n_matches });
            found.labels.extend_from_slice(&search.labels);
            start = self.resume(start, &search.labels)?;
        }
        let clean_from = self.clean_from(rows, span, start, search.read_to);
        Ok(SpanEnd { at: start, clean_from, n_matches, cuts })
    }

    /// The place before a row as one to go on from, if its word begins there.
    fn cut(&self, rows: &Rows, span: &SearchRange, row: usize, read_to: usize, n_matches: i64) -> Option<Cut> {
        let (words, from) = (&rows.words, span.from);
        if words.is_empty() || words[row - 1] == words[row] {
            return None;
        }
        let clean_from = self.clean_from(rows, span, row, read_to)?.max(words[row]);
        let from_word = words[row.saturating_sub(self.reach.back).max(from)];
        let first = from + words[from..=row].partition_point(|word| *word < from_word);
        let n_matches = if self.reach.has_numbers { n_matches } else { 0 };
        Some(Cut { word: words[row], clean_from, from_word, n_back: row - first, n_matches })
    }

    /// The least word such that what changes from there on changes no match that begins before a
    /// row; `None` if there is none.
    fn clean_from(&self, rows: &Rows, span: &SearchRange, row: usize, read_to: usize) -> Option<u64> {
        let end = read_to.saturating_add(self.reach.ahead);
        match end {
            end if end <= row => Some(span.clean_from),
            // (What lies behind the last row that was read moves none that was.)
            end if end <= span.to => Some(rows.words.get(end - 1)?.checked_add(1)?.max(span.clean_from)),
            _ => None,
        }
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
}

/// For each row, the one so many rows on in its partition.
fn moved(spans: &[SearchRange], offset: i64) -> UInt32Array {
    let of_span = |span: &SearchRange| {
        let (from, to) = (span.from as i64, span.to as i64);
        (from..to).map(move |row| Some(row + offset).filter(|row| (from..to).contains(row)).map(|row| row as u32))
    };
    spans.iter().flat_map(of_span).collect()
}
