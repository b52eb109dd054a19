//! Views of each advertisement, counted by two processes of two threads, which share no memory.
//!
//! `cargo run -p anabranch-shards --example processes` starts the second process itself. On two
//! machines, each process is told the addresses of both.

use std::net::{SocketAddr, TcpListener};
use std::process::Command;

use anabranch_engine::Error;
use anabranch_engine::frame::{Event, col, count_rows, sum};
use anabranch_shards::{Layout, Move, Processes, Shards};
use arrow::datatypes::{DataType, Field, Schema};

const ROWS: i64 = 40_000;
const ADS: i64 = 100;

/// Counted in each thread, put together in each process, then among all: plan (c) of figure 1.
fn counts() -> Shards {
    let schema = Schema::new(vec![Field::new("ad", DataType::Int64, true)]);
    let views = Shards::source("views", schema, Layout::grid(2, 2)).rekey(["ad"]);
    let parts = views.query(|q| q.agg([count_rows().alias("n")])).redistribute(Move::LOCAL);
    let of_process = parts.query(|q| q.agg([sum(col("n")).alias("n")])).redistribute(Move::FLAT);
    of_process.query(|q| q.agg([sum(col("n")).alias("n")]))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let any: SocketAddr = "127.0.0.1:0".parse()?;
    if let Some(client) = std::env::args().nth(1) {
        // (Nothing connects to the process of the highest number: any port will do.)
        return Ok(counts().serve_in(Processes::connect(1, &[client.parse()?, any])?)?);
    }
    let listener = TcpListener::bind(any)?;
    let client = listener.local_addr()?;
    let mut second = Command::new(std::env::current_exe()?).arg(client.to_string()).spawn()?;
    count(Processes::connect_with(0, &listener, &[client, any])?)?;
    second.wait()?;
    Ok(())
}

fn count(processes: Processes) -> Result<(), Error> {
    let program = counts();
    program.check()?;
    let mut run = program.run_in(processes)?;
    for shard in 0..4 {
        let row = |at: i64| Event::start(0, [((at * 31 + shard as i64) % ADS).into()]);
        run.push("views", shard, (0..ROWS / 4).map(row).collect::<Vec<_>>())?;
    }
    let counts = run.finish()?.changes();
    let far: u64 = run.moved().iter().map(|(_, moved)| moved.rows_far).sum();
    println!("{ROWS} rows, {} counts; {far} rows moved between processes", counts.len());
    Ok(())
}
