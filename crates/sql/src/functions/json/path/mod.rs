//! `jsonpath`, as in PostgreSQL 15, chapter 9.16.2: the language of SQL:2016 for parts of a
//! document.
//!
//! ```text
//! [lax | strict] expression
//! $  @  $name  .key  .*  .**  [*]  [0, 2 to last]  ? (predicate)  .size()
//! ```
//!
//! Law: a path yields a list of values in the document's order. In `lax` mode, which is the
//! default, arrays are opened and values wrapped where a step needs it, and what is not there
//! yields nothing; in `strict` mode that is an error. A predicate is true, false or unknown: errors
//! within one make it unknown. Cost: one pass over the path a call, and one over what it visits.
//!
//! Reading order: [`value`], [`syntax`], [`run`].
//!
//! Left out: `.datetime()`, and named `flag` letters other than `i`, `s`, `m` and `q`.

mod run;
mod syntax;
mod value;

pub(super) use run::{Question, matches, values};
