//! What trees of splitters cost: the formulas of SCSQ (Zeitler's thesis, Uppsala 2011, papers IV
//! and V), as functions of numbers.
//!
//! Costs are in units of processing and emitting one row. They are of nodes that hand each branch
//! its own bytes, one core a node; within one process a broadcast row is not copied for each
//! branch, and a flat split is as good as any tree.

/// The rows of a split.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// Part of the rows that go to every branch, from 0 to 1.
    pub broadcast: f64,
    /// Part of the rows that go to one branch.
    pub routed: f64,
    /// Cost to consume a row over the cost to process and emit one.
    pub consume: f64,
}

impl Shares {
    /// Rows of which this part is broadcast and all others are routed.
    pub const fn broadcast(broadcast: f64) -> Shares {
        Shares { broadcast, routed: 1.0 - broadcast, consume: 1.0 }
    }
}

/// What a plan reaches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Rows a second, as a part of what a splitter of one branch takes in.
    pub rate: f64,
    /// CPU time of all nodes, in units of a splitter of one branch.
    pub cpu: f64,
}

/// Fan-outs of the levels of the exponential tree: 2, 4, 8 .., the last one cut. It needs no
/// knowledge of the rows.
pub fn exptree(width: u32) -> Vec<u32> {
    levels(width, |level, _| 2u32.saturating_pow(level as u32 + 1))
}

/// Fan-outs of the tree whose nodes are as wide as costs no more than the root.
pub fn maxtree(width: u32, shares: Shares) -> Vec<u32> {
    if shares.broadcast <= 0.0 {
        return vec![width.max(1)];
    }
    let Shares { broadcast, routed, consume } = shares;
    levels(width, |level, leaves| match level {
        0 => 2,
        // (Floor, where the paper prints a ceiling: that would cost more than the root. Quotients
        // of decimals may lie a little below whole numbers.)
        _ => 2 + (routed / broadcast * (1.0 + consume) * (1.0 - 1.0 / f64::from(leaves)) + 1e-9).floor() as u32,
    })
}

/// Fan-outs of levels until there are enough leaves; `next` is given the level and the leaves so
/// far.
fn levels(width: u32, next: impl Fn(usize, u32) -> u32) -> Vec<u32> {
    let width = width.max(1);
    let (mut fan_outs, mut leaves) = (Vec::new(), 1u32);
    while fan_outs.is_empty() || leaves < width {
        let fan_out = next(fan_outs.len(), leaves).min(width.div_ceil(leaves));
        fan_outs.push(fan_out);
        leaves = leaves.saturating_mul(fan_out);
    }
    fan_outs
}

/// Fan-outs of the faster of one step and the exponential tree, with a core for each node and a
/// message for each copy: greatest rate first, then least CPU time. The choice is SCSQ's
/// `autosplit`: the tree if rows are broadcast, else one step.
pub fn fastest(width: u32, shares: Shares) -> Vec<u32> {
    let (flat, exp) = (vec![width.max(1)], exptree(width));
    let (in_one, by_tree) = (tree(&flat, shares), tree(&exp, shares));
    let is_faster = by_tree.rate > in_one.rate * (1.0 + 1e-9);
    let is_as_fast = by_tree.rate > in_one.rate * (1.0 - 1e-9);
    if is_faster || (is_as_fast && by_tree.cpu < in_one.cpu) { exp } else { flat }
}

/// Rate and CPU of a tree of these fan-outs; one level is the flat split. (Equations 1, 6, 7, 8 of
/// paper IV.)
pub fn tree(fan_outs: &[u32], shares: Shares) -> Cost {
    let unit = shares.consume + 1.0;
    let (mut greatest, mut cpu, mut nodes) = (0.0f64, 0.0, 1.0);
    for &fan_out in fan_outs {
        let node = node(nodes, fan_out, shares);
        greatest = greatest.max(node);
        cpu += nodes * node;
        nodes *= f64::from(fan_out);
    }
    Cost { rate: unit / greatest, cpu: cpu / unit }
}

/// Cost of one of so many nodes of a level, for each row of the whole stream.
pub fn node(nodes: f64, fan_out: u32, shares: Shares) -> f64 {
    let Shares { broadcast, routed, consume } = shares;
    consume * (broadcast + routed / nodes) + routed / nodes + f64::from(fan_out) * broadcast
}

/// Splitters behind a window router, for a wanted rate and that of one splitter of one branch, in
/// the same unit. (Equation 6 of paper V.)
pub fn parasplit_splitters(wanted: f64, of_one: f64, broadcast: f64, branches: u32) -> u32 {
    (wanted / of_one * (1.0 - broadcast + broadcast * f64::from(branches)) - 1e-9).ceil().max(1.0) as u32
}

