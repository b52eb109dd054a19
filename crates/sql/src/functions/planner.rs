//! The operators that PostgreSQL types otherwise than DataFusion.

use std::sync::Arc;

use anabranch_batch::numeric::TYPE;
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue, plan_err};
use datafusion_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion_expr::planner::{
    ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr, RawFieldAccessExpr, RawWindowExpr,
};
use datafusion_expr::sqlparser::ast::BinaryOperator;
use datafusion_expr::{
    BinaryExpr, Expr, ExprSchemable, Operator, WindowFrame, WindowFrameBound, WindowFrameUnits, cast,
};

use crate::functions::extract::{DatePart, Extract, PartForm};
use crate::functions::numerics::{joined_text, plain_comparison, plain_operation};
use crate::functions::table::call;
use crate::functions::wholes::{date_minus_date, date_minus_days, date_plus_days, exclusive_or, shift_bits};
use crate::functions::{json, operators};
use crate::passes::expr::quoted_literals::read_literal;
use crate::passes::tree::distinct_from::{IS_DISTINCT, IS_NOT_DISTINCT};
use crate::resolve::operands::{marked_type, operand_name};
use crate::resolve::type_names::{is_number, is_text, sql_name};
use crate::time::functions::{interval_divide, interval_times};

/// The type of intervals.
const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// DataFusion's planners of special syntax, ours first.
pub(crate) fn expr_planners() -> Vec<Arc<dyn ExprPlanner>> {
    vec![
        Arc::new(PostgresPlanner),
        Arc::new(datafusion_functions::core::planner::CoreFunctionPlanner::default()),
        Arc::new(datafusion_functions::datetime::planner::DatetimeFunctionPlanner),
        Arc::new(datafusion_functions::unicode::planner::UnicodeFunctionPlanner),
        Arc::new(datafusion_functions_nested::planner::NestedFunctionPlanner),
        Arc::new(datafusion_functions_nested::planner::FieldAccessPlanner),
        Arc::new(datafusion_functions_aggregate::planner::AggregateFunctionPlanner),
        Arc::new(datafusion_functions_window::planner::WindowFunctionPlanner),
    ]
}

/// Whether two literals have more digits together than a decimal has.
fn is_long_product(expr: &RawBinaryExpr, left: &DataType, right: &DataType) -> bool {
    let digits = |value: &Expr, is: &DataType| match (value, is) {
        (Expr::Literal(..), DataType::Decimal128(precision, _) | DataType::Decimal256(precision, _)) => {
            Some(*precision)
        }
        _ => None,
    };
    match (digits(&expr.left, left), digits(&expr.right, right)) {
        (Some(left), Some(right)) => u32::from(left) + u32::from(right) > 38,
        _ => false,
    }
}

/// Operators on dates and times, parts of moments, and the types of `row_number()` and the ranks,
/// as in PostgreSQL.
#[derive(Debug)]
struct PostgresPlanner;

