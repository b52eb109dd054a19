//! Lines of rows.
//!
//! Memory: rows that each take one line cost nothing; others cost 16 bytes a row.

/// The line of each row of a COPY.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Rows, from 0, with their lines, from which on each row takes one line.
    runs: Vec<(usize, u64)>,
}

impl Lines {
    /// Takes note of the lines of rows, the first of which is the row `from`.
    pub fn add(&mut self, from: usize, lines: &[u64]) {
        for (row, line) in (from..).zip(lines) {
            if self.runs.is_empty() || self.of(row) != *line {
                self.runs.push((row, *line));
            }
        }
    }

    /// The line of a row; of one that is not known, as if it took one line.
    pub fn of(&self, row: usize) -> u64 {
        let run = self.runs.partition_point(|(first, _)| *first <= row).checked_sub(1);
        let (first, line) = run.map_or((0, 1), |run| self.runs[run]);
        line + (row - first) as u64
    }
}
