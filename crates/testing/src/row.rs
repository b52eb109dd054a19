//! Rows as plain values, and collections of them.
//!
//! Law: two rows are equal here exactly if the engine has to treat them as equal: NULL equals NULL,
//! -0.0 equals 0.0, every NaN equals every other, text compares by bytes. The order is total:
//! ascending, NULL last, NaN after every other number. Nothing here is fast; the point is that it
//! is plainly right.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use anabranch_batch::types;
use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_empty_array};
use arrow::datatypes::SchemaRef;
use datafusion_common::ScalarValue;

/// A tuple of values, one a column.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row(Vec<Value>);

/// A value in its canonical form.
#[derive(Clone)]
struct Value(ScalarValue);

/// The contents of a collection at one time: how often each row is there. No entry is zero.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Contents(BTreeMap<Row, i64>);

impl Row {
    /// A row of these values, which are brought to canonical form.
    pub fn new(values: impl IntoIterator<Item = ScalarValue>) -> Row {
        Row(values.into_iter().map(|value| Value(canonical(value))).collect())
    }

    /// Row `index` of some columns, of planned types or as batches have them.
    pub fn of_columns(columns: &[ArrayRef], index: usize) -> Row {
        Row::new(columns.iter().map(|column| {
            let column = types::widened(&column.slice(index, 1));
            ScalarValue::try_from_array(&column, 0).expect("every supported type has a scalar form")
        }))
    }

    /// The value in a column.
    pub fn value(&self, column: usize) -> &ScalarValue {
        &self.0[column].0
    }

    /// The values, left to right.
    pub fn values(&self) -> impl Iterator<Item = &ScalarValue> {
        self.0.iter().map(|value| &value.0)
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.0.len()
    }

    /// Some of the columns.
    pub fn project(&self, columns: &[usize]) -> Row {
        Row(columns.iter().map(|&column| self.0[column].clone()).collect())
    }

    /// These columns followed by those of `other`.
    pub fn concat(&self, other: &Row) -> Row {
        Row(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// These columns followed by one value.
    pub fn with(&self, value: ScalarValue) -> Row {
        self.concat(&Row::new([value]))
    }

    /// Whether one of the columns is NULL.
    pub fn has_null(&self) -> bool {
        self.values().any(ScalarValue::is_null)
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (column, value) in self.values().enumerate() {
            let comma = if column > 0 { ", " } else { "" };
            write!(f, "{comma}{value}")?;
        }
        f.write_str(")")
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Value) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Value) -> Ordering {
        compare(&self.0, &other.0)
    }
}

/// The order of values of one type: ascending, NULL last.
///
/// # Panics
/// If the types differ.
pub fn compare(a: &ScalarValue, b: &ScalarValue) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    match (a, b) {
        (ScalarValue::Float64(Some(a)), ScalarValue::Float64(Some(b))) => {
            canonical_float(*a).total_cmp(&canonical_float(*b))
        }
        (ScalarValue::Float32(Some(a)), ScalarValue::Float32(Some(b))) => {
            canonical_float(f64::from(*a)).total_cmp(&canonical_float(f64::from(*b)))
        }
        (ScalarValue::List(a), ScalarValue::List(b)) => {
            let (a, b) = (a.value(0), b.value(0));
            compare_all((0..a.len()).map(|at| scalar(a.as_ref(), at)), (0..b.len()).map(|at| scalar(b.as_ref(), at)))
        }
        (ScalarValue::Struct(a), ScalarValue::Struct(b)) => compare_all(
            a.columns().iter().map(|field| scalar(field.as_ref(), 0)),
            b.columns().iter().map(|field| scalar(field.as_ref(), 0)),
        ),
        _ => a.partial_cmp(b).unwrap_or_else(|| panic!("{a:?} and {b:?} are not of one type")),
    }
}

/// The first two that differ decide; then the shorter one comes first.
fn compare_all(a: impl Iterator<Item = ScalarValue>, b: impl Iterator<Item = ScalarValue>) -> Ordering {
    a.map(Value).cmp(b.map(Value))
}

fn scalar(array: &dyn Array, at: usize) -> ScalarValue {
    canonical(ScalarValue::try_from_array(array, at).expect("every supported type has a scalar form"))
}

fn canonical(value: ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::Float64(Some(x)) => ScalarValue::Float64(Some(canonical_float(x))),
        ScalarValue::Float32(Some(x)) => ScalarValue::Float32(Some(canonical_float(f64::from(x)) as f32)),
        ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) => ScalarValue::Utf8View(text),
        other => other,
    }
}

fn canonical_float(x: f64) -> f64 {
    if x.is_nan() {
        f64::NAN
    } else if x == 0.0 {
        0.0
    } else {
        x
    }
}

impl Contents {
    /// Nothing.
    pub fn new() -> Contents {
        Contents::default()
    }

    /// Adds `diff` copies of a row.
    pub fn add(&mut self, row: Row, diff: i64) {
        let count = self.0.entry(row.clone()).or_insert(0);
        *count += diff;
        if *count == 0 {
            self.0.remove(&row);
        }
    }

