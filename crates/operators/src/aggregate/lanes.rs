//! Sums by segment, several rows at a time.
//!
//! Law: the sum of the values of each segment's rows, wrapping. Cost: one addition a row. Where
//! segments are few, neighbouring rows mostly add to the same one, and each addition would wait for
//! the one before it to be written: so neighbours add to lanes of their own.

use std::ops::AddAssign;

/// Rows that add side by side.
const LANES: usize = 4;

/// With more segments than this, neighbours seldom meet.
const LANED_SEGMENTS_MAX: usize = 256;

/// The sums of `value(row)` over the rows of each of `n_segments` segments.
#[inline]
pub(crate) fn sums<V>(of_row: &[u32], n_segments: usize, value: impl Fn(usize) -> V) -> Vec<V>
where
    V: Copy + Default + AddAssign,
{
    let mut sums = Sums::new(n_segments, of_row.len());
    sums.add_each(of_row, (0..of_row.len()).map(value));
    sums.finish()
}

/// Sums under construction.
pub(crate) enum Sums<V> {
    /// One of each segment.
    Plain(Vec<V>),
    /// Several of each.
    Laned(Vec<[V; LANES]>),
}

impl<V: Copy + Default + AddAssign> Sums<V> {
    /// Of nothing, for about so many rows.
    pub(crate) fn new(n_segments: usize, n_rows: usize) -> Sums<V> {
        match n_segments > LANED_SEGMENTS_MAX || n_rows < LANES * n_segments {
            true => Sums::Plain(vec![V::default(); n_segments]),
            false => Sums::Laned(vec![[V::default(); LANES]; n_segments]),
        }
    }

    /// Adds the value of each row, of some segment.
    #[inline]
    pub(crate) fn add(&mut self, of_row: &[u32], values: &[V]) {
        let Sums::Laned(lanes) = self else { return self.add_each(of_row, values.iter().copied()) };
        let ((quads, rest), (quads_of, rest_of)) = (values.as_chunks::<LANES>(), of_row.as_chunks::<LANES>());
        for (values, segments) in quads.iter().zip(quads_of) {
            for lane in 0..LANES {
                lanes[segments[lane] as usize][lane] += values[lane];
            }
        }
        rest.iter().zip(rest_of).for_each(|(&value, &segment)| lanes[segment as usize][0] += value);
    }

    #[inline]
    fn add_each(&mut self, of_row: &[u32], values: impl Iterator<Item = V>) {
        let rows = of_row.iter().zip(values);
        match self {
            Sums::Plain(sums) => rows.for_each(|(&segment, value)| sums[segment as usize] += value),
            Sums::Laned(lanes) => {
                let rows = rows.enumerate();
                rows.for_each(|(row, (&segment, value))| lanes[segment as usize][row % LANES] += value);
            }
        }
    }

    /// The sum of each segment.
    pub(crate) fn finish(self) -> Vec<V> {
        let total = |lanes: &[V; LANES]| {
            let mut total = V::default();
            lanes.iter().for_each(|&lane| total += lane);
            total
        };
        match self {
            Sums::Plain(sums) => sums,
            Sums::Laned(lanes) => lanes.iter().map(total).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_change_no_sum() {
        for (rows, n_segments) in [(0, 0), (1, 1), (7, 1), (1000, 3), (1001, 250), (1003, 251), (2000, 300)] {
            let of_row: Vec<u32> = (0..rows).map(|row| (row as u32 * 7919) % n_segments as u32).collect();
            let mut expected = vec![0i64; n_segments];
            of_row.iter().enumerate().for_each(|(row, &segment)| expected[segment as usize] += row as i64);
            assert_eq!(sums(&of_row, n_segments, |row| row as i64), expected, "{rows} rows, {n_segments} segments");
        }
    }
}
