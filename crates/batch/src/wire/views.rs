//! View columns (Utf8View, BinaryView) on the wire.
//!
//! Arrow's own check of a view array reads every string on its own: 6 to 11 ns a row. Strings come
//! from few buffers, so it is enough that each buffer is text as a whole and that every view starts
//! and ends between characters: a whole read then takes 2 to 3 ns a row (examples/kernels.rs).

use arrow::array::{ArrayData, ArrayDataBuilder};
use arrow::buffer::Buffer;
use arrow::error::ArrowError;

use crate::cells::INLINE_BYTES_MAX;

/// Longest data buffer of rewritten views, whose offsets have 31 bits.
const VIEW_BUFFER_BYTES_MAX: usize = i32::MAX as usize;
/// The 12 bytes of text inside a view, and the highest bit of each.
const INLINE_TEXT: u128 = !0 << 32;
const INLINE_HIGH_BITS: u128 = 0x8080_8080_8080_8080_8080_8080 << 32;

/// Whether a view's bytes lie in a buffer.
#[inline]
pub(super) fn is_long(view: u128) -> bool {
    view as u32 as usize > INLINE_BYTES_MAX
}

/// The views as they point to their bytes laid end to end, and the lengths of the buffers that
/// takes.
pub(super) fn rebase_views(views: &[u128]) -> (Vec<u128>, Vec<usize>) {
    let mut lengths = Vec::new();
    let mut rebase = |view: u128| {
        if !is_long(view) {
            return view;
        }
        let len = view as u32 as usize;
        match lengths.last() {
            Some(&filled) if filled + len <= VIEW_BUFFER_BYTES_MAX => {}
            _ => lengths.push(0),
        }
        let number = lengths.len() - 1;
        let offset = lengths[number];
        lengths[number] += len;
        view as u64 as u128 | (number as u128) << 64 | (offset as u128) << 96
    };
    (views.iter().map(|&view| rebase(view)).collect(), lengths)
}

/// What views contain.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Contents {
    Text,
    Bytes,
}

/// Gives a view array its views, one per row, and its buffers, after checking them.
#[allow(unsafe_code)]
pub(super) fn build_views(
    array: ArrayDataBuilder,
    views: Buffer,
    buffers: Vec<Buffer>,
    contents: Contents,
) -> Result<ArrayData, ArrowError> {
    let sound = are_sound(views.typed_data::<u128>(), &buffers, contents);
    let array = array.add_buffer(views).add_buffers(buffers);
    if sound {
        // SAFETY: `are_sound` found every view valid: inside its buffer, with the right prefix or
        // zero padding, and text if it has to be. The caller read exactly one view per row, and one
        // null bit per row. The tests compare with Arrow's check.
        return Ok(unsafe { array.build_unchecked() });
    }
    // A buffer that is not text as a whole may still be so where views point: Arrow looks at each
    // string, or says what is wrong.
    array.build()
}

/// Whether all views are valid, found without reading strings one by one. May say no to valid views
/// of patchy buffers.
fn are_sound(views: &[u128], buffers: &[Buffer], contents: Contents) -> bool {
    let text = contents == Contents::Text;
    if text && !buffers.iter().all(|buffer| std::str::from_utf8(buffer).is_ok()) {
        return false;
    }
    views
        .iter()
        .all(|&view| if is_long(view) { is_sound_long(view, buffers, text) } else { is_sound_inline(view, text) })
}

#[inline]
fn is_sound_inline(view: u128, text: bool) -> bool {
    let len = view as u32;
    let padding = INLINE_TEXT.unbounded_shl(8 * len);
    let ascii = view & INLINE_HIGH_BITS == 0;
    view & padding == 0 && (!text || ascii || std::str::from_utf8(&view.to_le_bytes()[4..4 + len as usize]).is_ok())
}

#[inline]
fn is_sound_long(view: u128, buffers: &[Buffer], text: bool) -> bool {
    let (len, prefix) = (view as u32 as usize, (view >> 32) as u32);
    let (number, offset) = ((view >> 64) as u32 as usize, (view >> 96) as u32 as usize);
    let Some(buffer) = buffers.get(number) else { return false };
    let Some(bytes) = buffer.get(offset..offset + len) else { return false };
    let starts_character = |at: usize| buffer.get(at).is_none_or(|byte| byte & 0xc0 != 0x80);
    prefix.to_le_bytes() == bytes[..4] && (!text || starts_character(offset) && starts_character(offset + len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rng;
    use arrow::datatypes::DataType;

    #[test]
    fn the_quick_check_accepts_only_what_arrow_accepts() {
        let mut rng = Rng::from_env(51);
        let text = "Änderung: eine längere Zeichenkette mit Umlauten über alles, naïve façade – 12 ≠ 13".as_bytes();
        let mut accepted = 0;
        for _ in 0..100_000 {
            let (start, len) = (rng.below(text.len()), rng.below(40));
            let bytes = &text[start..(start + len).min(text.len())];
            let mut view = match bytes.len() {
                0..=INLINE_BYTES_MAX => {
                    let mut view = [0; 16];
                    view[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
                    view[4..4 + bytes.len()].copy_from_slice(bytes);
                    u128::from_le_bytes(view)
                }
                _ => {
                    let prefix = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                    bytes.len() as u128 | u128::from(prefix) << 32 | (start as u128) << 96
                }
            };
            if rng.chance(30) {
                view ^= 1 << rng.below(128);
            }
            for (contents, data_type) in [(Contents::Text, DataType::Utf8View), (Contents::Bytes, DataType::BinaryView)]
            {
                let buffers = [Buffer::from(text)];
                let by_arrow = ArrayData::builder(data_type).len(1).add_buffer(Buffer::from_vec(vec![view]));
                let by_arrow = by_arrow.add_buffers(buffers.to_vec()).build().is_ok();
                let quick = are_sound(&[view], &buffers, contents);
                assert!(!quick || by_arrow, "{view:#x}");
                assert_eq!(quick, by_arrow, "the buffer is text as a whole, so both agree: {view:#x}");
                accepted += usize::from(quick);
            }
        }
        assert!(accepted > 50_000, "{accepted} views were sound");
    }
}
