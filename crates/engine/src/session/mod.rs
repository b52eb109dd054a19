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
//! Reading order: [`outcome`] (what statements give back), [`commit`] (times), [`dataflows`] (how
//! plans are installed), [`sealed`] (what is recorded), [`client`] (what is a client's own),
//! [`bound`] (parameters), [`context`] (what plans depend on), [`latest`] (what connections know),
//! then one file per statement family: [`create`], [`drop`](mod@drop),
//! [`query`], [`write`](mod@write), [`upsert`], [`copy`] (files), [`copying`] (with the client),
//! [`transact`], [`durable`] (what survives), [`past`] (AS OF), [`explain`], [`frames`] (fluent
//! queries), [`frame_views`] (their results as relations), [`functions`] (of the embedding
//! program), [`planned`] (plans of other front ends), [`show`], [`subscribe`] (with [`envelope`]),
//! [`cursor`], [`named`] (PREPARE), [`turn`] (sources), [`settings`], [`variables`].

mod again;
mod alter;
mod analyze;
mod announce;
mod bound;
mod by_keys;
mod client;
mod columns;
mod commit;
mod context;
mod copy;
mod copying;
mod create;
mod cursor;
mod dataflows;
mod drop;
mod durable;
mod engine_state;
mod envelope;
mod explain;
mod files;
mod frame_views;
mod frames;
mod functions;
mod latest;
mod named;
mod operators;
mod outcome;
mod past;
mod planned;
mod planning;
mod present;
mod query;
mod rules;
mod schemas;
mod sealed;
mod settings;
mod show;
mod state_remark;
mod subscribe;
mod system;
mod tag;
mod transact;
mod turn;
mod upsert;
mod variables;
mod waiting;
mod write;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anabranch_arrangement::MergeEffort;
use anabranch_sql::Parsed;
use anabranch_sql::statement::{ObjectKind, Statement};
use anabranch_store::Durability;

use crate::catalog::{Catalog, Created, ObjectId};
use crate::clock::{Clock, WallClock};
use crate::cluster::{ArrangementId, Cluster, CollectionId, DataflowId};
use crate::connector::Connector;
use crate::dataflows::Dataflows;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::pump::Pump;
use crate::sharing::Sharing;

use bound::Bound;
use client::Client;
use commit::Timeline;
use durable::{COLUMNS, columns_value};
use files::Wanted;
use frame_views::FrameView;
use present::Present;
use settings::Settings;
use subscribe::Subscriptions;
use waiting::Waits;

pub(crate) use bound::{Bound as BoundParameters, Plans, Role, fit, parse_one};
pub use client::SessionClient;
pub(crate) use client::{Client as ClientState, counted};
pub(crate) use context::{Named, PlanContext, visible_schema};
pub(crate) use copying::{CopyIn, Copying, Next as NextRows, no_copy};
pub use copying::{CopyRows, CopyStart, CopyWay};
pub(crate) use cursor::fetch_deadline;
pub use durable::{DumpOptions, SourceRows, dump, dump_on};
pub(crate) use latest::{CatalogFacts, EngineMoment, Latest};
pub use outcome::{Changes, Outcome, RelationInfo, Rows, SourceState, SourceStatus, Step, Subscription};
pub use sealed::{Promise, Receipt, Recorder, Sealed, SealedFact, SealedMark, SealedRows};
pub(crate) use subscribe::AlarmSet;
pub use tag::command_tag;
pub(crate) use transact::check_reads_only;
pub use turn::Progress;
pub(crate) use waiting::{Attempt, Attempted, Manner, Over, Waiting};

