//! Reads what is new of the files of a path, look by look.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::{Error, Poll, ReadProgress, SourceReader};
use arrow::datatypes::{Field, Schema, SchemaRef};

use super::FILES_MAX;
use super::places::{FilePlace, Places};
use crate::content::Content;
use crate::delimited::check_columns;
use crate::faults::{invalid, unreadable};
use crate::options::{FileFormat, FileOptions};
use crate::paths;
use crate::position::{Position, changed};

/// What stands at the end of a complete Parquet file.
const PARQUET_END: [u8; 4] = *b"PAR1";

/// See the [module](super).
pub(crate) struct FollowReader {
    options: FileOptions,
    format: FileFormat,
    schema: SchemaRef,
    places: Places,
    /// Sizes at the last look.
    sizes: HashMap<PathBuf, u64>,
    /// Files with something to read, in the order of their names.
    due: VecDeque<Due>,
    open: Option<Open>,
    /// When the files are looked at next.
    look_at: Instant,
    /// Whether all that was there at first was read.
    has_caught_up: bool,
    /// Bytes read of the files that are not open.
    bytes_read: u64,
    /// Bytes of all files at the last look.
    bytes_total: u64,
    first_skipped: Option<String>,
}

/// A file that has something to read.
#[derive(Debug)]
struct Due {
    path: PathBuf,
    /// Its size at the look.
    bytes: u64,
    /// Whether lines may be added to it.
    grows: bool,
}

/// The file that is read.
struct Open {
    due: Due,
    reader: Box<dyn SourceReader>,
    /// Rows left out of it before.
    skipped: u64,
}

impl FollowReader {
    /// Looks at the files that are there; finds the columns in the first of them unless they are
    /// declared.
    pub(crate) fn open(columns: &[Field], options: &FileOptions) -> Result<FollowReader, Error> {
        let format = format_of(options)?;
        options.check_for(format)?;
        if matches!(format, FileFormat::Csv | FileFormat::Tbl) {
            check_columns(columns)?;
        }
        // A folder or a pattern may have no file yet; a path without one is more likely misspelt.
        if !paths::is_pattern(&options.path) && !Path::new(&options.path).is_dir() {
            paths::expand(&options.path, Some(format))?;
        }
        let mut reader = FollowReader::new(columns, options, format, Places::default());
        reader.look()?;
        if let Some(due) = reader.due.pop_front() {
            reader.open_file(due)?;
        } else if columns.is_empty() {
            return Err(invalid(format!(
                "no file of '{}' has a row yet, so its columns cannot be found",
                options.path
            ))
            .with_hint("Declare the columns: CREATE SOURCE name (column type, ..) WITH (..)."));
        }
        if let Some(open) = &reader.open {
            reader.schema = open.reader.schema();
        }
        Ok(reader)
    }

    /// Goes on where another reader was.
    pub(crate) fn resume(columns: &[Field], options: &FileOptions, position: &str) -> Result<FollowReader, Error> {
        let places = Places::read(position)?;
        let format = format_of(options)?;
        options.check_for(format)?;
        let mut reader = FollowReader::new(columns, options, format, places);
        reader.bytes_read = reader.places.bytes();
        Ok(reader)
    }

    fn new(columns: &[Field], options: &FileOptions, format: FileFormat, places: Places) -> FollowReader {
        FollowReader {
            options: options.clone(),
            format,
            schema: Arc::new(Schema::new(columns.to_vec())),
            places,
            sizes: HashMap::new(),
            due: VecDeque::new(),
            open: None,
            look_at: Instant::now(),
            has_caught_up: false,
            bytes_read: 0,
            bytes_total: 0,
            first_skipped: None,
        }
    }

    /// Finds the files that have something to read. None is open.
    fn look(&mut self) -> Result<(), Error> {
        self.look_at = Instant::now() + self.options.interval();
        let files = paths::look(&self.options.path, self.format)?;
        if files.len() > FILES_MAX {
            return Err(invalid(format!("{} files match '{}'", files.len(), self.options.path))
                .with_detail(format!("A source follows {FILES_MAX} files at most."))
                .with_hint("Follow fewer by a narrower pattern; move files that were read out of the folder."));
        }
        self.places.keep_only(&files);
        let before = std::mem::take(&mut self.sizes);
        (self.bytes_read, self.bytes_total) = (self.places.bytes(), 0);
        for path in files {
            // (A file may go while the others are looked at.)
            let Some(metadata) = there(fs::metadata(&path)).map_err(|e| unreadable(&path, e))? else { continue };
            let bytes = metadata.len();
            self.bytes_total += bytes;
            let has_new_size = before.get(&path) != Some(&bytes);
            if let Some(grows) = self.due_of(&path, &metadata, has_new_size)? {
                self.due.push_back(Due { path: path.clone(), bytes, grows });
            }
            self.sizes.insert(path, bytes);
        }
        Ok(())
    }

