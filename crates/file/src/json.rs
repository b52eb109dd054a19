//! JSON lines: one object a line.
//!
//! Law: a line is a row or a fault, never half of one. Whole blocks of lines are decoded at once; a
//! block that fails is halved until the bad lines stand alone, so the cost of a fault is
//! logarithmic in the block. Values are read as their column's type: numbers and booleans become
//! text in a text column, dates and times are texts in ISO form, decimals may be numbers or texts.
//! Missing members are NULL, members that no column names are passed over.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anabranch_batch::{TextLimit, numeric};
use anabranch_engine::{Error, Poll, ReadProgress, SourceReader};
use anabranch_sql::input;
use arrow::{
    array::{AsArray, RecordBatch},
    compute::concat_batches,
    datatypes::{DataType, Field, Schema, SchemaRef},
    error::ArrowError,
};
use arrow_json::reader::{ReaderBuilder, infer_json_schema_from_iterator};
use serde_json::Value;

use crate::{
    delimited::Guess,
    faults::{Faults, invalid, malformed},
    names::{column_type, quoted},
    options::FileOptions,
    position::{Position, without_given},
    window::{FileWindow, RECORD_BYTES_MAX},
};

/// Lines looked at for the columns.
const SAMPLE_LINES: usize = 5_000;

/// See the module.
pub(crate) struct JsonReader {
    window: FileWindow,
    /// The columns delivered.
    schema: SchemaRef,
    /// The same under their names in the file, all nullable.
    members: SchemaRef,
    faults: Faults,
    rows: u64,
    /// Rows that another reader gave before.
    to_skip: u64,
    /// Where reading goes on once the bad line that it stopped at is repaired.
    stuck: Option<Position>,
    /// The first line of the last poll.
    line: Option<u64>,
}

/// A line of the window without its end: byte range and line number.
#[derive(Clone, Copy)]
struct Line {
    start: usize,
    end: usize,
    number: u64,
}

impl JsonReader {
    pub(crate) fn open(
        files: Vec<PathBuf>,
        columns: &[Field],
        options: &FileOptions,
        from: Option<Position>,
    ) -> Result<JsonReader, Error> {
        let mut window = FileWindow::new(&files)?;
        if options.follow {
            window = window.growing();
        }
        if let Some(from) = &from {
            window.skip_files(from)?;
        }
        window.next_file()?;
        if window.bytes().trim_ascii_start().starts_with(b"[") {
            return Err(malformed(window.path(), "it is one JSON array, where one object a line was expected")
                .with_hint("Convert it first, for example with jq -c '.[]'."));
        }
        let sample = sample(&window);
        let found = match infer_json_schema_from_iterator(sample.iter().map(Ok)) {
            Ok(schema) => schema,
            Err(_) if !columns.is_empty() => Schema::empty(),
            Err(problem) => return Err(malformed(window.path(), problem)),
        };
        let (schema, members) =
            if columns.is_empty() { discover(&window, &found, &sample)? } else { declare(columns, &found) };
        let members = Arc::new(Schema::new(members.into_iter().map(decoded).collect::<Vec<_>>()));
        ReaderBuilder::new(members.clone()).build_decoder().map_err(|problem| {
            invalid(format!("these columns cannot be read from JSON: {problem}"))
                .with_hint("Declare columns of such types as text.")
        })?;
        let schema = Arc::new(Schema::new(schema));
        let mut faults = Faults::new(options.on_error);
        let from = from.unwrap_or_default();
        if from != Position::default() {
            window.skip_to(&from)?;
            faults.skipped = from.skipped;
        }
        Ok(JsonReader { window, schema, members, faults, rows: from.rows, to_skip: from.skip, stuck: None, line: None })
    }

    /// Up to `lines_max` complete lines at the window's front that are not blank, and the bytes and
    /// lines they span.
    fn lines(&self, lines_max: usize) -> (Vec<Line>, usize, u64) {
        let bytes = self.window.bytes();
        let (mut lines, mut at, mut count) = (Vec::new(), 0, 0);
        while lines.len() < lines_max && at < bytes.len() {
            let (end, next) = match bytes[at..].iter().position(|&byte| byte == b'\n') {
                Some(length) => (at + length, at + length + 1),
                None if self.window.at_end() => (bytes.len(), bytes.len()),
                None => break,
            };
            if !bytes[at..end].trim_ascii().is_empty() {
                lines.push(Line { start: at, end, number: self.window.line() + count });
            }
            count += 1;
            at = next;
        }
        (lines, at, count)
    }

