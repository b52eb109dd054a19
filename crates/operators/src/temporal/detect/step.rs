//! One step of many instances at once: which arcs they may follow, and the registers they get.

use anabranch_batch::{Batch, Columns, Diffs, Time, Times, Until, gather};
use anabranch_spec::pattern::Takes;
use arrow::array::{ArrayRef, BooleanArray};

use super::tactic::Instant;
use super::{DetectSpec, Element};
use crate::expression::{ExpressionRef, evaluate};
use crate::stateless::filter_project::{error_rows, evaluate_mask};
use crate::temporal::events::Ready;
use crate::temporal::rows::RowStore;
use anabranch_flow::tactic::Output;

/// An instance that may follow an arc.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Which of the step's instants it sees.
    pub(super) instant: u32,
    /// The state the arc leads to.
    pub(super) state: u32,
    /// When it began.
    pub(super) start: Time,
    /// Its register before the step.
    register: u32,
}

/// Those who followed their arc, and their new registers, a row each.
pub(super) struct Taken {
    pub(super) candidates: Vec<Candidate>,
    pub(super) registers: Columns,
}

/// Where in a batch an element's condition holds.
pub(super) enum Mask {
    /// Everywhere.
    All,
    /// As computed for every row.
    Rows(BooleanArray),
    /// That depends on the instance.
    Unknown,
}

/// What a step is made with.
#[derive(Clone, Copy)]
pub(super) struct DetectStep<'a> {
    pub(super) spec: &'a DetectSpec,
    pub(super) ready: &'a Ready,
    /// Rows that instants are ranges of.
    pub(super) rows: &'a [u32],
    pub(super) instants: &'a [Instant],
    /// By element.
    pub(super) masks: &'a [Mask],
    pub(super) registers: &'a RowStore,
}

impl Mask {
    /// Evaluates the condition of `element` over all events, unless it reads the register.
    pub(super) fn new(element: &Element, ready: &Ready, out: &mut Output) -> Mask {
        match &element.condition {
            None => Mask::All,
            Some(_) if element.reads_register => Mask::Unknown,
            Some(condition) => {
                let (mask, errors) = evaluate_mask(condition, &ready.batch.clone().with_until(Until::Duration(1)));
                out.errors.extend(errors);
                Mask::Rows(mask)
            }
        }
    }
}

impl<'a> DetectStep<'a> {
    /// Adds the arcs to `states` that an instance may follow at instant `instant`, as far as that
    /// can be said without its register.
    pub(super) fn propose(
        &self,
        instant: u32,
        states: &[u32],
        start: Time,
        register: u32,
        candidates: &mut Vec<Candidate>,
    ) {
        let rows = self.rows_of(instant);
        for &state in states {
            let element = self.spec.automaton.element[state as usize];
            let is_possible = match (self.spec.elements[element].takes, &self.masks[element]) {
                (Takes::Event, _) if rows.len() != 1 => false,
                (_, Mask::Unknown) => true,
                (takes, Mask::All) => holds(takes, rows, |_| true),
                (takes, Mask::Rows(mask)) => holds(takes, rows, |row| mask.value(row as usize)),
            };
            if is_possible {
                candidates.push(Candidate { instant, state, start, register });
            }
        }
    }

    /// Asks conditions that read the register, and computes new registers.
    pub(super) fn take(&self, mut candidates: Vec<Candidate>, out: &mut Output) -> Taken {
        if !candidates.is_empty() && self.masks.iter().any(|mask| matches!(mask, Mask::Unknown)) {
            candidates = self.ask(candidates, out);
        }
        if candidates.is_empty() || self.spec.register.is_empty() {
            return Taken { candidates, registers: Columns::from([]) };
        }
        self.transfer(candidates, out)
    }

