//! A moving window of bytes over a list of files.
//!
//! Law: `bytes()` starts at the first byte not yet consumed of the current file, and `line()` is
//! that byte's line. Files do not run into each other: a file's last line ends with the file,
//! unless the file grows: then a last line without an end is not complete yet. Cost: each byte is
//! copied once from the file, and once more for each refill that happens while it is unconsumed (a
//! partial line, so a few hundred bytes).

use std::{
    collections::VecDeque,
    io::Read,
    path::{Path, PathBuf},
};

use anabranch_engine::Error;

use crate::{
    content::Content,
    faults::{malformed, unreadable},
    position::{Position, TAIL_BYTES, changed, tail_of},
};

/// Bytes asked for in one read.
const BLOCK_BYTES: usize = 4 << 20;
/// Same, of a file that grows: it is opened anew each time that it has grown.
const GROWN_BYTES: usize = 256 << 10;
/// The longest line or record, in bytes: beyond it a quote is taken to be left open.
pub(crate) const RECORD_BYTES_MAX: usize = 16 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct FileWindow {
    files: VecDeque<PathBuf>,
    current: Option<(PathBuf, Content)>,
    buffer: Vec<u8>,
    /// First unconsumed byte.
    start: usize,
    /// The current file has no bytes beyond the buffer.
    at_end: bool,
    /// Whether bytes may still be written behind the current end.
    grows: bool,
    /// Line of `start`, counted from one.
    line: u64,
    /// Bytes consumed of all files, unpacked.
    pub consumed: u64,
    /// Bytes of all files when they were listed: as they lie on disk, of packed ones that were read
    /// to their end unpacked.
    pub total: u64,
    /// Bytes consumed before the current file.
    before: u64,
    /// Place of the current file among all.
    file_idx: usize,
}

impl FileWindow {
    /// # Errors
    /// A file whose size cannot be asked for.
    pub(crate) fn new(files: &[PathBuf]) -> Result<FileWindow, Error> {
        let mut total = 0;
        for path in files {
            total += path.metadata().map_err(|e| unreadable(path, e))?.len();
        }
        Ok(FileWindow {
            files: files.iter().cloned().collect(),
            current: None,
            buffer: Vec::new(),
            start: 0,
            at_end: true,
            grows: false,
            line: 1,
            consumed: 0,
            total,
            before: 0,
            file_idx: 0,
        })
    }

    /// The files are plain text to which lines are still added.
    pub(crate) fn growing(mut self) -> FileWindow {
        self.grows = true;
        self
    }

    /// Whether the end of a file is no end of a line.
    pub(crate) fn grows(&self) -> bool {
        self.grows
    }

    /// Opens the next file and reads its first block. `false` when there is none left.
    pub(crate) fn next_file(&mut self) -> Result<bool, Error> {
        self.settle_total();
        let Some(path) = self.files.pop_front() else {
            self.current = None;
            return Ok(false);
        };
        let file = Content::open(&path).map_err(|e| unreadable(&path, e))?;
        self.file_idx += usize::from(self.current.is_some());
        self.before = self.consumed;
        self.current = Some((path, file));
        self.buffer.clear();
        self.start = 0;
        self.at_end = false;
        self.line = 1;
        self.fill()?;
        self.check_text()?;
        if self.bytes().starts_with(b"\xEF\xBB\xBF") {
            self.consume(3, 0);
        }
        Ok(true)
    }

    /// How long a packed file is, is known at its end.
    fn settle_total(&mut self) {
        let Some((path, _)) = self.current.as_ref().filter(|(_, file)| file.is_packed()) else { return };
        if let Ok(metadata) = path.metadata() {
            self.total = (self.total + self.consumed - self.before).saturating_sub(metadata.len());
        }
    }

    /// Leaves out the files before the one in which reading goes on. No file is open yet.
    pub(crate) fn skip_files(&mut self, from: &Position) -> Result<(), Error> {
        for path in self.files.drain(..from.file_idx.min(self.files.len())) {
            self.consumed += path.metadata().map_err(|e| unreadable(&path, e))?.len();
        }
        self.file_idx = from.file_idx;
        Ok(())
    }

    /// Goes on in the open file where another reader was, if the file is what it was.
    pub(crate) fn skip_to(&mut self, from: &Position) -> Result<(), Error> {
        let Some((path, file)) = &mut self.current else { return Ok(()) };
        if !file.reaches(from.at).map_err(|e| unreadable(path, e))? {
            return Err(changed(path, "it is shorter"));
        }
        let n_bytes = from.tail.0.min(TAIL_BYTES as u64).min(from.at);
        let mut tail = vec![0; n_bytes as usize];
        file.go_to(path, from.at - n_bytes)
            .and_then(|_| file.read_exact(&mut tail))
            .map_err(|e| unreadable(path, e))?;
        if tail_of(&tail) != from.tail {
            return Err(changed(path, "other bytes stand where reading stopped"));
        }
        self.buffer.clear();
        self.start = 0;
        self.consumed = self.before + from.at;
        self.line = from.line;
        self.fill()?;
        Ok(())
    }

    /// Where the first byte not yet consumed is; `None` when no file is open.
    pub(crate) fn position(&self) -> Option<Position> {
        let (path, _) = self.current.as_ref()?;
        Some(Position {
            file_idx: self.file_idx,
            path: path.clone(),
            at: self.consumed - self.before,
            line: self.line,
            tail: tail_of(&self.buffer[..self.start]),
            ..Position::default()
        })
    }

    /// Whether a file is open.
    pub(crate) fn is_open(&self) -> bool {
        self.current.is_some()
    }

    /// The open file.
    pub(crate) fn path(&self) -> &Path {
        self.current.as_ref().map_or(Path::new(""), |(path, _)| path)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Whether the window ends where the last line ends.
    pub(crate) fn at_end(&self) -> bool {
        self.at_end && !self.grows
    }

    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Moves on by `bytes` that hold `lines` ends of lines.
    pub(crate) fn consume(&mut self, bytes: usize, lines: u64) {
        self.start += bytes;
        self.consumed += bytes as u64;
        self.line += lines;
    }

    /// Reads another block behind the unconsumed bytes; says whether there were any.
    pub(crate) fn fill(&mut self) -> Result<bool, Error> {
        let Some((path, file)) = &mut self.current else { return Ok(false) };
        let block_bytes = if self.grows { GROWN_BYTES } else { BLOCK_BYTES };
        self.buffer.drain(..self.start);
        self.start = 0;
        let held = self.buffer.len();
        let read =
            file.by_ref().take(block_bytes as u64).read_to_end(&mut self.buffer).map_err(|e| unreadable(path, e))?;
        debug_assert_eq!(self.buffer.len(), held + read);
        self.at_end = read < block_bytes;
        Ok(read > 0)
    }

    /// Compressed and columnar files read as text give nonsense; say so instead.
    fn check_text(&self) -> Result<(), Error> {
        let kind = match self.bytes() {
            [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd-compressed",
            [b'P', b'K', 3, 4, ..] => "a zip archive",
            [b'P', b'A', b'R', b'1', ..] => "a Parquet file",
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "text in UTF-16",
            _ => return Ok(()),
        };
        Err(malformed(self.path(), format!("it is {kind}, where plain UTF-8 text was expected")).with_hint(
            match kind {
                "a Parquet file" => "Read it with format = 'parquet'.",
                "text in UTF-16" => "Convert it first, for example with iconv -f utf-16 -t utf-8.",
                _ => "Unpack it first.",
            },
        ))
    }
}

/// Ends of lines among `bytes`.
pub(crate) fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}
