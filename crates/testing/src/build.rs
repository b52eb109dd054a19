//! Plans put together by hand: each function computes the schema of the node it makes.
//!
//! Law: every column of every plan that one [`Builder`] makes has a name of its own, so expressions
//! over any join of them are unambiguous.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_batch::numeric;
use anabranch_plan::asof::AsofJoin;
use anabranch_plan::recognize::Recognize;
use anabranch_plan::{AggregateCall, AggregateFunction, JoinKind, Node, Nulls, Plan, SetOperation, SortKey, TopK};
use anabranch_plan::{Binding, Recursive, RoundLimit, Window, WindowFunction};
use anabranch_spec::session::SessionWindows;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion_common::{Column, DFSchema, ScalarValue};
use datafusion_expr::{Expr, ExprSchemable};

/// A relation that plans may read.
#[derive(Clone, Debug)]
pub struct Relation {
    /// Catalog name.
    pub name: String,
    /// Types of the columns, all nullable.
    pub types: Vec<DataType>,
}

impl Relation {
    /// A relation of these columns.
    pub fn new(name: &str, types: &[DataType]) -> Relation {
        Relation { name: name.to_string(), types: types.to_vec() }
    }

    /// The columns as an Arrow schema, named `a0`, `a1`, ..
    pub fn schema(&self) -> SchemaRef {
        let field = |(i, data_type): (usize, &DataType)| Field::new(format!("a{i}"), data_type.clone(), true);
        Arc::new(Schema::new(self.types.iter().enumerate().map(field).collect::<Vec<_>>()))
    }
}

/// What a join is to be, besides its inputs.
#[derive(Clone, Debug)]
pub struct JoinOn {
    /// Which rows it yields.
    pub kind: JoinKind,
    /// Key columns, left and right.
    pub key: Vec<(usize, usize)>,
    /// How NULL keys compare.
    pub nulls: Nulls,
    /// Further condition.
    pub residual: Option<Expr>,
}

impl JoinOn {
    /// A join of `kind` on pairs of columns, as SQL's `ON` has it.
    pub fn new(kind: JoinKind, key: &[(usize, usize)]) -> JoinOn {
        JoinOn { kind, key: key.to_vec(), nulls: Nulls::Differ, residual: None }
    }
}

/// Makes plans, giving out column names.
#[derive(Debug, Default)]
pub struct Builder {
    names: usize,
}

impl Builder {
    /// A builder that has given out no name yet.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// All columns of a relation.
    pub fn scan(&mut self, relation: &Relation) -> Arc<Plan> {
        self.scan_columns(relation, &(0..relation.types.len()).collect::<Vec<_>>())
    }

    /// Some columns of a relation.
    pub fn scan_columns(&mut self, relation: &Relation, columns: &[usize]) -> Arc<Plan> {
        let types: Vec<DataType> = columns.iter().map(|&column| relation.types[column].clone()).collect();
        self.plan(Node::Scan { relation: relation.name.clone(), columns: columns.to_vec() }, &types)
    }

    /// Literal rows.
    pub fn constant(&mut self, types: &[DataType], rows: Vec<Vec<ScalarValue>>) -> Arc<Plan> {
        self.plan(Node::Constant { rows }, types)
    }

    /// A filter and a projection in one.
    pub fn stage(&mut self, input: &Arc<Plan>, filter: Vec<Expr>, project: Vec<Expr>) -> Arc<Plan> {
        let types: Vec<DataType> = project.iter().map(|expr| type_of(expr, input)).collect();
        self.plan(Node::Stage { input: input.clone(), filter, project }, &types)
    }

    /// The rows on which all of `filter` is true, whole.
    pub fn filter(&mut self, input: &Arc<Plan>, filter: Vec<Expr>) -> Arc<Plan> {
        let all = (0..width(input)).map(|column| col(input, column)).collect();
        self.stage(input, filter, all)
    }

    /// One row for each element of list columns, side by side.
    pub fn unnest(&mut self, input: &Arc<Plan>, columns: &[usize], outer: bool) -> Arc<Plan> {
        let mut types = types(input);
        for column in columns {
            let DataType::List(element) = &types[*column] else { panic!("column {column} is not a list") };
            types[*column] = element.data_type().clone();
        }
        self.plan(Node::Unnest { input: input.clone(), columns: columns.to_vec(), outer }, &types)
    }

