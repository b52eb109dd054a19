//! `sha384(bytea)` and `sha512(bytea)`: the digests of FIPS 180-4, sections 6.4 and 6.5. For
//! checksums; passwords have their own.
//!
//! The constants are computed as the standard defines them: bits of the fractional parts of square
//! and cube roots of the first primes.

use std::sync::LazyLock;

/// Rounds of a chunk, each with a constant.
const ROUNDS: usize = 80;

/// A number of 256 bits, the least 64 first.
type Wide = [u64; 4];

struct Constants {
    rounds: [u64; ROUNDS],
    /// Where the digests of 512 and of 384 bits start.
    starts: [[u64; 8]; 2],
}

static CONSTANTS: LazyLock<Constants> = LazyLock::new(|| {
    let is_prime = |n: &u64| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0);
    let primes: Vec<u64> = (2..).filter(is_prime).take(ROUNDS).collect();
    Constants {
        rounds: std::array::from_fn(|n| root_bits(primes[n], 3)),
        starts: [0, 8].map(|first| std::array::from_fn(|n| root_bits(primes[first + n], 2))),
    }
});

/// The digest of 512 bits.
pub(crate) fn sha512(message: &[u8]) -> [u8; 64] {
    digest(message, CONSTANTS.starts[0])
}

/// The digest of 384 bits.
pub(crate) fn sha384(message: &[u8]) -> [u8; 48] {
    let mut out = [0; 48];
    out.copy_from_slice(&digest(message, CONSTANTS.starts[1])[..48]);
    out
}

/// The last 32 of the bits that the digest of 384 bits starts with: those of SHA-224.
pub(crate) fn start_of_224() -> [u32; 8] {
    CONSTANTS.starts[1].map(|word| word as u32)
}

fn digest(message: &[u8], mut state: [u64; 8]) -> [u8; 64] {
    let mut chunks = message.chunks_exact(128);
    for chunk in &mut chunks {
        mix(&mut state, chunk);
    }
    let rest = chunks.remainder();
    let mut tail = [0u8; 256];
    tail[..rest.len()].copy_from_slice(rest);
    tail[rest.len()] = 0x80;
    let end = if rest.len() < 112 { 128 } else { 256 };
    tail[end - 16..end].copy_from_slice(&(message.len() as u128 * 8).to_be_bytes());
    tail[..end].chunks_exact(128).for_each(|chunk| mix(&mut state, chunk));
    let mut out = [0; 64];
    for (eight, word) in out.chunks_exact_mut(8).zip(state) {
        eight.copy_from_slice(&word.to_be_bytes());
    }
    out
}

/// Mixes a chunk of 128 bytes into the state.
fn mix(state: &mut [u64; 8], chunk: &[u8]) {
    let mut words = [0u64; ROUNDS];
    for (word, bytes) in words.iter_mut().zip(chunk.chunks_exact(8)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    for n in 16..ROUNDS {
        let (early, late) = (words[n - 15], words[n - 2]);
        let early = early.rotate_right(1) ^ early.rotate_right(8) ^ early >> 7;
        let late = late.rotate_right(19) ^ late.rotate_right(61) ^ late >> 6;
        words[n] = words[n - 16].wrapping_add(early).wrapping_add(words[n - 7]).wrapping_add(late);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (word, constant) in words.iter().zip(CONSTANTS.rounds) {
        let chosen = e & f ^ !e & g;
        let turned = e.rotate_right(14) ^ e.rotate_right(18) ^ e.rotate_right(41);
        let first = h.wrapping_add(turned).wrapping_add(chosen).wrapping_add(constant).wrapping_add(*word);
        let most = a & b ^ a & c ^ b & c;
        let second = (a.rotate_right(28) ^ a.rotate_right(34) ^ a.rotate_right(39)).wrapping_add(most);
        (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(first), c, b, a, first.wrapping_add(second));
    }
    for (word, mixed) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(mixed);
    }
}

/// The first 64 bits of the fractional part of a root: the greatest `r` with `r^degree <= n *
/// 2^(64 * degree)`, modulo 2^64.
fn root_bits(n: u64, degree: usize) -> u64 {
    let mut wanted: Wide = [0; 4];
    wanted[degree] = n;
    let (mut low, mut high) = (0u128, 1u128 << 70);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let root = [middle as u64, (middle >> 64) as u64, 0, 0];
        let power = (1..degree).fold(root, |power, _| times(power, root));
        let fits = power.iter().rev().le(wanted.iter().rev());
        (low, high) = if fits { (middle, high) } else { (low, middle) };
    }
    low as u64
}

fn times(left: Wide, right: Wide) -> Wide {
    let mut out: Wide = [0; 4];
    for (i, l) in left.iter().enumerate() {
        let mut carry = 0u128;
        for (j, r) in right.iter().enumerate().take(4 - i) {
            let sum = u128::from(*l) * u128::from(*r) + u128::from(out[i + j]) + carry;
            out[i + j] = sum as u64;
            carry = sum >> 64;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert!(hex(&sha512(b"abc")).starts_with("ddaf35a193617abacc417349ae204131"));
        assert!(hex(&sha384(b"abc")).starts_with("cb00753f45a35e8bb5a03d699ac65007"));
        assert!(hex(&sha512(&[b'a'; 200])).len() == 128);
    }
}
