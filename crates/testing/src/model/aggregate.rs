//! Aggregates over the collected rows of each group.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_batch::numeric::{self, Number};
use anabranch_plan::{AggregateCall, AggregateFunction};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;

use super::answer::Answer;
use super::order::compare_by;
use crate::row::{Contents, Row, compare};

/// The answer of an aggregate node over its input's answer.
pub fn aggregate(input: Answer, keys: &[usize], calls: &[AggregateCall]) -> Answer {
    let mut groups: BTreeMap<Row, Vec<&Row>> = BTreeMap::new();
    if keys.is_empty() {
        groups.insert(Row::new([]), vec![]);
    }
    for (row, count) in input.rows.iter() {
        let group = groups.entry(row.project(keys)).or_default();
        group.extend(std::iter::repeat_n(row, count as usize));
    }
    let mut answer = Answer { rows: Contents::new(), errors: input.errors };
    for (key, rows) in groups {
        match calls.iter().map(|call| result(call, &rows)).collect::<Result<Vec<_>, _>>() {
            Ok(results) => answer.rows.add(key.concat(&Row::new(results)), 1),
            Err(message) => answer.fail(message, 1),
        }
    }
    answer
}

/// The result of one call over a group's rows, one entry a copy.
pub(super) fn result(call: &AggregateCall, rows: &[&Row]) -> Result<ScalarValue, String> {
    use AggregateFunction as F;
    let rows = chosen_rows(call, rows);
    let Some(argument) = call.argument else {
        return Ok(ScalarValue::Int64(Some(rows.len() as i64)));
    };
    let all: Vec<&ScalarValue> = rows.iter().map(|row| row.value(argument)).collect();
    let present: Vec<&ScalarValue> = all.iter().copied().filter(|value| !value.is_null()).collect();
    let null = ScalarValue::try_from(&call.output_type).expect("every type has a null");
    if let F::Count = call.function {
        return Ok(ScalarValue::Int64(Some(present.len() as i64)));
    }
    let keeps_nulls = matches!(call.function, F::ArrayAgg | F::FirstValue | F::LastValue);
    if (if keeps_nulls { &all } else { &present }).is_empty() {
        return Ok(null);
    }
    Ok(match &call.function {
        F::Count => unreachable!("answered above"),
        F::Sum => return sum(&present, &call.output_type),
        F::Avg => return average(&present, &call.output_type),
        F::Min => (*extreme(&present, Ordering::Less)).clone(),
        F::Max => (*extreme(&present, Ordering::Greater)).clone(),
        F::BoolAnd => ScalarValue::Boolean(Some(present.iter().all(|value| is_true(value)))),
        F::BoolOr => ScalarValue::Boolean(Some(present.iter().any(|value| is_true(value)))),
        F::BitAnd => bits(&present, &call.output_type, |a, b| a & b),
        F::BitOr => bits(&present, &call.output_type, |a, b| a | b),
        F::BitXor => bits(&present, &call.output_type, |a, b| a ^ b),
        F::VarianceSample => float_or_null(variance(&present, 1)),
        F::VariancePopulation => float_or_null(variance(&present, 0)),
        F::StddevSample => float_or_null(variance(&present, 1).map(f64::sqrt)),
        F::StddevPopulation => float_or_null(variance(&present, 0).map(f64::sqrt)),
        F::StringAgg(separator) => {
            ScalarValue::Utf8View(Some(present.iter().map(|value| text(value)).collect::<Vec<_>>().join(separator)))
        }
        F::ArrayAgg => list(&all, &call.output_type),
        F::FirstValue => all[0].clone(),
        F::LastValue => all[all.len() - 1].clone(),
        F::Median => median(present, &call.output_type),
        F::Mode => mode(&present),
        F::PercentileCont(_) | F::PercentileDisc(_) | F::TopK(_) | F::Custom(..) => {
            panic!("{:?} is checked by cases", call.function)
        }
    })
}

/// The most frequent of ordered values, the first of those that are as frequent.
fn mode(values: &[&ScalarValue]) -> ScalarValue {
    let count = |value: &ScalarValue| values.iter().filter(|other| compare(other, value).is_eq()).count();
    let greatest = values.iter().map(|value| count(value)).max().unwrap_or(0);
    values.iter().find(|value| count(value) == greatest).map(|value| (*value).clone()).expect("there are values")
}

/// The rows that a call sees, in its order; equal ones by its argument.
fn chosen_rows<'a>(call: &AggregateCall, rows: &[&'a Row]) -> Vec<&'a Row> {
    let shown = |row: &&&Row| call.filter.is_none_or(|filter| is_true(row.value(filter)));
    let mut rows: Vec<&Row> = rows.iter().filter(shown).copied().collect();
    let Some(argument) = call.argument else { return rows };
    rows.sort_by(|a, b| compare_by(&call.order, a, b).then_with(|| compare(a.value(argument), b.value(argument))));
    if call.distinct {
        let mut seen = std::collections::BTreeSet::new();
        rows.retain(|row| seen.insert(row.project(&[argument])));
    }
    rows
}

fn sum(values: &[&ScalarValue], output: &DataType) -> Result<ScalarValue, String> {
    if is_float(output) {
        return Ok(float_of_type(values.iter().map(|value| float(value)).sum(), output));
    }
    if *output == numeric::TYPE {
        return Ok(plain(&plain_sum(values)?));
    }
    integer_of_type(values.iter().map(|value| integer(value)).sum(), output)
}

