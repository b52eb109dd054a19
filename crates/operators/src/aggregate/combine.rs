//! Rows of one group made fewer before they move to the worker that has the group.
//!
//! ```text
//! sum(x), count(*) by k:   in    (k: a, x: 5) +1    (a, 7) +1    (a, 9) +1    (b, 4) +1
//!                          out   (a, 21) +1    (a, 0) +2    (b, 4) +1
//! ```
//!
//! Law: an aggregate makes of what comes out what it makes of what came in. Sums of arguments times
//! diffs, sums of diffs, and which arguments are NULL are the same for each group and time; columns
//! that are not summed up keep their values. So the aggregate behind needs to know nothing of it.
//!
//! Cost: what an aggregate's own pass over the batch costs; nothing is kept between batches but
//! where groups are found. It is given up, for more and more batches, where it saves less than half
//! of the rows; of a large batch the first rows tell that. Batches whose rows are all on the worker
//! of their key already pass. Source: Quill 3.5, plan (b); what
//! map-reduce calls a combiner.

use std::sync::Arc;

use anabranch_batch::{Batch, Diff, Diffs, ShardNumber, Until, gather, hash};
use anabranch_flow::tactic::Output;
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION, DataType, Decimal64Type, Decimal128Type, Int16Type, Int32Type,
    Int64Type,
};

use super::group_table::{GroupTable, Touched};
use super::segments::Segments;
use super::spec::AggregateSpec;
use super::{lanes, sum_diffs};

/// Fewer rows move as they are.
const ROWS_MIN: usize = 64;

/// Groups whose places are remembered from batch to batch, at most, and
const GROUPS_MAX: usize = 1 << 16;

/// at least, and for each that the last batch had: groups that do not come any more make those that
/// do slower to find.
const GROUPS_MIN: usize = 1 << 12;

/// See [`GROUPS_MIN`].
const GROUPS_PER_GROUP: usize = 4;

/// Of a larger batch the first rows, one in [`SAMPLED_PART`], are looked at before all are.
const SAMPLED_MIN: usize = 1 << 13;

/// See [`SAMPLED_MIN`].
const SAMPLED_PART: usize = 8;

/// Rows that tell whether a batch is on the worker of its key.
const HOME_ROWS: usize = 32;

/// Batches are copied without their absent rows where those are more than one in so many.
const ABSENT_PART: usize = 4;

/// So many batches, at most, pass untried after one of which too little was saved.
const PASSED_MAX: usize = 64;

/// Makes rows of one group fewer. See the module's page.
#[derive(Debug)]
pub struct Combiner {
    /// Columns whose values tell rows apart.
    apart: Vec<usize>,
    /// Columns that are added up.
    summed: Vec<usize>,
    /// Columns of which it matters only whether they are NULL.
    counted: Vec<usize>,
    key_types: Vec<DataType>,
    groups: GroupTable,
    /// Groups of the last batch that was looked at as a whole.
    n_groups: usize,
    /// By whose hash rows move.
    key: Vec<usize>,
    /// The worker that this is.
    shard: ShardNumber,
    /// Batches that pass untried.
    to_pass: usize,
    /// How many did last time.
    passed: usize,
}

impl Combiner {
    /// For an aggregate; `None` if no call is a sum, a mean or a count of all its rows.
    pub fn of_aggregate(spec: &AggregateSpec) -> Option<Combiner> {
        let (mut apart, mut summed, mut counted) = (spec.keys.clone(), Vec::new(), Vec::new());
        for call in spec.calls.iter().filter(|call| !is_sum(call, &spec.input_types)) {
            let order = call.order.iter().map(|key| key.column);
            apart.extend(call.arguments().chain(order));
        }
        apart.extend(spec.calls.iter().filter_map(|call| call.filter));
        let sums = || spec.calls.iter().filter(|call| is_sum(call, &spec.input_types));
        sums().next()?;
        for call in sums() {
            let of_call = if call.function == AggregateFunction::Count { &mut counted } else { &mut summed };
            of_call.extend(call.argument);
        }
        for columns in [&mut apart, &mut summed, &mut counted] {
            columns.sort_unstable();
            columns.dedup();
        }
        summed.retain(|column| !apart.contains(column));
        counted.retain(|column| !apart.contains(column) && !summed.contains(column));
        Some(Combiner { key: spec.keys.clone(), ..Combiner::new(apart, summed, counted, &spec.input_types) })
    }

