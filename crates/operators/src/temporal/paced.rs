//! A tactic that is advanced in turns, so that the other operators of its worker have theirs in
//! between.
//!
//! Law: what comes out in several turns is what would come out in one, and the frontier follows
//! what is out. A turn takes on the rows before a *stop*, some [`TURN_ROWS`], or the part of them
//! after which the tactic [has more](Timed::has_more). Rows of one time are taken on together,
//! since they are complete together.
//!
//! Where nothing like that many rows wait, the one stop is the frontier itself. Cost: a few words
//! for each batch that waits; when many rows have come, a sample of their times is sorted.

use std::collections::VecDeque;

use anabranch_batch::{Batch, Time, Times};

use crate::portions::TURN_ROWS;
use crate::tactic::{Output, Timed};

/// Times that stops are chosen by.
const SAMPLE_ROWS: usize = 1 << 14;

/// Batches of fewer rows are remembered by their least time.
const PART_ROWS_MIN: usize = 256;

/// See the module's page.
pub(super) struct Paced {
    tactic: Box<dyn Timed>,
    /// All before this time is put out.
    done: Time,
    /// Up to where the tactic is putting out, while that takes several turns.
    under_way: Option<Time>,
    /// Times of the rows that wait, and how many rows they are of; some may be out already.
    parts: Vec<(Times, usize)>,
    /// The greatest time among `parts`.
    latest: Time,
    /// Rows that have come since stops were chosen.
    n_fresh: usize,
    /// Times at which turns end, ascending, all after `done`.
    stops: VecDeque<Time>,
}

impl Paced {
    pub fn new(tactic: Box<dyn Timed>) -> Paced {
        let (parts, stops) = (Vec::new(), VecDeque::new());
        Paced { tactic, done: Time::MIN, under_way: None, parts, latest: Time::MIN, n_fresh: 0, stops }
    }

    /// All before this time is put out.
    pub fn done(&self) -> Time {
        self.done
    }

    pub fn push(&mut self, input: usize, batch: Batch) {
        self.note(&batch);
        self.tactic.push(input, batch);
    }

    /// Takes on what a turn allows of the rows before `upto`. Returns whether that was all.
    pub fn turn(&mut self, upto: Time, out: &mut Output) -> bool {
        let aim = match self.under_way {
            Some(aim) => aim,
            None if upto <= self.done => return true,
            None => self.stop(upto),
        };
        self.tactic.advance(aim, out);
        if self.tactic.has_more() {
            self.under_way = Some(aim);
            return false;
        }
        self.under_way = None;
        self.done = aim;
        if self.latest < aim {
            self.forget();
        }
        aim >= upto
    }

    fn note(&mut self, batch: &Batch) {
        let (first, last) = batch.times().range();
        self.latest = self.latest.max(last);
        self.n_fresh += batch.len();
        let times = if batch.len() < PART_ROWS_MIN { Times::Constant(first) } else { batch.times().clone() };
        match (self.parts.last_mut(), &times) {
            (Some((Times::Constant(last), n_rows)), Times::Constant(time)) if last == time => *n_rows += batch.len(),
            _ => self.parts.push((times, batch.len())),
        }
    }

    /// Nothing waits any more.
    fn forget(&mut self) {
        (self.latest, self.n_fresh) = (Time::MIN, 0);
        self.parts.clear();
        self.stops.clear();
    }

    /// Where the turn ends that begins at `done`.
    fn stop(&mut self, upto: Time) -> Time {
        if self.n_fresh > TURN_ROWS.max(self.parts.len()) {
            self.choose_stops();
        }
        while self.stops.front().is_some_and(|stop| *stop <= self.done) {
            self.stops.pop_front();
        }
        self.stops.front().map_or(upto, |stop| upto.min(*stop))
    }

    fn choose_stops(&mut self) {
        let done = self.done;
        self.parts.retain(|(times, _)| times.max() >= done);
        let n_rows: usize = self.parts.iter().map(|(_, n_rows)| n_rows).sum();
        let stride = n_rows.div_ceil(SAMPLE_ROWS).max(1);
        let mut sample: Vec<Time> = Vec::with_capacity(n_rows / stride + 1);
        let mut next = 0;
        for (times, n_rows) in &self.parts {
            while next < *n_rows {
                sample.push(times.get(next));
                next += stride;
            }
            next -= n_rows;
        }
        sample.sort_unstable();
        // (A stop at the first time of a turn would leave that turn without rows.)
        let ends = sample.chunks((TURN_ROWS / stride).max(1)).map(|turn| turn[0]).skip(1);
        let first = sample.first().copied().unwrap_or(done);
        self.stops = ends.filter(|stop| *stop > first).collect();
        self.n_fresh = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::temporal::chop::Chop;
    use crate::temporal::session::Session;

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
        let at_once: Vec<Event> = at_once.rows.iter().flat_map(super::super::testing::rows).collect();
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
}
