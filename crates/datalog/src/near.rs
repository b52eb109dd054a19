//! Names that do not exist, and the ones that may have been meant.

use anabranch_engine::Error;
use anabranch_engine::nearest::nearest;

/// The error for a name that is not among the known ones.
pub(crate) fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    let error = Error::invalid(format!("{kind} {name} is not declared"));
    match nearest(name, known.iter().copied()) {
        Some(near) => error.with_hint(format!("Did you mean {near}?")),
        None if kind == "relation" => error.with_hint(format!("Declare it: .decl {name}(..).")),
        None if kind == "type" => error.with_hint("Types: symbol, number, unsigned, float, and those of .type."),
        None => error,
    }
}
