//! Functors: what they compute, row by row of plain values.
//!
//! Law: `+ - * / %` of numbers are the engine's own arithmetic, whose overflow and division by zero
//! are row errors; all else is here. A value that does not exist (a text that is no number, a power
//! out of range) is a row error too. NULL in, NULL out.
//!
//! Source: the functors of Souffle's language reference. Departures: numbers have 64 bits and do
//! not wrap around, lengths and positions count characters, and `ord` is a hash.
//!
//! Reading order: `kind` (which there are), `compute` (their values), `call` (in plans).

mod call;
mod compute;
mod kind;

pub(crate) use compute::{compile, parse_number, unsigned};
pub(crate) use kind::Functor;
