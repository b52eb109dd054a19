//! COPY with the client at the other end: FROM STDIN and TO STDOUT, in pieces.
//!
//! Law: rows that come in are one commit, made when the last of them is there and good; until then
//! no reader sees them. Keys are compared with what the table holds at that moment. Rows that go
//! out are an answer as of the start, or the changes of a subscription in their order.
//!
//! State: what a client has sent, in a spool (memory up to a limit, then a file); what it has not
//! taken yet, as an answer is held.

use std::io::Write;
use std::time::Duration;

use anabranch_sql::parse::parse_query;
use anabranch_sql::statement::{Copied, CopyEnd, CopyFrom, CopyOptions, CopyTo};
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, SchemaRef};

use super::copied_keys::line_of;
use super::copy::copy_fields;
use super::keys::SeenKeys;
use super::outcome::Outcome;
use super::state::Session;
use super::state::copying::{CopyIn, CopyOut, CopyRows, CopyStart, CopyWay, Copying, Next, Source, no_copy};
use crate::catalog::{Arrival, Object};
use crate::contained::contained;
use crate::copy::decode::{Block, Decoder};
use crate::copy::encode::Encoder;
use crate::copy::lines::Lines;
use crate::copy::options::{CopyFormat, CopyKind, Way};
use crate::error::{Error, of_file};
use crate::spool::Spool;

impl Session {
    pub(super) fn begin_copy_in(&mut self, copy: &CopyFrom) -> Result<Outcome, Error> {
        let (copying, is_binary) = self.copy_in(copy)?;
        let n_columns = copying.fields.len();
        self.begin_copying(Copying::In(copying));
        Ok(Outcome::Copy(CopyStart { way: CopyWay::In, is_binary, n_columns }))
    }

    /// A COPY before its first row, and whether it is in the binary format.
    pub(super) fn copy_in(&self, copy: &CopyFrom) -> Result<(Box<CopyIn>, bool), Error> {
        let object = self.catalog.table(&copy.table)?.clone();
        let fields = copy_fields(&object, &copy.columns)?;
        let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
        let format = CopyFormat::new(&copy.options, &names, Way::In)?;
        let is_binary = format.kind == CopyKind::Binary;
        let copying = CopyIn {
            object: object.id,
            table: copy.table.clone(),
            decoder: Decoder::new(&copy.table, &fields, format),
            fields,
            spool: Spool::new(&self.options.temporary_folder, self.options.copy_bytes_max),
            keys: SeenKeys::of(self.unique_keys(&object)),
            lines: Lines::default(),
            condition: self.plan_copied(copy)?,
        };
        Ok((Box::new(copying), is_binary))
    }

    /// Checks rows and sets them aside.
    pub(super) fn take_block(&mut self, copy: &mut CopyIn, block: Block) -> Result<(), Error> {
        let (block, batch) = copy.decoder.typed(block)?;
        self.set_aside(copy, &block, batch)
    }

    /// Sets rows aside whose values fit the columns' types.
    pub(crate) fn set_aside(&mut self, copy: &mut CopyIn, block: &Block, batch: RecordBatch) -> Result<(), Error> {
        let object = self.copied_into(copy)?;
        let condition = copy.condition.as_ref();
        let copied = match self.fit_passing(&object, &copy.fields, condition, batch.clone()) {
            Ok(copied) => copied,
            Err(error) => return Err(self.placed(&object, copy, block, &batch).unwrap_or(error)),
        };
        copy.lines.add(copy.spool.n_rows(), &copied.lines(block.lines()));
        copy.keys.add(&copied.rows);
        copy.spool.push(copied.rows)?;
        // (The COPY is not the client's while a block of it is looked at.)
        match self.client.held.set(copy.spool.size_bytes()) {
            true => Ok(()),
            false => Err(self.cluster.no_room()),
        }
    }

    /// The error of the first row that does not fit, with its place.
    fn placed(&self, object: &Object, copy: &CopyIn, block: &Block, batch: &RecordBatch) -> Option<Error> {
        (0..batch.num_rows()).find_map(|row| {
            let fitted = self.fit_passing(object, &copy.fields, copy.condition.as_ref(), batch.slice(row, 1));
            let error = fitted.err()?;
            Some(error.with_context(block.place(&copy.table, row)))
        })
    }

    fn copied_into(&self, copy: &CopyIn) -> Result<Object, Error> {
        let object = self.catalog.table(&copy.table)?;
        match object.id == copy.object {
            true => Ok(object.clone()),
            false => {
                let message = format!("table \"{}\" was altered or dropped while it was copied into", copy.table);
                Err(Error::unavailable(message).with_sqlstate("40001").with_hint("Run the COPY again."))
            }
        }
    }

