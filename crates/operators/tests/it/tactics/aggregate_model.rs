//! Aggregates in the plainest code: all rows of a group, one function after the other.

use anabranch_spec::order::SortKey;
use std::cmp::Ordering;

use anabranch_operators::aggregate::{AggregateSpec, FloatSum};
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use arrow::array::{Array, Float64Array};

use super::*;

/// Rows and errors of the aggregate over what `updates` accumulate to.
pub fn expected(spec: &AggregateSpec, updates: &[Update], at: Time) -> (Bag, Bag) {
    let mut groups: Vec<(Vec<String>, Vec<Row>)> = Vec::new();
    if spec.keys.is_empty() {
        groups.push((Vec::new(), Vec::new()));
    }
    for (row, count) in contents(updates, at) {
        let cells = text(&columns(std::slice::from_ref(&row)), 0);
        let key: Vec<String> = spec.keys.iter().map(|&column| cells[column].clone()).collect();
        let at = groups.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
            groups.push((key, Vec::new()));
            groups.len() - 1
        });
        groups[at].1.extend(std::iter::repeat_n(row, count as usize));
    }
    let (mut rows, mut errors) = (Bag::new(), Bag::new());
    for (mut cells, group) in groups {
        let results: Result<Vec<String>, String> = spec.calls.iter().map(|call| result(call, &group)).collect();
        match results {
            Ok(results) => {
                cells.extend(results);
                add(&mut rows, cells, 1);
            }
            Err(message) if cells.is_empty() => add(&mut errors, vec![message], 1),
            Err(message) => add(&mut errors, vec![format!("{message} (group {})", cells.join(", "))], 1),
        }
    }
    (rows, errors)
}

fn result(call: &AggregateCall, group: &[Row]) -> Result<String, String> {
    let mut rows: Vec<Row> =
        group.iter().filter(|row| call.filter.is_none() || row.flag == Some(true)).cloned().collect();
    let Some(column) = call.argument else {
        return Ok(rows.len().to_string());
    };
    let keeps_nulls = matches!(
        call.function,
        AggregateFunction::ArrayAgg | AggregateFunction::FirstValue | AggregateFunction::LastValue
    );
    rows.retain(|row| keeps_nulls || cell(row, column) != "NULL");
    let order: Vec<_> = call.order.iter().map(SortKey::pair).chain([(column, ASCENDING)]).collect();
    rows.sort_by(|left, right| {
        order.iter().fold(Ordering::Equal, |so_far, &(column, direction)| {
            so_far.then_with(|| compare_column(left, right, column, direction))
        })
    });
    if call.distinct {
        rows.dedup_by(|left, right| compare_column(left, right, column, ASCENDING).is_eq());
    }
    if call.function == AggregateFunction::Count {
        return Ok(rows.len().to_string());
    }
    if rows.is_empty() {
        return Ok("NULL".into());
    }
    let flags = || rows.iter().map(|row| row.flag == Some(true));
    let smalls = || rows.iter().filter_map(|row| row.small);
    let texts = || rows.iter().map(|row| cell(row, column)).collect::<Vec<_>>();
    Ok(match &call.function {
        AggregateFunction::Count => unreachable!("counted above"),
        AggregateFunction::Sum => return sum(column, &rows),
        AggregateFunction::Avg => average(column, &rows),
        AggregateFunction::Min | AggregateFunction::FirstValue => texts()[0].clone(),
        AggregateFunction::Max | AggregateFunction::LastValue => texts()[rows.len() - 1].clone(),
        AggregateFunction::BoolAnd => flags().all(|flag| flag).to_string(),
        AggregateFunction::BoolOr => flags().any(|flag| flag).to_string(),
        AggregateFunction::BitAnd => smalls().fold(-1, |bits, value| bits & value).to_string(),
        AggregateFunction::BitOr => smalls().fold(0, |bits, value| bits | value).to_string(),
        AggregateFunction::BitXor => smalls().fold(0, |bits, value| bits ^ value).to_string(),
        AggregateFunction::VarianceSample => variance(smalls(), 1, |variance| variance),
        AggregateFunction::VariancePopulation => variance(smalls(), 0, |variance| variance),
        AggregateFunction::StddevSample => variance(smalls(), 1, f64::sqrt),
        AggregateFunction::StddevPopulation => variance(smalls(), 0, f64::sqrt),
        AggregateFunction::StringAgg(separator) => texts().join(separator),
        AggregateFunction::ArrayAgg => format!(
            "[{}]",
            texts().iter().map(|text| if text == "NULL" { "" } else { text }).collect::<Vec<_>>().join(", ")
        ),
        AggregateFunction::Median => median(column, &rows),
        AggregateFunction::Mode => {
            let texts = texts();
            let count = |text: &String| texts.iter().filter(|other| *other == text).count();
            let greatest = texts.iter().map(count).max().unwrap_or(0);
            texts.iter().find(|text| count(text) == greatest).cloned().unwrap_or_default()
        }
        AggregateFunction::PercentileCont(_)
        | AggregateFunction::PercentileDisc(_)
        | AggregateFunction::TopK(_)
        | AggregateFunction::Custom(..) => {
            unreachable!("not asked for here")
        }
    })
}

