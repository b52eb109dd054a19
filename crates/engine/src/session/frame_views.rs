//! Views of frames: the result of a frame is a relation that SQL reads, joins and subscribes to.
//!
//! Law: a view of a frame holds, after each commit, what the frame's events have in force just
//! before its frontier, or all of them with their start and end. It changes with the commit whose
//! rows change it, and with no other: a read sees tables, views of SQL and views of frames as of
//! one commit.
//!
//! Inputs of the frame are relations of the session ([`Session::events`], [`Session::contents`]):
//! tables, sources, materialized views and views of frames. Times of a view by columns go with the
//! watermarks of its inputs; times of a view by commits go with the commits, so a window closes
//! with the first commit after its end. What a commit makes of a view of SQL is known once workers
//! have taken the commit in: such views come last (`frame_sources`).
//!
//! Cost: a commit waits for the frames that read one of its relations. A row in error fails the
//! view until it is dropped; nothing else is affected.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, Time, Times, types};
use anabranch_flow::account::{Cause, Failure};
use anabranch_sql::statement::ObjectKind;
use arrow::datatypes::{Field, Schema};

use super::create::scan_plan;
use super::dataflows::check_history;
use super::sealed::SealedRows;
use super::state::Session;
use super::state::frame_view::{FrameView, Held};
use crate::catalog::{Catalog, Object, ObjectId, kind_name};
use crate::cluster::DataflowId;
use crate::coerce::planned_schema;
use crate::error::Error;
use crate::frame::{Events, Frame, FrameRun, Timing};

impl Session {
    /// Rows of an append-only table or source as events of frames, at the times of the column of
    /// its watermark.
    ///
    /// # Errors
    /// `Invalid` when there is no such relation, or it has no watermark, or rows may be taken out.
    pub fn events(&self, relation: &str) -> Result<Events, Error> {
        let object = self.catalog.get(relation)?;
        let kind = kind_name(object.kind);
        let Some(watermark) = &object.watermark else {
            return Err(Error::invalid(format!("{kind} \"{relation}\" has no watermark, so its rows have no times"))
                .with_hint("Declare WATERMARK FOR a column of times, or read its contents by commits."));
        };
        if !object.is_append_only {
            return Err(Error::invalid(format!("rows of {kind} \"{relation}\" may be changed, and events stay"))
                .with_hint("Create the table APPEND ONLY, or read its contents by commits."));
        }
        let column = object.schema.field(watermark.column()).name().clone();
        Ok(Events::of_relation(relation, &object.schema, Timing::Column)?.time_column(&column))
    }

    /// The contents of a table, source or materialized view as events: a row is in force from the
    /// commit that brings it, at its time in microseconds, to the commit that takes it.
    ///
    /// # Errors
    /// `Invalid` when there is no such relation, or it is a view that is not kept.
    pub fn contents(&self, relation: &str) -> Result<Events, Error> {
        let object = self.catalog.get(relation)?;
        if object.maintained.is_none() {
            let kind = kind_name(object.kind);
            return Err(Error::invalid(format!("{kind} \"{relation}\" is not kept, so frames cannot read it"))
                .with_hint("Make it a MATERIALIZED VIEW, or CREATE INDEX on it."));
        }
        Events::of_relation(relation, &object.schema, Timing::Commits)
    }

    /// Makes the result of a frame a relation: what its events have in force just before its
    /// frontier. `DROP MATERIALIZED VIEW` ends it.
    ///
    /// ```
    /// use anabranch_engine::frame::{col, sum};
    /// use anabranch_engine::{Options, Session};
    ///
    /// let mut session = Session::new(Options::default())?;
    /// session.execute("CREATE TABLE readings (sensor text, at bigint, x bigint, WATERMARK FOR at AS at) APPEND ONLY")?;
    /// let sums = session.events("readings")?.frame().tumbling(10).group_by([col("sensor")]).agg([sum(col("x")).alias("sum")]);
    /// session.create_view("sums", &sums)?;
    /// session.execute("INSERT INTO readings VALUES ('a', 3, 5), ('a', 7, 6), ('a', 12, 1)")?;
    /// assert_eq!(session.query("SELECT * FROM sums WHERE sum > 10")?.num_rows(), 1);
    /// # Ok::<(), anabranch_engine::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error of building the frame; `Invalid` when the name is taken, when an input is no
    /// relation of the session, inside a transaction, and in a database with a data directory: a
    /// frame has no text to record.
    pub fn create_view(&mut self, name: &str, frame: &Frame) -> Result<(), Error> {
        let schema = frame.schema()?;
        self.create_frame_view(name, frame, &schema, Held::InForce)
    }

