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

use crate::tactic::{Output, Timed};

/// Rows that a turn of an operator takes on, after which others have theirs: some tens of
/// milliseconds.
pub const TURN_ROWS: usize = 1 << 18;

/// Times that stops are chosen by.
const SAMPLE_ROWS: usize = 1 << 14;

/// Batches of fewer rows are remembered by their least time.
const PART_ROWS_MIN: usize = 256;

/// See the module.
pub struct Paced {
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
    /// The tactic, of which nothing is out.
    pub fn new(tactic: Box<dyn Timed>) -> Paced {
        let (parts, stops) = (Vec::new(), VecDeque::new());
        Paced { tactic, done: Time::MIN, under_way: None, parts, latest: Time::MIN, n_fresh: 0, stops }
    }

    /// Bytes that the tactic remembers, roughly.
    pub fn size_bytes(&self) -> usize {
        self.tactic.size_bytes()
    }

    /// All before this time is put out.
    pub fn done(&self) -> Time {
        self.done
    }

    /// Takes a batch of an input. Its times are at or after `done`.
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

    /// Whether the frontier has moved to `upto`, and nothing before `upto` waits.
    pub fn is_idle_before(&self, upto: Time) -> bool {
        let nothing_waits = self.tactic.pending_from().is_none_or(|pending| pending >= upto);
        upto > self.done && self.under_way.is_none() && nothing_waits
    }

    /// Uses spare time; no answer depends on that.
    pub fn idle(&mut self) {
        self.tactic.idle();
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
