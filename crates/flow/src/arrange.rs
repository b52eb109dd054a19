//! Arrange: a stream becomes an arrangement, indexed by key, shared by all readers.
//!
//! Law: when the frontier has passed a time, the arrangement holds exactly the updates up to it;
//! each run covers the interval between two frontiers. Rows with equal keys are on one worker.
//!
//! An arrangement that other dataflows read (an *export*) keeps the row errors of its collection
//! too, by message, in an arrangement beside it.
//!
//! State: the arrangement, and the rows that wait for the frontier. It is freed when the dataflow
//! is dropped and no reader is left. Cost: sort each interval once (see `anabranch-arrangement`);
//! merging is paid in proportion to what comes in, and goes on, a little at a time, when nothing
//! comes in and the worker has nothing else to do ([`WorkerContext::has_spare_time`]). The steps
//! before belong to the same operator (see [`crate::chain`]), and a run is handed to the dataflow
//! only where something reads it. Source: shared arrangements (VLDB 2020), section 4.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_arrangement::{Layout, Listener, MergeEffort, Reader, Sealed, ValueOrder, Writer, arrangement};
use anabranch_batch::{Batch, Time};
use arrow::datatypes::DataType;
use timely::Accountable;
use timely::container::NoopBuilder;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::progress::operate::FrontierInterest;

use crate::account::memory::{Gauge, MemoryPart};
use crate::chain::{Chain, ChainTurn};
use crate::drive::{HeldCapability, advanced_to};
use crate::runs::{Arranged, Runs};
use crate::scope::Stream;
use crate::waker::Waker;
use crate::worker::WorkerContext;

/// Rows of merging done at a time when nothing comes in: below two tenths of a millisecond,
const IDLE_FUEL: isize = 8192;

/// and how long other operators have the worker in between.
const IDLE_PAUSE: Duration = Duration::from_millis(2);

/// Rows of merging done in a turn while a very large run is still in parts, or much was taken back:
/// some milliseconds.
const TIDY_FUEL: isize = 1 << 16;

/// A turn may have begun, by its clock, so much before what ended the pause.
const PAUSE_SLACK: Duration = Duration::from_micros(250);

/// What has a name and is asked for sometimes may stay with the step before if it is so few rows:
/// who asks waits until they are told and sorted.
const RECALLED_ROWS_MAX: usize = 1 << 10;

/// What travels from an arrangement to those who read it in its dataflow.
#[derive(Clone, Debug, Default)]
pub enum Sealing {
    /// Nothing; timely wants a default.
    #[default]
    Empty,
    /// Runs as they were sealed; empty ones show in the frontier only.
    Runs(Vec<Sealed>),
    /// Row errors of the collection; they are not arranged here.
    Errors(Batch),
}

impl Accountable for Sealing {
    fn record_count(&self) -> i64 {
        match self {
            Sealing::Empty => 0,
            Sealing::Runs(runs) => runs.len() as i64,
            Sealing::Errors(batch) => batch.len() as i64,
        }
    }
}

/// First the runs that exist, then each new one.
pub type SealedStream<'s> = Stream<'s, Sealing>;

/// Arranges a stream of rows; times before `as_of` are advanced to it.
pub fn arrange<'s>(
    stream: Stream<'s>,
    name: &str,
    layout: Arc<Layout>,
    effort: MergeEffort,
    as_of: Time,
) -> Arranged<'s> {
    Chain::of_stream(stream, as_of).arrange(name, layout, effort)
}

/// Who reads an arrangement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Readers {
    /// Operators of its dataflow.
    Inside,
    /// Others: the row errors are arranged too. Between their questions the step before keeps the
    /// rows if it can, and they are few.
    Outside,
    /// Others, perhaps, some time: until they ask, the step before keeps the rows if it can.
    Perhaps,
    /// Those inside and outside.
    Everywhere,
}

/// What was made of a chain.
pub struct Made<'s> {
    /// Reads the arrangement.
    pub rows: Reader,
    /// Its runs, for operators of its dataflow, if it is for them.
    pub sealed: Option<SealedStream<'s>>,
    /// Reads the row errors, if it is for others.
    pub errors: Option<Reader>,
}

