//! A connection: statements of one client, in their order.
//!
//! Parsing, planning and waiting happen on the connection's thread, and so does much of reading
//! (`beside`). The rest the engine attempts, and where the answer of workers takes longer, the
//! connection waits for it and has the statement attempted again. An interrupt stops the statement
//! that runs, or that waits for its turn; one that arrives between two statements is forgotten.

mod copying;
mod following;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anabranch_batch::Time;
use anabranch_plan::Plan;
use anabranch_sql::Parsed;
use anabranch_sql::statement::Statement;
use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;

use super::alarm::Alarm;
use super::beside::Here;
use super::engine::Engine;
use super::prepared::Remembered;
use crate::backends::Backend;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::prepared::Prepared;
use crate::session::{
    Attempt, Attempted, BoundParameters, ClientState, Manner, Outcome, Over, RelationInfo, Rows, Session, Subscription,
    Waiting, check_reads_only, fetch_deadline, parse_one,
};
use crate::transaction::{Transaction, TransactionState};

/// How many connections there were.
static CONNECTIONS: AtomicU64 = AtomicU64::new(1);

/// Waits after which the engine looks whether what is waited for has failed.
const WAITS_PER_LOOK: u32 = 5;

/// A client of a [`Database`](crate::Database).
pub struct Connection {
    pub(super) engine: Arc<Engine>,
    /// Its number among all connections.
    id: u64,
    pub(super) interrupt: Interrupt,
    /// Transaction, settings and cursors; the engine has them while it serves the connection.
    pub(super) client: Arc<Mutex<ClientState>>,
    subscriptions: BTreeMap<u64, Subscription>,
    /// Alarms that were set and not rung yet, by subscription.
    alarms: BTreeMap<u64, Alarm>,
    remembered: Remembered,
    /// Whether statements that write are refused.
    reads_only: bool,
    /// Statements that needed no engine.
    pub(super) answered_here: u64,
}

impl Connection {
    pub(super) fn open(engine: Arc<Engine>) -> Result<Connection, Error> {
        let id = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let client = engine.call(move |session| session.new_client(id))?;
        Ok(Connection {
            engine,
            id,
            interrupt: Interrupt::new(),
            client: Arc::new(Mutex::new(client)),
            subscriptions: BTreeMap::new(),
            alarms: BTreeMap::new(),
            remembered: Remembered::default(),
            reads_only: false,
            answered_here: 0,
        })
    }

    /// Runs the statements of a script in order and stops at the first error; those before it stay
    /// done.
    ///
    /// # Errors
    /// A script that does not parse runs not at all. Positions are byte offsets into `script`.
    pub fn execute(&mut self, script: &str) -> Result<Vec<Outcome>, Error> {
        self.interrupt.clear();
        let statements = self.failing(anabranch_sql::parse(script).map_err(Error::from))?;
        let text: Arc<str> = script.into();
        statements.into_iter().map(|statement| self.run_one(&text, &Arc::new(statement))).collect()
    }

