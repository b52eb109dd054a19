//! The contents of an arrangement at one time.
//!
//! Law: the batches, together, are the collection at `at`: each row once, with its multiplicity.
//! Cost: one pass of merging for each doubling of the number of runs; a single run is only copied.

use std::rc::Rc;

use anabranch_batch::{Batch, Time, Times};

use crate::merge::Merge;
use crate::{Chunk, Layout, Run};

/// Whole contents, consolidated over runs, as of time `at`: sorted batches whose times are all `at`.
///
/// The caller holds a `since` at or before `at`.
pub fn snapshot(layout: &Layout, runs: &[Rc<Run>], at: Time) -> Vec<Batch> {
    let layout = Rc::new(layout.clone());
    let mut queue: Vec<Run> = Vec::new();
    for run in runs {
        for part in run.parts() {
            let chunks = &run.chunks()[part.start..part.start + part.hashes.len()];
            let chunks = chunks.iter().filter_map(|chunk| chunk.until(&layout, at)).collect();
            queue.push(Run::new(Rc::clone(&layout), at, at, Time::MIN, chunks));
        }
    }
    let Some(run) = merge_all(queue, at) else { return Vec::new() };
    run.chunks().iter().map(|chunk| to_batch(chunk, at)).collect()
}

/// Merges the two smallest until one is left.
fn merge_all(mut queue: Vec<Run>, at: Time) -> Option<Run> {
    queue.sort_by_key(|run| std::cmp::Reverse(run.len()));
    while queue.len() > 1 {
        let (Some(a), Some(b)) = (queue.pop(), queue.pop()) else { unreachable!("two runs are left") };
        let merged = finish(Merge::new(&a, &b, at));
        let place = queue.partition_point(|run| run.len() > merged.len());
        queue.insert(place, merged);
    }
    let last = queue.pop()?;
    Some(if is_settled(&last, at) { last } else { finish(Merge::alone(&last, at)) })
}

/// All times are `at`, so that equal rows are summed already.
fn is_settled(run: &Run, at: Time) -> bool {
    run.chunks().iter().all(|chunk| chunk.facts().time_min == chunk.facts().time_max)
        && run.time_min() == run.time_max()
        && run.since() <= at
}

fn finish(mut merge: Merge) -> Run {
    while !merge.work(&mut isize::MAX.clone()) {}
    merge.into_run()
}

fn to_batch(chunk: &Chunk, at: Time) -> Batch {
    Batch::with_len(chunk.shared_columns().clone(), chunk.len(), Times::Constant(at), chunk.diffs().clone())
}
