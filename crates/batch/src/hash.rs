//! A stable 64-bit hash of each row: one function serves keying, routing and order.
//!
//! Law: equal rows have equal hashes, in every process and every version of one major release,
//! whatever the physical form of their columns.
//!
//! **Neighbours stay neighbours.** The hash of one integer-like column is the integer itself, its
//! sign flipped: a bijection, so hashes of non-null values are equal only if the values are (see
//! [`is_exact`]); and what comes in order of its key, as numbers of orders and times do, is in
//! order of its hash. Of several columns, 32 bits of the first come first (the low ones of an
//! integer, half the hash of anything else: [`leads`]), then half of a hash of them all. So rows
//! that are equal in the first column lie together, and hashes are not uniform: code that needs
//! that ([`route`], hash tables) takes [`spread`] of them.
//!
//! Integers of all widths, and floats of all widths, hash by value; all forms of text and bytes
//! hash by content. Several columns fold from left to right, by a bijection of the last column's
//! hash. Lists fold their elements and then their length, structs their fields.
//!
//! Cost: well under 1 ns per row for one integer column, 1 ns for each of several, 3 ns per short
//! string.

use arrow::array::{Array, ArrayData, ArrayRef, BooleanArray, OffsetSizeTrait, make_array};
use arrow::buffer::{Buffer, ScalarBuffer};
use arrow::datatypes::DataType;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cells::{ByteCells, Cells, F16, INLINE_BYTES_MAX, Views, canonical, cells, is_integer_like, nulls, scalars};

/// Hash of NULL of any type.
const NULL: u64 = 0x9e6c_63d0_985b_6417;
/// Hash of a row without columns, of an empty struct, and seed of lists.
const EMPTY: u64 = 0x2545_f491_4f6c_dd1d;
/// Odd constants with well spread bits (fractional digits of pi, and of the golden ratio).
const K0: u64 = 0x243f_6a88_85a3_08d3;
const K1: u64 = 0x1319_8a2e_0370_7345;
const K2: u64 = 0x9e37_79b9_7f4a_7c15;

/// Bits of a hash that count; all but in tests that provoke collisions.
static MASK: AtomicU64 = AtomicU64::new(!0);

/// The hash of each row over `columns`, each of which has `rows` rows. Without columns every row
/// has the same hash.
///
/// # Panics
/// If a column is shorter than `rows`, or of a type that [`crate::types::check`] refuses.
pub fn hash_columns(columns: &[ArrayRef], rows: usize) -> Vec<u64> {
    let mut hashes = vec![EMPTY; rows];
    match columns {
        [] => {}
        [column] => hash_into::<ORDERED>(column, &mut hashes, replace),
        [first, rest @ ..] => {
            hash_into::<MIXED>(first, &mut hashes, replace);
            if is_integer_like(first.data_type()) {
                rest.iter().for_each(|column| hash_into::<MIXED>(column, &mut hashes, combine));
                hash_into::<ORDERED>(first, &mut hashes, lead);
            } else {
                let halves: Vec<u32> = hashes.iter().map(|first| (first >> 32) as u32).collect();
                rest.iter().for_each(|column| hash_into::<MIXED>(column, &mut hashes, combine));
                hashes.iter_mut().zip(halves).for_each(|(hash, half)| *hash = u64::from(half) << 32 | *hash >> 32);
            }
        }
    }
    masked(hashes)
}

/// Where the rows of several columns lie whose first column has these values: the first and the
/// last hash that [`hash_columns`] gives them, whatever the other columns are. Few other rows have
/// such hashes.
///
/// # Panics
/// As [`hash_columns`].
pub fn leads(first: &ArrayRef) -> Vec<(u64, u64)> {
    let mut hashes = vec![EMPTY; first.len()];
    if is_integer_like(first.data_type()) {
        hash_into::<ORDERED>(first, &mut hashes, lead);
    } else {
        hash_into::<MIXED>(first, &mut hashes, replace);
    }
    let mask = MASK.load(Ordering::Relaxed);
    let low = u64::from(u32::MAX);
    hashes.into_iter().map(|hash| (hash & !low & mask, (hash | low) & mask)).collect()
}

/// A word of each row that equal rows share and unequal ones seldom do: as [`hash_columns`], but
/// cheaper, since its bits need not be well spread. It is exact where hashes are ([`is_exact`]).
///
/// # Panics
/// As [`hash_columns`].
pub fn word_columns(columns: &[ArrayRef], rows: usize) -> Vec<u64> {
    let mut words = vec![EMPTY; rows];
    for (number, column) in columns.iter().enumerate() {
        match number {
            0 => hash_into::<PLAIN>(column, &mut words, replace),
            _ => hash_into::<PLAIN>(column, &mut words, combine),
        }
    }
    masked(words)
}

