//! R4 in two processes: the program's answers are those of one shard. The test starts its own
//! binary again, with itself as the only test: there, the variable [`MEMBER`] has the addresses of
//! both.

use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};

use anabranch_linear_road::answer::TollAnswer;
use anabranch_linear_road::program::KeptRows;
use anabranch_linear_road::row::Second;
use anabranch_linear_road::system::{Setup, System};
use anabranch_shards::{Layout, Processes};

use crate::program::{dense, given};

/// What the second process is told.
const MEMBER: &str = "ANABRANCH_TEST_LINEAR_ROAD";

/// How many seconds are handed over at once.
const SECONDS: usize = 10;

#[test]
fn r4_answers_of_two_processes_are_those_of_one_shard() {
    answers_are_those_of_one_shard("r4_answers_of_two_processes_are_those_of_one_shard", KeptRows::ByVehicle);
}

#[test]
fn r4_balances_may_lie_in_either_process() {
    answers_are_those_of_one_shard("r4_balances_may_lie_in_either_process", KeptRows::ByExpressway);
}

fn answers_are_those_of_one_shard(test: &str, keep: KeptRows) {
    let setup = Setup { keep, layout: Layout::grid(2, 2), ..Setup::new(2, 4) };
    if let Ok(told) = std::env::var(MEMBER) {
        let addresses: Vec<SocketAddr> = told.split(',').map(|address| address.parse().unwrap()).collect();
        return System::serve_in(setup, Processes::connect(1, &addresses).unwrap()).unwrap();
    }
    let traffic = dense(3, 180, 22);
    let (seconds, history) = (traffic.start().collect::<Vec<Second>>(), traffic.history());
    let expected = given(Setup { keep, ..Setup::new(2, 1) }, &seconds, &history);
    assert!(expected.len() > 1_000, "{}", expected.len());

    let listeners = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let addresses = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
    let [own, other] = listeners;
    drop(other);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([&format!("processes::{test}"), "--exact"]);
    command.env(MEMBER, addresses.map(|address| address.to_string()).join(","));
    let mut member = command.stdout(Stdio::null()).spawn().unwrap();

    let connections = Processes::connect_with(0, &own, &addresses).unwrap();
    let mut system = System::start_in(setup, &history, connections).unwrap();
    let pieces = seconds.chunks(SECONDS).flat_map(|seconds| system.answer_all(seconds).unwrap());
    let mut answers: Vec<TollAnswer> = pieces.collect();
    answers.sort_unstable();
    let far: u64 = system.moved().iter().map(|(_, moved)| moved.rows_far).sum();
    drop(system);
    assert!(member.wait().unwrap().success());
    assert!(far > 1_000, "{far} rows crossed between the processes");
    assert!(answers == expected, "{} answers, {} expected", answers.len(), expected.len());
}
