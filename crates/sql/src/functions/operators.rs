//! Operators of arrays and bytes, as calls.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::{DFSchema, Result as DfResult};
use datafusion_expr::expr::Expr;
use datafusion_expr::planner::{PlannerResult, RawBinaryExpr, RawFieldAccessExpr};
use datafusion_expr::sqlparser::ast::BinaryOperator;
use datafusion_expr::{ExprSchemable, GetFieldAccess, cast, lit};

use super::rows::is_bytes;
use super::table::call;
use crate::functions::conversions::ByteaIn;
use crate::resolve::common_types::plain_of_lists;
use crate::resolve::documents::{DocumentForm, form_of};
use crate::resolve::type_names::is_text;

/// An operator of which one side is an array, or bytes; `None` leaves it to others.
pub(super) fn plan(expr: &RawBinaryExpr, left: &DataType, right: &DataType) -> Option<Expr> {
    let args = || vec![expr.left.clone(), expr.right.clone()];
    let swapped = || vec![expr.right.clone(), expr.left.clone()];
    if expr.op == BinaryOperator::StringConcat && (is_bytes(left) || is_bytes(right)) {
        let read = |side: &Expr, is: &DataType| match side {
            Expr::Literal(..) if is_text(is) => ByteaIn::udf().call(vec![side.clone()]),
            _ => side.clone(),
        };
        return Some(call("bytea_concat", vec![read(&expr.left, left), read(&expr.right, right)]));
    }
    let (is_left, is_right) = (depth(left), depth(right));
    if is_left == 0 && is_right == 0 {
        return None;
    }
    if let Some((left, right)) = with_plain_elements(left, right) {
        let operand = |side: &Expr, is: &DataType| cast(side.clone(), is.clone());
        let sides = (operand(&expr.left, &left), operand(&expr.right, &right));
        return plan(&RawBinaryExpr { left: sides.0, op: expr.op.clone(), right: sides.1 }, &left, &right);
    }
    // A literal in quotes beside an array is one, and so is NULL where it is compared.
    let joins = expr.op == BinaryOperator::StringConcat;
    let as_array = |side: &Expr, is: &DataType, other: &DataType| match side {
        Expr::Literal(..) if is_text(is) && depth(other) > 0 => Some(cast(side.clone(), other.clone())),
        _ if is.is_null() && depth(other) > 0 && !joins => Some(cast(side.clone(), other.clone())),
        _ => None,
    };
    let is_equality = matches!(expr.op, BinaryOperator::Eq | BinaryOperator::NotEq);
    let equality = |left: Expr, right: Expr| match expr.op {
        BinaryOperator::Eq => left.eq(right),
        _ => left.not_eq(right),
    };
    if let Some(left) = as_array(&expr.left, left, right) {
        if is_equality {
            return Some(equality(left, expr.right.clone()));
        }
        return plan(&RawBinaryExpr { left, op: expr.op.clone(), right: expr.right.clone() }, right, right);
    }
    if let Some(right) = as_array(&expr.right, right, left) {
        if is_equality {
            return Some(equality(expr.left.clone(), right));
        }
        return plan(&RawBinaryExpr { left: expr.left.clone(), op: expr.op.clone(), right }, left, left);
    }
    if expr.op == BinaryOperator::StringConcat {
        let joins = is_left == is_right || left.is_null() || right.is_null();
        let name = if joins {
            "array_concat"
        } else if is_left > is_right {
            "array_append"
        } else {
            "array_prepend"
        };
        return Some(call(name, args()));
    }
    if is_left == 0 || is_right == 0 {
        return None;
    }
    let compared = || call("array_compare", args());
    Some(match expr.op {
        BinaryOperator::AtArrow => call("array_has_all", args()),
        BinaryOperator::ArrowAt => call("array_has_all", swapped()),
        BinaryOperator::PGOverlap => call("array_has_any", args()),
        BinaryOperator::Lt => compared().lt(lit(0)),
        BinaryOperator::LtEq => compared().lt_eq(lit(0)),
        BinaryOperator::Gt => compared().gt(lit(0)),
        BinaryOperator::GtEq => compared().gt_eq(lit(0)),
        _ => return None,
    })
}

/// The types of two arrays of numerics, or of an array and an element, of which one has plain
/// elements and the other has not.
fn with_plain_elements(left: &DataType, right: &DataType) -> Option<(DataType, DataType)> {
    if left == right {
        return None;
    }
    let types = [left, right].map(|is| if depth(is) > 0 { is.clone() } else { list_of(is) });
    let common = plain_of_lists(&types)?;
    let DataType::List(element) = &common else { return None };
    let plain = |is: &DataType| if depth(is) > 0 { common.clone() } else { element.data_type().clone() };
    let plain = (plain(left), plain(right));
    (plain.0 != *left || plain.1 != *right).then_some(plain)
}

fn list_of(element: &DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(element.clone(), true)))
}

/// How many lists are in each other.
fn depth(is: &DataType) -> usize {
    match is {
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
            1 + depth(element.data_type())
        }
        _ => 0,
    }
}

/// `array[n]`, `array[from:to]`, and `jsonb[name]`.
pub(super) fn plan_access(
    access: RawFieldAccessExpr,
    schema: &DFSchema,
) -> DfResult<PlannerResult<RawFieldAccessExpr>> {
    let RawFieldAccessExpr { expr, field_access } = access;
    let (_, field) = expr.to_field(schema)?;
    if form_of(&field) == Some(DocumentForm::Jsonb) {
        let key = match &field_access {
            GetFieldAccess::ListIndex { key } => Some((**key).clone()),
            GetFieldAccess::NamedStructField { name } => Some(lit(name.clone())),
            GetFieldAccess::ListRange { .. } => None,
        };
        if let Some(key) = key {
            return Ok(PlannerResult::Planned(call("__jsonb_get", vec![expr, key])));
        }
    }
    if depth(&expr.get_type(schema)?) == 0 {
        return Ok(PlannerResult::Original(RawFieldAccessExpr { expr, field_access }));
    }
    Ok(match field_access {
        GetFieldAccess::ListIndex { key } => PlannerResult::Planned(call("array_element", vec![expr, *key])),
        GetFieldAccess::ListRange { start, stop, .. } => {
            PlannerResult::Planned(call("array_slice", vec![expr, *start, *stop]))
        }
        field_access => PlannerResult::Original(RawFieldAccessExpr { expr, field_access }),
    })
}
