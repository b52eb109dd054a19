//! Rows on their way to shards.
//!
//! Law: the shard of a row is a function of its key or its columns, never of its time or the batch
//! it came in: what takes a row back follows it. Rows of one shard keep their order. Hashes that a
//! batch holds are not computed again.

use std::ops::Range;
use std::sync::Arc;

use anabranch_batch::{Batch, parts_of};
use anabranch_engine::Error;
use anabranch_sql::output::{Printer, printer};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringViewArray};
use arrow::datatypes::{Int64Type, Schema};
use datafusion_common::ScalarValue;

use crate::appending::Dealt;
use crate::layout::{Layout, Move, To};
use crate::program::{ActionKind, BRANCH, ROUTE, Targets};
use crate::split::handed;

/// Columns that an error of a row tells.
const TOLD_COLUMNS_MAX: usize = 8;

/// A movement of a batch.
#[derive(Clone, Copy)]
pub struct Movement<'a> {
    /// Which rows go where.
    pub kind: &'a ActionKind,
    /// How far.
    pub reach: &'a Move,
    /// Columns of the rows.
    pub schema: &'a Schema,
    /// Number of the batch in its shard.
    pub sequence: u64,
}

/// Rows for a shard.
pub struct RoutedRows {
    /// The shard.
    pub target: usize,
    /// The rows; of a window, those of its batch.
    pub rows: Batch,
    /// The rows of `rows` that are meant; `None` for all.
    pub window: Option<Range<usize>>,
    /// The branches that the rows are in, each of them in all; `None` if the rows themselves say
    /// where they are.
    pub branches: Option<Vec<i64>>,
}

/// Rows for all shards, of those that `shard` sends; empty batches are left out. `dealt` is what
/// the movement has sent from there so far, if it deals out batches.
///
/// # Errors
/// `Data` when a multicast names a shard that is not there.
pub fn routed(
    batch: &Batch,
    movement: &Movement<'_>,
    layout: Layout,
    shard: usize,
    dealt: &mut Dealt,
) -> Result<Vec<RoutedRows>, Error> {
    let as_they_are = |(target, rows): (usize, Batch)| RoutedRows { target, rows, window: None, branches: None };
    let mut handed = Vec::new();
    let Movement { kind, reach, schema, sequence } = *movement;
    let parts = match kind {
        ActionKind::Redistribute => {
            parts_of(batch, layout.shards(), |hashes, to| layout.routes(shard, hashes, reach, to))
        }
        ActionKind::Reshard => {
            let all: Vec<usize> = (0..batch.columns().len()).collect();
            let hashed = batch.clone().without_key().with_key(&all);
            let parts = parts_of(&hashed, layout.shards(), |hashes, to| layout.routes(shard, hashes, reach, to));
            let key = batch.key().map(|key| key.columns.clone());
            let keyed = |part: Batch| match &key {
                // (The key's own hashes go with their rows.)
                Some(columns) => part.without_key().with_key(columns),
                None => part.without_key(),
            };
            parts.into_iter().map(keyed).collect()
        }
        ActionKind::Deal => {
            let target = dealt.next(&targets(reach, layout, shard), shard, batch.len()).unwrap_or(shard);
            return Ok(vec![as_they_are((target, batch.clone()))]);
        }
        ActionKind::Broadcast => {
            let targets = targets(reach, layout, shard);
            return Ok(targets.into_iter().map(|target| as_they_are((target, batch.clone()))).collect());
        }
        ActionKind::Multicast(targets) => multicast(batch, targets, layout)?,
        ActionKind::Split { nodes, fan_out, width, places } => {
            let shard_of = |branch: i64| shard_of(branch, layout, places.as_deref());
            let level = SplitLevel { nodes: (*nodes).into(), fan_out: (*fan_out).into(), width: (*width).into() };
            let (all, others) = level.handed(batch, schema)?;
            if let Some((node, rows)) = all {
                for piece in handed::pieces(&rows) {
                    handed.extend(by_shard(level.children(node), layout, shard_of).map(|(target, branches)| {
                        RoutedRows { target, rows: piece.clone(), window: None, branches: Some(branches) }
                    }));
                }
            }
            let batch = &others;
            let (routes, at) = (numbers(batch, schema, ROUTE)?, numbers(batch, schema, BRANCH)?);
            let digits = level.nodes * level.fan_out;
            let children = |row: usize, send: &mut dyn FnMut(i64)| match routes.is_valid(row) {
                // (Digits are taken lowest first, so a node is the route's rest by the nodes of its
                // level. The least branch of a node is its own number: a node that is none has no
                // branches.)
                true => {
                    Some(routes.value(row) % digits).filter(|child| *child < level.width).into_iter().for_each(send)
                }
                false => level.children(at.value(row)).for_each(send),
            };
            branched(batch, schema, children, layout, shard_of)?
        }
        ActionKind::ToBranch => {
            let branches = numbers(batch, schema, BRANCH)?;
            branched(
                batch,
                schema,
                |row, send| send(branches.value(row)),
                layout,
                |branch| shard_of(branch, layout, None),
            )?
        }
        // (Which splitter is chosen does not matter to rows: those behind it go by their own
        // columns.)
        ActionKind::Spray(spraying) => {
            let windows = spraying.windows(batch.len(), layout, shard, sequence);
            let as_window =
                |(target, window)| RoutedRows { target, rows: batch.clone(), window: Some(window), branches: None };
            return Ok(windows.map(as_window).collect());
        }
    };
    let parts = parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty());
    Ok(parts.map(as_they_are).chain(handed).collect())
}

