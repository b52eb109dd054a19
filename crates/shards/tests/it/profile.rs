//! What steps have done in each shard, and runs that are stopped.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use anabranch_engine::frame::{Event, col, count_rows, sum};
use anabranch_engine::{ErrorKind, Interrupt};
use anabranch_shards::{Carry, Layout, Move, Processes, ShardRun, Shards, StepProfile};

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
