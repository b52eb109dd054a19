//! Histories of transactions, and whether they are strictly serialisable.
//!
//! Each value is *appended* to a list once in a history, and reads give whole lists. So the order
//! of the versions of a list shows in what was read, and every dependency between transactions is
//! known (Kingsbury and Alvaro, "Elle", VLDB 2020, section 3). A set is a list for each element: it
//! holds the element or nothing.
//!
//! Law: [`check`] accepts exactly the histories for which there is an order of the committed
//! transactions that explains all reads, and in which a transaction that ended before another began
//! comes before it. A circle of dependencies is the proof that there is none. Cost: linear in what
//! was read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A list that is appended to.
pub type Key = u64;

/// A value, appended once in a history.
pub type Value = u64;

/// One transaction, as its client saw it.
#[derive(Clone, Debug)]
pub struct Deed {
    /// Whose it was, for messages.
    pub client: usize,
    /// Before its first statement was sent, and after its last was answered; on one clock, all
    /// different.
    pub began: u64,
    /// See `began`.
    pub ended: u64,
    /// What became of it.
    pub fate: Fate,
    /// In their order.
    pub acts: Vec<Act>,
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its commit was answered.
    Committed,
    /// It was refused, or rolled back.
    Refused,
}

/// What a transaction did to a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// All of the list.
    Read(Key, Vec<Value>),
    /// One value, at its end.
    Append(Key, Value),
}

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// It wrote a version, and the other the next.
    Overwritten,
    /// The other read what it wrote.
    Read,
    /// It did not read what the other wrote.
    Unread,
    /// It had ended when the other began.
    Earlier,
}

/// Checks a history. The last deeds read every list that was appended to.
///
/// # Errors
/// What cannot be, in words.
pub fn check(history: &[Deed]) -> Result<(), String> {
    let writers = writers(history)?;
    let versions = versions(history)?;
    check_lists(history, &writers, &versions)?;
    let mut edges = dependencies(history, &writers, &versions);
    let n_nodes = add_time(history, &mut edges);
    match circle(n_nodes, &edges) {
        None => Ok(()),
        Some(circle) => Err(told(history, &circle, &edges)),
    }
}

/// Which deed appended a value.
fn writers(history: &[Deed]) -> Result<HashMap<(Key, Value), usize>, String> {
    let mut writers = HashMap::new();
    for (deed, act) in acts(history) {
        if let Act::Append(key, value) = act
            && writers.insert((*key, *value), deed).is_some()
        {
            return Err(format!("the history is of no use: {value} is appended to {key} twice"));
        }
    }
    Ok(writers)
}

fn acts(history: &[Deed]) -> impl Iterator<Item = (usize, &Act)> {
    history.iter().enumerate().flat_map(|(at, deed)| deed.acts.iter().map(move |act| (at, act)))
}

/// What a deed has appended itself, of a list.
fn own<'a>(deed: &'a Deed, key: Key) -> impl Iterator<Item = Value> + 'a {
    deed.acts.iter().filter_map(move |act| match act {
        Act::Append(of, value) if *of == key => Some(*value),
        _ => None,
    })
}

/// The longest state of each list that a committed deed has read.
fn versions(history: &[Deed]) -> Result<BTreeMap<Key, Vec<Value>>, String> {
    let mut longest: BTreeMap<Key, Vec<Value>> = BTreeMap::new();
    for (deed, act) in acts(history).filter(|(deed, _)| history[*deed].fate == Fate::Committed) {
        let Act::Read(key, values) = act else { continue };
        let known = longest.entry(*key).or_default();
        let (short, long) = if known.len() < values.len() { (&*known, values) } else { (values, &*known) };
        if !long.starts_with(short) {
            return Err(format!("list {key} was {known:?}, and {} read {values:?}", named(history, deed)));
        }
        if long == values {
            *known = values.clone();
        }
    }
    Ok(longest)
}

