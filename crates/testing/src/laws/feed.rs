//! A history cut into batches and frontiers.

use std::collections::BTreeSet;

use anabranch_batch::{Batch, Diffs, END, Times, Until, types};
use arrow::array::BooleanArray;
use arrow::buffer::BooleanBuffer;

use super::setting::Setting;
use crate::build::Relation;
use crate::generator::history::{History, Update};
use crate::generator::values::{Pool, row};
use crate::rng::Rng;
use crate::row::{Row, to_record_batch};

/// What arrives between two advances of the frontier.
pub struct Portion {
    /// Batches and the indexes of their relations, in order of arrival.
    pub batches: Vec<(usize, Batch)>,
    /// The last time that these updates may have.
    pub last: i64,
}

/// An update as it is written: alone, or with the end of its lifetime.
#[derive(Clone, Copy)]
struct Written<'a> {
    update: &'a Update,
    until: i64,
}

/// Cuts a history as the setting says: neighbouring times share a portion, within it updates come
/// in random order, in batches of random sizes, the relations interleaved.
pub fn portions(rng: &mut Rng, history: &History, setting: &Setting) -> Vec<Portion> {
    let written = written(rng, history, setting);
    let mut portions = Vec::new();
    let mut times = history.times.as_slice();
    while !times.is_empty() {
        let count = (rng.below(setting.frontier_times_max) + 1).min(times.len());
        let (now, later) = times.split_at(count);
        let updates = written.iter().filter(|written| now.contains(&written.update.time)).copied().collect();
        portions.push(Portion { batches: cut(rng, history, setting, updates), last: now[count - 1] });
        times = later;
    }
    portions
}

/// The updates; if the setting wants lifetimes, some removals become the end of an insertion's
/// lifetime.
fn written<'a>(rng: &mut Rng, history: &'a History, setting: &Setting) -> Vec<Written<'a>> {
    let mut gone = BTreeSet::new();
    let mut all = Vec::new();
    for (index, update) in history.updates.iter().enumerate() {
        if gone.contains(&index) {
            continue;
        }
        let mut until = END;
        if setting.lifetimes && rng.chance(50) {
            let ends = |later: &Update| {
                (later.relation, later.diff) == (update.relation, -update.diff)
                    && later.time > update.time
                    && later.row == update.row
            };
            let end = (index + 1..history.updates.len())
                .find(|later| !gone.contains(later) && ends(&history.updates[*later]));
            if let Some(end) = end {
                gone.insert(end);
                until = history.updates[end].time;
            }
        }
        all.push(Written { update, until });
    }
    all
}

fn cut(rng: &mut Rng, history: &History, setting: &Setting, mut updates: Vec<Written>) -> Vec<(usize, Batch)> {
    rng.shuffle(&mut updates);
    let mut batches = Vec::new();
    for (index, relation) in history.relations.iter().enumerate() {
        let mut left: Vec<Written> =
            updates.iter().copied().filter(|written| written.update.relation == index).collect();
        while !left.is_empty() {
            let rest = left.split_off((rng.below(setting.batch_rows_max) + 1).min(left.len()));
            batches.push((index, batch(rng, relation, &left)));
            left = rest;
        }
    }
    rng.shuffle(&mut batches);
    batches
}

/// A row of a batch being made.
struct Line {
    row: Row,
    time: i64,
    diff: i64,
    until: i64,
    present: bool,
}

/// The updates as a batch, in one of the forms that mean the same: constant or written-out times
/// and diffs, a larger diff or repeated rows, and rows that are absent among those that are there.
fn batch(rng: &mut Rng, relation: &Relation, updates: &[Written]) -> Batch {
    let mut lines: Vec<Line> = Vec::new();
    for Written { update, until } in updates {
        let repeated = update.diff.abs() <= 3 && rng.chance(30);
        let (count, diff) = if repeated { (update.diff.abs(), update.diff.signum()) } else { (1, update.diff) };
        for _ in 0..count {
            lines.push(Line { row: update.row.clone(), time: update.time, diff, until: *until, present: true });
        }
        if rng.chance(10) {
            let row = row(rng, &relation.types, Pool::Small);
            lines.push(Line { row, time: update.time, diff: 1, until: END, present: false });
        }
    }
    let payload: Vec<&Row> = lines.iter().map(|line| &line.row).collect();
    let columns = to_record_batch(&relation.schema(), &payload);
    let columns = columns.columns().iter().map(types::narrowed).collect::<Result<Vec<_>, _>>();
    let columns = columns.expect("values have the digits of their column's type");
    let column = |of: fn(&Line) -> i64| lines.iter().map(of).collect::<Vec<_>>().into();
    let (times, diffs) = (Times::Column(column(|line| line.time)), Diffs::Column(column(|line| line.diff)));
    let (times, diffs) = if rng.chance(50) { (times.simplify(), diffs.simplify()) } else { (times, diffs) };
    let mut batch = Batch::with_len(columns.into(), lines.len(), times, diffs);
    if lines.iter().any(|line| line.until < END) {
        batch = batch.with_until(Until::Column(column(|line| line.until)));
    }
    let present: Vec<bool> = lines.iter().map(|line| line.present).collect();
    match present.iter().all(|present| *present) {
        true => batch,
        false if rng.chance(50) => batch.filter(&BooleanArray::from(present)),
        false => batch.with_present(BooleanBuffer::from(present)),
    }
}
