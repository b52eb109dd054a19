//! Rows given to a table value by value.
//!
//! ```
//! use anabranch_engine::{Options, Session};
//!
//! let mut session = Session::new(Options::default())?;
//! session.execute("CREATE TABLE trades (id bigint, price double precision, symbol text)")?;
//! let mut appender = session.appender("trades")?;
//! for id in 0..1_000 {
//!     appender.append(id)?;
//!     appender.append(id as f64 / 100.0)?;
//!     appender.append(if id % 2 == 0 { Some("ANB") } else { None })?;
//!     appender.end_row()?;
//! }
//! assert_eq!(appender.finish()?, 1_000);
//! assert_eq!(session.query("SELECT count(symbol) FROM trades WHERE price < 1")?.num_rows(), 1);
//! # Ok::<(), anabranch_engine::Error>(())
//! ```
//!
//! Law: the rows of a portion enter the table as one commit, checked as those of INSERT, or not at
//! all. A portion ends with [`Appender::flush`], with [`Appender::finish`], and by itself after
//! [`PORTION_ROWS`] rows. Rows of a portion that is not ended are lost with the appender.
//!
//! Cost: a value is written into its column's buffer, some 3 ns for a number; nothing is parsed or
//! planned. Buffers hold one portion.
//!
//! Source: DuckDB's appender.

mod columns;

use anabranch_batch::Time;
use anabranch_sql::statement::ObjectKind;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::database::Connection;
use crate::error::Error;
use crate::session::Session;
use columns::RowColumns;

/// Rows after which a portion ends by itself.
pub const PORTION_ROWS: usize = 1 << 17;

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AppendedValue<'a> {
    /// NULL, of any type.
    Null,
    /// For columns of type boolean.
    Boolean(bool),
    /// For columns of whole numbers, and of floats.
    Integer(i64),
    /// For columns of floats.
    Float(f64),
    /// For columns of text; for other columns their value as SQL reads it in quotes.
    Text(&'a str),
    /// Days since 1970, for columns of type date.
    Date(i32),
    /// Microseconds since 1970, for columns of type timestamp, with time zone or without.
    Timestamp(i64),
}

macro_rules! values_from {
    ($($of:ty => $variant:ident),*) => {
        $(impl From<$of> for AppendedValue<'_> {
            fn from(value: $of) -> Self {
                AppendedValue::$variant(value.into())
            }
        })*
    };
}

values_from!(bool => Boolean, i16 => Integer, i32 => Integer, i64 => Integer, f32 => Float, f64 => Float);

impl<'a> From<&'a str> for AppendedValue<'a> {
    fn from(value: &'a str) -> Self {
        AppendedValue::Text(value)
    }
}

impl<'a> From<&'a String> for AppendedValue<'a> {
    fn from(value: &'a String) -> Self {
        AppendedValue::Text(value)
    }
}

impl<'a, V: Into<AppendedValue<'a>>> From<Option<V>> for AppendedValue<'a> {
    fn from(value: Option<V>) -> Self {
        value.map_or(AppendedValue::Null, Into::into)
    }
}

/// Gives rows to a table. See the [module page](self).
pub struct Appender<'s> {
    taker: Taker<'s>,
    table: String,
    rows: RowColumns,
    /// Rows in commits so far.
    appended: u64,
}

/// Whatever commits portions.
enum Taker<'s> {
    Session(&'s mut Session),
    Connection(&'s mut Connection),
}

impl Session {
    /// Starts to give rows to a table value by value.
    ///
    /// # Errors
    /// `Invalid` when there is no such table.
    pub fn appender(&mut self, table: &str) -> Result<Appender<'_>, Error> {
        let schema = self.table_schema(table)?;
        Ok(Appender::new(Taker::Session(self), table, schema))
    }
}

impl Connection {
    /// Starts to give rows to a table value by value.
    ///
    /// # Errors
    /// `Invalid` when there is no such table; `Closed` when the database was closed.
    pub fn appender(&mut self, table: &str) -> Result<Appender<'_>, Error> {
        let relations = self.relations()?.into_iter();
        let mut tables = relations.filter(|relation| relation.kind == ObjectKind::Table);
        let Some(found) = tables.find(|relation| relation.name == table) else {
            return Err(Error::invalid(format!("table \"{table}\" does not exist")).with_sqlstate("42P01"));
        };
        Ok(Appender::new(Taker::Connection(self), table, found.schema))
    }
}

impl<'s> Appender<'s> {
    fn new(taker: Taker<'s>, table: &str, schema: SchemaRef) -> Appender<'s> {
        Appender { taker, table: table.to_owned(), rows: RowColumns::new(&schema), appended: 0 }
    }

    /// The next value of the row.
    ///
    /// # Errors
    /// `Invalid` when the row has all of its values, or the value is not for the column's type; the
    /// row is as before then.
    #[inline]
    pub fn append<'v>(&mut self, value: impl Into<AppendedValue<'v>>) -> Result<(), Error> {
        self.rows.append(value.into()).map_err(|problem| problem.of_table(&self.table))
    }

    /// The row is complete. A full portion is committed.
    ///
    /// # Errors
    /// `Invalid` when values are missing; as [`flush`](Self::flush).
    #[inline]
    pub fn end_row(&mut self) -> Result<(), Error> {
        self.rows.end_row().map_err(|problem| problem.of_table(&self.table))?;
        if self.rows.n_rows() >= PORTION_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    /// All values of a row.
    ///
    /// # Errors
    /// As [`append`](Self::append) and [`end_row`](Self::end_row).
    pub fn append_row<'v>(&mut self, values: impl IntoIterator<Item = AppendedValue<'v>>) -> Result<(), Error> {
        values.into_iter().try_for_each(|value| self.append(value))?;
        self.end_row()
    }

    /// Forgets the values of a row that is not complete.
    pub fn cancel_row(&mut self) {
        self.rows.cancel_row();
    }

    /// Commits the complete rows.
    ///
    /// # Errors
    /// `Invalid` when a row is not complete. As [`Session::insert`]; the portion is lost then.
    pub fn flush(&mut self) -> Result<(), Error> {
        let Some(rows) = self.rows.take().map_err(|problem| problem.of_table(&self.table))? else { return Ok(()) };
        self.taker.take(&self.table, &rows)?;
        self.appended += rows.num_rows() as u64;
        Ok(())
    }

    /// Commits the complete rows and ends. Returns how many rows were committed in all.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn finish(mut self) -> Result<u64, Error> {
        self.flush()?;
        Ok(self.appended)
    }
}

impl Taker<'_> {
    fn take(&mut self, table: &str, rows: &RecordBatch) -> Result<Time, Error> {
        match self {
            Taker::Session(session) => session.insert(table, rows),
            Taker::Connection(connection) => connection.insert(table, rows),
        }
    }
}
