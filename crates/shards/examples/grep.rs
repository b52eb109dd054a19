//! Distributed grep: files lie in shards, each shard keeps the lines that match, nothing moves.
//!
//! `cargo run -p anabranch-shards --example grep -- PATTERN FILE ..`      (PATTERN is one of LIKE)

use std::fs;

use anabranch_engine::Error;
use anabranch_engine::frame::{Event, col, lit};
use anabranch_shards::{Layout, Shards};
use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};

/// A line that matches: file, number from 1, text.
pub type Found = (String, i64, String);

/// The program: lines `(file, number, line)` in, those like the pattern out.
pub fn program(pattern: &str, layout: Layout) -> Shards {
    let field = |name: &str, data_type| Field::new(name, data_type, false);
    let columns = [("file", DataType::Utf8View), ("number", DataType::Int64), ("line", DataType::Utf8View)];
    let schema = Schema::new(columns.map(|(name, data_type)| field(name, data_type)).to_vec());
    let pattern = pattern.to_owned();
    Shards::source("lines", schema, layout).query(move |lines| lines.filter(col("line").like(lit(pattern.as_str()))))
}

/// Lines of named texts that are like the pattern, in the order of files and lines. A text is in
/// one shard, whole.
pub fn grep(pattern: &str, texts: &[(String, String)], layout: Layout) -> Result<Vec<Found>, Error> {
    let program = program(pattern, layout);
    program.check()?;
    let mut run = program.run()?;
    for (at, (file, text)) in texts.iter().enumerate() {
        let line = |(number, line): (usize, &str)| {
            Event::point(0, [file.as_str().into(), (number as i64 + 1).into(), line.into()])
        };
        run.push("lines", at % layout.shards(), text.lines().enumerate().map(line).collect::<Vec<_>>())?;
    }
    let mut found = Vec::new();
    for batch in run.finish()?.shards.into_iter().flatten() {
        let text = |column: usize, row: usize| batch.column(column).as_string_view().value(row).to_owned();
        let number = |row: usize| batch.column(1).as_primitive::<Int64Type>().value(row);
        found.extend((0..batch.len()).map(|row| (text(0, row), number(row), text(2, row))));
    }
    found.sort();
    Ok(found)
}

#[allow(dead_code, reason = "tests have no use for it")]
fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let Some(pattern) = arguments.next() else {
        println!("grep PATTERN FILE ..      PATTERN is one of LIKE: '%frontier%'");
        return Ok(());
    };
    let read = |file: String| match fs::read_to_string(&file) {
        Ok(text) => Ok((file, text)),
        Err(problem) => Err(Error::unavailable(format!("cannot read {file}: {problem}"))),
    };
    let texts = arguments.map(read).collect::<Result<Vec<_>, _>>()?;
    for (file, number, line) in grep(&pattern, &texts, Layout::flat(2))? {
        println!("{file}:{number}: {line}");
    }
    Ok(())
}
