//! The timeline: commits and their times.
//!
//! Law: commit times increase; all inputs move together, so at every time at which something is
//! read, all of a commit is there or nothing of it. A commit is *staged* while rows are gathered:
//! no worker knows of it, and dropping it leaves no trace. Then it is *sealed* (`sealed`),
//! recorded, and only then pushed: see `publish`.
//!
//! Arrangements are let go up to the last commit every few commits, not at each: compaction follows
//! a little behind. A commit of several times lets them go at once, and tells dataflows which of
//! the times no reader will read (see
//! [`Dataflows::horizons`](crate::dataflows::Dataflows::horizons)).

use std::time::Duration;

use anabranch_batch::{Batch, Diffs, END, Time, Times};
use anabranch_sql::statement::ObjectKind;
use arrow::array::{ArrayRef, RecordBatch};

use super::durable::{COUNTERS, WATERMARK};
use super::sealed::{Receipt, Sealed, SealedFact, SealedMark, SealedRows};
use super::state::Session;
use super::state::timeline::Timeline;
use crate::catalog::{Arrival, Catalog, Created, Object, Retain, Watermark, kind_name};
use crate::cluster::{ArrangementId, CollectionId};
use crate::coerce::{Fitting, Target, check_not_null, coerce};
use crate::error::Error;

/// Commits the session may be ahead of the workers.
const COMMITS_AHEAD_MAX: usize = 8;
/// Commits, and rows, after which arrangements are allowed to forget.
const COMPACT_AFTER_COMMITS: usize = 16;
const COMPACT_AFTER_ROWS: usize = 16_384;

impl Session {
    /// Time of the last commit; what is read now is as of it.
    pub fn time(&self) -> Time {
        self.timeline.last()
    }

    /// Appends rows to a table as one commit. Columns go by name when all names are the table's,
    /// else by position.
    ///
    /// # Errors
    /// `Invalid` when the columns do not fit, `Data` when a value does not, a NULL is not allowed
    /// or a primary key is there already. Nothing is applied then.
    pub fn insert(&mut self, table: &str, batch: &RecordBatch) -> Result<Time, Error> {
        self.begin_statement()?;
        let columns = self.fit_to_table(table, batch)?;
        let rows = Batch::with_len(columns.into(), batch.num_rows(), Times::Constant(0), Diffs::Constant(1));
        let time = self.keeping_watermark(table, |session| {
            let rows = session.admit_rows(table, vec![rows])?;
            session.write_checked(table, rows)
        })?;
        self.await_lasting()?;
        Ok(time)
    }

    /// Applies signed changes to a table as one commit.
    ///
    /// Retractions are not checked: taking away a row that is not there leaves a row with a
    /// negative multiplicity, and reading it is an error until it is added. Neither are keys, nor
    /// foreign keys.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), and `Invalid` when `diffs` has not one entry a row.
    pub fn apply(&mut self, table: &str, rows: &RecordBatch, diffs: &[i64]) -> Result<Time, Error> {
        self.begin_statement()?;
        self.catalog.table(table)?;
        self.ingest(table, rows, None, Some(diffs))?;
        self.commit()
    }

