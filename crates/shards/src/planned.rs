//! Programs as data: run over the relations of a session.
//!
//! A [`Program`](anabranch_plan::program::Program) is cut from a SQL query, or read from the text
//! that a person has edited ([`read_program`]). Its relations are read once; their rows are in
//! force from the beginning, spread over the shards piece by piece.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::types::narrowed;
use anabranch_batch::{Batch, Diffs, TextLimit, Times};
use anabranch_engine::frame::{Events, Expr};
use anabranch_engine::{Error, Interrupt, Rows, Session};
use anabranch_plan::program::{MergeOrder, MoveKind, MoveScope, MoveTargets, PlannedSplit, Program, StepAction, read};
use anabranch_sql::column_type_name;
use anabranch_sql::output::shown_schema;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

use crate::layout::{Layout, Move, ShardGroup, ShardScope, To};
use crate::program::Shards;
use crate::run::{RunOutcome, ShardRun};
use crate::split::Branches;

/// Rows that one shard gets at once, at most.
const ROWS_PER_PIECE: usize = 4096;

/// A relation that a program reads.
pub struct ReadRelation {
    /// The name of its source in the program.
    pub source: String,
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows.
    pub batches: Vec<RecordBatch>,
}

/// A program over relations that were read.
pub struct PlannedShards {
    /// What runs.
    pub program: Shards,
    /// What it reads.
    pub relations: Vec<ReadRelation>,
    /// Steps that split, with the plan that was chosen for each and its modelled cost.
    pub splits: Vec<(String, String)>,
}

/// A program from its Python form.
///
/// # Errors
/// `Invalid`, with the line.
pub fn read_program(text: &str) -> Result<Program, Error> {
    read(text).map_err(|(line, message)| Error::invalid(format!("line {line}: {message}")))
}

impl PlannedShards {
    /// The program over the relations of a session, as of now.
    ///
    /// # Errors
    /// Those of reading relations, and of building the program.
    pub fn new(program: &Program, session: &mut Session, layout: Layout) -> Result<PlannedShards, Error> {
        let mut built: Vec<Shards> = Vec::new();
        let mut relations: Vec<ReadRelation> = Vec::new();
        let mut splits = Vec::new();
        for (number, step) in program.steps.iter().enumerate() {
            let next = match &step.action {
                StepAction::Relation { relation, columns } => {
                    let source = format!("{relation} {number}");
                    let read = read_relation(session, source, relation, columns)?;
                    let shards = Shards::source(&read.source, read.schema.clone(), layout);
                    relations.push(read);
                    shards
                }
                StepAction::Sql { inputs, text } => match inputs.get(1) {
                    None => built[inputs[0]].sql(text),
                    Some(other) => built[inputs[0]].sql_with(&built[*other], text),
                },
                StepAction::Union { inputs: [first, second] } => built[*first].union(&built[*second]),
                StepAction::Rekey { input, columns } => built[*input].rekey(columns.iter().map(String::as_str)),
                StepAction::Move { input, kind, scope, to } => {
                    let scope = match scope {
                        MoveScope::Flat => ShardScope::Flat,
                        MoveScope::Local => ShardScope::Local,
                        MoveScope::Global => ShardScope::Global,
                    };
                    let reach = Move { scope, to: targets(to) };
                    match kind {
                        MoveKind::Redistribute => built[*input].redistribute(reach),
                        MoveKind::Reshard => built[*input].reshard(reach),
                        MoveKind::Broadcast => built[*input].broadcast(reach),
                    }
                }
                StepAction::Multicast { input, targets } => multicast(&built[*input], targets),
                StepAction::Split { input, split } => match branches(&built[*input], split) {
                    Err(error) => Shards::failed(error),
                    Ok(branches) => {
                        // (An error of the branches is that of the step, which is told below.)
                        splits.extend(branches.explain_plan().ok().map(|plan| (step.name.clone(), plan)));
                        match split.merge {
                            MergeOrder::Any => branches.merge(),
                            MergeOrder::Time => branches.merge_by_time(),
                        }
                    }
                },
            };
            next.step().map_err(|mut error| {
                error.message = format!("step \"{}\": {}", step.name, error.message);
                error
            })?;
            built.push(next);
        }
        let program = built.pop().ok_or_else(|| Error::invalid("a program without steps"))?;
        Ok(PlannedShards { program, relations, splits })
    }

