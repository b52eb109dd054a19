//! As-of joins: keys and times become plain columns of the sides.

use std::sync::Arc;

use anabranch_plan::asof::{AsofJoin, is_instant};
use anabranch_plan::{Node, Plan};
use arrow::datatypes::{DataType, TimeUnit};

use super::Translator;
use super::expr::resolve;
use super::join::{distinct_pairs, same_type};
use super::schema::{drafts, schema};
use super::stage::{take, with_columns};
use crate::error::{ErrorKind, Result, SqlError};
use crate::passes::plan::asof::AsofNode;
use crate::resolve::type_names::sql_name;
use crate::syntax::span::Span;

impl Translator {
    pub(super) fn asof(&self, node: &AsofNode) -> Result<Arc<Plan>> {
        let (left, right) = (self.node(&node.left)?, self.node(&node.right)?);
        let (left_width, right_width) = (left.schema.fields().len(), right.schema.fields().len());
        let (mut left_exprs, mut right_exprs) = (vec![], vec![]);
        for (l, r) in node.on.keys.iter().chain(std::iter::once(&node.on.times)) {
            let l = resolve(l, node.left.schema(), &left.schema)?;
            let r = resolve(r, node.right.schema(), &right.schema)?;
            let (l, r) = same_type(l, &left.schema, r, &right.schema)?;
            left_exprs.push(l);
            right_exprs.push(r);
        }
        let (left, mut left_key) = with_columns(left, left_exprs)?;
        let (right, mut right_key) = with_columns(right, right_exprs)?;
        let (Some(left_time), Some(right_time)) = (left_key.pop(), right_key.pop()) else {
            return Err(SqlError::internal("an as-of join compares times"));
        };
        let (left_key, right_key) = distinct_pairs(left_key, right_key);
        if left_key.contains(&left_time) || right_key.contains(&right_time) {
            return Err(SqlError::new(ErrorKind::Invalid, "a time of an as-of join is one of its keys, too")
                .with_hint("Compare it once: rows with equal keys have no other time to be matched on."));
        }
        let time_type = left.schema.field(left_time).data_type().clone();
        if !is_instant(&time_type) {
            let message = format!("an as-of join cannot match on {}", sql_name(&time_type));
            return Err(SqlError::new(ErrorKind::Type, message)
                .with_hint("Match on timestamps, dates, times or whole numbers; cast others to one of these."));
        }
        let asof = AsofJoin {
            left_key,
            right_key,
            nulls: node.on.nulls,
            left_time,
            right_time,
            strategy: node.on.strategy,
            exact: node.on.exact,
            tolerance: node.on.tolerance.as_ref().map(|span| ticks(span, &time_type)).transpose()?,
            outer: node.outer,
        };
        let offset = left.schema.fields().len();
        let nullable = |(name, data_type, null)| (name, data_type, null || node.outer);
        let columns = drafts(&left.schema).into_iter().chain(drafts(&right.schema).into_iter().map(nullable)).collect();
        let plan = Arc::new(Plan { node: Node::Asof { left, right, asof }, schema: schema(columns) });
        let output: Vec<usize> = (0..left_width).chain(offset..offset + right_width).collect();
        Ok(take(plan, &output))
    }
}

/// A distance in units of a type.
///
/// # Errors
/// `Invalid` when it is none.
pub(super) fn ticks(span: &Span, data_type: &DataType) -> Result<u64> {
    let nanos_per_tick = match data_type {
        DataType::Timestamp(unit, _) | DataType::Time64(unit) | DataType::Time32(unit) => match unit {
            TimeUnit::Second => Some(1_000_000_000),
            TimeUnit::Millisecond => Some(1_000_000),
            TimeUnit::Microsecond => Some(1_000),
            TimeUnit::Nanosecond => Some(1),
        },
        DataType::Date32 => Some(86_400_000_000_000),
        _ => None,
    };
    let amount = match (span, nanos_per_tick) {
        (Span::Interval(nanos), Some(per_tick)) => Some(nanos.div_euclid(per_tick)),
        (Span::Ticks(ticks), None) => Some(*ticks),
        (Span::Ticks(days), Some(_)) if *data_type == DataType::Date32 => Some(*days),
        _ => None,
    };
    amount.and_then(|amount| u64::try_from(amount).ok()).ok_or_else(|| {
        let message = format!("{span} is no distance between values of type {}", sql_name(data_type));
        SqlError::new(ErrorKind::Invalid, message)
            .with_hint("Bound the distance of times by an interval above zero, of whole numbers by a number.")
    })
}
