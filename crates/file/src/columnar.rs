//! Parquet files.
//!
//! Law: rows come in file order; a declared column is found by name and cast to its type, a value
//! that does not fit is a fault with file, row, column and value; only the columns asked for are
//! read. Files must agree on their columns. Memory is bounded by one batch and the pages it needs.

use std::{
    collections::{BTreeSet, VecDeque},
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use anabranch_batch::{TextLimit, numeric, types};
use anabranch_engine::{Error, Poll, ReadProgress, SourceReader, nearest::nearest};
use anabranch_sql::input;
use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, new_null_array},
    compute::{CastOptions, cast_with_options, filter_record_batch},
    datatypes::{DataType, Field, Schema, SchemaRef},
    util::display::array_value_to_string,
};
use parquet::arrow::{
    ProjectionMask,
    arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder},
};

use crate::{
    delimited::distinct,
    faults::{Faults, OnError, invalid, malformed, unreadable},
    names::{column_type, quoted, type_name},
    options::FileOptions,
    position::{Position, changed},
};

/// Rows decoded at a time; smaller polls are served in slices.
const BATCH_ROWS: usize = 1 << 16;

/// See the module.
pub(crate) struct ParquetReader {
    files: VecDeque<PathBuf>,
    current: Option<Current>,
    schema: SchemaRef,
    /// For each column, its name in the files.
    members: Vec<String>,
    /// For each column, whether it is wanted. Others are NULL, and not read where every value fits.
    wanted: Vec<bool>,
    faults: Faults,
    rows: u64,
    /// Bytes of the files read to their end.
    bytes_done: u64,
    bytes_total: u64,
    /// Place among all files of the next one to open.
    next_idx: usize,
    /// Where reading goes on once the bad row that it stopped at is repaired: a row of the open
    /// file.
    stuck: Option<u64>,
}

/// The file being read.
struct Current {
    path: PathBuf,
    batches: ParquetRecordBatchReader,
    /// Decoded and not yet delivered.
    held: Option<RecordBatch>,
    /// For each column, its position in decoded batches; `None` for a column that is not read.
    positions: Vec<Option<usize>>,
    /// Rows taken out of `batches`, of how many.
    rows: u64,
    rows_total: u64,
    bytes: u64,
}

impl ParquetReader {
    pub(crate) fn open(
        files: Vec<PathBuf>,
        columns: &[Field],
        options: &FileOptions,
        from: Option<Position>,
    ) -> Result<ParquetReader, Error> {
        let mut bytes_total = 0;
        for path in &files {
            bytes_total += path.metadata().map_err(|e| unreadable(path, e))?.len();
        }
        let first = open_file(&files[0])?;
        let (fields, members) = if columns.is_empty() {
            discover(&files[0], first.schema())?
        } else {
            declare(&files[0], columns, first.schema())?
        };
        let mut reader = ParquetReader {
            files: files.into(),
            current: None,
            schema: Arc::new(Schema::new(fields)),
            wanted: vec![true; members.len()],
            members,
            faults: Faults::new(options.on_error),
            rows: 0,
            bytes_done: 0,
            bytes_total,
            next_idx: 0,
            stuck: None,
        };
        let Some(from) = from else {
            reader.next_file(0)?;
            return Ok(reader);
        };
        for path in reader.files.drain(..from.file_idx) {
            reader.bytes_done += path.metadata().map_err(|e| unreadable(&path, e))?.len();
        }
        (reader.next_idx, reader.rows, reader.faults.skipped) = (from.file_idx, from.rows, from.skipped);
        reader.next_file(from.at)?;
        match &reader.current {
            Some(current) if current.bytes != from.tail.0 || current.rows_total != from.tail.1 => {
                Err(changed(&from.path, "it has another size"))
            }
            _ => Ok(reader),
        }
    }

