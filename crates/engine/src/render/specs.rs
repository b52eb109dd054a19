//! Specifications of operators, made of what plans say.

use std::sync::Arc;

use anabranch_arrangement::{Layout, MergeEffort, NullKeys, ValueOrder};
use anabranch_batch::order::Direction;
use anabranch_batch::types;
use anabranch_operators::aggregate::custom::CustomAggregate;
use anabranch_operators::aggregate::{AggregateSpec, Call, Function};
use anabranch_operators::ordered::asof::{self, AsofSpec};
use anabranch_operators::ordered::top_k::TopKSpec;
use anabranch_plan::asof::{AsofJoin, Strategy};
use anabranch_plan::{AggregateCall, AggregateFunction, Nulls, SortKey, TopK};
use arrow::datatypes::DataType;
use datafusion_common::DFSchema;

use crate::error::Error;

/// The types that a schema's columns have in batches.
pub(super) fn types_of(schema: &DFSchema) -> Vec<DataType> {
    schema.fields().iter().map(|field| types::narrowed_type(field.data_type())).collect()
}

pub(super) fn layout(key: &[usize], types: &[DataType]) -> Arc<Layout> {
    Arc::new(Layout { key: key.to_vec(), values: ValueOrder::Hash, types: types.to_vec() })
}

pub(super) fn direction(key: &SortKey) -> (usize, Direction) {
    (key.column, Direction { descending: key.descending, nulls_first: key.nulls_first })
}

pub(super) fn aggregate_spec(
    keys: &[usize],
    calls: &[AggregateCall],
    input_types: Vec<DataType>,
) -> Result<AggregateSpec, Error> {
    let calls = calls
        .iter()
        .map(|call| Call {
            function: function(&call.function),
            argument: call.argument,
            distinct: call.distinct,
            filter: call.filter,
            order: call.order.iter().map(direction).collect(),
            output_type: types::narrowed_type(&call.output_type),
        })
        .collect();
    let spec = AggregateSpec {
        keys: keys.to_vec(),
        calls,
        input_types,
        is_append_only: false,
        effort: MergeEffort::default(),
    };
    spec.check().map_err(|error| Error::invalid(error.to_string()))?;
    Ok(spec)
}

fn function(function: &AggregateFunction) -> Function {
    match function {
        AggregateFunction::Count => Function::Count,
        AggregateFunction::Sum => Function::Sum,
        AggregateFunction::Avg => Function::Avg,
        AggregateFunction::Min => Function::Min,
        AggregateFunction::Max => Function::Max,
        AggregateFunction::BoolAnd => Function::BoolAnd,
        AggregateFunction::BoolOr => Function::BoolOr,
        AggregateFunction::BitAnd => Function::BitAnd,
        AggregateFunction::BitOr => Function::BitOr,
        AggregateFunction::BitXor => Function::BitXor,
        AggregateFunction::VarianceSample => Function::VarianceSample,
        AggregateFunction::VariancePopulation => Function::VariancePopulation,
        AggregateFunction::StddevSample => Function::StddevSample,
        AggregateFunction::StddevPopulation => Function::StddevPopulation,
        AggregateFunction::StringAgg(separator) => Function::StringAgg(separator.clone()),
        AggregateFunction::ArrayAgg => Function::ArrayAgg,
        AggregateFunction::FirstValue => Function::FirstValue,
        AggregateFunction::LastValue => Function::LastValue,
        AggregateFunction::Median => Function::Median,
        AggregateFunction::PercentileCont(part) => Function::PercentileCont(part.get()),
        AggregateFunction::Mode => Function::Mode,
        AggregateFunction::PercentileDisc(part) => Function::PercentileDisc(part.get()),
        AggregateFunction::TopK(k) => Function::TopK(*k),
        AggregateFunction::Custom(custom, further) => {
            let function: &CustomAggregate = custom.function().expect("frames put in aggregates of this type only");
            Function::Custom(function.clone(), further.clone())
        }
    }
}

pub(super) fn asof_spec(asof: &AsofJoin, left_types: Vec<DataType>, right_types: Vec<DataType>) -> AsofSpec {
    AsofSpec {
        left_key: asof.left_key.clone(),
        right_key: asof.right_key.clone(),
        nulls: match asof.nulls {
            Nulls::Differ => NullKeys::Skip,
            Nulls::Equal => NullKeys::Match,
        },
        left_time: asof.left_time,
        right_time: asof.right_time,
        strategy: strategy_of(asof.strategy),
        exact: asof.exact,
        tolerance: asof.tolerance,
        outer: asof.outer,
        left_types,
        right_types,
        effort: MergeEffort::default(),
    }
}

pub(super) fn top_k_spec(top: &TopK, input_types: Vec<DataType>) -> TopKSpec {
    TopKSpec {
        group: top.group.clone(),
        order: top.order.iter().map(direction).collect(),
        offset: top.offset,
        limit: top.limit,
        row_number: top.row_number,
        input_types,
        effort: MergeEffort::default(),
    }
}

/// Where the match of an as-of join lies.
pub(super) fn strategy_of(strategy: Strategy) -> asof::Strategy {
    match strategy {
        Strategy::Backward => asof::Strategy::Backward,
        Strategy::Forward => asof::Strategy::Forward,
        Strategy::Nearest => asof::Strategy::Nearest,
    }
}
