//! A sharded program: an immutable plan, built step by step.
//!
//! Law: nothing runs while a program is built. An error of building (an unknown key, different
//! numbers of shards) stays with the program and is returned when it is run, explained or checked;
//! the first one counts.

use std::fmt;
use std::sync::Arc;

use anabranch_engine::Error;
use anabranch_engine::frame::{Events, Expr, Frame, UserOperator, col};
use anabranch_plan::program::TABLES;
use anabranch_sql::output::shown_schema;
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::ScalarValue;

use crate::appending;
use crate::dataset::Dataset;
use crate::layout::{Layout, Move};
use crate::row_alone;
use crate::split::para::Spraying;

/// Names of a query's inputs, in order.
pub(crate) const INPUTS: [&str; 2] = ["left", "right"];

/// The column that holds the shards that a row is copied to.
const TARGETS: &str = "targets";

/// The column that holds the number of a row's branch.
pub const BRANCH: &str = "branch";

/// The column that holds a row's route while it is split; NULL for rows that are broadcast.
pub(crate) const ROUTE: &str = "route";

/// Shards that a row is copied to, given its columns.
pub type Targets = Arc<dyn Fn(&[ScalarValue]) -> Vec<usize> + Send + Sync>;

/// A sharded stream as a plan; see the [crate's page](crate).
#[derive(Clone)]
pub struct Shards {
    /// The last step, or the first error.
    step: Result<Arc<ProgramStep>, Error>,
}

/// A step of a program.
pub struct ProgramStep {
    /// What is done.
    pub verb: Verb,
    /// Where its rows come from.
    pub inputs: Vec<Arc<ProgramStep>>,
    /// Columns of its rows.
    pub schema: SchemaRef,
    /// Names of the key's columns; empty for none.
    pub key: Vec<String>,
    /// Its shards.
    pub layout: Layout,
}

/// What a step does.
pub enum Verb {
    /// Rows pushed into each shard.
    Source {
        /// How rows are pushed.
        events: Box<Events>,
        /// The column of which each shard has a range.
        packed: Option<String>,
    },
    /// The rows of a dataset, where they are.
    Dataset(Arc<Dataset>),
    /// The key is these columns from now on.
    Rekey,
    /// The columns at these places, and no others: nothing is computed.
    Choose(Vec<usize>),
    /// A frame over each shard.
    Query {
        /// Over inputs named `left` and `right`.
        frame: Box<Frame>,
    },
    /// Rows of each shard leave in order of time.
    InTime,
    /// Rows go to other shards.
    Move {
        /// Which rows go where.
        kind: ActionKind,
        /// How far.
        reach: Move,
    },
}

/// Which rows go where.
#[derive(Clone)]
pub enum ActionKind {
    /// By the hash of the key.
    Redistribute,
    /// By the hash of all columns.
    Reshard,
    /// Whole batches of rows that are never taken back, each to the shard that has been sent the
    /// fewest rows.
    Deal,
    /// A copy to each.
    Broadcast,
    /// A copy to each that a function of the row names.
    Multicast(Targets),
    /// Whole windows, unopened, to splitters chosen at random.
    Spray(Spraying),
    /// One level of a split: rows of a node to its children, as their column `route` says, or to
    /// each.
    Split {
        /// Nodes of the level.
        nodes: u32,
        /// Children of each.
        fan_out: u32,
        /// Branches in all.
        width: u32,
        /// The shards that branches lie in by turns; `None` for all of the layout.
        places: Option<Arc<[usize]>>,
    },
    /// By the column `branch`.
    ToBranch,
}

impl ActionKind {
    /// Whether rows are handed on as whole batches, or ranges of them: neither read nor copied.
    pub(crate) fn hands_on(&self) -> bool {
        matches!(self, ActionKind::Deal | ActionKind::Broadcast | ActionKind::Spray(_))
    }

