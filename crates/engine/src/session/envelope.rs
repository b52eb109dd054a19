//! ENVELOPE UPSERT: changes told as new rows of keys, without what they replace.
//!
//! ```text
//! time diff key value      time state         key value
//!    7   -1   1 a             7 upsert          1 b
//!    7   +1   1 b             7 delete          2 NULL
//!    7   -1   2 c             7 key_violation   3 NULL
//!    7   +1   3 d
//!    7   +1   3 e
//! ```
//!
//! Law: at each time, each key that changed is told once. A key with one new row is an `upsert`,
//! one without is a `delete`, one with several is a `key_violation`: the columns named as a key are
//! none. As in Materialize.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_batch::Batch;
use anabranch_batch::equal::rows_equal;
use anabranch_batch::hash::hash_columns;
use anabranch_sql::output::shown_values;
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::error::Error;
use crate::finish::record_batch;

/// The columns of a subscription by key.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    /// Positions of the key's columns.
    key: Vec<usize>,
    /// Positions of the others.
    values: Vec<usize>,
}

impl Envelope {
    /// The envelope for rows of this schema.
    ///
    /// # Errors
    /// `Invalid` for a column that does not exist or is named twice.
    pub fn new(schema: &Schema, key: &[String]) -> Result<Envelope, Error> {
        let mut positions = Vec::with_capacity(key.len());
        for name in key {
            let Ok(at) = schema.index_of(name) else {
                return Err(Error::invalid(format!("column \"{name}\" of the subscription does not exist"))
                    .with_sqlstate("42703"));
            };
            if positions.contains(&at) {
                return Err(Error::invalid(format!("column \"{name}\" specified more than once")));
            }
            positions.push(at);
        }
        let values = (0..schema.fields().len()).filter(|at| !positions.contains(at)).collect();
        Ok(Envelope { key: positions, values })
    }

    /// `time`, `state`, the key, then the other columns.
    pub fn schema(&self, shown: &Schema) -> SchemaRef {
        let control = [Field::new("time", DataType::Int64, false), Field::new("state", DataType::Utf8View, false)];
        let key = self.key.iter().map(|at| shown.field(*at).clone());
        let values = self.values.iter().map(|at| shown.field(*at).clone().with_nullable(true));
        Arc::new(Schema::new(control.into_iter().chain(key).chain(values).collect::<Vec<_>>()))
    }

    /// The changes, which are in order of time and whole times, by key.
    pub fn told(&self, schema: &SchemaRef, batch: &Batch) -> Result<RecordBatch, Error> {
        let keys: Vec<ArrayRef> = self.key.iter().map(|at| batch.column(*at).clone()).collect();
        let hashes = hash_columns(&keys, batch.len());
        let mut told: Vec<Told> = Vec::new();
        let mut by_hash: HashMap<(i64, u64), Vec<usize>> = HashMap::new();
        for (row, hash) in hashes.into_iter().enumerate() {
            let time = batch.times().get(row);
            let same = by_hash.entry((time, hash)).or_default();
            let known = same.iter().find(|at| rows_equal(&keys, &[row as u32], &keys, &[told[**at].row])[0]);
            let at = known.copied().unwrap_or_else(|| {
                same.push(told.len());
                told.push(Told { time, row: row as u32, new: None, n_new: 0 });
                told.len() - 1
            });
            let diff = batch.diffs().get(row);
            if diff > 0 {
                told[at].n_new += diff;
                told[at].new = Some(row as u32);
            }
        }
        let times: ArrayRef = Arc::new(Int64Array::from_iter_values(told.iter().map(|told| told.time)));
        let states: ArrayRef = Arc::new(StringViewArray::from_iter_values(told.iter().map(Told::state)));
        let of_key = UInt32Array::from_iter_values(told.iter().map(|told| told.row));
        let of_value: UInt32Array = told.iter().map(|told| told.new.filter(|_| told.n_new == 1)).collect();
        let mut columns = vec![times, states];
        for (positions, rows) in [(&self.key, &of_key), (&self.values, &of_value)] {
            for at in positions {
                let shown = schema.field(columns.len());
                columns.push(shown_values(shown, &take(batch.column(*at), rows, None)?));
            }
        }
        record_batch(schema, columns, told.len())
    }
}

/// A key that changed at a time.
struct Told {
    time: i64,
    /// A row that has the key.
    row: u32,
    /// The last row that is new.
    new: Option<u32>,
    n_new: i64,
}

impl Told {
    fn state(&self) -> &'static str {
        match self.n_new {
            0 => "delete",
            1 => "upsert",
            _ => "key_violation",
        }
    }
}