impl ExprPlanner for PostgresPlanner {
    /// (Ours reads literals as what they stand beside.)
    fn plan_array_literal(&self, exprs: Vec<Expr>, _schema: &DFSchema) -> DfResult<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(call("make_array", exprs)))
    }

    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> DfResult<PlannerResult<RawBinaryExpr>> {
        let (Ok(left), Ok(right)) = (expr.left.get_type(schema), expr.right.get_type(schema)) else {
            return Ok(PlannerResult::Original(expr));
        };
        if let Some(op) = distinct_operator(&expr.op) {
            let compared = plain_comparison(&expr.left, &expr.right, (&left, &right));
            let (left, right) = compared.unwrap_or((expr.left, expr.right));
            let test = Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)));
            return Ok(PlannerResult::Planned(test));
        }
        if let Some(shifted) = shift_bits(&expr.op, &expr.left, &expr.right, schema) {
            return Ok(PlannerResult::Planned(shifted));
        }
        if let Some(planned) = exclusive_or(&expr.op, &expr.left, &expr.right) {
            return Ok(PlannerResult::Planned(planned));
        }
        let (expr, left, right) = read_operands(expr, left, right);
        if let Some(planned) = date_arithmetic(&expr, &left, &right) {
            return Ok(PlannerResult::Planned(planned));
        }
        if let Some(planned) = json::operators::plan(&expr, &left, &right, schema)? {
            return Ok(PlannerResult::Planned(planned));
        }
        refuse_joined(&expr, &left, &right, schema)?;
        if expr.op == BinaryOperator::StringConcat
            && let Some(planned) = joined_text(&expr.left, &expr.right, (&left, &right))
        {
            return Ok(PlannerResult::Planned(planned));
        }
        if expr.op == BinaryOperator::StringConcat
            && (is_null_beside_scalar(&left, &right) || is_null_beside_scalar(&right, &left))
        {
            return Ok(PlannerResult::Planned(cast(Expr::Literal(ScalarValue::Null, None), DataType::Utf8View)));
        }
        if is_comparison(&expr.op)
            && let Some((left, right)) = plain_comparison(&expr.left, &expr.right, (&left, &right))
        {
            return Ok(PlannerResult::Original(RawBinaryExpr { op: expr.op, left, right }));
        }
        if let Some(op) = operator(&expr.op)
            && let Some(planned) = plain_operation(op, &expr.left, &expr.right, (&left, &right))
        {
            return Ok(PlannerResult::Planned(planned));
        }
        // (What is left are a plain numeric and a float.)
        let (expr, left, right) = match plain_comparison(&expr.left, &expr.right, (&left, &right)) {
            Some((l, r)) if operator(&expr.op).is_some() => {
                (RawBinaryExpr { op: expr.op, left: l, right: r }, DataType::Float64, DataType::Float64)
            }
            _ => (expr, left, right),
        };
        if expr.op == BinaryOperator::Multiply
            && is_long_product(&expr, &left, &right)
            && let Some(planned) = plain_operation(
                Operator::Multiply,
                &cast(expr.left.clone(), TYPE),
                &cast(expr.right.clone(), TYPE),
                (&TYPE, &TYPE),
            )
        {
            return Ok(PlannerResult::Planned(planned));
        }
        match operators::plan(&expr, &left, &right) {
            Some(planned) => Ok(PlannerResult::Planned(planned)),
            None if let BinaryOperator::Custom(name) = &expr.op => {
                plan_err!("operator does not exist: {} {name} {}", sql_name(&left), sql_name(&right))
            }
            None => Ok(PlannerResult::Original(expr)),
        }
    }

    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> DfResult<PlannerResult<RawFieldAccessExpr>> {
        operators::plan_access(access, schema)
    }

    fn plan_substring(&self, args: Vec<Expr>) -> DfResult<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(call("substr", args)))
    }

    fn plan_overlay(&self, args: Vec<Expr>) -> DfResult<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(call("overlay", args)))
    }

    fn plan_position(&self, args: Vec<Expr>) -> DfResult<PlannerResult<Vec<Expr>>> {
        // (The parser gives `position(x IN y)` as *y*, *x*.)
        Ok(PlannerResult::Planned(call("strpos", args)))
    }

    fn plan_extract(&self, args: Vec<Expr>) -> DfResult<PlannerResult<Vec<Expr>>> {
        let part = match args.as_slice() {
            [Expr::Literal(name, _), _] => name.try_as_str().flatten().and_then(DatePart::named),
            _ => None,
        };
        match part {
            Some(part) => Ok(PlannerResult::Planned(Extract::udf(part, PartForm::Numeric).call(args[1..].to_vec()))),
            None => Ok(PlannerResult::Original(args)),
        }
    }

    /// DataFusion tells the results of two calls apart by a name in which casts do not appear, so
    /// that `sum(a)` and `sum(a::numeric)` would be one column.
    fn plan_aggregate(&self, mut raw: RawAggregateExpr) -> DfResult<PlannerResult<RawAggregateExpr>> {
        name_casts(&mut raw.args)?;
        Ok(PlannerResult::Original(raw))
    }

    fn plan_window(&self, mut raw: RawWindowExpr) -> DfResult<PlannerResult<RawWindowExpr>> {
        name_casts(&mut raw.args)?;
        if IGNORING_FRAMES.contains(&raw.func_def.name()) {
            // (DataFusion has no ranges of times, intervals and bytes.)
            let first = WindowFrameBound::Preceding(ScalarValue::UInt64(None));
            raw.window_frame = WindowFrame::new_bounds(WindowFrameUnits::Rows, first, WindowFrameBound::CurrentRow);
        } else if raw.window_frame.units == WindowFrameUnits::Range && !raw.order_by.is_empty() {
            raw.window_frame = in_groups(raw.window_frame);
        }
        let wanted = match raw.func_def.name() {
            "row_number" | "rank" | "dense_rank" => DataType::Int64,
            "ntile" => DataType::Int32,
            _ => return Ok(PlannerResult::Original(raw)),
        };
        let function = Expr::from(WindowFunction {
            fun: raw.func_def,
            params: WindowFunctionParams {
                args: raw.args,
                partition_by: raw.partition_by,
                order_by: raw.order_by,
                window_frame: raw.window_frame,
                filter: raw.filter,
                null_treatment: raw.null_treatment,
                distinct: raw.distinct,
            },
        });
        Ok(PlannerResult::Planned(cast(function, wanted)))
    }
}

