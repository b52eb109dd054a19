//! The nodes of a plan.
//!
//! Equality and hashing are structural: two equal plans denote the same collection, and the engine
//! renders them once.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use anabranch_spec::aggregate::AggregateCall;
use anabranch_spec::asof::AsofJoin;
use anabranch_spec::limits::RoundLimit;
use anabranch_spec::order::Nulls;
use anabranch_spec::session::SessionWindows;
use anabranch_spec::top_k::TopK;
use anabranch_spec::window::Window;
use arrow::datatypes::SchemaRef;
use datafusion_common::{DFSchema, DFSchemaRef, ScalarValue, TableReference};
use datafusion_expr::Expr;

use crate::recognize::Recognize;
use crate::temporal::Verb;

/// A collection as asked for: a node and the schema of the rows it yields.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// What produces the rows.
    pub node: Node,
    /// Columns of the rows, in order. Names are unique and carry no qualifier: expressions above
    /// refer to them as `name`. They come from the columns' origin, not from aliases, so that equal
    /// parts of different queries are equal. Only the root of a query has the names its user wrote.
    pub schema: DFSchemaRef,
}

/// One step of a plan. Inputs are shared, so common parts of a plan may be common in memory too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// The rows of a catalog relation (table, source, materialized view), some of its columns.
    Scan {
        /// Catalog name of the relation.
        relation: String,
        /// Positions in the relation's full schema, in output order.
        columns: Vec<usize>,
    },
    /// Literal rows, present from the beginning of time. Zero columns with one row is `SELECT`
    /// without `FROM`.
    Constant {
        /// One entry a row; each has one value a column of the plan's schema.
        rows: Vec<Vec<ScalarValue>>,
    },
    /// Keeps the rows for which every predicate is true, then computes the output columns. Fused
    /// into one pass.
    Stage {
        /// Rows to filter and compute from.
        input: Arc<Plan>,
        /// Conjuncts, evaluated in order; a row on which one is false or null is not shown to the
        /// next.
        filter: Vec<Expr>,
        /// One expression an output column, over the input's schema.
        project: Vec<Expr>,
    },
    /// One output row for each element of a list column (`unnest`); the element replaces the list.
    /// Several lists are taken side by side: the first elements make a row, then the second ones; a
    /// shorter list is filled up with nulls.
    Unnest {
        /// Rows with list columns.
        input: Arc<Plan>,
        /// Positions of the list columns, at least one.
        columns: Vec<usize>,
        /// Whether a row whose lists are all null or empty yields one row with nulls.
        outer: bool,
    },
    /// Pairs (or keeps, or drops) rows whose keys are equal and which pass the residual predicate.
    Join {
        /// The rows that semi, anti and mark joins yield.
        left: Arc<Plan>,
        /// The rows that they are looked up in.
        right: Arc<Plan>,
        /// Which rows come out.
        kind: JoinKind,
        /// Key columns of the left input; empty means a single group (cross join).
        left_key: Vec<usize>,
        /// Key columns of the right input, pairwise of the same types as `left_key`.
        right_key: Vec<usize>,
        /// Whether NULL keys are equal to each other (set operations) or match nothing (SQL joins).
        nulls: Nulls,
        /// Further condition over [`Plan::join_schema`]: `left.name` and `right.name`, left columns
        /// first.
        residual: Option<Expr>,
        /// Output columns, as positions in left columns followed by right columns. Semi, anti: left
        /// columns only. Mark: `left.len()` denotes the mark.
        output: Vec<usize>,
    },
    /// Each left row with the right row of its key that is nearest in time: the left columns, then
    /// the right ones.
    Asof {
        /// Each row is looked up
        left: Arc<Plan>,
        /// in these.
        right: Arc<Plan>,
        /// What is matched.
        asof: AsofJoin,
    },
    /// One row per group: the key columns, then the calls' results. Without keys, exactly one row
    /// (SQL's global aggregate).
    Aggregate {
        /// Rows to group.
        input: Arc<Plan>,
        /// Key columns of the input; NULLs form a group.
        keys: Vec<usize>,
        /// What is computed for each group.
        calls: Vec<AggregateCall>,
    },
    /// Each distinct row once.
    Distinct {
        /// Rows, perhaps repeated.
        input: Arc<Plan>,
    },
    /// The first rows of each group in an order.
    TopK {
        /// Rows to choose from.
        input: Arc<Plan>,
        /// The groups, the order and how many.
        top: TopK,
    },
    /// Every row that has a time, then the first and the last time of its session.
    Session {
        /// Rows to look at.
        input: Arc<Plan>,
        /// Partitions, time and gap.
        session: SessionWindows,
    },
    /// One row for each match of a row pattern: the partition's columns, then the cells it yields.
    Recognize {
        /// Rows to look for matches in.
        input: Arc<Plan>,
        /// What is looked for.
        recognize: Box<Recognize>,
    },
    /// Every row, then what window functions yield for it.
    Window {
        /// Rows to look at.
        input: Arc<Plan>,
        /// Partitions, order and functions.
        window: Box<Window>,
    },
    /// The rows of all inputs, with multiplicities added. Schemas agree in types.
    Union {
        /// At least two.
        inputs: Vec<Arc<Plan>>,
    },
    /// `EXCEPT ALL`, `INTERSECT ALL` and their distinct forms.
    SetOperation {
        /// How multiplicities combine.
        operation: SetOperation,
        /// The rows kept.
        left: Arc<Plan>,
        /// The rows compared with; the same types.
        right: Arc<Plan>,
    },
    /// A verb on streams of events.
    Temporal {
        /// What is done.
        verb: Verb,
        /// As many as the verb takes.
        inputs: Vec<Arc<Plan>>,
    },
    /// A loop: variables that are defined by themselves, and what is made of them in the end.
    Recursive(Box<Recursive>),
    /// The rows of a variable of a [`Node::Recursive`] around this node.
    Variable {
        /// How many loops lie between this node and the loop of the variable; 0 is the innermost.
        depth: usize,
        /// The variable's position among the bindings of its loop.
        index: usize,
    },
}