/// How integers become 64 bits: well spread; as they are; or, signed ones, in their order.
const MIXED: u8 = 0;
const PLAIN: u8 = 1;
const ORDERED: u8 = 2;

/// An integer's part in a hash, or in a word.
#[inline]
fn cell<const FORM: u8>(value: u64) -> u64 {
    match FORM {
        MIXED => mix(value),
        PLAIN => value,
        _ => hash_word(value),
    }
}

/// The part of NULL. Among ordered integers it is a neighbour of those that are used most.
#[inline]
fn null_cell<const FORM: u8>() -> u64 {
    if FORM == ORDERED { hash_word(!0) } else { NULL }
}

/// Whether equal hashes imply equal rows for these columns: a single column of integers, or what is
/// like them, or narrow decimals, without nulls; or no column.
pub fn is_exact(columns: &[ArrayRef]) -> bool {
    let exact = match columns {
        [] => true,
        [column] => is_word(column.data_type()) && column.null_count() == 0,
        _ => false,
    };
    exact && MASK.load(Ordering::Relaxed) == !0
}

/// Whether values of a type are 64-bit integers to [`hash_columns`] of one column, so that it can
/// be made of their hashes again ([`unhash`]).
pub fn is_word(data_type: &DataType) -> bool {
    is_integer_like(data_type) || matches!(data_type, DataType::Decimal64(..))
}

/// The words of which [`hash_word`] makes the hashes of these columns, if that is how they are
/// made: one column of 64-bit integers without nulls. Its memory is the column's.
pub fn invertible_words(columns: &[ArrayRef]) -> Option<ScalarBuffer<u64>> {
    let [column] = columns else { return None };
    let is_word = matches!(cells(column), Cells::I64(_) | Cells::U64(_));
    (is_word && is_exact(columns)).then(|| scalars(column))
}

/// The hash of a 64-bit integer, given its bits: a bijection that keeps the order of signed
/// integers.
#[inline]
pub fn hash_word(word: u64) -> u64 {
    word ^ (1 << 63)
}

/// The column of a type whose hashes are exact, without nulls, whose hashes these are: see
/// [`is_exact`].
///
/// # Panics
/// If hashes of the type are not.
pub fn unhash(data_type: &DataType, hashes: &[u64]) -> ArrayRef {
    assert!(is_word(data_type), "hashes of {data_type} are not exact");
    let words = hashes.iter().map(|&hash| hash_word(hash));
    // (A word is the integer, with its sign in the bits that it does not have.)
    let buffer = match data_type.primitive_width() {
        None => return Arc::new(words.map(|word| Some(word != 0)).collect::<BooleanArray>()),
        Some(1) => Buffer::from_vec(words.map(|word| word as u8).collect()),
        Some(2) => Buffer::from_vec(words.map(|word| word as u16).collect()),
        Some(4) => Buffer::from_vec(words.map(|word| word as u32).collect()),
        Some(_) => Buffer::from_vec(words.collect::<Vec<u64>>()),
    };
    let data = ArrayData::builder(data_type.clone()).len(hashes.len()).add_buffer(buffer).build();
    make_array(data.expect("integers of any bits are legal"))
}

/// A hash whose bits are all well spread: a bijection.
#[inline]
pub fn spread(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 32)).wrapping_mul(K2);
    hash ^ (hash >> 32)
}

/// For tests: from now on, in the whole process, keep only the bits of `mask` in every hash, to
/// provoke collisions.
pub fn set_mask_for_tests(mask: u64) {
    MASK.store(mask, Ordering::Relaxed);
}

fn masked(mut hashes: Vec<u64>) -> Vec<u64> {
    let mask = MASK.load(Ordering::Relaxed);
    if mask != !0 {
        hashes.iter_mut().for_each(|hash| *hash &= mask);
    }
    hashes
}

/// The hash of a row so far and the next column's: a bijection of either when the other is fixed,
/// and not symmetric.
#[inline]
fn combine(row: u64, column: u64) -> u64 {
    let hash = (row.rotate_left(29) ^ column).wrapping_mul(K2);
    hash ^ (hash >> 32)
}

/// The hash of a row whose first column this is.
#[inline]
fn replace(_row: u64, column: u64) -> u64 {
    column
}

