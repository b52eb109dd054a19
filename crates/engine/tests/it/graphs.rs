//! Questions about graphs as views over edges that change, against plain searches after each
//! change.

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
        ("page_rank", edges.page_rank(20)),
        ("label_propagation", edges.label_propagation(10)),
        ("clustering", edges.clustering()),
        ("core", edges.core(2)),
        ("triangles", edges.triangles()),
        ("cliques_of_four", edges.cliques_of_four()),
    ]
}

/// The questions with parameters, and their index.
fn asked_for() -> Vec<(&'static str, String)> {
    let edges = Edges::of("edges");
    vec![
        ("index", edges.index()),
        ("look_up", edges.look_up("asked")),
        ("one_hop", edges.one_hop("asked")),
        ("two_hops", edges.two_hops("asked")),
        ("paths_of_four", edges.paths_of_four("pairs")),
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

/// Ranks in units of 10^-15, rounded down as the query does.
fn page_rank(edges: &[Edge], rounds: usize) -> BTreeMap<i64, i64> {
    const ALL: i64 = 1_000_000_000_000_000;
    let links: BTreeSet<(i64, i64)> = edges.iter().map(|(a, b, _)| (*a, *b)).collect();
    let all = nodes(edges);
    let n = all.len() as i64;
    let degree = |a: i64| links.iter().filter(|(from, _)| *from == a).count() as i64;
    let mut ranks: BTreeMap<i64, i64> = all.iter().map(|a| (*a, ALL / n)).collect();
    for _ in 0..rounds {
        let lost: i64 = ranks.iter().filter(|(a, _)| degree(**a) == 0).map(|(_, rank)| rank).sum();
        let given = |b: i64| {
            let shares = links.iter().filter(|(_, to)| *to == b).map(|(a, _)| 85 * ranks[a] / (100 * degree(*a)));
            shares.sum::<i64>()
        };
        ranks = all.iter().map(|b| (*b, ALL * 15 / 100 / n + 85 * lost / (100 * n) + given(*b))).collect();
    }
    ranks
}

/// A rank as a decimal of fifteen places, without zeros at the end.
fn decimal(rank: i64) -> String {
    format!("0.{rank:015}")
}

fn label_propagation(edges: &[Edge], rounds: usize) -> BTreeMap<i64, i64> {
    let links: BTreeSet<(i64, i64)> = edges.iter().map(|(a, b, _)| (*a, *b)).collect();
    let mut labels: BTreeMap<i64, i64> = nodes(edges).into_iter().map(|a| (a, a)).collect();
    for _ in 0..rounds {
        let label = |a: i64| {
            let mut votes: BTreeMap<i64, usize> = BTreeMap::new();
            for (from, to) in &links {
                let near = [(*from == a).then_some(to), (*to == a).then_some(from)];
                near.into_iter().flatten().for_each(|b| *votes.entry(labels[b]).or_default() += 1);
            }
            // (Of equal numbers of votes the first, which has the least label.)
            let most = votes.values().max().copied();
            *votes.iter().find(|(_, n)| Some(**n) == most).unwrap().0
        };
        labels = labels.keys().map(|a| (*a, label(*a))).collect();
    }
    labels
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
        "page_rank" => page_rank(edges, 20).iter().map(|(a, rank)| format!("{a} {}", decimal(*rank))).collect(),
        "label_propagation" => label_propagation(edges, 10).iter().map(|(a, label)| format!("{a} {label}")).collect(),
        "clustering" => {
            let closed = |a: &i64| {
                let near: Vec<i64> = all.iter().copied().filter(|b| linked.contains(&(*a, *b))).collect();
                let is_edge = |b: i64, c: i64| b != c && edges.iter().any(|(from, to, _)| (*from, *to) == (b, c));
                let arcs = near.iter().flat_map(|b| near.iter().filter(|c| is_edge(*b, **c))).count();
                (!near.is_empty()).then_some((*a, arcs, near.len()))
            };
            let share = |(a, arcs, near): (i64, usize, usize)| {
                format!("{a} {:.9}", arcs as f64 / (near * (near - 1)).max(1) as f64)
            };
            all.iter().filter_map(closed).map(share).collect()
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
                // (A quotient has as many digits as its operands want.)
                let columns = if name == "clustering" { "node, coefficient::numeric(12, 9)" } else { "*" };
                let asked = format!("SELECT {columns} FROM {name}");
                let (mut found, mut expected) = (ask(session, &asked), answer(name, &edges));
                found.sort();
                expected.sort();
                assert_eq!(found, expected, "{name} after change {change}: {edges:?}");
            }
        }
    });
}

/// Ways of `n` edges from a node, as the nodes on them.
fn ways_of(edges: &BTreeSet<(i64, i64)>, from: i64, n: usize) -> Vec<Vec<i64>> {
    let mut ways = vec![vec![from]];
    for _ in 0..n {
        let longer = |way: &Vec<i64>| {
            let next = edges.iter().filter(|(a, _)| Some(a) == way.last());
            next.map(|(_, b)| [way.as_slice(), &[*b]].concat()).collect::<Vec<_>>()
        };
        ways = ways.iter().flat_map(longer).collect();
    }
    ways
}

