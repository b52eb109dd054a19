//! Values as text, the way PostgreSQL prints them: for programs that show answers, and for casts to
//! text (`cast_to_text`).
//!
//! One dispatch a column: [`printer`] gives a closure that appends row i's text. NULL appends
//! nothing and says so.

use std::fmt::Write;
use std::sync::Arc;

use anabranch_batch::numeric::NumericPlaces;
use anabranch_batch::{TextLimit, numeric};
use arrow::{
    array::{Array, ArrayAccessor, ArrayRef, ArrowPrimitiveType, AsArray},
    datatypes::{
        DataType, Date32Type, Date64Type, Decimal128Type, Decimal256Type, DecimalType, DurationMicrosecondType, Field,
        FieldRef, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType, Schema, SchemaRef,
        Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
    util::display::array_value_to_string,
};

use crate::functions::numeric_casts::convert_plain;
use crate::resolve::documents::limit_of;
pub use crate::resolve::type_names::is_vector;
use crate::time::moments::End;
use crate::time::tokens::is_space;

/// Appends the text of a row's value. Not called for NULL.
pub type Printer<'a> = Box<dyn Fn(usize, &mut String) + 'a>;

/// Whether values stand at the right of their column.
pub fn is_number(data_type: &DataType) -> bool {
    crate::resolve::type_names::is_number(data_type)
}

/// The key under which a field's metadata say that its texts are plain numerics.
const SQL_TYPE: &str = "anabranch.type";

/// Whether values of a column of an answer are numbers.
pub fn is_number_field(field: &Field) -> bool {
    is_number(field.data_type()) || is_plain_numeric(field)
}

/// Whether a column of an answer has plain numerics, as text.
pub fn is_plain_numeric(field: &Field) -> bool {
    field.metadata().get(SQL_TYPE).is_some_and(|name| name == "numeric")
}

/// The schema of an answer as users see it: plain numerics are text, and the field's metadata say
/// so.
pub fn shown_schema(schema: &SchemaRef) -> SchemaRef {
    let shown_field = |field: &FieldRef| match shown_type(field.data_type()) {
        Some(shown) => {
            let mut metadata = field.metadata().clone();
            metadata.insert(SQL_TYPE.into(), crate::resolve::type_names::sql_name(field.data_type()));
            Arc::new(Field::clone(field).with_data_type(shown).with_metadata(metadata))
        }
        None => field.clone(),
    };
    if schema.fields().iter().all(|field| shown_type(field.data_type()).is_none()) {
        return schema.clone();
    }
    Arc::new(Schema::new(schema.fields().iter().map(shown_field).collect::<Vec<_>>()))
}

/// A column of an answer as users see it.
pub fn shown_column(column: &ArrayRef) -> ArrayRef {
    match shown_type(column.data_type()) {
        Some(shown) => convert_plain(column, &shown).expect("every number has a text"),
        None => column.clone(),
    }
}

/// A column of an answer as users see it: `char(n)` has its length, a rounded numeric its places.
pub fn shown_values(field: &Field, column: &ArrayRef) -> ArrayRef {
    match limit_of(field) {
        Some(limit @ TextLimit::Char(_)) => limit.padded(column),
        _ => match (NumericPlaces::of(field), column.data_type()) {
            (Some(places), DataType::LargeBinary) => places.shown(column),
            _ => shown_column(column),
        },
    }
}

/// Whether users see the columns of a schema as they are kept.
pub fn is_shown_as_kept(schema: &Schema) -> bool {
    let is_padded = |field: &Field| matches!(limit_of(field), Some(TextLimit::Char(n)) if n != TextLimit::UNBOUNDED);
    schema.fields().iter().all(|field| shown_type(field.data_type()).is_none() && !is_padded(field))
}

/// The type that users see in place of plain `numeric`.
fn shown_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::LargeBinary => Some(DataType::Utf8View),
        DataType::List(element) => {
            let shown = shown_type(element.data_type())?;
            Some(DataType::List(Arc::new(Field::clone(element).with_data_type(shown))))
        }
        _ => None,
    }
}

