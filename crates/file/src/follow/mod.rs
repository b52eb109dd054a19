//! Files that grow, and files that are new: a source without an end.
//!
//! Law: each complete line of a text, and each row of a complete Parquet or packed file, is given
//! once, also across restarts. A text's line is complete once its end is written. A Parquet file is
//! complete once its footer stands at its end; a packed text once it was not written for one
//! interval. Neither grows afterwards. A file in which other bytes stand where reading stopped,
//! that is shorter, or that was complete and has another size, is an error. A file that is gone is
//! forgotten: one that comes under its name later is a new one.
//!
//! Order: the files of one look are read in the order of their names, each as far as it was at the
//! look. Cost: one look an interval, a system call for each file; a text that has grown is opened
//! anew. What is known of each file ([`places`]) is kept with the rows.

mod places;
mod reader;

pub(crate) use reader::FollowReader;

/// Files of one source, at most: the place of each is kept with each commit.
pub(crate) const FILES_MAX: usize = 10_000;