/// The shards that rows of `shard` may go to.
fn targets(reach: &Move, layout: Layout, shard: usize) -> Vec<usize> {
    match &reach.to {
        To::Same => layout.peers(shard, reach.scope),
        chosen => chosen.chosen(layout.shards()),
    }
}

/// One level of a split.
struct SplitLevel {
    nodes: i64,
    fan_out: i64,
    width: i64,
}

impl SplitLevel {
    /// The children of a node.
    fn children(&self, node: i64) -> impl Iterator<Item = i64> + use<> {
        let (nodes, width) = (self.nodes, self.width);
        (0..self.fan_out).map(move |child| node + nodes * child).filter(move |child| *child < width)
    }

    /// The rows that are handed on to all children, with the node that they are in, and the others.
    /// Rows for all children are handed on if they are many, and in one node.
    fn handed(&self, batch: &Batch, schema: &Schema) -> Result<(Option<(i64, Batch)>, Batch), Error> {
        let (routes, at) = (numbers(batch, schema, ROUTE)?, numbers(batch, schema, BRANCH)?);
        let n_all = routes.null_count();
        if n_all < handed::ROWS_MIN {
            return Ok((None, batch.clone()));
        }
        if n_all == batch.len() {
            let node = at.value(0);
            return Ok(match at.values().iter().all(|other| *other == node) {
                true => (Some((node, batch.clone())), batch.slice(0, 0)),
                false => (None, batch.clone()),
            });
        }
        let (all, others): (Vec<u32>, Vec<u32>) =
            (0..batch.len() as u32).partition(|row| routes.is_null(*row as usize));
        let node = at.value(all[0] as usize);
        Ok(match all.iter().all(|row| at.value(*row as usize) == node) {
            true => (Some((node, batch.take(&all))), batch.take(&others)),
            false => (None, batch.clone()),
        })
    }
}

/// Branches by the shards that they lie in.
fn by_shard(
    branches: impl Iterator<Item = i64>,
    layout: Layout,
    shard_of: impl Fn(i64) -> usize,
) -> impl Iterator<Item = (usize, Vec<i64>)> {
    let mut shards: Vec<Vec<i64>> = vec![Vec::new(); layout.shards()];
    branches.for_each(|branch| shards[shard_of(branch)].push(branch));
    shards.into_iter().enumerate().filter(|(_, branches)| !branches.is_empty())
}

/// Where a branch lies: in the shards of the list by turns, or in all.
fn shard_of(branch: i64, layout: Layout, places: Option<&[usize]>) -> usize {
    let turn = |shards: usize| branch.rem_euclid(shards as i64) as usize;
    places.map_or_else(|| turn(layout.shards()), |places| places[turn(places.len())])
}

