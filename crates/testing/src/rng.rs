//! Random numbers that replay.
//!
//! Law: a seed determines everything a test does. [`cases`] runs a body on many seeds, derived from
//! the test's name so that a run repeats; a failing seed is printed with the command that replays
//! it. `SEED=n` runs that one seed only, `ROUNDS=n` multiplies the number of cases for a longer
//! hunt.
//!
//! The generator is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): one addition and three xor-shifts
//! a number.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A source of random numbers, a function of its seed.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The sequence that belongs to `seed`.
    pub fn new(seed: u64) -> Rng {
        Rng { state: seed }
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number in `0..bound`. `bound` is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "a range to draw from is not empty");
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        assert!(low <= high, "a range to draw from is not empty");
        low + self.below((high - low) as usize + 1) as i64
    }

    /// True with the given chance in a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the items.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Puts the items in a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }

    /// `count` different numbers of `0..bound`, ascending; all of them if there are fewer.
    pub fn subset(&mut self, bound: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..bound).collect();
        self.shuffle(&mut all);
        all.truncate(count);
        all.sort_unstable();
        all
    }

    /// An independent sequence, for a part of the test that should not disturb the rest.
    pub fn fork(&mut self) -> Rng {
        Rng::new(self.bits())
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Runs `body` on `count` seeds (on the one in `SEED`, if set).
///
/// # Panics
/// If the body does, after printing the seed and how to replay it.
pub fn cases(name: &str, count: usize, body: impl Fn(&mut Rng)) {
    match number_from_env("SEED") {
        Some(seed) => body(&mut Rng::new(seed)),
        None => cases_all(name, count, &body),
    }
}

fn cases_all(name: &str, count: usize, body: &dyn Fn(&mut Rng)) {
    let rounds = number_from_env("ROUNDS").unwrap_or(1) as usize;
    let base = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    for case in 0..count * rounds {
        let seed = mix(base.wrapping_add(case as u64)) >> 16;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(&mut Rng::new(seed)))) {
            eprintln!("case {case} of {name} failed; replay it with: SEED={seed} make test NAME={name}");
            resume_unwind(panic);
        }
    }
}

fn number_from_env(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is to be a number, not '{text}'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_sequence() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        assert_eq!((0..9).map(|_| a.bits()).collect::<Vec<_>>(), (0..9).map(|_| b.bits()).collect::<Vec<_>>());
    }

    #[test]
    fn ranges_are_hit_from_end_to_end() {
        let mut rng = Rng::new(1);
        let drawn: std::collections::BTreeSet<i64> = (0..500).map(|_| rng.between(-2, 3)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), vec![-2, -1, 0, 1, 2, 3]);
    }

    #[test]
    fn a_subset_has_no_number_twice() {
        let mut rng = Rng::new(5);
        let subset = rng.subset(10, 6);
        assert_eq!(subset.len(), 6);
        assert!(subset.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
