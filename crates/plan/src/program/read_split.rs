//! Multicasts and splits from the Python form of a program.
//!
//! ```text
//!     name = name.multicast("expression")
//!     name = name.split(8, "expression", broadcast="expression", plan="exp").merge()
//! ```

use super::read::{Arguments, shown};
use super::read_tokens::TokenKind;
use super::{MergeOrder, PlannedSplit, SplitForm, StepAction};

/// Options of a split, as the Python package names them.
pub(super) const OPTIONS: &[&str] = &["broadcast", "plan", "share"];

/// What a multicast's call does.
pub(super) fn multicast(input: usize, arguments: Arguments) -> Result<StepAction, String> {
    match arguments.positional() {
        ([], [targets]) => Ok(StepAction::Multicast { input, targets: targets.clone() }),
        _ => Err("multicast(..) takes one text: an expression of a shard's number, or of an array of them".to_owned()),
    }
}

/// What a split's call does; how its branches are merged is said by the call behind it.
pub(super) fn split(input: usize, arguments: Arguments) -> Result<StepAction, String> {
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
    let split =
        PlannedSplit { width, route: texts[0].clone(), broadcast, form: form(&arguments)?, merge: MergeOrder::Any };
    Ok(StepAction::Split { input, split })
}

fn form(arguments: &Arguments) -> Result<SplitForm, String> {
    let names = || SplitForm::ALL.map(SplitForm::name).join(", ");
    let form = match arguments.options.get("plan") {
        None => SplitForm::Auto,
        Some(TokenKind::Text(name)) => SplitForm::ALL
            .into_iter()
            .find(|form| form.name() == name)
            .ok_or_else(|| format!("there is no plan \"{name}\": plans are {}", names()))?,
        Some(other) => return Err(format!("{} is no plan: plans are {}", shown(other), names())),
    };
    let share = match arguments.options.get("share") {
        None => return Ok(form),
        Some(TokenKind::Fraction(share)) => *share,
        Some(TokenKind::Number(share)) => *share as f64,
        Some(other) => return Err(format!("{} is no share: it is a number from 0 to 1", shown(other))),
    };
    if !(0.0..=1.0).contains(&share) {
        return Err(format!("a share of {share} is none: it is a number from 0 to 1"));
    }
    // (Other plans do not read it, in Python neither.)
    Ok(if let SplitForm::Max { .. } = form { SplitForm::Max { share } } else { form })
}