    /// The answer of one row-returning statement.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); `Invalid` when it is not one statement or returns no rows.
    pub fn query(&mut self, sql: &str) -> Result<Rows, Error> {
        let prepared = self.prepare(sql, &[])?;
        match self.run(&prepared, &[])? {
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

    /// Parses and types one statement. `types` are those of `$1`, `$2` .. as far as they are known.
    ///
    /// # Errors
    /// Whatever is wrong with the statement, as far as it shows before it runs.
    pub fn prepare(&mut self, sql: &str, types: &[Option<DataType>]) -> Result<Prepared, Error> {
        self.interrupt.clear();
        let prepared = self.prepare_any(sql, types);
        self.failing(prepared)
    }

    fn prepare_any(&mut self, sql: &str, types: &[Option<DataType>]) -> Result<Prepared, Error> {
        if let Some((version, known)) = self.remembered.get(sql, types)
            && self.engine.latest().moment().version == version
        {
            return Ok(known.clone());
        }
        let (text, statement, given) = (Arc::from(sql), Arc::new(parse_one(sql)?), types.to_vec());
        let (version, prepared) = match self.prepare_here(&text, &statement, types)? {
            Some(prepared) => prepared,
            None => self.call(move |session| {
                let prepared = session.prepare_parsed(text, statement, &given)?;
                Ok::<_, Error>((session.catalog_version(), prepared))
            })??,
        };
        self.remembered.put(types, version, &prepared);
        Ok(prepared)
    }

    /// Runs a prepared statement with values for its parameters. Values of other types are read as
    /// the parameters' types; texts as PostgreSQL reads them.
    ///
    /// ```
    /// use anabranch_engine::{Database, DatabaseOptions, Outcome};
    /// use datafusion_common::ScalarValue;
    ///
    /// let mut connection = Database::open(DatabaseOptions::default())?.connect()?;
    /// connection.execute("CREATE TABLE t (k int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a')")?;
    /// let look_up = connection.prepare("SELECT v FROM t WHERE k = $1", &[])?;
    /// let Outcome::Rows(rows) = connection.run(&look_up, &[ScalarValue::from(1)])? else { panic!() };
    /// assert_eq!(rows.num_rows(), 1);
    /// # Ok::<(), anabranch_engine::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`execute`](Self::execute); `Invalid` for a wrong number of values, `Data` for a value
    /// that does not fit.
    pub fn run(&mut self, prepared: &Prepared, parameters: &[ScalarValue]) -> Result<Outcome, Error> {
        self.interrupt.clear();
        if self.reads_only {
            check_reads_only(&prepared.statement.statement)?;
        }
        let fitted = self.failing(prepared.fitted(parameters))?;
        let bound = match self.begin_here(&prepared.statement.statement, fitted)? {
            Here::Answered(rows) => return Ok(Outcome::Rows(rows)),
            Here::Planned(bound) => bound,
        };
        let run = prepared.clone();
        self.awaited(&prepared.statement, move |session| session.run_bound(&run, bound.clone()))
    }

    /// Appends rows to a table. Columns go by name when all names are the table's, else by
    /// position.
    ///
    /// # Errors
    /// As [`Session::insert`](crate::Session::insert).
    pub fn insert(&mut self, table: &str, batch: &RecordBatch) -> Result<Time, Error> {
        self.interrupt.clear();
        self.check_may_write()?;
        let (table, batch) = (table.to_owned(), batch.clone());
        self.attempt(Manner::Adds, move |session| session.insert(&table, &batch))
    }

    /// Applies signed changes to a table.
    ///
    /// # Errors
    /// As [`Session::apply`](crate::Session::apply).
    pub fn apply(&mut self, table: &str, rows: &RecordBatch, diffs: &[i64]) -> Result<Time, Error> {
        self.interrupt.clear();
        self.check_may_write()?;
        let (table, rows, diffs) = (table.to_owned(), rows.clone(), diffs.to_vec());
        self.attempt(Manner::Writes, move |session| session.apply(&table, &rows, &diffs))
    }

    /// Relations in the order of their names.
    ///
    /// # Errors
    /// `Closed` when the database was closed.
    pub fn relations(&mut self) -> Result<Vec<RelationInfo>, Error> {
        self.call(|session| session.relations())
    }

    /// Creates a materialized view of a plan.
    ///
    /// # Errors
    /// As [`Session::create_plan_view`](crate::Session::create_plan_view).
    pub fn create_plan_view(&mut self, name: &str, plan: &Arc<Plan>, definition: &str) -> Result<(), Error> {
        self.interrupt.clear();
        let (name, plan, definition) = (name.to_owned(), Arc::clone(plan), definition.to_owned());
        self.call(move |session| session.create_plan_view(&name, &plan, &definition))?
    }

    /// The rows of a plan.
    ///
    /// # Errors
    /// As [`Session::query_plan`](crate::Session::query_plan).
    pub fn query_plan(&mut self, plan: &Arc<Plan>) -> Result<Rows, Error> {
        self.interrupt.clear();
        let plan = Arc::clone(plan);
        self.call(move |session| session.query_plan(&plan))?
    }

    /// Fails the open transaction, if there is one: something went wrong that the engine has not
    /// seen.
    pub fn fail_transaction(&mut self) {
        // (A database that was closed has no transactions.)
        let _ = self.failing::<()>(Err(Error::cancelled()));
    }

    /// Fails the open transaction, if there is one and the result is an error.
    fn failing<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if result.is_err() && self.transaction() == TransactionState::Open {
            self.call(|session| session.failing::<()>(Err(Error::cancelled())).is_err())?;
        }
        result
    }

    /// Where the connection's transaction stands.
    pub fn transaction(&self) -> TransactionState {
        Transaction::state(self.client.lock().unwrap_or_else(PoisonError::into_inner).transaction.as_ref())
    }

    /// The words of a statement's command tag, without counts.
    pub fn tag(&self, statement: &Statement) -> &'static str {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).tag(statement)
    }

