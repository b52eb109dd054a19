//! Inputs that bring their rows in order: disorder, late rows, punctuation, partitions.
//!
//! An input without any of these takes rows in any order between two advances, and refuses those
//! before the last. With one of them it goes by the order of arrival: its frontier follows its
//! rows, and what comes too late is an error, dropped, or moved, and counted. What each setting
//! means exactly is on the page of [`anabranch_operators::temporal::ingress`].
//!
//! ```
//! use anabranch_engine::frame::{Disorder, Event, Events};
//! use anabranch_engine::{Options, Session};
//! use arrow::datatypes::{DataType, Field, Schema};
//!
//! let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
//! let input = Events::input("in", schema).on_disorder(Disorder::Drop).reorder_latency(10).report_late();
//! let mut session = Session::new(Options::default())?;
//! let mut run = session.start(&input.frame())?;
//! let events = [20, 15, 40, 28].map(|time| Event::point(time, [time.into()]));
//! run.push("in", events.to_vec())?;
//! assert_eq!(run.late("in")?.dropped, 1); // 28 came when time had gone to 30
//! assert_eq!(run.late_rows("in")?.map(|rows| rows.len()), Some(1));
//! run.finish()?;
//! assert_eq!(run.lifetimes()?.iter().map(|lifetime| lifetime.start).collect::<Vec<_>>(), [15, 20, 40]);
//! # Ok::<(), anabranch_engine::Error>(())
//! ```

use anabranch_batch::{Batch, END, Time, types};
use anabranch_operators::temporal::ingress::{
    Completed, Disorder, Ingress, IngressCounts, IngressEnds, Item, Late, LowWatermark, Policy,
};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;

use super::events::{Arrival, Events};
use super::run::{FrameRun, RunInput, shown};
use crate::error::Error;

impl Events {
    /// What becomes of rows that come too late.
    #[must_use]
    pub fn on_disorder(self, disorder: Disorder) -> Events {
        self.arriving(|arrival| arrival.policy.disorder = disorder)
    }

    /// Where time begins: rows before it are late.
    #[must_use]
    pub fn begins_at(self, time: Time) -> Events {
        self.arriving(|arrival| arrival.policy.begin = time)
    }

    /// Rows wait until one `ticks` later has come, so that rows late by no more than that are put
    /// in order. Not negative.
    #[must_use]
    pub fn reorder_latency(self, ticks: i64) -> Events {
        self.arriving(|arrival| arrival.policy.reorder_latency = ticks)
    }

    /// A punctuation at every multiple of `ticks` that rows pass. Positive.
    #[must_use]
    pub fn punctuation_period(self, ticks: i64) -> Events {
        self.arriving(|arrival| arrival.policy.punctuation_period = Some(ticks))
    }

