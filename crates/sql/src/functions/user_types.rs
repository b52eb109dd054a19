//! What casts to domains and enumerations mean, and the order of enumerations.
//!
//! ```text
//! x::mood      __enum_in(x::text, 'mood', labels)              the text, marked, if it is a label
//! x::posint    __domain_in(x::int, x::int > 0, 'problem', ..)  the value, if no test is false
//! a.m < b.m    __enum_order(a.m, labels) < __enum_order(b.m, labels)
//! ```

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, AsArray, Int32Array, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Int32Type};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue, exec_err, plan_err};
use datafusion_expr::expr::{AggregateFunction, Between, Sort};
use datafusion_expr::planner::RawBinaryExpr;
use datafusion_expr::sqlparser::ast::BinaryOperator;
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};

use crate::error::SqlError;
use crate::functions::table::{FUNCTIONS, call};
use crate::resolve::type_names::is_text;
use crate::resolve::user_types::EnumMark;

const ENUM_IN: &str = "__enum_in";
const ENUM_ORDER: &str = "__enum_order";
const ENUM_LABEL: &str = "__enum_label";
const DOMAIN_IN: &str = "__domain_in";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Verb {
    EnumIn,
    EnumOrder,
    EnumLabel,
    DomainIn,
}

#[derive(Debug)]
struct TypeFunction {
    verb: Verb,
    signature: Signature,
}

/// All functions of this module.
pub(crate) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
    [Verb::EnumIn, Verb::EnumOrder, Verb::EnumLabel, Verb::DomainIn].into_iter().map(|verb| {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Arc::new(ScalarUDF::from(TypeFunction { verb, signature }))
    })
}

impl PartialEq for TypeFunction {
    fn eq(&self, other: &Self) -> bool {
        self.verb == other.verb
    }
}

impl Eq for TypeFunction {}

impl Hash for TypeFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.verb.hash(state);
    }
}

fn text_of(value: Option<&ScalarValue>) -> String {
    value.and_then(|value| value.try_as_str().flatten()).unwrap_or_default().to_owned()
}