    /// For what looks at all columns of its rows, and at how many of each there are.
    pub fn of_rows(types: &[DataType]) -> Combiner {
        Combiner::new((0..types.len()).collect(), vec![], vec![], types)
    }

    fn new(apart: Vec<usize>, summed: Vec<usize>, counted: Vec<usize>, types: &[DataType]) -> Combiner {
        let key_types: Vec<DataType> = apart.iter().map(|&column| types[column].clone()).collect();
        let (groups, key, shard) = (GroupTable::new(&key_types), apart.clone(), ShardNumber::SINGLE);
        Combiner { apart, summed, counted, key_types, groups, n_groups: 0, key, shard, to_pass: 0, passed: 0 }
    }

    /// On a worker of several.
    pub fn on_shard(self, shard: ShardNumber) -> Combiner {
        Combiner { shard, ..self }
    }

    /// Puts out the rows of a batch, made fewer if that saves half of them.
    pub fn combine(&mut self, batch: Batch, out: &mut Output) {
        let n_present = batch.n_present();
        if n_present < ROWS_MIN || !matches!(batch.until(), Until::Forever) {
            return out.give_rows(batch.compact());
        }
        if self.is_at_home(&batch) {
            return out.give_rows(batch.compact());
        }
        if self.to_pass > 0 {
            self.to_pass -= 1;
            return out.give_rows(batch.compact());
        }
        // (A few absent rows are passed over more quickly than the others are copied.)
        let batch = if ABSENT_PART * (batch.len() - n_present) > batch.len() { batch.compact() } else { batch };
        let combined = if self.seems_worth_it(&batch) { self.combined(&batch) } else { None };
        match combined {
            Some(combined) if 2 * combined.len() <= n_present => {
                self.passed = 0;
                out.give_rows(combined);
            }
            _ => {
                self.passed = (2 * self.passed + 1).min(PASSED_MAX);
                self.to_pass = self.passed;
                out.give_rows(batch.compact());
            }
        }
    }

    /// Whether a batch has the hashes of its key, and some of its rows, from all over it, say that
    /// they were dealt out by them. (The movement behind looks at all.)
    fn is_at_home(&self, batch: &Batch) -> bool {
        let Some(key) = batch.key().filter(|key| *key.columns == *self.key) else { return false };
        if key.home == Some(self.shard) {
            return true;
        }
        let n = key.hashes.len();
        (0..HOME_ROWS).all(|at| self.shard.has(key.hashes[n * at / HOME_ROWS]))
    }

    /// Whether the first rows of a large batch have groups in common. (Of all rows more have: they
    /// are to save less here.)
    fn seems_worth_it(&mut self, batch: &Batch) -> bool {
        if batch.len() < SAMPLED_MIN {
            return true;
        }
        let sample = batch.slice(0, batch.len() / SAMPLED_PART);
        let touched = self.touched(&sample);
        4 * touched.slot.len() <= 3 * sample.len()
    }

