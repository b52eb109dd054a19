//! Whole loops, over random rows that come and go.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_arrangement::{Layout, MergeEffort, ValueOrder};
use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Diff, Diffs, Time, Times};
use anabranch_flow::tactic::Output;
use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};

use super::machine::Machine;
use anabranch_spec::limits::RoundLimit;

use super::{LeastSpec, LoopNode, LoopSpec, NodeId, Ranks};
use crate::relational::join::JoinSpec;
use crate::stateless::filter_project::Stage;

type Pair = (i64, i64);

/// Numbers that look random; the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn batch(rows: &[(Pair, Diff)]) -> Batch {
    let column = |cell: fn(&Pair) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|(row, _)| cell(row))))
    };
    let diffs = Diffs::Column(rows.iter().map(|(_, diff)| *diff).collect::<Vec<_>>().into());
    Batch::new(vec![column(|row| row.0), column(|row| row.1)], Times::Constant(1), diffs)
}

/// Nodes of a loop over pairs.
#[derive(Default)]
struct Pairs(Vec<LoopNode>);

impl Pairs {
    fn push(&mut self, node: LoopNode) -> NodeId {
        self.0.push(node);
        self.0.len() - 1
    }

    fn by(&mut self, input: NodeId, column: usize) -> NodeId {
        let types = vec![DataType::Int64; 2];
        let layout = Arc::new(Layout { key: vec![column], values: ValueOrder::Hash, types });
        self.push(LoopNode::Arrange { input, layout })
    }

    /// All rows under one key.
    fn all(&mut self, input: NodeId) -> NodeId {
        let layout = Arc::new(Layout { key: vec![], values: ValueOrder::Hash, types: vec![DataType::Int64; 2] });
        self.push(LoopNode::Arrange { input, layout })
    }

    /// `(l.a, r.b)` where `l.b = r.a`.
    fn compose(&mut self, left: NodeId, right: NodeId) -> NodeId {
        let (left, right) = (self.by(left, 1), self.by(right, 0));
        let stage = Stage { filter: vec![], kept: None, project: None };
        let join = JoinSpec {
            left_key: vec![1],
            right_key: vec![0],
            nulls: Nulls::Differ,
            gather_left: vec![0],
            gather_right: vec![1],
            stage,
            as_of: 0,
        };
        self.push(LoopNode::Join { left, right, join: Box::new(join) })
    }

    fn set_of(&mut self, inputs: Vec<NodeId>) -> NodeId {
        let input = self.push(LoopNode::Union { inputs });
        self.push(LoopNode::Distinct { input, types: vec![DataType::Int64; 2] })
    }
}

/// A random monotone program of two variables over two relations: each is the set of some
/// relations, variables and compositions of them.
fn program(numbers: &mut Numbers) -> LoopSpec {
    let mut pairs = Pairs::default();
    let entered: Vec<NodeId> = (0..2).map(|input| pairs.push(LoopNode::Enter { input })).collect();
    let variables: Vec<NodeId> = (0..2).map(|binding| pairs.push(LoopNode::Variable { binding })).collect();
    let (mut known, mut bindings) = ([entered.clone(), variables].concat(), Vec::new());
    for _ in 0..2 {
        let mut parts = vec![entered[numbers.below(2) as usize]];
        for _ in 0..1 + numbers.below(2) {
            let [left, right] = [(); 2].map(|()| known[numbers.below(known.len() as u64) as usize]);
            parts.push(pairs.compose(left, right));
        }
        let set = pairs.set_of(parts);
        bindings.push(set);
        // (A later binding may see this one as of the same round.)
        known.push(set);
    }
    let result = bindings[numbers.below(2) as usize];
    LoopSpec { nodes: pairs.0, n_inputs: 2, bindings, result, limit: RoundLimit::None, effort: MergeEffort::default() }
}

/// What a loop holds, as its epochs go by.
struct Run {
    machine: Machine,
    rows: BTreeMap<Pair, Diff>,
}

impl Run {
    fn new(spec: &LoopSpec, ranks: Ranks) -> Run {
        Run { machine: Machine::with_ranks(spec.clone(), vec![], ranks), rows: BTreeMap::new() }
    }

