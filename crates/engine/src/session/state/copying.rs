//! A COPY that has begun.

use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_plan::Plan;
use arrow::array::RecordBatch;
use arrow::datatypes::Field;

use crate::catalog::ObjectId;
use crate::copy::decode::Decoder;
use crate::copy::encode::{CopyData, Encoder};
use crate::copy::lines::Lines;
use crate::error::Error;
use crate::session::keys::SeenKeys;
use crate::session::outcome::{Changes, Subscription};
use crate::spool::Spool;

/// Rows that go out at once, at most.
pub(crate) const PIECE_ROWS: usize = 2048;
/// Bytes of a file that are read at once.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// A COPY that waits for its client: [`Outcome::Copy`](crate::Outcome::Copy).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyStart {
    /// Whether the client sends rows (`copy_data`, `copy_done`) or takes them (`copy_rows`).
    pub way: CopyWay,
    /// Whether they are in the binary format.
    pub is_binary: bool,
    /// Columns of a row.
    pub n_columns: usize,
}

/// Which way the rows of a COPY go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyWay {
    /// From the client: `FROM STDIN`.
    In,
    /// To the client: `TO STDOUT`.
    Out,
}

/// A piece of what a COPY .. TO STDOUT gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyRows {
    /// Rows.
    Data(CopyData),
    /// Nothing new within the time.
    Nothing,
    /// All was given.
    Done {
        /// `COPY 3`.
        tag: String,
    },
}

/// A client's COPY that has begun.
pub(crate) enum Copying {
    In(Box<CopyIn>),
    Out(Box<CopyOut>),
}

/// Rows that come in.
pub(crate) struct CopyIn {
    pub(crate) object: ObjectId,
    pub table: String,
    pub fields: Vec<Field>,
    pub decoder: Decoder,
    pub(crate) spool: Spool,
    pub(crate) keys: SeenKeys,
    /// Where the rows of the spool are in the input.
    pub lines: Lines,
    /// What the rows must fulfil that enter.
    pub condition: Option<Arc<Plan>>,
}

/// Rows that go out.
pub(crate) struct CopyOut {
    pub(crate) source: Source,
    pub(crate) encoder: Encoder,
    /// Whether all was written, and only the end is left to be told.
    pub(crate) has_ended: bool,
}

pub(crate) enum Source {
    Rows(VecDeque<RecordBatch>),
    Changes(Subscription),
}

/// What a COPY that goes out does next.
pub(crate) enum Next {
    Given(CopyRows),
    /// It wants changes of this subscription.
    Wants(Subscription),
}

impl std::fmt::Debug for Copying {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Copying::In(_) => "Copying::In",
            Copying::Out(_) => "Copying::Out",
        })
    }
}

impl Copying {
    /// Bytes of rows that it holds in memory.
    pub fn size_bytes(&self) -> usize {
        match self {
            Copying::In(copy) => copy.spool.size_bytes(),
            Copying::Out(copy) => match &copy.source {
                Source::Rows(batches) => batches.iter().map(RecordBatch::get_array_memory_size).sum(),
                Source::Changes(_) => 0,
            },
        }
    }

    /// What it subscribes to.
    pub fn into_subscription(self) -> Option<Subscription> {
        match self {
            Copying::Out(copy) => match copy.source {
                Source::Changes(subscription) => Some(subscription),
                Source::Rows(_) => None,
            },
            Copying::In(_) => None,
        }
    }
}

impl CopyOut {
    pub fn next(&mut self) -> Result<Next, Error> {
        if self.has_ended {
            return Ok(Next::Given(CopyRows::Done { tag: format!("COPY {}", self.encoder.n_rows) }));
        }
        let batch = match &mut self.source {
            Source::Changes(subscription) => return Ok(Next::Wants(subscription.clone())),
            Source::Rows(batches) => batches.pop_front(),
        };
        let mut data = CopyData::default();
        match (batch, &mut self.source) {
            (Some(batch), Source::Rows(batches)) => {
                let n = batch.num_rows().min(PIECE_ROWS);
                if n < batch.num_rows() {
                    batches.push_front(batch.slice(n, batch.num_rows() - n));
                }
                self.encoder.write(&batch.slice(0, n), &mut data)?;
            }
            _ => return Ok(Next::Given(self.finish())),
        }
        Ok(Next::Given(CopyRows::Data(data)))
    }

    /// Writes what the subscription gave.
    pub fn take(&mut self, changes: &Changes) -> Result<CopyRows, Error> {
        let Source::Changes(subscription) = &self.source else {
            return Err(Error::internal("a COPY of rows was given changes"));
        };
        if matches!(changes, Changes::End) {
            return Ok(self.finish());
        }
        let batches = subscription.rows(changes)?;
        if batches.is_empty() {
            return Ok(CopyRows::Nothing);
        }
        let mut data = CopyData::default();
        for batch in &batches {
            self.encoder.write(batch, &mut data)?;
        }
        Ok(CopyRows::Data(data))
    }

    pub(crate) fn finish(&mut self) -> CopyRows {
        let mut data = CopyData::default();
        self.encoder.finish(&mut data);
        self.has_ended = true;
        CopyRows::Data(data)
    }
}

/// The error where no COPY of that way has begun.
pub(crate) fn no_copy() -> Error {
    Error::invalid("no COPY waits for its client").with_sqlstate("08P01")
}
