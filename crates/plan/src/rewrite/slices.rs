//! Aggregates of windows that overlap, from aggregates of slices.
//!
//! ```text
//! count(*) by k, window over (windows of t)
//! = sum(n) by k, window over (windows of s over (count(*) as n by k, s = slice of t))
//! ```
//!
//! A *slice* is a stretch of time in which no window begins or ends: `window_floor(.., t)`. Rows of
//! one slice and key lie in the same windows. They are summed up once, and the sum of a slice goes
//! to its windows, in place of every row.
//!
//! Law: the answer is that of the aggregate over rows. All calls must combine: counts, exact sums
//! and means of integers and narrow decimals, least and greatest values, boolean and bitwise ones.
//! A partial sum has room for any sum of its rows. Other sums (of floats, which round once) and
//! calls that look at single values keep the aggregate over rows.
//!
//! Cost: a row touches one group instead of one a window; a commit adds a change a slice, key and
//! window. Groups of slices are state beside the groups of windows, bounded by the same watermark.
//!
//! Source: Krishnamurthy, Wu, Franklin, *On-the-Fly Sharing for Streamed Aggregation* (SIGMOD
//! 2006); Traub et al., *Scotty* (ICDE 2018).

use std::sync::Arc;

use anabranch_batch::numeric;
use arrow::datatypes::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema};
use datafusion_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator};

use super::build::{column, field, replace, schema};
use super::numeric_mean::NumericMean;
use super::selectivity::cannot_fail;
use crate::ir::{Node, Plan};
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};

/// The function that says where a window begins.
const WINDOW_FLOOR: &str = "window_floor";

/// The aggregate over slices, if the plan is one over windows and its calls combine.
pub(super) fn sliced(plan: &Arc<Plan>) -> Option<Arc<Plan>> {
    let windowed = Windowed::of(plan)?;
    let mut slices = windowed.slices()?;
    let parts = windowed.calls.iter().map(|call| SlicePart::of(call, &mut slices)).collect::<Option<Vec<_>>>()?;
    Some(windowed.planned(plan, &slices, &parts))
}

/// Conditions and columns of some stages as those of one, over the rows below them.
struct Flat {
    input: Arc<Plan>,
    filter: Vec<Expr>,
    project: Vec<Expr>,
}

impl Flat {
    fn of(plan: &Arc<Plan>) -> Flat {
        let Node::Stage { input, filter, project } = &plan.node else {
            let project = (0..plan.schema.fields().len()).map(|at| column(plan, at)).collect();
            return Flat { input: Arc::clone(plan), filter: vec![], project };
        };
        let below = Flat::of(input);
        let over = |expr: &Expr| below.over(expr, &input.schema);
        let filter = below.filter.iter().cloned().chain(filter.iter().map(over)).collect();
        Flat { project: project.iter().map(over).collect(), filter, input: Arc::clone(&below.input) }
    }

    /// An expression over the projected columns, as one over the rows below.
    fn over(&self, expr: &Expr, projected: &DFSchema) -> Expr {
        replace(expr, &|column| self.project[place(column, projected)].clone())
    }
}

fn place(column: &Column, schema: &DFSchema) -> usize {
    schema.maybe_index_of_column(column).expect("expressions name columns of their input")
}

/// Positions of the columns that an expression reads.
fn read_by(expr: &Expr, schema: &DFSchema) -> Vec<usize> {
    let mut read: Vec<usize> = expr.column_refs().into_iter().map(|column| place(column, schema)).collect();
    read.sort_unstable();
    read.dedup();
    read
}

/// An aggregate by window: its keys and conditions after rows were given to windows, what its calls
/// read, and the stage that lists the windows of a row.
struct Windowed<'a> {
    calls: &'a [AggregateCall],
    /// The unnested rows.
    unnested: Arc<Plan>,
    /// The column of windows among them.
    list: usize,
    /// What lists windows.
    below: Flat,
    /// Conditions on rows and their windows.
    filter: Vec<Expr>,
    /// Columns of the aggregate's input.
    project: Vec<Expr>,
    /// Of these: the groups.
    keys: &'a [usize],
}

