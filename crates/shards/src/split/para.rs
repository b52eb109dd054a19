//! Parallel splits (parasplit): a router hands whole windows to splitters.
//!
//! ```text
//!   rows pushed into a shard -> windows of W rows -> splitter i < p, chosen at random -> branches
//! ```
//!
//! A window is a range of a batch. The router reads no row of a window: a message holds the batch
//! and the range, and the splitter cuts the rows out. Batches shorter than W rows are windows by
//! themselves: windows do not wait for rows. Splitter `i` lies in the `i`-th shard from the last
//! one on, by turns: few splitters stay off the shards that rows come into first.
//!
//! Law: p, W and seed change no branch. Source: SCSQ (Zeitler's thesis, Uppsala 2011, paper V). The
//! paper doubles W while the rate grows by 0.15 % in a quiet cluster; 2 % here ([`GROWTH_MIN`]).

use std::ops::Range;

use anabranch_batch::{hash, route};
use anabranch_engine::Error;
use arrow::datatypes::Schema;

use crate::layout::Layout;
use crate::split::cost::{self, Shares};
use crate::split::local::LocalCosts;

pub use anabranch_plan::program::ParaOptions;

/// Bytes of a window whose rows are chosen, at most.
const WINDOW_BYTES_MAX: f64 = 1048576.0;

/// Rows of the window that doubling starts with.
const WINDOW_ROWS_MIN: u32 = 64;

/// Growth of the router's rate that a doubled window must exceed.
const GROWTH_MIN: f64 = 0.02;

/// Bytes of a cell of variable width, where none is known.
const TEXT_BYTES: usize = 32;

/// Constants of a router, in nanoseconds of CPU time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RouterCosts {
    /// For each window.
    pub window: f64,
    /// For each byte of a window; none within a process, where memory is shared.
    pub byte: f64,
}

impl RouterCosts {
    /// Within a process. Estimates: `anabranch-bench split` measures them, and no run is kept yet.
    pub const WITHIN: RouterCosts = RouterCosts { window: 900.0, byte: 0.0 };

    /// Between processes, where windows become bytes. Estimates, as within a process.
    pub const BETWEEN: RouterCosts = RouterCosts { window: 2500.0, byte: 0.4 };

    /// The constants of a layout.
    pub fn of(layout: Layout) -> RouterCosts {
        if layout.processes() > 1 { RouterCosts::BETWEEN } else { RouterCosts::WITHIN }
    }

    /// Rows a second that one router hands on, in windows of so many rows of so many bytes.
    pub fn rate(&self, window: u32, row_bytes: f64) -> f64 {
        let rows = f64::from(window);
        rows * 1e9 / (self.window + self.byte * rows * row_bytes)
    }
}

/// Rows of a window by the rule of doubling: from [`WINDOW_ROWS_MIN`] on, while the router's rate
/// grows by more than [`GROWTH_MIN`] and the window has at most [`WINDOW_BYTES_MAX`] bytes. `rate`
/// is asked for the rate with windows of so many rows, each size once, smaller ones first.
pub fn doubled_window(row_bytes: f64, mut rate: impl FnMut(u32) -> f64) -> u32 {
    let rows_max = (WINDOW_BYTES_MAX / row_bytes.max(1.0)).max(1.0) as u32;
    let mut rows = WINDOW_ROWS_MIN.min(rows_max);
    let mut reached = rate(rows);
    while rows <= rows_max / 2 {
        let grown = rate(2 * rows);
        if grown <= reached * (1.0 + GROWTH_MIN) {
            break;
        }
        (rows, reached) = (2 * rows, grown);
    }
    rows
}

/// Bytes of a row of these columns; cells of variable width count as 32 bytes.
pub fn row_bytes(schema: &Schema) -> f64 {
    let bytes = |field: &arrow::datatypes::FieldRef| field.data_type().primitive_width().unwrap_or(TEXT_BYTES);
    schema.fields().iter().map(bytes).sum::<usize>() as f64
}

/// How a router sprays windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spraying {
    /// Number of splitters; at least one.
    pub splitters: u32,
    /// Rows of a window, at most; at least one.
    pub window: u32,
    /// Seed of the choice of splitters.
    pub seed: u64,
}

