//! `DELETE` and `UPDATE .. WHERE key IN (SELECT ..)`: rows looked up by the keys that a subquery
//! lists.
//!
//! ```text
//!     Stage .. over (Join semi k = q, Stage .. over Scan t, subquery)
//!     = Stage .. over Stage .. over (rows of t with the keys of the subquery)
//! ```
//!
//! Law: the rows are those of the plan. Keys are the key of an arrangement of the table, or its
//! first columns; a NULL among them finds nothing.
//!
//! Cost: the subquery, and a look-up for each of its distinct keys. The plan's join would read the
//! whole table. A statement that only reads takes the plan: between two questions another may
//! commit, and only statements that write are overtaken then.

use std::sync::Arc;

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, Times};
use anabranch_plan::{JoinKind, Node, Nulls, Plan};
use arrow::array::{Array, ArrayRef};
use datafusion_expr::Expr;

use super::state::Session;
use crate::catalog::Arranged;
use crate::cluster::{Peek, WantedKeys};
use crate::direct::{evaluate_stages, rows_or_error};
use crate::error::Error;

/// A plan of rows whose keys are listed.
struct Listed<'a> {
    /// Over the join, from below.
    above: Vec<&'a Arc<Plan>>,
    /// Columns of the join's left side that it yields.
    output: &'a [usize],
    /// Over the table, from below.
    below: Vec<&'a Arc<Plan>>,
    relation: &'a str,
    /// Columns of the table that are read.
    columns: &'a [usize],
    /// Of the table, by its key.
    arranged: Arranged,
    keys: &'a Arc<Plan>,
    /// Of the subquery, in the order of the arrangement's key; fewer where they are its first
    /// columns.
    key_columns: Vec<usize>,
}

impl Session {
    /// The rows that a statement is about to change.
    pub(super) fn collect_to_change(&mut self, plan: &Arc<Plan>) -> Result<Vec<Batch>, Error> {
        let Some(listed) = self.listed(plan) else { return self.collect(plan) };
        let keys = self.collect(listed.keys)?;
        let keys: Vec<Batch> = keys.iter().map(|batch| batch.project(&listed.key_columns)).collect();
        let Some(keys) = distinct_keys(&keys) else { return Ok(vec![]) };
        let object = self.catalog.table(listed.relation)?.clone();
        self.note_keys(&object, &listed.arranged.key[..keys.len()], &keys)?;
        let rows = match keys.len() == listed.arranged.key.len() {
            true => WantedKeys::Keys(keys),
            false => WantedKeys::Prefixes(keys),
        };
        let peek = Peek { arrangement: listed.arranged.arrangement, at: self.timeline.last(), rows };
        let result = match self.answered() {
            Some(result) => result,
            None => self.ask(peek, vec![listed.relation.to_owned()], None)?,
        };
        let rows = rows_or_error(result)?;
        let rows = rows.iter().map(|batch| batch.project(listed.columns)).collect();
        let rows = evaluate_stages(&listed.below, rows, Some(&self.asked()))?;
        let rows = rows.iter().map(|batch| batch.project(listed.output)).collect();
        evaluate_stages(&listed.above, rows, Some(&self.asked()))
    }

    /// The arrangement that the listed keys of such a plan are looked up in.
    pub(super) fn looked_up_by(&self, plan: &Arc<Plan>) -> Option<Arranged> {
        self.listed(plan).map(|listed| listed.arranged)
    }

    fn listed<'a>(&self, plan: &'a Arc<Plan>) -> Option<Listed<'a>> {
        let (above, join) = stages(plan);
        let Node::Join {
            left,
            right: keys,
            kind: JoinKind::LeftSemi,
            left_key,
            right_key,
            nulls: Nulls::Differ,
            residual: None,
            output,
        } = &join.node
        else {
            return None;
        };
        let (below, scan) = stages(left);
        let Node::Scan { relation, columns } = &scan.node else { return None };
        let object = self.catalog.find(relation)?;
        let fixed = left_key.iter().map(|at| Some(columns[origin(&below, *at)?])).collect::<Option<Vec<usize>>>()?;
        let place = |column: &usize| fixed.iter().position(|of| of == column).map(|at| right_key[at]);
        let serves = |arranged: &&Arranged| {
            let first = arranged.key.get(..fixed.len()).unwrap_or_default();
            !first.is_empty() && fixed.iter().all(|of| first.contains(of))
        };
        let arrangements = object.maintained.iter().flat_map(|maintained| &maintained.arrangements);
        let arranged = Arranged::clone(arrangements.filter(serves).min_by_key(|arranged| arranged.key.len())?);
        let key_columns = arranged.key[..fixed.len()].iter().map(place).collect::<Option<Vec<usize>>>()?;
        Some(Listed { above, output, below, relation, columns, arranged, keys, key_columns })
    }
}

/// The stages at the top of a plan, from below, and the plan under them.
fn stages(plan: &Arc<Plan>) -> (Vec<&Arc<Plan>>, &Arc<Plan>) {
    let (mut stages, mut below) = (Vec::new(), plan);
    while let Node::Stage { input, .. } = &below.node {
        stages.push(below);
        below = input;
    }
    stages.reverse();
    (stages, below)
}

/// The column under some stages that a column over them repeats.
fn origin(stages: &[&Arc<Plan>], column: usize) -> Option<usize> {
    stages.iter().rev().try_fold(column, |at, stage| {
        let Node::Stage { input, project, .. } = &stage.node else { return None };
        match &project[at] {
            Expr::Column(column) => input.schema.maybe_index_of_column(column),
            _ => None,
        }
    })
}

/// Each key once, without those that have a NULL; `None` if there is no key.
fn distinct_keys(batches: &[Batch]) -> Option<Vec<ArrayRef>> {
    let at_once = |batch: &Batch| batch.clone().flatten().with_times(Times::Constant(0));
    let keys = consolidate(Batch::concat(&batches.iter().map(at_once).collect::<Vec<_>>())?);
    let is_whole = |row: &u32| keys.columns().iter().all(|column| !column.is_null(*row as usize));
    let rows: Vec<u32> = (0..keys.len() as u32).filter(is_whole).collect();
    (!rows.is_empty()).then(|| keys.take(&rows).columns().to_vec())
}
