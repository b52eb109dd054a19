//! Values in the binary format of COPY.
//!
//! A value is read as its text, which is then read like that of the other formats. Records are
//! written only.

use anabranch_sql::output::printer;
use anabranch_sql::pg_types::{PgType, oid};
use arrow::datatypes::Field;

use crate::binary::read::read;

/// What every file begins with.
pub(super) const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// The text of a value of that column; `None` if the bytes are none.
pub(super) fn text_of(bytes: &[u8], field: &Field) -> Option<Vec<u8>> {
    let of = match PgType::of(field).oid {
        // (A query tells what it computes of a uuid or a document as text, and COPY .. TO writes it
        // so.)
        oid::UUID if bytes.len() != 16 => oid::TEXT,
        oid::JSONB if bytes.first() != Some(&1) => oid::TEXT,
        of => of,
    };
    // The types of most columns need no column of one row.
    match of {
        oid::INT2 => return Some(i16::from_be_bytes(bytes.try_into().ok()?).to_string().into_bytes()),
        oid::INT4 => return Some(i32::from_be_bytes(bytes.try_into().ok()?).to_string().into_bytes()),
        oid::INT8 => return Some(i64::from_be_bytes(bytes.try_into().ok()?).to_string().into_bytes()),
        oid::TEXT | oid::VARCHAR => return Some(bytes.to_vec()),
        _ => {}
    }
    let value = anabranch_sql::output::shown_column(&read(of, bytes).ok()?);
    let mut text = String::new();
    printer(&value)(0, &mut text);
    Some(text.into_bytes())
}