/// Reads are of committed values, those of the deed itself included, and no committed value is
/// lost.
fn check_lists(
    history: &[Deed],
    writers: &HashMap<(Key, Value), usize>,
    versions: &BTreeMap<Key, Vec<Value>>,
) -> Result<(), String> {
    let no_values = Vec::new();
    for (at, deed) in history.iter().enumerate() {
        let mut appended: BTreeMap<Key, Vec<Value>> = BTreeMap::new();
        for act in &deed.acts {
            match act {
                Act::Append(key, value) => appended.entry(*key).or_default().push(*value),
                Act::Read(key, values) => {
                    let own = appended.get(key).unwrap_or(&no_values);
                    let Some(before) = values.strip_suffix(own.as_slice()) else {
                        return Err(format!("{} read {values:?} of {key} after {own:?}", named(history, at)));
                    };
                    check_read(history, writers, versions, at, *key, before)?;
                }
            }
        }
        if deed.fate == Fate::Committed {
            for (key, values) in appended {
                let there: BTreeSet<&Value> = versions.get(&key).unwrap_or(&no_values).iter().collect();
                if let Some(lost) = values.iter().find(|value| !there.contains(value)) {
                    return Err(format!("{lost} of {key} is lost, which {} has committed", named(history, at)));
                }
            }
        }
    }
    Ok(())
}

/// What a deed read of others is a state that a list was in.
fn check_read(
    history: &[Deed],
    writers: &HashMap<(Key, Value), usize>,
    versions: &BTreeMap<Key, Vec<Value>>,
    at: usize,
    key: Key,
    before: &[Value],
) -> Result<(), String> {
    for value in before {
        match writers.get(&(key, *value)) {
            None => return Err(format!("{} read {value} of {key}, which no client wrote", named(history, at))),
            Some(writer) if history[*writer].fate == Fate::Refused => {
                return Err(format!("{} read {value} of {key}, which was refused", named(history, at)));
            }
            Some(_) => {}
        }
    }
    let all = versions.get(&key).map_or(&[][..], Vec::as_slice);
    match all.starts_with(before) {
        true => Ok(()),
        false => Err(format!("{} read {before:?} of {key}, which was {all:?}", named(history, at))),
    }
}

/// An arrow between two nodes. The first nodes are deeds.
#[derive(Clone, Copy, Debug)]
struct Dependency {
    from: usize,
    to: usize,
    why: Why,
    /// The list that shows it.
    key: Key,
}

fn dependencies(
    history: &[Deed],
    writers: &HashMap<(Key, Value), usize>,
    versions: &BTreeMap<Key, Vec<Value>>,
) -> Vec<Dependency> {
    let mut edges = Vec::new();
    let mut add = |from: usize, to: usize, why, key| {
        if from != to {
            edges.push(Dependency { from, to, why, key });
        }
    };
    let writer = |key: Key, value: Value| writers[&(key, value)];
    for (key, values) in versions {
        for pair in values.windows(2) {
            add(writer(*key, pair[0]), writer(*key, pair[1]), Why::Overwritten, *key);
        }
    }
    for (deed, act) in acts(history).filter(|(deed, _)| history[*deed].fate == Fate::Committed) {
        let Act::Read(key, values) = act else { continue };
        let own: BTreeSet<Value> = own(&history[deed], *key).collect();
        let n_read = values.iter().take_while(|value| !own.contains(value)).count();
        if let Some(last) = values[..n_read].last() {
            add(writer(*key, *last), deed, Why::Read, *key);
        }
        if let Some(next) = versions.get(key).and_then(|all| all.get(n_read)) {
            add(deed, writer(*key, *next), Why::Unread, *key);
        }
    }
    edges
}

