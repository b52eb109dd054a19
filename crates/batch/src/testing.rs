//! Random columns for the tests of this crate, and their cells in the plainest form.

use arrow::array::*;
use arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow::datatypes::*;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::batch::Batch;
use crate::control::{Diffs, END, Times, Until};
use crate::types;

/// Xorshift64* of Vigna: small, seeded, good enough for tests.
pub(crate) struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The seed of `SEED`, else `default`; printed, so that a failure names it.
    pub fn from_env(default: u64) -> Rng {
        let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(default);
        println!("SEED={seed}");
        Rng::new(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Less than `n`.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 32) as usize * n) >> 32
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Every type that rows can have, at least once per physical form.
pub(crate) fn all_types() -> Vec<DataType> {
    use DataType as D;
    let field = |name: &str, data_type| Arc::new(Field::new(name, data_type, true));
    let pair = D::Struct(vec![field("a", D::Float64), field("b", D::Utf8View)].into());
    let mut types = vec![
        D::Null,
        D::Boolean,
        D::Int8,
        D::Int16,
        D::Int32,
        D::Int64,
        D::UInt8,
        D::UInt16,
        D::UInt32,
        D::UInt64,
        D::Float16,
        D::Float32,
        D::Float64,
        D::Decimal64(18, 2),
        D::Decimal128(38, 2),
        D::Decimal256(76, 2),
        D::Date32,
        D::Date64,
        D::Utf8,
        D::LargeUtf8,
        D::Utf8View,
        D::Binary,
        D::LargeBinary,
        D::BinaryView,
        D::FixedSizeBinary(16),
        D::Interval(IntervalUnit::YearMonth),
        D::Interval(IntervalUnit::DayTime),
        D::Interval(IntervalUnit::MonthDayNano),
        D::Time32(TimeUnit::Second),
        D::Time32(TimeUnit::Millisecond),
        D::Time64(TimeUnit::Microsecond),
        D::Time64(TimeUnit::Nanosecond),
    ];
    for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
        types.extend([
            D::Timestamp(unit, None),
            D::Timestamp(unit, Some("Europe/Stockholm".into())),
            D::Duration(unit),
        ]);
    }
    types.extend([
        D::List(field("item", D::Int64)),
        D::LargeList(field("item", D::Utf8View)),
        D::Struct(Fields::empty()),
    ]);
    types.extend([
        D::List(field("item", D::Float32)),
        D::List(field("item", pair.clone())),
        D::List(field("item", D::Null)),
        pair,
    ]);
    types.push(D::Struct(vec![field("x", D::List(field("item", D::Float64))), field("y", D::Boolean)].into()));
    types.iter().for_each(|data_type| types::check(data_type).expect("the list holds supported types"));
    types
}

/// `rows` cells from a small domain, so that equal ones are frequent; sometimes sliced, sometimes
/// without nulls.
pub(crate) fn random_column(rng: &mut Rng, data_type: &DataType, rows: usize) -> ArrayRef {
    let (before, after) = (rng.below(3), rng.below(3));
    let nulls = if rng.chance(70) { 20 } else { 0 };
    random_array(rng, data_type, before + rows + after, nulls).slice(before, rows)
}

