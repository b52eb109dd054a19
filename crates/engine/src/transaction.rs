//! What a transaction of several statements has read and staged, and plans over its own writes.
//!
//! A staged table is read as `(table EXCEPT ALL rows taken) UNION ALL rows put in`. The statements
//! that open and close a transaction, and the law, are in `session/transact.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_batch::{Batch, Time, types};
use anabranch_plan::rewrite::with_inputs;
use anabranch_plan::{Node, Plan, SetOperation};
use anabranch_sql::statement::Access;
use datafusion_common::ScalarValue;

use crate::catalog::ObjectId;
use crate::error::Error;
use crate::reads::ReadRows;
use crate::staged::Staged;

/// What a scan becomes over the rows that a transaction has written.
type ScanChange<'a> = dyn Fn(&Arc<Plan>) -> Result<Arc<Plan>, Error> + 'a;

/// Where a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransactionState {
    /// None is open: each statement is one.
    Idle,
    /// One is open.
    Open,
    /// One is open and has failed: all but ROLLBACK is refused.
    Failed,
}

/// An open transaction.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub access: Access,
    /// Whether a statement of it has failed.
    pub has_failed: bool,
    /// What was read is as of this commit.
    pub seen: Time,
    /// Keeps that commit readable, once something was read.
    pub pin: Option<Arc<Time>>,
    /// Something that was read has changed since: what is read from here on is as of `seen`, too,
    /// and nothing can be written any more.
    pub is_behind: bool,
    /// How often objects had been replaced when it first read.
    pub version: Option<u64>,
    /// Tables and sources that were read, directly or through views, and what of them.
    pub read: BTreeMap<ObjectId, ReadRows>,
    /// Changes by table.
    pub staged: BTreeMap<String, Staged>,
    /// What it has made, in order.
    pub defined: Vec<ObjectId>,
    /// The places to which it can be rolled back, the latest last.
    pub savepoints: Vec<Savepoint>,
}

/// A place in a transaction.
#[derive(Debug)]
pub(crate) struct Savepoint {
    name: String,
    /// How many changes of each table came before it.
    n_changes: BTreeMap<String, usize>,
    /// How many objects were made before it.
    n_defined: usize,
}

impl Transaction {
    /// Where it stands, if it is.
    pub fn state(transaction: Option<&Transaction>) -> TransactionState {
        match transaction {
            None => TransactionState::Idle,
            Some(transaction) if transaction.has_failed => TransactionState::Failed,
            Some(_) => TransactionState::Open,
        }
    }

    /// Marks a place.
    pub fn save(&mut self, name: String) {
        let n_changes = self.staged.iter().map(|(table, staged)| (table.clone(), staged.n_changes())).collect();
        self.savepoints.push(Savepoint { name, n_changes, n_defined: self.defined.len() });
    }

    /// Forgets the latest place of that name, and those after it.
    pub fn release(&mut self, name: &str) -> Result<(), Error> {
        let at = self.place(name)?;
        self.savepoints.truncate(at);
        Ok(())
    }

    /// Takes back what came after the latest place of that name, which stays. What was read stays
    /// read. What was made since is returned, to be dropped.
    pub fn roll_back_to(&mut self, name: &str) -> Result<Vec<ObjectId>, Error> {
        let at = self.place(name)?;
        self.savepoints.truncate(at + 1);
        let n_changes = &self.savepoints[at].n_changes;
        self.staged.retain(|table, staged| {
            staged.truncate(n_changes.get(table).copied().unwrap_or(0));
            staged.n_changes() > 0
        });
        self.has_failed = false;
        let n_defined = self.savepoints[at].n_defined.min(self.defined.len());
        Ok(self.defined.split_off(n_defined))
    }

    fn place(&self, name: &str) -> Result<usize, Error> {
        let at = self.savepoints.iter().rposition(|savepoint| savepoint.name == name);
        at.ok_or_else(|| Error::invalid(format!("savepoint \"{name}\" does not exist")).with_sqlstate("3B001"))
    }

    /// Bytes of the changes that it has staged.
    pub fn size_bytes(&self) -> usize {
        self.staged.values().map(Staged::size_bytes).sum()
    }

    /// Whether it has read at most.
    pub fn has_only_read(&self) -> bool {
        self.staged.is_empty() && self.defined.is_empty()
    }

    pub fn has_staged(&self) -> bool {
        !self.staged.is_empty()
    }

