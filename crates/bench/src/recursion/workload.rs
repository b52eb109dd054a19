//! Inputs of recursive programs: rows to load, and one change after the other.
//!
//! Law: equal options give equal rows and changes on both sides. A change takes away a row that is
//! there, or brings one; the two alternate, so the size of the input stays what it was.

use std::collections::BTreeSet;

use anabranch_peer::standing::Pair;

use crate::rows::Numbers;

/// The shape of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Both ends of an edge are any nodes, equally likely.
    Random,
    /// Few nodes have most of the edges: node `n * u^3` for `u` equally likely in [0, 1).
    Power,
    /// Every node but the root has one parent; a node has three children.
    Tree,
    /// Edges to the right and down.
    Grid,
}

/// What a program is run on.
pub struct Workload {
    /// Rows of each relation, in the order of the program.
    pub relations: Vec<Vec<Pair>>,
    /// The relation that changes.
    pub changing: usize,
    /// Rows that come in place of old ones.
    fresh: Box<dyn Iterator<Item = Pair> + Send + Sync>,
    /// Positions of rows that go.
    places: Numbers,
}

impl Workload {
    /// A row that goes, and one that comes in its place.
    pub fn replace(&mut self) -> (Pair, Pair) {
        let rows = &mut self.relations[self.changing];
        let place = self.places.next().expect("numbers do not end") as usize;
        let new = self.fresh.next().expect("rows do not end");
        (std::mem::replace(&mut rows[place], new), new)
    }
}

/// A graph of so many nodes and edges, with a root at node 0 for the programs that start from one.
pub fn graph(shape: Shape, nodes: u64, edges: usize, has_root: bool) -> Workload {
    let rows = match shape {
        Shape::Tree => (1..nodes).map(|node| ((node - 1) / 3, node)).collect(),
        Shape::Grid => grid(nodes),
        Shape::Random | Shape::Power => ends(shape, nodes, 1).take(edges).collect(),
    };
    // Trees and grids change by random edges forward, so they stay free of cycles.
    let fresh: Box<dyn Iterator<Item = Pair> + Send + Sync> = match shape {
        Shape::Tree | Shape::Grid => Box::new(forward(nodes)),
        Shape::Random | Shape::Power => Box::new(ends(shape, nodes, 2)),
    };
    of_edges(rows, fresh, has_root)
}

fn of_edges(rows: Vec<Pair>, fresh: Box<dyn Iterator<Item = Pair> + Send + Sync>, has_root: bool) -> Workload {
    let places = Numbers::new(3, rows.len() as u64);
    let roots = has_root.then(|| vec![(0, 0)]);
    Workload { relations: std::iter::once(rows).chain(roots).collect(), changing: 0, fresh, places }
}

/// Rows (child, parent) of a tree or of random parents.
pub fn parents(shape: Shape, nodes: u64) -> Workload {
    let mut workload = graph(shape, nodes, nodes as usize, false);
    workload.relations[0].iter_mut().for_each(|row| *row = (row.1, row.0));
    workload.fresh = Box::new(workload.fresh.map(|(a, b)| (b, a)));
    workload
}

fn ends(shape: Shape, nodes: u64, seed: u64) -> impl Iterator<Item = Pair> + Send + Sync {
    const FINE: u64 = 1 << 52;
    let bound = if shape == Shape::Power { FINE } else { nodes };
    let end = move |number: u64| match shape {
        Shape::Power => ((number as f64 / FINE as f64).powi(3) * nodes as f64) as u64,
        _ => number,
    };
    let (mut from, mut to) = (Numbers::new(seed * 10, bound), Numbers::new(seed * 10 + 1, bound));
    std::iter::from_fn(move || Some((end(from.next()?), end(to.next()?))))
}

fn forward(nodes: u64) -> impl Iterator<Item = Pair> + Send + Sync {
    let mut numbers = Numbers::new(20, nodes - 1);
    std::iter::from_fn(move || {
        let from = numbers.next()?;
        Some((from, (from + 1 + numbers.next()? % 8).min(nodes - 1)))
    })
}

fn grid(nodes: u64) -> Vec<Pair> {
    let side = (nodes as f64).sqrt() as u64;
    let mut rows = Vec::new();
    for node in 0..side * side {
        if node % side + 1 < side {
            rows.push((node, node + 1));
        }
        if node + side < side * side {
            rows.push((node, node + side));
        }
    }
    rows
}

/// Variables of a function: most statements stay within one.
const FUNCTION: u64 = 20;

/// A program of so many statements: of a hundred, 20 make an object, 60 copy, 10 load and 10 store.
/// Variables are half as many as statements; four fifths of the statements are about variables of
/// one function, the others reach the next one.
pub fn statements(count: usize) -> Workload {
    let variables = (count as u64 / 2).max(2 * FUNCTION);
    let mut numbers = Numbers::new(30, 1 << 40);
    let mut number = move |bound: u64| numbers.next().expect("numbers do not end") % bound;
    let mut relations: Vec<BTreeSet<Pair>> = vec![BTreeSet::new(); 4];
    for statement in 0..count {
        let to = number(variables);
        let base = to - to % FUNCTION + if number(5) == 0 { FUNCTION } else { 0 };
        let from = (base + number(FUNCTION)).min(variables - 1);
        let (relation, row) = match statement % 10 {
            // An object has a number of its own and a field, which is a variable that is beyond the
            // others.
            0 | 1 => (0, (to, variables + statement as u64)),
            2..=7 => (1, (to, from)),
            8 => (2, (to, from)),
            _ => (3, (to, from)),
        };
        relations[relation].insert(row);
    }
    let relations: Vec<Vec<Pair>> = relations.into_iter().map(|rows| rows.into_iter().collect()).collect();
    let places = Numbers::new(3, relations[1].len() as u64);
    let mut numbers = Numbers::new(31, variables - FUNCTION);
    let fresh = std::iter::from_fn(move || {
        let to = numbers.next()?;
        Some((to, to - to % FUNCTION + numbers.next()? % FUNCTION))
    });
    Workload { relations, changing: 1, fresh: Box::new(fresh), places }
}
