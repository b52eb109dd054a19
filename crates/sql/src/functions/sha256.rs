//! `sha256(bytea)` and `sha224(bytea)`: the digests of FIPS 180-4, sections 6.2 and 6.3. For
//! checksums; passwords have their own.

use crate::functions::sha512::start_of_224;

/// The first 32 bits of the fractional parts of the square roots of the first eight primes.
const START: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The first 64 primes.
const PRIMES: [u32; 64] = [
    2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109,
    113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181, 191, 193, 197, 199, 211, 223, 227, 229, 233, 239,
    241, 251, 257, 263, 269, 271, 277, 281, 283, 293, 307, 311,
];

/// The digest of a message.
pub(crate) fn sha256(message: &[u8]) -> [u8; 32] {
    digest_from(START, message)
}

/// The digest of 224 bits: another start, and the first of its bits.
pub(crate) fn sha224(message: &[u8]) -> [u8; 28] {
    let mut out = [0; 28];
    out.copy_from_slice(&digest_from(start_of_224(), message)[..28]);
    out
}

fn digest_from(mut state: [u32; 8], message: &[u8]) -> [u8; 32] {
    let constants = PRIMES.map(cube_root_bits);
    let mut chunks = message.chunks_exact(64);
    for chunk in &mut chunks {
        digest(&mut state, chunk, &constants);
    }
    let rest = chunks.remainder();
    let mut tail = [0u8; 128];
    tail[..rest.len()].copy_from_slice(rest);
    tail[rest.len()] = 0x80;
    let end = if rest.len() < 56 { 64 } else { 128 };
    tail[end - 8..end].copy_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    tail[..end].chunks_exact(64).for_each(|chunk| digest(&mut state, chunk, &constants));
    let mut out = [0; 32];
    for (four, word) in out.chunks_exact_mut(4).zip(state) {
        four.copy_from_slice(&word.to_be_bytes());
    }
    out
}

/// The first 32 bits of the fractional part of a number's cube root: the greatest `r` with
/// `r^3 <= n * 2^96`, modulo 2^32.
fn cube_root_bits(n: u32) -> u32 {
    let wanted = u128::from(n) << 96;
    let (mut low, mut high) = (0u128, 1u128 << 36);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if middle * middle * middle <= wanted { low = middle } else { high = middle }
    }
    low as u32
}

/// Takes in 64 bytes.
fn digest(state: &mut [u32; 8], chunk: &[u8], constants: &[u32; 64]) {
    let mut words = [0u32; 64];
    for (word, four) in words.iter_mut().zip(chunk.chunks_exact(4)) {
        *word = u32::from_be_bytes([four[0], four[1], four[2], four[3]]);
    }
    for at in 16..64 {
        let (a, b) = (words[at - 15], words[at - 2]);
        let small = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
        let great = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
        words[at] = words[at - 16].wrapping_add(small).wrapping_add(words[at - 7]).wrapping_add(great);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (word, constant) in words.iter().zip(constants) {
        let great = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let first = h.wrapping_add(great).wrapping_add(choice).wrapping_add(*constant).wrapping_add(*word);
        let small = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        (h, g, f, e, d, c, b, a) =
            (g, f, e, d.wrapping_add(first), c, b, a, first.wrapping_add(small.wrapping_add(majority)));
    }
    for (kept, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *kept = kept.wrapping_add(new);
    }
}

#[cfg(test)]
mod tests {
    use super::sha256;

    #[test]
    fn digests_are_those_of_the_standard() {
        let hex = |message: &[u8]| sha256(message).map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
