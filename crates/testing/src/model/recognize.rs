//! Row patterns by recursion: all ways to read a partition's rows, in order of preference.

use std::collections::BTreeMap;

use anabranch_plan::recognize::{At, Cell, CellValue, End, Fold, Recognize, RowPattern, Skip};
use datafusion_common::ScalarValue;

use super::answer::Answer;
use super::expression::Evaluator;
use super::order::compare_by;
use crate::row::{Contents, Row, compare};

/// The answer of a pattern over its input's answer.
pub fn recognize(recognize: &Recognize, input: Answer) -> Answer {
    let mut partitions: BTreeMap<Row, Vec<&Row>> = BTreeMap::new();
    for (row, count) in input.rows.iter() {
        let partition = partitions.entry(row.project(&recognize.partition)).or_default();
        partition.extend(std::iter::repeat_n(row, count as usize));
    }
    let mut answer = Answer { rows: Contents::new(), errors: input.errors.clone() };
    for (key, mut rows) in partitions {
        rows.sort_by(|a, b| compare_by(&recognize.order, a, b).then_with(|| a.cmp(b)));
        match Partition::new(recognize, &rows).matches() {
            Ok(matches) => matches.into_iter().for_each(|cells| answer.rows.add(key.concat(&cells), 1)),
            Err(message) => answer.fail(message, 1),
        }
    }
    answer
}

struct Partition<'a> {
    recognize: &'a Recognize,
    rows: &'a [&'a Row],
    conditions: Vec<Option<Evaluator>>,
}

/// What is left to be read after a part.
type Rest<'r> = &'r mut dyn FnMut(&mut Vec<usize>) -> Result<bool, String>;

