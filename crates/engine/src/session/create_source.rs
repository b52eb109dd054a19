//! CREATE SOURCE, and sources of a database that was opened.
//!
//! Law: as in [`create`](super::create).

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_sql::statement::{CreateSource, ObjectKind};
use arrow::datatypes::{Field, SchemaRef};

use super::create::{take_retain, watermark};
use super::outcome::Outcome;
use super::state::Session;
use super::told_columns::{FileReader, told_columns};
use crate::catalog::{Object, Retain, SourceOptions};
use crate::coerce::planned_schema;
use crate::connector::SourceSpec;
use crate::error::Error;
use crate::nearest::nearest;
use crate::pump::{Again, Pumped, Stand, WaitingRows, parse_rate};

impl Session {
    pub(super) fn create_source(&mut self, create: &CreateSource, text: &str) -> Result<Outcome, Error> {
        if let Some(outcome) = self.existing("CREATE SOURCE", &create.name, create.if_not_exists)? {
            return Ok(outcome);
        }
        if !create.primary_key.is_empty() {
            return Err(Error::invalid(format!("source \"{}\" cannot have a primary key", create.name))
                .with_detail("What comes from outside is not checked for duplicates.")
                .with_hint("Leave PRIMARY KEY out; create an index on the columns for lookups."));
        }
        let mut asked = asked_source(create)?;
        let connector = self.connector(&asked.connector)?;
        // (A database in a folder has all rows in its log: opening it reads no source again.)
        let edition = match asked.retain {
            None | Some(Retain::Nothing { .. }) if self.recorder.is_none() => connector.edition(&asked.spec)?,
            _ => None,
        };
        let reader = connector.open(&asked.spec)?;
        let given = reader.schema();
        let fields: Vec<Field> = match create.columns.is_empty() {
            true => given.fields().iter().map(|field| field.as_ref().clone()).collect(),
            false => create.columns.clone(),
        };
        let schema = planned_schema("source", &create.name, &fields)?;
        asked.retain = asked.retain.or_else(|| edition.is_some().then_some(Retain::OnDemand));
        self.add_source(create, &asked, schema, text)?;
        let now = self.options.clock.now_micros();
        let told = match create.columns.is_empty() {
            true => told_columns(&asked.spec.options, &fields, &FileReader::Source(&create.name)),
            false => None,
        };
        let pumped = Pumped::new(&create.name, reader, asked.rate, now);
        self.pump.add(match edition {
            Some(edition) => pumped.on_demand(Again { connector, spec: asked.spec.clone(), edition }),
            None if asked.retain == Some(Retain::Nothing { passed: false }) => pumped.unread(),
            None => pumped,
        });
        self.publish_progress();
        Ok(match told {
            Some(detail) => Outcome::done_with("CREATE SOURCE", detail),
            None => Outcome::done("CREATE SOURCE"),
        })
    }

    /// A source of a database that was opened: its connector may not be known yet, and what it
    /// reads may be gone.
    pub(super) fn restore_source(
        &mut self,
        create: &CreateSource,
        text: &str,
        schema: SchemaRef,
        stand: Option<Stand>,
    ) -> Result<(), Error> {
        let mut asked = asked_source(create)?;
        self.add_source(create, &asked, schema.clone(), text)?;
        asked.spec.columns = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        let waiting = WaitingRows { connector: asked.connector, spec: asked.spec, stand: stand.unwrap_or_default() };
        self.pump.add(Pumped::waiting(waiting, asked.rate));
        Ok(())
    }

    /// Lets sources that wait for that connector go on where they were.
    pub(super) fn resume_sources(&mut self, connector: &str) {
        let Ok(by) = self.connector(connector) else { return };
        let now = self.options.clock.now_micros();
        self.pump.resume(connector, by.as_ref(), now);
        self.publish_progress();
    }

    /// The relation of a source.
    fn add_source(
        &mut self,
        create: &CreateSource,
        asked: &AskedSource,
        schema: SchemaRef,
        text: &str,
    ) -> Result<(), Error> {
        let watermark = watermark(create.watermark.as_ref(), &schema)?;
        let object = Object {
            retain: asked.retain.unwrap_or(Retain::All),
            watermark,
            source: Some(SourceOptions { connector: asked.connector.clone() }),
            is_append_only: true,
            ..Object::new(&create.name, ObjectKind::Source, schema, text.to_string())
        };
        self.add_timed_input(object)
    }

    /// The connector of that name.
    pub(crate) fn connector(&self, name: &str) -> Result<Arc<dyn crate::connector::Connector>, Error> {
        self.connectors.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.connectors.keys().map(String::as_str).collect();
            let list = match known.is_empty() {
                true => "No connector is registered.".to_string(),
                false => format!("Known connectors: {}.", known.join(", ")),
            };
            let hint = match nearest(name, known.iter().copied()) {
                Some(near) => format!("Did you mean '{near}'? {list}"),
                None => list,
            };
            Error::invalid(format!("connector \"{name}\" does not exist")).with_hint(hint)
        })
    }
}

/// What the options of a source ask for.
struct AskedSource {
    connector: String,
    /// `None` when not said.
    retain: Option<Retain>,
    /// Rows a second; `None` is as fast as possible.
    rate: Option<f64>,
    spec: SourceSpec,
}

fn asked_source(create: &CreateSource) -> Result<AskedSource, Error> {
    let mut options: BTreeMap<String, String> = create.options.iter().cloned().collect();
    let retain = take_retain(&mut options)?;
    let rate = options.remove("rate").map(|rate| parse_rate(&rate)).transpose()?.flatten();
    let connector = options.remove("connector").ok_or_else(|| {
        Error::invalid(format!("source \"{}\" names no connector", create.name))
            .with_hint("Add connector = 'file' to WITH (..).")
    })?;
    let spec = SourceSpec { name: create.name.clone(), columns: create.columns.clone(), options };
    Ok(AskedSource { connector, retain, rate, spec })
}
