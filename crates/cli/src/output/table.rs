//! Aligned columns, as psql draws them: numbers to the right, everything else to the left.

use std::io::{self, Write};

use anabranch_engine::Rows;
use arrow::{array::RecordBatch, datatypes::Schema};

use anabranch_sql::output::{is_null, is_number, printers};

/// How NULL is shown.
const NULL: &str = "NULL";

/// A whole answer with its count; rows beyond `rows_max` are left out with a note.
pub(super) fn write(out: &mut dyn Write, rows: &Rows, rows_max: usize) -> io::Result<()> {
    let total = rows.num_rows();
    let mut left = total.min(rows_max);
    let mut parts = Vec::new();
    for batch in &rows.batches {
        let count = batch.num_rows().min(left);
        left -= count;
        parts.push(cells(batch, count));
    }
    let mut widths = Vec::new();
    widen_names(&mut widths, &rows.schema);
    parts.iter().for_each(|part| widen(&mut widths, part));
    write_names(out, &rows.schema, &widths)?;
    for part in &parts {
        write_cells(out, part, &rows.schema, &widths)?;
    }
    let noun = if total == 1 { "row" } else { "rows" };
    if total > rows_max {
        writeln!(out, "({total} {noun}, the first {rows_max} shown; .maxrows N shows more)")
    } else {
        writeln!(out, "({total} {noun})")
    }
}

/// Some rows of a table that goes on; `widths` are kept from part to part.
pub(super) fn write_part(
    out: &mut dyn Write,
    batch: &RecordBatch,
    widths: &mut Vec<usize>,
    first: bool,
) -> io::Result<()> {
    let schema = batch.schema();
    let part = cells(batch, batch.num_rows());
    if first {
        widen_names(widths, &schema);
    }
    widen(widths, &part);
    if first {
        write_names(out, &schema, widths)?;
    }
    write_cells(out, &part, &schema, widths)
}

/// The first `count` rows as text, row by row.
fn cells(batch: &RecordBatch, count: usize) -> Vec<Vec<String>> {
    let printers = printers(batch.columns());
    let cell = |row: usize| {
        printers.iter().map(move |(array, print)| {
            let mut text = String::new();
            if is_null(array, row) {
                text.push_str(NULL);
            } else {
                print(row, &mut text);
            }
            if text.contains(|c: char| c.is_control()) {
                text.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\"")
            } else {
                text
            }
        })
    };
    (0..count).map(|row| cell(row).collect()).collect()
}

fn widen_names(widths: &mut Vec<usize>, schema: &Schema) {
    *widths = schema.fields().iter().map(|field| width(field.name())).collect();
}

fn widen(widths: &mut [usize], rows: &[Vec<String>]) {
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(cell));
        }
    }
}

fn write_names(out: &mut dyn Write, schema: &Schema, widths: &[usize]) -> io::Result<()> {
    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    write_cells(out, &[names], schema, widths)?;
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    writeln!(out, "{}", rules.join("+"))
}

fn write_cells(out: &mut dyn Write, rows: &[Vec<String>], schema: &Schema, widths: &[usize]) -> io::Result<()> {
    let right: Vec<bool> = schema.fields().iter().map(|field| is_number(field.data_type())).collect();
    let mut line = String::new();
    for row in rows {
        line.clear();
        for (i, cell) in row.iter().enumerate() {
            line.push_str(if i == 0 { " " } else { " | " });
            let padding = " ".repeat(widths[i].saturating_sub(width(cell)));
            if right[i] {
                line.push_str(&padding);
            }
            line.push_str(cell);
            if !right[i] {
                line.push_str(&padding);
            }
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Places a text takes on a terminal: none for combining marks, two for East Asian wide characters and emoji.
pub(crate) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(width_of).sum() }
}

fn width_of(c: char) -> usize {
    match c as u32 {
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f | 0x20d0..=0x20ff => 0,
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0x33ff
        | 0x3400..=0x4dbf
        | 0x4e00..=0x9fff
        | 0xa000..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe4f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_count_places_not_bytes() {
        assert_eq!(width("abc"), 3);
        assert_eq!(width("é"), 1);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(width("日本"), 4);
    }
}
