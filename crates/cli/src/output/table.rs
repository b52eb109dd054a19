//! Aligned columns, as psql draws them: numbers to the right, everything else to the left.
//!
//! Law: a number is shown whole or not at all. A table that is wider than its room shortens texts
//! (`…` ends a shortened text), then leaves columns out at the right, and says so.

use std::io::{self, Write};

use anabranch_engine::Rows;
use arrow::{array::RecordBatch, datatypes::Schema};

use anabranch_sql::output::{is_null, is_number_field, printers};

use super::{
    Layout, NULL,
    text::{shortened, width},
};

/// Places that a shortened text keeps.
const TEXT_MIN: usize = 8;
/// Places between two columns: ` | `.
const GAP: usize = 3;

/// A whole answer with its count. Rows beyond the layout's limit are left out with a note.
pub(super) fn write(out: &mut dyn Write, rows: &Rows, layout: &Layout) -> io::Result<()> {
    let columns = write_body(out, rows, layout)?;
    writeln!(out, "({})", count(rows, layout, columns))
}

/// An answer without its count. Returns how many columns are shown.
pub(super) fn write_body(out: &mut dyn Write, rows: &Rows, layout: &Layout) -> io::Result<usize> {
    let parts = first_cells(rows, layout);
    let mut widths = Vec::new();
    widen_names(&mut widths, &rows.schema);
    parts.iter().for_each(|part| widen(&mut widths, part));
    if let Some(room) = layout.width {
        fit(&mut widths, &rows.schema, room);
    }
    if layout.has_names {
        write_names(out, &rows.schema, &widths)?;
    }
    for part in &parts {
        write_cells(out, part, &rows.schema, &widths)?;
    }
    Ok(widths.len())
}

/// The cells of the first rows of an answer, by batch.
pub(super) fn first_cells(rows: &Rows, layout: &Layout) -> Vec<Vec<Vec<String>>> {
    let mut left = layout.rows_max;
    let part = |batch: &RecordBatch| {
        let count = batch.num_rows().min(left);
        left -= count;
        cells(batch, count, &layout.null)
    };
    rows.batches.iter().map(part).collect()
}

/// `3 rows`, and how to see what is left out.
pub(super) fn count(rows: &Rows, layout: &Layout, columns: usize) -> String {
    let total = rows.num_rows();
    let mut text = format!("{total} {}", if total == 1 { "row" } else { "rows" });
    if total > layout.rows_max {
        text.push_str(&format!(", the first {} shown; .maxrows N shows more", layout.rows_max));
    }
    let all = rows.schema.fields().len();
    if columns < all {
        text.push_str(&format!(", {columns} of {all} columns shown; \\x shows all"));
    }
    text
}

/// Makes widths smaller until a line takes `room` places: of texts first, the widest first, down to
/// [`TEXT_MIN`]; then columns are left out from the right. One column stays, however wide.
fn fit(widths: &mut Vec<usize>, schema: &Schema, room: usize) {
    let is_text: Vec<bool> = schema.fields().iter().map(|field| !is_number_field(field)).collect();
    for columns in (1..=widths.len()).rev() {
        let mut fitted = widths[..columns].to_vec();
        if shorten(&mut fitted, &is_text, room) || columns == 1 {
            *widths = fitted;
            return;
        }
    }
}

/// Shortens texts until a line takes `room` places. Returns whether it does.
fn shorten(widths: &mut [usize], is_text: &[bool], room: usize) -> bool {
    let line = |widths: &[usize]| widths.iter().map(|width| width + GAP).sum::<usize>().saturating_sub(GAP - 1);
    while line(widths) > room {
        let texts = (0..widths.len()).filter(|column| is_text[*column] && widths[*column] > TEXT_MIN);
        let Some(widest) = texts.max_by_key(|column| widths[*column]) else { return false };
        widths[widest] -= 1;
    }
    true
}

/// Some rows of a table that goes on; `widths` are kept from part to part.
pub(super) fn write_part(
    out: &mut dyn Write,
    batch: &RecordBatch,
    widths: &mut Vec<usize>,
    first: bool,
) -> io::Result<()> {
    let schema = batch.schema();
    let part = cells(batch, batch.num_rows(), NULL);
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
fn cells(batch: &RecordBatch, count: usize, null: &str) -> Vec<Vec<String>> {
    let printers = printers(batch.columns());
    let cell = |row: usize| {
        printers.iter().map(move |(array, print)| {
            let mut text = String::new();
            if is_null(array, row) {
                text.push_str(null);
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
    let right: Vec<bool> = schema.fields().iter().map(|field| is_number_field(field)).collect();
    let mut line = String::new();
    for row in rows {
        line.clear();
        // Columns beyond the widths do not fit.
        for (i, (cell, room)) in row.iter().zip(widths).enumerate() {
            line.push_str(if i == 0 { " " } else { " | " });
            let cell = &shortened(cell, *room);
            let padding = " ".repeat(room.saturating_sub(width(cell)));
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, StringArray};

    use super::*;

    fn rows() -> Rows {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("name", Arc::new(StringArray::from(vec!["a name that is rather long"]))),
            ("late", Arc::new(Float64Array::from(vec![9.6]))),
            ("miles", Arc::new(Float64Array::from(vec![123456.25]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        Rows::from(batch)
    }

    fn shown(width: usize) -> String {
        let mut out = Vec::new();
        write(&mut out, &rows(), &Layout { width: Some(width), ..Layout::default() }).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_narrow_table_shortens_texts_and_leaves_columns_out_but_never_digits() {
        assert!(shown(60).contains(" a name that is rather long |  9.6 | 123456.25\n(1 row)"), "{}", shown(60));
        assert!(shown(40).contains(" a name that is rath… |  9.6 | 123456.25\n(1 row)"), "{}", shown(40));
        let narrow = shown(20);
        assert!(narrow.contains(" a name that… |  9.6\n(1 row, 2 of 3 columns shown; \\x shows all)"), "{narrow}");
        for room in 0..60 {
            let shown = shown(room);
            let row = shown.lines().nth(2).unwrap();
            let numbers = row.split(" | ").skip(1).map(|cell| cell.trim().to_string());
            assert!(numbers.clone().all(|number| number == "9.6" || number == "123456.25"), "{row}");
            assert!(width(row) <= room.max(TEXT_MIN + 1), "{room}: {row}");
        }
    }
}