impl Spraying {
    /// Windows of a batch of so many rows, in order, each with the shard of its splitter; `shard`
    /// is the router's, `sequence` the number of the batch there. Splitters are chosen uniformly
    /// and at random: shares are equal, and nothing periodic in the rows resonates.
    pub fn windows(
        self,
        rows: usize,
        layout: Layout,
        shard: usize,
        sequence: u64,
    ) -> impl Iterator<Item = (usize, Range<usize>)> {
        let (window, shards) = (self.window as usize, layout.shards());
        let batch = hash::spread(hash::spread(sequence + 1).wrapping_add(shard as u64 + 1)) ^ hash::spread(self.seed);
        (0..rows).step_by(window).enumerate().map(move |(number, start)| {
            let random = hash::spread(hash::spread(batch.wrapping_add(number as u64 + 1)));
            let splitter = route(random, self.splitters as usize);
            (shards - 1 - splitter % shards, start..rows.min(start + window))
        })
    }
}

/// A parallel split whose options are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParaPlan {
    /// How the router sprays.
    pub spraying: Spraying,
    /// What was given.
    options: ParaOptions,
    /// Splitters by the formula, for the wanted rate; `None` without one.
    needed: Option<u32>,
    /// Rows a second of one splitter of one branch.
    rate_of_one: f64,
    /// Rows a second of one router.
    rate_of_router: f64,
    /// Rows of one branch that a splitter gives for each row of the stream: 1 - b + b q.
    given: f64,
    /// Shards of the layout.
    shards: usize,
}

impl ParaPlan {
    /// Chooses what the options leave open, for so many branches of rows of these columns.
    ///
    /// # Errors
    /// `Invalid`, for options that say nothing.
    pub fn of(
        options: ParaOptions,
        width: u32,
        shares: Shares,
        layout: Layout,
        schema: &Schema,
    ) -> Result<ParaPlan, Error> {
        options.check().map_err(Error::invalid)?;
        let (costs, row_bytes) = (RouterCosts::of(layout), row_bytes(schema));
        let window = options.window.unwrap_or_else(|| doubled_window(row_bytes, |rows| costs.rate(rows, row_bytes)));
        let one = || 1e9 / LocalCosts::MEASURED.nanos(&[1], Shares::broadcast(0.0), f64::from(window));
        let rate_of_one = options.rate_of_one.unwrap_or_else(one);
        let needed = options.rate.map(|wanted| cost::parasplit_splitters(wanted, rate_of_one, shares.broadcast, width));
        let shards = layout.shards();
        // (Splitters of one shard share its thread: more than one in each would split no faster.)
        let most = u32::try_from(shards).unwrap_or(u32::MAX);
        let splitters = options.splitters.unwrap_or_else(|| needed.unwrap_or(most).min(most));
        let spraying = Spraying { splitters, window, seed: options.seed };
        let given = 1.0 - shares.broadcast + shares.broadcast * f64::from(width);
        let rate_of_router = costs.rate(window, row_bytes);
        Ok(ParaPlan { spraying, options, needed, rate_of_one, rate_of_router, given, shards })
    }

    /// Modelled rate, in rows a second: that of the router, or of all splitters.
    pub fn rate(&self) -> f64 {
        let splitters = f64::from(self.spraying.splitters).min(self.shards as f64);
        self.rate_of_router.min(splitters * self.rate_of_one / self.given)
    }