impl<'s> Chain<'s> {
    /// Arranges the rows for operators of the same dataflow; times before the chain's `as_of` are
    /// advanced to it.
    pub fn arrange(self, name: &str, layout: Arc<Layout>, effort: MergeEffort) -> Arranged<'s> {
        let made = self.arrange_for(Readers::Inside, name, layout, effort);
        Arranged { reader: made.rows, runs: Runs::Edge(made.sealed.expect("it is for operators of its dataflow")) }
    }

    /// As [`arrange`](Chain::arrange), for its readers.
    pub fn arrange_for(self, readers: Readers, name: &str, layout: Arc<Layout>, effort: MergeEffort) -> Made<'s> {
        let mut chain = self.by_key(layout.key.clone());
        let (mut rows, reader) = Sealer::new(layout, effort, chain.as_of());
        let recalled_max = match readers {
            Readers::Perhaps => Some(usize::MAX),
            Readers::Outside => Some(RECALLED_ROWS_MAX),
            Readers::Inside | Readers::Everywhere => None,
        };
        if let Some(recalled_max) = recalled_max
            && let Some(origin) = chain.origin()
        {
            rows.writer.set_origin(origin, recalled_max);
        }
        let worker = chain.worker().clone();
        let gauge = Gauge::new(worker.account().clone(), MemoryPart::Arrangements);
        let mut arranging =
            Arranging { rows, errors: None, listener: None, idler: Idler::default(), effort, worker, gauge };
        let mut errors_reader = None;
        if readers != Readers::Inside {
            let (writer, reader) = arranging.rows.writer.beside(messages(), effort);
            let errors = Sealer { writer, as_of: chain.as_of() };
            (arranging.errors, errors_reader) = (Some(errors), Some(reader));
        }
        let name = format!("Arrange {name}");
        let sealed = match readers {
            Readers::Outside | Readers::Perhaps => {
                chain.into_arrangement(name, arranging);
                None
            }
            Readers::Inside | Readers::Everywhere => {
                arranging.listener = Some(reader.listen(None));
                Some(chain.into_sealed_stream(name, arranging))
            }
        };
        Made { rows: reader, sealed, errors: errors_reader }
    }

    fn into_arrangement(self, name: String, mut arranging: Arranging) {
        let audience = arranging.rows.writer.audience();
        let meter = arranging.worker.meter("Arrange");
        self.into_end(name, Some(audience), move |turn, waker| {
            let step = meter.step();
            arranging.turn(turn, waker, step.start());
        });
    }

    fn into_sealed_stream(self, name: String, mut arranging: Arranging) -> SealedStream<'s> {
        let worker = arranging.worker.clone();
        let (mut operator, mut steps) = self.open(name, FrontierInterest::Always);
        steps.waker().add(arranging.rows.writer.audience());
        let (output, sealed) = operator.new_output::<Sealing>();
        let mut output = OutputBuilder::<_, NoopBuilder<Sealing>>::from(output);
        operator.build(move |mut capabilities| {
            steps.start_with(HeldCapability::new(capabilities.pop().expect("one output")));
            let meter = arranging.worker.meter("Arrange");
            let account = arranging.worker.account().clone();
            move |frontiers| {
                let turned = account.turn(|| {
                    let turn = steps.turn(frontiers);
                    let step = meter.step();
                    let (upto, pending) = (turn.upto, turn.pending);
                    (arranging.turn(turn, steps.waker(), step.start()), upto, pending)
                });
                let Some((mut messages, upto, pending)) = turned else { return };
                if !messages.is_empty() {
                    let capability = steps.hold.capability().expect("what is sealed came with a capability");
                    let mut output = output.activate();
                    let mut session = output.session_with_builder(capability);
                    messages.iter_mut().for_each(|message| session.give_container(message));
                }
                let waiting = arranging.is_waiting().then_some(upto);
                steps.release(waiting.into_iter().chain(pending).min());
            }
        });
        Stream::new(sealed, worker)
    }
}

/// An arrangement at work.
struct Arranging {
    rows: Sealer,
    /// Row errors, for others.
    errors: Option<Sealer>,
    /// For operators of the same dataflow.
    listener: Option<Listener>,
    idler: Idler,
    effort: MergeEffort,
    worker: WorkerContext,
    gauge: Gauge,
}

impl Arranging {
    /// Arranges what a turn that began `now` has brought; returns what operators of the same
    /// dataflow are to be told. Wakes the operator again if there is something to merge in spare
    /// time.
    fn turn(&mut self, turn: ChainTurn, waker: &Waker, now: Instant) -> Vec<Sealing> {
        let is_idle = turn.out.rows.is_empty() && turn.upto <= self.rows.writer.upper();
        let mut messages: Vec<Sealing> = Vec::new();
        for batch in turn.out.errors {
            if let Some(errors) = &mut self.errors {
                errors.push(batch.clone());
            }
            if self.listener.is_some() {
                messages.push(Sealing::Errors(batch));
            }
        }
        let n_rows: usize = turn.out.rows.iter().map(Batch::len).sum();
        turn.out.rows.into_iter().for_each(|batch| self.rows.push(batch));
        self.rows.writer.complete(turn.upto);
        messages.extend(self.listener.as_mut().and_then(sealing));
        if let Some(errors) = &mut self.errors {
            errors.writer.complete(turn.upto);
        }
        let merges = self.effort != MergeEffort::LAZY;
        if merges && self.rows.writer.tidy(&mut { TIDY_FUEL }) {
            waker.go_on();
        }
        if merges && self.idler.should_wait(is_idle, now, &mut self.rows.writer, &self.worker) {
            waker.go_on_after(IDLE_PAUSE);
        }
        // (An idle turn may have merged.)
        let n_rows = if is_idle { IDLE_FUEL as usize } else { n_rows };
        self.gauge.note(n_rows, || self.rows.writer.size_bytes());
        messages
    }

