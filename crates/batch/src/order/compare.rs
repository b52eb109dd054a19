//! The order itself: one boxed closure a column, for the comparisons that prefixes leave open.

use arrow::array::{Array, ArrayRef, OffsetSizeTrait};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::{IntervalDayTime, IntervalMonthDayNano, i256};
use std::cmp::Ordering;

use super::direction::Direction;
use crate::cells::{ByteCells, Bytes, Cells, F16, Views, canonical, cells, nulls, scalars};
use crate::types;

/// Order of a row of one column against a row of another.
type Compare = Box<dyn Fn(usize, usize) -> Ordering + Send + Sync>;

/// Total order of rows of one set of columns against rows of another. One boxed closure a column:
/// prefixes come first where speed counts.
pub struct Comparator {
    /// One per column, most significant first.
    columns: Vec<Compare>,
}

impl Comparator {
    /// Compares rows of `left` with rows of `right`, one direction a column.
    ///
    /// # Panics
    /// If the three differ in length, or column types cannot be compared.
    pub fn new(left: &[ArrayRef], right: &[ArrayRef], directions: &[Direction]) -> Comparator {
        assert!(
            left.len() == right.len() && left.len() == directions.len(),
            "columns and directions come in equal number"
        );
        let columns = left.iter().zip(right).zip(directions);
        Comparator {
            columns: columns.map(|((left, right), direction)| compare_column(left, right, *direction)).collect(),
        }
    }

    /// Compares rows with each other: every column ascending, nulls last.
    ///
    /// # Panics
    /// If a column's type cannot be compared.
    pub fn ascending(columns: &[ArrayRef]) -> Comparator {
        Comparator::new(columns, columns, &vec![Direction::ASCENDING; columns.len()])
    }

    /// Order of row `i` of the left against row `j` of the right.
    ///
    /// # Panics
    /// If a row is out of bounds.
    #[inline]
    pub fn compare(&self, i: usize, j: usize) -> Ordering {
        self.compare_from(0, i, j)
    }

