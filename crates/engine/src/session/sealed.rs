//! A commit that is complete, and not visible yet.
//!
//! Rows are gathered, sealed, recorded, pushed: between the second and the third step nothing of a commit is known to workers, and all of it
//! is here. A change of the catalog is sealed as well, so commits and definitions have one order.

use anabranch_batch::{Batch, Time};

use crate::catalog::{Created, ObjectId};
use crate::cluster::CollectionId;
use crate::error::Error;

/// Keeps what is sealed, before anybody sees it.
pub trait Recorder: Send {
    /// Takes note of a commit or a change of the catalog, in their order.
    ///
    /// # Errors
    /// When it cannot be kept: the commit is dropped then, and its statement fails with this error.
    fn record(&mut self, sealed: &Sealed) -> Result<(), Error>;
}

/// All that one commit changes. Objects go, objects come, rows change, in this order.
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
    /// The input of the relation that holds it.
    pub collection: CollectionId,
    /// What that relation's rows become.
    pub changes: Batch,
}

impl Sealed {
    /// Updates in all.
    pub fn n_updates(&self) -> usize {
        let marks = self.marks.iter().map(|mark| mark.changes.len());
        self.rows.iter().map(|rows| rows.batch.len()).chain(marks).sum()
    }
}
