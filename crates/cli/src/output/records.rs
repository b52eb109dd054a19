//! Expanded tables, as psql's `\\x` draws them: one block a row, one line a column.

use std::io::{self, Write};

use anabranch_engine::Rows;

use super::{Layout, table, text::width};

/// A whole answer with its count.
pub(super) fn write(out: &mut dyn Write, rows: &Rows, layout: &Layout) -> io::Result<()> {
    let names: Vec<&str> = rows.schema.fields().iter().map(|field| field.name().as_str()).collect();
    let widest = names.iter().map(|name| width(name)).max().unwrap_or(0);
    let parts = table::first_cells(rows, layout);
    for (number, row) in parts.iter().flatten().enumerate() {
        let title = format!("-[ RECORD {} ]", number + 1);
        writeln!(out, "{title:-<0$}+----", (widest + 1).max(title.len()))?;
        for (name, cell) in names.iter().zip(row) {
            let padding = " ".repeat(widest - width(name));
            writeln!(out, "{}", format!("{name}{padding} | {cell}").trim_end())?;
        }
    }
    writeln!(out, "({})", table::count(rows, layout, names.len()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, RecordBatch, StringArray};

    use super::*;

    #[test]
    fn each_row_is_a_block() {
        let batch = RecordBatch::try_from_iter([
            ("id", Arc::new(Int64Array::from(vec![1, 2])) as _),
            ("a_longer_name", Arc::new(StringArray::from(vec![Some("x"), None])) as _),
        ])
        .unwrap();
        let rows = Rows::from(batch);
        let mut out = Vec::new();
        write(&mut out, &rows, &Layout::default()).unwrap();
        let expected = "-[ RECORD 1 ]-+----\nid            | 1\na_longer_name | x\n\
                        -[ RECORD 2 ]-+----\nid            | 2\na_longer_name | NULL\n(2 rows)\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
