//! The mean delay of every carrier while the file is read: after a tenth of it, two tenths .. and
//! exactly in the end. With an aggregate of one's own.

use std::path::Path;
use std::sync::Arc;

use anabranch_engine::Error;
use anabranch_engine::frame::{GroupRows, Invertible, UserAggregate, col, custom_invertible};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{DataType, Int32Type};

use super::{flights, open, session};

/// The share of flights that leave within a quarter of an hour of their schedule.
struct Punctuality;

impl UserAggregate for Punctuality {
    type State = (i64, i64);

    fn name(&self) -> &str {
        "punctuality"
    }

    fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String> {
        match arguments {
            [DataType::Int32] => Ok(DataType::Float64),
            _ => Err("it takes minutes".into()),
        }
    }

    fn initial(&self) -> (i64, i64) {
        (0, 0)
    }

    fn accumulate(&self, states: &mut [(i64, i64)], rows: &GroupRows<'_>) -> Result<(), String> {
        count(states, rows, 1);
        Ok(())
    }

    fn compute(&self, states: &[&(i64, i64)]) -> Result<ArrayRef, String> {
        let share = |(punctual, all): &(i64, i64)| (*all > 0).then(|| *punctual as f64 / *all as f64);
        Ok(Arc::new(states.iter().map(|state| share(state)).collect::<Float64Array>()))
    }
}

impl Invertible for Punctuality {
    fn deaccumulate(&self, states: &mut [(i64, i64)], rows: &GroupRows<'_>) -> Result<(), String> {
        count(states, rows, -1);
        Ok(())
    }

    fn difference(&self, state: &mut (i64, i64), other: &(i64, i64)) {
        *state = (state.0 - other.0, state.1 - other.1);
    }
}

fn count(states: &mut [(i64, i64)], rows: &GroupRows<'_>, sign: i64) {
    let delays = rows.column(0).as_primitive::<Int32Type>();
    for (state, row) in rows.iter().filter(|(_, row)| delays.is_valid(*row)) {
        states[state].0 += sign * i64::from(delays.value(row) < 15);
        states[state].1 += sign;
    }
}

pub fn ask(data: &Path) -> Result<Vec<String>, Error> {
    let mut session = session()?;
    let source = open(&session, data, "flights.parquet")?;
    let punctuality = custom_invertible(Punctuality, [col("dep_delay")]).alias("punctuality");
    let frame = flights(source.as_ref()).frame().group_by([col("carrier")]).agg([punctuality]);
    let mut progressive = session.progressive(&frame, [("flights", source)], 5)?;
    let mut lines = Vec::new();
    while let Some(early) = progressive.step()? {
        let (carriers, values) = (early.rows.column(0).as_string_view(), early.rows.column(1));
        let values = values.as_primitive::<arrow::datatypes::Float64Type>();
        let best = (0..early.rows.num_rows()).max_by(|a, b| values.value(*a).total_cmp(&values.value(*b)));
        lines.extend(best.map(|row| {
            let (share, value) = (100.0 * early.share, 100.0 * values.value(row));
            format!(
                "after {share:3.0} % of the file: {} of {} carriers is the most punctual, {value:.1} %",
                carriers.value(row),
                values.len()
            )
        }));
    }
    Ok(lines)
}