fn multicast(batch: &Batch, targets: &Targets, layout: Layout) -> Result<Vec<Batch>, Error> {
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); layout.shards()];
    for row in 0..batch.len() {
        let cells = batch.columns().iter().map(|column| ScalarValue::try_from_array(column, row));
        let cells = cells.collect::<Result<Vec<_>, _>>().map_err(|error| Error::internal(error.strip_backtrace()))?;
        let mut named = targets(&cells);
        named.sort_unstable();
        named.dedup();
        for target in named {
            let Some(rows) = rows.get_mut(target) else {
                return Err(Error::data(format!("a row is multicast to shard {target} of {}", layout.shards()))
                    .with_hint(format!("Shards are numbered 0 to {}; NULL is none.", layout.shards() - 1)));
            };
            rows.push(row as u32);
        }
    }
    Ok(rows.iter().map(|rows| batch.take(rows)).collect())
}

/// Rows by the shards of their branches, which `branches` says; the column of that name holds them.
fn branched(
    batch: &Batch,
    schema: &Schema,
    branches: impl Fn(usize, &mut dyn FnMut(i64)),
    layout: Layout,
    shard_of: impl Fn(i64) -> usize,
) -> Result<Vec<Batch>, Error> {
    let mut rows: Vec<(Vec<u32>, Vec<i64>)> = vec![Default::default(); layout.shards()];
    for row in 0..batch.len() {
        branches(row, &mut |branch| {
            let (rows, numbers) = &mut rows[shard_of(branch)];
            rows.push(row as u32);
            numbers.push(branch);
        });
    }
    let place = schema.index_of(BRANCH).map_err(|error| Error::internal(error.to_string()))?;
    let part = |(rows, numbers): (Vec<u32>, Vec<i64>)| {
        // (Rows that all stay, once each, need no copy.)
        let is_all = rows.len() == batch.len() && rows.iter().enumerate().all(|(at, row)| at == *row as usize);
        let part = if is_all { batch.clone() } else { batch.take(&rows) };
        let mut columns = part.columns().to_vec();
        columns[place] = Arc::new(Int64Array::from(numbers));
        part.with_columns(columns.into())
    };
    Ok(rows.into_iter().map(part).collect())
}

/// A column of whole numbers.
fn numbers(batch: &Batch, schema: &Schema, name: &str) -> Result<Int64Array, Error> {
    let place = schema.index_of(name).map_err(|error| Error::internal(error.to_string()))?;
    let column = batch.column(place).as_primitive_opt::<Int64Type>();
    column.cloned().ok_or_else(|| Error::internal(format!("column {name} holds no whole numbers")))
}

/// The rows whose routes are branches, and an error for each of the others.
pub fn in_range(batch: Batch, movement: &Movement<'_>) -> Result<(Batch, Option<Batch>), Error> {
    let ActionKind::Split { nodes: 1, width, .. } = movement.kind else { return Ok((batch, None)) };
    let routes = numbers(&batch, movement.schema, ROUTE)?;
    let is_branch = |row: usize| routes.is_null(row) || (0..i64::from(*width)).contains(&routes.value(row));
    let (kept, lost): (Vec<u32>, Vec<u32>) = (0..batch.len() as u32).partition(|row| is_branch(*row as usize));
    if lost.is_empty() {
        return Ok((batch, None));
    }
    let told = told_columns(&batch, movement.schema);
    let message = |row: &u32| {
        let row = *row as usize;
        let cells: Vec<String> = told.iter().map(|(name, column, print)| cell(name, column, print, row)).collect();
        format!("a row is routed to branch {} of {width} (where {})", routes.value(row), cells.join(", "))
    };
    let messages = StringViewArray::from_iter_values(lost.iter().map(message));
    let errors = batch.take(&lost).without_key().with_columns(vec![Arc::new(messages) as ArrayRef].into());
    Ok((batch.take(&kept), Some(errors)))
}

/// The columns of rows that are split which are the stream's, with their printers: those of SQL, so
/// that equal values have equal texts, and an error is taken back with its row.
fn told_columns<'a>(batch: &'a Batch, schema: &'a Schema) -> Vec<(&'a str, &'a ArrayRef, Printer<'a>)> {
    let columns = schema.fields().iter().map(|field| field.name().as_str()).zip(batch.columns().iter());
    let own = columns.filter(|(name, _)| ![BRANCH, ROUTE].contains(name)).take(TOLD_COLUMNS_MAX);
    own.map(|(name, column)| (name, column, printer(column))).collect()
}

