//! What the system relations about the engine tell.

use anabranch_flow::account::Account;
use anabranch_flow::account::memory::{Holder, MemoryPart};

use super::outcome::SourceState as Reading;
use super::state::Session;
use crate::catalog::system::{DataflowState, EngineState, HeldState, SourceState, SubscriptionState};
use crate::cluster::{DataflowId, InstalledDataflow};
use crate::database::EngineLoad;

impl Session {
    /// Where the engine stands. No worker is asked.
    pub(super) fn engine_state(&self) -> EngineState {
        let dataflows = self.cluster.installed().iter().map(dataflow).collect();
        let sources = self.pump.statuses().into_iter().map(|status| {
            let (state, failure) = match status.state {
                Reading::Running => ("running", None),
                Reading::Failed(message) => ("failed", Some(message)),
                _ => ("finished", None),
            };
            SourceState { name: status.name, state, rows: status.rows, skipped: status.progress.skipped, failure }
        });
        let subscriptions = self.subscriptions.states().into_iter().map(|state| SubscriptionState {
            bytes: self.cluster.held_of(DataflowId(state.dataflow), MemoryPart::Changes),
            ..state
        });
        EngineState {
            dataflows,
            held: self.held_state(),
            backends: self.backends.list(),
            sources: sources.collect(),
            subscriptions: subscriptions.collect(),
        }
    }

    /// What waits, and what the log has done.
    pub(crate) fn load(&self) -> EngineLoad {
        let log = self.recorder.as_ref().and_then(|recorder| recorder.statistics());
        EngineLoad { backlog_bytes: self.cluster.backlog_bytes(), log, ..EngineLoad::default() }
    }

    /// What is held beside dataflows.
    fn held_state(&self) -> Vec<HeldState> {
        let of_client = |account: &Account| {
            let part = |part: MemoryPart| HeldState {
                connection: account.client(),
                name: "a connection",
                part: part_name(part),
                bytes: account.held_of(part),
            };
            [MemoryPart::Results, MemoryPart::Held].map(part)
        };
        let (connection, bytes) = (None, self.cluster.backlog_bytes());
        let backlog = HeldState { connection, name: "rows that no dataflow has taken in", part: "in flight", bytes };
        self.cluster.clients().iter().flat_map(of_client).chain([backlog]).collect()
    }
}

fn part_name(part: MemoryPart) -> &'static str {
    match part {
        MemoryPart::Arrangements => "arrangements",
        MemoryPart::State => "state",
        MemoryPart::Changes => "changes",
        MemoryPart::Results => "results",
        MemoryPart::Held => "held",
    }
}

fn dataflow(installed: &InstalledDataflow<'_>) -> DataflowState {
    let parts = [MemoryPart::Arrangements, MemoryPart::State, MemoryPart::Changes];
    DataflowState {
        id: installed.dataflow.0,
        name: installed.name.to_owned(),
        kind: match installed.account.holder() {
            Holder::Query => "query",
            Holder::Standing => "standing",
            Holder::Rows => "rows",
            Holder::Client => "client",
        },
        failure: installed.account.failure().map(|failure| failure.message.clone()),
        connection: installed.account.client(),
        parts: parts.map(|part| (part_name(part), installed.account.held_of(part))).into(),
        arrangements: installed.exports.iter().map(|arrangement| arrangement.0).collect(),
    }
}
