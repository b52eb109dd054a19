//! Questions that an arrangement or literal rows answer, without a dataflow.
//!
//! Law: filters and projections over one maintained relation, or over literal rows, are *direct*:
//! the rows are those of an arrangement, by key when equalities fix the columns of some
//! arrangement's key or the first of them, else all of them. The same stages are evaluated over
//! them as in a dataflow. The relation may be read with literal rows taken from it and put into it,
//! as an open transaction reads what it has written. Nothing here needs the session, so a
//! connection answers such questions on its own thread.
//!
//! Cost: a look-up costs its matches; one by the first columns of a key costs the rows that are
//! equal in the first; where the first is bounded, the rows within ([`ranges`]); without a fixed
//! key, all rows of the arrangement. Literal rows cost themselves.

use std::sync::Arc;

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, Diffs, Times, gather, types};
use anabranch_plan::{Node, Plan, SetOperation};
use arrow::array::ArrayRef;
use arrow::datatypes::Fields;
use datafusion_common::ScalarValue;
use datafusion_expr::{Expr, Operator};

use crate::catalog::{Arranged, Object};
use crate::cluster::{PeekResult, WantedKeys};
use crate::contained::contained;
use crate::error::Error;
use crate::evaluate::{Asked, evaluate_stage};
use crate::transaction::halves;

mod ranges;

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
    /// An arrangement of a relation.
    Arrangement(Read<'a>),
}

/// Rows of a relation that are read.
pub(crate) struct Read<'a> {
    pub relation: String,
    pub arranged: Arranged,
    pub rows: WantedKeys,
    /// Of the relation; what is evaluated has these.
    columns: &'a [usize],
    /// Literal rows that are taken from those that are there, where these are enough.
    taken: Option<Literal<'a>>,
    /// Literal rows that are put in.
    put_in: Option<Literal<'a>>,
}

/// Literal rows, and the node that they are.
type Literal<'a> = (&'a Plan, &'a [Vec<ScalarValue>]);

/// Columns of a relation, and values of them.
pub(crate) type FixedKeys = (Vec<usize>, Vec<ArrayRef>);

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
        if let Node::Constant { rows } = &below.node {
            return Some(Direct { stages, base: Base::Constant(below, rows) });
        }
        let (scan, taken, put_in) = changed_scan(below)?;
        let Node::Scan { relation, columns } = &scan.node else { return None };
        let object = find(relation)?;
        let filter = match stages.first().map(|stage| &stage.node) {
            Some(Node::Stage { filter, .. }) => filter.as_slice(),
            _ => &[],
        };
        let fixed = equalities(below, columns, filter);
        let bounded = ranges::bounds(below, columns, filter);
        let arrangements = object.maintained.iter().flat_map(|maintained| &maintained.arrangements);
        let arrangements: Vec<&Arranged> = arrangements.filter(|arranged| is_readable(arranged)).collect();
        let (arranged, rows) = choose_arrangement(object, &arrangements, &fixed, &bounded)?;
        let base = Base::Arrangement(Read { relation: relation.clone(), arranged, rows, columns, taken, put_in });
        Some(Direct { stages, base })
    }

    /// What is read of a relation; nothing for literal rows.
    pub fn read(&self) -> Option<&Read<'a>> {
        match &self.base {
            Base::Constant(..) => None,
            Base::Arrangement(read) => Some(read),
        }
    }
}