    /// Opens the next file, behind that many rows; `current` is `None` after the last.
    fn next_file(&mut self, n_before: u64) -> Result<(), Error> {
        if let Some(done) = self.current.take() {
            self.bytes_done += done.bytes;
        }
        let Some(path) = self.files.pop_front() else { return Ok(()) };
        let bytes = path.metadata().map_err(|e| unreadable(&path, e))?.len();
        let builder = open_file(&path)?;
        let mut roots = Vec::new();
        for member in &self.members {
            match builder.schema().index_of(member) {
                Ok(root) => roots.push(root),
                Err(_) => return Err(missing_column(&path, member, builder.schema())),
            }
        }
        // Decoded columns keep the file's order, whatever order they were asked for in.
        // A value that does not fit is a fault, whether it is wanted or not.
        let is_read = |(column, root): (usize, &usize)| {
            let is_needed = self.wanted[column] || may_fault(builder.schema().field(*root), self.schema.field(column));
            is_needed.then_some(*root)
        };
        let read: Vec<Option<usize>> = roots.iter().enumerate().map(is_read).collect();
        let mut decoded: Vec<usize> = read.iter().flatten().copied().collect();
        decoded.sort_unstable();
        decoded.dedup();
        let position = |root: usize| decoded.partition_point(|other| *other < root);
        let positions = read.iter().map(|root| root.map(position)).collect();
        let mask = ProjectionMask::roots(builder.parquet_schema(), decoded);
        let rows_total = builder.metadata().file_metadata().num_rows().max(0) as u64;
        let batches = builder
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS)
            .with_offset(n_before as usize)
            .build()
            .map_err(|problem| malformed(&path, problem))?;
        self.current = Some(Current { path, batches, held: None, positions, rows: n_before, rows_total, bytes });
        self.next_idx += 1;
        Ok(())
    }

    /// The file's columns as the source's, with rows that do not fit taken out.
    fn convert(&mut self, batch: &RecordBatch, first_row: u64) -> Result<Option<RecordBatch>, Error> {
        let current = self.current.as_ref().expect("a batch comes from an open file");
        let mut bad: Vec<(usize, usize)> = Vec::new();
        let mut columns = Vec::with_capacity(self.members.len());
        for (column, (field, &position)) in self.schema.fields().iter().zip(&current.positions).enumerate() {
            let Some(position) = position else {
                columns.push(new_null_array(field.data_type(), batch.num_rows()));
                continue;
            };
            let stored = batch.column(position);
            let array =
                convert_column(stored, field.data_type()).map_err(|problem| malformed(&current.path, problem))?;
            let array = match TextLimit::of(field) {
                Some(limit) => limit.fit_column(&array).0,
                None => array,
            };
            if array.null_count() > 0 && (array.null_count() > stored.null_count() || !field.is_nullable()) {
                let lost = (0..array.len())
                    .filter(|&row| array.is_null(row) && (!field.is_nullable() || stored.is_valid(row)));
                bad.extend(lost.map(|row| (row, column)));
            }
            columns.push(array);
        }
        if bad.is_empty() {
            return Ok(Some(RecordBatch::try_new(self.schema.clone(), columns)?));
        }
        bad.sort_unstable();
        bad.dedup_by_key(|(row, _)| *row);
        let mut keep = vec![true; batch.num_rows()];
        if self.faults.skips() {
            bad.iter().for_each(|(row, _)| keep[*row] = false);
        } else {
            keep[bad[0].0..].fill(false);
        }
        let mut faults = std::mem::replace(&mut self.faults, Faults::new(OnError::Fail));
        for (row, column) in bad {
            faults.note(|| self.describe(batch, first_row, row, column));
        }
        self.faults = faults;
        let nullable: Vec<Field> =
            self.schema.fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
        let all = RecordBatch::try_new(Arc::new(Schema::new(nullable)), columns)?;
        let kept = filter_record_batch(&all, &BooleanArray::from(keep))?;
        if kept.num_rows() == 0 {
            return Ok(None);
        }
        Ok(Some(RecordBatch::try_new(self.schema.clone(), kept.columns().to_vec())?))
    }

    fn describe(&self, batch: &RecordBatch, first_row: u64, row: usize, column: usize) -> String {
        let Some(current) = &self.current else { return String::new() };
        let field = self.schema.field(column);
        let place =
            format!("{}, row {}, column \"{}\"", current.path.display(), first_row + row as u64 + 1, field.name());
        let Some(position) = current.positions[column] else { return place };
        let stored = batch.column(position);
        if stored.is_null(row) {
            return format!("{place}: NULL, where the column is NOT NULL");
        }
        let shown = array_value_to_string(stored, row).unwrap_or_default();
        format!("{place}: {} is not of type {}", quoted(&shown), column_type(field))
    }
}

