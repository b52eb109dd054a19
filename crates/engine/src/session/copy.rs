//! COPY FROM: a file into a table, as one commit.
//!
//! Law: all rows of the file or none. With `on_error = 'skip'`, rows that cannot be read are left
//! out and counted; rows that break a constraint of the table are an error all the same.
//!
//! Rows are read, checked and set aside block by block (`spool`), and only when the last one is
//! good do they enter the table. Memory: the spool's limit, one block, and eight bytes a row of a
//! table with a primary key. Keys that occur in several blocks are found by their hashes; then the
//! spool is read once more, to compare these keys themselves.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, Times};
use anabranch_plan::Plan;
use anabranch_sql::statement::{CopyEnd, CopyFrom};
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};

use super::commit::target;
use super::copied_keys::line_of;
use super::keys::SeenKeys;
use super::outcome::{Outcome, SourceState, SourceStatus};
use super::state::Session;
use crate::catalog::{Arrival, Object};
use crate::coerce::coerce;
use crate::connector::{Poll, ReadProgress, SourceReader, SourceSpec};
use crate::copy::lines::Lines;
use crate::error::{Error, of_file};
use crate::nearest::nearest;
use crate::spool::Spool;

/// Rows of a file that are not in the table yet.
struct UnwrittenRows {
    spool: Spool,
    keys: SeenKeys,
    /// What rows must fulfil.
    condition: Option<Arc<Plan>>,
    /// How many rows were read, those included that did not pass.
    n_read: usize,
    /// The rows of the spool among those that were read.
    places: Lines,
}

/// Refuses to wait for a file that has no end.
pub(super) fn refuse_follow(options: &BTreeMap<String, String>, reads: &str) -> Result<(), Error> {
    if !options.contains_key("follow") {
        return Ok(());
    }
    Err(Error::invalid(format!("{reads} reads a file once: the option \"follow\" belongs to CREATE SOURCE"))
        .with_sqlstate("0A000")
        .with_hint("CREATE SOURCE name WITH (connector = 'file', path = .., follow = true) reads what is added."))
}

impl Session {
    pub(super) fn copy_from(&mut self, copy: &CopyFrom) -> Result<Outcome, Error> {
        let CopyEnd::Path(path) = &copy.from else { return self.begin_copy_in(copy) };
        check_file(path)?;
        let object = self.catalog.table(&copy.table)?.clone();
        let fields = copy_fields(&object, &copy.columns)?;
        let mut options: BTreeMap<String, String> = copy.options.plain.iter().cloned().collect();
        options.insert("path".to_string(), path.clone());
        refuse_follow(&options, "COPY")?;
        let spec = SourceSpec { name: copy.table.clone(), columns: fields.clone(), options };
        if let Some((decoded, files)) = self.decoded(copy, path, &spec)? {
            return self.copy_files(&decoded, &files, &object);
        }
        let mut reader = self.connector("file")?.open(&spec)?;
        let spool = self.keeping_watermark(&copy.table, |session| {
            let mut rows = UnwrittenRows {
                spool: Spool::new(&session.options.temporary_folder, session.options.copy_bytes_max),
                keys: SeenKeys::of(session.unique_keys(&object)),
                condition: session.plan_copied(copy)?,
                n_read: 0,
                places: Lines::default(),
            };
            let read = session.read_all(&object, &fields, reader.as_mut(), &mut rows);
            session.publish_progress();
            if let Err(error) = read {
                return Err(session.with_line(&object, &spec, &mut rows, error));
            }
            let mut spool = rows.spool;
            session.commit_spool(&copy.table, &mut spool)?;
            Ok(spool)
        })?;
        let tag = format!("COPY {}", spool.n_rows());
        let progress = reader.progress();
        Ok(match (progress.skipped, progress.first_skipped) {
            (0, _) => Outcome::done(tag),
            (skipped, Some(first)) => {
                Outcome::done_with(tag, format!("{skipped} rows were skipped; the first: {first}"))
            }
            (skipped, None) => Outcome::done_with(tag, format!("{skipped} rows were skipped.")),
        })
    }

    /// Reads all rows of the reader, and checks them.
    fn read_all(
        &mut self,
        object: &Object,
        fields: &[Field],
        reader: &mut dyn SourceReader,
        rows: &mut UnwrittenRows,
    ) -> Result<(), Error> {
        let UnwrittenRows { spool, keys, condition, n_read, places } = rows;
        loop {
            self.interrupt.check()?;
            match reader.poll(self.settings.batch_rows_max)? {
                Poll::Rows(batch) => {
                    let n_rows = batch.num_rows();
                    let copied = self.fit_passing(object, fields, condition.as_ref(), batch)?;
                    places.add(spool.n_rows(), &copied.numbers(*n_read));
                    *n_read += n_rows;
                    let batch = copied.rows;
                    let batch = self.admit(&object.name, batch, Arrival::InOrder)?;
                    let checked = self.check_keys(object, std::slice::from_ref(&batch));
                    keys.add(&batch);
                    spool.push(batch)?;
                    checked?;
                    self.publish_copy(object, reader.progress(), spool.n_rows() as u64);
                }
                Poll::Pending { retry_after } => std::thread::sleep(retry_after),
                Poll::Done => break,
            }
        }
        keys.check_repeated(object, self.unique_keys(object), spool)?;
        self.check_copied_refer(object, spool)
    }

