//! A scratch folder, and a source read to its end.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use anabranch_engine::{Connector, Error, Poll, ReadProgress, SourceReader, SourceSpec};
use anabranch_file::FileConnector;
use arrow::{
    array::RecordBatch,
    compute::concat_batches,
    datatypes::{DataType, Field},
    util::display::{ArrayFormatter, FormatOptions},
};

/// A folder that goes away with its test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("anabranch-file-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        path.display().to_string()
    }

    /// `text` without this folder's name.
    pub fn hide(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.0.display()), "")
    }
}

/// A text as gzip packs it.
pub fn packed(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn columns(columns: &[(&str, DataType)]) -> Vec<Field> {
    columns.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true)).collect()
}

pub fn open(path: &str, columns: &[Field], options: &[(&str, &str)]) -> Result<Box<dyn SourceReader>, Error> {
    let mut spec = SourceSpec { name: "s".into(), columns: columns.to_vec(), ..Default::default() };
    spec.options.insert("path".into(), path.into());
    spec.options.extend(options.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    FileConnector.open(&spec)
}

/// Goes on where another reader of the same columns was.
pub fn resume(
    path: &str,
    columns: &[Field],
    options: &[(&str, &str)],
    position: &str,
) -> Result<Box<dyn SourceReader>, Error> {
    let mut spec = SourceSpec { name: "s".into(), columns: columns.to_vec(), ..Default::default() };
    spec.options.insert("path".into(), path.into());
    spec.options.extend(options.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    FileConnector.resume(&spec, position)
}

/// What came out of a source.
pub struct Read {
    pub rows: Vec<String>,
    pub error: Option<Error>,
    pub progress: ReadProgress,
    pub types: Vec<String>,
}

/// Rows as text (`a|b`, `NULL`), in polls of `rows_max`.
pub fn read_in(mut reader: Box<dyn SourceReader>, rows_max: usize) -> Read {
    let before = reader.progress().rows;
    let mut batches: Vec<RecordBatch> = Vec::new();
    let error = loop {
        match reader.poll(rows_max) {
            Ok(Poll::Rows(batch)) => {
                assert!((1..=rows_max).contains(&batch.num_rows()));
                assert_eq!(batch.schema(), reader.schema());
                batches.push(batch);
            }
            Ok(Poll::Done) => break None,
            Ok(Poll::Pending { .. }) => panic!("files never make one wait"),
            Err(error) => break Some(error),
        }
    };
    let progress = reader.progress();
    let schema = reader.schema();
    let all = concat_batches(&schema, &batches).unwrap();
    assert_eq!(progress.rows, before + all.num_rows() as u64);
    if error.is_none() {
        assert_eq!(Some(progress.bytes_read), progress.bytes_total, "a source read to its end has read all bytes");
    }
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> = all.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
    let row = |i: usize| columns.iter().map(|c| c.value(i).to_string()).collect::<Vec<_>>().join("|");
    let types = schema.fields().iter().map(|f| format!("{} {}", f.name(), f.data_type())).collect();
    Read { rows: (0..all.num_rows()).map(row).collect(), error, progress, types }
}

pub fn read(reader: Box<dyn SourceReader>) -> Read {
    read_in(reader, 1 << 16)
}

/// All rows of a file that must be good.
pub fn rows(path: &str, columns: &[Field], options: &[(&str, &str)]) -> Vec<String> {
    let read = read(open(path, columns, options).unwrap());
    assert_eq!(read.error, None);
    read.rows
}

/// The error that opening or reading gives, as `message / hint`.
pub fn problem(folder: &Folder, path: &str, columns: &[Field], options: &[(&str, &str)]) -> String {
    let error = match open(path, columns, options) {
        Err(error) => error,
        Ok(reader) => read(reader).error.expect("an error"),
    };
    let hint = error.hint.map(|hint| format!(" / {hint}")).unwrap_or_default();
    folder.hide(&format!("{}{hint}", error.message))
}
