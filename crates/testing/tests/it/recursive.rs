//! Loops against the model, and cases that have a name.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use anabranch_arrangement::MergeEffort;
use anabranch_batch::{Batch, Diffs, Times};
use anabranch_engine::Interrupt;
use anabranch_engine::cluster::{
    ArrangementId, Cluster, CollectionId, DataflowId, DataflowSpec, Egress, Export, Peek, Read, WantedKeys,
};
use anabranch_plan::bounds::Promises;
use anabranch_plan::{JoinKind, Plan, RoundLimit};
use anabranch_testing::build::{Builder, JoinOn, Relation};
use anabranch_testing::generator::expressions::Fallible;
use anabranch_testing::generator::history::{History, Size, Update, relations};
use anabranch_testing::generator::plans::Plans;
use anabranch_testing::laws::{Setting, hold, hold_under, programs};
use anabranch_testing::rng::{Rng, cases};
use anabranch_testing::row::Row;
use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;

const PAIR: [DataType; 2] = [DataType::Int64, DataType::Int64];

fn loops(name: &str, count: usize, size: Size, make: impl Fn(&mut Rng, &mut Plans) -> Arc<Plan>) {
    cases(name, count, |rng| {
        let relations = relations(rng, 3);
        let history = History::random(rng, &relations, size);
        let fallible = if rng.chance(20) { Fallible::Sometimes } else { Fallible::Never };
        let plan = make(rng, &mut Plans::new(&relations, fallible));
        hold(rng, &plan, &history);
    });
}

#[test]
fn monotone_loops() {
    loops("monotone_loops", 40, Size::SMALL, |rng, plans| plans.monotone(rng));
}

#[test]
fn loops_of_all_operators() {
    loops("loops_of_all_operators", 60, Size::SMALL, |rng, plans| {
        let depth = rng.below(3);
        plans.recursive(rng, depth)
    });
}

#[test]
fn loops_two_deep() {
    loops("loops_two_deep", 25, Size::SMALL, |rng, plans| plans.two_deep(rng));
}

#[test]
fn loops_below_other_operators() {
    loops("loops_below_other_operators", 15, Size::SMALL, |rng, plans| {
        let (left, right) = (plans.recursive(rng, 1), plans.monotone(rng));
        let kind = *rng.pick(&[JoinKind::Inner, JoinKind::LeftAnti, JoinKind::Full]);
        plans.join(rng, &left, &right, kind)
    });
}

#[test]
fn programs_of_loops_that_share() {
    cases("programs_of_loops_that_share", 6, |rng| {
        let relations = relations(rng, 2);
        let history = History::random(rng, &relations, Size::SMALL);
        let mut plans = Plans::new(&relations, Fallible::Never);
        let (first, second) = (plans.monotone(rng), plans.recursive(rng, 1));
        let third = plans.join(rng, &first, &second, JoinKind::Inner);
        programs::run(rng, &[first, second, third], &history);
    });
}

/// `v := distinct (e union v joined with e)`.
fn reach(limit: RoundLimit) -> (Relation, Arc<Plan>) {
    let (relation, mut b) = (Relation::new("e", &PAIR), Builder::new());
    let (start, edges, v) = (b.scan(&relation), b.scan(&relation), b.variable(0, 0, &PAIR));
    let further = b.join_output(&v, &edges, JoinOn::new(JoinKind::Inner, &[(1, 0)]), vec![0, 3]);
    let both = b.union(vec![start, further]);
    let set = b.distinct(&both);
    let result = b.variable(0, 0, &PAIR);
    let plan = b.recursive(vec![set], &result, limit);
    (relation, plan)
}

/// Edges that come and go: at each time, by how often.
fn history(relation: &Relation, changes: &[&[(i64, i64, i64)]]) -> History {
    let row = |a: i64, b: i64| Row::new([ScalarValue::Int64(Some(a)), ScalarValue::Int64(Some(b))]);
    let at = |(time, edges): (i64, &&[(i64, i64, i64)])| {
        edges.iter().map(|(a, b, diff)| Update { relation: 0, row: row(*a, *b), time, diff: *diff }).collect::<Vec<_>>()
    };
    let updates = (1..).zip(changes).flat_map(at).collect();
    History { relations: vec![relation.clone()], times: (1..=changes.len() as i64).collect(), updates }
}

