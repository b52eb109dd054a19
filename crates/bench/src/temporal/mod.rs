//! The temporal algebra over events in memory, on one thread: million events per CPU-second.
//!
//! Sketch on paper: a filter reads a key and moves half of 32 bytes a row, 2 ns; a tumbling sum
//! reads time and value, 1 to 2 ns; a hash probe a row costs 5 to 10 ns, so the grouped window
//! takes 10 to 15, and the sliding one, which puts out nearly one row for each row in, 50; a join
//! and an anti-join probe the table for each row and walk some columns, 15, and a quarter or two
//! thirds of the rows come out, at 10 each.

mod cases;
mod endless;
mod latency;

use clap::Args;
use serde_json::json;

use crate::report::{self, Spread};
use cases::{CASES, Measured, measure};

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Events of each case.
    #[arg(long, default_value_t = 10_000_000)]
    events: usize,
    /// Runs of each case; the median counts.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Only the cases whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Instead, so many events through every verb, and the memory that is held on the way.
    #[arg(long)]
    endless: Option<usize>,
    /// Instead, throughput and latency of single rows, for several settings of how long they may
    /// wait; so many seconds each.
    #[arg(long)]
    latency_seconds: Option<f64>,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
}

/// Runs the benchmark.
///
/// # Errors
/// When the engine refuses something, or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    if let Some(events) = options.endless {
        return endless::run(events, options.only.as_deref());
    }
    if let Some(seconds) = options.latency_seconds {
        return latency::run(seconds);
    }
    let is_wanted = |case: &str| options.only.as_ref().is_none_or(|only| case.contains(only));
    let mut lines = Vec::new();
    for (case, target) in CASES.iter().filter(|(case, _)| is_wanted(case)) {
        let runs = (0..options.runs.max(1)).map(|_| measure(case, options.events).map_err(|error| error.to_string()));
        let runs: Vec<Measured> = runs.collect::<Result<_, _>>()?;
        let rate = Spread::of(runs.iter().map(|run| run.events as f64 / 1e6 / run.cpu_seconds));
        let wall = Spread::of(runs.iter().map(|run| run.wall_seconds));
        let line = json!({
            "bench": "temporal", "case": case, "unit": "million events per CPU-second", "events": options.events,
            "outputs": runs[0].outputs, "runs": runs.len(), "ours": rate.median, "ours_min": rate.min,
            "ours_max": rate.max, "wall_seconds": wall.median, "target": target, "ratio_to_target": target.map(|target| rate.median / target),
        });
        if options.json {
            println!("{line}");
        } else {
            println!(
                "{case:24} {:8.1} M ev/CPU-s ({:.1} to {:.1}), target {}, {} out",
                rate.median,
                rate.min,
                rate.max,
                target.map_or("none".to_owned(), |target| target.to_string()),
                runs[0].outputs
            );
        }
        lines.push(line);
    }
    let path = report::keep("temporal", &lines)?;
    if !options.json {
        println!("kept in {}", path.display());
    }
    Ok(())
}