    /// Whether the file has something to read, and if so, whether it grows.
    fn due_of(&self, path: &Path, metadata: &Metadata, has_new_size: bool) -> Result<Option<bool>, Error> {
        let bytes = metadata.len();
        match self.places.get(path) {
            Some(FilePlace::Whole { bytes: before }) if *before == bytes => return Ok(None),
            Some(FilePlace::Whole { .. }) => return Err(changed(path, "it was read to its end, and has another size")),
            // (A text whose last line has no end yet is opened once for each size.)
            Some(FilePlace::Open(_)) if !has_new_size => return Ok(None),
            _ => {}
        }
        let still_for = metadata.modified().ok().map(|at| at.elapsed().unwrap_or(Duration::MAX));
        let is_still = still_for.is_none_or(|time| time >= self.options.interval());
        let readiness = there(readiness(path, self.format, is_still)).map_err(|e| unreadable(path, e))?;
        Ok(match (readiness, self.places.get(path)) {
            (Some(Readiness::Whole), _) => Some(false),
            (Some(Readiness::Grows), Some(FilePlace::Open(position))) if bytes < position.at => {
                return Err(changed(path, "it is shorter"));
            }
            (Some(Readiness::Grows), place) => (bytes > place.map_or(0, FilePlace::bytes)).then_some(true),
            (Some(Readiness::NotYet) | None, _) => None,
        })
    }

    /// Opens a file behind what was read of it.
    fn open_file(&mut self, due: Due) -> Result<(), Error> {
        let from = match self.places.get(&due.path) {
            Some(FilePlace::Open(position)) => Some(position.clone()),
            _ => None,
        };
        let skipped = from.as_ref().map_or(0, |from| from.skipped);
        self.bytes_read -= self.places.get(&due.path).map_or(0, FilePlace::bytes);
        let columns: Vec<Field> = self.schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        let mut options = self.options.clone();
        options.follow = due.grows;
        let reader = crate::reader(vec![due.path.clone()], self.format, &columns, &options, from)?;
        self.open = Some(Open { due, reader, skipped });
        Ok(())
    }

    /// Notes how far the open file was read.
    fn note_place(&mut self) -> Result<(), Error> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let progress = open.reader.progress();
        self.places.skipped += progress.skipped - open.skipped;
        open.skipped = progress.skipped;
        if self.first_skipped.is_none() {
            self.first_skipped = progress.first_skipped;
        }
        if let Some(position) = open.reader.position() {
            self.places.set(&open.due.path, FilePlace::Open(Position::read(&position)?));
        }
        Ok(())
    }

    /// Closes the open file; one that does not grow was read to its end.
    fn close_file(&mut self) {
        let Some(Open { due, .. }) = self.open.take() else { return };
        if !due.grows {
            self.places.set(&due.path, FilePlace::Whole { bytes: due.bytes });
        }
        self.bytes_read += self.places.get(&due.path).map_or(0, FilePlace::bytes);
    }

    /// Whether the open file was read as far as it was at the look.
    fn is_read(&self) -> bool {
        let Some(Open { due, .. }) = &self.open else { return false };
        due.grows && self.places.get(&due.path).is_some_and(|place| place.bytes() >= due.bytes)
    }
}

impl SourceReader for FollowReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn poll(&mut self, rows_max: usize) -> Result<Poll, Error> {
        loop {
            if let Some(open) = &mut self.open {
                let polled = open.reader.poll(rows_max);
                self.note_place()?;
                match polled? {
                    Poll::Rows(batch) => {
                        self.places.rows += batch.num_rows() as u64;
                        if self.is_read() {
                            self.close_file();
                        }
                        return Ok(Poll::Rows(batch));
                    }
                    Poll::Pending { .. } | Poll::Done => self.close_file(),
                }
                continue;
            }
            if let Some(due) = self.due.pop_front() {
                self.open_file(due)?;
                continue;
            }
            let now = Instant::now();
            if now >= self.look_at {
                self.look()?;
                if !self.due.is_empty() {
                    continue;
                }
            }
            self.has_caught_up = true;
            return Ok(Poll::Pending { retry_after: self.look_at.saturating_duration_since(now) });
        }
    }

    fn progress(&self) -> ReadProgress {
        let open = self.open.as_ref().map(|open| open.reader.progress().bytes_read);
        ReadProgress {
            bytes_read: self.bytes_read + open.unwrap_or(0),
            bytes_total: (!self.has_caught_up).then_some(self.bytes_total),
            rows: self.places.rows,
            skipped: self.places.skipped,
            first_skipped: self.first_skipped.clone(),
        }
    }

    fn position(&self) -> Option<String> {
        Some(self.places.to_text())
    }

    /// What is there when reading begins has an end; statements wait for that.
    fn bounded(&self) -> bool {
        !self.has_caught_up
    }
}

/// Whether a file can be read, and how far.
enum Readiness {
    /// Lines may be added.
    Grows,
    /// It is complete.
    Whole,
    /// It is still written.
    NotYet,
}

fn readiness(path: &Path, format: FileFormat, is_still: bool) -> io::Result<Readiness> {
    if format == FileFormat::Parquet {
        let mut file = File::open(path)?;
        let mut end = [0; PARQUET_END.len()];
        let has_end = file.seek(SeekFrom::End(-(end.len() as i64))).and_then(|_| file.read_exact(&mut end)).is_ok();
        return Ok(if has_end && end == PARQUET_END { Readiness::Whole } else { Readiness::NotYet });
    }
    Ok(match (Content::open(path)?.is_packed(), is_still) {
        (false, _) => Readiness::Grows,
        (true, true) => Readiness::Whole,
        (true, false) => Readiness::NotYet,
    })
}

/// `None` for a file that is gone.
fn there<T>(asked: io::Result<T>) -> io::Result<Option<T>> {
    match asked {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// The format that the options say, else the ending of the path, else the first file in the folder.
fn format_of(options: &FileOptions) -> Result<FileFormat, Error> {
    let path = Path::new(&options.path);
    if let Some(format) = options.format.or_else(|| FileFormat::of_ending(path)) {
        return Ok(format);
    }
    let files = paths::expand(&options.path, None)?;
    FileFormat::of_file(&files[0])
}
