//! What one client of a session has of its own: settings, prepared statements, cursors.
//!
//! Law: nothing here is seen by another client. A session without connections has one client.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use anabranch_flow::account::Account;
use anabranch_flow::account::memory::{Hold, MemoryPart};
use anabranch_sql::files::ReadFile;
use anabranch_sql::statement::{Access, Scope};
use anabranch_store::Durability;
use arrow::array::RecordBatch;

use super::copying::Copying;
use super::cursor::Cursors;
use super::subscribe::Buffer;
use super::variables::Variables;
use super::{Options, Outcome, Rows, Session};
use crate::error::Error;
use crate::prepared::Prepared;
use crate::transaction::{Transaction, TransactionState};

/// Answers of fewer bytes are not counted.
const COUNTED_BYTES_MIN: usize = 64 << 10;

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
    pub variables: Variables,
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
    /// Tables of the files that the statement which runs reads.
    pub files: BTreeMap<ReadFile, String>,
}

impl Client {
    pub fn new(number: u64, account: Account, options: &Options) -> Client {
        Client {
            number,
            held: account.hold(MemoryPart::Held),
            account,
            transaction: None,
            variables: Variables::default(),
            statements: BTreeMap::new(),
            cursors: Cursors::default(),
            copying: None,
            wait_for_sources: true,
            recursion_limit: None,
            subscribe_buffer: Buffer::default(),
            durability: options.durability,
            durability_after: None,
            temporary: None,
            files: BTreeMap::new(),
        }
    }
}

/// The answer, counted for a client until it is dropped; `None` where the limit leaves no room.
pub(crate) fn counted(account: &Account, rows: Rows) -> Option<Rows> {
    let bytes = rows.batches.iter().map(RecordBatch::get_array_memory_size).sum();
    if bytes < COUNTED_BYTES_MIN {
        return Some(rows);
    }
    let mut hold = account.hold(MemoryPart::Results);
    hold.set(bytes).then(|| rows.held_by(hold))
}

/// What one client of a session has of its own: its transaction, settings, prepared statements and
/// cursors.
///
/// A session has one client; [`Session::as_client`] lets others take its place for a while.
#[derive(Debug)]
pub struct SessionClient(Client);

impl Session {
    /// Another client, with the settings that sessions start with.
    pub fn client(&self) -> SessionClient {
        SessionClient(self.new_client(0))
    }

    /// Works for another client: with its transaction and settings.
    pub fn as_client<T>(&mut self, client: &mut SessionClient, work: impl FnOnce(&mut Session) -> T) -> T {
        std::mem::swap(&mut self.client, &mut client.0);
        let result = work(self);
        std::mem::swap(&mut self.client, &mut client.0);
        result
    }

    /// Ends a client: an open transaction is rolled back, subscriptions behind cursors are freed.
    pub fn end_client(&mut self, client: &mut SessionClient) {
        self.close_client(&mut client.0);
        client.0 = self.new_client(0);
    }

    /// Where the client's transaction stands.
    pub fn transaction_state(&self) -> TransactionState {
        Transaction::state(self.client.transaction.as_ref())
    }

    /// What a new client starts with.
    pub(crate) fn new_client(&self, number: u64) -> Client {
        Client::new(number, self.cluster.client_account(number), &self.options)
    }

    /// Counts what the client holds after a statement.
    ///
    /// # Errors
    /// `Unavailable` when that is more than `memory_limit` allows; what the statement has added is
    /// let go.
    pub(super) fn count_held(&mut self) -> Result<(), Error> {
        let client = &self.client;
        let staged = client.transaction.as_ref().map_or(0, Transaction::size_bytes);
        let copied = client.copying.as_ref().map_or(0, Copying::size_bytes);
        let bytes = staged + copied + client.cursors.size_bytes();
        if self.client.held.set(bytes) {
            return Ok(());
        }
        self.client.cursors.let_go();
        self.client.copying.take();
        self.fail_transaction();
        Err(self.cluster.no_room())
    }

    /// Counts an answer until it is dropped.
    pub(super) fn count_results(&self, rows: Rows) -> Result<Rows, Error> {
        counted(&self.client.account, rows).ok_or_else(|| self.cluster.no_room())
    }

    /// Ends what a client leaves behind.
    pub(crate) fn close_client(&mut self, client: &mut Client) {
        let copied = client.copying.take().and_then(Copying::into_subscription);
        for subscription in client.cursors.take_subscriptions().into_iter().chain(copied) {
            self.unsubscribe(subscription);
        }
        self.drop_temporary(client.temporary.take());
    }

    /// `DISCARD`.
    pub(super) fn discard(&mut self, all: bool) -> Result<Outcome, Error> {
        if !all {
            return Ok(Outcome::done("DISCARD PLANS"));
        }
        if self.client.transaction.is_some() {
            return Err(Error::invalid("DISCARD ALL cannot run inside a transaction block").with_sqlstate("25001"));
        }
        self.close_cursors(None)?;
        self.client.statements.clear();
        let temporary = self.client.temporary.take();
        self.drop_temporary(temporary);
        self.reset(None)?;
        Ok(Outcome::done("DISCARD ALL"))
    }

    /// `SET TRANSACTION` and `SET SESSION CHARACTERISTICS`. All levels of isolation give the
    /// highest.
    pub(super) fn set_transaction(&mut self, access: Access, scope: Scope) -> Result<Outcome, Error> {
        if scope == Scope::Session {
            if access == Access::ReadOnly {
                self.set_variable("default_transaction_read_only", Some("on"), scope)?;
            }
            return Ok(Outcome::done("SET"));
        }
        match &mut self.client.transaction {
            Some(transaction) => {
                transaction.access = access;
                Ok(Outcome::done("SET"))
            }
            None => Ok(Outcome::done_with("SET", "SET TRANSACTION can only be used in transaction blocks")),
        }
    }
}