    /// Whether something waits for its time to be complete.
    fn is_waiting(&self) -> bool {
        self.rows.writer.is_waiting() || self.errors.as_ref().is_some_and(|errors| errors.writer.is_waiting())
    }
}

/// How messages of row errors are arranged.
fn messages() -> Arc<Layout> {
    Arc::new(Layout { key: vec![0], values: ValueOrder::Hash, types: vec![DataType::Utf8View] })
}

/// The run that was just sealed, unless it is empty.
fn sealing(listener: &mut Listener) -> Option<Sealing> {
    let mut sealed = listener.drain();
    sealed.retain(|sealed| !sealed.run.is_empty());
    (!sealed.is_empty()).then_some(Sealing::Runs(sealed))
}

/// Merges when there is nothing else to do.
#[derive(Default)]
struct Idler {
    /// The end of the pause, which wakes the operator.
    pause_end: Option<Instant>,
}

impl Idler {
    /// Merges a little in an idle turn, which began `now`. Returns whether to be woken after a
    /// pause, because there is more to merge, or may be: who reads lets go of times only after they
    /// have come. (The end of a pause may fall into a turn that has something else to do: then
    /// there is another.)
    fn should_wait(&mut self, is_idle: bool, now: Instant, writer: &mut Writer, worker: &WorkerContext) -> bool {
        let is_over = self.pause_end.is_none_or(|end| end <= now + PAUSE_SLACK);
        if !is_idle && !is_over {
            return false;
        }
        let has_more = if !is_idle {
            true
        } else if worker.has_spare_time() {
            writer.exert(&mut { IDLE_FUEL })
        } else {
            // (Others have work: perhaps after another pause.)
            self.pause_end.is_some()
        };
        if !has_more {
            self.pause_end = None;
        } else if is_over {
            self.pause_end = Some(now + IDLE_PAUSE);
        }
        has_more && is_over
    }
}

/// Writes rows, from a time on.
struct Sealer {
    writer: Writer,
    as_of: Time,
}

impl Sealer {
    fn new(layout: Arc<Layout>, effort: MergeEffort, as_of: Time) -> (Sealer, Reader) {
        let (writer, reader) = arrangement(layout, effort);
        (Sealer { writer, as_of }, reader)
    }

    fn push(&mut self, batch: Batch) {
        self.writer.push(advanced_to(batch.flatten(), self.as_of));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_batch::{Diffs, Times};
    use arrow::array::{ArrayRef, Int64Array};

    /// An arrangement of so many runs, none of which was merged.
    fn unmerged(runs: i64) -> (Writer, Reader) {
        let layout = Layout { key: vec![0], values: ValueOrder::Hash, types: vec![DataType::Int64] };
        let (mut writer, mut reader) = arrangement(Arc::new(layout), MergeEffort::LAZY);
        for time in 0..runs {
            let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5000));
            writer.push(Batch::new(vec![column], Times::Constant(time), Diffs::Constant(1)));
            writer.complete(time + 1);
            reader.set_since(time);
            assert!(!reader.runs().is_empty());
        }
        (writer, reader)
    }

    #[test]
    fn whoever_has_more_to_merge_waits_for_one_pause_at_a_time() {
        let (mut writer, reader) = unmerged(20);
        let (mut idler, start) = (Idler::default(), Instant::now());
        let worker = WorkerContext::default();
        let mut turn = |is_idle: bool, micros: u64| {
            idler.should_wait(is_idle, start + Duration::from_micros(micros), &mut writer, &worker)
        };
        assert!(turn(false, 0), "the first pause begins");
        assert!(!turn(false, 100) && !turn(true, 200), "which is not over");
        // It ends in a turn that has something to do, which its clock says is a little earlier:
        // another begins.
        assert!(turn(false, 1_900));
        assert!(!turn(true, 2_000));
        assert!(turn(true, 3_900));
        // Who has to wait for others, waits for another pause.
        worker.set_behind(true);
        let merged = reader.stats().runs;
        assert!(turn(true, 6_000) && !turn(true, 6_100) && turn(true, 8_000));
        assert_eq!(reader.stats().runs, merged);
        worker.set_behind(false);
        let pauses = (5..100).take_while(|pause| turn(true, 2_000 * pause)).count();
        assert!((1..50).contains(&pauses), "{pauses} pauses");
        assert_eq!(reader.stats().runs, 1);
        assert!(!turn(true, 1_000_000), "there is nothing to wait for");
        // After something came, readers may let go of something.
        assert!(turn(false, 1_000_100) && !turn(false, 1_000_200) && !turn(true, 1_002_100));
    }
}
