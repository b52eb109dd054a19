use arrow::array::ArrayRef;

use super::*;
use crate::temporal::testing::*;

/// What is let through, as text: `time..until value` for rows.
fn let_through(ingress: &mut Ingress) -> Vec<String> {
    let name = |key: &[ArrayRef]| key.first().map_or(String::new(), |_| " of one".to_owned());
    let item = |item: Item| match item {
        Item::Rows(batch) => {
            rows(&batch).into_iter().map(|(time, until, value)| row(time, until, value)).collect::<Vec<_>>()
        }
        Item::Punctuation(key, time) => vec![format!("punctuation {time}{}", name(&key))],
        Item::LowWatermark(time) => vec![format!("low {time}")],
    };
    ingress.take().into_iter().flat_map(item).collect()
}

fn row(time: Time, until: Time, value: i64) -> String {
    if until == END { format!("{value}@{time}") } else { format!("{value}@{time}..{until}") }
}

/// Pushes rows one by one, or all at once, and checks what comes of it and how many were dropped
/// and adjusted.
fn check_rows(policy: &Policy, input: &[Event], expected: &[&str], counts: (u64, u64)) {
    for chunk in [1, 2, input.len()] {
        let mut ingress = Ingress::new(policy.clone(), &types());
        input.chunks(chunk).for_each(|part| ingress.push(events(part)).unwrap());
        ingress.finish();
        assert_eq!(let_through(&mut ingress), expected, "in parts of {chunk}");
        assert_eq!(ingress.counts(), IngressCounts { dropped: counts.0, adjusted: counts.1 });
        assert_eq!(ingress.frontier(), END);
    }
}

fn policy(disorder: Disorder, reorder_latency: i64) -> Policy {
    Policy { disorder, reorder_latency, ..Policy::default() }
}

const X: i64 = 1;
const Y: i64 = 2;
const Z: i64 = 3;

#[test]
fn moved_starts_take_their_ends_along() {
    let starts = [(5, END, X), (9, END, Y), (5, END, X), (5, END, X), (11, END, Z), (5, END, X), (5, END, X)];
    let ends = [(20, 5, X), (22, 9, Y), (24, 5, X), (26, 5, X), (28, 11, Z), (30, 5, X)];
    let expected = [
        "1@5", "2@9", "1@9", "1@9", "3@11", "1@11", "1@11", "1@20..9", "2@22..9", "1@24..9", "1@26..11", "3@28..11",
        "1@30..11",
    ];
    check_rows(&policy(Disorder::Adjust, 0), &[&starts[..], &ends].concat(), &expected, (0, 4));
}

#[test]
fn moved_events_do_not_end_before_they_begin() {
    let input = [(9, END, Y), (5, END, X), (7, 5, X), (6, 8, Z), (6, 12, Z), (9, 10, Z)];
    check_rows(&policy(Disorder::Adjust, 0), &input, &["2@9", "1@9", "1@10..9", "3@9..12", "3@9..10"], (1, 3));
}

#[test]
fn dropped_starts_take_their_ends_along() {
    let input = [(9, END, Y), (5, END, X), (5, 30, X), (20, 5, X), (21, 9, Y)];
    check_rows(&policy(Disorder::Drop, 0), &input, &["2@9", "2@21..9"], (3, 0));
}

#[test]
fn rows_wait_for_others() {
    let input: Vec<Event> = [1, 3, 5, 20, 6, 12, 2, 30, 25].map(|time| (time, END, time)).into();
    let expected = ["1@1", "3@3", "5@5", "12@12", "20@20", "25@25", "30@30"];
    check_rows(&policy(Disorder::Drop, 10), &input, &expected, (2, 0));
}

#[test]
fn late_rows_are_an_error_that_names_them() {
    let mut ingress = Ingress::new(Policy::default(), &types());
    ingress.push(events(&[(3, END, X)])).unwrap();
    let late = ingress.push(events(&[(4, END, Y), (2, END, Z), (9, END, Z)])).unwrap_err();
    assert_eq!(late, Late { row: 1, time: 2, current: 4 });
    ingress.push(events(&[(4, END, X)])).unwrap();
    assert_eq!((let_through(&mut ingress).len(), ingress.frontier()), (3, 4));
}

#[test]
fn punctuations_come_at_multiples_of_their_period() {
    let periodic = |period| Policy { punctuation_period: Some(period), ..Policy::default() };
    let input: Vec<Event> = [1, 2, 4, 7, 20].map(|time| (time, END, time)).into();
    let expected =
        ["1@1", "punctuation 2", "2@2", "punctuation 4", "4@4", "punctuation 6", "7@7", "punctuation 20", "20@20"];
    check_rows(&periodic(2), &input, &expected, (0, 0));

    let mut ingress = Ingress::new(periodic(100), &types());
    let push = |ingress: &mut Ingress, time| ingress.push(events(&[(time, END, 0)])).unwrap();
    push(&mut ingress, 90);
    ingress.punctuate(&[], 80);
    [110, 195, 200].into_iter().for_each(|time| push(&mut ingress, time));
    ingress.punctuate(&[], 300);
    push(&mut ingress, 300);
    let expected = [
        "0@90",
        "punctuation 90",
        "punctuation 100",
        "0@110",
        "0@195",
        "punctuation 200",
        "0@200",
        "punctuation 300",
        "0@300",
    ];
    assert_eq!(let_through(&mut ingress), expected);
}