    /// The plan of each split, then the steps of the program and where rows lie after each.
    ///
    /// # Errors
    /// The first error of building the program.
    pub fn explain(&self) -> Result<String, Error> {
        let splits = self.splits.iter().map(|(step, plan)| format!("{step}: {plan}\n"));
        Ok(splits.chain([self.program.explain()?]).collect())
    }

    /// Runs the program to its end: its rows, and the run, which says what was moved. It fails with
    /// `Cancelled` when `stop` is triggered.
    ///
    /// # Errors
    /// Those of the run.
    pub fn run(&self, stop: &Interrupt) -> Result<(RunOutcome, ShardRun), Error> {
        let mut run = self.program.run()?;
        run.heed(stop);
        for relation in &self.relations {
            run.fill(&relation.source, &relation.batches)?;
        }
        let outcome = run.finish()?;
        Ok((outcome, run))
    }
}

impl ShardRun {
    /// Gives rows to a source that are in force from the beginning and never end, spread over its
    /// shards piece by piece.
    ///
    /// # Errors
    /// As for [`push`](ShardRun::push).
    pub fn fill(&mut self, source: &str, batches: &[RecordBatch]) -> Result<(), Error> {
        let mut next = 0;
        let n_rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let length = n_rows.div_ceil(self.shards()).clamp(1, ROWS_PER_PIECE);
        for batch in batches {
            for start in (0..batch.num_rows()).step_by(length) {
                let piece = batch.slice(start, length.min(batch.num_rows() - start));
                self.push(source, next % self.shards(), forever(&piece)?)?;
                next += 1;
            }
        }
        Ok(())
    }

    /// Gives rows with times to a source, spread over its shards piece by piece.
    ///
    /// # Errors
    /// As for [`push`](ShardRun::push).
    pub fn spread(&mut self, source: &str, rows: &RecordBatch) -> Result<(), Error> {
        let length = rows.num_rows().div_ceil(self.shards()).clamp(1, ROWS_PER_PIECE);
        (0..rows.num_rows()).step_by(length).enumerate().try_for_each(|(at, start)| {
            let piece = rows.slice(start, length.min(rows.num_rows() - start));
            self.push(source, at % self.shards(), piece)
        })
    }
}

impl RunOutcome {
    /// The rows that are in force in the end, each as often as it is.
    ///
    /// # Errors
    /// `Data` when a row is there less than no times, which a wrong program may yield.
    pub fn rows(&self) -> Result<Rows, Error> {
        let changes = consolidate(self.changes().with_times(Times::Constant(0)));
        if changes.is_empty() {
            // (Without rows there are no columns to take types from.)
            return Ok(Rows::new(shown_schema(&self.schema), vec![]));
        }
        let mut places = Vec::new();
        for row in 0..changes.len() {
            let often = usize::try_from(changes.diffs().get(row)).map_err(|_| {
                Error::data("the program's result has rows that were taken and never there")
                    .with_hint("check() says which step depends on the number of shards.")
            })?;
            places.extend(std::iter::repeat_n(row as u32, often));
        }
        let rows = changes.take(&places);
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let fields = self.schema.fields().iter().zip(rows.columns().iter());
        let fields = fields.map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true));
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new_with_options(schema.clone(), rows.columns().to_vec(), &options);
        Ok(Rows::new(schema, vec![batch.map_err(|error| Error::internal(error.to_string()))?]))
    }
}

/// Branches that a text may have copies of rows in, as SPLIT in SQL.
const BROADCAST_WIDTH_MAX: u32 = 10_000;

/// The way out for values that are no numbers.
const TO_NUMBER: &str = "Cast it to bigint, if its values are numbers of shards or branches.";

/// What an expression of a movement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveExpr {
    /// The shards of a multicast.
    Targets,
    /// The branch of a split.
    Route,
    /// Whether a row goes to all branches.
    Broadcast,
}

impl MoveExpr {
    /// Refuses an expression over the rows of a step whose values would say nothing.
    ///
    /// # Errors
    /// `Invalid`, with the type that it has; the step's error of building.
    pub fn check(self, rows: &Shards, expr: &Expr) -> Result<(), Error> {
        let frame = Events::input("shard", shown_schema(&rows.step()?.schema)).frame();
        let schema = frame.select([expr.clone().alias("value")]).schema()?;
        let field = schema.field(0);
        let of = field.data_type();
        let is_number = |of: &DataType| of.is_integer() || *of == DataType::Null;
        let is_right = match (self, of) {
            (MoveExpr::Targets, DataType::List(element)) => is_number(element.data_type()),
            (MoveExpr::Targets | MoveExpr::Route, of) => is_number(of),
            (MoveExpr::Broadcast, of) => matches!(of, DataType::Boolean | DataType::Null),
        };
        if is_right {
            return Ok(());
        }
        let (what, hint) = match self {
            MoveExpr::Targets => ("a multicast names shards by a whole number or an array of them", TO_NUMBER),
            MoveExpr::Route => ("the route of a split is a whole number", TO_NUMBER),
            MoveExpr::Broadcast => ("the broadcast of a split is a condition", "Write a comparison: kind = 'clock'."),
        };
        Err(Error::invalid(format!("{what}, not of type {}", column_type_name(field))).with_hint(hint))
    }
}

