//! Files that grow, and files that are new: each row once, across restarts.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use anabranch_engine::store::{SimulatedDisk, StoreOptions, Threads};
use anabranch_engine::{Error, Options, Poll, Session, SourceReader, SourceState};
use anabranch_file::FileConnector;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::parquet;
use crate::support::*;

const FOLLOW: [(&str, &str); 2] = [("follow", "true"), ("poll", "1 ms")];

fn pairs() -> Vec<Field> {
    columns(&[("k", DataType::Utf8View), ("x", DataType::Int64)])
}

fn texts(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> = batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
    let row = |i: usize| columns.iter().map(|c| c.value(i).to_string()).collect::<Vec<_>>().join("|");
    (0..batch.num_rows()).map(row).collect()
}

/// All rows that are there now, in polls of `rows_max`: a look that finds nothing new comes last.
fn taken_in(reader: &mut dyn SourceReader, rows_max: usize) -> Result<Vec<String>, Error> {
    let (mut rows, mut n_idle) = (Vec::new(), 0);
    while n_idle < 3 {
        match reader.poll(rows_max)? {
            Poll::Rows(batch) => {
                assert!((1..=rows_max).contains(&batch.num_rows()));
                rows.extend(texts(&batch));
                n_idle = 0;
            }
            Poll::Pending { retry_after } => {
                sleep(retry_after);
                n_idle += 1;
            }
            Poll::Done => panic!("a source that follows has no end"),
        }
    }
    Ok(rows)
}

fn taken(reader: &mut dyn SourceReader) -> Vec<String> {
    taken_in(reader, 1000).unwrap()
}

fn append(path: &str, text: impl AsRef<[u8]>) {
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_ref()).unwrap();
}

#[test]
fn lines_count_when_they_are_complete() {
    let folder = Folder::new();
    for (name, options, parts) in [
        ("a.csv", vec![], ["k,", "x\na,1\nb", ",2", "\n\"c\n", "d\",3\ne,4\n"]),
        ("b.tbl", vec![], ["a|1", "|\nb|", "2|", "\nc\\nd|3", "|\ne|4|\n"]),
        (
            "c.txt",
            vec![("format", "csv"), ("delimiter", ";"), ("header", "false")],
            ["a", ";1\nb;2\n", "", "\"c\nd\";3\n\n\n", "e;4\n"],
        ),
        (
            "d.json",
            vec![],
            [
                "{\"k\":\"a\"",
                ",\"x\":1}\n{\"k\":\"b\",",
                "\"x\":2}",
                "\n{\"x\":3,\"k\":\"c\\nd\"}",
                "\n\n{\"x\":4,\"k\":\"e\"}\n",
            ],
        ),
    ] {
        let path = folder.write(name, "");
        let options = [&FOLLOW[..], &options].concat();
        let mut reader = open(&path, &pairs(), &options).unwrap();
        assert!(reader.bounded(), "what is there at first has an end");
        assert_eq!(taken(reader.as_mut()), Vec::<String>::new(), "{name}");
        assert!(!reader.bounded());
        let mut rows = Vec::new();
        for part in parts {
            append(&path, part);
            rows.extend(taken(reader.as_mut()));
        }
        let rows: Vec<String> = rows.iter().map(|row| row.replace("\\n", "\n")).collect();
        assert_eq!(rows, ["a|1", "b|2", "c\nd|3", "e|4"], "{name}");
        assert_eq!(reader.progress().rows, 4);
        assert_eq!(reader.progress().bytes_read, fs::metadata(&path).unwrap().len(), "{name}");
    }
}

#[test]
fn new_files_of_a_folder_and_a_pattern_are_read() {
    let folder = Folder::new();
    for path in ["", "/*.csv", "/**/*.csv"] {
        let at = format!("{}/{}", folder.path().display(), path.len());
        fs::create_dir_all(&at).unwrap();
        let declared = pairs();
        let options = [&FOLLOW[..], &[("format", "csv")]].concat();
        let mut reader = open(&format!("{at}{path}"), &declared, &options).unwrap();
        assert_eq!(taken(reader.as_mut()), Vec::<String>::new());
        fs::write(format!("{at}/b.csv"), "x,k\n1,b\n").unwrap();
        fs::write(format!("{at}/.hidden.csv"), "x,k\n9,h\n").unwrap();
        fs::write(format!("{at}/other.txt"), "x,k\n9,o\n").unwrap();
        assert_eq!(taken(reader.as_mut()), ["b|1"]);
        // (In front of the other one, with its columns elsewhere.)
        fs::write(format!("{at}/a.csv"), "k,x\na,2\n").unwrap();
        append(&format!("{at}/b.csv"), "3,b\n");
        assert_eq!(taken(reader.as_mut()), ["a|2", "b|3"]);
    }
}