    /// Makes a relation of all events of a frame: columns `start` and `end` (NULL while it is not
    /// known, or when there is none) before the frame's own. It does not depend on when it is
    /// asked, and grows with the events. Its times are timestamps where those of the inputs are,
    /// else bigint.
    ///
    /// # Errors
    /// As [`create_view`](Self::create_view), and `Invalid` when a column is called start or end.
    pub fn create_events_view(&mut self, name: &str, frame: &Frame) -> Result<(), Error> {
        let schema = frame.schema_with_lifetimes()?;
        let times = schema.field(0).data_type().clone();
        self.create_frame_view(name, frame, &schema, Held::All(times))
    }

    fn create_frame_view(&mut self, name: &str, frame: &Frame, schema: &Schema, holds: Held) -> Result<(), Error> {
        self.begin_statement()?;
        self.check_made_here(name, "a frame")?;
        let inputs = self.relations_behind(frame)?;
        let reads: BTreeSet<String> = inputs.keys().cloned().collect();
        let object = frame_object(name, frame, schema, reads)?;
        let contents = inputs.keys().map(|input| Ok((input.clone(), self.rows_of(input)?)));
        let contents = contents.collect::<Result<Vec<(String, Vec<Batch>)>, Error>>()?;
        self.add_input(object)?;
        let subscribed = match self.subscribe_to_views(name, &inputs) {
            Ok(subscribed) => subscribed,
            Err(error) => {
                self.drop_relation(name);
                return Err(error);
            }
        };
        let followed = self.follow_from_now(name, frame, holds, inputs, contents, subscribed);
        followed.inspect_err(|_| self.drop_relation(name))
    }

    /// Sets the frame behind a relation to work, over these rows at first.
    fn follow_from_now(
        &mut self,
        name: &str,
        frame: &Frame,
        holds: Held,
        inputs: BTreeMap<String, ObjectId>,
        contents: Vec<(String, Vec<Batch>)>,
        subscribed: BTreeMap<ObjectId, DataflowId>,
    ) -> Result<(), Error> {
        let time = self.timeline.last();
        let mut run = self.start(frame)?;
        for (input, rows) in contents {
            rows.into_iter().try_for_each(|rows| run.push_rows(&input, rows.with_times(Times::Constant(time))))?;
        }
        let run = Some(run.suspend());
        let object = self.catalog.get(name)?;
        let collection = object.maintained.as_ref().map(|maintained| maintained.collection);
        let collection = collection.ok_or_else(|| Error::internal(format!("\"{name}\" has no collection")))?;
        let is_by_commits = frame.state()?.inputs.values().any(|input| input.timing() == Some(Timing::Commits));
        let object = object.id;
        let comes_last = self.comes_last(&inputs, &subscribed);
        if comes_last {
            self.cluster.give_own_time(collection);
        }
        let has_begun = false;
        let view =
            FrameView { object, collection, inputs, run, is_by_commits, holds, has_begun, subscribed, comes_last };
        self.frame_views.push(view);
        self.begin_commit();
        self.commit_pending()?;
        self.check_frame_view(name)
    }

    /// The relations that the inputs of a frame stand for.
    fn relations_behind(&self, frame: &Frame) -> Result<BTreeMap<String, ObjectId>, Error> {
        let state = frame.state()?;
        let mut relations = BTreeMap::new();
        let mut is_mixed = (false, false);
        for (input, events) in &state.inputs {
            let Some(timing) = events.timing() else {
                return Err(Error::invalid(format!("input \"{input}\" of the frame is no relation of the session"))
                    .with_hint("Describe it with events(relation) or contents(relation) of the session."));
            };
            let object = self.catalog.get(input)?;
            if object.schema != *events.schema() {
                return Err(Error::invalid(format!("\"{input}\" has other columns than when the frame was built"))
                    .with_hint("Build the frame anew."));
            }
            match timing {
                Timing::Column => is_mixed.0 = true,
                Timing::Commits => is_mixed.1 = true,
            }
            relations.insert(input.clone(), object.id);
        }
        if is_mixed == (true, true) {
            return Err(Error::invalid("the frame reads one relation by times of a column, another by commits")
                .with_detail("A column says when something happened, a commit when it became known.")
                .with_hint("Read both in one way, or join the view of the frame in SQL."));
        }
        Ok(relations)
    }

