//! The parameters of `.input` and `.output`.

use anabranch_engine::Error;
use anabranch_engine::nearest::nearest;

use crate::ast::{Directive, DirectiveKind, Name};

/// Where a relation's rows come from or go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    File,
    /// Standard input or output.
    Standard,
}

/// What a directive says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FactOptions {
    pub channel: Channel,
    /// The file's name; by default the relation's, with its ending.
    pub filename: Option<String>,
    pub delimiter: String,
    /// Whether the first line has the names of the columns.
    pub headers: bool,
    /// Whether fields are in double quotes, which are doubled inside.
    pub rfc4180: bool,
    /// The field of each attribute.
    pub columns: Option<Vec<usize>>,
}

const KNOWN: [&str; 7] = ["IO", "filename", "name", "delimiter", "headers", "rfc4180", "columns"];

impl FactOptions {
    pub fn of(directive: &Directive) -> Result<FactOptions, Error> {
        let mut options = FactOptions {
            channel: Channel::File,
            filename: None,
            delimiter: String::new(),
            headers: false,
            rfc4180: false,
            columns: None,
        };
        for (name, value) in &directive.parameters {
            options.set(directive.kind, name, value)?;
        }
        if options.delimiter.is_empty() {
            options.delimiter = if options.rfc4180 { "," } else { "\t" }.to_owned();
        }
        if options.rfc4180 && options.delimiter.contains('"') {
            return Err(Error::invalid("the delimiter of rfc4180 cannot be a double quote").at(directive.at.start));
        }
        Ok(options)
    }

    /// Whether both mean the same file.
    pub fn is_same_place(&self, other: &FactOptions) -> bool {
        self.channel == other.channel && self.filename == other.filename
    }

    fn set(&mut self, kind: DirectiveKind, name: &Name, value: &str) -> Result<(), Error> {
        match name.text.as_str() {
            "IO" => self.channel = channel(kind, value).map_err(|error| error.at(name.at.start))?,
            "filename" | "name" => self.filename = Some(value.to_owned()),
            "delimiter" if value.is_empty() => {
                return Err(Error::invalid("the delimiter is empty").at(name.at.start));
            }
            "delimiter" => self.delimiter = value.to_owned(),
            "headers" => self.headers = truth(name, value)?,
            "rfc4180" => self.rfc4180 = truth(name, value)?,
            "columns" if kind == DirectiveKind::Input => {
                let columns: Option<Vec<usize>> = value.split(':').map(|column| column.trim().parse().ok()).collect();
                self.columns = Some(columns.ok_or_else(|| {
                    Error::invalid(format!("columns are \"{value}\""))
                        .at(name.at.start)
                        .with_hint("Write the fields' numbers, from 0, with colons between: columns=\"2:0\".")
                })?);
            }
            "compress" if value == "false" => {}
            "compress" => {
                return Err(Error::invalid("compressed files are not supported")
                    .at(name.at.start)
                    .with_hint("Unpack the file before (gunzip)."));
            }
            other => {
                let error = Error::invalid(format!("there is no parameter {other}")).at(name.at.start);
                return Err(match nearest(other, KNOWN) {
                    Some(near) => error.with_hint(format!("Did you mean {near}?")),
                    None => error.with_hint(format!("Parameters: {}.", KNOWN.join(", "))),
                });
            }
        }
        Ok(())
    }
}

fn channel(kind: DirectiveKind, value: &str) -> Result<Channel, Error> {
    match (value, kind) {
        ("file", _) => Ok(Channel::File),
        ("stdin", DirectiveKind::Input) => Ok(Channel::Standard),
        ("stdout", DirectiveKind::Output | DirectiveKind::PrintSize) => Ok(Channel::Standard),
        ("stdoutprintsize", DirectiveKind::PrintSize) => Ok(Channel::Standard),
        (other, DirectiveKind::Input) => Err(Error::invalid(format!("IO={other} is not supported"))
            .with_hint("IO=file and IO=stdin are. Rows of other sources can be put into the relation's table by SQL.")),
        (other, _) => Err(Error::invalid(format!("IO={other} is not supported"))
            .with_hint("IO=file and IO=stdout are. Answers are views, which SQL reads.")),
    }
}

fn truth(name: &Name, value: &str) -> Result<bool, Error> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => {
            Err(Error::invalid(format!("{} is {value}", name.text)).at(name.at.start).with_hint("Write true or false."))
        }
    }
}
