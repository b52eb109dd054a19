//! Rows and changes as they go out.

use std::time::Duration;

use anabranch_engine::{Changes, Error, Rows, Subscription};

use super::client::{Sending, ServerClient};
use crate::wire::frames::Broken;
use crate::wire::reply::{self, Severity};
use crate::wire::rows::RowWriter;

/// How long a subscription waits before it looks whether its client is still there. Changes, a
/// cancel request and the end of the server end the wait.
const CHANGES_WAIT: Duration = Duration::from_secs(1);

impl ServerClient<'_> {
    /// Sends a whole answer of a simple query. The inner error is the statement's.
    pub(super) fn send_all(&mut self, tag: &str, rows: &Rows) -> Result<Result<(), Error>, Broken> {
        reply::columns(&mut self.frames.out, &rows.schema, |_| 0);
        self.notify(rows);
        let mut sending = Sending::new(rows.schema.clone(), rows.batches.clone());
        if let Err(error) = self.send_rows(&mut sending, &[], usize::MAX)? {
            return Ok(Err(error));
        }
        reply::complete(&mut self.frames.out, &row_tag(tag, sending.n_sent));
        Ok(Ok(()))
    }

    /// Tells what a reader of the answer should know.
    pub(super) fn notify(&mut self, rows: &Rows) {
        for notice in &rows.notices {
            reply::plain(&mut self.frames.out, Severity::Warning, "01000", notice);
        }
    }

    /// Says that a statement without rows is done.
    pub(super) fn done(&mut self, tag: &str, detail: Option<&str>) {
        if let Some(detail) = detail {
            let is_warning = ["transaction in progress", "only be used in transaction blocks"];
            let (severity, code) = match is_warning.iter().any(|words| detail.contains(words)) {
                true if detail.starts_with("SET TRANSACTION") => (Severity::Warning, "25P01"),
                true if detail.starts_with("there is no") => (Severity::Warning, "25P01"),
                true => (Severity::Warning, "25001"),
                false => (Severity::Notice, "00000"),
            };
            reply::plain(&mut self.frames.out, severity, code, detail);
        }
        reply::complete(&mut self.frames.out, tag);
    }

    /// Sends at most so many rows.
    pub(super) fn send_rows(
        &mut self,
        sending: &mut Sending,
        formats: &[i16],
        rows_max: usize,
    ) -> Result<Result<(), Error>, Broken> {
        let mut left = rows_max;
        while left > 0 {
            let Some(batch) = sending.batches.front().cloned() else { break };
            let batch = &batch;
            let writer = match RowWriter::new(&sending.schema, batch, formats) {
                Ok(writer) => writer,
                Err(error) => return Ok(Err(error)),
            };
            let n_rows = left.min(batch.num_rows() - sending.n_taken);
            for row in sending.n_taken..sending.n_taken + n_rows {
                if let Err(error) = writer.write(row, &mut self.frames.out) {
                    return Ok(Err(error));
                }
                self.frames.flush_if_large()?;
            }
            left -= n_rows;
            sending.n_taken += n_rows;
            sending.n_sent += n_rows;
            self.shared.metrics.rows.inc_by(n_rows as u64);
            if sending.n_taken == batch.num_rows() {
                sending.n_taken = 0;
                sending.batches.pop_front();
            }
        }
        Ok(Ok(()))
    }

    /// Sends changes as they come, until they end, the client cancels, or it has gone.
    pub(super) fn send_changes(&mut self, subscription: &Subscription) -> Result<Result<(), Error>, Broken> {
        let mut sending = Sending::new(subscription.row_schema(), vec![]);
        loop {
            match self.take_changes(subscription, &mut sending)? {
                Ok(Coming::Some) => {}
                Ok(Coming::Nothing) => self.frames.flush()?,
                Ok(Coming::End) => {
                    reply::complete(&mut self.frames.out, &format!("SUBSCRIBE {}", sending.n_sent));
                    return Ok(Ok(()));
                }
                Err(error) => return Ok(Err(error)),
            }
            if let Err(error) = self.send_rows(&mut sending, &[], usize::MAX)? {
                return Ok(Err(error));
            }
        }
    }

    /// Waits a while for changes, and for the client.
    pub(super) fn take_changes(
        &mut self,
        subscription: &Subscription,
        sending: &mut Sending,
    ) -> Result<Result<Coming, Error>, Broken> {
        if self.shared.peers.is_ending() || !self.frames.is_there() {
            return Err(Broken::Closed);
        }
        // (What is held back goes out before a wait; changes that are there come at once.)
        self.frames.flush()?;
        let changes = match self.connection.next_changes(subscription, CHANGES_WAIT) {
            Ok(changes) => changes,
            Err(error) => return Ok(Err(error)),
        };
        let rows = match subscription.rows(&changes) {
            Ok(rows) => rows,
            Err(error) => return Ok(Err(error)),
        };
        if rows.is_empty() {
            return Ok(Ok(if matches!(changes, Changes::End) { Coming::End } else { Coming::Nothing }));
        }
        rows.into_iter().for_each(|batch| sending.push(batch));
        Ok(Ok(Coming::Some))
    }
}

/// What a wait for changes gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coming {
    Some,
    Nothing,
    End,
}

/// The command tag of a statement that returned rows.
pub(super) fn row_tag(tag: &str, n_rows: usize) -> String {
    match tag {
        "INSERT" => format!("INSERT 0 {n_rows}"),
        "SELECT" | "UPDATE" | "DELETE" | "FETCH" | "MERGE" => format!("{tag} {n_rows}"),
        other => other.to_owned(),
    }
}
