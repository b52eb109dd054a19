//! The present as a relation: what standing queries compare with `now()`.
//!
//! The relation `watermark of now()` has one row, the time of the last commit. Each commit moves
//! the row, and *ticks* do: commits of nothing else, which no log keeps.
//!
//! Law: as of each commit, `now()` in a standing query is the time of the commit. What is read
//! comes after a tick, so that an answer is as of the clock; a quiet session ticks every
//! `TICK_MICROS`, so that subscriptions follow.
//!
//! Cost: none without a reader. A tick costs its readers the rows that come or go with it.

use std::sync::Arc;

use anabranch_batch::{Batch, Diff, Diffs, Time, Times};
use anabranch_plan::Plan;
use anabranch_sql::statement::ObjectKind;
use arrow::array::{ArrayRef, TimestampMicrosecondArray};

use super::sealed::SealedMark;
use super::state::Session;
use crate::catalog::{CLOCK, Object, ObjectId, clock_schema};
use crate::error::Error;

/// A quiet session with a reader of the clock commits so often.
const TICK_MICROS: i64 = 100_000;

impl Session {
    /// Makes the clock ready for a plan that reads it.
    pub(super) fn follow_clock(&mut self, plan: &Plan) -> Result<(), Error> {
        if !plan.relations().iter().any(|name| name == CLOCK) {
            return Ok(());
        }
        if self.catalog.find(CLOCK).is_none() {
            self.add_input(clock_object())?;
        }
        self.present.is_awaited = true;
        let ticked = self.tick();
        self.present.is_awaited = false;
        ticked
    }

    /// Lets relations that follow the clock follow it up to now, before they are read.
    pub(super) fn tick_before_reading(&mut self, relations: &[String]) -> Result<(), Error> {
        let is_quiet = self.catalog.find(CLOCK).is_none() || self.client.transaction.is_some();
        if is_quiet || !self.catalog.inputs_behind(relations).contains(CLOCK) {
            return Ok(());
        }
        self.tick()
    }

    /// A tick, if one is due; else when the next one is. Nothing without a reader.
    pub(super) fn tick_when_due(&mut self, now: i64) -> Result<Option<i64>, Error> {
        let Some(shown) = self.present.shown else { return Ok(None) };
        if !self.is_clock_read() {
            return Ok(None);
        }
        let due = shown.saturating_add(TICK_MICROS);
        if now < due {
            return Ok(Some(due));
        }
        self.tick()?;
        Ok(Some(now.saturating_add(TICK_MICROS)))
    }

    /// A commit of nothing but the time, if the clock has gone on.
    fn tick(&mut self) -> Result<(), Error> {
        let is_past = self.present.shown.is_some_and(|shown| self.options.clock.now_micros() <= shown);
        if is_past || self.timeline.is_open() {
            return Ok(());
        }
        self.begin_commit();
        self.commit_pending()
    }

    /// The move of the clock's row to the time of a commit.
    pub(super) fn seal_clock(&mut self, time: Time) -> Option<SealedMark> {
        let clock = self.catalog.find(CLOCK)?;
        let collection = clock.maintained.as_ref().map(|maintained| maintained.collection)?;
        if !self.is_clock_read() {
            return None;
        }
        let before = self.present.shown.replace(time);
        let moved: Vec<(Time, Diff)> = before.map(|before| (before, -1)).into_iter().chain([(time, 1)]).collect();
        let values: TimestampMicrosecondArray = moved.iter().map(|(value, _)| Some(*value)).collect();
        let values: ArrayRef = Arc::new(values.with_data_type(clock_schema().field(0).data_type().clone()));
        let diffs = Diffs::Column(moved.into_iter().map(|(_, diff)| diff).collect());
        let changes = Batch::new(vec![values], Times::Constant(time), diffs);
        Some(SealedMark { object: ObjectId::default(), input: collection, collection, changes })
    }

    /// Takes back a move of the clock that did not happen.
    pub(super) fn take_back_clock(&mut self, before: Option<Time>) {
        self.present.shown = before;
    }

    /// The time that the clock's row holds.
    pub(super) fn clock_shown(&self) -> Option<Time> {
        self.present.shown
    }

    fn is_clock_read(&self) -> bool {
        self.present.is_awaited || self.catalog.is_read(CLOCK) || self.subscriptions.read(CLOCK)
    }
}

fn clock_object() -> Object {
    Object { is_hidden: true, ..Object::new(CLOCK, ObjectKind::Table, clock_schema(), String::new()) }
}
