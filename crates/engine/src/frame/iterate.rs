//! Loops over frames: variables that are defined by themselves.
//!
//! Law: at each instant a variable holds what the rounds of `docs/semantics.md` ("Recursion") give
//! over the rows in force at that instant. Verbs over a variable look at rows, not at lifetimes:
//! joins, aggregates, `where_not_exists`, and the verbs on single rows. What depends on no variable
//! is computed outside of the loop, by all verbs.
//!
//! A variable is a node with a number of its own while its loop is built, so that a body may use
//! variables of loops around it. When the loop is closed, the number becomes a depth, and temporal
//! verbs over variables become the relational nodes that mean the same for rows in force.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_plan::temporal::Verb;
use anabranch_plan::{Binding, JoinKind, Node, Nulls, Plan, Recursive, RoundLimit};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::DFSchemaRef;
use datafusion_expr::lit;

use super::events::Events;
use super::expression::{self, Resolved, col};
use super::input::planned;
use super::query::{Frame, columns_of, schema_of, temporal};
use super::rows::computed;
use crate::error::Error;

/// Depths from here on are numbers of loops that are still being built.
const OPEN: usize = usize::MAX / 2;
/// The next number.
static NEXT: AtomicUsize = AtomicUsize::new(OPEN);

impl Frame {
    /// The rows of this frame, and all that `body` makes of the rows found so far, each once: the
    /// least set that holds both. `body` yields the columns of this frame.
    ///
    /// ```
    /// use anabranch_engine::frame::{Event, Events, How, col};
    /// use anabranch_engine::{Options, Session};
    /// use arrow::datatypes::{DataType, Field, Schema};
    ///
    /// let number = |name: &str| Field::new(name, DataType::Int64, true);
    /// let edges = Events::input("edges", Schema::new(vec![number("src"), number("dst")])).frame();
    /// let start = Events::input("start", Schema::new(vec![number("node")])).frame();
    /// // Which nodes can be reached, at each instant, over the edges in force.
    /// let reached = start.iterate(|reached| {
    ///     reached.join(&edges, [col("node")], [col("src")], How::Inner).select([col("dst").alias("node")])
    /// });
    ///
    /// let mut session = Session::new(Options::default())?;
    /// let mut run = session.start(&reached)?;
    /// run.push("start", vec![Event::interval(0, 100, [1i64.into()])])?;
    /// run.push("edges", vec![
    ///     Event::interval(0, 50, [1i64.into(), 2i64.into()]),
    ///     Event::interval(20, 80, [2i64.into(), 1i64.into()]),
    ///     Event::interval(30, 90, [2i64.into(), 3i64.into()]),
    /// ])?;
    /// run.finish()?;
    /// let mut lifetimes: Vec<String> = run.lifetimes()?.iter().map(ToString::to_string).collect();
    /// lifetimes.sort();
    /// assert_eq!(lifetimes, ["[0, 100) 1", "[0, 50) 2", "[30, 50) 3"]);
    /// # Ok::<(), anabranch_engine::Error>(())
    /// ```
    #[must_use]
    pub fn iterate(&self, body: impl FnOnce(Frame) -> Frame) -> Frame {
        let state = match self.state() {
            Ok(state) => state,
            Err(error) => return Frame::failed(error),
        };
        let open = Open::new(vec![state.plan.schema.clone()]);
        let variable = Frame::regrouped(state, open.variable(0), state.group.clone());
        let all = self.union(&body(variable)).distinct();
        open.closed(RoundLimit::None, std::slice::from_ref(&all), &state.group).remove(0)
    }
}

