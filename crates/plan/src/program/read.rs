//! A program from its Python form.
//!
//! ```text
//!     name = db.shards("relation", ["column", ..])
//!     name = name.sql("SELECT .. FROM shard")
//!     name = name.sql_with(name, "SELECT .. FROM shard JOIN other ON ..")
//!     name = name.rekey("column", ..).redistribute(scope="local").union(name)
//!     name = name.split(8, "expression").merge().multicast("expression")
//! ```
//!
//! The result is what is called `result`, or else the last. Comments, imports and parentheses
//! around a chain are as in Python; there are no other statements.

use std::collections::BTreeMap;

use super::read_arguments::{Arguments, ShardList, shown};
use super::read_split;
use super::read_tokens::{ProgramToken, TokenKind, tokens};
use super::{MergeOrder, MoveKind, MoveScope, MoveTargets, PlannedStep, Program, StepAction};

/// A program that was read, or the line of the fault and what it is.
pub type ReadProgram = Result<Program, (usize, String)>;

/// Reads a program.
///
/// # Errors
/// The line, and what is wrong there.
pub fn read(text: &str) -> ReadProgram {
    let mut reader = Reader {
        tokens: tokens(text)?,
        at: 0,
        names: BTreeMap::new(),
        program: Program::default(),
        depths: vec![],
        depth: 0,
    };
    while reader.at < reader.tokens.len() {
        reader.statement()?;
    }
    reader.finish()
}

/// Steps in a row that a text may have: what builds and checks them goes from the last to the
/// first, a few calls a step.
const DEPTH_MAX: usize = 400;

/// Parentheses that a chain of steps may stand in.
const PARENTHESES_MAX: usize = 64;

struct Reader {
    tokens: Vec<ProgramToken>,
    at: usize,
    names: BTreeMap<String, usize>,
    program: Program,
    /// For each step, how many stand in a row up to it.
    depths: Vec<usize>,
    /// Chains that the one which is read stands in.
    depth: usize,
}

impl Reader {
    fn statement(&mut self) -> Result<(), (usize, String)> {
        match self.peek() {
            TokenKind::End => {
                self.at += 1;
                return Ok(());
            }
            TokenKind::Name(word) if word == "import" || word == "from" => {
                while *self.peek() != TokenKind::End {
                    self.at += 1;
                }
                return Ok(());
            }
            _ => {}
        }
        let line = self.line();
        let name = match (self.next(), self.next()) {
            (TokenKind::Name(name), TokenKind::Mark('=')) => name,
            _ => return Err((line, "a statement begins with a name and \"=\"".to_owned())),
        };
        let step = self.chain(&name)?;
        match self.next() {
            TokenKind::End => {}
            other => return Err((line, format!("{} behind the end of a statement", shown(&other)))),
        }
        self.names.insert(name, step);
        Ok(())
    }

    /// A name, and the calls behind it.
    fn chain(&mut self, name: &str) -> Result<usize, (usize, String)> {
        self.depth += 1;
        if self.depth > PARENTHESES_MAX {
            return Err((self.line(), format!("steps in more than {PARENTHESES_MAX} parentheses")));
        }
        let step = self.calls(name);
        self.depth -= 1;
        step
    }

    fn calls(&mut self, name: &str) -> Result<usize, (usize, String)> {
        let line = self.line();
        let mut step = match self.next() {
            TokenKind::Mark('(') => {
                let step = self.chain(name)?;
                self.expect(')')?;
                Some(step)
            }
            TokenKind::Name(word) if word == "db" => None,
            TokenKind::Name(word) => match self.names.get(&word) {
                Some(step) => Some(*step),
                None => return Err((line, format!("there is no step \"{word}\" above"))),
            },
            other => return Err((line, format!("{} where a step was expected", shown(&other)))),
        };
        while *self.peek() == TokenKind::Mark('.') {
            self.at += 1;
            let line = self.line();
            let TokenKind::Name(verb) = self.next() else {
                return Err((line, "a verb is missing behind \".\"".to_owned()));
            };
            self.expect('(')?;
            let arguments = self.arguments(name)?;
            // (What runs the program is its reader.)
            if verb == "collect" && step.is_some() && *self.peek() == TokenKind::End {
                break;
            }
            let mut action = action(&verb, step, arguments).map_err(|message| (line, message))?;
            if let StepAction::Split { split, .. } = &mut action {
                split.places = self.places()?;
                split.merge = self.merge()?;
            }
            self.program.steps.push(PlannedStep { name: name.to_owned(), action });
            if self.note_depth() > DEPTH_MAX {
                return Err((line, format!("more than {DEPTH_MAX} steps in a row: one query of SQL may do several")));
            }
            step = Some(self.program.steps.len() - 1);
        }
        step.ok_or_else(|| (line, "db is followed by .shards(\"relation\")".to_owned()))
    }

