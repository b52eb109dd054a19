//! Comparison of outputs: nothing missing, nothing extra, nothing twice, nothing late.
//!
//! Compared as multisets without the time of delivery: tolls by (vehicle, time), accidents by
//! (time, vehicle), balances and expenditures by query. A mean speed may be one off where the exact
//! value is whole; a balance is right if it was current in the minute before the query.
//!
//! [`compare`] knows the rows, and so what is right. [`compare_two`] holds two systems against each
//! other without the rows: what it finds wrong is wrong in one of them; what it tolerates may still
//! be wrong in one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
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

    /// Counts an answer to a row of second `time` that was delivered too late.
    fn note_late(&mut self, answer: &TollAnswer, time: u32, emit: Option<f64>) {
        if let Some(emit) = emit.filter(|emit| emit - f64::from(time) > f64::from(answer.limit_seconds())) {
            self.late += 1;
            self.show(|| format!("late: {answer:?}, delivered at {emit:.3}"));
        }
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
        let Some((expected, n_given)) = open.get_mut(&key(&answer)) else {
            tally.note_late(&answer, answer.time(), emit);
            tally.extra += 1;
            tally.show(|| format!("extra: {answer:?}"));
            continue;
        };
        // (An answer may name a time that is not its row's.)
        tally.note_late(&answer, expected.answer.time(), emit);
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

/// Compares the answers of two systems, each with its time of delivery if that is to count, without
/// a judge of what is right: `left` counts as expected.
///
/// Tolerated are mean speeds one mile an hour apart beside the same toll, and balances that one
/// account may have had within the minute before the query. Accidents are exact: only the rows tell
/// which of their minutes depend on the order within a second.
pub fn compare_two(
    left: &[(TollAnswer, Option<f64>)],
    right: impl IntoIterator<Item = (TollAnswer, Option<f64>)>,
) -> Verdict {
    let mut expected = BTreeMap::new();
    let mut before = Verdict::default();
    for (answer, emit) in left {
        let tally = &mut before.tallies[usize::from(key(answer).0)];
        tally.note_late(answer, answer.time(), *emit);
        match expected.entry(key(answer)) {
            Entry::Vacant(place) => {
                place.insert(Expected { answer: *answer, tolerance: Tolerance::Unseen });
            }
            Entry::Occupied(_) => {
                tally.twice += 1;
                tally.show(|| format!("twice among the expected: {answer:?}"));
            }
        }
    }
    let expected: Vec<Expected> = expected.into_values().collect();
    let mut verdict = compare(&expected, right);
    for (tally, before) in verdict.tallies.iter_mut().zip(before.tallies) {
        (tally.twice, tally.late) = (tally.twice + before.twice, tally.late + before.late);
        tally.shown.splice(0..0, before.shown);
        tally.shown.truncate(SHOWN_MAX);
    }
    verdict
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
            Tolerance::Speed | Tolerance::Unseen,
            TollAnswer::Toll { speed: ours, toll: our_toll, .. },
            TollAnswer::Toll { speed: theirs, toll: their_toll, .. },
        ) => (ours - theirs).abs() <= 1 && *ours.min(theirs) >= 0 && our_toll == their_toll,
        (Tolerance::Current { pairs, none }, _, TollAnswer::Balance { time, result_time, balance, .. }) => {
            let is_none = |(from, to): &(u32, u32)| *balance == 0 && (*from..=*to).contains(result_time);
            let was_current = pairs.contains(&(*result_time, *balance)) || none.as_ref().is_some_and(is_none);
            *time == expected.answer.time() && was_current
        }
        (Tolerance::Unseen, ours @ TollAnswer::Balance { .. }, theirs @ TollAnswer::Balance { .. }) => {
            are_of_one_account(ours, theirs)
        }
        _ => false,
    }
}

/// Whether two different balances may both have been current in the minute before their query.
fn are_of_one_account(ours: &TollAnswer, theirs: &TollAnswer) -> bool {
    let pair = |answer: &TollAnswer| match *answer {
        TollAnswer::Balance { time, result_time, balance, .. } => Some((time, result_time, balance)),
        _ => None,
    };
    let (Some(ours), Some(theirs)) = (pair(ours), pair(theirs)) else { return false };
    let ((time, earlier, less), (same_time, later, more)) =
        if ours.1 <= theirs.1 { (ours, theirs) } else { (theirs, ours) };
    // The earlier balance was current until the crossing of the later one at most, and accounts
    // only grow.
    time == same_time && earlier < later && later <= time && later > time.saturating_sub(60) && less <= more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toll(speed: i32, toll: u32) -> TollAnswer {
        TollAnswer::Toll { vid: 7, time: 300, speed, toll }
    }

    fn balance(result_time: u32, balance: u32) -> TollAnswer {
        TollAnswer::Balance { time: 300, query: 1, result_time, balance }
    }

    #[test]
    fn two_systems_may_differ_where_the_rows_would_leave_a_choice() {
        let accident = |segment| TollAnswer::Accident { time: 300, vid: 7, segment, xway: 0, direction: 0 };
        let spent = |balance| TollAnswer::Expenditure { time: 300, query: 1, balance };
        for (left, right, is_right) in [
            (toll(30, 200), toll(31, 200), true),
            (toll(30, 200), toll(32, 200), false),
            (toll(39, 200), toll(40, 0), false),
            (toll(-1, 0), toll(0, 0), false),
            (balance(240, 5), balance(290, 9), true),
            (balance(120, 5), balance(290, 5), true),
            // (A balance that ended more than a minute before the query.)
            (balance(120, 5), balance(239, 9), false),
            (balance(240, 9), balance(290, 5), false),
            (balance(290, 5), balance(290, 9), false),
            (balance(290, 5), balance(301, 5), false),
            // (No crossing yet, for one of them.)
            (balance(300, 0), balance(250, 0), true),
            (accident(8), accident(9), false),
            (spent(5), spent(6), false),
        ] {
            for (left, right) in [(left, right), (right, left)] {
                let verdict = compare_two(&[(left, None)], [(right, None)]);
                assert_eq!(verdict.is_right(), is_right, "{left:?} {right:?}: {verdict}");
                let tally = &verdict.tallies[usize::from(key(&left).0)];
                assert_eq!(
                    (tally.tolerated, tally.wrong),
                    if is_right { (1, 0) } else { (0, 1) },
                    "{left:?} {right:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_given_twice_or_late_in_either_system_is_told() {
        let (good, late) = ((toll(30, 200), Some(305.0)), (toll(30, 200), Some(305.1)));
        for (left, right, twice, n_late) in [
            (vec![good, good], vec![good], 1, 0),
            (vec![good], vec![good, good], 1, 0),
            (vec![late], vec![good], 0, 1),
            (vec![good], vec![late], 0, 1),
        ] {
            let verdict = compare_two(&left, right);
            let tally = &verdict.tallies[0];
            assert_eq!((tally.expected, tally.equal, tally.twice, tally.late), (1, 1, twice, n_late), "{verdict}");
            assert!(!verdict.is_right());
        }
    }

    #[test]
    fn an_answer_is_late_by_the_time_of_its_row() {
        let expected = Expected { answer: balance(290, 5), tolerance: Tolerance::Exact };
        let given = TollAnswer::Balance { time: 309, query: 1, result_time: 290, balance: 5 };
        let verdict = compare(&[expected], [(given, Some(310.0))]);
        assert_eq!((verdict.tallies[2].late, verdict.tallies[2].wrong), (1, 1), "{verdict}");
    }
}
