//! COPY's formats: text, csv and binary, as PostgreSQL has them.
//!
//! Law: what [`encode`] writes, [`decode`] reads as the same values. Rows go through in blocks;
//! neither direction holds the whole text. Errors name the line and the column.
//!
//! Reading order: [`options`], [`line_ends`], [`values`] (of a line), [`decode`] (bytes to rows),
//! [`lines`], [`encode`] (rows to bytes), [`binary`] (values in the binary format).

pub(crate) mod binary;
pub(crate) mod decode;
pub(crate) mod encode;
#[cfg(test)]
mod fuzz;
mod line_ends;
pub(crate) mod lines;
pub(crate) mod options;
mod values;
