//! Cases of the temporal algebra: read, run through the fluent API, compared.
//!
//! A case file is a JSON list. A case has
//!
//! ```text
//!     id            its name
//!     query         a tree of operators: {"op": .., "in": tree | "left", "right": tree, arguments}
//!     inputs        by name, the rows in order of arrival:
//!                   {"k": "start", "s": t, "v": payload}            {"k": "end", "e": t, "s": start, "v": payload}
//!                   {"k": "interval", "s": t, "e": t, "v": ..}      {"k": "punct", "t": t}    with "p": partition if partitioned
//!                   {"k": "lwm", "t": t}                            a low watermark: a punctuation of all partitions
//!     partitioned   every row has a partition with a time of its own; operators work within partitions
//!     ingress       disorder {policy, lag}, punctuation_period, low_watermark {period, lag}
//!     expect        intervals [start, end | "inf", payload (, partition)]; deltas [time, payload, diff (, partition)];
//!                   exact_split: intervals are compared as they are, not what they add up to; sequence: rows and punctuations in order
//! ```
//!
//! A payload is a value, an object or a list; it becomes one column for each leaf. Expressions are
//! lists, an operator and its arguments: `["val"]` the payload, `["f", name]` a field, `["at", i,
//! e]` an element, `["left", e]` and `["right", e]` the sides of a join, `["key"]`, `["agg", i]`,
//! `["reg"]`, `["vs"]`, `["ve"]`, arithmetic, comparisons, `["if", c, a, b]`, `["concat", ..]`,
//! `["prefix", e, n]`, `["obj", {..}]`, `["list", ..]`.
//!
//! Each operator is mapped onto one verb of the fluent API; nothing is computed here. What must
//! hold: the deltas of what came out are the case's deltas; with `exact_split` the intervals are
//! its intervals.

pub mod aggregates;
mod case;
mod check;
mod expression;
pub mod harness;
pub mod laws;
mod pattern;
mod query;
mod sequence;
mod shape;

pub use case::{Case, read};
pub use check::run;
