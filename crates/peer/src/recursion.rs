//! Recursive queries kept current, written against `differential-dataflow`.
//!
//! Law: the answer of each program is that of our SQL text of the same name. Rows are pairs of
//! `u64`; relations have the order that [`PROGRAMS`] gives. Inputs are arranged once and entered
//! into the loop; loops are rotated so that the arrangement which `reduce` makes is the one that
//! the join reads, as `differential-dataflow`'s own graph library does.

use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::Iterate;
use differential_dataflow::operators::iterate::Variable;
use differential_dataflow::trace::implementations::{KeyBuilder, KeySpine, ValBuilder, ValSpine};
use timely::order::Product;
use timely::progress::Timestamp;

use crate::standing::{self, Pair, Rows, Standing};

/// The programs, each with the number of its relations.
pub const PROGRAMS: [(&str, usize); 6] =
    [("reach", 2), ("bfs", 2), ("components", 1), ("closure", 1), ("same-generation", 1), ("points-to", 4)];

/// Builds a program on a worker of this thread, and hands it to `drive`.
///
/// # Panics
/// If the program is not one of [`PROGRAMS`].
pub fn run<R: Send + Sync + 'static>(
    program: &str,
    drive: impl FnOnce(&mut dyn Standing) -> R + Send + Sync + 'static,
) -> R {
    let program = program.to_owned();
    let n_relations = PROGRAMS.iter().find(|(name, _)| *name == program).expect("the program is known").1;
    standing::run(n_relations, move |relations| build(&program, relations), drive)
}

fn build<'s, T>(program: &str, relations: Vec<Rows<'s, T, Pair>>) -> Rows<'s, T, Pair>
where
    T: Timestamp + Lattice + Ord,
{
    let mut relations = relations.into_iter();
    let mut next = || relations.next().expect("a program has its relations");
    match program {
        "reach" => reach(next(), next()),
        "bfs" => bfs(next(), next()),
        "components" => components(next()),
        "closure" => closure(next()),
        "same-generation" => same_generation(next()),
        _ => points_to(next(), next(), next(), next()),
    }
}

/// Nodes that a root leads to, as pairs of a node and itself.
fn reach<'s, T>(edges: Rows<'s, T, Pair>, roots: Rows<'s, T, Pair>) -> Rows<'s, T, Pair>
where
    T: Timestamp + Lattice + Ord,
{
    let outer = edges.scope();
    let edges = edges.arrange_by_key();
    outer.scoped::<Product<T, u64>, _, _>("Reach", |scope| {
        let (edges, roots) = (edges.enter(scope), roots.map(|(root, _)| root).enter(scope));
        let (variable, proposals) = Variable::new(scope, Product::new(Default::default(), 1));
        let reached = proposals
            .concat(roots)
            .map(|node| (node, ()))
            .reduce_abelian::<_, KeyBuilder<_, _, _>, KeySpine<_, _, _>>("Reach", |_, _, out| out.push(((), 1)));
        variable.set(reached.clone().join_core(edges, |_, (), next: &u64| Some(*next)));
        reached.as_collection(|node, ()| (*node, *node)).leave(outer)
    })
}

/// The least number of edges from a root to each node.
fn bfs<'s, T>(edges: Rows<'s, T, Pair>, roots: Rows<'s, T, Pair>) -> Rows<'s, T, Pair>
where
    T: Timestamp + Lattice + Ord,
{
    let outer = edges.scope();
    let edges = edges.arrange_by_key();
    outer.scoped::<Product<T, u64>, _, _>("Bfs", |scope| {
        let (edges, roots) = (edges.enter(scope), roots.map(|(root, _)| (root, 0)).enter(scope));
        let (variable, proposals) = Variable::new(scope, Product::new(Default::default(), 1));
        let nearest = proposals
            .concat(roots)
            .reduce_abelian::<_, ValBuilder<_, _, _, _>, ValSpine<_, _, _, _>>("Bfs", |_, distances, out| {
                out.push((*distances[0].0, 1))
            });
        variable.set(nearest.clone().join_core(edges, |_, distance: &u64, next: &u64| Some((*next, distance + 1))));
        nearest.as_collection(|node, distance| (*node, *distance)).leave(outer)
    })
}

