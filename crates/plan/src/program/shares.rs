//! Aggregates of shards' aggregates.

use arrow::datatypes::DataType;
use datafusion_common::DFSchema;

use super::block::Block;
use super::query;
use crate::expressions::exact_type;
use crate::{AggregateCall, AggregateFunction};

/// Digits of a quotient of plain numerics: a mean of a decimal with more has the decimal's scale.
const DIGITS_OF_QUOTIENT: u8 = 15;

/// How an aggregate is computed of the results of shards.
pub(super) struct ShardShares {
    function: AggregateFunction,
    /// Aggregates of each shard, with what is put behind the name.
    pub parts: Vec<(String, &'static str)>,
    output: String,
}

impl ShardShares {
    /// `None` if it cannot be put together.
    pub fn of(call: &AggregateCall, block: &Block, input: &DFSchema) -> Option<ShardShares> {
        use AggregateFunction::{Avg, BitAnd, BitOr, BitXor, BoolAnd, BoolOr, Count, Max, Min, Sum};
        let is_idempotent = matches!(call.function, Min | Max | BoolAnd | BoolOr | BitAnd | BitOr);
        if call.distinct && !is_idempotent {
            return None;
        }
        let is_wide = call.argument.is_some_and(
            |at| matches!(input.field(at).data_type(), DataType::Decimal128(digits, _) if *digits > DIGITS_OF_QUOTIENT),
        );
        let of = |function| query::call(block, &AggregateCall { function, ..call.clone() });
        let parts = match call.function {
            Count | Sum | Min | Max | BoolAnd | BoolOr | BitAnd | BitOr | BitXor => {
                vec![(of(call.function.clone()), "")]
            }
            Avg if is_wide => return None,
            Avg => vec![(of(Sum), "_sum"), (of(Count), "_count")],
            _ => return None,
        };
        Some(ShardShares { function: call.function.clone(), parts, output: exact_type(&call.output_type) })
    }

    /// The aggregate over the columns of each shard's results.
    pub fn combined(&self, columns: &[String]) -> String {
        match (&self.function, columns) {
            (AggregateFunction::Avg, [sum, count]) => {
                // (An operand like any call.)
                format!("(sum({sum})::{output} / nullif(sum({count}), 0))", output = self.output)
            }
            (AggregateFunction::Count, [count]) => format!("sum({count})"),
            (function, columns) => format!("{}({})", function.name(), columns.join(", ")),
        }
    }
}
