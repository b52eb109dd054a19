//! The SQL records (`tests/slt`) over the wire: answers as text, as a client reads them.
//!
//! What differs from a session by itself is named in [`DIFFERENCES`], with its reason.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqllogictest::{DB, DBOutput, DefaultColumnType, Record, Runner, parse_file};

use crate::support::{Raw, config, field, start};

/// Files with records that fail over the wire, how many, and why.
const DIFFERENCES: &[(&str, usize, &str)] = &[];

/// Failures of a file that are printed.
const FAILURES_SHOWN: usize = 6;

/// A client behind sqllogictest's `DB`.
struct Client(Raw);

/// An error as the server tells it: message, detail and hint.
#[derive(Debug)]
struct Failure(String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

const BOOL: u32 = 16;
const BPCHAR: u32 = 1042;
const INTEGERS: [u32; 4] = [20, 21, 23, 26];
const NUMBERS: [u32; 3] = [700, 701, 1700];

fn int(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The types of a RowDescription.
fn types_of(body: &[u8]) -> Vec<u32> {
    let mut rest = &body[2..];
    let mut types = Vec::new();
    while let Some(end) = rest.iter().position(|byte| *byte == 0) {
        types.push(int(rest, end + 7) as u32);
        rest = &rest[end + 19..];
    }
    types
}

/// The cells of a DataRow.
fn cells_of(body: &[u8], types: &[u32]) -> Vec<String> {
    let mut at = 2;
    let cell = |of: &u32| {
        let length = int(body, at);
        at += 4;
        if length < 0 {
            return "NULL".to_owned();
        }
        let text = String::from_utf8(body[at..at + length as usize].to_vec()).unwrap();
        at += length as usize;
        shown(text, *of)
    };
    types.iter().map(cell).collect()
}

/// A cell as the files have it: numerics without trailing zeros, zero without a sign, `char(n)`
/// without its spaces.
fn shown(text: String, of: u32) -> String {
    let short = match (of, text.contains('.')) {
        (1700, true) => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        (BPCHAR, _) => text.trim_end().to_owned(),
        _ => text,
    };
    match short.as_str() {
        "" => "(empty)".to_owned(),
        "-0" if of != BOOL => "0".to_owned(),
        _ => short,
    }
}

fn letter(of: &u32) -> DefaultColumnType {
    match *of {
        of if INTEGERS.contains(&of) => DefaultColumnType::Integer,
        of if NUMBERS.contains(&of) => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}

impl DB for Client {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        self.0.send(b'Q', format!("{sql}\0").as_bytes());
        let (mut types, mut rows, mut error) = (None, vec![], None);
        let mut count = 0;
        loop {
            let (letter, body) = self.0.receive().ok_or_else(|| Failure("the connection ended".to_owned()))?;
            match letter {
                b'T' => (types, rows) = (Some(types_of(&body)), vec![]),
                b'D' => rows.push(cells_of(&body, types.as_deref().unwrap())),
                b'C' => {
                    let tag = String::from_utf8_lossy(&body[..body.len() - 1]).into_owned();
                    count = tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
                }
                b'E' => {
                    let parts = [b'M', b'D', b'H'].into_iter().filter_map(|letter| field(&body, letter));
                    error = Some(Failure(parts.collect::<Vec<_>>().join("; ")));
                }
                b'Z' => break,
                _ => {}
            }
        }
        match (error, types) {
            (Some(error), _) => Err(error),
            (None, Some(types)) => Ok(DBOutput::Rows { types: types.iter().map(self::letter).collect(), rows }),
            (None, None) => Ok(DBOutput::StatementComplete(count)),
        }
    }

    fn engine_name(&self) -> &str {
        "anabranch"
    }
}

fn folder() -> PathBuf {
    Path::new("../../tests/slt").to_path_buf()
}

/// The records of a file that fail, over a server of its own.
fn failures_of(path: &Path) -> Vec<String> {
    let server = start(&config());
    let address = server.address();
    let mut runner = Runner::new(|| async move {
        let (raw, _) = Raw::log_in(address);
        // (Some records take long in a build without optimisation.)
        raw.stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        Ok(Client(raw))
    });
    let records: Vec<Record<DefaultColumnType>> = parse_file(path).unwrap();
    records
        .into_iter()
        .filter_map(|record| runner.run(record).err())
        .map(|error| error.display(false).to_string())
        .collect()
}

#[test]
fn records_have_the_same_answers_over_the_wire() {
    let only = std::env::var("NAME").unwrap_or_default();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "slt"));
    files.sort();
    let mut unexpected = Vec::new();
    for path in files {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if !name.contains(&only) {
            continue;
        }
        let failures = failures_of(&path);
        let known = DIFFERENCES.iter().find(|(file, ..)| *file == name).map_or(0, |(_, known, _)| *known);
        if failures.len() != known {
            let shown: Vec<String> = failures.iter().take(FAILURES_SHOWN).cloned().collect();
            unexpected.push(format!(
                "{name}: {} records fail, {known} are known\n{}",
                failures.len(),
                shown.join("\n---\n")
            ));
        }
    }
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n==========\n"));
}
