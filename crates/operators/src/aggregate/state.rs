//! State by slot: what a call remembers of each group.
//!
//! Law: the state of a slot is a linear function of the updates it has seen (sums and counts), so
//! it depends neither on their order nor on updates that cancelled; the state of nothing is
//! [`Accumulator::is_zero`]. Results are computed from state alone.
//!
//! A [`Kernel`] has two loops: one scatters the rows of a batch into one delta a segment, the other
//! walks the segments, merges each delta into its slot and yields the result before and after.
//! Dispatch is once per call and batch.

use std::any::Any;
use std::borrow::Cow;
use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;

use anabranch_batch::{Diff, Diffs};
use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;

use crate::aggregate::output::GroupOutcome;
use crate::aggregate::segments::Segments;

/// Segments whose slots are fetched together: they fit the first-level cache.
pub(crate) const WARM_SEGMENTS: usize = 128;

/// Slots of which it is remembered, within a chunk, what their last segment made of them.
const LATEST_SLOTS: usize = 16;

/// The rows of a batch that a call sees.
pub(crate) struct Input<'a> {
    /// The argument of each row; `None` if the call has none.
    pub(crate) argument: Option<ArrayRef>,
    /// The segment of each row.
    pub(crate) segment: &'a [u32],
    /// The multiplicity of each row.
    pub(crate) diffs: &'a Diffs,
    /// Sum of diffs of each segment, when the call sees all rows.
    pub(crate) multiplicities: Option<&'a [Diff]>,
    /// Deltas that other calls have made of all rows, when the call sees all rows.
    pub(crate) known: Option<KnownState<'a>>,
}

/// The deltas of a turn that depend on their argument alone, for the calls that ask for the same
/// again.
#[derive(Clone, Copy)]
pub(crate) struct KnownState<'a> {
    /// Position of the argument.
    pub(crate) argument: usize,
    pub(crate) deltas: &'a RefCell<Vec<KnownDeltas>>,
}

/// Deltas by argument, behind their type.
pub(crate) struct KnownDeltas {
    argument: usize,
    deltas: Rc<dyn Any>,
}

impl KnownState<'_> {
    /// The deltas of this type that are known of the argument, else those that are made now.
    fn get_or_make<D: 'static>(self, make: impl FnOnce() -> Vec<D>) -> Rc<Vec<D>> {
        let known = self.deltas.borrow();
        let of_argument = known.iter().filter(|known| known.argument == self.argument);
        if let Some(deltas) = of_argument.into_iter().find_map(|known| Rc::clone(&known.deltas).downcast().ok()) {
            return deltas;
        }
        drop(known);
        let deltas = Rc::new(make());
        self.deltas
            .borrow_mut()
            .push(KnownDeltas { argument: self.argument, deltas: Rc::clone(&deltas) as Rc<dyn Any> });
        deltas
    }
}

/// A call's memory of all groups.
pub(crate) trait State {
    /// Merges a batch. Returns the result before and after each segment, alternating: two entries a
    /// segment.
    fn step(&mut self, input: &Input, segments: &Segments, outcome: &mut GroupOutcome) -> ArrayRef;
    /// Makes room for slots below `n_slots`.
    fn resize(&mut self, n_slots: usize);
    /// Says that so many more slots are likely to come.
    fn reserve(&mut self, slots: usize);
    /// Leaves in `slots` only those whose state is that of nothing.
    fn retain_zero(&self, slots: &mut Vec<u32>);
    /// Makes the state of some slots that of nothing.
    fn clear(&mut self, slots: &[u32]);
    /// Slot `i` is from now on what slot `old_of_new[i]` was.
    fn renumber(&mut self, old_of_new: &[u32]);
    /// Bytes, those owned by slots included.
    fn size_bytes(&self) -> usize;
}

/// What is remembered of one group.
pub(crate) trait Accumulator: Clone + Default {
    /// Any word of the accumulator: reading it fetches its cache line.
    fn word(&self) -> u64;
    /// Whether this is what is remembered of nothing.
    fn is_zero(&self) -> bool;
    /// Bytes owned beyond the accumulator itself.
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// The two loops of a call. See the module's page.
pub(crate) trait Kernel {
    /// State of a slot.
    type Slot: Accumulator;
    /// What a segment changes.
    type Delta: 'static;
    /// Whether deltas depend on the argument alone, and are what any other such kernel with this
    /// type of deltas makes of it.
    const IS_SHARED: bool = false;
    /// One delta a segment.
    fn scatter(&self, input: &Input, n_segments: usize) -> Vec<Self::Delta>;
    /// Adds a delta.
    fn merge(slot: &mut Self::Slot, delta: &Self::Delta);
    /// Merges all deltas, and computes results.
    fn walk(&self, walk: StateWalk<'_, Self>, outcome: &mut GroupOutcome) -> ArrayRef
    where
        Self: Sized;
}

/// Segments about to be merged into slots.
pub(crate) struct StateWalk<'a, K: Kernel> {
    slots: &'a mut [K::Slot],
    slot_of_segment: &'a [u32],
    deltas: &'a [K::Delta],
}

/// Neighbours among them whose slots are fetched together.
pub(crate) struct Chunk<'a, K: Kernel> {
    /// Number of the first.
    pub(crate) first: usize,
    pub(crate) slots: &'a mut [K::Slot],
    pub(crate) slot_of_segment: &'a [u32],
    pub(crate) deltas: &'a [K::Delta],
}

