//! Where rows enter a dataflow: imports of inputs and arrangements, and literal rows.
//!
//! Several users of an import have an import each where rows are dealt out for them
//! ([`deal`](super::deal)); else they share one.

use std::rc::Rc;

use anabranch_batch::Batch;
use anabranch_flow::chain::Chain;
use anabranch_flow::import::{Content, Dealing, SharedFilter, StreamImport, constant, import};
use anabranch_flow::runs::{Runs, RunsImport};
use anabranch_operators::stateless::filter_project::Stage;

use super::deal::{Deal, placed};
use super::physical::{Step, StepId};
use super::{Built, Exported, Renderer};
use crate::cluster::spec::{ArrangementId, CollectionId};

impl<'s> Renderer<'s, '_, '_> {
    pub(super) fn exported(&self, arrangement: ArrangementId) -> &Exported {
        self.shared.arrangements.get(&arrangement).expect("the session imports arrangements that exist")
    }

    /// An arrangement with readers for this dataflow.
    pub(super) fn read(&self, arrangement: ArrangementId) -> Exported {
        let Exported { rows, errors } = self.exported(arrangement).clone();
        Exported { rows: rows.named(self.name), errors: errors.named(self.name) }
    }

    pub(super) fn import(&self, name: &str, arrangement: ArrangementId) -> Built<'s> {
        let exported = self.read(arrangement);
        let runs = RunsImport {
            scope: self.scope.clone(),
            name: name.to_owned(),
            errors: Some(exported.errors),
            as_of: self.options.as_of,
            horizon: Rc::clone(&self.options.horizon),
        };
        Built::Arranged(exported.rows, Some(Runs::Import(runs)))
    }

    pub(super) fn import_changes(
        &mut self,
        name: &str,
        input: Option<CollectionId>,
        history: Option<ArrangementId>,
        columns: &[usize],
        dealing: Option<Dealing>,
    ) -> Chain<'s> {
        let exported = history.map(|history| self.read(history));
        let live = input.map(|input| {
            self.shared.relays.get_mut(&input).expect("the session imports inputs that exist").subscribe()
        });
        let errors = match (&exported, &live) {
            (Some(exported), None) => Some(self.errors_of(name, exported)),
            // The rows of an input cause no errors.
            _ => None,
        };
        // (Rows of an arrangement are where its key is.)
        let arranged = exported.as_ref().filter(|_| live.is_none());
        let placed = arranged.and_then(|exported| placed(&exported.rows.layout().key, columns));
        let rows = StreamImport {
            name: name.to_owned(),
            as_of: self.options.as_of,
            history: exported.map(|exported| exported.rows),
            live,
            horizon: Rc::clone(&self.options.horizon),
            columns: columns.to_vec(),
            content: Content::Rows,
            dealing,
        };
        import(self.scope.clone(), std::iter::once(rows).chain(errors).collect()).placed(placed)
    }

    /// A stage whose rows are dealt out once they have passed its filter.
    pub(super) fn dealt_stage(&mut self, import: StepId, stage: &Stage) -> Chain<'s> {
        let Step::ImportStream { name, input, history, columns } = &self.physical.steps[import.0] else {
            unreachable!("imports deal out rows")
        };
        let Deal { key, wanted, is_sure } = self.deals[&(import, self.user)].clone();
        let (filter, project) = stage.halves();
        let unless_few = (!is_sure).then(|| key.clone());
        let key = filter.shown(&key).expect("columns of the key are kept");
        let kept = filter.kept.clone().unwrap_or_else(|| (0..columns.len()).collect());
        let passing = filter.clone();
        let before = SharedFilter {
            of: self.scope.worker().account().clone(),
            step: self.user.0,
            apply: Box::new(move |batch, out| filter.apply(batch, out)),
            passing: Box::new(move |batch| passing.passing(batch)),
            kept,
        };
        let dealing = self.dealing(key.clone(), Some(before), unless_few);
        let chain = self.import_changes(name, *input, *history, columns, Some(dealing)).placed(is_sure.then_some(key));
        match project.is_identity() {
            true => chain,
            false => {
                let chain = chain.then("Stage", move |batch, out| project.apply(batch, out));
                chain.placed(is_sure.then_some(wanted))
            }
        }
    }

    pub(super) fn dealing(
        &self,
        key: Vec<usize>,
        before: Option<SharedFilter>,
        unless_few: Option<Vec<usize>>,
    ) -> Dealing {
        Dealing { shard: self.shard(), before, key, unless_few }
    }

    pub(super) fn errors_of(&self, name: &str, exported: &Exported) -> StreamImport {
        StreamImport {
            name: format!("{name} errors"),
            as_of: self.options.as_of,
            history: Some(exported.errors.clone()),
            live: None,
            horizon: Rc::clone(&self.options.horizon),
            columns: vec![0],
            content: Content::Errors,
            dealing: None,
        }
    }

    /// Literal rows come from worker 0, once.
    pub(super) fn constant(&self, rows: &Batch) -> Chain<'s> {
        let rows = (self.scope.index() == 0).then(|| rows.clone());
        constant(self.scope.clone(), self.options.as_of, rows)
    }
}
