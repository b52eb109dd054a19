//! The peer's side: the same queries, written against `differential-dataflow` as one who knows it
//! well would.
//!
//! Law: the contents of its answer are those of ours, up to the order and the limit, which it
//! leaves to its reader (in its favour: it keeps no first rows). `--check` compares. Rows are typed
//! tuples of the columns that the query reads, made before the clock starts; sums live in the
//! diffs, so a group costs one accumulation; arrangements are made once a key; filters go first.
//! What the dataflows rely on beyond what SQL may (keys are unique, every order has a customer) is
//! in their favour too.
//!
//! Source: *TPC-H on differential dataflow* (McSherry 2017); its 22 dataflows were the model, its
//! mistakes were not taken over.

mod queries;
mod rows;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use arrow::array::RecordBatch;
use differential_dataflow::difference::Semigroup;
use differential_dataflow::input::InputSession;
use differential_dataflow::{ExchangeData, VecCollection};
use timely::dataflow::operators::probe;
use timely::dataflow::{ProbeHandle, Scope};

pub use queries::QUERIES;

/// What to run, on which rows, and who measures.
#[derive(Clone, Copy)]
pub struct Case {
    /// One of [`QUERIES`].
    pub query: usize,
    /// Scale factor.
    pub scale: f64,
    /// Rows of each relation that have one time.
    pub logical: usize,
    /// Rows of each relation in a round.
    pub physical: usize,
    /// Rows of each relation at most.
    pub rows: usize,
    /// Whether to collect the answer.
    pub check: bool,
    /// The rows of a table at a scale.
    pub batches: fn(&str, f64) -> Batches,
    /// Called just before the clock starts, and just after it stops.
    pub usage: fn(Moment) -> Usage,
}

/// Batches of one table.
pub type Batches = Box<dyn Iterator<Item = RecordBatch>>;

/// When resources are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the first row.
    Start,
    /// After the last.
    End,
}

/// What the process has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// CPU seconds.
    pub cpu_s: f64,
    /// Megabytes: resident at the start, the peak at the end.
    pub memory_mb: f64,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Rows of all relations.
    pub tuples: usize,
    /// From the first row to the last result.
    pub seconds: f64,
    /// The longest round.
    pub longest_round_ms: f64,
    /// At the start and at the end.
    pub usage: [Usage; 2],
    /// The answer, if it was to be collected.
    pub contents: Contents,
}

/// A logical time: the number of a logical batch.
type Time = u64;
/// Updates on their way.
type Rows<'s, D, R = isize> = VecCollection<'s, Time, D, R>;
/// What an answer contains, written out, with multiplicities.
pub type Contents = BTreeMap<Vec<String>, isize>;

/// The rows of one relation, and the way into the dataflow.
trait Feed {
    /// Introduces up to `n` rows; row `i` has time `from + i / logical`. Returns how many.
    fn give(&mut self, n: usize, from: Time, logical: usize) -> usize;
    /// Nothing before `time` will come any more.
    fn advance(&mut self, time: Time);
    fn rows_left(&self) -> usize;
}

struct Relation<D: ExchangeData> {
    rows: std::vec::IntoIter<D>,
    session: InputSession<Time, D, isize>,
}

impl<D: ExchangeData> Feed for Relation<D> {
    fn give(&mut self, n: usize, from: Time, logical: usize) -> usize {
        let n_left = self.rows.len();
        let (mut time, mut of_time) = (from, 0);
        for row in self.rows.by_ref().take(n) {
            if of_time == logical {
                (time, of_time) = (time + 1, 0);
            }
            self.session.update_at(row, time, 1);
            of_time += 1;
        }
        n_left - self.rows.len()
    }

    fn advance(&mut self, time: Time) {
        self.session.advance_to(time);
        self.session.flush();
    }

    fn rows_left(&self) -> usize {
        self.rows.len()
    }
}

/// A dataflow in the making.
struct Site<'s> {
    batches: fn(&str, f64) -> Batches,
    scope: Scope<'s, Time>,
    scale: f64,
    /// Rows of each relation at most.
    rows: usize,
    feeds: Vec<Box<dyn Feed>>,
    probe: ProbeHandle<Time>,
    answer: Option<Rc<RefCell<Contents>>>,
}

impl<'s> Site<'s> {
    /// The rows of a table, as `rows_of` reads them from its batches.
    fn table<D: ExchangeData>(&mut self, name: &str, rows_of: impl Fn(&RecordBatch) -> Vec<D>) -> Rows<'s, D> {
        let rows: Vec<D> = (self.batches)(name, self.scale).flat_map(|batch| rows_of(&batch)).take(self.rows).collect();
        let mut session = InputSession::new();
        let collection = session.to_collection(self.scope);
        self.feeds.push(Box::new(Relation { rows: rows.into_iter(), session }));
        collection
    }

    /// Watches the answer's frontier; when checking also keeps its contents, as `write` writes a
    /// row with its diff.
    fn answer<D: ExchangeData, R: Semigroup + 'static>(
        &mut self,
        rows: Rows<'s, D, R>,
        write: impl Fn(&D, &R) -> (Vec<String>, isize) + 'static,
    ) {
        let rows = match self.answer.clone() {
            None => rows,
            Some(contents) => rows.inspect(move |(row, _, diff)| {
                let (row, diff) = write(row, diff);
                *contents.borrow_mut().entry(row).or_default() += diff;
            }),
        };
        rows.probe_with(&self.probe);
    }
}

/// Runs one case.
///
/// # Panics
/// If the query is not one of [`QUERIES`].
pub fn run(case: Case) -> Run {
    timely::execute_directly(move |worker| {
        let contents = Rc::new(RefCell::new(Contents::new()));
        let answer = case.check.then(|| Rc::clone(&contents));
        let (mut feeds, probe) = worker.dataflow::<Time, _, _>(|scope| {
            let Case { scale, rows, batches, .. } = case;
            let probe = probe::Handle::new();
            let mut site = Site { batches, scope, scale, rows, feeds: Vec::new(), probe, answer };
            queries::build(case.query, &mut site);
            (site.feeds, site.probe)
        });
        let tuples: usize = feeds.iter().map(|feed| feed.rows_left()).sum();

        let (at_start, start) = ((case.usage)(Moment::Start), Instant::now());
        let mut longest_round_ms: f64 = 0.0;
        let mut time: Time = 0;
        while feeds.iter().any(|feed| feed.rows_left() > 0) {
            let begin = Instant::now();
            for feed in &mut feeds {
                feed.give(case.physical, time, case.logical);
            }
            time += case.physical.div_ceil(case.logical) as Time;
            feeds.iter_mut().for_each(|feed| feed.advance(time));
            worker.step_while(|| probe.less_than(&time));
            longest_round_ms = longest_round_ms.max(begin.elapsed().as_secs_f64() * 1e3);
        }
        let seconds = start.elapsed().as_secs_f64();
        let usage = [at_start, (case.usage)(Moment::End)];
        drop(feeds);
        let mut contents = contents.take();
        contents.retain(|_, count| *count != 0);
        Run { tuples, seconds, longest_round_ms, usage, contents: queries::finished(case.query, contents) }
    })
}