impl Read<'_> {
    /// What is fixed, where all rows that are wanted have one of these values.
    pub fn wanted_key(&self) -> Option<FixedKeys> {
        match &self.rows {
            WantedKeys::Keys(keys) | WantedKeys::Prefixes(keys) => {
                Some((self.arranged.key[..keys.len()].to_vec(), keys.clone()))
            }
            WantedKeys::All | WantedKeys::Hashes(..) => None,
        }
    }

    /// The answer of these stages, given the rows of the arrangement that were wanted.
    pub fn evaluate(&self, stages: &[&Arc<Plan>], found: Vec<Batch>, asked: &Asked) -> Result<Vec<Batch>, Error> {
        let mut rows: Vec<Batch> = found.iter().map(|batch| batch.project(self.columns)).collect();
        if let Some((plan, taken)) = self.taken {
            rows = rows.into_iter().map(timeless).collect();
            rows.push(constant(plan, taken)?.negate());
            // (A row taken that was not asked for has no row to be taken from here.)
            rows = Batch::concat(&rows).map(|all| halves(&consolidate(all)).0).into_iter().collect();
        }
        if let Some((plan, put_in)) = self.put_in {
            rows.push(constant(plan, put_in)?);
        }
        evaluate_stages(stages, rows, Some(asked))
    }
}

fn timeless(batch: Batch) -> Batch {
    batch.with_times(Times::Constant(0)).flatten()
}

fn literal(plan: &Arc<Plan>) -> Option<Literal<'_>> {
    match &plan.node {
        Node::Constant { rows } => Some((plan, rows)),
        _ => None,
    }
}

/// A scan, and the literal rows that are taken from it and then put in.
fn changed_scan(plan: &Arc<Plan>) -> Option<(&Arc<Plan>, Option<Literal<'_>>, Option<Literal<'_>>)> {
    let (below, put_in) = match &plan.node {
        Node::Union { inputs } => match inputs.as_slice() {
            [below, put_in] => (below, Some(literal(put_in)?)),
            _ => return None,
        },
        _ => (plan, None),
    };
    let (scan, taken) = match &below.node {
        Node::SetOperation { operation: SetOperation::ExceptAll, left, right } => (left, Some(literal(right)?)),
        _ => (below, None),
    };
    matches!(scan.node, Node::Scan { .. }).then_some((scan, taken, put_in))
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
    evaluate_stages(&stages, rows.iter().map(|batch| batch.project(columns)).collect(), None)
}

/// The rows after these stages, the lowest first. `asked` tells whose memory they are, if they may
/// be many.
pub(crate) fn evaluate_stages(
    stages: &[&Arc<Plan>],
    mut batches: Vec<Batch>,
    asked: Option<&Asked>,
) -> Result<Vec<Batch>, Error> {
    for stage in stages {
        let Node::Stage { input, filter, project } = &stage.node else { continue };
        let evaluate = || evaluate_stage(input, filter, project, stage, batches, asked);
        batches = match asked {
            Some(asked) if computes(project) => asked.within_limits(evaluate)?,
            _ => contained("computing the answer", evaluate)?,
        };
    }
    Ok(batches)
}

/// Whether not all are columns as they are: those take no memory.
fn computes(project: &[Expr]) -> bool {
    !project.iter().all(|expr| matches!(expr, Expr::Column(_)))
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
    literal_batch(plan.schema.fields(), rows)
}

