//! SELECT: reading what is maintained, and computing what is not.
//!
//! Filters and projections over one maintained relation, or over literal rows, are answered from an
//! arrangement: by key when equalities fix all columns of some arrangement's key, else by reading
//! all of it. Everything else becomes a dataflow for the length of the statement, which shares the
//! arrangements that are there.
//!
//! Law: the answer is as of the last commit, or of the time that AS OF names. A row error in the
//! relation read, or in evaluating the query on a row that takes part in the answer, is the
//! statement's error.

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, Time, Times, types};
use anabranch_plan::{Node, Plan};
use arrow::array::ArrayRef;
use datafusion_common::ScalarValue;
use datafusion_expr::sqlparser::ast;
use datafusion_expr::{Expr, Operator};

use super::Session;
use super::dataflows::Sink;
use super::outcome::{Rows, SourceState};
use super::past::{Past, readable};
use super::planning::{Named, visible_schema};
use crate::catalog::{Arranged, Object, Retain, kind_name};
use crate::cluster::{Peek, PeekResult};
use crate::error::Error;
use crate::evaluate::evaluate_stage;
use crate::finish::{Wanted, finish};
use crate::transaction::as_of_after_writes;

/// How a plan is answered without a dataflow.
pub(super) struct Direct<'a> {
    /// Stages from the base upwards.
    stages: Vec<&'a Arc<Plan>>,
    base: Base<'a>,
}

enum Base<'a> {
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

impl Session {
    /// Runs a query and returns its answer, as of a past time if one is given.
    pub(super) fn select(&mut self, query: &ast::Query, as_of: Option<&ast::Expr>) -> Result<Rows, Error> {
        let Named { mut planned, names, .. } = self.plan_query(query)?;
        planned.plan = self.with_operator_rows(&planned.plan)?;
        let notices = self.settle_sources(&names)?;
        self.check_kept(&planned.plan)?;
        let past = match as_of.is_some() && self.has_staged() {
            true => return Err(as_of_after_writes()),
            false => self.past(as_of, &planned.plan)?,
        };
        let batches = self.collect_as_of(&planned.plan, past.as_ref())?;
        let schema = visible_schema(&planned);
        let wanted =
            Wanted { order: &planned.finish.order, offset: planned.finish.offset, limit: planned.finish.limit };
        let mut rows = Rows::new(schema.clone(), finish(&schema, &batches, &wanted)?);
        rows.notices = notices;
        self.count_results(rows)
    }

    /// The plan's rows with their multiplicities, as of the last commit.
    pub(super) fn collect(&mut self, plan: &Arc<Plan>) -> Result<Vec<Batch>, Error> {
        self.collect_as_of(plan, None)
    }

    fn collect_as_of(&mut self, plan: &Arc<Plan>, past: Option<&Past>) -> Result<Vec<Batch>, Error> {
        if past.is_none() {
            self.note_reads(&plan.relations())?;
            self.tick_before_reading(&plan.relations())?;
        }
        let at = past.map_or(self.timeline.last(), |past| past.at);
        match self.direct(plan, past) {
            Some(direct) => self.collect_direct(direct, at),
            None => self.collect_by_dataflow(plan, past, at),
        }
    }

    fn collect_direct(&mut self, direct: Direct<'_>, at: Time) -> Result<Vec<Batch>, Error> {
        let batches = match direct.base {
            Base::Constant(plan, rows) => vec![constant(plan, rows)?],
            Base::Arrangement { relation, arranged, keys, columns, .. } => {
                let result = match self.answered() {
                    Some(result) => result,
                    None => self.ask(Peek { arrangement: arranged.arrangement, at, keys }, vec![relation], None)?,
                };
                rows_or_error(result)?.iter().map(|batch| batch.project(columns)).collect()
            }
        };
        self.interrupt.check()?;
        evaluate_stages(&direct.stages, batches)
    }

    fn collect_by_dataflow(&mut self, plan: &Arc<Plan>, past: Option<&Past>, at: Time) -> Result<Vec<Batch>, Error> {
        if let Some(result) = self.answered() {
            return rows_or_error(result);
        }
        let all_columns: Vec<usize> = (0..plan.schema.fields().len()).collect();
        let (dataflow, arrangements) = self.install_as_of("a select", plan, &[all_columns], Sink::Answer, past)?;
        let peek = Peek { arrangement: arrangements[0], at, keys: None };
        rows_or_error(self.ask(peek, plan.relations(), Some(dataflow))?)
    }

    /// The single value of a query without relations.
    pub(super) fn evaluate_constant(&self, text: &str) -> Result<ArrayRef, Error> {
        let query = anabranch_sql::parse::parse_query(text)?;
        let plan = self.plan_constant(&query)?.planned.plan;
        let Some(Direct { stages, base: Base::Constant(literal, rows) }) = self.direct(&plan, None) else {
            return Err(Error::invalid(format!("a value without relations is expected, not {text}")));
        };
        let batches = evaluate_stages(&stages, vec![constant(literal, rows)?])?;
        let batch = batches.first().ok_or_else(|| Error::internal(format!("{text} has no row")))?;
        Ok(types::widened(batch.column(0)))
    }

