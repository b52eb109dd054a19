//! Answers that stay current on a terminal: drawn in place, over what was there before.
//!
//! Law: after the changes up to a time, [`Contents`] has the rows that the query has as of that
//! time. A [`Frame`] leaves the terminal with its last lines, below which the cursor stands.

use std::cmp::Ordering;
use std::fmt::Write;
use std::sync::Arc;

use anabranch_engine::{Error, Rows};
use anabranch_sql::output::{is_null, is_number_field, printers};
use arrow::array::{ArrayRef, AsArray, RecordBatch, StringViewArray};
use arrow::datatypes::{Int64Type, Schema, SchemaRef};

use crate::output::{Layout, shortened, table_lines, text_field};

/// What a subscription's changes add up to.
pub(crate) struct Contents {
    schema: SchemaRef,
    /// Rows in order, and how often each is there.
    rows: Vec<(Vec<Option<String>>, i64)>,
    /// The time of the last change.
    time: Option<i64>,
}

/// Columns before those of the query: time and diff.
const N_CONTROL: usize = 2;

impl Contents {
    /// Nothing yet; `None` for changes that do not say how often a row comes or goes.
    pub(crate) fn of_changes(schema: &Schema) -> Option<Contents> {
        let names: Vec<&str> = schema.fields().iter().take(N_CONTROL).map(|field| field.name().as_str()).collect();
        if names != ["time", "diff"] {
            return None;
        }
        let fields = schema.fields().iter().skip(N_CONTROL);
        let fields: Vec<_> = fields.map(|field| text_field(field.name(), is_number_field(field))).collect();
        Some(Contents { schema: Arc::new(Schema::new(fields)), rows: vec![], time: None })
    }

    /// Takes changes over.
    pub(crate) fn apply(&mut self, changes: &RecordBatch) {
        let printers = printers(&changes.columns()[N_CONTROL..]);
        let times = changes.column(0).as_primitive::<Int64Type>();
        let diffs = changes.column(1).as_primitive::<Int64Type>();
        for row in 0..changes.num_rows() {
            let cell = |(column, print): &(&ArrayRef, anabranch_sql::output::Printer<'_>)| {
                (!is_null(column, row)).then(|| {
                    let mut text = String::new();
                    print(row, &mut text);
                    text
                })
            };
            self.change(printers.iter().map(cell).collect(), diffs.value(row));
            self.time = Some(times.value(row));
        }
    }

    fn change(&mut self, row: Vec<Option<String>>, diff: i64) {
        match self.rows.binary_search_by(|(other, _)| compare_rows(other, &row)) {
            Ok(at) => {
                self.rows[at].1 += diff;
                if self.rows[at].1 == 0 {
                    self.rows.remove(at);
                }
            }
            Err(at) => self.rows.insert(at, (row, diff)),
        }
    }

    fn n_rows(&self) -> usize {
        self.rows.iter().map(|(_, n)| usize::try_from(*n).unwrap_or(0)).sum()
    }

    /// The first rows as a table, and how many there are.
    ///
    /// # Errors
    /// None that a user can cause.
    pub(crate) fn lines(&self, columns: usize, lines: usize) -> Result<Vec<String>, Error> {
        let rows_max = lines.saturating_sub(4).max(1);
        let repeated = self.rows.iter().flat_map(|(row, n)| std::iter::repeat_n(row, usize::try_from(*n).unwrap_or(0)));
        let shown: Vec<&Vec<Option<String>>> = repeated.take(rows_max).collect();
        let column =
            |n: usize| -> ArrayRef { Arc::new(shown.iter().map(|row| row[n].as_deref()).collect::<StringViewArray>()) };
        let arrays: Vec<ArrayRef> = (0..self.schema.fields().len()).map(column).collect();
        let batches = match shown.is_empty() || arrays.is_empty() {
            true => vec![],
            false => vec![RecordBatch::try_new(Arc::clone(&self.schema), arrays)?],
        };
        let rows = Rows::received(Arc::clone(&self.schema), batches, vec![]);
        let layout = Layout { rows_max, width: Some(columns), expanded: false, ..Layout::default() };
        let (mut drawn, _) = table_lines(&rows, &layout);
        let more = match self.n_rows() > rows_max {
            true => format!(", the first {rows_max} are shown"),
            false => String::new(),
        };
        let time = self.time.map_or(String::new(), |time| format!(" as of {time}"));
        drawn.push(shortened(&format!("({} rows{time}{more}; Ctrl-C ends)", self.n_rows()), columns));
        Ok(drawn)
    }
}

/// Numbers in their order, before texts in theirs.
fn compare_rows(a: &[Option<String>], b: &[Option<String>]) -> Ordering {
    let compare = |a: &Option<String>, b: &Option<String>| match (a, b) {
        (Some(a), Some(b)) => match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(x), Ok(y)) => x.total_cmp(&y).then_with(|| a.cmp(b)),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => a.cmp(b),
        },
        // (NULL comes last, as it does in SQL.)
        (a, b) => b.is_some().cmp(&a.is_some()),
    };
    a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Lines that are drawn over each other.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    /// Lines of the last drawing.
    n_drawn: usize,
}

impl Frame {
    /// What draws these lines in place of the last ones.
    pub(crate) fn draw(&mut self, lines: &[String]) -> String {
        let mut out = String::new();
        if self.n_drawn > 0 {
            push(&mut out, format_args!("\r\x1b[{}A", self.n_drawn));
        }
        for line in lines {
            push(&mut out, format_args!("{line}\x1b[K\n"));
        }
        out.push_str("\x1b[J");
        self.n_drawn = lines.len();
        out
    }
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a String cannot fail");
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use arrow::datatypes::{DataType, Field};

    use super::*;

    fn changes(rows: &[(i64, i64, i64)]) -> RecordBatch {
        let column = |of: fn(&(i64, i64, i64)) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(rows.iter().map(of)))
        };
        let fields = ["time", "diff", "n"].map(|name| Field::new(name, DataType::Int64, false));
        let columns = vec![column(|row| row.0), column(|row| row.1), column(|row| row.2)];
        RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns).unwrap()
    }

    #[test]
    fn changes_add_up_to_rows_in_order() {
        let first = changes(&[(1, 1, 10), (1, 2, 9)]);
        let mut contents = Contents::of_changes(&first.schema()).unwrap();
        contents.apply(&first);
        assert_eq!(contents.lines(40, 24).unwrap()[2..], ["  9", "  9", " 10", "(3 rows as of 1; Ctrl-C ends)"]);
        contents.apply(&changes(&[(2, -2, 9), (2, -1, 10), (2, 1, 11)]));
        assert_eq!(contents.lines(40, 24).unwrap()[2..], [" 11", "(1 rows as of 2; Ctrl-C ends)"]);
        contents.apply(&changes(&[(3, 8, 12)]));
        assert_eq!(contents.lines(80, 6).unwrap().len(), 2 + 2 + 1);
    }

    #[test]
    fn a_frame_is_drawn_over_the_last_one() {
        let mut frame = Frame::default();
        assert_eq!(frame.draw(&["a".into(), "b".into()]), "a\x1b[K\nb\x1b[K\n\x1b[J");
        assert_eq!(frame.draw(&["c".into()]), "\r\x1b[2Ac\x1b[K\n\x1b[J");
    }
}
