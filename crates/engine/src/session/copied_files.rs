//! COPY .. FROM of files of text, csv and the binary format: the decoder of STDIN reads them.
//!
//! Law: a file gives the rows that STDIN gives of the same bytes and options. Of several files each
//! begins anew, with its own header and its own lines. Packed files, folders and patterns are the
//! connector's to find and to unpack; one plain file needs no connector.

use std::io::Read;
use std::path::{Path, PathBuf};

use anabranch_sql::statement::{CopyFrom, CopyOptions};

use super::outcome::Outcome;
use super::state::Session;
use super::state::copying::{CopyIn, PIECE_BYTES};
use crate::catalog::Object;
use crate::connector::{ReadProgress, SourceSpec, plain_content};
use crate::error::{Error, of_file};

/// The endings of files that connectors read.
const ENDINGS_OF_CONNECTORS: [&str; 6] = ["parquet", "pq", "json", "jsonl", "ndjson", "tbl"];
/// The formats of the decoder.
const FORMATS: [&str; 3] = ["text", "csv", "binary"];

impl Session {
    /// The COPY with its format said, and its files, where the decoder reads them: the format is
    /// said, or told by the ending of the first file, and text where that names none.
    ///
    /// # Errors
    /// Of the connector, which finds the files.
    pub(super) fn decoded(
        &self,
        copy: &CopyFrom,
        path: &str,
        spec: &SourceSpec,
    ) -> Result<Option<(CopyFrom, Vec<PathBuf>)>, Error> {
        let said = said_format(&copy.options);
        if said.as_ref().is_some_and(|format| !FORMATS.contains(&format.as_str())) {
            return Ok(None);
        }
        let place = Path::new(path);
        let files = match place.is_file() {
            true => Some(vec![place.to_owned()]),
            false => match self.connector("file") {
                Ok(connector) => connector.files(spec)?,
                Err(_) => Some(vec![place.to_owned()]),
            },
        };
        let Some(files) = files else { return Ok(None) };
        let ending = files.first().map(|file| ending_of(file)).unwrap_or_default();
        let format = match said {
            Some(format) => format,
            None if ENDINGS_OF_CONNECTORS.contains(&ending.as_str()) => return Ok(None),
            None if ending == "csv" => "csv".to_owned(),
            None => "text".to_owned(),
        };
        let mut decoded = copy.clone();
        decoded.options.plain.retain(|(name, _)| name != "format");
        decoded.options.plain.push(("format".to_owned(), format));
        Ok(Some((decoded, files)))
    }

    pub(super) fn copy_files(&mut self, copy: &CopyFrom, files: &[PathBuf], object: &Object) -> Result<Outcome, Error> {
        let (mut copying, _) = self.copy_in(copy)?;
        let mut progress = ReadProgress {
            bytes_total: files.iter().map(|file| file.metadata().ok().map(|file| file.len())).sum(),
            ..ReadProgress::default()
        };
        let read = files.iter().try_for_each(|file| {
            if files.len() > 1 {
                copying.decoder = copying.decoder.anew(&format!("{}, file {}", copy.table, file.display()));
            }
            self.copy_file(&mut copying, file, object, &mut progress)
        });
        self.publish_progress();
        read?;
        self.finish_copy_in(copying)
    }

    fn copy_file(
        &mut self,
        copying: &mut CopyIn,
        file: &Path,
        object: &Object,
        progress: &mut ReadProgress,
    ) -> Result<(), Error> {
        let unread = |error: std::io::Error| of_file(&file.display().to_string(), "read", &error);
        let mut content = self.content(file)?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            self.interrupt.check()?;
            let n = content.read(&mut piece).map_err(unread)?;
            if n == 0 {
                break;
            }
            for block in copying.decoder.push(&piece[..n])? {
                self.take_block(copying, block)?;
            }
            progress.bytes_read += n as u64;
            progress.rows = copying.spool.n_rows() as u64;
            self.publish_copy(object, progress.clone(), progress.rows);
        }
        match copying.decoder.finish()? {
            Some(block) => self.take_block(copying, block),
            None => Ok(()),
        }
    }

    /// The bytes of a file: unpacked, where a connector knows how.
    fn content(&self, file: &Path) -> Result<Box<dyn Read + Send>, Error> {
        match self.connector("file") {
            Ok(connector) => connector.content(file),
            Err(_) => plain_content(file),
        }
    }
}

fn said_format(options: &CopyOptions) -> Option<String> {
    options.plain.iter().find(|(name, _)| name == "format").map(|(_, value)| value.to_lowercase())
}

/// The ending of a file's name, without `.gz`, in lower case.
fn ending_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let unpacked = name.strip_suffix(".gz").unwrap_or(&name);
    unpacked.rsplit_once('.').map_or_else(String::new, |(_, ending)| ending.to_owned())
}
