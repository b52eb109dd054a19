//! Random numbers that are the same on every machine: xoshiro256++, seeded by splitmix64.
//!
//! Sums of uniform numbers stand for normal ones, since logarithms may differ in the last bit
//! between machines.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random([u64; 4]);

/// One step of splitmix64.
pub fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Random {
        let step = |at: u64| mix(seed ^ mix(at));
        Random([step(1), step(2), step(3), step(4)])
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A whole number below `n`, which is not 0.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(n)) >> 32) as u32
    }

    /// A number in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u32 << 24) as f32
    }

    /// A number in [`low`, `high`).
    #[inline]
    pub fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.unit()
    }

    /// Whether something of this probability happens.
    #[inline]
    pub fn chance(&mut self, probability: f32) -> bool {
        self.unit() < probability
    }

    /// Nearly normal, of mean 0 and deviation 1: the sum of four uniform numbers, scaled.
    #[inline]
    pub fn normal(&mut self) -> f32 {
        let bits = self.bits();
        let part = |at: u32| ((bits >> at) & 0xffff) as f32 / 65_536.0;
        (part(0) + part(16) + part(32) + part(48) - 2.0) * 1.732_050_8
    }
}
