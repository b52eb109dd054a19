//! The dataflows of a cluster: who reads whom, and what has failed.
//!
//! Law: when a dataflow has failed, all that read it, directly or through others, have failed as
//! well. So nothing that could be incomplete is ever read; what neither failed nor reads what
//! failed goes on. A failed dataflow keeps its number until it is uninstalled.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anabranch_flow::account::{Account, Accounts, Cause, Failure, OperatorCounts, ShardWork};

use super::spec::{ArrangementId, DataflowId};
use crate::error::Error;
use crate::render::physical::Physical;

/// The dataflows that are installed.
#[derive(Default)]
pub(super) struct Tenants {
    all: BTreeMap<DataflowId, Tenant>,
    /// Each after those that it reads.
    order: Vec<DataflowId>,
    makers: HashMap<ArrangementId, DataflowId>,
    /// How many failures the accounts told of when they were last looked at.
    failures: u64,
}

struct Tenant {
    name: String,
    account: Account,
    exports: Vec<ArrangementId>,
    /// Dataflows whose arrangements it reads.
    uses: BTreeSet<DataflowId>,
    /// Whether it has failed and was handed out by [`newly_failed`](Tenants::newly_failed).
    is_down: bool,
}

/// A dataflow, for lists.
pub(crate) struct InstalledDataflow<'a> {
    pub dataflow: DataflowId,
    pub name: &'a str,
    pub account: &'a Account,
    pub exports: &'a [ArrangementId],
}