    /// The candidates whose condition holds.
    fn ask(&self, candidates: Vec<Candidate>, out: &mut Output) -> Vec<Candidate> {
        let mut keep = vec![true; candidates.len()];
        for (element, mask) in self.masks.iter().enumerate() {
            let (Mask::Unknown, Some(condition)) = (mask, &self.spec.elements[element].condition) else { continue };
            let asked = self.of_element(&candidates, element);
            if asked.is_empty() {
                continue;
            }
            let pairs: Vec<(u32, u32)> = asked
                .iter()
                .flat_map(|&index| {
                    let candidate = &candidates[index as usize];
                    self.rows_of(candidate.instant).iter().map(move |&row| (row, candidate.register))
                })
                .collect();
            let (mask, errors) = evaluate_mask(condition, &self.pairs(&pairs));
            out.errors.extend(errors);
            let mut answers = mask.values().iter();
            for index in asked {
                let rows = self.rows_of(candidates[index as usize].instant);
                let met: Vec<bool> = answers.by_ref().take(rows.len()).collect();
                let positions: Vec<u32> = (0..rows.len() as u32).collect();
                keep[index as usize] =
                    holds(self.spec.elements[element].takes, &positions, |position| met[position as usize]);
            }
        }
        let mut keep = keep.into_iter();
        candidates.into_iter().filter(|_| keep.next() == Some(true)).collect()
    }

    /// New registers; those for whom that fails are dead.
    fn transfer(&self, candidates: Vec<Candidate>, out: &mut Output) -> Taken {
        let ids: Vec<u32> = candidates.iter().map(|candidate| candidate.register).collect();
        let mut registers = self.gather(&ids);
        let mut alive = vec![true; candidates.len()];
        for (element, Element { register, .. }) in self.spec.elements.iter().enumerate() {
            let Some(expressions) = register else { continue };
            let of_element = self.of_element(&candidates, element);
            if of_element.is_empty() {
                continue;
            }
            let rows: Vec<Vec<u32>> =
                of_element.iter().map(|&index| self.rows_met(&candidates[index as usize], element, out)).collect();
            for turn in 0..rows.iter().map(Vec::len).max().unwrap_or(0) {
                let turn: Vec<(u32, u32)> = of_element
                    .iter()
                    .zip(&rows)
                    .filter_map(|(&index, rows)| rows.get(turn).map(|&row| (row, index)))
                    .filter(|&(_, index)| alive[index as usize])
                    .collect();
                registers = self.fold(expressions, registers, &turn, &mut alive, out);
            }
        }
        if alive.iter().all(|&alive| alive) {
            return Taken { candidates, registers };
        }
        let kept: Vec<u32> = (0..candidates.len() as u32).filter(|&index| alive[index as usize]).collect();
        let candidates = kept.iter().map(|&index| candidates[index as usize]).collect();
        Taken { candidates, registers: gather::take(&registers, &kept) }
    }

    /// Puts for each `(row, index)` the expressions over event and register in the place of
    /// register `index`; where that fails, `alive` is false from then on.
    fn fold(
        &self,
        expressions: &[ExpressionRef],
        registers: Columns,
        turn: &[(u32, u32)],
        alive: &mut [bool],
        out: &mut Output,
    ) -> Columns {
        let (rows, indexes): (Vec<u32>, Vec<u32>) = turn.iter().copied().unzip();
        let events = gather::take(self.ready.batch.columns(), &rows);
        let before = gather::take(&registers, &indexes);
        let batch = self.batch(events.iter().chain(before.iter()).cloned().collect(), &rows);
        let mut parts = Vec::new();
        evaluate_parts(expressions, &batch, &indexes, &mut parts, out);

        indexes.iter().for_each(|&index| alive[index as usize] = false);
        let mut picks: Vec<(u32, u32)> = (0..alive.len() as u32).map(|index| (0, index)).collect();
        let mut sources: Vec<Columns> = vec![registers];
        for (columns, indexes) in parts {
            let source = sources.len() as u32;
            for (row, &index) in (0u32..).zip(indexes) {
                picks[index as usize] = (source, row);
                alive[index as usize] = true;
            }
            sources.push(columns);
        }
        let sources: Vec<&[ArrayRef]> = sources.iter().map(|source| &**source).collect();
        gather::interleave(&sources, &picks)
    }

