//! A hash of whole numbers for tables inside an operator: one multiplication, high bits folded
//! down.
//!
//! Vehicles are numbered by the generator, so no input chooses keys that collide.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by a whole number or a tuple of whole numbers.
pub type Table<K, V> = HashMap<K, V, BuildHasherDefault<Folded>>;

/// See the [module's page](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct Folded(u64);

impl Folded {
    #[inline]
    fn add(&mut self, word: u64) {
        let product = u128::from(self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.add(u64::from(*byte)));
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.add(u64::from(value));
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.add(u64::from(value));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
