//! What becomes of advisory locks at the end of a statement.

use super::state::Session;
use crate::error::Error;

impl Session {
    /// The result of the statement that runs, or its wait for a lock.
    ///
    /// # Errors
    /// That of the result; 40P01 when the wait would have no end, 55P03 when it takes too long.
    pub(super) fn with_locks<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        let waited = self.client.locks.waited().filter(|_| result.is_err());
        let is_over = |waited| self.client.variables.lock_timeout().is_some_and(|limit| waited >= limit);
        let result = match waited {
            Some(_) if self.client.locks.is_deadlocked() => Err(deadlock()),
            Some(waited) if is_over(waited) => Err(timeout()),
            Some(_) => Err(self.wait_for_lock()),
            None => result,
        };
        if self.is_handed_over() {
            self.client.locks.undo_statement();
            return result;
        }
        self.client.locks.end_statement();
        if self.client.transaction.is_none() {
            self.client.locks.end_transaction();
        }
        result
    }
}

fn timeout() -> Error {
    Error::invalid("canceling statement due to lock timeout")
        .with_sqlstate("55P03")
        .with_hint("Another client holds the advisory lock for longer than lock_timeout.")
}

fn deadlock() -> Error {
    Error::invalid("deadlock detected")
        .with_sqlstate("40P01")
        .with_detail("The client that holds the advisory lock waits for one that this client holds.")
        .with_hint("Take locks in one order everywhere; run the transaction again.")
}
