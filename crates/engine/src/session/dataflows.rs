//! Plans of the session become dataflows: how each relation is read, how far is shared, and as of
//! when.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_batch::Time;
use anabranch_flow::account::memory::Holder;
use anabranch_flow::sink::Bounds;
use anabranch_plan::bounds::{self, Bound, Promises};
use anabranch_plan::{Node, Plan};

use super::past::Past;
use super::state::Session;
use crate::catalog::{Object, Retain, Watermark, kind_name};
use crate::cluster::{ArrangementId, DataflowId, Egress, Read, Reading};
use crate::dataflows::WantedDataflow;
use crate::error::Error;
use crate::sharing::Sharing;

/// What is wanted of a dataflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sink {
    /// Arrangements that are read, by a relation or an index.
    Arrangements,
    /// Arrangements that are read once.
    Answer,
    /// Changes that are taken.
    Changes(Bounds),
}

impl Session {
    /// Installs `plan` as of the last commit, with one arrangement for each of `keys`. The caller
    /// owns it once.
    pub(super) fn install(
        &mut self,
        name: &str,
        plan: &Arc<Plan>,
        keys: &[Vec<usize>],
        sink: Sink,
    ) -> Result<(DataflowId, Vec<ArrangementId>), Error> {
        self.install_as_of(name, plan, keys, sink, None)
    }

    /// As [`install`](Self::install), as of a past time if there is one.
    pub(super) fn install_as_of(
        &mut self,
        name: &str,
        plan: &Arc<Plan>,
        keys: &[Vec<usize>],
        sink: Sink,
        past: Option<&Past>,
    ) -> Result<(DataflowId, Vec<ArrangementId>), Error> {
        let late = self.begin_sources_for(plan, sink == Sink::Arrangements && past.is_none())?;
        let installed = match self.install_begun(name, plan, keys, sink, past) {
            Ok(installed) => installed,
            Err(error) => {
                self.forget_late(late);
                return Err(error);
            }
        };
        self.read_late(late).inspect_err(|_| self.release_dataflow(installed.0))?;
        Ok(installed)
    }

    fn install_begun(
        &mut self,
        name: &str,
        plan: &Arc<Plan>,
        keys: &[Vec<usize>],
        sink: Sink,
        past: Option<&Past>,
    ) -> Result<(DataflowId, Vec<ArrangementId>), Error> {
        // (Reading again takes commits; the clock is as of the last one.)
        self.follow_clock(plan)?;
        let mut reads = self.reads(plan)?;
        if let Some(past) = past {
            reads.values_mut().for_each(|read| read_past(read, past));
        }
        let as_of = past.map_or(self.timeline.last(), |past| past.at);
        let wanted = WantedDataflow {
            name,
            plan,
            keys,
            egress: match sink {
                Sink::Changes(bounds) => Egress::Changes(bounds),
                Sink::Arrangements | Sink::Answer => Egress::Nothing,
            },
            reads: &reads,
            as_of,
            sharing: self.sharing_for(sink, as_of),
            is_asked_once: sink == Sink::Answer,
            holder: match (&plan.node, sink) {
                (_, Sink::Answer) => Holder::Query,
                // (Also an index: a table can be read by its rows alone, an index is asked for by
                // name.)
                (Node::Scan { .. }, Sink::Arrangements) => Holder::Rows,
                _ => Holder::Standing,
            },
            client: (sink != Sink::Arrangements).then_some(self.client.number),
        };
        self.dataflows.install(&mut self.cluster, &wanted)
    }

    /// How far a dataflow shares. What is asked once, or of the past, leaves nothing to others.
    pub(super) fn sharing_for(&self, sink: Sink, as_of: Time) -> Sharing {
        match self.settings.sharing {
            Sharing::Full if sink == Sink::Answer || as_of < self.timeline.last() => Sharing::Existing,
            sharing => sharing,
        }
    }

    /// One more name owns the dataflow.
    pub(super) fn retain_dataflow(&mut self, dataflow: DataflowId) {
        self.dataflows.retain(dataflow);
    }

