//! A history cut into batches and frontiers.

use anabranch_batch::{Batch, Diffs, Times};
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

/// Cuts a history as the setting says: neighbouring times share a portion, within it updates come in random order, in
/// batches of random sizes, the relations interleaved.
pub fn portions(rng: &mut Rng, history: &History, setting: &Setting) -> Vec<Portion> {
    let by_time = history.by_time();
    let mut portions = Vec::new();
    let mut times = history.times.as_slice();
    while !times.is_empty() {
        let count = (rng.below(setting.frontier_times_max) + 1).min(times.len());
        let (now, later) = times.split_at(count);
        let updates = now.iter().filter_map(|time| by_time.get(time)).flatten().copied().collect();
        portions.push(Portion { batches: cut(rng, history, setting, updates), last: now[count - 1] });
        times = later;
    }
    portions
}

fn cut(rng: &mut Rng, history: &History, setting: &Setting, mut updates: Vec<&Update>) -> Vec<(usize, Batch)> {
    rng.shuffle(&mut updates);
    let mut batches = Vec::new();
    for (index, relation) in history.relations.iter().enumerate() {
        let mut left: Vec<&Update> = updates.iter().copied().filter(|update| update.relation == index).collect();
        while !left.is_empty() {
            let rest = left.split_off((rng.below(setting.batch_rows_max) + 1).min(left.len()));
            batches.push((index, batch(rng, relation, &left)));
            left = rest;
        }
    }
    rng.shuffle(&mut batches);
    batches
}

/// The updates as a batch, in one of the forms that mean the same: constant or written-out times and diffs, a larger
/// diff or repeated rows, and rows that are absent among those that are there.
fn batch(rng: &mut Rng, relation: &Relation, updates: &[&Update]) -> Batch {
    let mut rows: Vec<(Row, i64, i64, bool)> = Vec::new();
    for update in updates {
        let repeated = update.diff.abs() <= 3 && rng.chance(30);
        let (count, diff) = if repeated { (update.diff.abs(), update.diff.signum()) } else { (1, update.diff) };
        for _ in 0..count {
            rows.push((update.row.clone(), update.time, diff, true));
        }
        if rng.chance(10) {
            rows.push((row(rng, &relation.types, Pool::Small), update.time, 1, false));
        }
    }
    let payload: Vec<&Row> = rows.iter().map(|row| &row.0).collect();
    let columns = to_record_batch(&relation.schema(), &payload).columns().to_vec();
    let times = Times::Column(rows.iter().map(|row| row.1).collect::<Vec<_>>().into());
    let diffs = Diffs::Column(rows.iter().map(|row| row.2).collect::<Vec<_>>().into());
    let (times, diffs) = if rng.chance(50) { (times.simplify(), diffs.simplify()) } else { (times, diffs) };
    let present: Vec<bool> = rows.iter().map(|row| row.3).collect();
    let batch = Batch::with_len(columns.into(), rows.len(), times, diffs);
    match present.iter().all(|present| *present) {
        true => batch,
        false if rng.chance(50) => batch.filter(&BooleanArray::from(present)),
        false => batch.with_present(BooleanBuffer::from(present)),
    }
}
