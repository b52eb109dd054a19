//! How answers are shown: `.mode`, `.headers`, `\x`, `\pset`; and `\set`, `\echo`.

use clap::ValueEnum;

use super::words::{complain, switch};
use crate::{
    output::Format,
    run::{Runner, Status},
    target::Target,
};

/// `.mode [FORMAT]`, by the names of sqlite too.
pub(super) fn mode(runner: &mut Runner<'_>, argument: &str) -> Status {
    let name = match argument {
        "" => {
            println!("{}", runner.format.name());
            return Status::Good;
        }
        "line" => "table",
        "column" | "box" | "aligned" => "table",
        "list" | "tabs" | "unaligned" => "plain",
        name => name,
    };
    match Format::from_str(name, true) {
        Ok(format) => {
            runner.format = format;
            runner.layout.expanded = argument == "line" || (argument != "table" && runner.layout.expanded);
            Status::Good
        }
        Err(_) => complain(&format!(
            "there is no format {argument}\nhint: Formats are table, line, csv, json, jsonl, markdown and plain."
        )),
    }
}

/// `\x [on | off | auto]`.
pub(super) fn expanded(runner: &mut Runner<'_>, argument: &str) -> Status {
    runner.layout.expands_wide = argument == "auto";
    if argument == "auto" {
        runner.layout.expanded = false;
        println!("The expanded display is for rows that are wider than the screen.");
        return Status::Good;
    }
    switch("expanded display", argument, &mut runner.layout.expanded)
}

pub(super) fn pager(runner: &mut Runner<'_>, argument: &str) -> Status {
    match &mut runner.target {
        Target::Terminal { pages } => switch("pager", argument, pages),
        _ => complain("the pager needs a terminal, and answers that go there"),
    }
}

pub(super) fn headers(runner: &mut Runner<'_>, argument: &str) -> Status {
    switch("line of names", argument, &mut runner.layout.has_names)
}

/// `\pset NAME [VALUE]`.
pub(super) fn pset(runner: &mut Runner<'_>, argument: &str) -> Status {
    let (name, value) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    let value = value.trim();
    match name {
        "null" => {
            runner.layout.null = unquoted(value).into();
            Status::Good
        }
        "format" => mode(runner, value),
        "expanded" | "x" => expanded(runner, value),
        "pager" => pager(runner, value),
        "tuples_only" | "t" => match value {
            "on" => headers(runner, "off"),
            "off" => headers(runner, "on"),
            value => headers(runner, value),
        },
        _ => complain(&format!(
            "\\pset does not set {name}\nhint: It sets null, format, expanded, pager and tuples_only."
        )),
    }
}

/// `\set [NAME [VALUE]]`.
pub(super) fn set(runner: &mut Runner<'_>, argument: &str) -> Status {
    let (name, value) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    if name.is_empty() {
        runner.variables.iter().for_each(|(name, value)| println!("{name} = '{value}'"));
        return Status::Good;
    }
    if !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return complain(&format!("{name} is no name of a variable\nhint: Use letters, digits and _."));
    }
    runner.variables.set(name, unquoted(value.trim()));
    Status::Good
}

pub(super) fn unset(runner: &mut Runner<'_>, argument: &str) -> Status {
    runner.variables.unset(argument);
    Status::Good
}

/// `\echo TEXT`.
pub(super) fn echo(runner: &mut Runner<'_>, argument: &str) -> Status {
    println!("{}", unquoted(&runner.variables.put_into(argument)));
    Status::Good
}

/// A text without the quotes around it.
fn unquoted(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inside('\'').or(inside('"')).unwrap_or(text)
}
