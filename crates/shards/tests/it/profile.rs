//! What steps have done in each shard, and runs that are stopped.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use anabranch_engine::frame::{Event, col, count_rows, sum};
use anabranch_engine::{ErrorKind, Interrupt};
use anabranch_shards::{Carry, Layout, Move, Processes, ShardRun, Shards, StepProfile};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;

use crate::support::source;

fn counts(layout: Layout) -> Shards {
    let counted = source("l", layout).rekey(["k"]).query(|q| q.agg([count_rows().alias("n")]));
    counted.redistribute(Move::FLAT).query(|q| q.agg([sum(col("n")).alias("n")]))
}

fn fed(run: &mut ShardRun, shards: usize) {
    for at in 0..100i64 {
        let row = Event::start(0, [(at % 7).into(), 0i64.into(), 1i64.into()]);
        run.push("l", at as usize % shards, vec![row]).unwrap();
    }
}

/// The counts of all shards together, by step: rows in and out.
fn totals(profile: &[StepProfile]) -> Vec<(String, u64, u64)> {
    let mut totals: Vec<(String, u64, u64)> = Vec::new();
    for step in profile {
        if totals.len() <= step.step {
            totals.push((step.action.clone(), 0, 0));
        }
        totals[step.step].1 += step.counts.rows_in;
        totals[step.step].2 += step.counts.rows_out;
    }
    totals
}

const EXPECTED: [(&str, u64, u64); 5] =
    [("source", 0, 100), ("rekey", 100, 100), ("query", 100, 14), ("redistribute", 14, 14), ("query", 14, 7)];

#[test]
fn each_step_counts_what_it_takes_and_gives_in_each_shard() {
    for carry in [Carry::Batches, Carry::Wire] {
        let mut run = counts(Layout::flat(2)).run_with(carry).unwrap();
        fed(&mut run, 2);
        run.advance("l", 0, 10).unwrap();
        run.advance("l", 1, 4).unwrap();
        run.drain().unwrap();
        let profile = run.profile();
        let found: Vec<(String, u64, u64)> = totals(&profile);
        let expected: Vec<(String, u64, u64)> =
            EXPECTED.iter().map(|(name, taken, given)| ((*name).to_owned(), *taken, *given)).collect();
        assert_eq!(found, expected);
        // The first shard's part has come to 10, what moves has come to 4: six ticks behind.
        let lag = |shard, step| profile.iter().find(|p| (p.shard, p.step) == (shard, step)).unwrap().lag;
        assert_eq!([lag(0, 0), lag(1, 0), lag(0, 4), lag(1, 4)], [Some(0), Some(6), Some(6), Some(6)]);
        assert!(profile.iter().all(|step| step.queued == 0));
        assert!(profile.iter().filter(|step| step.step == 2).all(|step| step.counts.cpu_nanos > 0));
        let rows = run.profile_rows().unwrap();
        assert_eq!(rows.batches[0].num_rows(), 10);
        run.finish().unwrap();
        assert!(run.profile().iter().all(|step| step.lag.is_none()), "a step that has ended is not behind");
    }
}

#[test]
fn shards_of_other_processes_are_counted_too() {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let addresses = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
    let [first, second] = listeners;
    let there = std::thread::spawn(move || {
        let second = Processes::connect_with(1, &second, &addresses).unwrap();
        counts(Layout::grid(2, 1)).serve_in(second)
    });
    let first = Processes::connect_with(0, &first, &addresses).unwrap();
    let mut run = counts(Layout::grid(2, 1)).run_in(first).unwrap();
    fed(&mut run, 2);
    run.finish().unwrap();
    let found = totals(&run.profile());
    assert_eq!(
        found.iter().map(|(_, taken, given)| (*taken, *given)).collect::<Vec<_>>(),
        EXPECTED.map(|(_, a, b)| (a, b))
    );
    drop(run);
    there.join().unwrap().unwrap();
}

/// A join of all rows with all others, which takes minutes.
fn endless(layout: Layout) -> Shards {
    let rows = source("l", layout);
    let pairs = rows.sql_with(
        &rows,
        "SELECT sum((shard.x * 31 + other.x * 17 + third.x) % 7) AS n FROM shard, other, shard AS third",
    );
    pairs.reshard(Move::to_shards(1))
}

