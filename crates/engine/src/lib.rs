//! The engine: SQL statements in, current answers out.
//!
//! A [`Session`] owns a catalog (tables, sources, views, indexes), a group of workers and one
//! timeline. Statements take effect one after the other; reads are as of the last commit, in tables
//! and in views alike. Standing queries are dataflows that share arrangements; installing one
//! touches no other, dropping one frees what only it held.
//!
//! ```
//! use anabranch_engine::{Changes, Created, ObjectId, Options, Outcome, Session};
//! use std::time::Duration;
//!
//! let mut session = Session::new(Options::default())?;
//! session.execute(
//!     "CREATE TABLE readings (sensor text, celsius double precision);
//!      CREATE MATERIALIZED VIEW warm AS
//!          SELECT sensor, max(celsius) AS celsius FROM readings GROUP BY sensor HAVING max(celsius) > 20",
//! )?;
//!
//! // A standing query: what is there first, then each change.
//! let outcomes = session.execute("SUBSCRIBE warm")?;
//! let Some(Outcome::Subscription(warm)) = outcomes.into_iter().next() else { panic!() };
//! session.execute("INSERT INTO readings VALUES ('roof', 21.5), ('cellar', 12.0)")?;
//! let Changes::Rows(changes) = session.next_changes(&warm, Duration::from_secs(10))? else { panic!() };
//! assert_eq!(changes[0].num_rows(), 1);
//!
//! // A question asked once.
//! let rows = session.query("SELECT sensor FROM warm ORDER BY celsius DESC LIMIT 1")?;
//! assert_eq!(rows.num_rows(), 1);
//! # Ok::<(), anabranch_engine::Error>(())
//! ```
//!
//! Reading order: [`Session`] and its files (`session/`), what it knows (`catalog/`), how rows come
//! in ([`connector`], `pump`, `coerce`) and go out (`finish`, `evaluate`), the fluent API
//! ([`frame`]), then below the session: [`dataflows`] (what is installed, and how long it stays),
//! `sharing` (which arrangements queries share), `cluster/` (the workers) and `render/` (from plans
//! to operators).
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod appender;
mod backends;
pub mod binary;
mod bind;
mod catalog;
mod clock;
pub mod cluster;
mod coerce;
pub mod connector;
mod contained;
mod copy;
pub mod database;
pub mod dataflows;
mod direct;
mod duration;
mod error;
mod evaluate;
mod finish;
pub mod frame;
pub mod functions;
pub mod graphs;
mod interrupt;
mod key_set;
mod look_up;
pub mod nearest;
mod prepared;
mod pump;
mod reads;
mod render;
mod row_maker;
mod session;
mod sharing;
mod spool;
mod sqlstate;
mod staged;
mod transaction;

pub use anabranch_arrangement::MergeEffort;
pub use anabranch_batch::{Diff, Time, Times};
pub use anabranch_flow::steps::StepStats;
pub use anabranch_store as store;
pub use appender::Appender;
pub use backends::{Backend, BackendState};
pub use catalog::{Created, ObjectId};
pub use clock::{Clock, ManualClock, WallClock};
pub use cluster::ArrangementStats;
pub use connector::{Connector, Poll, ReadProgress, SourceReader, SourceSpec};
pub use copy::encode::CopyData;
pub use database::{Connection, Database, DatabaseOptions, EngineLoad};
pub use datafusion_common::ScalarValue;
pub use error::{Error, ErrorKind, ErrorSubject};
pub use interrupt::Interrupt;
pub use prepared::Prepared;
pub use session::{
    Changes, CopyRows, CopyStart, CopyWay, DumpOptions, Options, Outcome, Progress, Promise, Receipt, Recorder,
    RelationInfo, Rows, Sealed, SealedFact, SealedMark, SealedRows, Session, SessionClient, SourceRows, SourceState,
    SourceStatus, StepStatus, Subscription, Together, command_tag, dump, dump_on, dump_with, memory_for_state,
    together,
};
pub use sharing::Sharing;
pub use transaction::TransactionState;
