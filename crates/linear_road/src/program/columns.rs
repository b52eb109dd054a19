//! Rows and answers as batches of the engine.
//!
//! Law: [`answers`] reads what the program gives, one answer a row. Ticks are seconds; a row is a
//! point at its second. All columns are 32 bits wide: a row of the input is ten of them. Numbers
//! above 2^31 keep their bits.

use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, Times, Until};
use anabranch_engine::Error;
use anabranch_engine::frame::Expr;
use arrow::array::{ArrayRef, AsArray, Int32Array};
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use datafusion_expr::{cast, when};

use crate::answer::TollAnswer;
use crate::history::History;
use crate::row::Row;

/// Columns of a row.
pub const ROW: [&str; 10] =
    ["kind", "vid", "speed", "xway", "lane", "direction", "segment", "position", "query", "day"];

/// Columns of an answer. `first` and `second` are mean speed and toll of kind 0, the segment of
/// kind 1, result time and balance of kind 2, nothing and the toll of kind 3.
pub const ANSWER: [&str; 7] = ["kind", "vid", "query", "first", "second", "xway", "direction"];

/// The kind of a row that says that a vehicle has entered a segment, and what it paid for the one
/// before.
pub(crate) const CHARGE: i32 = 4;

/// The kind of a row that says what one expressway knows of an account: `first` is -1 for nothing.
pub(crate) const PART: i32 = 5;

fn schema<'a>(names: impl IntoIterator<Item = &'a str>) -> Schema {
    Schema::new(names.into_iter().map(|name| Field::new(name, DataType::Int32, true)).collect::<Vec<_>>())
}

/// Of the source of rows.
pub fn row_schema() -> Schema {
    schema(ROW)
}

/// Of the source of history.
pub(crate) fn history_schema() -> Schema {
    schema(["vid", "day", "xway", "toll"])
}

fn column(values: impl Iterator<Item = i32>) -> ArrayRef {
    Arc::new(Int32Array::from(values.collect::<Vec<i32>>()))
}

/// Rows of one second as a batch.
pub fn batch(time: u32, rows: &[Row]) -> Batch {
    let of = |field: fn(&Row) -> i32| column(rows.iter().map(field));
    let columns = vec![
        of(|row| i32::from(row.kind.number())),
        of(|row| row.vid as i32),
        of(|row| i32::from(row.speed)),
        of(|row| i32::from(row.xway)),
        of(|row| i32::from(row.lane)),
        of(|row| i32::from(row.direction)),
        of(|row| i32::from(row.segment)),
        of(|row| row.position as i32),
        of(|row| row.query as i32),
        of(|row| i32::from(row.day)),
    ];
    let times = Times::Constant(i64::from(time));
    Batch::with_len(columns.into(), rows.len(), times, Diffs::Constant(1)).with_until(Until::Duration(1))
}

/// The historical table as rows in force from second 0 on.
pub(crate) fn history_batch(history: &History) -> Batch {
    let rows = history.rows();
    let columns = vec![
        column(rows.iter().map(|row| row.0 as i32)),
        column(rows.iter().map(|row| i32::from(row.1))),
        column(rows.iter().map(|row| i32::from(row.2))),
        column(rows.iter().map(|row| row.3 as i32)),
    ];
    Batch::with_len(columns.into(), rows.len(), Times::Constant(0), Diffs::Constant(1)).with_until(Until::Forever)
}

/// The answers in a batch that the program gave.
///
/// # Errors
/// `Internal` when a row is no answer.
pub fn answers(batch: &Batch) -> Result<Vec<TollAnswer>, Error> {
    let wrong = || Error::internal("the program gave a row that is no answer");
    let columns: Option<Vec<&[i32]>> =
        batch.columns().iter().map(|column| Some(column.as_primitive_opt::<Int32Type>()?.values().as_ref())).collect();
    let columns = columns.filter(|columns| columns.len() == ANSWER.len()).ok_or_else(wrong)?;
    let answer = |row: usize| {
        let at = |column: usize| columns[column][row];
        let (time, vid, query) = (batch.times().get(row) as u32, at(1) as u32, at(2) as u32);
        let (first, second) = (at(3), at(4) as u32);
        match at(0) {
            0 => Ok(TollAnswer::Toll { vid, time, speed: first, toll: second }),
            1 => {
                Ok(TollAnswer::Accident { time, vid, segment: first as u8, xway: at(5) as u16, direction: at(6) as u8 })
            }
            2 => Ok(TollAnswer::Balance { time, query, result_time: first as u32, balance: second }),
            3 => Ok(TollAnswer::Expenditure { time, query, balance: second }),
            _ => Err(wrong()),
        }
    };
    (0..batch.len()).filter(|row| begins(batch, *row)).map(answer).collect()
}

/// Whether a row of the batch begins. (An aggregate or a join gives the end of a row for itself.)
fn begins(batch: &Batch, row: usize) -> bool {
    let time = batch.times().get(row);
    batch.until().get(row, time) > time
}

/// A number in 32 bits.
pub(crate) fn whole(number: Expr) -> Expr {
    cast(number, DataType::Int32)
}

/// `value`, or `other` where that is negative.
pub(crate) fn either(value: Expr, other: Expr) -> Expr {
    let is_negative = value.clone().lt(datafusion_expr::lit(0i32));
    when(is_negative, other).otherwise(value.clone()).unwrap_or(value)
}

/// How many answers of each type a batch holds.
pub(crate) fn kinds(batch: &Batch) -> [u64; 4] {
    let mut counts = [0; 4];
    let Some(kinds) = batch.columns().first().and_then(|column| column.as_primitive_opt::<Int32Type>()) else {
        return counts;
    };
    for (row, kind) in kinds.values().iter().enumerate() {
        if begins(batch, row)
            && let Some(count) = counts.get_mut(*kind as usize)
        {
            *count += 1;
        }
    }
    counts
}
