//! Views of SQL as inputs of frames.
//!
//! What a commit makes of a view of SQL is known once the workers have taken the commit in. A view
//! of a frame that reads one therefore *comes last*: the commit is pushed, the frame hears what it
//! made of the views, and its own rows are pushed at the time of the same commit. Its relation is
//! an input with a time of its own, which the session advances only then.
//!
//! Law: as that of `frame_views`. No reader sees the commit without the rows of the frame, since
//! what reads the frame's relation is complete only when that input is.
//!
//! Cost: a commit waits for the views that frames read, and for the views behind them. The frame
//! reads a view's arrangement, which is shared with all other readers.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_batch::Time;
use anabranch_flow::sink::Bounds;

use super::create::scan_plan;
use super::dataflows::Sink;
use super::sealed::SealedRows;
use super::state::Session;
use super::state::frame_view::FrameView;
use crate::catalog::ObjectId;
use crate::cluster::DataflowId;
use crate::error::Error;
use crate::interrupt::Interrupt;

impl Session {
    /// Subscribes to the changes after the last commit of those inputs that are views of SQL.
    pub(super) fn subscribe_to_views(
        &mut self,
        name: &str,
        inputs: &BTreeMap<String, ObjectId>,
    ) -> Result<BTreeMap<ObjectId, DataflowId>, Error> {
        let mut subscribed = BTreeMap::new();
        let from = self.timeline.last() + 1;
        for (input, id) in inputs {
            let object = self.catalog.get(input)?;
            if object.maintained.as_ref().is_some_and(|maintained| maintained.is_input) {
                continue;
            }
            let plan = scan_plan(object)?;
            let sink = Sink::Changes(Bounds { from, ..Bounds::NONE });
            match self.install(&format!("inputs of {name}"), &plan, &[], sink) {
                Ok((dataflow, _)) => _ = subscribed.insert(*id, dataflow),
                Err(error) => {
                    subscribed.into_values().for_each(|dataflow| self.release_dataflow(dataflow));
                    return Err(error);
                }
            }
        }
        Ok(subscribed)
    }

    /// Whether the rows of a view of a frame with these inputs come after all others of a commit.
    pub(super) fn comes_last(
        &self,
        inputs: &BTreeMap<String, ObjectId>,
        subscribed: &BTreeMap<ObjectId, DataflowId>,
    ) -> bool {
        let last = |id: &ObjectId| self.frame_views.iter().any(|view| view.comes_last && view.object == *id);
        !subscribed.is_empty() || inputs.values().any(last)
    }

    /// Whether a view of a frame waits for what workers make of a commit.
    pub(super) fn has_last_frames(&self) -> bool {
        self.frame_views.iter().any(|view| view.comes_last)
    }

    /// Pushes what the views of frames that come last become by a commit that was pushed and
    /// brought `rows`, in the order in which they were made.
    pub(super) fn follow_last_frames(&mut self, mut rows: Vec<SealedRows>, time: Time) {
        let mut views = std::mem::take(&mut self.frame_views);
        for view in views.iter_mut().filter(|view| view.comes_last) {
            match self.heard_of_views(view, time) {
                Ok(heard) => rows.extend(heard),
                Err(error) => {
                    drop(view.run.take().map(|run| run.resume(&mut self.cluster)));
                    self.fail_view(view.object, &error);
                }
            }
            let n_before = rows.len();
            if view.is_due(&rows) {
                self.follow_frame(view, &mut rows, time);
            }
            rows[n_before..].iter().for_each(|rows| self.push_sealed(rows, time));
            // (A view that has failed goes on in time: its readers hear of the failure.)
            self.cluster.advance_events(view.collection, time + 1);
        }
        self.frame_views = views;
    }

    /// What a commit has made of the views of SQL that a frame reads.
    fn heard_of_views(&mut self, view: &FrameView, time: Time) -> Result<Vec<SealedRows>, Error> {
        let mut heard = Vec::new();
        for (object, dataflow) in &view.subscribed {
            // (A commit cannot be interrupted half-way.)
            self.cluster.await_sound(*dataflow, time, &Interrupt::new())?;
            let changes = self.cluster.changes(*dataflow, Duration::ZERO)?;
            if let Some((_, message, _)) = changes.errors.first() {
                return Err(Error::data(message.clone()));
            }
            let collection = view.collection;
            heard.extend(changes.batches.into_iter().map(|batch| SealedRows { object: *object, collection, batch }));
        }
        Ok(heard)
    }
}