/// How a session is set up.
#[derive(Clone)]
pub struct Options {
    /// Worker threads; 0 runs everything inside the caller's calls.
    pub workers: usize,
    /// How hard arrangements work at merging.
    pub merge_effort: MergeEffort,
    /// Where commit times come from.
    pub clock: Arc<dyn Clock>,
    /// Rows read from one source in one turn, at most.
    pub batch_rows_max: usize,
    /// Bytes of rows that COPY holds in memory before it sets further ones aside in a file.
    pub copy_bytes_max: usize,
    /// Where such files go.
    pub temporary_folder: PathBuf,
    /// Whether queries share the arrangements of indexes and of their common parts;
    /// [`Sharing::Full`] unless for comparison.
    pub sharing: Sharing,
    /// How long what has changed can still be read with AS OF.
    pub retain_history: Duration,
    /// When a commit of a database in a folder counts as done, unless `SET durability` says
    /// otherwise.
    pub durability: Durability,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            workers: 0,
            merge_effort: MergeEffort::default(),
            clock: Arc::new(WallClock),
            batch_rows_max: 65_536,
            copy_bytes_max: 64 << 20,
            temporary_folder: std::env::temp_dir(),
            sharing: Sharing::Full,
            retain_history: Duration::ZERO,
            durability: Durability::Full,
        }
    }
}

/// A running engine. See the [module page](self) for its laws.
///
/// ```
/// use anabranch_engine::{Options, Session};
///
/// let mut session = Session::new(Options::default())?;
/// session.execute(
///     "CREATE TABLE sales (item text, price int);
///      CREATE MATERIALIZED VIEW totals AS SELECT item, sum(price) AS total FROM sales GROUP BY item;
///      INSERT INTO sales VALUES ('tea', 3), ('tea', 4), ('jam', 5)",
/// )?;
/// let totals = session.query("SELECT total FROM totals WHERE item = 'tea'")?;
/// assert_eq!(totals.num_rows(), 1);
/// # Ok::<(), anabranch_engine::Error>(())
/// ```
pub struct Session {
    catalog: Catalog,
    cluster: Cluster,
    timeline: Timeline,
    dataflows: Dataflows,
    subscriptions: Subscriptions,
    /// Frames whose results are relations, in the order in which they were made.
    frame_views: Vec<FrameView>,
    pump: Pump,
    /// What the relation of the clock holds.
    present: Present,
    /// Inputs whose readers came before the source's present input: they are given the same rows.
    earlier_inputs: BTreeMap<CollectionId, Vec<CollectionId>>,
    connectors: BTreeMap<String, Arc<dyn Connector>>,
    settings: Settings,
    interrupt: Interrupt,
    /// How the statement that runs waits.
    waits: Waits,
    /// Whether it is the session of a database, whose connections wait by themselves.
    serves_many: bool,
    /// Whether `interrupt` is that of a connection, which forgets earlier triggers itself.
    serves: bool,
    progress: Progress,
    /// What the client has of its own. While a connection is served it is the connection's.
    client: Client,
    /// What stands for the parameters of the statement that runs.
    bound: Bound,
    /// What connections know without asking.
    latest: Arc<Latest>,
    /// Keeps what is sealed, if anything does.
    recorder: Option<Box<dyn Recorder>>,
    options: Options,
}

impl Session {
    /// Starts the workers. The catalog is empty and no connector is registered.
    ///
    /// # Errors
    /// `Unavailable` when threads cannot be started.
    pub fn new(options: Options) -> Result<Session, Error> {
        let cluster = Cluster::start(options.workers, options.merge_effort)?;
        Ok(Session {
            catalog: Catalog::default(),
            client: Client::new(0, cluster.client_account(0), &options),
            cluster,
            timeline: Timeline::new(options.clock.now_micros()),
            dataflows: Dataflows::default(),
            subscriptions: Subscriptions::default(),
            frame_views: Vec::new(),
            pump: Pump::default(),
            present: Present::default(),
            earlier_inputs: BTreeMap::new(),
            connectors: BTreeMap::new(),
            settings: Settings::new(&options),
            interrupt: Interrupt::new(),
            waits: Waits::default(),
            serves_many: false,
            serves: false,
            progress: Progress::default(),
            bound: Bound::default(),
            latest: Arc::new(Latest::new(Arc::clone(&options.clock))),
            recorder: None,
            options,
        })
    }

