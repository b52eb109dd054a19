//! Plain numerics among the arguments of functions, in the resolved plan.

use std::sync::Arc;

use anabranch_batch::numeric::TYPE;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, plan_err};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{Expr, ExprSchemable, ScalarUDF};

use super::choosing::{CHOOSING, MAKE_ARRAY};
use super::numerics::plain_among;
use super::of_numbers::{OF_PLAIN, is_ours};
use super::ordered_sets::PERCENTILE_CONT;
use crate::passes::expr::numbers::OF_DOUBLES;
use crate::resolve::common_types::float_of_numbers;
use crate::resolve::type_names::{is_number, sql_name};

/// An element beside a list of plain numerics is one.
fn read_elements(call: &mut ScalarFunction, types: &[DataType]) -> bool {
    let n_elements = n_elements(call.func.name());
    let mut is_changed = false;
    for (at, (arg, is)) in call.args.iter_mut().zip(types).enumerate().skip(1) {
        if is.is_decimal() || is.is_integer() && at <= n_elements {
            *arg = datafusion_expr::cast(std::mem::take(arg), TYPE);
            is_changed = true;
        }
    }
    is_changed
}

/// How many elements a function takes behind an array.
fn n_elements(function: &str) -> usize {
    match function {
        "array_has" | "array_append" | "array_position" | "array_positions" | "array_remove" => 1,
        "array_replace" => 2,
        _ => 0,
    }
}

/// Plain numerics among the arguments of a function, as the function takes them.
pub(crate) fn settle_arguments(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::ScalarFunction(mut call) => {
            let types = call.args.iter().map(|arg| arg.get_type(schema)).collect::<DfResult<Vec<_>>>()?;
            if let (true, Some(DataType::List(of))) = (call.func.name().starts_with("array_"), types.first())
                && *of.data_type() == TYPE
            {
                let is_changed = read_elements(&mut call, &types);
                let call = Expr::ScalarFunction(call);
                return Ok(if is_changed { Transformed::yes(call) } else { Transformed::no(call) });
            }
            if let ("__width_bucket", [is, DataType::List(of)]) = (call.func.name(), types.as_slice())
                && *of.data_type() == TYPE
                && is_number(is)
                && *is != TYPE
            {
                call.args[0] = datafusion_expr::cast(std::mem::take(&mut call.args[0]), TYPE);
                return Ok(Transformed::yes(Expr::ScalarFunction(call)));
            }
            if !types.contains(&TYPE) {
                return Ok(Transformed::no(Expr::ScalarFunction(call)));
            }
            let name = call.func.name();
            let wanted = if CHOOSING.contains(&name) || name == "coalesce" || name == MAKE_ARRAY {
                plain_among(&types).or_else(|| float_of_numbers(&types))
            } else if is_ours(name, &types) {
                None
            } else if OF_PLAIN.contains(&name) || OF_DOUBLES.contains(&name) {
                Some(DataType::Float64)
            } else if matches!(name, "concat" | "concat_ws") {
                Some(DataType::Utf8View)
            } else {
                check_arguments(&call.func, &types)?;
                None
            };
            let Some(wanted) = wanted else { return Ok(Transformed::no(Expr::ScalarFunction(call))) };
            let is_plain = wanted == TYPE;
            for (arg, is) in call.args.iter_mut().zip(&types) {
                let is_cast = if is_plain { is_number(is) && *is != TYPE } else { *is == TYPE };
                if is_cast {
                    *arg = datafusion_expr::cast(std::mem::take(arg), wanted.clone());
                }
            }
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        Expr::AggregateFunction(mut call) if is_of_floats(call.func.name()) => {
            let is_changed = as_float_arguments(&mut call.params.args, schema);
            let call = Expr::AggregateFunction(call);
            Ok(if is_changed { Transformed::yes(call) } else { Transformed::no(call) })
        }
        Expr::WindowFunction(mut call) if OF_FLOATS.contains(&call.fun.name()) => {
            let is_changed = as_float_arguments(&mut call.params.args, schema);
            let call = Expr::WindowFunction(call);
            Ok(if is_changed { Transformed::yes(call) } else { Transformed::no(call) })
        }
        other => Ok(Transformed::no(other)),
    }
}

fn is_of_floats(name: &str) -> bool {
    OF_FLOATS.contains(&name) || name == PERCENTILE_CONT
}

/// Aggregates that are computed of floats.
pub(crate) const OF_FLOATS: [&str; 5] = ["stddev", "stddev_pop", "var", "var_pop", "median"];

fn as_float_arguments(args: &mut [Expr], schema: &DFSchema) -> bool {
    let mut is_changed = false;
    for arg in args {
        if arg.get_type(schema).is_ok_and(|is| is == TYPE) {
            *arg = datafusion_expr::cast(std::mem::take(arg), DataType::Float64);
            is_changed = true;
        }
    }
    is_changed
}

/// Refuses a function that would take plain numerics for bytes.
fn check_arguments(function: &ScalarUDF, types: &[DataType]) -> DfResult<()> {
    let fields: Vec<FieldRef> = types.iter().map(|is| Arc::new(Field::new("", is.clone(), true)) as FieldRef).collect();
    let taken = fields_with_udf(&fields, function)?;
    if types.iter().zip(&taken).all(|(is, taken)| *is != TYPE || *taken.data_type() == TYPE) {
        return Ok(());
    }
    let types: Vec<String> = types.iter().map(sql_name).collect();
    plan_err!("function {}({}) does not exist", function.name(), types.join(", "))
}