fn random_array(rng: &mut Rng, data_type: &DataType, rows: usize, nulls: usize) -> ArrayRef {
    use DataType as D;
    let validity = (nulls > 0).then(|| (0..rows).map(|_| !rng.chance(nulls)).collect::<NullBuffer>());
    let integer = |rng: &mut Rng| *rng.pick(&[0i64, 1, -1, 2, 7, i64::MAX, i64::MIN, 1 << 40]);
    let float = |rng: &mut Rng| {
        let nan = f64::from_bits(0xfff8_0000_0000_0001);
        *rng.pick(&[0.0, -0.0, 1.5, -1.5, f64::NAN, nan, f64::INFINITY, f64::NEG_INFINITY, 0.1])
    };
    let text = |rng: &mut Rng| {
        let texts = ["", "a", "a\0", "abc", "abcd", "abcde", "abcdefgh", "abcdefgi", "abcdefghijkl", "abcdefghijklm"];
        let longer = [
            "a string of 25 characters",
            "a string of 25 characterS",
            "Ärger mit Umlauten, viel länger als zwölf",
            "0123456789abcdef",
        ];
        rng.pick(&[&texts[..], &longer[..]].concat()).to_string()
    };
    macro_rules! primitive {
        ($type:ty, $value:expr) => {{
            let values: Vec<_> = (0..rows).map(|_| $value(rng)).collect();
            Arc::new(PrimitiveArray::<$type>::new(values.into(), validity).with_data_type(data_type.clone()))
        }};
    }
    match data_type {
        D::Null => new_null_array(data_type, rows),
        D::Boolean => Arc::new(BooleanArray::new((0..rows).map(|_| rng.chance(50)).collect(), validity)),
        D::Float16 => primitive!(Float16Type, |rng: &mut Rng| crate::cells::F16::from_f64(float(rng))),
        D::Float32 => primitive!(Float32Type, |rng: &mut Rng| float(rng) as f32),
        D::Float64 => primitive!(Float64Type, float),
        D::Decimal64(..) => primitive!(Decimal64Type, integer),
        D::Decimal128(..) => primitive!(Decimal128Type, |rng: &mut Rng| i128::from(integer(rng))
            * if rng.chance(30) { 1 << 40 } else { 1 }),
        D::Decimal256(..) => primitive!(Decimal256Type, |rng: &mut Rng| {
            let value = i256::from_i128(i128::from(integer(rng)));
            if rng.chance(30) { value.wrapping_mul(i256::from_i128(1 << 100)) } else { value }
        }),
        D::Interval(IntervalUnit::DayTime) => primitive!(IntervalDayTimeType, |rng: &mut Rng| IntervalDayTime::new(
            integer(rng) as i32,
            integer(rng) as i32
        )),
        D::Interval(IntervalUnit::MonthDayNano) => primitive!(IntervalMonthDayNanoType, |rng: &mut Rng| {
            IntervalMonthDayNano::new(integer(rng) as i32, integer(rng) as i32, integer(rng))
        }),
        D::Utf8 | D::LargeUtf8 | D::Utf8View | D::Binary | D::LargeBinary | D::BinaryView => {
            let texts: Vec<Option<String>> = (0..rows)
                .map(|row| validity.as_ref().is_none_or(|nulls| nulls.is_valid(row)).then(|| text(rng)))
                .collect();
            arrow::compute::cast(&StringArray::from(texts), data_type)
                .expect("text casts to all forms of text and bytes")
        }
        D::FixedSizeBinary(width) => {
            let bytes: Vec<u8> = (0..rows * *width as usize).map(|_| rng.chance(3) as u8).collect();
            Arc::new(FixedSizeBinaryArray::new(*width, bytes.into(), validity))
        }
        D::List(element) => {
            let offsets = OffsetBuffer::<i32>::from_lengths((0..rows).map(|_| rng.below(4)));
            let elements = random_array(rng, element.data_type(), *offsets.last().unwrap() as usize, 20);
            Arc::new(ListArray::new(element.clone(), offsets, elements, validity))
        }
        D::LargeList(element) => {
            let offsets = OffsetBuffer::<i64>::from_lengths((0..rows).map(|_| rng.below(4)));
            let elements = random_array(rng, element.data_type(), *offsets.last().unwrap() as usize, 20);
            Arc::new(LargeListArray::new(element.clone(), offsets, elements, validity))
        }
        D::Struct(fields) => {
            let columns = fields.iter().map(|field| random_array(rng, field.data_type(), rows, 20)).collect();
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, validity, rows).unwrap())
        }
        other => {
            let width = other.primitive_width().expect("all other types are integers inside");
            let values: Vec<u8> = (0..rows).flat_map(|_| integer(rng).to_le_bytes()[..width].to_vec()).collect();
            make_array(
                ArrayData::builder(other.clone())
                    .len(rows)
                    .add_buffer(values.as_slice().into())
                    .nulls(validity)
                    .build()
                    .unwrap(),
            )
        }
    }
}

