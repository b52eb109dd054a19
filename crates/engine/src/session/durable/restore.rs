//! Opening: objects are made again, rows come in as one commit, views are installed over them.
//!
//! Law: the session then holds what all recorded commits made, at the time of the last of them. Ids
//! are those that were recorded. Rows of a relation that keeps none (`retain = 'none'`) come last,
//! since views see only rows that come after they were made.
//!
//! A source goes on where its last recorded commit left it, once its connector is registered. A
//! source that cannot go on has failed and says why; its rows are there all the same.

use std::path::Path;
use std::sync::Arc;

use anabranch_batch::{Batch, Times, types};
use anabranch_sql::statement::{Alter, AlterAction, Statement};
use anabranch_store::{Contents, Created, Disk, Durability, LocalDisk, Store, StoreOptions};
use arrow::datatypes::Schema;

use super::facts::{COLUMNS, COUNTERS, DEFINITION, RETAIN_HISTORY, SOURCE, WATERMARK, read_columns};
use super::keeper::{Keeper, folder_error};
use crate::catalog::{Counter, ObjectId, Retain};
use crate::error::Error;
use crate::pump::Stand;
use crate::session::sealed::Sealed;
use crate::session::state::Session;
use crate::session::state::options::Options;

/// An object as its statement makes it.
struct Recorded {
    id: ObjectId,
    text: String,
    statement: Statement,
}

impl Session {
    /// Opens the database in a folder, a new one if the folder is empty or not there. Connectors
    /// are registered afterwards, and sources then go on where they were.
    ///
    /// ```no_run
    /// use anabranch_engine::{Options, Session};
    /// let mut session = Session::open_folder("shop".as_ref(), Options::default())?;
    /// session.execute("CREATE TABLE IF NOT EXISTS sales (item text, price int)")?;
    /// # Ok::<(), anabranch_engine::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Unavailable` when the folder is open elsewhere or cannot be read, `Data` when a file is
    /// damaged, `Invalid` when the folder holds something else or another version wrote it.
    pub fn open_folder(folder: &Path, options: Options) -> Result<Session, Error> {
        let disk = LocalDisk::create(folder).map_err(|error| folder_error(folder.to_path_buf(), &error))?;
        let keeping = StoreOptions { snapshots: options.snapshots.clone(), ..StoreOptions::default() };
        Session::open_on(Arc::new(disk), keeping, options)
    }

    /// As [`open_folder`](Self::open_folder), on any disk.
    ///
    /// # Errors
    /// As [`open_folder`](Self::open_folder).
    pub fn open_on(disk: Arc<dyn Disk>, keeping: StoreOptions, options: Options) -> Result<Session, Error> {
        let (store, contents) = Store::open(disk, keeping)?;
        let mut session = Session::new(options)?;
        let limit = session.cluster.memory_limit();
        // (What was there is there again, however much: a limit is for what comes.)
        session.cluster.set_memory_limit(None);
        session.restore(&contents)?;
        session.cluster.set_memory_limit(limit);
        session.set_recorder(Box::new(Keeper::new(store)));
        Ok(session)
    }