impl<'a> Windowed<'a> {
    fn of(plan: &'a Arc<Plan>) -> Option<Windowed<'a>> {
        let Node::Aggregate { input, keys, calls } = &plan.node else { return None };
        let above = Flat::of(input);
        let Node::Unnest { input: listed, columns, outer: false } = &above.input.node else { return None };
        let below = Flat::of(listed);
        // (Rows of an aggregate may be sums of slices already.)
        let is_aggregate = matches!(below.input.node, Node::Aggregate { .. });
        let [list] = columns[..] else { return None };
        if keys.is_empty() || calls.is_empty() || is_aggregate {
            return None;
        }
        let Flat { input: unnested, filter, project } = above;
        Some(Windowed { calls, unnested, list, below, filter, project, keys })
    }

    fn windows(&self, expr: &Expr) -> bool {
        read_by(expr, &self.unnested.schema).contains(&self.list)
    }

    /// What the rows are summed up by; `None` where windows depend on more than a slice and groups.
    fn slices(&self) -> Option<Slices> {
        let (on_windows, on_rows): (Vec<Expr>, Vec<Expr>) =
            self.filter.iter().cloned().partition(|condition| self.windows(condition));
        let rows = &self.below.input.schema;
        let over_rows = |expr: &Expr| self.below.over(expr, &self.unnested.schema);
        let on_rows: Vec<Expr> = on_rows.iter().map(over_rows).collect();
        let keys: Vec<Expr> = self.keys.iter().map(|key| self.project[*key].clone()).collect();
        let mut values: Vec<Option<Expr>> = vec![None; self.project.len()];
        for used in self.calls.iter().flat_map(|call| call.argument.into_iter().chain(call.filter)) {
            let value = &self.project[used];
            if self.windows(value) {
                return None;
            }
            values[used] = Some(over_rows(value));
        }
        // A row that is in no window may not be evaluated by the aggregate over windows.
        let is_safe = |expr: &Expr| cannot_fail(expr, rows);
        let may_leave_out = !on_windows.is_empty();
        if !on_rows.iter().all(is_safe) || (may_leave_out && !values.iter().flatten().all(is_safe)) {
            return None;
        }
        let mut slices = Slices {
            slice: None,
            windows: Expr::default(),
            groups: vec![],
            passed: vec![],
            on_rows,
            on_windows,
            keys,
            values,
            rows: Arc::clone(&self.below.input),
        };
        slices.windows = slices.over_slice(&self.below.project[self.list])?;
        let n_windows = match &slices.windows {
            Expr::ScalarFunction(call) if call.func.name() == "make_array" => call.args.len(),
            _ => 0,
        };
        if n_windows < 2 || slices.windows.column_refs().len() != 1 {
            return None;
        }
        let read = slices.keys.iter().chain(&slices.on_windows).flat_map(|expr| read_by(expr, &self.unnested.schema));
        let mut read: Vec<usize> = read.filter(|at| *at != self.list).collect();
        read.sort_unstable();
        read.dedup();
        for at in read {
            slices.pass(at, &self.below.project[at])?;
        }
        slices.is_fewer_than_rows().then_some(slices)
    }

    fn planned(&self, plan: &Plan, slices: &Slices, parts: &[SlicePart]) -> Arc<Plan> {
        let summed = slices.summed(&self.below.filter, parts, &self.project_names(plan));
        let n_before = 1 + slices.groups.len();
        // Windows of each slice.
        let mut project = vec![slices.windows.clone()];
        let mut fields = vec![("windows".to_owned(), self.list_type(), true)];
        for (_, passed) in &slices.passed {
            project.push(passed.clone());
            fields.push(described("passed", passed, &summed.schema));
        }
        for at in n_before..summed.schema.fields().len() {
            project.push(column(&summed, at));
            fields.push(field(&summed, at));
        }
        let listed = stage(summed, vec![], project, fields.clone());
        fields[0] = field(&self.unnested, self.list);
        let unnested = Node::Unnest { input: Arc::clone(&listed), columns: vec![0], outer: false };
        let unnested = Arc::new(Plan { node: unnested, schema: schema(fields) });
        // Keys of windows.
        let n_passed = 1 + slices.passed.len();
        let now_at = |before: &Column| {
            let before = place(before, &self.unnested.schema);
            let at = slices.passed.iter().position(|(at, _)| *at == before).map_or(0, |at| at + 1);
            column(&unnested, at)
        };
        let filter = slices.on_windows.iter().map(|condition| replace(condition, &now_at)).collect();
        let mut project: Vec<Expr> = slices.keys.iter().map(|key| replace(key, &now_at)).collect();
        let mut fields: Vec<_> = (0..project.len()).map(|at| field(plan, at)).collect();
        for at in n_passed..unnested.schema.fields().len() {
            project.push(column(&unnested, at));
            fields.push(field(&unnested, at));
        }
        combined(plan, stage(Arc::clone(&unnested), filter, project, fields), self.keys.len(), parts)
    }

    fn list_type(&self) -> DataType {
        let Node::Unnest { input, .. } = &self.unnested.node else { return DataType::Null };
        input.schema.field(self.list).data_type().clone()
    }

    fn project_names(&self, plan: &Plan) -> Vec<String> {
        (self.keys.len()..plan.schema.fields().len()).map(|at| plan.schema.field(at).name().clone()).collect()
    }
}

/// What rows are summed up by, and how windows and keys follow from that.
struct Slices {
    rows: Arc<Plan>,
    /// The slice of a row; found in the list of windows.
    slice: Option<Expr>,
    /// The list of windows, over the columns that rows are summed up by.
    windows: Expr,
    /// The other columns that rows are summed up by.
    groups: Vec<Expr>,
    /// Columns beside the list that keys and conditions read: their place before, and what they are
    /// after rows were summed up.
    passed: Vec<(usize, Expr)>,
    /// Conditions on rows.
    on_rows: Vec<Expr>,
    /// Conditions on windows, over the unnested rows.
    on_windows: Vec<Expr>,
    /// The groups of windows, over the unnested rows.
    keys: Vec<Expr>,
    /// What calls read, over rows, by column of the aggregate's input; further ones behind these.
    values: Vec<Option<Expr>>,
}

impl Slices {
    fn column_of_slice() -> Expr {
        Expr::Column(Column::from_name("slice"))
    }

