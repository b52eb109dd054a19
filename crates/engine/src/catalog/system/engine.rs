//! Rows of the relations that tell of the engine: `anabranch_dataflows`, `anabranch_memory` and
//! others.
//!
//! What they tell is as of the planning of the query. Memory is what operators had measured by
//! then.

use std::sync::Arc;

use super::lists::DATABASE;
use super::schema::{Row, SystemCell};
use crate::backends::Backend;

/// The engine at one time.
#[derive(Debug, Default)]
pub(crate) struct EngineState {
    pub dataflows: Vec<DataflowState>,
    /// What is held beside dataflows.
    pub held: Vec<HeldState>,
    pub sources: Vec<SourceState>,
    /// Clients of a server.
    pub backends: Vec<Arc<Backend>>,
    pub subscriptions: Vec<SubscriptionState>,
}

/// A dataflow.
#[derive(Debug)]
pub(crate) struct DataflowState {
    pub id: u64,
    pub name: String,
    /// `query`, `standing` or `rows`.
    pub kind: &'static str,
    /// The connection that it is for alone.
    pub connection: Option<u64>,
    pub failure: Option<String>,
    /// Bytes by part.
    pub parts: Vec<(&'static str, usize)>,
    pub arrangements: Vec<u64>,
}

/// Memory that no dataflow holds.
#[derive(Debug)]
pub(crate) struct HeldState {
    pub connection: Option<u64>,
    pub name: &'static str,
    pub part: &'static str,
    pub bytes: usize,
}

/// A source.
#[derive(Debug)]
pub(crate) struct SourceState {
    pub name: String,
    pub state: &'static str,
    pub rows: u64,
    pub skipped: u64,
    pub failure: Option<String>,
}

/// A subscription.
#[derive(Debug)]
pub(crate) struct SubscriptionState {
    pub id: u64,
    pub dataflow: u64,
    pub connection: u64,
    /// Changes that were not taken.
    pub bytes: usize,
    pub waiting_batches: usize,
    pub ended: bool,
}

/// The relation that lists clients.
const ACTIVITY: &str = "pg_stat_activity";

/// Whether a relation tells of the engine.
pub(super) fn tells(name: &str) -> bool {
    name.starts_with("anabranch_") || name == ACTIVITY
}

/// The rows of a relation; `None` for one that does not tell of the engine.
pub(super) fn rows(name: &str, engine: &EngineState) -> Option<Vec<Row>> {
    let dataflows = engine.dataflows.iter();
    Some(match name {
        "anabranch_arrangements" => dataflows.flat_map(arrangements).collect(),
        "anabranch_dataflows" => dataflows.map(dataflow).collect(),
        "anabranch_memory" => dataflows.flat_map(parts).chain(engine.held.iter().map(held)).collect(),
        "anabranch_sources" => engine.sources.iter().map(source).collect(),
        ACTIVITY => engine.backends.iter().map(|backend| activity(backend)).collect(),
        "anabranch_subscriptions" => engine.subscriptions.iter().map(subscription).collect(),
        _ => return None,
    })
}

fn whole(number: impl TryInto<i64>) -> SystemCell {
    SystemCell::Number(number.try_into().unwrap_or(i64::MAX))
}

fn arrangements(dataflow: &DataflowState) -> Vec<Row> {
    let row = |arrangement: &u64| {
        vec![("id", whole(*arrangement)), ("dataflow", whole(dataflow.id)), ("name", dataflow.name.as_str().into())]
    };
    dataflow.arrangements.iter().map(row).collect()
}

fn dataflow(dataflow: &DataflowState) -> Row {
    vec![
        ("id", whole(dataflow.id)),
        ("name", dataflow.name.as_str().into()),
        ("kind", dataflow.kind.into()),
        ("connection", dataflow.connection.map(whole).into()),
        ("failed", dataflow.failure.is_some().into()),
        ("failure", dataflow.failure.clone().into()),
        ("bytes", whole(dataflow.parts.iter().map(|(_, bytes)| bytes).sum::<usize>())),
    ]
}

fn parts(dataflow: &DataflowState) -> Vec<Row> {
    let row = |(part, bytes): &(&'static str, usize)| {
        vec![
            ("dataflow", whole(dataflow.id)),
            ("connection", dataflow.connection.map(whole).into()),
            ("name", dataflow.name.as_str().into()),
            ("part", (*part).into()),
            ("bytes", whole(*bytes)),
        ]
    };
    dataflow.parts.iter().map(row).collect()
}

fn held(held: &HeldState) -> Row {
    vec![
        ("dataflow", SystemCell::Null),
        ("connection", held.connection.map(whole).into()),
        ("name", held.name.into()),
        ("part", held.part.into()),
        ("bytes", whole(held.bytes)),
    ]
}

fn activity(backend: &Backend) -> Row {
    let seen = backend.seen();
    let when = |micros: Option<i64>| micros.map_or(SystemCell::Null, SystemCell::Number);
    let address = backend.address.map(|address| address.ip().to_canonical().to_string());
    vec![
        ("datid", 5u32.into()),
        ("datname", DATABASE.into()),
        ("pid", backend.pid.into()),
        ("usename", seen.user.into()),
        ("application_name", seen.application.into()),
        ("client_addr", address.into()),
        ("client_port", backend.address.map(|address| i32::from(address.port())).into()),
        ("backend_start", when(Some(backend.started))),
        ("query_start", when(seen.query_started)),
        ("state_change", when(seen.changed)),
        ("state", seen.state.name().into()),
        ("query", seen.query.into()),
        ("backend_type", "client backend".into()),
    ]
}

fn source(source: &SourceState) -> Row {
    vec![
        ("name", source.name.as_str().into()),
        ("state", source.state.into()),
        ("rows", whole(source.rows)),
        ("skipped", whole(source.skipped)),
        ("failure", source.failure.clone().into()),
    ]
}

fn subscription(subscription: &SubscriptionState) -> Row {
    vec![
        ("id", whole(subscription.id)),
        ("dataflow", whole(subscription.dataflow)),
        ("connection", whole(subscription.connection)),
        ("bytes", whole(subscription.bytes)),
        ("waiting_batches", whole(subscription.waiting_batches)),
        ("ended", subscription.ended.into()),
    ]
}