    /// A join with all its columns.
    pub fn join(&mut self, left: &Arc<Plan>, right: &Arc<Plan>, on: JoinOn) -> Arc<Plan> {
        let output = (0..join_types(left, right, on.kind).len()).collect();
        self.join_output(left, right, on, output)
    }

    /// A join with some of its columns.
    pub fn join_output(&mut self, left: &Arc<Plan>, right: &Arc<Plan>, on: JoinOn, output: Vec<usize>) -> Arc<Plan> {
        let all = join_types(left, right, on.kind);
        let types: Vec<DataType> = output.iter().map(|&column| all[column].clone()).collect();
        let (left_key, right_key) = on.key.into_iter().unzip();
        let (left, right) = (left.clone(), right.clone());
        let node = Node::Join {
            left,
            right,
            kind: on.kind,
            left_key,
            right_key,
            nulls: on.nulls,
            residual: on.residual,
            output,
        };
        self.plan(node, &types)
    }

    /// An as-of join.
    pub fn asof(&mut self, left: &Arc<Plan>, right: &Arc<Plan>, asof: AsofJoin) -> Arc<Plan> {
        let types = [types(left), types(right)].concat();
        self.plan(Node::Asof { left: left.clone(), right: right.clone(), asof }, &types)
    }

    /// Every row with the bounds of its session.
    pub fn session(&mut self, input: &Arc<Plan>, session: SessionWindows) -> Arc<Plan> {
        let mut types = types(input);
        types.extend([types[session.time].clone(), types[session.time].clone()]);
        self.plan(Node::Session { input: input.clone(), session }, &types)
    }

    /// The matches of a row pattern.
    pub fn recognize(&mut self, input: &Arc<Plan>, recognize: Recognize) -> Arc<Plan> {
        let inputs = types(input);
        let keys = recognize.partition.iter().map(|&column| inputs[column].clone());
        let types: Vec<DataType> = keys.chain(recognize.output.iter().map(|cell| cell.data_type.clone())).collect();
        self.plan(Node::Recognize { input: input.clone(), recognize: Box::new(recognize) }, &types)
    }

    /// Every row, then what window functions yield for it.
    pub fn window(&mut self, input: &Arc<Plan>, window: Window) -> Arc<Plan> {
        let mut types = types(input);
        for call in &window.calls {
            types.push(match &call.function {
                WindowFunction::Aggregate(call) => call.output_type.clone(),
                WindowFunction::Value { column, .. } => types[*column].clone(),
                WindowFunction::PercentRank | WindowFunction::CumeDist => DataType::Float64,
            });
        }
        self.plan(Node::Window { input: input.clone(), window: Box::new(window) }, &types)
    }

    /// Groups by `keys` and computes the calls.
    pub fn aggregate(&mut self, input: &Arc<Plan>, keys: &[usize], calls: Vec<AggregateCall>) -> Arc<Plan> {
        let inputs = types(input);
        let mut types: Vec<DataType> = keys.iter().map(|&key| inputs[key].clone()).collect();
        types.extend(calls.iter().map(|call| call.output_type.clone()));
        self.plan(Node::Aggregate { input: input.clone(), keys: keys.to_vec(), calls }, &types)
    }

    /// Each row once.
    pub fn distinct(&mut self, input: &Arc<Plan>) -> Arc<Plan> {
        self.plan(Node::Distinct { input: input.clone() }, &types(input))
    }

    /// The first rows of each group.
    pub fn top(&mut self, input: &Arc<Plan>, top: TopK) -> Arc<Plan> {
        let mut types = types(input);
        types.extend(top.numbered.then_some(DataType::UInt64));
        self.plan(Node::TopK { input: input.clone(), top }, &types)
    }

    /// The rows of all inputs.
    pub fn union(&mut self, inputs: Vec<Arc<Plan>>) -> Arc<Plan> {
        let types = types(&inputs[0]);
        self.plan(Node::Union { inputs }, &types)
    }

    /// A set operation.
    pub fn set(&mut self, operation: SetOperation, left: &Arc<Plan>, right: &Arc<Plan>) -> Arc<Plan> {
        let node = Node::SetOperation { operation, left: left.clone(), right: right.clone() };
        self.plan(node, &types(left))
    }

