//! `numeric` without a scale: numbers of any number of digits, as PostgreSQL has them.
//!
//! A column of them is of Arrow's type [`TYPE`], which no other column has: foreign columns of that
//! type become views of bytes where they enter. Its bytes have the order and the equality of the
//! numbers ([`encode`]), so that hashes, joins, groups and sorts take them for bytes. Zeros at the
//! end of a number's places are not kept: they are not part of its value.
//!
//! Decimals of a declared scale are not of this type, and cost nothing here: see
//! [`types`](crate::types).
//!
//! Reading order: `whole` (digits), `number` (arithmetic), `functions`, `text`, `encoding`,
//! `column`.

mod column;
mod encoding;
mod functions;
mod number;
mod places;
#[cfg(test)]
mod tests;
mod text;
mod whole;

use arrow::datatypes::DataType;

pub use column::{Builder, Reader, encoded, map, map_pairs, number_of};
pub use encoding::{decode, encode, encode_decimal};
pub use number::{Fault, Finite, Number, Outcome};
pub use places::NumericPlaces;
pub use text::{Unreadable, from_float, parse, to_f64, write};
pub use whole::Whole;

/// The type of columns of numbers.
pub const TYPE: DataType = DataType::LargeBinary;
