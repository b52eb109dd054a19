//! A sharded program at work, and what it leaves behind.
//!
//! Law: a call waits without the interpreter's lock and looks for signals. A signal stops the run:
//! the call that waits raises it, and those that follow raise `Cancelled`.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_engine::frame::Event;
use anabranch_engine::{Error, Interrupt};
use anabranch_shards::{
    Carry, Datasets as EngineDatasets, Processes, RunOutcome, RunWatch, ShardRun as EngineRun, SourceProgress,
};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;

use crate::error::{raise, raised};
use crate::host::{Heard, hear};
use crate::rows::Rows;
use crate::run::{events, table, time_type, timed};
use crate::shards::{Shards, sockets};

/// A sharded program at work.
#[pyclass(frozen, module = "anabranch._native")]
pub struct ShardRun {
    program: Py<Shards>,
    schema: SchemaRef,
    run: Mutex<Option<EngineRun>>,
    /// Tells how far it is while a call waits.
    watch: RunWatch,
    stop: Interrupt,
    /// The process that started it: threads do not survive a fork.
    process: u32,
}

/// Name, rows, frontiers and the share that was read of a source.
type ToldSource = (String, u64, Vec<i64>, Option<f64>);

/// What [`ShardRun::progress`] gives.
type ToldProgress = (i64, Vec<ToldSource>, usize, u64, Option<String>);

/// Results that are kept in memory, by name.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Datasets {
    datasets: EngineDatasets,
}

#[pymethods]
impl ShardRun {
    /// Sets a program to work; in process 0 of several, if addresses of all are given.
    #[new]
    #[pyo3(signature = (program, wire=false, addresses=None))]
    fn new(py: Python<'_>, program: Py<Shards>, wire: bool, addresses: Option<Vec<String>>) -> PyResult<ShardRun> {
        let carry = if wire { Carry::Wire } else { Carry::Batches };
        let addresses = addresses.map(|addresses| sockets(&addresses)).transpose()?;
        let plan = program.get().program.clone();
        let started = py.detach(|| match addresses {
            None => plan.run_with(carry),
            Some(addresses) => plan.run_in(Processes::connect(0, &addresses)?),
        });
        let mut run = started.map_err(|error| raised(py, &error, None))?;
        let stop = Interrupt::new();
        run.heed(&stop);
        let schema = plan.step().map_err(|error| raised(py, &error, None))?.schema.clone();
        let watch = run.watch();
        Ok(ShardRun { program, schema, run: Mutex::new(Some(run)), watch, stop, process: std::process::id() })
    }

    /// Rows in force from the beginning on, spread over the shards of a source.
    fn fill(&self, py: Python<'_>, source: String, rows: &Rows) -> PyResult<()> {
        let batch = rows.single(py)?;
        self.ask(py, move |run| run.fill(&source, &[batch]))
    }

    /// Rows with times for a shard of a source, or for all of its shards in pieces.
    #[pyo3(signature = (source, rows, shard=None))]
    fn push(&self, py: Python<'_>, source: String, rows: &Rows, shard: Option<usize>) -> PyResult<()> {
        let batch = rows.single(py)?;
        self.ask(py, move |run| match shard {
            Some(shard) => run.push(&source, shard, batch),
            None => run.spread(&source, &batch),
        })
    }

    /// Event objects for a shard of a source: see `Run.push_events`.
    #[expect(clippy::too_many_arguments, reason = "they are the parts of events")]
    fn push_events(
        &self,
        py: Python<'_>,
        source: String,
        shard: usize,
        rows: &Rows,
        kinds: Vec<String>,
        times: Vec<i64>,
        others: Vec<Option<i64>>,
    ) -> PyResult<()> {
        let batch = rows.single(py)?;
        self.ask(py, move |run| {
            let events: Vec<Event> = events(&batch, &kinds, &times, &others)?;
            run.push(&source, shard, events)
        })
    }

    /// A promise for a shard of a source, or for all of them.
    #[pyo3(signature = (source, time, shard=None))]
    fn advance(&self, py: Python<'_>, source: String, time: i64, shard: Option<usize>) -> PyResult<()> {
        self.ask(py, move |run| match shard {
            Some(shard) => run.advance(&source, shard, time),
            None => (0..run.shards()).try_for_each(|shard| run.advance(&source, shard, time)),
        })
    }

    /// [`advance`](Self::advance) for all sources.
    fn advance_all(&self, py: Python<'_>, time: i64) -> PyResult<()> {
        self.ask(py, move |run| run.advance_all(time))
    }

    /// A shard of a source promises what the others do, until it says something itself.
    fn idle(&self, py: Python<'_>, source: String, shard: usize) -> PyResult<()> {
        self.ask(py, move |run| run.idle(&source, shard))
    }