    /// The same for rows that are equal in the columns before `first`.
    #[inline]
    pub(super) fn compare_from(&self, first: usize, i: usize, j: usize) -> Ordering {
        let columns = self.columns[first..].iter();
        columns.map(|column| column(i, j)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

impl std::fmt::Debug for Comparator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Comparator").field("n_columns", &self.columns.len()).finish()
    }
}

fn compare_column(left: &ArrayRef, right: &ArrayRef, direction: Direction) -> Compare {
    let (left, right) = types::comparable(left, right).unwrap_or_else(|| (left.clone(), right.clone()));
    let nulls = (nulls(&left), nulls(&right));
    let values = compare_values(&left, &right);
    match nulls {
        (None, None) if direction.descending => Box::new(move |i, j| values(i, j).reverse()),
        (None, None) => values,
        (left, right) => compare_nullable(left, right, values, direction),
    }
}

fn compare_nullable(
    left: Option<NullBuffer>,
    right: Option<NullBuffer>,
    values: Compare,
    direction: Direction,
) -> Compare {
    let is_null = |nulls: &Option<NullBuffer>, row| nulls.as_ref().is_some_and(|nulls: &NullBuffer| nulls.is_null(row));
    let null_first = if direction.nulls_first { Ordering::Less } else { Ordering::Greater };
    Box::new(move |i, j| match (is_null(&left, i), is_null(&right, j)) {
        (true, true) => Ordering::Equal,
        (true, false) => null_first,
        (false, true) => null_first.reverse(),
        (false, false) if direction.descending => values(i, j).reverse(),
        (false, false) => values(i, j),
    })
}

/// Ascending order of non-null cells.
fn compare_values(left: &ArrayRef, right: &ArrayRef) -> Compare {
    macro_rules! by {
        ($native:ty, $compare:expr) => {{
            let (left, right) = (scalars::<$native>(left), scalars::<$native>(right));
            Box::new(move |i, j| $compare(&left[i], &right[j]))
        }};
    }
    match (cells(left), cells(right)) {
        (Cells::Null, Cells::Null) => Box::new(|_, _| Ordering::Equal),
        (Cells::Bool(l), Cells::Bool(r)) => {
            let (left, right) = (l.clone(), r.clone());
            Box::new(move |i, j| left.value(i).cmp(&right.value(j)))
        }
        (Cells::I8(_), Cells::I8(_)) => by!(i8, i8::cmp),
        (Cells::I16(_), Cells::I16(_)) => by!(i16, i16::cmp),
        (Cells::I32(_), Cells::I32(_)) => by!(i32, i32::cmp),
        (Cells::I64(_), Cells::I64(_)) => by!(i64, i64::cmp),
        (Cells::U8(_), Cells::U8(_)) => by!(u8, u8::cmp),
        (Cells::U16(_), Cells::U16(_)) => by!(u16, u16::cmp),
        (Cells::U32(_), Cells::U32(_)) => by!(u32, u32::cmp),
        (Cells::U64(_), Cells::U64(_)) => by!(u64, u64::cmp),
        (Cells::F16(_), Cells::F16(_)) => by!(F16, |l: &F16, r: &F16| compare_floats(l.to_f64(), r.to_f64())),
        (Cells::F32(_), Cells::F32(_)) => by!(f32, |l: &f32, r: &f32| compare_floats(f64::from(*l), f64::from(*r))),
        (Cells::F64(_), Cells::F64(_)) => by!(f64, |l: &f64, r: &f64| compare_floats(*l, *r)),
        (Cells::I128(_), Cells::I128(_)) => by!(i128, i128::cmp),
        (Cells::I256(_), Cells::I256(_)) => by!(i256, i256::cmp),
        (Cells::DayTime(_), Cells::DayTime(_)) => by!(IntervalDayTime, IntervalDayTime::cmp),
        (Cells::MonthDayNano(_), Cells::MonthDayNano(_)) => by!(IntervalMonthDayNano, compare_intervals),
        (Cells::Bytes(_), Cells::Bytes(_)) => compare_bytes::<i32>(left, right),
        (Cells::LargeBytes(_), Cells::LargeBytes(_)) => compare_bytes::<i64>(left, right),
        (Cells::Fixed(l), Cells::Fixed(r)) if l.width() == r.width() => compare_fixed(left, right, l.width()),
        (Cells::Views(_), Cells::Views(_)) => compare_views(left, right),
        (Cells::List(_, l), Cells::List(_, r)) => compare_lists::<i32>(left, right, l, r),
        (Cells::LargeList(_, l), Cells::LargeList(_, r)) => compare_lists::<i64>(left, right, l, r),
        (Cells::Struct(l), Cells::Struct(r)) => {
            let fields = Comparator::new(l, r, &vec![Direction::ASCENDING; l.len()]);
            Box::new(move |i, j| fields.compare(i, j))
        }
        _ => panic!("columns of types {} and {} do not compare", left.data_type(), right.data_type()),
    }
}

/// As PostgreSQL compares intervals: a month is 30 days, a day 24 hours. Intervals that are as long
/// are told apart by their parts, since they are different values.
fn compare_intervals(left: &IntervalMonthDayNano, right: &IntervalMonthDayNano) -> Ordering {
    interval_length(left).cmp(&interval_length(right)).then(left.cmp(right))
}

/// The nanoseconds of an interval whose months have 30 days, and whose days 24 hours.
pub fn interval_length(interval: &IntervalMonthDayNano) -> i128 {
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    days * 86_400_000_000_000 + i128::from(interval.nanoseconds)
}

fn compare_bytes<O: OffsetSizeTrait>(left: &ArrayRef, right: &ArrayRef) -> Compare {
    let owned = |array: &ArrayRef| {
        let data = array.to_data();
        (ScalarBuffer::<O>::new(data.buffers()[0].clone(), data.offset(), data.len() + 1), data.buffers()[1].clone())
    };
    let (left, right) = (owned(left), owned(right));
    Box::new(move |i, j| {
        let (left, right) = (Bytes::new(&left.0, &left.1), Bytes::new(&right.0, &right.1));
        left.bytes(i).cmp(right.bytes(j))
    })
}

fn compare_fixed(left: &ArrayRef, right: &ArrayRef, width: usize) -> Compare {
    let owned = |array: &ArrayRef| {
        let data = array.to_data();
        data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width)
    };
    let (left, right) = (owned(left), owned(right));
    Box::new(move |i, j| left[i * width..(i + 1) * width].cmp(&right[j * width..(j + 1) * width]))
}

fn compare_views(left: &ArrayRef, right: &ArrayRef) -> Compare {
    let owned = |array: &ArrayRef| (scalars::<u128>(array), array.to_data().buffers()[1..].to_vec());
    let (left, right) = (owned(left), owned(right));
    Box::new(move |i, j| {
        let (left, right) = (Views { views: &left.0, buffers: &left.1 }, Views { views: &right.0, buffers: &right.1 });
        left.compare(i, right, j)
    })
}

fn compare_lists<O: OffsetSizeTrait>(left: &ArrayRef, right: &ArrayRef, l: &ArrayRef, r: &ArrayRef) -> Compare {
    let offsets = |array: &ArrayRef| {
        let data = array.to_data();
        ScalarBuffer::<O>::new(data.buffers()[0].clone(), data.offset(), data.len() + 1)
    };
    let (left, right) = (offsets(left), offsets(right));
    let elements = compare_column(l, r, Direction::ASCENDING);
    Box::new(move |i, j| {
        let (l, r) = (left[i].as_usize()..left[i + 1].as_usize(), right[j].as_usize()..right[j + 1].as_usize());
        let lengths = l.len().cmp(&r.len());
        l.zip(r).map(|(i, j)| elements(i, j)).find(|order| order.is_ne()).unwrap_or(lengths)
    })
}

fn compare_floats(left: f64, right: f64) -> Ordering {
    canonical(left).total_cmp(&canonical(right))
}