    /// Each value of these columns has a time of its own; results come when a low watermark has
    /// passed.
    #[must_use]
    pub fn partition_by<'a>(self, columns: impl IntoIterator<Item = &'a str>) -> Events {
        let columns: Vec<String> = columns.into_iter().map(str::to_owned).collect();
        self.arriving(|arrival| arrival.partition = columns)
    }

    /// A low watermark at every multiple of `period` that the latest row, less `lag` ticks, passes.
    #[must_use]
    pub fn low_watermark(self, period: i64, lag: i64) -> Events {
        self.arriving(|arrival| arrival.policy.low_watermark = Some(LowWatermark { period, lag }))
    }

    /// What the end of the input means.
    #[must_use]
    pub fn on_completed(self, completed: Completed) -> Events {
        self.arriving(|arrival| arrival.policy.completed = completed)
    }

    /// No end edges will come, so nothing has to be remembered of late rows.
    #[must_use]
    pub fn without_end_edges(self) -> Events {
        self.arriving(|arrival| arrival.policy.ends = IngressEnds::Never)
    }

    /// Late rows are kept for [`FrameRun::late_rows`].
    #[must_use]
    pub fn report_late(self) -> Events {
        self.arriving(|arrival| arrival.policy.report = true)
    }

    fn arriving(mut self, change: impl FnOnce(&mut Arrival)) -> Events {
        let arrival = || Arrival { policy: Policy::default(), partition: Vec::new() };
        change(self.arrival.get_or_insert_with(arrival));
        self
    }

    /// Checks what was said about arrival.
    pub(super) fn check_arrival(&self) -> Result<(), Error> {
        let Some(Arrival { policy, partition }) = &self.arrival else { return Ok(()) };
        let wrong = |what: &str, ticks: i64| {
            Err(Error::invalid(format!("{what} of input \"{}\" cannot be {ticks} ticks", self.name())))
        };
        match policy {
            Policy { reorder_latency, .. } if *reorder_latency < 0 => wrong("the reorder latency", *reorder_latency),
            Policy { punctuation_period: Some(period), .. } if *period <= 0 => wrong("the punctuation period", *period),
            Policy { low_watermark: Some(low), .. } if low.period <= 0 => {
                wrong("the period of low watermarks", low.period)
            }
            Policy { low_watermark: Some(low), .. } if low.lag < 0 => wrong("the lag of low watermarks", low.lag),
            _ => partition.iter().try_for_each(|column| self.place(column).map(|_| ())),
        }
    }

    /// What brings the rows in order, if anything is to.
    pub(crate) fn ingress(&self) -> Result<Option<Ingress>, Error> {
        let Some(Arrival { policy, partition }) = &self.arrival else { return Ok(None) };
        let partition = partition.iter().map(|column| self.place(column)).collect::<Result<_, _>>()?;
        Ok(Some(Ingress::new(Policy { partition, ..policy.clone() }, &self.types())))
    }

    fn place(&self, column: &str) -> Result<usize, Error> {
        self.schema().index_of(column).map_err(|_| self.no_column(column))
    }
}