    fn restore(&mut self, contents: &Contents) -> Result<(), Error> {
        let time = contents.time();
        if contents.n_commits() == 0 {
            return Ok(());
        }
        let recorded = recorded(contents)?;
        let retained = self.settings.retain_history_micros;
        self.timeline.restart(time - 1);
        let (schemas, recorded): (Vec<Recorded>, Vec<Recorded>) =
            recorded.into_iter().partition(|recorded| matches!(recorded.statement, Statement::CreateSchema { .. }));
        let (sequences, recorded): (Vec<Recorded>, Vec<Recorded>) =
            recorded.into_iter().partition(|recorded| matches!(recorded.statement, Statement::CreateSequence(_)));
        let (types, recorded): (Vec<Recorded>, Vec<Recorded>) =
            recorded.into_iter().partition(|recorded| matches!(recorded.statement, Statement::CreateType(_)));
        let (inputs, others): (Vec<Recorded>, Vec<Recorded>) =
            recorded.into_iter().partition(|recorded| is_input(&recorded.statement));
        let mut id_max = contents.id_max();
        for schema in &schemas {
            self.catalog.restart_ids(schema.id);
            if let Statement::CreateSchema { name, .. } = &schema.statement {
                self.catalog.add_schema(name, &schema.text);
            }
        }
        for recorded in &types {
            self.catalog.restart_ids(recorded.id);
            if let Statement::CreateType(create) = &recorded.statement {
                self.catalog.add_type(create.as_ref().clone(), recorded.text.clone());
            }
        }
        for recorded in &sequences {
            self.catalog.restart_ids(recorded.id);
            self.restore_sequence(contents, recorded).map_err(|error| cannot_restore(&recorded.text, error))?;
        }
        for input in &inputs {
            self.catalog.restart_ids(input.id);
            self.restore_input(contents, input).map_err(|error| cannot_restore(&input.text, error))?;
            id_max = id_max.max(self.catalog.next_object().0 - 1);
        }
        self.push_rows(contents, &inputs, Keeps::Rows, time)?;
        let marks = self.seal_marks(time);
        self.publish(Sealed { marks, ..Sealed::at(time, Durability::Full) });
        for other in &others {
            self.catalog.restart_ids(other.id);
            self.restore_definition(other).map_err(|error| cannot_restore(&other.text, error))?;
            id_max = id_max.max(self.catalog.next_object().0 - 1);
        }
        self.catalog.restart_ids(ObjectId(id_max + 1));
        if self.push_rows(contents, &inputs, Keeps::Nothing, time + 1)? > 0 {
            self.publish(Sealed::at(time + 1, Durability::Full));
        }
        // What was before the last commit is on disk no more: nothing may be read as of then.
        self.settings.retain_history_micros = 0;
        self.allow_compaction();
        self.settings.retain_history_micros = retained;
        self.restore_settings(contents)
    }

    fn restore_sequence(&mut self, contents: &Contents, recorded: &Recorded) -> Result<(), Error> {
        let Statement::CreateSequence(create) = &recorded.statement else { return Ok(()) };
        let counter = Counter::new(create.options.shape()?);
        if let Some(value) = contents.fact(recorded.id.0, COUNTERS) {
            counter.restore(value).ok_or_else(|| malformed(recorded.id, COUNTERS))?;
        }
        self.catalog.add_sequence(&create.name, recorded.text.clone(), Arc::new(counter));
        Ok(())
    }

    /// A table or source, without its rows.
    fn restore_input(&mut self, contents: &Contents, recorded: &Recorded) -> Result<(), Error> {
        let fact = |name: &str| contents.fact(recorded.id.0, name);
        let name = match &recorded.statement {
            Statement::CreateTable(create) => {
                // (What its foreign keys refer to may come later.)
                self.existing("CREATE TABLE", &create.name, false)?;
                self.create_table_named(create, &recorded.text)?;
                &create.name
            }
            Statement::CreateSource(create) => {
                let columns = fact(COLUMNS).and_then(read_columns).ok_or_else(|| malformed(recorded.id, COLUMNS))?;
                let stand = fact(SOURCE).map(|value| Stand::read(value).ok_or_else(|| malformed(recorded.id, SOURCE)));
                self.restore_source(create, &recorded.text, Arc::new(columns), stand.transpose()?)?;
                &create.name
            }
            _ => return Err(Error::internal("a statement makes no table and no source")),
        };
        if let (Some(object), Some(value)) = (self.catalog.find(name), fact(COUNTERS)) {
            object.rules.restore_counters(value).ok_or_else(|| malformed(recorded.id, COUNTERS))?;
        }
        let watermark = self.catalog.find_mut(name).and_then(|object| object.watermark.as_mut());
        if let (Some(watermark), Some(value)) = (watermark, fact(WATERMARK)) {
            watermark.restore(value).ok_or_else(|| malformed(recorded.id, WATERMARK))?;
        }
        Ok(())
    }

    fn restore_definition(&mut self, recorded: &Recorded) -> Result<(), Error> {
        match &recorded.statement {
            Statement::CreateView(create) => self.define_view(create, &recorded.text),
            Statement::CreateIndex(create) => self.create_index(create, &recorded.text),
            Statement::Alter(Alter { name, actions, .. })
                if let [AlterAction::AddUnique(unique)] = actions.as_slice() =>
            {
                self.restore_unique(name, unique, &recorded.text)
            }
            _ => Err(Error::data("a recorded statement makes no object").with_sqlstate("XX001")),
        }
        .map(|_| ())
    }

