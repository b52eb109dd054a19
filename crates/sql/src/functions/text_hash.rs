//! `hashtext(text)` and `hashtextextended(text, seed)`: PostgreSQL's hashes, which programs number
//! advisory locks by.
//!
//! Law: the numbers are those of PostgreSQL on a little-endian machine. Cost: one pass.
//!
//! Source: Bob Jenkins, "lookup3.c" (2006), with PostgreSQL's beginning and seed.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int32Array, Int64Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::Result as DfResult;
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// See the module.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TextHash {
    signature: Signature,
    is_extended: bool,
}

impl TextHash {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Self::of(vec![DataType::Utf8View], false)
    }

    pub(crate) fn extended_udf() -> Arc<ScalarUDF> {
        Self::of(vec![DataType::Utf8View, DataType::Int64], true)
    }

    fn of(types: Vec<DataType>, is_extended: bool) -> Arc<ScalarUDF> {
        let signature = Signature::exact(types, Volatility::Immutable);
        Arc::new(ScalarUDF::from(TextHash { signature, is_extended }))
    }
}

impl ScalarUDFImpl for TextHash {
    fn name(&self) -> &str {
        if self.is_extended { "hashtextextended" } else { "hashtext" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(if self.is_extended { DataType::Int64 } else { DataType::Int32 })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let columns = args.args.iter().map(|arg| arg.to_array(args.number_rows)).collect::<DfResult<Vec<_>>>()?;
        let texts = columns[0].as_string_view().iter();
        let hashes: ArrayRef = match columns.get(1) {
            None => Arc::new(texts.map(|text| Some(hash(text?.as_bytes(), 0).1.cast_signed())).collect::<Int32Array>()),
            Some(seeds) => {
                let seeds = seeds.as_primitive::<Int64Type>().iter();
                let hashed = texts.zip(seeds).map(|(text, seed)| {
                    let (high, low) = hash(text?.as_bytes(), seed?.cast_unsigned());
                    Some((u64::from(high) << 32 | u64::from(low)).cast_signed())
                });
                Arc::new(hashed.collect::<Int64Array>())
            }
        };
        Ok(ColumnarValue::Array(hashes))
    }
}

/// The second and the third word of the hash.
fn hash(bytes: &[u8], seed: u64) -> (u32, u32) {
    #[expect(clippy::cast_possible_truncation, reason = "texts have less than four gigabytes; a seed has two halves")]
    let (length, high, low) = (bytes.len() as u32, (seed >> 32) as u32, seed as u32);
    let start = 0x9e37_79b9_u32.wrapping_add(length).wrapping_add(3_923_095);
    let mut words = [start; 3];
    if seed != 0 {
        words[0] = words[0].wrapping_add(high);
        words[1] = words[1].wrapping_add(low);
        mix(&mut words);
    }
    let mut chunks = bytes.chunks_exact(12);
    for chunk in &mut chunks {
        add(&mut words, chunk);
        mix(&mut words);
    }
    // (The lowest byte of the third word is left to the length, so that bytes from the ninth on are
    // one place further.)
    let rest = chunks.remainder();
    let mut last = [0; 12];
    let (front, back) = rest.split_at(rest.len().min(8));
    last[..front.len()].copy_from_slice(front);
    last[9..9 + back.len()].copy_from_slice(back);
    add(&mut words, &last);
    finish(&mut words);
    (words[1], words[2])
}

fn add(words: &mut [u32; 3], bytes: &[u8]) {
    for (word, part) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = word.wrapping_add(u32::from_le_bytes(*part));
    }
}

fn mix([a, b, c]: &mut [u32; 3]) {
    let turn = |x: &mut u32, y: &mut u32, z: &mut u32, by| {
        *x = x.wrapping_sub(*z) ^ z.rotate_left(by);
        *z = z.wrapping_add(*y);
    };
    turn(a, b, c, 4);
    turn(b, c, a, 6);
    turn(c, a, b, 8);
    turn(a, b, c, 16);
    turn(b, c, a, 19);
    turn(c, a, b, 4);
}

fn finish([a, b, c]: &mut [u32; 3]) {
    let turn = |x: &mut u32, y: u32, by| *x = (*x ^ y).wrapping_sub(y.rotate_left(by));
    turn(c, *b, 14);
    turn(a, *c, 11);
    turn(b, *a, 25);
    turn(c, *b, 16);
    turn(a, *c, 4);
    turn(b, *a, 14);
    turn(c, *b, 24);
}
