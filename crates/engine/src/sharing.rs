//! Which arrangements queries share, and what is to be built so that they can.
//!
//! Law: an arrangement is used for a sub-plan only if it is of an equal plan, or of one that
//! filters the same relation likewise and shows more columns; so it holds the same collection. What
//! is used is readable at the time as of which the query is installed.
//!
//! A query's joins ask for their inputs arranged by a key; its aggregates are asked for their
//! results. Each is looked up here, by the structure of the plan. What is there is imported. What
//! is not there becomes a *shared dataflow* of its own, which exports it, and is imported likewise:
//! so no query owns what others use, and the last user frees it (see [`crate::dataflows`]).
//!
//! Rows of which no change will come leave a part (decision 0044), unless some query may look at
//! all of them. A query that comes later cannot use such a part, and has one of its own. For that
//! reason results of which rows leave are not made parts at all.
//!
//! What is worth it: whatever keeps state over rows that change. The inputs of joins are arranged
//! anyway, so sharing them costs an edge between two dataflows. The result of an aggregate,
//! DISTINCT or top-k is arranged for the purpose: it is seldom larger than the state behind it, and
//! while no query looks into it, it mostly is that state (decision 0016). Filters, projections,
//! unions and literal rows are computed by each query: they keep nothing.
//!
//! Cost: a hash of each sub-plan asked for, linear in its size. Source: "Shared arrangements" (VLDB
//! 2020), section 5; there the programmer names what is shared, here it is found.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use anabranch_batch::Time;
use anabranch_plan::bounds::Bound;
use anabranch_plan::{Node, Plan};
use datafusion_common::Column;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_expr::Expr;

use crate::cluster::promised::{Reading, is_freed};
use crate::cluster::spec::{ArrangementId, DataflowId, Export, Read};
use crate::error::Error;
use crate::render::bases::{base_of, order_of, picks};
use crate::render::physical::Physical;
use crate::render::{Found, Leaves, Shares, prepare};

/// How far a query shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Nothing is shared: the query arranges all it needs, from the relations' rows.
    Off,
    /// What exists is used; nothing is made for others. For questions asked once.
    Existing,
    /// What exists is used, and what is missing is made so that others can use it.
    Full,
}

/// What is known of arrangements from which rows leave.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Watermarks that have a value.
    pub marked: BTreeSet<u64>,
    /// Arrangements that some query may look at all rows of.
    pub whole: BTreeSet<ArrangementId>,
}

impl Kept {
    /// Whether no row has left an arrangement.
    pub fn is_whole(&self, entry: &SharedPart) -> bool {
        let has_passed = |floor: &Bound| floor.at(&|mark| self.marked.contains(&mark).then_some(0)).is_some();
        !entry.floor.as_ref().is_some_and(has_passed) || self.whole.contains(&entry.arrangement)
    }
}

/// The arrangements of sub-plans that exist.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    by_plan: HashMap<Arc<Plan>, Vec<SharedPart>>,
    /// Those that only filter a relation's rows, by the relation and the filter: they differ in the
    /// columns that they show.
    scans: HashMap<Rows, Vec<Arc<Plan>>>,
    /// What each arrangement is of.
    of: HashMap<ArrangementId, Arc<Plan>>,
}

/// An arrangement of a sub-plan.
#[derive(Clone, Debug)]
pub(crate) struct SharedPart {
    /// Key columns, positions in the plan's schema.
    pub key: Vec<usize>,
    pub arrangement: ArrangementId,
    /// Readable from this time, at least.
    pub since: Time,
    /// Rows below it may have left, which who reads from now on would miss.
    pub floor: Option<Bound>,
}

impl Registry {
    pub fn add(&mut self, plan: &Arc<Plan>, entry: SharedPart) {
        if let Some(scan) = scan_of(plan)
            && !self.by_plan.contains_key(plan)
        {
            self.scans.entry(scan.kind).or_default().push(Arc::clone(plan));
        }
        self.of.insert(entry.arrangement, Arc::clone(plan));
        self.by_plan.entry(Arc::clone(plan)).or_default().push(entry);
    }

