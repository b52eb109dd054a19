//! The program against the reference: R1, R3, R4 (one process; two are in `processes`), R5; the SQL
//! views: R2. (R7 is a test of the operator, in `program/road.rs`.)

use anabranch_engine::{Options, Session};
use anabranch_linear_road::answer::TollAnswer;
use anabranch_linear_road::generator::Traffic;
use anabranch_linear_road::history::History;
use anabranch_linear_road::program::{KeptRows, check};
use anabranch_linear_road::random::Random;
use anabranch_linear_road::reference::{Expected, Reference};
use anabranch_linear_road::row::{Row, RowKind, Second};
use anabranch_linear_road::sql;
use anabranch_linear_road::system::{Setup, System, read};
use anabranch_linear_road::validate::{Verdict, compare};
use anabranch_shards::{Carry, Layout};

use crate::cases;
use crate::support::{sample, seconds};

const KEEPS: [KeptRows; 2] = [KeptRows::ByVehicle, KeptRows::ByExpressway];

pub fn given(setup: Setup, seconds: &[Second], history: &History) -> Vec<TollAnswer> {
    let mut system = System::start(setup, history).unwrap();
    let mut answers: Vec<TollAnswer> = seconds.iter().flat_map(|second| system.answer(second).unwrap()).collect();
    answers.sort_unstable();
    answers
}

fn expected(seconds: &[Second], history: &History) -> (Vec<Expected>, Reference) {
    let mut reference = Reference::new(history.clone());
    let mut expected = Vec::new();
    seconds.iter().for_each(|second| reference.second(second, &mut expected));
    (expected, reference)
}

fn verdict(expected: &[Expected], answers: &[TollAnswer]) -> Verdict {
    compare(expected, answers.iter().map(|answer| (*answer, None)))
}

/// Nothing but what only the order of rows within a second could change.
fn assert_equal(expected: &[Expected], answers: &[TollAnswer], what: &str) {
    let verdict = verdict(expected, answers);
    assert!(verdict.is_right(), "{what}: {verdict}");
    let tolerated: u64 = verdict.tallies.iter().map(|tally| tally.tolerated).sum();
    assert_eq!(tolerated, 0, "{what}: {verdict}");
    assert!(verdict.tallies[0].expected > 0, "{what}: {verdict}");
}

/// Traffic in which all kinds of answers come up within minutes.
pub fn dense(half_expressways: u32, seconds: u32, seed: u64) -> Traffic {
    Traffic { skip: 300, ..Traffic::new(half_expressways, seconds, seed).dense() }
}

#[test]
fn r1_the_program_answers_the_worked_cases() {
    for case in cases::all() {
        for keep in KEEPS {
            let setup = Setup { keep, ..Setup::new(2, 2) };
            let found = given(setup, &seconds(case.rows.clone()), &History::default());
            assert_eq!(found, case.answers, "{} {keep:?}", case.name);
        }
    }
}

#[test]
fn r4_the_program_is_safe_for_every_number_of_shards() {
    KEEPS.into_iter().for_each(|keep| check(5, keep).unwrap());
}

#[test]
fn r4_answers_do_not_depend_on_shards_accounts_or_batches() {
    let traffic = dense(3, 240, 21);
    let (seconds, history) = (traffic.start().collect::<Vec<_>>(), traffic.history());
    let (expected, reference) = expected(&seconds, &history);
    assert!(reference.counts().charged > 0, "{:?}", reference.counts());
    let first = given(Setup::new(2, 1), &seconds, &history);
    assert_equal(&expected, &first, "one shard");
    let kinds: Vec<usize> = (0..4).map(|kind| first.iter().filter(|answer| kind_of(answer) == kind).count()).collect();
    assert!(kinds.iter().all(|n| *n > 10), "{kinds:?}");
    for (shards, keep) in [(2, KeptRows::ByVehicle), (3, KeptRows::ByExpressway), (8, KeptRows::ByVehicle)] {
        assert!(given(Setup { keep, ..Setup::new(2, shards) }, &seconds, &history) == first, "{shards} {keep:?}");
    }
    let wire = Setup { layout: Layout::grid(2, 2), carry: Carry::Wire, ..Setup::new(2, 4) };
    assert!(given(wire, &seconds, &history) == first, "rows cross as bytes");
    for batch in [7, 240] {
        let mut system = System::start(Setup::new(2, 2), &history).unwrap();
        let pieces = seconds.chunks(batch).flat_map(|seconds| system.answer_all(seconds).unwrap());
        let mut answers: Vec<TollAnswer> = pieces.collect();
        answers.sort_unstable();
        assert!(answers == first, "batches of {batch} seconds");
    }
}

fn kind_of(answer: &TollAnswer) -> usize {
    match answer {
        TollAnswer::Toll { .. } => 0,
        TollAnswer::Accident { .. } => 1,
        TollAnswer::Balance { .. } => 2,
        TollAnswer::Expenditure { .. } => 3,
    }
}