    /// How many steps stand in a row up to the last one.
    fn note_depth(&mut self) -> usize {
        let inputs = self.program.steps.last().map_or(&[][..], |step| step.action.inputs());
        let depth = 1 + inputs.iter().map(|input| self.depths[*input]).max().unwrap_or_default();
        self.depths.push(depth);
        depth
    }

    /// Where the branches of a split lie: the call behind it, if it says so.
    fn places(&mut self) -> Result<Option<Vec<usize>>, (usize, String)> {
        let behind: Vec<&TokenKind> = self.tokens.iter().skip(self.at).take(2).map(|token| &token.what).collect();
        if !matches!(behind[..], [TokenKind::Mark('.'), TokenKind::Name(verb)] if verb == "placed") {
            return Ok(None);
        }
        self.at += 2;
        self.expect('(')?;
        let places = self.numbers()?;
        self.expect(')')?;
        Ok(Some(places))
    }

    /// How the branches of a split are merged: the call behind it.
    fn merge(&mut self) -> Result<MergeOrder, (usize, String)> {
        let line = self.line();
        let found = match (self.next(), self.next()) {
            (TokenKind::Mark('.'), TokenKind::Name(verb)) => {
                MergeOrder::ALL.into_iter().find(|order| order.name() == verb)
            }
            _ => None,
        };
        let order = found.ok_or_else(|| {
            (
                line,
                "split(..) is followed by .merge() or .merge_by_time(), then .sql(..) with the column branch"
                    .to_owned(),
            )
        })?;
        self.expect('(')?;
        self.expect(')')?;
        Ok(order)
    }

    fn arguments(&mut self, name: &str) -> Result<Arguments, (usize, String)> {
        let mut arguments = Arguments::default();
        loop {
            let line = self.line();
            let is_option = matches!(self.tokens.get(self.at + 1).map(|token| &token.what), Some(TokenKind::Mark('=')));
            match self.peek().clone() {
                TokenKind::Mark(')') => {
                    self.at += 1;
                    return Ok(arguments);
                }
                TokenKind::Text(mut text) => {
                    self.at += 1;
                    // (Texts side by side are one.)
                    while let TokenKind::Text(more) = self.peek().clone() {
                        self.at += 1;
                        text.push_str(&more);
                    }
                    arguments.texts.push(text);
                }
                TokenKind::Number(number) => {
                    self.at += 1;
                    arguments.numbers.push(number);
                }
                TokenKind::Mark('[') => arguments.list = Some(self.list()?),
                TokenKind::Name(option) if is_option => {
                    self.at += 2;
                    if arguments.options.contains_key(&option) || arguments.groups.contains_key(&option) {
                        return Err((line, format!("\"{option}\" is given twice")));
                    }
                    match self.peek() {
                        TokenKind::Mark('[' | '{') if option == "shards" => {
                            let shards = self.shard_list()?;
                            arguments.groups.insert(option, shards);
                        }
                        TokenKind::Mark('[' | '{') => {
                            let value = self.skipped_list();
                            arguments.options.insert(option, value);
                        }
                        _ => {
                            let value = self.next();
                            arguments.options.insert(option, value);
                        }
                    }
                }
                TokenKind::Name(word) if word == "lambda" => {
                    return Err((
                        line,
                        "a lambda cannot be read from a text: write the query as SQL, with sql(..)".to_owned(),
                    ));
                }
                TokenKind::Name(_) => {
                    let step = self.chain(name)?;
                    arguments.steps.push(step);
                }
                other => return Err((line, format!("{} among the arguments of a call", shown(&other)))),
            }
            match self.peek() {
                TokenKind::Mark(',') => self.at += 1,
                TokenKind::Mark(')') => {}
                other => return Err((self.line(), format!("{} where \",\" or \")\" was expected", shown(other)))),
            }
        }
    }

