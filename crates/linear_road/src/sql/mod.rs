//! The rules as SQL views over tables of rows: [`VIEWS`], statement by statement.
//!
//! Law: the views hold what the [reference](mod@crate::reference) answers, as sets over the whole
//! input. They know nothing of seconds that pass: an independent reading of the rules, and an
//! example of standing queries.
//!
//! Relies on the input: no vehicle reports more than six times a minute, or comes back to a segment
//! within one.

use std::sync::Arc;

use anabranch_engine::{Error, Session};
use arrow::array::{ArrayRef, Int32Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type};

use crate::answer::TollAnswer;
use crate::history::History;
use crate::row::{Row, RowKind, Second};

/// Tables and views.
pub const VIEWS: &str = include_str!("views.sql");

/// The answers in one form: kind, then what an answer of that kind says.
const ANSWERS: [&str; 4] = [
    "SELECT 0, time, vid, speed, toll, 0 FROM tolls",
    "SELECT 1, time, vid, segment, xway, direction FROM accident_notifications",
    "SELECT 2, time, query, result_time, balance, 0 FROM balances",
    "SELECT 3, time, query, balance, 0, 0 FROM expenditures",
];

/// Makes the tables and views.
///
/// # Errors
/// When names are taken.
pub fn create(session: &mut Session) -> Result<(), Error> {
    session.execute(VIEWS).map(|_| ())
}

/// Adds rows to the tables.
///
/// # Errors
/// Those of the session.
pub fn insert(session: &mut Session, seconds: &[Second]) -> Result<(), Error> {
    let rows: Vec<&Row> = seconds.iter().flat_map(|second| &second.rows).collect();
    let of = |kind: RowKind| rows.iter().copied().filter(move |row| row.kind == kind);
    let report = |row: &Row| {
        let Row { time, vid, speed, xway, lane, direction, segment, position, .. } = *row;
        let (xway, speed, lane) = (i32::from(xway), i32::from(speed), i32::from(lane));
        [time as i32, vid as i32, speed, xway, lane, i32::from(direction), i32::from(segment), position as i32]
    };
    let names = ["time", "vid", "speed", "xway", "lane", "direction", "segment", "position"];
    add(session, "reports", names, of(RowKind::Report).map(report))?;
    let query = |row: &Row| [row.time as i32, row.vid as i32, row.query as i32];
    add(session, "balance_queries", ["time", "vid", "query"], of(RowKind::Balance).map(query))?;
    let query =
        |row: &Row| [row.time as i32, row.vid as i32, row.query as i32, i32::from(row.xway), i32::from(row.day)];
    let names = ["time", "vid", "query", "xway", "day"];
    add(session, "expenditure_queries", names, of(RowKind::Expenditure).map(query))
}

/// Adds the historical table.
///
/// # Errors
/// Those of the session.
pub fn insert_history(session: &mut Session, history: &History) -> Result<(), Error> {
    let rows = history.rows();
    let row =
        |(vid, day, xway, toll): &(u32, u8, u16, u32)| [*vid as i32, i32::from(*day), i32::from(*xway), *toll as i32];
    add(session, "history", ["vid", "day", "xway", "toll"], rows.iter().map(row))
}

fn add<const N: usize>(
    session: &mut Session,
    table: &str,
    names: [&str; N],
    rows: impl Iterator<Item = [i32; N]>,
) -> Result<(), Error> {
    let rows: Vec<[i32; N]> = rows.collect();
    if rows.is_empty() {
        return Ok(());
    }
    let column = |at: usize| Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row[at]))) as ArrayRef;
    let columns = names.into_iter().enumerate().map(|(at, name)| (name, column(at)));
    let batch = RecordBatch::try_from_iter(columns).map_err(|error| Error::internal(error.to_string()))?;
    session.insert(table, &batch).map(|_| ())
}

/// What the views say now, in no order.
///
/// # Errors
/// Those of the queries.
pub fn answers(session: &mut Session) -> Result<Vec<TollAnswer>, Error> {
    let mut answers = Vec::new();
    for query in ANSWERS {
        for batch in session.query(query)?.batches {
            let columns = batch.columns().iter().map(|column| cast(column, &DataType::Int32));
            let columns = columns.collect::<Result<Vec<_>, _>>().map_err(|error| Error::data(error.to_string()))?;
            let columns: Vec<&Int32Array> =
                columns.iter().map(arrow::array::AsArray::as_primitive::<Int32Type>).collect();
            answers.extend((0..batch.num_rows()).map(|row| answer(std::array::from_fn(|at| columns[at].value(row)))));
        }
    }
    Ok(answers)
}

fn answer([kind, time, a, b, c, d]: [i32; 6]) -> TollAnswer {
    let (time, whose) = (time as u32, a as u32);
    match kind {
        0 => TollAnswer::Toll { vid: whose, time, speed: b, toll: c as u32 },
        1 => TollAnswer::Accident { time, vid: whose, segment: b as u8, xway: c as u16, direction: d as u8 },
        2 => TollAnswer::Balance { time, query: whose, result_time: b as u32, balance: c as u32 },
        _ => TollAnswer::Expenditure { time, query: whose, balance: b as u32 },
    }
}