    /// Bounds the bytes of rows under way.
    fn limit_bytes(&self, py: Python<'_>, bytes: usize) -> PyResult<()> {
        self.ask(py, move |run| {
            run.limit_bytes(bytes);
            Ok(())
        })
    }

    /// Changes since the last call: `shard`, `time`, `diff` and the columns; with `end` after all
    /// sources have ended.
    fn changes(&self, py: Python<'_>, instants: bool, end: bool) -> PyResult<Rows> {
        let outcome = self.ask(py, move |run| if end { run.finish() } else { run.drain() })?;
        let made = py.detach(|| changed(&self.schema, &outcome, instants));
        made.map_err(|error| raised(py, &error, None))
    }

    /// What has come out since the last call of this or of `changes`, without waiting.
    fn ready(&self, py: Python<'_>, instants: bool) -> PyResult<Rows> {
        let outcome = self.ask(py, EngineRun::ready)?;
        let made = py.detach(|| changed(&self.schema, &outcome, instants));
        made.map_err(|error| raised(py, &error, None))
    }

    /// How far the result is, in ticks; sources; messages that wait; rows in error; the error that
    /// has ended the run.
    fn progress(&self) -> ToldProgress {
        let progress = self.watch.progress();
        let source = |source: SourceProgress| {
            let share = source.share();
            (source.name, source.rows, source.frontiers, share)
        };
        let sources = progress.sources.into_iter().map(source).collect();
        let failed = progress.failed.map(|error| match error.detail {
            Some(detail) => format!("{}. {detail}", error.message),
            None => error.message,
        });
        (progress.frontier, sources, progress.queued, progress.row_errors, failed)
    }

    /// Ends all sources: the events, if nothing was taken before.
    fn lifetimes(&self, py: Python<'_>, instants: bool) -> PyResult<Rows> {
        let schema = self.schema.clone();
        self.ask(py, move |run| table(&schema, &run.whole("lifetimes")?.lifetimes()?, instants))
    }

    /// Ends all sources: the rows in force in the end, if nothing was taken before.
    fn rows(&self, py: Python<'_>) -> PyResult<Rows> {
        let rows = self.ask(py, |run| run.whole("rows")?.rows())?;
        Ok(Rows::new(rows.schema, rows.batches, vec![]))
    }

    /// For each shard, before which time no further event of it lies; as of the last call of
    /// `changes`.
    fn frontiers(&self, py: Python<'_>) -> PyResult<Vec<i64>> {
        self.ask(py, |run| Ok(run.frontiers().to_vec()))
    }

    /// What each step has done in each shard.
    fn profile(&self, py: Python<'_>) -> PyResult<Rows> {
        let rows = self.ask(py, |run| run.profile_rows())?;
        Ok(Rows::new(rows.schema, rows.batches, vec![]))
    }

    /// Ends all sources, and keeps the result in memory; the run is over.
    fn to_memory(&self, py: Python<'_>, datasets: &Datasets, name: String) -> PyResult<()> {
        let (program, datasets) = (self.program.get().program.clone(), datasets.datasets.clone());
        self.end(py, move |run| run.to_memory(&program, &datasets, &name))
    }

    /// Ends all sources, and writes the result to a folder; the run is over.
    fn to_store(&self, py: Python<'_>, folder: String) -> PyResult<()> {
        let program = self.program.get().program.clone();
        self.end(py, move |run| run.to_store(&program, &folder))
    }

    /// Ends all sources, and writes shard i to file i; the run is over.
    fn to_binary(&self, py: Python<'_>, paths: Vec<String>) -> PyResult<()> {
        self.end(py, move |run| {
            let created = |path: &String| {
                let refused = |error| Error::unavailable(format!("cannot write {path}: {error}"));
                File::create(path).map(BufWriter::new).map_err(refused)
            };
            run.to_binary(paths.iter().map(created).collect::<Result<Vec<_>, Error>>()?)
        })
    }

    /// Reads a file that `to_binary` wrote into a shard of a source, to its end.
    fn play_binary(&self, py: Python<'_>, source: String, shard: usize, path: String) -> PyResult<()> {
        self.ask(py, move |run| {
            let refused = |error| Error::unavailable(format!("cannot read {path}: {error}"));
            run.play_binary(&source, shard, BufReader::new(File::open(&path).map_err(refused)?))
        })
    }

    /// Stops the run. Closing again does nothing.
    fn close(&self, py: Python<'_>) {
        if self.process == std::process::id() {
            self.stop.trigger();
            py.detach(|| drop(self.run.lock().unwrap_or_else(PoisonError::into_inner).take()));
        }
    }

