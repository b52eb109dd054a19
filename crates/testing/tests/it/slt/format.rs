//! Cells as `psql` prints them, which is how they stand in the files.
//!
//! Two departures, shared with `tools/slt_expect.py`: numerics lose trailing zeros after the point (the scale of a computed numeric
//! is not part of its value), and an empty text is `(empty)`. Interval output follows PostgreSQL's style `postgres`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, DurationMicrosecondType, Float32Type, Float64Type, IntervalDayTimeType,
    IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType, SchemaRef, TimeUnit, TimestampMicrosecondType,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use sqllogictest::DefaultColumnType;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// The sqllogictest letters of a result's columns.
pub fn types_of(schema: &SchemaRef) -> Vec<DefaultColumnType> {
    schema
        .fields()
        .iter()
        .map(|field| match field.data_type() {
            kind if kind.is_integer() => DefaultColumnType::Integer,
            kind if kind.is_numeric() => DefaultColumnType::FloatingPoint,
            _ => DefaultColumnType::Text,
        })
        .collect()
}

/// All rows of a result, cell by cell.
pub fn rows_of(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| row_of(batch, row))).collect()
}

fn row_of(batch: &RecordBatch, row: usize) -> Vec<String> {
    let cells = batch.columns().iter().map(|column| cell(column, row));
    cells.map(|text| if text.is_empty() { "(empty)".to_string() } else { text }).collect()
}

