//! Early answers over bounded inputs, refined to the exact end.
//!
//! ```text
//!     share read     25 %          50 %          75 %          100 %
//!     answer         of the rows   of the rows   of the rows   exact
//!                    seen so far   seen so far   seen so far
//! ```
//!
//! Law: the answer at a share is the frame's over the rows read so far, all in force; the last one,
//! at share 1, is that over all rows. Time here is how much has been read: rows begin when they are
//! read and never end, so a step costs what its rows change. That is what is left of time, so
//! frames that look at it (windows, sessions, patterns ..) are refused: group by a column of time
//! instead. Source: progressive queries as in Prism (Chandramouli et al., "Scalable Progressive
//! Analytics on Big Data in the Cloud", VLDB 2013).

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, Diffs, Time, Times, Until};
use anabranch_plan::properties::Properties;
use anabranch_plan::temporal::{FOREVER, Verb};
use anabranch_plan::{Node, Plan};
use arrow::array::RecordBatch;

use super::events::Events;
use super::play::share;
use super::query::{Frame, temporal};
use super::run::FrameRun;
use crate::connector::{Poll, SourceReader};
use crate::error::Error;
use crate::session::state::Session;

/// Rows asked of a source at once.
const ROWS_MAX: usize = 8192;

/// An answer on the way to the exact one.
#[derive(Clone, Debug)]
pub struct Early {
    /// The part of the input that has been read, by its bytes; 1 for the exact answer.
    pub share: f64,
    /// The rows of the answer, in no order.
    pub rows: RecordBatch,
}

/// Answers that become exact; see [`Session::progressive`].
pub struct Progressive<'s> {
    run: FrameRun<'s>,
    inputs: BTreeMap<String, Events>,
    sources: BTreeMap<String, (Box<dyn SourceReader>, bool)>,
    steps: u32,
    /// Steps that are behind.
    step: u32,
    answer: Option<Batch>,
    is_over: bool,
}

impl Session {
    /// Reads bounded sources into a frame's inputs, and gives an answer at each of `steps` equal
    /// shares of the bytes; the last one is exact. See the [module page](super::progressive).
    ///
    /// # Errors
    /// `Invalid` when the frame looks at time, an input has no source, or a source has no end or
    /// does not say how large it is.
    pub fn progressive<'a>(
        &mut self,
        frame: &Frame,
        sources: impl IntoIterator<Item = (&'a str, Box<dyn SourceReader>)>,
        steps: u32,
    ) -> Result<Progressive<'_>, Error> {
        if steps == 0 {
            return Err(Error::invalid("progressive results come in at least one step"));
        }
        let state = frame.state()?;
        let inputs = state.inputs.clone();
        let timeless: BTreeMap<String, Events> =
            inputs.iter().map(|(name, events)| (name.clone(), events.clone().timeless())).collect();
        let frame = Frame::new(without_time(&state.plan)?, timeless, vec![]);
        let sources: BTreeMap<String, (Box<dyn SourceReader>, bool)> =
            sources.into_iter().map(|(name, reader)| (name.to_owned(), (reader, false))).collect();
        if let Some(name) = inputs.keys().find(|name| !sources.contains_key(*name)) {
            return Err(Error::invalid(format!("there is no source for input \"{name}\"")));
        }
        for (name, (reader, _)) in &sources {
            if !inputs.contains_key(name) {
                return Err(Error::invalid(format!("the frame has no input \"{name}\"")));
            }
            if !reader.bounded() || reader.progress().bytes_total.is_none() {
                return Err(Error::invalid(format!("the source of input \"{name}\" does not say where it ends")));
            }
        }
        let run = self.start(&frame)?;
        Ok(Progressive { run, inputs, sources, steps, step: 0, answer: None, is_over: false })
    }
}

