//! The peer's join: `join_core` of two default arrangements.

use std::cell::Cell;
use std::rc::Rc;

use differential_dataflow::AsCollection;
use timely::dataflow::operators::Input;
use timely::dataflow::operators::probe::{Handle, Probe};

use super::arrange::PeerInput;
use crate::compare::Figures;
use crate::join::{Case, LOAD_ROWS, changed_rows, loaded_rows, measure_rounds};
use crate::measure;
use crate::rows::{Numbers, TimesOf, peer_rows};

/// Keys and values that come in.
type Pairs = PeerInput<(u64, u64)>;

/// Runs a case.
pub fn run(case: &Case) -> Figures {
    let case = case.clone();
    timely::execute_directly(move |worker| {
        let probe = Handle::new();
        let pairs = Rc::new(Cell::new(0));
        let counter = Rc::clone(&pairs);
        let (mut left, mut right): (Pairs, Pairs) = worker.dataflow::<u64, _, _>(|scope| {
            let (left, changed) = scope.new_input();
            let (right, loaded) = scope.new_input();
            let loaded = loaded.as_collection().arrange_by_key();
            changed
                .as_collection()
                .arrange_by_key()
                .join_core(loaded, |&key: &u64, &a: &u64, &b: &u64| Some((key, a, b)))
                .inspect_batch(move |_, rows| counter.set(counter.get() + rows.len()))
                .inner
                .probe_with(&probe);
            (left, right)
        });
        let mut time = 0;
        for start in (0..case.keys).step_by(LOAD_ROWS) {
            let rows = loaded_rows(start, (start + LOAD_ROWS).min(case.keys));
            right.send_batch(&mut peer_rows(&rows, time, TimesOf::Batch, |key, value| ((key, value), 1)));
            time += 1;
            advance(&mut left, time);
            advance(&mut right, time);
            worker.step_while(|| probe.less_than(&time));
        }
        let mut figures = Figures::new();
        let (mut keys, mut expected) = (Numbers::new(3, case.keys as u64), 0);
        for &size in &case.batch {
            measure_rounds(size, &mut figures, || {
                let rows = changed_rows(&mut keys, size);
                let mut rows = peer_rows(&rows, time, TimesOf::Batch, |key, value| ((key, value), 1));
                expected += size;
                let start = measure::thread_seconds();
                left.send_batch(&mut rows);
                drop(rows);
                time += 1;
                advance(&mut left, time);
                advance(&mut right, time);
                worker.step_while(|| probe.less_than(&time));
                (measure::thread_seconds() - start) * 1e6
            });
        }
        assert_eq!(pairs.get(), expected, "each changed row meets one row");
        figures
    })
}

fn advance(input: &mut PeerInput<(u64, u64)>, time: u64) {
    input.advance_to(time);
    input.flush();
}