    /// Decodes lines, halving where it fails. Stops early once reading has failed.
    fn decode(&self, lines: &[Line], faults: &mut Faults, out: &mut Vec<RecordBatch>) {
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return };
        if faults.failed() {
            return;
        }
        let bytes = &self.window.bytes()[first.start..last.end];
        match decode_all(&self.members, bytes, lines.len()).and_then(|batch| self.finish(batch)) {
            Ok(batch) => out.push(batch),
            Err(_) if lines.len() > 1 => {
                let (front, back) = lines.split_at(lines.len() / 2);
                self.decode(front, faults, out);
                self.decode(back, faults, out);
            }
            Err(problem) => faults.note(|| self.describe(*first, &problem)),
        }
    }

    /// Renames members to columns, checks NOT NULL and lengths.
    fn finish(&self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        let mut columns = batch.columns().to_vec();
        for (field, column) in self.schema.fields().iter().zip(&mut columns) {
            if *field.data_type() == numeric::TYPE {
                *column = input::convert(column, field.data_type()).map_err(ArrowError::JsonError)?;
            }
            let Some(limit) = TextLimit::of(field) else { continue };
            let (fitted, too_long) = limit.fit_column(column);
            if let Some(row) = too_long.first() {
                return Err(ArrowError::JsonError(limit.misfit(column.as_string_view().value(*row))));
            }
            *column = fitted;
        }
        RecordBatch::try_new(self.schema.clone(), columns)
    }

    /// What is wrong with a line that cannot be decoded.
    fn describe(&self, line: Line, problem: &ArrowError) -> String {
        let bytes = &self.window.bytes()[line.start..line.end];
        let place = format!("{}, line {}", self.window.path().display(), line.number);
        let last = self.window.at_end() && line.end == self.window.bytes().len();
        let value: Value = match serde_json::from_slice(bytes) {
            Ok(value) => value,
            Err(e) if e.is_eof() && last => return format!("{place}: the file ends inside a JSON object"),
            Err(e) => {
                return format!("{place}: not valid JSON at character {}: {}", e.column(), in_words(&e));
            }
        };
        let Value::Object(members) = &value else {
            return format!("{place}: {} is not a JSON object", quoted(&value.to_string()));
        };
        for (field, member) in self.schema.fields().iter().zip(self.members.fields()) {
            let found = members.get(member.name()).unwrap_or(&Value::Null);
            let name = field.name();
            if found.is_null() && !field.is_nullable() {
                return format!("{place}, column \"{name}\": NULL, where the column is NOT NULL");
            }
            let alone = Arc::new(Schema::new(vec![member.clone()]));
            let too_long =
                TextLimit::of(field).is_some_and(|limit| found.as_str().is_some_and(|text| limit.fit(text).is_none()));
            if too_long || decode_all(&alone, bytes, 1).is_err() {
                let shown = found.as_str().map_or_else(|| found.to_string(), str::to_string);
                return format!("{place}, column \"{name}\": {} is not of type {}", quoted(&shown), column_type(field));
            }
        }
        format!("{place}: {problem}")
    }
}

/// What is wrong with a line, without the library's words.
fn in_words(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "the line ends inside a value".to_owned();
    }
    let told = error.to_string();
    let told = told.split(" at line ").next().unwrap_or_default();
    match told {
        "trailing comma" => "a comma with nothing behind it".to_owned(),
        "trailing characters" => "something follows the object".to_owned(),
        "key must be a string" => "the name of a member is not in double quotes".to_owned(),
        "expected ident" | "expected value" => "a value was expected".to_owned(),
        "control character (\\u0000-\\u001F) found while parsing a string" => {
            "a control character in a text, which is written \\uXXXX".to_owned()
        }
        _ => told.replace("`", "\""),
    }
}

/// A member as it is decoded: numbers of any number of digits as text.
fn decoded(member: Field) -> Field {
    if *member.data_type() == numeric::TYPE { member.with_data_type(DataType::Utf8View) } else { member }
}

/// All of `bytes` as exactly `rows` rows.
fn decode_all(members: &SchemaRef, bytes: &[u8], rows: usize) -> Result<RecordBatch, ArrowError> {
    let mut decoder =
        ReaderBuilder::new(members.clone()).with_batch_size(rows + 1).with_coerce_primitive(true).build_decoder()?;
    let mut at = 0;
    while at < bytes.len() {
        match decoder.decode(&bytes[at..])? {
            0 => break,
            read => at += read,
        }
    }
    if decoder.has_partial_record() || at < bytes.len() {
        return Err(ArrowError::JsonError("an object goes beyond its line".into()));
    }
    match decoder.flush()? {
        Some(batch) if batch.num_rows() == rows => Ok(batch),
        _ => Err(ArrowError::JsonError("a line must hold exactly one object".into())),
    }
}

