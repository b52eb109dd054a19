//! The connector `file`: CSV, JSON lines, Parquet and TPC-H `tbl` files as bounded sources.
//!
//! Law: every row of every file is either delivered once, in file order and line order, or counted
//! as skipped with the place and reason of the first one kept; nothing is dropped in silence. A bad
//! value names file, line, column, value and the type that was expected. Memory is bounded by one
//! block of a file (a few MiB) and one batch, whatever the file's size. Delimited text is split and
//! parsed column by column without an allocation per value.
//!
//! Options of a source or `COPY`:
//!
//! | option | meaning |
//! |---|---|
//! | `path` | a file, a folder, or a pattern with `*`, `?` and `[..]`; several files are read in name order |
//! | `format` | `csv`, `json` (one object a line), `parquet`, `tbl`; else told by the file name's ending |
//! | `header` | `true` or `false`; else found out from the first line (csv) |
//! | `delimiter`, `quote` | one ASCII character each; `quote = ''` switches quoting off |
//! | `null` | the unquoted text that means NULL; the empty text unless told |
//! | `on_error` | `fail` (default): stop at the first bad row; `skip`: leave bad rows out and count them |
//! | `follow` | `true`: the source has no end; lines that are added and files that are new are read |
//! | `poll` | time from one look at the files to the next, with `follow`; `1 s` unless told |
//!
//! `COPY` reads csv itself, as `COPY .. FROM STDIN` does: it takes files and their bytes from here.
//!
//! Declared columns are found by name (csv with a header, json, parquet) or by position (tbl, csv
//! without a header). Modules in reading order: [`options`], [`paths`], [`position`], [`faults`],
//! [`window`], [`delimited`], [`json`], [`columnar`], [`follow`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod columnar;
mod content;
mod delimited;
mod faults;
mod follow;
mod json;
mod names;
mod options;
mod paths;
mod position;
mod window;

use std::io::Read;
use std::path::{Path, PathBuf};

use anabranch_engine::{Connector, Error, SourceReader, SourceSpec};

use arrow::datatypes::Field;

use crate::{
    columnar::ParquetReader,
    delimited::DelimitedReader,
    follow::FollowReader,
    json::JsonReader,
    options::{FileFormat, FileOptions},
    position::Position,
};

/// Opens files as sources. Stateless: one value serves all sources of a session.
///
/// ```
/// use std::sync::Arc;
/// let connector: Arc<dyn anabranch_engine::Connector> = Arc::new(anabranch_file::FileConnector);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct FileConnector;

impl Connector for FileConnector {
    fn open(&self, spec: &SourceSpec) -> Result<Box<dyn SourceReader>, Error> {
        let options = FileOptions::parse(&spec.options)?;
        match options.follow {
            true => Ok(Box::new(FollowReader::open(&spec.columns, &options)?)),
            false => open(spec, &options, None),
        }
    }

    fn files(&self, spec: &SourceSpec) -> Result<Option<Vec<PathBuf>>, Error> {
        // (The other options are those of COPY.)
        let path = spec.options.get("path").map(String::as_str).unwrap_or_default();
        let is_csv = spec.options.get("format").is_some_and(|format| format.eq_ignore_ascii_case("csv"));
        paths::expand(path, is_csv.then_some(FileFormat::Csv)).map(Some)
    }

    fn content(&self, file: &Path) -> Result<Box<dyn Read + Send>, Error> {
        let opened = content::Content::open(file).map_err(|problem| faults::unreadable(file, problem))?;
        Ok(Box::new(opened))
    }

    fn edition(&self, spec: &SourceSpec) -> Result<Option<String>, Error> {
        let options = FileOptions::parse(&spec.options)?;
        // (Files that are followed change: rows that have passed are kept instead.)
        if options.follow {
            return Ok(None);
        }
        paths::edition(&paths::expand(&options.path, options.format)?)
    }

    fn resume(&self, spec: &SourceSpec, position: &str) -> Result<Box<dyn SourceReader>, Error> {
        let options = FileOptions::parse(&spec.options)?;
        match options.follow {
            true => Ok(Box::new(FollowReader::resume(&spec.columns, &options, position)?)),
            false => open(spec, &options, Some(Position::read(position)?)),
        }
    }
}

fn open(spec: &SourceSpec, options: &FileOptions, from: Option<Position>) -> Result<Box<dyn SourceReader>, Error> {
    let files = paths::expand(&options.path, options.format)?;
    let format = match options.format {
        Some(format) => format,
        None => FileFormat::of_file(&files[0])?,
    };
    options.check_for(format)?;
    from.as_ref().map_or(Ok(()), |from| from.check_place(&files))?;
    reader(files, format, &spec.columns, options, from)
}

/// A reader of at least one file.
fn reader(
    files: Vec<PathBuf>,
    format: FileFormat,
    columns: &[Field],
    options: &FileOptions,
    from: Option<Position>,
) -> Result<Box<dyn SourceReader>, Error> {
    Ok(match format {
        FileFormat::Csv | FileFormat::Tbl => Box::new(DelimitedReader::open(files, format, columns, options, from)?),
        FileFormat::Json => Box::new(JsonReader::open(files, columns, options, from)?),
        FileFormat::Parquet => Box::new(ParquetReader::open(files, columns, options, from)?),
    })
}