/// Opens a file so that texts are decoded as views.
fn open_file(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>, Error> {
    let file = File::open(path).map_err(|e| unreadable(path, e))?;
    let damaged = |problem: parquet::errors::ParquetError| {
        let error = malformed(path, format!("its Parquet footer cannot be read: {}", clean(&problem.to_string())));
        error.with_hint("The file may be cut short, or it is not a Parquet file.")
    };
    let plain = ParquetRecordBatchReaderBuilder::try_new(file).map_err(damaged)?;
    let views: Vec<Field> = plain
        .schema()
        .fields()
        .iter()
        .map(|field| {
            let data_type = match field.data_type() {
                DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
                DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
                other => other.clone(),
            };
            field.as_ref().clone().with_data_type(data_type)
        })
        .collect();
    let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(views)));
    let file = File::open(path).map_err(|e| unreadable(path, e))?;
    ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).map_err(damaged)
}

/// Parquet's messages repeat their kind in front.
fn clean(problem: &str) -> &str {
    problem.strip_prefix("Parquet error: ").unwrap_or(problem)
}

/// Every column that the engine can store, under lower-case names.
fn discover(path: &Path, found: &Schema) -> Result<(Vec<Field>, Vec<String>), Error> {
    let members: Vec<String> = found.fields().iter().map(|field| field.name().clone()).collect();
    let names = distinct(members.iter().map(|name| name.to_lowercase()));
    let mut fields = Vec::new();
    for (field, name) in found.fields().iter().zip(names) {
        let data_type = types::planned_type(field.data_type());
        if types::check(&data_type).is_err() {
            return Err(invalid(format!(
                "column \"{name}\" of file {} has type {data_type}, which is not supported",
                path.display()
            ))
            .with_hint("Declare the columns you need and leave this one out."));
        }
        fields.push(Field::new(name, data_type, true));
    }
    Ok((fields, members))
}

/// Declared columns and where they are: by exact name, else whatever the case.
fn declare(path: &Path, columns: &[Field], found: &Schema) -> Result<(Vec<Field>, Vec<String>), Error> {
    let mut members = Vec::new();
    for column in columns {
        let exact = found.fields().iter().find(|field| field.name() == column.name());
        let folded = found.fields().iter().find(|field| field.name().to_lowercase() == column.name().to_lowercase());
        let Some(field) = exact.or(folded) else { return Err(missing_column(path, column.name(), found)) };
        if !input::can_convert(field.data_type(), column.data_type()) {
            return Err(invalid(format!(
                "column \"{}\" is declared as {}, but file {} holds {}",
                column.name(),
                type_name(column.data_type()),
                path.display(),
                type_name(field.data_type())
            )));
        }
        members.push(field.name().clone());
    }
    Ok((columns.to_vec(), members))
}

fn missing_column(path: &Path, column: &str, found: &Schema) -> Error {
    let names: Vec<&str> = found.fields().iter().map(|field| field.name().as_str()).collect();
    let error = invalid(format!("file {} has no column \"{column}\"", path.display()))
        .with_detail(format!("Its columns are: {}.", names.join(", ")));
    match nearest(column, names.iter().copied()) {
        Some(near) => error.with_hint(format!("Did you mean \"{near}\"?")),
        None => error,
    }
}