    /// Stages changes in the open commit (opening one if none is) without checking keys and without
    /// running workers. No reader sees them before [`commit`](Self::commit), or the next statement,
    /// which commits first.
    ///
    /// `times` gives rows times of their own, all later than [`time`](Self::time): a physical batch
    /// of many logical ones. Without, all rows get the time of the commit. `diffs` has one entry a
    /// row; without, each row is added once.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), and `Invalid` for times that are not after the last commit.
    pub fn ingest(
        &mut self,
        relation: &str,
        batch: &RecordBatch,
        times: Option<Times>,
        diffs: Option<&[i64]>,
    ) -> Result<(), Error> {
        let n_rows = batch.num_rows();
        if diffs.is_some_and(|diffs| diffs.len() != n_rows) {
            return Err(Error::invalid(format!(
                "there are {n_rows} rows, but {} diffs",
                diffs.map_or(0, <[i64]>::len)
            )));
        }
        if let Some(Times::Column(times)) = &times
            && times.len() != n_rows
        {
            return Err(Error::invalid(format!("there are {n_rows} rows, but {} times", times.len())));
        }
        let columns = self.fit_to_table(relation, batch)?;
        if n_rows == 0 {
            return Ok(());
        }
        if self.client.transaction.is_some() {
            if times.is_some() {
                return Err(Error::invalid("rows with times of their own are not supported in a transaction")
                    .with_sqlstate("0A000")
                    .with_hint("COMMIT first."));
            }
            let diffs = diffs.map_or(Diffs::Constant(1), |diffs| Diffs::Column(diffs.to_vec().into()));
            return self.stage(relation, Batch::with_len(columns.into(), n_rows, Times::Constant(0), diffs));
        }
        if self.timeline.open.is_none() {
            self.forget_interrupt();
            self.keep_workers_near()?;
        }
        let (least, greatest) = match &times {
            Some(times) => times.range(),
            None => {
                let time = self.begin_commit();
                (time, time)
            }
        };
        if least <= self.timeline.last || greatest == END {
            return Err(Error::invalid(format!(
                "time {} is not after the last commit, {}",
                if greatest == END { greatest } else { least },
                self.timeline.last
            )));
        }
        let times = times.unwrap_or(Times::Constant(least));
        self.extend_commit(least, greatest);
        let diffs = diffs.map_or(Diffs::Constant(1), |diffs| Diffs::Column(diffs.to_vec().into()));
        let batch = Batch::with_len(columns.into(), n_rows, times, diffs);
        let is_added = matches!(batch.diffs(), Diffs::Constant(1)) || self.catalog.get(relation)?.is_append_only;
        let batch = if is_added { self.admit(relation, batch, Arrival::AtOnce)? } else { batch };
        self.push(relation, batch)
    }

    /// Closes the open commit: what was staged becomes visible. Returns its time; without an open
    /// commit, the last one's.
    ///
    /// # Errors
    /// When the commit cannot be recorded; nothing of it is applied then.
    pub fn commit(&mut self) -> Result<Time, Error> {
        self.commit_pending()?;
        self.await_lasting()?;
        Ok(self.timeline.last)
    }

    /// Returns when all that the session has shown lasts. A connection waits by itself, on its own
    /// thread.
    pub(super) fn await_lasting(&self) -> Result<(), Error> {
        if self.serves { Ok(()) } else { self.receipt().wait() }
    }

    /// Tells when all that the session has shown lasts.
    pub(crate) fn receipt(&self) -> Receipt {
        self.recorder.as_ref().map(|recorder| recorder.receipt()).unwrap_or_default()
    }

    /// What every call does first that reads or writes: forgets an earlier interrupt, closes an
    /// open commit, and waits until the workers are near. An interrupt while waiting is an error
    /// before anything was done.
    pub(super) fn begin_statement(&mut self) -> Result<(), Error> {
        self.forget_interrupt();
        self.cluster.take_down_failed();
        self.commit_pending()?;
        self.keep_workers_near()
    }

    /// The rows' columns as the relation's.
    fn fit_to_table(&mut self, relation: &str, batch: &RecordBatch) -> Result<Vec<ArrayRef>, Error> {
        let object = self.catalog.get(relation)?;
        let is_written = matches!(object.kind, ObjectKind::Table | ObjectKind::Source);
        if !is_written || !object.maintained.as_ref().is_some_and(|maintained| maintained.is_input) {
            return Err(Error::invalid(format!("rows cannot be written to {} \"{relation}\"", kind_name(object.kind))));
        }
        if let Some(fitting) = object.fitting.as_ref().filter(|fitting| fitting.is_of(batch)) {
            check_not_null(target(object), batch.columns())?;
            if let Some(columns) = fitting.as_stored(batch.columns()) {
                return Ok(columns);
            }
        }
        let columns = coerce(target(object), batch, |idx, n_rows| self.default_column(object, idx, n_rows))?;
        let columns = self.complete_columns(object, columns, batch.num_rows())?;
        let has_rules = object.rules.passes.is_some() || object.rules.values.is_some();
        let fitting = Fitting::of(target(object), batch.schema_ref()).filter(|_| !has_rules);
        if let Some(object) = self.catalog.find_mut(relation) {
            object.fitting = fitting;
        }
        Ok(columns)
    }