/// The sum of decimals or plain numerics, one after the other.
fn plain_sum(values: &[&ScalarValue]) -> Result<Number, String> {
    let number = |value: &ScalarValue| match value {
        ScalarValue::LargeBinary(Some(bytes)) => numeric::decode(bytes).expect("it was encoded"),
        ScalarValue::Decimal128(Some(digits), _, scale) => Number::new(*digits, *scale as u32),
        other => panic!("{other:?} is no numeric"),
    };
    let sum = values.iter().try_fold(Number::ZERO, |sum, value| sum.plus(&number(value)));
    sum.map_err(|fault| fault.to_string())
}

fn plain(number: &Number) -> ScalarValue {
    let mut bytes = Vec::new();
    numeric::encode(number, &mut bytes);
    ScalarValue::LargeBinary(Some(bytes))
}

/// The mean; of decimals, rounded half away from zero at the result's scale.
fn average(values: &[&ScalarValue], output: &DataType) -> Result<ScalarValue, String> {
    if is_float(output) {
        let sum: f64 = if values.iter().all(|value| is_float(&value.data_type())) {
            values.iter().map(|value| float(value)).sum()
        } else {
            values.iter().map(|value| integer(value)).sum::<i128>() as f64
        };
        return Ok(float_of_type(sum / values.len() as f64, output));
    }
    if *output == numeric::TYPE {
        // (Zeros at the end of plain ones are no part of them.)
        let sum = match plain_sum(values)? {
            Number::Finite(finite) if values[0].data_type() == numeric::TYPE => Number::Finite(finite.shortest()),
            sum => sum,
        };
        let mean = sum.divided(&Number::new(values.len() as i128, 0));
        return mean.map(|mean| plain(&mean)).map_err(|fault| fault.to_string());
    }
    let scale = scale(output) - scale(&values[0].data_type());
    let sum = values.iter().map(|value| integer(value)).sum::<i128>() * 10_i128.pow(scale as u32);
    let count = values.len() as i128;
    let rounded = (sum.abs() * 2 + count) / (count * 2) * sum.signum();
    integer_of_type(rounded, output)
}

fn extreme<'a>(values: &[&'a ScalarValue], wanted: Ordering) -> &'a ScalarValue {
    let mut best = values[0];
    for value in &values[1..] {
        if compare(value, best) == wanted {
            best = value;
        }
    }
    best
}

fn bits(values: &[&ScalarValue], output: &DataType, operation: fn(i128, i128) -> i128) -> ScalarValue {
    let result = values.iter().map(|value| integer(value)).reduce(operation).expect("there are values");
    integer_of_type(result, output).expect("bits of a type stay in the type")
}

/// In two passes: the mean, then the squares of the distances.
fn variance(values: &[&ScalarValue], fewer: usize) -> Option<f64> {
    if values.len() <= fewer {
        return None;
    }
    let numbers: Vec<f64> = values.iter().map(|value| float(value)).collect();
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    let squares: f64 = numbers.iter().map(|x| (x - mean) * (x - mean)).sum();
    Some(squares / (numbers.len() - fewer) as f64)
}

fn median(mut values: Vec<&ScalarValue>, output: &DataType) -> ScalarValue {
    values.sort_by(|a, b| compare(a, b));
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    if is_float(output) {
        return float_of_type((float(low) + float(high)) / 2.0, output);
    }
    integer_of_type((integer(low) + integer(high)) / 2, output).expect("a median lies between two values")
}

fn list(values: &[&ScalarValue], output: &DataType) -> ScalarValue {
    let DataType::List(field) = output else { panic!("array_agg yields a list, not {output}") };
    let array: ArrayRef =
        ScalarValue::iter_to_array(values.iter().map(|value| (*value).clone())).expect("values have one type");
    let offsets = arrow::buffer::OffsetBuffer::from_lengths([values.len()]);
    ScalarValue::List(Arc::new(arrow::array::ListArray::new(field.clone(), offsets, array, None)))
}

fn is_true(value: &ScalarValue) -> bool {
    matches!(value, ScalarValue::Boolean(Some(true)))
}

fn text(value: &ScalarValue) -> &str {
    value.try_as_str().flatten().unwrap_or_else(|| panic!("{value:?} is not text"))
}

fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

fn scale(data_type: &DataType) -> i8 {
    match data_type {
        DataType::Decimal128(_, scale) => *scale,
        _ => 0,
    }
}

/// Whole numbers and the digits of decimals.
fn integer(value: &ScalarValue) -> i128 {
    match value {
        ScalarValue::Decimal128(Some(digits), _, _) => *digits,
        _ => {
            let wide = value.cast_to(&DataType::Int64).expect("the value is a number");
            let ScalarValue::Int64(Some(number)) = wide else { panic!("{value:?} is not a whole number") };
            i128::from(number)
        }
    }
}

fn float(value: &ScalarValue) -> f64 {
    let wide = value.cast_to(&DataType::Float64).expect("the value is a number");
    let ScalarValue::Float64(Some(number)) = wide else { panic!("{value:?} is not a number") };
    number
}

fn float_of_type(number: f64, output: &DataType) -> ScalarValue {
    match output {
        DataType::Float32 => ScalarValue::Float32(Some(number as f32)),
        _ => ScalarValue::Float64(Some(number)),
    }
}

fn float_or_null(number: Option<f64>) -> ScalarValue {
    ScalarValue::Float64(number)
}

fn integer_of_type(number: i128, output: &DataType) -> Result<ScalarValue, String> {
    let overflow = || format!("{number} is out of range for {output}");
    if let DataType::Decimal128(precision, scale) = output {
        if number.unsigned_abs() >= 10_u128.pow(u32::from(*precision)) {
            return Err(overflow());
        }
        return Ok(ScalarValue::Decimal128(Some(number), *precision, *scale));
    }
    let wide = ScalarValue::Int64(Some(i64::try_from(number).map_err(|_| overflow())?));
    wide.cast_to(output).map_err(|_| overflow())
}
