//! Columns of generated batches as the peer's cells.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Date32Type, Decimal128Type, Int32Type, Int64Type};

/// Keys and counts.
pub(super) fn whole(batch: &RecordBatch, name: &str) -> Vec<u32> {
    let column = batch.column_by_name(name).expect("a column of the table");
    match column.as_primitive_opt::<Int64Type>() {
        Some(column) => column.values().iter().map(|value| *value as u32).collect(),
        None => column.as_primitive::<Int32Type>().values().iter().map(|value| *value as u32).collect(),
    }
}

/// Money and quantities, in hundredths.
pub(super) fn cents(batch: &RecordBatch, name: &str) -> Vec<isize> {
    let column = batch.column_by_name(name).expect("a column of the table");
    column.as_primitive::<Decimal128Type>().values().iter().map(|value| *value as isize).collect()
}

/// Dates, in days since 1970.
pub(super) fn dates(batch: &RecordBatch, name: &str) -> Vec<i32> {
    let column = batch.column_by_name(name).expect("a column of the table");
    column.as_primitive::<Date32Type>().values().to_vec()
}

/// Long texts.
pub(super) fn texts(batch: &RecordBatch, name: &str) -> Vec<Box<str>> {
    let column = batch.column_by_name(name).expect("a column of the table").as_string_view();
    column.iter().map(|text| text.unwrap_or_default().into()).collect()
}

/// Short texts, filled up with zeros.
pub(super) fn short<const N: usize>(batch: &RecordBatch, name: &str) -> Vec<[u8; N]> {
    let column = batch.column_by_name(name).expect("a column of the table").as_string_view();
    column.iter().map(|text| padded(text.unwrap_or_default())).collect()
}

/// A short text as a cell.
pub(super) fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut cell = [0; N];
    let kept = text.len().min(N);
    cell[..kept].copy_from_slice(&text.as_bytes()[..kept]);
    cell
}

/// The text of a cell.
pub(super) fn text(cell: &[u8]) -> String {
    String::from_utf8_lossy(cell).trim_end_matches('\0').to_owned()
}

/// A date as days since 1970.
pub(super) fn day(year: i32, month: i32, day: i32) -> i32 {
    // Howard Hinnant's days_from_civil.
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let of_era = y - era * 400;
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The year of a date.
pub(super) fn year(days: i32) -> i32 {
    let mut year = 1970 + days.div_euclid(366);
    while day(year + 1, 1, 1) <= days {
        year += 1;
    }
    year
}

/// Columns zipped into rows.
macro_rules! zip {
    ($first:expr) => {
        $first
    };
    ($a:expr, $b:expr) => {
        $a.into_iter().zip($b).collect::<Vec<_>>()
    };
    ($a:expr, $b:expr, $c:expr) => {
        $a.into_iter().zip($b).zip($c).map(|((a, b), c)| (a, b, c)).collect::<Vec<_>>()
    };
    ($a:expr, $b:expr, $c:expr, $d:expr) => {
        $a.into_iter().zip($b).zip($c).zip($d).map(|(((a, b), c), d)| (a, b, c, d)).collect::<Vec<_>>()
    };
    ($a:expr, $b:expr, $c:expr, $d:expr, $e:expr) => {
        $a.into_iter().zip($b).zip($c).zip($d).zip($e).map(|((((a, b), c), d), e)| (a, b, c, d, e)).collect::<Vec<_>>()
    };
    ($a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr) => {
        $a.into_iter()
            .zip($b)
            .zip($c)
            .zip($d)
            .zip($e)
            .zip($f)
            .map(|(((((a, b), c), d), e), f)| (a, b, c, d, e, f))
            .collect::<Vec<_>>()
    };
    ($a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr, $g:expr) => {
        $a.into_iter()
            .zip($b)
            .zip($c)
            .zip($d)
            .zip($e)
            .zip($f)
            .zip($g)
            .map(|((((((a, b), c), d), e), f), g)| (a, b, c, d, e, f, g))
            .collect::<Vec<_>>()
    };
}
pub(super) use zip;
