//! What is installed in the cluster, and how long it stays.
//!
//! Law: a dataflow stays as long as a name owns it (a relation, an index, a subscription) or
//! another dataflow reads one of its arrangements. So dropping an index or a view never disturbs
//! the queries that share its arrangements: they keep them, nameless, until the last of them goes.
//! Shared dataflows have no name from the start. What has failed is not shared with anything new.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use anabranch_batch::Time;
use anabranch_flow::account::memory::Holder;
use anabranch_plan::bounds::Bound;
use anabranch_plan::{Node, Plan};

use crate::catalog::FOLLOWED;
use crate::cluster::{ArrangementId, Cluster, CollectionId, DataflowId, Egress, Read};
use crate::contained::contained;
use crate::error::Error;
use crate::render::bases::unnamed;
use crate::render::{RowMovement, movements};
use crate::sharing::{Draft, Drafter, Kept, Registry, SharedPart, Sharing};

/// Installed dataflows. Ids are never reused.
#[derive(Debug, Default)]
pub struct Dataflows {
    last_id: u64,
    installed: BTreeMap<DataflowId, Installed>,
    /// The installed dataflows, each after those that it uses.
    order: Vec<DataflowId>,
    /// The dataflow that makes each arrangement.
    makers: HashMap<ArrangementId, DataflowId>,
    registry: Registry,
    /// How many failures the cluster had told of when the registry was last cleared of them.
    failures: u64,
    /// Watermarks that have a value, by the inputs whose rows they bound.
    marked: BTreeSet<u64>,
}

#[derive(Debug)]
struct Installed {
    name: String,
    plan: Arc<Plan>,
    /// The time as of which it was installed: its operators are counted since then.
    since: Time,
    /// What its steps compute, by number.
    operators: Vec<(usize, Arc<Plan>)>,
    exports: Vec<ArrangementId>,
    /// What of its output is collected besides.
    egress: Egress,
    /// Dataflows whose arrangements it reads.
    uses: BTreeSet<DataflowId>,
    /// Collections whose changes it reads as they come.
    follows: BTreeSet<CollectionId>,
    /// Watermarks by which its state may be bounded.
    marks: BTreeSet<u64>,
    /// How many names own it.
    owners: usize,
    /// Arrangements all rows of which it may look at for ever.
    keeps: BTreeSet<ArrangementId>,
}

/// A dataflow that is wanted.
#[derive(Clone, Debug)]
pub struct WantedDataflow<'a> {
    /// For logs, errors, and lists of readers.
    pub name: &'a str,
    /// What it computes.
    pub plan: &'a Arc<Plan>,
    /// Keys of the arrangements of its output that are read.
    pub keys: &'a [Vec<usize>],
    /// What of its output is collected.
    pub egress: Egress,
    /// How each relation that the plan scans is to be read.
    pub reads: &'a BTreeMap<String, Read>,
    /// Its results are right from this time on.
    pub as_of: Time,
    /// How far it shares.
    pub sharing: Sharing,
    /// Whether the answer is read as of that time, and then dropped: joins keep nothing then.
    pub is_asked_once: bool,
    /// Whose memory it takes.
    pub holder: Holder,
    /// The client that it is for alone.
    pub client: Option<u64>,
}

/// An operator of an installed dataflow.
pub(crate) struct Operator<'a> {
    pub dataflow: DataflowId,
    /// Of the dataflow.
    pub name: &'a str,
    /// When the dataflow was installed.
    pub since: Time,
    /// Its number in the dataflow.
    pub step: usize,
    pub plan: &'a Arc<Plan>,
}

/// What a dataflow would share.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// Arrangements that exist.
    pub existing: BTreeSet<ArrangementId>,
    /// Sub-plans that would be arranged for it and those that come after it, with their keys.
    pub made: Vec<(Arc<Plan>, Vec<usize>)>,
    /// What would move of the rows of a sub-plan, with several workers.
    pub movements: Vec<(Arc<Plan>, RowMovement)>,
}

