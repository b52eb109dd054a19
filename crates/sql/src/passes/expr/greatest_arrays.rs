//! `greatest` and `least` of arrays.

use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, plan_err};
use datafusion_expr::{Expr, ExprSchemable, lit, when};

use crate::functions::table::call;

/// `greatest` and `least` of arrays choose as arrays compare: NULL within them is the greatest.
pub(crate) fn choose_array(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let is_list = |value: &Expr| matches!(value.get_type(schema), Ok(DataType::List(_)));
    match expr {
        Expr::ScalarFunction(of) if matches!(of.func.name(), "greatest" | "least") && of.args.iter().any(is_list) => {
            let is_greatest = of.func.name() == "greatest";
            let mut values = of.args.into_iter();
            let Some(first) = values.next() else { return plan_err!("greatest and least take values") };
            let chosen = values.try_fold(first, |best, value| chosen_of(best, value, is_greatest))?;
            Ok(Transformed::yes(chosen))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// The greater, or the lesser, of two arrays; NULL is left out.
fn chosen_of(one: Expr, other: Expr, is_greatest: bool) -> DfResult<Expr> {
    let compared = call("array_compare", vec![one.clone(), other.clone()]);
    let stays = if is_greatest { compared.gt_eq(lit(0)) } else { compared.lt_eq(lit(0)) };
    when(one.clone().is_null(), other.clone()).when(other.clone().is_null().or(stays), one).otherwise(other)
}
