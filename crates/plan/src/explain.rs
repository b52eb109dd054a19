//! How a plan is shown to people: `EXPLAIN`.
//!
//! A tree, one node a line, inputs indented below; columns by name. A loop has a part for each
//! variable and one for its result; variables are shown by name. The text is a function of the plan
//! alone, so golden files hold it.

use std::fmt::Write as _;

use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::{Expr, Operator};

pub(crate) use crate::expressions::list;
use crate::expressions::{BoundText, level_of, precedence, quoted};
pub use crate::expressions::{expression, literal};
use crate::ir::{JoinKind, Node, Plan, Recursive, SetOperation};
use crate::{explain_rows, explain_temporal};
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use anabranch_spec::limits::RoundLimit;
use anabranch_spec::order::{Nulls, SortKey};
use anabranch_spec::top_k::{RankedBy, TopK};

/// Literal rows shown before the rest is counted.
const ROWS_SHOWN_MAX: usize = 3;

/// Characters shown of an array among these.
const ARRAY_CHARS_MAX: usize = 60;

/// The plan as an indented tree. `annotate` may add a remark to a node's line, such as the
/// arrangement it shares.
pub fn explain(plan: &Plan, annotate: &dyn Fn(&Plan) -> Option<String>) -> String {
    let mut tree = Tree { annotate, loops: vec![], out: String::new() };
    tree.write(plan, 0);
    tree.out
}

/// A tree being written.
struct Tree<'a> {
    annotate: &'a dyn Fn(&Plan) -> Option<String>,
    /// The loops around the present node, the innermost last.
    loops: Vec<&'a Recursive>,
    out: String,
}

impl<'a> Tree<'a> {
    fn write(&mut self, plan: &'a Plan, depth: usize) {
        let remark = (self.annotate)(plan).map(|text| format!("  -- {text}")).unwrap_or_default();
        let text = self.variable(plan).unwrap_or_else(|| line(plan));
        self.line(depth, &format!("{text}{remark}"));
        if let Node::Recursive(recursive) = &plan.node {
            return self.recursive(recursive, depth + 1);
        }
        plan.inputs().into_iter().for_each(|input| self.write(input, depth + 1));
    }

    /// The parts of a loop, each below its name.
    fn recursive(&mut self, recursive: &'a Recursive, depth: usize) {
        self.loops.push(recursive);
        for binding in &recursive.bindings {
            self.line(depth, &format!("{} :=", binding.name));
            self.write(&binding.plan, depth + 1);
        }
        self.line(depth, "result");
        self.write(&recursive.result, depth + 1);
        self.loops.pop();
    }

    /// A variable by its name.
    fn variable(&self, plan: &Plan) -> Option<String> {
        let Node::Variable { depth, index } = plan.node else { return None };
        let binding = self.loops.iter().rev().nth(depth)?.bindings.get(index)?;
        Some(format!("Variable {} [{}]", binding.name, names(&plan.schema)))
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.out.push_str(&format!("{:indent$}{text}\n", "", indent = depth * 2));
    }
}

