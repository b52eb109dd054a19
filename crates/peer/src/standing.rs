//! A program of the peer whose answer is kept current, as the benchmarks drive it.

use std::cell::Cell;
use std::rc::Rc;

use differential_dataflow::VecCollection;
use differential_dataflow::input::InputSession;
use timely::dataflow::ProbeHandle;
use timely::worker::Worker;

/// A row of every relation.
pub type Pair = (u64, u64);

/// A program whose answer is kept current.
pub trait Standing {
    /// Adds (`diff` 1) or removes (-1) rows of a relation, as part of the next commit.
    fn change(&mut self, relation: usize, rows: &[Pair], diff: i64);

    /// Makes the changes one commit, and returns when the answer has taken them in.
    fn commit(&mut self);

    /// Rows of the answer.
    fn rows(&mut self) -> i64;

    /// The sum of [`check_of`] over the rows of the answer.
    fn checksum(&mut self) -> i64;
}

/// What a row adds to the checksum of an answer: equal answers have equal sums, others hardly ever.
#[must_use]
pub fn check_of((a, b): &Pair) -> i64 {
    (a % CHECK_MODULUS * 31 + b % CHECK_MODULUS) as i64
}

/// A prime number.
pub const CHECK_MODULUS: u64 = 1_000_003;

/// A collection of the peer.
pub(crate) type Rows<'s, T, D> = VecCollection<'s, T, D, isize>;

/// Builds a program of so many relations on a worker of this thread, arranges its answer, and hands
/// it to `drive`.
pub(crate) fn run<R: Send + Sync + 'static>(
    n_relations: usize,
    build: impl for<'s> FnOnce(Vec<Rows<'s, u64, Pair>>) -> Rows<'s, u64, Pair> + Send + Sync + 'static,
    drive: impl FnOnce(&mut dyn Standing) -> R + Send + Sync + 'static,
) -> R {
    timely::execute_directly(move |worker| {
        let (probe, rows) = (ProbeHandle::new(), Rc::new(Cell::new((0, 0))));
        let counter = Rc::clone(&rows);
        let inputs = worker.dataflow::<u64, _, _>(|scope| {
            let mut inputs: Vec<InputSession<u64, Pair, isize>> =
                (0..n_relations).map(|_| InputSession::new()).collect();
            let answer = build(inputs.iter_mut().map(|input| input.to_collection(scope)).collect());
            answer
                .arrange_by_self()
                .as_collection(|row: &Pair, ()| *row)
                .inspect_batch(move |_, changes| {
                    let (mut rows, mut checksum) = counter.get();
                    for (row, _, diff) in changes {
                        rows += *diff as i64;
                        checksum += check_of(row) * *diff as i64;
                    }
                    counter.set((rows, checksum));
                })
                .probe_with(&probe);
            inputs
        });
        drive(&mut Peer { worker, inputs, probe, rows, time: 0 })
    })
}

struct Peer<'w> {
    worker: &'w mut Worker,
    inputs: Vec<InputSession<u64, Pair, isize>>,
    probe: ProbeHandle<u64>,
    rows: Rc<Cell<(i64, i64)>>,
    time: u64,
}

impl Standing for Peer<'_> {
    fn change(&mut self, relation: usize, rows: &[Pair], diff: i64) {
        rows.iter().for_each(|row| self.inputs[relation].update(*row, diff as isize));
    }

    fn commit(&mut self) {
        self.time += 1;
        for input in &mut self.inputs {
            input.advance_to(self.time);
            input.flush();
        }
        let (probe, time) = (&self.probe, self.time);
        self.worker.step_while(|| probe.less_than(&time));
    }

    fn rows(&mut self) -> i64 {
        self.rows.get().0
    }

    fn checksum(&mut self) -> i64 {
        self.rows.get().1
    }
}
