//! The call `split(..)` of a program's text.

use super::read_arguments::{Arguments, shown};
use super::read_tokens::TokenKind;
use super::split::{MergeOrder, ParaOptions, PlannedSplit, SplitForm};

/// Options of a split, as the Python package names them.
pub(super) const OPTIONS: &[&str] =
    &["broadcast", "plan", "share", "splitters", "window", "seed", "rate", "rate_of_one"];

/// Options of a parallel split only: the last ones of [`OPTIONS`].
const PARA_OPTIONS: &[&str] = OPTIONS.split_at(3).1;

/// What a split's call does; how its branches are merged is said by the call behind it.
pub(super) fn split(arguments: &Arguments) -> Result<PlannedSplit, String> {
    let (width, texts) = match arguments.positional() {
        ([width], texts @ ([_] | [_, _])) => (*width, texts),
        _ => return Err("split(..) takes a number of branches and a text: split(8, \"k % 8\")".to_owned()),
    };
    let most = u32::MAX;
    let width = u32::try_from(width).ok().filter(|width| *width > 0);
    let width = width.ok_or_else(|| format!("a stream is split into 1 to {most} branches"))?;
    let broadcast = match (arguments.options.get("broadcast"), texts.get(1)) {
        (None, text) => text.cloned(),
        (Some(TokenKind::Name(none)), None) if none == "None" => None,
        (Some(TokenKind::Text(text)), None) => Some(text.clone()),
        (Some(_), Some(_)) => return Err("split(..) has two broadcasts".to_owned()),
        (Some(other), None) => return Err(format!("{} is no expression: broadcast is a text", shown(other))),
    };
    let form = form(arguments)?;
    Ok(PlannedSplit { width, route: texts[0].clone(), broadcast, form, places: None, merge: MergeOrder::Any })
}

fn form(arguments: &Arguments) -> Result<SplitForm, String> {
    let names = || SplitForm::ALL.map(SplitForm::name).join(", ");
    let form = match arguments.options.get("plan") {
        None => SplitForm::AUTO,
        Some(TokenKind::Text(name)) => SplitForm::ALL
            .into_iter()
            .find(|form| form.name() == name)
            .ok_or_else(|| format!("there is no plan \"{name}\": plans are {}", names()))?,
        Some(other) => return Err(format!("{} is no plan: plans are {}", shown(other), names())),
    };
    let form = match share(arguments)? {
        // (Forms that do not depend on it pass it over, in Python too.)
        Some(share) => form.with_share(share),
        None => form,
    };
    let SplitForm::Para(para) = form else {
        return match PARA_OPTIONS.iter().find(|option| arguments.options.contains_key(**option)) {
            Some(option) => Err(format!("{option} is an option of plan=\"para\", not of \"{}\"", form.name())),
            None => Ok(form),
        };
    };
    let para = ParaOptions {
        splitters: whole(arguments, "splitters")?,
        window: whole(arguments, "window")?,
        seed: whole(arguments, "seed")?.unwrap_or(para.seed),
        rate: rate(arguments, "rate")?,
        rate_of_one: rate(arguments, "rate_of_one")?,
        share: para.share,
    };
    para.check()?;
    Ok(SplitForm::Para(para))
}

fn share(arguments: &Arguments) -> Result<Option<f64>, String> {
    let share = match arguments.options.get("share") {
        None => return Ok(None),
        Some(TokenKind::Fraction(share)) => *share,
        Some(TokenKind::Number(share)) => *share as f64,
        Some(other) => return Err(format!("{} is no share: it is a number from 0 to 1", shown(other))),
    };
    match (0.0..=1.0).contains(&share) {
        true => Ok(Some(share)),
        false => Err(format!("a share of {share} is none: it is a number from 0 to 1")),
    }
}

/// An option that is a whole number.
fn whole<N: TryFrom<usize>>(arguments: &Arguments, option: &str) -> Result<Option<N>, String> {
    let refused = |token: &TokenKind| format!("{} is no whole number: {option} of a split is one", shown(token));
    match arguments.options.get(option) {
        None => Ok(None),
        Some(token @ TokenKind::Number(number)) => N::try_from(*number).map(Some).map_err(|_| refused(token)),
        Some(token) => Err(refused(token)),
    }
}

/// An option that is a rate.
fn rate(arguments: &Arguments, option: &str) -> Result<Option<f64>, String> {
    match arguments.options.get(option) {
        None => Ok(None),
        Some(TokenKind::Number(number)) => Ok(Some(*number as f64)),
        Some(TokenKind::Fraction(number)) => Ok(Some(*number)),
        Some(token) => Err(format!("{} is no rate: {option} of a split is rows a second", shown(token))),
    }
}
