//! Comparison of outputs: nothing missing, nothing extra, nothing twice, nothing late.
//!
//! Compared as multisets without the time of delivery: tolls by (vehicle, time), accidents by
//! (time, vehicle), balances and expenditures by query. A mean speed may be one off where the exact
//! value is whole; a balance is right if it was current in the minute before the query.

use std::collections::BTreeMap;
use std::fmt;

use crate::answer::TollAnswer;
use crate::reference::{Expected, Tolerance};

/// Differences that are kept to be shown, of each kind.
const SHOWN_MAX: usize = 5;

/// What identifies an answer: its type and the row it answers.
type Key = (u8, u32, u32);

fn key(answer: &TollAnswer) -> Key {
    match *answer {
        TollAnswer::Toll { vid, time, .. } => (0, time, vid),
        TollAnswer::Accident { time, vid, .. } => (1, time, vid),
        TollAnswer::Balance { query, .. } => (2, query, 0),
        TollAnswer::Expenditure { query, .. } => (3, query, 0),
    }
}

/// The outcome for one type of answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Answers that had to be given.
    pub expected: u64,
    /// Those given as they are.
    pub equal: u64,
    /// Those given in another way that is right too.
    pub tolerated: u64,
    /// Given, but wrong.
    pub wrong: u64,
    /// Not given.
    pub missing: u64,
    /// Given without cause.
    pub extra: u64,
    /// Given again.
    pub twice: u64,
    /// Delivered after the limit.
    pub late: u64,
    /// Some of the differences.
    pub shown: Vec<String>,
}

impl Tally {
    /// Whether all answers are right and in time.
    pub fn is_right(&self) -> bool {
        [self.wrong, self.missing, self.extra, self.twice, self.late].iter().all(|count| *count == 0)
    }

    fn show(&mut self, what: impl FnOnce() -> String) {
        if self.shown.len() < SHOWN_MAX {
            self.shown.push(what());
        }
    }
}

/// The outcome of a comparison: tolls, accidents, balances, expenditures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// In order of the types of outputs.
    pub tallies: [Tally; 4],
}

impl Verdict {
    /// Whether all answers are right and in time.
    pub fn is_right(&self) -> bool {
        self.tallies.iter().all(Tally::is_right)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<13} {:>10} {:>10} {:>9} {:>7} {:>7} {:>7} {:>7} {:>7}",
            "answers", "expected", "equal", "tolerated", "wrong", "missing", "extra", "twice", "late"
        )?;
        for (name, tally) in ["tolls", "accidents", "balances", "expenditures"].iter().zip(&self.tallies) {
            let Tally { expected, equal, tolerated, wrong, missing, extra, twice, late, .. } = tally;
            writeln!(
                f,
                "{name:<13} {expected:>10} {equal:>10} {tolerated:>9} {wrong:>7} {missing:>7} {extra:>7} {twice:>7} {late:>7}"
            )?;
        }
        self.tallies.iter().flat_map(|tally| &tally.shown).try_for_each(|line| writeln!(f, "  {line}"))?;
        write!(f, "{}", if self.is_right() { "all right" } else { "not right" })
    }
}

/// Compares answers, each with its time of delivery if that is to count, with what is expected.
pub fn compare(expected: &[Expected], given: impl IntoIterator<Item = (TollAnswer, Option<f64>)>) -> Verdict {
    let mut verdict = Verdict::default();
    let mut open: BTreeMap<Key, (&Expected, u32)> = BTreeMap::new();
    for expected in expected {
        open.insert(key(&expected.answer), (expected, 0));
    }
    for (answer, emit) in given {
        let tally = &mut verdict.tallies[usize::from(key(&answer).0)];
        if emit.is_some_and(|emit| emit - f64::from(answer.time()) > f64::from(answer.limit_seconds())) {
            tally.late += 1;
            tally.show(|| format!("late: {answer:?}, delivered at {:.3}", emit.unwrap_or_default()));
        }
        let Some((expected, n_given)) = open.get_mut(&key(&answer)) else {
            tally.extra += 1;
            tally.show(|| format!("extra: {answer:?}"));
            continue;
        };
        *n_given += 1;
        if *n_given > 1 {
            tally.twice += 1;
            tally.show(|| format!("twice: {answer:?}"));
        } else if is_equal(&expected.answer, &answer) {
            tally.equal += 1;
        } else if is_tolerated(expected, &answer) {
            tally.tolerated += 1;
        } else {
            tally.wrong += 1;
            tally.show(|| format!("wrong: {answer:?}, expected {:?}", expected.answer));
        }
    }
    for (key, (expected, n_given)) in open {
        let tally = &mut verdict.tallies[usize::from(key.0)];
        let may_be_missing =
            expected.tolerance == Tolerance::Accident && matches!(expected.answer, TollAnswer::Accident { .. });
        if may_be_missing && n_given == 0 {
            continue;
        }
        tally.expected += 1;
        if n_given == 0 {
            tally.missing += 1;
            tally.show(|| format!("missing: {:?}", expected.answer));
        }
    }
    verdict
}

/// Compares the answers of two systems without a judge of what is right: `left` counts as expected.
pub fn compare_two(left: &[TollAnswer], right: impl IntoIterator<Item = (TollAnswer, Option<f64>)>) -> Verdict {
    let expected: Vec<Expected> =
        left.iter().map(|answer| Expected { answer: *answer, tolerance: Tolerance::Exact }).collect();
    compare(&expected, right)
}

/// Whether two answers say the same. (The official form of an accident does not say which
/// expressway.)
fn is_equal(expected: &TollAnswer, given: &TollAnswer) -> bool {
    match (expected, given) {
        (TollAnswer::Accident { segment: ours, .. }, TollAnswer::Accident { segment: theirs, .. }) => ours == theirs,
        (TollAnswer::Expenditure { balance: ours, .. }, TollAnswer::Expenditure { balance: theirs, .. }) => {
            ours == theirs
        }
        _ => expected == given,
    }
}

fn is_tolerated(expected: &Expected, given: &TollAnswer) -> bool {
    match (&expected.tolerance, &expected.answer, given) {
        (Tolerance::Exact, ..) => false,
        (Tolerance::Accident, ..) => true,
        (
            Tolerance::Speed,
            TollAnswer::Toll { speed: ours, toll: our_toll, .. },
            TollAnswer::Toll { speed: theirs, toll: their_toll, .. },
        ) => (ours - theirs).abs() <= 1 && our_toll == their_toll,
        (Tolerance::Current { pairs, none }, _, TollAnswer::Balance { result_time, balance, .. }) => {
            let is_none = |(from, to): &(u32, u32)| *balance == 0 && (*from..=*to).contains(result_time);
            pairs.contains(&(*result_time, *balance)) || none.as_ref().is_some_and(is_none)
        }
        _ => false,
    }
}
