//! The peer's imports: `TraceAgent::import`, and what is joined with or read from it.

use std::cell::Cell;
use std::rc::Rc;

use differential_dataflow::AsCollection;
use differential_dataflow::operators::arrange::TraceAgent;
use differential_dataflow::trace::implementations::ValSpine;
use timely::dataflow::operators::Input;
use timely::dataflow::operators::probe::{Handle, Probe};
use timely::worker::Worker;

use super::arrange::{PeerInput, settle};
use crate::allocator;
use crate::compare::Figures;
use crate::install::{Case, Install, SETTLING_ROUNDS, take_samples};
use crate::join::{LOAD_ROWS, changed_rows, loaded_rows};
use crate::rows::{Numbers, TimesOf, peer_rows};

type Row = (u64, u64);
type PeerTrace = TraceAgent<ValSpine<u64, u64, u64, isize>>;

/// Runs a case.
pub fn run(case: &Case) -> Figures {
    let case = case.clone();
    timely::execute_directly(move |worker| {
        let probe = Handle::new();
        let (mut input, mut trace): (PeerInput<Row>, PeerTrace) = worker.dataflow::<u64, _, _>(|scope| {
            let (input, rows) = scope.new_input();
            let arranged = rows.as_collection().arrange_by_key();
            arranged.stream.probe_with(&probe);
            (input, arranged.trace)
        });
        let mut time = 0;
        let mut load = |worker: &mut Worker, rows: &[Row], time: u64| {
            input.send_batch(&mut peer_rows(rows, time, TimesOf::Batch, |key, value| ((key, value), 1)));
            settle(worker, &mut input, &mut trace, &probe, time + 1);
        };
        for start in (0..case.rows).step_by(LOAD_ROWS) {
            load(worker, &loaded_rows(start, (start + LOAD_ROWS).min(case.rows)), time);
            time += 1;
        }
        let mut keys = Numbers::new(4, case.rows as u64);
        for _ in 0..SETTLING_ROUNDS {
            load(worker, &changed_rows(&mut keys, 1), time);
            time += 1;
        }
        let mut keys = Numbers::new(3, case.rows as u64);
        take_samples(|install| {
            let index = worker.next_dataflow_index();
            let before = allocator::live_bytes();
            let rows = installed(worker, install, &mut trace, &mut keys, time);
            let added = allocator::live_bytes() - before;
            worker.drop_dataflow(index);
            (rows, added)
        })
    })
}

/// Installs, and steps until all is out.
fn installed(worker: &mut Worker, install: Install, trace: &mut PeerTrace, keys: &mut Numbers, upper: u64) -> usize {
    let probe = Handle::new();
    let rows = Rc::new(Cell::new(0));
    let counter = Rc::clone(&rows);
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let imported = trace.import(scope);
        match install {
            Install::Import => {
                imported.stream.probe_with(&probe);
                None
            }
            Install::Join(_) => {
                let (input, changed): (PeerInput<Row>, _) = scope.new_input();
                changed
                    .as_collection()
                    .arrange_by_key()
                    .join_core(imported, |&key: &u64, &a: &u64, &b: &u64| Some((key, a, b)))
                    .inspect_batch(move |_, rows| counter.set(counter.get() + rows.len()))
                    .inner
                    .probe_with(&probe);
                Some(input)
            }
            Install::Scan => {
                imported
                    .as_collection(|&key: &u64, &value: &u64| (key, value))
                    .inspect_batch(move |_, rows| counter.set(counter.get() + rows.len()))
                    .inner
                    .probe_with(&probe);
                None
            }
        }
    });
    if let (Some(mut input), Install::Join(size)) = (input, install) {
        let changed = changed_rows(keys, size);
        input.send_batch(&mut peer_rows(&changed, 0, TimesOf::Batch, |key, value| ((key, value), 1)));
        input.advance_to(upper);
        input.flush();
        worker.step_while(|| probe.less_than(&upper));
    } else {
        worker.step_while(|| probe.less_than(&upper));
    }
    rows.get()
}