impl ScalarUDFImpl for TypeFunction {
    fn name(&self) -> &str {
        match self.verb {
            Verb::EnumIn => ENUM_IN,
            Verb::EnumOrder => ENUM_ORDER,
            Verb::EnumLabel => ENUM_LABEL,
            Verb::DomainIn => DOMAIN_IN,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        Ok(match self.verb {
            Verb::EnumIn | Verb::EnumLabel => DataType::Utf8View,
            Verb::EnumOrder => DataType::Int32,
            Verb::DomainIn => types.first().cloned().unwrap_or(DataType::Null),
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let argument = |at: usize| text_of(args.scalar_arguments.get(at).copied().flatten());
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.name(), self.return_type(&types)?, true);
        Ok(match self.verb {
            Verb::EnumIn | Verb::EnumLabel => {
                Arc::new(EnumMark { name: argument(1), labels: argument(2) }.declare(field))
            }
            Verb::EnumOrder => Arc::new(field),
            Verb::DomainIn => Arc::new(field.with_metadata(args.arg_fields[0].metadata().clone())),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let constant = |at: usize| match args.args.get(at) {
            Some(ColumnarValue::Scalar(value)) => text_of(Some(value)),
            Some(ColumnarValue::Array(values)) if !values.is_empty() => {
                text_of(ScalarValue::try_from_array(values, 0).ok().as_ref())
            }
            _ => String::new(),
        };
        match self.verb {
            Verb::EnumIn => {
                let mark = EnumMark { name: constant(1), labels: constant(2) };
                let values = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Utf8View)?;
                match values.as_string_view().iter().flatten().find(|text| mark.place(text).is_none()) {
                    Some(text) => exec_err!("{}", mark.misfit(text)),
                    None => Ok(ColumnarValue::Array(values)),
                }
            }
            Verb::EnumOrder => {
                let mark = EnumMark { name: String::new(), labels: constant(1) };
                let values = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Utf8View)?;
                let places = values.as_string_view().iter().map(|text| mark.place(text?).map(|place| place as i32));
                Ok(ColumnarValue::Array(Arc::new(places.collect::<Int32Array>())))
            }
            Verb::EnumLabel => {
                let mark = EnumMark { name: constant(1), labels: constant(2) };
                let labels: Vec<&str> = mark.labels().collect();
                let places = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Int32)?;
                let places = places.as_primitive::<Int32Type>().iter();
                let texts = places.map(|place| labels.get(usize::try_from(place?).ok()?).copied());
                Ok(ColumnarValue::Array(Arc::new(texts.collect::<StringViewArray>())))
            }
            Verb::DomainIn => {
                for at in (1..args.args.len().saturating_sub(1)).step_by(2) {
                    let passes = cast(&args.args[at].to_array(args.number_rows)?, &DataType::Boolean)?;
                    let passes = passes.as_boolean();
                    if (0..passes.len()).any(|row| passes.is_valid(row) && !passes.value(row)) {
                        return exec_err!("{}", constant(at + 1));
                    }
                }
                Ok(args.args.into_iter().next().unwrap_or(ColumnarValue::Scalar(ScalarValue::Null)))
            }
        }
    }
}

/// The enumeration that a value is of.
fn mark_of(value: &Expr, schema: &DFSchema) -> Option<EnumMark> {
    let marked = value.to_field(schema).ok().and_then(|(_, field)| EnumMark::of(&field));
    marked.or_else(|| match value {
        Expr::Case(case) => {
            let mut chosen = case.when_then_expr.iter().map(|(_, then)| then.as_ref()).chain(case.else_expr.as_deref());
            chosen.find_map(|value| mark_of(value, schema))
        }
        Expr::ScalarFunction(call) if matches!(call.func.name(), "coalesce" | "nullif") => {
            call.args.iter().find_map(|value| mark_of(value, schema))
        }
        Expr::Alias(alias) => mark_of(&alias.expr, schema),
        _ => None,
    })
}

/// The place of a value among its labels.
fn order_of(value: Expr, mark: &EnumMark) -> Expr {
    call(ENUM_ORDER, vec![value, lit(ScalarValue::Utf8View(Some(mark.labels.clone())))])
}

/// A value of an enumeration, marked.
fn marked(function: &str, value: Expr, mark: &EnumMark) -> Expr {
    let text = |text: &String| lit(ScalarValue::Utf8View(Some(text.clone())));
    call(function, vec![value, text(&mark.name), text(&mark.labels)])
}

/// What a sort by the value compares.
pub(crate) fn sort_key(value: Expr, field: Option<&Field>) -> Expr {
    match field.and_then(EnumMark::of) {
        Some(mark) => order_of(value, &mark),
        None => value,
    }
}

/// Refuses a literal that is no label.
fn check(value: &Expr, mark: &EnumMark) -> DfResult<()> {
    let Expr::Literal(literal, _) = value else { return Ok(()) };
    match literal.try_as_str().flatten() {
        Some(text) if mark.place(text).is_none() => plan_err!("{}", mark.misfit(text)),
        _ => Ok(()),
    }
}

/// A comparison of values of an enumeration; `None` leaves the operator to others.
///
/// # Errors
/// A literal that is no label; two enumerations.
pub(crate) fn plan(
    expr: &RawBinaryExpr,
    left: &DataType,
    right: &DataType,
    schema: &DFSchema,
) -> DfResult<Option<Expr>> {
    use BinaryOperator as Op;
    let is_compared = matches!(expr.op, Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq);
    if !is_compared || !is_text(left) && !is_text(right) {
        return Ok(None);
    }
    let (of_left, of_right) = (mark_of(&expr.left, schema), mark_of(&expr.right, schema));
    let mark = match (&of_left, &of_right) {
        (Some(left), Some(right)) if left.name != right.name => {
            return plan_err!("operator does not exist: {} {} {}", left.name, expr.op, right.name);
        }
        (Some(mark), _) | (None, Some(mark)) => mark,
        (None, None) => return Ok(None),
    };
    check(&expr.left, mark)?;
    check(&expr.right, mark)?;
    let (left, right) = (expr.left.clone(), expr.right.clone());
    let (left_place, right_place) = (order_of(left.clone(), mark), order_of(right.clone(), mark));
    Ok(match expr.op {
        Op::Lt => Some(left_place.lt(right_place)),
        Op::LtEq => Some(left_place.lt_eq(right_place)),
        Op::Gt => Some(left_place.gt(right_place)),
        Op::GtEq => Some(left_place.gt_eq(right_place)),
        // (Equal labels are equal texts.)
        _ => None,
    })
}

/// BETWEEN, min and max of an enumeration by the order of its labels.
///
/// # Errors
/// A literal that is no label; functions that would choose by the order of texts.
pub(crate) fn in_order(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::Between(Between { expr, negated, low, high }) => {
            let Some(mark) = mark_of(&expr, schema) else {
                return Ok(Transformed::no(Expr::Between(Between { expr, negated, low, high })));
            };
            check(&low, &mark)?;
            check(&high, &mark)?;
            let place = |value: Box<Expr>| Box::new(order_of(*value, &mark));
            let (expr, low, high) = (place(expr), place(low), place(high));
            Ok(Transformed::yes(Expr::Between(Between { expr, negated, low, high })))
        }
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            let is_max = func.name() == "max";
            let mark = match params.args.as_slice() {
                [value] if is_max || func.name() == "min" => mark_of(value, schema),
                _ => None,
            };
            let (Some(mark), Some(first)) = (mark, FUNCTIONS.aggregate.get("first_value")) else {
                return Ok(Transformed::no(Expr::AggregateFunction(AggregateFunction { func, params })));
            };
            let value = params.args[0].clone();
            params.order_by = vec![Sort::new(order_of(value.clone(), &mark), !is_max, false)];
            let is_there = value.is_not_null();
            let filter = params.filter.take().map_or(is_there.clone(), |filter| filter.and(is_there));
            params.filter = Some(Box::new(filter));
            params.distinct = false;
            Ok(Transformed::yes(Expr::AggregateFunction(AggregateFunction { func: first.clone(), params })))
        }
        Expr::WindowFunction(call) => {
            let by_order = matches!(call.fun.name(), "min" | "max");
            match call.params.args.first().filter(|_| by_order).and_then(|value| mark_of(value, schema)) {
                Some(mark) => Err(unsupported(&format!("{}() OVER of {}", call.fun.name(), mark.name))),
                None => Ok(Transformed::no(Expr::WindowFunction(call))),
            }
        }
        Expr::ScalarFunction(mut chosen) if matches!(chosen.func.name(), "greatest" | "least") => {
            let Some(mark) = chosen.args.iter().find_map(|value| mark_of(value, schema)) else {
                return Ok(Transformed::no(Expr::ScalarFunction(chosen)));
            };
            chosen.args.iter().try_for_each(|value| check(value, &mark))?;
            chosen.args = chosen.args.into_iter().map(|value| order_of(value, &mark)).collect();
            Ok(Transformed::yes(marked(ENUM_LABEL, Expr::ScalarFunction(chosen), &mark)))
        }
        // (What is chosen has the mark of what it is chosen from.)
        Expr::Case(_) | Expr::ScalarFunction(_) => {
            let is_marked = expr.to_field(schema).is_ok_and(|(_, field)| EnumMark::of(&field).is_some());
            match mark_of(&expr, schema).filter(|_| !is_marked) {
                Some(mark) => Ok(Transformed::yes(marked(ENUM_IN, expr, &mark))),
                None => Ok(Transformed::no(expr)),
            }
        }
        other => Ok(Transformed::no(other)),
    }
}

fn unsupported(what: &str) -> datafusion_common::DataFusionError {
    SqlError::unsupported(what, "Compare with CASE: CASE WHEN a > b THEN a ELSE b END.").into()
}