    fn column_of_group(n: usize) -> Expr {
        Expr::Column(Column::from_name(format!("group {n}")))
    }

    /// An expression over rows with the slice in place of the floor of a time. `None` if there are
    /// floors of two kinds.
    fn over_slice(&mut self, expr: &Expr) -> Option<Expr> {
        let mut is_one = true;
        let replaced = expr.clone().transform_down(|e| {
            if !is_floor(&e) || has_floor_inside(&e) {
                return Ok(Transformed::no(e));
            }
            is_one &= *self.slice.get_or_insert_with(|| e.clone()) == e;
            Ok(Transformed::new(Slices::column_of_slice(), true, TreeNodeRecursion::Jump))
        });
        replaced.ok().map(|replaced| replaced.data).filter(|_| is_one)
    }

    /// Takes a column that keys or conditions read: a function of the slice, or a group.
    fn pass(&mut self, at: usize, expr: &Expr) -> Option<()> {
        let over_slice = self.over_slice(expr)?;
        let passed = if over_slice == *expr {
            self.groups.push(over_slice);
            Slices::column_of_group(self.groups.len() - 1)
        } else if over_slice.column_refs().iter().all(|column| column.name == "slice") {
            over_slice
        } else {
            return None;
        };
        self.passed.push((at, passed));
        Some(())
    }

    /// Whether rows of one slice and group may differ in their time.
    fn is_fewer_than_rows(&self) -> bool {
        let Some(slice) = &self.slice else { return false };
        let times = slice.column_refs();
        self.groups.iter().all(|group| group.column_refs().is_disjoint(&times))
    }

    /// The whole number that a value is, perhaps as a float: its place among values, and its type.
    fn whole_number(&mut self, value: usize) -> Option<(usize, DataType)> {
        let expr = self.values[value].clone()?;
        let of = expr.get_type(&self.rows.schema).ok()?;
        if of.is_integer() {
            return Some((value, of));
        }
        let Expr::Cast(Cast { expr: whole, .. }) = expr else { return None };
        let of_whole = whole.get_type(&self.rows.schema).ok()?;
        if of != DataType::Float64 || !of_whole.is_integer() {
            return None;
        }
        self.values.push(Some(*whole));
        Some((self.values.len() - 1, of_whole))
    }