    /// Tables it has written to.
    pub fn written(&self) -> BTreeSet<String> {
        self.staged.keys().cloned().collect()
    }
}

/// The plan with other scans.
pub(crate) fn substitute(plan: &Arc<Plan>, scan: &ScanChange, problem: &mut Option<Error>) -> Arc<Plan> {
    if let Node::Scan { .. } = &plan.node {
        return scan(plan).unwrap_or_else(|error| {
            problem.get_or_insert(error);
            Arc::clone(plan)
        });
    }
    let problems = std::cell::RefCell::new(problem);
    with_inputs(plan, |input| substitute(input, scan, *problems.borrow_mut()))
}

/// The scan without the rows that are taken and with those put in.
pub(crate) fn over_net(scan: &Arc<Plan>, nets: &BTreeMap<String, Batch>) -> Result<Arc<Plan>, Error> {
    let Node::Scan { relation, columns } = &scan.node else { return Ok(Arc::clone(scan)) };
    let Some(net) = nets.get(relation) else { return Ok(Arc::clone(scan)) };
    let (put_in, taken) = halves(&net.project(columns));
    let constant = |rows: &Batch| -> Result<Arc<Plan>, Error> {
        let rows = literal_rows(scan, rows)?;
        Ok(Arc::new(Plan { node: Node::Constant { rows }, schema: scan.schema.clone() }))
    };
    let mut plan = Arc::clone(scan);
    if !taken.is_empty() {
        let operation = SetOperation::ExceptAll;
        let node = Node::SetOperation { operation, left: plan, right: constant(&taken.negate())? };
        plan = Arc::new(Plan { node, schema: scan.schema.clone() });
    }
    if !put_in.is_empty() {
        let node = Node::Union { inputs: vec![plan, constant(&put_in)?] };
        plan = Arc::new(Plan { node, schema: scan.schema.clone() });
    }
    Ok(plan)
}

/// Rows as literals of the scan's types, each as often as it is there.
pub(crate) fn literal_rows(scan: &Plan, rows: &Batch) -> Result<Vec<Vec<ScalarValue>>, Error> {
    let mut columns = Vec::with_capacity(rows.columns().len());
    for (column, field) in rows.columns().iter().zip(scan.schema.fields()) {
        let column = types::widened(column);
        columns.push(match column.data_type() == field.data_type() {
            true => column,
            false => arrow::compute::cast(&column, field.data_type())?,
        });
    }
    let mut literal = Vec::new();
    for row in 0..rows.len() {
        let values = columns.iter().map(|column| ScalarValue::try_from_array(column, row));
        let values: Vec<ScalarValue> =
            values.collect::<Result<_, _>>().map_err(|error| Error::internal(format!("a staged row: {error}")))?;
        let copies = usize::try_from(rows.diffs().get(row)).unwrap_or_default();
        literal.extend(std::iter::repeat_n(values, copies));
    }
    Ok(literal)
}

/// Consolidated changes: those that put rows in, and those that take rows.
pub(crate) fn halves(net: &Batch) -> (Batch, Batch) {
    let rows = |is_wanted: fn(i64) -> bool| -> Batch {
        let rows: Vec<u32> =
            (0..net.len()).filter(|row| is_wanted(net.diffs().get(*row))).map(|row| row as u32).collect();
        net.take(&rows)
    };
    (rows(|diff| diff > 0), rows(|diff| diff < 0))
}

/// The error for statements of a transaction that has failed.
pub(crate) fn failed() -> Error {
    Error::invalid("current transaction is aborted, commands ignored until end of transaction block")
        .with_sqlstate("25P02")
        .with_hint("ROLLBACK, then begin anew.")
}

/// The error where another transaction came first.
pub(crate) fn conflict(why: &str) -> Error {
    Error::unavailable("could not serialize access due to concurrent update")
        .with_sqlstate("40001")
        .with_detail(why)
        .with_hint("ROLLBACK and run the transaction again.")
}

/// The error for views that wait for a watermark that the transaction itself will move.
pub(crate) fn waits_for_watermark() -> Error {
    Error::invalid("a view that waits for a watermark is not supported after writes of the same transaction")
        .with_sqlstate("0A000")
        .with_hint("COMMIT, then read it.")
}

/// The error for AS OF in a transaction that has written.
pub(crate) fn as_of_after_writes() -> Error {
    Error::invalid("AS OF is not supported after writes of the same transaction")
        .with_sqlstate("0A000")
        .with_hint("COMMIT, then read the past.")
}