    pub fn remove(&mut self, arrangement: ArrangementId) {
        let Some(plan) = self.of.remove(&arrangement) else { return };
        let entries = self.by_plan.get_mut(&plan).expect("what an arrangement is of has an entry");
        entries.retain(|entry| entry.arrangement != arrangement);
        if !entries.is_empty() {
            return;
        }
        self.by_plan.remove(&plan);
        let Some(kind) = scan_of(&plan).map(|scan| scan.kind) else { return };
        let scans = self.scans.get_mut(&kind).expect("a scan is found by its kind");
        scans.retain(|scan| *scan != plan);
        if scans.is_empty() {
            self.scans.remove(&kind);
        }
    }

    /// Arrangements are let go up to `since`, if they are not further already.
    pub fn forget_before(&mut self, since: Time) {
        self.by_plan.values_mut().flatten().for_each(|entry| entry.since = entry.since.max(since));
    }

    /// Forgets what is known of a relation's rows: another relation may come to have its name.
    pub fn forget_relation(&mut self, name: &str) {
        let reads = |plan: &Arc<Plan>| plan.relations().iter().any(|relation| relation == name);
        let gone: Vec<ArrangementId> =
            self.of.iter().filter(|(_, plan)| reads(plan)).map(|(arrangement, _)| *arrangement).collect();
        gone.into_iter().for_each(|arrangement| self.remove(arrangement));
    }

    /// What an arrangement is of, and its key.
    pub fn describe(&self, arrangement: ArrangementId) -> Option<(&Arc<Plan>, &[usize])> {
        let plan = self.of.get(&arrangement)?;
        let entry = self.entries(plan).iter().find(|entry| entry.arrangement == arrangement)?;
        Some((plan, &entry.key))
    }

    /// The arrangements of a plan.
    pub fn entries(&self, plan: &Plan) -> &[SharedPart] {
        self.by_plan.get(plan).map_or(&[], Vec::as_slice)
    }

    /// Scans of the same rows, which may show other columns.
    fn scans_like(&self, scan: &Scan) -> &[Arc<Plan>] {
        self.scans.get(&scan.kind).map_or(&[], Vec::as_slice)
    }
}

/// A dataflow that is ready to be installed.
pub(crate) struct Draft {
    pub dataflow: DataflowId,
    /// For logs, errors, and lists of readers.
    pub name: String,
    pub plan: Arc<Plan>,
    pub exports: Vec<Export>,
    pub physical: Physical,
}

/// Drafts the dataflows of a query: those that it shares first, itself last.
pub(crate) struct Drafter<'a> {
    pub registry: &'a Registry,
    pub reads: &'a BTreeMap<String, Read>,
    pub sharing: Sharing,
    pub as_of: Time,
    /// Whether the answer is read once.
    pub is_asked_once: bool,
    /// What is still there of arrangements from which rows leave.
    pub kept: &'a Kept,
    /// The last number given away.
    pub last_id: u64,
    pub drafts: Vec<Draft>,
    /// What the drafts will export.
    made: Registry,
    /// What the joins of the whole query want; known from its first draft on.
    leaves: Option<Rc<Leaves>>,
}

impl<'a> Drafter<'a> {
    pub fn new(
        registry: &'a Registry,
        reads: &'a BTreeMap<String, Read>,
        sharing: Sharing,
        as_of: Time,
        kept: &'a Kept,
        last_id: u64,
    ) -> Drafter<'a> {
        Drafter {
            kept,
            registry,
            reads,
            sharing,
            as_of,
            is_asked_once: false,
            last_id,
            drafts: Vec::new(),
            made: Registry::default(),
            leaves: None,
        }
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Drafts a dataflow of `plan` with an arrangement for each of `keys`, after those that it
    /// shares.
    ///
    /// # Errors
    /// As [`prepare`].
    pub fn draft(&mut self, name: &str, plan: &Arc<Plan>, keys: &[Vec<usize>]) -> Result<(), Error> {
        let exports = keys.iter().map(|key| self.export(key, false)).collect();
        self.draft_with(name, plan, exports)
    }

    fn export(&mut self, key: &[usize], is_part: bool) -> Export {
        Export { arrangement: ArrangementId(self.next_id()), key: key.to_vec(), is_part }
    }

