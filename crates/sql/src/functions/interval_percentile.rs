//! `__interval_percentile(list, part)`: what `percentile_cont(part) WITHIN GROUP (ORDER BY x)`
//! gives of intervals. The list has them in order, without NULLs.
//!
//! Law: between two intervals lies the first and a part of their difference, field by field.
//! Source: `interval_lerp` of PostgreSQL. Cost: O(1) a list.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::datatypes::{DataType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::intervals::INTERVAL;
use crate::time::columns::{of_arrow, to_arrow};
use crate::time::interval::Interval;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct IntervalPercentile {
    signature: Signature,
}

impl IntervalPercentile {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::any(2, Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for IntervalPercentile {
    fn name(&self) -> &str {
        "__interval_percentile"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(INTERVAL)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let columns: Vec<ArrayRef> =
            args.args.iter().map(|arg| arg.to_array(args.number_rows)).collect::<DfResult<_>>()?;
        let [lists, parts] = columns.as_slice() else { return exec_err!("a list and a part were expected") };
        let (lists, parts) = (lists.as_list::<i32>(), parts.as_primitive::<Float64Type>());
        let mut out: Vec<Option<IntervalMonthDayNano>> = Vec::with_capacity(lists.len());
        for (list, part) in lists.iter().zip(parts) {
            let (Some(list), Some(part)) = (list.filter(|list| !list.is_empty()), part) else {
                out.push(None);
                continue;
            };
            let intervals = list.as_primitive::<IntervalMonthDayNanoType>();
            let at = part * (intervals.len() - 1) as f64;
            let of = |place: f64| of_arrow(intervals.value(place as usize));
            match between(of(at.floor()), of(at.ceil()), at.fract()).and_then(to_arrow) {
                Some(interval) => out.push(Some(interval)),
                None => return exec_err!("interval out of range"),
            }
        }
        Ok(ColumnarValue::Array(Arc::new(IntervalMonthDayNanoArray::from(out)) as ArrayRef))
    }
}

/// What lies at a part of the way from one interval to another.
fn between(from: Interval, to: Interval, part: f64) -> Option<Interval> {
    if part == 0.0 {
        return Some(from);
    }
    let way = Interval {
        months: to.months.checked_sub(from.months)?,
        days: to.days.checked_sub(from.days)?,
        micros: to.micros.checked_sub(from.micros)?,
    };
    let way = way.times(part)?;
    Some(Interval {
        months: from.months.checked_add(way.months)?,
        days: from.days.checked_add(way.days)?,
        micros: from.micros.checked_add(way.micros)?,
    })
}
