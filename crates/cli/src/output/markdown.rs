//! Markdown tables (GitHub's form). Bars and line ends in values are escaped, so that a row stays a
//! row.

use std::io::{self, Write};

use anabranch_engine::Rows;
use arrow::{
    array::{ArrayRef, RecordBatch},
    datatypes::Schema,
};

use anabranch_sql::output::{Printer, is_null, is_number_field, printers};

pub(super) fn write(out: &mut dyn Write, rows: &Rows) -> io::Result<()> {
    write_names(out, &rows.schema)?;
    rows.batches.iter().try_for_each(|batch| write_batch(out, batch))
}

pub(super) fn write_part(out: &mut dyn Write, batch: &RecordBatch, first: bool) -> io::Result<()> {
    if first {
        write_names(out, &batch.schema())?;
    }
    write_batch(out, batch)
}

fn write_names(out: &mut dyn Write, schema: &Schema) -> io::Result<()> {
    let names: Vec<String> = schema.fields().iter().map(|field| escape(field.name())).collect();
    let rule = |numeric: bool| if numeric { "---:" } else { "---" };
    let rules: Vec<&str> = schema.fields().iter().map(|field| rule(is_number_field(field))).collect();
    writeln!(out, "| {} |\n|{}|", names.join(" | "), rules.join("|"))
}

fn write_batch(out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
    let printers = printers(batch.columns());
    for row in 0..batch.num_rows() {
        let cell = |(array, print): &(&ArrayRef, Printer<'_>)| {
            let mut text = String::new();
            if is_null(array, row) {
                text.push_str("NULL");
            } else {
                print(row, &mut text);
            }
            escape(&text)
        };
        let cells: Vec<String> = printers.iter().map(cell).collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    Ok(())
}

fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace("\r\n", "<br>").replace('\n', "<br>")
}