fn cell(row: &Row, column: usize) -> String {
    text(&columns(std::slice::from_ref(row)), 0)[column].clone()
}

fn show(array: impl Array + 'static) -> String {
    text(&[Arc::new(array)], 0)[0].clone()
}

fn show_float(value: f64) -> String {
    show(Float64Array::from(vec![value]))
}

fn show_decimal(value: i128, precision: u8, scale: i8) -> String {
    show(Decimal128Array::from(vec![value]).with_precision_and_scale(precision, scale).expect("a legal decimal"))
}

fn float_sum(rows: &[Row]) -> f64 {
    let mut sum = FloatSum::default();
    rows.iter().filter_map(|row| row.float).for_each(|value| sum.add(value, 1));
    sum.round()
}

fn sum(column: usize, rows: &[Row]) -> Result<String, String> {
    let integers: i128 = rows.iter().map(|row| row.big.map_or(0, i128::from)).sum();
    match column {
        SMALL => Ok(rows.iter().filter_map(|row| row.small).map(i64::from).sum::<i64>().to_string()),
        BIG => i64::try_from(integers).map(|sum| sum.to_string()).map_err(|_| "bigint out of range in sum".into()),
        PRICE => Ok(show_decimal(rows.iter().filter_map(|row| row.price).sum(), 25, 2)),
        _ => Ok(show_float(float_sum(rows))),
    }
}

fn average(column: usize, rows: &[Row]) -> String {
    let n = rows.len() as i128;
    match column {
        SMALL => show_float(rows.iter().filter_map(|row| row.small).map(i64::from).sum::<i64>() as f64 / n as f64),
        PRICE => {
            let sum = rows.iter().filter_map(|row| row.price).sum::<i128>() * 10_000;
            let rounded = (2 * sum.abs() + n) / (2 * n);
            show_decimal(rounded * sum.signum(), 19, 6)
        }
        _ => show_float(float_sum(rows) / n as f64),
    }
}

fn variance(values: impl Iterator<Item = i32>, less: i64, report: impl Fn(f64) -> f64) -> String {
    let values: Vec<i64> = values.map(i64::from).collect();
    let (n, sum) = (values.len() as i64, values.iter().sum::<i64>());
    let deviation = n * values.iter().map(|value| value * value).sum::<i64>() - sum * sum;
    if n == less { "NULL".into() } else { show_float(report(deviation as f64 / n as f64 / (n - less) as f64)) }
}

fn median(column: usize, rows: &[Row]) -> String {
    let (lower, upper) = (&rows[(rows.len() - 1) / 2], &rows[rows.len() / 2]);
    let (small, price) = (|row: &Row| row.small.map_or(0, i128::from), |row: &Row| row.price.unwrap_or(0));
    match column {
        SMALL => ((small(lower) + small(upper)) / 2).to_string(),
        _ => {
            let sum = price(lower) + price(upper);
            show_decimal((sum + sum.signum()) / 2, 15, 2)
        }
    }
}
