//! What a session has.
//!
//! Law: the files of this folder hold data and what concerns that data alone. None of them names a
//! statement: those stand in the files beside the folder, each with the part of [`Session`]'s
//! methods that it is about.

pub(crate) mod advisory;
pub(crate) mod bound;
pub(crate) mod client;
pub(crate) mod copying;
pub(crate) mod cursors;
pub(crate) mod followed;
pub(crate) mod frame_view;
pub(crate) mod machine_memory;
pub(crate) mod options;
pub(crate) mod present;
pub(crate) mod progress;
pub(crate) mod settings;
pub(crate) mod subscriptions;
pub(crate) mod timeline;
pub(crate) mod unused_variables;
pub(crate) mod variables;
pub(crate) mod waits;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::latest::Latest;
use super::sealed::Recorder;
use crate::backends::Backends;
use crate::catalog::Catalog;
use crate::cluster::{Cluster, CollectionId};
use crate::connector::Connector;
use crate::dataflows::Dataflows;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::pump::Pump;

use advisory::AdvisoryLocks;
use bound::BoundStatement;
use client::Client;
use followed::Followed;
use frame_view::FrameView;
use options::Options;
use present::Present;
use progress::Progress;
use settings::Settings;
use subscriptions::Subscriptions;
use timeline::Timeline;
use waits::Waits;

/// A running engine. See [`session`](crate::session) for its laws.
///
/// ```
/// use anabranch_engine::{Options, Session};
///
/// let mut session = Session::new(Options::default())?;
/// session.execute(
///     "CREATE TABLE sales (item text, price int);
///      CREATE MATERIALIZED VIEW totals AS SELECT item, sum(price) AS total FROM sales GROUP BY item;
///      INSERT INTO sales VALUES ('tea', 3), ('tea', 4), ('jam', 5)",
/// )?;
/// let totals = session.query("SELECT total FROM totals WHERE item = 'tea'")?;
/// assert_eq!(totals.num_rows(), 1);
/// # Ok::<(), anabranch_engine::Error>(())
/// ```
pub struct Session {
    pub(crate) catalog: Catalog,
    pub(crate) cluster: Cluster,
    pub(crate) timeline: Timeline,
    pub(crate) dataflows: Dataflows,
    pub(crate) subscriptions: Subscriptions,
    /// Frames whose results are relations, in the order in which they were made.
    pub(crate) frame_views: Vec<FrameView>,
    pub(crate) pump: Pump,
    /// What the relation of the clock holds.
    pub(crate) present: Present,
    /// What the inputs of system relations hold.
    pub(crate) followed: Followed,
    /// Inputs whose readers came before the source's present input: they are given the same rows.
    pub(crate) earlier_inputs: BTreeMap<CollectionId, Vec<CollectionId>>,
    pub(crate) connectors: BTreeMap<String, Arc<dyn Connector>>,
    pub(crate) settings: Settings,
    pub(crate) interrupt: Interrupt,
    /// How the statement that runs waits.
    pub(crate) waits: Waits,
    /// Whether it is the session of a database, whose connections wait by themselves.
    pub(crate) serves_many: bool,
    /// Whether `interrupt` is that of a connection, which forgets earlier triggers itself.
    pub(crate) serves: bool,
    pub(crate) progress: Progress,
    /// What the client has of its own. While a connection is served it is the connection's.
    pub(crate) client: Client,
    /// Clients of a server.
    pub(crate) backends: Backends,
    /// What clients have locked by agreement.
    pub(crate) locks: AdvisoryLocks,
    /// What stands for the parameters of the statement that runs.
    pub(crate) bound: BoundStatement,
    /// What connections know without asking.
    pub(crate) latest: Arc<Latest>,
    /// Keeps what is sealed, if anything does.
    pub(crate) recorder: Option<Box<dyn Recorder>>,
    pub(crate) options: Options,
}

impl Session {
    /// Starts the workers. The catalog is empty and no connector is registered.
    ///
    /// # Errors
    /// `Unavailable` when threads cannot be started.
    pub fn new(options: Options) -> Result<Session, Error> {
        let cluster = Cluster::start(options.workers, options.merge_effort)?;
        cluster.set_memory_limit(options.memory_limit);
        let locks = AdvisoryLocks::default();
        Ok(Session {
            catalog: Catalog::default(),
            client: Client::new(0, cluster.client_account(0), &locks, &options),
            backends: Backends::default(),
            locks,
            progress: Progress::new(cluster.accounts()),
            cluster,
            timeline: Timeline::new(options.clock.now_micros()),
            dataflows: Dataflows::default(),
            subscriptions: Subscriptions::default(),
            frame_views: Vec::new(),
            pump: Pump::default(),
            present: Present::default(),
            followed: Followed::default(),
            earlier_inputs: BTreeMap::new(),
            connectors: BTreeMap::new(),
            settings: Settings::new(&options),
            interrupt: Interrupt::new(),
            waits: Waits::default(),
            serves_many: false,
            serves: false,
            bound: BoundStatement::default(),
            latest: Arc::new(Latest::new(Arc::clone(&options.clock))),
            recorder: None,
            options,
        })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("relations", &self.catalog.objects().count()).finish_non_exhaustive()
    }
}