    /// Rows summed up by slice and groups.
    fn summed(&self, filter: &[Expr], parts: &[SlicePart], names: &[String]) -> Arc<Plan> {
        let rows = &self.rows.schema;
        let slice = self.slice.clone().expect("windows were found to depend on a slice");
        let mut fields = vec![described("slice", &slice, rows)];
        let mut project = vec![slice];
        for (n, group) in self.groups.iter().enumerate() {
            fields.push(described(&format!("group {n}"), group, rows));
            project.push(group.clone());
        }
        let n_keys = project.len();
        let mut places = vec![None; self.values.len()];
        for (used, value) in self.values.iter().enumerate() {
            if let Some(value) = value {
                places[used] = Some(project.len());
                fields.push(described(&format!("value {used}"), value, rows));
                project.push(value.clone());
            }
        }
        let filter = filter.iter().chain(&self.on_rows).cloned().collect();
        let input = stage(Arc::clone(&self.rows), filter, project, fields);
        let now_at = |used: usize| places[used].expect("what calls read has a place");
        let mut calls = Vec::new();
        let mut fields: Vec<_> = (0..n_keys).map(|at| field(&input, at)).collect();
        for (part, name) in parts.iter().zip(names) {
            for call in part.partials() {
                let is_nullable = call.function != AggregateFunction::Count;
                fields.push((format!("{name} of slice"), call.output_type.clone(), is_nullable));
                calls.push(AggregateCall {
                    argument: call.argument.map(now_at),
                    filter: call.filter.map(now_at),
                    ..call.clone()
                });
            }
        }
        let node = Node::Aggregate { input, keys: (0..n_keys).collect(), calls };
        Arc::new(Plan { node, schema: schema(fields) })
    }
}

fn is_floor(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.func.name() == WINDOW_FLOOR)
}

fn has_floor_inside(expr: &Expr) -> bool {
    let Expr::ScalarFunction(call) = expr else { return false };
    call.args.iter().any(|arg| arg.exists(|e| Ok(is_floor(e))).unwrap_or(true))
}

/// Name, type and nullability of an expression's column.
fn described(name: &str, expr: &Expr, over: &DFSchema) -> (String, DataType, bool) {
    let data_type = expr.get_type(over).expect("the expression was planned over these columns");
    (name.to_owned(), data_type, expr.nullable(over).unwrap_or(true))
}

fn stage(input: Arc<Plan>, filter: Vec<Expr>, project: Vec<Expr>, fields: Vec<(String, DataType, bool)>) -> Arc<Plan> {
    Arc::new(Plan { node: Node::Stage { input, filter, project }, schema: schema(fields) })
}

/// How a call follows from results over slices.
enum SlicePart {
    /// The results are combined by a function.
    Combined { partial: AggregateCall, by: AggregateFunction },
    /// The mean of integers: one division of their sum by their number.
    Mean { sum: AggregateCall, count: AggregateCall },
}

impl SlicePart {
    fn of(call: &AggregateCall, slices: &mut Slices) -> Option<SlicePart> {
        use AggregateFunction::{Avg, BitAnd, BitOr, BitXor, BoolAnd, BoolOr, Count, Max, Min, Sum};
        let ignores_duplicates = matches!(call.function, Min | Max | BoolAnd | BoolOr | BitAnd | BitOr);
        if !call.order.is_empty() || (call.distinct && !ignores_duplicates) {
            return None;
        }
        let of_argument = || {
            let value = slices.values[call.argument?].as_ref()?;
            value.get_type(&slices.rows.schema).ok()
        };
        let partial = |function: AggregateFunction, output_type: DataType| AggregateCall {
            function,
            output_type,
            ..call.clone()
        };
        let same = |by: AggregateFunction| {
            let partial = partial(by.clone(), call.output_type.clone());
            Some(SlicePart::Combined { partial, by })
        };
        match &call.function {
            Count if call.output_type == DataType::Int64 => {
                Some(SlicePart::Combined { partial: partial(Count, DataType::Int64), by: Sum })
            }
            Sum => Some(SlicePart::Combined { partial: partial(Sum, room_for_sums(&of_argument()?)?), by: Sum }),
            Avg if call.output_type == DataType::Float64 || call.output_type == numeric::TYPE => {
                let (argument, of) = slices.whole_number(call.argument?)?;
                let sum = AggregateCall { argument: Some(argument), ..partial(Sum, room_for_sums(&of)?) };
                Some(SlicePart::Mean { sum, count: partial(Count, DataType::Int64) })
            }
            Min | Max if of_argument()? == call.output_type => same(call.function.clone()),
            BoolAnd | BoolOr | BitAnd | BitOr | BitXor => same(call.function.clone()),
            _ => None,
        }
    }

