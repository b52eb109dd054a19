//! Throughput and latency of single rows: a filter and a grouped window, rows pushed one at a time,
//! each with a promise of time, at several settings of how long they may wait.
//!
//! The row that moves time past a window's end is the one whose result is timed: from before it is
//! pushed to after its result is drained. The caller asks for results whenever the input hands on
//! rows, as a loop around a live input does. One thread; the clock is the machine's.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anabranch_batch::{Batch, Diffs, Times, Until};
use anabranch_engine::frame::{Events, Frame, Item, col, count_rows, lit, sum};
use anabranch_engine::{Error, Options, Session};
use serde_json::{Value, json};

use super::cases::{BATCH_ROWS, columns, schema};
use crate::measure::thread_seconds;
use crate::plot::{Line, Scale, plot};
use crate::report;

/// Microseconds that rows may wait.
const SETTINGS: [u64; 7] = [0, 100, 1_000, 10_000, 100_000, 300_000, 1_000_000];
/// Rows of a window.
const ROWS_PER_TICK: usize = 20;

/// Measures each setting for so many seconds.
pub(super) fn run(seconds: f64) -> Result<(), String> {
    let mut lines = Vec::new();
    for micros in SETTINGS {
        let line = measure(micros, seconds).map_err(|error| error.to_string())?;
        let number = |name: &str| line[name].as_f64().unwrap_or_default();
        println!(
            "latency {:>8} us: {:8.0} rows/CPU-s, result after p50 {:9.1} us, p99 {:9.1} us ({} windows)",
            micros,
            number("rows_per_cpu_second"),
            number("p50_us"),
            number("p99_us"),
            line["windows"]
        );
        lines.push(line);
    }
    println!("kept in {}", report::keep("temporal-latency", &lines)?.display());
    let of = |x: &str, y: &str| -> Vec<(f64, f64)> {
        let mut points: Vec<(f64, f64)> = lines
            .iter()
            .map(|line| (line[x].as_f64().unwrap_or_default(), line[y].as_f64().unwrap_or_default()))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let curves = [
        Line { name: "p50", points: of("rows_per_cpu_second", "p50_us") },
        Line { name: "p99", points: of("rows_per_cpu_second", "p99_us") },
    ];
    let svg = plot("rows a CPU-second", Scale::Logarithmic, "microseconds to the result", Scale::Logarithmic, &curves);
    println!("kept in {}", report::keep_picture("temporal-latency", &svg)?.display());
    Ok(())
}

fn frame(latency: Duration) -> Frame {
    let events = Events::input("in", schema()).latency(latency).frame();
    let windows = events.filter(col("key").lt(lit(900))).tumbling(1);
    windows.group_by([col("key")]).agg([sum(col("value")), count_rows()])
}

fn measure(micros: u64, seconds: f64) -> Result<Value, Error> {
    let mut session = Session::new(Options { workers: 0, ..Options::default() })?;
    let frame = frame(Duration::from_micros(micros));
    let mut run = session.start(&frame)?;
    let rows = Batch::new(columns(1), Times::Constant(0), Diffs::Constant(1));
    let mut closed: VecDeque<(i64, Instant)> = VecDeque::new();
    let mut waits: Vec<f64> = Vec::new();
    let (mut n_rows, mut last_drain) = (0usize, Instant::now());
    let (began, cpu) = (Instant::now(), thread_seconds());
    while began.elapsed().as_secs_f64() < seconds {
        let tick = 1 + (n_rows / ROWS_PER_TICK) as i64;
        let row = rows.slice(n_rows % BATCH_ROWS, 1).with_times(Times::Constant(tick)).with_until(Until::Duration(1));
        if n_rows % ROWS_PER_TICK == 0 {
            // The window of the tick before is over with this row.
            closed.push_back((tick - 1, Instant::now()));
        }
        run.push("in", row)?;
        run.advance("in", tick)?;
        n_rows += 1;
        let is_closing = n_rows % ROWS_PER_TICK == 1;
        if (micros == 0 && is_closing) || (micros > 0 && last_drain.elapsed().as_micros() as u64 >= micros / 4 + 20) {
            last_drain = Instant::now();
            take(&mut closed, &mut waits, run.drain()?);
        }
    }
    let (cpu, wall) = (thread_seconds() - cpu, began.elapsed().as_secs_f64());
    waits.sort_by(f64::total_cmp);
    let part =
        |part: f64| waits.get(((waits.len() as f64 * part) as usize).min(waits.len().saturating_sub(1))).copied();
    Ok(json!({
        "bench": "temporal-latency", "latency_us": micros, "rows": n_rows, "windows": waits.len(),
        "rows_per_cpu_second": n_rows as f64 / cpu, "rows_per_second": n_rows as f64 / wall,
        "p50_us": part(0.5), "p99_us": part(0.99), "max_us": waits.last(),
    }))
}

/// Notes how long the windows took whose results are among the items.
fn take(closed: &mut VecDeque<(i64, Instant)>, waits: &mut Vec<f64>, items: Vec<Item>) {
    let now = Instant::now();
    let latest = items.iter().filter_map(|item| match item {
        Item::Rows(batch) if !batch.is_empty() => Some(batch.times().max()),
        _ => None,
    });
    let Some(latest) = latest.max() else { return };
    while let Some((tick, pushed)) = closed.pop_front() {
        if tick > latest {
            closed.push_front((tick, pushed));
            return;
        }
        waits.push(now.duration_since(pushed).as_secs_f64() * 1e6);
    }
}
