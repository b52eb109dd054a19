//! Putting rows of several sources in the layout's order: what a sort and a merge have in common.
//!
//! Law: rows come out by (key hash, key, value word, value, time), and it is known which of them
//! equal the row before in all but the diff. All rows of a hash are in one block.
//!
//! Cost: a radix sort by hash, whatever the number of sources; words where hashes tie. Columns are
//! compared only where words tie and do not say it all: all such pairs of a block at once, and one
//! by one only among rows that turn out to be unequal.

use std::cell::OnceCell;
use std::cmp::Ordering;

use anabranch_batch::order::{Comparator, Direction};
use anabranch_batch::{Columns, Diffs, Time, Times, equal, gather};
use arrow::array::ArrayRef;

use crate::chunk::{Chunk, Exact};
use crate::layout::{ASCENDING, Layout, pick_columns};
use crate::sort::{HashEntry, Sorted, Tie, sort_rows};

/// A row of a source: (source, row).
pub(crate) type Pick = (u32, u32);

/// Columns that rows are picked from.
#[derive(Clone, Debug)]
pub(crate) struct RowSource {
    pub columns: Columns,
    pub times: Times,
    pub diffs: Diffs,
    pub exact: Exact,
    /// The latest time.
    pub time_max: Time,
    /// Equal hashes mean equal keys, among the rows of this source.
    pub key_unique: bool,
}

impl RowSource {
    /// The rows of a chunk. A packed key is left out, unless it is needed, as where keys of other
    /// sources do not follow from hashes.
    pub fn of_chunk(chunk: &Chunk, is_key_needed: bool) -> RowSource {
        RowSource {
            columns: if is_key_needed { chunk.columns() } else { chunk.stored_columns().clone() },
            times: chunk.times().clone(),
            diffs: chunk.diffs().clone(),
            exact: chunk.facts().exact,
            time_max: chunk.facts().time_max,
            key_unique: chunk.facts().key_unique,
        }
    }

    /// The time of a row when times before `since` are advanced to it.
    #[inline]
    pub fn time(&self, row: u32, since: Time) -> Time {
        self.times.get(row as usize).max(since)
    }

    /// The time of all rows, if they have one.
    pub fn common_time(&self, since: Time) -> Option<Time> {
        match self.times {
            Times::Constant(time) => Some(time.max(since)),
            Times::Column(_) => (self.time_max <= since).then_some(since),
        }
    }
}

/// Where words spare the columns, in all of `sources`.
pub(crate) fn common_exact(sources: &[RowSource]) -> Exact {
    sources.iter().map(|source| source.exact).fold(Exact { key: true, value: true }, Exact::and)
}

/// Rows to be put in order: hash, value word and place of each. All rows of their hashes.
#[derive(Default, Debug)]
pub(crate) struct HashBlock {
    pub hashes: Vec<u64>,
    pub words: Vec<u64>,
    /// None if the rows are those of the only source, as they come.
    pub picks: Vec<Pick>,
}

impl HashBlock {
    /// Where the rows `rows` are.
    pub fn picks_of(&self, rows: &[u32]) -> Vec<Pick> {
        match self.picks.is_empty() {
            true => rows.iter().map(|&row| (0, row)).collect(),
            false => rows.iter().map(|&row| self.picks[row as usize]).collect(),
        }
    }

    #[inline]
    fn pick(&self, row: u32) -> Pick {
        if self.picks.is_empty() { (0, row) } else { self.picks[row as usize] }
    }

    pub fn clear(&mut self) {
        self.hashes.clear();
        self.words.clear();
        self.picks.clear();
    }
}

/// The rows of a block in order.
pub(crate) struct OrderedRows {
    /// Rows are numbers in the block.
    pub rows: Sorted,
    /// Positions, ascending, of rows that equal the row before in all but the diff.
    pub repeats: Vec<usize>,
    /// Equal hashes mean equal keys.
    pub key_unique: bool,
}

