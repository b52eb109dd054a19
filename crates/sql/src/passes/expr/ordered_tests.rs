//! IN and BETWEEN of documents and arrays.
//!
//! ```text
//! j IN ('1.0', '2')            __jsonb_order(j) IN (__jsonb_order(jsonb_in('1.0')), ..)
//! a BETWEEN '{}' AND '{1,2}'   array_compare(a, '{}') >= 0 AND array_compare(a, '{1,2}') <= 0
//! ```

use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult};
use datafusion_expr::expr::{Between, InList};
use datafusion_expr::{Expr, ExprSchemable, cast, lit};

use crate::functions::json::operators::sort_key;
use crate::functions::table::call;
use crate::resolve::documents::{DocumentForm, form_of};
use crate::resolve::type_names::is_text;

/// Compares what orders the values.
pub(super) fn settle(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::InList(InList { expr, list, negated }) if is_jsonb(&expr, schema) => {
            let list = list.into_iter().map(|item| key(item, schema)).collect();
            Ok(Transformed::yes(Expr::InList(InList { expr: Box::new(key(*expr, schema)), list, negated })))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_jsonb(&expr, schema) => {
            let [expr, low, high] = [expr, low, high].map(|value| Box::new(key(*value, schema)));
            Ok(Transformed::yes(Expr::Between(Between { expr, negated, low, high })))
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let is = expr.get_type(schema)?;
            if !matches!(is, DataType::List(_)) {
                return Ok(Transformed::no(Expr::Between(Between { expr, negated, low, high })));
            }
            let [low, high] = [low, high].map(|bound| match bound.get_type(schema) {
                Ok(of) if is_text(&of) => cast(*bound, is.clone()),
                _ => *bound,
            });
            let above = call("array_compare", vec![(*expr).clone(), low]).gt_eq(lit(0i32));
            let below = call("array_compare", vec![*expr, high]).lt_eq(lit(0i32));
            let both = above.and(below);
            Ok(Transformed::yes(if negated { Expr::Not(Box::new(both)) } else { both }))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn is_jsonb(value: &Expr, schema: &DFSchema) -> bool {
    value.to_field(schema).is_ok_and(|(_, field)| form_of(&field) == Some(DocumentForm::Jsonb))
}

/// What orders a document; a literal beside one is one.
fn key(value: Expr, schema: &DFSchema) -> Expr {
    let document = if is_jsonb(&value, schema) { value } else { call("jsonb_in", vec![value]) };
    match document.to_field(schema) {
        Ok((_, field)) => sort_key(document, Some(&field)),
        Err(_) => document,
    }
}