    /// Whether it is over.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        py.detach(|| self.run.lock().unwrap_or_else(PoisonError::into_inner).is_none())
    }
}

impl ShardRun {
    /// Runs a function on the run, which stays.
    fn ask<T: Send>(&self, py: Python<'_>, f: impl FnOnce(&mut EngineRun) -> Result<T, Error> + Send) -> PyResult<T> {
        self.with(py, |run| run.as_mut().map(f))
    }

    /// Runs a function on the run, which is over then.
    fn end<T: Send>(&self, py: Python<'_>, f: impl FnOnce(EngineRun) -> Result<T, Error> + Send) -> PyResult<T> {
        self.with(py, |run| run.take().map(f))
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Option<EngineRun>) -> Option<Result<T, Error>> + Send,
    ) -> PyResult<T> {
        if self.process != std::process::id() {
            let message = format!("the run was started in process {}", self.process);
            return Err(raise(py, "closed", "08003", &message, Some("Start it anew, or start processes with spawn.")));
        }
        let answer: PyResult<Option<Result<T, Error>>> = std::thread::scope(|scope| {
            let (reply, answer) = channel();
            scope.spawn(move || {
                let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
                // (A caller that was told of a signal does not listen any more.)
                let _ = reply.send(f(&mut run));
            });
            let answer = Mutex::new(answer);
            loop {
                match hear(py, &answer) {
                    Heard::Answer(answer) => return Ok(answer),
                    Heard::Gone => return Ok(Some(Err(Error::internal("a call of the run did not return")))),
                    Heard::Nothing => {
                        if let Err(signal) = py.check_signals() {
                            self.stop.trigger();
                            // (A shard that calls a function of Python needs the lock to end.)
                            py.detach(|| drop(answer.lock().unwrap_or_else(PoisonError::into_inner).recv()));
                            return Err(signal);
                        }
                    }
                }
            }
        });
        match answer? {
            Some(answer) => answer.map_err(|error| raised(py, &error, None)),
            None => Err(raise(py, "closed", "08003", "the run is over", Some("Start the program anew."))),
        }
    }
}

#[pymethods]
impl Datasets {
    /// None so far.
    #[new]
    fn new() -> Datasets {
        Datasets { datasets: EngineDatasets::default() }
    }

    /// A dataset as the beginning of a program.
    fn read(&self, py: Python<'_>, name: &str) -> PyResult<Shards> {
        Shards::checked(py, self.datasets.read(name))
    }

    /// Forgets a dataset.
    fn drop(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.datasets.drop(name).map_err(|error| raised(py, &error, None))
    }

    /// Names, shards, events and bytes.
    fn list(&self) -> Vec<(String, usize, usize, usize)> {
        let told = |dataset: &Arc<anabranch_shards::Dataset>| {
            (dataset.name.clone(), dataset.layout.shards(), dataset.events(), dataset.size_bytes())
        };
        self.datasets.list().iter().map(told).collect()
    }
}

/// Changes of all shards as rows.
fn changed(schema: &SchemaRef, outcome: &RunOutcome, instants: bool) -> Result<Rows, Error> {
    let fields = [
        Field::new("shard", DataType::Int64, true),
        Field::new("time", time_type(instants), true),
        Field::new("diff", DataType::Int64, true),
    ];
    let fields = fields.into_iter().chain(schema.fields().iter().map(|field| field.as_ref().clone()));
    let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut batches = Vec::new();
    for shard in 0..outcome.shards.len() {
        let changes = outcome.changes_of(shard).compact();
        if changes.is_empty() {
            continue;
        }
        let numbers = |of: &dyn Fn(usize) -> i64| Int64Array::from_iter_values((0..changes.len()).map(of));
        let (times, diffs) = (numbers(&|row| changes.times().get(row)), numbers(&|row| changes.diffs().get(row)));
        let shards = numbers(&|_| shard as i64);
        let columns = [Arc::new(shards) as ArrayRef, timed(Arc::new(times), instants), Arc::new(diffs)];
        let columns: Vec<ArrayRef> = columns.into_iter().chain(changes.columns().iter().cloned()).collect();
        let shown = columns.iter().zip(schema.fields()).map(|(column, field)| {
            // (Batches hold the narrow forms of some types.)
            arrow::compute::cast(column, field.data_type())
        });
        let columns = shown.collect::<Result<Vec<ArrayRef>, _>>();
        let batch = columns.and_then(|columns| RecordBatch::try_new(schema.clone(), columns));
        batches.push(batch.map_err(|error| Error::internal(error.to_string()))?);
    }
    Ok(Rows::new(schema, batches, vec![]))
}
