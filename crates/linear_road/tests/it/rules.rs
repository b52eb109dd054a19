//! R1: the worked cases, and one for each sentence of the rules; R3 for the reference.

use anabranch_linear_road::answer::TollAnswer;
use anabranch_linear_road::generator::Traffic;
use anabranch_linear_road::history::History;
use anabranch_linear_road::random::Random;
use anabranch_linear_road::reference::{Reference, answers};
use anabranch_linear_road::validate::{compare, compare_two};

use crate::cases;
use crate::support::seconds;

#[test]
fn r1_the_reference_answers_the_worked_cases() {
    for case in cases::all() {
        let mut given = answers(seconds(case.rows), History::default());
        given.sort_unstable();
        assert_eq!(given, case.answers, "{}", case.name);
    }
}

#[test]
fn two_systems_are_compared_without_a_judge() {
    for case in cases::all() {
        let answers: Vec<_> = case.answers.iter().map(|answer| (*answer, None)).collect();
        let is_right = |ours: &[(TollAnswer, Option<f64>)], theirs: &[(TollAnswer, Option<f64>)]| {
            compare_two(ours, theirs.iter().copied()).is_right()
        };
        assert!(is_right(&answers, &answers), "{}", case.name);
        assert!(answers.is_empty() || !is_right(&answers, &answers[1..]), "{}", case.name);
        assert!(answers.is_empty() || !is_right(&answers[1..], &answers), "{}", case.name);
    }
}

#[test]
fn r3_rows_of_one_second_may_come_in_any_order() {
    let traffic = Traffic::new(2, 240, 5).dense();
    let seconds: Vec<_> = traffic.start().collect();
    let history = traffic.history();
    let mut expected = Vec::new();
    let mut reference = Reference::new(history.clone());
    seconds.iter().for_each(|second| reference.second(second, &mut expected));
    let mut random = Random::new(1);
    let mut shuffled = seconds;
    for second in &mut shuffled {
        for at in (1..second.rows.len()).rev() {
            second.rows.swap(at, random.below(at as u32 + 1) as usize);
        }
    }
    let verdict = compare(&expected, answers(shuffled, history).into_iter().map(|answer| (answer, None)));
    assert!(verdict.is_right(), "{verdict}");
    assert!(verdict.tallies.iter().all(|tally| tally.expected == tally.equal + tally.tolerated), "{verdict}");
    assert!(verdict.tallies[0].equal > 1000, "{verdict}");
}

#[test]
fn tolls_announced_are_charged_forgotten_or_open() {
    let traffic = Traffic::new(2, 600, 11).dense();
    let mut reference = Reference::new(traffic.history());
    let mut expected = Vec::new();
    traffic.start().for_each(|second| reference.second(&second, &mut expected));
    let counts = reference.counts();
    assert!(counts.charged > 0 && counts.forfeited > 0, "{counts:?}");
    assert_eq!(counts.announced, counts.charged + counts.forfeited + reference.pending_tolls());
}
