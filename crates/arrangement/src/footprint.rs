//! Bytes that several batches keep alive together.
//!
//! Law: an allocation counts once, however many columns and batches share it, and as a whole, even
//! where a batch shows a slice of it. Text of gathered rows is shared by all batches gathered from
//! the same source, so the sum of [`Batch::size_bytes`] may be many times what memory holds.
//!
//! Cost: O(buffers of all columns), with one set of addresses.

use std::collections::HashSet;

use anabranch_batch::Batch;
use arrow::array::{Array, ArrayData};
use arrow::buffer::Buffer;

/// The allocations that some batches keep alive.
#[derive(Debug, Default)]
pub struct Footprint {
    /// Addresses of allocations. (Only looked up: their order reaches no result.)
    seen: HashSet<usize>,
    bytes: usize,
}

impl Footprint {
    /// The footprint of batches together, in bytes.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use anabranch_arrangement::Footprint;
    /// use anabranch_batch::{Batch, Diffs, Times};
    /// use arrow::array::StringViewArray;
    ///
    /// let text = Arc::new(StringViewArray::from(vec!["a text that is longer than a view"; 100]));
    /// let batch = Batch::new(vec![text], Times::Constant(1), Diffs::Constant(1));
    /// let halves = [batch.slice(0, 50), batch.slice(50, 50)];
    /// assert_eq!(Footprint::bytes_of(&halves), batch.size_bytes());
    /// ```
    pub fn bytes_of<'a>(batches: impl IntoIterator<Item = &'a Batch>) -> usize {
        let mut footprint = Footprint::default();
        batches.into_iter().for_each(|batch| footprint.add(batch));
        footprint.bytes
    }

    /// Adds what no batch before this one holds.
    pub fn add(&mut self, batch: &Batch) {
        // (Times, diffs and hashes are seldom shared.)
        let apart: usize = batch.columns().iter().map(|column| column.get_buffer_memory_size()).sum();
        self.bytes += batch.size_bytes() - apart;
        batch.columns().iter().for_each(|column| self.add_data(&column.to_data()));
    }

    /// Bytes of all that was added.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn add_data(&mut self, data: &ArrayData) {
        data.buffers().iter().for_each(|buffer| self.add_buffer(buffer));
        data.nulls().into_iter().for_each(|nulls| self.add_buffer(nulls.buffer()));
        data.child_data().iter().for_each(|child| self.add_data(child));
    }

    fn add_buffer(&mut self, buffer: &Buffer) {
        if self.seen.insert(buffer.data_ptr().as_ptr() as usize) {
            self.bytes += buffer.capacity();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anabranch_batch::{Diffs, Times};
    use arrow::array::{ArrayRef, Int64Array, StringViewArray};

    use super::*;

    fn batch(column: ArrayRef) -> Batch {
        Batch::new(vec![column], Times::Constant(1), Diffs::Constant(1))
    }

    #[test]
    fn text_that_batches_share_counts_once() {
        let text = "x".repeat(1_000);
        let source: ArrayRef = Arc::new(StringViewArray::from(vec![text.as_str(); 100]));
        let picks = |from: u64| arrow::array::UInt64Array::from_iter_values(from..from + 10);
        let taken = |from| batch(arrow::compute::take(&source, &picks(from), None).unwrap());
        let parts: Vec<Batch> = (0..10).map(|part| taken(10 * part)).collect();
        let apart: usize = parts.iter().map(Batch::size_bytes).sum();
        assert!(apart >= 10 * 100_000, "{apart}");
        let together = Footprint::bytes_of(&parts);
        assert!((100_000..150_000).contains(&together), "{together}");
    }

    #[test]
    fn what_is_not_shared_counts_as_before() {
        let numbers = |from| batch(Arc::new(Int64Array::from_iter_values(from..from + 100)));
        let (first, second) = (numbers(0), numbers(100));
        assert_eq!(Footprint::bytes_of([&first, &second]), first.size_bytes() + second.size_bytes());
        assert_eq!(Footprint::bytes_of([&first, &first]), first.size_bytes());
    }
}
