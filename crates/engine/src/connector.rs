//! What an adapter to an outside system must offer.
//!
//! A [`Connector`] is registered under a name with
//! [`Session::register_connector`](crate::Session::register_connector); `CREATE SOURCE .. WITH
//! (connector = 'name', ..)` opens a [`SourceReader`] with the remaining options, and the session
//! polls it turn by turn. Readers never block for long: a reader without rows says
//! [`Poll::Pending`].
//!
//! The session itself handles `connector`, `rate` and `retain`; all other options are the
//! connector's, which refuses those it does not know (see [`unknown_option`]).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, SchemaRef};

pub use crate::duration::duration_micros;
use crate::error::{Error, of_file};
use crate::nearest::nearest;

/// Opens readers of one kind of outside system.
pub trait Connector: Send + Sync {
    /// Opens a reader. Checks every option and reaches the outside system far enough to know the
    /// schema.
    ///
    /// # Errors
    /// `Invalid` for options that are unknown, missing or contradict each other, `Unavailable` when
    /// the system does not answer or the file is not there, `Data` when what is there cannot be
    /// read.
    fn open(&self, spec: &SourceSpec) -> Result<Box<dyn SourceReader>, Error>;

    /// What the source holds, in words that differ whenever a reader that starts anew could give
    /// other rows. `None` when rows can be read only once. A source with an edition keeps no row
    /// until a query needs rows that have passed: they are read again.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn edition(&self, spec: &SourceSpec) -> Result<Option<String>, Error> {
        let _ = spec;
        Ok(None)
    }

    /// The files that a `COPY` reads as text, csv or in the binary format, in order; at least one.
    /// `None` of a connector whose rows are not those of files.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn files(&self, spec: &SourceSpec) -> Result<Option<Vec<PathBuf>>, Error> {
        let _ = spec;
        Ok(None)
    }

    /// The bytes of such a file, unpacked.
    ///
    /// # Errors
    /// `Unavailable` when the file cannot be read.
    fn content(&self, file: &Path) -> Result<Box<dyn Read + Send>, Error> {
        plain_content(file)
    }

    /// Opens a reader that goes on where another of the same options had told that it was. Its rows
    /// are those that the other one had not given yet, each once.
    ///
    /// # Errors
    /// As [`open`](Self::open), and `Unavailable` or `Data` when reading cannot go on there: says
    /// why. Nothing is left out or given twice in silence.
    fn resume(&self, spec: &SourceSpec, position: &str) -> Result<Box<dyn SourceReader>, Error> {
        let _ = (spec, position);
        Err(Error::invalid("the connector cannot go on in the middle of a source"))
    }
}

/// What a `CREATE SOURCE` or `COPY` asks of a connector.
#[derive(Clone, Debug, Default)]
pub struct SourceSpec {
    /// Catalog name of the source or table, for messages.
    pub name: String,
    /// Declared columns, in order; empty asks the connector to find them.
    pub columns: Vec<Field>,
    /// The connector's options: lower-case name and value.
    pub options: BTreeMap<String, String>,
}

/// Reads one source from its beginning to its end, if it has one.
pub trait SourceReader: Send {
    /// The columns of every batch that [`poll`](Self::poll) yields. Fixed for the reader's life.
    fn schema(&self) -> SchemaRef;

    /// Columns that are read from here on; the reader may give NULL in others. Called before the
    /// first [`poll`](Self::poll), if at all. Which rows come does not depend on these columns.
    ///
    /// # Errors
    /// As [`Connector::open`].
    fn narrow(&mut self, columns: &BTreeSet<usize>) -> Result<(), Error> {
        let _ = columns;
        Ok(())
    }

    /// The next rows, at most `rows_max` of them.
    ///
    /// # Errors
    /// The reader is not polled again; the session keeps what was read before and shows the error.
    fn poll(&mut self, rows_max: usize) -> Result<Poll, Error>;

    /// How far reading has come.
    fn progress(&self) -> ReadProgress;

    /// Where reading goes on after all rows given so far, for [`Connector::resume`]; `None` when
    /// that cannot be told. Asked after each poll of a database in a folder, and kept with the
    /// rows, so it is short.
    fn position(&self) -> Option<String> {
        None
    }

    /// The line of its file at which the rows of the last poll began, from 1; `None` where rows are
    /// no lines.
    fn line(&self) -> Option<u64> {
        None
    }

    /// Whether the source has an end. Statements that wait for sources wait for bounded ones only.
    /// A reader that turns unbounded once it has read what was there at first has them wait for
    /// that.
    fn bounded(&self) -> bool {
        true
    }
}

/// The answer of a reader that was polled.
#[derive(Clone, Debug)]
pub enum Poll {
    /// Further rows, at least one.
    Rows(RecordBatch),
    /// None at the moment; ask again after that time.
    Pending {
        /// How long to wait before the next poll.
        retry_after: Duration,
    },
    /// None any more.
    Done,
}

/// How far a reader has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadProgress {
    /// Bytes consumed so far.
    pub bytes_read: u64,
    /// Bytes in all, when known.
    pub bytes_total: Option<u64>,
    /// Rows yielded so far.
    pub rows: u64,
    /// Rows left out under `on_error = skip`.
    pub skipped: u64,
    /// What was wrong with the first row left out.
    pub first_skipped: Option<String>,
}

/// The error for an option that a connector does not know, naming the nearest one it does.
///
/// ```
/// let error = anabranch_engine::connector::unknown_option("file", "formt", &["path", "format"]);
/// assert_eq!(error.message, "connector \"file\" has no option \"formt\"");
/// assert_eq!(error.hint.as_deref(), Some("Did you mean \"format\"? Known options: path, format."));
/// ```
pub fn unknown_option(connector: &str, option: &str, known: &[&str]) -> Error {
    let list = format!("Known options: {}.", known.join(", "));
    let hint = match nearest(option, known.iter().copied()) {
        Some(name) => format!("Did you mean \"{name}\"? {list}"),
        None => list,
    };
    Error::invalid(format!("connector \"{connector}\" has no option \"{option}\"")).with_hint(hint)
}

/// The bytes of a file as they lie on disk.
pub(crate) fn plain_content(file: &Path) -> Result<Box<dyn Read + Send>, Error> {
    match std::fs::File::open(file) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => Err(of_file(&file.display().to_string(), "read", &error)),
    }
}
