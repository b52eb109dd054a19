//! `sum`, `avg` and other aggregates of numbers: DataFusion's, with the types of PostgreSQL's
//! numerics. Only their types matter: operators compute them.
//!
//! - The mean of exact numbers is plain `numeric`: its digits depend on the sum.
//! - The sum of whole numbers is a `bigint`, that of `real` a `real`.
//! - The sum of decimals is a decimal of ten digits more, where there is room for them, or for so
//!   many before the point that sums do not reach; else it is plain, as that of plain ones.
//! - Intervals are summed and averaged too.
//! - Deviations of exact numbers are plain, and medians those of their nearest doubles.

use std::sync::Arc;

use anabranch_batch::numeric::TYPE;
use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit};
use datafusion_common::{Result as DfResult, not_impl_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use crate::functions::deviations::Dispersion;
use crate::functions::settle_numbers::OF_FLOATS;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Digits before the point for which a sum that may need more digits than there are keeps its type.
const WHOLE_DIGITS_MIN: i16 = 20;

/// Digits by which a sum is longer than what is summed.
const SUM_DIGITS: i16 = 10;

/// An aggregate of numbers.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct FunctionTotal {
    inner: Arc<AggregateUDF>,
    signature: Signature,
}

impl FunctionTotal {
    /// Aggregates of numbers with their types, others as they are.
    pub(crate) fn around(inner: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
        match inner.name() {
            name if name == "sum" || name == "avg" || OF_FLOATS.contains(&name) => {
                let signature = Signature::user_defined(Volatility::Immutable);
                Arc::new(AggregateUDF::from(Self { inner, signature }))
            }
            _ => inner,
        }
    }

    fn is_sum_or_mean(&self) -> bool {
        matches!(self.name(), "sum" | "avg")
    }

    fn is_spread(&self) -> bool {
        Dispersion::of(self.name()).is_some()
    }
}

impl AggregateUDFImpl for FunctionTotal {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> DfResult<Vec<DataType>> {
        match arg_types {
            // (Medians of plain numerics have floats as arguments in the resolved plan
            // (`settle_numbers::settle_arguments`), where deviations are sums
            // (`plan::deviations`).)
            [TYPE] => return Ok(arg_types.to_vec()),
            [DataType::Interval(_)] if self.is_sum_or_mean() => return Ok(arg_types.to_vec()),
            // (Times of day are intervals in the resolved plan: `moments::sum_times`.)
            [DataType::Time64(_)] if self.is_sum_or_mean() => return Ok(arg_types.to_vec()),
            [DataType::Int8 | DataType::Int16] if self.is_sum_or_mean() => return Ok(vec![DataType::Int32]),
            [is] if self.is_spread() && (is.is_integer() || is.is_decimal()) => return Ok(arg_types.to_vec()),
            [is] if self.is_sum_or_mean() && is.is_signed_integer() => return Ok(arg_types.to_vec()),
            [DataType::Float32] if self.name() == "sum" => return Ok(arg_types.to_vec()),
            _ => {}
        }
        let fields: Vec<FieldRef> = arg_types.iter().map(|is| Arc::new(Field::new("", is.clone(), true))).collect();
        let fields = fields_with_udf(&fields, self.inner.as_ref())?;
        Ok(fields.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        if !self.is_sum_or_mean() {
            let is_plain = arg_types == [TYPE];
            if let [is] = arg_types
                && self.is_spread()
                && (is_plain || is.is_integer() || is.is_decimal())
            {
                return Ok(TYPE);
            }
            return self.inner.return_type(if is_plain { &[DataType::Float64] } else { arg_types });
        }
        match (self.name(), arg_types) {
            (_, [TYPE]) | ("avg", [DataType::Decimal128(..)]) => Ok(TYPE),
            ("avg", [is]) if is.is_integer() => Ok(TYPE),
            ("sum", [is]) if is.is_signed_integer() => Ok(DataType::Int64),
            ("sum", [DataType::Float32]) => Ok(DataType::Float32),
            (_, [DataType::Interval(_) | DataType::Time64(_)]) => Ok(INTERVAL),
            (_, [DataType::Decimal128(precision, scale)]) => {
                let (digits, scale) = (i16::from(*precision), i16::from(*scale));
                match digits + SUM_DIGITS <= 38 || 38 - scale >= WHOLE_DIGITS_MIN {
                    true => self.inner.return_type(arg_types),
                    false => Ok(TYPE),
                }
            }
            _ => self.inner.return_type(arg_types),
        }
    }

    fn default_value(&self, data_type: &DataType) -> DfResult<datafusion_common::ScalarValue> {
        self.inner.default_value(data_type)
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> DfResult<Box<dyn Accumulator>> {
        not_impl_err!("{} is computed by operators", self.name())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> DfResult<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }
}
