//! A number a row, which are often all the same: times and diffs of rows on their way into a chunk.
//!
//! Law: a lane is a list of numbers. Cost: as long as all are the same, one number in all.

/// Numbers of rows.
#[derive(Clone, Default, Debug)]
pub(crate) struct Lane {
    len: usize,
    /// What all rows have; only while `each` is empty.
    same: i64,
    /// What each row has, unless all have the same.
    each: Vec<i64>,
}

impl Lane {
    /// Number of rows.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// What all rows have; `None` when that is not known to be one number.
    pub fn same(&self) -> Option<i64> {
        (self.each.is_empty() && self.len > 0).then_some(self.same)
    }

    #[inline]
    pub fn get(&self, row: usize) -> i64 {
        if self.each.is_empty() { self.same } else { self.each[row] }
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
    pub fn extend_same(&mut self, number: i64, rows: usize) {
        if self.len == 0 {
            self.same = number;
        } else if self.same() != Some(number) {
            let rows = self.len + rows;
            self.numbers().resize(rows, number);
        }
        self.len += rows;
    }

    /// Appends a row for each number.
    pub fn extend(&mut self, numbers: impl Iterator<Item = i64>) {
        self.numbers().extend(numbers);
        self.len = self.each.len();
    }

    /// The numbers, one by one; not to be made more or fewer but by [`Lane::truncate`].
    pub fn numbers(&mut self) -> &mut Vec<i64> {
        if self.each.is_empty() {
            self.each.resize(self.len, self.same);
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
    fn a_lane_is_a_list() {
        let mut lane = Lane::default();
        lane.extend_same(7, 2);
        lane.extend_same(7, 1);
        assert_eq!((lane.len(), lane.same(), lane.get(2)), (3, Some(7), 7));
        lane.extend_same(8, 1);
        assert_eq!((lane.len(), lane.same()), (4, None));
        lane.extend([9, 7].into_iter());
        assert_eq!((0..lane.len()).map(|row| lane.get(row)).collect::<Vec<_>>(), [7, 7, 7, 8, 9, 7]);
        lane.truncate(3);
        assert_eq!((lane.len(), lane.get(1)), (3, 7));
        lane.truncate(0);
        lane.extend_same(1, 2);
        assert_eq!((lane.len(), lane.same()), (2, Some(1)));
        lane.numbers()[1] = 5;
        assert_eq!((lane.get(0), lane.get(1), lane.same()), (1, 5, None));
    }
}
