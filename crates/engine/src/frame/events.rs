//! A named input of events, as it is described: its columns, its promises, how its rows arrive.

use std::time::Duration;

use anabranch_operators::temporal::ingress::{Disorder, Policy};
use arrow::datatypes::SchemaRef;

use super::relation::Timing;
use crate::error::Error;
use crate::nearest::nearest;

/// A named input of events, being described. [`Events::frame`] makes it a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    pub(super) name: String,
    pub(super) schema: SchemaRef,
    pub(super) time: Option<String>,
    pub(super) end: Option<String>,
    /// What the times are, if the rows are those of a relation of the session.
    pub(super) relation: Option<Timing>,
    /// How rows are brought in order, if that was said.
    pub(super) arrival: Option<Arrival>,
    /// What is promised of them.
    pub(super) declared: Declared,
    /// How long they may wait to be batched.
    pub(super) latency: Duration,
}

impl Events {
    /// An input of rows of this schema.
    pub fn input(name: &str, schema: impl Into<SchemaRef>) -> Events {
        Events {
            name: name.to_owned(),
            schema: schema.into(),
            time: None,
            end: None,
            relation: None,
            arrival: None,
            declared: Declared::default(),
            latency: Duration::ZERO,
        }
    }

    /// The column that says when a row begins; for rows pushed as record batches.
    #[must_use]
    pub fn time_column(mut self, column: &str) -> Events {
        self.time = Some(column.to_owned());
        self
    }

    /// The column that says when a row ends; NULL for never.
    #[must_use]
    pub fn end_column(mut self, column: &str) -> Events {
        self.end = Some(column.to_owned());
        self
    }

    /// The input's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its columns, as they are pushed.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The same rows, whose times are of no account.
    pub(super) fn timeless(self) -> Events {
        let Events { name, schema, .. } = self;
        Events::input(&name, schema)
    }

    pub(super) fn no_column(&self, column: &str) -> Error {
        let names: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let error = Error::invalid(format!("input \"{}\" has no column \"{column}\"", self.name));
        match nearest(column, names) {
            Some(near) => error.with_hint(format!("Did you mean \"{near}\"?")),
            None => error,
        }
    }
}

/// Promises, by the names of columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(super) duration: Option<i64>,
    pub(super) hop: Option<i64>,
    pub(super) interval_free: bool,
    pub(super) sorted: bool,
    pub(super) bounded: bool,
    pub(super) unique: Option<Vec<String>>,
    pub(super) sorted_by: Vec<String>,
}

/// How an input is brought in order, by the names of its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(super) policy: Policy,
    pub(super) partition: Vec<String>,
}

impl Arrival {
    pub(super) fn disorder(&self) -> Disorder {
        self.policy.disorder
    }

    pub(super) fn is_partitioned(&self) -> bool {
        !self.partition.is_empty()
    }
}
