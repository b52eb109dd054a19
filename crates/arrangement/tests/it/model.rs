//! The model: rows as vectors of cells, updates in a map; and random ones.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_arrangement::{Layout, ValueOrder};
use anabranch_batch::order::Direction;
use anabranch_batch::{Batch, Diff, Diffs, Time, Times};
use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Int32Array, Int64Array, StringViewArray};
use arrow::datatypes::{DataType, Decimal128Type, Int32Type, Int64Type};

/// One value of a row. NULL orders last.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cell {
    Int(i64),
    Decimal(i128),
    Text(String),
    Null,
}

pub type Row = Vec<Cell>;

/// Updates that sum to nothing are left out.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Model(pub BTreeMap<(Row, Time), Diff>);

impl Model {
    pub fn add(&mut self, row: Row, time: Time, diff: Diff) {
        let sum = self.0.entry((row.clone(), time)).or_insert(0);
        *sum += diff;
        if *sum == 0 {
            self.0.remove(&(row, time));
        }
    }

    pub fn add_batch(&mut self, batch: &Batch) {
        for row in 0..batch.len() {
            self.add(read_row(batch.columns(), row), batch.times().get(row), batch.diffs().get(row));
        }
    }

    /// The collection at `at`.
    pub fn contents(&self, at: Time) -> BTreeMap<Row, Diff> {
        let mut contents = BTreeMap::new();
        for ((row, time), diff) in &self.0 {
            if *time <= at {
                *contents.entry(row.clone()).or_insert(0) += diff;
            }
        }
        contents.retain(|_, diff| *diff != 0);
        contents
    }
}

/// A linear congruential generator (Knuth's MMIX), high bits only.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(2).wrapping_add(0x9E37_79B9_7F4A_7C15))
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0 >> 33) * u128::from(n)) >> 31) as u64
    }

    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low) as u64) as i64
    }

    pub fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

/// Runs `body` on many seeds, or on the one in `SEED`.
pub fn for_seeds(count: u64, body: impl Fn(u64)) {
    match std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => body(seed),
        None => (0..count).for_each(|seed| {
            println!("SEED={seed}");
            body(seed);
        }),
    }
}

/// A layout over some mix of types.
pub fn random_layout(rng: &mut Rng) -> Layout {
    let schemas: [&[DataType]; 4] = [
        &[DataType::Int64, DataType::Int64],
        &[DataType::Utf8View, DataType::Decimal128(10, 2), DataType::Int32],
        &[DataType::Int32, DataType::Utf8View],
        &[DataType::Utf8View],
    ];
    let types = schemas[rng.below(4) as usize].to_vec();
    let keys = rng.below(types.len() as u64 + 1);
    let mut key: Vec<usize> = (0..types.len()).filter(|_| rng.chance(2)).collect();
    key.truncate(keys as usize);
    if rng.chance(3) {
        key.reverse();
    }
    Layout { values: random_order(rng, types.len()), key, types }
}

fn random_order(rng: &mut Rng, n_columns: usize) -> ValueOrder {
    if rng.chance(2) {
        return ValueOrder::Hash;
    }
    let mut direction = || Direction { descending: rng.chance(2), nulls_first: rng.chance(2) };
    let mut sort: Vec<(usize, Direction)> = (0..n_columns).map(|column| (column, direction())).collect();
    sort.truncate(1 + rng.below(n_columns as u64) as usize);
    if rng.chance(2) {
        sort.reverse();
    }
    ValueOrder::Sorted(sort)
}

/// A row with few distinct values a column, and sometimes NULL where `nulls`.
pub fn random_row(rng: &mut Rng, types: &[DataType], spread: u64, nulls: bool) -> Row {
    let mut cell = |data_type: &DataType| match data_type {
        _ if nulls && rng.chance(6) => Cell::Null,
        DataType::Utf8View if rng.chance(2) => Cell::Text(format!("a long common prefix, then {}", rng.below(spread))),
        DataType::Utf8View => Cell::Text(format!("{}", rng.below(spread))),
        DataType::Decimal128(..) => Cell::Decimal(i128::from(rng.below(spread)) - 2),
        _ => Cell::Int(rng.below(spread) as i64 - 2),
    };
    types.iter().map(&mut cell).collect()
}

