//! PostgreSQL's system relations, as far as its clients ask for them: `pg_catalog` and
//! `information_schema`.
//!
//! Law: each relation of the list has PostgreSQL 15's columns and types (`reg..` types are the text of
//! the name). What is told is of the catalog at the time of planning: a query over a system relation
//! reads rows that are part of its plan, so that joins, conditions and sorts work as on any relation.
//! A view and a subscription would not follow them, and are refused.
//!
//! Cost: a query that names a system relation builds its rows, O(columns of the catalog). Others pay
//! nothing.
//!
//! Left out: the system relations do not list themselves in `pg_class`, and `pg_proc` lists nothing.
//!
//! Reading order: [`schema`] (columns), [`snapshot`] (what is told of), [`rows`] and [`information`]
//! (rows), [`functions`].

mod functions;
mod information;
mod rows;
mod schema;
mod snapshot;

use std::sync::Arc;

use anabranch_plan::{Node, Plan};
use datafusion_common::ScalarValue;
use datafusion_expr::ScalarUDF;

use super::Catalog;
use crate::error::Error;
use crate::transaction::substitute;

pub(crate) use schema::relation;
pub(crate) use snapshot::Snapshot;

/// The database's name, and that of the one who owns all.
pub(super) const DATABASE: &str = "anabranch";

/// Whether a system relation of that name has no rows in any database.
pub(crate) fn never_has_rows(name: &str) -> bool {
    relation(name).is_some() && !rows::has_rows(name) && !information::has_rows(name)
}

/// A function that tells of the catalog.
pub(crate) fn function(name: &str, snapshot: impl FnOnce() -> Arc<Snapshot>) -> Option<Arc<ScalarUDF>> {
    functions::find(name, snapshot)
}

/// The plan with rows in place of system relations; `catalog` is what they tell of.
pub(crate) fn with_rows(plan: &Arc<Plan>, catalog: &Catalog) -> Result<Arc<Plan>, Error> {
    if !plan.relations().iter().any(|name| relation(name).is_some()) {
        return Ok(Arc::clone(plan));
    }
    let snapshot = Snapshot::of(catalog);
    let mut problem = None;
    let scan = |scan: &Arc<Plan>| constant(scan, &snapshot);
    let changed = substitute(plan, &scan, &mut problem);
    problem.map_or(Ok(changed), Err)
}

/// Refuses system relations in what stands.
pub(crate) fn check_standing(plan: &Plan) -> Result<(), Error> {
    match plan.relations().into_iter().find(|name| relation(name).is_some()) {
        None => Ok(()),
        Some(name) => Err(Error::invalid(format!("system relation {name} is not supported in a standing query"))
            .with_sqlstate("0A000")
            .with_hint("SELECT from it: the answer is as of now.")),
    }
}

/// The rows that a scan of a system relation reads.
fn constant(scan: &Arc<Plan>, snapshot: &Snapshot) -> Result<Arc<Plan>, Error> {
    let Node::Scan { relation: name, columns } = &scan.node else { return Ok(Arc::clone(scan)) };
    let Some(relation) = relation(name) else { return Ok(Arc::clone(scan)) };
    let told = rows::rows(name, snapshot).or_else(|| information::rows(name, snapshot)).unwrap_or_default();
    let mut literal = Vec::with_capacity(told.len());
    for row in &told {
        let values = columns.iter().map(|column| relation.value(*column, row));
        literal.push(values.collect::<Result<Vec<ScalarValue>, Error>>()?);
    }
    Ok(Arc::new(Plan { node: Node::Constant { rows: literal }, schema: scan.schema.clone() }))
}
