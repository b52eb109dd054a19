//! Rows as Parquet files, for peers that are other programs.

use std::fs::File;
use std::path::Path;

use arrow::array::RecordBatch;
use parquet::arrow::ArrowWriter;

/// Writes batches of one schema.
///
/// # Errors
/// When there is no batch, or the file cannot be written.
pub fn write(path: &Path, batches: impl IntoIterator<Item = RecordBatch>) -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| format!("cannot write {}: {error}", path.display());
    let mut batches = batches.into_iter().peekable();
    let Some(first) = batches.peek() else { return Err(fail(&"there are no rows")) };
    let file = File::create(path).map_err(|error| fail(&error))?;
    let mut writer = ArrowWriter::try_new(file, first.schema(), None).map_err(|error| fail(&error))?;
    for batch in batches {
        writer.write(&batch).map_err(|error| fail(&error))?;
    }
    writer.close().map_err(|error| fail(&error))?;
    Ok(())
}