/// Window functions to which their frame is nothing.
const IGNORING_FRAMES: [&str; 8] =
    ["row_number", "rank", "dense_rank", "ntile", "lag", "lead", "percent_rank", "cume_dist"];

/// A range without offsets reaches whole groups of peers: as groups it needs no arithmetic on the
/// order's type.
fn in_groups(frame: WindowFrame) -> WindowFrame {
    let is_plain = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => true,
        WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset) => offset.is_null(),
    };
    if !is_plain(&frame.start_bound) || !is_plain(&frame.end_bound) {
        return frame;
    }
    let unbounded = |bound: WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
        WindowFrameBound::Preceding(_) => WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
        WindowFrameBound::Following(_) => WindowFrameBound::Following(ScalarValue::UInt64(None)),
    };
    WindowFrame::new_bounds(WindowFrameUnits::Groups, unbounded(frame.start_bound), unbounded(frame.end_bound))
}

/// Gives arguments with a cast in them a name in which it appears.
fn name_casts(args: &mut [Expr]) -> DfResult<()> {
    for arg in args {
        if arg.exists(|part| Ok(matches!(part, Expr::Cast(_) | Expr::TryCast(_))))? {
            *arg = arg.clone().alias(arg.to_string());
        }
    }
    Ok(())
}

/// A literal in quotes has the type that PostgreSQL finds for it, where DataFusion would refuse the
/// operator.
fn read_operands(
    mut expr: RawBinaryExpr,
    mut left: DataType,
    mut right: DataType,
) -> (RawBinaryExpr, DataType, DataType) {
    use BinaryOperator::{Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Multiply, NotEq, Plus};
    let read = |literal: &mut Expr, is: &mut DataType, beside: &DataType| {
        let wanted = match (&expr.op, beside) {
            (Plus, DataType::Timestamp(..) | DataType::Interval(_)) => &INTERVAL,
            (Minus, DataType::Date32 | DataType::Timestamp(..) | DataType::Interval(_)) => beside,
            (Plus | Minus | Multiply | Divide, number) if is_number(number) => beside,
            (Eq | NotEq | Lt | LtEq | Gt | GtEq, DataType::Interval(_) | DataType::Boolean | DataType::LargeBinary) => {
                beside
            }
            _ => return,
        };
        if let Some((read, typed)) = read_literal(literal, std::slice::from_ref(wanted)) {
            (*literal, *is) = (read, typed);
        }
    };
    read(&mut expr.right, &mut right, &left);
    read(&mut expr.left, &mut left, &right);
    (expr, left, right)
}

/// A plain numeric as the float that functions of floats take; others are cast by the planner.
fn float(value: &Expr, is: &DataType) -> Expr {
    if *is == TYPE { cast(value.clone(), DataType::Float64) } else { value.clone() }
}

/// Whether values are compared.
fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// Refuses `||` of two values of which neither is a text, an array or bytes.
fn refuse_joined(expr: &RawBinaryExpr, left: &DataType, right: &DataType, schema: &DFSchema) -> DfResult<()> {
    let is_joined = |side: &Expr, is: &DataType| {
        let is_made_of_parts = matches!(is, DataType::List(_) | DataType::Binary | DataType::BinaryView);
        is.is_null() || is_made_of_parts || is_text(is) && marked_type(side, schema).is_none()
    };
    if expr.op != BinaryOperator::StringConcat || is_joined(&expr.left, left) || is_joined(&expr.right, right) {
        return Ok(());
    }
    let (left, right) = (operand_name(&expr.left, schema), operand_name(&expr.right, schema));
    plan_err!("operator does not exist: {left} || {right}")
}

/// Whether NULL stands beside a value that is written as a text when it is joined with one.
fn is_null_beside_scalar(null: &DataType, beside: &DataType) -> bool {
    let is_written =
        is_number(beside) || matches!(beside, DataType::Boolean | DataType::Date32 | DataType::Timestamp(..));
    null.is_null() && is_written
}

/// The tests that `passes::tree::distinct_from` wrote as operators.
fn distinct_operator(op: &BinaryOperator) -> Option<Operator> {
    match op {
        BinaryOperator::Custom(name) if name == IS_DISTINCT => Some(Operator::IsDistinctFrom),
        BinaryOperator::Custom(name) if name == IS_NOT_DISTINCT => Some(Operator::IsNotDistinctFrom),
        _ => None,
    }
}

