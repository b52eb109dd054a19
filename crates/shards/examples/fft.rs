//! A radix-2 Fourier transform by a split: even samples to one branch, odd ones to the other, put
//! together by window (SCSQ II, 2.4).
//!
//! `cargo run -p anabranch-shards --example fft`
//!
//! ```text
//!     X[k] = E[k] + w^k O[k],  X[k + n/2] = E[k] - w^k O[k],  w = exp(-2 pi i / n)
//! ```
//!
//! Each part of a window carries the window's number and its branch: the order in which parts
//! arrive changes nothing.

use std::collections::BTreeMap;
use std::f64::consts::PI;
use std::sync::Arc;

use anabranch_engine::Error;
use anabranch_engine::frame::{Arrived, Event, Given, Instance, UserOperator, col, lit};
use anabranch_shards::{Layout, Move, Shards, SplitPlan};
use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};

/// A complex number.
pub type Complex = (f64, f64);

/// Time, window and branch.
type Part = (i64, i64, i64);

fn times(a: Complex, b: Complex) -> Complex {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

fn turn(k: usize, n: usize) -> Complex {
    let angle = -2.0 * PI * k as f64 / n as f64;
    (angle.cos(), angle.sin())
}

/// The transform from its definition.
pub fn direct(samples: &[Complex]) -> Vec<Complex> {
    let n = samples.len();
    let term = |k: usize, at: usize| times(samples[at], turn(k * at % n, n));
    let sum = |k: usize| (0..n).map(|at| term(k, at)).fold((0.0, 0.0), |sum, term| (sum.0 + term.0, sum.1 + term.1));
    (0..n).map(sum).collect()
}

/// The transforms of the even and the odd samples as that of all.
fn combined(even: &[Complex], odd: &[Complex]) -> Vec<Complex> {
    let half = even.len();
    let turned: Vec<Complex> = odd.iter().enumerate().map(|(k, odd)| times(*odd, turn(k, 2 * half))).collect();
    let pairs = || even.iter().zip(&turned);
    let plus = pairs().map(|(e, o)| (e.0 + o.0, e.1 + o.1));
    plus.chain(pairs().map(|(e, o)| (e.0 - o.0, e.1 - o.1))).collect()
}

/// The transform of a power of two of samples.
fn fft(samples: &[Complex]) -> Vec<Complex> {
    if samples.len() < 2 {
        return samples.to_vec();
    }
    let part = |first: usize| samples.iter().copied().skip(first).step_by(2).collect::<Vec<_>>();
    combined(&fft(&part(0)), &fft(&part(1)))
}

/// What an operator does with the parts of a window, by branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Transforms each part by itself.
    Transform,
    /// Puts the transforms of the two parts together.
    Combine,
}

/// Works on whole windows: a window's rows are of one time. Columns: window, branch, place, re, im.
struct Windows(Work);

const COLUMNS: [&str; 5] = ["window", "branch", "k", "re", "im"];

impl UserOperator for Windows {
    fn name(&self) -> &str {
        "windows"
    }

    fn output(&self, _inputs: &[Vec<DataType>]) -> Result<Vec<(String, DataType)>, String> {
        Ok(fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect())
    }

    fn start(&self) -> Box<dyn Instance> {
        Box::new(Windows(self.0))
    }
}

impl Instance for Windows {
    fn advance(&mut self, _upto: i64, inputs: &[Arrived<'_>], out: &mut Given) -> Result<(), String> {
        let rows = &inputs[0];
        if rows.is_empty() {
            return Ok(());
        }
        let whole = |at: usize| rows.columns()[at].as_primitive::<Int64Type>().values();
        let real = |at: usize| rows.columns()[at].as_primitive::<Float64Type>().values();
        let mut parts: BTreeMap<Part, BTreeMap<i64, Complex>> = BTreeMap::new();
        for row in 0..rows.len() {
            let part = (rows.times()[row], whole(0)[row], whole(1)[row]);
            parts.entry(part).or_default().insert(whole(2)[row], (real(3)[row], real(4)[row]));
        }
        let parts = parts.into_iter().map(|(part, samples)| (part, samples.into_values().collect::<Vec<_>>()));
        let done: Vec<(Part, Vec<Complex>)> = match self.0 {
            Work::Transform => parts.map(|(part, samples)| (part, fft(&samples))).collect(),
            Work::Combine => {
                let parts: Vec<_> = parts.collect();
                parts.chunks_exact(2).map(|pair| (pair[0].0, combined(&pair[0].1, &pair[1].1))).collect()
            }
        };
        give(&done, out);
        Ok(())
    }
}

/// Puts out transforms of parts.
fn give(done: &[(Part, Vec<Complex>)], out: &mut Given) {
    let rows =
        || done.iter().flat_map(|(part, values)| values.iter().enumerate().map(move |(k, value)| (*part, k, *value)));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows().map(|((_, window, _), ..)| window))),
        Arc::new(Int64Array::from_iter_values(rows().map(|((.., branch), ..)| branch))),
        Arc::new(Int64Array::from_iter_values(rows().map(|(_, k, _)| k as i64))),
        Arc::new(Float64Array::from_iter_values(rows().map(|(.., value)| value.0))),
        Arc::new(Float64Array::from_iter_values(rows().map(|(.., value)| value.1))),
    ];
    out.points(columns, rows().map(|((time, ..), ..)| time).collect());
}