/// The hash of a row of several columns, put behind the first of them, in order of its low 32 bits
/// as a signed integer.
#[inline]
fn lead(row: u64, first: u64) -> u64 {
    (first ^ (1 << 31)) << 32 | row >> 32
}

/// Finaliser of splitmix64 (Steele, Lea, Flood 2014; variant 13 of Stafford), shifted so that 0 is
/// nothing special.
#[inline]
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(K2);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The two halves of a 128-bit product, folded. (wyhash, Wang Yi 2019.)
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// A 128-bit integer in 64 bits. One that fits is the 64-bit integer.
#[inline]
fn narrowed(low: u64, high: u64) -> u64 {
    let excess = high ^ ((low as i64 >> 63) as u64);
    low ^ excess.wrapping_mul(K1)
}

fn hash_into<const FORM: u8>(array: &dyn Array, hashes: &mut [u64], fold: impl Fn(u64, u64) -> u64 + Copy) {
    let null = null_cell::<FORM>();
    macro_rules! each {
        ($cells:expr, $hash:expr) => {
            each_valid(array, hashes, fold, null, |row| $hash($cells[row]))
        };
    }
    let mix = cell::<FORM>;
    let mix_wide = |low: u64, high: u64| mix(narrowed(low, high));
    match cells(array) {
        Cells::Null => hashes.iter_mut().for_each(|hash| *hash = fold(*hash, null)),
        Cells::Bool(bits) => each_valid(array, hashes, fold, null, |row| mix(u64::from(bits.value(row)))),
        Cells::I8(values) => each!(values, |value| mix(i64::from(value) as u64)),
        Cells::I16(values) => each!(values, |value| mix(i64::from(value) as u64)),
        Cells::I32(values) => each!(values, |value| mix(i64::from(value) as u64)),
        Cells::I64(values) => each!(values, |value| mix(value as u64)),
        Cells::U8(values) => each!(values, |value| mix(u64::from(value))),
        Cells::U16(values) => each!(values, |value| mix(u64::from(value))),
        Cells::U32(values) => each!(values, |value| mix(u64::from(value))),
        Cells::U64(values) => each!(values, mix),
        Cells::F16(values) => each!(values, |value| mix(canonical(F16::to_f64(value)).to_bits())),
        Cells::F32(values) => each!(values, |value| mix(canonical(f64::from(value)).to_bits())),
        Cells::F64(values) => each!(values, |value| mix(canonical(value).to_bits())),
        Cells::I128(values) => each!(values, |value| mix_wide(value as u64, (value >> 64) as u64)),
        Cells::I256(values) => each!(values, |value: arrow::datatypes::i256| {
            let (low, high) = value.to_parts();
            let excess = high ^ (low as i128 >> 127);
            let excess = (excess as u64).wrapping_mul(K0) ^ ((excess >> 64) as u64).wrapping_mul(K2);
            mix_wide(low as u64 ^ excess, (low >> 64) as u64)
        }),
        Cells::DayTime(values) => each!(values, |value: arrow::datatypes::IntervalDayTime| {
            combine(mix(i64::from(value.days) as u64), mix(i64::from(value.milliseconds) as u64))
        }),
        Cells::MonthDayNano(values) => each!(values, |value: arrow::datatypes::IntervalMonthDayNano| {
            let months_days = i64::from(value.months) << 32 | i64::from(value.days as u32);
            combine(mix(months_days as u64), mix(value.nanoseconds as u64))
        }),
        Cells::Bytes(values) => each_valid(array, hashes, fold, null, |row| hash_bytes(values.bytes(row))),
        Cells::LargeBytes(values) => each_valid(array, hashes, fold, null, |row| hash_bytes(values.bytes(row))),
        Cells::Fixed(values) => each_valid(array, hashes, fold, null, |row| hash_bytes(values.bytes(row))),
        Cells::Views(values) if nulls(array).is_none() => hash_views(values, hashes, fold),
        Cells::Views(values) => each_valid(array, hashes, fold, null, |row| hash_view(values, row)),
        Cells::List(offsets, elements) => hash_lists(array, offsets, elements, hashes, fold, null),
        Cells::LargeList(offsets, elements) => hash_lists(array, offsets, elements, hashes, fold, null),
        Cells::Struct(fields) => {
            let mut own = vec![EMPTY; array.len()];
            fields.iter().for_each(|field| hash_into::<FORM>(field, &mut own, combine));
            each_valid(array, hashes, fold, null, |row| own[row]);
        }
    }
}

