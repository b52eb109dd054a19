//! Polls delimited files into record batches.
//!
//! Law: of one poll the rows come from one file, in its order. Under `on_error = fail` the rows
//! before the first bad record are delivered, and the poll after that fails. Under `skip` a quote
//! left open costs the line it opens on, not the rest of the file.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anabranch_engine::{Error, Poll, ReadProgress, SourceReader, nearest::nearest};
use arrow::{
    array::{ArrayRef, BooleanArray, RecordBatch},
    compute::filter_record_batch,
    datatypes::{Field, Schema, SchemaRef},
};

use super::{
    column::{Bad, Cells, content, is_readable},
    discover,
    split::{Dialect, Records, SplitForm, Stop},
};
use crate::{
    faults::{Faults, invalid, malformed},
    names::{column_type, quoted, type_name},
    options::{FileFormat, FileOptions, unpacked_ending},
    position::{Position, without_given},
    window::{FileWindow, RECORD_BYTES_MAX, count_lines},
};

/// See the module.
pub(crate) struct DelimitedReader {
    window: FileWindow,
    schema: SchemaRef,
    dialect: Dialect,
    /// What the options say; `None`: look at each file.
    header: Option<bool>,
    null: String,
    /// Position in a record of each column, for the open file.
    positions: Vec<usize>,
    /// Cells of a whole record of the open file.
    width: usize,
    /// Whether the open file has a first record: until then nothing is known of its header.
    has_started: bool,
    faults: Faults,
    rows: u64,
    /// Rows that another reader gave before.
    to_skip: u64,
    /// Where reading goes on once the bad row that it stopped at is repaired.
    stuck: Option<Position>,
    /// The line of the first record of the last poll.
    line: Option<u64>,
    /// Kept for its allocations.
    records: Records,
}

impl DelimitedReader {
    /// Opens the first file, finds the columns if none are declared, and reads its header.
    pub(crate) fn open(
        files: Vec<PathBuf>,
        format: FileFormat,
        columns: &[Field],
        options: &FileOptions,
        from: Option<Position>,
    ) -> Result<Self, Error> {
        let tabs = unpacked_ending(&files[0]).is_some_and(|ending| ending == "tsv");
        let dialect = match format {
            FileFormat::Tbl => Dialect {
                delimiter: options.delimiter.unwrap_or(b'|'),
                quote: options.quote.unwrap_or(None),
                trailing: true,
            },
            _ => Dialect {
                delimiter: options.delimiter.unwrap_or(if tabs { b'\t' } else { b',' }),
                quote: options.quote.unwrap_or(Some(b'"')),
                trailing: false,
            },
        };
        check_columns(columns)?;
        let header = if format == FileFormat::Tbl { Some(options.header.unwrap_or(false)) } else { options.header };
        let mut reader = DelimitedReader {
            window: FileWindow::new(&files)?,
            schema: Arc::new(Schema::new(columns.to_vec())),
            dialect,
            header,
            null: options.null.clone(),
            positions: Vec::new(),
            width: 0,
            has_started: false,
            faults: Faults::new(options.on_error),
            rows: 0,
            to_skip: 0,
            line: None,
            stuck: None,
            records: Records::default(),
        };
        if options.follow {
            reader.window = reader.window.growing();
        }
        if let Some(from) = &from {
            reader.window.skip_files(from)?;
        }
        reader.window.next_file()?;
        if columns.is_empty() {
            reader.discover()?;
        }
        reader.start_file()?;
        if let Some(from) = from {
            // (A reader that had met no whole header yet was in front of it.)
            if reader.window.position().is_none_or(|start| start.at <= from.at) {
                reader.window.skip_to(&from)?;
            }
            (reader.rows, reader.to_skip, reader.faults.skipped) = (from.rows, from.skip, from.skipped);
        }
        Ok(reader)
    }

    fn quote(&self) -> u8 {
        self.dialect.quote.unwrap_or_default()
    }

    /// Columns from the sample that lies in the window.
    fn discover(&mut self) -> Result<(), Error> {
        let mut sample = Records::default();
        let bytes = self.window.bytes();
        sample.split(bytes, self.window.at_end(), discover::SAMPLE_ROWS + 1, self.dialect);
        if sample.len() == 0 {
            return Err(malformed(self.window.path(), "it is empty, so its columns cannot be found")
                .with_hint("Declare the columns: CREATE SOURCE name (column type, ..) WITH (..)."));
        }
        let names = discover::header_names(bytes, sample.cells_of(0), self.quote());
        let header = self.header.unwrap_or_else(|| discover::looks_like_header(&names));
        let names = header.then_some(names.as_slice());
        let fields = discover::columns(bytes, &sample, usize::from(header), self.quote(), &self.null, names);
        self.schema = Arc::new(Schema::new(fields));
        Ok(())
    }