    /// Least time of the open commit, which is opened if none is.
    pub(super) fn begin_commit(&mut self) -> Time {
        if let Some((least, _)) = self.timeline.open {
            return least;
        }
        let now = self.options.clock.now_micros();
        let next = now.clamp(0, END / 2).max(self.timeline.last + 1);
        self.timeline.open.insert((next, next)).0
    }

    fn extend_commit(&mut self, least: Time, greatest: Time) {
        let open = self.timeline.open.get_or_insert((least, greatest));
        *open = (open.0.min(least), open.1.max(greatest));
    }

    /// The rows that are not late, as far as the relation has a watermark, which follows them.
    pub(super) fn admit(&mut self, relation: &str, batch: Batch, arrival: Arrival) -> Result<Batch, Error> {
        // (What a transaction writes is admitted when it commits; sources go on beside it.)
        let waits = self.client.transaction.is_some();
        let object = self.catalog.find_mut(relation).filter(|object| !waits || object.kind != ObjectKind::Table);
        match object.and_then(|object| object.watermark.as_mut()) {
            Some(watermark) => watermark.admit(batch, arrival),
            None => Ok(batch),
        }
    }

    /// Stages changes whose times belong to the open commit.
    pub(super) fn push(&mut self, relation: &str, batch: Batch) -> Result<(), Error> {
        let object = self.catalog.find(relation).ok_or_else(|| Error::closed(format!("\"{relation}\" was dropped")))?;
        if !object.maintained.as_ref().is_some_and(|maintained| maintained.is_input) {
            return Err(Error::internal(format!("\"{relation}\" is no input")));
        }
        // (Rows of a table that has failed would be nowhere.)
        let arranged = object.maintained.iter().flat_map(|maintained| &maintained.arrangements);
        arranged.take(1).try_for_each(|arranged| self.cluster.check_sound(arranged.arrangement))?;
        object.check_added(&batch)?;
        self.timeline.staged.push((relation.to_owned(), batch));
        Ok(())
    }

    /// Makes one commit of changes to a relation, at a time of its own; in a transaction they are
    /// staged.
    pub(super) fn commit_batches(&mut self, relation: &str, batches: Vec<Batch>) -> Result<Time, Error> {
        if self.client.transaction.is_some() {
            for batch in batches.into_iter().filter(|batch| !batch.is_empty()) {
                self.stage(relation, batch)?;
            }
            return Ok(self.timeline.last);
        }
        let time = self.begin_commit();
        for batch in batches.into_iter().filter(|batch| !batch.is_empty()) {
            self.push(relation, batch.with_times(Times::Constant(time)))?;
        }
        self.commit_pending()?;
        Ok(self.timeline.last)
    }

    /// Forgets what the open commit has staged.
    pub(super) fn abandon_commit(&mut self) {
        self.timeline.open = None;
        self.timeline.staged.clear();
        self.timeline.staged_created = None;
        self.timeline.staged_facts.clear();
    }

    /// Records an object with the open commit, which brings its first rows.
    pub(super) fn stage_created(&mut self, created: Option<Created>) {
        self.begin_commit();
        self.timeline.staged_created = created;
    }

    /// Records a small value with the open commit. Without a recorder the value is not read.
    pub(super) fn stage_fact(&mut self, fact: SealedFact) {
        if self.recorder.is_some() {
            self.begin_commit();
            self.timeline.staged_facts.push(fact);
        }
    }

    /// Closes the open commit, if there is one: it is sealed, recorded and published.
    pub(super) fn commit_pending(&mut self) -> Result<(), Error> {
        let clock = self.clock_shown();
        let Some(sealed) = self.seal() else { return Ok(()) };
        if let Err(error) = self.record(&sealed) {
            self.take_back_clock(clock);
            self.catalog.unmark(sealed.marks.iter().map(|mark| (mark.object, &mark.changes)));
            return Err(error);
        }
        self.catalog.note_recorded();
        self.publish(sealed);
        Ok(())
    }