fn answer_of(question: &str, edges: &BTreeSet<(i64, i64)>, nodes: &[i64], pairs: &[(i64, i64)]) -> Vec<String> {
    let line = |way: &[i64]| way.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
    let ends = |n: usize| {
        let of = |a: &i64| ways_of(edges, *a, n).into_iter().map(|way| line(&[way[0], way[n]])).collect::<Vec<_>>();
        nodes.iter().flat_map(of).collect()
    };
    match question {
        "look_up" => {
            let degrees = nodes.iter().map(|a| (*a, edges.iter().filter(|(from, _)| from == a).count() as i64));
            degrees.filter(|(_, degree)| *degree > 0).map(|(a, degree)| line(&[a, degree])).collect()
        }
        "one_hop" => ends(1),
        "two_hops" => ends(2),
        _ => {
            let of = |(a, b): &(i64, i64)| {
                let ways = ways_of(edges, *a, 4).into_iter().filter(|way| way.last() == Some(b));
                ways.map(|way| line(&way)).collect::<Vec<_>>()
            };
            pairs.iter().flat_map(of).collect()
        }
    }
}

#[test]
fn questions_come_and_go_while_edges_change_and_share_one_index() {
    with_workers(|session| {
        run(session, "CREATE TABLE edges (src bigint, dst bigint, weight bigint)");
        run(session, "CREATE TABLE asked (node bigint); CREATE TABLE pairs (src bigint, dst bigint)");
        let (index, questions) =
            asked_for().split_first().map(|(index, rest)| (index.1.clone(), rest.to_vec())).unwrap();
        run(session, &index);
        for (name, query) in &questions {
            let plan = ask(session, &format!("EXPLAIN {query}"));
            let scans: Vec<&String> = plan.iter().filter(|line| line.contains("Scan edges")).collect();
            let reads_index = scans.iter().all(|line| line.ends_with("uses index edges_by_src (src)"));
            assert!(reads_index && !scans.is_empty(), "{name} reads more than the index:\n{}", plan.join("\n"));
        }
        for (name, query) in &questions {
            run(session, &format!("CREATE MATERIALIZED VIEW {name} AS {query}"));
        }
        let (mut numbers, mut edges) = (Numbers(11), BTreeSet::<(i64, i64)>::new());
        let (mut asked, mut pairs): (Vec<i64>, Vec<(i64, i64)>) = (vec![], vec![]);
        for change in 0..CHANGES {
            let mut number = || numbers.below(NODES) as i64;
            let (a, b) = (number(), number());
            match edges.remove(&(a, b)) {
                true => run(session, &format!("DELETE FROM edges WHERE src = {a} AND dst = {b}")),
                false if edges.insert((a, b)) => run(session, &format!("INSERT INTO edges VALUES ({a}, {b}, 1)")),
                false => unreachable!(),
            };
            let (a, b) = (number(), number());
            asked.push(a);
            pairs.push((a, b));
            run(session, &format!("INSERT INTO asked VALUES ({a}); INSERT INTO pairs VALUES ({a}, {b})"));
            if change % 3 == 2 {
                let (a, (c, d)) = (asked[0], pairs[0]);
                asked.retain(|node| *node != a);
                pairs.retain(|pair| *pair != (c, d));
                run(session, &format!("DELETE FROM asked WHERE node = {a}"));
                run(session, &format!("DELETE FROM pairs WHERE src = {c} AND dst = {d}"));
            }
            // (A node that is asked for twice would count twice.)
            let (mut once, mut pairs_once) = (asked.clone(), pairs.clone());
            once.sort_unstable();
            pairs_once.sort_unstable();
            let is_single = once.windows(2).all(|two| two[0] != two[1]);
            for (name, _) in questions.iter().filter(|(name, _)| is_single || *name != "look_up") {
                let (mut found, mut expected) =
                    (ask(session, &format!("SELECT * FROM {name}")), answer_of(name, &edges, &once, &pairs_once));
                found.sort();
                expected.sort();
                assert_eq!(found, expected, "{name} after change {change}: {edges:?}, {asked:?}, {pairs:?}");
            }
        }
        // Beside the rows of the table there is the index, and no other arrangement of edges.
        session.wait().unwrap();
        let shown = ask(session, "SHOW ARRANGEMENTS");
        let of_edges: Vec<&String> =
            shown.iter().filter(|line| line.starts_with("edges ") || line.starts_with("Scan edges")).collect();
        let is_known = |line: &&&String| line.starts_with("edges src, dst, weight ") || line.starts_with("edges src ");
        assert_eq!(of_edges.iter().filter(is_known).count(), 2, "{shown:?}");
        assert_eq!(of_edges.len(), 2, "the rows of the table, and one index for all questions: {shown:?}");
    });
}

#[test]
fn the_documentation_has_the_queries() {
    let path = std::path::PathBuf::from("../../docs/graphs.md");
    let text = std::fs::read_to_string(path).unwrap();
    let all: Vec<(&str, String)> = questions().into_iter().chain(asked_for()).collect();
    for (name, query) in &all {
        assert!(text.contains(&format!("```sql\n{query}\n```")), "{name} is not in docs/graphs.md as\n{query}");
    }
    assert_eq!(text.matches("```sql\n").count(), all.len() + 3, "one snippet a question, and three tables");
}

#[test]
fn relations_go_by_any_name() {
    with_workers(|session| {
        run(session, "CREATE TABLE \"Two Ways\" (src bigint, dst bigint)");
        run(session, "INSERT INTO \"Two Ways\" VALUES (1, 2), (2, 3)");
        assert_eq!(ask(session, &format!("{} ORDER BY node", Edges::of("Two Ways").reach(2))), ["2", "3"]);
    });
}
