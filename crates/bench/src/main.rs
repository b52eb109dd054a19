//! Benchmarks: `cargo run --release -p anabranch-bench -- NAME [options]`.
//!
//! Every benchmark prints a table of medians and spread, with `--json` one JSON object a line, and keeps a copy under
//! `bench/results/`. Each case runs in a process of its own, so that its peak of memory is its own.
#![forbid(unsafe_code)]

mod lookup;
mod measure;
mod report;
mod temporal;
mod tpch;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Benchmarks of Anabranch.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// The 22 queries of TPC-H as maintained views over rows that stream in.
    Tpch(tpch::Options),
    /// Rows by key, and new views over an index, in microseconds.
    Lookup(lookup::Options),
    /// The temporal algebra over events in memory, on one thread.
    Temporal(temporal::Options),
    /// One run of one query; `tpch` starts these.
    #[command(hide = true)]
    TpchCase(tpch::Case),
}

fn main() -> Result<(), String> {
    match Arguments::parse().benchmark {
        Benchmark::Tpch(options) => tpch::run(&options),
        Benchmark::Lookup(options) => lookup::run(&options),
        Benchmark::Temporal(options) => temporal::run(&options),
        Benchmark::TpchCase(case) => tpch::run_case(&case),
    }
}