    /// Makes one commit of all rows.
    pub(crate) fn finish_copy_in(&mut self, mut copy: Box<CopyIn>) -> Result<Outcome, Error> {
        let object = self.copied_into(&copy)?;
        if let Err(error) = self.check_copied_keys(&object, &mut copy) {
            let taken = self.first_taken(&object, &copy.keys, &mut copy.spool, &error)?;
            let placed = taken.map(|(row, error)| (copy.lines.of(row), error));
            return Err(placed.map_or(error, |(line, error)| error.with_context(line_of(&copy.table, line))));
        }
        let table = copy.table.clone();
        self.keeping_watermark(&table, |session| {
            session.check_copied_refer(&object, &mut copy.spool)?;
            if session.client.transaction.is_some() {
                return copy.spool.each(|batch| {
                    let batch = session.admit(&table, batch, Arrival::InOrder)?;
                    session.stage(&table, batch)
                });
            }
            let time = session.begin_commit();
            let pushed = copy.spool.each(|batch| {
                let batch = session.admit(&table, batch, Arrival::InOrder)?;
                session.push(&table, batch.with_times(anabranch_batch::Times::Constant(time)))
            });
            if let Err(error) = pushed {
                session.abandon_commit();
                return Err(error);
            }
            session.commit().map(|_| ())
        })?;
        let tag = format!("COPY {}", copy.spool.n_rows());
        Ok(match copy.decoder.note() {
            Some(note) => Outcome::done_with(tag, note),
            None => Outcome::done(tag),
        })
    }

    fn check_copied_keys(&mut self, object: &Object, copy: &mut CopyIn) -> Result<(), Error> {
        copy.keys.check_repeated(object, self.unique_keys(object), &mut copy.spool)?;
        copy.spool.each(|batch| self.check_keys(object, std::slice::from_ref(&batch)))
    }

    /// As [`copy_done`](Self::copy_done), of rows that were all set aside.
    pub(crate) fn commit_copied(&mut self, copy: Box<CopyIn>) -> Result<Outcome, Error> {
        self.begin_statement()?;
        self.finish_copy_in(copy)
    }

    pub(super) fn copy_to(&mut self, copy: &CopyTo) -> Result<Outcome, Error> {
        let mut options = copy.options.clone();
        if let CopyEnd::Path(path) = &copy.to {
            let is_csv = path.to_lowercase().ends_with(".csv");
            check_ending(path, &options)?;
            if is_csv && options.plain.iter().all(|(name, _)| name != "format") {
                options.plain.push(("format".to_owned(), "csv".to_owned()));
            }
        }
        let (schema, source) = self.copied(&copy.copied)?;
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let encoded = CopyFormat::new(&options, &names, Way::Out).map(|format| {
            let is_binary = format.kind == CopyKind::Binary;
            (is_binary, CopyOut { source, encoder: Encoder::new(schema.clone(), format), has_ended: false })
        });
        let (is_binary, out) = encoded?;
        let CopyEnd::Path(path) = &copy.to else {
            self.begin_copying(Copying::Out(Box::new(out)));
            return Ok(Outcome::Copy(CopyStart { way: CopyWay::Out, is_binary, n_columns: names.len() }));
        };
        self.write_file(path, out)
    }

    fn copied(&mut self, copied: &Copied) -> Result<(SchemaRef, Source), Error> {
        let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
        let rows = match copied {
            Copied::Changes(subscribe) => {
                let subscription = self.subscribe(subscribe)?;
                return Ok((subscription.row_schema(), Source::Changes(subscription)));
            }
            Copied::Query(query) => self.select(query, None)?,
            Copied::Table { name, columns } => {
                let columns = match (self.catalog.find(name), columns.is_empty()) {
                    (Some(object), _) => copy_fields(object, columns)?.iter().map(Field::name).map(quoted).collect(),
                    (None, true) => vec!["*".to_owned()],
                    (None, false) => columns.iter().map(quoted).collect::<Vec<_>>(),
                };
                let columns = columns.join(", ");
                self.select(&*parse_query(&format!("SELECT {columns} FROM {}", quoted(name)))?, None)?
            }
        };
        Ok((rows.schema, Source::Rows(rows.batches.into())))
    }

    fn write_file(&mut self, path: &str, mut out: CopyOut) -> Result<Outcome, Error> {
        let unwritten = |error: std::io::Error| of_file(path, "written", &error);
        if let Source::Changes(subscription) = out.source {
            self.unsubscribe(subscription);
            return Err(Error::invalid("COPY (SUBSCRIBE ..) to a file is not supported")
                .with_sqlstate("0A000")
                .with_hint("COPY it TO STDOUT, and write the file there."));
        }
        let mut file = std::io::BufWriter::new(std::fs::File::create(path).map_err(unwritten)?);
        loop {
            self.interrupt.check()?;
            match out.next()? {
                Next::Given(CopyRows::Data(data)) => file.write_all(&data.bytes).map_err(unwritten)?,
                Next::Given(CopyRows::Done { tag }) => {
                    file.flush().map_err(unwritten)?;
                    return Ok(Outcome::done(tag));
                }
                Next::Given(CopyRows::Nothing) | Next::Wants(_) => return Err(Error::internal("a COPY of rows waits")),
            }
        }
    }

