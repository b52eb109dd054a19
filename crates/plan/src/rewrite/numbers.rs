//! Row numbers without a limit as counts of the rows so far.
//!
//! ```text
//! row_number() over (partition by k order by t)
//! =   count(*) over (partition by k order by t rows unbounded preceding)
//! ```
//!
//! Law: the plan keeps its meaning: both number the rows of a group in the same order, ties by the
//! remaining columns.
//!
//! Cost: a top-k looks at its group, as many rows of it as it keeps: all, without a limit. Window
//! functions look at the rows whose numbers change.

use std::sync::Arc;

use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use anabranch_spec::frame::{Exclude, FrameBound, WindowFrame};
use anabranch_spec::window::{Window, WindowCall, WindowFunction};
use arrow::datatypes::DataType;
use datafusion_expr::cast;

use super::build::{column, field, schema, width};
use crate::ir::{Node, Plan};

/// The node with its numbers counted, if it numbers all rows.
pub(super) fn counted(plan: &Arc<Plan>) -> Option<Arc<Plan>> {
    let Node::TopK { input, top } = &plan.node else { return None };
    if !top.row_number || top.limit.is_some() || top.offset > 0 {
        return None;
    }
    let count = AggregateCall {
        function: AggregateFunction::Count,
        argument: None,
        distinct: false,
        filter: None,
        order: vec![],
        output_type: DataType::Int64,
    };
    let frame = WindowFrame { start: FrameBound::First, end: FrameBound::Rows(0), exclude: Exclude::Nothing };
    let calls = vec![WindowCall { function: WindowFunction::Aggregate(count), frame }];
    let window = Window { partition: top.group.clone(), order: top.order.clone(), calls };
    let number = width(input);
    let (name, wanted, nullable) = field(plan, number);
    let fields = (0..number).map(|at| field(plan, at)).chain([(name, DataType::Int64, nullable)]);
    let schema = schema(fields);
    let counted = Arc::new(Plan { node: Node::Window { input: Arc::clone(input), window: Box::new(window) }, schema });
    let mut project: Vec<_> = (0..number).map(|at| column(&counted, at)).collect();
    project.push(cast(column(&counted, number), wanted));
    let node = Node::Stage { input: counted, filter: vec![], project };
    Some(Arc::new(Plan { node, schema: plan.schema.clone() }))
}
