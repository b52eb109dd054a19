//! What comes back from a statement, wherever it runs.

use anabranch_engine::{Error, Rows};
use arrow::{array::RecordBatch, datatypes::SchemaRef};

use crate::data::Wanted;

/// What comes back from a statement. Replies arrive in order, and the last one is
/// [`Reply::Finished`].
pub(crate) enum Reply {
    Rows(Rows),
    /// A COPY wants rows from where the statement was typed.
    Wants(Wanted),
    /// A subscription began; its changes follow.
    Subscribed(SchemaRef),
    Changes(RecordBatch),
    /// All changes before this time were given.
    Complete(i64),
    /// Done, with a command tag if there is something to tell.
    Finished(Result<Option<Done>, Error>),
}

/// What a statement without rows did.
pub(crate) struct Done {
    pub tag: String,
    pub detail: Option<String>,
}