/// Whether a stored value may be no value of the column.
fn may_fault(stored: &Field, column: &Field) -> bool {
    !column.is_nullable()
        || TextLimit::of(column).is_some_and(|limit| !limit.takes_all())
        || types::planned_type(stored.data_type()) != *column.data_type()
}

/// A cast in which values that do not fit become NULL.
fn convert_column(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, arrow::error::ArrowError> {
    if array.data_type() == data_type {
        return Ok(array.clone());
    }
    if *data_type == numeric::TYPE {
        return Ok(numbers(array));
    }
    cast_with_options(array, data_type, &CastOptions { safe: true, ..Default::default() })
}

/// Plain numerics of numbers, or of texts.
fn numbers(array: &ArrayRef) -> ArrayRef {
    numeric::encoded(array).unwrap_or_else(|| {
        let texts =
            arrow::compute::cast(array, &DataType::Utf8View).expect("texts were asked for when the file was opened");
        let mut numbers = numeric::Builder::with_capacity(texts.len());
        for text in texts.as_string_view() {
            numbers.append(text.and_then(|text| numeric::parse(text).ok()).as_ref());
        }
        numbers.finish()
    })
}

impl SourceReader for ParquetReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn narrow(&mut self, columns: &BTreeSet<usize>) -> Result<(), Error> {
        // (At least one column is read: it tells how many rows there are.)
        let is_wanted = |column: usize| columns.contains(&column) || (columns.is_empty() && column == 0);
        self.wanted = (0..self.members.len()).map(is_wanted).collect();
        let Some(current) = self.current.take() else { return Ok(()) };
        self.files.push_front(current.path);
        self.next_idx -= 1;
        self.next_file(current.rows)
    }

    fn poll(&mut self, rows_max: usize) -> Result<Poll, Error> {
        let rows_max = rows_max.max(1);
        while let Some(current) = &mut self.current {
            self.faults.check()?;
            let whole = match current.held.take() {
                Some(held) => held,
                None => match current.batches.next() {
                    Some(Ok(batch)) => batch,
                    Some(Err(problem)) => {
                        let problem = clean(&problem.to_string()).to_string();
                        return Err(malformed(&current.path, format!("after row {}: {problem}", current.rows)));
                    }
                    None => {
                        self.next_file(0)?;
                        continue;
                    }
                },
            };
            let batch = whole.slice(0, whole.num_rows().min(rows_max));
            if batch.num_rows() < whole.num_rows() {
                current.held = Some(whole.slice(batch.num_rows(), whole.num_rows() - batch.num_rows()));
            }
            let first_row = current.rows;
            current.rows += batch.num_rows() as u64;
            let given = self.convert(&batch, first_row)?;
            if self.faults.failed() {
                self.stuck = Some(first_row + given.as_ref().map_or(0, RecordBatch::num_rows) as u64);
            }
            if let Some(batch) = given {
                self.rows += batch.num_rows() as u64;
                return Ok(Poll::Rows(batch));
            }
        }
        self.faults.check()?;
        Ok(Poll::Done)
    }

    fn position(&self) -> Option<String> {
        let current = self.current.as_ref()?;
        let position = Position {
            file_idx: self.next_idx - 1,
            path: current.path.clone(),
            at: self.stuck.unwrap_or(current.rows),
            rows: self.rows,
            skipped: self.faults.skipped,
            tail: (current.bytes, current.rows_total),
            ..Position::default()
        };
        Some(position.to_text())
    }

    fn progress(&self) -> ReadProgress {
        let share = |current: &Current| match current.rows_total {
            0 => current.bytes,
            total => (current.bytes as u128 * u128::from(current.rows.min(total)) / u128::from(total)) as u64,
        };
        ReadProgress {
            bytes_read: self.bytes_done + self.current.as_ref().map_or(0, share),
            bytes_total: Some(self.bytes_total),
            rows: self.rows,
            skipped: self.faults.skipped,
            first_skipped: self.faults.first.clone(),
        }
    }
}
