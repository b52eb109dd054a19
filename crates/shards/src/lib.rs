//! Sharded streams: physical plans that a person writes.
//!
//! A [`Shards`] is a plan over a stream that lies in several *shards*. Three things are said apart:
//! what is computed ([`Shards::query`], a frame for each shard), what the key is
//! ([`Shards::rekey`]), and what moves ([`Shards::redistribute`], [`Shards::reshard`],
//! [`Shards::broadcast`], [`Shards::multicast`]).
//!
//! ```
//! use anabranch_engine::frame::{Event, col, count_rows, sum};
//! use anabranch_shards::{Layout, Move, Shards};
//! use arrow::datatypes::{DataType, Field, Schema};
//!
//! // Views of each advertisement: counted in each shard, then the counts are added up.
//! let schema = Schema::new(vec![Field::new("ad", DataType::Int64, true)]);
//! let views = Shards::source("views", schema, Layout::flat(2)).rekey(["ad"]);
//! let counts = views
//!     .query(|shard| shard.tumbling(10).agg([count_rows().alias("n")]))
//!     .redistribute(Move::FLAT)
//!     .query(|shard| shard.agg([sum(col("n")).alias("n")]));
//! counts.check()?;
//!
//! let mut run = counts.run()?;
//! run.push("views", 0, vec![Event::point(1, [7i64.into()]), Event::point(2, [7i64.into()])])?;
//! run.push("views", 1, vec![Event::point(3, [7i64.into()])])?;
//! let total = run.finish()?;
//! let total: Vec<String> = total.lifetimes()?.iter().map(ToString::to_string).collect();
//! assert_eq!(total, ["[10, 20) 7, 3"]);
//! # Ok::<(), anabranch_engine::Error>(())
//! ```
//!
//! Law: a program that [`check`](Shards::check) accepts yields the same contents at every time for
//! every number of shards. Source: Quill (Chandramouli et al., VLDB 2016).
//!
//! Reading order: [`program`] (the plan), [`layout`] (shards, scopes), [`placement`] (what lies
//! where), [`linear`] and [`relational`] (what a query does to placement; `own_values`, of rows
//! joined with what is computed for them), [`safety`] (what follows for a program), [`route`] (rows
//! to shards), [`run`] (the client; below it `tasks`, a plan as numbered steps, `group`, the shards
//! of a process, and `worker`, a shard at work; [`counts`] and [`profile`], what each has done;
//! [`follow`], what the client hears meanwhile),
//! [`processes`] (several of them), [`datasets`] (results that are kept; `stored`, in folders),
//! [`stream`] (a shard as bytes), [`split`] (branches), [`planned`] (programs as data).
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod address;
mod appending;
pub mod counts;
pub mod dataset;
pub mod datasets;
pub mod follow;
mod group;
mod grouped;
mod in_time;
pub mod layout;
pub mod linear;
mod message;
mod moved;
mod own_values;
mod packed;
pub mod placement;
pub mod planned;
pub mod processes;
pub mod profile;
pub mod program;
mod recent_branches;
pub mod relational;
pub mod route;
mod row_alone;
mod row_errors;
pub mod run;
pub mod safety;
pub mod split;
mod stored;
pub mod stream;
mod tasks;
mod traffic;
mod worker;

pub use anabranch_plan::program::{ParaOptions, SplitForm};
pub use counts::StepCounts;
pub use dataset::Dataset;
pub use datasets::Datasets;
pub use follow::{RunProgress, RunWatch, SourceProgress};
pub use layout::{Layout, Move, ShardGroup, ShardScope, To};
pub use message::Carry;
pub use moved::Moved;
pub use placement::{Placement, Spread};
pub use processes::Processes;
pub use profile::StepProfile;
pub use program::Shards;
pub use run::{RunOutcome, ShardRun};
pub use split::{Branches, SplitPlan};
