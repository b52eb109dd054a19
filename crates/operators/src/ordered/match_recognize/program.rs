//! Patterns, and the programs that search for them.
//!
//! Law: a program tries the ways to read rows in order of preference: of alternatives the first one
//! first; of a repetition one more time first, or, if it is reluctant, no more. A part that is
//! repeated without limit is never read as no rows, so every loop takes a row.
//!
//! Cost: O(occurrences of variables), repetitions written out.

use anabranch_spec::recognize::RowPattern;

/// Most steps of a program.
pub const STEPS_MAX: usize = 100_000;

/// A pattern has too many steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// What to do, step by step, beginning with the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecognizeProgram {
    pub(super) steps: Vec<Instruction>,
}

/// A step of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    /// Takes a row for a variable and goes on with the next step.
    Take(usize),
    /// Goes on with the first of these, or else with the second.
    Fork(usize, usize),
    /// Goes on elsewhere.
    Jump(usize),
    /// The match is complete.
    End,
}

/// To be filled in.
const NOWHERE: usize = usize::MAX;

impl RecognizeProgram {
    /// The program of a pattern.
    ///
    /// # Errors
    /// When it has more than [`STEPS_MAX`] steps.
    pub fn new(pattern: &RowPattern) -> Result<RecognizeProgram, TooLarge> {
        let mut program = RecognizeProgram { steps: Vec::new() };
        program.add(pattern)?;
        program.push(Instruction::End)?;
        Ok(program)
    }

    fn push(&mut self, step: Instruction) -> Result<usize, TooLarge> {
        self.steps.push(step);
        if self.steps.len() > STEPS_MAX { Err(TooLarge) } else { Ok(self.steps.len() - 1) }
    }

    fn add(&mut self, pattern: &RowPattern) -> Result<(), TooLarge> {
        match pattern {
            RowPattern::Variable(variable) => {
                self.push(Instruction::Take(*variable))?;
            }
            RowPattern::Sequence(parts) => parts.iter().try_for_each(|part| self.add(part))?,
            RowPattern::Alternatives(parts) => self.add_alternatives(parts)?,
            RowPattern::Repeat { part, min, max, is_reluctant } if part.accepts_nothing_at_all() => {
                // (No row is one way to read it, so any smaller number of times is enough.)
                if let Some(part) = part.without_empty()
                    && *max != Some(0)
                {
                    debug_assert!(max.is_none_or(|max| max >= *min));
                    self.add_repeated(&part, 0, *max, *is_reluctant)?;
                }
            }
            RowPattern::Repeat { part, min, max, is_reluctant } => {
                self.add_repeated(part, *min, *max, *is_reluctant)?
            }
        }
        Ok(())
    }

    fn add_alternatives(&mut self, parts: &[RowPattern]) -> Result<(), TooLarge> {
        let mut jumps = Vec::with_capacity(parts.len());
        for (n, part) in parts.iter().enumerate() {
            let is_last = n + 1 == parts.len();
            let fork = if is_last { None } else { Some(self.push(Instruction::Fork(NOWHERE, NOWHERE))?) };
            self.add(part)?;
            if let Some(fork) = fork {
                jumps.push(self.push(Instruction::Jump(NOWHERE))?);
                self.steps[fork] = Instruction::Fork(fork + 1, self.steps.len());
            }
        }
        let end = self.steps.len();
        jumps.into_iter().for_each(|jump| self.steps[jump] = Instruction::Jump(end));
        Ok(())
    }

    fn add_repeated(
        &mut self,
        part: &RowPattern,
        min: usize,
        max: Option<usize>,
        is_reluctant: bool,
    ) -> Result<(), TooLarge> {
        for _ in 0..min {
            self.add(part)?;
        }
        let mut forks = Vec::new();
        match max {
            None => {
                let fork = self.push(Instruction::Fork(NOWHERE, NOWHERE))?;
                self.add(part)?;
                self.push(Instruction::Jump(fork))?;
                forks.push(fork);
            }
            Some(max) => {
                for _ in min..max {
                    forks.push(self.push(Instruction::Fork(NOWHERE, NOWHERE))?);
                    self.add(part)?;
                }
            }
        }
        let end = self.steps.len();
        for fork in forks {
            self.steps[fork] =
                if is_reluctant { Instruction::Fork(end, fork + 1) } else { Instruction::Fork(fork + 1, end) };
        }
        Ok(())
    }
}