/// Adds that what ended before something began comes before it: by way of one node for each end.
/// Returns the number of nodes.
fn add_time(history: &[Deed], edges: &mut Vec<Dependency>) -> usize {
    let committed = |at: &usize| history[*at].fate == Fate::Committed;
    let mut by_end: Vec<usize> = (0..history.len()).filter(committed).collect();
    by_end.sort_by_key(|at| history[*at].ended);
    let node = |place: usize| history.len() + place;
    for (place, at) in by_end.iter().enumerate() {
        let edge = |from, to| Dependency { from, to, why: Why::Earlier, key: 0 };
        edges.push(edge(*at, node(place)));
        if place > 0 {
            edges.push(edge(node(place - 1), node(place)));
        }
        let n_earlier = by_end.partition_point(|other| history[*other].ended < history[*at].began);
        if n_earlier > 0 {
            edges.push(edge(node(n_earlier - 1), *at));
        }
    }
    history.len() + by_end.len()
}

/// The edges of a circle, by their numbers, if there is one.
fn circle(n_nodes: usize, edges: &[Dependency]) -> Option<Vec<usize>> {
    let mut leaving: Vec<Vec<usize>> = vec![vec![]; n_nodes];
    edges.iter().enumerate().for_each(|(at, edge)| leaving[edge.from].push(at));
    let mut is_done = vec![false; n_nodes];
    let mut on_path = vec![false; n_nodes];
    for start in 0..n_nodes {
        if is_done[start] {
            continue;
        }
        // The path as edges, and how many of the leaving edges of each node of it were tried.
        let (mut path, mut tried): (Vec<usize>, Vec<usize>) = (vec![], vec![0]);
        let mut node = start;
        on_path[start] = true;
        while !is_done[start] {
            let depth = tried.len() - 1;
            match leaving[node].get(tried[depth]) {
                Some(edge) if on_path[edges[*edge].to] => {
                    path.push(*edge);
                    let from = path.iter().position(|at| edges[*at].from == edges[*edge].to).unwrap_or(0);
                    return Some(path.split_off(from));
                }
                Some(edge) => {
                    tried[depth] += 1;
                    if !is_done[edges[*edge].to] {
                        node = edges[*edge].to;
                        on_path[node] = true;
                        path.push(*edge);
                        tried.push(0);
                    }
                }
                None => {
                    (is_done[node], on_path[node]) = (true, false);
                    tried.pop();
                    node = path.pop().map_or(start, |edge| edges[edge].from);
                }
            }
        }
    }
    None
}

fn named(history: &[Deed], at: usize) -> String {
    format!("transaction {at} of client {}", history[at].client)
}

