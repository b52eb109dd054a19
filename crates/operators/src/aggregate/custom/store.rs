//! The states of a user's aggregate, behind one type.
//!
//! Law: a user's code runs guarded: what it returns as an error, or panics with, becomes an error
//! of results and nothing else. Cost: a dynamic call a batch; the loops over states are compiled
//! with the aggregate.

use std::any::Any;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use anabranch_batch::types;
use arrow::array::{Array, ArrayRef, new_empty_array, new_null_array};
use arrow::compute::{cast, concat};
use arrow::datatypes::DataType;

use super::extreme::Extreme;
use super::user::{GroupRows, Invertible, UserAggregate};

/// An aggregate whose states' type is forgotten.
pub(super) trait Erased: Send + Sync {
    fn name(&self) -> &str;
    fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String>;
    fn reads_starts(&self) -> bool;
    fn is_invertible(&self) -> bool;
    fn can_combine(&self) -> bool;
    fn states(&self, output_type: &DataType) -> Box<dyn States>;
}

/// The states of one call at one worker: of slots, and of pieces, whose results are asked for
/// together.
///
/// No function fails; once one of the aggregate's has, all results are that error.
pub(crate) trait States {
    /// Makes room for slots below `n_slots`.
    fn resize(&mut self, n_slots: usize);
    /// Slot `i` is from now on what slot `old_of_new[i]` was.
    fn renumber(&mut self, old_of_new: &[u32]);
    /// The groups in these slots have no rows.
    fn reset(&mut self, slots: &[u32]);
    /// Adds rows, whose states are slots, to what is fresh.
    fn accumulate(&mut self, rows: &GroupRows<'_>);
    /// What is fresh in these slots makes a piece each, and is gone.
    fn take(&mut self, slots: &[u32]);
    /// What is fresh in these slots is gone.
    fn discard(&mut self, slots: &[u32]);
    /// The states of these slots make a piece each, and stay.
    fn keep(&mut self, slots: &[u32]);
    /// What is fresh in these slots goes into their states, to leave together. Invertible only.
    fn enter(&mut self, slots: &[u32]);
    /// What entered last never leaves.
    fn stay(&mut self);
    /// What entered first goes out of the states of these slots, the same as when it entered.
    /// Invertible only.
    fn leave(&mut self, slots: &[u32]);
    /// Adds and takes out rows, whose states are positions in `slot_of_segment`; the segments of a
    /// slot follow each other. Two pieces each: before and after. Where a group `is_empty` after a
    /// segment, it begins anew. Invertible only.
    fn step(&mut self, added: &GroupRows<'_>, removed: &GroupRows<'_>, slot_of_segment: &[u32], is_empty: &[bool]);
    /// Makes `n` states of rows, whose states are their numbers; a piece of each number in
    /// `pieces`.
    fn pieces_of(&mut self, rows: &GroupRows<'_>, n: usize, pieces: &[u32]);
    /// The results of the `n` pieces, which are gone.
    fn results(&mut self, n: usize) -> Results;
    fn size_bytes(&self) -> usize;
}

/// Results of pieces; NULL where there is none, and why.
pub(crate) struct Results {
    pub(crate) values: ArrayRef,
    /// Piece and message, in order.
    pub(crate) errors: Vec<(usize, String)>,
}

/// Whether and how rows are taken out.
pub(super) trait Inverse<A: UserAggregate>: Send + Sync + 'static {
    /// Whether rows can be taken out.
    const POSSIBLE: bool;
    /// Whether states can be added to each other.
    const COMBINES: bool;
    fn deaccumulate(aggregate: &A, states: &mut [A::State], rows: &GroupRows<'_>) -> Result<(), String>;
    fn difference(aggregate: &A, state: &mut A::State, other: &A::State);
    fn combine(aggregate: &A, state: &mut A::State, other: &A::State);
}

/// Not at all.
pub(super) struct Never;
/// Not at all, but states can be added to each other.
pub(super) struct Growing;
/// As the aggregate does it.
pub(super) struct Always;

impl<A: UserAggregate> Inverse<A> for Never {
    const POSSIBLE: bool = false;
    const COMBINES: bool = false;

    fn deaccumulate(_: &A, _: &mut [A::State], _: &GroupRows<'_>) -> Result<(), String> {
        unreachable!("rows are taken out of invertible aggregates only")
    }

    fn difference(_: &A, _: &mut A::State, _: &A::State) {
        unreachable!("states are taken out of invertible aggregates only")
    }

    fn combine(_: &A, _: &mut A::State, _: &A::State) {
        unreachable!("states of invertible aggregates only are combined")
    }
}

impl Inverse<Extreme> for Growing {
    const POSSIBLE: bool = false;
    const COMBINES: bool = true;

    fn deaccumulate(_: &Extreme, _: &mut [Option<i64>], _: &GroupRows<'_>) -> Result<(), String> {
        unreachable!("rows are taken out of invertible aggregates only")
    }

    fn difference(_: &Extreme, _: &mut Option<i64>, _: &Option<i64>) {
        unreachable!("states are taken out of invertible aggregates only")
    }

    fn combine(aggregate: &Extreme, state: &mut Option<i64>, other: &Option<i64>) {
        aggregate.merge(state, *other);
    }
}

impl<A: Invertible> Inverse<A> for Always {
    const POSSIBLE: bool = true;
    const COMBINES: bool = true;

    fn deaccumulate(aggregate: &A, states: &mut [A::State], rows: &GroupRows<'_>) -> Result<(), String> {
        aggregate.deaccumulate(states, rows)
    }

    fn difference(aggregate: &A, state: &mut A::State, other: &A::State) {
        aggregate.difference(state, other);
    }

    fn combine(aggregate: &A, state: &mut A::State, other: &A::State) {
        aggregate.combine(state, other);
    }
}

/// An aggregate, and whether its rows can be taken out.
pub(super) struct Typed<A, I> {
    pub(super) aggregate: Arc<A>,
    pub(super) inverse: PhantomData<I>,
}

impl<A: UserAggregate, I: Inverse<A>> Erased for Typed<A, I> {
    fn name(&self) -> &str {
        self.aggregate.name()
    }

    fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String> {
        let declared = catch_unwind(AssertUnwindSafe(|| self.aggregate.output_type(arguments)));
        declared.unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
    }

    fn reads_starts(&self) -> bool {
        self.aggregate.reads_starts()
    }

    fn is_invertible(&self) -> bool {
        I::POSSIBLE
    }

    fn can_combine(&self) -> bool {
        I::COMBINES
    }

    fn states(&self, output_type: &DataType) -> Box<dyn States> {
        Box::new(Store::<A, I> {
            aggregate: self.aggregate.clone(),
            output_type: output_type.clone(),
            states: Vec::new(),
            fresh: Vec::new(),
            entered: VecDeque::new(),
            pieces: Vec::new(),
            failed: None,
            inverse: PhantomData,
        })
    }
}

struct Store<A: UserAggregate, I> {
    aggregate: Arc<A>,
    output_type: DataType,
    /// By slot.
    states: Vec<A::State>,
    /// By slot: what came and is not part of the state yet.
    fresh: Vec<A::State>,
    /// What entered together, oldest first.
    entered: VecDeque<Vec<A::State>>,
    /// In order.
    pieces: Vec<A::State>,
    failed: Option<String>,
    inverse: PhantomData<I>,
}

impl<A: UserAggregate, I: Inverse<A>> Store<A, I> {
    /// Runs the aggregate's code; what goes wrong ends its use.
    fn guard(&mut self, run: impl FnOnce(&mut Store<A, I>) -> Result<(), String>) {
        if self.failed.is_some() {
            return;
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| run(self)));
        let outcome = outcome.unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
        self.failed = outcome.err().map(|message| self.named(&message));
    }

    fn named(&self, message: &str) -> String {
        format!("aggregate \"{}\" failed: {message}", self.aggregate.name())
    }

    fn take_fresh(&mut self, slot: u32) -> A::State {
        std::mem::replace(&mut self.fresh[slot as usize], self.aggregate.initial())
    }

    /// Results of states, checked.
    fn compute(&self, states: &[&A::State]) -> Result<ArrayRef, String> {
        let computed = catch_unwind(AssertUnwindSafe(|| self.aggregate.compute(states)));
        let values = computed.unwrap_or_else(|panic| Err(panicked(panic.as_ref())))?;
        if values.len() != states.len() {
            return Err(format!("it computed {} results for {} states", values.len(), states.len()));
        }
        let promised = types::widened_type(&self.output_type);
        let other = || format!("it computed {} where {promised} was promised", values.data_type());
        let is_text = |is: &DataType| matches!(is, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let is_same = *values.data_type() == promised || (is_text(values.data_type()) && is_text(&self.output_type));
        if !is_same && values.logical_null_count() < values.len() {
            return Err(other());
        }
        let values = cast(&values, &promised).map_err(|_| other())?;
        match self.output_type {
            DataType::Decimal64(..) => types::narrowed(&values).map_err(|error| error.detail()),
            _ => Ok(values),
        }
    }

    /// Results of states, each asked for alone.
    fn compute_each(&self, states: &[&A::State]) -> Results {
        let mut errors = Vec::new();
        let values = states.iter().enumerate().map(|(at, state)| {
            self.compute(&[*state]).unwrap_or_else(|message| {
                errors.push((at, self.named(&message)));
                new_null_array(&self.output_type, 1)
            })
        });
        let values: Vec<ArrayRef> = values.collect();
        let values: Vec<&dyn Array> = values.iter().map(|value| &**value).collect();
        Results { values: concat(&values).expect("results have one type"), errors }
    }
}

impl<A: UserAggregate, I: Inverse<A>> States for Store<A, I> {
    fn resize(&mut self, n_slots: usize) {
        self.guard(|store| {
            if store.states.len() < n_slots {
                store.states.resize(n_slots, store.aggregate.initial());
                store.fresh.resize(n_slots, store.aggregate.initial());
            }
            Ok(())
        });
    }

    fn renumber(&mut self, old_of_new: &[u32]) {
        self.guard(|store| {
            store.states = old_of_new.iter().map(|&old| store.states[old as usize].clone()).collect();
            store.fresh.truncate(old_of_new.len());
            Ok(())
        });
    }

    fn reset(&mut self, slots: &[u32]) {
        self.guard(|store| {
            slots.iter().for_each(|&slot| store.states[slot as usize] = store.aggregate.initial());
            Ok(())
        });
    }

    fn accumulate(&mut self, rows: &GroupRows<'_>) {
        self.guard(|store| store.aggregate.accumulate(&mut store.fresh, rows));
    }

    fn take(&mut self, slots: &[u32]) {
        self.guard(|store| {
            for &slot in slots {
                let state = store.take_fresh(slot);
                store.pieces.push(state);
            }
            Ok(())
        });
    }

    fn discard(&mut self, slots: &[u32]) {
        self.guard(|store| {
            slots.iter().for_each(|&slot| store.fresh[slot as usize] = store.aggregate.initial());
            Ok(())
        });
    }

    fn keep(&mut self, slots: &[u32]) {
        self.guard(|store| {
            store.pieces.extend(slots.iter().map(|&slot| store.states[slot as usize].clone()));
            Ok(())
        });
    }

    fn enter(&mut self, slots: &[u32]) {
        self.guard(|store| {
            let entering: Vec<A::State> = slots.iter().map(|&slot| store.take_fresh(slot)).collect();
            for (&slot, state) in slots.iter().zip(&entering) {
                I::combine(&store.aggregate, &mut store.states[slot as usize], state);
            }
            // (What never leaves is not remembered.)
            if I::POSSIBLE {
                store.entered.push_back(entering);
            }
            Ok(())
        });
    }

    fn stay(&mut self) {
        self.entered.pop_back();
    }

    fn leave(&mut self, slots: &[u32]) {
        self.guard(|store| {
            let leaving = store.entered.pop_front().expect("what leaves has entered");
            for (&slot, state) in slots.iter().zip(&leaving) {
                I::difference(&store.aggregate, &mut store.states[slot as usize], state);
            }
            Ok(())
        });
    }

    fn step(&mut self, added: &GroupRows<'_>, removed: &GroupRows<'_>, slot_of_segment: &[u32], is_empty: &[bool]) {
        self.guard(|store| {
            let aggregate = store.aggregate.clone();
            let mut deltas = vec![aggregate.initial(); slot_of_segment.len()];
            aggregate.accumulate(&mut deltas, added)?;
            I::deaccumulate(&aggregate, &mut deltas, removed)?;
            for ((&slot, delta), is_empty) in slot_of_segment.iter().zip(&deltas).zip(is_empty) {
                let state = &mut store.states[slot as usize];
                store.pieces.push(state.clone());
                I::combine(&aggregate, state, delta);
                if *is_empty {
                    *state = aggregate.initial();
                }
                store.pieces.push(state.clone());
            }
            Ok(())
        });
    }

    fn pieces_of(&mut self, rows: &GroupRows<'_>, n: usize, pieces: &[u32]) {
        self.guard(|store| {
            let mut states = vec![store.aggregate.initial(); n];
            store.aggregate.accumulate(&mut states, rows)?;
            store.pieces.extend(pieces.iter().map(|&number| states[number as usize].clone()));
            Ok(())
        });
    }

    fn results(&mut self, n: usize) -> Results {
        let pieces = std::mem::take(&mut self.pieces);
        if let Some(message) = &self.failed {
            let errors = (0..n).map(|piece| (piece, message.clone())).collect();
            return Results { values: new_null_array(&self.output_type, n), errors };
        }
        assert_eq!(pieces.len(), n, "every piece has its state");
        if n == 0 {
            return Results { values: new_empty_array(&self.output_type), errors: vec![] };
        }
        let states: Vec<&A::State> = pieces.iter().collect();
        match self.compute(&states) {
            Ok(values) => Results { values, errors: vec![] },
            Err(_) => self.compute_each(&states),
        }
    }

    fn size_bytes(&self) -> usize {
        let entered = self.entered.iter().flatten();
        let all = self.states.iter().chain(&self.fresh).chain(entered);
        all.map(|state| size_of::<A::State>() + self.aggregate.heap_bytes(state)).sum()
    }
}

fn panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.map_or("it panicked".to_owned(), |text| format!("it panicked: {text}"))
}