/// What a batch means: the sum of diffs of each row at each time, zeros left out. Plain code on
/// cells as text.
pub(crate) fn meaning(batch: &Batch) -> BTreeMap<(Vec<String>, i64), i64> {
    let mut sums = BTreeMap::new();
    for row in (0..batch.len()).filter(|&row| batch.present().is_none_or(|present| present.value(row))) {
        let cells: Vec<String> = batch.columns().iter().map(|column| cell(column, row)).collect();
        let (time, diff) = (batch.times().get(row), batch.diffs().get(row));
        let until = batch.until().get(row, time);
        if until > time {
            *sums.entry((cells.clone(), time)).or_insert(0) += diff;
            if until < END {
                *sums.entry((cells, until)).or_insert(0) -= diff;
            }
        } else if until < time {
            *sums.entry((cells, time)).or_insert(0) -= diff;
        }
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

/// Up to 119 rows of one to three columns of any types, with any control columns; often keyed,
/// often a slice.
pub(crate) fn random_batch(rng: &mut Rng) -> Batch {
    let len = rng.below(120);
    let types = all_types();
    let n_columns = 1 + rng.below(3);
    let chosen: Vec<DataType> = (0..n_columns).map(|_| rng.pick(&types).clone()).collect();
    let columns: Vec<ArrayRef> = chosen.iter().map(|data_type| random_column(rng, data_type, len)).collect();
    let times = match rng.chance(30) {
        true => Times::Constant(5),
        false => Times::Column((0..len).map(|_| rng.below(4) as i64).collect()),
    };
    let diffs = match rng.chance(30) {
        true => Diffs::Constant(1),
        false => Diffs::Column((0..len).map(|_| rng.below(5) as i64 - 2).collect()),
    };
    let until = match rng.below(4) {
        0 => Until::Duration(rng.below(3) as i64),
        1 => Until::Column((0..len).map(|_| if rng.chance(50) { END } else { rng.below(8) as i64 }).collect()),
        _ => Until::Forever,
    };
    let mut batch = Batch::with_len(columns.into(), len, times, diffs).with_until(until);
    if rng.chance(30) {
        batch = batch.with_present(BooleanBuffer::collect_bool(len, |_| rng.chance(60)));
    }
    if rng.chance(50) {
        let key: Vec<usize> = if rng.chance(50) { (0..n_columns).collect() } else { vec![rng.below(n_columns)] };
        batch = batch.with_key(&key);
    }
    let start = if rng.chance(50) { 0 } else { rng.below(len + 1) };
    batch.slice(start, len - start)
}

/// One cell as text, equal exactly when the cells are equal: the model of equality that kernels are
/// tested against.
pub(crate) fn cell(array: &dyn Array, row: usize) -> String {
    use DataType as D;
    if array.logical_nulls().is_some_and(|nulls| nulls.is_null(row)) {
        return "NULL".into();
    }
    let cells = |values: ArrayRef| (0..values.len()).map(|row| cell(&values, row)).collect::<Vec<_>>();
    let float = |value: f64| match value {
        value if value.is_nan() => "NaN".into(),
        value => format!("{:?}", value + 0.0),
    };
    match array.data_type() {
        D::Float16 => float(array.as_primitive::<Float16Type>().value(row).to_f64()),
        D::Float32 => float(f64::from(array.as_primitive::<Float32Type>().value(row))),
        D::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        D::List(_) => format!("{:?}", cells(array.as_list::<i32>().value(row))),
        D::LargeList(_) => format!("{:?}", cells(array.as_list::<i64>().value(row))),
        D::Struct(_) => {
            format!("{:?}", array.as_struct().columns().iter().map(|field| cell(field, row)).collect::<Vec<_>>())
        }
        D::Utf8 | D::LargeUtf8 | D::Utf8View | D::Binary | D::LargeBinary | D::BinaryView => {
            let bytes = arrow::compute::cast(&array.slice(row, 1), &D::Binary).unwrap();
            format!("{:?}", bytes.as_binary::<i32>().value(0))
        }
        D::Boolean => array.as_boolean().value(row).to_string(),
        D::FixedSizeBinary(_) => format!("{:?}", array.as_fixed_size_binary().value(row)),
        other => {
            let width = other.primitive_width().expect("all other types have fixed width");
            let data = array.to_data();
            format!("{:?}", &data.buffers()[0][(data.offset() + row) * width..][..width])
        }
    }
}