/// Puts a block in order. `is_sorted` if its rows are in order already.
pub(crate) fn order(
    layout: &Layout,
    sources: &[RowSource],
    since: Time,
    block: &HashBlock,
    is_sorted: bool,
) -> OrderedRows {
    let mut exact = common_exact(sources);
    // (Rows in order are of one source.)
    exact.key |= is_sorted && block.picks.first().is_some_and(|pick| sources[pick.0 as usize].key_unique);
    let mut sorted = match is_sorted {
        true => Sorted::of_ordered(block.hashes.clone(), block.words.clone()),
        false => sort_rows(&block.hashes, Some(&block.words)),
    };
    let rows = BlockRows { layout, sources, since, block };
    let words_tie = sorted.words_tie;
    let order = RowOrder::new(&rows, &sorted, sorted.hashes_tie && !exact.key, words_tie && !exact.value);
    let key_unique = order.sort_groups(&mut sorted, order.keys.as_ref(), Tie::Hash);
    let values_equal = order.sort_groups(&mut sorted, order.values.as_ref(), Tie::Words);
    let repeats = if words_tie { rows.repeats(&mut sorted, &order, key_unique && values_equal) } else { Vec::new() };
    OrderedRows { rows: sorted, repeats, key_unique }
}

/// The rows of a block.
struct BlockRows<'a> {
    layout: &'a Layout,
    sources: &'a [RowSource],
    since: Time,
    block: &'a HashBlock,
}

impl BlockRows<'_> {
    fn time(&self, entry: &HashEntry) -> Time {
        let (source, row) = self.block.pick(entry.row);
        self.sources[source as usize].time(row, self.since)
    }

    fn has_one_time(&self) -> bool {
        let mut times = self.sources.iter().map(|source| source.common_time(self.since));
        let first = times.next().flatten();
        first.is_some() && times.all(|time| time == first)
    }

    /// Sorts rows of equal key and value, which lie side by side, by time, and finds those that
    /// repeat the row before. `words_say_all` if rows are equal whose words are.
    fn repeats(&self, rows: &mut Sorted, order: &RowOrder, words_say_all: bool) -> Vec<usize> {
        let is_equal = |at: &usize| words_say_all || order.compare(&rows.at(at - 1), &rows.at(*at)).is_eq();
        let equal: Vec<usize> = rows.tied(Tie::Words).filter(is_equal).collect();
        if self.has_one_time() {
            return equal;
        }
        for group in equal.chunk_by(|a, b| a + 1 == *b) {
            let range = group[0] - 1..group[0] + group.len();
            match group {
                // (An update and its retraction, mostly.)
                [_] if self.time(&rows.at(range.start)) <= self.time(&rows.at(range.start + 1)) => {}
                [_] => rows.swap(range.start, range.start + 1),
                _ => rows.sort_range(range, |a, b| self.time(a).cmp(&self.time(b))),
            }
        }
        equal.into_iter().filter(|&at| self.time(&rows.at(at - 1)) == self.time(&rows.at(at))).collect()
    }
}

/// The order of rows whose words tie; `None` where words say it all.
struct RowOrder<'a> {
    keys: Option<Tied<'a>>,
    values: Option<Tied<'a>>,
}

impl<'a> RowOrder<'a> {
    fn new(rows: &'a BlockRows<'a>, sorted: &Sorted, ask_keys: bool, ask_values: bool) -> RowOrder<'a> {
        let layout = rows.layout;
        let key = || Tied::new(rows, sorted, Tie::Hash, layout.key.clone(), vec![ASCENDING; layout.key.len()]);
        let value = || Tied::new(rows, sorted, Tie::Words, layout.value_columns(), layout.value_directions());
        RowOrder { keys: ask_keys.then(key), values: ask_values.then(value) }
    }

    fn compare(&self, a: &HashEntry, b: &HashEntry) -> Ordering {
        let compare = |tied: &Option<Tied>| tied.as_ref().map_or(Ordering::Equal, |tied| tied.compare(a, b));
        compare(&self.keys).then(a.word.cmp(&b.word)).then_with(|| compare(&self.values))
    }

    /// Sorts every group of rows that `tie` and are not all equal in `columns`. Returns whether
    /// there was none.
    fn sort_groups(&self, rows: &mut Sorted, columns: Option<&Tied>, tie: Tie) -> bool {
        let unequal = columns.map_or_else(Vec::new, |columns| columns.unequal(rows, tie));
        let mut sorted_to = 0;
        for &at in &unequal {
            if at >= sorted_to {
                let group = rows.group(at, tie);
                sorted_to = group.end;
                rows.sort_range(group, |a, b| self.compare(a, b));
            }
        }
        unequal.is_empty()
    }
}

