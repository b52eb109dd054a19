//! The search for one match: a program run with backtracking.
//!
//! Law: finds the preferred match that begins at a row, if there is one. Where conditions do not
//! depend on the match so far, a fork that has led nowhere from a row is not tried again from that
//! row, not even for a match that begins later.

use std::collections::HashSet;

use super::program::{Instruction, RecognizeProgram};

/// Most times that the search for a match goes back, where conditions depend on the match so far.
pub const BACKTRACKS_MAX: usize = 1 << 20;

/// Says whether a row may be taken for the last of these labels, those of the match with it.
pub(super) type Meets<'a> = &'a mut dyn FnMut(usize, &[usize]) -> Result<bool, String>;

/// A search over the rows of one partition.
pub(super) struct Search<'a> {
    program: &'a RecognizeProgram,
    /// Forks and rows from which there is no match; `None` where that depends on the match so far.
    failed: Option<HashSet<(u32, u32)>>,
    /// Where to go back to: step and row.
    choices: Vec<(usize, usize)>,
    /// The variable that each row of the match is taken for.
    pub(super) labels: Vec<usize>,
    /// Whether the last search would have read a row at the end.
    pub(super) came_to_end: bool,
    /// The rows before this one that were read.
    pub(super) read_to: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(program: &'a RecognizeProgram, depends_on_match: bool) -> Search<'a> {
        let failed = (!depends_on_match).then(HashSet::new);
        Search { program, failed, choices: Vec::new(), labels: Vec::new(), came_to_end: false, read_to: 0 }
    }

    /// Forgets what failed: other rows may follow from now on.
    pub(super) fn forget(&mut self) {
        self.failed.iter_mut().for_each(HashSet::clear);
    }

    /// Looks for a match of the rows from `start`, all of them before `end`. `meets(row, labels)`
    /// says whether a row may be taken for the last label. Afterwards `labels` are those of the
    /// match.
    ///
    /// # Errors
    /// Those of `meets`; a message when it goes back too often.
    pub(super) fn run(&mut self, start: usize, end: usize, meets: Meets<'_>) -> Result<bool, String> {
        self.choices.clear();
        self.labels.clear();
        self.came_to_end = false;
        let (mut step, mut row, mut n_back) = (0, start, 0);
        loop {
            let goes_on = match self.program.steps[step] {
                Instruction::Take(variable) if row < end => {
                    self.labels.push(variable);
                    self.read_to = self.read_to.max(row + 1);
                    let is_met = meets(row, &self.labels)?;
                    (step, row) = (step + 1, row + 1);
                    is_met
                }
                Instruction::Take(_) => {
                    self.came_to_end = true;
                    false
                }
                Instruction::Jump(to) => {
                    step = to;
                    true
                }
                Instruction::Fork(first, second) => {
                    let is_new = self.failed.as_mut().is_none_or(|failed| failed.insert((step as u32, row as u32)));
                    if is_new {
                        self.choices.push((second, row));
                        step = first;
                    }
                    is_new
                }
                Instruction::End if row > start => {
                    // (The forks on the way to a match have not failed.)
                    self.forget();
                    return Ok(true);
                }
                Instruction::End => false,
            };
            if goes_on {
                continue;
            }
            let Some((to, from)) = self.choices.pop() else { return Ok(false) };
            (step, row) = (to, from);
            self.labels.truncate(from - start);
            n_back += 1;
            if self.failed.is_none() && n_back > BACKTRACKS_MAX {
                return Err(format!("a pattern goes back more than {BACKTRACKS_MAX} times over the rows of one match"));
            }
        }
    }
}