/// One cell as text.
fn cell(column: &ArrayRef, row: usize) -> String {
    if column.is_null(row) || column.data_type() == &DataType::Null {
        return "NULL".to_string();
    }
    match column.data_type() {
        DataType::Boolean => if column.as_boolean().value(row) { "t" } else { "f" }.to_string(),
        DataType::Float32 => float(f64::from(column.as_primitive::<Float32Type>().value(row)), column, row, 6),
        DataType::Float64 => float(column.as_primitive::<Float64Type>().value(row), column, row, 15),
        DataType::Decimal128(..) => numeric(column.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Decimal256(..) => numeric(column.as_primitive::<Decimal256Type>().value_as_string(row)),
        DataType::Binary => bytes(column.as_binary::<i32>().value(row)),
        DataType::LargeBinary => bytes(column.as_binary::<i64>().value(row)),
        DataType::BinaryView => bytes(column.as_binary_view().value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => {
            let instants = column.as_primitive::<TimestampMicrosecondType>().clone();
            temporal(&(Arc::new(instants.with_timezone_opt(None::<Arc<str>>)) as ArrayRef), row) + "+00"
        }
        DataType::Timestamp(..) | DataType::Time64(_) | DataType::Time32(_) => temporal(column, row),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let value = column.as_primitive::<IntervalMonthDayNanoType>().value(row);
            interval(value.months, i64::from(value.days), value.nanoseconds / 1000)
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let value = column.as_primitive::<IntervalDayTimeType>().value(row);
            interval(0, i64::from(value.days), i64::from(value.milliseconds) * 1000)
        }
        DataType::Interval(IntervalUnit::YearMonth) => {
            interval(column.as_primitive::<IntervalYearMonthType>().value(row), 0, 0)
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            let micros = column.as_primitive::<DurationMicrosecondType>().value(row);
            interval(0, micros / MICROS_PER_DAY, micros % MICROS_PER_DAY)
        }
        DataType::List(_) => braces(column.as_list::<i32>().value(row), "{", "}"),
        DataType::LargeList(_) => braces(column.as_list::<i64>().value(row), "{", "}"),
        DataType::Struct(_) => {
            let cells: Vec<String> = column.as_struct().columns().iter().map(|field| cell(field, row)).collect();
            format!("({})", cells.join(","))
        }
        _ => plain(column, row, &FormatOptions::default()),
    }
}

/// Arrow's own text of a cell.
fn plain(column: &ArrayRef, row: usize, options: &FormatOptions<'_>) -> String {
    let formatter = ArrayFormatter::try_new(column.as_ref(), options).expect("every type of ours can be shown");
    formatter.value(row).to_string()
}

/// Dates with times, and times of day: up to six digits after the second, no trailing zeros.
fn temporal(column: &ArrayRef, row: usize) -> String {
    let options = FormatOptions::default()
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.6f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.6f"))
        .with_time_format(Some("%H:%M:%S%.6f"));
    numeric(plain(column, row, &options))
}

/// Without trailing zeros after a point, and without the point if nothing is left.
fn numeric(text: String) -> String {
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if short == "-0" { "0".to_string() } else { short.to_string() }
}

/// The shortest digits that read back as the same number; with an exponent below 1e-4 and from 1e`digits` on.
fn float(value: f64, column: &ArrayRef, row: usize, digits: i32) -> String {
    if value.is_nan() {
        return "NaN".to_string();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_string();
    }
    if value == 0.0 {
        return "0".to_string();
    }
    // The 32-bit value has fewer digits than the 64-bit one that is equal to it.
    let (scientific, fixed) = match column.data_type() {
        DataType::Float32 => {
            let narrow = column.as_primitive::<Float32Type>().value(row);
            (format!("{narrow:e}"), format!("{narrow}"))
        }
        _ => (format!("{value:e}"), format!("{value}")),
    };
    let (mantissa, exponent) = scientific.split_once('e').expect("scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    if (-4..digits).contains(&exponent) {
        return fixed;
    }
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

fn bytes(value: &[u8]) -> String {
    value.iter().fold("\\x".to_string(), |text, byte| text + &format!("{byte:02x}"))
}

fn braces(items: ArrayRef, open: &str, close: &str) -> String {
    let cells: Vec<String> = (0..items.len()).map(|row| cell(&items, row)).collect();
    format!("{open}{}{close}", cells.join(","))
}

/// `1 year 2 mons 3 days 04:05:06.7`; parts that are zero are left out.
fn interval(months: i32, days: i64, micros: i64) -> String {
    let part = |n: i64, unit: &str| (n != 0).then(|| format!("{n} {unit}{}", if n == 1 { "" } else { "s" }));
    let mut parts: Vec<String> =
        [part(i64::from(months / 12), "year"), part(i64::from(months % 12), "mon"), part(days, "day")]
            .into_iter()
            .flatten()
            .collect();
    if micros != 0 || parts.is_empty() {
        let (sign, rest) = (if micros < 0 { "-" } else { "" }, micros.unsigned_abs());
        let (seconds, fraction) = (rest / 1_000_000, rest % 1_000_000);
        let clock = format!("{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        parts.push(if fraction == 0 { clock } else { numeric(format!("{clock}.{fraction:06}")) });
    }
    parts.join(" ")
}

#[test]
fn cells_read_as_psql_prints_them() {
    use arrow::array::{
        BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
        IntervalMonthDayNanoArray, ListArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    };
    use arrow::datatypes::{Int32Type, IntervalMonthDayNano};

    let check = |column: ArrayRef, expected: &[&str]| {
        let cells: Vec<String> = (0..column.len()).map(|row| cell(&column, row)).collect();
        assert_eq!(cells, expected, "{}", column.data_type());
    };
    check(Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])), &["t", "f", "NULL"]);
    check(
        Arc::new(Float64Array::from(vec![
            0.1,
            -0.0,
            1e20,
            1.5e-7,
            0.0001,
            123456789.5,
            f64::NAN,
            f64::NEG_INFINITY,
            1e14,
            1e15,
        ])),
        &["0.1", "0", "1e+20", "1.5e-07", "0.0001", "123456789.5", "NaN", "-Infinity", "100000000000000", "1e+15"],
    );
    check(Arc::new(Float32Array::from(vec![0.1, 1e10, 1.5])), &["0.1", "1e+10", "1.5"]);
    let decimals = Decimal128Array::from(vec![150, -1, 0, 100_000]).with_precision_and_scale(10, 2).expect("fits");
    check(Arc::new(decimals), &["1.5", "-0.01", "0", "1000"]);
    check(Arc::new(BinaryViewArray::from(vec![&[0u8, 255][..], &[]])), &["\\x00ff", "\\x"]);
    check(Arc::new(Date32Array::from(vec![15_706, -1])), &["2013-01-01", "1969-12-31"]);
    let times = vec![-500_000, 1_357_017_300_000_000];
    check(Arc::new(TimestampMicrosecondArray::from(times.clone())), &["1969-12-31 23:59:59.5", "2013-01-01 05:15:00"]);
    let zoned = TimestampMicrosecondArray::from(times).with_timezone("UTC");
    check(Arc::new(zoned), &["1969-12-31 23:59:59.5+00", "2013-01-01 05:15:00+00"]);
    check(Arc::new(Time64MicrosecondArray::from(vec![0, 86_399_999_999])), &["00:00:00", "23:59:59.999999"]);
    let span = |months, days, micros: i64| IntervalMonthDayNano::new(months, days, micros * 1000);
    check(
        Arc::new(IntervalMonthDayNanoArray::from(vec![
            span(14, 3, 14_706_700_000),
            span(0, 0, 0),
            span(0, 0, -300_000_000),
            span(-1, 1, 0),
        ])),
        &["1 year 2 mons 3 days 04:05:06.7", "00:00:00", "-00:05:00", "-1 mons 1 day"],
    );
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None])]);
    check(Arc::new(lists), &["{1,NULL}"]);
}
