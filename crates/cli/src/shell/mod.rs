//! The shell: SQL over several lines until `;`, and commands that begin with `.` or `\`.

mod commands;
mod display;
mod editing;
mod keywords;
mod lists;
mod repeat;
mod synopses;
mod tail;
mod typed;
pub(crate) mod variables;
mod words;

use std::{
    cell::RefCell,
    io::{IsTerminal, stdout},
    path::{Path, PathBuf},
    rc::Rc,
};

use anabranch_engine::Error;
use rustyline::{Config, Editor, error::ReadlineError};

pub(crate) use commands::run_command;
pub(crate) use tail::{has_tail, without_tail};
pub(crate) use words::is_command;

use crate::{
    place::Relation,
    run::{Runner, Status},
    script::run_text,
    signals,
    target::Target,
};
use editing::Editing;
use typed::{LineEditor, Typed};
use words::Next;

/// Rows of a table shown in the shell, until `.maxrows` says otherwise.
const ROWS_SHOWN: usize = 100;

/// Reads and runs until the user leaves.
pub(crate) fn run(runner: &mut Runner<'_>) -> Result<Status, Error> {
    println!("anabranch {}: standing SQL queries. Type .help for help, .quit to leave.", env!("CARGO_PKG_VERSION"));
    runner.layout.rows_max = ROWS_SHOWN;
    if stdout().is_terminal() {
        runner.target = Target::Terminal { pages: true };
    }
    signals::enter_shell();
    let history = history_path();
    let mut editor = editor()?;
    if let Some(path) = &history {
        // There is none on the first day.
        let _ = editor.load_history(path);
    }
    let typed = Rc::new(RefCell::new(Typed::new(editor)));
    runner.prompt = Some(typed.clone());
    let status = read_and_run(runner, &typed, history.as_deref());
    runner.prompt = None;
    status
}

fn read_and_run(runner: &mut Runner<'_>, typed: &RefCell<Typed>, history: Option<&Path>) -> Result<Status, Error> {
    // Kept line by line, so that a closed window loses nothing; complaints come once.
    let mut saved = true;
    loop {
        let relations = relations(runner);
        let read = typed.borrow_mut().statement(relations);
        match read {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => {
                // A history that cannot be kept is no reason to stop.
                let _ = typed.borrow_mut().editor.add_history_entry(line.trim());
                saved = saved && save_history(&mut typed.borrow_mut().editor, history);
                if run_line(runner, line.trim()) == Next::Quit {
                    break;
                }
            }
            Err(ReadlineError::Interrupted) => {
                if signals::pressed_twice() {
                    break;
                }
                println!("(the line is cleared; press Ctrl-C again, or type .quit, to leave)");
            }
            Err(ReadlineError::Eof) => break,
            Err(problem) => return Err(Error::unavailable(format!("cannot read from the terminal: {problem}"))),
        }
    }
    Ok(Status::Good)
}

fn run_line(runner: &mut Runner<'_>, line: &str) -> Next {
    if is_command(line) {
        return commands::run(runner, line).0;
    }
    // A statement that fails or is interrupted has said so; the shell goes on.
    let _ = run_text(runner, line, None, false);
    if runner.leaves { Next::Quit } else { Next::Go }
}

fn relations(runner: &Runner<'_>) -> Vec<Relation> {
    // (Words are completed as far as they are known.)
    runner.place.relations().unwrap_or_default()
}

fn editor() -> Result<LineEditor, Error> {
    let config = Config::builder().completion_type(rustyline::CompletionType::List).history_ignore_space(true);
    let unusable = |problem| Error::unavailable(format!("cannot use the terminal: {problem}"));
    let config = config.max_history_size(10_000).map_err(unusable)?.build();
    let mut editor = Editor::with_default(config).map_err(unusable)?;
    editor.set_helper(Some(Editing::default()));
    Ok(editor)
}

/// `$XDG_STATE_HOME/anabranch/history`, else `~/.anabranch_history`.
fn history_path() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = folder("XDG_STATE_HOME").map(|state| state.join("anabranch").join("history"));
    state.or_else(|| folder("HOME").map(|home| home.join(".anabranch_history")))
}

/// Appends the last line to the history; false when that cannot be done.
fn save_history(editor: &mut LineEditor, path: Option<&Path>) -> bool {
    let Some(path) = path else { return false };
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let saved = folder.map_err(|e| e.to_string()).and_then(|()| editor.append_history(path).map_err(|e| e.to_string()));
    if let Err(problem) = &saved {
        eprintln!("notice: the history cannot be saved to {}: {problem}", path.display());
    }
    saved.is_ok()
}
