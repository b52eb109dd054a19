//! As-of joins inside DataFusion's plans: from a condition to an extension node that its optimiser
//! passes by.
//!
//! A condition is a conjunction of equalities between the sides, of one comparison between their
//! times, which says on which side the match lies, and perhaps of a bound on their distance:
//!
//! ```text
//! a.k = r.k AND a.ts >= r.ts AND r.ts >= a.ts - INTERVAL '5 minutes'
//! ```

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use anabranch_plan::Nulls;
use anabranch_plan::asof::Strategy;
use anabranch_plan::explain::expression;
use datafusion_common::{Column, DFSchema, DFSchemaRef, Result as DfResult, ScalarValue};
use datafusion_expr::logical_plan::{Extension, LogicalPlan};
use datafusion_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion_expr::sqlparser::ast::TableFactor;
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{BinaryExpr, Expr, Operator, UserDefinedLogicalNodeCore};

use crate::error::{ErrorKind, Result, SqlError};
use crate::passes::tree::asof::settled;
use crate::syntax::span::Span;

/// An as-of join of two plans.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AsofNode {
    pub(crate) left: LogicalPlan,
    pub(crate) right: LogicalPlan,
    pub(crate) on: On,
    /// Whether left rows without a match are kept.
    pub(crate) outer: bool,
    schema: DFSchemaRef,
}

/// What is matched; expressions over the left side, and over the right one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct On {
    pub(crate) keys: Vec<(Expr, Expr)>,
    /// Whether NULL keys are equal.
    pub(crate) nulls: Nulls,
    pub(crate) times: (Expr, Expr),
    pub(crate) strategy: Strategy,
    pub(crate) exact: bool,
    pub(crate) tolerance: Option<Span>,
}

impl AsofNode {
    fn try_new(left: LogicalPlan, right: LogicalPlan, on: On, outer: bool) -> DfResult<Self> {
        let field = |schema: &DFSchema, at: usize, null: bool| {
            let (qualifier, field) = schema.qualified_field(at);
            let nullable = field.is_nullable() || null;
            (qualifier.cloned(), Arc::new(field.as_ref().clone().with_nullable(nullable)))
        };
        let fields = |plan: &LogicalPlan, null| {
            let schema = plan.schema();
            (0..schema.fields().len()).map(|at| field(schema, at, null)).collect::<Vec<_>>()
        };
        let all = [fields(&left, false), fields(&right, outer)].concat();
        let schema = Arc::new(DFSchema::new_with_metadata(all, Default::default())?);
        Ok(Self { left, right, on, outer, schema })
    }
}

impl PartialOrd for AsofNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.left.partial_cmp(&other.left) {
            Some(Ordering::Equal) => self.right.partial_cmp(&other.right),
            order => order,
        }
    }
}

impl UserDefinedLogicalNodeCore for AsofNode {
    fn name(&self) -> &str {
        "AsofJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    /// Keys in pairs, then the times.
    fn expressions(&self) -> Vec<Expr> {
        let pairs = self.on.keys.iter().chain(std::iter::once(&self.on.times));
        pairs.flat_map(|(left, right)| [left.clone(), right.clone()]).collect()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "AsofJoin: {:?}", self.on.strategy)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> DfResult<Self> {
        let mut exprs = exprs.into_iter();
        let mut pairs = Vec::with_capacity(self.on.keys.len());
        while let (Some(left), Some(right)) = (exprs.next(), exprs.next()) {
            pairs.push((left, right));
        }
        match (pairs.pop(), <[LogicalPlan; 2]>::try_from(inputs)) {
            (Some(times), Ok([left, right])) => {
                Self::try_new(left, right, On { keys: pairs, times, ..self.on.clone() }, self.outer)
            }
            _ => Err(SqlError::internal("an as-of join has two inputs and two times").into()),
        }
    }

    /// All of the right side: its columns decide between rows of one time.
    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let width = self.left.schema().fields().len();
        let of_left = output_columns.iter().copied().filter(|column| *column < width).collect();
        Some(vec![of_left, (0..self.right.schema().fields().len()).collect()])
    }
}

/// Plans the joins that `tree` settled.
#[derive(Debug)]
pub(crate) struct AsofPlanner;

