//! Aggregates of intervals, from sums of whole numbers: `sum(i)` is the interval of the sums of
//! months, days and microseconds; `avg(i)` is that by the number of intervals. So intervals come
//! and go exactly like integers.

use std::cmp::Ordering;
use std::sync::Arc;

use anabranch_batch::order::interval_length;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, IntervalMonthDayNanoArray};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit,
};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, exec_err};
use datafusion_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, binary_expr,
};

pub(crate) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// The parts that PostgreSQL keeps of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum IntervalField {
    Months,
    Days,
    Micros,
}

impl IntervalField {
    pub(crate) const ALL: [IntervalField; 3] = [IntervalField::Months, IntervalField::Days, IntervalField::Micros];

    fn of(self, interval: IntervalMonthDayNano) -> i64 {
        match self {
            IntervalField::Months => i64::from(interval.months),
            IntervalField::Days => i64::from(interval.days),
            IntervalField::Micros => interval.nanoseconds / 1000,
        }
    }
}

/// `interval_months(i)`, `interval_days(i)`, `interval_micros(i)`: one part as a bigint.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct IntervalPart {
    part: IntervalField,
    signature: Signature,
}

impl IntervalPart {
    pub(crate) fn udf(part: IntervalField) -> Arc<ScalarUDF> {
        let signature = Signature::exact(vec![INTERVAL], Volatility::Immutable);
        Arc::new(ScalarUDF::from(Self { part, signature }))
    }
}

impl ScalarUDFImpl for IntervalPart {
    fn name(&self) -> &str {
        match self.part {
            IntervalField::Months => "interval_months",
            IntervalField::Days => "interval_days",
            IntervalField::Micros => "interval_micros",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let intervals = args.args[0].to_array(args.number_rows)?;
        let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
        let parts: Int64Array = intervals.unary(|interval| self.part.of(interval));
        Ok(ColumnarValue::Array(Arc::new(parts) as ArrayRef))
    }
}

/// `interval_length(i)`: what intervals are compared by, in nanoseconds. A month is 30 days, a day
/// 24 hours. It is called by name in programs that were cut from SQL.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct IntervalLength {
    signature: Signature,
}

impl IntervalLength {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        let signature = Signature::exact(vec![INTERVAL], Volatility::Immutable);
        Arc::new(ScalarUDF::from(Self { signature }))
    }
}

impl ScalarUDFImpl for IntervalLength {
    fn name(&self) -> &str {
        "interval_length"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let intervals = args.args[0].to_array(args.number_rows)?;
        let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
        let lengths = intervals.unary::<_, Decimal128Type>(|interval| interval_length(&interval));
        Ok(ColumnarValue::Array(Arc::new(lengths.with_precision_and_scale(DECIMAL128_MAX_PRECISION, 0)?) as ArrayRef))
    }
}

/// Whether a value is an interval.
pub(crate) fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|is| is == INTERVAL)
}

/// What an interval is compared by.
pub(crate) fn length_of(interval: Expr) -> Expr {
    IntervalLength::udf().call(vec![interval])
}

/// Comparisons of intervals are comparisons of their lengths.
pub(crate) fn compare_lengths(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let is_interval = |e: &Expr| is_interval(e, schema);
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_comparison(op) && is_interval(&left) && is_interval(&right) =>
        {
            Transformed::yes(binary_expr(length_of(*left), op, length_of(*right)))
        }
        Expr::Between(mut between) if is_interval(&between.expr) => {
            for part in [&mut between.expr, &mut between.low, &mut between.high] {
                **part = length_of(std::mem::take(part.as_mut()));
            }
            Transformed::yes(Expr::Between(between))
        }
        Expr::InList(mut list) if is_interval(&list.expr) && list.list.iter().all(is_interval) => {
            *list.expr = length_of(*list.expr);
            list.list = list.list.into_iter().map(length_of).collect();
            Transformed::yes(Expr::InList(list))
        }
        other => Transformed::no(other),
    })
}

/// `greatest` and `least` of intervals choose by length.
pub(crate) fn choose_by_length(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::ScalarFunction(call)
            if matches!(call.func.name(), "greatest" | "least")
                && call.args.iter().all(|arg| is_interval(arg, schema)) =>
        {
            let wanted = if call.func.name() == "greatest" { Ordering::Greater } else { Ordering::Less };
            Ok(Transformed::yes(ExtremeInterval::udf(wanted).call(call.args)))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// `interval_greatest(..)` and `interval_least(..)`: of intervals that are as long, the first. NULL
/// is left out.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ExtremeInterval {
    wanted: Ordering,
    signature: Signature,
}

impl ExtremeInterval {
    fn udf(wanted: Ordering) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { wanted, signature: Signature::variadic_any(Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for ExtremeInterval {
    fn name(&self) -> &str {
        if self.wanted == Ordering::Greater { "interval_greatest" } else { "interval_least" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(INTERVAL)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let columns = args.args.iter().map(|arg| arg.to_array(args.number_rows)).collect::<DfResult<Vec<_>>>()?;
        let columns: Vec<_> = columns.iter().map(|column| column.as_primitive::<IntervalMonthDayNanoType>()).collect();
        let chosen = |row: usize| {
            let values = columns.iter().filter(|column| column.is_valid(row)).map(|column| column.value(row));
            values.reduce(|best, value| {
                let is_better = interval_length(&value).cmp(&interval_length(&best)) == self.wanted;
                if is_better { value } else { best }
            })
        };
        let chosen: IntervalMonthDayNanoArray = (0..args.number_rows).map(chosen).collect();
        Ok(ColumnarValue::Array(Arc::new(chosen)))
    }
}

pub(crate) fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// `interval_of(months, days, micros)`; an error where a part does not fit.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct IntervalOf {
    signature: Signature,
}

impl IntervalOf {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        let signature = Signature::exact(vec![DataType::Int64; 3], Volatility::Immutable);
        Arc::new(ScalarUDF::from(Self { signature }))
    }
}

impl ScalarUDFImpl for IntervalOf {
    fn name(&self) -> &str {
        "interval_of"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(INTERVAL)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let parts: Vec<ArrayRef> =
            args.args.iter().map(|arg| arg.to_array(args.number_rows)).collect::<DfResult<_>>()?;
        let [months, days, micros] = parts.as_slice() else {
            return exec_err!("interval_of takes three parts");
        };
        let numbers = |part: &ArrayRef| part.as_primitive::<Int64Type>().clone();
        let (months, days, micros) = (numbers(months), numbers(days), numbers(micros));
        let mut out: Vec<Option<IntervalMonthDayNano>> = Vec::with_capacity(months.len());
        for ((months, days), micros) in months.iter().zip(&days).zip(&micros) {
            let (Some(months), Some(days), Some(micros)) = (months, days, micros) else {
                out.push(None);
                continue;
            };
            let parts = (i32::try_from(months), i32::try_from(days), micros.checked_mul(1000));
            let (Ok(months), Ok(days), Some(nanos)) = parts else {
                return exec_err!("interval out of range");
            };
            out.push(Some(IntervalMonthDayNano::new(months, days, nanos)));
        }
        Ok(ColumnarValue::Array(Arc::new(IntervalMonthDayNanoArray::from(out)) as ArrayRef))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_the_interval_again() {
        let interval = IntervalMonthDayNano::new(-3, 40, 5_000_000);
        let parts = IntervalField::ALL.map(|part| part.of(interval));
        assert_eq!(parts, [-3, 40, 5_000]);
    }
}
