//! R6: rows of the traffic that is made up, one by one. What holds of three hours as a whole is in
//! `traffic_table`.

use std::collections::{HashMap, HashSet};

use anabranch_linear_road::generator::Traffic;
use anabranch_linear_road::row::{Row, RowKind, Second};

fn bytes(traffic: &Traffic) -> Vec<u8> {
    let mut text = Vec::new();
    traffic.start().flat_map(|second| second.rows).for_each(|row| row.write(&mut text).unwrap());
    text
}

#[test]
fn r6_the_same_seed_gives_the_same_bytes() {
    let traffic = Traffic::new(3, 200, 7).dense();
    assert_eq!(bytes(&traffic), bytes(&traffic));
    assert_ne!(bytes(&traffic), bytes(&Traffic { seed: 8, ..traffic.clone() }));
    let skipped = Traffic { skip: 100, ..traffic };
    assert!(skipped.start().take(1).all(|second| second.time == 0 && second.rows.len() > 100));
}

#[test]
fn r6_rows_are_consistent() {
    let traffic = Traffic { seconds: 900, ..Traffic::new(3, 900, 3).dense() };
    let mut last: HashMap<u32, Row> = HashMap::new();
    let mut left: HashSet<u32> = HashSet::new();
    let (mut n_back, mut n_away, mut queries) = (0, 0, [0u32; 3]);
    for (at, second) in traffic.start().enumerate() {
        let Second { time, rows, .. } = second;
        assert_eq!(time as usize, at);
        let reporting: HashSet<u32> =
            rows.iter().filter(|row| row.kind == RowKind::Report).map(|row| row.vid).collect();
        assert_eq!(reporting.len(), rows.iter().filter(|row| row.kind == RowKind::Report).count(), "once a second");
        for row in rows {
            assert_eq!(row.time, time);
            match row.kind {
                RowKind::Report => {
                    assert_eq!(u32::from(row.segment), row.position / 5280);
                    assert!(row.speed <= 100 && row.xway < 2 && row.position < 528_000);
                    assert!(row.xway == 0 || row.direction == 0, "half an expressway has one direction");
                    if let Some(before) = last.insert(row.vid, row) {
                        let gap = row.time - before.time;
                        assert!(gap == 30 || gap > 61, "{before:?} {row:?}");
                        n_back += u32::from(gap > 61);
                        n_away += u32::from(row.xway != before.xway);
                        assert!(gap > 61 || before.lane != 4, "a car that has left reports no more");
                        let on_the_way = gap == 30 && row.direction == before.direction;
                        assert!(!on_the_way || row.position.abs_diff(before.position) < 5280, "{before:?} {row:?}");
                    } else {
                        assert_eq!(row.lane, 0, "a car enters by the ramp: {row:?}");
                    }
                    if row.lane == 4 {
                        left.insert(row.vid);
                    }
                }
                kind => {
                    assert!(reporting.contains(&row.vid), "a query without a report: {row:?}");
                    queries[usize::from(kind.number()) - 2] += 1;
                }
            }
        }
    }
    assert!(n_back > 10 && n_away == n_back && left.len() > 500, "{n_back} {n_away} {}", left.len());
    let all: u32 = queries.iter().sum();
    for (n, percent) in queries.iter().zip([50.0, 10.0, 40.0]) {
        let share = f64::from(*n) / f64::from(all) * 100.0;
        assert!((share - percent).abs() < percent / 10.0, "{queries:?}");
    }
}

#[test]
fn r6_history_has_rows_for_most_queries_and_others_beside_them() {
    let traffic = Traffic::new(4, 300, 5).dense();
    let history = traffic.history();
    let asked: Vec<(u32, u8, u16)> = traffic
        .start()
        .flat_map(|second| second.rows)
        .filter(|row| row.kind == RowKind::Expenditure)
        .map(|row| (row.vid, row.day, row.xway))
        .collect();
    let known = asked.iter().filter(|(vid, day, xway)| history.get(*vid, *day, *xway).is_some()).count();
    assert!(known * 10 > asked.len() * 7 && known < asked.len(), "{known} of {}", asked.len());
    assert!(history.len() > known * 3 / 2, "{} rows beside {known}", history.len());
    let mut roads: HashMap<u32, u16> = HashMap::new();
    for (vid, day, xway, toll) in history.rows() {
        assert!((1..=69).contains(&day) && toll < 99, "{vid} {day} {toll}");
        assert_eq!(*roads.entry(vid).or_insert(xway), xway, "a vehicle has a past on one expressway");
    }
}
