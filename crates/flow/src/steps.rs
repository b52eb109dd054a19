//! How long operators run without a pause.
//!
//! Law: every scheduling of an operator is one step, and counted once, under the operator's kind.
//! While a step runs, nothing else of its worker does: no other query, no answer. So the longest
//! step is the longest that a task waits for the work of others.
//!
//! Cost: a reading of the clock a step, some 25 nanoseconds: within a *round*, in which the runtime
//! goes through operators without a pause, a step begins where the one before it ended, and what
//! the runtime does between the two is counted with it. Outside of rounds a step takes two. Laps
//! within a step are CPU time ([`cpu_clock`](crate::cpu_clock)), steps themselves wall time. Counts
//! are kept per worker, in powers of two of a microsecond; what an operator has counted stays when
//! it goes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::cpu_clock::CpuClock;

/// Classes of lengths: class `n` holds steps shorter than 2^n microseconds, and not shorter than
/// half of that.
const CLASSES: usize = 32;

/// The steps of one kind of operator on a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepStats {
    /// The kind of operator: `join`, `arrange` ..
    pub operator: &'static str,
    /// How many steps there were.
    pub count: u64,
    /// How long they took together.
    pub total: Duration,
    /// The longest.
    pub max: Duration,
    /// How many steps there were of each class of lengths.
    classes: [u64; CLASSES],
}

/// The steps of a worker. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct StepClock(Rc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// By the kind of operator.
    steps: RefCell<BTreeMap<&'static str, Rc<RefCell<StepStats>>>>,
    round: Cell<Round>,
    /// Where the operators of the present step are counted from: its start, or the end of the last
    /// one that was counted.
    lap: Cell<Option<Instant>>,
    cpu: CpuClock,
}

/// Where a worker is.
#[derive(Clone, Copy, Debug, Default)]
enum Round {
    #[default]
    Outside,
    /// No step of the round has ended yet.
    Begun,
    /// The last step ended at this time, and the worker has not paused since.
    Under(Instant),
}

impl StepClock {
    /// A meter for an operator of this kind.
    pub fn meter(&self, operator: &'static str) -> Meter {
        let mut steps = self.0.steps.borrow_mut();
        let stats = steps.entry(operator).or_insert_with(|| Rc::new(RefCell::new(StepStats::new(operator))));
        Meter { stats: Rc::clone(stats), clock: self.clone() }
    }

    /// The steps so far, in order of the operators' kinds.
    pub fn stats(&self) -> Vec<StepStats> {
        self.0.steps.borrow().values().map(|stats| stats.borrow().clone()).collect()
    }

    /// Counts anew.
    pub fn reset(&self) {
        for stats in self.0.steps.borrow().values() {
            let mut stats = stats.borrow_mut();
            *stats = StepStats::new(stats.operator);
        }
    }

    /// The CPU time since the step began, or since the last lap.
    pub(crate) fn lap(&self) -> Duration {
        let now = Instant::now();
        let since = self.0.lap.replace(Some(now));
        since.map_or(Duration::ZERO, |since| self.0.cpu.spent(now, now.duration_since(since)))
    }

    /// From now on steps follow each other, until [`end_round`](StepClock::end_round). (The worker
    /// may pause before the first.)
    pub(crate) fn begin_round(&self) {
        self.0.round.set(Round::Begun);
    }

    /// The worker may pause from now on.
    pub(crate) fn end_round(&self) {
        self.0.round.set(Round::Outside);
    }
}

/// Counts the steps of one operator.
#[derive(Debug)]
pub struct Meter {
    stats: Rc<RefCell<StepStats>>,
    clock: StepClock,
}

/// A step that is being made; it ends when this is dropped.
#[derive(Debug)]
pub struct MeteredStep<'a> {
    meter: &'a Meter,
    start: Instant,
}

impl Meter {
    /// Starts a step.
    pub fn step(&self) -> MeteredStep<'_> {
        let start = match self.clock.0.round.get() {
            Round::Under(last) => last,
            Round::Outside | Round::Begun => Instant::now(),
        };
        self.clock.0.cpu.begin(start);
        self.clock.0.lap.set(Some(start));
        MeteredStep { meter: self, start }
    }
}

impl MeteredStep<'_> {
    /// When it began; within a round, what was done since the last step ended is counted with it.
    pub fn start(&self) -> Instant {
        self.start
    }
}

impl Drop for MeteredStep<'_> {
    fn drop(&mut self) {
        let end = Instant::now();
        let Meter { stats, clock } = self.meter;
        stats.borrow_mut().add(end.duration_since(self.start));
        if !matches!(clock.0.round.get(), Round::Outside) {
            clock.0.round.set(Round::Under(end));
        }
    }
}

impl StepStats {
    fn new(operator: &'static str) -> StepStats {
        StepStats { operator, count: 0, total: Duration::ZERO, max: Duration::ZERO, classes: [0; CLASSES] }
    }

    fn add(&mut self, length: Duration) {
        self.count += 1;
        self.total += length;
        self.max = self.max.max(length);
        self.classes[class_of(length)] += 1;
    }

    /// Adds another worker's steps of the same kind.
    ///
    /// # Panics
    /// If they are of another kind.
    pub fn merge(&mut self, other: &StepStats) {
        assert_eq!(self.operator, other.operator, "steps of one kind are added");
        self.count += other.count;
        self.total += other.total;
        self.max = self.max.max(other.max);
        self.classes.iter_mut().zip(&other.classes).for_each(|(mine, other)| *mine += other);
    }

    /// A length that the given share of the steps does not exceed: the end of its class, or the
    /// longest step.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = (self.count as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (class, count) in self.classes.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_micros(1 << class).min(self.max);
            }
        }
        self.max
    }
}

fn class_of(length: Duration) -> usize {
    let micros = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
    ((u64::BITS - micros.leading_zeros()) as usize).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_a_round_follow_each_other_and_pauses_between_rounds_are_not_counted() {
        let pause = || std::thread::sleep(Duration::from_millis(100));
        let length = |meter: &Meter| std::mem::replace(&mut *meter.stats.borrow_mut(), StepStats::new("t")).total;
        let clock = StepClock::default();
        let meter = clock.meter("test of rounds");
        for is_round in [false, true] {
            if is_round {
                clock.begin_round();
            }
            pause();
            drop(meter.step());
            assert!(length(&meter) < Duration::from_millis(100), "the first step begins when it begins");
            pause();
            drop(meter.step());
            assert_eq!(length(&meter) >= Duration::from_millis(100), is_round);
            clock.end_round();
            pause();
            drop(meter.step());
            assert!(length(&meter) < Duration::from_millis(100));
        }
    }

    #[test]
    fn lengths_are_counted_by_powers_of_two() {
        let mut stats = StepStats::new("join");
        for micros in [0, 1, 3, 900] {
            stats.add(Duration::from_micros(micros));
        }
        assert_eq!((stats.count, stats.max), (4, Duration::from_micros(900)));
        assert_eq!(stats.quantile(0.25), Duration::from_micros(1));
        assert_eq!(stats.quantile(0.75), Duration::from_micros(4));
        assert_eq!(stats.quantile(1.0), Duration::from_micros(900));
    }
}
