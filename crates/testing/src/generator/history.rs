//! What happens to relations: updates at times, and their contents at each time.
//!
//! Law: at every time every row is there zero times or more often. Within a time anything goes:
//! changes that cancel, a removal before the insertion it undoes, the same row inserted again and
//! again.

use std::collections::BTreeSet;

use super::values::{Pool, column_types, row, value};
use crate::build::Relation;
use crate::model::Inputs;
use crate::rng::Rng;
use crate::row::{Contents, Row};

/// One change to a relation.
#[derive(Clone, Debug)]
pub struct Update {
    /// Index of the relation in [`History::relations`].
    pub relation: usize,
    /// The row that changes.
    pub row: Row,
    /// When.
    pub time: i64,
    /// How many copies come (or go, if negative).
    pub diff: i64,
}

/// Relations and all that happens to them.
#[derive(Clone, Debug)]
pub struct History {
    /// The relations.
    pub relations: Vec<Relation>,
    /// The times at which something may happen, ascending, all above zero.
    pub times: Vec<i64>,
    /// The changes, by time.
    pub updates: Vec<Update>,
}

/// How much is to happen.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Number of times.
    pub times: usize,
    /// Changes to each relation at each time, at most.
    pub changes: usize,
    /// Where values come from.
    pub pool: Pool,
}

impl Size {
    /// A few changes at a few times.
    pub const SMALL: Size = Size { times: 6, changes: 8, pool: Pool::Small };
    /// Enough rows for runs to merge.
    pub const LARGE: Size = Size { times: 8, changes: 60, pool: Pool::Wide };
}

impl History {
    /// A random history of the given relations.
    pub fn random(rng: &mut Rng, relations: &[Relation], size: Size) -> History {
        let mut history = History { relations: relations.to_vec(), times: vec![], updates: vec![] };
        let mut contents = vec![Contents::new(); relations.len()];
        let mut time = 0;
        for _ in 0..size.times {
            time += rng.between(1, 4);
            history.times.push(time);
            for (relation, contents) in contents.iter_mut().enumerate() {
                for (row, diff) in changes(rng, &relations[relation], contents, size) {
                    contents.add(row.clone(), diff);
                    history.updates.push(Update { relation, row, time, diff });
                }
            }
        }
        history
    }

    /// What the relations contain after all changes up to `time`.
    pub fn contents_at(&self, time: i64) -> Inputs {
        let mut inputs: Inputs =
            self.relations.iter().map(|relation| (relation.name.clone(), Contents::new())).collect();
        for update in self.updates.iter().filter(|update| update.time <= time) {
            let contents = inputs.get_mut(&self.relations[update.relation].name);
            contents.expect("every relation has an entry").add(update.row.clone(), update.diff);
        }
        inputs
    }

    /// The rows that occur, each once, with the index of their relation.
    pub fn rows(&self) -> Vec<(usize, Row)> {
        let rows: BTreeSet<_> = self.updates.iter().map(|update| (update.relation, update.row.clone())).collect();
        rows.into_iter().collect()
    }

    /// The history without any change to the given rows.
    pub fn without(&self, rows: &[(usize, Row)]) -> History {
        let gone =
            |update: &&Update| !rows.iter().any(|(relation, row)| *relation == update.relation && *row == update.row);
        let updates = self.updates.iter().filter(gone).cloned().collect();
        History { relations: self.relations.clone(), times: self.times.clone(), updates }
    }
}

/// Random relations named `r0`, `r1`, .., whose first two columns are of the same types in all, so
/// that they join.
pub fn relations(rng: &mut Rng, count: usize) -> Vec<Relation> {
    let all = column_types();
    let common = [rng.pick(&all).clone(), rng.pick(&all).clone()];
    let relation = |i: usize| {
        let further = rng.between(1, 3);
        let types: Vec<_> = common.iter().cloned().chain((0..further).map(|_| rng.pick(&all).clone())).collect();
        Relation::new(&format!("r{i}"), &types)
    };
    (0..count).map(relation).collect()
}

/// The changes at one time, in random order.
fn changes(rng: &mut Rng, relation: &Relation, contents: &Contents, size: Size) -> Vec<(Row, i64)> {
    let mut after = contents.clone();
    let mut changes = Vec::new();
    if rng.chance(5) {
        changes.extend(contents.iter().map(|(row, count)| (row.clone(), -count)));
        after = Contents::new();
    }
    for _ in 0..rng.below(size.changes + 1) {
        for (row, diff) in change(rng, relation, &after, size.pool) {
            after.add(row.clone(), diff);
            changes.push((row, diff));
        }
    }
    rng.shuffle(&mut changes);
    changes
}

/// A change that keeps every count at zero or above: insertion, removal, replacement, or something
/// that cancels.
fn change(rng: &mut Rng, relation: &Relation, contents: &Contents, pool: Pool) -> Vec<(Row, i64)> {
    let new = row(rng, &relation.types, pool);
    let Some((old, count)) = pick_row(rng, contents) else {
        return vec![(new, 1)];
    };
    match rng.below(10) {
        0..=3 => vec![(new, rng.between(1, 2))],
        4 => vec![(old, 1)],
        5 => vec![(old, -count)],
        6 => vec![(old, -1)],
        7 => {
            let column = rng.below(relation.types.len());
            let replacement = value(rng, &relation.types[column], pool);
            let values = old.values().enumerate();
            let changed =
                Row::new(values.map(|(i, value)| if i == column { replacement.clone() } else { value.clone() }));
            vec![(old, -1), (changed, 1)]
        }
        8 => vec![(new.clone(), 2), (new, -2)],
        _ => vec![(old.clone(), -1), (old, 1)],
    }
}

fn pick_row(rng: &mut Rng, contents: &Contents) -> Option<(Row, i64)> {
    if contents.is_empty() {
        return None;
    }
    let index = rng.below(contents.len());
    contents.iter().nth(index).map(|(row, count)| (row.clone(), count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::cases;

    #[test]
    fn no_row_is_ever_there_less_than_zero_times() {
        cases("no_row_is_ever_there_less_than_zero_times", 20, |rng| {
            let relations = relations(rng, 2);
            let history = History::random(rng, &relations, Size::SMALL);
            for &time in &history.times {
                for contents in history.contents_at(time).values() {
                    assert!(contents.iter().all(|(_, count)| count > 0), "{contents:?}");
                }
            }
        });
    }
}