    /// Takes changes in, a little at a time. Returns the fuel that this took.
    fn epoch(&mut self, epoch: Time, changes: &[Vec<(Pair, Diff)>]) -> isize {
        let entered = changes.iter().map(|rows| vec![batch(rows)]).collect();
        self.machine.begin(epoch, entered);
        let (mut out, mut used) = (Output::default(), 0);
        loop {
            let mut fuel = 1_000;
            let is_over = self.machine.work(&mut fuel, &mut out);
            used += 1_000 - fuel;
            if is_over {
                break;
            }
        }
        for batch in out.rows {
            for row in 0..batch.len() {
                let cell = |column: usize| batch.column(column).as_primitive::<Int64Type>().value(row);
                let count = self.rows.entry((cell(0), cell(1))).or_default();
                *count += batch.diffs().get(row);
            }
        }
        self.rows.retain(|_, count| *count != 0);
        used
    }
}

/// A random change of a relation, in which each pair is there at most once.
fn change(numbers: &mut Numbers, relation: &mut BTreeMap<Pair, ()>, n_rows: u64, nodes: u64) -> Vec<(Pair, Diff)> {
    let mut rows: BTreeMap<Pair, Diff> = BTreeMap::new();
    for _ in 0..n_rows {
        let pair = (numbers.below(nodes) as i64, numbers.below(nodes) as i64);
        let diff = match relation.remove(&pair) {
            Some(()) => -1,
            None => {
                relation.insert(pair, ());
                1
            }
        };
        *rows.entry(pair).or_default() += diff;
    }
    rows.into_iter().filter(|(_, diff)| *diff != 0).collect()
}

#[test]
fn sticky_equals_exact() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in seed.map_or(0..60, |seed: u64| seed..seed + 1) {
        let mut numbers = Numbers(seed);
        let spec = program(&mut numbers);
        assert!(spec.is_monotone());
        let (mut exact, mut sticky) = (Run::new(&spec, Ranks::Exact), Run::new(&spec, Ranks::Sticky));
        let mut relations = [BTreeMap::new(), BTreeMap::new()];
        for epoch in 1..30 {
            let n_rows = if epoch == 1 { 12 } else { numbers.below(4) };
            let changes: Vec<_> =
                relations.iter_mut().map(|relation| change(&mut numbers, relation, n_rows, 9)).collect();
            exact.epoch(epoch, &changes);
            sticky.epoch(epoch, &changes);
            assert_eq!(exact.rows, sticky.rows, "SEED={seed}, epoch {epoch}");
            // A loop begun now has no history of ranks.
            let mut anew = Run::new(&spec, Ranks::Exact);
            anew.epoch(1, &relations.each_ref().map(|rows| rows.keys().map(|row| (*row, 1)).collect()));
            assert_eq!(anew.rows, sticky.rows, "SEED={seed}, epoch {epoch}, anew");
        }
    }
}

/// A loop that has another one inside, which reads the variable and a relation.
fn two_deep(numbers: &mut Numbers) -> LoopSpec {
    let mut inner = Pairs::default();
    let [entered, edges] = [0, 1].map(|input| inner.push(LoopNode::Enter { input }));
    let variable = inner.push(LoopNode::Variable { binding: 0 });
    let further = match numbers.below(3) {
        0 => inner.compose(variable, variable),
        _ => inner.compose(variable, edges),
    };
    let (set, limit) = match numbers.below(2) {
        0 => (inner.set_of(vec![entered, further]), RoundLimit::None),
        _ => {
            let input = inner.push(LoopNode::Union { inputs: vec![entered, further] });
            let least = LeastSpec {
                key: vec![0],
                value: 1,
                is_greatest: numbers.below(2) == 0,
                types: vec![DataType::Int64; 2],
            };
            // (A least value takes back what it was made of: rounds may have no end.)
            (inner.push(LoopNode::Least { input, least }), returned_after(5))
        }
    };
    let inner = spec(inner, vec![set], limit);

    let mut outer = Pairs::default();
    let [first, edges] = [0, 1].map(|input| outer.push(LoopNode::Enter { input }));
    let variable = outer.push(LoopNode::Variable { binding: 0 });
    let inputs = [variable, edges].map(|input| outer.all(input)).to_vec();
    let inside = outer.push(LoopNode::Loop { inputs, inner: Arc::new(inner) });
    let step = outer.compose(inside, if numbers.below(2) == 0 { edges } else { first });
    let set = outer.set_of(vec![first, step]);
    spec(outer, vec![set], returned_after(2 + numbers.below(20)))
}

