//! What the session knows by name: relations and indexes, and who reads whom.
//!
//! Law: names are unique over relations and indexes together; the graph of who reads whom has no
//! cycle, because an object reads only what was there before it. The catalog is plain data: it
//! installs nothing.
//!
//! Reading order: [`object`] (what is kept about each), [`planning`] (the catalog as the planner
//! sees it), [`watermark`] (the time of tables and sources), [`system`] (what PostgreSQL's clients
//! ask of it).

mod created;
mod object;
mod planning;
mod rules;
mod schemas;
mod sequence;
mod sequence_functions;
pub(crate) mod system;
mod watermark;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_batch::Batch;
use anabranch_sql::statement::{CreateType, ObjectKind};

use crate::cluster::CollectionId;
use crate::error::Error;
use crate::functions::Function;
use crate::nearest::nearest;

pub use created::{Created, ObjectId};
pub(crate) use object::{Arranged, CONSTRAINT, Index, IndexForm, Maintained, Object, Retain, SourceOptions, kind_name};
pub(crate) use planning::Planning;
pub(crate) use rules::{Counted, TableRules, number_max};
pub(crate) use schemas::{Schema, UserType, is_temporary, schema_of};
pub(crate) use sequence::{
    Counter, CounterPlace, Given, Sequence, begin_moves, end_moves, name_in, sequence_of_column, undoing_moves,
};
pub(crate) use watermark::{Arrival, CLOCK, FOLLOWED, Watermark, clock_schema};

/// Users that are listed, at most: where all are let in, a client may call itself as it likes.
const USERS_MAX: usize = 1_000;

/// All objects of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    /// How often it has changed: plans of another version may be wrong.
    version: u64,
    /// How often objects have gone, or were made anew.
    n_replaced: u64,
    last_id: u64,
    objects: BTreeMap<String, Object>,
    /// Those that have watermarks.
    watermarked: BTreeSet<String>,
    indexes: BTreeMap<String, Index>,
    /// Functions of the embedding program.
    functions: BTreeMap<String, Function>,
    schemas: BTreeMap<String, Schema>,
    sequences: BTreeMap<String, Sequence>,
    types: BTreeMap<String, UserType>,
    /// Users that have logged in, in the order in which they first did.
    users: Vec<String>,
    /// Whether a call has moved a counter since it was last asked; shared by all copies.
    moved: Arc<AtomicBool>,
}