    /// Decides about the header of the file just opened, and where its columns are.
    fn start_file(&mut self) -> Result<(), Error> {
        let mut first = Records::default();
        let (consumed, _) = first.split(self.window.bytes(), self.window.at_end(), 1, self.dialect);
        let columns = self.schema.fields().len();
        self.positions = (0..columns).collect();
        self.width = columns;
        self.has_started = first.len() > 0 || !self.window.grows();
        if first.len() == 0 {
            return Ok(());
        }
        let names = discover::header_names(self.window.bytes(), first.cells_of(0), self.quote());
        let known = |field: &Arc<Field>| names.contains(&field.name().to_lowercase());
        if !self.header.unwrap_or_else(|| self.schema.fields().iter().all(known)) {
            return Ok(());
        }
        self.positions.clear();
        for field in self.schema.fields() {
            match names.iter().position(|name| *name == field.name().to_lowercase()) {
                Some(position) => self.positions.push(position),
                None => return Err(self.missing_column(field.name(), &names)),
            }
        }
        self.width = names.len();
        let lines = count_lines(&self.window.bytes()[..consumed]);
        self.window.consume(consumed, lines);
        Ok(())
    }

    fn missing_column(&self, column: &str, names: &[String]) -> Error {
        let list = names.join(", ");
        let error = invalid(format!("file {} has no column \"{column}\"", self.window.path().display()))
            .with_detail(format!("Its header names: {list}."));
        if let [name] = names
            && let Some(hint) = other_delimiter(name.as_bytes(), self.schema.fields().len())
        {
            return error.with_hint(hint);
        }
        match nearest(column, names.iter().map(String::as_str)) {
            Some(near) => error.with_hint(format!("Did you mean \"{near}\"?")),
            None => error.with_hint("Without a header, say header = 'false': columns are then taken by position."),
        }
    }

    /// Deals with bytes that hold no complete record: reads on, moves to the next file, or reports
    /// a record that has no end. `false` at the end of the last file, and of one that grows.
    fn advance(&mut self, stop: Stop) -> Result<bool, Error> {
        let left = self.window.bytes().len();
        if self.window.grows() && left <= RECORD_BYTES_MAX {
            return self.window.fill();
        }
        if self.window.at_end() && left == 0 {
            if !self.window.next_file()? {
                return Ok(false);
            }
            self.start_file()?;
        } else if !self.window.at_end() && left <= RECORD_BYTES_MAX {
            self.window.fill()?;
        } else {
            self.report_endless(stop);
        }
        Ok(true)
    }

    /// The record at the window's front has no end. Leaves out its first line, so that reading can
    /// go on behind it.
    fn report_endless(&mut self, stop: Stop) {
        let (path, line) = (self.window.path().display().to_string(), self.window.line());
        let problem = match stop {
            Stop::OpenQuote if self.window.at_end() => "the file ends inside a quoted value that begins here",
            Stop::OpenQuote => "a quoted value begins here and does not end within 16 MiB",
            Stop::Enough => "the line is longer than 16 MiB",
        };
        self.faults.note(|| format!("{path}, line {line}: {problem}"));
        let bytes = self.window.bytes();
        match bytes.iter().position(|&byte| byte == b'\n') {
            Some(end) => self.window.consume(end + 1, 1),
            None => self.window.consume(bytes.len(), 0),
        }
    }