    /// The way to answer `plan` without a dataflow, if there is one.
    pub(super) fn direct<'a>(&self, plan: &'a Arc<Plan>, past: Option<&Past>) -> Option<Direct<'a>> {
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
                let object = self.catalog.find(relation)?;
                let filter = match stages.first().map(|stage| &stage.node) {
                    Some(Node::Stage { filter, .. }) => filter.as_slice(),
                    _ => &[],
                };
                let fixed = equalities(below, columns, filter);
                let (arranged, keys) = choose_arrangement(object, past, &fixed)?;
                let lacking = if keys.is_none() { fixed_prefix(object, past, &fixed) } else { vec![] };
                Base::Arrangement { relation: relation.clone(), arranged, keys, lacking, columns }
            }
            _ => return None,
        };
        Some(Direct { stages, base })
    }

    /// Refuses to read relations that keep no rows.
    pub(super) fn check_kept(&self, plan: &Plan) -> Result<(), Error> {
        for name in plan.relations() {
            let object = self.catalog.get(&name)?;
            if object.retain != Retain::All && !object.is_readable() {
                let kind = kind_name(object.kind);
                return Err(Error::invalid(format!("{kind} \"{name}\" keeps no rows to read (retain = 'none')"))
                    .with_hint("Read a materialized view over it, or create an index on it before its rows come."));
            }
        }
        Ok(())
    }

    /// Waits for the bounded, unpaced sources behind the relations, if the session is set to, and
    /// tells which failed.
    ///
    /// # Errors
    /// When the session waits for sources, a failed one is an error: the answer cannot be had.
    pub(super) fn settle_sources(&mut self, names: &BTreeSet<String>) -> Result<Vec<String>, Error> {
        self.keep_sources(names)?;
        let sources = self.catalog.sources_behind(names);
        if self.client.wait_for_sources {
            self.read_to_end(&sources)?;
        }
        let mut notices = Vec::new();
        for status in self.pump.statuses().into_iter().filter(|status| sources.contains(&status.name)) {
            let SourceState::Failed(message) = &status.state else { continue };
            let text = format!("source \"{}\" failed: {message}", status.name);
            if self.client.wait_for_sources {
                return Err(Error::data(text)
                    .with_detail(format!("{} rows were read before.", status.rows))
                    .with_hint(
                        "Repair the source and create it again, or SET wait_for_sources = off to query what was read.",
                    ));
            }
            notices.push(text);
        }
        Ok(notices)
    }
}

impl Direct<'_> {
    /// The relation and arrangement that are read, and whether by key; nothing for literal rows.
    pub(super) fn arranged(&self) -> Option<(&str, &Arranged, bool)> {
        match &self.base {
            Base::Constant(..) => None,
            Base::Arrangement { relation, arranged, keys, .. } => Some((relation, arranged, keys.is_some())),
        }
    }

    /// Columns of an index that would serve the query: a condition fixes them, and a longer key
    /// begins with them.
    pub(super) fn lacking(&self) -> &[usize] {
        match &self.base {
            Base::Constant(..) => &[],
            Base::Arrangement { lacking, .. } => lacking,
        }
    }
}

/// The answer of a query over one table, for these rows of it.
pub(super) fn evaluate_over(plan: &Arc<Plan>, rows: Vec<Batch>) -> Result<Vec<Batch>, Error> {
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
pub(super) fn evaluate_stages(stages: &[&Arc<Plan>], mut batches: Vec<Batch>) -> Result<Vec<Batch>, Error> {
    for stage in stages {
        let Node::Stage { input, filter, project } = &stage.node else { continue };
        batches = evaluate_stage(input, filter, project, stage, batches)?;
    }
    Ok(batches)
}

/// The rows, or the first row error.
pub(super) fn rows_or_error(result: PeekResult) -> Result<Vec<Batch>, Error> {
    match row_error(result.errors.iter().map(|(text, diff)| (text.as_str(), *diff))) {
        Some(error) => Err(error),
        None => Ok(result.batches),
    }
}

/// The error for rows that could not be computed, if there are any: the first in the order of their
/// texts.
pub(super) fn row_error<'a>(errors: impl Iterator<Item = (&'a str, i64)>) -> Option<Error> {
    let errors: Vec<(&str, i64)> = errors.filter(|(_, diff)| *diff > 0).collect();
    let first = errors.iter().map(|(text, _)| *text).min()?;
    let n_errors: i64 = errors.iter().map(|(_, diff)| *diff).sum();
    let error = Error::data(first);
    Some(if n_errors > 1 { error.with_detail(format!("{n_errors} rows have errors.")) } else { error })
}

/// Literal rows as a batch.
fn constant(plan: &Plan, rows: &[Vec<ScalarValue>]) -> Result<Batch, Error> {
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

fn conjuncts(expr: &Expr) -> Vec<&Expr> {
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
    past: Option<&Past>,
    fixed: &[(usize, Vec<&ScalarValue>)],
) -> Option<(Arranged, Option<Vec<ArrayRef>>)> {
    let arrangements = readable(object, past);
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
fn fixed_prefix(object: &Object, past: Option<&Past>, fixed: &[(usize, Vec<&ScalarValue>)]) -> Vec<usize> {
    let is_declared = |arranged: &&Arranged| {
        arranged.key == object.primary_key || arranged.owners.iter().any(|owner| *owner != object.name)
    };
    let prefixes = readable(object, past).into_iter().filter(is_declared).filter_map(|arranged| {
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