impl Dataflows {
    fn next(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Takes note that the watermark of an input has a value.
    pub fn note_mark(&mut self, input: CollectionId) {
        self.marked.insert(input.0);
    }

    /// What is known of arrangements from which rows leave.
    fn kept(&self) -> Kept {
        let whole = self.installed.values().flat_map(|installed| installed.keeps.iter().copied()).collect();
        Kept { marked: self.marked.clone(), whole }
    }

    /// A new id for a collection.
    pub fn next_collection(&mut self) -> CollectionId {
        CollectionId(self.next())
    }

    /// A new id for a dataflow that the caller installs by itself, and that no other part uses.
    pub(crate) fn next_dataflow(&mut self) -> DataflowId {
        DataflowId(self.next())
    }

    /// The dataflows that a name owns. When they are complete, so are those that they read.
    pub(crate) fn owned(&self) -> Vec<DataflowId> {
        let owned = self.installed.iter().filter(|(_, installed)| installed.owners > 0);
        owned.map(|(dataflow, _)| *dataflow).collect()
    }

    /// All arrangements of installed dataflows.
    pub(crate) fn arrangements(&self) -> Vec<ArrangementId> {
        self.installed.values().flat_map(|installed| installed.exports.iter().copied()).collect()
    }

    /// The steps of installed dataflows that compute something, each dataflow's inputs before
    /// users.
    pub(crate) fn operators(&self) -> impl Iterator<Item = Operator<'_>> {
        self.order.iter().flat_map(|dataflow| {
            let Installed { name, since, operators, .. } = &self.installed[dataflow];
            operators.iter().map(move |(step, plan)| Operator {
                dataflow: *dataflow,
                name,
                since: *since,
                step: *step,
                plan,
            })
        })
    }

    /// What an installed dataflow computes, and since when.
    pub(crate) fn installed_plan(&self, dataflow: DataflowId) -> Option<(&Arc<Plan>, Time)> {
        self.installed.get(&dataflow).map(|installed| (&installed.plan, installed.since))
    }

    /// The arrangements that installed dataflows make, with the dataflow's name and since when.
    pub(crate) fn makers(&self) -> impl Iterator<Item = (DataflowId, &str, Time, ArrangementId)> {
        self.order.iter().flat_map(|dataflow| {
            let Installed { name, since, exports, .. } = &self.installed[dataflow];
            exports.iter().map(|export| (*dataflow, name.as_str(), *since, *export))
        })
    }

    /// How many dataflows are installed.
    pub fn count(&self) -> usize {
        self.installed.len()
    }

    /// How many dataflows read arrangements that this one makes.
    pub(crate) fn readers(&self, dataflow: DataflowId) -> usize {
        self.installed.values().filter(|other| other.uses.contains(&dataflow)).count()
    }

    /// How many dataflows read arrangements of the dataflow that makes this one.
    pub(crate) fn users(&self, arrangement: ArrangementId) -> usize {
        self.makers.get(&arrangement).map_or(0, |maker| self.readers(*maker))
    }

    /// Whether a dataflow reads the changes of this collection as they come.
    pub(crate) fn is_input_read(&self, input: CollectionId) -> bool {
        self.installed.values().any(|installed| installed.follows.contains(&input))
    }

    /// Whether a dataflow's state may be bounded by the watermark of this input.
    pub(crate) fn is_mark_read(&self, input: CollectionId) -> bool {
        self.installed.values().any(|installed| installed.marks.contains(&input.0))
    }

