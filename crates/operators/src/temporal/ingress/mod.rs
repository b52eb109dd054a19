//! How rows become an orderly stream of events: disorder, late rows, punctuation.
//!
//! ```text
//!     drop, latency 0:        in   y@9   x@5   z@11               out   y@9   z@11                      (x dropped)
//!     adjust, latency 0:      in   start y@9   start x@5   end x@20 of 5
//!                             out  start y@9   start x@9   end x@20 of 9
//!     reorder latency 10:     in   c@30  b@25  a@20  d@41         out   a@20  b@25  c@30                 (d waits)
//! ```
//!
//! Law: what is let through is in order of sync time within a partition, and never before a
//! punctuation of the partition or a low watermark that was given. Without partitions there is one.
//! Nothing is left out or changed silently: it is counted, and reported if asked for.
//!
//! *Current time* of a partition is the greatest time that was let through or promised. A row is
//! late when its time is before that. With a reorder latency L, rows wait until a row L ticks later
//! has come, so rows late by no more than L are put in order. What becomes of late rows is the
//! [`Disorder`] policy's: an error; dropped, with the end edge of a dropped start edge; or moved to
//! the current time, where a late interval that is over by then is dropped, and the end edge of a
//! moved start edge is told of the new start, in order of arrival. An end edge that would then end
//! no later than its event begins ends it one tick after.
//!
//! Punctuation of a period p: before a row is let through at t, at the last multiple of p at or
//! before t, if that is p or more after the last punctuation (of any kind, rounded down to p). Low
//! watermarks of a period, for all partitions: when the greatest time seen anywhere, less a lag,
//! has passed p ticks since the last one (rounded down). A partition that says nothing is moved on
//! by low watermarks, as is one not seen yet.
//!
//! State: rows that wait for their latency; a row and a time for every start edge that was dropped
//! or moved, until its end edge comes (none when the input says that it has no end edges); two
//! times a partition until it has been silent from one low watermark to the next. Cost: a pass over
//! the times when all is in order and nothing else is asked for; batches go through uncopied then.
//! Source: Trill's ingress (disorder, punctuation, low watermark and completion policies).

mod late;
mod partition;
mod stream;
mod waiting;

pub use stream::Ingress;

use anabranch_batch::{Batch, Columns, Time};

use super::ticks::FIRST;

/// How an input is brought in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// What becomes of late rows.
    pub disorder: Disorder,
    /// Where time begins: rows before it are late, and rows at it wait for no others.
    pub begin: Time,
    /// Ticks that rows wait for others; not negative.
    pub reorder_latency: i64,
    /// Ticks from one punctuation to the next; positive.
    pub punctuation_period: Option<i64>,
    /// The columns whose values each have a time of their own.
    pub partition: Vec<usize>,
    /// Low watermarks that are generated.
    pub low_watermark: Option<LowWatermark>,
    /// What the end of the input means.
    pub completed: Completed,
    /// Whether end edges may come.
    pub ends: IngressEnds,
    /// Whether rows that were dropped or moved are kept for [`Ingress::take_report`].
    pub report: bool,
}

/// What becomes of late rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Disorder {
    /// They are an error.
    Error,
    /// They are left out.
    Drop,
    /// They are moved to the current time.
    Adjust,
}

/// Low watermarks that follow the greatest time seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LowWatermark {
    /// Ticks from one to the next; positive.
    pub period: i64,
    /// Ticks that they stay behind; not negative.
    pub lag: i64,
}

/// What the end of the input means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Completed {
    /// Nothing: rows that wait are lost, and time stands still.
    Nothing,
    /// Rows that wait are let through, and time is promised up to the last of them.
    Flush,
    /// As [`Completed::Flush`], and no row will ever come: time goes to its end.
    Close,
}

/// Whether end edges may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IngressEnds {
    /// Yes, so late start edges are remembered until they end.
    Expected,
    /// No.
    Never,
}

impl Default for Policy {
    /// Rows in order; anything else is an error. The end of the input closes it.
    fn default() -> Policy {
        Policy {
            disorder: Disorder::Error,
            begin: FIRST,
            reorder_latency: 0,
            punctuation_period: None,
            partition: Vec::new(),
            low_watermark: None,
            completed: Completed::Close,
            ends: IngressEnds::Expected,
            report: false,
        }
    }
}

/// What is let through.
#[derive(Clone, Debug)]
pub enum Item {
    /// Events, each partition's in order of time.
    Rows(Batch),
    /// No row of a partition (one row of its columns; none without partitions) will come before the
    /// time.
    Punctuation(Columns, Time),
    /// No row at all will come before the time.
    LowWatermark(Time),
}

/// A row that came too late, under [`Disorder::Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// Which row of the batch. Those before it were let in, it and those after were not.
    pub row: usize,
    /// Its time.
    pub time: Time,
    /// What its time must not be before.
    pub current: Time,
}

/// What has been left out or changed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngressCounts {
    /// Rows dropped.
    pub dropped: u64,
    /// Rows moved in time.
    pub adjusted: u64,
}

#[cfg(test)]
mod tests;
