//! Sources that keep no rows of their own until a query needs those that have passed.
//!
//! Law: a query over such a source has the answer that it has over one that keeps every row. A
//! reader that comes before reading begins is given what comes, and keeps what its own operators
//! keep. For one that comes later the source is read again, as far as it was read, into a new
//! input. Readers of the earlier inputs are given the same rows on.
//!
//! - A view reads its columns again, and nothing is kept besides. The watermark of a source rises
//!   again with its rows, for the view alone: a watermark is known by the input whose rows it
//!   bounds.
//! - A SELECT or SUBSCRIBE of the source itself finds all rows in an arrangement.
//!
//! Cost: nothing while readers come first. A reader that comes later pays a second reading; with an
//! arrangement, the source keeps every column of every row from then on. Rows are read again in the
//! statement that needs them; others wait. Decision 0094.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, Times};
use anabranch_plan::{Node, Plan};

use super::commit::target;
use super::outcome::SourceState;
use super::state::Session;
use crate::catalog::{Arrival, Maintained, Object, Retain, Watermark};
use crate::cluster::CollectionId;
use crate::coerce::coerce;
use crate::connector::{Poll, SourceReader};
use crate::error::Error;

impl Session {
    /// Lets the sources begin that `plan` scans. A source that has begun is read again, and keeps
    /// its rows from then on.
    pub(super) fn begin_sources(&mut self, plan: &Plan) -> Result<(), Error> {
        self.begin_sources_for(plan, false).map(|_| ())
    }

    /// The same for a view, which is made behind this. Returns the sources that are to be read
    /// again for the view alone, by [`read_late`](Self::read_late).
    pub(super) fn begin_sources_for(&mut self, plan: &Plan, is_view: bool) -> Result<Vec<Late>, Error> {
        let mut scanned = BTreeMap::new();
        scanned_columns(plan, &mut scanned);
        let mut late = Vec::new();
        for (name, mut columns) in scanned {
            let Some(object) = self.catalog.find(&name) else { continue };
            columns.extend(object.watermark.as_ref().map(Watermark::column));
            let is_kept_on_demand = object.is_kept_on_demand();
            let may_read_late = object.retain != Retain::All && !object.is_readable();
            let now = self.options.clock.now_micros();
            let Some(source) = self.pump.get_mut(&name) else { continue };
            if !source.has_begun() {
                source.begin(Some(&columns), now);
            } else if is_view && may_read_late && source.can_reopen() {
                match self.late_input(&name, &columns) {
                    Ok(one) => late.push(one),
                    Err(error) => {
                        self.forget_late(late);
                        return Err(error);
                    }
                }
            } else if is_kept_on_demand {
                self.keep_rows(&name)?;
            }
        }
        Ok(late)
    }

    /// Opens a source once more, for an input of its own.
    fn late_input(&mut self, name: &str, columns: &BTreeSet<usize>) -> Result<Late, Error> {
        let before = self.catalog.get(name)?.clone();
        let source = self.pump.get_mut(name).ok_or_else(|| Error::internal(format!("\"{name}\" is no source")))?;
        let (mut reader, n_rows, wanted) = (source.reopen()?, source.rows(), source.wanted_with(columns));
        wanted.as_ref().map_or(Ok(()), |wanted| reader.narrow(wanted))?;
        let input = self.dataflows.next_collection();
        self.cluster.create_input(input, self.timeline.upper());
        let maintained = before.maintained.clone().map(|maintained| Maintained { collection: input, ..maintained });
        let retain = match before.retain {
            Retain::Nothing { .. } => Retain::Nothing { passed: false },
            other => other,
        };
        self.set_kept(name, retain, maintained);
        Ok(Late { before, input, reader, n_rows, wanted })
    }