/// One node, without its inputs.
pub fn line(plan: &Plan) -> String {
    match &plan.node {
        Node::Scan { relation, .. } => format!("Scan {relation} [{}]", names(&plan.schema)),
        Node::Constant { rows } => format!("Constant {} [{}]", constant(rows), names(&plan.schema)),
        Node::Stage { input, filter, project } => stage(plan, input, filter, project),
        Node::Unnest { input, columns, outer } => {
            let outer = if *outer { " outer" } else { "" };
            let lists: Vec<String> = columns.iter().map(|column| name(&input.schema, *column)).collect();
            format!("Unnest{outer} {}", lists.join(", "))
        }
        Node::Join { .. } => join(plan),
        Node::Asof { left, right, asof } => explain_rows::asof(plan, left, right, asof),
        Node::Aggregate { input, keys, calls } => aggregate(plan, input, keys, calls),
        Node::Distinct { .. } => format!("Distinct [{}]", names(&plan.schema)),
        Node::TopK { input, top } => top_k(&input.schema, top),
        Node::Session { input, session } => explain_rows::session(plan, input, session),
        Node::Recognize { input, recognize } => explain_rows::recognize(input, recognize),
        Node::Window { input, window } => explain_rows::window(plan, input, window),
        Node::Union { inputs } => format!("Union of {} [{}]", inputs.len(), names(&plan.schema)),
        Node::SetOperation { operation, .. } => {
            let word = match operation {
                SetOperation::Except => "Except",
                SetOperation::ExceptAll => "Except all",
                SetOperation::Intersect => "Intersect",
                SetOperation::IntersectAll => "Intersect all",
            };
            format!("{word} [{}]", names(&plan.schema))
        }
        Node::Temporal { verb, inputs } => explain_temporal::line(plan, verb, inputs),
        Node::Recursive(recursive) => {
            let variables = list(recursive.bindings.iter().map(|binding| binding.name.clone()));
            format!("Recursive {variables}{} [{}]", round_limit(recursive.limit), names(&plan.schema))
        }
        Node::Variable { depth, index } => format!("Variable {depth}.{index} [{}]", names(&plan.schema)),
    }
}

fn round_limit(limit: RoundLimit) -> String {
    match limit {
        RoundLimit::None => String::new(),
        RoundLimit::Error(rounds) => format!(", error after {rounds} rounds"),
        RoundLimit::Return(rounds) => format!(", return after {rounds} rounds"),
    }
}

pub(crate) fn name(schema: &DFSchema, at: usize) -> String {
    schema.field(at).name().clone()
}

pub(crate) fn names(schema: &DFSchema) -> String {
    list(schema.fields().iter().map(|field| field.name().clone()))
}

fn constant(rows: &[Vec<ScalarValue>]) -> String {
    let shown = list(rows.iter().take(ROWS_SHOWN_MAX).map(|row| format!("({})", list(row.iter().map(shown_literal)))));
    match rows.len() {
        0 => "no rows".into(),
        n if n > ROWS_SHOWN_MAX => format!("{shown}, .. {n} rows"),
        _ => shown,
    }
}

/// A literal; of a long array its beginning.
fn shown_literal(value: &ScalarValue) -> String {
    let text = literal(value);
    match text.char_indices().nth(ARRAY_CHARS_MAX) {
        Some((end, _)) if matches!(value, ScalarValue::List(_)) => format!("{}..", &text[..end]),
        _ => text,
    }
}

fn stage(plan: &Plan, input: &Plan, filter: &[Expr], project: &[Expr]) -> String {
    let mut out = String::from("Stage");
    if !filter.is_empty() {
        let level = if filter.len() > 1 { precedence(Operator::And) } else { 0 };
        let parts: Vec<String> = filter.iter().map(|e| bound(e).within(level)).collect();
        let _ = write!(out, " where {}", parts.join(" and "));
    }
    let columns = project.iter().zip(plan.schema.fields()).map(|(expr, field)| {
        let text = expression(expr);
        if text == *field.name() { text } else { format!("{text} as {}", field.name()) }
    });
    let same = project.len() == input.schema.fields().len()
        && project.iter().enumerate().all(|(n, e)| matches!(e, Expr::Column(c) if c.name == name(&input.schema, n)));
    if !same || filter.is_empty() {
        let _ = write!(out, " [{}]", list(columns));
    }
    out
}

