//! A database as a script: statements that make its objects, and its rows as INSERT.
//!
//! Law: the script, run in an empty database, makes an equal one: the same objects in the same
//! order, the same rows as often as they were there. Rows of a relation with a watermark are in the
//! order of its times, so none of them is late. Rows come before views over them, but for relations
//! that keep none (`retain = 'none'`), whose rows come last.
//!
//! Left out: history (`AS OF`), commit times, and how far a source has read. A source is written as
//! its statement, and reads again when the script runs; or as a table with the rows that it has
//! given. The files are not changed.
//!
//! Memory: a batch of rows; a whole relation, if it has a watermark or rows of it were taken away.

use std::io::{self, Write};
use std::path::Path;

use anabranch_batch::{Batch, types};
use anabranch_sql::statement::{CreateSource, CreateTable, Made, Rules, Statement};
use anabranch_sql::table::quoted_path;
use anabranch_sql::{column_type_name, output};
use anabranch_store::{Contents, Disk, LocalDisk, LocalPlaces, SnapshotPlaces};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, Schema};

use super::facts::{COLUMNS, COUNTERS, RETAIN_HISTORY, read_columns};
use super::keeper::folder_error;
use super::restore::definition;
use crate::coerce::planned_schema;
use crate::error::Error;

/// Rows, and about as many bytes, that one INSERT has at most.
const INSERT_ROWS_MAX: usize = 500;
const INSERT_BYTES_MAX: usize = 1 << 18;

/// How a database is written as a script.
#[derive(Clone, Copy, Debug, Default)]
pub struct DumpOptions {
    /// What becomes of sources.
    pub sources: SourceRows,
}

/// What becomes of a source in a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceRows {
    /// The statement that makes it: it reads again from its beginning.
    #[default]
    ReadAgain,
    /// A table with the rows that it has given.
    AsTable,
}

/// Writes the database in a folder as a script.
///
/// # Errors
/// As [`Session::open_folder`](crate::Session::open_folder); `Unavailable` when the script cannot
/// be written; `Data` when a row is there a negative number of times, which no script can make.
pub fn dump(folder: &Path, options: DumpOptions, out: &mut dyn Write) -> Result<(), Error> {
    dump_with(folder, &LocalPlaces, options, out)
}

/// As [`dump`], where snapshots may lie in any of these places.
///
/// # Errors
/// As [`dump`].
pub fn dump_with(
    folder: &Path,
    places: &dyn SnapshotPlaces,
    options: DumpOptions,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let disk = LocalDisk::existing(folder).map_err(|error| folder_error(folder.to_path_buf(), &error))?;
    let (_lock, contents) = anabranch_store::read(&disk, places)?;
    Script { contents, options, out }.write()
}

/// As [`dump`], from any disk.
///
/// # Errors
/// As [`dump`].
pub fn dump_on(disk: &dyn Disk, options: DumpOptions, out: &mut dyn Write) -> Result<(), Error> {
    let (_lock, contents) = anabranch_store::read(disk, &LocalPlaces)?;
    Script { contents, options, out }.write()
}

struct Script<'a> {
    contents: Contents,
    options: DumpOptions,
    out: &'a mut dyn Write,
}

/// A table or source.
struct Input {
    id: u64,
    name: String,
    schema: Schema,
    /// The statement to write.
    text: String,
    /// Column of its times, if it has a watermark.
    times: Option<usize>,
    has_rows: bool,
    keeps_rows: bool,
    /// Columns that are not computed of others; rows are written of these.
    given: Vec<usize>,
    /// Names of columns that number rows.
    numbered: Vec<String>,
    /// Statements that add its foreign keys.
    references: Vec<String>,
}