impl Tenants {
    /// What is installed, in order of its numbers.
    pub fn installed(&self) -> Vec<InstalledDataflow<'_>> {
        self.all
            .iter()
            .map(|(dataflow, tenant)| InstalledDataflow {
                dataflow: *dataflow,
                name: &tenant.name,
                account: &tenant.account,
                exports: &tenant.exports,
            })
            .collect()
    }

    /// The account of a dataflow.
    pub fn account(&self, dataflow: DataflowId) -> Option<&Account> {
        self.all.get(&dataflow).map(|tenant| &tenant.account)
    }

    /// A dataflow is installed.
    pub fn add(&mut self, dataflow: DataflowId, name: &str, physical: &Physical, account: Account) {
        let exports: Vec<ArrangementId> = physical.exports.iter().map(|(export, _)| export.arrangement).collect();
        let uses = physical.uses().iter().filter_map(|used| self.makers.get(used).copied()).collect();
        self.makers.extend(exports.iter().map(|export| (*export, dataflow)));
        self.all.insert(dataflow, Tenant { name: name.to_owned(), account, exports, uses, is_down: false });
        self.order.push(dataflow);
    }

    /// A dataflow is uninstalled.
    pub fn remove(&mut self, dataflow: DataflowId) {
        let Some(tenant) = self.all.remove(&dataflow) else { return };
        tenant.exports.iter().for_each(|export| _ = self.makers.remove(export));
        self.order.retain(|other| *other != dataflow);
    }

    /// The dataflow that makes an arrangement.
    pub fn maker(&self, arrangement: ArrangementId) -> Option<DataflowId> {
        self.makers.get(&arrangement).copied()
    }

    /// Why a dataflow has failed, if it has.
    pub fn failure(&self, dataflow: DataflowId) -> Option<&Failure> {
        self.all.get(&dataflow)?.account.failure()
    }

    /// What the steps of a dataflow have done.
    pub fn operators(&self, dataflow: DataflowId) -> BTreeMap<usize, OperatorCounts> {
        self.all.get(&dataflow).map(|tenant| tenant.account.operators()).unwrap_or_default()
    }

    /// What the steps of a dataflow have done on each worker.
    pub fn work_of_shards(&self, dataflow: DataflowId) -> BTreeMap<usize, BTreeMap<usize, ShardWork>> {
        self.all.get(&dataflow).map(|tenant| tenant.account.work_of_shards()).unwrap_or_default()
    }

    /// The failure of a dataflow as an error. A dataflow that reads one which memory has ended is
    /// told as ended by memory, too: its reader can act on that.
    pub fn check(&self, dataflow: DataflowId) -> Result<(), Error> {
        let Some(tenant) = self.all.get(&dataflow) else { return Ok(()) };
        let root = self.root(tenant);
        let is_memory = root.account.failure().is_some_and(|failure| failure.cause == Cause::Memory);
        let told = if is_memory { root } else { tenant };
        told.account.failure().map_or(Ok(()), |failure| Err(failed(&subject(&told.name), failure)))
    }

    /// The dataflow that failed first, of those that a failed one reads.
    fn root<'t>(&'t self, tenant: &'t Tenant) -> &'t Tenant {
        let reads = tenant.account.failure().is_some_and(|failure| failure.cause == Cause::Reads);
        let mut used = tenant.uses.iter().filter(|_| reads).filter_map(|used| self.all.get(used));
        let failed = used.find(|used| used.account.failure().is_some());
        failed.map_or(tenant, |failed| self.root(failed))
    }

    /// Lets those fail that read what has failed, and returns all that have failed since the last
    /// call, each before those that it reads. Cost: one load if nothing has failed.
    pub fn newly_failed(&mut self, accounts: &Accounts) -> Vec<DataflowId> {
        let failures = accounts.failures();
        if failures == self.failures {
            return vec![];
        }
        // (What fails meanwhile is seen the next time.)
        self.failures = failures;
        let mut failed: BTreeMap<DataflowId, &str> = BTreeMap::new();
        for dataflow in &self.order {
            let tenant = &self.all[dataflow];
            if let Some(read) = tenant.uses.iter().find_map(|used| failed.get(used)) {
                let message = format!("{} has failed, which it reads", subject(read));
                tenant.account.fail(Failure { cause: Cause::Reads, message });
            }
            if tenant.account.failure().is_some() {
                failed.insert(*dataflow, &tenant.name);
            }
        }
        let failed: BTreeSet<DataflowId> = failed.into_keys().collect();
        let mut newly = Vec::new();
        for dataflow in self.order.iter().rev().filter(|dataflow| failed.contains(dataflow)) {
            let tenant = self.all.get_mut(dataflow).expect("the order is of those that are installed");
            if !std::mem::replace(&mut tenant.is_down, true) {
                newly.push(*dataflow);
            }
        }
        newly
    }

    /// Lets a dataflow fail.
    pub fn fail(&self, dataflow: DataflowId, failure: Failure) {
        self.all.get(&dataflow).iter().for_each(|tenant| tenant.account.fail(failure.clone()));
    }

    /// Has a dataflow do nothing any more that is about to be uninstalled, if it is a query that is
    /// asked once.
    pub fn give_up(&self, dataflow: DataflowId) {
        self.all.get(&dataflow).iter().for_each(|tenant| tenant.account.give_up());
    }

    /// Lets the next turn of every dataflow of this name panic.
    pub fn panic_in(&self, name: &str) {
        self.all.values().filter(|tenant| tenant.name == name).for_each(|tenant| tenant.account.panic_next());
    }
}

/// How a dataflow is named in messages: by the relation that it is for, or by what it is.
fn subject(name: &str) -> String {
    match name.strip_prefix("a ") {
        Some(kind) => format!("the {kind}"),
        None => format!("\"{name}\""),
    }
}

/// The error for what has failed.
pub(crate) fn failed(subject: &str, failure: &Failure) -> Error {
    const ALONE: &str = "Nothing else is affected; what does not read it goes on.";
    let ended = format!("{subject} was ended: {}", failure.message);
    let failed = format!("{subject} has failed: {}", failure.message);
    match failure.cause {
        Cause::Memory => Error::unavailable(ended)
            .with_sqlstate("53200")
            .with_detail(ALONE)
            .with_hint("Ask for less at once, or SET memory_limit to more; a view is dropped and created anew."),
        Cause::Buffer => Error::unavailable(ended)
            .with_sqlstate("53400")
            .with_detail("Nothing else is affected.")
            .with_hint("Take changes faster, or SET subscribe_buffer to more, or subscribe_overflow to 'coalesce'."),
        Cause::Rows => Error::data(failed).with_detail(ALONE).with_hint("Drop it and create it anew without the row."),
        Cause::Reads => Error::internal(failed).with_detail(ALONE).with_hint("Drop both and create them anew."),
        Cause::Panic => Error::internal(failed)
            .with_detail(ALONE)
            .with_hint("Drop it and create it anew; this is a bug, please report it."),
    }
}
