//! How far each file was read, as a text that a later reader goes on from.
//!
//! One line for all files, then a line for each: `open` with a position ([`Position`]), or `whole`
//! with the size of a file that was read to its end and does not grow.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anabranch_engine::Error;

use crate::position::Position;

/// The first word of the text.
const WORD: &str = "follow";

/// How far one file was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FilePlace {
    /// Reading goes on here.
    Open(Position),
    /// It was read to its end, and had so many bytes.
    Whole { bytes: u64 },
}

impl FilePlace {
    /// Bytes that were read (rows, in the middle of a Parquet file).
    pub fn bytes(&self) -> u64 {
        match self {
            FilePlace::Open(position) => position.at,
            FilePlace::Whole { bytes } => *bytes,
        }
    }
}

/// How far all files were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// Rows given of all files, also of those that are gone.
    pub rows: u64,
    /// Rows left out.
    pub skipped: u64,
    of_file: BTreeMap<PathBuf, FilePlace>,
}

impl Places {
    pub fn get(&self, path: &Path) -> Option<&FilePlace> {
        self.of_file.get(path)
    }

    pub fn set(&mut self, path: &Path, place: FilePlace) {
        match self.of_file.get_mut(path) {
            Some(known) => *known = place,
            None => {
                self.of_file.insert(path.to_path_buf(), place);
            }
        }
    }

    /// Forgets files that are not among these, which are in the order of their names.
    pub fn keep_only(&mut self, files: &[PathBuf]) {
        self.of_file.retain(|path, _| files.binary_search(path).is_ok());
    }

    /// Bytes read of the files that are known.
    pub fn bytes(&self) -> u64 {
        self.of_file.values().map(FilePlace::bytes).sum()
    }

    pub fn to_text(&self) -> String {
        let mut text = format!("{WORD} {} {}", self.rows, self.skipped);
        for (path, place) in &self.of_file {
            // (A line end in a file's name would end the line.)
            let line = match place {
                FilePlace::Open(position) => format!("open {}", position.to_text()),
                FilePlace::Whole { bytes } => format!("whole {bytes} {}", path.display()),
            };
            let _ = write!(text, "\n{}", line.replace('\\', "\\\\").replace('\n', "\\n"));
        }
        text
    }

    /// What [`to_text`](Self::to_text) wrote.
    ///
    /// # Errors
    /// `Data` for other texts.
    pub fn read(text: &str) -> Result<Places, Error> {
        let malformed = |line: &str| Error::data(format!("'{line}' is no place in files that are followed"));
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let numbers: Vec<u64> = match first.split_once(' ') {
            Some((WORD, numbers)) => numbers.split(' ').filter_map(|number| number.parse().ok()).collect(),
            _ => return Err(malformed(first)),
        };
        let &[rows, skipped] = numbers.as_slice() else { return Err(malformed(first)) };
        let mut places = Places { rows, skipped, of_file: BTreeMap::new() };
        for written in lines {
            let line = unescaped(written);
            let (path, place) = match line.split_once(' ') {
                Some(("open", rest)) => {
                    let position = Position::read(rest)?;
                    (position.path.clone(), FilePlace::Open(position))
                }
                Some(("whole", rest)) => {
                    let (bytes, path) = rest.split_once(' ').ok_or_else(|| malformed(written))?;
                    let bytes = bytes.parse().map_err(|_| malformed(written))?;
                    (PathBuf::from(path), FilePlace::Whole { bytes })
                }
                _ => return Err(malformed(written)),
            };
            places.of_file.insert(path, place);
        }
        Ok(places)
    }
}

fn unescaped(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => out.push('\n'),
                other => out.extend(other),
            },
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_were_written() {
        let mut places = Places { rows: 7, skipped: 2, ..Places::default() };
        let path = PathBuf::from("a folder/b\nc\\n.csv");
        let position = Position { path: path.clone(), at: 17, line: 3, tail: (3, 99), ..Position::default() };
        places.set(&path, FilePlace::Open(position));
        places.set(Path::new("d e.parquet"), FilePlace::Whole { bytes: 12 });
        assert_eq!(Places::read(&places.to_text()).unwrap(), places);
        assert_eq!(Places::read(&Places::default().to_text()).unwrap(), Places::default());
        for text in ["", "follow", "follow 1", "follow 1 2\nopen 3", "follow 1 2\nwhole x y", "1 2 3"] {
            assert!(Places::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn files_that_are_gone_are_forgotten() {
        let mut places = Places::default();
        places.set(Path::new("a"), FilePlace::Whole { bytes: 1 });
        places.set(Path::new("b"), FilePlace::Whole { bytes: 2 });
        places.keep_only(&[PathBuf::from("b"), PathBuf::from("c")]);
        assert_eq!((places.get(Path::new("a")), places.bytes()), (None, 2));
    }
}