#[test]
fn columns_are_found_in_the_first_file() {
    let folder = Folder::new();
    let path = folder.write("a.csv", "id,paid\n1,2.5\n");
    let mut reader = open(&path, &[], &FOLLOW).unwrap();
    assert_eq!(reader.schema().fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>(), ["id", "paid"]);
    append(&path, "2,3\n");
    assert_eq!(taken(reader.as_mut()), ["1|2.5", "2|3.0"]);
    let empty = folder.path().join("new").display().to_string();
    fs::create_dir_all(&empty).unwrap();
    let options = [&FOLLOW[..], &[("format", "csv")]].concat();
    let error = open(&empty, &[], &options).err().unwrap();
    assert_eq!(folder.hide(&error.message), "no file of 'new' has a row yet, so its columns cannot be found");
    let error = open(&folder.path().join("a.cvs").display().to_string(), &pairs(), &options).err().unwrap();
    assert!(error.hint.unwrap().contains("a.csv"), "a path without a file is taken for a mistake");
}

#[test]
fn complete_files_are_read_once_they_are_complete() {
    let folder = Folder::new();
    let whole = fs::read(parquet::write(&folder, "whole", 9)).unwrap();
    let at = folder.path().join("parts").display().to_string();
    fs::create_dir_all(&at).unwrap();
    let declared = columns(&[("id", DataType::Int64)]);
    let options = [&FOLLOW[..], &[("format", "parquet")]].concat();
    let mut reader = open(&at, &declared, &options).unwrap();
    let path = folder.write("parts/a.parquet", &whole[..whole.len() - 3]);
    assert_eq!(taken(reader.as_mut()), Vec::<String>::new());
    append(&path, &whole[whole.len() - 3..]);
    assert_eq!(taken_in(reader.as_mut(), 2).unwrap().len(), 9);
    append(&path, "x");
    let error = taken_in(reader.as_mut(), 2).unwrap_err();
    assert!(error.message.ends_with("it was read to its end, and has another size"), "{error:?}");

    let path = folder.path().join("packed/*.gz").display().to_string();
    fs::create_dir_all(folder.path().join("packed")).unwrap();
    let options = [("follow", "true"), ("poll", "300 ms"), ("format", "csv")];
    let mut reader = open(&path, &pairs(), &options).unwrap();
    let text = packed("k,x\na,1\nb,2");
    let part = folder.write("packed/a.csv.gz", &text[..12]);
    let Poll::Pending { retry_after } = reader.poll(9).unwrap() else { panic!("it is not complete") };
    sleep(retry_after.min(Duration::from_millis(100)));
    append(&part, &text[12..]);
    let mut rows = Vec::new();
    while rows.len() < 2 {
        match reader.poll(9).unwrap() {
            Poll::Rows(batch) => rows.extend(texts(&batch)),
            Poll::Pending { retry_after } => sleep(retry_after),
            Poll::Done => panic!("a source that follows has no end"),
        }
    }
    assert_eq!(rows, ["a|1", "b|2"]);
}

#[test]
fn files_that_are_not_what_they_were_are_errors() {
    let folder = Folder::new();
    for (after, how) in
        [("k,x\nz,9\n", "it is shorter"), ("k,x\nz,9\nz,9\nz,9\n", "other bytes stand where reading stopped")]
    {
        let path = folder.write("a.csv", "k,x\na,1\nb,2\n");
        let mut reader = open(&path, &pairs(), &FOLLOW).unwrap();
        assert_eq!(taken(reader.as_mut()).len(), 2);
        fs::write(&path, after).unwrap();
        let error = taken_in(reader.as_mut(), 10).unwrap_err();
        assert_eq!(folder.hide(&error.message), format!("file a.csv has changed since it was read: {how}"));
    }
}

#[test]
fn a_file_that_was_gone_is_a_new_one() {
    let folder = Folder::new();
    let path = folder.write("a.csv", "k,x\na,1\n");
    let mut reader = open(&path, &pairs(), &FOLLOW).unwrap();
    assert_eq!(taken(reader.as_mut()), ["a|1"]);
    fs::remove_file(&path).unwrap();
    assert_eq!(taken(reader.as_mut()), Vec::<String>::new());
    assert_eq!(reader.position().unwrap(), "follow 1 0", "what is kept of files that are gone does not grow");
    folder.write("a.csv", "k,x\nb,2\n");
    assert_eq!(taken(reader.as_mut()), ["b|2"]);
}

