//! Clients of a session: each comes with its own, and leaves nothing behind.

use std::sync::Arc;

use anabranch_flow::account::memory::readable;
use anabranch_sql::statement::{Access, SettingScope};

use super::outcome::{Outcome, Rows};
use super::state::Session;
use super::state::client::{Client, SessionClient, counted};
use super::state::copying::Copying;
use crate::error::Error;
use crate::transaction::{Transaction, TransactionState};

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
        let mut client = Client::new(number, self.cluster.client_account(number), &self.locks, &self.options);
        client.backends.all = self.backends.clone();
        client
    }

    /// The client is a user, whom the catalog then knows of.
    pub(crate) fn log_in(&mut self, user: &str) {
        self.catalog.note_user(user);
        Arc::make_mut(&mut self.client.variables).user = Some(user.into());
        self.client.backends.own.iter().for_each(|own| own.is_user(user));
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
        counted(&self.client.account, rows).map_err(|bytes| {
            let bytes = readable(i64::try_from(bytes).unwrap_or(i64::MAX));
            self.cluster.no_room().with_detail(format!("The answer has {bytes}."))
        })
    }

    /// Ends what a client leaves behind.
    pub(crate) fn close_client(&mut self, client: &mut Client) {
        let copied = client.copying.take().and_then(Copying::into_subscription);
        for subscription in client.cursors.take_subscriptions().into_iter().chain(copied) {
            self.unsubscribe(subscription);
        }
        if let Some(transaction) = client.transaction.take() {
            self.undo_definitions(&transaction.defined);
        }
        self.drop_temporary(client.temporary.take());
        client.locks.leave();
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
        self.client.locks.give_all_back();
        Ok(Outcome::done("DISCARD ALL"))
    }

    /// `SET TRANSACTION` and `SET SESSION CHARACTERISTICS`. All levels of isolation give the
    /// highest.
    pub(super) fn set_transaction(&mut self, access: Access, scope: SettingScope) -> Result<Outcome, Error> {
        if scope == SettingScope::Session {
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