/// The part of the CPU time that splits, of all that a parallel split takes: `router`, each of the
/// `splitters`, each of the `branches`. (Equation 7.)
pub fn parasplit_efficiency(router: f64, splitters: (u32, f64), branches: (u32, f64)) -> f64 {
    let split = f64::from(splitters.0) * splitters.1;
    split / (router + split + f64::from(branches.0) * branches.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(cost: Cost) -> (f64, f64) {
        (cost.rate * 100.0, cost.cpu)
    }

    #[track_caller]
    fn near(found: Cost, rate: f64, cpu: f64) {
        let (found_rate, found_cpu) = percent(found);
        assert!(
            (found_rate - rate).abs() <= 0.1 && (found_cpu - cpu).abs() <= 0.1,
            "{found_rate} {found_cpu}, not {rate} {cpu}"
        );
    }

    /// Statement S3.
    #[test]
    fn fan_outs_are_as_published() {
        let exp = [
            (1, vec![1]),
            (2, vec![2]),
            (8, vec![2, 4]),
            (16, vec![2, 4, 2]),
            (64, vec![2, 4, 8]),
            (100, vec![2, 4, 8, 2]),
        ];
        for (width, fan_outs) in exp {
            assert_eq!(exptree(width), fan_outs);
        }
        assert_eq!(exptree(512), [2, 4, 8, 8]);
        assert_eq!(exptree(1000), [2, 4, 8, 16]);
        let max = |width, broadcast| maxtree(width, Shares::broadcast(broadcast));
        assert_eq!(max(64, 0.005), [2, 32]);
        assert_eq!(max(64, 0.1), [2, 11, 3]);
        assert_eq!(max(512, 0.005), [2, 201, 2]);
        assert_eq!(maxtree(512, Shares { consume: 1.08, ..Shares::broadcast(0.005) }), [2, 208, 2]);
        assert_eq!(max(512, 0.05), [2, 21, 13]);
        assert_eq!(max(64, 1.0), [2; 6]);
        assert_eq!(max(64, 0.0), [64]);
    }

    /// Statement S4: rate in percent and CPU, of the flat split, exptree and maxtree.
    #[test]
    fn rates_and_cpu_are_as_published() {
        let by_width = [
            (8, [(98.3, 1.02), (99.8, 2.02), (99.8, 2.02)]),
            (16, [(96.4, 1.04), (99.8, 3.08), (99.8, 2.04)]),
            (64, [(86.4, 1.16), (99.8, 3.20), (99.8, 2.16)]),
            (256, [(61.1, 1.64), (99.8, 4.99), (99.8, 2.64)]),
            (512, [(43.9, 2.28), (99.8, 5.63), (99.8, 7.02)]),
        ];
        let by_broadcast = [
            (0.0, [(100.0, 1.00), (100.0, 3.00), (100.0, 1.00)]),
            (0.01, [(76.0, 1.31), (99.5, 3.40), (99.5, 2.33)]),
            (0.1, [(24.1, 4.15), (95.2, 6.95), (95.2, 8.45)]),
            (0.5, [(6.0, 16.8), (43.2, 22.8), (80.0, 69.8)]),
            (1.0, [(3.1, 32.5), (22.2, 42.5), (66.7, 94.5)]),
        ];
        let widths = by_width.map(|(width, expected)| (width, 0.005, expected));
        for (width, broadcast, expected) in
            widths.into_iter().chain(by_broadcast.map(|(b, expected)| (64, b, expected)))
        {
            let shares = Shares::broadcast(broadcast);
            let plans = [vec![width], exptree(width), maxtree(width, shares)];
            for (plan, (rate, cpu)) in plans.iter().zip(expected) {
                near(tree(plan, shares), rate, cpu);
            }
        }
    }

    /// Statement S6, in the model that it is stated for: a core a node, a message a copy.
    #[test]
    fn the_fastest_plan_is_the_exponential_tree_if_rows_are_broadcast() {
        for width in 1..=600 {
            for broadcast in [0.0, 1e-6, 0.005, 0.01, 0.1, 0.5, 1.0] {
                for consume in [0.5, 1.0, 1.08, 3.0] {
                    let shares = Shares { consume, ..Shares::broadcast(broadcast) };
                    let published = if broadcast > 0.0 { exptree(width) } else { vec![width] };
                    assert_eq!(fastest(width, shares), published, "{shares:?}");
                }
            }
        }
    }

    /// Statement S5.
    #[test]
    fn no_node_of_a_maxtree_costs_more_than_the_root_and_wider_ones_would() {
        for width in 2..600 {
            for broadcast in [0.005, 0.03, 0.1, 0.4, 1.0] {
                let shares = Shares::broadcast(broadcast);
                let fan_outs = maxtree(width, shares);
                let root = node(1.0, fan_outs[0], shares) + 1e-9;
                let mut nodes = f64::from(fan_outs[0]);
                for (level, &fan_out) in fan_outs.iter().enumerate().skip(1) {
                    assert!(node(nodes, fan_out, shares) <= root);
                    let is_cut = level + 1 == fan_outs.len();
                    assert!(is_cut || node(nodes, fan_out + 1, shares) > root);
                    nodes *= f64::from(fan_out);
                }
            }
            let depth = exptree(width).len() as f64;
            let log = f64::from(width).log2() - 1e-9;
            assert!(depth * (depth + 1.0) / 2.0 >= log && (depth - 1.0) * depth / 2.0 < log, "{width}");
        }
    }
}