    /// Its name in plans.
    pub fn name(&self) -> &'static str {
        match self {
            ActionKind::Redistribute => "redistribute",
            ActionKind::Reshard => "reshard",
            ActionKind::Deal => "reshard by batches",
            ActionKind::Broadcast => "broadcast",
            ActionKind::Multicast(_) => "multicast",
            ActionKind::Spray(_) => "spray",
            ActionKind::Split { .. } => "split",
            ActionKind::ToBranch => "to branches",
        }
    }
}

impl Shards {
    /// Rows pushed into shards; nothing is known of what lies where.
    pub fn source(name: &str, schema: impl Into<SchemaRef>, layout: Layout) -> Shards {
        Shards::of_events(Events::input(name, schema), layout)
    }

    /// As [`source`](Shards::source), of record batches with a column that says when a row begins.
    pub fn timed_source(name: &str, schema: impl Into<SchemaRef>, time: &str, layout: Layout) -> Shards {
        Shards::of_events(Events::input(name, schema).time_column(time), layout)
    }

    /// As [`source`](Shards::source), of an input whose columns of time and whose lifetimes are
    /// described.
    pub fn of_events(events: Events, layout: Layout) -> Shards {
        let schema = events.clone().frame().schema();
        let verb = Verb::Source { events: Box::new(events), packed: None };
        Shards::new(schema.map(|schema| ProgramStep { verb, inputs: vec![], schema, key: vec![], layout }))
    }

    pub(crate) fn of_dataset(dataset: Arc<Dataset>) -> Shards {
        let (schema, key, layout) = (dataset.schema.clone(), dataset.key.clone(), dataset.layout);
        Shards::new(Ok(ProgramStep { verb: Verb::Dataset(dataset), inputs: vec![], schema, key, layout }))
    }

    /// Promises of a source that each shard has a range of this column's values: rows of equal
    /// values lie together, and queries by the column need no movement. Rows that break the promise
    /// are an error when they are pushed.
    #[must_use]
    pub fn packed_by(&self, column: &str) -> Shards {
        self.then(|source| {
            let Verb::Source { events, .. } = &source.verb else {
                return Err(
                    Error::invalid("only a source can be packed").with_hint("Say packed_by right after source.")
                );
            };
            source.schema.index_of(column).map_err(|_| no_column(column, &source.schema))?;
            let (schema, layout) = (source.schema.clone(), source.layout);
            let verb = Verb::Source { events: events.clone(), packed: Some(column.to_owned()) };
            Ok(ProgramStep { verb, inputs: vec![], schema, key: vec![], layout })
        })
    }