    /// What the open commit is, if there is one. From here on it is closed.
    fn seal(&mut self) -> Option<Sealed> {
        let (least, greatest) = self.timeline.open.take()?;
        let mut rows = Vec::new();
        for (relation, batch) in std::mem::take(&mut self.timeline.staged) {
            // (A relation is dropped by a statement, and statements begin with no commit open.)
            let Some(object) = self.catalog.find_mut(&relation) else { continue };
            let Some(maintained) = &object.maintained else { continue };
            if let Retain::Nothing { passed } = &mut object.retain {
                *passed = true;
            }
            rows.push(SealedRows { object: object.id, collection: maintained.collection, batch });
        }
        let mut marks = self.seal_marks(greatest);
        marks.extend(self.seal_clock(greatest));
        self.follow_frames(&mut rows, greatest);
        let mut facts = std::mem::take(&mut self.timeline.staged_facts);
        if self.recorder.is_some() {
            let stands = self.catalog.watermarks_unrecorded();
            facts.extend(stands.into_iter().map(|(object, value)| SealedFact { object, name: WATERMARK, value }));
        }
        facts.extend(counter_facts(&self.catalog, &rows));
        facts.extend(self.moved_facts());
        let created = self.timeline.staged_created.take().into_iter().collect();
        let durability = self.client.durability;
        Some(Sealed { first: least, time: greatest, created, removed: vec![], rows, marks, facts, durability })
    }

    /// What the relations that hold watermarks become at `time`.
    pub(super) fn seal_marks(&mut self, time: Time) -> Vec<SealedMark> {
        let marks = self.catalog.watermark_changes().into_iter();
        let sealed = marks.map(|(object, [input, collection], changes)| SealedMark {
            object,
            input,
            collection,
            changes: changes.with_times(Times::Constant(time)),
        });
        sealed.collect()
    }

    /// Takes note of a commit or a change of the catalog before any reader sees it. All of both
    /// pass here, in one order.
    ///
    /// # Errors
    /// When it cannot be kept; the caller then does not let it happen.
    pub(super) fn record(&mut self, sealed: &Sealed) -> Result<(), Error> {
        if self.recorder.is_none() || sealed.is_tick() {
            return Ok(());
        }
        let lasting = self.lasting(sealed);
        let sealed = lasting.as_ref().unwrap_or(sealed);
        self.recorder.as_mut().map_or(Ok(()), |recorder| recorder.record(sealed))
    }

    /// Makes a sealed commit visible: pushes it, and lets inputs, holds and (without threads) the
    /// workers follow.
    pub(super) fn publish(&mut self, sealed: Sealed) {
        let (least, greatest) = (sealed.first, sealed.time);
        let has_marks = !sealed.marks.is_empty();
        self.timeline.rows_unforgotten += sealed.n_updates();
        sealed.rows.iter().for_each(|rows| self.push_sealed(rows, greatest));
        for mark in sealed.marks {
            if let Some(value) = Watermark::value_after(&mark.changes) {
                self.note_mark(mark.input, greatest, value);
            }
            self.cluster.push(mark.collection, mark.changes);
        }
        for (collection, changes) in std::mem::take(&mut self.followed.staged) {
            self.cluster.push(collection, changes);
        }
        let before = std::mem::replace(&mut self.timeline.last, greatest);
        self.timeline.in_flight.push_back(greatest);
        self.timeline.commits_unforgotten += 1;
        if least < greatest {
            self.set_horizons(before);
        }
        self.cluster.advance_past(before, greatest);
        if has_marks {
            // Rows of this commit are judged by the marks before it: at a later time its own marks
            // would judge them.
            self.cluster.flush();
        }
        if self.has_last_frames() {
            self.follow_last_frames(sealed.rows, greatest);
        }
        match self.serves_many {
            true => self.note_latest(),
            false => self.compact_when_due(),
        }
        self.cluster.step();
    }

    /// [Flushes](Self::flush) unless workers have not taken in the commits before; tells how long
    /// it may be put off then.
    pub(crate) fn flush_or_wait(&mut self) -> Option<Duration> {
        let patience = self.cluster.patience();
        if patience.is_none() {
            self.flush();
        }
        patience
    }

    /// Lets workers know of the commits of a turn of the engine. Those that came together are one
    /// time for every dataflow whose readers do not tell them apart.
    pub(crate) fn flush(&mut self) {
        if self.cluster.deferred_commits() < 2 {
            self.compact_when_due();
            return self.cluster.flush();
        }
        // (No arrangement is read as of a time that dataflows pass over: all are let go up to it.)
        let Some(after) = self.cluster.deferred_after() else { return self.cluster.flush() };
        let since = self.forget();
        let horizons = self.horizons(after);
        self.cluster.flush_as_one(&since, horizons);
    }

