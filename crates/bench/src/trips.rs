//! Trip grouping: seconds, distances, quality and balance against the number of branches, router by
//! router.
//!
//! Law of the measurement: a day of requests is made before the clock starts. *Program*: the
//! sharded program over all of them, begun, pushed and drained, in the shards that are said.
//! *Alone*: the same grouping without an engine, on one thread, branch after branch; its distances
//! are those of the program too. Savings are parts of those of one branch, which are told as they
//! are. All are measured, on made-up requests.
//!
//! Sketch on paper: a cycle of n waiting requests in one branch computes n distances for each that
//! expires; b even branches compute a b-th of that, so a day is b times cheaper at least.

use std::time::Instant;

use anabranch_linear_road::trips::alone::grouped;
use anabranch_linear_road::trips::router::{Change, Router, Rule};
use anabranch_linear_road::trips::{mean_savings, program, requests};
use anabranch_shards::Layout;
use clap::{Args, value_parser};
use serde_json::{Value, json};

use crate::report;

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Every so many-th request of a day of 251,000: each a table.
    #[arg(long, value_delimiter = ',', default_value = "16,8,4", value_parser = value_parser!(u32).range(1..))]
    load: Vec<u32>,
    /// Branches, each a line.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,16", value_parser = value_parser!(u32).range(1..))]
    branches: Vec<u32>,
    /// Shards of the program, a thread each.
    #[arg(long, default_value_t = 2)]
    shards: usize,
    /// Seed of the requests: a day of the city. Routers were set up with another day of it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Routers, as the paper calls them.
const ROUTERS: [(&str, Rule, Change); 5] = [
    ("AKD", Rule::Kd, Change::Adaptive),
    ("SKD", Rule::Kd, Change::Static),
    ("APQ", Rule::Quad, Change::Adaptive),
    ("SPQ", Rule::Quad, Change::Static),
    ("RR", Rule::RoundRobin, Change::Static),
];

/// Runs the benchmark.
///
/// # Errors
/// When the engine refuses something, or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    let sample = requests::day(options.seed.wrapping_add(76), 16);
    let mut lines = Vec::new();
    for &part in &options.load {
        let day = requests::day(options.seed, part);
        let router = |rule, change, branches: u32| Router::new(rule, change, branches as usize, &sample);
        let serial = grouped(&day, router(Rule::RoundRobin, Change::Static, 1), 1);
        let serial = (mean_savings(&serial.shares), serial.distances[0].max(1) as f64);
        println!("{} requests (1/{part}); one branch saves {:.3}", day.len(), serial.0);
        println!("branches  router  program s   alone s  distances x  busiest x   savings x  largest branch x");
        for &branches in &options.branches {
            for (name, rule, change) in ROUTERS.into_iter().take(if branches == 1 { 1 } else { ROUTERS.len() }) {
                let begun = Instant::now();
                let found = grouped(&day, router(rule, change, branches), branches as usize);
                let alone = begun.elapsed().as_secs_f64();
                let begun = Instant::now();
                let layout = Layout::flat(options.shards);
                let shares = program::shares(&day, router(rule, change, branches), branches, layout)
                    .map_err(|error| error.to_string())?;
                let took = begun.elapsed().as_secs_f64();
                if shares.len() != found.shares.len() {
                    return Err(format!("{name} in {branches} branches: the program has other shares"));
                }
                let line = json!({
                    "bench": "trips", "load": part, "requests": day.len(), "branches": branches, "router": name,
                    "shards": options.shards, "program_s": took, "alone_s": alone,
                    "distances": found.distances.iter().sum::<u64>() as f64 / serial.1,
                    "busiest_distances": found.distances.iter().max().copied().unwrap_or(0) as f64 / serial.1,
                    "savings": mean_savings(&found.shares) / serial.0, "serial_savings": serial.0,
                    "largest_branch": found.largest(),
                });
                print(&line);
                lines.push(line);
            }
        }
    }
    println!("kept in {}", report::keep("trips", &lines)?.display());
    Ok(())
}

fn print(line: &Value) {
    let number = |name: &str| line[name].as_f64().unwrap_or(0.0);
    println!(
        "{:>8}  {:>6}  {:>9.2}  {:>8.2}  {:>11.3}  {:>9.3}  {:>10.3}  {:>16.2}",
        line["branches"],
        line["router"].as_str().unwrap_or_default(),
        number("program_s"),
        number("alone_s"),
        number("distances"),
        number("busiest_distances"),
        number("savings"),
        number("largest_branch"),
    );
}