    /// The rows of a batch by group and time; `None` if a sum does not fit its column's type.
    fn combined(&mut self, batch: &Batch) -> Option<Batch> {
        let touched = self.touched(batch);
        self.n_groups = touched.slot.len();
        let segments = Segments::in_time_order(touched, batch.times(), batch.present());
        if 2 * segments.len() > batch.len() {
            return None;
        }
        let multiplicities = sum_diffs(&segments, batch.diffs());
        let sums = self.summed.iter().map(|&column| Sums::of(batch.column(column), &segments, batch.diffs()));
        let sums: Vec<Sums> = sums.collect::<Option<_>>()?;

        // Where there are sums a row with them, of diff 1, and then one with what the diffs lack.
        let all = 0..segments.len() as u32;
        let has_sum = |segment: u32| sums.iter().any(|sums| sums.values[segment as usize] != 0);
        let mut rows_of: Vec<u32> = all.clone().filter(|&segment| has_sum(segment)).collect();
        let n_sums = rows_of.len();
        let mut diffs: Vec<Diff> = vec![1; n_sums];
        for segment in all {
            let lacking = multiplicities[segment as usize] - Diff::from(has_sum(segment));
            if lacking != 0 {
                rows_of.push(segment);
                diffs.push(lacking);
            }
        }
        let rows: Vec<u32> = rows_of.iter().map(|&segment| segments.first_row[segment as usize]).collect();
        // (The row that a segment is told by may be absent: what is taken of it is the segment's.)
        let mut columns: Vec<ArrayRef> = gather::take(batch.columns(), &rows).to_vec();
        for (&column, sums) in self.summed.iter().zip(&sums) {
            columns[column] = sums.column(&rows_of, n_sums, &columns[column]);
        }
        Some(Batch::with_len(columns.into(), rows.len(), batch.times().take(&rows), Diffs::Column(diffs.into())))
    }

    /// The group of each row.
    fn touched(&mut self, batch: &Batch) -> Touched {
        let mut keys: Vec<ArrayRef> = self.apart.iter().map(|&column| Arc::clone(batch.column(column))).collect();
        let nullable = self.summed.iter().chain(&self.counted).map(|&column| batch.column(column));
        let nulls: Vec<ArrayRef> = nullable.filter_map(nulls_of).collect();
        if !nulls.is_empty() {
            let mut types = self.key_types.clone();
            types.extend(nulls.iter().map(|_| DataType::Boolean));
            keys.extend(nulls);
            return GroupTable::new(&types).touch(&keys, &hash::hash_columns(&keys, batch.len()));
        }
        if self.groups.len() > (self.n_groups * GROUPS_PER_GROUP).clamp(GROUPS_MIN, GROUPS_MAX) {
            self.groups.clear();
        }
        let few = self.groups.touch_few(&keys, batch.len());
        few.unwrap_or_else(|| self.groups.touch(&keys, &hash::hash_columns(&keys, batch.len())))
    }
}

/// Whether the call adds up all rows, and its argument's type holds sums of it.
fn is_sum(call: &AggregateCall, types: &[DataType]) -> bool {
    use DataType::{Decimal64, Decimal128, Int16, Int32, Int64};
    let holds_sums = |column: usize| matches!(types[column], Int16 | Int32 | Int64 | Decimal64(..) | Decimal128(..));
    match call.function {
        AggregateFunction::Count => !call.distinct,
        AggregateFunction::Sum | AggregateFunction::Avg => !call.distinct && call.argument.is_some_and(holds_sums),
        _ => false,
    }
}

/// Which values of a column are NULL, if some are.
fn nulls_of(column: &ArrayRef) -> Option<ArrayRef> {
    let nulls = column.logical_nulls().filter(|nulls| nulls.null_count() > 0)?;
    Some(Arc::new(BooleanArray::new(nulls.into_inner(), None)))
}

/// The sums of a column over each segment.
struct Sums {
    values: Vec<i128>,
}

impl Sums {
    /// `None` if one does not fit the column's type.
    fn of(column: &ArrayRef, segments: &Segments, diffs: &Diffs) -> Option<Sums> {
        let most = |digits: u8| 10i128.pow(digits.into()) - 1;
        match column.data_type() {
            DataType::Int16 => sums::<Int16Type>(column, segments, diffs, i16::MAX.into()),
            DataType::Int32 => sums::<Int32Type>(column, segments, diffs, i32::MAX.into()),
            DataType::Int64 => sums::<Int64Type>(column, segments, diffs, i64::MAX.into()),
            DataType::Decimal64(..) => sums::<Decimal64Type>(column, segments, diffs, most(DECIMAL64_MAX_PRECISION)),
            DataType::Decimal128(..) => sums::<Decimal128Type>(column, segments, diffs, most(DECIMAL128_MAX_PRECISION)),
            _ => None,
        }
    }

