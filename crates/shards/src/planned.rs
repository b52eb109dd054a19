//! Programs as data: run over the relations of a session.
//!
//! A [`Program`](anabranch_plan::program::Program) is cut from a SQL query, or read from the text
//! that a person has edited ([`read_program`]). Its relations are read once; their rows are in
//! force from the beginning, spread over the shards piece by piece.

use std::sync::Arc;

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::types::narrowed;
use anabranch_batch::{Batch, Diffs, TextLimit, Times};
use anabranch_engine::{Error, Interrupt, Rows, Session};
use anabranch_plan::program::{MoveKind, MoveScope, Program, StepAction, read};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};

use crate::layout::{Layout, Move, ShardScope, To};
use crate::program::Shards;
use crate::run::{RunOutcome, ShardRun};

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
                StepAction::Move { input, kind, scope, shards } => {
                    let scope = match scope {
                        MoveScope::Flat => ShardScope::Flat,
                        MoveScope::Local => ShardScope::Local,
                        MoveScope::Global => ShardScope::Global,
                    };
                    let reach = Move { scope, to: shards.map_or(To::Same, To::Shards) };
                    match kind {
                        MoveKind::Redistribute => built[*input].redistribute(reach),
                        MoveKind::Reshard => built[*input].reshard(reach),
                        MoveKind::Broadcast => built[*input].broadcast(reach),
                    }
                }
            };
            next.step().map_err(|mut error| {
                error.message = format!("step \"{}\": {}", step.name, error.message);
                error
            })?;
            built.push(next);
        }
        let program = built.pop().ok_or_else(|| Error::invalid("a program without steps"))?;
        Ok(PlannedShards { program, relations })
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
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
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
