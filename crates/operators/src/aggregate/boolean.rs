//! `bool_and` and `bool_or`: counts of true and false arguments.

use anabranch_batch::Diff;
use arrow::array::{ArrayRef, AsArray, BooleanArray, BooleanBuilder};
use std::sync::Arc;

use super::output::GroupOutcome;
use super::state::{Accumulator, Input, Kernel, StateWalk};

/// The kernels of the boolean aggregates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Boolean {
    /// Are all true?
    And,
    /// Is any true?
    Or,
}

/// How many arguments are true, and how many false.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verdicts {
    trues: Diff,
    falses: Diff,
}

impl Accumulator for Verdicts {
    fn word(&self) -> u64 {
        self.trues as u64
    }

    fn is_zero(&self) -> bool {
        self.trues == 0 && self.falses == 0
    }
}

impl Kernel for Boolean {
    type Slot = Verdicts;
    type Delta = Verdicts;

    fn scatter(&self, input: &Input, n_segments: usize) -> Vec<Verdicts> {
        let argument: &BooleanArray =
            input.argument.as_ref().expect("boolean aggregates have an argument").as_boolean();
        let mut deltas = vec![Verdicts::default(); n_segments];
        input.each_valid(|row, segment, diff| {
            let is_true = Diff::from(argument.value(row));
            deltas[segment].trues += is_true * diff;
            deltas[segment].falses += (1 - is_true) * diff;
        });
        deltas
    }

    fn merge(slot: &mut Verdicts, delta: &Verdicts) {
        slot.trues += delta.trues;
        slot.falses += delta.falses;
    }

    fn walk(&self, walk: StateWalk<'_, Boolean>, outcome: &mut GroupOutcome) -> ArrayRef {
        let mut pairs = BooleanBuilder::with_capacity(2 * walk.len());
        let value = |verdicts: &Verdicts| match self {
            _ if verdicts.trues <= 0 && verdicts.falses <= 0 => None,
            Boolean::And => Some(verdicts.falses <= 0),
            Boolean::Or => Some(verdicts.trues > 0),
        };
        walk.each(value, |segment, before, after| {
            outcome.mark_if(segment, before != after);
            pairs.append_option(before);
            pairs.append_option(after);
        });
        Arc::new(pairs.finish())
    }
}