    /// Makes a connector known under `name`, for `CREATE SOURCE .. WITH (connector = name)`. `COPY`
    /// uses the one named `file`. Sources of a database that was opened go on where they were.
    pub fn register_connector(&mut self, name: &str, connector: Arc<dyn Connector>) {
        self.connectors.insert(name.to_string(), connector);
        self.resume_sources(name);
    }

    /// Lets `recorder` keep every commit and every change of the catalog from now on.
    pub fn set_recorder(&mut self, recorder: Box<dyn Recorder>) {
        self.recorder = Some(recorder);
    }

    /// Runs the statements of a script in order and stops at the first error; those before it stay
    /// done.
    ///
    /// # Errors
    /// A script that does not parse runs not at all. Positions are byte offsets into `script`.
    pub fn execute(&mut self, script: &str) -> Result<Vec<Outcome>, Error> {
        let statements = anabranch_sql::parse(script)?;
        statements.iter().map(|statement| self.execute_one(script, statement)).collect()
    }

    /// Runs one statement of a parsed script. `script` is the whole text that was parsed.
    ///
    /// # Errors
    /// Whatever is wrong with the statement; the session is as it was before.
    pub fn execute_one(&mut self, script: &str, statement: &Parsed) -> Result<Outcome, Error> {
        self.begin_statement()?;
        self.check_transaction(&statement.statement)?;
        let is_inner = self.interrupt.limit(self.client.variables.statement_timeout());
        let result = self.run(script, statement).map_err(|error| error.placed_in(script));
        let result = result.and_then(|outcome| self.count_held().map(|()| outcome));
        // (The limit of a statement that waits goes on.)
        if !is_inner && !self.is_handed_over() {
            self.interrupt.unlimit();
        }
        if result.is_err() && !self.is_handed_over() {
            self.fail_transaction();
        }
        self.await_lasting()?;
        result
    }

    fn run(&mut self, script: &str, statement: &Parsed) -> Result<Outcome, Error> {
        let text = script.get(statement.range.clone()).unwrap_or(script).trim();
        self.check_parameters(statement)?;
        self.check_no_parameters(statement)?;
        self.check_schemas(&statement.schemas)?;
        let own = self.in_own_names(&statement.statement);
        let own = own.as_ref().unwrap_or(&statement.statement);
        let filed = self.with_files(own, Wanted::Rows);
        let result = filed.and_then(|filed| self.run_one(filed.as_ref().unwrap_or(own), text));
        if !self.is_handed_over() {
            self.drop_files();
        }
        result
    }

    fn run_one(&mut self, statement: &Statement, text: &str) -> Result<Outcome, Error> {
        match statement {
            Statement::CreateTable(create) => self.define(|session| session.create_table(create, text)),
            Statement::CreateTableAs(create) => self.create_table_as(create),
            Statement::CreateSource(create) => self.define(|session| session.create_source(create, text)),
            Statement::CreateView(create) => self.define_view(create, text),
            Statement::CreateIndex(create) => self.define(|session| session.create_index(create, text)),
            Statement::Insert(insert) => self.insert_rows(insert),
            Statement::Update(update) => self.update_rows(update),
            Statement::Delete(delete) => self.delete_rows(delete),
            Statement::CopyFrom(copy) => self.copy_from(copy),
            Statement::CopyTo(copy) => self.copy_to(copy),
            Statement::Select { query, as_of, .. } => self.select(query, as_of.as_deref()).map(Outcome::Rows),
            Statement::Subscribe(subscribe) => self.subscribe(subscribe).map(Outcome::Subscription),
            Statement::Explain(explain) => self.explain(explain).map(Outcome::Rows),
            Statement::Show(show) => self.show(show).map(Outcome::Rows),
            Statement::Describe { name } => self.describe(name).map(Outcome::Rows),
            Statement::Drop(drop) => self.drop_objects(drop),
            Statement::Alter(alter) => self.alter(alter),
            Statement::CreateSchema { name, if_not_exists } => {
                self.define(|session| session.create_schema(name, *if_not_exists, text))
            }
            Statement::DropSchema { names, if_exists, cascade } => self.drop_schemas(names, *if_exists, *cascade),
            Statement::Transaction(transaction) => self.transact(transaction.clone()),
            Statement::Flush => self.wait().map(|()| Outcome::done("FLUSH")),
            Statement::Set { name, value, scope } => self.set_setting(name, value.as_deref(), *scope),
            Statement::Reset { name } => self.reset(name.as_deref()),
            Statement::Unlisten => Ok(Outcome::done("UNLISTEN")),
            Statement::Discard { all } => self.discard(*all),
            Statement::SetTransaction { access, scope } => self.set_transaction(*access, *scope),
            Statement::Prepare(prepare) => self.prepare_named(prepare),
            Statement::Execute(execute) => self.execute_named(execute),
            Statement::Deallocate { name } => self.deallocate(name.as_deref()),
            Statement::Declare(declare) => self.declare(declare),
            Statement::Fetch(fetch) => self.fetch(fetch),
            Statement::Close { name } => self.close_cursors(name.as_deref()),
        }
    }

