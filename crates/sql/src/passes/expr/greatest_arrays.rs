//! `greatest` and `least` of arrays.

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, plan_err};
use datafusion_expr::{Expr, ExprSchemable, lit, when};

use crate::functions::enumerations::elements_of;
use crate::functions::json::operators::sort_key;
use crate::functions::table::call;
use crate::resolve::documents::{DocumentForm, form_in_list};
use crate::resolve::operands::markable;
use crate::resolve::type_marks::EnumMark;

/// `greatest` and `least` of arrays choose as arrays compare: NULL within them is the greatest.
pub(crate) fn choose_array(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let is_list = |value: &Expr| matches!(value.get_type(schema), Ok(DataType::List(_)));
    match expr {
        Expr::ScalarFunction(of) if matches!(of.func.name(), "greatest" | "least") && of.args.iter().any(is_list) => {
            let is_greatest = of.func.name() == "greatest";
            // (Arrays of documents, intervals and labels have keys, by which they are in order.)
            let field = |value: &Expr| markable(value, schema);
            let has_key = |field: &FieldRef| sort_key(Expr::default(), Some(field)) != Expr::default();
            let field = of.args.iter().filter_map(field).find(has_key);
            let mut values = of.args.into_iter();
            let Some(first) = values.next() else { return plan_err!("greatest and least take values") };
            let key = |value: &Expr| sort_key(value.clone(), field.as_deref());
            let chosen = values.try_fold(first, |best, value| chosen_of(best, value, is_greatest, &key))?;
            Ok(Transformed::yes(marked(chosen, field.as_deref())))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// An array of documents or labels, which CASE forgets.
fn marked(chosen: Expr, field: Option<&Field>) -> Expr {
    match field.map(|field| (EnumMark::of_elements(field), form_in_list(field))) {
        Some((Some(mark), _)) => elements_of(chosen, &mark),
        Some((None, Some(DocumentForm::Jsonb))) => call("__jsonbs_in", vec![chosen]),
        _ => chosen,
    }
}

/// The greater, or the lesser, of two arrays; NULL is left out.
fn chosen_of(one: Expr, other: Expr, is_greatest: bool, key: &dyn Fn(&Expr) -> Expr) -> DfResult<Expr> {
    let compared = call("array_compare", vec![key(&one), key(&other)]);
    let stays = if is_greatest { compared.gt_eq(lit(0)) } else { compared.lt_eq(lit(0)) };
    when(one.clone().is_null(), other.clone()).when(other.clone().is_null().or(stays), one).otherwise(other)
}
