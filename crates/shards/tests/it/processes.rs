//! Runs in several operating-system processes yield what one shard yields (law 3; statements A6 and
//! A11 through bytes).
//!
//! A test starts its own binary again, with itself as the only test, for each process but the
//! first: there, the variable [`MEMBER`] names the number of the process and the addresses of all.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use anabranch_engine::ErrorKind;
use anabranch_engine::frame::{Event, Frame, How, col, count_rows, max, sum};
use anabranch_shards::{Layout, Move, Processes, RunOutcome, ShardRun, Shards};
use anabranch_testing::rng::Rng;

use crate::support::{rows, run, source, updates};

/// What a member of a run is told.
const MEMBER: &str = "ANABRANCH_TEST_MEMBER";

/// If this is a member's process: its connections.
fn member() -> Option<Processes> {
    let told = std::env::var(MEMBER).ok()?;
    let (process, addresses) = told.split_once(' ').unwrap();
    let addresses: Vec<SocketAddr> = addresses.split(',').map(|address| address.parse().unwrap()).collect();
    Some(Processes::connect(process.parse().unwrap(), &addresses).unwrap())
}

/// Starts the other processes of a test, and connects to them.
fn connected(test: &str, processes: usize) -> (Processes, Vec<Child>) {
    let listeners: Vec<TcpListener> = (0..processes).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses: Vec<SocketAddr> = listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
    let mut listeners = listeners.into_iter();
    let own = listeners.next().unwrap();
    drop(listeners);
    let all = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let start = |process: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([&format!("processes::{test}"), "--exact"]).env(MEMBER, format!("{process} {all}"));
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let children = (1..processes).map(start).collect();
    (Processes::connect_with(0, &own, &addresses).unwrap(), children)
}

/// The processes of a test have ended, without an error.
fn all_ended(children: Vec<Child>) {
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
}

fn count(frame: Frame) -> Frame {
    frame.tumbling(10).agg([count_rows().alias("n"), sum(col("x")).alias("s"), max(col("x")).alias("hi")])
}

fn add(frame: Frame) -> Frame {
    frame.agg([sum(col("n")).alias("n"), sum(col("s")).alias("s"), max(col("hi")).alias("hi")])
}

/// Plan (c) of figure 1: cores, processes, all.
fn tree(layout: Layout) -> Shards {
    let s = source("l", layout).rekey(["k"]);
    s.query(count).redistribute(Move::LOCAL).query(add).redistribute(Move::FLAT).query(add)
}

/// Plan (c) of figure 4: the right side to each process once, hashed among its threads.
fn join(layout: Layout) -> Shards {
    let (l, r) = (source("l", layout).rekey(["k"]), source("r", layout).rekey(["k"]));
    let right = r.broadcast(Move::GLOBAL).redistribute(Move::LOCAL);
    l.redistribute(Move::LOCAL).query_with(&right, |a, b| a.join(&b, [col("j")], [col("j")], How::Inner))
}

/// Gives rows to random shards, in two parts with promises between.
fn outcome(rng: &mut Rng, run: &mut ShardRun, shards: usize, inputs: &[(&str, Vec<Vec<Event>>)]) -> RunOutcome {
    for (source, rows) in inputs {
        for row in rows {
            run.push(source, rng.below(shards), row.clone()).unwrap();
        }
    }
    run.finish().unwrap()
}

/// Holds a program in several processes against itself in one shard.
fn same_as_one_shard(test: &str, layout: Layout, processes: usize, build: fn(Layout) -> Shards) {
    let program = build(layout);
    if let Some(processes) = member() {
        return program.serve_in(processes).unwrap();
    }
    let mut rng = Rng::new(7);
    let inputs = [("l", rows(&mut rng, 400)), ("r", rows(&mut rng, 60))];
    let inputs = if program.explain().unwrap().contains("source r ") { &inputs[..] } else { &inputs[..1] };
    let expected = updates(&run(&mut rng, &build(Layout::flat(1)), 1, inputs).changes());
    assert!(expected.len() > 50);
    let (connections, children) = connected(test, processes);
    let mut run = program.run_in(connections).unwrap();
    // (So few bytes that pushes wait for the other process.)
    run.limit_bytes(2_000);
    let found = outcome(&mut rng, &mut run, layout.shards(), inputs);
    assert_eq!(run.bytes_under_way(), 0);
    let far: u64 = run.moved().iter().map(|(_, moved)| moved.rows_far).sum();
    drop(run);
    all_ended(children);
    assert_eq!(updates(&found.changes()), expected);
    assert!(far > 0);
    assert!(found.frontiers.iter().all(|frontier| *frontier == i64::MAX), "{:?}", found.frontiers);
}