/// The fixed point of variables that are defined by each other. Each variable is empty at first and
/// has the columns of its schema. `body` takes the variables and yields what a round makes of each;
/// the frames that come back hold what is there when a round changes nothing.
///
/// A variable is a bag: a loop over sets says [`distinct`](Frame::distinct), one for least costs
/// groups and takes the minimum. Otherwise rounds have no end. The body has to begin with rows that
/// need no variable, or nothing comes of it.
///
/// ```
/// use anabranch_engine::frame::{Event, Events, How, col, iterate, lit, min};
/// use anabranch_engine::{Options, Session};
/// use arrow::datatypes::{DataType, Field, Schema};
///
/// let schema = |names: &[&str]| {
///     Schema::new(names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect::<Vec<_>>())
/// };
/// let edges = Events::input("edges", schema(&["src", "dst"])).frame();
/// let start = Events::input("start", schema(&["node"])).frame();
/// // The fewest edges to each node.
/// let [hops] = iterate([schema(&["node", "hops"])], |[hops]| {
///     let first = start.select([col("node"), lit(0i64).alias("hops")]);
///     let next = hops.join(&edges, [col("node")], [col("src")], How::Inner);
///     let next = next.select([col("dst").alias("node"), (col("hops") + lit(1i64)).alias("hops")]);
///     [first.union(&next).group_by([col("node")]).agg([min(col("hops")).alias("hops")])]
/// });
///
/// let mut session = Session::new(Options::default())?;
/// let mut run = session.start(&hops)?;
/// run.push("start", vec![Event::interval(0, 9, [1i64.into()])])?;
/// run.push("edges", [(1, 2), (2, 3), (3, 1), (1, 3)].map(|(a, b)| Event::interval(0, 9, [a.into(), b.into()])).to_vec())?;
/// run.finish()?;
/// let mut lifetimes: Vec<String> = run.lifetimes()?.iter().map(ToString::to_string).collect();
/// lifetimes.sort();
/// assert_eq!(lifetimes, ["[0, 9) 1, 0", "[0, 9) 2, 1", "[0, 9) 3, 1"]);
/// # Ok::<(), anabranch_engine::Error>(())
/// ```
pub fn iterate<const N: usize>(
    variables: [impl Into<SchemaRef>; N],
    body: impl FnOnce([Frame; N]) -> [Frame; N],
) -> [Frame; N] {
    iterate_within(RoundLimit::None, variables, body)
}

/// As [`iterate`], for so many rounds at most.
pub fn iterate_within<const N: usize>(
    limit: RoundLimit,
    variables: [impl Into<SchemaRef>; N],
    body: impl FnOnce([Frame; N]) -> [Frame; N],
) -> [Frame; N] {
    let schema = |schema: SchemaRef| {
        let column = |field: &Arc<arrow::datatypes::Field>| (field.name().clone(), planned(field.data_type()));
        schema_of(&schema.fields().iter().map(column).collect::<Vec<(String, DataType)>>())
    };
    let schemas: Result<Vec<DFSchemaRef>, Error> =
        variables.into_iter().map(|variable| schema(variable.into())).collect();
    let open = match schemas {
        Ok(schemas) => Open::new(schemas),
        Err(error) => return std::array::from_fn(|_| Frame::failed(error.clone())),
    };
    let frames = body(std::array::from_fn(|index| Frame::new(open.variable(index), BTreeMap::new(), vec![])));
    let closed = open.closed(limit, &frames, &[]);
    closed.try_into().expect("there is a frame a variable")
}

/// A loop whose body is being built.
struct Open {
    number: usize,
    /// The columns of each variable.
    schemas: Vec<DFSchemaRef>,
}

impl Open {
    fn new(schemas: Vec<DFSchemaRef>) -> Open {
        Open { number: NEXT.fetch_add(1, Ordering::Relaxed), schemas }
    }

    fn variable(&self, index: usize) -> Arc<Plan> {
        Arc::new(Plan { node: Node::Variable { depth: self.number, index }, schema: self.schemas[index].clone() })
    }

