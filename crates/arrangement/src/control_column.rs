//! A control column under construction: one number a row, which often are all the same. Times and
//! diffs of rows on their way into a chunk.
//!
//! Law: a control column is a list of numbers. Cost: one number in all, as long as all are the
//! same.

/// Numbers of rows.
#[derive(Clone, Default, Debug)]
pub(crate) struct ControlColumn {
    len: usize,
    /// What all rows have; only while `each` is empty.
    constant: i64,
    /// What each row has, unless all have the same.
    each: Vec<i64>,
}

impl ControlColumn {
    /// Number of rows.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// What all rows have; `None` when that is not known to be one number.
    pub fn constant(&self) -> Option<i64> {
        (self.each.is_empty() && self.len > 0).then_some(self.constant)
    }

    #[inline]
    pub fn get(&self, row: usize) -> i64 {
        if self.each.is_empty() { self.constant } else { self.each[row] }
    }

    /// What each of some rows has.
    ///
    /// # Panics
    /// If all rows have the same.
    pub fn each(&self, rows: std::ops::Range<usize>) -> &[i64] {
        &self.each[rows]
    }

    /// Gives row `to` what row `from` has.
    pub fn copy(&mut self, from: usize, to: usize) {
        if !self.each.is_empty() {
            self.each[to] = self.each[from];
        }
    }

    /// Appends `rows` rows of `number`.
    pub fn extend_constant(&mut self, number: i64, rows: usize) {
        if self.len == 0 {
            self.constant = number;
        } else if self.constant() != Some(number) {
            let rows = self.len + rows;
            self.each_mut().resize(rows, number);
        }
        self.len += rows;
    }

    /// Appends a row for each number.
    pub fn extend(&mut self, numbers: impl Iterator<Item = i64>) {
        self.each_mut().extend(numbers);
        self.len = self.each.len();
    }

    /// The numbers, one by one; not to be made more or fewer but by [`ControlColumn::truncate`].
    pub fn each_mut(&mut self) -> &mut Vec<i64> {
        if self.each.is_empty() {
            self.each.resize(self.len, self.constant);
        }
        &mut self.each
    }

    /// Keeps the first `rows` rows.
    pub fn truncate(&mut self, rows: usize) {
        self.each.truncate(rows);
        self.len = self.len.min(rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_column_is_a_list() {
        let mut column = ControlColumn::default();
        column.extend_constant(7, 2);
        column.extend_constant(7, 1);
        assert_eq!((column.len(), column.constant(), column.get(2)), (3, Some(7), 7));
        column.extend_constant(8, 1);
        assert_eq!((column.len(), column.constant()), (4, None));
        column.extend([9, 7].into_iter());
        assert_eq!((0..column.len()).map(|row| column.get(row)).collect::<Vec<_>>(), [7, 7, 7, 8, 9, 7]);
        column.truncate(3);
        assert_eq!((column.len(), column.get(1)), (3, 7));
        column.truncate(0);
        column.extend_constant(1, 2);
        assert_eq!((column.len(), column.constant()), (2, Some(1)));
        column.each_mut()[1] = 5;
        assert_eq!((column.get(0), column.get(1), column.constant()), (1, 5, None));
    }
}