fn returned_after(rounds: u64) -> RoundLimit {
    RoundLimit::Return(rounds.try_into().unwrap())
}

fn spec(pairs: Pairs, bindings: Vec<NodeId>, limit: RoundLimit) -> LoopSpec {
    let result = bindings[0];
    LoopSpec { nodes: pairs.0, n_inputs: 2, bindings, result, limit, effort: MergeEffort::default() }
}

#[test]
fn a_loop_in_a_loop_is_what_it_would_be_anew() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in seed.map_or(0..40, |seed: u64| seed..seed + 1) {
        let mut numbers = Numbers(seed);
        let spec = two_deep(&mut numbers);
        let nodes = 5 + numbers.below(9);
        let mut kept = Run::new(&spec, Ranks::Exact);
        let mut relations = [BTreeMap::new(), BTreeMap::new()];
        for epoch in 1..25 {
            let n_rows = if epoch == 1 { nodes } else { numbers.below(4) };
            let changes: Vec<_> =
                relations.iter_mut().map(|relation| change(&mut numbers, relation, n_rows, nodes)).collect();
            kept.epoch(epoch, &changes);
            let mut anew = Run::new(&spec, Ranks::Exact);
            anew.epoch(1, &relations.each_ref().map(|rows| rows.keys().map(|row| (*row, 1)).collect()));
            assert_eq!(anew.rows, kept.rows, "SEED={seed}, epoch {epoch}");
        }
    }
}

#[test]
fn a_loop_in_a_loop_of_many_rounds_is_what_it_would_be_anew() {
    // Each outer round goes one step further on a chain, of more steps than there are stages.
    let mut numbers = Numbers(1);
    for chain in [3, 15, 16, 17, 40] {
        let mut spec = two_deep(&mut numbers);
        spec.limit = returned_after(60);
        let mut kept = Run::new(&spec, Ranks::Exact);
        let edges = |from: i64, upto: i64| (from..upto).map(|node| ((node, node + 1), 1)).collect::<Vec<_>>();
        let mut all = edges(0, chain);
        kept.epoch(1, &[vec![((0, 0), 1)], all.clone()]);
        for epoch in 2..12 {
            // The chain is cut and mended, and grows.
            let at = numbers.below(all.len() as u64) as usize;
            let (cut, more) = (all[at].0, edges(chain + epoch, chain + epoch + 1));
            for (epoch, changes) in [(10 * epoch, vec![(cut, -1)]), (10 * epoch + 1, [vec![(cut, 1)], more].concat())] {
                for (row, diff) in &changes {
                    match diff {
                        1 => all.push((*row, 1)),
                        _ => all.retain(|(other, _)| other != row),
                    }
                }
                kept.epoch(epoch, &[vec![], changes]);
                let mut anew = Run::new(&spec, Ranks::Exact);
                anew.epoch(1, &[vec![((0, 0), 1)], all.clone()]);
                assert_eq!(anew.rows, kept.rows, "a chain of {chain}, epoch {epoch}");
            }
        }
    }
}

#[test]
fn a_change_costs_a_loop_in_a_loop_what_it_changes() {
    let mut numbers = Numbers(7);
    let mut spec = two_deep(&mut numbers);
    spec.limit = returned_after(4);
    let mut kept = Run::new(&spec, Ranks::Exact);
    let first: Vec<(Pair, Diff)> = (0..3_000).map(|node| ((node, node), 1)).collect();
    let edges = (0..3_000).filter(|node| node % 10 != 9).map(|node| ((node, node + 1), 1)).collect();
    let load = kept.epoch(1, &[first, edges]);
    for (epoch, diff) in [(2, -1), (3, 1)] {
        let used = kept.epoch(epoch, &[vec![], vec![((14, 15), diff)]]);
        assert!(used < load / 20, "{used} of {load}");
    }
}