    /// The key is these columns from now on. Their hash is computed once, and stored with the rows.
    #[must_use]
    pub fn rekey<'a>(&self, columns: impl IntoIterator<Item = &'a str>) -> Shards {
        let key: Vec<String> = columns.into_iter().map(str::to_owned).collect();
        self.then(|input| {
            for column in &key {
                input.schema.index_of(column).map_err(|_| no_column(column, &input.schema))?;
            }
            let (schema, layout) = (input.schema.clone(), input.layout);
            Ok(ProgramStep { verb: Verb::Rekey, inputs: vec![Arc::clone(input)], schema, key, layout })
        })
    }

    /// A query over each shard by itself; if there is a key, over the rows of each key by
    /// themselves, and the key stays.
    #[must_use]
    pub fn query(&self, build: impl FnOnce(Frame) -> Frame) -> Shards {
        self.then(|input| {
            let frame = given(INPUTS[0], input);
            let frame = match input.key.is_empty() {
                true => build(frame),
                false => frame.group_apply(input.key.iter().map(|key| col(key)), build),
            };
            queried(frame, vec![Arc::clone(input)])
        })
    }

    /// A query of two inputs over each pair of shards of equal number; of rows of equal keys.
    #[must_use]
    pub fn query_with(&self, right: &Shards, build: impl FnOnce(Frame, Frame) -> Frame) -> Shards {
        self.then(|left| {
            let right = right.step()?;
            check_alike(left, right)?;
            let (first, second) = (given(INPUTS[0], left), given(INPUTS[1], right));
            let frame = match left.key.is_empty() {
                true => build(first, second),
                false => first.group_apply_with(&second, left.key.iter().map(|key| col(key)), build),
            };
            queried(frame, vec![Arc::clone(left), Arc::clone(right)])
        })
    }

    /// The answer of a query of SQL over the rows in force of each shard by itself, which are the
    /// table `shard`. The query names its groups itself: the key is none of them by itself, and
    /// the result has none. Rows that lie in the first shard are asked there only.
    ///
    /// ```
    /// use anabranch_shards::{Layout, Move, Shards};
    /// use arrow::datatypes::{DataType, Field, Schema};
    ///
    /// let schema = Schema::new(vec![Field::new("ad", DataType::Int64, true)]);
    /// let counts = Shards::source("views", schema, Layout::flat(2))
    ///     .sql("SELECT ad, count(*) AS n FROM shard GROUP BY ad")
    ///     .rekey(["ad"])
    ///     .redistribute(Move::FLAT)
    ///     .sql("SELECT ad, sum(n) AS n FROM shard GROUP BY ad");
    /// counts.check()?;
    /// # Ok::<(), anabranch_engine::Error>(())
    /// ```
    #[must_use]
    pub fn sql(&self, query: &str) -> Shards {
        self.then(|input| {
            let rows = given(INPUTS[0], input);
            asked(Frame::sql_over_shard(&[(TABLES[0], &rows)], query), vec![Arc::clone(input)])
        })
    }

    /// As [`sql`](Shards::sql), over each pair of shards of equal number; the rows of the second
    /// are the table `other`.
    #[must_use]
    pub fn sql_with(&self, other: &Shards, query: &str) -> Shards {
        self.then(|left| {
            let right = other.step()?;
            check_layouts(left, right)?;
            let (first, second) = (given(INPUTS[0], left), given(INPUTS[1], right));
            let frame = Frame::sql_over_shard(&[(TABLES[0], &first), (TABLES[1], &second)], query);
            asked(frame, vec![Arc::clone(left), Arc::clone(right)])
        })
    }

    /// What a user's operator gives for the rows of each shard. Rows of one key meet in one
    /// instance, which sees other keys too; the key's columns must be among those that come out.
    /// The operator is taken to treat each key by itself: then the program is safe where rows of a
    /// key lie together.
    #[must_use]
    pub fn operator(&self, operator: impl UserOperator) -> Shards {
        self.then(|input| {
            let keys = input.key.iter().map(|key| col(key));
            queried(given(INPUTS[0], input).operator(operator, keys), vec![Arc::clone(input)])
        })
    }

    /// As [`operator`](Shards::operator), of two inputs with equal keys.
    #[must_use]
    pub fn operator_with(&self, right: &Shards, operator: impl UserOperator) -> Shards {
        self.then(|left| {
            let right = right.step()?;
            check_alike(left, right)?;
            let keys = || left.key.iter().map(|key| col(key)).collect::<Vec<_>>();
            let (first, second) = (given(INPUTS[0], left), given(INPUTS[1], right));
            let frame = first.operator_with(&second, operator, keys(), keys());
            queried(frame, vec![Arc::clone(left), Arc::clone(right)])
        })
    }

    /// The rows of both streams, in their shards; columns and shards must agree. The result has no
    /// key.
    #[must_use]
    pub fn union(&self, other: &Shards) -> Shards {
        self.rekey([]).query_with(&other.rekey([]), |left, right| left.union(&right))
    }

    /// Rows of each shard leave in order of time; those of one time in any order.
    #[must_use]
    pub fn in_time_order(&self) -> Shards {
        self.then(|input| {
            let (schema, key, layout) = (input.schema.clone(), input.key.clone(), input.layout);
            Ok(ProgramStep { verb: Verb::InTime, inputs: vec![Arc::clone(input)], schema, key, layout })
        })
    }

    /// Each row goes to the shard of its key's hash: all rows of a key to one.
    #[must_use]
    pub fn redistribute(&self, reach: Move) -> Shards {
        self.then(|input| match input.key.is_empty() {
            false => moved(input, ActionKind::Redistribute, reach),
            true => Err(Error::invalid("rows without a key are redistributed")
                .with_hint("Say rekey([..]) first, or spread rows evenly with reshard.")),
        })
    }

    /// Rows are spread evenly: by a hash of all columns, so that a row and its end go to one shard;
    /// batch by batch, unopened, where it follows from the source's promise
    /// ([`Events::append_only`]) that no row is taken back.
    #[must_use]
    pub fn reshard(&self, reach: Move) -> Shards {
        self.then(|input| match appending::is_append_only(input)? {
            true => moved(input, ActionKind::Deal, reach),
            false => moved(input, ActionKind::Reshard, reach),
        })
    }

    /// Each shard gets all rows.
    #[must_use]
    pub fn broadcast(&self, reach: Move) -> Shards {
        self.then(|input| moved(input, ActionKind::Broadcast, reach))
    }

    /// Each row is copied to the shards that the function names, of all. The function must be one
    /// of the row alone: the end of a row follows its start.
    #[must_use]
    pub fn multicast(&self, targets: impl Fn(&[ScalarValue]) -> Vec<usize> + Send + Sync + 'static) -> Shards {
        self.then(|input| moved(input, ActionKind::Multicast(Arc::new(targets)), Move::FLAT))
    }

    /// As [`multicast`](Shards::multicast), to the shards that an expression names: a whole number,
    /// a list of them, or NULL for none.
    #[must_use]
    pub fn multicast_to(&self, targets: Expr) -> Shards {
        if let Err(error) = row_alone::check("the expression that names the shards of rows", &targets) {
            return Shards::failed(error);
        }
        let names = self.columns();
        if names.iter().any(|name| name == TARGETS) {
            return Shards::failed(
                Error::invalid(format!("rows with a column \"{TARGETS}\" cannot be multicast by an expression"))
                    .with_hint("Multicasting computes a column of this name: give the other one another name."),
            );
        }
        let key = self.step().map(|step| step.key.clone()).unwrap_or_default();
        let named = self.rekey([]).query(|rows| rows.with_columns([targets.alias(TARGETS)]));
        let sent = named.multicast(|row| row.last().map(shards_of).unwrap_or_default());
        sent.query(|rows| rows.select(names.iter().map(|name| col(name)))).rekey(key.iter().map(String::as_str))
    }

    /// Names of the columns; none of a program with an error.
    pub(crate) fn columns(&self) -> Vec<String> {
        let names = |step: &Arc<ProgramStep>| step.schema.fields().iter().map(|field| field.name().clone()).collect();
        self.step().map(names).unwrap_or_default()
    }

    /// Rows of branches, whose key is the branch: the columns of these names, in this order. (Only
    /// movement reads hashes, and computes those that are missing.)
    pub(crate) fn in_branches(&self, names: &[String]) -> Shards {
        self.then(|input| {
            let chosen: Vec<&str> = std::iter::once(BRANCH).chain(names.iter().map(String::as_str)).collect();
            let places = chosen.iter().map(|name| input.schema.index_of(name)).collect::<Result<Vec<usize>, _>>();
            let places = places.map_err(|error| Error::internal(error.to_string()))?;
            let fields: Vec<Field> = places.iter().map(|at| input.schema.field(*at).clone()).collect();
            let (schema, layout) = (Arc::new(Schema::new(fields)), input.layout);
            let inputs = vec![Arc::clone(input)];
            Ok(ProgramStep { verb: Verb::Choose(places), inputs, schema, key: vec![BRANCH.to_owned()], layout })
        })
    }

    /// A movement of splits, among all shards.
    pub(crate) fn spread(&self, kind: ActionKind) -> Shards {
        self.then(|input| moved(input, kind, Move::FLAT))
    }

    /// A program that is only its error.
    pub(crate) fn failed(error: Error) -> Shards {
        Shards::new(Err(error))
    }

    /// The last step.
    ///
    /// # Errors
    /// The first error of building the program.
    pub fn step(&self) -> Result<&Arc<ProgramStep>, Error> {
        self.step.as_ref().map_err(Error::clone)
    }

    fn then(&self, build: impl FnOnce(&Arc<ProgramStep>) -> Result<ProgramStep, Error>) -> Shards {
        Shards::new(self.step().and_then(build))
    }

    fn new(step: Result<ProgramStep, Error>) -> Shards {
        Shards { step: step.map(Arc::new) }
    }
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.step {
            Ok(step) => write!(f, "Shards({} columns, {:?})", step.schema.fields().len(), step.layout),
            Err(error) => write!(f, "Shards({error})"),
        }
    }
}