/// The least node of each node's component, edges taken both ways.
fn components<'s, T>(edges: Rows<'s, T, Pair>) -> Rows<'s, T, Pair>
where
    T: Timestamp + Lattice + Ord,
{
    let outer = edges.scope();
    let both = edges.clone().map(|(a, b)| (b, a)).concat(edges);
    let nodes = both.clone().map(|(a, _)| a).distinct().map(|node| (node, node));
    let edges = both.arrange_by_key();
    outer.scoped::<Product<T, u64>, _, _>("Components", |scope| {
        let (edges, nodes) = (edges.enter(scope), nodes.enter(scope));
        let (variable, proposals) = Variable::new(scope, Product::new(Default::default(), 1));
        let labels = proposals
            .concat(nodes)
            .reduce_abelian::<_, ValBuilder<_, _, _, _>, ValSpine<_, _, _, _>>("Components", |_, labels, out| {
                out.push((*labels[0].0, 1))
            });
        variable.set(labels.clone().join_core(edges, |_, label: &u64, next: &u64| Some((*next, *label))));
        labels.as_collection(|node, label| (*node, *label)).leave(outer)
    })
}

/// Pairs of nodes that a path of one or more edges joins.
fn closure<'s, T>(edges: Rows<'s, T, Pair>) -> Rows<'s, T, Pair>
where
    T: Timestamp + Lattice + Ord,
{
    let by_start = edges.clone().arrange_by_key();
    edges.clone().iterate(|scope, paths| {
        let (edges, by_start) = (edges.enter(scope), by_start.enter(scope));
        paths
            .map(|(from, to)| (to, from))
            .arrange_by_key()
            .join_core(by_start, |_, from: &u64, to: &u64| Some((*from, *to)))
            .concat(edges)
            .distinct()
    })
}

/// Pairs of nodes at the same depth below a common ancestor; rows of the relation are (child,
/// parent).
fn same_generation<'s, T>(parents: Rows<'s, T, Pair>) -> Rows<'s, T, Pair>
where
    T: Timestamp + Lattice + Ord,
{
    let by_parent = parents.map(|(child, parent)| (parent, child)).arrange_by_key();
    let siblings =
        by_parent.clone().join_core(by_parent.clone(), |_, one: &u64, other: &u64| Some((*one, *other))).distinct();
    siblings.clone().iterate(|scope, pairs| {
        let (siblings, by_parent) = (siblings.enter(scope), by_parent.enter(scope));
        pairs
            .arrange_by_key()
            .join_core(by_parent.clone(), |_, other: &u64, child: &u64| Some((*other, *child)))
            .arrange_by_key()
            .join_core(by_parent, |_, one: &u64, other: &u64| Some((*one, *other)))
            .concat(siblings)
            .distinct()
    })
}

/// Andersen's analysis: pairs of a variable and an object that the variable may point to.
///
/// Rows: `new` (variable, object), `assign` (to, from), `load` (to, pointer): `to = *pointer`,
/// `store` (pointer, from): `*pointer = from`.
fn points_to<'s, T>(
    new: Rows<'s, T, Pair>,
    assign: Rows<'s, T, Pair>,
    load: Rows<'s, T, Pair>,
    store: Rows<'s, T, Pair>,
) -> Rows<'s, T, Pair>
where
    T: Timestamp + Lattice + Ord,
{
    let assigned = assign.map(|(to, from)| (from, to)).arrange_by_key();
    let loaded = load.map(|(to, pointer)| (pointer, to)).arrange_by_key();
    let stored = store.arrange_by_key();
    new.clone().iterate(|scope, known| {
        let new = new.enter(scope);
        let (assigned, loaded, stored) = (assigned.enter(scope), loaded.enter(scope), stored.enter(scope));
        let known = known.arrange_by_key();
        let copied = known.clone().join_core(assigned, |_, object: &u64, to: &u64| Some((*to, *object)));
        let read = known
            .clone()
            .join_core(loaded, |_, object: &u64, to: &u64| Some((*object, *to)))
            .arrange_by_key()
            .join_core(known.clone(), |_, to: &u64, object: &u64| Some((*to, *object)));
        let written = known
            .clone()
            .join_core(stored, |_, object: &u64, from: &u64| Some((*from, *object)))
            .arrange_by_key()
            .join_core(known, |_, into: &u64, object: &u64| Some((*into, *object)));
        copied.concat(read).concat(written).concat(new).distinct()
    })
}