/// Folds `hash(row)`, or that of NULL, into each row's hash.
#[inline]
fn each_valid(
    array: &dyn Array,
    hashes: &mut [u64],
    fold: impl Fn(u64, u64) -> u64,
    null: u64,
    hash: impl Fn(usize) -> u64,
) {
    assert!(array.len() >= hashes.len(), "a column has a cell for each row");
    match nulls(array) {
        None => hashes.iter_mut().enumerate().for_each(|(row, slot)| *slot = fold(*slot, hash(row))),
        Some(nulls) => hashes.iter_mut().enumerate().for_each(|(row, slot)| {
            let hash = if nulls.is_valid(row) { hash(row) } else { null };
            *slot = fold(*slot, hash);
        }),
    }
}

fn hash_lists<O: OffsetSizeTrait>(
    array: &dyn Array,
    offsets: &[O],
    elements: &ArrayRef,
    hashes: &mut [u64],
    fold: impl Fn(u64, u64) -> u64,
    null: u64,
) {
    let start = offsets[0].as_usize();
    let used = elements.slice(start, offsets[offsets.len() - 1].as_usize() - start);
    let mut own = vec![0; used.len()];
    hash_into::<MIXED>(&used, &mut own, replace);
    each_valid(array, hashes, fold, null, |row| {
        let elements = &own[offsets[row].as_usize() - start..offsets[row + 1].as_usize() - start];
        mix(elements.iter().copied().fold(EMPTY, combine) ^ elements.len() as u64)
    });
}

/// A string of at most 12 bytes in two words, as a view holds it.
#[inline]
fn hash_short(low: u64, high: u32, len: usize) -> u64 {
    mix(fold(low ^ K0, (u64::from(high) << 32 | len as u64) ^ K1))
}

/// Views that are looked at together: a loop that does no more waits for all their cache lines at
/// once, and those that are short need no branch.
const VIEWS: usize = 256;

/// Folds the hash of each row's text into the row's: there are no NULLs.
fn hash_views(values: Views<'_>, hashes: &mut [u64], fold: impl Fn(u64, u64) -> u64) {
    assert!(values.views.len() >= hashes.len(), "a column has a cell for each row");
    for (block, (hashes, views)) in hashes.chunks_mut(VIEWS).zip(values.views.chunks(VIEWS)).enumerate() {
        if Views::are_short(views) {
            hashes.iter_mut().zip(views).for_each(|(slot, &view)| *slot = fold(*slot, hash_short_view(view)));
        } else {
            let rows = (block * VIEWS..).zip(hashes);
            rows.for_each(|(row, slot)| *slot = fold(*slot, hash_view(values, row)));
        }
    }
}

#[inline]
fn hash_view(values: Views<'_>, row: usize) -> u64 {
    let view = values.views[row];
    if view as u32 as usize <= INLINE_BYTES_MAX { hash_short_view(view) } else { hash_long(values.bytes(row)) }
}

#[inline]
fn hash_short_view(view: u128) -> u64 {
    hash_short((view >> 32) as u64, (view >> 96) as u32, view as u32 as usize)
}

#[inline]
fn hash_bytes(bytes: &[u8]) -> u64 {
    let tail = |width: usize| u32_at(bytes, bytes.len() - 4) >> (8 * (width - bytes.len()));
    match bytes.len() {
        0..=3 => {
            let low = bytes.iter().rev().fold(0, |low, &byte| low << 8 | u64::from(byte));
            hash_short(low, 0, bytes.len())
        }
        4 => hash_short(u64::from(u32_at(bytes, 0)), 0, 4),
        5..=8 => hash_short(u64::from(u32_at(bytes, 0)) | u64::from(tail(8)) << 32, 0, bytes.len()),
        9..=12 => hash_short(u64_at(bytes, 0), tail(12), bytes.len()),
        _ => hash_long(bytes),
    }
}

/// A string longer than 12 bytes: 16 bytes a step, and the last 16 (or 13 .. 15 in two overlapping
/// words).
fn hash_long(bytes: &[u8]) -> u64 {
    let mut seed = K2 ^ bytes.len() as u64;
    let mut rest = bytes;
    while rest.len() > 16 {
        seed = fold(u64_at(rest, 0) ^ K0, u64_at(rest, 8) ^ seed);
        rest = &rest[16..];
    }
    let last = bytes.len();
    if last >= 16 {
        seed = fold(u64_at(bytes, last - 16) ^ K1, u64_at(bytes, last - 8) ^ seed);
    } else {
        seed = fold(u64_at(bytes, 0) ^ K1, u64_at(bytes, last - 8) ^ seed);
    }
    mix(seed)
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("the slice has four bytes"))
}

#[inline]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("the slice has eight bytes"))
}