    fn compact_when_due(&mut self) {
        let Timeline { commits_unforgotten, rows_unforgotten, .. } = self.timeline;
        if commits_unforgotten >= COMPACT_AFTER_COMMITS || rows_unforgotten >= COMPACT_AFTER_ROWS {
            self.allow_compaction();
        }
    }

    /// Tells the workers a watermark from `time` on, by the input that is read and by earlier ones.
    pub(super) fn note_mark(&mut self, input: CollectionId, time: Time, value: i64) {
        let earlier = self.earlier_inputs.get(&input).into_iter().flatten();
        for input in earlier.copied().chain([input]) {
            self.cluster.mark(input, time, value);
            self.dataflows.note_mark(input);
        }
    }

    /// Pushes rows of the commit at `time` to the workers.
    pub(super) fn push_sealed(&mut self, rows: &SealedRows, time: Time) {
        self.timeline.changed.note(rows.object, time, &rows.batch);
        for earlier in self.earlier_inputs.get(&rows.collection).into_iter().flatten() {
            self.cluster.push(*earlier, rows.batch.clone());
        }
        self.cluster.push(rows.collection, rows.batch.clone());
    }

    /// Spares dataflows the times inside the commit, later than `before`, that no reader will read:
    /// what is added up before it is worked on costs once.
    fn set_horizons(&mut self, before: Time) {
        self.allow_compaction();
        let horizons = self.horizons(before);
        self.cluster.set_horizons(before, horizons);
    }

    /// Lets every arrangement forget what was before the last commit, or before the history that is
    /// to be retained.
    pub(super) fn allow_compaction(&mut self) {
        if self.timeline.commits_unforgotten == 0 {
            return;
        }
        for (arrangement, since) in self.forget() {
            self.cluster.allow_compaction(arrangement, since);
        }
    }

    /// Up to when each arrangement is let go. From here on it is.
    fn forget(&mut self) -> Vec<(ArrangementId, Time)> {
        self.timeline.commits_unforgotten = 0;
        self.timeline.rows_unforgotten = 0;
        self.dataflows.forget_before(self.timeline.last);
        let (arrangements, pin) = (self.dataflows.arrangements(), self.timeline.first_pin_after(Time::MIN));
        arrangements.into_iter().map(|arrangement| (arrangement, self.forgettable(arrangement, pin))).collect()
    }

    /// Waits until the workers are at most a few commits behind, so that what they have not worked
    /// off stays bounded.
    ///
    /// (Connections that write wait by themselves, for room: see `waiting`.)
    pub(super) fn keep_workers_near(&mut self) -> Result<(), Error> {
        if self.serves_many {
            self.timeline.in_flight.clear();
            return Ok(());
        }
        while self.timeline.in_flight.len() > COMMITS_AHEAD_MAX {
            let Some(past) = self.timeline.in_flight.pop_front() else { break };
            self.await_dataflows(past)?;
        }
        Ok(())
    }

    /// Waits until every dataflow is complete for all times up to `past`.
    pub(super) fn await_dataflows(&mut self, past: Time) -> Result<(), Error> {
        if self.hands_over() {
            return self.hand_over_until(past);
        }
        for dataflow in self.dataflows.owned() {
            self.cluster.await_sound(dataflow, past, &self.interrupt)?;
        }
        self.timeline.in_flight.retain(|time| *time > past);
        Ok(())
    }
}

/// Where the counters of tables stand whose rows change.
fn counter_facts(catalog: &Catalog, rows: &[SealedRows]) -> Vec<SealedFact> {
    let counted = catalog.objects().filter(|object| !object.rules.counters.is_empty());
    let changed = counted.filter(|object| rows.iter().any(|rows| rows.object == object.id));
    changed
        .map(|object| SealedFact { object: object.id, name: COUNTERS, value: object.rules.counters_value() })
        .collect()
}

/// A relation as the target of rows.
pub(super) fn target(object: &Object) -> Target<'_> {
    Target { kind: kind_name(object.kind), name: &object.name, schema: &object.schema }
}