/// Shards that a value names. A number below 0 becomes one that is out of range, which is an error
/// of the row.
fn shards_of(value: &ScalarValue) -> Vec<usize> {
    if let ScalarValue::List(list) = value {
        let elements = list.is_valid(0).then(|| list.value(0));
        let each = |elements: ArrayRef| -> Vec<usize> {
            let element = |row| ScalarValue::try_from_array(&elements, row).ok();
            (0..elements.len()).filter_map(element).flat_map(|element| shards_of(&element)).collect()
        };
        return elements.map(each).unwrap_or_default();
    }
    match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(Some(shard))) => vec![usize::try_from(shard).unwrap_or(usize::MAX)],
        _ => vec![],
    }
}

/// The rows of a step as the input of a query.
fn given(name: &str, step: &ProgramStep) -> Frame {
    Events::input(name, shown_schema(&step.schema)).frame()
}

/// Both sides of a query of two inputs lie in the same shards.
fn check_layouts(left: &ProgramStep, right: &ProgramStep) -> Result<(), Error> {
    if left.layout == right.layout {
        return Ok(());
    }
    let (ours, theirs) = (left.layout.shards(), right.layout.shards());
    Err(Error::invalid(format!("a query of {ours} shards and of {theirs} shards"))
        .with_hint("Both sides need the same shards, in the same processes."))
}