    /// The variables at the end of the loop that has these bodies.
    fn closed(&self, limit: RoundLimit, bodies: &[Frame], group: &[String]) -> Vec<Frame> {
        let loop_of = || {
            let (bindings, inputs) = self.bindings(bodies, group)?;
            let result = |index: usize| {
                let schema = self.schemas[index].clone();
                let result = Arc::new(Plan { node: Node::Variable { depth: 0, index }, schema: schema.clone() });
                let node = Node::Recursive(Box::new(Recursive { bindings: bindings.clone(), result, limit }));
                let rows = Arc::new(Plan { node, schema: schema.clone() });
                Frame::new(temporal(Verb::OfChanges, vec![rows], schema), inputs.clone(), group.to_vec())
            };
            Ok((0..bodies.len()).map(result).collect())
        };
        loop_of().unwrap_or_else(|error: Error| bodies.iter().map(|_| Frame::failed(error.clone())).collect())
    }

    fn bindings(&self, bodies: &[Frame], group: &[String]) -> Result<(Vec<Binding>, BTreeMap<String, Events>), Error> {
        let mut inputs: BTreeMap<String, Events> = BTreeMap::new();
        let mut bindings = Vec::with_capacity(bodies.len());
        for (body, schema) in bodies.iter().zip(&self.schemas) {
            let state = body.state()?;
            if state.group != group {
                return Err(Error::invalid("the body of a loop is of other groups than the loop")
                    .with_hint("Inside group_apply, combine frames that come from the group's own frame."));
            }
            is_of(schema, &state.plan.schema)?;
            for (name, events) in &state.inputs {
                if inputs.insert(name.clone(), events.clone()).is_some_and(|known| known != *events) {
                    return Err(Error::invalid(format!("two different inputs are named \"{name}\""))
                        .with_hint("Give them different names, or build both frames from one."));
                }
            }
            let plan = self.inside(&state.plan, 0)?;
            bindings.push(Binding { name: format!("variable {}", bindings.len()), schema: schema.clone(), plan });
        }
        Ok((bindings, inputs))
    }

    /// A part of the body, `depth` loops inside of this one.
    fn inside(&self, plan: &Arc<Plan>, depth: usize) -> Result<Arc<Plan>, Error> {
        match &plan.node {
            Node::Variable { depth: of, index } if *of == self.number => {
                let node = Node::Variable { depth, index: *index };
                Ok(Arc::new(Plan { node, schema: plan.schema.clone() }))
            }
            _ if !self.is_read_by(plan) => Ok(Arc::clone(plan)),
            node => {
                let depth = depth + usize::from(matches!(node, Node::Recursive(_)));
                let inputs = plan.inputs().into_iter().map(|input| self.inside(input, depth));
                let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
                let plan = with_each_input(plan, inputs);
                match &plan.node {
                    Node::Temporal { verb, inputs } => of_rows(&plan, verb, inputs),
                    _ => Ok(plan),
                }
            }
        }
    }

    fn is_read_by(&self, plan: &Plan) -> bool {
        match &plan.node {
            Node::Variable { depth, .. } => *depth == self.number,
            _ => plan.inputs().into_iter().any(|input| self.is_read_by(input)),
        }
    }
}

/// Whether a plan has a variable of a loop whose body ended elsewhere.
pub(crate) fn has_open_variable(plan: &Plan) -> bool {
    match &plan.node {
        Node::Variable { depth, .. } => *depth >= OPEN,
        _ => plan.inputs().into_iter().any(|input| has_open_variable(input)),
    }
}

/// The plan over these inputs, in the order of [`Plan::inputs`].
fn with_each_input(plan: &Arc<Plan>, inputs: Vec<Arc<Plan>>) -> Arc<Plan> {
    let inputs = std::cell::RefCell::new(inputs.into_iter());
    anabranch_plan::rewrite::with_inputs(plan, |_| {
        inputs.borrow_mut().next().expect("there are as many inputs as before")
    })
}