impl<'a> Partition<'a> {
    fn new(recognize: &'a Recognize, rows: &'a [&'a Row]) -> Partition<'a> {
        let schema = recognize.schema().expect("cells have names of their own");
        let condition = |variable: &anabranch_plan::recognize::Variable| {
            variable.condition.as_ref().map(|condition| Evaluator::new(condition, &schema))
        };
        Partition { recognize, rows, conditions: recognize.variables.iter().map(condition).collect() }
    }

    /// The cells of each match.
    fn matches(&self) -> Result<Vec<Row>, String> {
        let (mut start, mut found) = (0, Vec::new());
        while start < self.rows.len() {
            let mut labels = Vec::new();
            let number = found.len() as i64 + 1;
            if !self.read(&self.recognize.pattern, start, number, &mut labels, &mut |labels| Ok(!labels.is_empty()))? {
                start += 1;
                continue;
            }
            let cells = self.recognize.output.iter();
            found.push(Row::new(cells.map(|cell| self.cell(cell, start, number, &labels)).collect::<Vec<_>>()));
            let place = match self.recognize.skip {
                Skip::PastLastRow => Some(labels.len()),
                Skip::ToNextRow => Some(1),
                Skip::ToFirst(variable) => labels.iter().position(|label| *label == variable),
                Skip::ToLast(variable) => labels.iter().rposition(|label| *label == variable),
            };
            start += place.filter(|place| *place > 0).ok_or("the search goes on nowhere")?;
        }
        Ok(found)
    }

    /// Reads a part and then the rest, in the preferred way; `labels` are those of the match so
    /// far.
    fn read(
        &self,
        pattern: &RowPattern,
        start: usize,
        number: i64,
        labels: &mut Vec<usize>,
        rest: Rest<'_>,
    ) -> Result<bool, String> {
        match pattern {
            RowPattern::Variable(variable) => {
                let row = start + labels.len();
                if row >= self.rows.len() || !self.is_within(start, row) {
                    return Ok(false);
                }
                labels.push(*variable);
                if self.meets(*variable, start, number, labels)? && rest(labels)? {
                    return Ok(true);
                }
                labels.pop();
                Ok(false)
            }
            RowPattern::Sequence(parts) => match parts.split_first() {
                None => rest(labels),
                Some((first, others)) => {
                    let others = RowPattern::Sequence(others.to_vec());
                    self.read(first, start, number, labels, &mut |labels| {
                        self.read(&others, start, number, labels, &mut *rest)
                    })
                }
            },
            RowPattern::Alternatives(parts) => {
                for part in parts {
                    if self.read(part, start, number, labels, &mut *rest)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            RowPattern::Repeat { part, min, max, is_reluctant } => {
                let may_stop = *min == 0;
                if may_stop && *is_reluctant && rest(labels)? {
                    return Ok(true);
                }
                if *max != Some(0) {
                    let again = RowPattern::Repeat {
                        part: part.clone(),
                        min: min.saturating_sub(1),
                        max: max.map(|max| max - 1),
                        is_reluctant: *is_reluctant,
                    };
                    let before = labels.len();
                    let more = self.read(part, start, number, labels, &mut |labels| {
                        // (Once more without a row is no once more.)
                        let is_some = labels.len() > before || *min > 0;
                        Ok(is_some && self.read(&again, start, number, labels, &mut *rest)?)
                    })?;
                    if more {
                        return Ok(true);
                    }
                }
                Ok(may_stop && !*is_reluctant && rest(labels)?)
            }
        }
    }

    fn meets(&self, variable: usize, start: usize, number: i64, labels: &[usize]) -> Result<bool, String> {
        let Some(condition) = &self.conditions[variable] else { return Ok(true) };
        let cells = self.recognize.cells.iter().map(|cell| self.cell(cell, start, number, labels));
        condition.is_true(&Row::new(cells.collect::<Vec<_>>()))
    }

    fn is_within(&self, start: usize, row: usize) -> bool {
        let Some(within) = self.recognize.within else { return true };
        let time = |row: usize| match self.rows[row].value(self.recognize.order[0].column) {
            ScalarValue::Int64(time) => *time,
            ScalarValue::Int32(time) => time.map(i64::from),
            other => panic!("{other:?} is no time"),
        };
        row == start || time(start).zip(time(row)).is_some_and(|(a, b)| a.abs_diff(b) < within)
    }

    fn cell(&self, cell: &Cell, start: usize, number: i64, labels: &[usize]) -> ScalarValue {
        let null = || ScalarValue::try_from(&cell.data_type).expect("every type has a null");
        match &cell.value {
            CellValue::Column { column, at } => {
                self.row(at, start, labels).map_or_else(null, |row| row.value(*column).clone())
            }
            CellValue::Classifier => {
                ScalarValue::Utf8View(labels.last().map(|label| self.recognize.variables[*label].name.clone()))
            }
            CellValue::MatchNumber => ScalarValue::Int64(Some(number)),
            CellValue::Fold { function, column, variable } => {
                let of = |label: &usize| variable.is_none_or(|variable| variable == *label);
                let rows = labels.iter().zip(&self.rows[start..]).filter(|(label, _)| of(label)).map(|(_, row)| *row);
                let Some(column) = column else { return ScalarValue::Int64(Some(rows.count() as i64)) };
                let values: Vec<&ScalarValue> =
                    rows.map(|row| row.value(*column)).filter(|value| !value.is_null()).collect();
                let best = match function {
                    Fold::Count => return ScalarValue::Int64(Some(values.len() as i64)),
                    Fold::Sum => return self.sum(&values).unwrap_or_else(null),
                    Fold::Min => values.into_iter().min_by(|a, b| compare(a, b)),
                    Fold::Max => values.into_iter().max_by(|a, b| compare(a, b)),
                };
                best.cloned().unwrap_or_else(null)
            }
        }
    }

    fn sum(&self, values: &[&ScalarValue]) -> Option<ScalarValue> {
        let mut values = values.iter();
        let first = (*values.next()?).clone();
        Some(values.fold(first, |sum, value| sum.add_checked(*value).expect("small numbers have sums")))
    }

    fn row(&self, at: &At, start: usize, labels: &[usize]) -> Option<&Row> {
        let of = |label: usize| at.variable.is_none_or(|variable| variable == label);
        let mut places: Vec<usize> = (0..labels.len()).filter(|place| of(labels[*place])).collect();
        if at.end == End::Last {
            places.reverse();
        }
        let row = (start + places.get(at.skipped)?) as i64 + at.offset;
        usize::try_from(row).ok().and_then(|row| self.rows.get(row)).copied()
    }
}
