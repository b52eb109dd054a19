//! Programs over files: facts in, answers out, in Souffle's formats.
//!
//! Reading order: [`options`] (the parameters of directives), [`split`] (lines to fields),
//! [`read`], [`write`].

mod options;
mod read;
mod split;
mod write;

use std::io::Write;
use std::path::PathBuf;

use anabranch_engine::Error;

use crate::ast::{DirectiveKind, Program};
use crate::install::{Host, Installed};
use options::{Channel, FactOptions};

/// Where facts are and where answers go.
#[derive(Clone, Debug)]
pub struct Folders {
    /// Folder of the `.facts` files.
    pub facts: PathBuf,
    /// Folder of the `.csv` files; `None` prints all answers.
    pub output: Option<PathBuf>,
}

impl Default for Folders {
    /// The present folder for both.
    fn default() -> Folders {
        Folders { facts: PathBuf::from("."), output: Some(PathBuf::from(".")) }
    }
}

/// How far a run has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// So many facts of the relation are read.
    Read {
        /// The relation's name.
        relation: String,
        /// Facts so far.
        facts: u64,
    },
    /// Answers are computed.
    Computing {
        /// The relation's name.
        relation: String,
    },
    /// The relation's answers are written.
    Written {
        /// The relation's name.
        relation: String,
        /// Its rows.
        rows: u64,
    },
}

impl Program {
    /// Runs the program: installs it, reads the facts of `.input`, writes what `.output` and
    /// `.printsize` ask for. Answers without a file go to `out`. The program stays installed.
    ///
    /// # Errors
    /// As [`install`](Program::install); `Invalid` for a directive's parameters; `Data`, with file
    /// and line, for a fact that does not fit; `Unavailable` for a file.
    pub fn run(
        &self,
        host: &mut impl Host,
        folders: &Folders,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Installed, Error> {
        let installed = self.read(host, folders, progress)?;
        let written = self.file_directives().and_then(|directives| {
            directives.iter().try_for_each(|(kind, relation, options)| match kind {
                DirectiveKind::Input => Ok(()),
                DirectiveKind::Output => write::rows(&installed, host, relation, options, folders, out, progress),
                DirectiveKind::PrintSize => write::size(&installed, host, relation, out, progress),
            })
        });
        kept(installed, written, host)
    }

    /// Installs the program and reads the facts of `.input`; nothing is written.
    ///
    /// # Errors
    /// As [`run`](Program::run).
    pub fn read(
        &self,
        host: &mut impl Host,
        folders: &Folders,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Installed, Error> {
        self.check()?;
        let directives = self.file_directives()?;
        let installed = self.install(host)?;
        let read = directives.iter().try_for_each(|(kind, relation, options)| match kind {
            DirectiveKind::Input => read::facts(&installed, host, relation, options, folders, progress),
            DirectiveKind::Output | DirectiveKind::PrintSize => Ok(()),
        });
        kept(installed, read, host)
    }

    /// Each relation of each directive, with what its parameters say.
    fn file_directives(&self) -> Result<Vec<(DirectiveKind, String, FactOptions)>, Error> {
        let mut all: Vec<(DirectiveKind, String, FactOptions)> = vec![];
        for directive in &self.directives {
            let options = FactOptions::of(directive)?;
            for name in &directive.relations {
                let same = |(kind, other, known): &&(DirectiveKind, String, FactOptions)| {
                    *kind == directive.kind && *other == name.text && known.is_same_place(&options)
                };
                if all.iter().any(|known| same(&known)) && options.channel == Channel::File {
                    continue;
                }
                all.push((directive.kind, name.text.clone(), options.clone()));
            }
        }
        Ok(all)
    }
}

/// The program if all went well; else it is taken down, and the error stays.
fn kept(installed: Installed, done: Result<(), Error>, host: &mut impl Host) -> Result<Installed, Error> {
    match done {
        Ok(()) => Ok(installed),
        Err(error) => {
            // (The first failure is the one to tell.)
            let _ = installed.drop(host);
            Err(error)
        }
    }
}

/// A file could not be used.
fn unavailable(what: &str, path: &std::path::Path, problem: &std::io::Error) -> Error {
    Error::unavailable(format!("cannot {what} {}: {problem}", path.display()))
}
