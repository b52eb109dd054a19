//! The fluent API: queries over streams of events, built in Rust.
//!
//! A [`Frame`] is a query, not data: immutable, cheap to clone, nothing runs while it is built.
//! Names follow Polars where Polars has the verb. A run ([`Session::start`](crate::Session::start))
//! takes rows and time in, and gives events out; in a session without threads each call does the
//! work itself.
//!
//! ```
//! use anabranch_engine::frame::{Event, Events, col, sum};
//! use anabranch_engine::{Options, Session};
//! use arrow::datatypes::{DataType, Field, Schema};
//!
//! // Sums of each ten ticks, by sensor.
//! let schema = Schema::new(vec![Field::new("sensor", DataType::Utf8View, true), Field::new("x", DataType::Int64, true)]);
//! let readings = Events::input("readings", schema).frame();
//! let sums = readings.tumbling(10).group_by([col("sensor")]).agg([sum(col("x")).alias("sum")]);
//!
//! let mut session = Session::new(Options::default())?;
//! let mut run = session.start(&sums)?;
//! run.push("readings", vec![Event::point(3, ["a".into(), 5i64.into()]), Event::point(7, ["a".into(), 6i64.into()])])?;
//! run.advance("readings", 30)?;
//! assert_eq!(run.lifetimes()?.iter().map(ToString::to_string).collect::<Vec<_>>(), ["[10, 20) a, 11"]);
//! # Ok::<(), anabranch_engine::Error>(())
//! ```
//!
//! Law: an error of building (an unknown column, types that do not fit, a duration that is not
//! positive) stays with the frame and is returned when it is started or explained; the first one
//! counts.
//!
//! Reading order: [`events`] (a named input), [`input`] (the forms of its rows), [`declare`] (what
//! it promises), [`ingress`] (how its rows come in order), [`relation`] (relations of the session
//! as inputs), [`query`] (the frame), [`expression`], [`sql`] (expressions as text), [`rows`]
//! (select, filter, union ..), [`lifetimes`], [`windows`], [`edges`], [`pattern`], [`group`]
//! (aggregates, sub-queries of groups), [`parts`] (aggregates of parts of the rows), [`join`],
//! [`asof`], [`neighbours`], [`iterate`] (loops), [`operator`] (operators of your own), then
//! [`run`], [`latency`], [`play`] and [`progressive`] (history).

mod aggregate;
mod asof;
mod declare;
mod edges;
mod events;
mod expression;
mod group;
mod ingress;
mod input;
mod iterate;
mod join;
mod latency;
mod lifetimes;
mod neighbours;
mod operator;
mod parts;
mod pattern;
mod play;
mod product;
mod progressive;
mod query;
mod reach;
mod relation;
mod rows;
pub(crate) mod run;
mod single;
mod sql;
mod sql_query;
mod windowed;
mod windows;

pub use aggregate::{
    FrameAggregate, avg, avg_squares, bool_and, bool_or, collect, count, count_rows, custom, custom_invertible,
    custom_mergeable, first, last, max, median, min, mode, percentile_cont, percentile_disc, stddev, stddev_population,
    sum, sum_squares, top_k, variance, variance_population,
};
pub use anabranch_flow::egress::Item;
pub use anabranch_operators::aggregate::custom::{
    CustomAggregate, GroupRows, Invertible, Mergeable, StateStep, StatesOf, UserAggregate,
};
pub use anabranch_operators::temporal::custom::{Arrived, Given, Instance, UserOperator};
pub use anabranch_operators::temporal::ingress::{self as arrival, Completed, Disorder, IngressCounts};
pub use anabranch_plan::RoundLimit;
pub use anabranch_plan::asof::Strategy;
pub use anabranch_plan::temporal::FOREVER;
pub use asof::AsofOptions;
pub use datafusion_expr::{Expr, cast, lit};
pub use declare::Reached;
pub use events::Events;
pub use expression::{col, end, floor_div, reads_lifetime, start};
pub use group::GroupBy;
pub use input::{Event, IntoEvents};
pub(crate) use iterate::has_open_variable;
pub use iterate::{iterate, iterate_within};
pub use join::How;
pub use parts::{AggregateParts, in_parts};
pub use pattern::{EventPattern, reg};
pub use play::{Pace, Play, PlayTurn};
pub use product::product;
pub use progressive::{Early, Progressive};
pub use query::Frame;
pub(crate) use relation::Timing;
pub(crate) use run::RunInput;
pub use run::{FrameRun, ResultLifetime};
pub use single::single;
pub use windowed::{Closed, EmitWhen};
pub use windows::{window_end, window_start};
