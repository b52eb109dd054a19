//! What splits cost within one process, by constants that are measured: `anabranch-bench split`
//! fits them.
//!
//! Shards of a process share memory, and a branch is a column: what counts is rows taken and rows
//! given, not channels. For each row of the stream, level by level of a tree,
//!
//! ```text
//!   cost = (batch / n + row) * taken + copy * given to all,    n rows a batch
//! ```
//!
//! where a node takes its part of the routed rows and each row that is broadcast, and gives one row
//! to each child for a broadcast one. So a tree never costs less here than one step, which takes
//! each row once: trees pay between processes. Source: SCSQ, papers IV and V, with costs of
//! columnar batches.

use crate::split::cost::{self, Shares};

/// Constants of the model, in nanoseconds of CPU time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalCosts {
    /// For each batch that a level takes.
    pub batch: f64,
    /// For each row that a level takes.
    pub row: f64,
    /// For each row that a level gives, of those that are broadcast.
    pub copy: f64,
}

/// A split that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredSplit {
    /// Children of the nodes of each level.
    pub fan_outs: Vec<u32>,
    /// The rows.
    pub shares: Shares,
    /// Rows of a batch.
    pub batch: f64,
    /// CPU time, in nanoseconds a row.
    pub nanos: f64,
}

impl LocalCosts {
    /// As measured in 2 shards, of rows of three columns (`bench/results/split-620938af57.jsonl`,
    /// wrong by 38 % at most).
    pub const MEASURED: LocalCosts = LocalCosts { batch: 113_000.0, row: 36.0, copy: 28.0 };

    /// Nanoseconds of CPU time for each row of the stream.
    pub fn nanos(&self, fan_outs: &[u32], shares: Shares, batch: f64) -> f64 {
        let [batches, rows, copies] = amounts(fan_outs, shares, batch);
        self.batch * batches + self.row * rows + self.copy * copies
    }

    /// The cheaper of one step and the exponential tree.
    pub fn fan_outs(&self, width: u32, shares: Shares, batch: f64) -> Vec<u32> {
        let (flat, tree) = (vec![width.max(1)], cost::exptree(width));
        match self.nanos(&tree, shares, batch) < self.nanos(&flat, shares, batch) {
            true => tree,
            false => flat,
        }
    }

    /// The constants that fit what was measured best: least squares of relative errors. `None` if
    /// the measurements do not tell them apart.
    pub fn fit(measured: &[MeasuredSplit]) -> Option<LocalCosts> {
        let mut equations = [[0.0f64; 4]; 3];
        for split in measured {
            let amounts = amounts(&split.fan_outs, split.shares, split.batch).map(|amount| amount / split.nanos);
            for (equation, own) in equations.iter_mut().zip(amounts) {
                for (sum, other) in equation.iter_mut().zip(amounts.into_iter().chain([1.0])) {
                    *sum += own * other;
                }
            }
        }
        let [batch, row, copy] = solved(equations)?;
        Some(LocalCosts { batch, row, copy })
    }

    /// The greatest part by which the model is wrong about what was measured.
    pub fn greatest_error(&self, measured: &[MeasuredSplit]) -> f64 {
        let error = |split: &MeasuredSplit| self.nanos(&split.fan_outs, split.shares, split.batch) / split.nanos - 1.0;
        measured.iter().map(|split| error(split).abs()).fold(0.0, f64::max)
    }
}

/// Batches and rows taken, and rows given to all, for each row of the stream.
fn amounts(fan_outs: &[u32], shares: Shares, batch: f64) -> [f64; 3] {
    let Shares { broadcast, routed, .. } = shares;
    let (mut batches, mut rows, mut copies, mut nodes) = (0.0, 0.0, 0.0, 1.0);
    for &fan_out in fan_outs {
        let taken = routed + broadcast * nodes;
        (batches, rows) = (batches + taken / batch, rows + taken);
        nodes *= f64::from(fan_out);
        copies += broadcast * nodes;
    }
    [batches, rows, copies]
}

/// Three equations in three unknowns, by elimination with the greatest pivot.
fn solved(mut rows: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for at in 0..3 {
        let greatest = (at..3).max_by(|a, b| rows[*a][at].abs().total_cmp(&rows[*b][at].abs()))?;
        rows.swap(at, greatest);
        let pivot = rows[at];
        if pivot[at].abs() < 1e-12 {
            return None;
        }
        for (_, row) in rows.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            let factor = row[at] / pivot[at];
            row.iter_mut().zip(pivot).for_each(|(cell, own)| *cell -= factor * own);
        }
    }
    Some([0, 1, 2].map(|at| rows[at][3] / rows[at][at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_found_in_what_they_give() {
        let costs = LocalCosts { batch: 7000.0, row: 40.0, copy: 11.0 };
        let mut measured = Vec::new();
        for width in [1, 8, 64] {
            for broadcast in [0.0, 0.01, 0.5] {
                for batch in [100.0, 8192.0] {
                    for fan_outs in [vec![width], cost::exptree(width)] {
                        let shares = Shares::broadcast(broadcast);
                        let nanos = costs.nanos(&fan_outs, shares, batch);
                        measured.push(MeasuredSplit { fan_outs, shares, batch, nanos });
                    }
                }
            }
        }
        let found = LocalCosts::fit(&measured).unwrap();
        let near = |found: f64, given: f64| (found / given - 1.0).abs() < 1e-6;
        assert!(near(found.batch, 7000.0) && near(found.row, 40.0) && near(found.copy, 11.0), "{found:?}");
        assert!(found.greatest_error(&measured) < 1e-6);
        assert_eq!(LocalCosts::fit(&measured[..1]), None, "one measurement does not tell three constants");
    }

    #[test]
    fn one_step_is_cheapest_where_memory_is_shared() {
        for width in [1, 2, 9, 512] {
            let chosen = LocalCosts::MEASURED.fan_outs(width, Shares::broadcast(0.05), 8192.0);
            assert_eq!(chosen, [width]);
        }
    }
}
