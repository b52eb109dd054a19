//! Merging two adjacent runs into one, a bit at a time.
//!
//! Law: at every moment the rows of the two runs are those of [`Merge::parts`]: what is already merged, followed by the untouched
//! rest of the older run; and the untouched rest of the newer run. Times before `since` are advanced to it, equal updates summed,
//! zeros dropped.
//!
//! Cost: about one comparison of two words and one copy per row. Memory of the inputs is given back chunk by chunk, so a merge
//! needs little more than its result (when nobody else holds the inputs).
//!
//! Two cursors walk the inputs in the order of the first word, the key hash, without branching on who is smaller; ties look at the second
//! word, the columns and the time, in this order.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::rc::Rc;

use anabranch_batch::Time;
use anabranch_batch::order::Comparator;
use arrow::buffer::ScalarBuffer;

use crate::chunk::{Chunk, Exact};
use crate::pending::{Pending, Pick, Source};
use crate::{Layout, Run};

/// An unfinished merge of two adjacent runs.
#[derive(Debug)]
pub(crate) struct Merge {
    layout: Rc<Layout>,
    lower: Time,
    upper: Time,
    since: Time,
    /// What remains of the inputs.
    older: Side,
    newer: Side,
    /// Rows taken from the inputs, but not yet in a chunk.
    pending: Pending,
    /// Where the sources of `pending` lie.
    origins: Vec<Origin>,
    /// What is merged.
    merged: Vec<Rc<Chunk>>,
    /// No two keys with equal hashes were seen.
    key_unique: bool,
    /// Comparators and knowledge about the two current chunks.
    tie: Tie,
    /// What readers see; forgotten when memory was given back.
    view: OnceCell<Rc<Run>>,
    /// How often that was.
    progress: usize,
}

/// What remains of one input, and a cursor.
#[derive(Debug)]
struct Side {
    /// Chunks not yet given back.
    chunks: VecDeque<Rc<Chunk>>,
    /// First row of the first chunk that is not yet in `merged`.
    start: usize,
    /// The cursor: index in `chunks` and row in it.
    chunk: usize,
    row: usize,
    /// What the cursor reads of the current chunk; none before it is entered.
    entered: Option<Entered>,
}

/// A chunk that a cursor is in.
#[derive(Clone, Debug)]
struct Entered {
    hashes: ScalarBuffer<u64>,
    words: ScalarBuffer<u64>,
    /// Its number in `pending`.
    source: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Age {
    Older,
    Newer,
}

/// The chunk behind a source of `pending`.
#[derive(Clone, Copy, Debug)]
struct Origin {
    age: Age,
    chunk: usize,
}

/// How to decide between two rows with equal hashes.
#[derive(Default, Debug)]
struct Tie {
    /// Comparators of keys and values of the two current chunks, made at the first need.
    comparators: Option<(Comparator, Comparator)>,
    /// Keys with this hash are equal in both current chunks.
    equal_keys: Option<u64>,
    /// Two keys with equal hashes were unequal.
    saw_collision: bool,
}

impl Merge {
    /// Starts merging.
    ///
    /// # Panics
    /// If the runs are out of order, or themselves being merged.
    pub fn new(older: &Run, newer: &Run, since: Time) -> Merge {
        assert!(older.upper() <= newer.lower(), "runs are merged in order");
        assert!(
            older.parts().len() <= 1 && newer.parts().len() <= 1,
            "runs that are being merged are not merged again"
        );
        let layout = Rc::clone(older.layout());
        let since = since.max(older.since()).max(newer.since());
        Merge {
            pending: Pending::new(Rc::clone(&layout), since),
            layout,
            lower: older.lower(),
            upper: newer.upper(),
            since,
            older: Side::new(older),
            newer: Side::new(newer),
            origins: Vec::new(),
            merged: Vec::new(),
            key_unique: older.chunks().iter().chain(newer.chunks()).all(|chunk| chunk.facts().key_unique),
            tie: Tie::default(),
            view: OnceCell::new(),
            progress: 0,
        }
    }