    /// A variable of a loop around the plan.
    pub fn variable(&mut self, depth: usize, index: usize, types: &[DataType]) -> Arc<Plan> {
        self.plan(Node::Variable { depth, index }, types)
    }

    /// A loop: what each round assigns to its variables, and what it yields.
    pub fn recursive(&mut self, plans: Vec<Arc<Plan>>, result: &Arc<Plan>, limit: RoundLimit) -> Arc<Plan> {
        let binding =
            |(n, plan): (usize, Arc<Plan>)| Binding { name: format!("v{n}"), schema: plan.schema.clone(), plan };
        let bindings = plans.into_iter().enumerate().map(binding).collect();
        let node = Node::Recursive(Box::new(Recursive { bindings, result: result.clone(), limit }));
        self.plan(node, &types(result))
    }

    fn plan(&mut self, node: Node, types: &[DataType]) -> Arc<Plan> {
        let fields: Fields = types
            .iter()
            .map(|data_type| {
                self.names += 1;
                Field::new(format!("x{}", self.names), data_type.clone(), true)
            })
            .collect();
        let schema = DFSchema::from_unqualified_fields(fields, HashMap::new()).expect("names are unique");
        Arc::new(Plan { node, schema: Arc::new(schema) })
    }
}

/// Number of columns.
pub fn width(plan: &Plan) -> usize {
    plan.schema.fields().len()
}

/// Types of the columns.
pub fn types(plan: &Plan) -> Vec<DataType> {
    plan.schema.fields().iter().map(|field| field.data_type().clone()).collect()
}

/// A column of a plan, as an expression over its rows.
pub fn col(plan: &Plan, column: usize) -> Expr {
    Expr::Column(Column::from_name(plan.schema.field(column).name()))
}

/// The type of an expression over a plan's rows.
pub fn type_of(expr: &Expr, input: &Plan) -> DataType {
    expr.get_type(&input.schema).expect("the expression fits its input")
}

/// A call on a column, with the result type SQL gives it.
pub fn call(function: AggregateFunction, input: &Plan, argument: Option<usize>) -> AggregateCall {
    let argument_type = argument.map(|column| types(input)[column].clone());
    let output_type = result_type(&function, argument_type.as_ref());
    AggregateCall { function, argument, distinct: false, filter: None, order: vec![], output_type }
}

/// Ascending, NULL last.
pub fn ascending(column: usize) -> SortKey {
    SortKey { column, descending: false, nulls_first: false }
}

/// Descending, NULL first: the reverse of [`ascending`].
pub fn descending(column: usize) -> SortKey {
    SortKey { column, descending: true, nulls_first: true }
}

fn join_types(left: &Plan, right: &Plan, kind: JoinKind) -> Vec<DataType> {
    let mut all = types(left);
    match kind {
        JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full => all.extend(types(right)),
        JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftAntiNullAware => {}
        JoinKind::LeftMark => all.push(DataType::Boolean),
    }
    all
}

fn result_type(function: &AggregateFunction, argument: Option<&DataType>) -> DataType {
    use AggregateFunction as F;
    let argument = || argument.expect("only count does without an argument").clone();
    match function {
        F::Count => DataType::Int64,
        F::Sum => match argument() {
            DataType::Decimal128(precision, scale) => DataType::Decimal128((precision + 10).min(38), scale),
            DataType::Float32 | DataType::Float64 => DataType::Float64,
            numeric::TYPE => numeric::TYPE,
            _ => DataType::Int64,
        },
        F::Avg => match argument() {
            DataType::Decimal128(..) | numeric::TYPE => numeric::TYPE,
            _ => DataType::Float64,
        },
        F::Min | F::Max | F::BitAnd | F::BitOr | F::BitXor | F::FirstValue | F::LastValue | F::Median => argument(),
        F::PercentileDisc(_) | F::Mode => argument(),
        F::PercentileCont(_) => DataType::Float64,
        F::TopK(_) => anabranch_operators::aggregate::ranked_type(&argument()),
        F::BoolAnd | F::BoolOr => DataType::Boolean,
        F::VarianceSample | F::VariancePopulation | F::StddevSample | F::StddevPopulation => DataType::Float64,
        F::StringAgg(_) => DataType::Utf8View,
        F::ArrayAgg => DataType::List(Arc::new(Field::new_list_field(argument(), true))),
        F::Custom(..) => unreachable!("frames alone have aggregates of users"),
    }
}
