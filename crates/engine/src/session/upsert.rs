//! INSERT .. ON CONFLICT: rows whose primary key is there change the row that has it, or are left
//! out.
//!
//! Law: one commit; the table's rows as of the last commit decide. Of several proposed rows with
//! one key DO NOTHING takes the first, DO UPDATE refuses all, as PostgreSQL does. Cost: a lookup of
//! the proposed keys, and for DO UPDATE a join of the table with them: the statement's query is
//! computed once.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_batch::equal::rows_equal;
use anabranch_batch::hash::hash_columns;
use anabranch_batch::{Batch, Diffs, Times};
use anabranch_plan::{Node, Plan};
use anabranch_sql::PROPOSED;
use anabranch_sql::statement::Insert;
use arrow::array::ArrayRef;

use super::context::Named;
use super::keys::check_distinct;
use super::state::Session;
use crate::catalog::Object;
use crate::error::Error;
use crate::transaction::{literal_rows, substitute};

/// What an insertion does to a table.
pub(super) struct Upsert {
    /// Rows that were not there.
    pub fresh: Vec<Batch>,
    /// Rows that change: as they were, and as they shall be.
    pub removed: Vec<Batch>,
    pub added: Vec<Batch>,
}

impl Session {
    /// Divides the proposed rows by whether their keys are there.
    pub(super) fn upsert(&mut self, insert: &Insert, proposed: Vec<Batch>) -> Result<Upsert, Error> {
        let object = self.catalog.table(&insert.table)?.clone();
        let updates = insert.conflict.as_ref().is_some_and(|conflict| conflict.update.is_some());
        let names_none = insert.conflict.as_ref().is_none_or(|conflict| conflict.columns.is_empty());
        if object.primary_key.is_empty() && names_none {
            // Rows without a key meet no conflict.
            return Ok(Upsert { fresh: proposed, removed: vec![], added: vec![] });
        }
        self.note_reads(std::slice::from_ref(&insert.table))?;
        // Planned in any case: it checks what the conflict names.
        let Named { planned, names, .. } = self.plan_conflict(insert)?;
        let proposed: Vec<Batch> = proposed.into_iter().map(|batch| one_by_one(batch.flatten())).collect();
        let fresh = match Batch::concat(&proposed) {
            Some(rows) => {
                let keys = rows.project(&object.primary_key);
                if updates {
                    refuse_repeated(&object, &keys)?;
                }
                let there = self.rows_with_keys(&object, keys.columns().to_vec())?;
                let there: Vec<Batch> = there.iter().map(|batch| batch.project(&object.primary_key)).collect();
                vec![rows.take(&unknown_keys(&there, keys.columns(), keys.len()))]
            }
            None => vec![],
        };
        let (mut removed, mut added) = (vec![], vec![]);
        if updates {
            let names = names.iter().filter(|name| *name != PROPOSED).cloned().collect();
            self.settle_sources(&names)?;
            let plan = over_proposed(&planned.plan, &proposed)?;
            let width = object.schema.fields().len();
            let (old, new): (Vec<usize>, Vec<usize>) = ((0..width).collect(), (width..2 * width).collect());
            for rows in self.collect(&plan)? {
                removed.push(rows.project(&old).flatten());
                added.push(rows.project(&new).flatten());
            }
        }
        Ok(Upsert { fresh, removed, added })
    }
}

/// The plan with the proposed rows in place of the relation that stands for them.
fn over_proposed(plan: &Arc<Plan>, proposed: &[Batch]) -> Result<Arc<Plan>, Error> {
    let scan = |scan: &Arc<Plan>| {
        let Node::Scan { relation, columns } = &scan.node else { return Ok(Arc::clone(scan)) };
        if relation != PROPOSED {
            return Ok(Arc::clone(scan));
        }
        let rows = proposed.iter().map(|batch| literal_rows(scan, &batch.project(columns)));
        let rows = rows.collect::<Result<Vec<_>, Error>>()?.concat();
        Ok(Arc::new(Plan { node: Node::Constant { rows }, schema: scan.schema.clone() }))
    };
    let mut problem = None;
    let plan = substitute(plan, &scan, &mut problem);
    problem.map_or(Ok(plan), Err)
}

fn refuse_repeated(object: &Object, keys: &Batch) -> Result<(), Error> {
    check_distinct(object, std::slice::from_ref(keys)).map_err(|error| {
        let refused = Error::data("ON CONFLICT DO UPDATE cannot change a row a second time");
        refused.with_detail(error.detail.unwrap_or_default()).with_hint("Propose each key once.")
    })
}

/// Rows with multiplicities, each as often as it is there.
pub(super) fn one_by_one(batch: Batch) -> Batch {
    let rows: Vec<u32> = (0..batch.len())
        .flat_map(|row| std::iter::repeat_n(row as u32, batch.diffs().get(row).max(0) as usize))
        .collect();
    batch.take(&rows).with_times(Times::Constant(0)).with_diffs(Diffs::Constant(1))
}

/// The first row of each key that is not among those known.
fn unknown_keys(known: &[Batch], keys: &[ArrayRef], n_rows: usize) -> Vec<u32> {
    let known = Batch::concat(known);
    let mut by_hash: HashMap<u64, Vec<u32>> = HashMap::new();
    if let Some(known) = &known {
        for (row, hash) in hash_columns(known.columns(), known.len()).into_iter().enumerate() {
            by_hash.entry(hash).or_default().push(row as u32);
        }
    }
    let mut chosen: HashMap<u64, Vec<u32>> = HashMap::new();
    let mut rows = Vec::new();
    for (row, hash) in hash_columns(keys, n_rows).into_iter().enumerate() {
        let row = row as u32;
        let is_known = known.as_ref().is_some_and(|known| {
            let places = by_hash.get(&hash).into_iter().flatten();
            places.into_iter().any(|place| rows_equal(keys, &[row], known.columns(), &[*place])[0])
        });
        let same = chosen.entry(hash).or_default();
        if is_known || same.iter().any(|other| rows_equal(keys, &[row], keys, &[*other])[0]) {
            continue;
        }
        same.push(row);
        rows.push(row);
    }
    rows
}
