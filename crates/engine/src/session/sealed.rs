//! A commit that is complete, and not visible yet.
//!
//! Rows are gathered, sealed, recorded, pushed. Between the second and the third step no worker
//! knows of the commit, and all of it is here. A change of the catalog is sealed as well, so
//! commits and definitions have one order.

use std::fmt;
use std::sync::Arc;

use anabranch_batch::{Batch, Time};
use anabranch_store::{Durability, Statistics};

use crate::catalog::{Created, ObjectId};
use crate::cluster::CollectionId;
use crate::error::Error;

/// Keeps what is sealed, before readers see it.
pub trait Recorder: Send {
    /// Takes note of a commit or a change of the catalog, in their order.
    ///
    /// # Errors
    /// When it cannot be kept: the commit is dropped then, and its statement fails with this error.
    fn record(&mut self, sealed: &Sealed) -> Result<(), Error>;

    /// Tells when all that was recorded with [`Durability::Full`] lasts.
    fn receipt(&self) -> Receipt {
        Receipt::default()
    }

    /// What was written so far, where it is known.
    fn statistics(&self) -> Option<Statistics> {
        None
    }
}

/// All that one commit changes. Objects go, objects come, rows change, facts change, in this order.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// The least time of its rows.
    pub first: Time,
    /// Its time: reads as of this one see all of it.
    pub time: Time,
    /// Objects that are gone.
    pub removed: Vec<ObjectId>,
    /// Objects that are new, in the order in which they can be made again.
    pub created: Vec<Created>,
    /// Changes of tables' and sources' rows.
    pub rows: Vec<SealedRows>,
    /// Moves of watermarks, which follow from the rows that came.
    pub marks: Vec<SealedMark>,
    /// Small values that are kept beside the rows.
    pub facts: Vec<SealedFact>,
    /// When the commit counts as done.
    pub durability: Durability,
}

/// Changes of one relation's rows.
#[derive(Clone, Debug)]
pub struct SealedRows {
    /// The table or source.
    pub object: ObjectId,
    /// Its input.
    pub collection: CollectionId,
    /// Updates with times from [`Sealed::first`] to [`Sealed::time`].
    pub batch: Batch,
}

/// The move of one watermark.
#[derive(Clone, Debug)]
pub struct SealedMark {
    /// The table or source that has it.
    pub object: ObjectId,
    /// The input whose rows it bounds.
    pub input: CollectionId,
    /// The input of the relation that holds it.
    pub collection: CollectionId,
    /// What that relation's rows become.
    pub changes: Batch,
}

/// A small value: where a source stands, how far a watermark is, a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedFact {
    /// The object that the value belongs to; object 0 is the database.
    pub object: ObjectId,
    /// What the value is.
    pub name: &'static str,
    /// The value as it is kept.
    pub value: Vec<u8>,
}

impl Sealed {
    /// Whether only the time goes on: no reader of the log needs it.
    pub(crate) fn is_tick(&self) -> bool {
        self.removed.is_empty() && self.created.is_empty() && self.rows.is_empty() && self.facts.is_empty()
    }

    /// A commit at one time that changes nothing yet.
    pub(crate) fn at(time: Time, durability: Durability) -> Sealed {
        Sealed {
            first: time,
            time,
            removed: vec![],
            created: vec![],
            rows: vec![],
            marks: vec![],
            facts: vec![],
            durability,
        }
    }

    /// Updates in all.
    pub fn n_updates(&self) -> usize {
        let marks = self.marks.iter().map(|mark| mark.changes.len());
        self.rows.iter().map(|rows| rows.batch.len()).chain(marks).sum()
    }
}

/// What an answer waits for, since an answer shows only what lasts. Without a promise it waits for
/// nothing.
#[derive(Clone, Default)]
pub struct Receipt(Option<Arc<dyn Promise>>);

/// What is called when something lasts, or when it is unknown whether it does.
pub(crate) type LastingCall = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// Something that will last.
pub trait Promise: Send + Sync {
    /// Returns when it does.
    ///
    /// # Errors
    /// When it is unknown whether it will.
    fn wait(&self) -> Result<(), Error>;

    /// Whether [`then`](Self::then) returns at once.
    fn calls_back(&self) -> bool {
        false
    }

    /// Has `call` called when it does, on some thread; `call` does not wait. Unless said otherwise
    /// that is after a wait here.
    fn then(&self, call: LastingCall) {
        call(self.wait());
    }
}

impl Receipt {
    /// The receipt of a promise.
    pub fn new(promise: Arc<dyn Promise>) -> Receipt {
        Receipt(Some(promise))
    }

    /// Whether something is waited for that calls back.
    pub(crate) fn calls_back(&self) -> bool {
        self.0.as_ref().is_some_and(|promise| promise.calls_back())
    }

    /// Has `call` called once everything that was recorded before lasts; see [`Promise::then`].
    pub(crate) fn then(&self, call: LastingCall) {
        match &self.0 {
            Some(promise) => promise.then(call),
            None => call(Ok(())),
        }
    }

    /// Returns when everything that was recorded before lasts.
    ///
    /// # Errors
    /// When it is unknown whether it does.
    pub fn wait(&self) -> Result<(), Error> {
        self.0.as_ref().map_or(Ok(()), |promise| promise.wait())
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Receipt(waits)" } else { "Receipt(lasts)" })
    }
}
