//! Questions that an arrangement or literal rows answer, without a dataflow.
//!
//! Law: filters and projections over one maintained relation, or over literal rows, are *direct*:
//! the rows are those of an arrangement, by key when equalities fix all columns of some
//! arrangement's key, else all of them. The same stages are evaluated over them as in a dataflow.
//! Nothing here needs the session, so a connection answers such questions on its own thread.
//!
//! Cost: a look-up costs its matches; without a fixed key, all rows of the arrangement.

use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, Times, types};
use anabranch_plan::{Node, Plan};
use arrow::array::ArrayRef;
use datafusion_common::ScalarValue;
use datafusion_expr::{Expr, Operator};

use crate::catalog::{Arranged, Object};
use crate::cluster::PeekResult;
use crate::error::Error;
use crate::evaluate::evaluate_stage;

/// How a plan is answered without a dataflow.
pub(crate) struct Direct<'a> {
    /// Stages from the base upwards.
    pub stages: Vec<&'a Arc<Plan>>,
    pub base: Base<'a>,
}

/// What the stages stand on.
pub(crate) enum Base<'a> {
    /// Literal rows.
    Constant(&'a Plan, &'a [Vec<ScalarValue>]),
    /// An arrangement of a relation, and which of its columns are wanted.
    Arrangement {
        relation: String,
        arranged: Arranged,
        keys: Option<Vec<ArrayRef>>,
        /// Columns of an index that would look keys up where all rows are read.
        lacking: Vec<usize>,
        columns: &'a [usize],
    },
}

impl<'a> Direct<'a> {
    /// The way to answer `plan` without a dataflow, if there is one. `find` knows relations by
    /// name, and `is_readable` the arrangements that have the rows of the time that is asked for.
    pub fn of<'o>(
        plan: &'a Arc<Plan>,
        find: impl Fn(&str) -> Option<&'o Object>,
        is_readable: impl Fn(&Arranged) -> bool,
    ) -> Option<Direct<'a>> {
        let mut stages = Vec::new();
        let mut below = plan;
        while let Node::Stage { input, .. } = &below.node {
            stages.push(below);
            below = input;
        }
        stages.reverse();
        let base = match &below.node {
            Node::Constant { rows } => Base::Constant(below, rows),
            Node::Scan { relation, columns } => {
                let object = find(relation)?;
                let filter = match stages.first().map(|stage| &stage.node) {
                    Some(Node::Stage { filter, .. }) => filter.as_slice(),
                    _ => &[],
                };
                let fixed = equalities(below, columns, filter);
                let arrangements = object.maintained.iter().flat_map(|maintained| &maintained.arrangements);
                let arrangements: Vec<&Arranged> = arrangements.filter(|arranged| is_readable(arranged)).collect();
                let (arranged, keys) = choose_arrangement(object, &arrangements, &fixed)?;
                let lacking = if keys.is_none() { fixed_prefix(object, &arrangements, &fixed) } else { vec![] };
                Base::Arrangement { relation: relation.clone(), arranged, keys, lacking, columns }
            }
            _ => return None,
        };
        Some(Direct { stages, base })
    }

    /// The relation and arrangement that are read, and whether by key; nothing for literal rows.
    pub fn arranged(&self) -> Option<(&str, &Arranged, bool)> {
        match &self.base {
            Base::Constant(..) => None,
            Base::Arrangement { relation, arranged, keys, .. } => Some((relation, arranged, keys.is_some())),
        }
    }

    /// Columns of an index that would serve the query: a condition fixes them, and a longer key
    /// begins with them.
    pub fn lacking(&self) -> &[usize] {
        match &self.base {
            Base::Constant(..) => &[],
            Base::Arrangement { lacking, .. } => lacking,
        }
    }
}

/// The answer of a query over one table, for these rows of it.
pub(crate) fn evaluate_over(plan: &Arc<Plan>, rows: Vec<Batch>) -> Result<Vec<Batch>, Error> {
    let mut stages = Vec::new();
    let mut below = plan;
    while let Node::Stage { input, .. } = &below.node {
        stages.push(below);
        below = input;
    }
    stages.reverse();
    let Node::Scan { columns, .. } = &below.node else {
        return Err(Error::invalid("RETURNING takes expressions over the row's columns")
            .with_hint("SELECT the rest in a statement of its own; reads see all earlier writes."));
    };
    evaluate_stages(&stages, rows.iter().map(|batch| batch.project(columns)).collect())
}

/// The rows after these stages, the lowest first.
pub(crate) fn evaluate_stages(stages: &[&Arc<Plan>], mut batches: Vec<Batch>) -> Result<Vec<Batch>, Error> {
    for stage in stages {
        let Node::Stage { input, filter, project } = &stage.node else { continue };
        batches = evaluate_stage(input, filter, project, stage, batches)?;
    }
    Ok(batches)
}

/// The rows, or the first row error.
pub(crate) fn rows_or_error(result: PeekResult) -> Result<Vec<Batch>, Error> {
    match row_error(result.errors.iter().map(|(text, diff)| (text.as_str(), *diff))) {
        Some(error) => Err(error),
        None => Ok(result.batches),
    }
}

