//! Aggregates written as a user would write them: the built-in sum over again, for comparison, and
//! some that nothing built in does.

use std::sync::Arc;

use anabranch_engine::frame::{GroupRows, Invertible, UserAggregate};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};

/// The sum of 64-bit integers, as the built-in `sum`: exact, NULL over nothing but NULLs, an error
/// when it does not fit.
#[derive(Clone, Copy, Debug, Default)]
pub struct UserSum;

/// Sum and number of values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Total {
    total: i128,
    count: i64,
}

impl UserAggregate for UserSum {
    type State = Total;

    fn name(&self) -> &str {
        "user_sum"
    }

    fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String> {
        match arguments {
            [DataType::Int64] => Ok(DataType::Int64),
            _ => Err("it takes one bigint".into()),
        }
    }

    fn initial(&self) -> Total {
        Total::default()
    }

    fn accumulate(&self, states: &mut [Total], rows: &GroupRows<'_>) -> Result<(), String> {
        add(states, rows, 1);
        Ok(())
    }

    fn compute(&self, states: &[&Total]) -> Result<ArrayRef, String> {
        let result = |state: &&Total| match (state.count, i64::try_from(state.total)) {
            (0, _) => Ok(None),
            (_, Ok(total)) => Ok(Some(total)),
            (_, Err(_)) => Err("bigint out of range".to_owned()),
        };
        let results: Int64Array = states.iter().map(result).collect::<Result<_, String>>()?;
        Ok(Arc::new(results))
    }
}

impl Invertible for UserSum {
    fn deaccumulate(&self, states: &mut [Total], rows: &GroupRows<'_>) -> Result<(), String> {
        add(states, rows, -1);
        Ok(())
    }

    fn difference(&self, state: &mut Total, other: &Total) {
        state.total -= other.total;
        state.count -= other.count;
    }
}

fn add(states: &mut [Total], rows: &GroupRows<'_>, sign: i64) {
    let column: &Int64Array = rows.column(0).as_primitive::<Int64Type>();
    let values = column.values();
    if column.null_count() == 0 {
        for (state, row) in rows.iter() {
            let state = &mut states[state];
            state.total += i128::from(values[row]) * i128::from(sign);
            state.count += sign;
        }
        return;
    }
    for (state, row) in rows.iter().filter(|(_, row)| column.is_valid(*row)) {
        states[state].total += i128::from(values[row]) * i128::from(sign);
        states[state].count += sign;
    }
}

/// The value of the row that began last, the greatest of those that began together: rows cannot be
/// taken out again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latest;

impl UserAggregate for Latest {
    type State = Option<(i64, i64)>;

    fn name(&self) -> &str {
        "latest"
    }

    fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String> {
        match arguments {
            [DataType::Int64] => Ok(DataType::Int64),
            _ => Err("it takes one bigint".into()),
        }
    }

    fn initial(&self) -> Self::State {
        None
    }

    fn accumulate(&self, states: &mut [Self::State], rows: &GroupRows<'_>) -> Result<(), String> {
        let values = rows.column(0).as_primitive::<Int64Type>();
        let starts = rows.starts();
        for (state, row) in rows.iter().filter(|(_, row)| values.is_valid(*row)) {
            let seen = Some((starts[row], values.value(row)));
            states[state] = states[state].max(seen);
        }
        Ok(())
    }

    fn compute(&self, states: &[&Self::State]) -> Result<ArrayRef, String> {
        Ok(Arc::new(states.iter().map(|state| state.map(|(_, value)| value)).collect::<Int64Array>()))
    }

    fn reads_starts(&self) -> bool {
        true
    }
}

/// How an aggregate goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is no result over more than two rows.
    Compute,
    /// Rows are refused.
    Accumulate,
    /// Rows make it panic.
    Panic,
    /// Results have the wrong type.
    Type,
}

/// A count that goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct Faulty(pub Fault);

impl UserAggregate for Faulty {
    type State = i64;

    fn name(&self) -> &str {
        "faulty"
    }

    fn output_type(&self, _arguments: &[DataType]) -> Result<DataType, String> {
        Ok(DataType::Int64)
    }

    fn initial(&self) -> i64 {
        0
    }

    fn accumulate(&self, states: &mut [i64], rows: &GroupRows<'_>) -> Result<(), String> {
        rows.iter().for_each(|(state, _)| states[state] += 1);
        match self.0 {
            Fault::Accumulate if !rows.is_empty() => Err("no row is good enough".into()),
            Fault::Panic if !rows.is_empty() => panic!("a bug of the user's"),
            _ => Ok(()),
        }
    }

    fn compute(&self, states: &[&i64]) -> Result<ArrayRef, String> {
        match self.0 {
            Fault::Compute if states.iter().any(|count| **count > 2) => Err("more than two rows".into()),
            Fault::Type => Ok(Arc::new(arrow::array::StringArray::from(vec!["many"; states.len()]))),
            _ => Ok(Arc::new(states.iter().map(|count| Some(**count)).collect::<Int64Array>())),
        }
    }
}

impl Invertible for Faulty {
    fn deaccumulate(&self, states: &mut [i64], rows: &GroupRows<'_>) -> Result<(), String> {
        rows.iter().for_each(|(state, _)| states[state] -= 1);
        Ok(())
    }

    fn difference(&self, state: &mut i64, other: &i64) {
        *state -= other;
    }
}