    /// The sums of segments, and then zeros; NULL as `like`, their first row, is.
    fn column(&self, segments: &[u32], n_sums: usize, like: &ArrayRef) -> ArrayRef {
        let value = |(index, &segment): (usize, &u32)| if index < n_sums { self.values[segment as usize] } else { 0 };
        let values = segments.iter().enumerate().map(value);
        let nulls = like.logical_nulls();
        match like.data_type() {
            DataType::Int16 => made::<Int16Type>(values.map(|value| value as i16), nulls, like),
            DataType::Int32 => made::<Int32Type>(values.map(|value| value as i32), nulls, like),
            DataType::Int64 => made::<Int64Type>(values.map(|value| value as i64), nulls, like),
            DataType::Decimal64(..) => made::<Decimal64Type>(values.map(|value| value as i64), nulls, like),
            DataType::Decimal128(..) => made::<Decimal128Type>(values, nulls, like),
            other => unreachable!("{other} is not summed"),
        }
    }
}

fn made<T: ArrowPrimitiveType>(
    values: impl Iterator<Item = T::Native>,
    nulls: Option<NullBuffer>,
    like: &ArrayRef,
) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(values.collect(), nulls).with_data_type(like.data_type().clone()))
}

fn sums<T: ArrowPrimitiveType>(column: &ArrayRef, segments: &Segments, diffs: &Diffs, most: i128) -> Option<Sums>
where
    T::Native: Into<i128>,
{
    // (A NULL's place in the buffer may hold anything: all rows of its segment are NULL. So may an
    // absent row's: its number is none of a segment.)
    let (values, n) = (column.as_primitive::<T>().values(), segments.n_numbers());
    let most_diff = match diffs {
        Diffs::Constant(diff) => diff.unsigned_abs(),
        Diffs::Column(diffs) => diffs.iter().map(|diff| diff.unsigned_abs()).max().unwrap_or(0),
    };
    let terms = u128::from(most_diff).saturating_mul(values.len() as u128);
    let bits = bits_of(values) + (u128::BITS - terms.leading_zeros());
    let of_row = &segments.of_row;
    let narrow = |value: T::Native| -> i64 { Into::<i128>::into(value) as i64 };
    let mut sums: Vec<i128> = match (bits, diffs) {
        (..=62, Diffs::Constant(1)) if size_of::<T::Native>() == size_of::<i64>() => {
            let mut sums = lanes::Sums::new(n, of_row.len());
            sums.add(of_row, &values.inner().typed_data::<i64>()[..values.len()]);
            sums.finish().into_iter().map(i128::from).collect()
        }
        (..=62, diffs) => {
            let sums = lanes::sums(of_row, n, |row| narrow(values[row]) * diffs.get(row));
            sums.into_iter().map(i128::from).collect()
        }
        (63..=126, diffs) => lanes::sums(of_row, n, |row| values[row].into() * i128::from(diffs.get(row))),
        _ => return None,
    };
    sums.truncate(segments.len());
    sums.iter().all(|sum| (-most..=most).contains(sum)).then_some(Sums { values: sums })
}

/// Bits that the value furthest from zero has, without its sign.
fn bits_of<N: Copy + Into<i128>>(values: &[N]) -> u32 {
    // The highest bit of `v ^ 2v` is one above those of `v`. (A shift to the right that keeps the
    // sign says as much, but has no lanes side by side on every processor.)
    if size_of::<N>() <= size_of::<i64>() {
        let differ = |value: i64| (value ^ (value << 1)) as u64;
        let bits = values.iter().fold(0, |bits, &value| bits | differ(Into::<i128>::into(value) as i64));
        return (u64::BITS - bits.leading_zeros()).saturating_sub(1);
    }
    let differ = |value: i128| (value ^ (value << 1)) as u128;
    let bits = values.iter().fold(0, |bits, &value| bits | differ(value.into()));
    (u128::BITS - bits.leading_zeros()).saturating_sub(1)
}