    /// One name less owns the dataflow; what no query needs any more is taken down.
    pub(crate) fn release_dataflow(&mut self, dataflow: DataflowId) {
        self.dataflows.release(&mut self.cluster, dataflow);
        self.forget_earlier_inputs();
    }

    /// What is known of changes to come of a relation's rows.
    fn promises(&self, object: &Object) -> Promises {
        // (A watermark is known by the input whose rows it bounds.)
        let mark_of = |name: &str, input: &Object| {
            let id = input.maintained.as_ref()?.collection.0;
            Some(Bound::Mark { id, relation: name.to_owned() })
        };
        if object.is_hidden {
            let held = Watermark::relation_held(&object.name);
            let mark = held.and_then(|name| mark_of(name, self.catalog.find(name).unwrap_or(object)));
            return Promises { mark, ..Promises::default() };
        }
        let mut promises = object.maintained.as_ref().map(|maintained| maintained.promises.clone()).unwrap_or_default();
        promises.is_append_only |= object.is_append_only;
        if let Some(watermark) = &object.watermark {
            promises.is_changeable = !object.is_append_only;
            let bound = mark_of(&object.name, object).filter(|_| object.is_append_only);
            promises.bounds.extend(bound.map(|bound| (watermark.column(), bound)));
        }
        promises
    }

    /// What is known of changes to come of a view's rows.
    pub(super) fn promises_of_view(&self, plan: &Plan) -> Result<Promises, Error> {
        let reads = self.reads(plan)?;
        let bounds = bounds::bounds(plan, &Reading(&reads)).into_iter().enumerate();
        let bounds = bounds.filter_map(|(column, bound)| Some((column, bound?))).collect();
        let is_append_only = bounds::is_append_only(plan, &Reading(&reads));
        Ok(Promises { bounds, is_append_only, ..Promises::default() })
    }

    /// How each relation that `plan` scans is to be read.
    pub(super) fn reads(&self, plan: &Plan) -> Result<BTreeMap<String, Read>, Error> {
        for name in plan.relations() {
            check_history(self.catalog.get(&name)?)?;
        }
        self.reads_told(plan)
    }

    /// The same where nothing is read, but told of what does: rows may have passed.
    pub(super) fn reads_told(&self, plan: &Plan) -> Result<BTreeMap<String, Read>, Error> {
        let mut reads = BTreeMap::new();
        for name in plan.relations() {
            let object = self.catalog.get(&name)?;
            let Some(maintained) = &object.maintained else {
                return Err(Error::internal(format!("{} \"{name}\" is not maintained", kind_name(object.kind))));
            };
            let arrangements = maintained.arrangements.iter();
            let read = Read {
                collection: maintained.collection,
                is_input: maintained.is_input,
                arrangements: arrangements.map(|arranged| (arranged.arrangement, arranged.key.clone())).collect(),
                primary_key: object.primary_key.clone(),
                promises: self.promises(object),
            };
            reads.insert(name, read);
        }
        Ok(reads)
    }
}

/// An input gives only what comes; what came since a past time is in its arrangement, and so is
/// what comes.
fn read_past(read: &mut Read, past: &Past) {
    read.arrangements.retain(|(arrangement, _)| past.is_readable(*arrangement));
    if !read.arrangements.is_empty() {
        read.is_input = false;
    }
}

/// An error when rows of the relation were passed on and are gone.
pub(super) fn check_history(object: &Object) -> Result<(), Error> {
    if object.is_readable() || object.retain != (Retain::Nothing { passed: true }) {
        return Ok(());
    }
    let kind = kind_name(object.kind);
    Err(Error::invalid(format!(
        "{kind} \"{}\" keeps no rows (retain = 'none'), and rows have passed already",
        object.name
    ))
    .with_detail("A query installed now would not see them.")
    .with_hint(format!(
        "Create views and indexes on the {kind} before its rows, or create it without retain = 'none'."
    )))
}