fn join(plan: &Plan) -> String {
    let Node::Join { left, right, kind, left_key, right_key, nulls, residual, .. } = &plan.node else {
        return String::new();
    };
    let kind = match kind {
        JoinKind::Inner if left_key.is_empty() && residual.is_none() => "cross",
        JoinKind::Inner => "inner",
        JoinKind::Left => "left",
        JoinKind::Right => "right",
        JoinKind::Full => "full",
        JoinKind::LeftSemi => "semi",
        JoinKind::LeftAnti => "anti",
        JoinKind::LeftAntiNullAware => "anti, null aware,",
        JoinKind::LeftMark => "mark",
    };
    let mut out = format!("Join {kind}");
    let equals = equals(*nulls);
    let keys: Vec<String> = left_key
        .iter()
        .zip(right_key)
        .map(|(l, r)| format!("{} {equals} {}", name(&left.schema, *l), name(&right.schema, *r)))
        .collect();
    if !keys.is_empty() {
        let _ = write!(out, " on {}", keys.join(" and "));
    }
    if let Some(residual) = residual {
        let _ = write!(out, " where {}", expression(residual));
    }
    let _ = write!(out, " [{}]", names(&plan.schema));
    out
}

/// How keys compare.
pub(crate) fn equals(nulls: Nulls) -> &'static str {
    match nulls {
        Nulls::Differ => "=",
        Nulls::Equal => "is not distinct from",
    }
}

fn aggregate(plan: &Plan, input: &Plan, keys: &[usize], calls: &[AggregateCall]) -> String {
    let mut out = String::from("Aggregate");
    if !keys.is_empty() {
        let _ = write!(out, " by {}", list(keys.iter().map(|at| name(&input.schema, *at))));
    }
    let calls = calls.iter().zip(plan.schema.fields().iter().skip(keys.len())).map(|(call, field)| {
        let text = aggregate_call(&input.schema, call);
        if text == *field.name() { text } else { format!("{text} as {}", field.name()) }
    });
    let _ = write!(out, " [{}]", list(calls));
    out
}

pub(crate) fn aggregate_call(input: &DFSchema, call: &AggregateCall) -> String {
    let mut inside = String::new();
    if call.distinct {
        inside.push_str("distinct ");
    }
    inside.push_str(&call.argument.map_or("*".to_string(), |at| name(input, at)));
    match &call.function {
        AggregateFunction::StringAgg(separator) => _ = write!(inside, ", {}", quoted(separator)),
        AggregateFunction::PercentileCont(part) | AggregateFunction::PercentileDisc(part) => {
            _ = write!(inside, ", {}", part.get());
        }
        AggregateFunction::TopK(k) => _ = write!(inside, ", {k}"),
        AggregateFunction::Custom(_, further) => {
            further.iter().for_each(|&at| _ = write!(inside, ", {}", name(input, at)));
        }
        _ => {}
    }
    if !call.order.is_empty() {
        let _ = write!(inside, " order by {}", order(input, &call.order));
    }
    let mut out = format!("{}({inside})", call.function.name());
    if let Some(filter) = call.filter {
        let _ = write!(out, " filter ({})", name(input, filter));
    }
    out
}

fn top_k(input: &DFSchema, top: &TopK) -> String {
    let mut out = String::from("TopK");
    if let Some(limit) = top.limit {
        let _ = write!(out, " {limit}");
    }
    if top.offset > 0 {
        let _ = write!(out, " offset {}", top.offset);
    }
    if !top.group.is_empty() {
        let _ = write!(out, " by {}", list(top.group.iter().map(|at| name(input, *at))));
    }
    if !top.order.is_empty() {
        let _ = write!(out, " order by {}", order(input, &top.order));
    }
    out.push_str(match top.ranked {
        RankedBy::Row => "",
        RankedBy::Rank => " with ties",
        RankedBy::DenseRank => " by groups of ties",
    });
    if top.numbered {
        out.push_str(" numbered");
    }
    out
}

/// Sort keys by name; what SQL takes for granted is left out.
pub fn order(input: &DFSchema, keys: &[SortKey]) -> String {
    list(keys.iter().map(|key| {
        let direction = if key.descending { " desc" } else { "" };
        let nulls = match (key.nulls_first, key.descending) {
            (true, false) => " nulls first",
            (false, true) => " nulls last",
            _ => "",
        };
        format!("{}{direction}{nulls}", name(input, key.column))
    }))
}

/// An expression for people, and how tightly it binds.
fn bound(expr: &Expr) -> BoundText {
    BoundText { text: expression(expr), level: level_of(expr) }
}
