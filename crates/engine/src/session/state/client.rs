//! What one client of a session has of its own: settings, prepared statements, cursors.
//!
//! Law: nothing here is seen by another client. A session without connections has one client.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use anabranch_flow::account::Account;
use anabranch_flow::account::memory::{Hold, MemoryPart};
use anabranch_sql::files::ReadFile;
use anabranch_sql::statement::Statement;
use anabranch_store::Durability;
use arrow::array::RecordBatch;

use crate::catalog::Given;
use crate::prepared::Prepared;
use crate::session::backend_functions::ClientBackends;
use crate::session::outcome::Rows;
use crate::session::setting_functions::ClientSettings;
use crate::session::state::advisory::{AdvisoryLocks, ClientLocks};
use crate::session::state::copying::Copying;
use crate::session::state::cursors::Cursors;
use crate::session::state::options::Options;
use crate::session::state::subscriptions::Buffer;
use crate::session::state::variables::{Variables, WantedSetting};
use crate::session::tag::command_tag;
use crate::transaction::Transaction;

/// Answers of fewer bytes are not counted.
pub(crate) const COUNTED_BYTES_MIN: usize = 64 << 10;

/// A client's own. The session has it while it serves the client.
#[derive(Debug)]
pub(crate) struct Client {
    /// Its number; 0 is that of a session by itself.
    pub number: u64,
    /// What it holds beside dataflows.
    pub account: Account,
    /// Cursors, staged rows and those of a COPY, of which the account knows.
    pub held: Hold,
    /// The transaction that is open, if one is.
    pub transaction: Option<Transaction>,
    /// PostgreSQL's run-time parameters.
    pub variables: Arc<Variables>,
    /// What `set_config` has asked for in the statement that runs.
    pub wanted_settings: Arc<Mutex<Vec<WantedSetting>>>,
    /// How other clients see it.
    pub backends: ClientBackends,
    /// Its part in the advisory locks.
    pub locks: Arc<ClientLocks>,
    /// Statements of PREPARE, by name.
    pub statements: BTreeMap<String, Prepared>,
    /// Cursors of DECLARE.
    pub cursors: Cursors,
    /// The COPY that waits for its client.
    pub copying: Option<Copying>,
    /// Whether a SELECT first reads the bounded, unpaced sources behind it to their end.
    pub wait_for_sources: bool,
    /// Rounds after which a loop of a query fails that has not come to its end; `None` lets loops
    /// go on.
    pub recursion_limit: Option<NonZeroU64>,
    /// What is held of the changes that it has subscribed to and does not take.
    pub subscribe_buffer: Buffer,
    /// When commits count as done.
    pub durability: Durability,
    /// What that is again once the open transaction ends, where SET LOCAL has changed it.
    pub durability_after: Option<Durability>,
    /// The number of the client's schema of temporary tables, if it has made any.
    pub temporary: Option<u64>,
    /// The numbers of sequences that it was given.
    pub given: Arc<Mutex<Given>>,
    /// Tables of the files that the statement which runs reads.
    pub files: BTreeMap<ReadFile, String>,
    /// What to know of the columns of these files.
    pub file_notices: Vec<String>,
}

impl Client {
    /// The words of a statement's command tag: of EXECUTE, those of the statement that runs.
    pub fn tag(&self, statement: &Statement) -> &'static str {
        match statement {
            Statement::Execute(execute) => self.statements.get(&execute.name).map_or("EXECUTE", |named| named.tag),
            statement => command_tag(statement),
        }
    }

    /// Its parameters, as functions see them.
    pub fn settings(&self) -> ClientSettings {
        ClientSettings {
            variables: Arc::clone(&self.variables),
            wanted: Arc::clone(&self.wanted_settings),
            backends: self.backends.clone(),
        }
    }

    pub fn new(number: u64, account: Account, locks: &AdvisoryLocks, options: &Options) -> Client {
        Client {
            number,
            held: account.hold(MemoryPart::Held),
            account,
            transaction: None,
            variables: Arc::default(),
            wanted_settings: Arc::default(),
            backends: ClientBackends::default(),
            locks: Arc::new(locks.client()),
            statements: BTreeMap::new(),
            cursors: Cursors::default(),
            copying: None,
            wait_for_sources: true,
            recursion_limit: None,
            subscribe_buffer: Buffer::default(),
            durability: options.durability,
            durability_after: None,
            temporary: None,
            given: Arc::default(),
            files: BTreeMap::new(),
            file_notices: vec![],
        }
    }
}

/// The answer, counted for a client until it is dropped; its bytes where the limit leaves no room.
pub(crate) fn counted(account: &Account, rows: Rows) -> Result<Rows, usize> {
    let bytes = rows.batches.iter().map(RecordBatch::get_array_memory_size).sum();
    if bytes < COUNTED_BYTES_MIN {
        return Ok(rows);
    }
    let mut hold = account.hold(MemoryPart::Results);
    match hold.set(bytes) {
        true => Ok(rows.held_by(hold)),
        false => Err(bytes),
    }
}

/// What one client of a session has of its own: its transaction, settings, prepared statements and
/// cursors.
///
/// A session has one client; [`Session::as_client`](crate::Session::as_client) lets others take its
/// place for a while.
#[derive(Debug)]
pub struct SessionClient(pub(crate) Client);