    /// A list that no option takes: its first mark, by which the option is refused.
    fn skipped_list(&mut self) -> TokenKind {
        let (first, mut depth) = (self.peek().clone(), 0usize);
        loop {
            match self.peek() {
                TokenKind::Mark('[' | '{' | '(') => depth += 1,
                TokenKind::Mark(']' | '}' | ')') => depth = depth.saturating_sub(1),
                TokenKind::End => return first,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return first;
            }
        }
    }

    /// Numbers of shards: `[0, 2]`, or `{"name": [0, 2]}`.
    fn shard_list(&mut self) -> Result<ShardList, (usize, String)> {
        if *self.peek() == TokenKind::Mark('[') {
            return Ok((None, self.numbers()?));
        }
        self.expect('{')?;
        let line = self.line();
        let name = match self.next() {
            TokenKind::Text(name) => name,
            other => {
                return Err((
                    line,
                    format!("{} where the name of a group was expected: {{\"a\": [0, 2]}}", shown(&other)),
                ));
            }
        };
        self.expect(':')?;
        let shards = self.numbers()?;
        if *self.peek() == TokenKind::Mark(',') {
            self.at += 1;
        }
        self.expect('}')?;
        Ok((Some(name), shards))
    }

    fn numbers(&mut self) -> Result<Vec<usize>, (usize, String)> {
        self.expect('[')?;
        let mut numbers = Vec::new();
        loop {
            let line = self.line();
            match self.next() {
                TokenKind::Mark(']') => return Ok(numbers),
                TokenKind::Number(number) => numbers.push(number),
                other => return Err((line, format!("{} in a list of shards", shown(&other)))),
            }
            match self.peek() {
                TokenKind::Mark(',') => self.at += 1,
                TokenKind::Mark(']') => {}
                other => return Err((self.line(), format!("{} where \",\" or \"]\" was expected", shown(other)))),
            }
        }
    }

    fn list(&mut self) -> Result<Vec<String>, (usize, String)> {
        self.expect('[')?;
        let mut texts = Vec::new();
        loop {
            let line = self.line();
            match self.next() {
                TokenKind::Mark(']') => return Ok(texts),
                TokenKind::Mark(',') => {}
                TokenKind::Text(text) => texts.push(text),
                other => return Err((line, format!("{} in a list of names", shown(&other)))),
            }
        }
    }

    /// The program, with the step called `result` as its last.
    fn finish(mut self) -> ReadProgram {
        let last = self.program.steps.len().checked_sub(1).ok_or_else(|| (1, "the program has no steps".to_owned()))?;
        let result = self.names.get("result").copied().unwrap_or(last);
        // (What the result does not read is left out.)
        let mut is_read = vec![false; self.program.steps.len()];
        is_read[result] = true;
        for at in (0..=result).rev() {
            if is_read[at] {
                self.program.steps[at].action.inputs().iter().for_each(|input| is_read[*input] = true);
            }
        }
        let mut places = vec![0; self.program.steps.len()];
        let mut kept = Vec::new();
        for (at, mut step) in self.program.steps.drain(..).enumerate() {
            if is_read[at] {
                step.action.renumber(&places);
                places[at] = kept.len();
                kept.push(step);
            }
        }
        Ok(Program { steps: kept })
    }

    fn peek(&self) -> &TokenKind {
        self.tokens.get(self.at).map_or(&TokenKind::End, |token| &token.what)
    }

    fn next(&mut self) -> TokenKind {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |token| token.line)
    }

    fn expect(&mut self, mark: char) -> Result<(), (usize, String)> {
        let line = self.line();
        match self.next() {
            TokenKind::Mark(found) if found == mark => Ok(()),
            other => Err((line, format!("{} where \"{mark}\" was expected", shown(&other)))),
        }
    }
}

