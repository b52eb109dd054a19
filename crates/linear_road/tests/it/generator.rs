//! R6: properties of the traffic that is made up.

use std::collections::{BTreeMap, HashMap, HashSet};

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
    assert!(n_back > 10 && n_away > 10 && left.len() > 500, "{n_back} {n_away} {}", left.len());
    let all: u32 = queries.iter().sum();
    for (n, percent) in queries.iter().zip([50.0, 10.0, 40.0]) {
        let share = f64::from(*n) / f64::from(all) * 100.0;
        assert!((share - percent).abs() < percent / 10.0, "{queries:?}");
    }
}

#[test]
fn r6_three_hours_have_the_published_rates() {
    let mean_rates = [
        126.0, 344.0, 535.0, 704.0, 861.0, 998.0, 1123.0, 1237.0, 1332.0, 1408.0, 1465.0, 1514.0, 1551.0, 1577.0,
        1587.0, 1593.0, 1611.0, 1619.0,
    ];
    let traffic = Traffic::new(2, 10_800, 1);
    let mut rows: Vec<u64> = vec![0; 18];
    let mut early: Vec<u64> = vec![0; 4];
    let (mut queries, mut vids) = (0u64, HashSet::new());
    let mut generator = traffic.start();
    let mut second = Second::default();
    while generator.fill(&mut second) {
        rows[second.time as usize / 600] += second.rows.len() as u64;
        if second.time < 120 {
            early[second.time as usize / 30] +=
                second.rows.iter().filter(|row| row.kind == RowKind::Report).count() as u64;
        }
        queries += second.rows.iter().filter(|row| row.kind != RowKind::Report).count() as u64;
        vids.extend(second.rows.iter().map(|row| row.vid));
    }
    let found: Vec<f64> = rows.iter().map(|n| *n as f64 / 600.0).collect();
    let table: BTreeMap<usize, (f64, f64)> = found.iter().copied().zip(mean_rates).enumerate().collect();
    for (at, (found, published)) in &table {
        assert!(
            (found / published - 1.0).abs() < 0.1,
            "ten minutes {at}: {found:.0} of {published}: {found:?} {table:?}"
        );
    }
    for (at, published) in [12.8, 23.5, 35.8, 46.4].iter().enumerate() {
        let found = early[at] as f64 / 30.0;
        assert!((found / published - 1.0).abs() < 0.1, "half minute {at}: {found:.1} of {published}");
    }
    let all: u64 = rows.iter().sum();
    let share = queries as f64 / all as f64;
    assert!((0.0099..0.0121).contains(&share), "{share}");
    assert!((122_000..150_000).contains(&vids.len()), "{}", vids.len());
}