fn cell(name: &str, column: &ArrayRef, print: &Printer<'_>, row: usize) -> String {
    let mut text = format!("{name} = ");
    match column.is_null(row) {
        true => text.push_str("NULL"),
        false => print(row, &mut text),
    }
    text
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, Float64Array};
    use arrow::datatypes::{DataType, Field};

    use super::*;
    use crate::split::para::Spraying;
    use anabranch_batch::{Diffs, Times};

    fn batch(rows: usize, columns: usize) -> Batch {
        let column = |_| -> ArrayRef { Arc::new((0..rows as i64).collect::<Int64Array>()) };
        let columns: Vec<ArrayRef> = (0..columns).map(column).collect();
        Batch::with_len(columns.into(), rows, Times::Constant(0), Diffs::Constant(1))
    }

    /// A row may be taken back by one that is equal to it: its error has to have the same text.
    #[test]
    fn errors_of_equal_rows_have_equal_texts() {
        let names = ["f", ROUTE, BRANCH];
        let types = [DataType::Float64, DataType::Int64, DataType::Int64];
        let fields = names.iter().zip(types).map(|(name, of)| Field::new(*name, of, true));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let routes = || -> ArrayRef { Arc::new(Int64Array::from(vec![9, 9, 9])) };
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![Some(0.0), Some(-0.0), None]));
        let batch = Batch::new(vec![floats, routes(), routes()], Times::Constant(0), Diffs::Constant(1));
        let kind = ActionKind::Split { nodes: 1, fan_out: 4, width: 4, places: None };
        let movement = Movement { kind: &kind, reach: &Move::FLAT, schema: &schema, sequence: 0 };
        let (kept, errors) = in_range(batch, &movement).unwrap();
        let errors = errors.unwrap();
        let texts: Vec<&str> = errors.column(0).as_string_view().iter().flatten().collect();
        let told = |value: &str| format!("a row is routed to branch 9 of 4 (where f = {value})");
        assert_eq!((kept.len(), texts), (0, vec![&*told("0"), &*told("0"), &*told("NULL")]));
    }

    fn sprayed(batch: &Batch, sequence: u64, shards: usize) -> (usize, Batch) {
        let schema = Schema::new(Vec::<Field>::new());
        let spraying = Spraying { splitters: shards as u32, window: 100_000, seed: 0 };
        let movement = Movement { kind: &ActionKind::Spray(spraying), reach: &Move::FLAT, schema: &schema, sequence };
        let mut parts = routed(batch, &movement, Layout::flat(shards), 0, &mut Dealt::default()).unwrap();
        assert_eq!(parts.len(), 1);
        let RoutedRows { target, rows, window, .. } = parts.remove(0);
        assert_eq!(window, Some(0..rows.len()));
        (target, rows)
    }

    /// Statements S8 and T1: the router of a parallel split looks at no row and no column, and
    /// copies none, whatever their number: its cost is that of a batch.
    #[test]
    fn spraying_hands_on_the_batch_as_it_is() {
        for (rows, columns) in [(1, 1), (100_000, 1), (10, 20)] {
            let given = batch(rows, columns);
            let (_, part) = sprayed(&given, 7, 4);
            let places = |batch: &Batch| -> Vec<*const u8> {
                batch.columns().iter().map(|column| column.to_data().buffers()[0].as_ptr()).collect()
            };
            assert_eq!((part.len(), places(&part)), (rows, places(&given)));
        }
    }

    /// Statement S10: splitters get windows evenly, and so does what comes back at regular
    /// intervals.
    #[test]
    fn spraying_is_even_and_has_no_period() {
        let given = batch(1, 1);
        for period in [1, 4, 5] {
            let mut counts = [0.0f64; 4];
            for window in 0..1_000u64 {
                counts[sprayed(&given, window * period, 4).0] += 1.0;
            }
            // (Chi square with three degrees of freedom is above 16.27 once in a thousand times.)
            let chi: f64 = counts.iter().map(|count| (count - 250.0) * (count - 250.0) / 250.0).sum();
            assert!(chi < 16.27, "period {period}: {counts:?}");
        }
    }
}
