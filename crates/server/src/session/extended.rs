//! The extended protocol: statements and portals under names.

use std::sync::Arc;

use anabranch_engine::{Error, Outcome, Prepared, Subscription};

use super::answers::{Coming, row_tag};
use super::client::{Portal, Sending, ServerClient, State, Statement};
use crate::wire::frames::Broken;
use crate::wire::message::{Bind, Named};
use crate::wire::parameters;
use crate::wire::reply;
use crate::wire::rows::format_of;
use anabranch_sql::CastParameters;
use anabranch_sql::pg_types::{PgType, data_type, oid};
use arrow::datatypes::{Field, Schema};

impl ServerClient<'_> {
    pub(super) fn parse(&mut self, name: String, sql: &str, types: Vec<u32>) -> Result<(), Broken> {
        if self.statements.len() + self.portals.len() >= self.shared.limits.statements_max {
            let error = Error::invalid("too many prepared statements and portals").with_sqlstate("54000");
            self.fail(&error.with_hint("Close those that are not needed, or DEALLOCATE ALL."), "");
            return Ok(());
        }
        if !name.is_empty() && self.statements.contains_key(&name) {
            let error = Error::invalid(format!("prepared statement \"{name}\" already exists"));
            self.fail(&error.with_sqlstate("42P05"), "");
            return Ok(());
        }
        match self.with_portals_of(sql, |client| client.prepare(sql, types))? {
            Ok(statement) => {
                self.statements.insert(name, Arc::new(statement));
                reply::bare(&mut self.frames.out, b'1');
            }
            Err(error) => self.fail(&error, sql),
        }
        Ok(())
    }

    fn prepare(&mut self, sql: &str, declared: Vec<u32>) -> Result<Statement, Error> {
        let is_empty = anabranch_sql::split(sql).statements.is_empty();
        let prepared = match is_empty {
            true => None,
            false => {
                let types: Vec<_> = declared.iter().map(|oid| data_type(*oid)).collect();
                Some(match CastParameters::of(sql, &declared) {
                    None => self.connection.prepare(sql, &types)?,
                    Some(cast) => {
                        self.connection.prepare(&cast.text, &types).map_err(|error| match error.position {
                            Some(at) => error.at(cast.place(at)),
                            None => error,
                        })?
                    }
                })
            }
        };
        Ok(Statement { text: sql.to_owned(), prepared, declared })
    }

    pub(super) fn bind(&mut self, bind: Bind) {
        let result = self.portal(&bind);
        let name = bind.portal;
        if !name.is_empty() && self.portals.contains_key(&name) {
            let error = Error::invalid(format!("cursor \"{name}\" already exists")).with_sqlstate("42P03");
            return self.fail(&error, "");
        }
        match result {
            Ok(portal) => {
                self.end_portal(&name);
                self.portals.insert(name, portal);
                reply::bare(&mut self.frames.out, b'2');
            }
            Err(error) => self.fail(&error, ""),
        }
    }

    fn portal(&self, bind: &Bind) -> Result<Portal, Error> {
        let statement = self.statement(&bind.statement)?;
        let wanted = statement.prepared.as_ref().map_or(&[][..], |prepared| prepared.parameters.as_slice());
        if wanted.len() != bind.values.len() {
            return Err(Error::invalid(format!(
                "bind message supplies {} parameters, but prepared statement \"{}\" requires {}",
                bind.values.len(),
                bind.statement,
                wanted.len()
            ))
            .with_sqlstate("08P01"));
        }
        let value = |n: usize| {
            let declared = statement.declared.get(n).copied().unwrap_or(0);
            let format = format_of(&bind.formats, n);
            parameters::value(n + 1, bind.values[n].as_deref(), format, declared, &wanted[n])
        };
        let values = (0..wanted.len()).map(value).collect::<Result<_, _>>()?;
        Ok(Portal { statement, values, formats: bind.answer_formats.clone(), state: State::Bound })
    }

    fn statement(&self, name: &str) -> Result<Arc<Statement>, Error> {
        self.statements.get(name).cloned().ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_owned(),
                name => format!("prepared statement \"{name}\" does not exist"),
            };
            Error::invalid(message).with_sqlstate("26000")
        })
    }

    pub(super) fn describe(&mut self, named: &Named) {
        let (statement, formats) = match named {
            Named::Statement(name) => match self.statement(name) {
                Ok(statement) => (statement, None),
                Err(error) => return self.fail(&error, ""),
            },
            Named::Portal(name) => match self.portals.get(name) {
                Some(portal) => (Arc::clone(&portal.statement), Some(portal.formats.clone())),
                None => return self.describe_cursor(name),
            },
        };
        let out = &mut self.frames.out;
        if formats.is_none() {
            let wanted = statement.prepared.as_ref().map_or(&[][..], |prepared| prepared.parameters.as_slice());
            let told = wanted.iter().enumerate().map(|(n, wanted)| match statement.declared.get(n) {
                Some(declared) if *declared != 0 && *declared != oid::UNKNOWN => *declared,
                _ => PgType::of(wanted).oid,
            });
            reply::parameters(out, told);
        }
        match statement.prepared.as_ref().and_then(|prepared| prepared.columns.as_ref()) {
            Some(columns) => reply::columns(out, columns, |n| format_of(formats.as_deref().unwrap_or(&[]), n)),
            None => reply::bare(out, b'n'),
        }
    }

    /// A cursor that was declared in SQL is a portal, too.
    fn describe_cursor(&mut self, name: &str) {
        let fetch = format!("FETCH 1 FROM \"{}\"", name.replace('"', "\"\""));
        match self.connection.prepare(&fetch, &[]) {
            Ok(prepared) => match &prepared.columns {
                Some(columns) => reply::columns(&mut self.frames.out, columns, |_| 0),
                None => reply::bare(&mut self.frames.out, b'n'),
            },
            Err(_) => self.fail(&no_portal(name), ""),
        }
    }

    pub(super) fn execute(&mut self, name: &str, rows_max: i32) -> Result<(), Broken> {
        let Some(mut portal) = self.portals.remove(name) else {
            self.fail(&no_portal(name), "");
            return Ok(());
        };
        let rows_max = usize::try_from(rows_max).ok().filter(|n| *n > 0).unwrap_or(usize::MAX);
        let statement = Arc::clone(&portal.statement);
        let entered = match portal.state {
            State::Bound => self.enter_pipeline(&statement)?,
            _ => Ok(()),
        };
        let result = match entered {
            Ok(()) => self.run_in_pipeline(name, &mut portal, rows_max)?,
            Err(error) => Err(error),
        };
        self.portals.insert(name.to_owned(), portal);
        if let Err(error) = result {
            self.end_portal(name);
            self.fail(&error, &statement.text);
        }
        Ok(())
    }

    /// Runs a portal, if it did not, and gives rows of it.
    pub(super) fn advance(&mut self, portal: &mut Portal, rows_max: usize) -> Result<Result<(), Error>, Broken> {
        let statement = Arc::clone(&portal.statement);
        let Some(prepared) = &statement.prepared else {
            reply::bare(&mut self.frames.out, b'I');
            return Ok(Ok(()));
        };
        if !matches!(portal.state, State::Bound) {
            // (A portal that goes on runs again from here: what came between is of no statement.)
            self.connection.forget_interrupt();
        } else {
            self.shared.metrics.statements.inc();
            self.peer.runs(&statement.text);
            let values = &portal.values;
            let ran = self.with_portals_of(prepared.text(), |client| client.connection.run(prepared, values))?;
            portal.state = match ran {
                Ok(Outcome::Rows(rows)) if !is_as_told(prepared, &rows.schema) => {
                    let error = Error::invalid("cached plan must not change result type")
                        .with_sqlstate("0A000")
                        .with_hint("What the statement reads was made anew with other columns: prepare it again.");
                    return Ok(Err(error));
                }
                Ok(Outcome::Rows(rows)) => {
                    self.notify(&rows);
                    State::Rows(Sending::new(rows.schema, rows.batches))
                }
                Ok(Outcome::Done { tag, detail }) => {
                    self.done(&tag, detail.as_deref());
                    portal.state = State::Done(tag);
                    return Ok(Ok(()));
                }
                Ok(Outcome::Subscription(subscription)) => {
                    let schema = subscription.row_schema();
                    State::Changes(subscription, Sending::new(schema, vec![]))
                }
                Ok(Outcome::Copy(start)) => match self.copy(start)? {
                    Ok(tag) => {
                        self.done(&tag, None);
                        portal.state = State::Done(tag);
                        return Ok(Ok(()));
                    }
                    Err(error) => return Ok(Err(error)),
                },
                Err(error) => return Ok(Err(error)),
            };
        }
        match &mut portal.state {
            State::Bound => Ok(Err(Error::internal("a portal did not run"))),
            State::Done(tag) => {
                reply::complete(&mut self.frames.out, &row_tag(tag, 0));
                Ok(Ok(()))
            }
            State::Rows(sending) => {
                let before = sending.n_sent;
                if let Err(error) = self.send_rows(sending, &portal.formats, rows_max)? {
                    return Ok(Err(error));
                }
                let n_sent = sending.n_sent - before;
                // (A part that is as long as was asked for may be the last: the next one tells.)
                match sending.is_empty() && n_sent < rows_max {
                    true => {
                        reply::complete(&mut self.frames.out, &row_tag(prepared.tag, n_sent));
                        portal.state = State::Done(prepared.tag.to_owned());
                    }
                    false => reply::bare(&mut self.frames.out, b's'),
                }
                Ok(Ok(()))
            }
            State::Changes(subscription, sending) => {
                let (subscription, formats) = (subscription.clone(), portal.formats.clone());
                self.advance_changes(&subscription, sending, &formats, rows_max)
            }
        }
    }

    /// Gives changes: with a limit, those that are there once there are some; else all to the end.
    fn advance_changes(
        &mut self,
        subscription: &Subscription,
        sending: &mut Sending,
        formats: &[i16],
        rows_max: usize,
    ) -> Result<Result<(), Error>, Broken> {
        let before = sending.n_sent;
        loop {
            let left = rows_max.saturating_sub(sending.n_sent - before);
            if let Err(error) = self.send_rows(sending, formats, left)? {
                return Ok(Err(error));
            }
            if sending.n_sent - before >= rows_max {
                break;
            }
            match self.take_changes(subscription, sending)? {
                Ok(Coming::Some) => {}
                Ok(Coming::Nothing) if rows_max < usize::MAX && sending.n_sent > before => break,
                Ok(Coming::Nothing) => {}
                Ok(Coming::End) => {
                    reply::complete(&mut self.frames.out, &format!("SUBSCRIBE {}", sending.n_sent));
                    return Ok(Ok(()));
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        reply::bare(&mut self.frames.out, b's');
        Ok(Ok(()))
    }

    pub(super) fn close(&mut self, named: &Named) {
        match named {
            Named::Statement(name) => {
                self.statements.remove(name);
            }
            Named::Portal(name) => self.end_portal(name),
        }
        reply::bare(&mut self.frames.out, b'3');
    }

    pub(super) fn end_portal(&mut self, name: &str) {
        if let Some(Portal { state: State::Changes(subscription, _), .. }) = self.portals.remove(name) {
            self.connection.unsubscribe(subscription);
        }
    }

    /// Portals end with their transaction: outside of one, at Sync.
    pub(super) fn end_portals(&mut self) {
        if self.connection.transaction() != anabranch_engine::TransactionState::Idle {
            return;
        }
        let names: Vec<String> = self.portals.keys().cloned().collect();
        names.iter().for_each(|name| self.end_portal(name));
    }
}

/// Whether rows have the types that the client was told when the statement was prepared.
fn is_as_told(prepared: &Prepared, schema: &Schema) -> bool {
    let Some(told) = prepared.columns.as_ref().filter(|told| told.fields() != schema.fields()) else { return true };
    let type_of = |field: &Arc<Field>| PgType::of(field).oid;
    told.fields().len() == schema.fields().len()
        && told.fields().iter().zip(schema.fields()).all(|(told, is)| type_of(told) == type_of(is))
}

fn no_portal(name: &str) -> Error {
    Error::invalid(format!("portal \"{name}\" does not exist")).with_sqlstate("34000")
}
