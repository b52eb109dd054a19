//! Linear Road: rows a second, CPU a row and modelled lag by number of expressways; the generator
//! and the driver alone beside it.
//!
//! Modes as docs/linear_road.md names them. *Replay*: each second is handed over when the one
//! before has answered; its wall time includes the making of its rows. *Tail*: minutes pass unseen
//! before (traffic is there, state is not), then the replay: a regression test, never a rating.
//! *Burst*: random bursts of 5 to 15 s are handed over at once, and lags count from a second's own
//! time. *Real*: seconds are handed over when the clock says so, and responses are measured. A
//! pause of the system may be put in (statement R8): the modelled lag is then held against a real
//! one.
//!
//! Sketch on paper: a row is 40 bytes in ten columns; it is copied five times (made, filtered,
//! routed, gathered, queued) at some 20 ns each, looked up in one hash table (a cache miss of 100
//! ns where the vehicles of an expressway leave the cache), and a quarter of the rows gives an
//! answer of 56 bytes, copied three times: 300 ns.

use std::time::{Duration, Instant};

use anabranch_linear_road::generator::Traffic;
use anabranch_linear_road::program::KeptRows;
use anabranch_linear_road::random::Random;
use anabranch_linear_road::reference::Reference;
use anabranch_linear_road::response::{Lag, Responses};
use anabranch_linear_road::row::Second;
use anabranch_linear_road::system::{Setup, System, read};
use anabranch_linear_road::validate::compare;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::measure::{cpu_seconds, peak_mb};
use crate::report;

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Expressways, each number a run.
    #[arg(long, value_delimiter = ',', default_value = "1,8")]
    expressways: Vec<u32>,
    /// Seconds of traffic that are handed over.
    #[arg(long, default_value_t = 600)]
    seconds: u32,
    /// Seconds of traffic that pass unseen before.
    #[arg(long, default_value_t = 0)]
    skip: u32,
    /// Shards, a thread each.
    #[arg(long, default_value_t = 2)]
    shards: usize,
    /// How seconds are handed over.
    #[arg(long, value_enum, default_value_t = Mode::Replay)]
    mode: Mode,
    /// Accounts by expressway instead of by vehicle.
    #[arg(long)]
    by_expressway: bool,
    /// Seed of the traffic.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A pause of the system, as `SECOND:LENGTH` in seconds: what its lag does is told.
    #[arg(long, value_parser = pause)]
    pause: Option<(u32, u32)>,
    /// Compare all answers with the reference, outside of what is timed.
    #[arg(long)]
    check: bool,
}

/// Seconds whose lags are told: one before a pause, and what follows.
const TOLD_SECONDS: u32 = 12;

