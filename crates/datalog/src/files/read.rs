//! Facts from files and standard input, a few thousand at a time.

use std::fs::File;
use std::io::{BufRead, BufReader, stdin};
use std::path::PathBuf;

use anabranch_engine::Error;

use super::options::{Channel, FactOptions};
use super::{Folders, Progress, split, unavailable};
use crate::core::{Core, Relation};
use crate::install::{Host, Installed, batch};
use crate::value::Value;

/// Facts that are put in together.
const BATCH_FACTS: usize = 65_536;

/// Reads the facts of a relation.
pub(super) fn facts(
    installed: &Installed,
    host: &mut impl Host,
    relation: &str,
    options: &FactOptions,
    folders: &Folders,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    let (id, table) = installed.table(relation)?;
    let columns = &installed.core().relations[id];
    let mut facts = vec![];
    let mut n_facts = 0;
    let mut keep = |facts: &mut Vec<Vec<Value>>, n_facts: &mut u64| {
        host.add_rows(&table.name, &batch(columns, facts)?)?;
        *n_facts += facts.len() as u64;
        facts.clear();
        progress(Progress::Read { relation: relation.to_owned(), facts: *n_facts });
        Ok::<(), Error>(())
    };
    let mut lines = Lines::open(relation, options, folders)?;
    while let Some(line) = lines.next(options.rfc4180)? {
        if options.headers && lines.n_records == 1 {
            continue;
        }
        let fact = fact(&line, columns, options, installed.core());
        facts.push(fact.map_err(|problem| lines.error(&problem))?);
        if facts.len() == BATCH_FACTS {
            keep(&mut facts, &mut n_facts)?;
        }
    }
    keep(&mut facts, &mut n_facts)
}

/// The lines of a file, with what messages need.
struct Lines {
    reader: Box<dyn BufRead>,
    path: PathBuf,
    n_lines: u64,
    n_records: u64,
}

impl Lines {
    fn open(relation: &str, options: &FactOptions, folders: &Folders) -> Result<Lines, Error> {
        let (reader, path): (Box<dyn BufRead>, PathBuf) = match options.channel {
            Channel::Standard => (Box::new(BufReader::new(stdin())), PathBuf::from("standard input")),
            Channel::File => {
                let name = options.filename.clone().unwrap_or_else(|| format!("{relation}.facts"));
                let path = folders.facts.join(name);
                let file = File::open(&path).map_err(|problem| {
                    unavailable("open", &path, &problem)
                        .with_detail(format!("Relation {relation} has its facts there."))
                        .with_hint("Name the folder of the facts with -F, or the file with filename=\"..\".")
                })?;
                (Box::new(BufReader::new(file)), path)
            }
        };
        Ok(Lines { reader, path, n_lines: 0, n_records: 0 })
    }

    /// The next line, or the lines of the next quoted record.
    fn next(&mut self, is_quoted: bool) -> Result<Option<String>, Error> {
        let mut record = String::new();
        loop {
            let mut bytes = vec![];
            let n_bytes = self
                .reader
                .read_until(b'\n', &mut bytes)
                .map_err(|problem| unavailable("read", &self.path, &problem))?;
            if n_bytes == 0 {
                return match record.is_empty() {
                    true => Ok(None),
                    false => Err(self.error("a field's closing quote is missing")),
                };
            }
            self.n_lines += 1;
            let line = String::from_utf8(bytes).map_err(|_| self.error("the line is not UTF-8"))?;
            let line = line.strip_suffix('\n').unwrap_or(&line);
            record.push_str(line.strip_suffix('\r').unwrap_or(line));
            if !(is_quoted && split::is_open(&record)) {
                self.n_records += 1;
                return Ok(Some(record));
            }
            record.push('\n');
        }
    }

    fn error(&self, problem: &str) -> Error {
        Error::data(format!("{}:{}: {problem}", self.path.display(), self.n_lines))
    }
}

fn fact(line: &str, relation: &Relation, options: &FactOptions, core: &Core) -> Result<Vec<Value>, String> {
    if relation.is_nullary {
        return match line.trim() {
            "()" | "" => Ok(vec![Value::Number(1)]),
            other => Err(format!("'{other}' is no fact of a relation without attributes")),
        };
    }
    let place = |attribute: usize| match &options.columns {
        Some(columns) => columns.get(attribute).copied(),
        None => Some(attribute),
    };
    let is_structured = |field: usize| {
        let column = relation.columns.iter().enumerate().find(|(idx, _)| place(*idx) == Some(field));
        column.is_some_and(|(_, column)| column.base.is_structured())
    };
    let fields = match options.rfc4180 {
        true => split::quoted_fields(line, &options.delimiter)?,
        false => split::fields(line, &options.delimiter, &is_structured),
    };
    let (has, wants) = (fields.len(), relation.columns.len());
    if options.columns.is_none() && has > wants {
        return Err(format!("the line has {has} fields, but relation {} has {wants} attributes", relation.name));
    }
    let mut values = vec![];
    for (idx, column) in relation.columns.iter().enumerate() {
        let field = place(idx).and_then(|place| fields.get(place));
        let field = field.ok_or_else(|| {
            format!("the line has {has} fields, but attribute {} of {} wants another", column.name, relation.name)
        })?;
        let value = split::value(field, column.base, core);
        values.push(value.map_err(|problem| format!("{problem} (attribute {} of {})", column.name, relation.name))?);
    }
    Ok(values)
}