    /// How often a row is there.
    pub fn count(&self, row: &Row) -> i64 {
        self.0.get(row).copied().unwrap_or(0)
    }

    /// Rows and how often each is there, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (&Row, i64)> {
        self.0.iter().map(|(row, &count)| (row, count))
    }

    /// Number of different rows.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether both hold the same rows equally often, floats of up to `tolerance` relative
    /// difference being the same.
    pub fn is_close(&self, other: &Contents, tolerance: f64) -> bool {
        self == other || is_close_slow(self, other, tolerance)
    }

    /// What `self` has and `expected` lacks (`+`), and the other way round (`-`), for people: one
    /// row a line.
    pub fn difference(&self, expected: &Contents) -> String {
        let mut changes = self.clone();
        for (row, count) in expected.iter() {
            changes.add(row.clone(), -count);
        }
        let mut text = String::new();
        for (row, count) in changes.iter().take(20) {
            text += &format!("  {count:+} {row:?}\n");
        }
        if changes.len() > 20 {
            text += &format!("  and {} more\n", changes.len() - 20);
        }
        text
    }
}

/// Pairs the rows off in an order in which floats come last, so that a small difference moves no
/// row past another.
fn is_close_slow(a: &Contents, b: &Contents, tolerance: f64) -> bool {
    let (a, b) = (sorted_floats_last(a), sorted_floats_last(b));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.1 == b.1 && rows_are_close(&a.0, &b.0, tolerance))
}

fn sorted_floats_last(contents: &Contents) -> Vec<(Row, i64)> {
    let key = |row: &Row| {
        let (mut first, mut last) = (Vec::new(), Vec::new());
        for value in row.values() {
            let place = if is_float(value) { &mut last } else { &mut first };
            place.push(value.clone());
        }
        first.append(&mut last);
        Row::new(first)
    };
    let mut rows: Vec<(Row, i64)> = contents.iter().map(|(row, count)| (key(row), count)).collect();
    rows.sort();
    rows
}

fn rows_are_close(a: &Row, b: &Row, tolerance: f64) -> bool {
    a.values().zip(b.values()).all(|(a, b)| match (a, b) {
        (ScalarValue::Float64(Some(a)), ScalarValue::Float64(Some(b))) => floats_are_close(*a, *b, tolerance),
        (ScalarValue::Float32(Some(a)), ScalarValue::Float32(Some(b))) => {
            floats_are_close(f64::from(*a), f64::from(*b), tolerance)
        }
        _ => compare(a, b) == Ordering::Equal,
    })
}

fn floats_are_close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1.0)
}

fn is_float(value: &ScalarValue) -> bool {
    matches!(value, ScalarValue::Float64(_) | ScalarValue::Float32(_))
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (row, count) in self.iter() {
            writeln!(f, "  {count} {row:?}")?;
        }
        Ok(())
    }
}

impl FromIterator<(Row, i64)> for Contents {
    fn from_iter<I: IntoIterator<Item = (Row, i64)>>(rows: I) -> Contents {
        let mut contents = Contents::new();
        for (row, diff) in rows {
            contents.add(row, diff);
        }
        contents
    }
}

/// The rows as columns of the schema's types.
pub fn to_record_batch(schema: &SchemaRef, rows: &[&Row]) -> RecordBatch {
    let column = |index: usize| {
        if rows.is_empty() {
            return new_empty_array(schema.field(index).data_type());
        }
        let array = ScalarValue::iter_to_array(rows.iter().map(|row| row.value(index).clone()))
            .expect("values of one column have one type");
        arrow::compute::cast(&array, schema.field(index).data_type()).expect("values are of the column's type")
    };
    let columns = (0..schema.fields().len()).map(column).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).expect("columns fit their schema")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(x: f64) -> Row {
        Row::new([ScalarValue::Float64(Some(x))])
    }

    #[test]
    fn zeros_are_equal_and_nans_are_equal() {
        assert_eq!(float(-0.0), float(0.0));
        assert_eq!(float(f64::NAN), float(-f64::NAN));
        assert!(float(f64::INFINITY) < float(f64::NAN));
    }

    #[test]
    fn null_comes_last_and_equals_null() {
        let null = Row::new([ScalarValue::Float64(None)]);
        assert!(float(f64::NAN) < null);
        assert_eq!(null, null.clone());
    }

    #[test]
    fn cancelled_rows_leave_nothing() {
        let mut contents = Contents::new();
        contents.add(float(1.0), 2);
        contents.add(float(1.0), -2);
        assert!(contents.is_empty());
    }

    #[test]
    fn close_floats_pair_off_whatever_stands_beside_them() {
        let row = |x: f64, name: &str| Row::new([ScalarValue::Float64(Some(x)), ScalarValue::from(name)]);
        let a: Contents = [(row(1.0, "b"), 1), (row(1.0 + 1e-13, "a"), 1)].into_iter().collect();
        let b: Contents = [(row(1.0 + 1e-13, "b"), 1), (row(1.0, "a"), 1)].into_iter().collect();
        assert_ne!(a, b);
        assert!(a.is_close(&b, 1e-9));
        assert!(!a.is_close(&b, 1e-15));
    }
}
