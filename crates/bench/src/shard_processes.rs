//! Movement between processes of one machine, over its loopback.
//!
//! Law of the measurement: the other processes are started first, and wait to be connected to. The
//! clock starts when all are connected, and stops when the client has all that comes out; so do
//! empty actions, whose time has the beginning of the run's threads in each process too. CPU
//! seconds are the client's process's alone. Measured, and of two cores: with more than two
//! processes only the empty action is.

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command};
use std::time::Instant;

use anabranch_batch::Batch;
use anabranch_engine::Error;
use anabranch_engine::frame::count_rows;
use anabranch_shards::{Layout, Move, Processes, Shards};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::shards::{Options, batches, keyed_rows};
use crate::measure::cpu_seconds;
use crate::report::Spread;

/// Empty actions that are timed.
const EMPTY_RUNS: usize = 20;

/// What the processes do.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Work {
    Empty,
    Redistribute,
    Reshard,
    Broadcast,
}

/// One process of a run; `shards` starts these.
#[derive(Args, Clone)]
pub struct Case {
    #[arg(long)]
    process: usize,
    #[arg(long, value_delimiter = ',')]
    addresses: Vec<SocketAddr>,
    #[arg(long)]
    work: Work,
}

/// Takes part in a run until the client drops it.
///
/// # Errors
/// When the client or another process does not answer.
pub fn run_case(case: &Case) -> Result<(), String> {
    let serve = || -> Result<(), Error> {
        let processes = Processes::connect(case.process, &case.addresses)?;
        program(case.work, case.addresses.len()).serve_in(processes)
    };
    serve().map_err(|error| error.to_string())
}

fn program(work: Work, processes: usize) -> Shards {
    let rows = keyed_rows(Layout::grid(processes, 1));
    match work {
        Work::Empty => rows.redistribute(Move::FLAT).query(|rows| rows.agg([count_rows()])),
        Work::Redistribute => rows.redistribute(Move::FLAT),
        Work::Reshard => rows.reshard(Move::FLAT),
        Work::Broadcast => rows.broadcast(Move::FLAT),
    }
}

/// Movements between two processes, and empty actions over two and four.
pub(super) fn between_processes(options: &Options) -> Result<Vec<Value>, String> {
    let given = batches(options.rows, options.batch, 2, 1 << 20);
    let mut lines = Vec::new();
    for work in [Work::Redistribute, Work::Reshard, Work::Broadcast] {
        let runs = (0..options.runs).map(|_| action(work, 2, &given)).collect::<Result<Vec<_>, String>>()?;
        let (wall, cpu) = (Spread::of(runs.iter().map(|run| run.0)), Spread::of(runs.iter().map(|run| run.1)));
        let copies = if matches!(work, Work::Broadcast) { 2 } else { 1 };
        let bytes = (options.rows * 2 * 8 * copies) as f64;
        println!(
            "{work:?}, 2 columns, batches of {}, 2 processes: {:.3} s ({:.3} .. {:.3}), {:.2} GB/s, {:.3} CPU s of one",
            options.batch,
            wall.median,
            wall.min,
            wall.max,
            bytes / wall.median / 1e9,
            cpu.median
        );
        lines.push(json!({
            "bench": "shards", "case": format!("{work:?}, 2 columns, batches of {}, 2 processes", options.batch),
            "rows": options.rows, "seconds": wall.median, "seconds_min": wall.min, "seconds_max": wall.max,
            "bytes_per_s": bytes / wall.median, "cpu_s_of_client": cpu.median,
        }));
    }
    for processes in [2, 4] {
        let runs = (0..EMPTY_RUNS).map(|_| action(Work::Empty, processes, &[])).collect::<Result<Vec<_>, String>>()?;
        let wall = Spread::of(runs.iter().map(|run| run.0 * 1e3));
        println!("empty action in {processes} processes: {:.2} ms ({:.2} .. {:.2})", wall.median, wall.min, wall.max);
        lines.push(json!({
            "bench": "shards", "case": format!("empty action, {processes} processes"), "ms_median": wall.median,
            "ms_min": wall.min, "ms_max": wall.max,
        }));
    }
    Ok(lines)
}

/// Wall and CPU seconds of one action.
fn action(work: Work, processes: usize, given: &[Batch]) -> Result<(f64, f64), String> {
    let fail = |error: std::io::Error| error.to_string();
    let listeners = (0..processes).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<Vec<_>, _>>();
    let mut listeners = listeners.map_err(fail)?;
    let addresses = listeners.iter().map(TcpListener::local_addr).collect::<Result<Vec<_>, _>>().map_err(fail)?;
    let own = listeners.swap_remove(0);
    // (The others bind these ports themselves.)
    drop(listeners);
    let mut others =
        (1..processes).map(|process| start(work, process, &addresses)).collect::<Result<Vec<Child>, String>>()?;
    let timed = || -> Result<(f64, f64), Error> {
        let connected = Processes::connect_with(0, &own, &addresses)?;
        let (begun, cpu) = (Instant::now(), cpu_seconds());
        let mut run = program(work, processes).run_in(connected)?;
        for (at, batch) in given.iter().enumerate() {
            run.push("rows", at % processes, batch.clone())?;
        }
        run.finish()?;
        Ok((begun.elapsed().as_secs_f64(), cpu_seconds() - cpu))
    };
    let taken = timed().map_err(|error| error.to_string());
    for other in &mut others {
        // (Those that have lost the client end by themselves.)
        if taken.is_err() {
            let _ = other.kill();
        }
        other.wait().map_err(fail)?;
    }
    taken
}

fn start(work: Work, process: usize, addresses: &[SocketAddr]) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| format!("where is this program? {error}"))?;
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let work = work.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let mut command = Command::new(program);
    command.args(["shards-process", "--process", &process.to_string(), "--work", &work]);
    command.args(["--addresses", &addresses.join(",")]);
    command.spawn().map_err(|error| format!("process {process} does not start: {error}"))
}
