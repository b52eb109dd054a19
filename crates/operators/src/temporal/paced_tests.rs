//! Verbs advanced in turns: [`Paced`] on tactics of events.

use anabranch_batch::{END, Time};
use anabranch_flow::paced::{Paced, TURN_ROWS};
use anabranch_flow::tactic::{Output, Timed};

use super::chop::Chop;
use super::session::Session;
use super::testing::*;

/// Points, three at every twentieth tick, the last first.
fn points(n: i64) -> Vec<Event> {
    let mut points: Vec<Event> = (0..n).map(|row| (row / 3 * 20, row / 3 * 20 + 1, row % 7)).collect();
    points.reverse();
    points
}

/// What comes out of rows in batches of several sizes by turns up to each of `stops`, and how
/// many rows each turn put out.
fn in_turns(tactic: Box<dyn Timed>, rows_in: &[Event], stops: &[Time]) -> (Vec<Event>, Vec<usize>) {
    let mut paced = Paced::new(tactic);
    let mut sizes = [1, 5, 300, 40_000].into_iter().cycle();
    let mut rest = rows_in;
    while !rest.is_empty() {
        let (batch, others) = rest.split_at(sizes.next().unwrap_or(1).min(rest.len()));
        paced.push(0, events(batch));
        rest = others;
    }
    let (mut all, mut turns) = (Vec::new(), Vec::new());
    for &stop in stops {
        loop {
            let (mut out, promised) = (Output::default(), paced.done());
            let is_all = paced.turn(stop, &mut out);
            let part: Vec<Event> = out.rows.iter().flat_map(rows).collect();
            assert!(part.iter().all(|event| event.0 >= promised), "something comes out after it was promised away");
            turns.push(part.len());
            all.extend(part);
            if is_all {
                break;
            }
        }
        assert_eq!(paced.done(), stop);
    }
    (intervals(&all), turns)
}

#[test]
fn many_rows_take_several_turns() {
    let rows = points(3 * TURN_ROWS as i64 + 1000);
    let session = || Box::new(Session::new(vec![], &[], 10, None));
    let (by_turns, turns) = in_turns(session(), &rows, &[END]);
    assert!(turns.len() >= 3, "{turns:?}");
    assert!(turns.iter().all(|turn| *turn < TURN_ROWS + TURN_ROWS / 4), "{turns:?}");
    let mut at_once = Output::default();
    let mut tactic = session();
    tactic.push(0, events(&rows));
    tactic.advance(END, &mut at_once);
    let at_once: Vec<Event> = at_once.rows.iter().flat_map(super::testing::rows).collect();
    assert_eq!(by_turns, intervals(&at_once));
}

#[test]
fn few_rows_take_a_turn_for_each_frontier() {
    let rows = points(5000);
    let (_, turns) = in_turns(Box::new(Session::new(vec![], &[], 10, None)), &rows, &[10_000, 20_000, END]);
    assert_eq!(turns.len(), 3);
}

#[test]
fn a_frontier_before_the_next_stop_is_reached() {
    let rows = points(3 * TURN_ROWS as i64);
    let stops: Vec<Time> = (0..40).map(|part| part * TURN_ROWS as i64 / 2).chain([END]).collect();
    let (_, turns) = in_turns(Box::new(Session::new(vec![], &[], 10, None)), &rows, &stops);
    assert!(turns.iter().all(|turn| *turn < TURN_ROWS), "{turns:?}");
}

#[test]
fn rows_of_one_time_are_taken_on_together() {
    let rows: Vec<Event> = (0..2 * TURN_ROWS as i64).map(|row| (7, 8, row % 5)).collect();
    let (_, turns) = in_turns(Box::new(Session::new(vec![], &[], 10, None)), &rows, &[END]);
    assert_eq!(turns.iter().filter(|turn| **turn > 0).count(), 1, "{turns:?}");
}

/// One row in may be many rows out.
#[test]
fn long_events_are_cut_in_several_turns() {
    let n_pieces = 3 * TURN_ROWS as i64;
    let (by_turns, turns) = in_turns(Box::new(Chop::new(1, 0, &types())), &[(0, n_pieces, 1)], &[END]);
    assert!(turns.len() >= 3 && turns.iter().all(|turn| *turn <= TURN_ROWS), "{turns:?}");
    let expected: Vec<Event> = (0..n_pieces).map(|start| (start, start + 1, 1)).collect();
    assert_eq!(by_turns, expected);
}
