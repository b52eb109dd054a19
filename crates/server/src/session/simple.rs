//! Simple queries: a text of statements, answers as text.
//!
//! Several statements without BEGIN are one transaction, as in PostgreSQL, where all of them may be
//! part of one; CREATE can, DROP and ALTER take effect by themselves.

use std::sync::Arc;

use anabranch_engine::{Error, Outcome, Together, TransactionState, together};
use anabranch_sql::Parsed;

use super::client::ServerClient;
use crate::wire::frames::Broken;
use crate::wire::reply;

impl ServerClient<'_> {
    /// Runs a text and answers.
    pub(super) fn query(&mut self, text: &str) -> Result<(), Broken> {
        self.portals.remove("");
        match anabranch_sql::parse(text) {
            Err(error) => self.tell(&Error::from(error), text),
            Ok(statements) if statements.is_empty() => reply::bare(&mut self.frames.out, b'I'),
            Ok(statements) => self.run_all(text, statements)?,
        }
        self.ready();
        Ok(())
    }

    fn run_all(&mut self, text: &str, statements: Vec<Parsed>) -> Result<(), Broken> {
        let is_one = statements.len() > 1
            && self.connection.transaction() == TransactionState::Idle
            && statements.iter().all(|parsed| together(&parsed.statement) != Together::Alone);
        if is_one {
            // (It cannot fail: none is open.)
            let _ = self.connection.execute("BEGIN");
        }
        let script: Arc<str> = text.into();
        for parsed in statements {
            if !self.run_one(&script, Arc::new(parsed))? {
                if is_one {
                    let _ = self.connection.execute("ROLLBACK");
                }
                return Ok(());
            }
        }
        if is_one && let Err(error) = self.connection.execute("COMMIT") {
            self.tell(&error, text);
        }
        Ok(())
    }

    /// Runs one statement; whether it went well.
    fn run_one(&mut self, script: &Arc<str>, parsed: Arc<Parsed>) -> Result<bool, Broken> {
        let tag = self.connection.tag(&parsed.statement);
        self.shared.metrics.statements.inc();
        let ran = self.with_portals(&parsed.statement, |client| client.connection.execute_one(script, &parsed))?;
        let result = match ran {
            Ok(Outcome::Rows(rows)) => self.send_all(tag, &rows)?,
            Ok(Outcome::Done { tag, detail }) => {
                self.done(&tag, detail.as_deref());
                Ok(())
            }
            Ok(Outcome::Subscription(subscription)) => {
                reply::columns(&mut self.frames.out, &subscription.row_schema(), |_| 0);
                let result = self.send_changes(&subscription);
                self.connection.unsubscribe(subscription);
                result?
            }
            Ok(Outcome::Copy(start)) => match self.copy(start)? {
                Ok(tag) => {
                    self.done(&tag, None);
                    Ok(())
                }
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        if let Err(error) = &result {
            self.tell(error, script);
        }
        Ok(result.is_ok())
    }
}
