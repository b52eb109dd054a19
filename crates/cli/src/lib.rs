//! The command line of Anabranch, as a library: the program `anabranch` and the Python package run
//! it.
//!
//! `anabranch` is a shell, `-c` and `-f` (or a pipe) run scripts, `anabranch demo` shows standing
//! queries over real data. `anabranch FOLDER` opens a database on disk; `check`, `dump` and
//! `restore` look after one ([`folder`]). Statements run in a [`place`]: a session on a thread of
//! its own ([`host`]), so that sources go on streaming while the user types or reads, or a server
//! ([`remote`]).
//!
//! Exit codes: 0 all went well, 1 a statement failed, 2 the command line was wrong, 130
//! interrupted.
//!
//! Reading order: [`arguments`], [`place`], [`reply`], [`host`], [`remote`], [`run`] (one
//! statement, from text to printed answer), [`live`], [`output`], [`target`], [`progress`],
//! [`copy`], [`data`], [`signals`], [`terminal`], [`script`], [`shell`], [`demo`], [`datalog`],
//! [`plan`], [`linear_road`], [`serve`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod arguments;
mod copy;
mod data;
mod datalog;
mod demo;
mod folder;
mod host;
mod linear_road;
mod live;
mod output;
mod place;
mod plan;
mod progress;
mod remote;
mod reply;
mod run;
mod script;
mod serve;
mod shell;
mod signals;
mod target;
mod terminal;

use std::ffi::OsString;
use std::io::{IsTerminal, stdin};

use anabranch_engine::Error;
use clap::{CommandFactory, FromArgMatches};

use crate::{
    arguments::{Arguments, Command},
    host::Host,
    place::Place,
    remote::Remote,
    run::{Runner, Status},
};

/// Runs a command line, the program's name first: the exit code. Help, and a command line that is
/// wrong, end the process.
pub fn run_command_line(words: impl IntoIterator<Item = OsString>) -> u8 {
    let matches = Arguments::command().get_matches_from(words);
    let arguments = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    let texts = arguments::texts(&matches);
    match run(&arguments, texts) {
        Ok(status) => status.code(),
        Err(error) => {
            eprintln!("{}", error.render(""));
            Status::Failed.code()
        }
    }
}

fn run(arguments: &Arguments, texts: Vec<arguments::Text>) -> Result<Status, Error> {
    match &arguments.command {
        Some(Command::Demo(demo)) => return demo::run(demo, arguments.workers()),
        Some(Command::Check(check)) => return folder::check(&check.folder),
        Some(Command::Dump(dump)) => return folder::dump(dump),
        Some(Command::Restore(restore)) => return folder::restore(restore),
        Some(Command::Serve(serve)) => return serve::run(serve, arguments.workers_given()),
        Some(Command::Plan(program)) => return plan::run(program, arguments.workers()),
        Some(Command::Datalog(program)) => return datalog::run(program, arguments.workers()),
        Some(Command::LinearRoad(road)) => return linear_road::run(road, arguments.workers()),
        Some(Command::Password(password)) => return serve::make_password(password),
        None => {}
    }
    let shell = arguments.interactive || (texts.is_empty() && stdin().is_terminal());
    let place = match &arguments.connect {
        Some(url) => Place::Remote(Box::new(Remote::connect(url)?)),
        None => {
            if let Some(folder) = &arguments.folder {
                folder::check_name(folder)?;
            }
            let host = Host::start(arguments.workers(), arguments.folder.clone(), arguments.snapshots.clone())?;
            Place::Embedded { host, folder: arguments.folder.clone() }
        }
    };
    signals::listen(place.stopper());
    let mut runner = Runner::new(&place, arguments);
    let texts = if texts.is_empty() && !shell { vec![arguments::Text::File("-".into())] } else { texts };
    let status = script::run_all(&mut runner, texts, arguments.keep_going);
    if shell && !(status == Status::Interrupted) {
        return shell::run(&mut runner);
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
        assert!(Arguments::try_parse_from(["anabranch", "-c", "select 1", "--json"]).is_ok());
        assert!(Arguments::try_parse_from(["anabranch", "--csv", "--json"]).is_err());
    }
}
