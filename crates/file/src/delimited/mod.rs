//! Delimited text: CSV and TPC-H `tbl`.
//!
//! A block of a file is split into cells, then each column is parsed from its cells in one tight
//! loop ([`column`]); a row with a bad cell is found in the same pass and never costs the good rows
//! anything. Reading is in [`reader`], the grammar in [`split`], single values in [`values`], the
//! search for names and types in [`discover`].
//!
//! Grammar: RFC 4180 with a free choice of delimiter and quote; lines end with `\n` or `\r\n`;
//! empty lines are passed over. An unquoted cell equal to the option `null` (the empty text unless
//! told otherwise) is NULL; a quoted one never is. In `tbl` there are no quotes and a delimiter
//! also ends each line.

mod column;
mod discover;
mod reader;
mod split;
pub(crate) mod values;

pub(crate) use discover::{Guess, distinct};
pub(crate) use reader::{DelimitedReader, check_columns};
