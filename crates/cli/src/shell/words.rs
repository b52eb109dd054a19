//! Which lines are commands, by the words that they begin with, and what a wrong one gets.

use crate::run::Status;

/// What the shell does after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Go,
    Quit,
}

/// Commands by their long names.
pub(super) const NAMES: [&str; 20] = [
    ".databases",
    ".expanded",
    ".headers",
    ".help",
    ".import",
    ".indexes",
    ".live",
    ".maxrows",
    ".mode",
    ".output",
    ".pager",
    ".print",
    ".quit",
    ".read",
    ".schema",
    ".shell",
    ".sources",
    ".tables",
    ".timer",
    ".exit",
];

/// Words that are commands where they stand alone, as in psql.
const WORDS: [(&str, &str); 3] = [("help", ".help"), ("quit", ".quit"), ("exit", ".quit")];

/// Whether a line is for the shell, not SQL.
pub(crate) fn is_command(line: &str) -> bool {
    line.starts_with(['.', '\\']) || word(line).is_some()
}

/// The command that a word at the prompt stands for.
pub(super) fn word(line: &str) -> Option<&'static str> {
    let word = line.trim().trim_end_matches(';').trim_end();
    WORDS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, command)| *command)
}

/// Tells a problem of a command.
pub(super) fn complain(problem: &str) -> Status {
    eprintln!("error: {problem}");
    Status::Failed
}

/// Turns something on or off; without a word, the other way.
pub(super) fn switch(what: &str, argument: &str, is_on: &mut bool) -> Status {
    *is_on = match argument {
        "" => !*is_on,
        "on" => true,
        "off" => false,
        _ => return complain(&format!("the {what} can be on or off, not {argument}")),
    };
    println!("The {what} is {}.", if *is_on { "on" } else { "off" });
    Status::Good
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_stand_alone_are_commands() {
        assert!(is_command("quit") && is_command("HELP;") && is_command("\\q") && is_command(".tables"));
        assert!(!is_command("help me") && !is_command("SELECT 1;") && !is_command(""));
        assert_eq!(word("Exit ;"), Some(".quit"));
    }
}
