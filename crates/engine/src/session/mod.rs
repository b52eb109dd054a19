//! A session: a catalog, a group of workers and one timeline, owned by one thread.
//!
//! Law (strict serialisability): statements take effect one after the other. Every write is one
//! commit with a time later than all before; every read is made as of the last commit, in tables
//! and in views alike, so a `SELECT` sees all writes before it and none in part.
//!
//! With [`Options::workers`] = 0 the session has no thread of its own: workers run inside
//! [`Session::step`], in reads and, a little, in writes. Otherwise they run beside, and the session
//! waits for them only to read, or when it is more than a few commits ahead of them.
//!
//! Reading order: [`state`] (what a session has), [`outcome`] (what statements give back),
//! [`execute`] (which file a statement leads to), [`commit`] (times), [`dataflows`] (how plans are
//! installed), [`sealed`] (what is recorded), [`clients`], [`parameters`], [`context`] (what plans
//! depend on), [`latest`] (what connections know), then one file per statement family: [`create`],
//! [`drop`](mod@drop), [`query`], [`write`](mod@write), [`upsert`], [`copy`] (files),
//! [`copied_files`] (of text and csv), [`copying`] (with the client), [`transact`], [`durable`]
//! (what survives), [`past`] (AS OF), [`explain`], [`frames`] (fluent queries), [`frame_views`]
//! (their results as relations), [`functions`] (of the embedding program), [`planned`] (plans of
//! other front ends), [`show`], [`subscribe`] (with [`envelope`] and [`followed`], system
//! relations), [`cursor`], [`named`] (PREPARE), [`turn`] (sources), [`settings`], [`variables`],
//! [`locks`] and [`lock_functions`] (advisory locks).

mod again;
mod alter;
mod analyze;
mod announce;
mod backend_functions;
mod by_keys;
mod changes_in_with;
mod clients;
mod columns;
mod commit;
mod context;
mod copied_files;
mod copied_keys;
mod copied_rows;
mod copy;
mod copying;
mod create;
mod create_source;
mod create_view;
mod cursor;
mod dataflows;
mod defined;
mod drop;
mod durable;
mod engine_state;
mod envelope;
mod execute;
mod explain;
mod explain_program;
mod explain_standing;
mod files;
mod followed;
mod frame_sources;
mod frame_views;
mod frames;
mod functions;
mod index;
mod joined_once;
mod keys;
mod labels;
mod latest;
mod like;
mod lock_functions;
mod locks;
mod merge;
mod named;
mod noted;
mod operators;
pub(crate) mod outcome;
pub(crate) mod parameters;
mod past;
mod planned;
mod planning;
mod present;
mod query;
mod references;
mod referred_rows;
mod rename;
mod rewritten;
mod rules;
mod schemas;
mod sealed;
mod sequences;
mod setting_functions;
mod settings;
mod show;
pub(crate) mod state;
mod state_remark;
mod subscribe;
mod system;
mod tag;
pub(crate) mod together;
mod told_columns;
mod transact;
mod truncate;
mod turn;
mod unique;
mod upsert;
mod user_types;
mod variables;
mod waiting;
mod write;

pub(crate) use context::{Named, PlanContext};
pub(crate) use cursor::fetch_deadline;
pub use durable::{DumpOptions, SourceRows, dump, dump_on, dump_with};
pub(crate) use latest::{CatalogFacts, EngineMoment, Latest};
pub use outcome::{Changes, Outcome, RelationInfo, Rows, SourceState, SourceStatus, StepStatus, Subscription};
pub(crate) use parameters::parse_one;
pub use sealed::{Promise, Receipt, Recorder, Sealed, SealedFact, SealedMark, SealedRows};
pub use state::Session;
pub(crate) use state::bound::{BoundStatement as BoundParameters, Plans, Role};
pub use state::client::SessionClient;
pub(crate) use state::client::{Client as ClientState, counted};
pub(crate) use state::copying::{CopyIn, Copying, Next as NextRows, no_copy};
pub use state::copying::{CopyRows, CopyStart, CopyWay};
pub use state::machine_memory::memory_for_state;
pub use state::options::Options;
pub use state::progress::Progress;
pub(crate) use state::waits::{Attempt, Attempted, Manner, Over, Waiting};
pub(crate) use subscribe::AlarmSet;
pub use tag::command_tag;
pub use together::{Together, together};
pub(crate) use transact::check_reads_only;
