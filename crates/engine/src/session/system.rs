//! Plans over system relations: their rows become part of the plan.

use std::sync::Arc;

use anabranch_plan::{Node, Plan};

use super::state::Session;
use crate::catalog::system::{EngineState, Snapshot, relation, rows_of, tells_of_engine, tells_of_operators};
use crate::error::Error;
use crate::transaction::substitute;

impl Session {
    /// The plan with rows in place of system relations, as of now.
    pub(super) fn with_system_rows(&self, plan: &Arc<Plan>) -> Result<Arc<Plan>, Error> {
        if !plan.relations().iter().any(|name| relation(name).is_some()) {
            return Ok(Arc::clone(plan));
        }
        let snapshot = self.catalog.snapshot();
        let engine = match plan.relations().iter().any(|name| tells_of_engine(name)) {
            true => self.engine_state(),
            false => EngineState::default(),
        };
        let mut problem = None;
        let scan = |scan: &Arc<Plan>| constant(scan, &snapshot, &engine);
        let changed = substitute(plan, &scan, &mut problem);
        problem.map_or(Ok(changed), Err)
    }
}

/// Refuses system relations in what stands.
pub(super) fn check_standing(plan: &Plan) -> Result<(), Error> {
    match plan.relations().into_iter().find(|name| relation(name).is_some()) {
        None => Ok(()),
        Some(name) => Err(Error::invalid(format!("system relation {name} is not supported in a standing query"))
            .with_sqlstate("0A000")
            .with_hint("SUBSCRIBE to the query: it is read again every second. Or SELECT: the answer is as of now.")),
    }
}

/// The rows that a scan of a system relation reads.
fn constant(scan: &Arc<Plan>, snapshot: &Snapshot, engine: &EngineState) -> Result<Arc<Plan>, Error> {
    let Node::Scan { relation: name, columns } = &scan.node else { return Ok(Arc::clone(scan)) };
    // (What operators have done is asked of workers: see `operators`.)
    if relation(name).is_none() || tells_of_operators(name) {
        return Ok(Arc::clone(scan));
    }
    let rows = rows_of(name, columns, snapshot, engine)?;
    Ok(Arc::new(Plan { node: Node::Constant { rows }, schema: scan.schema.clone() }))
}