impl FrameRun<'_> {
    /// Promises that no row of one partition, given by the values of its columns, will come before
    /// `time`.
    ///
    /// # Errors
    /// `Invalid` when there is no such input, or it has other partitions; `Internal` when a worker
    /// has failed.
    pub fn advance_partition(
        &mut self,
        input: &str,
        partition: impl IntoIterator<Item = ScalarValue>,
        time: Time,
    ) -> Result<(), Error> {
        let place = self.input(input)?;
        let Some(ingress) = &mut place.ingress else { return Err(no_partitions(input)) };
        let types = partition_types(&place.events)?;
        let values: Vec<ScalarValue> = partition.into_iter().collect();
        if values.len() != types.len() || types.is_empty() {
            return Err(no_partitions(input));
        }
        let cells = values.iter().zip(&types).map(|(value, data_type)| value.cast_to(data_type)?.to_array());
        let cells =
            cells.collect::<Result<Vec<ArrayRef>, _>>().map_err(|error| Error::invalid(error.strip_backtrace()))?;
        let key = cells.iter().map(|cell| types::narrowed(cell).map_err(|error| Error::invalid(error.detail())));
        let key = key.collect::<Result<Vec<ArrayRef>, Error>>()?;
        ingress.punctuate(&key, time);
        self.let_in(input)
    }

    /// Rows dropped and moved so far.
    ///
    /// # Errors
    /// `Invalid` when there is no such input.
    pub fn late(&mut self, input: &str) -> Result<IngressCounts, Error> {
        Ok(self.input(input)?.ingress.as_ref().map(Ingress::counts).unwrap_or_default())
    }

    /// Rows dropped and moved since the last call, if the input [reports](Events::report_late)
    /// them: at their own times, with a last column that says by how many ticks they were moved,
    /// NULL for dropped ones.
    ///
    /// # Errors
    /// `Invalid` when there is no such input.
    pub fn late_rows(&mut self, input: &str) -> Result<Option<Batch>, Error> {
        Ok(self.input(input)?.ingress.as_mut().and_then(Ingress::take_report).map(shown))
    }

    /// From now on an input does not hold up the others: its time follows theirs, until rows are
    /// pushed into it again.
    ///
    /// # Errors
    /// `Invalid` when there is no such input, `Internal` when a worker has failed.
    pub fn idle(&mut self, input: &str) -> Result<(), Error> {
        self.input(input)?.is_idle = true;
        self.follow()?;
        self.hand_on_due()
    }

    /// Takes rows through the input's ingress.
    pub(super) fn push_arriving(&mut self, input: &str, batch: Batch) -> Result<(), Error> {
        let place = self.input(input)?;
        let ingress = place.ingress.as_mut().expect("the caller has seen it");
        let result = ingress.push(batch);
        self.let_in(input)?;
        result.map_err(|Late { time, current, .. }| {
            Error::data(format!("a row of input \"{input}\" at {time} comes too late: time has gone to {current}"))
                .with_detail("The rows before it were taken.")
                .with_hint("Give the input a reorder latency, or drop or adjust what comes late.")
        })
    }

    /// Promises through the input's ingress.
    pub(super) fn advance_arriving(&mut self, input: &str, time: Time) -> Result<(), Error> {
        let place = self.input(input)?;
        let has_partitions = !partition_types(&place.events)?.is_empty();
        let ingress = place.ingress.as_mut().expect("the caller has seen it");
        match (time, has_partitions) {
            (END, _) => ingress.finish(),
            (_, true) => ingress.low_watermark(time),
            (_, false) => ingress.punctuate(&[], time),
        }
        self.let_in(input)
    }

    /// Hands on what an ingress lets through.
    fn let_in(&mut self, input: &str) -> Result<(), Error> {
        let place = self.input(input)?;
        let RunInput { ingress: Some(ingress), frontier, journal, .. } = place else { return Ok(()) };
        let items = ingress.take();
        let reached = ingress.frontier();
        let moved = reached > *frontier;
        if let Some(journal) = journal {
            journal.extend(items.iter().cloned());
        }
        for item in items {
            if let Item::Rows(batch) = item {
                self.keep(input, batch)?;
            }
        }
        if moved {
            self.promise(input, reached)?;
        }
        self.follow()?;
        self.hand_on_due()
    }

    /// Moves idle inputs on to where the others are.
    pub(super) fn follow(&mut self) -> Result<(), Error> {
        let busy = self.inputs.values().filter(|input| !input.is_idle).map(|input| input.frontier).min();
        let Some(reached) = busy else { return Ok(()) };
        let behind = self.inputs.iter().filter(|(_, input)| input.is_idle && input.frontier < reached);
        for name in behind.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            let place = self.input(&name)?;
            place.frontier = reached;
            if let (Some(ingress), true) = (&mut place.ingress, reached < END) {
                match partition_types(&place.events)?.is_empty() {
                    true => ingress.punctuate(&[], reached),
                    false => ingress.low_watermark(reached),
                }
            }
            let items = place.ingress.as_mut().map(Ingress::take).unwrap_or_default();
            for item in items {
                if let Item::Rows(batch) = item {
                    self.keep(&name, batch)?;
                }
            }
            self.promise(&name, reached)?;
        }
        Ok(())
    }

    /// Keeps what the input's ingress lets through for [`arrivals`](FrameRun::arrivals).
    ///
    /// # Errors
    /// `Invalid` when there is no such input.
    pub fn record_arrivals(&mut self, input: &str) -> Result<(), Error> {
        self.input(input)?.journal = Some(Vec::new());
        Ok(())
    }

    /// Rows, punctuations and low watermarks that the input's ingress has let through since the
    /// last call, in order.
    ///
    /// # Errors
    /// `Invalid` when there is no such input.
    pub fn arrivals(&mut self, input: &str) -> Result<Vec<Item>, Error> {
        Ok(self.input(input)?.journal.as_mut().map(std::mem::take).unwrap_or_default())
    }
}

fn partition_types(events: &Events) -> Result<Vec<DataType>, Error> {
    let Some(Arrival { partition, .. }) = &events.arrival else { return Ok(vec![]) };
    let types = events.types();
    partition.iter().map(|column| Ok(types[events.place(column)?].clone())).collect()
}

fn no_partitions(input: &str) -> Error {
    Error::invalid(format!("input \"{input}\" has no such partitions"))
        .with_hint("Say which columns they are with .partition_by(..), and give one value for each.")
}
