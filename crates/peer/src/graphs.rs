//! Interactive questions about a graph: parameters come and go while edges change.
//!
//! Law: relations are edges, the parameters of the look-ups, of the one-hop, two-hop and four-path
//! questions; an answer row is a pair. With [`Indexes::Shared`] one arrangement of edges serves all
//! questions; else each join arranges the edges anew. Source: *Shared arrangements* (VLDB 2020),
//! section 6.2.

use crate::standing::{self, Pair, Rows, Standing};

/// How many arrangements of the edges there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexes {
    /// One.
    Shared,
    /// One a join.
    Apart,
}

/// Relations of the program.
pub const N_RELATIONS: usize = 5;

/// Builds the four questions on a worker of this thread, and hands them to `drive`.
pub fn run<R: Send + Sync + 'static>(
    indexes: Indexes,
    drive: impl FnOnce(&mut dyn Standing) -> R + Send + Sync + 'static,
) -> R {
    standing::run(N_RELATIONS, move |relations| questions(indexes, relations), drive)
}

fn questions<'s>(indexes: Indexes, relations: Vec<Rows<'s, u64, Pair>>) -> Rows<'s, u64, Pair> {
    let mut relations = relations.into_iter();
    let mut next = || relations.next().expect("the program has its relations");
    let (edges, looked_up, one_hop, two_hops, four_paths) = (next(), next(), next(), next(), next());
    let shared = edges.clone().arrange_by_key();
    let index = || match indexes {
        Indexes::Shared => shared.clone(),
        Indexes::Apart => edges.clone().arrange_by_key(),
    };
    // How many edges leave a node that is asked for.
    let edges_of = looked_up.map(|(node, _)| (node, ())).arrange_by_key().join_core(index(), |node, (), _| Some(*node));
    let looked_up = edges_of.count().map(|(node, count)| (node, count as u64));
    let step = |from: Rows<'s, u64, Pair>| from.arrange_by_key().join_core(index(), |_, asked, to| Some((*to, *asked)));
    let one = step(one_hop.map(|(node, _)| (node, node)));
    let two = step(step(two_hops.map(|(node, _)| (node, node))));
    // Paths of four edges from one node to another: three steps, and the last edge is looked up.
    let pairs = four_paths.clone().map(|pair| (pair, ()));
    let starts = four_paths.map(|(from, _)| (from, from)).distinct();
    let ends = step(step(step(step(starts)))).map(|(to, from)| ((from, to), ()));
    let four = pairs.join_map(ends, |pair, (), ()| *pair);
    looked_up.concat(one).concat(two).concat(four)
}
