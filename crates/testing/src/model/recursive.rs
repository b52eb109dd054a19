//! Loops: every round evaluated from scratch over the variables as they are.
//!
//! The errors of a loop are those of its last round, each binding's once, and those of its result.

use std::collections::BTreeMap;

use anabranch_plan::{Recursive, RoundLimit};

use super::answer::{Answer, Scope};
use super::evaluate_in;
use crate::row::Contents;

/// A loop without a limit that needs more rounds is a mistake of the test.
const ROUNDS_MAX: u64 = 10_000;

/// What a loop yields.
///
/// # Panics
/// If the loop has no limit and goes on for [`ROUNDS_MAX`] rounds.
pub(super) fn recursive(recursive: &Recursive, scope: &Scope<'_>) -> Answer {
    let mut values = vec![Contents::new(); recursive.bindings.len()];
    let mut rounds = 0;
    let mut errors = loop {
        let before = values.clone();
        let errors = round(recursive, &mut values, scope);
        rounds += 1;
        let is_fixed = values == before;
        match recursive.limit {
            _ if is_fixed => break errors,
            RoundLimit::Return(limit) if limit.get() == rounds => break errors,
            RoundLimit::Error(limit) if limit.get() == rounds => {
                break BTreeMap::from_iter(errors.into_iter().chain([(RoundLimit::message(rounds), 1)]));
            }
            _ => assert!(rounds < ROUNDS_MAX, "a loop is not at its fixed point after {rounds} rounds"),
        }
    };
    let mut answer = evaluate_in(&recursive.result, &inside(scope, &values));
    answer.fail_all(std::mem::take(&mut errors));
    answer
}

/// One round: the bindings in order, each over what is there. Returns their errors.
fn round(recursive: &Recursive, values: &mut [Contents], scope: &Scope<'_>) -> BTreeMap<String, i64> {
    let mut all = Answer::default();
    for (index, binding) in recursive.bindings.iter().enumerate() {
        let answer = evaluate_in(&binding.plan, &inside(scope, values));
        all.fail_all(answer.errors);
        values[index] = answer.rows;
    }
    all.errors
}

fn inside<'a>(scope: &Scope<'a>, values: &'a [Contents]) -> Scope<'a> {
    let loops = scope.loops.iter().copied().chain([values]).collect();
    Scope { inputs: scope.inputs, loops }
}

/// The rows of a variable.
pub(super) fn variable(scope: &Scope<'_>, depth: usize, index: usize) -> Answer {
    let values = scope.loops.iter().rev().nth(depth).expect("a variable belongs to a loop around it");
    Answer { rows: values[index].clone(), errors: BTreeMap::new() }
}
