//! `AT TIME ZONE`, as PostgreSQL types it.
//!
//! - `timestamptz AT TIME ZONE z` is the clock of that zone at that instant: a timestamp. DataFusion would keep the instant.
//! - `timestamp AT TIME ZONE z` is the instant at which that clock shows this time: a timestamptz.

use arrow::array::timezone::Tz;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, plan_err};
use datafusion_expr::{Expr, ExprSchemable, cast};

use crate::resolve::types::UTC;

/// Rewrites the cast to nanoseconds in a zone that DataFusion's planner makes of `AT TIME ZONE`.
pub(crate) fn at_time_zone(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::Cast(conversion) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let DataType::Timestamp(TimeUnit::Nanosecond, Some(zone)) = conversion.field.data_type() else {
        return Ok(Transformed::no(expr));
    };
    if zone.parse::<Tz>().is_err() {
        return plan_err!("time zone \"{zone}\" not recognized");
    }
    let value = conversion.expr.as_ref().clone();
    let micros = |zone: &str| DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into()));
    let planned = match value.get_type(schema)? {
        DataType::Timestamp(_, None) => cast(cast(value, micros(zone)), micros(UTC)),
        _ => {
            let there = cast(cast(value, micros(UTC)), micros(zone));
            datafusion_functions::datetime::to_local_time().call(vec![there])
        }
    };
    Ok(Transformed::yes(planned))
}
