//! Answers of a file, held against the rules or against those of another file.
//!
//! Law: the outcome is good only if all answers are right, each was given once, and none was late.
//! Against another file a difference does not say which of the two is wrong.

use std::fs::File;
use std::io::{BufReader, Write, stdout};
use std::path::Path;

use anabranch_engine::Error;
use anabranch_linear_road::answer::{self, AnswerForm, TollAnswer};
use anabranch_linear_road::reference::Reference;
use anabranch_linear_road::row::Second;
use anabranch_linear_road::validate::{Verdict, compare, compare_two};

use super::{Input, unreadable};
use crate::arguments::LinearRoad;
use crate::run::{Status, checked};

/// Judges the answers of a file, and prints what agrees and what does not.
pub(super) fn run(options: &LinearRoad, judged: &Path) -> Result<Status, Error> {
    let given = answers(judged, options.form)?;
    let (standard, verdict) = match &options.against {
        Some(path) => (format!("the answers of {}", path.display()), compare_two(&answers(path, options.form)?, given)),
        None => by_rules(options, given)?,
    };
    checked(writeln!(stdout(), "{} against {standard}\n\n{verdict}", judged.display()))?;
    Ok(if verdict.is_right() { Status::Good } else { Status::Failed })
}

/// Answers, each with the time when it was delivered.
type Given = Vec<(TollAnswer, Option<f64>)>;

fn answers(path: &Path, form: AnswerForm) -> Result<Given, Error> {
    let other = match form {
        AnswerForm::Official => "retail",
        AnswerForm::Retail => "official",
    };
    let hint =
        || format!("Answers are lines of numbers with commas; --form {other} reads the columns of the other form.");
    let file = File::open(path).map_err(|problem| unreadable(path, problem))?;
    let given = answer::read(BufReader::new(file), form).map_err(|problem| match problem.kind() {
        std::io::ErrorKind::InvalidData => unreadable(path, problem).with_hint(hint()),
        _ => unreadable(path, problem),
    })?;
    Ok(given.into_iter().map(|(answer, emit)| (answer, Some(emit))).collect())
}

/// What the rules say to the rows of a file, or to those that the options generate.
fn by_rules(options: &LinearRoad, given: Given) -> Result<(String, Verdict), Error> {
    let mut input = Input::open(options)?;
    let mut reference = Reference::new(std::mem::take(&mut input.history));
    let (mut second, mut expected) = (Second::default(), Vec::new());
    while input.fill(&mut second)? {
        reference.second(&second, &mut expected);
    }
    let rows = match &options.input {
        Some(path) => format!("the rows of {}", path.display()),
        None => "generated rows".to_owned(),
    };
    Ok((format!("the rules, over {rows}"), compare(&expected, given)))
}