#[test]
fn partial_counts_are_put_together_across_two_processes() {
    let test = "partial_counts_are_put_together_across_two_processes";
    same_as_one_shard(test, Layout::grid(2, 2), 2, tree);
}

#[test]
fn a_hybrid_join_is_the_same_in_two_processes() {
    same_as_one_shard("a_hybrid_join_is_the_same_in_two_processes", Layout::grid(2, 1), 2, join);
}

#[test]
fn rest_is_noticed_among_three_processes() {
    same_as_one_shard("rest_is_noticed_among_three_processes", Layout::grid(3, 2), 3, |layout| {
        tree(layout).redistribute(Move::GLOBAL).query(add)
    });
}

/// What was moved in a member is counted by the client; each drain sees all that was pushed before.
#[test]
fn every_drain_waits_for_the_other_process() {
    let program = source("l", Layout::grid(2, 1)).broadcast(Move::GLOBAL);
    if let Some(processes) = member() {
        return program.serve_in(processes).unwrap();
    }
    let (connections, children) = connected("every_drain_waits_for_the_other_process", 2);
    let mut run = program.run_in(connections).unwrap();
    for at in 0..200i64 {
        let shard = (at % 2) as usize;
        run.push("l", shard, vec![Event::start(at, [at.into(), 0i64.into(), 0i64.into()])]).unwrap();
        run.advance_all(at + 1).unwrap();
        let outcome = run.drain().unwrap();
        let rows = outcome.shards.map_rows();
        assert_eq!((rows, outcome.frontiers), (vec![1, 1], vec![at + 1, at + 1]));
    }
    let (_, moved) = *run.moved().last().unwrap();
    assert_eq!((moved.rows_far, moved.rows_kept), (200, 200));
    assert!(moved.bytes > 0 && [moved.bytes_kept, moved.bytes_far] == [moved.bytes; 2], "{moved:?}");
    drop(run);
    all_ended(children);
}

/// Rows of each shard.
trait MapRows {
    fn map_rows(&self) -> Vec<usize>;
}

impl MapRows for Vec<Vec<anabranch_batch::Batch>> {
    fn map_rows(&self) -> Vec<usize> {
        self.iter().map(|shard| shard.iter().map(anabranch_batch::Batch::len).sum()).collect()
    }
}

#[test]
fn a_failure_of_a_member_is_the_clients() {
    let test = "a_failure_of_a_member_is_the_clients";
    // (The row of the second process names a shard that is not there.)
    let program = source("l", Layout::grid(2, 1)).multicast(|_| vec![5]);
    if let Some(processes) = member() {
        let error = program.serve_in(processes).unwrap_err();
        return assert_eq!(error.message, "a row is multicast to shard 5 of 2");
    }
    let (connections, children) = connected(test, 2);
    let mut run = program.run_in(connections).unwrap();
    run.push("l", 1, vec![Event::start(0, [1i64.into(), 2i64.into(), 3i64.into()])]).unwrap();
    let error = run.finish().unwrap_err();
    assert_eq!((error.kind, &*error.message), (ErrorKind::Data, "a row is multicast to shard 5 of 2"));
    drop(run);
    all_ended(children);
}

#[test]
fn a_process_that_dies_is_an_error_that_names_it() {
    let program = tree(Layout::grid(2, 1));
    if let Some(processes) = member() {
        return program.serve_in(processes).unwrap();
    }
    let (connections, mut children) = connected("a_process_that_dies_is_an_error_that_names_it", 2);
    let mut run = program.run_in(connections).unwrap();
    run.drain().unwrap();
    children[0].kill().unwrap();
    children[0].wait().unwrap();
    let error = run.finish().unwrap_err();
    assert_eq!((error.kind, &*error.message), (ErrorKind::Unavailable, "process 1 has gone away"));
}

