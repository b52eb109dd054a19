//! Answers to files and standard output.

use std::fs::{File, create_dir_all};
use std::io::{self, BufWriter, Write};

use anabranch_engine::{Error, ErrorKind};

use super::options::{Channel, FactOptions};
use super::{Folders, Progress, unavailable};
use crate::core::Relation;
use crate::install::{Host, Installed};
use crate::record;
use crate::value::{Base, Value};

/// Writes the rows of a relation.
pub(super) fn rows(
    installed: &Installed,
    host: &mut impl Host,
    name: &str,
    options: &FactOptions,
    folders: &Folders,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    progress(Progress::Computing { relation: name.to_owned() });
    let rows = installed.rows(host, name)?;
    let id = installed.core().relation_named(name).ok_or_else(|| Error::internal(format!("{name} is gone")))?;
    let relation = &installed.core().relations[id];
    match (&folders.output, options.channel) {
        (Some(folder), Channel::File) => {
            let file = options.filename.clone().unwrap_or_else(|| format!("{name}.csv"));
            let path = folder.join(file);
            let parent = path.parent().unwrap_or(folder);
            create_dir_all(parent).map_err(|problem| unavailable("make the folder", parent, &problem))?;
            let file = File::create(&path).map_err(|problem| unavailable("write", &path, &problem))?;
            let mut writer = BufWriter::new(file);
            let written = write_rows(&mut writer, relation, &rows, options, options.headers);
            written.and_then(|()| writer.flush()).map_err(|problem| unavailable("write", &path, &problem))?;
        }
        _ => print(out, relation, &rows, options).map_err(|problem| cannot_print(&problem))?,
    }
    progress(Progress::Written { relation: name.to_owned(), rows: rows.len() as u64 });
    Ok(())
}

/// Prints a relation's name and the number of its rows.
pub(super) fn size(
    installed: &Installed,
    host: &mut impl Host,
    name: &str,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    progress(Progress::Computing { relation: name.to_owned() });
    let rows = installed.rows(host, name)?.len();
    writeln!(out, "{name}\t{rows}").map_err(|problem| cannot_print(&problem))?;
    progress(Progress::Written { relation: name.to_owned(), rows: rows as u64 });
    Ok(())
}

fn cannot_print(problem: &io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("cannot print the answer: {problem}"))
}

/// The frame that Souffle prints around a relation.
fn print(out: &mut dyn Write, relation: &Relation, rows: &[Vec<Value>], options: &FactOptions) -> io::Result<()> {
    writeln!(out, "---------------\n{}", relation.name)?;
    let names: Vec<&str> = relation.columns.iter().map(|column| column.name.as_str()).collect();
    if !relation.is_nullary {
        writeln!(out, "{}", names.join(&options.delimiter))?;
    }
    writeln!(out, "===============")?;
    write_rows(out, relation, rows, options, false)?;
    writeln!(out, "===============")
}

fn write_rows(
    out: &mut dyn Write,
    relation: &Relation,
    rows: &[Vec<Value>],
    options: &FactOptions,
    headers: bool,
) -> io::Result<()> {
    if headers && !relation.is_nullary {
        let names: Vec<&str> = relation.columns.iter().map(|column| column.name.as_str()).collect();
        writeln!(out, "{}", names.join(&options.delimiter))?;
    }
    for row in rows {
        if relation.is_nullary {
            writeln!(out, "()")?;
            continue;
        }
        for (idx, (value, column)) in row.iter().zip(&relation.columns).enumerate() {
            if idx > 0 {
                out.write_all(options.delimiter.as_bytes())?;
            }
            out.write_all(field(value, column.base, options.rfc4180).as_bytes())?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn field(value: &Value, base: Base, is_quoted: bool) -> String {
    let text = match value {
        Value::Text(text) if base.is_structured() && !is_quoted => record::plain(text),
        Value::Text(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
    };
    match is_quoted {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}