    /// Makes an object and records it. What cannot be recorded is dropped again: no statement has
    /// seen it.
    fn define(&mut self, make: impl FnOnce(&mut Session) -> Result<Outcome, Error>) -> Result<Outcome, Error> {
        let before = self.catalog.next_object();
        let outcome = make(self)?;
        let created = self.created_since(before);
        if created.is_empty() {
            return Ok(outcome);
        }
        let facts = created.iter().filter_map(|created| self.columns_fact(created)).collect();
        if let Err(error) = self.record_definition(vec![], created.clone(), facts) {
            created.iter().rev().for_each(|created| self.drop_created(&created.name));
            return Err(error);
        }
        Ok(outcome)
    }

    /// Records that objects go and come. What goes may go once this has returned.
    fn record_definition(
        &mut self,
        removed: Vec<ObjectId>,
        created: Vec<Created>,
        facts: Vec<SealedFact>,
    ) -> Result<(), Error> {
        let sealed = Sealed::at(self.timeline.last(), self.client.durability);
        self.record(&Sealed { removed, created, facts, ..sealed })
    }

    /// Objects with that id or a later one.
    fn created_since(&self, first: ObjectId) -> Vec<Created> {
        self.catalog.created().into_iter().filter(|created| created.id >= first).collect()
    }

    /// The columns of a source: its statement may leave them to the files.
    fn columns_fact(&self, created: &Created) -> Option<SealedFact> {
        let object = self.catalog.find(&created.name).filter(|object| object.kind == ObjectKind::Source)?;
        Some(SealedFact { object: created.id, name: COLUMNS, value: columns_value(&object.schema) })
    }

    /// The answer of a script of one row-returning statement.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); `Invalid` when it is not one statement or returns no rows.
    pub fn query(&mut self, sql: &str) -> Result<Rows, Error> {
        let statements = anabranch_sql::parse(sql)?;
        let [statement] = statements.as_slice() else {
            return Err(Error::invalid(format!("one statement was expected, but there are {}", statements.len())));
        };
        match self.execute_one(sql, statement)? {
            Outcome::Rows(rows) => Ok(rows),
            Outcome::Done { tag, .. } => {
                Err(Error::invalid(format!("the statement returns no rows ({tag})")).with_hint("Use execute."))
            }
            Outcome::Subscription(subscription) => {
                self.unsubscribe(subscription);
                Err(Error::invalid("SUBSCRIBE returns changes, not rows").with_hint("Use execute and next_changes."))
            }
            Outcome::Copy(_) => {
                self.copy_stop();
                Err(Error::invalid("COPY returns no rows").with_hint("Use execute, and copy_rows or copy_data."))
            }
        }
    }

    /// A handle that stops the running statement from another thread.
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Lets the next turn of the dataflow of a relation panic, for tests of what follows.
    #[doc(hidden)]
    pub fn panic_in(&mut self, relation: &str) {
        self.cluster.panic_in(relation);
    }

