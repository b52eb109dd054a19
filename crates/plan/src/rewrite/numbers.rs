//! Places of all rows as counts of the rows so far.
//!
//! ```text
//! row_number() over (partition by k order by t)
//! =   count(*) over (partition by k order by t rows unbounded preceding)
//! rank() over (partition by k order by t)
//! =   count(*) over (.. groups between unbounded preceding and 1 preceding) + 1
//! dense_rank() over (partition by k order by t)
//! =   row_number() of the distinct (k, t)
//! ```
//!
//! Law: the plan keeps its meaning: both sides number the rows of a group in the same order, ties
//! by the remaining columns.
//!
//! Cost: a top-k looks at its group, as many rows of it as it keeps: all, without a limit. Window
//! functions look at the rows whose numbers change.

use std::sync::Arc;

use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use anabranch_spec::frame::{Exclude, FrameBound, WindowFrame};
use anabranch_spec::order::{Nulls, SortKey};
use anabranch_spec::top_k::{RankedBy, TopK};
use anabranch_spec::window::{Window, WindowCall, WindowFunction};
use arrow::datatypes::DataType;
use datafusion_expr::{Expr, cast, lit};

use super::build::{choose, column, field, replace, schema, width};
use crate::ir::{JoinKind, Node, Plan};

/// The node with its places counted, if it numbers all rows, or is a stage over such a node.
pub(super) fn counted(plan: &Arc<Plan>) -> Option<Arc<Plan>> {
    match &plan.node {
        Node::TopK { input, top } if is_of_all(top) && top.ranked == RankedBy::DenseRank => {
            Some(of_distinct(plan, input, top))
        }
        Node::TopK { input, top } if is_of_all(top) => {
            let (window, project) = by_counts(plan, input, top);
            let node = Node::Stage { input: window, filter: vec![], project };
            Some(Arc::new(Plan { node, schema: plan.schema.clone() }))
        }
        Node::Stage { input: numbered, filter, project } => {
            let Node::TopK { input, top } = &numbered.node else { return None };
            if !is_of_all(top) || top.ranked == RankedBy::DenseRank {
                return None;
            }
            let (window, columns) = by_counts(numbered, input, top);
            let counted = |expr: &Expr| {
                replace(expr, &|column| {
                    let at = numbered.schema.index_of_column_by_name(None, &column.name);
                    at.map_or_else(|| Expr::Column(column.clone()), |at| columns[at].clone())
                })
            };
            let filter = filter.iter().map(counted).collect();
            let project = project.iter().map(counted).collect();
            Some(Arc::new(Plan { node: Node::Stage { input: window, filter, project }, schema: plan.schema.clone() }))
        }
        _ => None,
    }
}

/// Whether all rows have their place.
fn is_of_all(top: &TopK) -> bool {
    top.numbered && top.limit.is_none() && top.offset == 0
}

/// Each row with a count, and the columns of the top-k over it.
fn by_counts(plan: &Plan, input: &Arc<Plan>, top: &TopK) -> (Arc<Plan>, Vec<Expr>) {
    let is_rank = top.ranked == RankedBy::Rank;
    let end = if is_rank { FrameBound::Peers(-1) } else { FrameBound::Rows(0) };
    let count = AggregateCall {
        function: AggregateFunction::Count,
        argument: None,
        distinct: false,
        filter: None,
        order: vec![],
        output_type: DataType::Int64,
    };
    let frame = WindowFrame { start: FrameBound::First, end, exclude: Exclude::Nothing };
    let calls = vec![WindowCall { function: WindowFunction::Aggregate(count), frame }];
    let window = Window { partition: top.group.clone(), order: top.order.clone(), calls };
    let number = width(input);
    let (name, wanted, nullable) = field(plan, number);
    let fields = (0..number).map(|at| field(plan, at)).chain([(name, DataType::Int64, nullable)]);
    let schema = schema(fields);
    let counted = Arc::new(Plan { node: Node::Window { input: Arc::clone(input), window: Box::new(window) }, schema });
    let mut project: Vec<_> = (0..number).map(|at| column(&counted, at)).collect();
    let count = column(&counted, number);
    project.push(cast(if is_rank { count + lit(1i64) } else { count }, wanted));
    (counted, project)
}

/// Each row beside the number of its group and order among the distinct ones.
fn of_distinct(plan: &Plan, input: &Arc<Plan>, top: &TopK) -> Arc<Plan> {
    let mut key = top.group.clone();
    key.extend(top.order.iter().map(|key| key.column));
    let keys = choose(input, &key);
    let distinct = Arc::new(Plan { schema: keys.schema.clone(), node: Node::Distinct { input: keys } });
    let order = top.order.iter().zip(top.group.len()..).map(|(key, at)| SortKey { column: at, ..*key }).collect();
    let group = (0..top.group.len()).collect();
    let top = TopK { group, order, ranked: RankedBy::Row, ..top.clone() };
    let (name, wanted, nullable) = field(plan, width(input));
    let fields = (0..key.len()).map(|at| field(&distinct, at)).chain([(name, wanted, nullable)]);
    let numbers = Plan { schema: schema(fields), node: Node::TopK { input: distinct, top } };
    let node = Node::Join {
        left: Arc::clone(input),
        right: Arc::new(numbers),
        kind: JoinKind::Inner,
        right_key: (0..key.len()).collect(),
        output: (0..width(input)).chain([width(input) + key.len()]).collect(),
        left_key: key,
        nulls: Nulls::Equal,
        residual: None,
    };
    Arc::new(Plan { node, schema: plan.schema.clone() })
}