impl RelationPlanner for AsofPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> DfResult<RelationPlanning> {
        let Some((left, right, condition, outer)) = settled(&relation) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let condition = condition.clone();
        let (left, right) = (context.plan(left.clone())?, context.plan(right.clone())?);
        let schema = left.schema().join(right.schema())?;
        let condition = context.sql_to_expr(condition, &schema)?;
        let on = On::read(&condition, left.schema(), right.schema())?;
        let node = Arc::new(AsofNode::try_new(left, right, on, outer)?);
        let plan = LogicalPlan::Extension(Extension { node });
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

/// A comparison, the left side's expression first.
struct Compared {
    left: Expr,
    op: Operator,
    right: Expr,
}

impl On {
    fn read(condition: &Expr, left: &DFSchema, right: &DFSchema) -> Result<On> {
        let (mut keys, mut nulls) = (Vec::new(), None);
        let (mut compared, mut bounds) = (Vec::new(), Vec::new());
        for part in split_conjunction(condition) {
            let Expr::BinaryExpr(BinaryExpr { left: a, op, right: b }) = part else { return Err(unread(part)) };
            match (op, sides(a, *op, b, left, right)) {
                (Operator::Eq | Operator::IsNotDistinctFrom, Some(Compared { left, right, .. })) => {
                    let of_key = if *op == Operator::Eq { Nulls::Differ } else { Nulls::Equal };
                    if nulls.replace(of_key).is_some_and(|before| before != of_key) {
                        return Err(SqlError::unsupported(
                            "= beside IS NOT DISTINCT FROM in an as-of join",
                            "Compare all keys in one of these ways.",
                        ));
                    }
                    keys.push((left, right));
                }
                (Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq, sides) => match sides {
                    Some(sides) if shift(a).is_none() && shift(b).is_none() => compared.push(sides),
                    sides => bounds.push((part, sides)),
                },
                _ => return Err(unread(part)),
            }
        }
        // A comparison with a moved time is a bound where there is another.
        if let (true, [(_, sides @ Some(_))]) = (compared.is_empty(), bounds.as_mut_slice()) {
            compared.extend(sides.take());
            bounds.clear();
        }
        let Some(Compared { left: left_time, op, right: right_time }) = compared.pop() else {
            return Err(SqlError::new(ErrorKind::Invalid, "an as-of join does not compare times")
                .with_hint("Write ASOF JOIN r ON a.k = r.k AND a.ts >= r.ts."));
        };
        if !compared.is_empty() {
            return Err(SqlError::new(ErrorKind::Invalid, "an as-of join compares two times, once")
                .with_hint("A second comparison may bound the distance: r.ts >= a.ts - INTERVAL '5 minutes'."));
        }
        let strategy = match op {
            Operator::Gt | Operator::GtEq => Strategy::Backward,
            _ => Strategy::Forward,
        };
        let (earlier, later) = match strategy {
            Strategy::Forward => (&left_time, &right_time),
            _ => (&right_time, &left_time),
        };
        let mut tolerance = None;
        for (bound, _) in bounds {
            let distance = distance(bound, earlier, later).ok_or_else(|| unread(bound))?;
            if tolerance.replace(distance).is_some() {
                return Err(unread(bound));
            }
        }
        let exact = matches!(op, Operator::GtEq | Operator::LtEq);
        Ok(On {
            keys,
            nulls: nulls.unwrap_or(Nulls::Differ),
            times: (left_time, right_time),
            strategy,
            exact,
            tolerance,
        })
    }
}

fn unread(part: &Expr) -> SqlError {
    SqlError::unsupported(
        format!("the condition {} of an as-of join", expression(part)),
        "It is a conjunction of equalities between the sides, one comparison of their times, and perhaps a bound on their distance (r.ts >= a.ts - INTERVAL '5 minutes'); put conditions on one side into a subquery.",
    )
}

/// The comparison with the left side's expression first; `None` if it does not compare the sides.
fn sides(a: &Expr, op: Operator, b: &Expr, left: &DFSchema, right: &DFSchema) -> Option<Compared> {
    if is_of(a, left) && is_of(b, right) {
        return Some(Compared { left: a.clone(), op, right: b.clone() });
    }
    let turned = is_of(a, right) && is_of(b, left);
    let compared = turned.then(|| Some(Compared { left: b.clone(), op: op.swap()?, right: a.clone() }));
    compared.flatten()
}

/// Whether the expression has columns, all of this side.
fn is_of(expr: &Expr, schema: &DFSchema) -> bool {
    let columns: HashSet<&Column> = expr.column_refs();
    !columns.is_empty() && columns.iter().all(|column| schema.has_column(column))
}

/// An expression moved by a constant: what is moved, and by how much.
fn shift(expr: &Expr) -> Option<(&Expr, Span)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return None };
    match op {
        Operator::Plus => Some((left, constant(right)?)),
        Operator::Minus => Some((left, constant(right)?.times(-1))),
        _ => None,
    }
}

fn constant(expr: &Expr) -> Option<Span> {
    match expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) if interval.months == 0 => {
            let days = i64::from(interval.days).checked_mul(86_400_000_000_000)?;
            Some(Span::Interval(days.checked_add(interval.nanoseconds)?))
        }
        Expr::Literal(value @ (ScalarValue::Int64(Some(_)) | ScalarValue::Int32(Some(_))), _) => {
            match value.cast_to(&arrow::datatypes::DataType::Int64) {
                Ok(ScalarValue::Int64(Some(ticks))) => Some(Span::Ticks(ticks)),
                _ => None,
            }
        }
        Expr::Cast(cast) => constant(&cast.expr),
        _ => None,
    }
}

/// How far `earlier` may lie before `later`, if that is what a comparison says.
fn distance(bound: &Expr, earlier: &Expr, later: &Expr) -> Option<Span> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = bound else { return None };
    let (least, most) = match op {
        Operator::LtEq => (left, right),
        Operator::GtEq => (right, left),
        _ => return None,
    };
    let (least, by_least) = shift(least).map_or((least.as_ref(), None), |(expr, span)| (expr, Some(span)));
    let (most, by_most) = shift(most).map_or((most.as_ref(), None), |(expr, span)| (expr, Some(span)));
    // later - c <= earlier, later <= earlier + c
    if (least, most) == (later, earlier) {
        return match (by_least, by_most) {
            (Some(span), None) => Some(span.times(-1)),
            (None, Some(span)) => Some(span),
            _ => None,
        };
    }
    // later - earlier <= c
    let least = match least {
        Expr::Cast(cast) => cast.expr.as_ref(),
        other => other,
    };
    let Expr::BinaryExpr(BinaryExpr { left: from, op: Operator::Minus, right: subtracted }) = least else {
        return None;
    };
    let is_distance =
        by_least.is_none() && by_most.is_none() && from.as_ref() == later && subtracted.as_ref() == earlier;
    is_distance.then(|| constant(most)).flatten()
}
