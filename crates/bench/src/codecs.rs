//! Codecs of rows: two columns of 64-bit integers in batches, written and read again by the wire
//! form that rows have between shards, by a stream of Arrow IPC, and by rows of varints.
//!
//! Law of the measurement: a round encodes all batches, each to bytes of its own in one reused
//! buffer, and decodes them to columns; one thread, no socket. The varints are zigzag, two a row,
//! as Avro lays out a record of two longs: they are written by hand here, and no library of Avro
//! is measured.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anabranch_batch::{Batch, wire};
use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use serde_json::{Value, json};

use crate::report::Spread;

/// Rows of a batch.
pub const BATCH: usize = 8192;

/// A codec: the bytes of a batch, and the rows that are read from them.
type Codec = fn(&Batch, &SchemaRef, &mut Vec<u8>) -> Result<usize, String>;

/// The codecs; the first one is ours.
const CODECS: [(&str, Codec); 3] =
    [("wire form", by_wire), ("Arrow IPC stream", by_ipc), ("rows of zigzag varints, by hand", by_varints)];

/// Measures each codec over batches of two columns of 64-bit integers.
///
/// # Errors
/// When a codec refuses what it has written.
pub fn codecs(batches: &[Batch], runs: usize) -> Result<Vec<Value>, String> {
    let schema: SchemaRef =
        Arc::new(Schema::new(["c0", "c1"].map(|name| Field::new(name, DataType::Int64, true)).to_vec()));
    let rows: usize = batches.iter().map(Batch::len).sum();
    let mut lines: Vec<Value> = Vec::new();
    let mut ours = None;
    for (name, codec) in CODECS {
        let mut bytes = 0;
        let mut seconds = Vec::new();
        for _ in 0..runs.max(1) {
            let (begun, mut buffer) = (Instant::now(), Vec::new());
            bytes = 0;
            for batch in batches {
                buffer.clear();
                let read = codec(batch, &schema, &mut buffer)?;
                assert_eq!(read, batch.len(), "{name} reads the rows that it writes");
                bytes += buffer.len();
            }
            seconds.push(begun.elapsed().as_secs_f64());
        }
        let spread = Spread::of(seconds);
        let (rate, width) = (rows as f64 / spread.median, bytes as f64 / rows as f64);
        let (our_rate, our_width) = *ours.get_or_insert((rate, width));
        println!(
            "{name}: {:.1} M rows/s, {width:.2} bytes/row; the wire form has {:.2} of its rate, {:.2} of its bytes",
            rate / 1e6,
            our_rate / rate,
            our_width / width
        );
        lines.push(json!({
            "bench": "shards", "case": format!("encode and decode, {name}"), "rows": rows, "batch": BATCH,
            "seconds": spread.median, "seconds_min": spread.min, "seconds_max": spread.max,
            "rows_per_s": rate, "bytes_per_row": width, "wire_rate_ratio": our_rate / rate,
            "wire_bytes_ratio": our_width / width,
        }));
    }
    Ok(lines)
}

fn by_wire(batch: &Batch, _: &SchemaRef, buffer: &mut Vec<u8>) -> Result<usize, String> {
    wire::write(batch, buffer).map_err(|error| error.to_string())?;
    let read = wire::read(buffer).map_err(|error| error.to_string())?;
    Ok(black_box(read).len())
}

fn by_ipc(batch: &Batch, schema: &SchemaRef, buffer: &mut Vec<u8>) -> Result<usize, String> {
    let error = |error: arrow::error::ArrowError| error.to_string();
    let rows = RecordBatch::try_new(Arc::clone(schema), batch.columns().to_vec()).map_err(error)?;
    let mut writer = StreamWriter::try_new(&mut *buffer, schema).map_err(error)?;
    writer.write(&rows).and_then(|()| writer.finish()).map_err(error)?;
    drop(writer);
    let mut n_rows = 0;
    for read in StreamReader::try_new(buffer.as_slice(), None).map_err(error)? {
        n_rows += black_box(read.map_err(error)?).num_rows();
    }
    Ok(n_rows)
}

fn by_varints(batch: &Batch, _: &SchemaRef, buffer: &mut Vec<u8>) -> Result<usize, String> {
    let columns: Vec<&Int64Array> = batch.columns().iter().map(|column| column.as_primitive::<Int64Type>()).collect();
    for row in 0..batch.len() {
        for column in &columns {
            let value = column.value(row);
            let mut left = ((value << 1) ^ (value >> 63)) as u64;
            while left >= 0x80 {
                buffer.push(left as u8 | 0x80);
                left >>= 7;
            }
            buffer.push(left as u8);
        }
    }
    let mut read: Vec<Vec<i64>> = columns.iter().map(|_| Vec::with_capacity(batch.len())).collect();
    let mut bytes = buffer.iter();
    'rows: loop {
        for column in &mut read {
            let (mut value, mut shift) = (0u64, 0);
            loop {
                let Some(byte) = bytes.next() else { break 'rows };
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            column.push((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    let read: Vec<ArrayRef> = read.into_iter().map(|values| Arc::new(Int64Array::from(values)) as ArrayRef).collect();
    Ok(black_box(read).last().map_or(0, |column| column.len()))
}