    /// How many statements this connection has answered on its own thread, for tests.
    #[doc(hidden)]
    pub fn answered_here(&self) -> u64 {
        self.answered_here
    }

    /// A handle that stops the running statement from another thread.
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// The client has logged in as a user, of whom `current_user` tells from now on.
    ///
    /// # Errors
    /// `Closed` when the database was closed.
    pub fn log_in(&mut self, user: &str) -> Result<(), Error> {
        let user = user.to_owned();
        self.call(move |session| session.log_in(&user))
    }

    /// Lists the connection among the clients that others see, until it ends.
    pub fn appear(&mut self, backend: Arc<Backend>) {
        let backends = &mut self.client.lock().unwrap_or_else(PoisonError::into_inner).backends;
        backends.all.enter(Arc::clone(&backend));
        backends.own = Some(backend);
    }

    /// Refuses statements that write from now on; that cannot be taken back.
    pub fn forbid_writes(&mut self) {
        self.reads_only = true;
        self.client.lock().unwrap_or_else(PoisonError::into_inner).backends.only_own_user = true;
    }

    /// Runs one statement of a parsed script. `script` is the whole text that was parsed.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn execute_one(&mut self, script: &Arc<str>, statement: &Arc<Parsed>) -> Result<Outcome, Error> {
        self.interrupt.clear();
        self.run_one(script, statement)
    }

    fn run_one(&mut self, script: &Arc<str>, statement: &Arc<Parsed>) -> Result<Outcome, Error> {
        self.interrupt.check()?;
        if self.reads_only {
            check_reads_only(&statement.statement)?;
        }
        let bound = match self.begin_here(&statement.statement, BoundParameters::default())? {
            Here::Answered(rows) => return Ok(Outcome::Rows(rows)),
            Here::Planned(bound) => bound,
        };
        let (script, run) = (Arc::clone(script), Arc::clone(statement));
        self.awaited(statement, move |session| {
            session.with_bound(bound.clone(), |session| session.execute_one(&script, &run))
        })
    }

    /// Has a statement done.
    fn awaited(
        &mut self,
        statement: &Parsed,
        run: impl Fn(&mut Session) -> Result<Outcome, Error> + Clone + Send + Sync + 'static,
    ) -> Result<Outcome, Error> {
        let manner = Manner::of(&statement.statement);
        let Statement::Fetch(fetch) = &statement.statement else {
            let outcome = self.attempt(manner, run)?;
            return Ok(self.noted(outcome));
        };
        let timeout = self.client.lock().unwrap_or_else(PoisonError::into_inner).variables.statement_timeout();
        let ends = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let fetched = fetch_deadline(fetch).and_then(|deadline| self.fetch_awaited(deadline, ends, manner, run));
        self.failing(fetched)
    }

    /// Has a FETCH done. A FETCH without changes waits here, and the engine serves others. `ends`
    /// is when `statement_timeout` ends it: each attempt alone is shorter.
    fn fetch_awaited(
        &mut self,
        deadline: Option<Instant>,
        ends: Option<Instant>,
        manner: Manner,
        run: impl Fn(&mut Session) -> Result<Outcome, Error> + Clone + Send + Sync + 'static,
    ) -> Result<Outcome, Error> {
        loop {
            let outcome = self.attempt(manner, run.clone())?;
            let awaited = self.client.lock().unwrap_or_else(PoisonError::into_inner).cursors.awaited.clone();
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let Some(subscription) = awaited.filter(|_| left.is_none_or(|left| !left.is_zero())) else {
                return Ok(outcome);
            };
            self.interrupt.check()?;
            let time = ends.map(|ends| ends.saturating_duration_since(Instant::now()));
            if time.is_some_and(|time| time.is_zero()) {
                return Err(Error::timed_out());
            }
            let left = [left, time].into_iter().flatten().min();
            self.await_alarm(&subscription, left)?;
        }
    }

    /// The outcome; a subscription in it ends with the connection.
    fn noted(&mut self, outcome: Outcome) -> Outcome {
        if let Outcome::Subscription(subscription) = &outcome {
            self.subscriptions.insert(subscription.id, subscription.clone());
        }
        outcome
    }

    fn check_may_write(&self) -> Result<(), Error> {
        match self.reads_only {
            true => Err(Error::invalid("the connection may not write").with_sqlstate("25006")),
            false => Ok(()),
        }
    }

    /// Has the engine attempt a statement until it is done; waits on this thread for what the
    /// attempts need.
    fn attempt<T: Send + 'static>(
        &self,
        manner: Manner,
        work: impl Fn(&mut Session) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<T, Error> {
        let work = Arc::new(work);
        let mut attempt = Attempt::first(self.id, manner);
        loop {
            let work = Arc::clone(&work);
            match self.call(move |session| session.attempt(attempt, |session| work(session)))? {
                Attempted::Done(result) => return result,
                Attempted::Waits(waiting) => attempt = self.wait(*waiting)?,
            }
        }
    }

    /// Waits for what an attempt needs. Returns the next one.
    fn wait(&self, mut waiting: Waiting) -> Result<Attempt, Error> {
        for turn in 1.. {
            if let Err(error) = self.interrupt.check() {
                let (connection, dataflow) = (waiting.connection(), waiting.dataflow());
                self.call(move |session| session.give_up(connection, dataflow))?;
                return Err(error);
            }
            let pace = waiting.pace();
            match waiting.wait(pace) {
                Ok(Over { attempt, dataflow: Some(dataflow), is_lost }) => {
                    let connection = self.id;
                    match is_lost {
                        true => self.call(move |session| session.let_fall(connection, dataflow))??,
                        false => self.engine.tell(move |session| session.release_dataflow(dataflow))?,
                    }
                    return Ok(attempt);
                }
                Ok(Over { attempt, dataflow: None, .. }) => return Ok(attempt),
                Err(still) => waiting = *still,
            }
            if turn % WAITS_PER_LOOK == 0 {
                self.engine.tell(Session::take_down_failed)?;
            }
        }
        unreachable!("the turns are endless")
    }

    /// Has the engine do something, under this connection's interrupt. The answer is given once all
    /// that it may show lasts; the engine serves others meanwhile.
    fn call<T: Send + 'static>(&self, work: impl FnOnce(&mut Session) -> T + Send + 'static) -> Result<T, Error> {
        let interrupt = self.interrupt.clone();
        let client = Arc::clone(&self.client);
        self.engine.call_lasting(move |session| {
            let mut client = client.lock().unwrap_or_else(PoisonError::into_inner);
            session.serve(interrupt, &mut client, work)
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        for (_, subscription) in std::mem::take(&mut self.subscriptions) {
            // (A closed engine holds nothing.)
            let _ = self.engine.tell(move |session| session.unsubscribe(subscription));
        }
        let client = Arc::clone(&self.client);
        let backends = client.lock().unwrap_or_else(PoisonError::into_inner).backends.clone();
        backends.own.iter().for_each(|own| backends.all.leave(own));
        let _ = self.engine.tell(move |session| {
            session.close_client(&mut client.lock().unwrap_or_else(PoisonError::into_inner));
        });
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("transaction", &self.transaction()).finish_non_exhaustive()
    }
}
