//! Keys and movement: statements A1, A2, A3, A5, A6, A7, A8, A11, A13, A15 of Quill's operators.

use std::collections::BTreeMap;

use anabranch_engine::frame::{Event, col, count_rows, sum};
use anabranch_shards::{Layout, Move, RunOutcome, Shards};
use anabranch_testing::rng::{Rng, cases};
use datafusion_common::ScalarValue;

use crate::support::{rows, run, source, updates};

fn events(rng: &mut Rng) -> [(&'static str, Vec<Vec<Event>>); 1] {
    [("l", rows(rng, 80))]
}

/// The updates of each shard.
fn by_shard(outcome: &RunOutcome, shards: usize) -> Vec<BTreeMap<(i64, Vec<String>), i64>> {
    (0..shards).map(|shard| updates(&outcome.changes_of(shard))).collect()
}

/// The rows that pass through a program that computes nothing.
fn moved(rng: &mut Rng, layout: Layout, build: impl Fn(Shards) -> Shards) -> (RunOutcome, RunOutcome) {
    let given = events(rng);
    let one = run(rng, &source("l", Layout::flat(1)).rekey(["k"]), 1, &given);
    let many = run(rng, &build(source("l", layout).rekey(["k"])), layout.shards(), &given);
    (one, many)
}

#[test]
fn keys_are_in_one_shard_after_redistribution_and_stay_there() {
    cases("redistribute", 20, |rng| {
        let layout = Layout::grid(2, 2);
        let (one, many) = moved(rng, layout, |s| s.redistribute(Move::FLAT));
        assert_eq!(updates(&many.changes()), updates(&one.changes()));
        let mut owners: BTreeMap<String, usize> = BTreeMap::new();
        for (shard, rows) in by_shard(&many, 4).into_iter().enumerate() {
            for (_, row) in rows.keys() {
                assert_eq!(*owners.entry(row[0].clone()).or_insert(shard), shard);
            }
        }
        let twice = source("l", layout).rekey(["k"]).redistribute(Move::GLOBAL).redistribute(Move::LOCAL);
        let mut run = twice.redistribute(Move::FLAT).run().unwrap();
        for row in rows(rng, 50) {
            run.push("l", rng.below(4), row).unwrap();
        }
        run.finish().unwrap();
        let (name, last) = *run.moved().last().unwrap();
        assert_eq!((name, last.rows_near + last.rows_far, last.rows_hashed), ("redistribute", 0, 0));
    });
}

#[test]
fn hashes_are_computed_once_before_rows_move_and_never_behind() {
    let s = source("l", Layout::flat(2)).rekey(["k"]);
    let counts = s.query(|q| q.agg([count_rows().alias("n")]));
    // (The second movement finds the hashes that the first one brought.)
    let there = counts.redistribute(Move::LOCAL).redistribute(Move::FLAT).rekey(["k"]);
    let program = there.query(|q| q.agg([sum(col("n")).alias("n")]));
    let mut run = program.run().unwrap();
    for at in 0..100i64 {
        let row = Event::start(at / 50, [(at % 7).into(), 0i64.into(), 1i64.into()]);
        run.push("l", (at % 2) as usize, vec![row]).unwrap();
    }
    run.finish().unwrap();
    let hashed: Vec<(&str, u64)> = run.moved().iter().map(|(name, moved)| (*name, moved.rows_hashed)).collect();
    // Of each shard: seven counts until time 1, and seven from then on.
    let expected = [
        ("source", 0),
        ("rekey", 100),
        ("query", 0),
        ("redistribute", 28),
        ("redistribute", 0),
        ("rekey", 0),
        ("query", 0),
    ];
    assert_eq!(hashed, expected);
}

#[test]
fn spread_rows_are_taken_back_where_they_are() {
    cases("reshard", 20, |rng| {
        let (one, many) = moved(rng, Layout::flat(3), |s| s.reshard(Move::FLAT));
        assert_eq!(updates(&many.changes()), updates(&one.changes()));
        for rows in by_shard(&many, 3) {
            let mut present: BTreeMap<Vec<String>, i64> = BTreeMap::new();
            for ((_, row), diff) in rows {
                let count = present.entry(row).or_default();
                *count += diff;
                assert!(*count >= 0);
            }
        }
    });
}

#[test]
fn spread_rows_are_many_everywhere() {
    let mut run = source("l", Layout::flat(4)).reshard(Move::FLAT).run().unwrap();
    let row = |x: i64| Event::start(0, [0i64.into(), 0i64.into(), x.into()]);
    run.push("l", 0, (0..20_000).map(row).collect::<Vec<_>>()).unwrap();
    let outcome = run.finish().unwrap();
    for shard in outcome.shards {
        let rows: usize = shard.iter().map(|batch| batch.len()).sum();
        assert!((4_750..5_250).contains(&rows), "{rows}");
    }
}

#[test]
fn broadcasts_reach_all_and_two_short_ones_are_a_long_one() {
    cases("broadcast", 12, |rng| {
        let layout = Layout::grid(2, 3);
        let given = events(rng);
        let one = updates(&run(rng, &source("l", Layout::flat(1)), 1, &given).changes());
        let s = source("l", layout);
        for program in [s.broadcast(Move::FLAT), s.broadcast(Move::GLOBAL).broadcast(Move::LOCAL)] {
            let outcome = run(rng, &program, 6, &given);
            assert!(by_shard(&outcome, 6).into_iter().all(|rows| rows == one));
        }
    });
    let far = |program: Shards| {
        let mut run = program.run().unwrap();
        run.push("l", 0, vec![Event::start(0, [1i64.into(), 2i64.into(), 3i64.into()])]).unwrap();
        run.finish().unwrap();
        run.moved().iter().map(|(_, moved)| moved.rows_far).sum::<u64>()
    };
    let s = source("l", Layout::grid(2, 3));
    assert_eq!(far(s.broadcast(Move::FLAT)), 3);
    assert_eq!(far(s.broadcast(Move::GLOBAL).broadcast(Move::LOCAL)), 1);
}

#[test]
fn a_multicast_goes_where_it_says() {
    cases("multicast", 12, |rng| {
        let layout = Layout::flat(3);
        let given = events(rng);
        let one = updates(&run(rng, &source("l", Layout::flat(1)), 1, &given).changes());
        let s = source("l", layout);
        let to_second = run(rng, &s.multicast(|_| vec![1]), 3, &given);
        let shards = by_shard(&to_second, 3);
        assert_eq!(shards, [BTreeMap::new(), one.clone(), BTreeMap::new()]);
        let to_all = run(rng, &s.multicast(|_| vec![0, 1, 2, 2]), 3, &given);
        assert!(by_shard(&to_all, 3).into_iter().all(|rows| rows == one));
        let to_none = run(rng, &s.multicast(|_| vec![]), 3, &given);
        assert!(to_none.changes().is_empty());
    });
    let mut run = source("l", Layout::flat(2)).multicast(|_| vec![5]).run().unwrap();
    run.push("l", 0, vec![Event::start(0, [1i64.into(), 2i64.into(), 3i64.into()])]).unwrap();
    assert_eq!(run.finish().unwrap_err().message, "a row is multicast to shard 5 of 2");
}

/// Left rows go to a row of the grid, right rows to a column: each pair meets once.
#[test]
fn a_grid_of_multicasts_is_a_theta_join() {
    let number = |value: &ScalarValue| match value {
        ScalarValue::Int64(Some(x)) => x.unsigned_abs() as usize,
        _ => 0,
    };
    let build = |layout: Layout, is_grid: bool| {
        let (mut l, mut r) = (source("l", layout), source("r", layout));
        if is_grid {
            l = l.multicast(move |row| (0..2).map(|c| number(&row[2]) % 2 * 2 + c).collect());
            r = r.multicast(move |row| (0..2).map(|c| c * 2 + number(&row[2]) % 2).collect());
        }
        l.query_with(&r, |a, b| {
            a.join(&b, [], [], anabranch_engine::frame::How::Inner).filter(col("x").lt(col("x_right")))
        })
    };
    cases("grid", 10, |rng| {
        let given = [("l", rows(rng, 25)), ("r", rows(rng, 15))];
        let expected = run(rng, &build(Layout::flat(1), false), 1, &given).changes();
        let found = run(rng, &build(Layout::flat(4), true), 4, &given).changes();
        assert_eq!(updates(&found), updates(&expected));
    });
}

#[test]
fn a_silent_source_holds_up_those_of_its_scope() {
    let frontiers = |reach: Move| {
        let program = source("l", Layout::grid(2, 2)).rekey(["k"]).redistribute(reach);
        let mut run = program.run().unwrap();
        for shard in 0..3 {
            run.advance("l", shard, 10 + shard as i64).unwrap();
        }
        run.drain().unwrap().frontiers
    };
    assert_eq!(frontiers(Move::FLAT), [i64::MIN; 4]);
    assert_eq!(frontiers(Move::LOCAL), [10, 10, i64::MIN, i64::MIN]);
    assert_eq!(frontiers(Move::GLOBAL), [10, i64::MIN, 10, i64::MIN]);
}

/// Statement A8: a shard that is idle, or at its end, does not hold up the others.
#[test]
fn an_idle_shard_follows_the_others() {
    let row = |time: i64| vec![Event::point(time, [1i64.into(), 2i64.into(), 3i64.into()])];
    let mut run = source("l", Layout::grid(2, 2)).reshard(Move::FLAT).run().unwrap();
    let frontiers = |run: &mut anabranch_shards::ShardRun| {
        let mut frontiers = run.drain().unwrap().frontiers;
        frontiers.dedup();
        frontiers
    };
    for shard in 0..3 {
        run.advance("l", shard, 10 + shard as i64).unwrap();
    }
    assert_eq!(frontiers(&mut run), [i64::MIN]);
    run.idle("l", 3).unwrap();
    assert_eq!(frontiers(&mut run), [10]);
    run.advance("l", 0, 20).unwrap();
    assert_eq!(frontiers(&mut run), [11]);
    // What comes is held against what was promised, and ends it.
    let error = run.push("l", 3, row(10)).unwrap_err();
    assert_eq!(error.message, "a row of source \"l\" at 10 comes after shard 3 was complete before 11");
    run.push("l", 3, row(11)).unwrap();
    for shard in 0..3 {
        run.advance("l", shard, 30).unwrap();
    }
    assert_eq!(frontiers(&mut run), [11]);
    run.advance("l", 3, i64::MAX).unwrap();
    assert_eq!(frontiers(&mut run), [30]);
    // Idle shards follow one that has ended to its end.
    (0..3).for_each(|shard| run.idle("l", shard).unwrap());
    assert_eq!(frontiers(&mut run), [i64::MAX]);
    run.idle("l", 4).unwrap_err();
}

#[test]
fn one_shard_is_a_place_to_go() {
    cases("one shard", 8, |rng| {
        let (one, many) = moved(rng, Layout::flat(3), |s| s.redistribute(Move::to_shards(1)));
        let shards = by_shard(&many, 3);
        assert_eq!(shards[0], updates(&one.changes()));
        assert!(shards[1].is_empty() && shards[2].is_empty());
    });
}

/// Statement A11: rows between processes by the plans of figure 1, of R rows and G keys in P
/// processes with N shards. Of rows with keys that are everywhere, (a) moves R (P - 1) / P exactly,
/// whatever the hash; of keys that are in one shard each, as many but for the luck of the hash.
#[test]
fn rows_between_processes_are_as_many_as_the_formulas_say() {
    const ROWS: u64 = 12_000;
    const KEYS: u64 = 100;
    for (processes, threads) in [(2, 1), (2, 2), (3, 2), (4, 2), (2, 4)] {
        let layout = Layout::grid(processes, threads);
        let shards = layout.shards() as u64;
        let far = |program: Shards, keys: u64| {
            let mut run = program.run().unwrap();
            // (Row i has key i mod `keys`: with few keys each is in each shard, as often.)
            for shard in 0..shards {
                let (first, last) = (shard * ROWS / shards, (shard + 1) * ROWS / shards);
                let row = |x: u64| Event::start(0, [((x % keys) as i64).into(), 0i64.into(), (x as i64).into()]);
                run.push("l", shard as usize, (first..last).map(row).collect::<Vec<_>>()).unwrap();
            }
            run.finish().unwrap();
            run.moved().iter().map(|(_, moved)| moved.rows_far).sum::<u64>()
        };
        let s = source("l", layout).rekey(["k"]);
        let count = |q: anabranch_engine::frame::Frame| q.agg([count_rows().alias("n")]);
        let add = |q: anabranch_engine::frame::Frame| q.agg([sum(col("n")).alias("n")]);
        let a = s.redistribute(Move::FLAT).query(count);
        let b = s.query(count).redistribute(Move::FLAT).query(add);
        let c = s.query(count).redistribute(Move::LOCAL).query(add).redistribute(Move::FLAT).query(add);
        let d = s.redistribute(Move::LOCAL).query(count).redistribute(Move::FLAT).query(add);
        let processes = processes as u64;
        let of_others = |rows: u64| rows * (processes - 1) / processes;
        // G keys, each in every shard.
        assert_eq!(far(a.clone(), KEYS), of_others(ROWS));
        assert_eq!(far(b, KEYS), of_others(shards * KEYS));
        assert_eq!(far(c, KEYS), of_others(processes * KEYS));
        assert_eq!(far(d, KEYS), of_others(processes * KEYS));
        // As many keys as rows.
        let (found, expected) = (far(a, ROWS), of_others(ROWS));
        assert!(found.abs_diff(expected) * 20 <= expected, "{found} of {expected} in {layout:?}");
    }
}

#[test]
fn streams_of_different_shards_do_not_meet() {
    let (four, two) = (source("l", Layout::flat(4)), source("r", Layout::flat(2)));
    let error = four.query_with(&two, |l, r| l.union(&r)).check().unwrap_err();
    assert_eq!(error.message, "a query of 4 shards and of 2 shards");
}

#[test]
fn rows_behind_the_frontier_are_refused_where_they_are_pushed() {
    let mut run = source("l", Layout::flat(2)).run().unwrap();
    run.advance("l", 1, 10).unwrap();
    let row = || vec![Event::start(5, [1i64.into(), 2i64.into(), 3i64.into()])];
    run.push("l", 0, row()).unwrap();
    let error = run.push("l", 1, row()).unwrap_err();
    assert_eq!(error.message, "a row of source \"l\" at 5 comes after shard 1 was complete before 10");
    run.push("l", 2, row()).unwrap_err();
    run.push("m", 0, row()).unwrap_err();
}