fn check(name: &str, plan: &Arc<Plan>, history: &History) {
    cases(name, 4, |rng| hold_under(plan, history, &Setting::draw(rng)));
}

#[test]
fn an_absent_row_whose_only_support_lies_in_a_later_round() {
    let (relation, plan) = reach(RoundLimit::None);
    // 1 reaches 3 in one step, then only by the way round over 2, 5 and 6, then not at all.
    let changes: [&[(i64, i64, i64)]; 4] = [
        &[(1, 3, 1), (1, 2, 1), (2, 5, 1), (5, 6, 1), (6, 3, 1), (3, 4, 1)],
        &[(1, 3, -1)],
        &[(5, 6, -1)],
        &[(1, 3, 1), (5, 6, 1)],
    ];
    check("an_absent_row", &plan, &history(&relation, &changes));
}

#[test]
fn a_cycle_that_is_cut_off_is_not_its_own_reason() {
    let (relation, mut b) = (Relation::new("e", &PAIR), Builder::new());
    // What 0 reaches: a cycle of 5, 6, 7 that hangs on an edge, and one within it.
    let (start, edges, v) = (b.scan(&relation), b.scan(&relation), b.variable(0, 0, &PAIR[..1]));
    let zero = anabranch_testing::build::col(&start, 0).eq(anabranch_testing::generator::expressions::lit(0_i64));
    let first = b.stage(&start, vec![zero], vec![anabranch_testing::build::col(&start, 1)]);
    let further = b.join_output(&v, &edges, JoinOn::new(JoinKind::Inner, &[(0, 0)]), vec![2]);
    let both = b.union(vec![first, further]);
    let set = b.distinct(&both);
    let result = b.variable(0, 0, &PAIR[..1]);
    let plan = b.recursive(vec![set], &result, RoundLimit::None);
    let changes: [&[(i64, i64, i64)]; 4] = [
        &[(0, 1, 1), (1, 5, 1), (5, 6, 1), (6, 7, 1), (7, 5, 1), (6, 5, 1)],
        &[(1, 5, -1)],
        &[(1, 7, 1)],
        &[(1, 7, -1), (0, 6, 1)],
    ];
    check("a_cycle_that_is_cut_off", &plan, &history(&relation, &changes));
}

#[test]
fn a_limit_is_an_error_that_goes_when_the_loop_ends() {
    let rounds = NonZeroU64::new(3).unwrap();
    for limit in [RoundLimit::Error(rounds), RoundLimit::Return(rounds)] {
        let (relation, plan) = reach(limit);
        let changes: [&[(i64, i64, i64)]; 5] =
            [&[(1, 2, 1), (2, 3, 1)], &[(3, 4, 1)], &[(4, 5, 1), (5, 6, 1)], &[(2, 3, -1), (5, 6, -1)], &[(4, 5, -1)]];
        check("a_limit", &plan, &history(&relation, &changes));
    }
}

/// A cluster with one input, of edges.
struct Edges {
    cluster: Cluster,
    relation: Relation,
    time: i64,
}

impl Edges {
    fn new(workers: usize) -> Edges {
        let mut cluster = Cluster::start(workers, MergeEffort::default()).expect("a cluster starts");
        cluster.create_input(CollectionId(1), 1);
        Edges { cluster, relation: Relation::new("e", &PAIR), time: 0 }
    }

    fn install(&mut self, id: u64, plan: &Arc<Plan>) {
        let read = Read {
            collection: CollectionId(1),
            is_input: true,
            arrangements: vec![],
            primary_key: vec![],
            promises: Promises::default(),
        };
        let spec = DataflowSpec {
            dataflow: DataflowId(id),
            name: format!("plan {id}"),
            plan: plan.clone(),
            reads: BTreeMap::from([("e".to_string(), read)]),
            as_of: self.time,
            exports: vec![Export { arrangement: ArrangementId(id), key: vec![], is_part: false }],
            egress: Egress::Nothing,
        };
        self.cluster.install(spec).expect("the plan can be installed");
    }

