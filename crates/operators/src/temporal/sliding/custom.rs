//! Users' aggregates over events that last equally long.
//!
//! Law: pieces of users' aggregates are kept in the order of the other results' pieces, before what
//! ends the piece changes a state. Cost: a handful of calls a cut, whatever its rows and groups.
//! Over tumbling windows nothing is taken out, so every aggregate will do; otherwise they are
//! invertible.

use std::ops::Range;

use anabranch_batch::{Batch, types};
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use arrow::array::ArrayRef;

use super::Sliding;
use crate::aggregate::custom::{CustomAggregate, Results, States};

/// A call of a user's aggregate.
pub(super) struct Custom {
    function: CustomAggregate,
    arguments: Vec<usize>,
    pub(super) states: Box<dyn States>,
    /// How many of the pieces it has.
    n_pieces: usize,
}

impl Custom {
    /// Of a call, if it is one of a user's aggregate.
    pub(super) fn new(call: &AggregateCall) -> Option<Custom> {
        let AggregateFunction::Custom(function, _) = &call.function else { return None };
        let function = CustomAggregate::of(function);
        let states = function.states(&call.output_type);
        Some(Custom { function: function.clone(), arguments: call.arguments().collect(), states, n_pieces: 0 })
    }
}

/// The arguments of each user's aggregate, and slots for rows without keys.
pub(super) struct Inputs {
    arguments: Vec<Vec<ArrayRef>>,
    zeros: Vec<u32>,
}

impl Sliding {
    pub(super) fn custom_inputs(&self, batch: &Batch) -> Inputs {
        let of =
            |custom: &Custom| custom.arguments.iter().map(|&column| types::widened(batch.column(column))).collect();
        let needs_zeros = !self.custom.is_empty() && self.keys.is_empty();
        let zeros = if needs_zeros { vec![0; batch.len()] } else { vec![] };
        Inputs { arguments: self.custom.iter().map(of).collect(), zeros }
    }

    /// Rows that begin at the cut.
    pub(super) fn custom_add(&mut self, inputs: &Inputs, slots: Option<&[u32]>, rows: Range<usize>) {
        for (custom, arguments) in self.custom.iter_mut().zip(&inputs.arguments) {
            let slots = &slots.unwrap_or(&inputs.zeros)[rows.clone()];
            custom.states.accumulate(&custom.function.rows(slots, rows.start, arguments));
        }
    }

    /// Pieces that were put out and go by the present states.
    pub(super) fn custom_keep(&mut self) {
        for custom in &mut self.custom {
            custom.states.keep(&self.pieces.slots[custom.n_pieces..]);
            custom.n_pieces = self.pieces.slots.len();
        }
    }

    /// Pieces that were put out and go by what is fresh, which is in `slots`. Nothing is fresh from
    /// now on.
    pub(super) fn custom_take(&mut self, slots: &[u32]) {
        for custom in &mut self.custom {
            let put_out = &self.pieces.slots[custom.n_pieces..];
            custom.states.take(put_out);
            if put_out.len() < slots.len() {
                // (Pieces in error have no state.)
                custom.states.discard(slots);
            }
            custom.n_pieces = self.pieces.slots.len();
        }
    }

    /// What is fresh in `slots` is in force from now on; groups without rows begin anew.
    pub(super) fn custom_enter(&mut self, slots: &[u32], touched: &[u32]) {
        if self.custom.is_empty() {
            return;
        }
        let empty = touched.iter().copied().filter(|&slot| self.groups[slot as usize].rows == 0);
        let empty: Vec<u32> = empty.collect();
        for custom in &mut self.custom {
            custom.states.reset(&empty);
            if !slots.is_empty() {
                custom.states.enter(slots);
            }
        }
    }

    /// The results of all pieces put out.
    pub(super) fn custom_results(&mut self) -> Vec<Results> {
        let n_pieces = self.pieces.slots.len();
        let results = self.custom.iter_mut().map(|custom| {
            assert_eq!(custom.n_pieces, n_pieces, "every piece has a state of each user's aggregate");
            custom.n_pieces = 0;
            custom.states.results(n_pieces)
        });
        results.collect()
    }
}