/// The operator of arithmetic.
fn operator(op: &BinaryOperator) -> Option<Operator> {
    Some(match op {
        BinaryOperator::Plus => Operator::Plus,
        BinaryOperator::Minus => Operator::Minus,
        BinaryOperator::Multiply => Operator::Multiply,
        BinaryOperator::Divide => Operator::Divide,
        BinaryOperator::Modulo => Operator::Modulo,
        _ => return None,
    })
}

/// Whether it is a literal in quotes, which has no type of its own.
fn is_quoted(value: &Expr) -> bool {
    matches!(value, Expr::Literal(ScalarValue::Utf8(Some(_)) | ScalarValue::Utf8View(Some(_)), _))
}

/// The midnight of a date; a timestamp as it is.
fn moment(value: &Expr, is: &DataType) -> Expr {
    match is {
        DataType::Date32 => cast(value.clone(), DataType::Timestamp(TimeUnit::Microsecond, None)),
        _ => value.clone(),
    }
}

/// `date + integer` and `date - integer` are dates, `date - date` is a number of days, and the
/// difference of two timestamps is an interval.
fn date_arithmetic(expr: &RawBinaryExpr, left: &DataType, right: &DataType) -> Option<Expr> {
    match (&expr.op, left, right) {
        (BinaryOperator::Plus, DataType::Date32, n) if n.is_integer() => Some(date_plus_days(&expr.left, &expr.right)),
        (BinaryOperator::Plus, n, DataType::Date32) if n.is_integer() => Some(date_plus_days(&expr.right, &expr.left)),
        (BinaryOperator::Minus, DataType::Date32, n) if n.is_integer() => {
            Some(date_minus_days(&expr.left, &expr.right))
        }
        (BinaryOperator::Minus, DataType::Date32, DataType::Date32) => Some(date_minus_date(&expr.left, &expr.right)),
        // (A time of day is what has passed since midnight.)
        (BinaryOperator::Plus, DataType::Date32 | DataType::Timestamp(..), DataType::Time64(_)) => {
            Some(moment(&expr.left, left) + cast(expr.right.clone(), INTERVAL))
        }
        (BinaryOperator::Plus, DataType::Time64(_), DataType::Date32 | DataType::Timestamp(..)) => {
            Some(moment(&expr.right, right) + cast(expr.left.clone(), INTERVAL))
        }
        // (Beside a sign of addition a time of day wants an interval.)
        (BinaryOperator::Plus, DataType::Time64(_), _) if is_quoted(&expr.right) => {
            Some(expr.left.clone() + cast(expr.right.clone(), INTERVAL))
        }
        (BinaryOperator::Plus, _, DataType::Time64(_)) if is_quoted(&expr.left) => {
            Some(expr.right.clone() + cast(expr.left.clone(), INTERVAL))
        }
        (BinaryOperator::Minus, DataType::Date32 | DataType::Timestamp(..), DataType::Time64(_)) => {
            Some(moment(&expr.left, left) - cast(expr.right.clone(), INTERVAL))
        }
        // (DataFusion's sum is a date: it would drop the hours.)
        (BinaryOperator::Plus, DataType::Date32, DataType::Interval(_)) => {
            Some(moment(&expr.left, left) + expr.right.clone())
        }
        (BinaryOperator::Plus, DataType::Interval(_), DataType::Date32) => {
            Some(expr.left.clone() + moment(&expr.right, right))
        }
        (BinaryOperator::Minus, DataType::Date32, DataType::Interval(_)) => {
            Some(moment(&expr.left, left) - expr.right.clone())
        }
        (BinaryOperator::Minus, DataType::Timestamp(..), DataType::Timestamp(..)) => {
            Some(cast(expr.left.clone() - expr.right.clone(), INTERVAL))
        }
        (BinaryOperator::Minus, DataType::Date32, DataType::Timestamp(..)) => {
            Some(cast(cast(expr.left.clone(), right.clone()) - expr.right.clone(), INTERVAL))
        }
        (BinaryOperator::Minus, DataType::Timestamp(..), DataType::Date32) => {
            Some(cast(expr.left.clone() - cast(expr.right.clone(), left.clone()), INTERVAL))
        }
        (BinaryOperator::Multiply, DataType::Interval(_), n) if is_number(n) => {
            Some(interval_times(expr.left.clone(), float(&expr.right, n)))
        }
        (BinaryOperator::Multiply, n, DataType::Interval(_)) if is_number(n) => {
            Some(interval_times(expr.right.clone(), float(&expr.left, n)))
        }
        (BinaryOperator::Divide, DataType::Interval(_), n) if is_number(n) => {
            Some(interval_divide(expr.left.clone(), float(&expr.right, n)))
        }
        _ => None,
    }
}
