//! Loops over frames, against searches over the rows in force at each instant.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_engine::frame::{Event, Events, Frame, How, RoundLimit, col, count, iterate, iterate_within, lit, min};
use anabranch_engine::{Options, Session};
use arrow::datatypes::{DataType, Field, Schema};

#[path = "../../examples/reach.rs"]
#[allow(dead_code, reason = "the example has a main of its own")]
mod example;

const INSTANTS: i64 = 30;
const NODES: u64 = 8;

fn schema(names: &[&str]) -> Schema {
    Schema::new(names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect::<Vec<_>>())
}

fn edges() -> Frame {
    Events::input("edges", schema(&["src", "dst"])).frame()
}

fn start() -> Frame {
    Events::input("start", schema(&["node"])).frame()
}

/// An edge in force from an instant until another.
#[derive(Clone, Copy, Debug)]
struct Edge {
    ends: (i64, i64),
    begin: i64,
    until: i64,
}

fn random_edges(seed: u64) -> Vec<Edge> {
    let mut state = seed;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % bound) as i64
    };
    let mut edge = || {
        let begin = below(INSTANTS as u64 - 1);
        let until = begin + 1 + below((INSTANTS - begin) as u64);
        Edge { ends: (below(NODES), below(NODES)), begin, until }
    };
    (0..25).map(|_| edge()).collect()
}

/// The rows of a frame at each instant, where 1 is the start and edges come and go.
fn contents(frame: &Frame, edges: &[Edge], workers: usize) -> BTreeMap<i64, Vec<String>> {
    let mut session = Session::new(Options { workers, ..Options::default() }).unwrap();
    let mut run = session.start(frame).unwrap();
    run.push("start", vec![Event::interval(0, INSTANTS, [1_i64.into()])]).unwrap();
    let mut lifetimes = Vec::new();
    for instant in 0..INSTANTS {
        let begun = edges.iter().filter(|edge| edge.begin == instant);
        let events =
            begun.map(|edge| Event::interval(edge.begin, edge.until, [edge.ends.0.into(), edge.ends.1.into()]));
        run.push("edges", events.collect::<Vec<_>>()).unwrap();
        run.advance_all(instant + 1).unwrap();
        lifetimes.extend(run.lifetimes().unwrap());
    }
    run.finish().unwrap();
    lifetimes.extend(run.lifetimes().unwrap());
    let at = |instant: i64| {
        let in_force = lifetimes.iter().filter(|lifetime| lifetime.start <= instant && instant < lifetime.end);
        let mut rows: Vec<String> = in_force.map(|lifetime| shown(&lifetime.to_string())).collect();
        rows.sort();
        (instant, rows)
    };
    (0..INSTANTS).map(at).collect()
}

/// The row of a lifetime that is shown as `[start, end) row`.
fn shown(lifetime: &str) -> String {
    lifetime.split_once(") ").unwrap().1.to_owned()
}

fn hops_of(edges: &BTreeSet<(i64, i64)>) -> BTreeMap<i64, i64> {
    let mut hops = BTreeMap::from([(1, 0)]);
    for round in 0.. {
        let next = edges.iter().filter(|(a, b)| hops.get(a) == Some(&round) && !hops.contains_key(b));
        let next: Vec<i64> = next.map(|(_, b)| *b).collect();
        if next.is_empty() {
            break;
        }
        hops.extend(next.into_iter().map(|node| (node, round + 1)));
    }
    hops
}

fn in_force(edges: &[Edge], instant: i64) -> BTreeSet<(i64, i64)> {
    edges.iter().filter(|edge| edge.begin <= instant && instant < edge.until).map(|edge| edge.ends).collect()
}

fn check(frame: &Frame, expected: impl Fn(&BTreeSet<(i64, i64)>) -> Vec<String>) {
    for (seed, workers) in [(1, 0), (2, 0), (3, 1), (4, 2)] {
        let edges = random_edges(seed);
        for (instant, rows) in contents(frame, &edges, workers) {
            let mut expected = expected(&in_force(&edges, instant));
            expected.sort();
            assert_eq!(rows, expected, "at {instant} with {workers} workers: {edges:?}");
        }
    }
}

#[test]
fn a_set_grows_by_what_follows_from_it() {
    let reached = start().iterate(|reached| {
        reached.join(&edges(), [col("node")], [col("src")], How::Inner).select([col("dst").alias("node")])
    });
    check(&reached, |edges| hops_of(edges).keys().map(ToString::to_string).collect());
}

#[test]
fn a_variable_is_aggregated_in_its_loop() {
    let [hops] = iterate([schema(&["node", "hops"])], |[hops]| {
        let first = start().select([col("node"), lit(0_i64).alias("hops")]);
        let further = hops.join(&edges(), [col("node")], [col("src")], How::Inner);
        let further = further.select([col("dst").alias("node"), (col("hops") + lit(1_i64)).alias("hops")]);
        [first.union(&further).group_by([col("node")]).agg([min(col("hops")).alias("hops")])]
    });
    check(&hops, |edges| hops_of(edges).iter().map(|(node, hops)| format!("{node}, {hops}")).collect());
}