    /// The events of a candidate's instant that meet the element's condition, as far as the
    /// register is folded over them.
    fn rows_met(&self, candidate: &Candidate, element: usize, out: &mut Output) -> Vec<u32> {
        let rows = self.rows_of(candidate.instant);
        match (self.spec.elements[element].takes, &self.masks[element]) {
            (Takes::Event, _) | (_, Mask::All) => rows.to_vec(),
            (_, Mask::Rows(mask)) => rows.iter().copied().filter(|&row| mask.value(row as usize)).collect(),
            (_, Mask::Unknown) => {
                let Some(condition) = &self.spec.elements[element].condition else { return rows.to_vec() };
                let pairs: Vec<(u32, u32)> = rows.iter().map(|&row| (row, candidate.register)).collect();
                let (mask, errors) = evaluate_mask(condition, &self.pairs(&pairs));
                out.errors.extend(errors);
                rows.iter().zip(mask.values()).filter(|&(_, met)| met).map(|(&row, _)| row).collect()
            }
        }
    }

    /// Events beside registers, as conditions read them.
    fn pairs(&self, pairs: &[(u32, u32)]) -> Batch {
        let (rows, registers): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
        let events = gather::take(self.ready.batch.columns(), &rows);
        let registers = self.gather(&registers);
        self.batch(events.iter().chain(registers.iter()).cloned().collect(), &rows)
    }

    /// Columns at the times of `rows`; what fails there is an error at that instant.
    fn batch(&self, columns: Columns, rows: &[u32]) -> Batch {
        let times = rows.iter().map(|&row| self.ready.times[row as usize]).collect();
        let batch = Batch::with_len(columns, rows.len(), Times::Column(times), Diffs::Constant(1));
        batch.with_until(Until::Duration(1))
    }

    fn gather(&self, registers: &[u32]) -> Columns {
        let places: Vec<(u32, u32)> = registers.iter().map(|&register| self.registers.place(register)).collect();
        gather::interleave(&self.registers.sources(), &places)
    }

    fn rows_of(&self, instant: u32) -> &'a [u32] {
        let instant = &self.instants[instant as usize];
        &self.rows[instant.from as usize..instant.to as usize]
    }

    fn of_element(&self, candidates: &[Candidate], element: usize) -> Vec<u32> {
        let is_of = |index: &u32| self.spec.automaton.element[candidates[*index as usize].state as usize] == element;
        (0..candidates.len() as u32).filter(is_of).collect()
    }
}

/// Evaluates over all rows, or over parts of them when some row fails; such a row is an error, and
/// in no part.
fn evaluate_parts<'i>(
    expressions: &[ExpressionRef],
    batch: &Batch,
    indexes: &'i [u32],
    parts: &mut Vec<(Columns, &'i [u32])>,
    out: &mut Output,
) {
    if batch.is_empty() {
        return;
    }
    let columns: Result<Columns, String> = expressions.iter().map(|expression| evaluate(expression, batch)).collect();
    match columns {
        Ok(columns) => parts.push((columns, indexes)),
        Err(message) if batch.len() == 1 => out.give_errors(error_rows(batch, &message)),
        Err(_) => {
            let half = batch.len() / 2;
            let (first, second) = indexes.split_at(half);
            evaluate_parts(expressions, &batch.slice(0, half), first, parts, out);
            evaluate_parts(expressions, &batch.slice(half, batch.len() - half), second, parts, out);
        }
    }
}

/// Whether an element takes these events, of which each meets its condition or not.
fn holds(takes: Takes, events: &[u32], meets: impl Fn(u32) -> bool) -> bool {
    let mut events = events.iter().map(|&event| meets(event));
    match takes {
        Takes::Event => events.all(|met| met),
        Takes::Some => events.any(|met| met),
        Takes::All => events.all(|met| met),
        Takes::None => !events.any(|met| met),
    }
}
