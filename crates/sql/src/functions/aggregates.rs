//! Aggregates by their names, types and signatures.
//!
//! The engine adds up with operators of its own: of DataFusion's aggregates the planner asks what
//! they are called, what they take and what they give. So each is wrapped in [`Described`], which
//! has no accumulator. The accumulators of all types, a twentieth of the program, are then reached
//! from nowhere, and the linker leaves them out.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result as DfResult, ScalarValue, not_impl_err};
use datafusion_expr::expr::{AggregateFunctionParams, WindowFunctionParams};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, SetMonotonicity, Signature};
use datafusion_functions_aggregate::any_value::AnyValue;
use datafusion_functions_aggregate::approx_distinct::ApproxDistinct;
use datafusion_functions_aggregate::approx_median::ApproxMedian;
use datafusion_functions_aggregate::approx_percentile_cont::ApproxPercentileCont;
use datafusion_functions_aggregate::approx_percentile_cont_with_weight::ApproxPercentileContWithWeight;
use datafusion_functions_aggregate::array_agg::ArrayAgg;
use datafusion_functions_aggregate::average::Avg;
use datafusion_functions_aggregate::bit_and_or_xor::{bit_and_udaf, bit_or_udaf, bit_xor_udaf};
use datafusion_functions_aggregate::bool_and_or::{BoolAnd, BoolOr};
use datafusion_functions_aggregate::correlation::Correlation;
use datafusion_functions_aggregate::count::Count;
use datafusion_functions_aggregate::covariance::{CovariancePopulation, CovarianceSample};
use datafusion_functions_aggregate::first_last::{FirstValue, LastValue};
use datafusion_functions_aggregate::grouping::Grouping;
use datafusion_functions_aggregate::median::Median;
use datafusion_functions_aggregate::min_max::{Max, Min};
use datafusion_functions_aggregate::nth_value::NthValueAgg;
use datafusion_functions_aggregate::percentile_cont::PercentileCont;
use datafusion_functions_aggregate::regr;
use datafusion_functions_aggregate::stddev::{Stddev, StddevPop};
use datafusion_functions_aggregate::string_agg::StringAgg;
use datafusion_functions_aggregate::sum::Sum;
use datafusion_functions_aggregate::variance::{VariancePopulation, VarianceSample};

use crate::resolve::documents::{form_of, is_kind_of_text};
use crate::resolve::type_marks::EnumMark;

static ALL: LazyLock<Vec<Arc<AggregateUDF>>> = LazyLock::new(|| {
    vec![
        described(AnyValue::new()),
        described(ArrayAgg::default()),
        described(FirstValue::new()),
        described(LastValue::new()),
        described(CovarianceSample::new()),
        described(CovariancePopulation::new()),
        described(Correlation::new()),
        described(Sum::new()),
        described(Max::new()),
        described(Min::new()),
        described(Median::new()),
        described(Count::new()),
        regr::regr_slope_udaf(),
        regr::regr_intercept_udaf(),
        regr::regr_count_udaf(),
        regr::regr_r2_udaf(),
        regr::regr_avgx_udaf(),
        regr::regr_avgy_udaf(),
        regr::regr_sxx_udaf(),
        regr::regr_syy_udaf(),
        regr::regr_sxy_udaf(),
        described(VarianceSample::new()),
        described(VariancePopulation::new()),
        described(Stddev::new()),
        described(StddevPop::new()),
        described(ApproxMedian::new()),
        described(ApproxDistinct::new()),
        described(ApproxPercentileCont::new()),
        described(ApproxPercentileContWithWeight::new()),
        described(PercentileCont::new()),
        described(StringAgg::new()),
        bit_and_udaf(),
        bit_or_udaf(),
        bit_xor_udaf(),
        described(BoolAnd::default()),
        described(BoolOr::default()),
        described(Avg::new()),
        described(Grouping::new()),
        described(NthValueAgg::new()),
    ]
});

static BY_NAME: LazyLock<BTreeMap<String, Arc<AggregateUDF>>> =
    LazyLock::new(|| ALL.iter().map(|function| (function.name().to_owned(), Arc::clone(function))).collect());

/// Aggregates that SQL may call, but for those that are wholly ours.
pub(crate) fn all() -> impl Iterator<Item = Arc<AggregateUDF>> {
    ALL.iter().cloned()
}

/// The aggregate `count`.
pub(crate) fn count() -> Arc<AggregateUDF> {
    Arc::clone(&BY_NAME["count"])
}

/// The aggregate `sum`, as DataFusion types it.
pub(crate) fn sum() -> Arc<AggregateUDF> {
    Arc::clone(&BY_NAME["sum"])
}

/// The aggregate `min`.
pub(crate) fn min() -> Arc<AggregateUDF> {
    Arc::clone(&BY_NAME["min"])
}

/// The aggregate `max`.
pub(crate) fn max() -> Arc<AggregateUDF> {
    Arc::clone(&BY_NAME["max"])
}

/// What an aggregate is called, takes and gives; not how it is computed.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Described<F>(F);

fn described<F: AggregateUDFImpl + Debug + Eq + Hash>(function: F) -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(Described(function)))
}

impl<F: AggregateUDFImpl + Debug + Eq + Hash> AggregateUDFImpl for Described<F> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn schema_name(&self, params: &AggregateFunctionParams) -> DfResult<String> {
        self.0.schema_name(params)
    }

    fn human_display(&self, params: &AggregateFunctionParams) -> DfResult<String> {
        self.0.human_display(params)
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> DfResult<String> {
        self.0.window_function_schema_name(params)
    }

    fn display_name(&self, params: &AggregateFunctionParams) -> DfResult<String> {
        self.0.display_name(params)
    }

    fn window_function_display_name(&self, params: &WindowFunctionParams) -> DfResult<String> {
        self.0.window_function_display_name(params)
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        self.0.return_type(arg_types)
    }

    fn return_field(&self, arg_fields: &[FieldRef]) -> DfResult<FieldRef> {
        let field = self.0.return_field(arg_fields)?;
        // (A scalar subquery is the least of its one row: a document stays one.)
        let of_documents = arg_fields.first().and_then(|of| form_of(of)).filter(|_| self.0.name() == "array_agg");
        if let Some(form) = of_documents {
            return Ok(Arc::new(form.mark_list(Field::clone(&field))));
        }
        if let Some(mark) = arg_fields.first().and_then(|of| EnumMark::of(of)).filter(|_| self.0.name() == "array_agg")
        {
            return Ok(Arc::new(mark.mark(Field::clone(&field))));
        }
        match arg_fields.first().filter(|_| matches!(self.0.name(), "min" | "max" | "any_value")) {
            Some(of) if is_kind_of_text(of) => Ok(Arc::new(Field::clone(&field).with_metadata(of.metadata().clone()))),
            _ => Ok(field),
        }
    }

    fn is_nullable(&self) -> bool {
        self.0.is_nullable()
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> DfResult<Vec<DataType>> {
        self.0.coerce_types(arg_types)
    }

    fn default_value(&self, data_type: &DataType) -> DfResult<ScalarValue> {
        self.0.default_value(data_type)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.0.order_sensitivity()
    }

    fn is_descending(&self) -> Option<bool> {
        self.0.is_descending()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.0.set_monotonicity(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.0.supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.0.supports_within_group_clause()
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> DfResult<Box<dyn Accumulator>> {
        not_impl_err!("{} is computed by the engine", self.name())
    }

    fn state_fields(&self, _args: StateFieldsArgs) -> DfResult<Vec<FieldRef>> {
        not_impl_err!("{} is computed by the engine", self.name())
    }
}
