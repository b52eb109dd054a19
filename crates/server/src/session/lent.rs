//! Portals in SQL: FETCH, MOVE and CLOSE of portals that messages have opened.
//!
//! Law: a portal gives each row once, to whichever asks first: Execute or FETCH. A portal goes
//! forward only, as PostgreSQL's does.
//!
//! The rows that a portal has left are lent to the connection as a cursor while the statement runs;
//! what the statement leaves is the portal's again. Cost: one look at a statement's first word, and
//! the rows of the portal once for each statement that takes of it.

use anabranch_engine::Error;
use anabranch_sql::statement::Statement;
use arrow::datatypes::{Schema, SchemaRef};

use super::client::{Portal, Sending, ServerClient, State};
use crate::wire::frames::Broken;

/// The portals that a statement is about.
enum Meant {
    None,
    /// FETCH and MOVE.
    Taken(String),
    Closed(String),
    AllClosed,
}

impl Meant {
    fn of(statement: &Statement) -> Meant {
        match statement {
            Statement::Fetch(fetch) => Meant::Taken(fetch.cursor.clone()),
            Statement::Close { name: Some(name) } => Meant::Closed(name.clone()),
            Statement::Close { name: None } => Meant::AllClosed,
            _ => Meant::None,
        }
    }
}

/// The statement of a text that may be about portals.
fn about_portals(text: &str) -> Option<Statement> {
    let first = text.split_whitespace().next()?;
    let is_about = ["fetch", "move", "close"].iter().any(|word| first.eq_ignore_ascii_case(word));
    let mut parsed = if is_about { anabranch_sql::parse(text).ok()? } else { return None };
    let last = parsed.pop()?;
    parsed.is_empty().then_some(last.statement)
}

impl ServerClient<'_> {
    /// Does `work` with a text's statement, which may take rows of a portal.
    pub(super) fn with_portals_of<T>(
        &mut self,
        text: &str,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<Result<T, Error>, Broken> {
        match about_portals(text).filter(|_| !self.portals.is_empty()) {
            Some(statement) => self.with_portals(&statement, work),
            None => Ok(work(self)),
        }
    }

    /// Does `work` with a statement, which may take rows of a portal.
    pub(super) fn with_portals<T>(
        &mut self,
        statement: &Statement,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<Result<T, Error>, Broken> {
        let name = match Meant::of(statement) {
            Meant::None => return Ok(work(self)),
            Meant::AllClosed => {
                self.portals.keys().cloned().collect::<Vec<_>>().iter().for_each(|name| self.end_portal(name));
                return Ok(work(self));
            }
            Meant::Taken(name) | Meant::Closed(name) if self.connection.has_cursor(&name) => return Ok(work(self)),
            Meant::Closed(name) if self.portals.contains_key(&name) => return Ok(self.close_as_cursor(&name, work)),
            Meant::Taken(name) | Meant::Closed(name) => name,
        };
        let Some(mut portal) = self.portals.remove(&name) else { return Ok(work(self)) };
        if let Err(error) = self.lend(&name, &mut portal)? {
            self.portals.insert(name, portal);
            return Ok(Err(error));
        }
        let result = work(self);
        if let Some(left) = self.connection.take_cursor(&name) {
            portal.state = match (left.num_rows(), &portal.statement.prepared) {
                (0, Some(prepared)) => State::Done(prepared.tag.to_owned()),
                _ => State::Rows(Sending::new(left.schema(), vec![left])),
            };
            self.portals.insert(name, portal);
        }
        Ok(result)
    }

    /// Ends a portal; the statement closes a cursor of its name.
    fn close_as_cursor<T>(&mut self, name: &str, work: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.end_portal(name);
        self.connection.lend_cursor(name, &SchemaRef::new(Schema::empty()), &[])?;
        let result = work(self);
        self.connection.take_cursor(name);
        result
    }

    /// Gives the connection what a portal has left. A portal that did not run runs first.
    fn lend(&mut self, name: &str, portal: &mut Portal) -> Result<Result<(), Error>, Broken> {
        self.keep_pipeline_as_it_is();
        let gives_rows = portal.statement.prepared.as_ref().is_some_and(|prepared| prepared.columns.is_some());
        if let State::Bound = portal.state
            && gives_rows
        {
            let start = self.frames.out.len();
            let result = self.advance(portal, 0)?;
            // (What Execute would have been told is told to none.)
            self.frames.out.truncate(start);
            if result.is_err() {
                return Ok(result);
            }
        }
        let (schema, batches) = match &portal.state {
            State::Rows(sending) => (sending.schema.clone(), sending.left()),
            State::Done(_) if gives_rows => {
                match portal.statement.prepared.as_ref().and_then(|it| it.columns.clone()) {
                    Some(schema) => (schema, vec![]),
                    None => return Ok(Err(no_rows(name))),
                }
            }
            State::Changes(..) => {
                let error = Error::invalid(format!("portal \"{name}\" gives changes, and only to Execute"));
                let hint = "DECLARE a cursor FOR SUBSCRIBE and FETCH from that.";
                return Ok(Err(error.with_sqlstate("0A000").with_hint(hint)));
            }
            State::Bound | State::Done(_) => return Ok(Err(no_rows(name))),
        };
        Ok(self.connection.lend_cursor(name, &schema, &batches))
    }
}

fn no_rows(name: &str) -> Error {
    Error::invalid(format!("portal \"{name}\" gives no rows")).with_sqlstate("34000")
}