#[test]
fn bad_rows_are_counted_or_stop_the_source() {
    let folder = Folder::new();
    let path = folder.write("a.csv", "k,x\na,1\nb,y\n");
    let skip = [&FOLLOW[..], &[("on_error", "skip")]].concat();
    let mut reader = open(&path, &pairs(), &skip).unwrap();
    assert_eq!(taken(reader.as_mut()), ["a|1"]);
    let mut reader = resume(&path, &pairs(), &skip, &reader.position().unwrap()).unwrap();
    append(&path, "c,z\nd,4\n");
    assert_eq!(taken(reader.as_mut()), ["d|4"]);
    assert_eq!((reader.progress().skipped, reader.progress().rows), (2, 2));
    let mut reader = open(&path, &pairs(), &FOLLOW).unwrap();
    assert!(matches!(reader.poll(9), Ok(Poll::Rows(rows)) if rows.num_rows() == 1));
    let position = reader.position().unwrap();
    let error = reader.poll(9).unwrap_err();
    assert_eq!(folder.hide(&error.message), "a.csv, line 3, column \"x\": 'y' is not of type bigint");
    // Repaired, reading goes on behind what was given.
    folder.write("a.csv", "k,x\na,1\nb,2\nc,3\n");
    assert_eq!(taken(resume(&path, &pairs(), &FOLLOW, &position).unwrap().as_mut()), ["b|2", "c|3"]);
}

#[test]
fn options_that_mean_nothing_are_refused() {
    let folder = Folder::new();
    let path = folder.write("a.csv", "k,x\n");
    for (options, message) in [
        (vec![("poll", "1 s")], "option \"poll\" means nothing without \"follow\""),
        (vec![("follow", "true"), ("poll", "soon")], "option \"poll\" cannot be 'soon'"),
        (vec![("follow", "true"), ("poll", "0 s")], "option \"poll\" cannot be '0 s'"),
        (vec![("follow", "maybe")], "option \"follow\" cannot be 'maybe'"),
    ] {
        assert_eq!(open(&path, &pairs(), &options).err().unwrap().message, message);
    }
}

/// A generator of numbers below `n`.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

/// Files are written piece by piece, cut anywhere, while readers come and go, some of them before
/// they have taken all in: each row of each file comes once, in the order of the file.
#[test]
fn each_row_comes_once_whatever_is_cut() {
    for seed in 0..40 {
        let mut dice = Dice(seed);
        let folder = Folder::new();
        let is_csv = seed % 2 == 0;
        let ending = if is_csv { "csv" } else { "json" };
        let pattern = folder.path().join(format!("*.{ending}")).display().to_string();
        let mut unwritten: Vec<(String, Vec<u8>)> = (0..4)
            .map(|file| {
                let line = |x: usize| match (is_csv, x % 3) {
                    (true, 0) => format!("\"f{file}\n,\",{x}\r\n"),
                    (true, _) => format!("f{file},{x}\n"),
                    (false, _) => format!("{{\"x\": {x}, \"k\": \"f{file}\"}}\n"),
                };
                let lines: String = (0..dice.below(30)).map(line).collect();
                let header = if is_csv { "\u{feff}k,x\n" } else { "" };
                let path = folder.path().join(format!("{}{file}.{ending}", dice.below(9))).display().to_string();
                (path, format!("{header}{lines}").into_bytes())
            })
            .collect();
        let mut expected: Vec<Vec<String>> = Vec::new();
        for (file, (_, bytes)) in unwritten.iter().enumerate() {
            let text = String::from_utf8(bytes.clone()).unwrap();
            let n_rows =
                if is_csv { text.matches(",").count() - 1 - text.matches("\n,").count() } else { text.lines().count() };
            let name = |x: usize| {
                if is_csv && x.is_multiple_of(3) { format!("f{file}\n,|{x}") } else { format!("f{file}|{x}") }
            };
            expected.push((0..n_rows).map(name).collect());
        }
        let mut reader = open(&pattern, &pairs(), &FOLLOW).unwrap();
        let mut rows: Vec<String> = Vec::new();
        while unwritten.iter().any(|(_, bytes)| !bytes.is_empty()) {
            let file = dice.below(4);
            let (path, bytes) = &mut unwritten[file];
            let n = dice.below(bytes.len() + 1);
            append(path, bytes.drain(..n).collect::<Vec<u8>>());
            for _ in 0..dice.below(4) {
                match reader.poll(1 + dice.below(5)).unwrap() {
                    Poll::Rows(batch) => rows.extend(texts(&batch)),
                    Poll::Pending { retry_after } => sleep(retry_after),
                    Poll::Done => panic!("a source that follows has no end"),
                }
            }
            if dice.below(5) == 0 {
                let position = reader.position().unwrap();
                reader = resume(&pattern, &pairs(), &FOLLOW, &position).unwrap();
            }
        }
        rows.extend(taken_in(reader.as_mut(), 3).unwrap());
        for (file, expected) in expected.iter().enumerate() {
            let of_file: Vec<&String> = rows.iter().filter(|row| row.starts_with(&format!("f{file}"))).collect();
            assert_eq!(of_file, expected.iter().collect::<Vec<_>>(), "seed {seed}, file {file}");
        }
        assert_eq!(rows.len(), expected.iter().map(Vec::len).sum::<usize>());
    }
}

