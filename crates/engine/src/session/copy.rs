//! COPY FROM: a file into a table, as one commit.
//!
//! Law: all rows of the file or none. With `on_error = 'skip'`, rows that cannot be read are left out and counted; rows
//! that break a constraint of the table are an error all the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, Times};
use anabranch_sql::statement::CopyFrom;
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};

use super::commit::target;
use super::{Outcome, Session, SourceState, SourceStatus};
use crate::catalog::Object;
use crate::coerce::coerce;
use crate::connector::{Poll, SourceReader, SourceSpec};
use crate::error::Error;
use crate::nearest::nearest;

impl Session {
    pub(super) fn copy_from(&mut self, copy: &CopyFrom) -> Result<Outcome, Error> {
        let object = self.catalog.table(&copy.table)?.clone();
        let fields = copy_fields(&object, &copy.columns)?;
        let mut options: BTreeMap<String, String> = copy.options.iter().cloned().collect();
        options.insert("path".to_string(), copy.path.clone());
        let spec = SourceSpec { name: copy.table.clone(), columns: fields.clone(), options };
        let mut reader = self.connector("file")?.open(&spec)?;
        let rows = self.read_all(&object, &fields, reader.as_mut());
        self.publish_progress();
        let rows = rows?;
        let n_rows: usize = rows.iter().map(Batch::len).sum();
        self.write_checked(&copy.table, rows)?;
        let tag = format!("COPY {n_rows}");
        let progress = reader.progress();
        Ok(match (progress.skipped, progress.first_skipped) {
            (0, _) => Outcome::done(tag),
            (skipped, Some(first)) => {
                Outcome::done_with(tag, format!("{skipped} rows were skipped; the first: {first}"))
            }
            (skipped, None) => Outcome::done_with(tag, format!("{skipped} rows were skipped.")),
        })
    }

    fn read_all(
        &mut self,
        object: &Object,
        fields: &[Field],
        reader: &mut dyn SourceReader,
    ) -> Result<Vec<Batch>, Error> {
        let mut rows = Vec::new();
        let mut n_rows = 0;
        loop {
            self.interrupt.check()?;
            match reader.poll(self.settings.batch_rows_max)? {
                Poll::Rows(batch) => {
                    n_rows += batch.num_rows() as u64;
                    rows.push(self.fit_copied(object, fields, batch)?);
                    self.publish_copy(object, reader, n_rows);
                }
                Poll::Pending { retry_after } => std::thread::sleep(retry_after),
                Poll::Done => return Ok(rows),
            }
        }
    }

    /// The batch's columns, which stand for `fields`, as the table's.
    fn fit_copied(&self, object: &Object, fields: &[Field], batch: RecordBatch) -> Result<Batch, Error> {
        let n_rows = batch.num_rows();
        let named = match batch.num_columns() == fields.len() {
            true => {
                let given = batch.schema();
                let renamed = given
                    .fields()
                    .iter()
                    .zip(fields)
                    .map(|(given, field)| given.as_ref().clone().with_name(field.name()));
                let schema = Arc::new(Schema::new(renamed.collect::<Vec<_>>()));
                RecordBatch::try_new(schema, batch.columns().to_vec())?
            }
            false => batch,
        };
        let columns = coerce(target(object), &named, |idx, n_rows| self.default_column(object, idx, n_rows))?;
        Ok(Batch::with_len(columns.into(), n_rows, Times::Constant(0), Diffs::Constant(1)))
    }

    /// Shows other threads how far the copy is.
    fn publish_copy(&self, object: &Object, reader: &dyn SourceReader, rows: u64) {
        let mut statuses = self.pump.statuses();
        statuses.push(SourceStatus {
            name: object.name.clone(),
            rows,
            progress: reader.progress(),
            state: SourceState::Running,
            bounded: true,
            rate: None,
        });
        self.progress.publish(statuses);
    }
}

/// The columns that the file's stand for: those named, or all.
fn copy_fields(object: &Object, names: &[String]) -> Result<Vec<Field>, Error> {
    if names.is_empty() {
        return Ok(object.schema.fields().iter().map(|field| field.as_ref().clone()).collect());
    }
    let field = |name: &String| {
        object.schema.field_with_name(name).cloned().map_err(|_| {
            let error = Error::invalid(format!("column \"{name}\" of table \"{}\" does not exist", object.name));
            match nearest(name, object.schema.fields().iter().map(|field| field.name().as_str())) {
                Some(near) => error.with_hint(format!("Did you mean \"{near}\"?")),
                None => error,
            }
        })
    };
    names.iter().map(field).collect()
}