#[test]
fn a_run_that_is_stopped_fails_soon_and_stays_failed() {
    let program = endless(Layout::flat(2));
    let mut run = program.run().unwrap();
    let stop = Interrupt::new();
    run.heed(&stop);
    for at in 0..6_000i64 {
        let row = Event::start(0, [(at % 7).into(), 0i64.into(), at.into()]);
        run.push("l", at as usize % 2, vec![row]).unwrap();
    }
    let begun = Instant::now();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        stop.trigger();
    });
    let error = run.finish().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cancelled);
    assert_eq!(run.drain().unwrap_err().kind, ErrorKind::Cancelled);
    drop(run);
    stopper.join().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// Bytes of a movement: kept, near and far, of all shards.
fn movement_bytes(run: &ShardRun) -> [u64; 3] {
    let moved = run.profile().into_iter().map(|step| step.counts.moved);
    moved.fold([0; 3], |sum, moved| [sum[0] + moved.bytes_kept, sum[1] + moved.bytes_near(), sum[2] + moved.bytes_far])
}

/// Section 2.9 of SCSQ: bytes by destination. Rows of a grid that go everywhere are kept, near and
/// far; those that stay in their process are never far; those that go to one shard from itself are
/// kept.
#[test]
fn bytes_are_told_apart_by_how_far_they_go() {
    let bytes = |layout: Layout, reach: Move| {
        let mut run = source("l", layout).broadcast(reach).run().unwrap();
        fed(&mut run, layout.shards());
        run.finish().unwrap();
        let [kept, near, far] = movement_bytes(&run);
        let moved = run.moved();
        assert_eq!(moved[1].1.bytes, near + far, "bytes that left their shard");
        [kept, near, far]
    };
    let [kept, near, far] = bytes(Layout::grid(2, 2), Move::FLAT);
    // Each batch goes to its own shard, to one other of the process, and to two of the other one.
    assert!(kept > 0);
    assert_eq!([near, far], [kept, 2 * kept]);
    assert_eq!(bytes(Layout::grid(2, 2), Move::LOCAL), [kept, kept, 0]);
    assert_eq!(bytes(Layout::grid(2, 2), Move::GLOBAL), [kept, 0, kept]);
    assert_eq!(bytes(Layout::flat(1), Move::FLAT)[1..], [0, 0]);
}

#[test]
fn bytes_by_destination_are_columns_of_the_profile() {
    let mut run = source("l", Layout::grid(2, 1)).broadcast(Move::FLAT).run().unwrap();
    fed(&mut run, 2);
    run.finish().unwrap();
    let rows = run.profile_rows().unwrap();
    let sum = |name: &str| -> i64 {
        let column = rows.batches[0].column_by_name(name).unwrap();
        column.as_primitive::<Int64Type>().values().iter().sum()
    };
    assert!(sum("bytes_kept") > 0);
    assert_eq!(["bytes", "bytes_near", "bytes_far"].map(sum), [sum("bytes_kept"), 0, sum("bytes_kept")]);
}

/// Skew is the greatest part over the mean one: all rows in one shard are the number of shards.
#[test]
fn the_skew_of_a_movement_is_its_fullest_shard_over_the_mean() {
    let skew = |rekeyed: &str| {
        let mut run = source("l", Layout::flat(4)).rekey([rekeyed]).redistribute(Move::FLAT).run().unwrap();
        for at in 0..1000i64 {
            let row = Event::start(0, [at.into(), 7i64.into(), at.into()]);
            run.push("l", at as usize % 4, vec![row]).unwrap();
        }
        run.finish().unwrap();
        let skews = run.skews();
        assert_eq!(skews[..2], [None, None], "of a source and a rekey");
        skews[2].unwrap()
    };
    assert_eq!(skew("j"), 4.0);
    assert!((1.0..1.3).contains(&skew("k")), "{}", skew("k"));
    let run = source("l", Layout::flat(2)).reshard(Move::FLAT).run().unwrap();
    assert_eq!(run.skews(), [None, None], "nothing has moved");
}