/// Some columns of rows that tie.
struct Tied<'a> {
    rows: &'a BlockRows<'a>,
    /// Positions of the columns, and the order of each.
    columns: Vec<usize>,
    directions: Vec<Direction>,
    /// Rows of the block that tie with a neighbour, repeated.
    tied: Vec<u32>,
    /// Made when there are many, or when it turns out that some differ.
    gathered: OnceCell<Gathered>,
}

/// Tied rows where they can be compared.
struct Gathered {
    columns: Columns,
    comparator: Comparator,
    /// Where in the columns each row of the block is.
    place: Vec<u32>,
}

/// With fewer pairs each is compared where its rows are.
const GATHERED_PAIRS_MIN: usize = 16;

impl<'a> Tied<'a> {
    fn new(
        rows: &'a BlockRows<'a>,
        sorted: &Sorted,
        tie: Tie,
        columns: Vec<usize>,
        directions: Vec<Direction>,
    ) -> Tied<'a> {
        let tied = sorted.tied(tie).flat_map(|at| [sorted.rows[at - 1], sorted.rows[at]]).collect();
        Tied { rows, columns, directions, tied, gathered: OnceCell::new() }
    }

    fn gathered(&self) -> &Gathered {
        self.gathered.get_or_init(|| self.gather())
    }

    fn gather(&self) -> Gathered {
        let block = self.rows.block;
        let (columns, place) = match self.rows.sources {
            [source] => {
                let place = (0..block.hashes.len() as u32).map(|row| block.pick(row).1);
                (pick_columns(&source.columns, &self.columns), place.collect())
            }
            sources => {
                let mut place = vec![u32::MAX; block.hashes.len()];
                let mut tied_picks: Vec<Pick> = Vec::new();
                for &row in &self.tied {
                    let place = &mut place[row as usize];
                    if *place == u32::MAX {
                        *place = tied_picks.len() as u32;
                        tied_picks.push(block.pick(row));
                    }
                }
                let columns: Vec<Columns> =
                    sources.iter().map(|source| pick_columns(&source.columns, &self.columns)).collect();
                let columns: Vec<&[ArrayRef]> = columns.iter().map(|columns| &**columns).collect();
                (gather::interleave(&columns, &tied_picks), place)
            }
        };
        Gathered { comparator: Comparator::new(&columns, &columns, &self.directions), columns, place }
    }

    fn compare(&self, a: &HashEntry, b: &HashEntry) -> Ordering {
        let Gathered { comparator, place, .. } = self.gathered();
        comparator.compare(place[a.row as usize] as usize, place[b.row as usize] as usize)
    }

    /// Positions of rows that tie with the one before and yet differ from it.
    fn unequal(&self, rows: &Sorted, tie: Tie) -> Vec<usize> {
        let tied: Vec<usize> = rows.tied(tie).collect();
        if tied.len() < GATHERED_PAIRS_MIN {
            return tied.into_iter().filter(|&at| !self.is_repeat(rows, at)).collect();
        }
        let Gathered { columns, place, .. } = self.gathered();
        let place = |at: usize| place[rows.rows[at] as usize];
        let left: Vec<u32> = tied.iter().map(|&at| place(at - 1)).collect();
        let right: Vec<u32> = tied.iter().map(|&at| place(at)).collect();
        let equal = equal::rows_equal(columns, &left, columns, &right);
        tied.into_iter().zip(equal).filter(|&(_, equal)| !equal).map(|(at, _)| at).collect()
    }

    /// Whether the row at a position equals the one before.
    fn is_repeat(&self, rows: &Sorted, at: usize) -> bool {
        let BlockRows { sources, block, .. } = self.rows;
        let (left, right) = (block.pick(rows.rows[at - 1]), block.pick(rows.rows[at]));
        self.columns.iter().all(|&column| {
            let cell = |pick: Pick| std::slice::from_ref(&sources[pick.0 as usize].columns[column]);
            equal::rows_equal(cell(left), &[left.1], cell(right), &[right.1])[0]
        })
    }
}
