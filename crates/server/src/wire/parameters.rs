//! Values of parameters, as clients send them.

use std::sync::Arc;

use anabranch_batch::TextLimit;
use anabranch_engine::Error;
use anabranch_engine::binary::read::{Misread, read, text};
use anabranch_sql::pg_types::{PgType, oid};
use anabranch_sql::{input, sql_name};
use arrow::array::{Array, ArrayRef, AsArray, ListArray};
use arrow::datatypes::{DataType, Field};
use datafusion_common::ScalarValue;

/// A value for `$n`, of the type that the statement `wants`. `declared` is the type that the client
/// named, 0 if it named none.
///
/// # Errors
/// `Data` for a value that is not of the type.
pub(crate) fn value(
    n: usize,
    bytes: Option<&[u8]>,
    format: i16,
    declared: u32,
    wants: &Field,
) -> Result<ScalarValue, Error> {
    let wanted = wants.data_type();
    let Some(bytes) = bytes else {
        return ScalarValue::try_from(wanted).map_err(|error| Error::internal(format!("a NULL for ${n}: {error}")));
    };
    let told = match declared {
        0 | oid::UNKNOWN => PgType::of(wants).oid,
        declared => declared,
    };
    let given = match format {
        0 => text(bytes),
        _ => read(told, bytes),
    };
    let given = given.map_err(|problem| misread(n, problem))?;
    // (Whatever a client declares, it is a uuid to a column of these.)
    let form = match PgType::of(wants).oid {
        of @ (oid::UUID | oid::UUID_ARRAY) => of,
        _ => told,
    };
    let fits = in_form(n, fitted(n, &given, wanted)?, form, wanted)?;
    ScalarValue::try_from_array(&fits, 0).map_err(|error| Error::internal(format!("the value of ${n}: {error}")))
}

fn fitted(n: usize, given: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, Error> {
    if given.data_type() == wanted {
        return Ok(given.clone());
    }
    let given = match (given.data_type(), wanted) {
        // (Plain numerics are read from text, as users write them.)
        (DataType::LargeBinary, _) => anabranch_sql::output::shown_column(given),
        _ => given.clone(),
    };
    if !is_of_kind(given.data_type(), wanted) {
        let problem = format!("a value of type {} is no {}", sql_name(given.data_type()), sql_name(wanted));
        return Err(misfit(n, wanted, &problem).with_sqlstate("42804"));
    }
    if let DataType::List(_) = wanted
        && let DataType::List(_) = given.data_type()
    {
        return arrow::compute::cast(&given, wanted).map_err(|error| misfit(n, wanted, &error.to_string()));
    }
    input::convert(&given, wanted).map_err(|problem| misfit(n, wanted, &problem))
}

/// Whether a value may be meant for the type: a number is no moment, bytes are nothing else (they
/// may have a NUL, which no text has), and a list is one of such values. (Texts are read.)
fn is_of_kind(given: &DataType, wanted: &DataType) -> bool {
    match (given, wanted) {
        (DataType::Null | DataType::Utf8View, _) => true,
        (DataType::List(given), DataType::List(wanted)) => is_of_kind(given.data_type(), wanted.data_type()),
        (DataType::List(_), wanted) => matches!(wanted, DataType::Utf8View),
        (_, DataType::List(_)) => false,
        (DataType::BinaryView, wanted) => matches!(wanted, DataType::BinaryView),
        (given, wanted) => given.is_temporal() || !wanted.is_temporal(),
    }
}

/// Uuids, and lists of them, in the form in which columns keep them.
fn in_form(n: usize, value: ArrayRef, of: u32, wanted: &DataType) -> Result<ArrayRef, Error> {
    let formed = |texts: &ArrayRef| {
        let (formed, misfits) = TextLimit::Uuid.fit_column(texts);
        match misfits.first() {
            Some(at) => Err(misfit(n, wanted, &TextLimit::Uuid.misfit(texts.as_string_view().value(*at)))),
            None => Ok(formed),
        }
    };
    let is_text = |of: &DataType| matches!(of, DataType::Utf8View);
    if of == oid::UUID && is_text(value.data_type()) {
        return formed(&value);
    }
    let lists = value.as_list_opt::<i32>().filter(|lists| of == oid::UUID_ARRAY && is_text(lists.values().data_type()));
    let (Some(lists), DataType::List(element)) = (lists, value.data_type()) else { return Ok(value) };
    let elements = formed(lists.values())?;
    let lists = ListArray::new(Arc::clone(element), lists.offsets().clone(), elements, lists.nulls().cloned());
    Ok(Arc::new(lists))
}

fn misfit(n: usize, wanted: &DataType, problem: &str) -> Error {
    Error::data(problem.to_owned())
        .with_sqlstate(if problem.contains("out of range") { "22003" } else { "22P02" })
        .with_detail(format!("This is the value of parameter ${n}, which is of type {}.", sql_name(wanted)))
}

fn misread(n: usize, problem: Misread) -> Error {
    match problem {
        Misread::Malformed => {
            Error::data(format!("incorrect binary data format in bind parameter {n}")).with_sqlstate("22P03")
        }
        Misread::NoText => Error::data(format!("the value of parameter ${n} is not UTF-8 text")).with_sqlstate("22021"),
        Misread::Dimensions => Error::invalid(format!("parameter ${n} is an array of several dimensions"))
            .with_sqlstate("0A000")
            .with_hint("Send it as text."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_read_in_the_form_of_columns_whatever_is_declared() {
        let field = TextLimit::Uuid.declare(Field::new("", DataType::Utf8View, true));
        let kept = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for declared in [0, oid::TEXT, oid::UUID] {
            let given = value(1, Some(b"A0EEBC999C0B4EF8BB6D6BB9BD380A11"), 0, declared, &field).unwrap();
            assert_eq!(given, ScalarValue::Utf8View(Some(kept.to_owned())));
            let error = value(1, Some(b"no uuid"), 0, declared, &field).unwrap_err();
            assert_eq!(error.sqlstate(), "22P02", "{error}");
        }
    }

    #[test]
    fn bytes_that_are_no_value_are_refused() {
        for (of, bytes) in [
            (oid::INT4, &b"\0\0\0"[..]),
            (oid::NUMERIC, b"\0\x01\0\0\0\0\0\0"),
            (oid::NUMERIC, b"\0\x01\0\0\0\0\0\0\x27\x10"),
            (1007, b"\0\0\0\x01\0\0\0\0\0\0\0\x17\x7f\xff\xff\xff\0\0\0\x01"),
            (1007, b"\0\0"),
        ] {
            let error = value(2, Some(bytes), 1, of, &Field::new("", DataType::Int32, true)).unwrap_err();
            assert_eq!(error.sqlstate(), "22P03", "{error}");
        }
        for bytes in [&b"\0"[..], b"a text"] {
            let error = value(1, Some(bytes), 1, oid::BYTEA, &Field::new("", DataType::Utf8View, true)).unwrap_err();
            assert_eq!(error.sqlstate(), "42804", "{error}");
        }
        let error = value(1, Some(b"x"), 0, 0, &Field::new("", DataType::Int32, true)).unwrap_err();
        assert_eq!((error.sqlstate(), error.message.contains("integer")), ("22P02", true), "{error}");
    }
}
