//! What is installed in the cluster, and how long it stays.
//!
//! Law: a dataflow stays as long as a name owns it (a relation, an index, a subscription) or another dataflow reads one
//! of its arrangements. So dropping an index never disturbs the queries that share it: they keep it, nameless, until
//! the last of them goes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_plan::Plan;

use super::Session;
use crate::catalog::{Object, Retain, kind_name};
use crate::cluster::{ArrangementId, CollectionId, DataflowId, DataflowSpec, Egress, Export, Read};
use crate::error::Error;
use crate::render::physical::Step;
use crate::render::prepare;

/// Installed dataflows. Ids are never reused.
#[derive(Debug, Default)]
pub(super) struct Dataflows {
    next_id: u64,
    installed: BTreeMap<DataflowId, Installed>,
}

#[derive(Debug)]
struct Installed {
    exports: Vec<ArrangementId>,
    /// Dataflows whose arrangements it reads.
    uses: BTreeSet<DataflowId>,
    /// How many names own it.
    owners: usize,
}

/// What is wanted of a dataflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sink {
    /// Arrangements that are read.
    Arrangements,
    /// Changes that are taken.
    Changes,
}

impl Dataflows {
    fn next(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// A new id for a collection.
    pub fn next_collection(&mut self) -> CollectionId {
        CollectionId(self.next())
    }

    /// A new id for a dataflow that no name owns.
    pub fn next_dataflow(&mut self) -> DataflowId {
        DataflowId(self.next())
    }

    /// All installed dataflows.
    pub fn ids(&self) -> Vec<DataflowId> {
        self.installed.keys().copied().collect()
    }

    /// All arrangements of installed dataflows.
    pub fn arrangements(&self) -> Vec<ArrangementId> {
        self.installed.values().flat_map(|installed| installed.exports.iter().copied()).collect()
    }

    /// The dataflows that make these arrangements.
    fn makers(&self, arrangements: &BTreeSet<ArrangementId>) -> BTreeSet<DataflowId> {
        let makes = |installed: &Installed| installed.exports.iter().any(|export| arrangements.contains(export));
        self.installed.iter().filter(|(_, installed)| makes(installed)).map(|(dataflow, _)| *dataflow).collect()
    }

    /// How many dataflows read arrangements that this one makes.
    pub fn readers(&self, dataflow: DataflowId) -> usize {
        self.installed.values().filter(|other| other.uses.contains(&dataflow)).count()
    }

    fn is_used(&self, dataflow: DataflowId) -> bool {
        self.installed.values().any(|other| other.uses.contains(&dataflow))
    }
}

impl Session {
    /// Installs `plan` as of the last commit, with one arrangement for each of `keys`. The caller owns it once.
    pub(super) fn install(
        &mut self,
        name: &str,
        plan: &Arc<Plan>,
        keys: &[Vec<usize>],
        sink: Sink,
    ) -> Result<(DataflowId, Vec<ArrangementId>), Error> {
        let reads = self.reads(plan)?;
        let dataflow = DataflowId(self.dataflows.next());
        let exports: Vec<Export> = keys
            .iter()
            .map(|key| Export { arrangement: ArrangementId(self.dataflows.next()), key: key.clone() })
            .collect();
        let arrangements: Vec<ArrangementId> = exports.iter().map(|export| export.arrangement).collect();
        let used = uses_arrangements(plan, &reads)?;
        let uses = self.dataflows.makers(&used);
        self.cluster.install(DataflowSpec {
            dataflow,
            name: name.to_string(),
            plan: plan.clone(),
            reads,
            as_of: self.timeline.last(),
            exports,
            egress: if sink == Sink::Changes { Egress::Changes } else { Egress::Nothing },
        })?;
        let installed = Installed { exports: arrangements.clone(), uses, owners: 1 };
        self.dataflows.installed.insert(dataflow, installed);
        Ok((dataflow, arrangements))
    }

    /// One more name owns the dataflow.
    pub(super) fn retain_dataflow(&mut self, dataflow: DataflowId) {
        if let Some(installed) = self.dataflows.installed.get_mut(&dataflow) {
            installed.owners += 1;
        }
    }

    /// One name less owns the dataflow; what nobody needs any more is taken down.
    pub(super) fn release_dataflow(&mut self, dataflow: DataflowId) {
        if let Some(installed) = self.dataflows.installed.get_mut(&dataflow) {
            installed.owners = installed.owners.saturating_sub(1);
        }
        let mut open = vec![dataflow];
        while let Some(dataflow) = open.pop() {
            let unowned = self.dataflows.installed.get(&dataflow).is_some_and(|installed| installed.owners == 0);
            if !unowned || self.dataflows.is_used(dataflow) {
                continue;
            }
            if let Some(installed) = self.dataflows.installed.remove(&dataflow) {
                self.cluster.uninstall(dataflow);
                open.extend(installed.uses);
            }
        }
    }

    /// How each relation that `plan` scans is to be read.
    pub(super) fn reads(&self, plan: &Plan) -> Result<BTreeMap<String, Read>, Error> {
        let mut reads = BTreeMap::new();
        for name in plan.relations() {
            let object = self.catalog.get(&name)?;
            check_history(object)?;
            let Some(maintained) = &object.maintained else {
                return Err(Error::internal(format!("{} \"{name}\" is not maintained", kind_name(object.kind))));
            };
            let arrangements = maintained.arrangements.iter();
            let read = Read {
                collection: maintained.collection,
                is_input: maintained.is_input,
                arrangements: arrangements.map(|arranged| (arranged.arrangement, arranged.key.clone())).collect(),
                primary_key: object.primary_key.clone(),
            };
            reads.insert(name, read);
        }
        Ok(reads)
    }
}

/// The existing arrangements that a dataflow of the plan would read.
pub(super) fn uses_arrangements(
    plan: &Arc<Plan>,
    reads: &BTreeMap<String, Read>,
) -> Result<BTreeSet<ArrangementId>, Error> {
    let steps = prepare(plan, reads, &[])?.steps;
    let used = steps.iter().filter_map(|step| match step {
        Step::ImportStream { history, .. } => *history,
        Step::ImportArranged { arrangement, .. } => Some(*arrangement),
        _ => None,
    });
    Ok(used.collect())
}

/// An error when rows of the relation were passed on and are gone.
fn check_history(object: &Object) -> Result<(), Error> {
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