/// A printer of one column.
pub fn printer(array: &ArrayRef) -> Printer<'_> {
    match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean();
            Box::new(move |row, out| out.push_str(if values.value(row) { "true" } else { "false" }))
        }
        DataType::Int8 => each::<Int8Type>(array, whole),
        DataType::Int16 => each::<Int16Type>(array, whole),
        DataType::Int32 => each::<Int32Type>(array, whole),
        DataType::Int64 => each::<Int64Type>(array, whole),
        DataType::UInt8 => each::<UInt8Type>(array, whole),
        DataType::UInt16 => each::<UInt16Type>(array, whole),
        DataType::UInt32 => each::<UInt32Type>(array, whole),
        DataType::UInt64 => each::<UInt64Type>(array, whole),
        DataType::Float16 => each::<Float16Type>(array, |value, out| float32(value.to_f32(), out)),
        DataType::Float32 => each::<Float32Type>(array, float32),
        DataType::Float64 => each::<Float64Type>(array, float64),
        DataType::Decimal128(..) => decimals::<Decimal128Type>(array),
        DataType::Decimal256(..) => decimals::<Decimal256Type>(array),
        DataType::Utf8 => texts(array.as_string::<i32>()),
        DataType::LargeUtf8 => texts(array.as_string::<i64>()),
        DataType::Utf8View => texts(array.as_string_view()),
        DataType::Binary => each_of(array.as_binary::<i32>(), bytes),
        DataType::BinaryView => each_of(array.as_binary_view(), bytes),
        DataType::LargeBinary => {
            each_of(array.as_binary::<i64>(), |value, out| numeric::write(&numeric::number_of(value), out))
        }
        DataType::Date32 => each::<Date32Type>(array, |days, out| match End::of_days(days) {
            Some(end) => out.push_str(end.text()),
            None => date(i64::from(days), out),
        }),
        DataType::Date64 => each::<Date64Type>(array, |millis, out| date(millis.div_euclid(86_400_000), out)),
        DataType::Time64(TimeUnit::Microsecond) => each::<Time64MicrosecondType>(array, time),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let suffix = if zone.is_some() { "+00" } else { "" };
            each::<TimestampMicrosecondType>(array, move |micros, out| timestamp(micros, suffix, out))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => each::<IntervalMonthDayNanoType>(array, |value, out| {
            interval(value.months, value.days, value.nanoseconds / 1000, out);
        }),
        DataType::Interval(IntervalUnit::DayTime) => each::<IntervalDayTimeType>(array, |value, out| {
            interval(0, value.days, i64::from(value.milliseconds) * 1000, out);
        }),
        DataType::Interval(IntervalUnit::YearMonth) => {
            each::<IntervalYearMonthType>(array, |months, out| interval(months, 0, 0, out))
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            each::<DurationMicrosecondType>(array, |micros, out| interval(0, 0, micros, out))
        }
        DataType::List(element) if is_vector(element) => {
            each_of(array.as_list::<i32>(), |elements, out| vector(&elements, out))
        }
        DataType::List(_) => each_of(array.as_list::<i32>(), |elements, out| list(&elements, out)),
        DataType::LargeList(_) => each_of(array.as_list::<i64>(), |elements, out| list(&elements, out)),
        DataType::Struct(_) => {
            let values = array.as_struct();
            Box::new(move |row, out| record(values.columns(), row, out))
        }
        _ => Box::new(move |row, out| out.push_str(&array_value_to_string(array, row).unwrap_or_default())),
    }
}

