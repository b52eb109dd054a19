//! Rows whose key begins with a column that a condition bounds.
//!
//! Law: rows that pass the conditions have a hash within the range; others may have one too, so the
//! conditions are still evaluated. Only integers and dates have ranges: their hashes follow their
//! order, those of keys of one column wholly, those of several columns in the lower half of the
//! first one's bits, so there both bounds have to lie in it.
//!
//! Cost: the rows within, and two look-ups a run.

use anabranch_batch::hash;
use anabranch_plan::Plan;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::{Expr, Operator};

use super::conjuncts;
use crate::catalog::{Arranged, Object};

/// A column of the relation, and a value that is its least or its greatest, or beyond.
pub(super) struct Bound<'a> {
    column: usize,
    is_least: bool,
    value: &'a ScalarValue,
}

/// What the filter bounds.
pub(super) fn bounds<'a>(scan: &Plan, columns: &[usize], filter: &'a [Expr]) -> Vec<Bound<'a>> {
    let position = |expr: &Expr| match expr {
        Expr::Column(column) => scan.schema.index_of_column(column).ok().map(|at| columns[at]),
        _ => None,
    };
    let mut bounds = Vec::new();
    let mut add = |expr: &Expr, is_least, value: &'a Expr| {
        if let (Some(column), Expr::Literal(value, _)) = (position(expr), value) {
            bounds.push(Bound { column, is_least, value });
        }
    };
    for condition in filter.iter().flat_map(conjuncts) {
        match condition {
            Expr::BinaryExpr(binary) => {
                let is_greater = match binary.op {
                    Operator::Gt | Operator::GtEq => true,
                    Operator::Lt | Operator::LtEq => false,
                    _ => continue,
                };
                add(&binary.left, is_greater, &binary.right);
                add(&binary.right, !is_greater, &binary.left);
            }
            Expr::Between(between) if !between.negated => {
                add(&between.expr, true, &between.low);
                add(&between.expr, false, &between.high);
            }
            _ => {}
        }
    }
    bounds
}

/// The first and the last hash of the rows within the bounds, in an arrangement; `None` where they
/// are not bounded, or hashes tell nothing.
pub(super) fn hashes(object: &Object, arranged: &Arranged, bounds: &[Bound<'_>]) -> Option<(u64, u64)> {
    let first = *arranged.key.first()?;
    let data_type = object.schema.field(first).data_type();
    if !matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32) {
        return None;
    }
    let is_single = arranged.key.len() == 1;
    let mut range = (0, u64::MAX);
    let (mut has_least, mut has_greatest) = (false, false);
    for bound in bounds.iter().filter(|bound| bound.column == first) {
        let value: ArrayRef = bound.value.to_array().ok().filter(|_| !bound.value.is_null())?;
        if bound.value.data_type() != *data_type || !hash::is_exact(std::slice::from_ref(&value)) {
            return None;
        }
        let (least, greatest) = match is_single {
            true => {
                let hash = hash::hash_columns(std::slice::from_ref(&value), 1)[0];
                (hash, hash)
            }
            false if is_within_lower_half(bound.value) => hash::leads(&value)[0],
            false => return None,
        };
        match bound.is_least {
            true => (range.0, has_least) = (range.0.max(least), true),
            false => (range.1, has_greatest) = (range.1.min(greatest), true),
        }
    }
    let is_bounded = has_least && has_greatest || is_single && (has_least || has_greatest);
    // (A range that is empty has no row, whatever its one hash finds.)
    is_bounded.then_some(if range.0 <= range.1 { range } else { (range.0, range.0) })
}

fn is_within_lower_half(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Int64(Some(value)) => i32::try_from(*value).is_ok(),
        _ => true,
    }
}