#[test]
fn r3_rows_of_one_second_may_come_to_the_program_in_any_order() {
    let traffic = dense(2, 120, 5);
    let (mut seconds, history) = (traffic.start().collect::<Vec<_>>(), traffic.history());
    let first = given(Setup::new(1, 2), &seconds, &history);
    let mut random = Random::new(9);
    for second in &mut seconds {
        for at in (1..second.rows.len()).rev() {
            second.rows.swap(at, random.below(at as u32 + 1) as usize);
        }
    }
    // (Even balances: they are told after the whole second.)
    assert!(given(Setup::new(1, 3), &seconds, &history) == first);
}

#[test]
fn r5_the_program_answers_the_official_sample() {
    let Some(seconds) = sample("official_first320s.dat") else { return };
    let answers = given(Setup::new(1, 2), &seconds, &History::default());
    let counts: Vec<usize> =
        (0..4).map(|kind| answers.iter().filter(|answer| kind_of(answer) == kind).count()).collect();
    assert_eq!(counts, [9147, 267, 114, 0]);
    let (expected, _) = expected(&seconds, &History::default());
    assert_equal(&expected, &answers, "official sample");
}

#[test]
fn r2_the_views_hold_what_the_program_answers() {
    for (what, traffic) in [
        ("dense", dense(3, 240, 21)),
        ("two expressways", Traffic { arrivals: 8.0, reentry: 0.5, ..dense(4, 200, 3) }),
        ("default", Traffic { skip: 900, ..Traffic::new(2, 180, 4) }),
        ("half an expressway", Traffic { arrivals: 20.0, ..dense(1, 200, 6) }),
    ] {
        let (seconds, history) = (traffic.start().collect::<Vec<_>>(), traffic.history());
        let (expected, reference) = expected(&seconds, &history);
        let answers = given(Setup::new(2, 2), &seconds, &history);
        assert_equal(&expected, &answers, what);
        let mut session = Session::new(Options::default()).unwrap();
        sql::create(&mut session).unwrap();
        sql::insert(&mut session, &seconds).unwrap();
        sql::insert_history(&mut session, &history).unwrap();
        let mut views = sql::answers(&mut session).unwrap();
        views.sort_unstable();
        let verdict = verdict(&expected, &views);
        assert!(what != "dense" || reference.counts().charged > 0, "no toll is due in dense traffic");
        assert!(views == answers, "{what}: {verdict}");
    }
}

#[test]
fn r2_views_that_are_kept_current_follow_the_rows() {
    let traffic = Traffic { arrivals: 10.0, ..dense(2, 180, 8) };
    let (seconds, history) = (traffic.start().collect::<Vec<_>>(), traffic.history());
    let mut session = Session::new(Options::default()).unwrap();
    sql::create(&mut session).unwrap();
    sql::insert_history(&mut session, &history).unwrap();
    for (at, minute) in seconds.chunks(60).enumerate() {
        sql::insert(&mut session, minute).unwrap();
        let (expected, _) = expected(&seconds[..60 * (at + 1)], &history);
        let tolls = expected.iter().filter(|expected| kind_of(&expected.answer) == 0).count();
        let rows = session.query("SELECT count(*) FROM tolls").unwrap();
        let count = only_number(&rows);
        assert_eq!(count, tolls as i64, "after minute {}", at + 1);
    }
}

fn only_number(rows: &anabranch_engine::Rows) -> i64 {
    use arrow::array::AsArray;
    rows.batches[0].column(0).as_primitive::<arrow::datatypes::Int64Type>().value(0)
}

#[test]
fn a_row_of_an_expressway_that_is_not_there_is_an_error_of_the_row() {
    let mut system = System::start(Setup::new(2, 2), &History::default()).unwrap();
    let rows = vec![Row::report(0, 7, 50, 2, 1, 0, 100)];
    let error = system.answer(&Second { time: 0, rows, n_refused: 0 }).unwrap_err();
    assert!(error.to_string().contains("branch 2 of 2"), "{error}");
}

#[test]
fn queries_of_type_4_are_counted_and_dropped() {
    let mut system = System::start(Setup::new(1, 1), &History::default()).unwrap();
    let rows = vec![Row::query(0, RowKind::TravelTime, 7, 1, 0, 0)];
    assert_eq!(system.answer(&Second { time: 0, rows, n_refused: 2 }).unwrap(), []);
    assert_eq!((system.counts().queries, system.counts().refused), ([0, 0, 1], 2));
}

#[test]
fn batches_that_are_no_answers_are_refused() {
    let batch = anabranch_linear_road::program::columns::batch(0, &[Row::report(0, 1, 1, 0, 1, 0, 9)]);
    assert!(read(&[batch]).is_err());
}