/// A printer of values of a fixed width.
fn each<T: ArrowPrimitiveType>(array: &ArrayRef, print: impl Fn(T::Native, &mut String) + 'static) -> Printer<'_> {
    let values = array.as_primitive::<T>();
    Box::new(move |row, out| print(values.value(row), out))
}

/// A printer of values of any width.
fn each_of<'a, A: ArrayAccessor + 'a>(values: A, print: impl Fn(A::Item, &mut String) + 'static) -> Printer<'a> {
    Box::new(move |row, out| print(values.value(row), out))
}

fn texts<'a>(values: impl ArrayAccessor<Item = &'a str> + 'a) -> Printer<'a> {
    each_of(values, |value, out| out.push_str(value))
}

fn decimals<T: DecimalType>(array: &ArrayRef) -> Printer<'_> {
    let values = array.as_primitive::<T>();
    Box::new(move |row, out| out.push_str(&values.value_as_string(row)))
}

fn whole(value: impl std::fmt::Display, out: &mut String) {
    push(out, format_args!("{value}"));
}

/// The printers of a batch's columns, each with its array for NULL.
pub fn printers(columns: &[ArrayRef]) -> Vec<(&ArrayRef, Printer<'_>)> {
    columns.iter().map(|column| (column, printer(column))).collect()
}

/// Whether a value is NULL; the null type has no values at all.
pub fn is_null(array: &ArrayRef, row: usize) -> bool {
    array.is_null(row) || *array.data_type() == DataType::Null
}

fn push(out: &mut String, value: std::fmt::Arguments<'_>) {
    out.write_fmt(value).expect("writing to a String cannot fail");
}

/// Elements apart by spaces.
fn vector(elements: &ArrayRef, out: &mut String) {
    let print = printer(elements);
    for row in 0..elements.len() {
        if row > 0 {
            out.push(' ');
        }
        print(row, out);
    }
}

// (A zero has no sign in texts: -0 and 0 are equal, so a group or a key may hold either, and what
// is computed of it is to be the same.)

fn float64(value: f64, out: &mut String) {
    let value = value + 0.0;
    float(value, format!("{value}"), &format!("{value:e}"), 15, out);
}

fn float32(value: f32, out: &mut String) {
    let value = value + 0.0;
    float(f64::from(value), format!("{value}"), &format!("{value:e}"), 6, out);
}

/// The shortest digits that read back as the same number; an exponent where PostgreSQL writes one.
fn float(value: f64, plain: String, scientific: &str, exponent_max: i32, out: &mut String) {
    let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let is_plain = exponent.parse().is_ok_and(|exponent: i32| (-4..exponent_max).contains(&exponent));
    if value.is_nan() {
        out.push_str("NaN");
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    } else if !is_plain {
        let (sign, exponent) = exponent.strip_prefix('-').map_or(("+", exponent), |exponent| ("-", exponent));
        push(out, format_args!("{digits}e{sign}{exponent:0>2}"));
    } else {
        out.push_str(&plain);
    }
}

fn bytes(value: &[u8], out: &mut String) {
    out.push_str("\\x");
    value.iter().for_each(|byte| push(out, format_args!("{byte:02x}")));
}

/// Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
fn date(days: i64, out: &mut String) {
    if day(days, out) == Era::BeforeChrist {
        out.push_str(" BC");
    }
}

/// Which years are counted.
#[derive(PartialEq)]
enum Era {
    AfterChrist,
    BeforeChrist,
}

/// The date without its era.
fn day(days: i64, out: &mut String) -> Era {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    if year > 0 {
        push(out, format_args!("{year:04}-{month:02}-{day:02}"));
        Era::AfterChrist
    } else {
        push(out, format_args!("{:04}-{month:02}-{day:02}", 1 - year));
        Era::BeforeChrist
    }
}

fn time(micros: i64, out: &mut String) {
    let seconds = micros / 1_000_000;
    push(out, format_args!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    fraction(micros % 1_000_000, out);
}

fn fraction(micros: i64, out: &mut String) {
    if micros != 0 {
        let digits = format!("{:06}", micros.abs());
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
}

fn timestamp(micros: i64, zone: &str, out: &mut String) {
    const DAY: i64 = 86_400_000_000;
    if let Some(end) = End::of_micros(micros) {
        return out.push_str(end.text());
    }
    let era = day(micros.div_euclid(DAY), out);
    out.push(' ');
    time(micros.rem_euclid(DAY), out);
    out.push_str(zone);
    if era == Era::BeforeChrist {
        out.push_str(" BC");
    }
}

/// `1 year 2 mons 3 days 04:05:06`. What is positive after something negative has a sign.
fn interval(months: i32, days: i32, micros: i64, out: &mut String) {
    let start = out.len();
    let mut after_negative = false;
    let mut part = |count: i32, one: &str, many: &str| {
        if count != 0 {
            if out.len() > start {
                out.push(' ');
            }
            let sign = if after_negative && count > 0 { "+" } else { "" };
            push(out, format_args!("{sign}{count} {}", if count == 1 { one } else { many }));
            after_negative = count < 0;
        }
    };
    part(months / 12, "year", "years");
    part(months % 12, "mon", "mons");
    part(days, "day", "days");
    if micros != 0 || out.len() == start {
        if out.len() > start {
            out.push(' ');
        }
        if micros < 0 {
            out.push('-');
        } else if after_negative {
            out.push('+');
        }
        let micros = micros.unsigned_abs() as i64;
        time(micros, out);
    }
}

/// A printer of what is within a list or a record, where booleans are letters.
fn inner_printer(array: &ArrayRef) -> Printer<'_> {
    match array.as_boolean_opt() {
        Some(values) => Box::new(move |row, out| out.push(if values.value(row) { 't' } else { 'f' })),
        None => printer(array),
    }
}

/// `{1,NULL,"a b"}`.
fn list(values: &ArrayRef, out: &mut String) {
    let nested = matches!(values.data_type(), DataType::List(_) | DataType::LargeList(_));
    let print = inner_printer(values);
    out.push('{');
    for row in 0..values.len() {
        if row > 0 {
            out.push(',');
        }
        if is_null(values, row) {
            out.push_str("NULL");
            continue;
        }
        let mut text = String::new();
        print(row, &mut text);
        let plain = nested
            || !(text.is_empty()
                || text.eq_ignore_ascii_case("null")
                || text.contains(|c: char| ",{}\"\\".contains(c) || is_space(c)));
        quote(&text, plain, out);
    }
    out.push('}');
}

/// `(1,,"a b")`.
fn record(columns: &[ArrayRef], row: usize, out: &mut String) {
    out.push('(');
    for (i, column) in columns.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        if !is_null(column, row) {
            let mut text = String::new();
            inner_printer(column)(row, &mut text);
            match text.is_empty() || text.contains(|c: char| ",()\"\\".contains(c) || is_space(c)) {
                // (In records what has a meaning is written twice.)
                true => push(out, format_args!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\""))),
                false => out.push_str(&text),
            }
        }
    }
    out.push(')');
}