/// The plan over rows without lifetimes.
fn without_time(plan: &Arc<Plan>) -> Result<Arc<Plan>, Error> {
    let all = |inputs: &[Arc<Plan>]| inputs.iter().map(without_time).collect::<Result<Vec<_>, _>>();
    let node = match &plan.node {
        Node::Stage { input, filter, project } => {
            Node::Stage { input: without_time(input)?, filter: filter.clone(), project: project.clone() }
        }
        Node::Unnest { input, columns, outer } => {
            Node::Unnest { input: without_time(input)?, columns: columns.clone(), outer: *outer }
        }
        Node::Union { inputs } => Node::Union { inputs: all(inputs)? },
        Node::Temporal { verb: Verb::Events { input, .. }, .. } => {
            let declared = Properties { duration: Some(FOREVER), bounded: true, ..Properties::default() };
            return Ok(temporal(Verb::Events { input: input.clone(), declared }, vec![], plan.schema.clone()));
        }
        Node::Temporal { verb, inputs } => match verb {
            Verb::Aggregate { .. } | Verb::Join { .. } | Verb::WhereNotExists { .. } => {
                Node::Temporal { verb: verb.clone(), inputs: all(inputs)? }
            }
            _ => {
                return Err(Error::invalid(
                    "progressive results are of all rows read so far, but the frame looks at time",
                )
                .with_hint("Leave windows and lifetimes out, and group by a column of time instead."));
            }
        },
        _ => return Err(Error::internal("a frame is made of other nodes")),
    };
    Ok(Arc::new(Plan { node, schema: plan.schema.clone() }))
}

impl Progressive<'_> {
    /// The next answer; `None` after the exact one.
    ///
    /// # Errors
    /// Those of the sources and of rows in error.
    pub fn step(&mut self) -> Result<Option<Early>, Error> {
        if self.is_over {
            return Ok(None);
        }
        let share = self.read()?;
        self.is_over = self.sources.values().all(|(_, is_over)| *is_over);
        self.step += 1;
        self.run.advance_all(Time::from(self.step))?;
        let changes = self.run.changes()?.into_iter().map(|batch| batch.with_times(Times::Constant(0)));
        let all: Vec<Batch> = self.answer.take().into_iter().chain(changes).collect();
        self.answer = Batch::concat(&all).map(consolidate);
        Ok(Some(Early { share: if self.is_over { 1.0 } else { share }, rows: self.rows()? }))
    }

    /// Reads until another step's share is there.
    fn read(&mut self) -> Result<f64, Error> {
        let time = Time::from(self.step);
        loop {
            let share = share(self.sources.values().map(|(reader, is_over)| (reader.progress(), *is_over)));
            let share = share.ok_or_else(|| Error::internal("a source has forgotten how large it is"))?;
            let is_over = self.sources.values().all(|(_, is_over)| *is_over);
            // (The last step ends with the input.)
            let wanted = f64::from(self.step + 1) / f64::from(self.steps);
            if is_over || (share >= wanted && self.step + 1 < self.steps) {
                return Ok(share);
            }
            for (name, (reader, is_over)) in self.sources.iter_mut().filter(|(_, (_, is_over))| !*is_over) {
                match reader.poll(ROWS_MAX)? {
                    Poll::Rows(rows) => {
                        let events = self.inputs.get(name).expect("sources have inputs");
                        let columns = events.columns(rows.columns())?;
                        let times = Times::Constant(time);
                        let batch = Batch::with_len(columns, rows.num_rows(), times, Diffs::Constant(1));
                        self.run.push(name, batch.with_until(Until::Forever))?;
                    }
                    Poll::Pending { retry_after } => std::thread::sleep(retry_after),
                    Poll::Done => *is_over = true,
                }
            }
        }
    }

    /// The answer, a row as often as it is there.
    fn rows(&self) -> Result<RecordBatch, Error> {
        let schema = self.run.schema()?;
        let Some(answer) = &self.answer else { return Ok(RecordBatch::new_empty(schema)) };
        let times = |row: usize| usize::try_from(answer.diffs().get(row)).unwrap_or(0);
        let rows = (0..answer.len()).flat_map(|row| std::iter::repeat_n(row as u32, times(row)));
        let taken = answer.take(&rows.collect::<Vec<_>>());
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(taken.len()));
        RecordBatch::try_new_with_options(schema, taken.columns().to_vec(), &options)
            .map_err(|error| Error::internal(format!("an answer does not fit its schema: {error}")))
    }
}