    /// Parses the records found at the window's front. `None` when no row is left of them.
    fn batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        // Records of the right width become rows; the others are bad as a whole.
        let mut firsts = Vec::with_capacity(self.records.len());
        let mut record_of_row: Vec<u32> = Vec::with_capacity(self.records.len());
        let mut ragged = Vec::new();
        for record in 0..self.records.len() {
            let first = self.records.first_cell(record);
            if self.records.records[record].cells_end as usize - first == self.width {
                firsts.push(first as u32);
                record_of_row.push(record as u32);
            } else {
                ragged.push(record);
            }
        }
        let mut bad = Vec::new();
        let columns: Vec<ArrayRef> = {
            let cells = Cells::new(self.window.bytes(), &self.records.cells, &firsts, self.dialect.quote, &self.null);
            let fields = self.schema.fields().iter().zip(&self.positions).enumerate();
            fields.map(|(column, (field, &at))| cells.read(field, at, column as u32, &mut bad)).collect()
        };
        let rows = firsts.len();
        if bad.is_empty() && ragged.is_empty() {
            return Ok(Some(self.assemble(columns)?));
        }
        let keep = self.note_faults(bad, &ragged, &record_of_row, rows);
        // NULLs stand in for bad values until their rows are gone, even in columns that allow none.
        let nullable: Vec<Field> =
            self.schema.fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
        let kept = filter_record_batch(&RecordBatch::try_new(Arc::new(Schema::new(nullable)), columns)?, &keep)?;
        if kept.num_rows() == 0 {
            return Ok(None);
        }
        Ok(Some(self.assemble(kept.columns().to_vec())?))
    }

    fn assemble(&self, columns: Vec<ArrayRef>) -> Result<RecordBatch, Error> {
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    /// Reports bad rows in record order; says which rows stay.
    fn note_faults(&mut self, mut bad: Vec<Bad>, ragged: &[usize], record_of_row: &[u32], rows: usize) -> BooleanArray {
        bad.sort_unstable();
        bad.dedup_by_key(|bad| bad.row);
        let mut places: Vec<(usize, Option<Bad>)> = ragged.iter().map(|&record| (record, None)).collect();
        places.extend(bad.iter().map(|&bad| (record_of_row[bad.row as usize] as usize, Some(bad))));
        places.sort_unstable_by_key(|(record, _)| *record);
        let mut keep = vec![true; rows];
        if self.faults.skips() {
            bad.iter().for_each(|bad| keep[bad.row as usize] = false);
        } else if let Some((first, _)) = places.first() {
            let before = record_of_row.partition_point(|&record| (record as usize) < *first);
            keep[before..].fill(false);
        }
        let mut faults = std::mem::replace(&mut self.faults, Faults::new(crate::faults::OnError::Fail));
        for (record, bad) in places {
            faults.note(|| self.describe(record, bad));
        }
        self.faults = faults;
        BooleanArray::from(keep)
    }

    /// Whether a bad record is a header, of which a declared column is missing.
    fn unknown_header(&self, record: usize) -> Option<String> {
        if self.header.is_some() || record > 0 || self.window.line() != 1 {
            return None;
        }
        let names = discover::header_names(self.window.bytes(), self.records.cells_of(0), self.quote());
        let is_named = |field: &&Arc<Field>| names.contains(&field.name().to_lowercase());
        self.schema.fields().iter().find(is_named)?;
        let missing = self.schema.fields().iter().find(|field| !is_named(field))?;
        Some(format!("if this line is a header, it has no column \"{}\"", missing.name()))
    }

    /// File, line, column, value and what was expected.
    fn describe(&self, record: usize, bad: Option<Bad>) -> String {
        let bytes = self.window.bytes();
        let start = self.records.records[record].start as usize;
        let place =
            format!("{}, line {}", self.window.path().display(), self.window.line() + count_lines(&bytes[..start]));
        let cells = self.records.cells_of(record);
        let Some(bad) = bad else {
            let values = if cells.len() == 1 { "value" } else { "values" };
            let told = format!("{place}: {} {values}, where {} were expected", cells.len(), self.width);
            // (A header that is one value, as the columns were taken from it.)
            if self.width == 1
                && let Some(hint) = delimiter_within(self.schema.field(0).name())
            {
                return format!("{told} ({hint})");
            }
            let [only] = cells else { return told };
            return match other_delimiter(&bytes[only.start as usize..only.end as usize], self.width) {
                Some(hint) => format!("{told} ({hint})"),
                None => told,
            };
        };
        let field = self.schema.field(bad.column as usize);
        let cell = cells[self.positions[bad.column as usize]];
        let name = field.name();
        if cell.form == SplitForm::Broken {
            let raw = String::from_utf8_lossy(&bytes[cell.start as usize..cell.end as usize]);
            return format!("{place}, column \"{name}\": text after the closing quote in {}", quoted(&raw));
        }
        let text = content(bytes, cell, self.quote()).unwrap_or_default();
        if cell.form == SplitForm::Plain && text.as_ref() == self.null.as_bytes() {
            return format!("{place}, column \"{name}\": NULL, where the column is NOT NULL");
        }
        match std::str::from_utf8(&text) {
            Ok(text) => {
                let told =
                    format!("{place}, column \"{name}\": {} is not of type {}", quoted(text), column_type(field));
                match self.unknown_header(record) {
                    Some(header) => format!("{told}; {header}"),
                    None => told,
                }
            }
            Err(_) => {
                let shown = String::from_utf8_lossy(&text);
                format!("{place}, column \"{name}\": {} is not valid UTF-8 text", quoted(&shown))
            }
        }
    }
}