fn quote(text: &str, plain: bool, out: &mut String) {
    if plain {
        out.push_str(text);
    } else {
        out.push('"');
        out.push_str(&text.replace('\\', "\\\\").replace('"', "\\\""));
        out.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut String)) -> String {
        let mut out = String::new();
        write(&mut out);
        out
    }

    #[test]
    fn floats_print_as_in_postgresql() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.5, "1.5"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (1.25e-5, "1.25e-05"),
            (1e300, "1e+300"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(text(|out| float64(value, out)), expected);
        }
        assert_eq!(text(|out| float32(0.1, out)), "0.1");
        assert_eq!(text(|out| float32(0.0001, out)), "0.0001");
    }

    #[test]
    fn dates_and_times_print_in_iso_form() {
        assert_eq!(text(|out| date(0, out)), "1970-01-01");
        assert_eq!(text(|out| date(11_016, out)), "2000-02-29");
        assert_eq!(text(|out| date(-719_163, out)), "0001-12-31 BC");
        assert_eq!(text(|out| timestamp(-1, "", out)), "1969-12-31 23:59:59.999999");
        assert_eq!(text(|out| timestamp(-719_163 * 86_400_000_000, "+00", out)), "0001-12-31 00:00:00+00 BC");
        assert_eq!(text(|out| timestamp(1_356_998_400_500_000, "", out)), "2013-01-01 00:00:00.5");
    }

    #[test]
    fn intervals_print_their_parts() {
        assert_eq!(text(|out| interval(14, 3, 14_706_000_000, out)), "1 year 2 mons 3 days 04:05:06");
        assert_eq!(text(|out| interval(0, 0, 0, out)), "00:00:00");
        assert_eq!(text(|out| interval(0, 1, -1_500_000, out)), "1 day -00:00:01.5");
        assert_eq!(text(|out| interval(-12, 1, 3_600_000_000, out)), "-1 years +1 day 01:00:00");
    }
}