/// A circle in words.
fn told(history: &[Deed], circle: &[usize], edges: &[Dependency]) -> String {
    let mut lines = vec!["no order of these transactions explains what they read:".to_owned()];
    for edge in circle.iter().map(|at| edges[*at]).filter(|edge| edge.from < history.len()) {
        let (from, to) = (named(history, edge.from), edge.to);
        lines.push(match edge.why {
            Why::Overwritten => format!("  {from}: the next version of {} is by {}", edge.key, named(history, to)),
            Why::Read => format!("  {from}: its version of {} was read by {}", edge.key, named(history, to)),
            Why::Unread => format!("  {from}: read {} before the version of {}", edge.key, named(history, to)),
            Why::Earlier => format!("  {from}: ended before the next began"),
        });
        lines.push(format!("    {:?}", history[edge.from]));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A committed deed of client `began`, from `began` to `ended`.
    fn deed(began: u64, ended: u64, acts: &[Act]) -> Deed {
        Deed { client: began as usize, began, ended, fate: Fate::Committed, acts: acts.to_vec() }
    }

    fn read(key: Key, values: &[Value]) -> Act {
        Act::Read(key, values.to_vec())
    }

    #[test]
    fn a_serial_history_is_accepted() {
        check(&[
            deed(1, 2, &[Act::Append(1, 10), read(1, &[10])]),
            deed(3, 4, &[read(1, &[10]), Act::Append(1, 11), Act::Append(2, 20)]),
            deed(5, 6, &[read(1, &[10, 11]), read(2, &[20])]),
        ])
        .unwrap();
    }

    #[test]
    fn transactions_at_one_time_may_be_in_either_order() {
        check(&[
            deed(1, 10, &[Act::Append(1, 10)]),
            deed(2, 9, &[read(1, &[])]),
            deed(3, 8, &[read(1, &[10])]),
            deed(11, 12, &[read(1, &[10])]),
        ])
        .unwrap();
    }

    #[test]
    fn a_deed_that_many_lead_to_is_on_no_circle() {
        // The last one is looked at from the first, and again from those in between.
        let all = [
            deed(1, 20, &[Act::Append(1, 10)]),
            deed(2, 19, &[Act::Append(2, 20)]),
            deed(3, 18, &[Act::Append(3, 30)]),
            deed(21, 30, &[read(1, &[10]), read(2, &[20]), read(3, &[30])]),
            deed(22, 31, &[read(1, &[10]), read(3, &[30])]),
        ];
        check(&all).unwrap();
        let turned: Vec<Deed> = all.into_iter().rev().collect();
        check(&turned).unwrap();
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let last = |values: &[Value]| deed(90, 91, &[read(1, values)]);
        let refused = |acts: &[Act]| Deed { fate: Fate::Refused, ..deed(1, 2, acts) };
        let cases: [(&str, &str, Vec<Deed>); 8] = [
            (
                "a stale read",
                "ended before",
                vec![deed(1, 2, &[Act::Append(1, 10)]), deed(3, 4, &[read(1, &[])]), last(&[10])],
            ),
            ("a lost value", "lost", vec![deed(1, 2, &[Act::Append(1, 10)]), last(&[])]),
            ("a dirty read", "refused", vec![refused(&[Act::Append(1, 10)]), deed(3, 4, &[read(1, &[10])])]),
            ("a read of nothing", "no client wrote", vec![deed(3, 4, &[read(1, &[10])])]),
            (
                "two orders",
                "list 1 was",
                vec![
                    deed(1, 9, &[Act::Append(1, 10)]),
                    deed(2, 8, &[Act::Append(1, 11)]),
                    deed(3, 7, &[read(1, &[10, 11])]),
                    deed(4, 6, &[read(1, &[11, 10])]),
                ],
            ),
            ("an own write unseen", "after [10]", vec![deed(1, 2, &[Act::Append(1, 10), read(1, &[])]), last(&[10])]),
            // Each reads what the other has not written yet.
            (
                "write skew",
                "no order",
                vec![
                    deed(1, 9, &[read(1, &[]), Act::Append(2, 20)]),
                    deed(2, 8, &[read(2, &[]), Act::Append(1, 10)]),
                    deed(90, 91, &[read(1, &[10]), read(2, &[20])]),
                ],
            ),
            // Two readers see two writes in two orders.
            (
                "a long fork",
                "no order",
                vec![
                    deed(1, 20, &[Act::Append(1, 10)]),
                    deed(2, 19, &[Act::Append(2, 20)]),
                    deed(3, 18, &[read(1, &[10]), read(2, &[])]),
                    deed(4, 17, &[read(1, &[]), read(2, &[20])]),
                    deed(90, 91, &[read(1, &[10]), read(2, &[20])]),
                ],
            ),
        ];
        for (name, part, history) in cases {
            let problem = check(&history).expect_err(name);
            assert!(problem.contains(part), "{name}: {problem}");
        }
    }

    #[test]
    fn a_refused_transaction_has_read_what_was_there() {
        let refused = Deed { fate: Fate::Refused, ..deed(3, 4, &[read(1, &[11]), Act::Append(1, 12)]) };
        let history =
            [deed(1, 2, &[Act::Append(1, 10), Act::Append(1, 11)]), refused, deed(90, 91, &[read(1, &[10, 11])])];
        assert!(check(&history).unwrap_err().contains("which was"));
    }
}
