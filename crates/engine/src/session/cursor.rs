//! DECLARE, FETCH, MOVE, CLOSE: answers and changes taken in pieces.
//!
//! Law: a cursor for a query gives the rows of the moment of DECLARE, whatever is written later. A
//! cursor for SUBSCRIBE gives changes in their order, each once. A cursor ends with its
//! transaction, unless it was declared WITH HOLD; one for SUBSCRIBE may be declared outside of a
//! transaction, and then stays until it is closed.
//!
//! State: a query's rows are held until the cursor is closed, as an answer's are.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anabranch_sql::statement::{Declare, Direction, Fetch, Scroll, Statement};
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;

use super::outcome::{Changes, Outcome, Rows};
use super::settings;
use super::state::Session;
use super::state::cursors::{Cursor, Source, chosen, first_rows, no_cursor, non_empty};
use super::state::variables::parse_time;
use crate::error::Error;

/// Longest wait between two looks for changes.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Session {
    pub(super) fn declare(&mut self, declare: &Declare) -> Result<Outcome, Error> {
        if self.client.cursors.by_name.contains_key(&declare.name) {
            return Err(Error::invalid(format!("cursor \"{}\" already exists", declare.name))
                .with_sqlstate("42P03")
                .with_hint("CLOSE it, or choose another name."));
        }
        let is_of_transaction = self.client.transaction.is_some();
        let (source, is_subscription) = match &declare.statement.statement {
            Statement::Select { query, as_of, .. } => {
                if !is_of_transaction && !declare.hold {
                    return Err(Error::invalid("DECLARE CURSOR can only be used in transaction blocks")
                        .with_sqlstate("25P01")
                        .with_hint("BEGIN first, or declare the cursor WITH HOLD."));
                }
                let rows = self.select(query, as_of.as_deref())?;
                (Source::Rows { rows: concat_batches(&rows.schema, &rows.batches)?, position: 0 }, false)
            }
            Statement::Subscribe(subscribe) => {
                let subscription = self.subscribe(subscribe)?;
                (Source::Changes { subscription, ready: VecDeque::new(), ended: false }, true)
            }
            _ => return Err(Error::internal("a cursor is for a query or a subscription")),
        };
        let stays = declare.hold || (is_subscription && !is_of_transaction);
        let cursor = Cursor { stays, is_of_transaction, scroll: declare.scroll, source };
        self.client.cursors.by_name.insert(declare.name.clone(), cursor);
        Ok(Outcome::done("DECLARE CURSOR"))
    }

    /// The columns that FETCH gives.
    pub(super) fn cursor_schema(&self, name: &str) -> Result<SchemaRef, Error> {
        let cursor = self.client.cursors.by_name.get(name).ok_or_else(|| no_cursor(name))?;
        Ok(cursor.schema())
    }

    pub(super) fn fetch(&mut self, fetch: &Fetch) -> Result<Outcome, Error> {
        self.client.cursors.awaited = None;
        let cursor = self.client.cursors.get(&fetch.cursor)?;
        let is_forward = matches!(fetch.direction, Direction::All | Direction::Forward(0..));
        let scrolls = match &cursor.source {
            Source::Rows { .. } => cursor.scroll != Scroll::No,
            Source::Changes { .. } => false,
        };
        if !is_forward && !scrolls {
            return Err(Error::invalid("cursor can only scan forward")
                .with_sqlstate("55000")
                .with_hint("Declare it with SCROLL option to enable backward scan."));
        }
        let rows = match &mut cursor.source {
            Source::Rows { rows, position } => {
                if fetch.timeout.is_some() {
                    return Err(
                        Error::invalid("the timeout of FETCH is for cursors of SUBSCRIBE").with_sqlstate("22023")
                    );
                }
                chosen(rows, position, fetch.direction)?
            }
            Source::Changes { .. } => self.fetch_changes(fetch)?,
        };
        match fetch.moves {
            true => Ok(Outcome::done(format!("MOVE {}", rows.num_rows()))),
            false => {
                Ok(Outcome::Rows(Rows { schema: rows.schema(), batches: non_empty(rows), notices: vec![], held: None }))
            }
        }
    }

    /// Changes of a cursor: as many as asked for, or as there are. Waits until there is one, unless
    /// a client is served or the time is over.
    fn fetch_changes(&mut self, fetch: &Fetch) -> Result<RecordBatch, Error> {
        let wanted = match fetch.direction {
            Direction::Forward(n) => usize::try_from(n).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        let deadline = fetch_deadline(fetch)?;
        loop {
            self.take_ready(&fetch.cursor, wanted)?;
            let cursor = self.client.cursors.get(&fetch.cursor)?;
            let schema = cursor.schema();
            let Source::Changes { subscription, ready, ended } = &mut cursor.source else {
                return Err(Error::internal("a cursor of changes has changed its kind"));
            };
            if !ready.is_empty() || *ended || wanted == 0 {
                return first_rows(&schema, ready, wanted);
            }
            let now = Instant::now();
            if self.serves || deadline.is_some_and(|deadline| now >= deadline) {
                let awaited = Some(subscription.clone()).filter(|_| deadline.is_none_or(|deadline| now < deadline));
                self.client.cursors.awaited = awaited;
                return Ok(RecordBatch::new_empty(schema));
            }
            let subscription = subscription.clone();
            let wait = deadline.map_or(LOOK_EVERY, |deadline| (deadline - now).min(LOOK_EVERY));
            let changes = self.next_changes(&subscription, wait)?;
            self.keep_ready(&fetch.cursor, changes)?;
        }
    }

    /// Takes what a subscription has, up to so many rows.
    fn take_ready(&mut self, name: &str, wanted: usize) -> Result<(), Error> {
        loop {
            let Source::Changes { subscription, ready, ended } = &self.client.cursors.get(name)?.source else {
                return Ok(());
            };
            let n_ready: usize = ready.iter().map(RecordBatch::num_rows).sum();
            if *ended || n_ready >= wanted {
                return Ok(());
            }
            let subscription = subscription.clone();
            let changes = self.next_changes(&subscription, Duration::ZERO)?;
            if matches!(changes, Changes::Nothing) {
                return Ok(());
            }
            self.keep_ready(name, changes)?;
        }
    }

    fn keep_ready(&mut self, name: &str, changes: Changes) -> Result<(), Error> {
        if let Source::Changes { subscription, ready, ended } = &mut self.client.cursors.get(name)?.source {
            *ended |= matches!(changes, Changes::End);
            ready.extend(subscription.rows(&changes)?);
        }
        Ok(())
    }

    /// `CLOSE`.
    pub(super) fn close_cursors(&mut self, name: Option<&str>) -> Result<Outcome, Error> {
        let closed = match name {
            Some(name) => {
                let cursor = self.client.cursors.by_name.remove(name).ok_or_else(|| no_cursor(name))?;
                cursor.into_subscription().into_iter().collect()
            }
            None => self.client.cursors.take_subscriptions(),
        };
        closed.into_iter().for_each(|subscription| self.unsubscribe(subscription));
        Ok(Outcome::done(if name.is_some() { "CLOSE CURSOR" } else { "CLOSE CURSOR ALL" }))
    }

    /// The transaction has ended, and with it its cursors.
    pub(super) fn end_cursors(&mut self, is_committed: bool) {
        let ended = |_: &String, cursor: &mut Cursor| cursor.is_of_transaction && !(cursor.stays && is_committed);
        let closed: Vec<Cursor> = self.client.cursors.by_name.extract_if(.., ended).map(|(_, cursor)| cursor).collect();
        self.client.cursors.by_name.values_mut().for_each(|cursor| cursor.is_of_transaction = false);
        for subscription in closed.into_iter().filter_map(Cursor::into_subscription) {
            self.unsubscribe(subscription);
        }
    }
}

/// Until when FETCH waits; `None` is for ever.
///
/// # Errors
/// `Invalid` when the timeout is none.
pub(crate) fn fetch_deadline(fetch: &Fetch) -> Result<Option<Instant>, Error> {
    let Some(text) = &fetch.timeout else { return Ok(None) };
    let millis = parse_time(&text.to_lowercase()).map(|millis| millis.max(0) as u64);
    let timeout = match millis {
        Some(millis) => Duration::from_millis(millis),
        None => Duration::from_micros(settings::parse_duration("timeout", text)?.max(0) as u64),
    };
    Ok(Instant::now().checked_add(timeout))
}
