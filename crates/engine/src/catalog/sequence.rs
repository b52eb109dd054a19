//! Counters: those of sequences, and those of columns that number rows.
//!
//! Law: a counter gives each number once, in order; numbers of statements that fail are lost, as
//! PostgreSQL's are. Nothing that has rolled back gives a number back.
//!
//! Where a counter stands is recorded with the commit of the statement that has moved it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_sql::sequence::SequenceShape;
use anabranch_sql::statement::Numbering;

use super::created::ObjectId;

/// A sequence that a user has made.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    pub id: ObjectId,
    /// The statement that makes it.
    pub definition: String,
    pub counter: Arc<Counter>,
}

/// A counter, shared by all copies of its description.
#[derive(Debug)]
pub(crate) struct Counter {
    place: Mutex<CounterPlace>,
    /// Whether it has been moved by a call, and not been recorded since.
    is_moved: AtomicBool,
}

/// Where a counter stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CounterPlace {
    pub shape: SequenceShape,
    /// The number that was given last; the first number, before any was given.
    pub last: i64,
    /// Whether `last` was given.
    pub is_called: bool,
}

/// Counters, and where they were before they moved.
type Moves = Vec<(Arc<Counter>, CounterPlace)>;

thread_local! {
    /// Counters that calls on this thread have moved, and where they were, while a statement runs
    /// that may have to be attempted again.
    static MOVED: RefCell<Option<Moves>> = const { RefCell::new(None) };
}

impl Counter {
    pub fn new(shape: SequenceShape) -> Counter {
        let last = shape.start;
        Counter { place: Mutex::new(CounterPlace { shape, last, is_called: false }), is_moved: AtomicBool::new(false) }
    }

    /// The counter of a column.
    pub fn of_column(numbering: Numbering) -> Counter {
        let Numbering { start, step, .. } = numbering;
        let (min, max) = if step > 0 { (start.min(1), i64::MAX) } else { (i64::MIN, start.max(-1)) };
        Counter::new(SequenceShape { start, step, min, max, ..SequenceShape::default() })
    }

    fn lock(&self) -> MutexGuard<'_, CounterPlace> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it stands.
    pub fn place(&self) -> CounterPlace {
        self.lock().clone()
    }

    /// Puts it there.
    pub fn put(&self, place: CounterPlace) {
        *self.lock() = place;
    }

    /// The next number; no other row gets it.
    pub fn take(&self) -> i64 {
        let mut place = self.lock();
        place.last = place.next();
        place.is_called = true;
        place.last
    }

    /// The number that comes next.
    pub fn peek(&self) -> i64 {
        self.lock().next()
    }

    pub fn set(&self, next: i64) {
        let mut place = self.lock();
        (place.last, place.is_called) = (next, false);
    }

    /// `nextval`.
    ///
    /// # Errors
    /// The message, where there is no further number.
    pub fn advance(self: &Arc<Self>, name: &str) -> Result<i64, String> {
        let mut place = self.lock();
        let before = place.clone();
        place.last = place.following().ok_or_else(|| {
            let (word, limit) = match place.shape.step > 0 {
                true => ("maximum", place.shape.max),
                false => ("minimum", place.shape.min),
            };
            format!("nextval: reached {word} value of sequence \"{name}\" ({limit})")
        })?;
        place.is_called = true;
        let given = place.last;
        drop(place);
        self.note_moved(before);
        Ok(given)
    }

    /// `setval`.
    ///
    /// # Errors
    /// The message, for a number out of the sequence's range.
    pub fn restart(self: &Arc<Self>, name: &str, last: i64, is_called: bool) -> Result<(), String> {
        let mut place = self.lock();
        let before = place.clone();
        let SequenceShape { min, max, .. } = place.shape;
        if !(min..=max).contains(&last) {
            return Err(format!("setval: value {last} is out of bounds for sequence \"{name}\" ({min}..{max})"));
        }
        (place.last, place.is_called) = (last, is_called);
        drop(place);
        self.note_moved(before);
        Ok(())
    }