/// Columns of `types` that hold `rows`.
pub fn to_columns(types: &[DataType], rows: &[Row]) -> Vec<ArrayRef> {
    let int = |cell: &Cell| if let Cell::Int(value) = cell { Some(*value) } else { None };
    let text = |cell: &Cell| if let Cell::Text(value) = cell { Some(value.clone()) } else { None };
    let decimal = |cell: &Cell| if let Cell::Decimal(value) = cell { Some(*value) } else { None };
    let column = |(i, data_type): (usize, &DataType)| -> ArrayRef {
        let cells = rows.iter().map(|row| &row[i]);
        match data_type {
            DataType::Int64 => Arc::new(Int64Array::from_iter(cells.map(int))),
            DataType::Int32 => Arc::new(Int32Array::from_iter(cells.map(|cell| int(cell).map(|value| value as i32)))),
            DataType::Utf8View => Arc::new(StringViewArray::from_iter(cells.map(text))),
            DataType::Decimal128(..) => {
                Arc::new(Decimal128Array::from_iter(cells.map(decimal)).with_data_type(data_type.clone()))
            }
            other => panic!("no test column of {other}"),
        }
    };
    types.iter().enumerate().map(column).collect()
}

pub fn read_row(columns: &[ArrayRef], row: usize) -> Row {
    columns.iter().map(|column| read_cell(column, row)).collect()
}

fn read_cell(column: &ArrayRef, row: usize) -> Cell {
    if column.is_null(row) {
        return Cell::Null;
    }
    match column.data_type() {
        DataType::Int64 => Cell::Int(column.as_primitive::<Int64Type>().value(row)),
        DataType::Int32 => Cell::Int(column.as_primitive::<Int32Type>().value(row).into()),
        DataType::Utf8View => Cell::Text(column.as_string_view().value(row).to_owned()),
        DataType::Decimal128(..) => Cell::Decimal(column.as_primitive::<Decimal128Type>().value(row)),
        other => panic!("no test column of {other}"),
    }
}

/// How many values a column has: few, so that rows meet; or many, so that there are many keys.
pub fn random_spread(rng: &mut Rng) -> u64 {
    if rng.chance(4) { 3000 } else { 1 + rng.below(12) }
}

/// Random updates with times in `lower .. lower + 6`; constants where chance has it.
pub fn random_batch(rng: &mut Rng, types: &[DataType], lower: Time, rows: u64) -> Batch {
    let (spread, nulls) = (random_spread(rng), rng.chance(2));
    let rows: Vec<Row> = (0..rows).map(|_| random_row(rng, types, spread, nulls)).collect();
    let times = match rng.chance(2) {
        true => Times::Constant(rng.between(lower, lower + 6)),
        false => Times::Column(rows.iter().map(|_| rng.between(lower, lower + 6)).collect()),
    };
    let diffs = match rng.chance(3) {
        true => Diffs::Constant(1),
        false => Diffs::Column(rows.iter().map(|_| [1, 1, -1, 2][rng.below(4) as usize]).collect()),
    };
    Batch::with_len(to_columns(types, &rows).into(), rows.len(), times, diffs)
}

/// The order of values that a layout asks for.
pub fn compare_values(layout: &Layout, left: &Row, right: &Row) -> Ordering {
    let ValueOrder::Sorted(sort) = &layout.values else { panic!("values are not sorted") };
    let by_sort = sort.iter().map(|&(column, direction)| compare_cells(&left[column], &right[column], direction));
    let rest = layout.value_columns().into_iter().map(|column| left[column].cmp(&right[column]));
    by_sort.chain(rest).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn compare_cells(left: &Cell, right: &Cell, direction: Direction) -> Ordering {
    match (left, right) {
        (Cell::Null, Cell::Null) => Ordering::Equal,
        (Cell::Null, _) if direction.nulls_first => Ordering::Less,
        (Cell::Null, _) => Ordering::Greater,
        (_, Cell::Null) => compare_cells(right, left, direction).reverse(),
        _ if direction.descending => right.cmp(left),
        _ => left.cmp(right),
    }
}
