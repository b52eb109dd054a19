//! Questions about graphs as views over edges that change, against plain searches after each change.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_engine::graphs::Edges;

use crate::support::{ask, run, with_workers};

const CHANGES: usize = 50;
const NODES: u64 = 12;

type Edge = (i64, i64, i64);

/// Pseudo-random numbers below a bound.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn questions() -> Vec<(&'static str, String)> {
    let edges = Edges::of("edges");
    vec![
        ("reach", edges.reach(1)),
        ("hops", edges.hops(1)),
        ("distances", edges.distances(1)),
        ("components", edges.components()),
        ("strong_components", edges.strong_components()),
        ("core", edges.core(2)),
        ("triangles", edges.triangles()),
        ("cliques_of_four", edges.cliques_of_four()),
    ]
}

fn nodes(edges: &[Edge]) -> BTreeSet<i64> {
    edges.iter().flat_map(|(a, b, _)| [*a, *b]).collect()
}

/// Least costs of ways from a node.
fn ways(edges: &[Edge], from: i64, cost: &dyn Fn(i64) -> i64) -> BTreeMap<i64, i64> {
    let mut found = BTreeMap::from([(from, 0)]);
    loop {
        let mut is_changed = false;
        for (a, b, w) in edges {
            let Some(there) = found.get(a).map(|so_far| so_far + cost(*w)) else { continue };
            if found.get(b).is_none_or(|known| there < *known) {
                found.insert(*b, there);
                is_changed = true;
            }
        }
        if !is_changed {
            return found;
        }
    }
}

fn answer(question: &str, edges: &[Edge]) -> Vec<String> {
    let all = nodes(edges);
    let both: Vec<Edge> = edges.iter().flat_map(|(a, b, w)| [(*a, *b, *w), (*b, *a, *w)]).collect();
    let linked: BTreeSet<(i64, i64)> = both.iter().filter(|(a, b, _)| a != b).map(|(a, b, _)| (*a, *b)).collect();
    let reach = |edges: &[Edge], from: i64| ways(edges, from, &|_| 0).into_keys().collect::<BTreeSet<i64>>();
    let pairs = |found: BTreeMap<i64, i64>| found.iter().map(|(a, b)| format!("{a} {b}")).collect();
    match question {
        "reach" => reach(edges, 1).iter().map(i64::to_string).collect(),
        "hops" => pairs(ways(edges, 1, &|_| 1)),
        "distances" => pairs(ways(edges, 1, &|w| w)),
        "components" => all.iter().map(|a| format!("{a} {}", reach(&both, *a).first().unwrap())).collect(),
        "strong_components" => {
            let of = |a: i64| reach(edges, a).into_iter().filter(|b| reach(edges, *b).contains(&a)).min().unwrap();
            all.iter().map(|a| format!("{a} {}", of(*a))).collect()
        }
        "core" => {
            let mut left: BTreeSet<i64> = linked.iter().map(|(a, _)| *a).collect();
            loop {
                let links = |a: i64| left.iter().filter(|b| linked.contains(&(a, **b))).count();
                let kept: BTreeSet<i64> = left.iter().copied().filter(|a| links(*a) >= 2).collect();
                if kept.len() == left.len() {
                    return kept.iter().map(i64::to_string).collect();
                }
                left = kept;
            }
        }
        _ => {
            let size = if question == "triangles" { 3 } else { 4 };
            let mut sets: Vec<Vec<i64>> = all.iter().map(|a| vec![*a]).collect();
            for _ in 1..size {
                let grown = sets.iter().flat_map(|set| {
                    let fits = |b: &&i64| set.iter().all(|a| a < *b && linked.contains(&(*a, **b)));
                    all.iter().filter(fits).map(|b| [set.as_slice(), &[*b]].concat()).collect::<Vec<_>>()
                });
                sets = grown.collect();
            }
            sets.iter().map(|set| set.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")).collect()
        }
    }
}

#[test]
fn views_of_graphs_are_right_after_each_change_of_edges() {
    with_workers(|session| {
        run(session, "CREATE TABLE edges (src bigint, dst bigint, weight bigint)");
        for (name, query) in questions() {
            run(session, &format!("CREATE MATERIALIZED VIEW {name} AS {query}"));
        }
        let (mut numbers, mut edges) = (Numbers(7), Vec::<Edge>::new());
        for change in 0..CHANGES {
            if change % 3 == 2 {
                let at = numbers.below(edges.len() as u64) as usize;
                let (a, b, _) = edges[at];
                edges.retain(|edge| (edge.0, edge.1) != (a, b));
                run(session, &format!("DELETE FROM edges WHERE src = {a} AND dst = {b}"));
            } else {
                let mut new = || (numbers.below(NODES) as i64, numbers.below(NODES) as i64, numbers.below(9) as i64);
                let (a, b, w) = new();
                edges.push((a, b, w));
                run(session, &format!("INSERT INTO edges VALUES ({a}, {b}, {w})"));
            }
            for (name, _) in questions() {
                let (mut found, mut expected) = (ask(session, &format!("SELECT * FROM {name}")), answer(name, &edges));
                found.sort();
                expected.sort();
                assert_eq!(found, expected, "{name} after change {change}: {edges:?}");
            }
        }
    });
}

#[test]
fn the_documentation_has_the_queries() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/graphs.md");
    let text = std::fs::read_to_string(path).unwrap();
    for (name, query) in questions() {
        assert!(text.contains(&format!("```sql\n{query}\n```")), "{name} is not in docs/graphs.md as\n{query}");
    }
    assert_eq!(text.matches("```sql\n").count(), questions().len() + 1, "one snippet a question, and the table");
}

#[test]
fn relations_go_by_any_name() {
    with_workers(|session| {
        run(session, "CREATE TABLE \"Two Ways\" (src bigint, dst bigint)");
        run(session, "INSERT INTO \"Two Ways\" VALUES (1, 2), (2, 3)");
        assert_eq!(ask(session, &format!("{} ORDER BY node", Edges::of("Two Ways").reach(2))), ["2", "3"]);
    });
}