/// The objects on the first lines; lines that do not parse are left to reading.
fn sample(window: &FileWindow) -> Vec<Value> {
    let lines = window.bytes().split(|&byte| byte == b'\n').take(SAMPLE_LINES);
    lines.filter_map(|line| serde_json::from_slice(line).ok()).filter(Value::is_object).collect()
}

/// Columns of the sample, and the members they come from. Texts that all look like dates or
/// timestamps become such.
fn discover(window: &FileWindow, found: &Schema, sample: &[Value]) -> Result<(Vec<Field>, Vec<Field>), Error> {
    if found.fields().is_empty() {
        return Err(malformed(window.path(), "it holds no JSON object, so its columns cannot be found")
            .with_hint("Declare the columns: CREATE SOURCE name (column type, ..) WITH (..)."));
    }
    let mut members = Vec::new();
    // Arrow finds members in no particular order; columns come in the order in which a reader of
    // the file meets them.
    let mut found: Vec<_> = found.fields().iter().collect();
    found.sort_by_cached_key(|field| (first_place(window.bytes(), field.name()), field.name().clone()));
    for field in found {
        let data_type = match field.data_type() {
            DataType::Null => DataType::Utf8View,
            DataType::Utf8 => {
                let mut guess = Guess::default();
                sample.iter().filter_map(|row| row[field.name()].as_str()).for_each(|text| guess.see(text.as_bytes()));
                match guess.data_type() {
                    time @ (DataType::Date32 | DataType::Timestamp(..)) => time,
                    _ => DataType::Utf8View,
                }
            }
            other => other.clone(),
        };
        members.push(Field::new(field.name(), data_type, true));
    }
    let names = crate::delimited::distinct(members.iter().map(|field| field.name().to_lowercase()));
    let columns = members.iter().zip(names).map(|(field, name)| field.clone().with_name(name)).collect();
    Ok((columns, members))
}

/// Where a member's name first stands.
fn first_place(bytes: &[u8], member: &str) -> usize {
    let name = Value::from(member).to_string();
    bytes.windows(name.len()).position(|window| window == name.as_bytes()).unwrap_or(usize::MAX)
}

/// Declared columns and the members they name: by exact name, else whatever the case.
fn declare(columns: &[Field], found: &Schema) -> (Vec<Field>, Vec<Field>) {
    let member = |column: &Field| {
        let exact = found.fields().iter().find(|field| field.name() == column.name());
        let folded = found.fields().iter().find(|field| field.name().to_lowercase() == column.name().to_lowercase());
        let name = exact.or(folded).map_or_else(|| column.name().clone(), |field| field.name().clone());
        column.clone().with_name(name).with_nullable(true)
    };
    (columns.to_vec(), columns.iter().map(member).collect())
}

impl SourceReader for JsonReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn poll(&mut self, rows_max: usize) -> Result<Poll, Error> {
        while self.window.is_open() {
            self.faults.check()?;
            let (lines, bytes, count) = self.lines(rows_max.max(1));
            let mut faults = std::mem::replace(&mut self.faults, Faults::new(crate::faults::OnError::Fail));
            let mut batches = Vec::new();
            self.decode(&lines, &mut faults, &mut batches);
            self.faults = faults;
            if bytes == 0 && !self.window.at_end() {
                if self.window.bytes().len() > RECORD_BYTES_MAX {
                    return Err(malformed(
                        self.window.path(),
                        format!("line {} is longer than 16 MiB", self.window.line()),
                    ));
                }
                if !self.window.fill()? && self.window.grows() {
                    return Ok(Poll::Pending { retry_after: Duration::ZERO });
                }
                continue;
            }
            let before = self.window.position();
            self.line = lines.first().map(|line| line.number);
            self.window.consume(bytes, count);
            if self.faults.failed() {
                let skip = batches.iter().map(RecordBatch::num_rows).sum::<usize>() as u64;
                self.stuck = before.map(|before| Position { skip, ..before });
            }
            let batch = if batches.is_empty() { None } else { Some(concat_batches(&self.schema, &batches)?) };
            if let Some(batch) = without_given(batch, &mut self.to_skip) {
                self.rows += batch.num_rows() as u64;
                return Ok(Poll::Rows(batch));
            }
            if self.window.at_end() && self.window.bytes().is_empty() && !self.faults.failed() {
                self.window.next_file()?;
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