impl Catalog {
    /// The function of that name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.get(name)
    }

    /// Makes a function known.
    pub fn add_function(&mut self, name: &str, function: Function) {
        self.version += 1;
        self.functions.insert(name.to_owned(), function);
    }

    /// Forgets a function; whether there was one.
    pub fn remove_function(&mut self, name: &str) -> bool {
        self.version += 1;
        self.functions.remove(name).is_some()
    }

    /// How often objects have come and gone: plans of another version may be wrong.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How often objects that others may have read have gone, or were made anew: what has only come
    /// changes no meaning.
    pub fn n_replaced(&self) -> u64 {
        self.n_replaced
    }

    fn next_id(&mut self) -> ObjectId {
        self.version += 1;
        self.last_id += 1;
        ObjectId(self.last_id)
    }

    /// Objects that have a statement of their own, in the order in which they were made.
    pub fn created(&self) -> Vec<Created> {
        let relations = self.objects().map(|object| (object.id, &object.name, &object.definition));
        let indexes = self.indexes.values().map(|index| (index.id, &index.name, &index.definition));
        let schemas = self.schemas.iter().map(|(name, schema)| (schema.id, name, &schema.definition));
        let sequences = self.sequences.iter().map(|(name, sequence)| (sequence.id, name, &sequence.definition));
        let types = self.types.iter().map(|(name, known)| (known.id, name, &known.definition));
        let made = relations.chain(indexes).chain(schemas).chain(sequences).chain(types);
        let mut made: Vec<Created> =
            made.map(|(id, name, text)| Created { id, name: name.clone(), text: text.clone() }).collect();
        made.sort_by_key(|created| created.id);
        made
    }

    /// The relation of that name.
    pub fn find(&self, name: &str) -> Option<&Object> {
        self.objects.get(name)
    }

    /// The relation of that name, to be changed.
    pub fn find_mut(&mut self, name: &str) -> Option<&mut Object> {
        self.objects.get_mut(name)
    }

    /// The relation of that name, or an error with the nearest name.
    pub fn get(&self, name: &str) -> Result<&Object, Error> {
        self.objects.get(name).ok_or_else(|| self.unknown("relation", name, self.objects.keys()))
    }

    /// The table of that name, or an error that says what else it is.
    pub fn table(&self, name: &str) -> Result<&Object, Error> {
        let object = match self.objects.get(name).filter(|object| !object.is_hidden) {
            Some(object) => object,
            None => {
                let tables = self.objects().filter(|o| o.kind == ObjectKind::Table).map(|o| &o.name);
                return Err(self.unknown("table", name, tables));
            }
        };
        if object.kind != ObjectKind::Table {
            return Err(Error::invalid(format!("\"{name}\" is a {}, not a table", kind_name(object.kind)))
                .with_hint("Rows can be written to tables only."));
        }
        Ok(object)
    }

    /// Whether a relation, an index or a sequence has that name.
    pub fn contains(&self, name: &str) -> bool {
        self.objects.contains_key(name) || self.indexes.contains_key(name) || self.sequences.contains_key(name)
    }

    /// What has that name, for messages.
    pub fn kind_of(&self, name: &str) -> Option<ObjectKind> {
        let object = self.objects.get(name).map(|object| object.kind);
        let index = || self.indexes.contains_key(name).then_some(ObjectKind::Index);
        object.or_else(index).or_else(|| self.sequences.contains_key(name).then_some(ObjectKind::Sequence))
    }

    /// Relations in the order of their names, without hidden ones.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.values().filter(|object| !object.is_hidden)
    }

    /// What the relations that hold watermarks become, each with the input whose rows the watermark
    /// bounds, and that of the relation.
    pub fn watermark_changes(&mut self) -> Vec<(ObjectId, [CollectionId; 2], Batch)> {
        let mut marks = Vec::new();
        for name in &self.watermarked {
            let input_of = |name: &str| Some(self.objects.get(name)?.maintained.as_ref()?.collection);
            let inputs = (input_of(name), input_of(&Watermark::relation_of(name)));
            let (Some(input), Some(collection)) = inputs else { continue };
            let Some(object) = self.objects.get_mut(name) else { continue };
            let changes = object.watermark.as_mut().and_then(|watermark| watermark.changes(&object.schema));
            marks.extend(changes.map(|changes| (object.id, [input, collection], changes)));
        }
        marks
    }

    /// Takes back moves of watermarks that were told by
    /// [`watermark_changes`](Self::watermark_changes) and did not happen.
    pub fn unmark<'a>(&mut self, moves: impl Iterator<Item = (ObjectId, &'a Batch)>) {
        for (id, changes) in moves {
            let watermark = self.objects.values_mut().find(|object| object.id == id);
            if let Some(watermark) = watermark.and_then(|object| object.watermark.as_mut()) {
                watermark.unmark(changes);
            }
        }
    }

    /// How far watermarks are that have moved, or have left rows out, since that was recorded.
    pub fn watermarks_unrecorded(&self) -> Vec<(ObjectId, Vec<u8>)> {
        let moved = |name: &String| {
            let object = self.objects.get(name)?;
            Some((object.id, object.watermark.as_ref()?.unrecorded()?))
        };
        self.watermarked.iter().filter_map(moved).collect()
    }

    /// Takes note that what [`watermarks_unrecorded`](Self::watermarks_unrecorded) told was
    /// recorded.
    pub fn note_recorded(&mut self) {
        for name in &self.watermarked {
            let watermark = self.objects.get_mut(name).and_then(|object| object.watermark.as_mut());
            watermark.into_iter().for_each(Watermark::note_recorded);
        }
    }

    /// The watermark of a relation: no row before it comes.
    pub fn watermark_of(&self, id: ObjectId) -> Option<i64> {
        let object = self.objects.values().find(|object| object.id == id)?;
        object.watermark.as_ref()?.current()
    }

    /// The id that the next object gets.
    pub fn next_object(&self) -> ObjectId {
        ObjectId(self.last_id + 1)
    }

    /// Lets the next object have that id, or one behind it: ids up to it are taken.
    pub fn restart_ids(&mut self, next: ObjectId) {
        self.last_id = next.0.saturating_sub(1);
    }

    /// Indexes in the order of their names.
    pub fn indexes(&self) -> impl Iterator<Item = &Index> {
        self.indexes.values()
    }

    /// Indexes on a relation.
    pub fn indexes_on<'a>(&'a self, relation: &'a str) -> impl Iterator<Item = &'a Index> {
        self.indexes.values().filter(move |index| index.relation == relation)
    }

    /// Adds a relation.
    ///
    /// # Panics
    /// When the name is taken: callers check first.
    pub fn add(&mut self, mut object: Object) {
        // (No log has a number for what comes and goes with readers.)
        object.id = if object.comes_with_readers() { ObjectId::default() } else { self.next_id() };
        assert!(!self.contains(&object.name), "name \"{}\" is free", object.name);
        self.note_referred(&object);
        if object.watermark.is_some() {
            self.watermarked.insert(object.name.clone());
        }
        self.objects.insert(object.name.clone(), object);
    }

    /// Takes note of the tables to which an object refers: their rows may have to stay.
    pub fn note_referred(&mut self, object: &Object) {
        for reference in &object.rules.declared.references {
            if let Some(parent) = self.objects.get_mut(&reference.table) {
                parent.n_altered += 1;
            }
        }
    }

    /// Adds an index.
    ///
    /// # Panics
    /// When the name is taken: callers check first.
    pub fn add_index(&mut self, mut index: Index) {
        index.id = self.next_id();
        assert!(!self.contains(&index.name), "name \"{}\" is free", index.name);
        self.indexes.insert(index.name.clone(), index);
    }

    /// Adds a schema.
    pub fn add_schema(&mut self, name: &str, definition: &str) {
        let schema = Schema { id: self.next_id(), definition: definition.to_owned() };
        self.schemas.insert(name.to_owned(), schema);
    }

    /// Takes a schema out.
    pub fn remove_schema(&mut self, name: &str) {
        self.version += 1;
        self.schemas.remove(name);
    }

    /// Adds a sequence, or puts another definition in its place.
    pub fn add_sequence(&mut self, name: &str, definition: String, counter: Arc<Counter>) {
        let before = self.sequences.get(name).map(|sequence| sequence.id);
        self.version += 1;
        let id = before.unwrap_or_else(|| self.next_id());
        self.sequences.insert(name.to_owned(), Sequence { id, definition, counter });
    }

    /// Gives a sequence another name.
    pub fn rename_sequence(&mut self, name: &str, to: &str, definition: String) {
        self.version += 1;
        if let Some(sequence) = self.sequences.remove(name) {
            self.sequences.insert(to.to_owned(), Sequence { definition, ..sequence });
        }
    }

    /// Takes a sequence out.
    pub fn remove_sequence(&mut self, name: &str) {
        self.version += 1;
        self.sequences.remove(name);
    }

    /// Types that users have made.
    pub fn types(&self) -> &BTreeMap<String, UserType> {
        &self.types
    }

    /// Adds a type, or puts another definition in its place.
    pub fn add_type(&mut self, made: CreateType, definition: String) {
        let before = self.types.get(&made.name).map(|known| known.id);
        self.version += 1;
        let id = before.unwrap_or_else(|| self.next_id());
        self.types.insert(made.name.clone(), UserType { id, made, definition });
    }

    /// Takes a type out.
    pub fn remove_type(&mut self, name: &str) {
        self.version += 1;
        self.types.remove(name);
    }

    /// Sequences that users have made.
    pub fn sequences(&self) -> &BTreeMap<String, Sequence> {
        &self.sequences
    }

    /// The counter of that name: of a sequence, or of a column that numbers rows.
    pub fn counters(&self) -> impl Iterator<Item = (String, &Arc<Counter>)> {
        let of_columns = self.objects().flat_map(|object| {
            object.rules.counters.iter().map(|counted| {
                let column = object.schema.field(counted.column).name();
                (sequence_of_column(&object.name, column), &counted.counter)
            })
        });
        of_columns.chain(self.sequences.iter().map(|(name, sequence)| (name.clone(), &sequence.counter)))
    }

    /// What system relations and functions tell of.
    pub fn snapshot(&self) -> system::Snapshot {
        let described = system::Snapshot::of(self.objects(), self.indexes(), &self.schemas, &self.sequences);
        described.with_types(&self.types).with_users(&self.users)
    }

    /// Takes note of a user.
    pub fn note_user(&mut self, name: &str) {
        let is_full = self.users.len() >= USERS_MAX;
        if name != system::DATABASE && !is_full && !self.users.iter().any(|known| known == name) {
            self.users.push(name.to_owned());
        }
    }

    /// Whether calls have moved counters since this was last asked.
    pub fn has_moved_counters(&self) -> bool {
        self.moved.swap(false, Ordering::AcqRel)
    }

    /// Schemas that users have made.
    pub fn schemas(&self) -> &BTreeMap<String, Schema> {
        &self.schemas
    }

    /// Whether a name is that of an object in a schema of users.
    pub fn is_in_schema(&self, name: &str) -> bool {
        schema_of(name).is_some_and(|schema| self.schemas.contains_key(schema) || is_temporary(name))
    }

    /// The catalog name of an object that a schema has under a plain name.
    pub fn own_name_in(&self, schema: &str, name: &str) -> Option<String> {
        let own = format!("{schema}.{name}");
        self.contains(&own).then_some(own)
    }

    /// Whether a schema has an object.
    pub fn is_schema_in_use(&self, schema: &str) -> bool {
        let prefix = format!("{schema}.");
        self.objects.range(prefix.clone()..).next().is_some_and(|(name, _)| name.starts_with(&prefix))
    }

    /// All relations, hidden ones too.
    pub fn all_objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }

    /// Plans of before may be wrong.
    pub fn touch(&mut self) {
        self.version += 1;
        self.n_replaced += 1;
    }

    /// Gives a relation another name, which must be free.
    pub fn rename(&mut self, from: &str, to: &str) {
        self.version += 1;
        self.n_replaced += 1;
        let Some(mut object) = self.objects.remove(from) else { return };
        object.name = to.to_owned();
        for arranged in object.maintained.iter_mut().flat_map(|maintained| &mut maintained.arrangements) {
            if arranged.owners.remove(from) {
                arranged.owners.insert(to.to_owned());
            }
        }
        self.objects.insert(to.to_owned(), object);
        for index in self.indexes.values_mut().filter(|index| index.relation == from) {
            index.relation = to.to_owned();
        }
    }

    /// Gives an index another name, which must be free.
    pub fn rename_index(&mut self, from: &str, to: &str, definition: String) {
        self.version += 1;
        let Some(index) = self.indexes.remove(from) else { return };
        let relation = self.objects.get_mut(&index.relation).and_then(|object| object.maintained.as_mut());
        for arranged in relation.into_iter().flat_map(|maintained| &mut maintained.arrangements) {
            if arranged.owners.remove(from) {
                arranged.owners.insert(to.to_owned());
            }
        }
        self.indexes.insert(to.to_owned(), Index { name: to.to_owned(), definition, ..index });
    }

    /// Notes the statement that makes an index.
    pub fn define_index(&mut self, name: &str, definition: String) {
        if let Some(index) = self.indexes.get_mut(name) {
            index.definition = definition;
        }
    }

    /// Puts a relation back that was taken out, under its id.
    pub fn put_back(&mut self, object: Object) {
        self.version += 1;
        self.objects.insert(object.name.clone(), object);
    }

    /// Puts an index back that was taken out, under its id.
    pub fn put_back_index(&mut self, index: Index) {
        self.version += 1;
        self.indexes.insert(index.name.clone(), index);
    }

    /// Takes a relation out.
    pub fn remove(&mut self, name: &str) -> Option<Object> {
        self.watermarked.remove(name);
        let object = self.objects.remove(name);
        // (No plan names what comes and goes with readers, but those of the readers.)
        let is_seen = !object.as_ref().is_some_and(Object::comes_with_readers);
        self.version += u64::from(is_seen);
        self.n_replaced += u64::from(is_seen && !is_temporary(name));
        object
    }

    /// Takes an index out.
    pub fn remove_index(&mut self, name: &str) -> Option<Index> {
        self.version += 1;
        self.indexes.remove(name)
    }

    /// Relations whose query names `name`, and theirs, and so on; those that are read by others
    /// come after their readers, so dropping in this order never drops what is read.
    pub fn dependents(&self, name: &str) -> Vec<String> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        self.collect_dependents(name, &mut seen, &mut order);
        order
    }

    fn collect_dependents(&self, name: &str, seen: &mut BTreeSet<String>, order: &mut Vec<String>) {
        for object in self.objects.values().filter(|object| object.reads.contains(name)) {
            if seen.insert(object.name.clone()) {
                self.collect_dependents(&object.name, seen, order);
                order.push(object.name.clone());
            }
        }
    }

    /// Whether a view reads a relation directly.
    pub fn is_read(&self, name: &str) -> bool {
        self.objects.values().any(|object| object.reads.contains(name))
    }

    /// Sources that `names` read, directly or through views.
    pub fn sources_behind<'a>(&self, names: impl IntoIterator<Item = &'a String>) -> BTreeSet<String> {
        self.inputs_behind(names).into_iter().filter(|n| self.is(n, ObjectKind::Source)).collect()
    }

    /// Tables and sources that `names` read, directly or through views.
    pub fn inputs_behind<'a>(&self, names: impl IntoIterator<Item = &'a String>) -> BTreeSet<String> {
        let mut inputs = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut open: Vec<String> = names.into_iter().cloned().collect();
        while let Some(name) = open.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            let Some(object) = self.objects.get(&name) else { continue };
            match object.kind {
                ObjectKind::Table | ObjectKind::Source => {
                    inputs.insert(name);
                }
                _ => open.extend(object.reads.iter().cloned()),
            }
        }
        inputs
    }

    fn is(&self, name: &str, kind: ObjectKind) -> bool {
        self.objects.get(name).is_some_and(|object| object.kind == kind)
    }

    /// The error for a name that nothing of that kind has.
    pub fn unknown_kind(&self, kind: ObjectKind, name: &str) -> Error {
        match kind {
            ObjectKind::Index => self.unknown("index", name, self.indexes.keys()),
            ObjectKind::Sequence => self.unknown("sequence", name, self.sequences.keys()),
            _ => {
                let names = self.objects.values().filter(|object| object.kind == kind).map(|object| &object.name);
                self.unknown(kind_name(kind), name, names)
            }
        }
    }

    fn unknown<'a>(&self, kind: &str, name: &str, names: impl Iterator<Item = &'a String>) -> Error {
        let error = Error::invalid(format!("{kind} \"{name}\" does not exist"));
        match nearest(name, names.map(String::as_str)) {
            Some(near) => error.with_hint(format!("Did you mean \"{near}\"?")),
            None => error,
        }
    }
}