    /// The error of a key that is taken, with the line of its row.
    fn with_line(&mut self, object: &Object, spec: &SourceSpec, rows: &mut UnwrittenRows, error: Error) -> Error {
        // (Rows that come too late were left out of the spool.)
        if object.watermark.is_some() {
            return error;
        }
        let Ok(Some((row, taken))) = self.first_taken(object, &rows.keys, &mut rows.spool, &error) else {
            return error;
        };
        match self.line_of_row(spec, rows.places.of(row) as usize - 1) {
            Ok(Some(line)) => taken.with_context(line_of(&object.name, line)),
            _ => taken,
        }
    }

    /// The line of a row of a file, which is read once more.
    fn line_of_row(&self, spec: &SourceSpec, row: usize) -> Result<Option<u64>, Error> {
        let mut reader = self.connector("file")?.open(spec)?;
        let mut n_left = row;
        loop {
            self.interrupt.check()?;
            match reader.poll(n_left.clamp(1, self.settings.batch_rows_max))? {
                Poll::Rows(_) if n_left == 0 => return Ok(reader.line()),
                Poll::Rows(batch) => n_left = n_left.saturating_sub(batch.num_rows()),
                Poll::Pending { retry_after } => std::thread::sleep(retry_after),
                Poll::Done => return Ok(None),
            }
        }
    }

    /// Puts the rows into the table as one commit. If they cannot be read back, none of them is.
    fn commit_spool(&mut self, table: &str, spool: &mut Spool) -> Result<(), Error> {
        if self.client.transaction.is_some() {
            return spool.each(|batch| self.stage(table, batch));
        }
        let time = self.begin_commit();
        let staged = spool.each(|batch| self.push(table, batch.with_times(Times::Constant(time))));
        if let Err(error) = staged {
            self.abandon_commit();
            return Err(error);
        }
        self.commit()?;
        Ok(())
    }

    /// The batch's columns, which stand for `fields`, as the table's.
    pub(super) fn fit_copied(&self, object: &Object, fields: &[Field], batch: RecordBatch) -> Result<Batch, Error> {
        let n_rows = batch.num_rows();
        let named = named(fields, batch)?;
        let columns = coerce(target(object), &named, |idx, n_rows| self.default_column(object, idx, n_rows))?;
        let columns = self.complete_columns(object, columns, n_rows)?;
        Ok(Batch::with_len(columns.into(), n_rows, Times::Constant(0), Diffs::Constant(1)))
    }

    /// Shows other threads how far the copy is.
    pub(super) fn publish_copy(&self, object: &Object, progress: ReadProgress, rows: u64) {
        let mut statuses = self.pump.statuses();
        statuses.push(SourceStatus {
            name: object.name.clone(),
            rows,
            progress,
            state: SourceState::Running,
            bounded: true,
            rate: None,
        });
        self.progress.publish(statuses);
    }
}

/// A block whose columns are named as the table's, which they stand for.
pub(super) fn named(fields: &[Field], block: RecordBatch) -> Result<RecordBatch, Error> {
    if block.num_columns() != fields.len() {
        return Ok(block);
    }
    let given = block.schema();
    let renamed =
        given.fields().iter().zip(fields).map(|(given, field)| given.as_ref().clone().with_name(field.name()));
    Ok(RecordBatch::try_new(Arc::new(Schema::new(renamed.collect::<Vec<_>>())), block.columns().to_vec())?)
}

/// Refuses what is neither a file nor a folder: the engine would wait until a pipe is written to.
/// A file that may not be read is refused, too.
fn check_file(path: &str) -> Result<(), Error> {
    let place = Path::new(path);
    if place.is_file() {
        return File::open(place).map(|_| ()).map_err(|error| of_file(path, "read", &error));
    }
    if !place.exists() || place.is_dir() {
        return Ok(());
    }
    Err(Error::invalid(format!("\"{path}\" is no regular file"))
        .with_sqlstate("42809")
        .with_detail("All others would wait until a pipe is written to.")
        .with_hint("COPY .. FROM STDIN reads a pipe: psql -c \"COPY t FROM STDIN\" < pipe."))
}

/// The columns that a COPY of a table reads or writes: those named, or all that are not generated.
///
/// # Errors
/// `Invalid` for a column that is not there, is generated, or is named twice.
pub(super) fn copy_fields(object: &Object, names: &[String]) -> Result<Vec<Field>, Error> {
    let generated = object.rules.computed();
    if names.is_empty() {
        let fields = object.schema.fields().iter().enumerate();
        let given = fields.filter(|(place, _)| !generated.contains(place));
        return Ok(given.map(|(_, field)| field.as_ref().clone()).collect());
    }
    let mut fields: Vec<Field> = Vec::with_capacity(names.len());
    for name in names {
        let Ok(place) = object.schema.index_of(name) else { return Err(no_column(object, name)) };
        if generated.contains(&place) {
            return Err(Error::invalid(format!("column \"{name}\" is a generated column"))
                .with_sqlstate("42P10")
                .with_detail("Generated columns cannot be used in COPY."));
        }
        if fields.iter().any(|field| field.name() == name) {
            return Err(Error::invalid(format!("column \"{name}\" specified more than once")).with_sqlstate("42701"));
        }
        fields.push(object.schema.field(place).clone());
    }
    Ok(fields)
}

fn no_column(object: &Object, name: &str) -> Error {
    let error =
        Error::invalid(format!("column \"{name}\" of table \"{}\" does not exist", object.name)).with_sqlstate("42703");
    match nearest(name, object.schema.fields().iter().map(|field| field.name().as_str())) {
        Some(near) => error.with_hint(format!("Did you mean \"{near}\"?")),
        None => error,
    }
}