/// Rows of these columns as a batch.
pub(crate) fn literal_batch(fields: &Fields, rows: &[Vec<ScalarValue>]) -> Result<Batch, Error> {
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(fields.len());
    for (column, field) in fields.iter().enumerate() {
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
    filter.iter().flat_map(conjuncts).filter_map(|conjunct| fixed_by(conjunct, &position, &literal)).collect()
}

/// The column that a condition fixes to one of some values. (Short lists are planned as OR.)
fn fixed_by<'a>(
    condition: &'a Expr,
    position: &impl Fn(&Expr) -> Option<usize>,
    literal: &impl Fn(&'a Expr) -> Option<&'a ScalarValue>,
) -> Option<(usize, Vec<&'a ScalarValue>)> {
    match condition {
        Expr::BinaryExpr(binary) if binary.op == Operator::Eq => match position(&binary.left) {
            Some(column) => Some((column, vec![literal(&binary.right)?])),
            None => Some((position(&binary.right)?, vec![literal(&binary.left)?])),
        },
        Expr::BinaryExpr(binary) if binary.op == Operator::Or => {
            let (column, mut values) = fixed_by(&binary.left, position, literal)?;
            let (other, more) = fixed_by(&binary.right, position, literal)?;
            values.extend(more);
            (column == other).then_some((column, values))
        }
        Expr::InList(list) if !list.negated => {
            let values: Option<Vec<&ScalarValue>> = list.list.iter().map(literal).collect();
            Some((position(&list.expr)?, values?))
        }
        _ => None,
    }
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

/// Keys that are looked up at most; where lists of values make more, fewer columns are looked at.
const KEYS_MAX: usize = 10_000;

/// The arrangement to read: one whose whole key is fixed, the longest key first; else one whose key
/// begins with fixed columns, as many as can be; else one whose key begins with a column that is
/// bounded; else the first one, in full.
fn choose_arrangement(
    object: &Object,
    arrangements: &[&Arranged],
    fixed: &[(usize, Vec<&ScalarValue>)],
    bounded: &[ranges::Bound<'_>],
) -> Option<(Arranged, WantedKeys)> {
    let wanted = |arranged: &&&Arranged| {
        let key = &arranged.key;
        let n_fixed = (1..=key.len()).rev().find(|n| key_columns(object, &key[..*n], fixed).is_some())?;
        Some((n_fixed == key.len(), n_fixed, std::cmp::Reverse(arranged.arrangement)))
    };
    let best = arrangements.iter().filter_map(|arranged| Some((wanted(&arranged)?, arranged))).max_by_key(|(n, _)| *n);
    let Some(((is_whole, n_fixed, _), arranged)) = best else {
        let ranged =
            arrangements.iter().find_map(|arranged| Some((*arranged, ranges::hashes(object, arranged, bounded)?)));
        if let Some((arranged, (first, last))) = ranged {
            return Some((arranged.clone(), WantedKeys::Hashes(first, last)));
        }
        return arrangements.first().map(|arranged| ((*arranged).clone(), WantedKeys::All));
    };
    let keys = key_columns(object, &arranged.key[..n_fixed], fixed)?;
    let rows = if is_whole { WantedKeys::Keys(keys) } else { WantedKeys::Prefixes(keys) };
    Some(((*arranged).clone(), rows))
}

/// The keys of some columns of which each is one of the values that it is fixed to.
fn key_columns(object: &Object, key: &[usize], fixed: &[(usize, Vec<&ScalarValue>)]) -> Option<Vec<ArrayRef>> {
    let mut columns = Vec::with_capacity(key.len());
    for column in key {
        let field = object.schema.field(*column);
        let usable = |values: &[&ScalarValue]| {
            let fits = |value: &&ScalarValue| !value.is_null() && value.data_type() == *field.data_type();
            !values.is_empty() && values.iter().all(fits)
        };
        let of_column = fixed.iter().filter(|(fixed, values)| fixed == column && usable(values));
        let (_, values) = of_column.min_by_key(|(_, values)| values.len())?;
        let values = ScalarValue::iter_to_array(values.iter().copied().cloned()).ok()?;
        columns.push(types::narrowed(&values).ok()?);
    }
    each_with_each(&columns)
}

/// All rows of which each cell is one of its column's; `None` where they are too many.
fn each_with_each(columns: &[ArrayRef]) -> Option<Vec<ArrayRef>> {
    let n_keys = columns.iter().try_fold(1usize, |n, column| n.checked_mul(column.len()))?;
    if columns.len() == 1 || n_keys == 1 {
        return Some(columns.to_vec());
    }
    if n_keys > KEYS_MAX {
        return None;
    }
    let (mut all, mut n_each) = (Vec::with_capacity(columns.len()), n_keys);
    for column in columns {
        n_each /= column.len();
        let rows: Vec<u32> = (0..n_keys).map(|key| (key / n_each % column.len()) as u32).collect();
        all.extend(gather::take(std::slice::from_ref(column), &rows).iter().cloned());
    }
    Some(all)
}
