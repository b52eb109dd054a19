//! GROUPING SETS, ROLLUP and CUBE: a union of aggregates, one for each set.

use std::sync::Arc;

use anabranch_plan::Plan;
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::{Expr, cast, lit};

use super::aggregate::{WantedAggregate, grouped};
use super::expr::column;
use super::rows;
use super::stage::{Column, stage};
use crate::error::Result;

/// Whether a group is several.
pub(super) fn is_sets(expr: &Expr) -> bool {
    matches!(expr, Expr::GroupingSet(_))
}

/// The union of one aggregate for each set; keys outside of a set are NULL, and a number tells the
/// sets apart: a bit for each key (the last key's is the lowest) that is set where the key is left
/// out, and above these a counter of equal sets.
pub(super) fn grouping_sets(
    input: Arc<Plan>,
    sets: &[Vec<Expr>],
    group: &[&Expr],
    keys: Vec<Expr>,
    calls: Vec<WantedAggregate>,
    id_type: &DataType,
) -> Result<Arc<Plan>> {
    let key_types: Vec<DataType> =
        keys.iter().map(|key| Ok(super::expr::carried(key.clone(), &input.schema)?.1)).collect::<Result<_>>()?;
    let mut parts = Vec::with_capacity(sets.len());
    let mut ids: Vec<u64> = Vec::new();
    for set in sets {
        let kept: Vec<bool> = group.iter().map(|key| set.contains(key)).collect();
        let mask = kept.iter().fold(0u64, |mask, kept| mask << 1 | u64::from(!kept));
        let ordinal = ids.iter().filter(|id| **id == mask).count() as u64;
        ids.push(mask);
        let id = ordinal << group.len() | mask;

        // (The grand total is one row, of no rows as well, and when no aggregate of it is asked
        // for.)
        let is_total = calls.is_empty() && !kept.contains(&true);
        let calls_of_set = if is_total { vec![WantedAggregate::rows()] } else { calls.clone() };
        let set_keys = keys.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(key, _)| key.clone()).collect();
        let part = grouped(input.clone(), set_keys, calls_of_set)?;
        let mut columns: Vec<Column> = Vec::new();
        let mut next = 0;
        for ((kept, data_type), key) in kept.iter().zip(&key_types).zip(&keys) {
            let name = Some(anabranch_plan::explain::expression(key));
            if *kept {
                columns.push((column(&part.schema, next), name));
                next += 1;
            } else {
                columns.push((Expr::Literal(ScalarValue::try_from(data_type)?, None), name));
            }
        }
        columns.push((cast_literal(id, id_type)?, Some("grouping_id".into())));
        columns.extend((0..calls.len()).map(|n| (column(&part.schema, next + n), None)));
        parts.push(stage(part, vec![], columns)?);
    }
    rows::union(parts)
}

fn cast_literal(id: u64, id_type: &DataType) -> Result<Expr> {
    match ScalarValue::UInt64(Some(id)).cast_to(id_type) {
        Ok(value) => Ok(Expr::Literal(value, None)),
        Err(_) => Ok(cast(lit(id), id_type.clone())),
    }
}