fn is_of(wanted: &DFSchemaRef, given: &DFSchemaRef) -> Result<(), Error> {
    let (wanted, given) = (columns_of(wanted), columns_of(given));
    let types = |columns: &[(String, DataType)]| columns.iter().map(|column| column.1.clone()).collect::<Vec<_>>();
    if types(&wanted) == types(&given) {
        return Ok(());
    }
    let shown = |columns: &[(String, DataType)]| {
        columns.iter().map(|(name, data_type)| format!("{name} {data_type}")).collect::<Vec<_>>().join(", ")
    };
    Err(Error::invalid("the body of a loop yields other columns than its variable has")
        .with_detail(format!("They are ({}) and ({}).", shown(&given), shown(&wanted)))
        .with_hint("Bring the body into the form of the variable with select."))
}

/// The node that means for rows in force what the verb means for lifetimes.
fn of_rows(plan: &Arc<Plan>, verb: &Verb, inputs: &[Arc<Plan>]) -> Result<Arc<Plan>, Error> {
    let joined = |kind, left_key: &[usize], right_key: &[usize], nulls| {
        let (left_key, right_key) = (left_key.to_vec(), right_key.to_vec());
        let output = (0..plan.schema.fields().len()).collect();
        let (left, right) = (inputs[0].clone(), inputs[1].clone());
        let node = Node::Join { left, right, kind, left_key, right_key, nulls, residual: None, output };
        Ok(Arc::new(Plan { node, schema: plan.schema.clone() }))
    };
    match verb {
        // (A loop inside: its rows are a collection already.)
        Verb::OfChanges => Ok(Arc::clone(&inputs[0])),
        Verb::Join { left_key, right_key } => joined(JoinKind::Inner, left_key, right_key, Nulls::Differ),
        Verb::WhereNotExists { left_key, right_key, nulls } => joined(JoinKind::LeftAnti, left_key, right_key, *nulls),
        Verb::Aggregate { keys, calls }
            if calls.is_empty() && keys.iter().copied().eq(0..inputs[0].schema.fields().len()) =>
        {
            let node = Node::Distinct { input: inputs[0].clone() };
            Ok(Arc::new(Plan { node, schema: plan.schema.clone() }))
        }
        Verb::Aggregate { keys, calls } if !keys.is_empty() => {
            let node = Node::Aggregate { input: inputs[0].clone(), keys: keys.clone(), calls: calls.clone() };
            Ok(Arc::new(Plan { node, schema: plan.schema.clone() }))
        }
        Verb::Aggregate { .. } => without_group(plan, &inputs[0]),
        _ => {
            let shown = anabranch_plan::explain::explain(plan, &|_| None);
            let name = shown.lines().next().unwrap_or_default().trim().to_owned();
            Err(Error::invalid(format!("a verb on lifetimes is not supported over a variable of a loop: {name}"))
                .with_hint("Compute it before the loop, or of the loop's result.")
                .with_sqlstate("0A000"))
        }
    }
}

/// An aggregate over all rows that yields nothing over none: it groups by a constant.
fn without_group(plan: &Arc<Plan>, input: &Arc<Plan>) -> Result<Arc<Plan>, Error> {
    const GROUP: &str = "@all";
    let Node::Temporal { verb: Verb::Aggregate { calls, .. }, .. } = &plan.node else {
        return Err(Error::internal("it is an aggregate"));
    };
    let mut columns = columns_of(&input.schema)
        .iter()
        .map(|(name, _)| expression::resolve(&col(name), &input.schema))
        .collect::<Result<Vec<Resolved>, _>>()?;
    let all = expression::resolve(&lit(true), &input.schema)?;
    columns.push(Resolved { name: GROUP.to_owned(), ..all });
    let n_columns = columns.len();
    let marked = computed(input, columns)?;
    let mut yielded = vec![(GROUP.to_owned(), DataType::Boolean)];
    yielded.extend(columns_of(&plan.schema));
    let node = Node::Aggregate { input: marked, keys: vec![n_columns - 1], calls: calls.clone() };
    let grouped = Arc::new(Plan { node, schema: schema_of(&yielded)? });
    let kept = columns_of(&plan.schema);
    let kept = kept.iter().map(|(name, _)| expression::resolve(&col(name), &grouped.schema));
    computed(&grouped, kept.collect::<Result<_, _>>()?)
}