/// The delimiter that cuts a line into so many values, as advice, where the one in use cuts none.
fn other_delimiter(line: &[u8], width: usize) -> Option<String> {
    let cuts = |delimiter: &u8| line.iter().filter(|byte| *byte == delimiter).count() + 1 == width;
    let found = [b';', b'\t', b'|', b','].into_iter().find(cuts).filter(|_| width > 1)?;
    let shown = if found == b'\t' { "'\\t'".to_owned() } else { format!("'{}'", char::from(found)) };
    Some(format!("Are the values separated by {shown}? Then say delimiter = {shown}."))
}

/// The same for a name in which a delimiter stands.
fn delimiter_within(name: &str) -> Option<String> {
    let n_values = |delimiter: char| name.matches(delimiter).count() + 1;
    let found = [';', '\t', '|'].into_iter().find(|delimiter| n_values(*delimiter) > 1)?;
    other_delimiter(name.as_bytes(), n_values(found))
}

/// Refuses columns of types that have no form in text.
pub(crate) fn check_columns(columns: &[Field]) -> Result<(), Error> {
    let Some(field) = columns.iter().find(|field| !is_readable(field.data_type())) else { return Ok(()) };
    Err(invalid(format!(
        "column \"{}\" of type {} cannot be read from delimited text",
        field.name(),
        type_name(field.data_type())
    ))
    .with_hint("Declare it as text, or use format json or parquet."))
}

impl SourceReader for DelimitedReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn poll(&mut self, rows_max: usize) -> Result<Poll, Error> {
        while self.window.is_open() {
            self.faults.check()?;
            if !self.has_started {
                self.start_file()?;
            }
            if !self.has_started {
                match self.advance(Stop::Enough)? {
                    true => continue,
                    false => return Ok(Poll::Pending { retry_after: Duration::ZERO }),
                }
            }
            self.records.clear();
            let (consumed, stop) =
                self.records.split(self.window.bytes(), self.window.at_end(), rows_max.max(1), self.dialect);
            if self.records.len() == 0 {
                let blank = count_lines(&self.window.bytes()[..consumed]);
                self.window.consume(consumed, blank);
                match self.advance(stop)? {
                    true => continue,
                    false if self.window.grows() => return Ok(Poll::Pending { retry_after: Duration::ZERO }),
                    false => break,
                }
            }
            let before = self.window.position();
            let start = self.records.records[0].start as usize;
            self.line = Some(self.window.line() + count_lines(&self.window.bytes()[..start]));
            let batch = self.batch()?;
            let lines = count_lines(&self.window.bytes()[..consumed]);
            self.window.consume(consumed, lines);
            if self.faults.failed() {
                let skip = batch.as_ref().map_or(0, RecordBatch::num_rows) as u64;
                self.stuck = before.map(|before| Position { skip, ..before });
            }
            if let Some(batch) = without_given(batch, &mut self.to_skip) {
                self.rows += batch.num_rows() as u64;
                return Ok(Poll::Rows(batch));
            }
        }
        self.faults.check()?;
        Ok(Poll::Done)
    }

    fn line(&self) -> Option<u64> {
        self.line
    }

    fn position(&self) -> Option<String> {
        let place = self.stuck.clone().or_else(|| self.window.position())?;
        let skip = place.skip + self.to_skip;
        Some(Position { skip, rows: self.rows, skipped: self.faults.skipped, ..place }.to_text())
    }

    fn progress(&self) -> ReadProgress {
        ReadProgress {
            bytes_read: self.window.consumed.min(self.window.total),
            bytes_total: Some(self.window.total),
            rows: self.rows,
            skipped: self.faults.skipped,
            first_skipped: self.faults.first.clone(),
        }
    }
}