    /// Starts to merge a run with nothing, for the sake of `since`.
    pub fn alone(run: &Run, since: Time) -> Merge {
        let nothing = Run::new(Rc::clone(run.layout()), run.upper(), run.upper(), Time::MIN, Vec::new());
        Merge::new(run, &nothing, since)
    }

    /// Merges until `fuel` rows are used up or the merge is done; returns whether it is done.
    pub fn work(&mut self, fuel: &mut isize) -> bool {
        while *fuel > 0 {
            if self.pending.room() == 0 {
                self.settle();
                continue;
            }
            let rows = self.pending.room().min(fuel.unsigned_abs());
            let before = self.pending.len();
            match (self.enter(Age::Older), self.enter(Age::Newer)) {
                (true, true) => self.merge_rows(rows),
                (true, false) => self.copy_rows(Age::Older, rows),
                (false, true) => self.copy_rows(Age::Newer, rows),
                (false, false) => {
                    self.finish();
                    return true;
                }
            }
            *fuel -= (self.pending.len() - before).cast_signed();
        }
        false
    }

    /// The result.
    ///
    /// # Panics
    /// If the merge is not done.
    pub fn into_run(self) -> Run {
        assert!(self.older.chunks.is_empty() && self.newer.chunks.is_empty(), "only a finished merge is a run");
        Run::new(self.layout, self.lower, self.upper, self.since, self.merged)
    }

    /// What readers see meanwhile: one run of two sorted parts. O(chunks) when it changed, else O(1).
    pub fn view(&self) -> Rc<Run> {
        let view = || {
            let mut first = self.merged.clone();
            first.extend(self.older.rest());
            let parts = vec![first, self.newer.rest().collect()];
            Rc::new(Run::from_parts(Rc::clone(&self.layout), self.lower, self.upper, self.since, parts))
        };
        Rc::clone(self.view.get_or_init(view))
    }

    /// How often memory was given back so far; when it changes, so does [`Merge::view`].
    pub fn progress(&self) -> usize {
        self.progress
    }

    /// Enters the current chunk of a side, or the next one. False when the side has no more rows.
    fn enter(&mut self, age: Age) -> bool {
        let side = match age {
            Age::Older => &mut self.older,
            Age::Newer => &mut self.newer,
        };
        if side.entered.is_some() && side.row < side.chunks[side.chunk].len() {
            return true;
        }
        if side.chunks.get(side.chunk).is_some_and(|chunk| side.row == chunk.len()) {
            (side.chunk, side.row, side.entered) = (side.chunk + 1, 0, None);
        }
        let Some(chunk) = side.chunks.get(side.chunk) else { return false };
        let source = self.pending.add_source(Source::from(&**chunk));
        side.entered = Some(Entered { hashes: chunk.key_hashes(), words: chunk.value_words(&self.layout), source });
        self.origins.push(Origin { age, chunk: side.chunk });
        self.tie = Tie::default();
        true
    }

    /// Takes at most `rows` rows from a side whose other side is exhausted.
    fn copy_rows(&mut self, age: Age, rows: usize) {
        let side = match age {
            Age::Older => &mut self.older,
            Age::Newer => &mut self.newer,
        };
        let Entered { hashes, words, source } = side.entered.as_ref().expect("the side was entered");
        let end = hashes.len().min(side.row + rows);
        for row in side.row..end {
            self.pending.push((*source, row as u32), hashes[row], words[row]);
        }
        side.row = end;
    }

