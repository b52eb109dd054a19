//! Benchmarks: `cargo run --release -p anabranch-bench -- NAME [options]`.
//!
//! Every benchmark prints a table of medians and spread, with `--json` one JSON object a line, and
//! keeps a copy under `bench/results/`. Each case runs in a process of its own, so that its peak of
//! memory is its own.

mod allocator;
mod append;
mod arrange;
mod codecs;
mod compare;
mod dashboard;
mod graphs;
mod install;
mod join;
mod linear_road;
mod lookup;
mod makespan;
mod measure;
mod nexmark;
mod ours;
mod peer;
mod plot;
mod recursion;
mod reduce;
mod report;
mod rows;
mod rows_file;
mod serve;
mod shard_processes;
mod shards;
mod split;
mod standing;
mod temporal;
mod tpch;
mod trips;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

/// Benchmarks of Anabranch.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Rows arranged by key, beside the peer.
    Arrange(arrange::Options),
    /// Changed rows joined with an arrangement, beside the peer.
    Join(join::Options),
    /// Aggregates by key, beside the peer.
    Reduce(reduce::Options),
    /// New dataflows on an arrangement that exists, beside the peer.
    Install(install::Options),
    /// The 22 queries of TPC-H as maintained views over rows that stream in.
    Tpch(tpch::Options),
    /// The queries of Nexmark over streams of an auction house, beside DuckDB.
    Nexmark(nexmark::Options),
    /// One run of one query; `nexmark` starts these.
    #[command(hide = true)]
    NexmarkCase(nexmark::Case),
    /// Rows that come into a table, value by value and as text.
    Append(append::Options),
    /// Rows by key, and new views over an index, in microseconds.
    Lookup(lookup::Options),
    /// Views that come and go while the relations load, with sharing and without.
    Dashboard(dashboard::Options),
    /// The Linear Road benchmark: rows a second, CPU a row, lag by number of expressways.
    LinearRoad(linear_road::Options),
    /// Questions about a graph that changes, with parameters that come and go, beside the peer.
    Graphs(graphs::Options),
    /// One run on one side; `graphs` starts these.
    #[command(hide = true)]
    GraphsCase(graphs::Case),
    /// Recursive queries kept current, beside the peer.
    Recursion(recursion::Options),
    /// One run on one side; `recursion` starts these.
    #[command(hide = true)]
    RecursionCase(recursion::Case),
    /// One run; `dashboard` starts these.
    #[command(hide = true)]
    DashboardCase(dashboard::Case),
    /// One run on one side; `arrange` starts these.
    #[command(hide = true)]
    ArrangeCase(arrange::Case),
    /// One run on one side; `join` starts these.
    #[command(hide = true)]
    JoinCase(join::Case),
    /// One run on one side; `reduce` starts these.
    #[command(hide = true)]
    ReduceCase(reduce::Case),
    /// One run on one side; `install` starts these.
    #[command(hide = true)]
    InstallCase(install::Case),
    /// The server, beside PostgreSQL 15: look-ups, INSERTs, views, subscribers, opening.
    Serve(serve::Options),
    /// Sharded streams: movement beside a copy of memory, plans of figures 1 and 4.
    Shards(shards::Options),
    /// One process of a run; `shards` starts these.
    #[command(hide = true)]
    ShardsProcess(shard_processes::Case),
    /// Splitting: rate and CPU by width and plan; the constants of the model of costs.
    Split(split::Options),
    /// Trip grouping: seconds, distances, quality and balance against the number of branches.
    Trips(trips::Options),
    /// The temporal algebra over events in memory, on one thread.
    Temporal(temporal::Options),
    /// One run of one query; `tpch` starts these.
    #[command(hide = true)]
    TpchCase(tpch::Case),
}

fn main() -> Result<(), String> {
    match Arguments::parse().benchmark {
        Benchmark::Serve(options) => serve::run(&options),
        Benchmark::Shards(options) => shards::run(&options),
        Benchmark::ShardsProcess(case) => shard_processes::run_case(&case),
        Benchmark::Split(options) => split::run(&options),
        Benchmark::Trips(options) => trips::run(&options),
        Benchmark::Tpch(options) => tpch::run(&options),
        Benchmark::Nexmark(options) => nexmark::run(&options),
        Benchmark::NexmarkCase(case) => nexmark::run_case(&case),
        Benchmark::Append(options) => append::run(&options),
        Benchmark::Lookup(options) => lookup::run(&options),
        Benchmark::Dashboard(options) => dashboard::run(&options),
        Benchmark::LinearRoad(options) => linear_road::run(&options),
        Benchmark::Graphs(options) => graphs::run(&options),
        Benchmark::GraphsCase(case) => graphs::run_case(&case),
        Benchmark::Recursion(options) => recursion::run(&options),
        Benchmark::RecursionCase(case) => recursion::run_case(&case),
        Benchmark::DashboardCase(case) => dashboard::run_case(&case),
        Benchmark::Arrange(options) => arrange::run(&options),
        Benchmark::Join(options) => join::run(&options),
        Benchmark::Reduce(options) => reduce::run(&options),
        Benchmark::Install(options) => install::run(&options),
        Benchmark::Temporal(options) => temporal::run(&options),
        Benchmark::TpchCase(case) => tpch::run_case(&case),
        Benchmark::ArrangeCase(case) => {
            arrange::run_case(&case);
            Ok(())
        }
        Benchmark::JoinCase(case) => {
            join::run_case(&case);
            Ok(())
        }
        Benchmark::ReduceCase(case) => {
            reduce::run_case(&case);
            Ok(())
        }
        Benchmark::InstallCase(case) => {
            install::run_case(&case);
            Ok(())
        }
    }
}