fn multicast(rows: &Shards, targets: &str) -> Shards {
    expression(rows, targets, MoveExpr::Targets).map_or_else(Shards::failed, |targets| rows.multicast_to(targets))
}

/// The shards that are named. A list without a name is called as in Python.
fn targets(to: &MoveTargets) -> To {
    match to {
        MoveTargets::All => To::Same,
        MoveTargets::First(shards) => To::Shards(*shards),
        MoveTargets::Group { name, shards } => {
            let name = name.as_deref().unwrap_or(MoveTargets::UNNAMED);
            To::Group(ShardGroup::new(name, shards.iter().copied()))
        }
    }
}

/// The branches of a split.
fn branches(rows: &Shards, split: &PlannedSplit) -> Result<Branches, Error> {
    if split.broadcast.is_some() && split.width > BROADCAST_WIDTH_MAX {
        return Err(Error::invalid(format!("a row that a split broadcasts would come in {} branches", split.width))
            .with_detail(format!("A split with a broadcast has {BROADCAST_WIDTH_MAX} branches at most.")));
    }
    let broadcast = split.broadcast.as_ref().map(|text| expression(rows, text, MoveExpr::Broadcast)).transpose();
    let route = expression(rows, &split.route, MoveExpr::Route)?;
    let branches = rows.split(split.width, route, broadcast?, split.form.into());
    Ok(match &split.places {
        Some(places) => branches.placed(places),
        None => branches,
    })
}

/// A text of SQL as an expression over the columns of a step. A text that is a column's name is the
/// column, whatever its letters.
fn expression(rows: &Shards, text: &str, of: MoveExpr) -> Result<Expr, Error> {
    let schema = shown_schema(&rows.step()?.schema);
    let text = match schema.index_of(text) {
        Ok(_) => quoted(text),
        Err(_) => text.to_owned(),
    };
    let mut exprs = Events::input("shard", schema).frame().expressions(&[text], &[], &BTreeMap::new())?;
    let expr = exprs.pop().ok_or_else(|| Error::internal("a text is one expression"))?;
    of.check(rows, &expr)?;
    Ok(expr)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Rows that are in force from the beginning.
fn forever(rows: &RecordBatch) -> Result<Batch, Error> {
    let columns = rows.columns().iter().map(narrowed).collect::<Result<Vec<_>, _>>();
    let columns = columns.map_err(|error| Error::data(error.to_string()))?;
    Ok(Batch::with_len(columns.into(), rows.num_rows(), Times::Constant(0), Diffs::Constant(1)))
}

fn read_relation(
    session: &mut Session,
    source: String,
    relation: &str,
    columns: &[String],
) -> Result<ReadRelation, Error> {
    let columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    let columns = if columns.is_empty() { "*".to_owned() } else { columns.join(", ") };
    // (A relation of another schema is named with a dot.)
    let path: Vec<String> = relation.split('.').map(quoted).collect();
    let rows = session.query(&format!("SELECT {columns} FROM {}", path.join(".")))?;
    let batches = rows.batches.iter().map(as_kept).collect::<Result<_, _>>()?;
    Ok(ReadRelation { source, schema: rows.schema, batches })
}

/// Rows of an answer as a relation keeps them: a `char(n)` without the spaces that fill it up.
fn as_kept(rows: &RecordBatch) -> Result<RecordBatch, Error> {
    let schema = rows.schema();
    let kept = |(field, column): (&FieldRef, &ArrayRef)| match TextLimit::of(field) {
        Some(limit @ TextLimit::Char(_)) => limit.fit_column(column).0,
        _ => Arc::clone(column),
    };
    let columns = schema.fields().iter().zip(rows.columns()).map(kept).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options);
    batch.map_err(|error| Error::internal(format!("rows without spaces at their ends: {error}")))
}
