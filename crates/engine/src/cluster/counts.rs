//! What a cluster holds and has done: memory and its limit, arrangements, steps.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;

use anabranch_flow::account::Account;
use anabranch_flow::account::memory::{Holder, MemoryPart, readable};
use anabranch_flow::steps::StepStats;

use super::worker::{Command, WorkerStats};
use super::{ArrangementId, ArrangementStats, Cluster, DataflowId};
use crate::error::Error;
use crate::interrupt::Interrupt;

/// Percent of the memory limit above which nothing new is installed.
const ROOM_PERCENT: usize = 90;

impl Cluster {
    /// What every arrangement holds, in order of their ids.
    pub fn stats(&mut self) -> Vec<ArrangementStats> {
        let (sender, receiver) = channel();
        self.tell(|| Command::Stats { reply: sender.clone() });
        let parts = self.collect(&receiver, &Interrupt::new()).unwrap_or_default();
        let mut all: BTreeMap<ArrangementId, ArrangementStats> = BTreeMap::new();
        for stats in parts.into_iter().flat_map(|WorkerStats(stats)| stats) {
            match all.get_mut(&stats.arrangement) {
                Some(sum) => sum.add(&stats),
                None => {
                    all.insert(stats.arrangement, stats);
                }
            }
        }
        all.into_values().collect()
    }

    /// How long operators ran without a pause, over all workers, in order of their kinds.
    pub fn steps(&mut self) -> Vec<StepStats> {
        let (sender, receiver) = channel();
        self.tell(|| Command::Steps { reply: sender.clone() });
        let parts = self.collect(&receiver, &Interrupt::new()).unwrap_or_default();
        let mut all: BTreeMap<&'static str, StepStats> = BTreeMap::new();
        for stats in parts.into_iter().flatten() {
            match all.get_mut(stats.operator) {
                Some(sum) => sum.merge(&stats),
                None => {
                    all.insert(stats.operator, stats);
                }
            }
        }
        all.into_values().collect()
    }

    /// Counts steps anew.
    pub fn reset_steps(&mut self) {
        self.tell(|| Command::ResetSteps);
    }

    /// The most that dataflows may hold together.
    pub(crate) fn set_memory_limit(&self, bytes: Option<usize>) {
        self.accounts.set_limit(bytes);
    }

    /// The most that dataflows may hold together, if there is a limit.
    pub(crate) fn memory_limit(&self) -> Option<usize> {
        self.accounts.limit()
    }

    /// Whether so many percent of the limit are held, rows that no dataflow has taken in included.
    pub(crate) fn is_filled_to(&self, percent: usize) -> bool {
        let held = || self.accounts.held_bytes() + self.accounts.backlog_bytes();
        self.accounts.limit().is_some_and(|limit| held() / percent > limit / 100)
    }

    /// The accounts of clients.
    pub(crate) fn clients(&self) -> Vec<Account> {
        self.accounts.all().into_iter().filter(|account| account.holder() == Holder::Client).collect()
    }

    /// Bytes of a part that a dataflow holds.
    pub(crate) fn held_of(&self, dataflow: DataflowId, part: MemoryPart) -> usize {
        self.tenants.account(dataflow).map_or(0, |account| account.held_of(part))
    }

    /// The account of a client.
    pub(crate) fn client_account(&self, client: u64) -> Account {
        self.accounts.open_for(Holder::Client, Some(client))
    }

    /// Refuses what would hold more when little is left.
    pub(crate) fn check_room(&self) -> Result<(), Error> {
        match self.is_filled_to(ROOM_PERCENT) {
            true => Err(self.no_room()),
            false => Ok(()),
        }
    }

    /// The error where little is left.
    pub(crate) fn no_room(&self) -> Error {
        let bytes = |bytes: usize| readable(i64::try_from(bytes).unwrap_or(i64::MAX));
        let (held, limit) = (bytes(self.accounts.held_bytes()), bytes(self.accounts.limit().unwrap_or_default()));
        Error::unavailable(format!("out of memory: {held} of {limit} are held"))
            .with_sqlstate("53200")
            .with_detail("Reads of what is maintained, DELETE and DROP go on.")
            .with_hint("SELECT * FROM anabranch_memory tells where it is. Drop views, or SET memory_limit to more.")
    }
}
