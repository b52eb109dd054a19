//! A session whose tables survive: what is recorded, and how a database opens.
//!
//! Law: what was acknowledged is there after any stop, once and whole; what was refused is not. An
//! answer, a read as well as a write, shows only commits that last, but for those that were made
//! with `durability = relaxed`.
//!
//! ```text
//!   recorded       statements that make objects, in one order with commits of rows; facts beside them
//!   not recorded   state of operators, indexes and views: they are computed anew from rows
//! ```
//!
//! Cost of a commit: its rows are written once, as they lie in memory; its answer waits for a sync
//! that other commits share. Cost of opening: rows are read once and arranged as if they had come
//! in one commit; views over them are then installed as views over rows that are there already. The
//! choices are in decisions 0037 and 0040.
//!
//! Reading order: [`keeper`] (commits to the log), [`facts`] (small values beside rows),
//! [`restore`] (opening), [`dump`] (a database as a script).

mod dump;
mod facts;
mod keeper;
mod restore;

pub use dump::{DumpOptions, SourceRows, dump, dump_on, dump_with};
pub(super) use facts::{COLUMNS, COUNTERS, DEFINITION, RETAIN_HISTORY, SOURCE, WATERMARK, columns_value};