impl<K: Kernel> StateWalk<'_, K> {
    /// Number of segments.
    pub(crate) fn len(&self) -> usize {
        self.slot_of_segment.len()
    }

    /// Calls `pair(segment, before, after)` for each segment, with the values of its slot before
    /// and after it.
    #[inline]
    pub(crate) fn each<V: Clone>(self, value: impl Fn(&K::Slot) -> V, mut pair: impl FnMut(usize, V, V)) {
        self.each_chunk(|chunk| chunk.each(&value, &mut pair));
    }

    /// Calls `take` for each chunk of segments, in order.
    #[inline]
    pub(crate) fn each_chunk(self, mut take: impl FnMut(Chunk<'_, K>)) {
        let chunks = self.slot_of_segment.chunks(WARM_SEGMENTS).zip(self.deltas.chunks(WARM_SEGMENTS)).enumerate();
        for (chunk, (slot_of_segment, deltas)) in chunks {
            // Slots lie anywhere: a tight loop waits for all their cache lines at once, a long one
            // for each in turn.
            black_box(slot_of_segment.iter().fold(0, |words, &slot| words ^ self.slots[slot as usize].word()));
            take(Chunk { first: chunk * WARM_SEGMENTS, slots: self.slots, slot_of_segment, deltas });
        }
    }
}

impl<K: Kernel> Chunk<'_, K> {
    /// As [`Walk::each`]. (What a slot is after a segment it is before its next one.)
    #[inline]
    pub(crate) fn each<V: Clone>(self, value: impl Fn(&K::Slot) -> V, mut pair: impl FnMut(usize, V, V)) {
        if let ([slot], [delta]) = (self.slot_of_segment, self.deltas) {
            let state = &mut self.slots[*slot as usize];
            let before = value(state);
            K::merge(state, delta);
            return pair(self.first, before, value(state));
        }
        let mut latest: [Option<(u32, V)>; LATEST_SLOTS] = [const { None }; LATEST_SLOTS];
        for (segment, (&slot, delta)) in (self.first..).zip(self.slot_of_segment.iter().zip(self.deltas)) {
            let state = &mut self.slots[slot as usize];
            let latest = &mut latest[slot as usize % LATEST_SLOTS];
            let before = match latest.take() {
                Some((other, after)) if other == slot => after,
                _ => value(state),
            };
            K::merge(state, delta);
            let after = value(state);
            *latest = Some((slot, after.clone()));
            pair(segment, before, after);
        }
    }
}

/// The state of a kernel: one accumulator a slot.
pub(crate) struct Linear<K: Kernel> {
    kernel: K,
    slots: Vec<K::Slot>,
}

impl<K: Kernel> Linear<K> {
    pub(crate) fn new(kernel: K) -> Linear<K> {
        Linear { kernel, slots: Vec::new() }
    }
}

impl<K: Kernel> State for Linear<K> {
    fn step(&mut self, input: &Input, segments: &Segments, outcome: &mut GroupOutcome) -> ArrayRef {
        let scatter = || self.kernel.scatter(input, segments.n_numbers());
        let deltas = match input.known {
            Some(known) if K::IS_SHARED => known.get_or_make(scatter),
            _ => Rc::new(scatter()),
        };
        let deltas = &deltas[..segments.len()];
        let walk = StateWalk { slots: &mut self.slots, slot_of_segment: &segments.slot, deltas };
        self.kernel.walk(walk, outcome)
    }

    fn resize(&mut self, n_slots: usize) {
        if self.slots.len() < n_slots {
            self.slots.resize(n_slots, K::Slot::default());
        }
    }

    fn reserve(&mut self, slots: usize) {
        self.slots.reserve(slots);
    }

    fn retain_zero(&self, slots: &mut Vec<u32>) {
        slots.retain(|&slot| self.slots[slot as usize].is_zero());
    }

    fn clear(&mut self, slots: &[u32]) {
        for &slot in slots {
            if let Some(state) = self.slots.get_mut(slot as usize) {
                *state = K::Slot::default();
            }
        }
    }

    fn renumber(&mut self, old_of_new: &[u32]) {
        self.slots = old_of_new.iter().map(|&old| std::mem::take(&mut self.slots[old as usize])).collect();
    }

    fn size_bytes(&self) -> usize {
        let heap: usize = self.slots.iter().map(K::Slot::heap_bytes).sum();
        self.slots.capacity() * size_of::<K::Slot>() + heap
    }
}

impl Input<'_> {
    /// Validity of the argument, if it has NULLs.
    pub(crate) fn nulls(&self) -> Option<NullBuffer> {
        let nulls = self.argument.as_ref()?.logical_nulls()?;
        (nulls.null_count() > 0).then_some(nulls)
    }

    /// Calls `visit(row, segment, diff)` for each row whose argument is not NULL.
    #[inline]
    pub(crate) fn each_valid(&self, mut visit: impl FnMut(usize, usize, Diff)) {
        let rows = self.segment.iter().enumerate().map(|(row, &segment)| (row, segment as usize));
        match (self.nulls(), self.diffs) {
            (None, Diffs::Constant(1)) => rows.for_each(|(row, segment)| visit(row, segment, 1)),
            (None, diffs) => rows.for_each(|(row, segment)| visit(row, segment, diffs.get(row))),
            (Some(nulls), diffs) => {
                let valid = rows.filter(|&(row, _)| nulls.is_valid(row));
                valid.for_each(|(row, segment)| visit(row, segment, diffs.get(row)));
            }
        }
    }

    /// For each segment the number of rows whose argument is not NULL.
    pub(crate) fn counts(&self, n_segments: usize) -> Cow<'_, [Diff]> {
        if let (None, Some(multiplicities)) = (self.nulls(), self.multiplicities) {
            return multiplicities.into();
        }
        let mut counts = vec![0; n_segments];
        self.each_valid(|_, segment, diff| counts[segment] += diff);
        counts.into()
    }
}

impl Accumulator for Diff {
    fn word(&self) -> u64 {
        *self as u64
    }

    fn is_zero(&self) -> bool {
        *self == 0
    }
}
