//! The peer's aggregates, each as an expert would write it: counts and sums as diffs of the key
//! alone (`count_total`), distinct by `threshold_total`, min and the least ten by `reduce` over
//! values that come in order, which look no further than they must.

use std::cell::Cell;
use std::rc::Rc;

use differential_dataflow::collection::VecCollection;
use differential_dataflow::difference::Semigroup;
use differential_dataflow::operators::{CountTotal, ThresholdTotal};
use differential_dataflow::{AsCollection, Data};
use timely::dataflow::operators::Input;
use timely::dataflow::operators::probe::{Handle, Probe};

use super::arrange::PeerInput;
use crate::compare::Figures;
use crate::reduce::{Case, Verb, feed, named};
use crate::rows::peer_rows;

/// Runs a case.
pub fn run(case: &Case) -> Figures {
    match case.verb {
        Verb::Count => run_with(case, |key, _| (key, 1isize), |rows, out| out.count(rows.count_total())),
        Verb::Sum => {
            // (Sums of 64-bit numbers need more than 64 bits; the count keeps groups whose sum is
            // zero.)
            run_with(case, |key, value| (key, (i128::from(value), 1isize)), |rows, out| out.count(rows.count_total()))
        }
        Verb::Distinct => {
            run_with(case, |key, _| (key, 1isize), |rows, out| out.count(rows.threshold_total(|_, _| 1isize)))
        }
        Verb::Min => run_with(
            case,
            |key, value| ((key, value), 1isize),
            |rows, out| out.count(rows.reduce(|_, values, least| least.push((*values[0].0, 1isize)))),
        ),
        Verb::Top10 => run_with(
            case,
            |key, value| ((key, value), 1isize),
            |rows, out| out.count(rows.reduce(|_, values, least| first_ten(values, least))),
        ),
    }
}

fn first_ten(values: &[(&u64, isize)], least: &mut Vec<(u64, isize)>) {
    let mut left = 10;
    for &(value, count) in values {
        let taken = count.min(left);
        least.push((*value, taken));
        left -= taken;
        if left == 0 {
            return;
        }
    }
}

/// Where results go.
struct Out {
    probe: Handle<u64>,
    rows: Rc<Cell<usize>>,
}

impl Out {
    fn count<D: Data>(&self, results: VecCollection<'_, u64, D, isize>) {
        let rows = Rc::clone(&self.rows);
        results.inspect_batch(move |_, batch| rows.set(rows.get() + batch.len())).inner.probe_with(&self.probe);
    }
}

fn run_with<D: Data, R: Semigroup + 'static>(
    case: &Case,
    update: impl Fn(u64, u64) -> (D, R) + Send + Sync + Copy + 'static,
    build: impl for<'s> FnOnce(VecCollection<'s, u64, D, R>, &Out) + Send + Sync + 'static,
) -> Figures {
    let case = case.clone();
    timely::execute_directly(move |worker| {
        let out = Out { probe: Handle::new(), rows: Rc::default() };
        let mut input: PeerInput<D, R> = worker.dataflow::<u64, _, _>(|scope| {
            let (input, rows) = scope.new_input();
            build(rows.as_collection(), &out);
            input
        });
        let mut figures = feed(
            &case,
            |rows, start| peer_rows(rows, start, case.times, update),
            |mut rows, upper| {
                input.send_batch(&mut rows);
                drop(rows);
                input.advance_to(upper);
                input.flush();
                worker.step_while(|| out.probe.less_than(&upper));
            },
        );
        figures.insert("rows out".to_owned(), out.rows.get() as f64);
        named(&case, figures)
    })
}