/// Rows whose partition is their value.
fn partitioned(policy: Policy) -> Ingress {
    Ingress::new(Policy { partition: vec![0], ..policy }, &types())
}

#[test]
fn each_partition_has_its_own_time() {
    let mut ingress = partitioned(policy(Disorder::Drop, 10));
    let input = [(1, 0), (1, 1), (3, 0), (5, 0), (3, 1), (20, 1), (6, 0), (2, 1), (2, 0), (30, 1), (13, 0)];
    input.iter().for_each(|&(time, key)| ingress.push(events(&[(time, END, key)])).unwrap());
    assert_eq!(let_through(&mut ingress), ["1@1", "1@3", "1@20", "0@1", "0@2", "0@3"]);
    ingress.finish();
    assert_eq!(let_through(&mut ingress), ["0@5", "0@6", "0@13", "1@30"]);
    assert_eq!(ingress.counts().dropped, 1);
}

#[test]
fn low_watermarks_follow_the_greatest_time() {
    let low_watermark = Some(LowWatermark { period: 100, lag: 10 });
    let mut ingress = partitioned(Policy { low_watermark, ..policy(Disorder::Drop, 0) });
    let input = [(0, 0), (0, 1), (99, 0), (110, 2), (90, 0), (99, 1), (100, 0), (105, 1), (100, 2), (190, 2), (260, 2)];
    ingress.push(events(&input.map(|(time, key)| (time, END, key)))).unwrap();
    ingress.low_watermark(300);
    ingress.low_watermark(250);
    let expected = ["0@0", "1@0", "0@99", "low 100", "2@110", "0@100", "1@105", "2@190", "low 200", "2@260", "low 300"];
    assert_eq!(let_through(&mut ingress), expected);
    assert_eq!((ingress.counts().dropped, ingress.frontier()), (3, 300));
}

#[test]
fn a_promise_of_what_is_known_says_nothing() {
    let mut ingress = Ingress::new(Policy { begin: 0, ..policy(Disorder::Drop, 0) }, &types());
    ingress.low_watermark(0);
    ingress.low_watermark(3);
    assert_eq!(let_through(&mut ingress), ["low 3"]);
}

#[test]
fn partitions_that_are_passed_are_forgotten() {
    let low_watermark = Some(LowWatermark { period: 10, lag: 0 });
    let mut ingress = partitioned(Policy { low_watermark, ..policy(Disorder::Drop, 5) });
    (0..100_000).for_each(|time| ingress.push(events(&[(time, END, time)])).unwrap());
    ingress.take();
    assert!(ingress.size_bytes() < 100_000, "{} bytes", ingress.size_bytes());
}

#[test]
fn what_is_dropped_or_moved_is_reported() {
    let mut ingress = Ingress::new(Policy { report: true, ..policy(Disorder::Adjust, 0) }, &types());
    ingress.push(events(&[(9, END, X), (5, END, Y), (3, 4, Z)])).unwrap();
    let report = ingress.take_report().unwrap();
    assert_eq!((report.len(), report.times().get(0)), (2, 5));
    use arrow::array::AsArray;
    let moved: Vec<Option<i64>> = report.column(1).as_primitive::<arrow::datatypes::Int64Type>().iter().collect();
    assert_eq!(moved, [Some(4), None]);
    assert!(ingress.take_report().is_none());
}

#[test]
fn without_ends_nothing_is_remembered() {
    let mut ingress = Ingress::new(Policy { ends: IngressEnds::Never, ..policy(Disorder::Drop, 0) }, &types());
    ingress.push(events(&[(1000, END, 0)])).unwrap();
    (0..999).for_each(|time| ingress.push(events(&[(time, END, time)])).unwrap());
    assert_eq!((ingress.moved.len(), ingress.counts().dropped), (0, 999));
}

#[test]
fn an_end_edge_that_waits_follows_its_late_start() {
    let input = [(20, 21, X), (25, 5, Y), (5, END, Y), (22, 40, X)];
    check_rows(&policy(Disorder::Drop, 10), &input, &["1@20..21", "1@22..40"], (2, 0));
    check_rows(&policy(Disorder::Adjust, 10), &input, &["2@15", "1@20..21", "1@22..40", "2@25..15"], (0, 1));
    let mut ingress = Ingress::new(Policy { report: true, ..policy(Disorder::Drop, 10) }, &types());
    input.iter().for_each(|event| ingress.push(events(&[*event])).unwrap());
    ingress.finish();
    assert_eq!((ingress.take_report().unwrap().len(), ingress.rows.len()), (2, 0));
}

#[test]
fn the_end_of_a_dropped_start_still_tells_the_time() {
    // The end edge at 24 raises the greatest time seen: what comes before 23 is late.
    let input = [(10, END, X), (20, END, X), (4, END, Y), (24, 4, Y), (21, 22, Z)];
    check_rows(&policy(Disorder::Drop, 1), &input, &["1@10", "1@20"], (3, 0));
}
