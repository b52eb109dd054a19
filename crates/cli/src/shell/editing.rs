//! What the line editor knows: when input is complete, and how to complete words.

use rustyline::{
    Context, Helper, Result,
    completion::{Completer, Pair},
    highlight::Highlighter,
    hint::Hinter,
    validate::{ValidationContext, ValidationResult, Validator},
};

use crate::data::reads_lines;
use crate::place::Relation;

use super::{
    keywords::KEYWORDS,
    tail::has_tail,
    words::{NAMES, is_command},
};

/// Helps the line editor.
#[derive(Default)]
pub(super) struct Editing {
    /// Names of relations and columns, sorted.
    names: Vec<String>,
    /// Whether rows of a COPY are typed: every line is whole, and a tab is a tab.
    pub reads_rows: bool,
}

impl Editing {
    /// Takes over what there is to complete.
    pub(super) fn set_relations(&mut self, relations: Vec<Relation>) {
        self.names.clear();
        for relation in relations {
            self.names.extend(relation.columns);
            self.names.push(relation.name);
        }
        self.names.sort();
        self.names.dedup();
    }

    /// What the word at the end of `line` may become, and where it starts.
    fn candidates(&self, line: &str) -> (usize, Vec<String>) {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.' || c == '\\';
        let start = line.char_indices().rev().take_while(|(_, c)| is_word(*c)).last().map_or(line.len(), |(i, _)| i);
        let word = &line[start..];
        if start == 0 && is_command(word) {
            let found = NAMES.iter().filter(|name| name.starts_with(word)).map(|name| name.to_string());
            return (start, found.collect());
        }
        // Columns complete behind `relation.` too.
        let (start, word) = match word.rfind('.') {
            Some(dot) => (start + dot + 1, &word[dot + 1..]),
            None => (start, word),
        };
        if word.is_empty() {
            return (start, Vec::new());
        }
        let folded = word.to_lowercase();
        let mut found: Vec<String> = self.names.iter().filter(|name| name.starts_with(&folded)).cloned().collect();
        let upper = word.chars().any(char::is_uppercase);
        let spell = |keyword: &str| if upper { keyword.to_string() } else { keyword.to_lowercase() };
        let keywords = KEYWORDS.iter().filter(|keyword| keyword.to_lowercase().starts_with(&folded));
        found.extend(keywords.map(|keyword| spell(keyword)));
        found.dedup();
        (start, found)
    }
}

impl Completer for Editing {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        if self.reads_rows {
            return Ok((position, vec![Pair { display: "tab".into(), replacement: "\t".into() }]));
        }
        let (start, found) = self.candidates(&line[..position]);
        Ok((start, found.into_iter().map(|name| Pair { display: name.clone(), replacement: name }).collect()))
    }
}

impl Validator for Editing {
    fn validate(&self, context: &mut ValidationContext<'_>) -> Result<ValidationResult> {
        let input = context.input().trim();
        let is_whole = self.reads_rows || is_command(input) || has_tail(input) || begins_rows(input);
        let finished = input.is_empty() || is_whole || anabranch_sql::split(input).complete;
        Ok(if finished { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

/// Whether a finished COPY stands in the text, behind which rows were pasted.
fn begins_rows(input: &str) -> bool {
    let is_done = |end: usize| input[end..].trim_start().starts_with(';');
    let mut statements = anabranch_sql::split(input).statements.into_iter();
    statements.any(|range| is_done(range.end) && reads_lines(&input[range]))
}

impl Hinter for Editing {
    type Hint = String;
}

impl Highlighter for Editing {}

impl Helper for Editing {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_complete_to_names_keywords_and_commands() {
        let editing = Editing { names: vec!["carrier".into(), "flights".into()], reads_rows: false };
        assert_eq!(editing.candidates("select * from fli"), (14, vec!["flights".to_string()]));
        assert_eq!(editing.candidates("SELECT flights.car"), (15, vec!["carrier".to_string()]));
        assert!(editing.candidates("MATER").1.contains(&"MATERIALIZED VIEW".to_string()));
        assert!(editing.candidates("mater").1.contains(&"materialized view".to_string()));
        assert_eq!(editing.candidates(".ti"), (0, vec![".timer".to_string()]));
        assert!(editing.candidates("select ").1.is_empty());
    }
}
