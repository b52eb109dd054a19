//! PostgreSQL's system relations, as far as its clients ask for them: `pg_catalog` and
//! `information_schema`.
//!
//! Law: each relation of the list has PostgreSQL 15's columns and types (`reg..` types are the text
//! of the name). What is told is of the catalog at the time of planning: a query over a system
//! relation reads rows that are part of its plan, so that joins, conditions and sorts work as on
//! any relation. Subscriptions read inputs that are told again every second (`session/followed`);
//! views over system relations are refused.
//!
//! Cost: a query that names a system relation builds its rows, O(columns of the catalog). Others
//! pay nothing.
//!
//! Relations of our own tell what operators have done (`anabranch_operators`), and on which worker
//! (`anabranch_shards`).
//!
//! Left out: the system relations do not list themselves in `pg_class`, and `pg_proc` lists
//! nothing.
//!
//! Relations that tell of the engine ([`engine`]) are Anabranch's own, named `anabranch_..`.
//!
//! Reading order: [`schema`] (columns), [`lists`] (what never changes), [`snapshot`] (what is told
//! of), [`rows`], [`information`] and [`engine`] (rows), [`functions`].

mod engine;
mod functions;
mod information;
mod lists;
mod roles;
mod rows;
mod schema;
mod snapshot;

use std::sync::Arc;

use datafusion_common::ScalarValue;
use datafusion_expr::ScalarUDF;

use crate::error::Error;

pub(crate) use engine::{DataflowState, EngineState, HeldState, SourceState, SubscriptionState};
pub(crate) use lists::DATABASE;
pub(crate) use schema::{OPERATORS, Row, SHARDS, SystemCell, relation};
pub(crate) use snapshot::Snapshot;

/// Whether a system relation of that name has no rows in any database.
pub(crate) fn never_has_rows(name: &str) -> bool {
    let tells = engine::tells(name) || rows::has_rows(name) || information::has_rows(name);
    relation(name).is_some() && !tells
}

/// The value of a setting that no client changes.
pub(crate) fn setting_of_server(name: &str) -> Option<&'static str> {
    lists::SETTINGS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}

/// A function that tells of the catalog.
pub(crate) fn function(name: &str, snapshot: impl FnOnce() -> Arc<Snapshot>) -> Option<Arc<ScalarUDF>> {
    functions::find(name, snapshot)
}

/// Whether a relation tells of operators: its rows are not in the state of the engine that is told.
pub(crate) fn tells_of_operators(name: &str) -> bool {
    name == OPERATORS || name == SHARDS
}

/// Whether a relation tells of the engine, and not of the catalog.
pub(crate) fn tells_of_engine(name: &str) -> bool {
    engine::tells(name)
}

/// The rows of a system relation: for each, the values of these columns.
pub(crate) fn rows_of(
    name: &str,
    columns: &[usize],
    snapshot: &Snapshot,
    engine: &EngineState,
) -> Result<Vec<Vec<ScalarValue>>, Error> {
    let told = rows::rows(name, snapshot).or_else(|| information::rows(name, snapshot));
    let told = told.or_else(|| engine::rows(name, engine)).unwrap_or_default();
    values(name, columns, &told)
}

/// The values of these columns of rows of a system relation.
pub(crate) fn values(name: &str, columns: &[usize], told: &[Row]) -> Result<Vec<Vec<ScalarValue>>, Error> {
    let Some(relation) = relation(name) else { return Ok(vec![]) };
    let row = |row| columns.iter().map(|column| relation.value(*column, row)).collect();
    told.iter().map(row).collect()
}