    fn draft_with(&mut self, name: &str, plan: &Arc<Plan>, exports: Vec<Export>) -> Result<(), Error> {
        let dataflow = DataflowId(self.next_id());
        // (What is shared is a part of the query: it makes arrangements that do for the other parts
        // too.)
        let leaves = Rc::clone(self.leaves.get_or_insert_with(|| Rc::new(Leaves::of(plan))));
        let physical = prepare(plan, &leaves, self.reads, &exports, self)?;
        self.drafts.push(Draft { dataflow, name: name.to_string(), plan: Arc::clone(plan), exports, physical });
        Ok(())
    }

    /// Drafts a shared dataflow of `plan` with an arrangement by `key`.
    fn share(&mut self, plan: &Arc<Plan>, key: &[usize]) -> Result<ArrangementId, Error> {
        let name = format!("shared {}", anabranch_plan::explain::line(plan));
        let export = self.export(key, true);
        let arrangement = export.arrangement;
        self.draft_with(&name, plan, vec![export])?;
        self.made.add(plan, SharedPart { key: key.to_vec(), arrangement, since: self.as_of, floor: None });
        Ok(arrangement)
    }

    /// The arrangements of a plan that can be used, those that will be there included.
    fn usable<'b>(&'b self, plan: &Plan) -> impl Iterator<Item = &'b SharedPart> {
        let existing = self.registry.entries(plan).iter().filter(|entry| self.kept.is_whole(entry));
        let entries = existing.chain(self.made.entries(plan));
        entries.filter(|entry| self.sharing != Sharing::Off && entry.since <= self.as_of)
    }

    /// The arrangements of scans that show at least some columns of the same rows, each with where
    /// those are.
    fn covering<'b>(&'b self, wanted: &Scan, columns: &[usize]) -> Vec<(&'b SharedPart, Vec<usize>)> {
        let scans = self.registry.scans_like(wanted).iter().chain(self.made.scans_like(wanted));
        let places = scans.filter_map(|scan| {
            let shown = scan_of(scan)?.shown;
            let place = |column: &usize| shown.iter().position(|other| *other == wanted.shown[*column]);
            Some((scan, columns.iter().map(place).collect::<Option<Vec<usize>>>()?))
        });
        places.flat_map(|(scan, places)| self.usable(scan).map(move |entry| (entry, places.clone()))).collect()
    }

    /// The arrangements that hold a plan's rows, each with where the plan's columns are in it.
    fn candidates(&self, plan: &Arc<Plan>) -> Vec<(&SharedPart, Vec<usize>)> {
        let (base, columns) = base_of(plan);
        match scan_of(base) {
            Some(scan) => self.covering(&scan, &columns),
            None => self.usable(base).map(|entry| (entry, columns.clone())).collect(),
        }
    }
}

impl Shares for Drafter<'_> {
    fn reads_indexes(&self) -> bool {
        self.sharing != Sharing::Off
    }

    fn is_asked_once(&self) -> bool {
        self.is_asked_once
    }

    fn arrangement(&mut self, plan: &Arc<Plan>, key: &[usize]) -> Result<Option<Found>, Error> {
        let has_key = |(entry, columns): &(&SharedPart, Vec<usize>)| {
            entry.key.iter().copied().eq(key.iter().map(|column| columns[*column]))
        };
        if let Some((entry, columns)) = self.candidates(plan).into_iter().find(has_key) {
            return Ok(Some(Found { arrangement: entry.arrangement, columns }));
        }
        if self.sharing != Sharing::Full || !is_shareable(plan) {
            return Ok(None);
        }
        let (base, columns) = base_of(plan);
        let key: Vec<usize> = key.iter().map(|column| columns[*column]).collect();
        let arrangement = self.share(&Arc::clone(base), &key)?;
        Ok(Some(Found { arrangement, columns }))
    }

    fn key_order(&self, plan: &Arc<Plan>, key: &[usize]) -> Option<Vec<usize>> {
        let orders = self.candidates(plan).into_iter();
        orders.filter_map(|(entry, columns)| order_of(&entry.key, key, &columns)).next()
    }

    fn rows(&self, plan: &Arc<Plan>) -> Option<ArrangementId> {
        if !keeps_state(plan) {
            return None;
        }
        self.usable(plan).next().map(|entry| entry.arrangement)
    }

    fn shared_rows(&mut self, plan: &Arc<Plan>) -> Result<Option<ArrangementId>, Error> {
        if let Some(arrangement) = self.rows(plan) {
            return Ok(Some(arrangement));
        }
        // (Rows of which no change will come leave: who comes later finds none of them, and needs a
        // part of its own.)
        if self.sharing != Sharing::Full || !is_shareable(plan) || is_freed(plan, &Reading(self.reads)) {
            return Ok(None);
        }
        match &plan.node {
            Node::Aggregate { keys, .. } => self.share(plan, &(0..keys.len()).collect::<Vec<_>>()).map(Some),
            Node::Distinct { .. } => self.share(plan, &(0..plan.schema.fields().len()).collect::<Vec<_>>()).map(Some),
            Node::TopK { top, .. } => self.share(plan, &top.group).map(Some),
            Node::Recursive(_) => self.share(plan, &(0..plan.schema.fields().len()).collect::<Vec<_>>()).map(Some),
            _ => Ok(None),
        }
    }
}