    /// Limits what arrangements and operators may hold together.
    pub(crate) fn set_memory_limit(&mut self, bytes: Option<usize>) {
        self.cluster.set_memory_limit(bytes);
    }

    /// From now on the session is that of a database, whose connections wait by themselves.
    pub(crate) fn serve_many(&mut self) {
        self.serves_many = true;
        self.note_latest();
    }

    /// Takes down what has failed, so that questions about it are let fall.
    pub(crate) fn take_down_failed(&mut self) {
        self.cluster.take_down_failed();
    }

    /// Workers let the question of a waiting statement fall; `dataflow` was installed for its
    /// answer.
    ///
    /// # Errors
    /// Why that dataflow has failed, which ends the statement: the next attempt would install the
    /// same, and fail in the same way.
    pub(crate) fn let_fall(&mut self, connection: u64, dataflow: DataflowId) -> Result<(), Error> {
        self.cluster.take_down_failed();
        let fate = self.cluster.check_dataflow(dataflow);
        match &fate {
            Ok(()) => self.release_dataflow(dataflow),
            Err(_) => self.give_up(connection, Some(dataflow)),
        }
        fate
    }

    /// A statement of a connection was given up while it waited.
    pub(crate) fn give_up(&mut self, connection: u64, dataflow: Option<DataflowId>) {
        self.stop_alone(connection);
        self.interrupt.unlimit();
        self.fail_transaction();
        dataflow.into_iter().for_each(|dataflow| self.release_dataflow(dataflow));
    }

    /// Works with the interrupt and the transaction, settings and cursors of a connection while
    /// `work` runs.
    pub(crate) fn serve<T>(
        &mut self,
        interrupt: Interrupt,
        client: &mut Client,
        work: impl FnOnce(&mut Session) -> T,
    ) -> T {
        let own = std::mem::replace(&mut self.interrupt, interrupt);
        std::mem::swap(&mut self.client, client);
        self.serves = true;
        let result = work(self);
        self.note_latest();
        self.serves = false;
        std::mem::swap(&mut self.client, client);
        self.interrupt = own;
        result
    }

    /// What connections know without asking.
    pub(crate) fn latest(&self) -> Arc<Latest> {
        Arc::clone(&self.latest)
    }

    /// Notes for connections where the engine stands.
    fn note_latest(&self) {
        let (time, version) = (self.timeline.last(), self.catalog.version());
        self.latest.note(EngineMoment { time, version, receipt: self.receipt() });
    }

    /// Makes the present catalog known to connections.
    pub(crate) fn share_catalog(&self) -> Arc<CatalogFacts> {
        let facts = Arc::new(CatalogFacts { catalog: self.catalog.clone(), sharing: self.settings.sharing });
        self.latest.know(Arc::clone(&facts));
        facts
    }

    /// Has workers publish an arrangement for connections, unless many are published.
    pub(crate) fn publish_arrangement(&mut self, arrangement: ArrangementId) {
        // (What cannot be published is read through the engine, which tells why not.)
        if self.latest.has_room(arrangement)
            && let Ok(publication) = self.cluster.publish(arrangement)
        {
            self.latest.published(arrangement, publication);
        }
    }

    /// Forgets an interrupt that came before the statement.
    pub(super) fn forget_interrupt(&self) {
        if !self.serves {
            self.interrupt.clear();
        }
    }

    /// The columns of a table.
    ///
    /// # Errors
    /// `Invalid` when there is no such table.
    pub(crate) fn table_schema(&self, table: &str) -> Result<arrow::datatypes::SchemaRef, Error> {
        Ok(self.catalog.table(table)?.schema.clone())
    }

    /// Relations in the order of their names.
    pub fn relations(&self) -> Vec<RelationInfo> {
        let info = |object: &crate::catalog::Object| RelationInfo {
            name: object.name.clone(),
            kind: object.kind,
            schema: object.schema.clone(),
            primary_key: object.primary_key.clone(),
        };
        self.catalog.objects().map(info).collect()
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("relations", &self.catalog.objects().count()).finish_non_exhaustive()
    }
}