/// Variables that are evaluated in rounds until a round changes none, and a result of the last
/// round.
///
/// All variables start empty. A round evaluates the bindings in their order: a binding sees the
/// variables before it as of this round, itself and those after it as of the round before. The loop
/// is at its fixed point when a round leaves every variable as it was. `result` sees the variables
/// as of the last round. Multiplicities are what the bindings' plans yield: a loop over sets has
/// [`Node::Distinct`] in its bindings. Within bindings and result, `Variable { depth: 0, .. }` is a
/// variable of this loop. A plan without variables of loops around it means the same in each round.
///
/// Two loops that differ in the names of their variables only are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recursive {
    /// The variables, in the order in which a round evaluates them; at least one.
    pub bindings: Vec<Binding>,
    /// What the loop yields.
    pub result: Arc<Plan>,
    /// When to stop before the fixed point.
    pub limit: RoundLimit,
}

/// A variable of a loop, and the plan that defines its rows.
#[derive(Clone, Debug)]
pub struct Binding {
    /// For people.
    pub name: String,
    /// Columns of the variable's rows. Their types are those of `plan`.
    pub schema: DFSchemaRef,
    /// What a round assigns to the variable.
    pub plan: Arc<Plan>,
}

impl PartialEq for Binding {
    fn eq(&self, other: &Binding) -> bool {
        self.schema == other.schema && self.plan == other.plan
    }
}

impl Eq for Binding {}

impl Hash for Binding {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.schema.hash(state);
        self.plan.hash(state);
    }
}

/// Which rows a join yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// Pairs that match.
    Inner,
    /// Also left rows without a match, with NULLs on the right.
    Left,
    /// Also right rows without a match, with NULLs on the left.
    Right,
    /// Both.
    Full,
    /// Left rows with at least one match, once each.
    LeftSemi,
    /// Left rows without a match.
    LeftAnti,
    /// `NOT IN`: like anti, but any NULL on the right yields nothing, and a NULL on the left only
    /// passes an empty right.
    LeftAntiNullAware,
    /// Every left row, and a boolean column: has it a match?
    LeftMark,
}