/// A plan that only filters a relation's rows and shows some of their columns.
struct Scan {
    /// What scans have in common that differ only in what they show.
    kind: Rows,
    /// Positions in the relation's schema.
    shown: Vec<usize>,
}

/// A relation, and a filter over its columns by their positions.
type Rows = (String, Vec<Expr>);

fn scan_of(plan: &Plan) -> Option<Scan> {
    match &plan.node {
        Node::Scan { relation, columns } => Some(Scan { kind: (relation.clone(), vec![]), shown: columns.clone() }),
        Node::Stage { input, filter, project } => {
            let Node::Scan { relation, columns } = &input.node else { return None };
            let shown = picks(input, &[], project)?.into_iter().map(|pick| columns[pick]).collect();
            let filter = filter.iter().map(|expr| by_position(expr, input, columns)).collect::<Option<Vec<Expr>>>()?;
            Some(Scan { kind: (relation.clone(), filter), shown })
        }
        _ => None,
    }
}

/// The expression with the columns of a scan named by their positions in the relation's schema.
fn by_position(expr: &Expr, scan: &Plan, columns: &[usize]) -> Option<Expr> {
    let mut is_known = true;
    let renamed = expr.clone().transform(|expr| {
        let Expr::Column(column) = &expr else { return Ok(Transformed::no(expr)) };
        let Some(place) = scan.schema.maybe_index_of_column(column) else {
            is_known = false;
            return Ok(Transformed::no(expr));
        };
        Ok(Transformed::yes(Expr::Column(Column::new_unqualified(format!("#{}", columns[place])))))
    });
    renamed.ok().map(|renamed| renamed.data).filter(|_| is_known)
}

/// Whether the plan's rows change, and an arrangement can hold them: events with lifetimes are more
/// than rows. (A plan with variables of a loop around it is a part of that loop.)
fn is_shareable(plan: &Plan) -> bool {
    fn has_events(plan: &Plan) -> bool {
        matches!(plan.node, Node::Temporal { .. }) || plan.inputs().into_iter().any(|input| has_events(input))
    }
    !plan.relations().is_empty() && plan.is_closed() && !has_events(plan)
}

/// Whether computing the plan's rows anew would need state that an arrangement of them spares.
fn keeps_state(plan: &Plan) -> bool {
    match &plan.node {
        Node::Scan { .. } | Node::Constant { .. } | Node::Temporal { .. } | Node::Variable { .. } => false,
        Node::Join { .. }
        | Node::Asof { .. }
        | Node::Aggregate { .. }
        | Node::Distinct { .. }
        | Node::TopK { .. }
        | Node::Session { .. }
        | Node::Recognize { .. }
        | Node::Window { .. }
        | Node::SetOperation { .. }
        | Node::Recursive(_) => true,
        Node::Stage { .. } | Node::Unnest { .. } | Node::Union { .. } => {
            plan.inputs().into_iter().any(|input| keeps_state(input))
        }
    }
}
