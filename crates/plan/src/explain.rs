//! How a plan is shown to people: `EXPLAIN`.
//!
//! A tree, one node a line, inputs indented below; columns by name. A loop has a part for each
//! variable and one for its result; variables are shown by name. The text is a function of the plan
//! alone, so golden files hold it.

use std::fmt::Write as _;

use anabranch_batch::numeric;
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::{BinaryExpr, Expr, Operator};

use crate::ir::{JoinKind, Node, Plan, Recursive, SetOperation};
use crate::{explain_rows, explain_temporal};
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use anabranch_spec::limits::RoundLimit;
use anabranch_spec::order::{Nulls, SortKey};
use anabranch_spec::top_k::TopK;

/// Literal rows shown before the rest is counted.
const ROWS_SHOWN_MAX: usize = 3;

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

pub(crate) fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

fn constant(rows: &[Vec<ScalarValue>]) -> String {
    let shown = list(rows.iter().take(ROWS_SHOWN_MAX).map(|row| format!("({})", list(row.iter().map(literal)))));
    match rows.len() {
        0 => "no rows".into(),
        n if n > ROWS_SHOWN_MAX => format!("{shown}, .. {n} rows"),
        _ => shown,
    }
}

fn stage(plan: &Plan, input: &Plan, filter: &[Expr], project: &[Expr]) -> String {
    let mut out = String::from("Stage");
    if !filter.is_empty() {
        let level = if filter.len() > 1 { precedence(Operator::And) } else { 0 };
        let parts: Vec<String> = filter.iter().map(|e| operand(e, level)).collect();
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
    if top.row_number {
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

/// An expression as SQL, with only the parentheses it needs.
pub fn expression(expr: &Expr) -> String {
    match expr {
        Expr::Column(column) => match &column.relation {
            Some(side) => format!("{side}.{}", column.name),
            None => column.name.clone(),
        },
        Expr::Literal(value, _) => literal(value),
        Expr::Alias(alias) => expression(&alias.expr),
        Expr::BinaryExpr(binary) => binary_expr(binary),
        Expr::Not(inner) => format!("not {}", operand(inner, NOT)),
        Expr::Negative(inner) => format!("-{}", operand(inner, TIGHT)),
        Expr::IsNull(inner) => format!("{} is null", operand(inner, IS)),
        Expr::IsNotNull(inner) => format!("{} is not null", operand(inner, IS)),
        Expr::IsTrue(inner) => format!("{} is true", operand(inner, IS)),
        Expr::IsFalse(inner) => format!("{} is false", operand(inner, IS)),
        Expr::IsUnknown(inner) => format!("{} is unknown", operand(inner, IS)),
        Expr::IsNotTrue(inner) => format!("{} is not true", operand(inner, IS)),
        Expr::IsNotFalse(inner) => format!("{} is not false", operand(inner, IS)),
        Expr::IsNotUnknown(inner) => format!("{} is not unknown", operand(inner, IS)),
        Expr::Like(like) | Expr::SimilarTo(like) => {
            let not = if like.negated { "not " } else { "" };
            let word = match (expr, like.case_insensitive) {
                (Expr::SimilarTo(_), _) => "similar to",
                (_, true) => "ilike",
                _ => "like",
            };
            format!("{} {not}{word} {}", operand(&like.expr, IS), operand(&like.pattern, IS))
        }
        Expr::Between(between) => {
            let not = if between.negated { "not " } else { "" };
            format!(
                "{} {not}between {} and {}",
                operand(&between.expr, IS),
                operand(&between.low, IS),
                operand(&between.high, IS)
            )
        }
        Expr::InList(in_list) => {
            let not = if in_list.negated { "not " } else { "" };
            format!("{} {not}in ({})", operand(&in_list.expr, IS), list(in_list.list.iter().map(expression)))
        }
        Expr::Case(case) => {
            let mut out = String::from("case");
            if let Some(base) = &case.expr {
                let _ = write!(out, " {}", expression(base));
            }
            for (when, then) in &case.when_then_expr {
                let _ = write!(out, " when {} then {}", expression(when), expression(then));
            }
            if let Some(other) = &case.else_expr {
                let _ = write!(out, " else {}", expression(other));
            }
            out + " end"
        }
        Expr::Cast(cast) => format!("{}::{}", operand(&cast.expr, TIGHT), type_name(cast.field.data_type())),
        Expr::TryCast(cast) => {
            format!("try_cast({} as {})", expression(&cast.expr), type_name(cast.field.data_type()))
        }
        Expr::ScalarFunction(call) if let Some(op) = float_operator(call.name()).filter(|_| call.args.len() == 2) => {
            let level = precedence(op);
            format!("{} {op} {}", operand(&call.args[0], level), operand(&call.args[1], level + 1))
        }
        Expr::ScalarFunction(call) => format!("{}({})", call.name(), list(call.args.iter().map(expression))),
        other => other.to_string(),
    }
}

/// The operator that a function of floats is, which minds zero and the end of the type.
fn float_operator(name: &str) -> Option<Operator> {
    Some(match name {
        "float_add" => Operator::Plus,
        "float_subtract" => Operator::Minus,
        "float_multiply" => Operator::Multiply,
        "float_divide" => Operator::Divide,
        _ => return None,
    })
}

const NOT: u8 = 15;
const IS: u8 = 25;
const TIGHT: u8 = 100;

/// How tightly an operator binds, as in PostgreSQL.
fn precedence(operator: Operator) -> u8 {
    match operator {
        Operator::Or => 5,
        Operator::And => 10,
        Operator::Eq
        | Operator::NotEq
        | Operator::Lt
        | Operator::LtEq
        | Operator::Gt
        | Operator::GtEq
        | Operator::IsDistinctFrom
        | Operator::IsNotDistinctFrom => 20,
        Operator::Plus | Operator::Minus => 40,
        Operator::Multiply | Operator::Divide | Operator::Modulo => 45,
        _ => 30,
    }
}

fn binary_expr(binary: &BinaryExpr) -> String {
    let level = precedence(binary.op);
    let word = match binary.op {
        Operator::And => "and".to_string(),
        Operator::Or => "or".to_string(),
        Operator::NotEq => "<>".to_string(),
        Operator::IsDistinctFrom => "is distinct from".to_string(),
        Operator::IsNotDistinctFrom => "is not distinct from".to_string(),
        other => other.to_string().to_lowercase(),
    };
    // Operators of one level associate to the left.
    format!("{} {word} {}", operand(&binary.left, level), operand(&binary.right, level + 1))
}

/// An operand, in parentheses if it binds less tightly than `level`.
fn operand(expr: &Expr, level: u8) -> String {
    let own = match expr {
        Expr::BinaryExpr(binary) => precedence(binary.op),
        Expr::ScalarFunction(call) if let Some(op) = float_operator(call.name()) => precedence(op),
        Expr::Not(_) => NOT,
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::Like(_)
        | Expr::SimilarTo(_)
        | Expr::Between(_)
        | Expr::InList(_) => IS,
        Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_) => IS,
        _ => TIGHT + 1,
    };
    let text = expression(expr);
    if own < level { format!("({text})") } else { text }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A literal as SQL writes it.
pub fn literal(value: &ScalarValue) -> String {
    if value.is_null() {
        return "null".into();
    }
    match value {
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)) => {
            quoted(text)
        }
        ScalarValue::Boolean(Some(value)) => value.to_string(),
        ScalarValue::Decimal128(Some(value), _, scale) => decimal(*value, *scale),
        ScalarValue::LargeBinary(Some(bytes)) => {
            numeric::decode(bytes).map_or_else(|| shown(value), |number| number.to_string())
        }
        ScalarValue::Date32(_) => format!("date '{value}'"),
        ScalarValue::TimestampMicrosecond(_, None) => format!("timestamp '{}'", shown(value)),
        ScalarValue::TimestampMicrosecond(_, Some(_)) => format!("timestamptz '{}'", shown(value)),
        ScalarValue::IntervalMonthDayNano(_) | ScalarValue::IntervalDayTime(_) | ScalarValue::IntervalYearMonth(_) => {
            format!("interval '{}'", shown(value))
        }
        other => shown(other),
    }
}

fn shown(value: &ScalarValue) -> String {
    let printed = value.to_array().ok().and_then(|array| arrow::util::display::array_value_to_string(&array, 0).ok());
    printed.unwrap_or_else(|| value.to_string())
}

fn decimal(value: i128, scale: i8) -> String {
    let Ok(places) = usize::try_from(scale) else {
        return value.to_string();
    };
    if places == 0 {
        return value.to_string();
    }
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{whole}.{fraction}")
}

/// The SQL name of a type.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8 => "text".into(),
        DataType::Int16 => "smallint".into(),
        DataType::Int32 => "integer".into(),
        DataType::Int64 => "bigint".into(),
        DataType::Float32 => "real".into(),
        DataType::Float64 => "double".into(),
        DataType::Boolean => "boolean".into(),
        DataType::Date32 => "date".into(),
        DataType::BinaryView | DataType::Binary => "bytea".into(),
        DataType::LargeBinary => "numeric".into(),
        DataType::Decimal128(precision, scale) => format!("numeric({precision},{scale})"),
        DataType::Time64(TimeUnit::Microsecond) => "time".into(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp".into(),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamptz".into(),
        DataType::Interval(IntervalUnit::MonthDayNano) => "interval".into(),
        other => other.to_string().to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use datafusion_expr::{col, lit};

    use super::*;

    #[test]
    fn parentheses_stand_where_precedence_asks_for_them() {
        let sum = (col("a") + col("b")) * col("c");
        assert_eq!(expression(&sum), "(a + b) * c");
        let difference = col("a") - (col("b") - col("c"));
        assert_eq!(expression(&difference), "a - (b - c)");
        let logic = col("a").or(col("b")).and(col("c").eq(lit(1i64)));
        assert_eq!(expression(&logic), "(a or b) and c = 1");
    }

    #[test]
    fn literals_are_sql() {
        assert_eq!(literal(&ScalarValue::Decimal128(Some(-5), 3, 2)), "-0.05");
        assert_eq!(literal(&ScalarValue::Utf8View(Some("it's".into()))), "'it''s'");
        assert_eq!(literal(&ScalarValue::Int64(None)), "null");
        assert_eq!(literal(&ScalarValue::Date32(Some(0))), "date '1970-01-01'");
    }
}
