//! Events of one integer column for the tests of this module, and a check that cuts, order, and the
//! mix of edges and intervals change nothing.

use anabranch_batch::{Batch, Diffs, Time, Times, Until};
use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use anabranch_batch::END;

use super::Hold;
use anabranch_flow::tactic::{Output, Timed};

/// (sync time, other time, value)
pub(crate) type Event = (Time, Time, i64);

pub(crate) fn types() -> [DataType; 1] {
    [DataType::Int64]
}

pub(crate) fn events(rows: &[Event]) -> Batch {
    let values: ArrayRef = Arc::new(Int64Array::from(rows.iter().map(|row| row.2).collect::<Vec<_>>()));
    let times = Times::Column(rows.iter().map(|row| row.0).collect());
    let until = Until::Column(rows.iter().map(|row| row.1).collect());
    Batch::new(vec![values], times, Diffs::Constant(1)).with_until(until)
}

pub(crate) fn rows(batch: &Batch) -> Vec<Event> {
    if batch.is_empty() {
        return Vec::new();
    }
    // (Rows without columns have the value 0.)
    let values = batch.columns().first().map(|column| column.as_primitive::<Int64Type>());
    (0..batch.len())
        .map(|row| {
            let time = batch.times().get(row);
            (time, batch.until().get(row, time), values.map_or(0, |values| values.value(row)))
        })
        .collect()
}

/// Start and end edges joined to intervals, in order.
pub(crate) fn intervals(events: &[Event]) -> Vec<Event> {
    let mut sorted = events.to_vec();
    sorted.sort_unstable();
    let mut open: BTreeMap<(Time, i64), u32> = BTreeMap::new();
    let mut closed = Vec::new();
    for (time, until, value) in sorted {
        if until == END {
            *open.entry((time, value)).or_default() += 1;
        } else if until > time {
            closed.push((time, until, value));
        } else if until < time {
            let count = open.get_mut(&(until, value)).unwrap_or_else(|| panic!("no start for end {time} of {until}"));
            assert!(*count > 0, "one start for each end {time} of {until}");
            *count -= 1;
            closed.push((until, time, value));
        }
    }
    for ((time, value), count) in open {
        closed.extend(std::iter::repeat_n((time, END, value), count as usize));
    }
    closed.sort_unstable();
    closed
}

/// Intervals with an end written as two edges.
pub(crate) fn as_edges(events: &[Event]) -> Vec<Event> {
    let edges = |&(time, until, value): &Event| match until > time && until < END {
        true => vec![(time, END, value), (until, time, value)],
        false => vec![(time, until, value)],
    };
    events.iter().flat_map(edges).collect()
}

/// What comes out when time stops at each of `stops`, each time after the events before it, in
/// reverse order of arrival if asked. Checks that output lies within the promised bounds.
pub(crate) fn run<T: Timed>(
    mut tactic: T,
    hold: Hold,
    inputs: &[&[Event]],
    stops: &[Time],
    reverse: bool,
) -> Vec<Event> {
    let mut result = Vec::new();
    let mut promised = Time::MIN;
    let mut from = Time::MIN;
    for &stop in stops {
        for (index, input) in inputs.iter().enumerate() {
            let mut part: Vec<Event> = input.iter().copied().filter(|event| (from..stop).contains(&event.0)).collect();
            if reverse {
                part.reverse();
            }
            part.chunks(3).for_each(|chunk| tactic.push(index, events(chunk)));
        }
        let mut out = Output::default();
        tactic.advance(stop, &mut out);
        assert!(out.errors.is_empty());
        for event in out.rows.iter().flat_map(rows) {
            assert!(event.0 >= promised, "{event:?} came after {promised} was promised");
            result.push(event);
        }
        promised = hold.apply(stop);
        from = stop;
    }
    result
}

/// What a function of batches puts out.
pub(crate) fn applied(apply: impl Fn(Batch, &mut Output), input: Batch) -> Vec<Event> {
    let mut out = Output::default();
    apply(input, &mut out);
    out.rows.iter().flat_map(rows).collect()
}

/// Checks that `expected` come of `input`, however it is cut, ordered between frontiers, and
/// written.
pub(crate) fn check<T: Timed>(make: impl Fn() -> T, input: &[Event], expected: &[Event]) {
    check_inputs(Hold::Same, make, &[input], expected);
}

/// As [`check`], for a verb that reaches back.
pub(crate) fn check_held<T: Timed>(hold: Hold, make: impl Fn() -> T, input: &[Event], expected: &[Event]) {
    check_inputs(hold, make, &[input], expected);
}

/// As [`check_held`], for several inputs.
pub(crate) fn check_inputs<T: Timed>(hold: Hold, make: impl Fn() -> T, inputs: &[&[Event]], expected: &[Event]) {
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    let edges: Vec<Vec<Event>> = inputs.iter().map(|input| as_edges(input)).collect();
    let edges: Vec<&[Event]> = edges.iter().map(|input| input.as_slice()).collect();
    let every: Vec<Time> = (-20..200).chain([END]).collect();
    for inputs in [inputs, &edges] {
        for stops in [&[END][..], &[5, END], &[3, 9, 17, 60, END], &every] {
            for reverse in [false, true] {
                let result = intervals(&run(make(), hold, inputs, stops, reverse));
                assert_eq!(result, expected, "stops {stops:?} reverse {reverse} input {inputs:?}");
            }
        }
    }
}