    /// The rows of an input as of the last commit. A source begins with the frame, which reads all
    /// of its columns: the source needs no rows of its own for that.
    fn rows_of(&mut self, input: &str) -> Result<Vec<Batch>, Error> {
        let plan = scan_plan(self.catalog.get(input)?)?;
        self.begin_sources(&plan)?;
        let object = self.catalog.get(input)?;
        if object.is_readable() {
            return self.collect(&plan);
        }
        check_history(object)?;
        Ok(vec![])
    }

    /// What the views of frames become by a commit that brings `rows`, in the order in which they
    /// were made: a view may read those before it.
    pub(super) fn follow_frames(&mut self, rows: &mut Vec<SealedRows>, time: Time) {
        let mut views = std::mem::take(&mut self.frame_views);
        for view in &mut views {
            if !view.comes_last && view.is_due(rows) {
                self.follow_frame(view, rows, time);
            }
        }
        self.frame_views = views;
    }

    /// Adds what a view of a frame becomes by a commit that brings `rows`.
    pub(super) fn follow_frame(&mut self, view: &mut FrameView, rows: &mut Vec<SealedRows>, time: Time) {
        let Some(run) = view.run.take() else { return };
        let mut run = run.resume(&mut self.cluster);
        match follow(&mut run, &self.catalog, view, rows, time) {
            Ok(changes) => {
                view.run = Some(run.suspend());
                let (object, collection) = (view.object, view.collection);
                rows.extend(changes.map(|batch| SealedRows { object, collection, batch }));
            }
            Err(error) => {
                drop(run);
                self.fail_view(view.object, &error);
            }
        }
    }

    /// Lets a view of a frame, and all that read it, fail.
    pub(super) fn fail_view(&mut self, object: ObjectId, error: &Error) {
        let arranged = self.catalog.all_objects().filter(|other| other.id == object);
        let arranged = arranged.flat_map(|object| &object.maintained).flat_map(|maintained| &maintained.arrangements);
        for dataflow in arranged.map(|arranged| arranged.dataflow) {
            let failure = Failure { cause: Cause::Rows, message: error.message.clone() };
            self.cluster.fail(dataflow, failure);
        }
    }

    fn check_frame_view(&self, name: &str) -> Result<(), Error> {
        let object = self.catalog.get(name)?;
        let arranged = object.maintained.iter().flat_map(|maintained| &maintained.arrangements);
        arranged.map(|arranged| arranged.arrangement).try_for_each(|it| self.cluster.check_sound(it))
    }

    /// Ends the frame behind a relation that goes.
    pub(super) fn drop_frame_view(&mut self, object: ObjectId) {
        let Some(at) = self.frame_views.iter().position(|view| view.object == object) else { return };
        let view = self.frame_views.remove(at);
        drop(view.run.map(|run| run.resume(&mut self.cluster)));
        view.subscribed.into_values().for_each(|dataflow| self.release_dataflow(dataflow));
    }
}

/// What a frame's result becomes by a commit.
fn follow(
    run: &mut FrameRun<'_>,
    catalog: &Catalog,
    view: &FrameView,
    rows: &[SealedRows],
    time: Time,
) -> Result<Option<Batch>, Error> {
    for (input, object) in &view.inputs {
        for changed in rows.iter().filter(|rows| rows.object == *object) {
            run.push_rows(input, changed.batch.clone())?;
        }
        let reached = match run.timing(input)? {
            Some(Timing::Commits) => Some(time + 1),
            _ => catalog.watermark_of(*object),
        };
        reached.into_iter().try_for_each(|reached| run.advance(input, reached))?;
    }
    let changes = match &view.holds {
        Held::InForce => run.changes()?,
        Held::All(times) => run.all_events(times)?,
    };
    let Some(changes) = Batch::concat(&changes) else { return Ok(None) };
    let columns = changes.columns().iter().map(|column| types::narrowed(column)).collect::<Result<Vec<_>, _>>();
    let columns = columns.map_err(|error| Error::data(error.detail()))?;
    let changes = consolidate(changes.with_columns(columns.into()).with_times(Times::Constant(time)));
    Ok(Some(changes).filter(|changes| !changes.is_empty()))
}

/// The relation of a frame's result.
fn frame_object(name: &str, frame: &Frame, schema: &Schema, reads: BTreeSet<String>) -> Result<Object, Error> {
    let fields: Vec<Field> = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
    let schema = planned_schema("materialized view", name, &fields)?;
    let explained: String = frame.explain()?.lines().map(|line| format!("\n--   {line}")).collect();
    let definition = format!("-- \"{name}\" is a view of a frame of the program:{explained}");
    Ok(Object { reads, ..Object::new(name, ObjectKind::MaterializedView, schema, definition) })
}