    /// Reads sources again for a dataflow that was made behind
    /// [`begin_sources_for`](Self::begin_sources_for).
    pub(super) fn read_late(&mut self, late: Vec<Late>) -> Result<(), Error> {
        let mut late = VecDeque::from(late);
        while let Some(Late { before, input, reader, n_rows, wanted }) = late.pop_front() {
            let name = before.name.clone();
            if !self.dataflows.is_input_read(input) {
                self.forget_unfollowed(&name, before, input);
                continue;
            }
            match self.read_again(&name, input, reader, n_rows) {
                Ok(reader) => {
                    self.follow_earlier(&before, Some(input));
                    if let Some(source) = self.pump.get_mut(&name) {
                        source.replace_reader(reader, wanted);
                    }
                }
                Err(error) => {
                    self.forget_kept(&name, before, Some(input));
                    self.forget_late(late.into());
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Others have the rows that a view needs: its own input goes. The watermark goes on by the
    /// number of that input if the view's state is bounded by it.
    fn forget_unfollowed(&mut self, name: &str, before: Object, input: CollectionId) {
        if !self.dataflows.is_mark_read(input) {
            return self.forget_kept(name, before, Some(input));
        }
        let now = before.watermark.as_ref().and_then(Watermark::current);
        let followed = before.maintained.as_ref().map(|maintained| maintained.collection);
        self.set_kept(name, before.retain, before.maintained);
        followed.into_iter().for_each(|followed| self.earlier_inputs.entry(followed).or_default().push(input));
        now.into_iter().for_each(|now| self.note_mark(input, self.timeline.last(), now));
    }

    /// Undoes what was made for readers that did not come to be.
    pub(super) fn forget_late(&mut self, late: Vec<Late>) {
        for Late { before, input, .. } in late {
            self.forget_kept(&before.name.clone(), before, Some(input));
        }
    }

    /// Drops the inputs that no view reads any more, beside the last one of each source.
    pub(super) fn forget_earlier_inputs(&mut self) {
        let dataflows = &self.dataflows;
        let is_unread = |input: CollectionId| !dataflows.is_input_read(input) && !dataflows.is_mark_read(input);
        let mut unread = Vec::new();
        for earlier in self.earlier_inputs.values_mut() {
            unread.extend(earlier.extract_if(.., |input| is_unread(*input)));
        }
        unread.into_iter().for_each(|input| self.cluster.drop_input(input));
    }

    /// Lets these sources keep their rows, which are to be read in full.
    pub(super) fn keep_sources(&mut self, names: &BTreeSet<String>) -> Result<(), Error> {
        for name in names {
            if self.catalog.find(name).is_some_and(Object::is_kept_on_demand) {
                self.keep_rows(name)?;
            }
        }
        Ok(())
    }

    /// Lets sources that no query reads begin, as far as they can keep their rows.
    pub(super) fn keep_unread_sources(&mut self) -> Result<(), Error> {
        let unread = self.pump.statuses().into_iter().filter(|status| status.state == SourceState::Unread);
        self.keep_sources(&unread.map(|status| status.name).collect())
    }

    /// Gives a source an arrangement of all its rows.
    fn keep_rows(&mut self, name: &str) -> Result<(), Error> {
        let before = self.catalog.get(name)?.clone();
        let Some(source) = self.pump.get_mut(name) else { return Ok(()) };
        let again = if source.has_begun() { Some((source.reopen()?, source.rows())) } else { None };
        // All columns are wanted from here on.
        source.begin(None, self.options.clock.now_micros());
        let mut maintained = before.maintained.clone();
        if let (Some(_), Some(maintained)) = (&again, &mut maintained) {
            maintained.collection = self.dataflows.next_collection();
            self.cluster.create_input(maintained.collection, self.timeline.upper());
        }
        let input = maintained.as_ref().map(|maintained| maintained.collection);
        self.set_kept(name, Retain::All, maintained);
        let kept = self.arrange_all(name).and_then(|()| match (again, input) {
            (Some((reader, n_rows)), Some(input)) => self.read_again(name, input, reader, n_rows).map(Some),
            _ => Ok(None),
        });
        match kept {
            Ok(None) => Ok(()),
            Ok(Some(reader)) => {
                self.follow_earlier(&before, input);
                if let Some(source) = self.pump.get_mut(name) {
                    source.replace_reader(reader, None);
                }
                Ok(())
            }
            Err(error) => {
                self.forget_kept(name, before, input);
                Err(error)
            }
        }
    }

    fn set_kept(&mut self, name: &str, retain: Retain, maintained: Option<Maintained>) {
        if let Some(object) = self.catalog.find_mut(name) {
            (object.retain, object.maintained) = (retain, maintained);
        }
    }

    fn arrange_all(&mut self, name: &str) -> Result<(), Error> {
        let object = self.catalog.get(name)?.clone();
        let key: Vec<usize> = (0..object.schema.fields().len()).collect();
        self.arrange(&object, &key, name).map(|_| ())
    }

    /// Lets inputs whose readers came before go on beside the new one.
    fn follow_earlier(&mut self, before: &Object, input: Option<CollectionId>) {
        let (Some(maintained), Some(input)) = (&before.maintained, input) else { return };
        let mut earlier = self.earlier_inputs.remove(&maintained.collection).unwrap_or_default();
        earlier.push(maintained.collection);
        self.earlier_inputs.insert(input, earlier);
    }

    /// Undoes what was made to keep the rows.
    fn forget_kept(&mut self, name: &str, before: Object, input: Option<CollectionId>) {
        let made = self.catalog.find(name).and_then(|object| object.maintained.clone());
        for arranged in made.into_iter().flat_map(|maintained| maintained.arrangements) {
            self.release_dataflow(arranged.dataflow);
        }
        let old = before.maintained.as_ref().map(|maintained| maintained.collection);
        input.filter(|input| Some(*input) != old).into_iter().for_each(|input| self.cluster.drop_input(input));
        self.set_kept(name, before.retain, before.maintained);
    }

    /// Gives an input the first `n_rows` rows of a source. Returns the reader behind them.
    fn read_again(
        &mut self,
        name: &str,
        input: CollectionId,
        mut reader: Box<dyn SourceReader>,
        n_rows: u64,
    ) -> Result<Box<dyn SourceReader>, Error> {
        let object = self.catalog.get(name)?.clone();
        // Rows are late by those before them, so the same rows are left out as the first time.
        let watermark = object.watermark.as_ref().map(|known| Watermark::new(&known.declared, &object.schema));
        let mut watermark = watermark.transpose()?;
        let mut n_left = n_rows;
        while n_left > 0 {
            self.interrupt.check()?;
            let rows_max = usize::try_from(n_left).unwrap_or(usize::MAX).min(self.settings.batch_rows_max);
            let batch = match reader.poll(rows_max)? {
                Poll::Rows(batch) => batch,
                Poll::Pending { retry_after } => {
                    std::thread::sleep(retry_after);
                    continue;
                }
                Poll::Done => return Err(self.changed_source(name)),
            };
            n_left = n_left.saturating_sub(batch.num_rows() as u64);
            let columns = coerce(target(&object), &batch, |_, _| Ok(None))?;
            let time = self.begin_commit();
            let rows = Batch::with_len(columns.into(), batch.num_rows(), Times::Constant(time), Diffs::Constant(1));
            let rows = match &mut watermark {
                Some(watermark) => watermark.admit(rows, Arrival::InOrder)?,
                None => rows,
            };
            // (Only the new input is given them: its readers have seen no row yet.)
            self.cluster.push(input, rows);
            let mark = watermark.as_ref().and_then(Watermark::current);
            mark.into_iter().for_each(|mark| self.note_mark(input, time, mark));
            self.commit_pending()?;
            if mark.is_some() {
                // (The rows of a commit are judged by the marks before it.)
                self.cluster.flush();
            }
            self.keep_workers_near()?;
        }
        Ok(reader)
    }

    fn changed_source(&mut self, name: &str) -> Error {
        match self.pump.get_mut(name) {
            Some(source) => source.changed(),
            None => Error::closed(format!("\"{name}\" was dropped")),
        }
    }
}

/// A source that is read again for a view.
pub(super) struct Late {
    /// The source as it was.
    before: Object,
    /// What the view reads.
    input: CollectionId,
    /// The reader, at the source's beginning.
    reader: Box<dyn SourceReader>,
    /// Rows that have passed.
    n_rows: u64,
    /// Columns that the reader gives; `None` is all.
    wanted: Option<BTreeSet<usize>>,
}

/// The columns of each relation that the plan reads.
fn scanned_columns(plan: &Plan, scanned: &mut BTreeMap<String, BTreeSet<usize>>) {
    if let Node::Scan { relation, columns } = &plan.node {
        scanned.entry(relation.clone()).or_default().extend(columns);
    }
    plan.inputs().into_iter().map(Arc::as_ref).for_each(|input| scanned_columns(input, scanned));
}