fn fields() -> Vec<Field> {
    let data_type = |name: &str| if ["re", "im"].contains(&name) { DataType::Float64 } else { DataType::Int64 };
    COLUMNS.map(|name| Field::new(name, data_type(name), true)).to_vec()
}

/// The program: samples `(window, k, re, im)` in; transforms out.
pub fn program(layout: Layout) -> Shards {
    let samples = fields().into_iter().filter(|field| field.name() != "branch").collect::<Vec<_>>();
    let branches =
        Shards::source("samples", Schema::new(samples), layout).split(2, col("k") % lit(2i64), None, SplitPlan::Flat);
    let parts = branches.map(|rows| rows.select(COLUMNS.map(col))).operator(Windows(Work::Transform)).merge();
    parts.rekey(["window"]).redistribute(Move::FLAT).operator(Windows(Work::Combine))
}

/// The transforms of windows of one length, a power of two; window `n` is at time `n`.
pub fn transforms(windows: &[Vec<Complex>], layout: Layout) -> Result<Vec<Vec<Complex>>, Error> {
    let program = program(layout);
    program.check()?;
    let mut run = program.run()?;
    for (window, samples) in windows.iter().enumerate() {
        let row = |(k, value): (usize, &Complex)| {
            Event::point(window as i64, [(window as i64).into(), (k as i64).into(), value.0.into(), value.1.into()])
        };
        // (The last samples come first, and anywhere.)
        for (at, piece) in samples.iter().enumerate().map(row).rev().collect::<Vec<_>>().chunks(3).enumerate() {
            run.push("samples", at % layout.shards(), piece.to_vec())?;
        }
    }
    let mut found = vec![Vec::new(); windows.len()];
    let mut rows: Vec<(i64, i64, Complex)> = Vec::new();
    for batch in run.finish()?.shards.into_iter().flatten() {
        let whole = |at: usize| batch.column(at).as_primitive::<Int64Type>().values();
        let real = |at: usize| batch.column(at).as_primitive::<Float64Type>().values();
        rows.extend((0..batch.len()).map(|row| (whole(0)[row], whole(2)[row], (real(3)[row], real(4)[row]))));
    }
    rows.sort_by_key(|(window, k, _)| (*window, *k));
    rows.into_iter().for_each(|(window, _, value)| found[window as usize].push(value));
    Ok(found)
}

/// The greatest difference of two transforms, by the greatest value.
pub fn difference(left: &[Complex], right: &[Complex]) -> f64 {
    let size = |value: &Complex| value.0.hypot(value.1);
    let largest = right.iter().map(size).fold(f64::MIN_POSITIVE, f64::max);
    let apart = left.iter().zip(right).map(|(a, b)| size(&(a.0 - b.0, a.1 - b.1))).fold(0.0, f64::max);
    if left.len() == right.len() { apart / largest } else { f64::INFINITY }
}

/// Windows of waves that are the same on every machine.
pub fn waves(windows: usize, samples: usize) -> Vec<Vec<Complex>> {
    let sample = |window: usize, at: usize| {
        let at = at as f64;
        ((at * 0.3 * (window + 1) as f64).sin(), (at * at * 0.01).cos())
    };
    (0..windows).map(|window| (0..samples).map(|at| sample(window, at)).collect()).collect()
}

#[allow(dead_code, reason = "tests have no use for it")]
fn main() -> Result<(), Error> {
    let windows = waves(8, 256);
    for (window, found) in transforms(&windows, Layout::flat(2))?.iter().enumerate() {
        let apart = difference(found, &direct(&windows[window]));
        println!("window {window}: {} values, {apart:.1e} from the direct transform", found.len());
    }
    println!("{}", program(Layout::flat(2)).explain()?);
    Ok(())
}