impl Script<'_> {
    fn write(&mut self) -> Result<(), Error> {
        let version = env!("CARGO_PKG_VERSION");
        self.line(&format!("-- A database of Anabranch {version}, as of commit {}.", self.contents.time()))?;
        if let Some(micros) = self.contents.fact(0, RETAIN_HISTORY).and_then(|value| std::str::from_utf8(value).ok()) {
            self.line(&format!("SET retain_history = '{micros} us';"))?;
        }
        let (mut inputs, mut others) = (Vec::new(), Vec::new());
        for created in self.contents.objects() {
            let text = definition(&self.contents, &created)?;
            let statements = anabranch_sql::parse(&text)?;
            if let Some(Statement::CreateSchema { .. }) = statements.first().map(|parsed| &parsed.statement) {
                self.statement(&text)?;
                continue;
            }
            if let Some(Statement::CreateType(_)) = statements.first().map(|parsed| &parsed.statement) {
                self.statement(&text)?;
                continue;
            }
            if let Some(Statement::CreateSequence(create)) = statements.first().map(|parsed| &parsed.statement) {
                self.statement(&text)?;
                self.stand(created.id, &create.name)?;
                continue;
            }
            match self.input(created.id, &text)? {
                Some(input) => inputs.push(input),
                None => others.push(text),
            }
        }
        for input in &inputs {
            self.statement(&input.text)?;
            if input.has_rows && input.keeps_rows {
                self.rows(input)?;
            }
            let restarts = self.restarts(input);
            restarts.iter().try_for_each(|restart| self.statement(restart))?;
        }
        for text in &others {
            self.statement(text)?;
        }
        // (Rows may come before those that they refer to.)
        inputs.iter().flat_map(|input| &input.references).try_for_each(|text| self.statement(text))?;
        inputs.iter().filter(|input| input.has_rows && !input.keeps_rows).try_for_each(|input| self.rows(input))?;
        self.out.flush().map_err(|error| cannot_write(&error))
    }

    /// Lets a sequence go on.
    fn stand(&mut self, id: u64, name: &str) -> Result<(), Error> {
        let Some(value) = self.contents.fact(id, COUNTERS) else { return Ok(()) };
        let value = std::str::from_utf8(value).unwrap_or_default().replace(',', ", ");
        let name = quoted_path(name).replace('\'', "''");
        self.statement(&format!("SELECT setval('{name}', {value})"))
    }

    /// The table or source that a statement makes, if it makes one.
    fn input(&self, id: u64, text: &str) -> Result<Option<Input>, Error> {
        let statements = anabranch_sql::parse(text)?;
        let keeps = |options: &[(String, String)]| {
            !options.iter().any(|(name, value)| name == "retain" && value.eq_ignore_ascii_case("none"))
        };
        Ok(match statements.first().map(|parsed| &parsed.statement) {
            Some(Statement::CreateTable(create)) => {
                let schema = planned_schema("table", &create.name, &create.columns)?;
                let times = create.watermark.as_ref().and_then(|watermark| schema.index_of(&watermark.column).ok());
                Some(Input {
                    id,
                    name: create.name.clone(),
                    schema: schema.as_ref().clone(),
                    text: match create.rules.references.is_empty() {
                        true => text.to_string(),
                        false => without_references(create),
                    },
                    references: create.rules.references.iter().map(|key| key.statement(&create.name)).collect(),
                    times,
                    has_rows: true,
                    keeps_rows: keeps(&create.options),
                    given: (0..create.columns.len())
                        .filter(|column| !matches!(create.rules.made(*column), Made::Computed(_)))
                        .collect(),
                    numbered: (0..create.columns.len())
                        .filter(|column| matches!(create.rules.made(*column), Made::Numbered(_)))
                        .map(|column| create.columns[column].name().clone())
                        .collect(),
                })
            }
            Some(Statement::CreateSource(create)) => Some(self.source(id, text, create, keeps(&create.options))?),
            _ => None,
        })
    }

    fn source(&self, id: u64, text: &str, create: &CreateSource, keeps_rows: bool) -> Result<Input, Error> {
        let malformed = || Error::data(format!("the columns of source \"{}\" cannot be read", create.name));
        let schema = self.contents.fact(id, COLUMNS).and_then(read_columns).ok_or_else(malformed)?;
        let times = create.watermark.as_ref().and_then(|watermark| schema.index_of(&watermark.column).ok());
        let has_rows = self.options.sources == SourceRows::AsTable;
        let text = match has_rows {
            true => table_of(create, &schema, keeps_rows),
            false => text.to_string(),
        };
        let given = (0..schema.fields().len()).collect();
        let name = create.name.clone();
        Ok(Input { id, name, schema, text, times, has_rows, keeps_rows, given, numbered: vec![], references: vec![] })
    }

    /// Statements that let counters go on.
    fn restarts(&self, input: &Input) -> Vec<String> {
        let Some(value) = self.contents.fact(input.id, COUNTERS) else { return vec![] };
        let next = std::str::from_utf8(value).unwrap_or_default().split(',');
        let restart = |(column, next): (&String, &str)| {
            let (table, column) = (quoted_path(&input.name), quoted_name(column));
            format!("ALTER TABLE {table} ALTER COLUMN {column} RESTART WITH {next}")
        };
        input.numbered.iter().zip(next).map(restart).collect()
    }

    fn rows(&mut self, input: &Input) -> Result<(), Error> {
        let Script { contents, out, .. } = self;
        let mut insert = Insert::new(input);
        let Some(column) = input.times else {
            contents.rows(input.id, |batch| write_batch(input, &batch, &mut insert, *out))?;
            return insert.finish(*out);
        };
        let mut batches = Vec::new();
        contents.rows(input.id, |batch| {
            batches.push(batch);
            Ok::<(), Error>(())
        })?;
        if let Some(all) = Batch::concat(&batches) {
            write_batch(input, &in_order(&all, column)?, &mut insert, *out)?;
        }
        insert.finish(*out)
    }

    fn statement(&mut self, text: &str) -> Result<(), Error> {
        // A comment at the end would hide the semicolon.
        let ends_in_comment = text.lines().last().is_some_and(|line| line.contains("--"));
        self.line(&if ends_in_comment { format!("{text}\n;") } else { format!("{text};") })
    }

    fn line(&mut self, text: &str) -> Result<(), Error> {
        writeln!(self.out, "{text}").map_err(|error| cannot_write(&error))
    }
}