    /// Pushes the rows of relations that keep them, or of those that do not, and says how many
    /// updates these are.
    fn push_rows(&mut self, contents: &Contents, inputs: &[Recorded], which: Keeps, time: i64) -> Result<usize, Error> {
        let mut n_updates = 0;
        for input in inputs {
            let Some(object) = self.catalog.objects().find(|object| object.id == input.id) else { continue };
            let keeps = if object.retain == Retain::All { Keeps::Rows } else { Keeps::Nothing };
            let Some(collection) = object.maintained.as_ref().map(|maintained| maintained.collection) else { continue };
            if keeps != which {
                continue;
            }
            let (name, schema) = (object.name.clone(), object.schema.clone());
            let before = n_updates;
            contents.rows(input.id.0, |batch| {
                check_columns(&name, &schema, &batch)?;
                n_updates += batch.len();
                self.cluster.push(collection, batch.with_times(Times::Constant(time)));
                self.cluster.step();
                Ok::<(), Error>(())
            })?;
            let object = self.catalog.find_mut(&name).filter(|_| n_updates > before);
            if let Some(Retain::Nothing { passed }) = object.map(|object| &mut object.retain) {
                *passed = true;
            }
        }
        Ok(n_updates)
    }

    fn restore_settings(&mut self, contents: &Contents) -> Result<(), Error> {
        let database = ObjectId::default();
        let Some(value) = contents.fact(database.0, RETAIN_HISTORY) else { return Ok(()) };
        let micros = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        self.settings.retain_history_micros = micros.ok_or_else(|| malformed(database, RETAIN_HISTORY))?;
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    Rows,
    Nothing,
}

/// What makes each object, in the order in which objects were made.
fn recorded(contents: &Contents) -> Result<Vec<Recorded>, Error> {
    let mut recorded = Vec::new();
    for created in contents.objects() {
        let text = definition(contents, &created)?;
        let parsed = anabranch_sql::parse(&text);
        let statements = parsed.map_err(|error| cannot_restore(&text, Error::from(error)))?;
        let Some(statement) = statements.into_iter().next() else {
            return Err(Error::data(format!("object {} of the database has no statement", created.id)));
        };
        recorded.push(Recorded { id: ObjectId(created.id), text, statement: statement.statement });
    }
    Ok(recorded)
}

/// The statement that makes an object: as it was altered last.
pub(super) fn definition(contents: &Contents, created: &Created) -> Result<String, Error> {
    match contents.fact(created.id, DEFINITION) {
        None => Ok(created.text.clone()),
        Some(altered) => {
            let text = String::from_utf8(altered.to_vec());
            text.map_err(|_| malformed(ObjectId(created.id), DEFINITION))
        }
    }
}

pub(super) fn is_input(statement: &Statement) -> bool {
    matches!(statement, Statement::CreateTable(_) | Statement::CreateSource(_))
}

/// Refuses rows that are not of a relation's types: these would be another version's.
fn check_columns(name: &str, schema: &Schema, batch: &Batch) -> Result<(), Error> {
    let fits = schema.fields().len() == batch.columns().len()
        && schema
            .fields()
            .iter()
            .zip(batch.columns().iter())
            .all(|(field, column)| types::narrowed_type(field.data_type()) == *column.data_type());
    if fits {
        return Ok(());
    }
    let types: Vec<String> = batch.columns().iter().map(|column| column.data_type().to_string()).collect();
    Err(Error::data(format!("the recorded rows of \"{name}\" do not have its columns"))
        .with_sqlstate("XX001")
        .with_detail(format!("They are of types {}.", types.join(", "))))
}

fn malformed(object: ObjectId, fact: &str) -> Error {
    Error::data(format!("fact \"{fact}\" of object {} of the database cannot be read", object.0))
        .with_sqlstate("XX001")
        .with_hint("Put a copy of the whole folder in its place; see docs/durability.md.")
}

/// The error of a statement that was fine when it was recorded.
fn cannot_restore(text: &str, error: Error) -> Error {
    let detail = error.detail.as_ref().map(|detail| format!(" {detail}")).unwrap_or_default();
    Error::new(error.kind, format!("an object of the database cannot be made again: {}", error.message))
        .with_sqlstate(error.sqlstate())
        .with_detail(format!("Its statement is: {text}{detail}"))
        .with_hint("anabranch dump writes the database as a script, in which the statement can be changed.")
}