#[test]
fn variables_read_each_other_and_verbs_outside_are_those_of_lifetimes() {
    // Nodes at an even and at an odd distance. Edges are made distinct outside of the loop, as
    // lifetimes.
    let longer = edges().distinct();
    let step = |from: &Frame| {
        let next = from.join(&longer, [col("node")], [col("src")], How::Inner);
        next.select([col("dst").alias("node")])
    };
    let [even, odd] = iterate([schema(&["node"]), schema(&["node"])], |[even, odd]| {
        [start().union(&step(&odd)).distinct(), step(&even).distinct()]
    });
    let both =
        even.select([col("node"), lit(0_i64).alias("odd")]).union(&odd.select([col("node"), lit(1_i64).alias("odd")]));
    check(&both, |edges| {
        let mut found = BTreeSet::from([(1, 0)]);
        loop {
            let next: BTreeSet<(i64, i64)> = found
                .iter()
                .flat_map(|(a, odd)| edges.iter().filter(move |(from, _)| from == a).map(move |(_, b)| (*b, 1 - odd)))
                .collect();
            let n_found = found.len();
            found.extend(next);
            if found.len() == n_found {
                return found.iter().map(|(node, odd)| format!("{node}, {odd}")).collect();
            }
        }
    });
}

#[test]
fn a_loop_stands_in_a_loop_and_negates() {
    // Nodes that are not reached from 1, and what is reached from those: the inner loop reads the
    // outer variable.
    let next =
        |from: &Frame| from.join(&edges(), [col("node")], [col("src")], How::Inner).select([col("dst").alias("node")]);
    let ends = edges().select([col("dst").alias("node")]).distinct();
    let [outer] = iterate([schema(&["node"])], |[outer]| {
        let reached = start().union(&outer).distinct().iterate(|inner| next(&inner));
        [reached.select([col("node")])]
    });
    let missing = ends.where_not_exists(&outer, [col("node")], [col("node")]);
    check(&missing, |edges| {
        let reached = hops_of(edges);
        let ends: BTreeSet<i64> = edges.iter().map(|(_, b)| *b).collect();
        ends.iter().filter(|node| !reached.contains_key(node)).map(ToString::to_string).collect()
    });
}

#[test]
fn an_aggregate_over_all_of_a_variable_has_no_row_over_nothing() {
    // The number of nodes reached in the round before, as a row of the variable itself.
    let anyway = start().filter(lit(false)).select([col("node").alias("n")]);
    let [counted] = iterate_within(RoundLimit::Return(3.try_into().unwrap()), [schema(&["n"])], |[counted]| {
        let sources = edges().select([col("src").alias("n")]).union(&anyway).distinct();
        [sources.union(&counted.agg([count(col("n")).alias("n")])).distinct()]
    });
    check(&counted, |edges| {
        let sources: BTreeSet<i64> = edges.iter().map(|(a, _)| *a).collect();
        let mut counted = BTreeSet::new();
        for _ in 0..3 {
            let n = counted.len() as i64;
            counted = sources.clone();
            counted.extend((n > 0).then_some(n));
        }
        counted.iter().map(ToString::to_string).collect()
    });
}

#[test]
fn loops_in_groups_do_not_see_each_other() {
    let links = Events::input("links", schema(&["g", "src", "dst"])).frame();
    let begin = Events::input("begin", schema(&["g", "node"])).frame();
    let reached = begin.group_apply_with(&links, [col("g")], |begin, links| {
        begin.iterate(|reached| {
            reached.join(&links, [col("node")], [col("src")], How::Inner).select([col("dst").alias("node")])
        })
    });
    let mut session = Session::new(Options::default()).unwrap();
    let mut run = session.start(&reached).unwrap();
    run.push("begin", [1_i64, 2].map(|g| Event::interval(0, 9, [g.into(), 1_i64.into()])).to_vec()).unwrap();
    // The way from 1 to 3 is in the first group alone: in the second its halves do not meet.
    let link = |g: i64, a: i64, b: i64| Event::interval(0, 9, [g.into(), a.into(), b.into()]);
    run.push("links", vec![link(1, 1, 2), link(1, 2, 3), link(2, 2, 3), link(2, 1, 4)]).unwrap();
    run.finish().unwrap();
    let mut lifetimes: Vec<String> = run.lifetimes().unwrap().iter().map(ToString::to_string).collect();
    lifetimes.sort();
    assert_eq!(lifetimes, ["[0, 9) 1, 1", "[0, 9) 1, 2", "[0, 9) 1, 3", "[0, 9) 2, 1", "[0, 9) 2, 4"]);
}

#[test]
fn what_a_loop_cannot_do_is_told() {
    let mut session = Session::new(Options::default()).unwrap();
    let mut refused = |frame: &Frame| session.start(frame).err().map(|error| error.to_string()).unwrap();
    let windows = start().iterate(|reached| reached.tumbling(10));
    assert!(refused(&windows).contains("a verb on lifetimes is not supported over a variable of a loop"));
    let misfit = start().iterate(|reached| reached.select([lit("a").alias("node")]));
    assert!(refused(&misfit).contains("different columns"));
    let [misfit] = iterate([schema(&["node"])], |_| [edges()]);
    assert_eq!(refused(&misfit), "the body of a loop yields other columns than its variable has");
    let mut kept = None;
    let _ = start().iterate(|reached| {
        kept = Some(reached.clone());
        reached
    });
    assert_eq!(refused(&kept.unwrap()), "a variable of a loop is used outside of the loop's body");
}

#[test]
fn the_example_of_loops_says_what_is_reached() {
    let answers = example::answers().unwrap();
    assert_eq!(answers[0].0, "reached");
    assert_eq!(answers[0].1, ["[0, 100) 1", "[0, 40) 2", "[10, 40) 3", "[50, 100) 2", "[50, 100) 3"]);
    assert_eq!(answers[1].0, "hops");
    let expected = [
        "[0, 100) 1, 0",
        "[0, 40) 2, 1",
        "[10, 40) 3, 2",
        "[50, 60) 2, 2",
        "[50, 70) 3, 1",
        "[60, 100) 2, 1",
        "[70, 100) 3, 2",
    ];
    assert_eq!(answers[1].1, expected);
}
