//! A database: one engine, and connections that many threads use at the same time.
//!
//! Law: as of a [`Session`](crate::Session), seen from every connection: statements take effect one
//! after the other, each connection's in its order, and a read sees all commits that any connection
//! was told of before it began.
//!
//! The *engine* is a thread that owns the catalog, the timeline and the workers. A [`Connection`]
//! plans on its own thread, reads there what workers publish, sends the engine requests for the
//! rest, and waits for their answers. Reading order: [`engine`],
//! [`connection`], [`beside`] (what needs no engine), [`alarm`], [`prepared`].

mod alarm;
mod beside;
mod connection;
mod cursors;
mod engine;
mod load;
mod prepared;

use std::path::PathBuf;
use std::sync::Arc;

use anabranch_store::{Disk, StoreOptions};

use crate::connector::Connector;
use crate::error::Error;
use crate::functions::Function;
use crate::session::{Options, Session};

use engine::Engine;

pub use connection::Connection;
pub use load::EngineLoad;

/// How a database is opened.
#[derive(Clone)]
pub struct DatabaseOptions {
    /// The folder that holds it; `None` keeps everything in memory.
    pub path: Option<PathBuf>,
    /// Worker threads, at least 1.
    pub workers: usize,
    /// What concerns the engine itself. Its `workers` is not looked at.
    pub engine: Options,
}

impl Default for DatabaseOptions {
    fn default() -> DatabaseOptions {
        DatabaseOptions { path: None, workers: 1, engine: Options::default() }
    }
}

/// A handle to a running engine. Clones are handles to the same one; the last one dropped,
/// connections included, ends it.
///
/// ```
/// use anabranch_engine::{Database, DatabaseOptions};
///
/// let database = Database::open(DatabaseOptions::default())?;
/// let mut here = database.connect()?;
/// here.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2)")?;
/// let there = database.connect()?;
/// let rows = std::thread::spawn(move || { let mut there = there; there.query("SELECT sum(a) FROM t") });
/// assert_eq!(rows.join().expect("no panic")?.num_rows(), 1);
/// # Ok::<(), anabranch_engine::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Database {
    engine: Arc<Engine>,
}

impl Database {
    /// Starts an engine: in memory, or over the database in the folder that the options name. An
    /// answer shows only what is on disk then; see `docs/durability.md`.
    ///
    /// # Errors
    /// `Invalid` for options that cannot be, `Unavailable` when threads cannot be started or the
    /// folder is open elsewhere, `Data` when a file of it is damaged.
    pub fn open(options: DatabaseOptions) -> Result<Database, Error> {
        if options.workers == 0 {
            return Err(Error::invalid("a database has at least one worker")
                .with_hint("Set workers to 1, or use a Session, which works on the caller's thread."));
        }
        if let (None, Some(place)) = (&options.path, &options.engine.snapshots.place) {
            return Err(Error::invalid(format!("a database in memory has no snapshots to keep in {place}"))
                .with_hint("Name a folder for the database: its log stays there."));
        }
        let engine = Options { workers: options.workers, ..options.engine };
        let engine = match options.path {
            None => Engine::start(move || Session::new(engine))?,
            Some(path) => Engine::start(move || Session::open_folder(&path, engine))?,
        };
        Ok(Database { engine: Arc::new(engine) })
    }

    /// Opens a database on any disk, for tests of what happens when disks fail.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(disk: Arc<dyn Disk>, keeping: StoreOptions, options: Options) -> Result<Database, Error> {
        Ok(Database { engine: Arc::new(Engine::start(move || Session::open_on(disk, keeping, options))?) })
    }

    /// A connection of its own settings, statements and transaction.
    ///
    /// # Errors
    /// `Closed` when the database was closed.
    pub fn connect(&self) -> Result<Connection, Error> {
        Connection::open(Arc::clone(&self.engine))
    }

    /// Whether an internal error has ended the engine: nothing but opening the database anew helps.
    pub fn has_failed(&self) -> bool {
        self.engine.failure().is_some()
    }

    /// Makes a connector known under `name`, for `CREATE SOURCE .. WITH (connector = name)`. `COPY`
    /// uses the one named `file`.
    ///
    /// # Errors
    /// `Closed` when the database was closed.
    pub fn register_connector(&self, name: &str, connector: Arc<dyn Connector>) -> Result<(), Error> {
        let name = name.to_owned();
        self.engine.call(move |session| session.register_connector(&name, connector))
    }

    /// Lets the next turn of the dataflow of a relation panic, for tests of what follows.
    ///
    /// # Errors
    /// `Closed` when the database was closed.
    #[doc(hidden)]
    pub fn panic_in(&self, relation: &str) -> Result<(), Error> {
        let relation = relation.to_owned();
        self.engine.call(move |session| session.panic_in(&relation))
    }

    /// Makes a function known to SQL, for tests.
    ///
    /// # Errors
    /// `Closed` when the database was closed.
    #[doc(hidden)]
    pub fn register_function(&self, name: &str, function: Function) -> Result<(), Error> {
        let name = name.to_owned();
        self.engine.call(move |session| session.register_function(&name, function))
    }

    /// Ends the engine once it has answered what was asked before. Connections hear `Closed` from
    /// then on.
    ///
    /// # Errors
    /// `Internal` when the engine had failed.
    pub fn close(self) -> Result<(), Error> {
        self.engine.stop()
    }
}