fn session(disk: &SimulatedDisk) -> Session {
    let keeping = StoreOptions { threads: Threads::None, ..StoreOptions::default() };
    let mut session = Session::open_on(Arc::new(disk.clone()), keeping, Options::default()).unwrap();
    session.register_connector("file", Arc::new(FileConnector));
    session
}

fn sums(session: &mut Session) -> Vec<String> {
    session.query("SELECT k, x FROM sums ORDER BY k").unwrap().batches.iter().flat_map(texts).collect()
}

fn until(session: &mut Session, expected: &[&str]) {
    for _ in 0..2000 {
        if sums(session) == expected {
            return;
        }
        session.step().unwrap();
        sleep(Duration::from_millis(1));
    }
    assert_eq!(sums(session), expected);
}

/// The same from SQL: a view over a folder is current, before and after the database was opened
/// again, and after the source was stopped.
#[test]
fn a_view_over_a_folder_stays_current_across_restarts() {
    let (folder, disk) = (Folder::new(), SimulatedDisk::new());
    let path = folder.write("a.csv", "k,x\na,1\n");
    let mut db = session(&disk);
    db.execute(&format!(
        "CREATE SOURCE s WITH (connector = 'file', path = '{}', follow = true, poll = '1 ms');
         CREATE MATERIALIZED VIEW sums AS SELECT k, sum(x) AS x FROM s GROUP BY k",
        folder.path().display()
    ))
    .unwrap();
    assert_eq!(sums(&mut db), ["a|1"], "a query waits for what was there at first");
    append(&path, "a,2\n");
    folder.write("b.csv", "k,x\nb,5\n");
    until(&mut db, &["a|3", "b|5"]);
    db.commit().unwrap();
    drop(db);

    append(&path, "a,4\n");
    folder.write("0.csv", "k,x\nc,7\n");
    let mut db = session(&disk);
    until(&mut db, &["a|7", "b|5", "c|7"]);
    let [status] = &db.sources()[..] else { panic!("one source") };
    assert_eq!((status.rows, status.bounded, &status.state), (5, false, &SourceState::Running));

    db.execute("ALTER SOURCE s STOP").unwrap();
    append(&path, "a,100\n");
    sleep(Duration::from_millis(5));
    db.step().unwrap();
    assert_eq!(sums(&mut db), ["a|7", "b|5", "c|7"]);
    drop(db);
    let mut db = session(&disk);
    assert_eq!(sums(&mut db), ["a|7", "b|5", "c|7"]);
    assert_eq!(db.sources()[0].state, SourceState::Done);
}

#[test]
fn statements_that_end_do_not_follow() {
    let folder = Folder::new();
    let path = folder.write("a.csv", "k,x\na,1\n");
    let mut session = Session::new(Options::default()).unwrap();
    session.register_connector("file", Arc::new(FileConnector));
    session.execute("CREATE TABLE t (k text, x int)").unwrap();
    for statement in [
        format!("COPY t FROM '{path}' WITH (follow = true)"),
        format!("SELECT * FROM read_csv('{path}', follow = true)"),
        format!("SELECT * FROM read_csv('{path}', follow := true)"),
    ] {
        let error = session.execute(&statement).unwrap_err();
        assert_eq!(error.sqlstate(), "0A000", "{error:?}");
        assert!(error.message.ends_with("the option \"follow\" belongs to CREATE SOURCE"), "{error:?}");
    }
}

/// A source that has failed is stopped for good, too: the database does not try it again.
#[test]
fn a_failed_source_stays_stopped() {
    let (folder, disk) = (Folder::new(), SimulatedDisk::new());
    let path = folder.write("a.csv", "k,x\na,1\nb,y\n");
    let mut db = session(&disk);
    db.execute(&format!(
        "CREATE SOURCE s (k text, x bigint) WITH (connector = 'file', path = '{path}', follow = true, poll = '1 ms');
         CREATE MATERIALIZED VIEW sums AS SELECT k, sum(x) AS x FROM s GROUP BY k"
    ))
    .unwrap();
    while !matches!(db.sources()[0].state, SourceState::Failed(_)) {
        db.step().unwrap();
    }
    db.execute("ALTER SOURCE s STOP; ALTER SOURCE s STOP").unwrap();
    assert!(matches!(db.sources()[0].state, SourceState::Failed(_)), "it still tells why");
    drop(db);
    folder.write("a.csv", "k,x\na,1\nb,2\n");
    let mut db = session(&disk);
    assert_eq!(db.sources()[0].state, SourceState::Done);
    assert_eq!(sums(&mut db), ["a|1"]);
}
