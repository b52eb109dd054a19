//! Sources whose shards hold ranges of a column: the promise, and its check.
//!
//! Law: no value of the column is pushed into two shards, and no shard's values lie among those of
//! another. So rows of equal values lie together, as after a movement by key, and need none. Cost
//! of the check: one pass over the column of what is pushed. Source: Trill's scale-out, where
//! sorted and packed inputs spare the shuffle.

use std::cmp::Ordering;

use anabranch_batch::Batch;
use anabranch_batch::order::{Comparator, Direction};
use anabranch_engine::Error;
use arrow::array::ArrayRef;
use datafusion_common::ScalarValue;

/// The least and the greatest value that each shard of a source was given.
#[derive(Debug)]
pub(crate) struct Ranges {
    /// Name and place of the column.
    pub column: (String, usize),
    of_shard: Vec<Option<[ArrayRef; 2]>>,
}

impl Ranges {
    pub(crate) fn new(column: &str, at: usize, shards: usize) -> Ranges {
        Ranges { column: (column.to_owned(), at), of_shard: vec![None; shards] }
    }

    /// Takes note of rows that come into a shard, at least one.
    ///
    /// # Errors
    /// `Data` when values lie among those of another shard; nothing is noted then.
    pub(crate) fn note(&mut self, source: &str, shard: usize, batch: &Batch) -> Result<(), Error> {
        let values = batch.column(self.column.1);
        let among = [values.clone()];
        let order = Comparator::new(&among, &among, &[Direction::ASCENDING]);
        let (mut first, mut last) = (0, 0);
        for row in 1..values.len() {
            first = if order.compare(row, first) == Ordering::Less { row } else { first };
            last = if order.compare(row, last) == Ordering::Greater { row } else { last };
        }
        let (mut least, mut greatest) = (values.slice(first, 1), values.slice(last, 1));
        if let Some([before, behind]) = &self.of_shard[shard] {
            least = if compare(before, &least) == Ordering::Less { before.clone() } else { least };
            greatest = if compare(behind, &greatest) == Ordering::Greater { behind.clone() } else { greatest };
        }
        for (other, range) in self.of_shard.iter().enumerate() {
            let Some([from, to]) = range.as_ref().filter(|_| other != shard) else { continue };
            let lies_apart = compare(&greatest, from) == Ordering::Less || compare(to, &least) == Ordering::Less;
            if !lies_apart {
                let (name, range) = (&self.column.0, [&least, &greatest, from, to].map(text));
                let [least, greatest, from, to] = range;
                return Err(Error::data(format!(
                    "source \"{source}\" is packed by \"{name}\", but shard {shard} has values from {least} to {greatest}, and shard {other} from {from} to {to}"
                ))
                .with_hint("Give each shard a range of its own, or leave packed_by out and redistribute."));
            }
        }
        self.of_shard[shard] = Some([least, greatest]);
        Ok(())
    }
}

fn compare(a: &ArrayRef, b: &ArrayRef) -> Ordering {
    Comparator::new(std::slice::from_ref(a), std::slice::from_ref(b), &[Direction::ASCENDING]).compare(0, 0)
}

fn text(value: &ArrayRef) -> String {
    ScalarValue::try_from_array(value, 0).map_or_else(|error| error.to_string(), |value| value.to_string())
}
