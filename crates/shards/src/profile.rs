//! What each step has done in each shard, and what waits there.
//!
//! Law: counts of the client's process are those of now; counts of the others are those of when
//! they were last at rest. What is counted is in `counts`.

use std::sync::Arc;

use anabranch_batch::{END, Time};
use anabranch_engine::{Error, Rows};
use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Field, Schema, SchemaRef};

use crate::counts::{ShardCounts, StepCounts};
use crate::run::ShardRun;

/// One step in one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepProfile {
    /// The shard.
    pub shard: usize,
    /// The step, in order of the program.
    pub step: usize,
    /// What it does.
    pub action: String,
    /// What it has done.
    pub counts: StepCounts,
    /// Messages that wait at the shard, for any step; 0 for shards of other processes.
    pub queued: usize,
    /// By how much the furthest source is ahead of it, in ticks; none where it has no frontier yet,
    /// or has come to its end.
    pub lag: Option<u64>,
}

impl ShardRun {
    /// What each step has done in each shard so far: by shard, then in order of the program.
    pub fn profile(&self) -> Vec<StepProfile> {
        let actions = self.actions();
        let furthest = self.furthest_source();
        let of_shard = |(shard, counts): (usize, &ShardCounts)| -> Vec<StepProfile> {
            let queued = counts.queued();
            let profile = |(step, counts): (usize, StepCounts)| {
                let is_between = counts.frontier > Time::MIN && counts.frontier < END;
                let lag = furthest.filter(|_| is_between).map(|first| first.saturating_sub(counts.frontier).max(0));
                let action = actions.get(step).copied().unwrap_or_default().to_owned();
                StepProfile { shard, step, action, counts, queued, lag: lag.map(i64::unsigned_abs) }
            };
            counts.steps().into_iter().enumerate().map(profile).collect()
        };
        self.counts().iter().enumerate().flat_map(of_shard).collect()
    }

    /// The *skew* of each movement so far: the rows that came to its fullest shard, over their mean
    /// over all shards. 1 is even; the number of shards is all rows in one. None for steps that are
    /// no movement, or have moved nothing.
    pub fn skews(&self) -> Vec<Option<f64>> {
        let shards: Vec<Vec<StepCounts>> = self.counts().iter().map(ShardCounts::steps).collect();
        let skew = |(step, is_movement): (usize, bool)| {
            let rows = shards.iter().filter_map(|steps| steps.get(step)).map(|counts| counts.rows_out);
            let (most, sum) = rows.fold((0, 0), |(most, sum), rows| (rows.max(most), sum + rows));
            (is_movement && sum > 0).then(|| most as f64 * shards.len() as f64 / sum as f64)
        };
        self.are_movements().enumerate().map(skew).collect()
    }

    /// The [profile](ShardRun::profile) as rows: `shard`, `step`, `action`, rows and batches, rows
    /// `hashed`, `kept`, moved `near` and `far`, `bytes` that left the shard, `bytes_kept`,
    /// `bytes_near`, `bytes_far`, `cpu_ms`, `queued`, `frontier`, `lag`.
    ///
    /// # Errors
    /// `Internal` when they cannot be made, which is a bug.
    pub fn profile_rows(&self) -> Result<Rows, Error> {
        let profile = self.profile();
        let numbers = |of: &dyn Fn(&StepProfile) -> Option<u64>| -> ArrayRef {
            let number = |step| of(step).map(|number| i64::try_from(number).unwrap_or(i64::MAX));
            Arc::new(profile.iter().map(number).collect::<Int64Array>())
        };
        let counted = |of: fn(&StepCounts) -> u64| numbers(&|step| Some(of(&step.counts)));
        let actions: StringArray = profile.iter().map(|step| Some(step.action.as_str())).collect();
        let millis: Float64Array = profile.iter().map(|step| Some(step.counts.cpu_nanos as f64 / 1e6)).collect();
        let has_frontier = |time: Time| time > Time::MIN && time < END;
        let frontiers = profile.iter().map(|step| Some(step.counts.frontier).filter(|time| has_frontier(*time)));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("shard", numbers(&|step| Some(step.shard as u64))),
            ("step", numbers(&|step| Some(step.step as u64))),
            ("action", Arc::new(actions)),
            ("rows_in", counted(|counts| counts.rows_in)),
            ("batches_in", counted(|counts| counts.batches_in)),
            ("rows_out", counted(|counts| counts.rows_out)),
            ("batches_out", counted(|counts| counts.batches_out)),
            ("hashed", counted(|counts| counts.moved.rows_hashed)),
            ("kept", counted(|counts| counts.moved.rows_kept)),
            ("near", counted(|counts| counts.moved.rows_near)),
            ("far", counted(|counts| counts.moved.rows_far)),
            ("bytes", counted(|counts| counts.moved.bytes)),
            ("bytes_kept", counted(|counts| counts.moved.bytes_kept)),
            ("bytes_near", counted(|counts| counts.moved.bytes_near())),
            ("bytes_far", counted(|counts| counts.moved.bytes_far)),
            ("cpu_ms", Arc::new(millis)),
            ("queued", numbers(&|step| Some(step.queued as u64))),
            ("frontier", Arc::new(frontiers.collect::<Int64Array>())),
            ("lag", numbers(&|step| step.lag)),
        ];
        let field = |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), true);
        let schema: SchemaRef = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        let batch = RecordBatch::try_new(schema.clone(), columns);
        Ok(Rows::new(schema, vec![batch.map_err(|error| Error::internal(error.to_string()))?]))
    }
}
