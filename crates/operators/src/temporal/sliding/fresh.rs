//! What begins at a cut: sums by slot, small and apart from the groups, because every row writes
//! here.

use anabranch_batch::Times;
use arrow::array::{Array, ArrayRef, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::DataType;

/// Sum and number of an argument's values that are not NULL.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) total: i128,
    pub(super) count: i64,
}

/// What begins at a cut.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    /// By slot; zero for slots that nothing begins in.
    rows: Vec<i64>,
    /// By slot and argument.
    totals: Vec<i128>,
    counts: Vec<i64>,
    /// Slots that something begins in.
    pub(super) slots: Vec<u32>,
}

impl Fresh {
    /// Makes room for slots below `n_slots`, with so many arguments.
    pub(super) fn room(&mut self, n_slots: usize, n_arguments: usize) {
        self.rows.resize(n_slots, 0);
        self.totals.resize(n_slots * n_arguments, 0);
        self.counts.resize(n_slots * n_arguments, 0);
    }

    #[inline]
    fn begin(&mut self, slot: u32, rows: i64) {
        let count = &mut self.rows[slot as usize];
        if *count == 0 {
            self.slots.push(slot);
        }
        *count += rows;
    }

    /// A row, so many times.
    #[inline]
    pub(super) fn add(&mut self, slot: u32, row: usize, diff: i64, arguments: &[&Int64Array]) {
        self.begin(slot, diff);
        let first = slot as usize * arguments.len();
        for (at, argument) in (first..).zip(arguments).filter(|(_, argument)| argument.is_valid(row)) {
            self.totals[at] += i128::from(argument.value(row)) * i128::from(diff);
            self.counts[at] += diff;
        }
    }

    /// Rows with one argument each.
    pub(super) fn add_values(&mut self, slots: &[u32], values: &[i64]) {
        for (&slot, &value) in slots.iter().zip(values) {
            self.begin(slot, 1);
            self.totals[slot as usize] += i128::from(value);
            self.counts[slot as usize] += 1;
        }
    }

    /// Rows of the one group, once each.
    pub(super) fn add_run(&mut self, rows: std::ops::Range<usize>, arguments: &[&Int64Array]) {
        self.begin(0, rows.len() as i64);
        for (at, argument) in arguments.iter().enumerate() {
            if argument.null_count() == 0 {
                self.totals[at] += sum_slice(&argument.values()[rows.clone()]);
                self.counts[at] += rows.len() as i64;
            } else {
                for row in rows.clone().filter(|&row| argument.is_valid(row)) {
                    self.totals[at] += i128::from(argument.value(row));
                    self.counts[at] += 1;
                }
            }
        }
    }

    /// What begins in a slot, which is nothing from now on: adds to `sums`, returns the rows.
    pub(super) fn take(&mut self, slot: u32, n: usize, sums: &mut [Sum]) -> i64 {
        for (at, sum) in (slot as usize * n..).zip(sums) {
            sum.total += std::mem::take(&mut self.totals[at]);
            sum.count += std::mem::take(&mut self.counts[at]);
        }
        std::mem::take(&mut self.rows[slot as usize])
    }
}

/// The exact sum: high and low halves apart, so that the loop is vectorised.
fn sum_slice(values: &[i64]) -> i128 {
    let mut total = 0i128;
    for chunk in values.chunks(1 << 20) {
        let (mut high, mut low) = (0i64, 0i64);
        for &value in chunk {
            high += value >> 32;
            low += value & 0xffff_ffff;
        }
        total += (i128::from(high) << 32) + i128::from(low);
    }
    total
}

/// The end of the run of equal times that begins at `row`: by doubling steps, then by halving.
pub(super) fn run_end(times: &Times, row: usize, len: usize) -> usize {
    let Times::Column(times) = times else { return len };
    let time = times[row];
    let mut step = 1;
    while row + step < len && times[row + step] == time {
        step *= 2;
    }
    let (low, high) = (row + step / 2, (row + step).min(len));
    low + times[low..high].partition_point(|&other| other == time)
}

/// A column of integers, none of them unsigned 64-bit, as 64-bit ones.
pub(super) fn integers(column: &ArrayRef) -> ArrayRef {
    if *column.data_type() == DataType::Int64 {
        return column.clone();
    }
    cast(column, &DataType::Int64).expect("narrower integers become 64-bit ones")
}
