//! Statements: each is led to the file that it is about.

use std::sync::Arc;

use anabranch_sql::Parsed;
use anabranch_sql::statement::{ObjectKind, Statement};

use super::defined::defines;
use super::durable::{COLUMNS, columns_value};
use super::files::Wanted;
use super::latest::{CatalogFacts, EngineMoment, Latest};
use super::outcome::{Outcome, RelationInfo, Rows};
use super::sealed::{Recorder, Sealed, SealedFact};
use super::state::Session;
use super::state::client::Client;
use crate::catalog::{Created, ObjectId, begin_moves, end_moves};
use crate::cluster::spec::{ArrangementId, DataflowId};
use crate::connector::Connector;
use crate::error::Error;
use crate::interrupt::Interrupt;

impl Session {
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
        let statements = self.parsed(script)?;
        statements.iter().map(|statement| self.execute_one(script, statement)).collect()
    }

    /// The statements of a script. One that does not parse fails the open transaction, as any error
    /// does.
    fn parsed(&mut self, script: &str) -> Result<Vec<Parsed>, Error> {
        self.failing(anabranch_sql::parse(script).map_err(Error::from))
    }

    /// Runs one statement of a parsed script. `script` is the whole text that was parsed.
    ///
    /// # Errors
    /// Whatever is wrong with the statement; the session is as it was before.
    pub fn execute_one(&mut self, script: &str, statement: &Parsed) -> Result<Outcome, Error> {
        self.begin_statement()?;
        self.check_transaction(&statement.statement)?;
        let is_inner = self.interrupt.limit(self.client.variables.statement_timeout());
        begin_moves();
        let result = self.run(script, statement).map_err(|error| error.placed_in(script));
        let result = self.with_locks(result);
        end_moves(result.is_err() && self.is_handed_over());
        let result = match result {
            Ok(outcome) => self.set_wanted().map(|()| outcome),
            Err(error) => {
                self.forget_wanted();
                Err(error)
            }
        };
        let recorded = self.record_moves();
        let result = result.and_then(|outcome| recorded.map(|()| outcome));
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
        let result = result.map(|outcome| self.with_file_notices(outcome));
        if !self.is_handed_over() {
            self.drop_files();
        }
        result
    }

    pub(super) fn run_one(&mut self, statement: &Statement, text: &str) -> Result<Outcome, Error> {
        if self.client.transaction.is_some() && defines(statement) && !matches!(statement, Statement::CreateTableAs(_))
        {
            return self.define_in_transaction(statement, text);
        }
        match statement {
            Statement::CreateTable(create) => self.define(|session| session.create_table(create, text)),
            Statement::CreateTableAs(create) => self.create_table_as(create),
            Statement::CreateSource(create) => self.define(|session| session.create_source(create, text)),
            Statement::CreateView(create) => self.define_view(create, text),
            Statement::CreateIndex(create) => self.define(|session| session.add_index(create, text)),
            Statement::Insert(insert) => self.insert_rows(insert),
            Statement::Update(update) => self.update_rows(update),
            Statement::Delete(delete) => self.delete_rows(delete),
            Statement::Merge(merge) => self.merge(merge),
            Statement::ChangesInWith(with) => self.change_in_with(with),
            Statement::Truncate(truncate) => self.truncate(truncate),
            Statement::CopyFrom(copy) => self.copy_from(copy),
            Statement::CopyTo(copy) => self.copy_to(copy),
            Statement::Select { query, as_of, .. } => self.select(query, as_of.as_deref()).map(Outcome::Rows),
            Statement::Subscribe(subscribe) => self.subscribe(subscribe).map(Outcome::Subscription),
            Statement::Explain(explain) => self.explain(explain).map(Outcome::Rows),
            Statement::ExplainChange(change) => self.explain_change(change).map(Outcome::Rows),
            Statement::Show(show) => self.show(show).map(Outcome::Rows),
            Statement::Describe { name } => self.describe(name).map(Outcome::Rows),
            Statement::Drop(drop) => self.drop_objects(drop),
            Statement::Alter(alter) => self.alter(alter),
            Statement::CreateSequence(create) => self.define(|session| session.create_sequence(create)),
            Statement::AlterSequence(alter) => self.alter_sequence(alter),
            Statement::CreateType(create) => self.define(|session| session.create_type(create)),
            Statement::AlterType(alter) => self.alter_type(alter),
            Statement::DropType { names, is_domain, if_exists, cascade } => {
                self.drop_types(names, *is_domain, *if_exists, *cascade)
            }
            Statement::CreateSchema { name, if_not_exists } => {
                self.define(|session| session.create_schema(name, *if_not_exists, text))
            }
            Statement::DropSchema { names, if_exists, cascade } => self.drop_schemas(names, *if_exists, *cascade),
            Statement::Transaction(transaction) => self.transact(transaction.clone()),
            Statement::Lock { relations, mode } => self.lock_relations(relations, *mode),
            Statement::Flush => self.wait().map(|()| Outcome::done("FLUSH")),
            Statement::Set { name, value, scope } => self.set_setting(name, value.as_deref(), *scope),
            Statement::Reset { name } => self.reset(name.as_deref()),
            Statement::Needless { tag, relations, notice } => {
                relations.iter().try_for_each(|name| self.catalog.get(name).map(|_| ()))?;
                Ok(match notice {
                    Some(notice) => Outcome::done_with(*tag, notice.to_string()),
                    None => Outcome::done(*tag),
                })
            }
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
    pub(super) fn define(
        &mut self,
        make: impl FnOnce(&mut Session) -> Result<Outcome, Error>,
    ) -> Result<Outcome, Error> {
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
    pub(super) fn record_definition(
        &mut self,
        removed: Vec<ObjectId>,
        created: Vec<Created>,
        facts: Vec<SealedFact>,
    ) -> Result<(), Error> {
        let sealed = Sealed::at(self.timeline.last(), self.client.durability);
        self.record(&Sealed { removed, created, facts, ..sealed })
    }

    /// Objects with that id or a later one.
    pub(super) fn created_since(&self, first: ObjectId) -> Vec<Created> {
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
        let statements = self.parsed(sql)?;
        let [statement] = statements.as_slice() else {
            let error = Error::invalid(format!("one statement was expected, but there are {}", statements.len()));
            return self.failing(Err(error));
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

    /// From now on the session is that of a database, whose connections wait by themselves.
    pub(crate) fn serve_many(&mut self) {
        self.serves_many = true;
        self.cluster.defer();
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
        self.client.locks.end_statement();
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
    pub(super) fn note_latest(&self) {
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
