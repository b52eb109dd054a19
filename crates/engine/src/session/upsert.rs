//! INSERT .. ON CONFLICT: rows whose key is there change the row that has it, or are left out. The
//! key is the one that the conflict names; DO NOTHING without a name looks at all keys.
//!
//! Law: one commit; the table's rows as of the last commit decide. Of several proposed rows with
//! one key DO NOTHING takes the first, DO UPDATE refuses all, as PostgreSQL does. Cost: a lookup of
//! the proposed keys, and for DO UPDATE a join of the table with them: the statement's query is
//! computed once.

use anabranch_sql::table::own_name;
use std::collections::HashMap;
use std::sync::Arc;

use anabranch_batch::equal::rows_equal;
use anabranch_batch::hash::hash_columns;
use anabranch_batch::{Batch, Diffs, Times};
use anabranch_plan::{Node, Plan};
use anabranch_sql::PROPOSED;
use anabranch_sql::statement::{Conflict, Insert};
use arrow::array::{Array, ArrayRef};

use super::context::Named;
use super::keys::{UniqueKey, check_distinct};
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
    /// The insertion with the columns of the key that its conflict names, where it names a
    /// constraint.
    pub(super) fn with_named_key(&self, insert: &Insert) -> Result<Option<Insert>, Error> {
        let named = insert.conflict.as_ref().and_then(|conflict| Some((conflict, conflict.constraint.as_ref()?)));
        let Some((conflict, name)) = named else { return Ok(None) };
        let object = self.catalog.table(&insert.table)?;
        let is_primary = !object.primary_key.is_empty() && own_name(name) == format!("{}_pkey", own_name(&object.name));
        let mut unique = self.catalog.indexes_on(&object.name).filter(|index| index.is_unique);
        let key = match unique.find(|index| own_name(&index.name) == own_name(name)) {
            _ if is_primary => &object.primary_key,
            Some(index) => &index.key,
            None => {
                let message = format!("constraint \"{name}\" for table \"{}\" does not exist", object.name);
                return Err(Error::invalid(message)
                    .with_sqlstate("42704")
                    .with_hint("Name a primary key or a UNIQUE, or the key's columns: ON CONFLICT (key)."));
            }
        };
        let columns = key.iter().map(|at| object.schema.field(*at).name().clone()).collect();
        let conflict = Conflict { columns, constraint: None, ..conflict.clone() };
        Ok(Some(Insert { conflict: Some(conflict), ..insert.clone() }))
    }

    /// Divides the proposed rows by whether their keys are there.
    pub(super) fn upsert(&mut self, insert: &Insert, proposed: Vec<Batch>) -> Result<Upsert, Error> {
        let object = self.catalog.table(&insert.table)?.clone();
        let updates = insert.conflict.as_ref().is_some_and(|conflict| conflict.update.is_some());
        let names_none = insert.conflict.as_ref().is_none_or(|conflict| conflict.columns.is_empty());
        let keys = self.unique_keys(&object);
        if keys.is_empty() && names_none {
            // Rows without a key meet no conflict.
            return Ok(Upsert { fresh: proposed, removed: vec![], added: vec![] });
        }
        // Planned in any case: it checks what the conflict names.
        let Named { planned, names, .. } = self.plan_conflict(insert)?;
        // (Lengths, NOT NULL and CHECK hold for rows that meet a conflict, too.)
        let proposed = self.fit_rows(&object, proposed)?;
        let proposed: Vec<Batch> = proposed.into_iter().map(|batch| one_by_one(batch.flatten())).collect();
        // Rows of the table that have the keys which the updates go by.
        let mut met = Vec::new();
        let fresh = match Batch::concat(&proposed) {
            Some(rows) => {
                let columns = insert.conflict.as_ref().map(|conflict| conflict.columns.as_slice()).unwrap_or_default();
                let arbiters: Vec<UniqueKey> =
                    keys.into_iter().filter(|key| columns.is_empty() || is_of(&object, key, columns)).collect();
                if let (true, Some(arbiter)) = (updates, arbiters.first()) {
                    refuse_repeated(&object, arbiter, &rows)?;
                }
                let mut known = Vec::new();
                for key in arbiters {
                    let keys = key.of_rows(&rows).columns().to_vec();
                    let there = self.rows_read_by_keys(&object, &key.columns, keys)?;
                    known.push(KnownKeys::of(&rows, &key, &there));
                    met = there;
                }
                vec![rows.take(&fresh_rows(known, rows.len()))]
            }
            None => vec![],
        };
        let (mut removed, mut added) = (vec![], vec![]);
        if updates {
            let names = names.iter().filter(|name| *name != PROPOSED).cloned().collect();
            self.settle_sources(&names)?;
            let mut plan = over_rows(&planned.plan, PROPOSED, &proposed)?;
            // (A table that is read once is read by these keys.)
            if n_scans(&plan, &object.name) == 1 {
                plan = over_rows(&plan, &object.name, &met)?;
            }
            let plan = self.over_staged(&plan)?;
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

/// The plan with these rows in place of a relation.
fn over_rows(plan: &Arc<Plan>, name: &str, rows: &[Batch]) -> Result<Arc<Plan>, Error> {
    let scan = |scan: &Arc<Plan>| {
        let Node::Scan { relation, columns } = &scan.node else { return Ok(Arc::clone(scan)) };
        if relation != name {
            return Ok(Arc::clone(scan));
        }
        let rows = rows.iter().map(|batch| literal_rows(scan, &batch.project(columns)));
        let rows = rows.collect::<Result<Vec<_>, Error>>()?.concat();
        Ok(Arc::new(Plan { node: Node::Constant { rows }, schema: scan.schema.clone() }))
    };
    let mut problem = None;
    let plan = substitute(plan, &scan, &mut problem);
    problem.map_or(Ok(plan), Err)
}

/// How often a plan reads a relation.
fn n_scans(plan: &Plan, name: &str) -> usize {
    match &plan.node {
        Node::Scan { relation, .. } => usize::from(relation == name),
        _ => plan.inputs().into_iter().map(|input| n_scans(input, name)).sum(),
    }
}

/// Whether the key is of these columns, in any order.
fn is_of(object: &Object, key: &UniqueKey, columns: &[String]) -> bool {
    let names: Vec<&String> = key.columns.iter().map(|at| object.schema.field(*at).name()).collect();
    names.len() == columns.len() && names.iter().all(|name| columns.contains(name))
}

fn refuse_repeated(object: &Object, key: &UniqueKey, rows: &Batch) -> Result<(), Error> {
    check_distinct(object, key, std::slice::from_ref(rows)).map_err(|error| {
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

/// The values of a key: those of proposed rows, and those that are in the table.
struct KnownKeys {
    proposed: Batch,
    hashes: Vec<u64>,
    /// Whether a row may meet a conflict: not if there is NULL in its key.
    is_compared: Vec<bool>,
    there: Option<Batch>,
    /// Rows of the table by hash.
    places: HashMap<u64, Vec<u32>>,
    /// Proposed rows that are taken, by hash.
    taken: HashMap<u64, Vec<u32>>,
}

impl KnownKeys {
    fn of(rows: &Batch, key: &UniqueKey, there: &[Batch]) -> KnownKeys {
        let proposed = rows.project(&key.columns);
        let is_null = |row: usize| proposed.columns().iter().any(|column| column.is_null(row));
        let is_compared = (0..rows.len()).map(|row| key.is_primary() || !is_null(row)).collect();
        let there = Batch::concat(&there.iter().map(|batch| key.of_rows(batch)).collect::<Vec<_>>());
        let mut places: HashMap<u64, Vec<u32>> = HashMap::new();
        if let Some(there) = &there {
            for (row, hash) in hash_columns(there.columns(), there.len()).into_iter().enumerate() {
                places.entry(hash).or_default().push(row as u32);
            }
        }
        let hashes = hash_columns(proposed.columns(), proposed.len());
        KnownKeys { proposed, hashes, is_compared, there, places, taken: HashMap::new() }
    }

    fn is_known(&self, row: u32) -> bool {
        let (keys, hash) = (self.proposed.columns(), self.hashes[row as usize]);
        let equals = |others: &[ArrayRef], place: &u32| rows_equal(keys, &[row], others, &[*place])[0];
        let in_table = |there: &Batch| {
            self.places.get(&hash).is_some_and(|places| places.iter().any(|place| equals(there.columns(), place)))
        };
        let is_taken = || self.taken.get(&hash).is_some_and(|taken| taken.iter().any(|place| equals(keys, place)));
        self.is_compared[row as usize] && (self.there.as_ref().is_some_and(in_table) || is_taken())
    }
}

/// The first row of each key that is not known, for all keys.
fn fresh_rows(mut keys: Vec<KnownKeys>, n_rows: usize) -> Vec<u32> {
    let mut rows = Vec::new();
    for row in 0..n_rows as u32 {
        if keys.iter().any(|key| key.is_known(row)) {
            continue;
        }
        for key in &mut keys {
            key.taken.entry(key.hashes[row as usize]).or_default().push(row);
        }
        rows.push(row);
    }
    rows
}