/// A set operation that a join cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SetOperation {
    /// Multiplicity max(left - right, 0).
    ExceptAll,
    /// Multiplicity min(left, right).
    IntersectAll,
    /// Distinct rows of left that right lacks.
    Except,
    /// Distinct rows that both have.
    Intersect,
}

impl Plan {
    /// The output columns as an Arrow schema.
    pub fn arrow_schema(&self) -> SchemaRef {
        Arc::new(self.schema.as_arrow().clone())
    }

    /// The schema that a join's residual predicate is written against: the left columns qualified
    /// `left`, then the right columns qualified `right`.
    pub fn join_schema(left: &Plan, right: &Plan) -> DFSchemaRef {
        let side = |plan: &Plan, name: &str| {
            let qualifier = TableReference::bare(name);
            plan.schema.fields().iter().map(|field| (Some(qualifier.clone()), field.clone())).collect::<Vec<_>>()
        };
        let mut fields = side(left, "left");
        fields.extend(side(right, "right"));
        let schema = DFSchema::new_with_metadata(fields, Default::default())
            .expect("names are unique within a side and qualifiers tell the sides apart");
        Arc::new(schema)
    }

    /// The direct inputs, left to right. Those of a loop are its bindings' plans, then its result.
    pub fn inputs(&self) -> Vec<&Arc<Plan>> {
        match &self.node {
            Node::Scan { .. } | Node::Constant { .. } | Node::Variable { .. } => vec![],
            Node::Recursive(recursive) => {
                recursive.bindings.iter().map(|binding| &binding.plan).chain([&recursive.result]).collect()
            }
            Node::Stage { input, .. }
            | Node::Unnest { input, .. }
            | Node::Aggregate { input, .. }
            | Node::Distinct { input }
            | Node::TopK { input, .. }
            | Node::Session { input, .. }
            | Node::Recognize { input, .. }
            | Node::Window { input, .. } => vec![input],
            Node::Join { left, right, .. }
            | Node::Asof { left, right, .. }
            | Node::SetOperation { left, right, .. } => {
                vec![left, right]
            }
            Node::Union { inputs } | Node::Temporal { inputs, .. } => inputs.iter().collect(),
        }
    }

    /// Whether all variables in this plan belong to loops in this plan. Only then does the plan
    /// denote a collection by itself.
    pub fn is_closed(&self) -> bool {
        self.free_depth() == 0
    }

    /// How many loops around this plan it may refer to: one more than the greatest depth of a
    /// variable, seen from outside of the plan; 0 if there is none.
    pub fn free_depth(&self) -> usize {
        match &self.node {
            Node::Variable { depth, .. } => depth + 1,
            node => {
                let below = self.inputs().into_iter().map(|input| input.free_depth()).max().unwrap_or(0);
                below.saturating_sub(usize::from(matches!(node, Node::Recursive(_))))
            }
        }
    }

    /// The relations this plan reads, each once, in order of first use.
    pub fn relations(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.collect_relations(&mut names);
        names
    }

    /// The inputs of events that this plan reads, each once, in order of first use, with their
    /// schemas.
    pub fn event_inputs(&self) -> Vec<(String, DFSchemaRef)> {
        let mut names = Vec::new();
        self.collect_event_inputs(&mut names);
        names
    }

    fn collect_event_inputs(&self, found: &mut Vec<(String, DFSchemaRef)>) {
        if let Node::Temporal { verb: Verb::Events { input, .. }, .. } = &self.node
            && !found.iter().any(|(name, _)| name == input)
        {
            found.push((input.clone(), self.schema.clone()));
        }
        for input in self.inputs() {
            input.collect_event_inputs(found);
        }
    }

    fn collect_relations(&self, names: &mut Vec<String>) {
        if let Node::Scan { relation, .. } = &self.node
            && !names.contains(relation)
        {
            names.push(relation.clone());
        }
        for input in self.inputs() {
            input.collect_relations(names);
        }
    }
}
