//! Whole loops, over random rows that come and go.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_arrangement::{Layout, MergeEffort, NullKeys, ValueOrder};
use anabranch_batch::{Batch, Diff, Diffs, Time, Times};
use anabranch_flow::tactic::Output;
use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};

use super::machine::Machine;
use super::{Limit, LoopSpec, Node, NodeId, Ranks};
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
struct Pairs(Vec<Node>);

impl Pairs {
    fn push(&mut self, node: Node) -> NodeId {
        self.0.push(node);
        self.0.len() - 1
    }

    fn by(&mut self, input: NodeId, column: usize) -> NodeId {
        let types = vec![DataType::Int64; 2];
        let layout = Arc::new(Layout { key: vec![column], values: ValueOrder::Hash, types });
        self.push(Node::Arrange { input, layout })
    }

    /// `(l.a, r.b)` where `l.b = r.a`.
    fn compose(&mut self, left: NodeId, right: NodeId) -> NodeId {
        let (left, right) = (self.by(left, 1), self.by(right, 0));
        let stage = Stage { filter: vec![], kept: None, project: None };
        let join = JoinSpec {
            left_key: vec![1],
            right_key: vec![0],
            nulls: NullKeys::Skip,
            gather_left: vec![0],
            gather_right: vec![1],
            stage,
            as_of: 0,
        };
        self.push(Node::Join { left, right, join: Box::new(join) })
    }

    fn set_of(&mut self, inputs: Vec<NodeId>) -> NodeId {
        let input = self.push(Node::Union { inputs });
        self.push(Node::Distinct { input, types: vec![DataType::Int64; 2] })
    }
}

/// A random monotone program of two variables over two relations: each is the set of some
/// relations, variables and compositions of them.
fn program(numbers: &mut Numbers) -> LoopSpec {
    let mut pairs = Pairs::default();
    let entered: Vec<NodeId> = (0..2).map(|input| pairs.push(Node::Enter { input })).collect();
    let variables: Vec<NodeId> = (0..2).map(|binding| pairs.push(Node::Variable { binding })).collect();
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
    LoopSpec { nodes: pairs.0, n_inputs: 2, bindings, result, limit: Limit::None, effort: MergeEffort::default() }
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

    fn epoch(&mut self, epoch: Time, changes: &[Vec<(Pair, Diff)>]) {
        let entered = changes.iter().map(|rows| vec![batch(rows)]).collect();
        self.machine.begin(epoch, entered);
        let mut out = Output::default();
        while !self.machine.work(&mut 1_000, &mut out) {}
        for batch in out.rows {
            for row in 0..batch.len() {
                let cell = |column: usize| batch.column(column).as_primitive::<Int64Type>().value(row);
                let count = self.rows.entry((cell(0), cell(1))).or_default();
                *count += batch.diffs().get(row);
            }
        }
        self.rows.retain(|_, count| *count != 0);
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
