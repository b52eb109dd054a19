//! The clocks of partitions, and rows that wait for theirs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anabranch_batch::Time;

use crate::temporal::ticks::floor;

/// The clock of one partition.
#[derive(Debug)]
pub(super) struct Partition {
    /// In which order partitions were first seen.
    pub(super) seen: u64,
    /// Hash of its columns, and its row in the store of keys.
    pub(super) hash: u64,
    pub(super) key: u32,
    /// Rows before this are late.
    pub(super) current: Time,
    /// Whether no row has come since the last low watermark.
    pub(super) is_silent: bool,
    /// The greatest time seen.
    pub(super) high: Time,
    /// The last punctuation.
    pub(super) punctuated: Option<Time>,
    /// Rows that wait: time, arrival, and number among all that wait.
    pub(super) waiting: BinaryHeap<Reverse<(Time, u64, u32)>>,
}

impl Partition {
    pub(super) fn new(seen: u64, hash: u64, key: u32, begin: Time) -> Partition {
        Partition {
            seen,
            hash,
            key,
            current: begin,
            high: begin,
            is_silent: false,
            punctuated: None,
            waiting: BinaryHeap::new(),
        }
    }

    /// The next row that waits, if its time is at or before `upto`: its time and number.
    pub(super) fn pop_upto(&mut self, upto: Time) -> Option<(Time, u32)> {
        let Reverse((time, ..)) = self.waiting.peek()?;
        if *time > upto {
            return None;
        }
        self.waiting.pop().map(|Reverse((time, _, number))| (time, number))
    }
}

/// A multiple of `period` to promise before a row at `time`, after `last` was promised.
pub(super) fn due(last: Time, time: Time, period: i64) -> Option<Time> {
    (time.saturating_sub(floor(last, period, 0)) >= period).then(|| floor(time, period, 0))
}
