//! Random messages, and messages that coverage leads to (`cargo bolero test`, `make soak`): reading
//! never panics, and makes no more memory than the message has.

use anabranch_batch::TextLimit;
use anabranch_engine::binary::write::{text_writer, value, writer};
use anabranch_sql::output::shown_column;
use anabranch_sql::pg_types::PgType;
use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};

use super::message::{Bind, Message, parse};
use super::parameters;
use crate::scram::{Exchange, Verifier};

/// Bytes that a message holds, about.
fn n_bytes(message: &Message) -> usize {
    match message {
        Message::Query(sql) | Message::CopyFail(sql) => sql.len(),
        Message::Parse { name, sql, types } => name.len() + sql.len() + types.len() * 4,
        Message::Bind(Bind { portal, statement, formats, values, answer_formats }) => {
            let values: usize = values.iter().map(|value| 4 + value.as_ref().map_or(0, Vec::len)).sum();
            portal.len() + statement.len() + 2 * (formats.len() + answer_formats.len()) + values
        }
        Message::CopyData(bytes) | Message::Password(bytes) => bytes.len(),
        _ => 0,
    }
}

#[test]
fn any_bytes_may_be_a_message() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let Some((letter, body)) = bytes.split_first() else { return };
        if let Ok(message) = parse(*letter, body) {
            assert!(n_bytes(&message) <= body.len(), "{message:?}");
        }
    });
}

/// Types of parameters, as statements want them.
fn wanted_types() -> Vec<DataType> {
    let list = |of: DataType| DataType::List(Field::new_list_field(of, true).into());
    vec![
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt32,
        DataType::Float32,
        DataType::Float64,
        DataType::Boolean,
        DataType::Utf8View,
        DataType::BinaryView,
        DataType::Date32,
        DataType::Decimal128(10, 2),
        DataType::Decimal128(38, 0),
        DataType::LargeBinary,
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Time64(TimeUnit::Microsecond),
        DataType::Interval(IntervalUnit::MonthDayNano),
        list(DataType::Int32),
        list(DataType::Int64),
        list(DataType::Utf8View),
        list(DataType::Float64),
        list(DataType::Date32),
        list(DataType::Timestamp(TimeUnit::Microsecond, None)),
    ]
}

/// What clients may declare: unknown, bool, bytea, bigint, smallint, integer, text, oid, json,
/// real, double, varchar, dates and times, interval, numeric, uuid, jsonb, and arrays of these.
const DECLARED: [u32; 38] = [
    0, 16, 17, 20, 21, 23, 25, 26, 114, 700, 701, 1043, 1082, 1083, 1114, 1184, 1186, 1700, 2950, 3802, 1000, 1001,
    1005, 1007, 1009, 1015, 1016, 1021, 1022, 1028, 1115, 1182, 1183, 1185, 1187, 1231, 2951, 3807,
];

/// A value that was read can be shown, and sent in both formats; in binary it is read as itself.
fn sent_again(given: &datafusion_common::ScalarValue, wanted: &Field) {
    let column = given.to_array().unwrap();
    let shown = shown_column(&column);
    if !given.is_null() {
        text_writer(&shown)(0, &mut Vec::new()).unwrap();
    }
    let of = PgType::of(wanted).oid;
    let Ok(write) = writer(&column, of, false) else { return };
    let mut bytes = Vec::new();
    value(&column, &write, 0, &mut bytes).unwrap();
    let sent = (!given.is_null()).then_some(&bytes[4..]);
    let read = parameters::value(1, sent, 1, of, wanted).unwrap();
    assert_eq!(read, *given);
}

#[test]
fn any_bytes_may_be_the_value_of_a_parameter() {
    let mut types: Vec<Field> = wanted_types().into_iter().map(|is| Field::new("", is, true)).collect();
    types.push(TextLimit::Uuid.declare(Field::new("", DataType::Utf8View, true)));
    bolero::check!().for_each(|bytes: &[u8]| {
        let Some(([wanted, told, format], value)) = bytes.split_first_chunk::<3>() else { return };
        let wanted = &types[usize::from(*wanted) % types.len()];
        // (Often the type that the statement wants, too.)
        let told = match *told {
            128.. => PgType::of(wanted).oid,
            told => DECLARED[usize::from(told) % DECLARED.len()],
        };
        if let Ok(given) = parameters::value(1, Some(value), i16::from(format % 2), told, wanted) {
            assert_eq!(given.data_type(), *wanted.data_type());
            sent_again(&given, wanted);
        }
    });
}

#[test]
fn any_texts_may_be_an_exchange_of_passwords() {
    let verifier = Verifier::make("secret").unwrap();
    bolero::check!().for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let _ = Verifier::parse(&text);
        let (first, last) = text.split_once('\n').unwrap_or((&text, ""));
        if let Ok((exchange, told)) = Exchange::begin(verifier.clone(), first) {
            let nonce = told[2..].split(',').next().unwrap();
            // The right header and nonce in front, so that proofs are reached.
            let last = last.replace("NONCE", nonce);
            assert!(!matches!(exchange.finish(&last), Ok(Some(_))), "a password was guessed");
        }
    });
}