/// The statement that makes a table, but for its foreign keys.
fn without_references(create: &CreateTable) -> String {
    let rules = Rules { references: vec![], ..create.rules.clone() };
    CreateTable { rules, ..create.clone() }.definition()
}

/// The INSERT that is being written.
struct Insert {
    head: String,
    values: String,
    n_rows: usize,
}

impl Insert {
    fn new(input: &Input) -> Insert {
        let is_whole = input.given.len() == input.schema.fields().len();
        let columns: Vec<String> =
            input.given.iter().map(|column| quoted_name(input.schema.field(*column).name())).collect();
        let columns = if is_whole { String::new() } else { format!(" ({})", columns.join(", ")) };
        let overriding = if input.numbered.is_empty() { "" } else { " OVERRIDING SYSTEM VALUE" };
        let head = format!("INSERT INTO {}{columns}{overriding} VALUES\n", quoted_path(&input.name));
        Insert { head, values: String::new(), n_rows: 0 }
    }

    fn row(&mut self, values: &str, out: &mut dyn Write) -> Result<(), Error> {
        if self.n_rows > 0 {
            self.values.push_str(",\n");
        }
        self.values.push_str(values);
        self.n_rows += 1;
        if self.n_rows < INSERT_ROWS_MAX && self.values.len() < INSERT_BYTES_MAX { Ok(()) } else { self.finish(out) }
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<(), Error> {
        if self.n_rows == 0 {
            return Ok(());
        }
        writeln!(out, "{}{};", self.head, self.values).map_err(|error| cannot_write(&error))?;
        self.values.clear();
        self.n_rows = 0;
        Ok(())
    }
}

fn write_batch(input: &Input, batch: &Batch, insert: &mut Insert, out: &mut dyn Write) -> Result<(), Error> {
    let columns: Vec<ArrayRef> = input.given.iter().map(|column| types::widened(batch.column(*column))).collect();
    let printers = output::printers(&columns);
    let fields = input.given.iter().map(|column| input.schema.field(*column));
    let are_bare: Vec<bool> = fields.map(|field| is_bare(field.data_type())).collect();
    let (mut values, mut text) = (String::new(), String::new());
    for row in 0..batch.len() {
        values.clear();
        for (idx, (column, print)) in printers.iter().enumerate() {
            values.push_str(if idx == 0 { "(" } else { ", " });
            if output::is_null(column, row) {
                values.push_str("NULL");
                continue;
            }
            text.clear();
            print(row, &mut text);
            match are_bare.get(idx) {
                Some(true) => values.push_str(&text),
                _ => push_quoted(&text, &mut values),
            }
        }
        values.push_str(if printers.is_empty() { "()" } else { ")" });
        let copies = batch.diffs().get(row);
        if copies < 0 {
            return Err(Error::data(format!("a row of \"{}\" is there {copies} times", input.name))
                .with_detail(format!("It is {values}."))
                .with_hint("Add it as often, then dump again."));
        }
        for _ in 0..copies {
            insert.row(&values, out)?;
        }
    }
    Ok(())
}

/// Whether values of the type are literals as they are printed. (A minus is an operator, which is
/// fine.)
fn is_bare(data_type: &DataType) -> bool {
    data_type.is_integer() || *data_type == DataType::Boolean
}

fn push_quoted(text: &str, out: &mut String) {
    out.push('\'');
    for (idx, part) in text.split('\'').enumerate() {
        if idx > 0 {
            out.push_str("''");
        }
        out.push_str(part);
    }
    out.push('\'');
}

fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Rows in the order of a column of times.
fn in_order(batch: &Batch, column: usize) -> Result<Batch, Error> {
    let times = cast(batch.column(column), &DataType::Int64)?;
    let times = times.as_primitive::<Int64Type>();
    let mut rows: Vec<u32> = (0..batch.len() as u32).collect();
    rows.sort_by_key(|row| times.is_valid(*row as usize).then(|| times.value(*row as usize)));
    Ok(batch.take(&rows))
}

/// The statement that makes a table of a source's columns.
fn table_of(create: &CreateSource, schema: &Schema, keeps_rows: bool) -> String {
    let mut parts: Vec<String> = Vec::new();
    for field in schema.fields() {
        let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
        parts.push(format!("{} {}{not_null}", quoted_name(field.name()), column_type_name(field)));
    }
    if let Some(watermark) = &create.watermark {
        let column = quoted_name(&watermark.column);
        parts.push(format!("WATERMARK FOR {column} AS {column} - {}", watermark.delay));
    }
    let with = if keeps_rows { "" } else { " WITH (retain = 'none')" };
    format!("CREATE TABLE {} ({}){with}", quoted_path(&create.name), parts.join(", "))
}

fn cannot_write(error: &io::Error) -> Error {
    Error::unavailable(format!("cannot write the script: {error}")).with_sqlstate("58030")
}
