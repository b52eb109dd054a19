//! Aggregates of shards' aggregates.

use super::block::Block;
use super::query;
use crate::expressions::exact_type;
use crate::{AggregateCall, AggregateFunction};

/// How an aggregate is computed of the results of shards.
pub(super) struct ShardShares {
    function: AggregateFunction,
    /// Aggregates of each shard, with what is put behind the name.
    pub parts: Vec<(String, &'static str)>,
    output: String,
}

impl ShardShares {
    /// `None` if it cannot be put together.
    pub fn of(call: &AggregateCall, block: &Block) -> Option<ShardShares> {
        use AggregateFunction::{Avg, BitAnd, BitOr, BitXor, BoolAnd, BoolOr, Count, Max, Min, Sum};
        let is_idempotent = matches!(call.function, Min | Max | BoolAnd | BoolOr | BitAnd | BitOr);
        if call.distinct && !is_idempotent {
            return None;
        }
        let of = |function| query::call(block, &AggregateCall { function, ..call.clone() });
        let parts = match call.function {
            Count | Sum | Min | Max | BoolAnd | BoolOr | BitAnd | BitOr | BitXor => {
                vec![(of(call.function.clone()), "")]
            }
            Avg => vec![(of(Sum), "_sum"), (of(Count), "_count")],
            _ => return None,
        };
        Some(ShardShares { function: call.function.clone(), parts, output: exact_type(&call.output_type) })
    }

    /// The aggregate over the columns of each shard's results.
    pub fn combined(&self, columns: &[String]) -> String {
        match (&self.function, columns) {
            (AggregateFunction::Avg, [sum, count]) => {
                format!("sum({sum})::{output} / nullif(sum({count}), 0)", output = self.output)
            }
            (AggregateFunction::Count, [count]) => format!("sum({count})"),
            (function, columns) => format!("{}({})", function.name(), columns.join(", ")),
        }
    }
}