    /// Its numbers, where they come from, and the modelled rate.
    pub fn explain(&self) -> String {
        let Spraying { splitters, window, seed } = self.spraying;
        let by = match (self.options.splitters, self.needed) {
            (Some(_), _) => "given".to_owned(),
            (None, None) => "one in each shard".to_owned(),
            (None, Some(needed)) if needed > splitters => {
                format!("one in each shard; the wanted rate needs {needed}")
            }
            (None, Some(_)) => "for the wanted rate".to_owned(),
        };
        let rows = match self.options.window {
            Some(_) => "given".to_owned(),
            None => format!("doubled from {WINDOW_ROWS_MIN}"),
        };
        format!(
            "{splitters} splitters ({by}), windows of {window} rows ({rows}), seed {seed}; modelled: {:.1} M rows/s, one \
             splitter of one branch {:.1} M, the router {:.1} M",
            self.rate() / 1e6,
            self.rate_of_one / 1e6,
            self.rate_of_router / 1e6,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule of section 2.7: the smallest window behind which doubling gains too little.
    #[test]
    fn windows_are_doubled_while_the_rate_grows() {
        let mut asked = Vec::new();
        let saturated = |rows: u32| f64::from(rows.min(1024));
        let rows = doubled_window(8.0, |rows| {
            asked.push(rows);
            saturated(rows)
        });
        assert_eq!((rows, asked), (1024, vec![64, 128, 256, 512, 1024, 2048]));
        assert_eq!(doubled_window(8.0, |_| 1.0), WINDOW_ROWS_MIN, "a rate that does not grow");
        assert_eq!(doubled_window(8.0, f64::from), 131_072, "a window of 1 MiB");
        assert_eq!(doubled_window(1e6, f64::from), 1, "a row of 1 MB");
        let little = |rows: u32| 1.0 + 0.02 * f64::from(rows.ilog2());
        assert_eq!(doubled_window(8.0, little), WINDOW_ROWS_MIN, "growth within the noise");
    }

    #[test]
    fn windows_cover_their_batch_and_go_to_splitters() {
        for (rows, window, splitters, shards) in [(0, 5, 2, 3), (1, 5, 1, 1), (23, 5, 2, 4), (20, 5, 7, 3)] {
            let spraying = Spraying { splitters, window, seed: 3 };
            let windows: Vec<_> = spraying.windows(rows, Layout::flat(shards), 0, 9).collect();
            let covered: Vec<usize> = windows.iter().flat_map(|(_, range)| range.clone()).collect();
            assert_eq!(covered, (0..rows).collect::<Vec<_>>());
            assert!(windows.iter().all(|(_, range)| range.len() <= window as usize));
            let off = shards.saturating_sub(splitters as usize);
            assert!(windows.iter().all(|(shard, _)| (off..shards).contains(shard)), "{windows:?}");
        }
    }

    #[test]
    fn another_seed_is_another_choice() {
        let of = |seed| {
            let spraying = Spraying { splitters: 4, window: 1, seed };
            spraying.windows(200, Layout::flat(4), 0, 0).map(|(shard, _)| shard).collect::<Vec<_>>()
        };
        assert_eq!(of(7), of(7));
        assert!((0..20).all(|seed| of(seed) != of(seed + 1)));
    }

    /// The formula of paper V chooses p; a layout has at most a splitter for each shard.
    #[test]
    fn splitters_are_chosen_by_the_formula() {
        let schema = Schema::empty();
        let splitters = |rate, shards| {
            let options = ParaOptions { rate, rate_of_one: Some(123.7e6), ..ParaOptions::CHOSEN };
            let plan = ParaPlan::of(options, 512, Shares::broadcast(0.01), Layout::flat(shards), &schema).unwrap();
            plan.spraying.splitters
        };
        assert_eq!([splitters(Some(500e6), 64), splitters(Some(1000e6), 64)], [25, 50]);
        assert_eq!([splitters(Some(1000e6), 8), splitters(None, 8)], [8, 8]);
        let given = ParaOptions { splitters: Some(11), rate: Some(1.0), ..ParaOptions::CHOSEN };
        let plan = ParaPlan::of(given, 512, Shares::broadcast(0.01), Layout::flat(2), &schema).unwrap();
        assert_eq!(plan.spraying.splitters, 11);
        for wrong in [
            ParaOptions { splitters: Some(0), ..ParaOptions::CHOSEN },
            ParaOptions { window: Some(0), ..ParaOptions::CHOSEN },
            ParaOptions { rate: Some(0.0), ..ParaOptions::CHOSEN },
            ParaOptions { share: 2.0, ..ParaOptions::CHOSEN },
        ] {
            assert!(ParaPlan::of(wrong, 8, Shares::broadcast(0.0), Layout::flat(2), &schema).is_err());
        }
    }
}
