//! AS OF: reading what was, and the time that is.
//!
//! Law: what is read as of `t` is what a read at `t` would have given. It can be had while every
//! arrangement that is read keeps `t` apart: from its `since` to the last commit. `retain_history`
//! is how far behind the last commit the session holds that `since`.
//!
//! Times are microseconds since the epoch of Unix; a timestamp says the same.

use std::collections::BTreeMap;

use anabranch_batch::Time;
use anabranch_plan::Plan;
use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use arrow::temporal_conversions::timestamp_us_to_datetime;
use datafusion_expr::sqlparser::ast;

use super::state::Session;
use crate::catalog::{Object, kind_name};
use crate::cluster::{ArrangementId, DataflowId};
use crate::error::Error;
use crate::transaction::conflict;

/// What can be read as of a time before the last commit.
#[derive(Debug)]
pub(super) struct Past {
    pub at: Time,
    /// From when on each arrangement can be read.
    readable: BTreeMap<ArrangementId, Time>,
}

impl Past {
    /// Whether an arrangement can be read as of that time.
    pub fn is_readable(&self, arrangement: ArrangementId) -> bool {
        self.readable.get(&arrangement).is_some_and(|since| *since <= self.at)
    }
}

impl Session {
    /// The time that `AS OF` names, if there is one: checked to be readable for all that the plan
    /// reads.
    ///
    /// # Errors
    /// `Invalid` when the expression is no time, or the time is not in the range that can be read;
    /// says which is.
    pub(super) fn past(&mut self, as_of: Option<&ast::Expr>, plan: &Plan) -> Result<Option<Past>, Error> {
        match as_of {
            Some(as_of) => {
                let at = self.time_of(as_of)?;
                self.past_at(at, plan).map(Some)
            }
            None => Ok(None),
        }
    }

    /// The commit as of which the open transaction reads, if what it has read has changed since.
    ///
    /// # Errors
    /// A conflict when a relation cannot be read as of that commit.
    pub(super) fn past_of_transaction(&mut self, plan: &Plan) -> Result<Option<Past>, Error> {
        match &self.client.transaction {
            Some(transaction) if transaction.is_behind => {
                let seen = transaction.seen;
                self.past_at(seen, plan).map(Some).map_err(|error| conflict(&error.message))
            }
            _ => Ok(None),
        }
    }

    fn past_at(&mut self, at: Time, plan: &Plan) -> Result<Past, Error> {
        self.allow_compaction();
        let readable = self.cluster.stats().into_iter().map(|stats| (stats.arrangement, stats.readable)).collect();
        let past = Past { at, readable };
        for name in plan.relations() {
            let object = self.catalog.get(&name)?;
            let Some(since) = earliest(object, &past) else { continue };
            if at < since || at > self.timeline.last() {
                return Err(self.unreadable(object, at, since));
            }
        }
        Ok(past)
    }

    fn unreadable(&self, object: &Object, at: Time, since: Time) -> Error {
        let last = self.timeline.last();
        let (kind, name) = (kind_name(object.kind), &object.name);
        let error = Error::invalid(format!("{kind} \"{name}\" cannot be read as of {}", moment(at)));
        let range = format!("It can be read as of {} to {}, the last commit.", moment(since), moment(last));
        let error = error.with_detail(range);
        match at > last {
            true => error.with_hint("SHOW TIME tells the time of the last commit."),
            false => error.with_hint("SET retain_history = '1 hour' keeps that much history from now on."),
        }
    }

    /// The time that an expression without columns means.
    fn time_of(&self, expr: &ast::Expr) -> Result<Time, Error> {
        let value = self.evaluate_constant(&format!("SELECT {expr}"))?;
        as_time(&value).ok_or_else(|| {
            Error::invalid(format!("AS OF {expr} is not a time"))
                .with_hint("It takes microseconds since 1970 as SHOW TIME tells them, or a timestamp.")
        })
    }

    /// The time up to which an arrangement may be let go: history is kept for relations, not for
    /// what queries share.
    /// `pin` is the first commit that is pinned.
    pub(super) fn forgettable(&self, arrangement: ArrangementId, pin: Option<Time>) -> Time {
        let pin = pin.filter(|_| self.dataflows.is_owned(arrangement));
        self.retained(arrangement).min(pin.unwrap_or(Time::MAX))
    }

    /// Up to when each dataflow need not tell apart the times after this one. (A pin before them
    /// reads none of them.)
    pub(super) fn horizons(&self, after: Time) -> Vec<(DataflowId, Time)> {
        let pin = self.timeline.first_pin_after(after).unwrap_or(Time::MAX);
        self.dataflows.horizons(|arrangement| self.retained(arrangement).min(pin))
    }

    fn retained(&self, arrangement: ArrangementId) -> Time {
        let last = self.timeline.last();
        match self.dataflows.is_owned(arrangement) {
            true => last.saturating_sub(self.settings.retain_history_micros),
            false => last,
        }
    }
}

/// The first time as of which some arrangement of the relation can be read.
fn earliest(object: &Object, past: &Past) -> Option<Time> {
    let arrangements = object.maintained.iter().flat_map(|maintained| &maintained.arrangements);
    arrangements.filter_map(|arranged| past.readable.get(&arranged.arrangement).copied()).min()
}

/// A time as SHOW TIME tells it, and as a timestamp if it is one.
fn moment(time: Time) -> String {
    match timestamp_us_to_datetime(time) {
        Some(timestamp) => format!("{time} ({})", timestamp.format("%F %T%.6f")),
        None => time.to_string(),
    }
}

/// A number of microseconds, a timestamp, or a text of one, as a time.
fn as_time(value: &ArrayRef) -> Option<Time> {
    let micros = match value.data_type() {
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 | DataType::Timestamp(..) | DataType::Date32 => {
            let timestamps = cast(value, &DataType::Timestamp(TimeUnit::Microsecond, None)).ok()?;
            cast(&timestamps, &DataType::Int64).ok()?
        }
        data_type if data_type.is_integer() => cast(value, &DataType::Int64).ok()?,
        _ => return None,
    };
    (value.len() == 1 && micros.null_count() == 0).then(|| micros.as_primitive::<Int64Type>().value(0))
}
