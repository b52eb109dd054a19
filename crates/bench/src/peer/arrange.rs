//! The peer's arrangements: its default, and one of sorted vectors, which takes more memory and
//! less time.

use differential_dataflow::AsCollection;
use differential_dataflow::operators::arrange::TraceAgent;
use differential_dataflow::trace::chunk::vec::{ChunkBatcher, ChunkSpine};
use differential_dataflow::trace::implementations::{ValBatcher, ValSpine};
use differential_dataflow::trace::{Trace, TraceReader};
use timely::dataflow::InputHandleVec;
use timely::dataflow::operators::Input;
use timely::dataflow::operators::probe::{Handle, Probe};
use timely::progress::frontier::Antichain;
use timely::worker::Worker;

use crate::allocator;
use crate::arrange::{Case, Measured, SETTLING_ROUNDS, idle};
use crate::compare::Figures;
use crate::rows::{Pairs, PeerRow, TimesOf, peer_rows, rounds_ahead};

type Row = (u64, u64);
/// The input of a collection of `D`.
pub type PeerInput<D, R = isize> = InputHandleVec<u64, PeerRow<D, R>>;

/// With its default arrangements.
pub fn run(case: &Case) -> Figures {
    let case = case.clone();
    timely::execute_directly(move |worker| {
        let probe = Handle::new();
        let (input, trace) = worker.dataflow::<u64, _, _>(|scope| {
            let (input, stream) = scope.new_input();
            let arranged = stream
                .as_collection()
                .arrange::<ValBatcher<u64, u64, u64, isize>, ValSpine<u64, u64, u64, isize>>(ValBatcher::new);
            arranged.stream.probe_with(&probe);
            (input, arranged.trace)
        });
        load(worker, &case, input, trace, &probe)
    })
}

/// With arrangements of sorted vectors.
pub fn run_vec(case: &Case) -> Figures {
    let case = case.clone();
    timely::execute_directly(move |worker| {
        let probe = Handle::new();
        let (input, trace) = worker.dataflow::<u64, _, _>(|scope| {
            let (input, stream) = scope.new_input();
            let arranged = stream
                .as_collection()
                .arrange::<ChunkBatcher<u64, u64, u64, isize>, ChunkSpine<u64, u64, u64, isize>>(ChunkBatcher::new);
            arranged.stream.probe_with(&probe);
            (input, arranged.trace)
        });
        load(worker, &case, input, trace, &probe)
    })
}

fn load<Tr: Trace + TraceReader<Time = u64> + 'static>(
    worker: &mut Worker,
    case: &Case,
    mut input: PeerInput<Row>,
    mut trace: TraceAgent<Tr>,
    probe: &Handle<u64>,
) -> Figures {
    let mut measured = Measured::start();
    let mut pairs = Pairs::new(u64::MAX, u64::MAX);
    let (mut time, mut left) = (0, case.rows);
    while left > 0 {
        let ahead: Vec<_> = (0..rounds_ahead(case.batch))
            .map_while(|_| {
                let rows = pairs.take_rows(case.batch.min(left));
                left -= rows.len();
                time += 1;
                (!rows.is_empty())
                    .then(|| (peer_rows(&rows, time - 1, TimesOf::Batch, |key, value| ((key, value), 1)), time))
            })
            .collect();
        for (mut rows, upper) in ahead {
            measured.round(|| {
                input.send_batch(&mut rows);
                drop(rows);
                settle(worker, &mut input, &mut trace, probe, upper);
            });
        }
    }
    let (loaded, peak) = (allocator::live_bytes(), allocator::peak_bytes());
    for _ in 0..SETTLING_ROUNDS {
        time += 1;
        input.send_batch(&mut peer_rows(&pairs.take_rows(1), time - 1, TimesOf::Batch, |key, value| ((key, value), 1)));
        settle(worker, &mut input, &mut trace, probe, time);
    }
    idle(|| _ = worker.step());
    measured.finish(case, loaded, peak)
}

/// Steps until all is complete before `upper`, and gives up the times before.
pub fn settle<D: Clone + 'static, R: Clone + 'static, Tr: TraceReader<Time = u64>>(
    worker: &mut Worker,
    input: &mut PeerInput<D, R>,
    trace: &mut Tr,
    probe: &Handle<u64>,
    upper: u64,
) {
    input.advance_to(upper);
    input.flush();
    worker.step_while(|| probe.less_than(&upper));
    let frontier = Antichain::from_elem(upper);
    trace.set_logical_compaction(frontier.borrow());
    trace.set_physical_compaction(frontier.borrow());
}