    /// Whether a name owns the dataflow that makes this arrangement.
    pub(crate) fn is_owned(&self, arrangement: ArrangementId) -> bool {
        let maker = self.makers.get(&arrangement).and_then(|maker| self.installed.get(maker));
        maker.is_some_and(|installed| installed.owners > 0)
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn registry_mut(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// For each dataflow the time before which no reader tells times apart in what it makes, when
    /// its arrangements themselves are read from `kept` on: the earliest of that and what the
    /// dataflows that read it are asked for. Changes that are collected are seen at every time.
    pub fn horizons(&self, kept: impl Fn(ArrangementId) -> Time) -> Vec<(DataflowId, Time)> {
        let mut wanted: HashMap<DataflowId, Time> = HashMap::new();
        let mut horizons = Vec::with_capacity(self.order.len());
        for dataflow in self.order.iter().rev() {
            let installed = &self.installed[dataflow];
            let own = installed.exports.iter().map(|export| kept(*export));
            let by_readers = wanted.get(dataflow).copied();
            let horizon = match installed.egress {
                Egress::Nothing => own.chain(by_readers).min().unwrap_or(Time::MIN),
                Egress::Changes(_) | Egress::Events => Time::MIN,
            };
            for used in &installed.uses {
                let wanted = wanted.entry(*used).or_insert(horizon);
                *wanted = horizon.min(*wanted);
            }
            horizons.push((*dataflow, horizon));
        }
        horizons
    }

    /// Shared arrangements were let go up to `since`: plans as of earlier times do not use them.
    pub fn forget_before(&mut self, since: Time) {
        self.registry.forget_before(since);
    }

    /// Installs what is wanted, with what it shares, and returns it with its arrangements, in order
    /// of their keys. The caller owns it once.
    ///
    /// # Errors
    /// `Invalid` when the plan cannot be run; nothing is left behind.
    pub fn install(
        &mut self,
        cluster: &mut Cluster,
        wanted: &WantedDataflow<'_>,
    ) -> Result<(DataflowId, Vec<ArrangementId>), Error> {
        self.forget_failed(cluster);
        let mut read = wanted.reads.values().flat_map(|read| &read.arrangements);
        read.try_for_each(|(arrangement, _)| cluster.check_sound(*arrangement))?;
        if let Some(existing) = self.whole(wanted) {
            self.retain(existing.0);
            return Ok(existing);
        }
        // (What reads system relations alone tells where memory is, when little is left.)
        let is_watch = wanted.plan.relations().iter().all(|name| name.starts_with(FOLLOWED));
        if wanted.holder != Holder::Rows && !is_watch {
            cluster.check_room()?;
        }
        let (drafts, last_id) = contained("preparing the query", || self.draft(wanted))?;
        cluster.check()?;
        self.last_id = last_id;
        let mut made = None;
        let n_shared = drafts.len() - 1;
        for (index, draft) in drafts.into_iter().enumerate() {
            let is_wanted = index == n_shared;
            let installed = self.install_draft(cluster, draft, wanted, is_wanted);
            made = Some(installed);
        }
        Ok(made.expect("the wanted dataflow is drafted last"))
    }

    /// Takes down what has failed, and offers it to no query any more.
    fn forget_failed(&mut self, cluster: &mut Cluster) {
        cluster.take_down_failed();
        if std::mem::replace(&mut self.failures, cluster.failures()) == cluster.failures() {
            return;
        }
        let failed = self.installed.iter().filter(|(dataflow, _)| cluster.failure(**dataflow).is_some());
        failed.flat_map(|(_, failed)| &failed.exports).for_each(|export| self.registry.remove(*export));
    }

    /// The dataflow that makes exactly what is wanted.
    fn whole(&self, wanted: &WantedDataflow<'_>) -> Option<(DataflowId, Vec<ArrangementId>)> {
        let [key] = wanted.keys else { return None };
        if wanted.sharing == Sharing::Off || wanted.egress != Egress::Nothing {
            return None;
        }
        let entries = self.registry.entries(unnamed(wanted.plan)).iter();
        // (Parts are not made for names: rows leave them.)
        let mut usable =
            entries.filter(|entry| entry.key == *key && entry.since <= wanted.as_of && entry.floor.is_none());
        let arrangement = usable.next()?.arrangement;
        Some((*self.makers.get(&arrangement)?, vec![arrangement]))
    }

    /// Drafts of what would be installed, and the last number that they take.
    fn draft(&self, wanted: &WantedDataflow<'_>) -> Result<(Vec<Draft>, u64), Error> {
        let kept = self.kept();
        let mut drafter = Drafter::new(&self.registry, wanted.reads, wanted.sharing, wanted.as_of, &kept, self.last_id);
        drafter.is_asked_once = wanted.is_asked_once;
        drafter.draft(wanted.name, wanted.plan, wanted.keys)?;
        Ok((drafter.drafts, drafter.last_id))
    }

    fn install_draft(
        &mut self,
        cluster: &mut Cluster,
        draft: Draft,
        wanted: &WantedDataflow<'_>,
        is_wanted: bool,
    ) -> (DataflowId, Vec<ArrangementId>) {
        let Draft { dataflow, name, plan, exports, physical } = draft;
        let uses = physical.uses().iter().filter_map(|used| self.makers.get(used).copied()).collect();
        let egress = if is_wanted { wanted.egress } else { Egress::Nothing };
        let holder = if is_wanted { (wanted.holder, wanted.client) } else { (Holder::Standing, None) };
        cluster.install_prepared(dataflow, &name, &physical, wanted.as_of, egress, holder);
        let arrangements: Vec<ArrangementId> = exports.iter().map(|export| export.arrangement).collect();
        for export in &exports {
            self.makers.insert(export.arrangement, dataflow);
            // The arrangements of a relation itself are found by its name.
            let is_relation = is_wanted && matches!(plan.node, Node::Scan { .. });
            if wanted.sharing == Sharing::Full && !is_relation {
                let floor = physical.floor.as_ref().filter(|_| export.is_part).map(|floor| floor.below.clone());
                let entry =
                    SharedPart { key: export.key.clone(), arrangement: export.arrangement, since: wanted.as_of, floor };
                self.registry.add(unnamed(&plan), entry);
            }
        }
        let owners = usize::from(is_wanted);
        let (keeps, follows) = (physical.keeps(), physical.follows());
        let operators = physical.plans.iter().map(|(step, plan)| (step.0, Arc::clone(plan))).collect();
        let promises = plan.relations().into_iter().filter_map(|name| Some(&wanted.reads.get(&name)?.promises));
        let bounds = promises.flat_map(|promises| promises.bounds.values().chain(&promises.mark));
        let marks = bounds.flat_map(Bound::marks).map(|(id, _)| id).collect();
        let (exports, since) = (arrangements.clone(), wanted.as_of);
        let installed =
            Installed { name, plan, since, operators, exports, egress, uses, follows, marks, owners, keeps };
        self.installed.insert(dataflow, installed);
        self.order.push(dataflow);
        (dataflow, arrangements)
    }

    /// What would be shared if it were installed.
    ///
    /// # Errors
    /// As [`install`](Self::install).
    pub(crate) fn usage(&self, wanted: &WantedDataflow<'_>) -> Result<Usage, Error> {
        if let Some((_, arrangements)) = self.whole(wanted) {
            return Ok(Usage { existing: arrangements.into_iter().collect(), made: vec![], movements: vec![] });
        }
        let (mut drafts, _) = self.draft(wanted)?;
        let used = drafts.iter().flat_map(|draft| draft.physical.uses());
        let existing = used.filter(|used| self.makers.contains_key(used)).collect();
        let key_of = |arrangement: ArrangementId| {
            let of_relations = wanted.reads.values().flat_map(|read| &read.arrangements);
            let mut of_parts = drafts.iter().flat_map(|draft| &draft.exports);
            let of_relation = of_relations.clone().find(|(of, _)| *of == arrangement).map(|(_, key)| key.clone());
            let shared = || self.registry.describe(arrangement).map(|(_, key)| key.to_vec());
            let of_part = || of_parts.find(|part| part.arrangement == arrangement).map(|part| part.key.clone());
            of_relation.or_else(shared).or_else(of_part)
        };
        let moved = drafts.iter().flat_map(|Draft { physical, .. }| {
            let of_plan = |step| physical.plans.iter().filter(move |(of, _)| *of == step).map(|(_, plan)| plan);
            let told = movements(physical, false, &key_of).into_iter();
            told.flat_map(move |(step, moved)| of_plan(step).map(move |plan| (Arc::clone(plan), moved.clone())))
        });
        let movements = moved.collect();
        drafts.pop();
        let made = drafts.into_iter().map(|draft| {
            let key = draft.exports.into_iter().next().map(|export| export.key).unwrap_or_default();
            (draft.plan, key)
        });
        Ok(Usage { existing, made: made.collect(), movements })
    }

    /// One more name owns the dataflow.
    pub fn retain(&mut self, dataflow: DataflowId) {
        if let Some(installed) = self.installed.get_mut(&dataflow) {
            installed.owners += 1;
        }
    }

    /// One name less owns the dataflow; what no query needs any more is taken down.
    pub fn release(&mut self, cluster: &mut Cluster, dataflow: DataflowId) {
        if let Some(installed) = self.installed.get_mut(&dataflow) {
            installed.owners = installed.owners.saturating_sub(1);
        }
        let mut open = vec![dataflow];
        while let Some(dataflow) = open.pop() {
            let unowned = self.installed.get(&dataflow).is_some_and(|installed| installed.owners == 0);
            if !unowned || self.readers(dataflow) > 0 {
                continue;
            }
            if let Some(installed) = self.installed.remove(&dataflow) {
                for arrangement in &installed.exports {
                    self.makers.remove(arrangement);
                    self.registry.remove(*arrangement);
                }
                self.order.retain(|other| *other != dataflow);
                cluster.uninstall(dataflow);
                open.extend(installed.uses);
            }
        }
    }
}
