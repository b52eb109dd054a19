//! How long operators run without a pause.
//!
//! Law: every scheduling of an operator is one step, and counted once, under the operator's kind. While a step runs, nothing else of its
//! worker does: no other query, no answer. So the longest step is the longest that anyone waits for somebody else's work.
//!
//! Cost: two readings of the clock a step, some 50 nanoseconds. Counts are kept per thread, in powers of two of a microsecond; what an operator
//! has counted stays when it goes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Classes of lengths: class `n` holds steps shorter than 2^n microseconds, and not shorter than half of that.
const CLASSES: usize = 32;

/// The steps of one kind of operator on this thread.
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

thread_local! {
    static STEPS: RefCell<BTreeMap<&'static str, Rc<RefCell<StepStats>>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Counts the steps of one operator.
#[derive(Debug)]
pub struct Meter(Rc<RefCell<StepStats>>);

/// A step that is being made; it ends when this is dropped.
#[derive(Debug)]
pub struct Step<'a> {
    meter: &'a Meter,
    start: Instant,
}

impl Meter {
    /// A meter for an operator of this kind.
    pub fn new(operator: &'static str) -> Meter {
        STEPS.with(|steps| {
            let mut steps = steps.borrow_mut();
            let stats = steps.entry(operator).or_insert_with(|| Rc::new(RefCell::new(StepStats::new(operator))));
            Meter(Rc::clone(stats))
        })
    }

    /// Starts a step.
    pub fn step(&self) -> Step<'_> {
        Step { meter: self, start: Instant::now() }
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.meter.0.borrow_mut().add(self.start.elapsed());
    }
}

/// The steps so far on this thread, in order of the operators' kinds.
pub fn step_stats() -> Vec<StepStats> {
    STEPS.with(|steps| steps.borrow().values().map(|stats| stats.borrow().clone()).collect())
}

/// Counts anew on this thread.
pub fn reset_steps() {
    STEPS.with(|steps| {
        for stats in steps.borrow().values() {
            let mut stats = stats.borrow_mut();
            *stats = StepStats::new(stats.operator);
        }
    });
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

    /// Adds another thread's steps of the same kind.
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

    /// A length that the given share of the steps does not exceed: the end of its class, or the longest step.
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
