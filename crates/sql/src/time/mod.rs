//! Dates, times and intervals: the calendar, what texts say, and what templates write.
//!
//! The modules up to `datetime_input` know no Arrow: they take and give numbers and texts, and were
//! compared with PostgreSQL 15 over random values (decision: its answers are the law, also where
//! they are odd).
//!
//! Reading order: `calendar`, `interval` (arithmetic), `tokens`, `interval_input`, `datetime_input`
//! (texts to values), `template`, `to_char`, `from_char`, `number_template`, `percent` (templates),
//! `shown` (columns by templates), `functions` (the same as SQL functions), `literal` (on the
//! syntax tree), `columns` and `moments` (on columns).

pub(crate) mod calendar;
pub(crate) mod columns;
pub(crate) mod datetime_input;
mod from_char;
pub(crate) mod functions;
pub(crate) mod interval;
pub(crate) mod interval_input;
pub(crate) mod literal;
pub mod moments;
pub(crate) mod number_template;
mod percent;
pub(crate) mod precision;
mod shown;
mod template;
mod to_char;
pub(crate) mod tokens;