    fn note_moved(self: &Arc<Self>, before: CounterPlace) {
        self.is_moved.store(true, Ordering::Release);
        MOVED.with_borrow_mut(|moved| {
            // (Where it was first is where it goes back to.)
            if let Some(moved) = moved
                && !moved.iter().any(|(known, _)| Arc::ptr_eq(known, self))
            {
                moved.push((Arc::clone(self), before));
            }
        });
    }

    /// Whether it was moved by a call since it was last asked.
    pub fn was_moved(&self) -> bool {
        self.is_moved.swap(false, Ordering::AcqRel)
    }

    /// Where it stands, as it is recorded.
    pub fn value(&self) -> Vec<u8> {
        let place = self.lock();
        format!("{},{}", place.last, place.is_called).into_bytes()
    }

    /// Puts it where it was recorded; `None` when that is malformed.
    pub fn restore(&self, value: &[u8]) -> Option<()> {
        let (last, is_called) = std::str::from_utf8(value).ok()?.split_once(',')?;
        let (last, is_called) = (last.parse().ok()?, is_called.parse().ok()?);
        let mut place = self.lock();
        (place.last, place.is_called) = (last, is_called);
        Some(())
    }
}

impl CounterPlace {
    /// The number behind the last one, whatever the limits are.
    fn next(&self) -> i64 {
        if self.is_called { self.last.wrapping_add(self.shape.step) } else { self.last }
    }

    /// The number behind the last one; the first again, where the limits are reached.
    fn following(&self) -> Option<i64> {
        let SequenceShape { step, min, max, cycles, .. } = self.shape;
        if !self.is_called {
            return Some(self.last);
        }
        let next = self.last.checked_add(step).filter(|next| (min..=max).contains(next));
        next.or(cycles.then_some(if step > 0 { min } else { max }))
    }
}

/// Begins to remember which counters are moved on this thread.
pub(crate) fn begin_moves() {
    MOVED.with_borrow_mut(|moved| *moved = Some(vec![]));
}

/// Computes something, after which counters are where they were.
pub(crate) fn undoing_moves<T>(compute: impl FnOnce() -> T) -> T {
    let outer = MOVED.take();
    begin_moves();
    let computed = compute();
    end_moves(true);
    MOVED.set(outer);
    computed
}

/// Ends that. A statement that is to be attempted again has moved nothing.
pub(crate) fn end_moves(is_attempted_again: bool) {
    let moved = MOVED.with_borrow_mut(Option::take).unwrap_or_default();
    if is_attempted_again {
        moved.into_iter().for_each(|(counter, before)| counter.put(before));
    }
}

/// The numbers that a client was given last, by sequence.
#[derive(Debug, Default)]
pub(crate) struct Given {
    by_sequence: BTreeMap<String, i64>,
    last: Option<String>,
}

impl Given {
    /// Of `nextval`, and of a column that numbers rows.
    pub fn note(&mut self, sequence: &str, number: i64) {
        self.set(sequence, number);
        if self.last.as_deref() != Some(sequence) {
            self.last = Some(sequence.to_owned());
        }
    }

    /// Of `setval`, which `lastval` does not tell.
    pub fn set(&mut self, sequence: &str, number: i64) {
        match self.by_sequence.get_mut(sequence) {
            Some(known) => *known = number,
            None => drop(self.by_sequence.insert(sequence.to_owned(), number)),
        }
    }

    /// `currval`.
    pub fn of(&self, sequence: &str) -> Option<i64> {
        self.by_sequence.get(sequence).copied()
    }

    /// `lastval`.
    pub fn last(&self) -> Option<i64> {
        self.of(self.last.as_ref()?)
    }
}

/// A name in a text, as the catalog has it: parts in quotes stay as they are.
pub(crate) fn name_in(text: &str) -> String {
    let (mut name, mut in_quotes) = (String::new(), false);
    for letter in text.chars() {
        match letter {
            '"' => in_quotes = !in_quotes,
            letter if in_quotes => name.push(letter),
            letter => name.extend(letter.to_lowercase()),
        }
    }
    name.strip_prefix("public.").map(str::to_owned).unwrap_or(name)
}

/// The name of the counter of a column that numbers rows, as PostgreSQL calls it.
pub(crate) fn sequence_of_column(table: &str, column: &str) -> String {
    format!("{table}_{column}_seq")
}