fn pause(text: &str) -> Result<(u32, u32), String> {
    let parsed = text.split_once(':').and_then(|(at, length)| Some((at.parse().ok()?, length.parse().ok()?)));
    parsed.ok_or_else(|| format!("\"{text}\" is no pause: say SECOND:LENGTH, such as 300:3"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    Replay,
    Burst,
    Real,
}

/// Runs the benchmark.
///
/// # Errors
/// When an answer is wrong, or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    let mut lines = Vec::new();
    for &expressways in &options.expressways {
        let line = run_one(options, expressways)?;
        println!("{line}");
        lines.push(line);
    }
    let path = report::keep("linear-road", &lines)?;
    println!("kept in {}", path.display());
    Ok(())
}

fn traffic(options: &Options, expressways: u32) -> Traffic {
    Traffic { skip: options.skip, ..Traffic::new(2 * expressways, options.seconds, options.seed) }
}

fn run_one(options: &Options, expressways: u32) -> Result<Value, String> {
    let driver_ns = driver_alone(options, expressways);
    let traffic = traffic(options, expressways);
    let history = traffic.history();
    let keep = if options.by_expressway { KeptRows::ByExpressway } else { KeptRows::ByVehicle };
    let setup = Setup { keep, ..Setup::new(expressways, options.shards) };
    let fail = |error: anabranch_engine::Error| error.to_string();
    let mut system = System::start(setup, &history).map_err(fail)?;
    let mut judge = options.check.then(|| (Reference::new(history.clone()), Vec::new(), Vec::new()));
    let mut generator = traffic.start();
    let mut random = Random::new(options.seed);
    let (mut lag, mut responses, mut lag_max) = (Lag::default(), Responses::default(), 0f64);
    let (mut rows, mut cpu, mut wall, mut last_wall) = (0u64, 0f64, 0f64, 0f64);
    let mut told = Vec::new();
    let last_from = options.seconds.saturating_sub(600);
    let begun = Instant::now();
    loop {
        let burst = if options.mode == Mode::Burst { 5 + random.below(11) } else { 1 };
        let (cpu_before, at) = (cpu_seconds(), Instant::now());
        let mut seconds: Vec<Second> = Vec::new();
        for _ in 0..burst {
            let mut second = Second::default();
            if !generator.fill(&mut second) {
                break;
            }
            seconds.push(second);
        }
        let Some(last) = seconds.last() else { break };
        let time = last.time;
        let made = at.elapsed();
        if options.mode == Mode::Real {
            std::thread::sleep(Duration::from_secs(u64::from(time) + 1).saturating_sub(begun.elapsed()));
        }
        let at = Instant::now();
        if let Some((_, length)) = options.pause.filter(|(second, _)| seconds.iter().any(|one| one.time == *second)) {
            std::thread::sleep(Duration::from_secs(u64::from(length)));
        }
        let batches = match seconds.as_slice() {
            [second] => system.take(second).map_err(fail)?,
            seconds => system.take_all(seconds).map_err(fail)?,
        };
        let took = (made + at.elapsed()).as_secs_f64();
        cpu += cpu_seconds() - cpu_before;
        wall += took;
        last_wall += if time >= last_from { took } else { 0.0 };
        let now = match options.mode {
            Mode::Real => begun.elapsed().as_secs_f64() - f64::from(time),
            Mode::Replay | Mode::Burst => lag.after(time, took),
        };
        lag_max = lag_max.max(now);
        if options.pause.is_some_and(|(second, _)| (second..second.saturating_add(TOLD_SECONDS)).contains(&(time + 1)))
        {
            told.push(now);
        }
        responses.add(now, batches.iter().map(|batch| batch.len() as u64).sum());
        rows += seconds.iter().map(|second| second.rows.len() as u64).sum::<u64>();
        if let Some((reference, expected, given)) = &mut judge {
            seconds.iter().for_each(|second| reference.second(second, expected));
            given.extend(read(&batches).map_err(fail)?);
        }
    }
    if let Some((_, expected, given)) = judge {
        let verdict = compare(&expected, given.into_iter().map(|answer| (answer, None)));
        if !verdict.is_right() {
            return Err(verdict.to_string());
        }
    }
    let [p50, p99, p999] = responses.quantiles([0.5, 0.99, 0.999]);
    let cars = generator.cars();
    Ok(json!({
        "mode": format!("{:?}{}", options.mode, if options.skip > 0 { ", tail" } else { "" }).to_lowercase(),
        "expressways": expressways, "seconds": options.seconds, "skipped": options.skip, "shards": options.shards,
        "accounts": format!("{keep:?}"), "rows": rows, "rows_a_second": rows as f64 / wall,
        "cpu_ns_a_row": cpu * 1e9 / rows as f64, "driver_alone_ns_a_row": driver_ns,
        "speed_up": f64::from(options.seconds) / wall, "speed_up_last_ten_minutes": f64::from(options.seconds - last_from) / last_wall.max(1e-9),
        "paused": options.pause, "lags_from_before_the_pause_s": told,
        "lag_max_s": lag_max, "lag_p50_s": p50, "lag_p99_s": p99, "lag_p999_s": p999,
        "answers": system.counts().answers, "cars_at_the_end": cars, "peak_mb": peak_mb(), "checked": options.check,
    }))
}

/// CPU of making the rows, and nothing else.
fn driver_alone(options: &Options, expressways: u32) -> f64 {
    let mut generator = traffic(options, expressways).start();
    let (mut second, mut rows, before) = (Second::default(), 0, cpu_seconds());
    while generator.fill(&mut second) {
        rows += std::hint::black_box(&second.rows).len();
    }
    (cpu_seconds() - before) * 1e9 / rows.max(1) as f64
}
