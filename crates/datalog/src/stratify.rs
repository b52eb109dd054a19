//! Which relations depend on which: components in order, and no relation on its own absence.
//!
//! Source: Tarjan's strongly connected components; Apt, Blair and Walker, *Towards a Theory of
//! Declarative Knowledge* (1988), for stratification. Linear in the rules.

use anabranch_engine::Error;

use crate::ast::Span;
use crate::core::{Core, RelationId, Use};

/// A use of a relation by the rules of another.
struct Edge {
    from: RelationId,
    to: RelationId,
    how: Use,
    at: Span,
}

/// Relations that the rules of each relation read, in order, without repetition.
pub(crate) fn reads(core: &Core) -> Vec<Vec<RelationId>> {
    let mut reads = vec![vec![]; core.relations.len()];
    for Edge { from, to, .. } in edges(core) {
        if !reads[from].contains(&to) {
            reads[from].push(to);
        }
    }
    reads
}

/// Refuses programs in which a relation depends on its own absence.
pub(crate) fn check(core: &Core) -> Result<(), Error> {
    let reads = reads(core);
    let mut component_of = vec![0; core.relations.len()];
    for (number, component) in components(&reads).iter().enumerate() {
        component.iter().for_each(|relation| component_of[*relation] = number);
    }
    let bad = edges(core)
        .into_iter()
        .find(|edge| edge.how != Use::Positive && component_of[edge.from] == component_of[edge.to]);
    bad.map_or(Ok(()), |edge| Err(unstratified(core, &reads, &edge)))
}

/// Strongly connected components, each after those that it reads.
pub(crate) fn components(reads: &[Vec<RelationId>]) -> Vec<Vec<RelationId>> {
    let mut tarjan = Tarjan {
        reads,
        next: 0,
        index: vec![None; reads.len()],
        low: vec![0; reads.len()],
        on_stack: vec![false; reads.len()],
        stack: vec![],
        found: vec![],
    };
    for relation in 0..reads.len() {
        if tarjan.index[relation].is_none() {
            tarjan.visit(relation);
        }
    }
    tarjan.found
}

struct Tarjan<'a> {
    reads: &'a [Vec<RelationId>],
    next: usize,
    index: Vec<Option<usize>>,
    low: Vec<usize>,
    on_stack: Vec<bool>,
    stack: Vec<RelationId>,
    found: Vec<Vec<RelationId>>,
}

impl Tarjan<'_> {
    /// Without recursion: programs have any number of relations.
    fn visit(&mut self, root: RelationId) {
        let mut walk = vec![(root, 0)];
        self.enter(root);
        while let Some((at, edge)) = walk.pop() {
            let Some(&to) = self.reads[at].get(edge) else {
                self.leave(at);
                if let Some((parent, _)) = walk.last() {
                    self.low[*parent] = self.low[*parent].min(self.low[at]);
                }
                continue;
            };
            walk.push((at, edge + 1));
            match self.index[to] {
                None => {
                    self.enter(to);
                    walk.push((to, 0));
                }
                Some(index) if self.on_stack[to] => self.low[at] = self.low[at].min(index),
                Some(_) => {}
            }
        }
    }

    fn enter(&mut self, relation: RelationId) {
        self.index[relation] = Some(self.next);
        self.low[relation] = self.next;
        self.next += 1;
        self.stack.push(relation);
        self.on_stack[relation] = true;
    }

    fn leave(&mut self, relation: RelationId) {
        if self.index[relation] != Some(self.low[relation]) {
            return;
        }
        let place = self.stack.iter().rposition(|other| *other == relation);
        let mut component = self.stack.split_off(place.expect("a relation is on the stack until its component is"));
        component.iter().for_each(|other| self.on_stack[*other] = false);
        component.sort_unstable();
        self.found.push(component);
    }
}

fn edges(core: &Core) -> Vec<Edge> {
    let mut edges = vec![];
    for rule in &core.rules {
        let from = rule.head;
        for literal in &rule.body {
            literal.relations(&mut |to, how, at| edges.push(Edge { from, to, how, at }));
        }
    }
    edges
}

fn unstratified(core: &Core, reads: &[Vec<RelationId>], edge: &Edge) -> Error {
    let name = |relation: RelationId| core.relations[relation].name.as_str();
    let mut cycle = vec![name(edge.from).to_owned()];
    let (mark, what, way_out) = match edge.how {
        Use::Negated => ("!", "its own absence", "Negate a relation that does not depend on"),
        _ => ("aggregate of ", "an aggregate over itself", "Aggregate over a relation that does not depend on"),
    };
    for (place, relation) in path(reads, edge.to, edge.from).into_iter().enumerate() {
        cycle.push(format!("{}{}", if place == 0 { mark } else { "" }, name(relation)));
    }
    Error::invalid(format!("relation {} depends on {what}", name(edge.from)))
        .at(edge.at.start)
        .with_detail(format!("The cycle is {}.", cycle.join(" -> ")))
        .with_hint(format!("{way_out} {}.", name(edge.from)))
}

/// A shortest path, both ends included.
fn path(reads: &[Vec<RelationId>], from: RelationId, to: RelationId) -> Vec<RelationId> {
    let mut before = vec![None; reads.len()];
    let mut queue = std::collections::VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        if at == to {
            break;
        }
        for next in &reads[at] {
            if before[*next].is_none() && *next != from {
                before[*next] = Some(at);
                queue.push_back(*next);
            }
        }
    }
    let mut path = vec![to];
    while let Some(at) = path.last().and_then(|at| before[*at]) {
        path.push(at);
    }
    path.reverse();
    path
}