    /// What is computed of each slice.
    fn partials(&self) -> Vec<&AggregateCall> {
        match self {
            SlicePart::Combined { partial, .. } => vec![partial],
            SlicePart::Mean { sum, count } => vec![sum, count],
        }
    }
}

/// A type that holds the sum of 2^62 values of a type, if the sum is exact.
fn room_for_sums(of: &DataType) -> Option<DataType> {
    match of {
        DataType::Int16 | DataType::Int32 => Some(DataType::Int64),
        DataType::Int64 => Some(DataType::Decimal128(38, 0)),
        DataType::Decimal128(precision, scale) if *precision <= 18 => Some(DataType::Decimal128(38, *scale)),
        _ => None,
    }
}

/// Results of slices combined by window.
fn combined(plan: &Plan, input: Arc<Plan>, n_keys: usize, parts: &[SlicePart]) -> Arc<Plan> {
    let Node::Aggregate { calls: wanted, .. } = &plan.node else { unreachable!("an aggregate was taken apart") };
    let mut calls = Vec::new();
    let mut add = |function: AggregateFunction, output_type: DataType| {
        let argument = Some(n_keys + calls.len());
        calls.push(AggregateCall { function, argument, distinct: false, filter: None, order: vec![], output_type });
    };
    for (part, call) in parts.iter().zip(wanted) {
        match part {
            SlicePart::Combined { by, .. } => add(by.clone(), call.output_type.clone()),
            SlicePart::Mean { sum, count } => {
                add(AggregateFunction::Sum, sum.output_type.clone());
                add(AggregateFunction::Sum, count.output_type.clone());
            }
        }
    }
    let keys = (0..n_keys).collect();
    if parts.iter().all(|part| matches!(part, SlicePart::Combined { .. })) {
        return Arc::new(Plan { node: Node::Aggregate { input, keys, calls }, schema: plan.schema.clone() });
    }
    let mut fields: Vec<_> = (0..n_keys).map(|at| field(&input, at)).collect();
    fields.extend(calls.iter().map(|call| ("part".to_owned(), call.output_type.clone(), true)));
    let combined = Arc::new(Plan { node: Node::Aggregate { input, keys, calls }, schema: schema(fields) });
    let mut project: Vec<Expr> = (0..n_keys).map(|at| column(&combined, at)).collect();
    let mut at = n_keys;
    for part in parts {
        let n_partials = part.partials().len();
        project.push(match part {
            SlicePart::Combined { .. } => column(&combined, at),
            SlicePart::Mean { .. } => {
                let is = plan.schema.field(project.len()).data_type();
                quotient(column(&combined, at), column(&combined, at + 1), is)
            }
        });
        at += n_partials;
    }
    let node = Node::Stage { input: combined, filter: vec![], project };
    Arc::new(Plan { node, schema: plan.schema.clone() })
}

fn quotient(sum: Expr, count: Expr, is: &DataType) -> Expr {
    if *is == numeric::TYPE {
        return NumericMean::udf().call(vec![sum, count]);
    }
    let float = |expr: Expr| Box::new(Expr::Cast(Cast::new(Box::new(expr), DataType::Float64)));
    // (A mean of nothing is NULL, and NULL is divided by no number.)
    Expr::BinaryExpr(BinaryExpr::new(float(sum), Operator::Divide, float(count)))
}