/// Both sides of a query of two inputs lie in the same shards, and have one key.
fn check_alike(left: &ProgramStep, right: &ProgramStep) -> Result<(), Error> {
    check_layouts(left, right)?;
    if left.key != right.key {
        let (ours, theirs) = (left.key.join(", "), right.key.join(", "));
        return Err(Error::invalid(format!("a query of rows keyed by ({ours}) and of rows keyed by ({theirs})"))
            .with_hint("Rekey both sides by columns of the same names."));
    }
    Ok(())
}

fn queried(frame: Frame, inputs: Vec<Arc<ProgramStep>>) -> Result<ProgramStep, Error> {
    let schema = frame.schema()?;
    let (key, layout) = (inputs[0].key.clone(), inputs[0].layout);
    for column in &key {
        schema.index_of(column).map_err(|_| no_column(column, &schema))?;
    }
    Ok(ProgramStep { verb: Verb::Query { frame: Box::new(frame) }, inputs, schema, key, layout })
}

/// A query of SQL, whose result has no key.
fn asked(frame: Frame, inputs: Vec<Arc<ProgramStep>>) -> Result<ProgramStep, Error> {
    let (schema, layout) = (frame.schema()?, inputs[0].layout);
    Ok(ProgramStep { verb: Verb::Query { frame: Box::new(frame) }, inputs, schema, key: vec![], layout })
}

fn moved(input: &Arc<ProgramStep>, kind: ActionKind, reach: Move) -> Result<ProgramStep, Error> {
    reach.check(input.layout)?;
    let (schema, key, layout) = (input.schema.clone(), input.key.clone(), input.layout);
    Ok(ProgramStep { verb: Verb::Move { kind, reach }, inputs: vec![Arc::clone(input)], schema, key, layout })
}

fn no_column(column: &str, schema: &SchemaRef) -> Error {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let error = Error::invalid(format!("there is no column \"{column}\" to be a key"));
    match anabranch_engine::nearest::nearest(column, names.iter().copied()) {
        Some(near) => error.with_hint(format!("Did you mean \"{near}\"?")),
        None => error.with_hint(format!("Columns: {}.", names.join(", "))),
    }
}