/// What a call of a verb does.
fn action(verb: &str, input: Option<usize>, arguments: Arguments) -> Result<StepAction, String> {
    let known: &[&str] = match verb {
        "redistribute" | "reshard" | "broadcast" => &["scope", "shards"],
        "split" => read_split::OPTIONS,
        _ => &[],
    };
    let named = || arguments.options.keys().chain(arguments.groups.keys());
    if let Some(unknown) = named().find(|name| !known.contains(&name.as_str())) {
        let way_out = match (verb, unknown.as_str()) {
            ("shards", "shards") => ": the program that runs the text says how many shards there are (plan --shards 4)",
            _ => "",
        };
        return Err(format!("{verb}(..) has no argument \"{unknown}\"{way_out}"));
    }
    match (verb, input) {
        ("multicast", Some(input)) => return multicast(input, arguments),
        ("split", Some(input)) => {
            return read_split::split(&arguments).map(|split| StepAction::Split { input, split });
        }
        _ => {}
    }
    let Arguments { steps, numbers, texts, list, options, mut groups } = arguments;
    if let Some(number) = numbers.first() {
        return Err(format!("\"{number}\" among the arguments of a call"));
    }
    let Some(input) = input else {
        return match (verb, texts.as_slice(), steps.is_empty()) {
            ("shards", [relation], true) => {
                Ok(StepAction::Relation { relation: relation.clone(), columns: list.unwrap_or_default() })
            }
            _ => Err("a program begins with db.shards(\"relation\", [\"column\", ..])".to_owned()),
        };
    };
    match (verb, texts.as_slice(), steps.as_slice()) {
        ("sql", [text], []) => Ok(StepAction::Sql { inputs: vec![input], text: text.clone() }),
        ("sql_with", [text], [other]) => Ok(StepAction::Sql { inputs: vec![input, *other], text: text.clone() }),
        ("union", [], [other]) => Ok(StepAction::Union { inputs: [input, *other] }),
        ("rekey", columns, []) => {
            let columns: Vec<String> = list.unwrap_or_default().into_iter().chain(columns.iter().cloned()).collect();
            Ok(StepAction::Rekey { input, columns })
        }
        ("sql" | "sql_with" | "union", ..) => Err(format!("{verb}(..) was given other arguments than it takes")),
        (_, [] | [_], []) => {
            let kind = MoveKind::ALL.into_iter().find(|kind| kind.name() == verb).ok_or_else(|| unknown(verb))?;
            let scope = match (options.get("scope"), texts.first()) {
                (None, None) => MoveScope::Flat,
                (Some(TokenKind::Text(scope)), None) | (None, Some(scope)) => MoveScope::ALL
                    .into_iter()
                    .find(|known| known.name() == scope)
                    .ok_or_else(|| format!("there is no scope \"{scope}\": it is flat, local or global"))?,
                (Some(_), Some(_)) => return Err(format!("{verb}(..) has two scopes")),
                (Some(other), _) => return Err(format!("{} is no scope: it is flat, local or global", shown(other))),
            };
            let to = match (options.get("shards"), groups.remove("shards")) {
                (_, Some((name, shards))) => MoveTargets::Group { name, shards },
                (None, None) => MoveTargets::All,
                (Some(TokenKind::Number(shards)), None) => MoveTargets::First(*shards),
                (Some(other), None) => {
                    return Err(format!("{} is no number of shards, and no list of them", shown(other)));
                }
            };
            Ok(StepAction::Move { input, kind, scope, to })
        }
        _ if verb == "rekey" || MoveKind::ALL.iter().any(|kind| kind.name() == verb) => {
            Err(format!("{verb}(..) was given other arguments than it takes"))
        }
        _ => Err(unknown(verb)),
    }
}

fn unknown(verb: &str) -> String {
    format!(
        "there is no verb \"{verb}\": programs have sql, sql_with, union, rekey, redistribute, reshard, broadcast, \
         multicast and split"
    )
}

/// What a multicast's call does.
fn multicast(input: usize, arguments: Arguments) -> Result<StepAction, String> {
    match arguments.positional() {
        ([], [targets]) => Ok(StepAction::Multicast { input, targets: targets.clone() }),
        _ => Err("multicast(..) takes one text: an expression of a shard's number, or of an array of them".to_owned()),
    }
}