/// The error for rows that could not be computed, if there are any: the first in the order of their
/// texts.
pub(crate) fn row_error<'a>(errors: impl Iterator<Item = (&'a str, i64)>) -> Option<Error> {
    let errors: Vec<(&str, i64)> = errors.filter(|(_, diff)| *diff > 0).collect();
    let first = errors.iter().map(|(text, _)| *text).min()?;
    let n_errors: i64 = errors.iter().map(|(_, diff)| *diff).sum();
    let error = Error::data(first);
    Some(if n_errors > 1 { error.with_detail(format!("{n_errors} rows have errors.")) } else { error })
}

/// Literal rows as a batch.
pub(crate) fn constant(plan: &Plan, rows: &[Vec<ScalarValue>]) -> Result<Batch, Error> {
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(plan.schema.fields().len());
    for (column, field) in plan.schema.fields().iter().enumerate() {
        let values = rows.iter().map(|row| row[column].clone());
        let array = match rows.is_empty() {
            true => arrow::array::new_empty_array(field.data_type()),
            false => ScalarValue::iter_to_array(values)
                .map_err(|e| Error::internal(format!("literal column \"{}\": {e}", field.name())))?,
        };
        let array = if array.data_type() == field.data_type() {
            array
        } else {
            arrow::compute::cast(&array, field.data_type())?
        };
        columns.push(types::narrowed(&array).map_err(|error| Error::data(error.detail()))?);
    }
    Ok(Batch::with_len(columns.into(), rows.len(), Times::Constant(0), Diffs::Constant(1)))
}

/// Columns of the relation that the filter fixes to values.
fn equalities<'a>(scan: &Plan, columns: &[usize], filter: &'a [Expr]) -> Vec<(usize, Vec<&'a ScalarValue>)> {
    let position = |expr: &Expr| match expr {
        Expr::Column(column) => scan.schema.index_of_column(column).ok().map(|idx| columns[idx]),
        _ => None,
    };
    let literal = |expr: &'a Expr| match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    };
    let mut fixed = Vec::new();
    for conjunct in filter.iter().flat_map(conjuncts) {
        match conjunct {
            Expr::BinaryExpr(binary) if binary.op == Operator::Eq => {
                let (column, value) = match position(&binary.left) {
                    Some(column) => (Some(column), literal(&binary.right)),
                    None => (position(&binary.right), literal(&binary.left)),
                };
                if let (Some(column), Some(value)) = (column, value) {
                    fixed.push((column, vec![value]));
                }
            }
            Expr::InList(list) if !list.negated => {
                let values: Option<Vec<&ScalarValue>> = list.list.iter().map(literal).collect();
                if let (Some(column), Some(values)) = (position(&list.expr), values) {
                    fixed.push((column, values));
                }
            }
            _ => {}
        }
    }
    fixed
}

/// The conditions that all hold.
pub(crate) fn conjuncts(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::BinaryExpr(binary) if binary.op == Operator::And => {
            let mut all = conjuncts(&binary.left);
            all.extend(conjuncts(&binary.right));
            all
        }
        other => vec![other],
    }
}

/// The arrangement to read: one whose whole key is fixed, the longest key first; else the first
/// one, in full. A key of one column may have several values.
fn choose_arrangement(
    object: &Object,
    arrangements: &[&Arranged],
    fixed: &[(usize, Vec<&ScalarValue>)],
) -> Option<(Arranged, Option<Vec<ArrayRef>>)> {
    let keyed = arrangements
        .iter()
        .filter(|arranged| !arranged.key.is_empty())
        .filter_map(|arranged| Some((arranged, key_columns(object, &arranged.key, fixed)?)))
        .max_by_key(|(arranged, _)| (arranged.key.len(), std::cmp::Reverse(arranged.arrangement)));
    match keyed {
        Some((arranged, keys)) => Some(((*arranged).clone(), Some(keys))),
        None => arrangements.first().map(|arranged| ((*arranged).clone(), None)),
    }
}

/// The longest beginning of a declared key that is fixed. (Arrangements are in the order of hashes
/// of whole keys, so a part of a key finds nothing in them.)
fn fixed_prefix(object: &Object, arrangements: &[&Arranged], fixed: &[(usize, Vec<&ScalarValue>)]) -> Vec<usize> {
    let is_declared = |arranged: &&Arranged| {
        arranged.key == object.primary_key || arranged.owners.iter().any(|owner| *owner != object.name)
    };
    let prefixes = arrangements.iter().copied().filter(is_declared).filter_map(|arranged| {
        let key = &arranged.key;
        (1..key.len()).rev().map(|n| &key[..n]).find(|prefix| key_columns(object, prefix, fixed).is_some())
    });
    prefixes.max_by_key(|prefix| prefix.len()).map(<[usize]>::to_vec).unwrap_or_default()
}

fn key_columns(object: &Object, key: &[usize], fixed: &[(usize, Vec<&ScalarValue>)]) -> Option<Vec<ArrayRef>> {
    let mut columns = Vec::with_capacity(key.len());
    for column in key {
        let field = object.schema.field(*column);
        let usable = |values: &[&ScalarValue]| {
            let fits = |value: &&ScalarValue| !value.is_null() && value.data_type() == *field.data_type();
            !values.is_empty() && values.iter().all(fits) && (key.len() == 1 || values.len() == 1)
        };
        let (_, values) = fixed.iter().find(|(fixed, values)| fixed == column && usable(values))?;
        let values = ScalarValue::iter_to_array(values.iter().copied().cloned()).ok()?;
        columns.push(types::narrowed(&values).ok()?);
    }
    Some(columns)
}
