//! Aggregates by key: count, sum, min, distinct and the least ten, 5 million updates over a million
//! keys.
//!
//! Law of the measurement: insertions only, and either side could as well retract. From the pushed
//! batch to the output stream, whose rows are counted; rows are generated outside the clock, a few
//! batches ahead. With times by row every update has a time of its own, and the frontier moves once
//! a batch. Live bytes are of everything the dataflow keeps.
//!
//! Sketch on paper: count and sum touch one slot of the group table and one accumulator a row, two
//! cache misses overlapped: 80 ns a row at 1e5 a batch; a batch of 1e3 adds some 5 µs of
//! scheduling. min and the least ten keep all values in order: what arranging costs, and a walk a
//! group.

use anabranch_spec::order::SortKey;
use anabranch_spec::top_k::{RankedBy, TopK};
use std::collections::BTreeMap;

use anabranch_arrangement::MergeEffort;
use anabranch_batch::order::Direction;
use anabranch_batch::{Batch, END, Time};
use anabranch_flow::tactic::Timed;
use anabranch_operators::aggregate::{Aggregate, AggregateSpec};
use anabranch_operators::ordered::top_k::{TopKSpec, TopKTactic};
use anabranch_operators::relational::set_operation::{Operation, SetOperation};
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use arrow::datatypes::DataType;
use clap::{Args, ValueEnum};

use crate::compare::{self, Common, Figures, Side};
use crate::rows::{Pairs, TimesOf, batch, rounds_ahead, ticks};
use crate::{allocator, measure, ours, peer};

/// What is computed for each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Verb {
    Count,
    Sum,
    Min,
    Distinct,
    Top10,
}

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Updates in all.
    #[arg(long, default_value_t = 5_000_000)]
    rows: usize,
    /// Keys.
    #[arg(long, default_value_t = 1_000_000)]
    keys: u64,
    /// Verbs to run; all unless given.
    #[arg(long, value_delimiter = ',')]
    verb: Vec<Verb>,
    /// Updates of a batch.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000, 1_000_000])]
    batch: Vec<usize>,
    /// Which times rows have; both unless given.
    #[arg(long)]
    times: Option<TimesOf>,
    #[command(flatten)]
    common: Common,
}

/// One run on one side, in this process.
#[derive(Args, Clone)]
pub struct Case {
    #[arg(long)]
    pub rows: usize,
    #[arg(long)]
    pub keys: u64,
    #[arg(long)]
    pub verb: Verb,
    #[arg(long)]
    pub batch: usize,
    #[arg(long)]
    pub times: TimesOf,
    #[arg(long)]
    pub side: Side,
}

/// Runs the benchmark.
///
/// # Errors
/// When a run fails or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    let verbs = if options.verb.is_empty() { Verb::value_variants() } else { &options.verb };
    let times = options.times.map_or(vec![TimesOf::Batch, TimesOf::Row], |times| vec![times]);
    let mut cases = Vec::new();
    for &verb in verbs {
        for &times in &times {
            for &batch in &options.batch {
                let arguments = ["reduce-case", "--verb", &name(verb), "--times", &name(times)];
                let numbers = [("--rows", options.rows), ("--keys", options.keys as usize), ("--batch", batch)];
                let numbers = numbers.iter().flat_map(|(option, number)| [(*option).to_owned(), number.to_string()]);
                let arguments = arguments.into_iter().map(str::to_owned).chain(numbers).collect();
                cases.push(compare::Case { arguments, sides: vec![Side::Ours, Side::Peer] });
            }
        }
    }
    compare::run("reduce", &options.common, &cases)
}

/// Runs one case and prints its figures.
pub fn run_case(case: &Case) {
    allocator::count();
    compare::tell(&match case.side {
        Side::Ours => run_ours(case),
        Side::Peer | Side::PeerVec => peer::reduce::run(case),
    });
}

fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Feeds a case's batches, made by `make` outside the clock and pushed by `round`, and sums up.
pub fn feed<B>(
    case: &Case,
    mut make: impl FnMut(&[(u64, u64)], u64) -> B,
    mut round: impl FnMut(B, u64),
) -> BTreeMap<String, f64> {
    allocator::reset_peak();
    let (base, own) = (allocator::live_bytes(), allocator::own_bytes());
    let mut pairs = Pairs::new(case.keys, u64::MAX >> 1);
    let (mut time, mut left, mut micros) = (0, case.rows, Vec::new());
    while left > 0 {
        let ahead: Vec<(B, u64)> = (0..rounds_ahead(case.batch))
            .map_while(|_| {
                let rows = pairs.take_rows(case.batch.min(left));
                left -= rows.len();
                let start = time;
                time += ticks(rows.len(), case.times);
                (!rows.is_empty()).then(|| (make(&rows, start), time))
            })
            .collect();
        for (batch, upper) in ahead {
            let start = measure::thread_seconds();
            round(batch, upper);
            micros.push((measure::thread_seconds() - start) * 1e6);
        }
    }
    let seconds = micros.iter().sum::<f64>() / 1e6;
    let mut figures = BTreeMap::from([
        ("updates/CPU s".to_owned(), case.rows as f64 / seconds),
        ("live MB".to_owned(), (allocator::live_bytes() - base) / 1e6),
        ("peak MB".to_owned(), (allocator::peak_bytes() - own) / 1e6),
    ]);
    compare::latencies(&mut micros, &mut figures, "round");
    figures
}

/// The figures under the name of their case.
pub fn named(case: &Case, figures: BTreeMap<String, f64>) -> Figures {
    let times = if case.times == TimesOf::Row { ", a time a row" } else { "" };
    Figures::from([(format!("{}, batches of {:07}{times}", name(case.verb), case.batch), figures)])
}

fn run_ours(case: &Case) -> Figures {
    let case = case.clone();
    ours::directly(move |worker| {
        let mut input = ours::Input::new(if matches!(case.verb, Verb::Count | Verb::Distinct) { 1 } else { 2 });
        let ((probe, rows_out), _) = worker.dataflow("measured", |scope| {
            let rows = input.open(scope, ours::BEFORE);
            ours::count_rows(rows.then_timed("reduce", vec![0], tactic(case.verb), None))
        });
        let make = |rows: &[(u64, u64)], start: u64| {
            let batch = batch(rows, start as Time, case.times);
            match case.verb {
                Verb::Count | Verb::Distinct => batch.project(&[0]),
                Verb::Sum | Verb::Min | Verb::Top10 => batch,
            }
        };
        let mut figures = feed(&case, make, |batch: Batch, upper| {
            let upper = upper as Time;
            input.push(&batch, upper);
            drop(batch);
            worker.step_while(|| probe.less_than(&upper));
        });
        figures.insert("rows out".to_owned(), rows_out.get() as f64);
        input.advance(END);
        named(&case, figures)
    })
}

fn tactic(verb: Verb) -> Box<dyn Timed> {
    let effort = MergeEffort::default();
    let aggregate = |function, argument, output_type: DataType| -> Box<dyn Timed> {
        let call = AggregateCall { function, argument, distinct: false, filter: None, order: Vec::new(), output_type };
        let input_types = vec![DataType::UInt64; if argument.is_some() { 2 } else { 1 }];
        Box::new(Aggregate::new(
            AggregateSpec { keys: vec![0], calls: vec![call], input_types, is_append_only: false, effort },
            None,
        ))
    };
    match verb {
        Verb::Count => aggregate(AggregateFunction::Count, None, DataType::Int64),
        Verb::Sum => aggregate(AggregateFunction::Sum, Some(1), DataType::Decimal128(38, 0)),
        Verb::Min => aggregate(AggregateFunction::Min, Some(1), DataType::UInt64),
        Verb::Distinct => Box::new(SetOperation::new(Operation::Distinct, vec![DataType::UInt64])),
        Verb::Top10 => Box::new(TopKTactic::new(TopKSpec {
            top: TopK {
                group: vec![0],
                order: vec![SortKey::new(1, Direction::ASCENDING)],
                offset: 0,
                limit: Some(10),
                ranked: RankedBy::Row,
                numbered: false,
            },
            input_types: vec![DataType::UInt64; 2],
            is_append_only: false,
            effort,
        })),
    }
}