/// Statement A19: a run that lost a process has ended; started again, with its inputs from their
/// beginning, it yields what a run yields that lost none.
#[test]
fn a_run_that_lost_a_process_is_started_again() {
    let test = "a_run_that_lost_a_process_is_started_again";
    let layout = Layout::grid(2, 2);
    let program = tree(layout);
    if let Some(processes) = member() {
        return program.serve_in(processes).unwrap();
    }
    let mut rng = Rng::new(19);
    let inputs = [("l", rows(&mut rng, 400))];
    let expected = updates(&run(&mut rng, &tree(Layout::flat(1)), 1, &inputs).changes());
    let (connections, mut children) = connected(test, 2);
    let mut lost = program.run_in(connections).unwrap();
    let (before, after) = inputs[0].1.split_at(200);
    for row in before {
        lost.push("l", rng.below(layout.shards()), row.clone()).unwrap();
    }
    lost.drain().unwrap();
    children[0].kill().unwrap();
    children[0].wait().unwrap();
    let pushed = after.iter().try_for_each(|row| lost.push("l", rng.below(layout.shards()), row.clone()));
    let error = pushed.and_then(|()| lost.finish().map(drop)).unwrap_err();
    assert_eq!((error.kind, &*error.message), (ErrorKind::Unavailable, "process 1 has gone away"));
    drop(lost);
    let (connections, children) = connected(test, 2);
    let mut again = program.run_in(connections).unwrap();
    let found = outcome(&mut rng, &mut again, layout.shards(), &inputs);
    drop(again);
    all_ended(children);
    assert_eq!(updates(&found.changes()), expected);
}

#[test]
fn processes_of_different_programs_do_not_run_together() {
    let layout = Layout::grid(2, 1);
    if let Some(processes) = member() {
        let error = source("l", layout).rekey(["j"]).serve_in(processes).unwrap_err();
        return assert_eq!(error.message, "process 0 runs another program");
    }
    let (connections, children) = connected("processes_of_different_programs_do_not_run_together", 2);
    let mut run = source("l", layout).rekey(["k"]).run_in(connections).unwrap();
    // (Each process compares; a message is sent, so that both have by the time of the answer.)
    let row = vec![Event::start(0, [1i64.into(), 2i64.into(), 3i64.into()])];
    let error = run.push("l", 1, row).and_then(|()| run.finish().map(drop)).unwrap_err();
    assert_eq!((error.kind, &*error.message), (ErrorKind::Invalid, "process 1 runs another program"));
    assert!(error.detail.unwrap().contains("rekey by (k)"));
    drop(run);
    all_ended(children);
}

/// A pair of connected ends in one process.
fn pair() -> (Processes, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let hello = [u64::from_le_bytes(*b"anashrd1"), 1].map(u64::to_le_bytes).concat();
    std::io::Write::write_all(&mut stream, &hello).unwrap();
    (Processes::connect_with(0, &listener, &[address, address]).unwrap(), stream)
}

#[test]
fn runs_refuse_the_wrong_processes() {
    let (connections, _other) = pair();
    let error = source("l", Layout::flat(2)).run_in(connections).map(drop).unwrap_err();
    assert_eq!(error.message, "a layout of processes: 1, run in processes: 2");
    let (connections, _other) = pair();
    let error = source("l", Layout::grid(2, 1)).serve_in(connections).unwrap_err();
    assert_eq!(error.message, "process 0 is the client's");
    let error = Processes::connect(2, &[]).map(drop).unwrap_err();
    assert_eq!(error.message, "there is no process 2: there are 0");
}

/// Bytes that are no frames end a run with an error, whatever they announce.
#[test]
fn a_hostile_peer_is_an_error() {
    for bytes in
        [vec![1u8; 100], u64::MAX.to_le_bytes().repeat(6), message(5, 0, 0), message(0, 9, 0), message(0, 0, 9)]
    {
        let (connections, mut other) = pair();
        let mut run = source("l", Layout::grid(2, 1)).run_in(connections).unwrap();
        std::io::Write::write_all(&mut other, &bytes).unwrap();
        other.shutdown(std::net::Shutdown::Write).unwrap();
        // (Only the peer's end is read to here: the error may come before or after the push.)
        let row = || vec![Event::start(0, [1i64.into(), 2i64.into(), 3i64.into()])];
        let error = run.push("l", 1, row()).and_then(|()| run.finish().map(drop)).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Unavailable | ErrorKind::Internal), "{error:?}");
    }
}

/// A promise to a shard, for a step, of a sender.
fn message(target: u64, task: u64, from: u64) -> Vec<u8> {
    [48, 3, target, task, from, 0].into_iter().flat_map(u64::to_le_bytes).collect()
}
