//! Values alone: no names, a tab between columns, nothing for NULL. For pipes, as `psql -At`.

use std::io::{self, Write};

use anabranch_sql::output::{is_null, printers};
use arrow::array::RecordBatch;

pub(super) fn write_batch(out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
    let printers = printers(batch.columns());
    let mut line = String::new();
    for row in 0..batch.num_rows() {
        line.clear();
        for (at, (column, print)) in printers.iter().enumerate() {
            if at > 0 {
                line.push('\t');
            }
            if !is_null(column, row) {
                print(row, &mut line);
            }
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
}
