//! Ours beside the peer: the same case, in strictly alternating processes, and the ratio of their
//! figures.
//!
//! Law: both sides get the same generated rows in the same batches, one worker each, on one thread;
//! each process measures one side. What is compared is CPU seconds of that thread, so that a busy
//! machine disturbs both alike; latencies of single steps are CPU time too.

use std::collections::BTreeMap;
use std::process::Command;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::report::{self, Spread};

/// Whose engine a case runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// Anabranch, at the level of its operators.
    Ours,
    /// `differential-dataflow`, its default arrangements.
    Peer,
    /// `differential-dataflow` with arrangements of sorted vectors.
    PeerVec,
}

/// Options that all comparisons have.
#[derive(Args, Clone)]
pub struct Common {
    /// Runs of each case and side.
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
    /// One side only.
    #[arg(long)]
    pub only: Option<Side>,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// What one process found out: figures by case, then name.
pub type Figures = BTreeMap<String, BTreeMap<String, f64>>;

/// A case to be run on each side.
pub struct Case {
    /// The hidden command that runs it, with its arguments but `--side`.
    pub arguments: Vec<String>,
    /// Who takes part; ours first.
    pub sides: Vec<Side>,
}

/// Runs all cases, prints and keeps the comparison.
///
/// # Errors
/// When a process fails, or results cannot be kept.
pub fn run(bench: &str, common: &Common, cases: &[Case]) -> Result<(), String> {
    if !common.json {
        println!("{bench}: medians (least .. most) of {} run(s); ratio is ours to peer", common.runs);
    }
    let mut lines = Vec::new();
    for case in cases {
        let sides: Vec<Side> =
            case.sides.iter().copied().filter(|side| common.only.is_none_or(|only| only == *side)).collect();
        let mut runs: Vec<Vec<Figures>> = vec![Vec::new(); sides.len()];
        for _ in 0..common.runs {
            for (side, runs) in sides.iter().zip(&mut runs) {
                runs.push(start(&case.arguments, *side)?);
            }
        }
        for line in summaries(bench, &sides, &runs) {
            check_equal(&line)?;
            if common.json {
                println!("{line}");
            } else {
                print_row(&line);
            }
            lines.push(line);
        }
    }
    let path = report::keep(bench, &lines)?;
    if !common.json {
        println!("kept in {}", path.display());
    }
    Ok(())
}

/// Prints what a case found out, for the process that started it.
pub fn tell(figures: &Figures) {
    println!("{}", json!(figures));
}

fn start(arguments: &[String], side: Side) -> Result<Figures, String> {
    let program = std::env::current_exe().map_err(|error| format!("where is this program? {error}"))?;
    let output = Command::new(program)
        .args(arguments)
        .args(["--side", &name(side)])
        .env("MIMALLOC_PURGE_DELAY", "-1")
        .output()
        .map_err(|error| format!("cannot start a run: {error}"))?;
    if !output.status.success() {
        return Err(format!("{} failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{} printed no result: {error}", arguments.join(" ")))
}

fn name(side: Side) -> String {
    side.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// One line a case and figure.
fn summaries(bench: &str, sides: &[Side], runs: &[Vec<Figures>]) -> Vec<Value> {
    let Some(first) = runs.first().and_then(|runs| runs.first()) else { return Vec::new() };
    let figures = first.iter().flat_map(|(case, figures)| figures.keys().map(move |figure| (case, figure)));
    let line = |(case, figure): (&String, &String)| {
        let spread = |runs: &Vec<Figures>| {
            let values: Vec<f64> = runs.iter().filter_map(|run| run.get(case)?.get(figure).copied()).collect();
            (!values.is_empty()).then(|| Spread::of(values))
        };
        let mut line = json!({"bench": bench, "case": case, "figure": figure});
        let spreads: Vec<Option<Spread>> = runs.iter().map(spread).collect();
        for (side, spread) in sides.iter().zip(&spreads) {
            if let Some(spread) = spread {
                let side = name(*side);
                line[side.as_str()] = json!(spread.median);
                line[format!("{side}_min")] = json!(spread.min);
                line[format!("{side}_max")] = json!(spread.max);
            }
        }
        if let [Some(ours), Some(peer), ..] = spreads.as_slice() {
            line["ratio"] = json!(ours.median / peer.median);
        }
        line
    };
    figures.map(line).collect()
}

/// A figure that is a checksum of an answer is the same on both sides.
fn check_equal(line: &Value) -> Result<(), String> {
    let is_checksum = line["figure"].as_str().is_some_and(|figure| figure.starts_with("checksum"));
    match (line["ours"].as_f64(), line["peer"].as_f64()) {
        (Some(ours), Some(peer)) if is_checksum && ours != peer => {
            Err(format!("the sides do not give the same answer: {line}"))
        }
        _ => Ok(()),
    }
}

fn print_row(line: &Value) {
    let side = |name: &str| {
        let at = |suffix: &str| line[format!("{name}{suffix}")].as_f64();
        match (at(""), at("_min"), at("_max")) {
            (Some(median), Some(min), Some(max)) => {
                format!("{name} {:>8} ({} .. {})", human(median), human(min), human(max))
            }
            _ => String::new(),
        }
    };
    let ratio = line["ratio"].as_f64().map_or(String::new(), |ratio| format!("ratio {ratio:.2}"));
    let text = |name: &str| line[name].as_str().unwrap_or_default();
    println!(
        "{:34} {:26} {:34} {:34} {ratio:12} {}",
        text("case"),
        text("figure"),
        side("ours"),
        side("peer"),
        side("peer-vec")
    );
}

fn human(value: f64) -> String {
    match value.abs() {
        size if size >= 1e9 => format!("{:.2}G", value / 1e9),
        size if size >= 1e6 => format!("{:.2}M", value / 1e6),
        size if size >= 1e4 => format!("{:.1}K", value / 1e3),
        _ => format!("{value:.1}"),
    }
}

/// Median, 99th percentile and greatest of microseconds, under these names.
pub fn latencies(micros: &mut [f64], figures: &mut BTreeMap<String, f64>, what: &str) {
    micros.sort_by(f64::total_cmp);
    for (name, share) in [("median", 0.5), ("p99", 0.99), ("worst", 1.0)] {
        let value = micros[((micros.len() - 1) as f64 * share) as usize];
        figures.insert(format!("{what} {name} µs"), value);
    }
}