    /// Takes at most `rows` rows (at least one) from two sides, in order, up to the end of either current chunk.
    fn merge_rows(&mut self, rows: usize) {
        let (older, newer) = (&mut self.older, &mut self.newer);
        let (a, b) = (Rc::clone(&older.chunks[older.chunk]), Rc::clone(&newer.chunks[newer.chunk]));
        let pair = Pair {
            layout: &self.layout,
            since: self.since,
            older: Input::new(&a, older),
            newer: Input::new(&b, newer),
        };
        let (mut i, mut j) = (older.row, newer.row);
        let end = self.pending.len() + rows;
        let mut taken = Taken::new();
        while self.pending.len() < end && i < a.len() && j < b.len() {
            let limit = end - self.pending.len();
            let is_tie = pair.merge_untied(&self.tie, limit, (&mut i, &mut j), &mut taken, &mut self.pending);
            if is_tie {
                let input = match self.tie.compare(&pair, i, j) {
                    Ordering::Greater => (&pair.newer, &mut j),
                    _ => (&pair.older, &mut i),
                };
                input.0.push_to(&mut self.pending, *input.1);
                *input.1 += 1;
            }
        }
        self.key_unique &= !self.tie.saw_collision;
        drop(pair);
        (older.row, newer.row) = (i, j);
    }

    /// Makes a chunk of the full block, and takes rows that may still meet their equals back into the inputs.
    fn settle(&mut self) {
        let settled = self.pending.settle(self.key_unique);
        for age in [Age::Older, Age::Newer] {
            let first = settled.given_back.iter().find(|pick| self.origins[pick.0 as usize].age == age);
            if let Some(&(source, row)) = first {
                let chunk = self.origins[source as usize].chunk;
                self.side(age).go_back(chunk, row as usize);
                self.tie = Tie::default();
            }
        }
        self.merged.extend(settled.chunk.map(Rc::new));
        if self.pending.len() == 0 {
            self.give_back_memory();
        }
    }

    fn finish(&mut self) {
        self.merged.extend(self.pending.finish(self.key_unique).map(Rc::new));
        self.give_back_memory();
    }

    /// All rows before the cursors are in `merged` (or cancelled): lets go of their chunks.
    fn give_back_memory(&mut self) {
        self.view.take();
        self.progress += 1;
        self.origins.clear();
        self.pending.forget_sources();
        for age in [Age::Older, Age::Newer] {
            self.side(age).forget_consumed();
        }
    }

    fn side(&mut self, age: Age) -> &mut Side {
        match age {
            Age::Older => &mut self.older,
            Age::Newer => &mut self.newer,
        }
    }
}

impl Side {
    fn new(run: &Run) -> Side {
        Side { chunks: run.chunks().iter().cloned().collect(), start: 0, chunk: 0, row: 0, entered: None }
    }

    fn go_back(&mut self, chunk: usize, row: usize) {
        if chunk != self.chunk {
            self.entered = None;
        }
        (self.chunk, self.row) = (chunk, row);
    }

    fn forget_consumed(&mut self) {
        if self.chunks.get(self.chunk).is_some_and(|chunk| self.row == chunk.len()) {
            self.chunk += 1;
            self.row = 0;
        }
        self.chunks.drain(..self.chunk);
        (self.start, self.chunk, self.entered) = (self.row, 0, None);
    }

    /// The rows that are not in a merged chunk yet.
    fn rest(&self) -> impl Iterator<Item = Rc<Chunk>> + '_ {
        self.chunks.iter().enumerate().map(|(i, chunk)| if i == 0 { chunk.tail(self.start) } else { Rc::clone(chunk) })
    }
}

/// The two current chunks.
struct Pair<'a> {
    layout: &'a Layout,
    since: Time,
    older: Input<'a>,
    newer: Input<'a>,
}

/// A current chunk, its value words and its number in the pending block.
struct Input<'a> {
    chunk: &'a Chunk,
    hashes: ScalarBuffer<u64>,
    words: ScalarBuffer<u64>,
    source: u32,
}

impl<'a> Input<'a> {
    fn new(chunk: &'a Chunk, side: &Side) -> Input<'a> {
        let Entered { hashes, words, source } = side.entered.as_ref().expect("the side was entered");
        Input { chunk, hashes: hashes.clone(), words: words.clone(), source: *source }
    }

    fn push_to(&self, pending: &mut Pending, row: usize) {
        pending.push((self.source, row as u32), self.hashes[row], self.words[row]);
    }
}

impl Pair<'_> {
    fn exact(&self) -> Exact {
        self.older.chunk.facts().exact.and(self.newer.chunk.facts().exact)
    }