    fn change(&mut self, edges: &[(i64, i64)], diff: i64) {
        self.time += 1;
        let column =
            |of: fn(&(i64, i64)) -> i64| -> ArrayRef { Arc::new(edges.iter().map(of).collect::<Int64Array>()) };
        let columns = vec![column(|edge| edge.0), column(|edge| edge.1)];
        self.cluster.push(CollectionId(1), Batch::new(columns, Times::Constant(self.time), Diffs::Constant(diff)));
        self.cluster.advance(self.time + 1);
    }

    fn count(&mut self, id: u64) -> i64 {
        self.cluster.await_frontier(DataflowId(id), self.time, &Interrupt::new()).expect("no interrupt is triggered");
        let peek = Peek { arrangement: ArrangementId(id), at: self.time, rows: WantedKeys::All };
        let found = self.cluster.peek(peek, &Interrupt::new()).expect("the arrangement is there");
        let rows = |batch: &Batch| (0..batch.len()).map(|row| batch.diffs().get(row)).sum::<i64>();
        found.batches.iter().map(rows).sum()
    }
}

/// What 0 reaches.
fn reach_from_zero() -> Arc<Plan> {
    let (relation, mut b) = (Relation::new("e", &PAIR), Builder::new());
    let (start, edges, v) = (b.scan(&relation), b.scan(&relation), b.variable(0, 0, &PAIR[..1]));
    let zero = anabranch_testing::build::col(&start, 0).eq(anabranch_testing::generator::expressions::lit(0_i64));
    let first = b.stage(&start, vec![zero], vec![anabranch_testing::build::col(&start, 1)]);
    let further = b.join_output(&v, &edges, JoinOn::new(JoinKind::Inner, &[(0, 0)]), vec![2]);
    let both = b.union(vec![first, further]);
    let set = b.distinct(&both);
    let result = b.variable(0, 0, &PAIR[..1]);
    b.recursive(vec![set], &result, RoundLimit::None)
}

#[test]
fn a_chain_of_many_rounds_is_cut_and_mended() {
    const NODES: i64 = 100_000;
    for workers in [0, 2] {
        let mut edges = Edges::new(workers);
        edges.install(10, &reach_from_zero());
        let chain: Vec<(i64, i64)> = (0..NODES).map(|node| (node, node + 1)).collect();
        edges.change(&chain, 1);
        assert_eq!(edges.count(10), NODES);
        edges.change(&[(NODES - 10, NODES - 9)], -1);
        assert_eq!(edges.count(10), NODES - 10);
        edges.change(&[(5, NODES - 9)], 1);
        assert_eq!(edges.count(10), NODES);
        edges.change(&[(3, 4)], -1);
        assert_eq!(edges.count(10), 3);
    }
}

#[test]
fn a_loop_without_an_end_lets_others_go_on_and_can_be_dropped() {
    for workers in [0, 1, 2] {
        let mut edges = Edges::new(workers);
        let (mut b, relation) = (Builder::new(), edges.relation.clone());
        // Every number leads to the next one.
        let (start, v) = (b.scan_columns(&relation, &[0]), b.variable(0, 0, &PAIR[..1]));
        let next = anabranch_testing::build::col(&v, 0) + anabranch_testing::generator::expressions::lit(1_i64);
        let next = b.stage(&v, vec![], vec![next]);
        let both = b.union(vec![start.clone(), next]);
        let set = b.distinct(&both);
        let result = b.variable(0, 0, &PAIR[..1]);
        let endless = b.recursive(vec![set], &result, RoundLimit::None);
        let others = b.distinct(&start);
        edges.install(10, &endless);
        edges.install(11, &others);
        for node in 1..5 {
            edges.change(&[(node, node)], 1);
            assert_eq!(edges.count(11), node);
        }
        let interrupt = Interrupt::new();
        let from_outside = interrupt.clone();
        let stop = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            from_outside.trigger();
        });
        assert!(edges.cluster.await_frontier(DataflowId(10), edges.time, &interrupt).is_err());
        stop.join().unwrap();
        edges.cluster.uninstall(DataflowId(10));
        edges.change(&[(9, 9)], 1);
        assert_eq!(edges.count(11), 5);
        assert!(edges.cluster.stats().iter().all(|stats| stats.arrangement != ArrangementId(10)));
    }
}
