//! RFC 4180: NULL is nothing, the empty text is `""`.

use std::io::{self, Write};

use arrow::{array::RecordBatch, datatypes::Schema};

use anabranch_sql::output::{is_null, printers};

pub(super) fn write_header(out: &mut dyn Write, schema: &Schema) -> io::Result<()> {
    let names: Vec<String> =
        schema.fields().iter().map(|field| quoted(field.name()).unwrap_or(field.name().clone())).collect();
    writeln!(out, "{}", names.join(","))
}

pub(super) fn write_batch(out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
    let printers = printers(batch.columns());
    let (mut line, mut text) = (String::new(), String::new());
    for row in 0..batch.num_rows() {
        line.clear();
        for (i, (array, print)) in printers.iter().enumerate() {
            if i > 0 {
                line.push(',');
            }
            if is_null(array, row) {
                continue;
            }
            text.clear();
            print(row, &mut text);
            match quoted(&text) {
                Some(quoted) => line.push_str(&quoted),
                None => line.push_str(&text),
            }
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// The text in quotes, if it needs them.
fn quoted(text: &str) -> Option<String> {
    let needed = text.is_empty() || text.contains([',', '"', '\n', '\r']);
    needed.then(|| format!("\"{}\"", text.replace('"', "\"\"")))
}
