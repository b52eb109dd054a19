//! Random rows from small domains, so that keys meet, values repeat and sums overflow.

use super::Row;

/// A linear congruential generator.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed ^ 0x9e37_79b9_7f4a_7c15);
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 20
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub fn row(&mut self) -> Row {
        let names =
            [None, Some(""), Some("a"), Some("b"), Some("a long name, out of line"), Some("a long name, another")];
        let bigs = [None, Some(i64::MAX), Some(i64::MAX / 2), Some(1), Some(i64::MIN), Some(-7)];
        let floats = [None, Some(0.1), Some(0.2), Some(-0.3), Some(1e300), Some(-1e300), Some(1e-300), Some(3.5)];
        Row {
            key: self.pick(&[None, Some(1), Some(2), Some(3)]),
            name: self.pick(&names),
            small: self.pick(&[None, Some(-3), Some(0), Some(1), Some(2), Some(5), Some(5)]),
            big: self.pick(&bigs),
            price: self.pick(&[None, Some(-150), Some(0), Some(1), Some(9_999_999_999_999), Some(205)]),
            float: self.pick(&floats),
            flag: self.pick(&[None, Some(true), Some(false), Some(true)]),
        }
    }
}