    /// Takes rows as long as the words decide, at most `limit`. Returns whether it stopped at a tie.
    fn merge_untied(
        &self,
        tie: &Tie,
        limit: usize,
        (i, j): (&mut usize, &mut usize),
        taken: &mut Taken,
        pending: &mut Pending,
    ) -> bool {
        let (a_hashes, b_hashes) = (&self.older.hashes[..], &self.newer.hashes[..]);
        let (a_words, b_words) = (&self.older.words[..a_hashes.len()], &self.newer.words[..b_hashes.len()]);
        let all_keys_known = self.exact().key;
        let known_key = tie.equal_keys;
        let sources = [self.older.source, self.newer.source];
        let (mut at_a, mut at_b, mut left) = (*i, *j, limit);
        let mut is_tie = false;
        while !is_tie {
            // A step takes one row from one side: so many steps stay within both.
            let steps = left.min(BLOCK_ROWS).min(a_hashes.len() - at_a).min(b_hashes.len() - at_b);
            if steps == 0 {
                break;
            }
            let mut n = 0;
            while n < steps {
                let (a, b) = (a_hashes[at_a], b_hashes[at_b]);
                let (a_word, b_word) = (a_words[at_a], b_words[at_b]);
                if a == b && (a_word == b_word || !(all_keys_known || known_key == Some(a))) {
                    is_tie = true;
                    break;
                }
                let is_newer = (b, b_word) < (a, a_word);
                let row = if is_newer { at_b } else { at_a };
                taken.picks[n] = (sources[usize::from(is_newer)], row as u32);
                taken.hashes[n] = if is_newer { b } else { a };
                taken.words[n] = if is_newer { b_word } else { a_word };
                at_a += usize::from(!is_newer);
                at_b += usize::from(is_newer);
                n += 1;
            }
            let (picks, hashes, words) = pending.lanes();
            picks.extend_from_slice(&taken.picks[..n]);
            hashes.extend_from_slice(&taken.hashes[..n]);
            words.extend_from_slice(&taken.words[..n]);
            left -= n;
        }
        (*i, *j) = (at_a, at_b);
        is_tie
    }
}

/// Rows taken at a time.
const BLOCK_ROWS: usize = 64;

/// Rows taken, before they are appended all at once.
struct Taken {
    picks: [Pick; BLOCK_ROWS],
    hashes: [u64; BLOCK_ROWS],
    words: [u64; BLOCK_ROWS],
}

impl Taken {
    fn new() -> Taken {
        Taken { picks: [(0, 0); BLOCK_ROWS], hashes: [0; BLOCK_ROWS], words: [0; BLOCK_ROWS] }
    }
}

impl Tie {
    /// Orders row `i` of the older chunk and row `j` of the newer one, which have equal key hashes.
    fn compare(&mut self, pair: &Pair, i: usize, j: usize) -> Ordering {
        let exact = pair.exact();
        let (older, newer) = (&pair.older, &pair.newer);
        let hash = older.hashes[i];
        if !exact.key && self.equal_keys != Some(hash) {
            let order = self.comparators(pair).0.compare(i, j);
            if order.is_ne() {
                self.saw_collision = true;
                return order;
            }
            let unique = older.chunk.facts().key_unique && newer.chunk.facts().key_unique;
            self.equal_keys = unique.then_some(hash);
        }
        let mut order = older.words[i].cmp(&newer.words[j]);
        if order.is_eq() && !exact.value {
            order = self.comparators(pair).1.compare(i, j);
        }
        let time = |input: &Input, row: usize| input.chunk.times().get(row).max(pair.since);
        order.then_with(|| time(older, i).cmp(&time(newer, j)))
    }

    fn comparators(&mut self, pair: &Pair) -> &(Comparator, Comparator) {
        self.comparators.get_or_insert_with(|| {
            let (older, newer) = (pair.older.chunk.columns(), pair.newer.chunk.columns());
            (pair.layout.key_comparator(older, newer), pair.layout.value_comparator(older, newer))
        })
    }
}