    /// The columns of the client's COPY are known, and rows may go.
    fn begin_copying(&mut self, copying: Copying) {
        self.copy_stop();
        self.client.copying = Some(copying);
    }

    /// Takes bytes of a COPY .. FROM STDIN, however they are cut. An error ends the COPY.
    ///
    /// # Errors
    /// `Data` for rows that cannot be read or do not fit, with line and column; `Invalid` when no
    /// such COPY has begun.
    pub fn copy_data(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let result = self.take_data(bytes);
        self.failing(result)
    }

    fn take_data(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut copy = self.take_copy_in()?;
        self.interrupt.check()?;
        for block in copy.decoder.push(bytes)? {
            self.take_block(&mut copy, block)?;
        }
        self.client.copying = Some(Copying::In(copy));
        Ok(())
    }

    /// All rows of a COPY .. FROM STDIN were sent: they are committed, or none of them.
    ///
    /// # Errors
    /// As [`copy_data`](Self::copy_data); `Data` for a constraint that the rows break.
    pub fn copy_done(&mut self) -> Result<Outcome, Error> {
        let result = self.end_data();
        let result = self.failing(result);
        self.await_lasting()?;
        result
    }

    fn end_data(&mut self) -> Result<Outcome, Error> {
        let mut copy = self.take_copy_in()?;
        self.begin_statement()?;
        if let Some(block) = copy.decoder.finish()? {
            self.take_block(&mut copy, block)?;
        }
        self.finish_copy_in(copy)
    }

    /// The next rows of a COPY .. TO STDOUT; waits for changes up to `timeout`.
    ///
    /// # Errors
    /// Of the subscription; `Invalid` when no such COPY has begun.
    pub fn copy_rows(&mut self, timeout: Duration) -> Result<CopyRows, Error> {
        let Some(Copying::Out(mut copy)) = self.client.copying.take() else { return Err(no_copy()) };
        let rows = match contained("writing rows", || copy.next())? {
            Next::Given(rows) => rows,
            Next::Wants(subscription) => match self.next_changes(&subscription, timeout) {
                Ok(changes) => copy.take(&changes)?,
                Err(error) => {
                    self.unsubscribe(subscription);
                    return Err(error);
                }
            },
        };
        self.client.copying = Some(Copying::Out(copy));
        if matches!(rows, CopyRows::Done { .. }) {
            self.copy_stop();
        }
        Ok(rows)
    }

    /// Ends a COPY before its end: nothing that was sent takes effect.
    pub fn copy_stop(&mut self) {
        let copying = self.client.copying.take();
        if let Some(subscription) = copying.and_then(Copying::into_subscription) {
            self.unsubscribe(subscription);
        }
    }

    pub(crate) fn take_copy_in(&mut self) -> Result<Box<CopyIn>, Error> {
        match self.client.copying.take() {
            Some(Copying::In(copy)) => Ok(copy),
            other => {
                self.client.copying = other;
                Err(no_copy())
            }
        }
    }

    /// A statement of the open transaction has failed, if it did.
    pub(crate) fn failing<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        if result.is_err() {
            self.fail_transaction();
        }
        result
    }
}

/// The endings that tell how a file is read, but for those of CSV.
const ENDINGS_READ: [&str; 5] = ["parquet", "pq", "json", "jsonl", "ndjson"];

/// Refuses a file whose ending names a format that is read only, unless the format is said.
fn check_ending(path: &str, options: &CopyOptions) -> Result<(), Error> {
    let lower = path.to_lowercase();
    let unpacked = lower.strip_suffix(".gz").unwrap_or(&lower);
    let ending = unpacked.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_said = options.plain.iter().any(|(name, _)| name == "format");
    let is_packed = unpacked.len() < lower.len() && matches!(ending, "csv" | "tsv");
    if is_said || !(is_packed || ENDINGS_READ.contains(&ending)) {
        return Ok(());
    }
    let what = if is_packed { "gz" } else { ending };
    Err(Error::invalid(format!("COPY TO does not write .{what} files: \"{path}\""))
        .with_sqlstate("0A000")
        .with_detail("It writes text, csv and binary. The ending of a file tells its format only where it is read.")
        .with_hint("Name a .csv file, or say the format, as in WITH (FORMAT csv)."))
}
