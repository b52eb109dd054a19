//! System relations as inputs: what subscriptions over them read.
//!
//! A subscription reads a hidden input, `rows of anabranch_memory`, in place of the system
//! relation. A *reading* takes the rows of all system relations that are followed, and commits the
//! differences from the reading before. No log keeps such a commit. A subscription begins with a
//! reading; then one comes every [`READING_MICROS`].
//!
//! Law: as of each reading, a subscription has the rows that a SELECT would have then, and system
//! relations that are joined are of one moment. What came and went between two readings is not
//! told.
//!
//! Cost: none without such a subscription, for an input goes once its readers have. Otherwise the
//! rows of the relations, once a reading.
//!
//! Left out: views, which would be read when the database opens, before there is something to tell.

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, Times};
use anabranch_plan::{Node, Plan};
use anabranch_sql::statement::{ObjectKind, Subscribe};

use super::context::Named;
use super::state::Session;
use crate::catalog::system::{EngineState, relation, rows_of, tells_of_engine, tells_of_operators};
use crate::catalog::{FOLLOWED, Object};
use crate::direct::literal_batch;
use crate::error::Error;
use crate::transaction::substitute;

/// Time between two readings.
const READING_MICROS: i64 = 1_000_000;

impl Session {
    /// Plans the query of a subscription, which may read system relations.
    pub(super) fn plan_subscribed(&self, subscribe: &Subscribe) -> Result<Named, Error> {
        let named = self.plan_now(&|planner| planner.plan_view(&subscribe.query))?;
        match self.system_relations(&named.planned.plan).first() {
            Some(name) if subscribe.as_of.is_some() => {
                Err(Error::invalid(format!("system relation {name} cannot be read as of a past time"))
                    .with_sqlstate("0A000")
                    .with_hint("It keeps no history: leave AS OF out."))
            }
            _ => Ok(named),
        }
    }

    /// The plan over inputs in place of system relations, after a reading of them; and those
    /// inputs.
    pub(super) fn follow_system(&mut self, plan: &Arc<Plan>) -> Result<(Arc<Plan>, BTreeSet<String>), Error> {
        let names = self.system_relations(plan);
        if names.is_empty() {
            return Ok((Arc::clone(plan), BTreeSet::new()));
        }
        for name in &names {
            if !self.followed.shown.contains_key(name) {
                let Some(relation) = relation(name) else { continue };
                let schema = Arc::clone(&relation.schema);
                let input = Object::new(&input_of(name), ObjectKind::Table, schema, String::new());
                self.add_input(Object { is_hidden: true, ..input })?;
                self.followed.shown.insert(name.clone(), None);
            }
        }
        self.read_system()?;
        let mut problem = None;
        let scan = |scan: &Arc<Plan>| match &scan.node {
            Node::Scan { relation, columns } if names.contains(relation) => {
                let node = Node::Scan { relation: input_of(relation), columns: columns.clone() };
                Ok(Arc::new(Plan { node, schema: scan.schema.clone() }))
            }
            _ => Ok(Arc::clone(scan)),
        };
        let changed = substitute(plan, &scan, &mut problem);
        problem.map_or(Ok((changed, names.iter().map(|name| input_of(name)).collect())), Err)
    }

    /// A reading, if one is due; else when the next one is. Nothing without a subscription.
    pub(super) fn read_system_when_due(&mut self, now: i64) -> Result<Option<i64>, Error> {
        if self.followed.shown.is_empty() {
            return Ok(None);
        }
        let due = self.followed.read_at.saturating_add(READING_MICROS);
        if now < due {
            return Ok(Some(due));
        }
        self.forget_unread();
        if self.followed.shown.is_empty() {
            return Ok(None);
        }
        self.read_system()?;
        Ok(Some(now.saturating_add(READING_MICROS)))
    }

    /// Drops the inputs that no subscription reads.
    fn forget_unread(&mut self) {
        let is_unread = |name: &&String| !self.subscriptions.read(&input_of(name));
        let unread: Vec<String> = self.followed.shown.keys().filter(is_unread).cloned().collect();
        for name in unread {
            self.followed.shown.remove(&name);
            self.drop_relation(&input_of(&name));
        }
    }

    /// A commit of what has changed in the system relations that are followed. One that changes
    /// nothing tells that nothing has changed.
    fn read_system(&mut self) -> Result<(), Error> {
        self.followed.read_at = self.options.clock.now_micros();
        let snapshot = self.catalog.snapshot();
        let names: Vec<String> = self.followed.shown.keys().cloned().collect();
        let engine = match names.iter().any(|name| tells_of_engine(name)) {
            true => self.engine_state(),
            false => EngineState::default(),
        };
        let mut staged = Vec::new();
        let mut shown = Vec::new();
        for name in names {
            let Some(schema) = relation(&name).map(|relation| Arc::clone(&relation.schema)) else { continue };
            let columns: Vec<usize> = (0..schema.fields().len()).collect();
            let rows = match tells_of_operators(&name) {
                true => self.operator_values(&name, &columns)?,
                false => rows_of(&name, &columns, &snapshot, &engine)?,
            };
            let rows = literal_batch(schema.fields(), &rows)?;
            let before = self.followed.shown.get(&name).cloned().flatten();
            let parts: Vec<Batch> = before.map(Batch::negate).into_iter().chain([rows.clone()]).collect();
            let object = self.catalog.find(&input_of(&name)).and_then(|object| object.maintained.as_ref());
            if let (Some(changes), Some(object)) = (Batch::concat(&parts).map(consolidate), object)
                && !changes.is_empty()
            {
                staged.push((object.collection, changes));
            }
            shown.push((name, Some(rows)));
        }
        let time = self.begin_commit();
        let at = |(collection, changes): (_, Batch)| (collection, changes.with_times(Times::Constant(time)));
        self.followed.staged = staged.into_iter().map(at).collect();
        let committed = self.commit_pending();
        match committed {
            Ok(()) => self.followed.shown.extend(shown),
            Err(_) => self.followed.staged.clear(),
        }
        committed
    }

    /// System relations that a plan reads.
    pub(super) fn system_relations(&self, plan: &Plan) -> BTreeSet<String> {
        let is_system = |name: &String| relation(name).is_some() && self.catalog.find(name).is_none();
        plan.relations().into_iter().filter(is_system).collect()
    }
}

fn input_of(name: &str) -> String {
    format!("{FOLLOWED}{name}")
}
