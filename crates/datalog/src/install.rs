//! A program in a database: tables of facts, views of answers, queries.
//!
//! Law: at every commit a relation's view holds the least fixed point of the rules over the facts as
//! of that commit. What was made before a failure is taken down again.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_engine::{Connection, Error, RelationInfo, Rows, Session};
use anabranch_plan::Plan;
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};

use crate::ast::{Argument, ArgumentKind, Atom, Attribute, Clause, Formula, Name, Program, RelationDeclaration};
use crate::check::check;
use crate::core::{Core, Relation, RelationId};
use crate::magic;
use crate::near::unknown;
use crate::plan::{Planner, Stored};
use crate::value::{Base, Value};

/// Name of the relation that a query asks for; no program can declare it.
const ANSWER: &str = "?";
/// Relations that are planned within each other, at most, before one gets a view of its own.
const INLINE_MAX: usize = 8;

/// Where programs are installed: a [`Session`] or a [`Connection`].
pub trait Host {
    /// Relations of the catalog.
    ///
    /// # Errors
    /// When the database is closed.
    fn list_relations(&mut self) -> Result<Vec<RelationInfo>, Error>;
    /// Runs SQL statements.
    ///
    /// # Errors
    /// Those of the statements.
    fn run_sql(&mut self, sql: &str) -> Result<(), Error>;
    /// Adds rows to a table.
    ///
    /// # Errors
    /// Those of INSERT.
    fn add_rows(&mut self, table: &str, rows: &RecordBatch) -> Result<(), Error>;
    /// Creates a materialized view of a plan.
    ///
    /// # Errors
    /// As [`Session::create_plan_view`].
    fn create_view(&mut self, name: &str, plan: &Arc<Plan>, definition: &str) -> Result<(), Error>;
    /// The rows of a plan.
    ///
    /// # Errors
    /// As [`Session::query_plan`].
    fn read_plan(&mut self, plan: &Arc<Plan>) -> Result<Rows, Error>;
}

impl Host for Session {
    fn list_relations(&mut self) -> Result<Vec<RelationInfo>, Error> {
        Ok(self.relations())
    }

    fn run_sql(&mut self, sql: &str) -> Result<(), Error> {
        self.execute(sql).map(drop)
    }

    fn add_rows(&mut self, table: &str, rows: &RecordBatch) -> Result<(), Error> {
        self.insert(table, rows).map(drop)
    }

    fn create_view(&mut self, name: &str, plan: &Arc<Plan>, definition: &str) -> Result<(), Error> {
        self.create_plan_view(name, plan, definition)
    }

    fn read_plan(&mut self, plan: &Arc<Plan>) -> Result<Rows, Error> {
        self.query_plan(plan)
    }
}

impl Host for Connection {
    fn list_relations(&mut self) -> Result<Vec<RelationInfo>, Error> {
        self.relations()
    }

    fn run_sql(&mut self, sql: &str) -> Result<(), Error> {
        self.execute(sql).map(drop)
    }

    fn add_rows(&mut self, table: &str, rows: &RecordBatch) -> Result<(), Error> {
        self.insert(table, rows).map(drop)
    }

    fn create_view(&mut self, name: &str, plan: &Arc<Plan>, definition: &str) -> Result<(), Error> {
        self.create_plan_view(name, plan, definition)
    }

    fn read_plan(&mut self, plan: &Arc<Plan>) -> Result<Rows, Error> {
        self.query_plan(plan)
    }
}

/// A program that is kept current in a database.
///
/// ```
/// use anabranch_datalog::{Program, Value};
/// use anabranch_engine::{Options, Session};
///
/// let program = Program::parse(
///     ".decl parent(child: symbol, of: symbol)
///      .input parent
///      .decl sibling(a: symbol, b: symbol)
///      .output sibling
///      sibling(a, b) :- parent(a, p), parent(b, p), a != b.",
/// )?;
/// let mut session = Session::new(Options::default())?;
/// let installed = program.install(&mut session)?;
/// session.execute("INSERT INTO parent VALUES ('ann', 'eve'), ('bob', 'eve')")?;
/// assert_eq!(session.query("SELECT * FROM sibling")?.num_rows(), 2);
///
/// let siblings = installed.query(&mut session, "sibling(\"ann\", who)")?;
/// assert_eq!(siblings, [[Value::from("bob")]]);
/// # Ok::<(), anabranch_engine::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Installed {
    program: Program,
    core: Core,
    /// Tables and views of relations.
    stored: HashMap<RelationId, Stored>,
    /// Tables of facts from outside for relations with rules.
    inputs: HashMap<RelationId, Stored>,
    /// What the program has made, in order: whether a view, and its name.
    made: Vec<(bool, String)>,
}

impl Program {
    /// Checks the program: names, types, what is bound, strata.
    ///
    /// # Errors
    /// `Invalid`, with the place in the text.
    pub fn check(&self) -> Result<(), Error> {
        check(self).map(drop)
    }

    /// Installs the program. Relations without rules become tables, which hold their facts, unless
    /// the database has a table, source or materialized view of that name and fitting columns,
    /// which is read then. Relations of `.output` and `.printsize` become materialized views, and so
    /// does a recursive relation that others read; without any output all relations with rules do. A
    /// relation with rules and `.input` has a table `<name>_input` beside. Names are as in the
    /// program, so SQL has to quote those with capital letters.
    ///
    /// # Errors
    /// As [`check`](Program::check); `Invalid` for names that are taken, and in a database with a
    /// data directory.
    pub fn install(&self, host: &mut impl Host) -> Result<Installed, Error> {
        let core = check(self)?;
        let mut installed =
            Installed { program: self.clone(), core, stored: HashMap::new(), inputs: HashMap::new(), made: vec![] };
        match installed.make(host) {
            Ok(()) => Ok(installed),
            Err(error) => {
                // (The first failure is the one to tell.)
                let _ = installed.take_down(host);
                Err(error)
            }
        }
    }
}

impl Installed {
    /// Adds facts to a relation that has a table.
    ///
    /// # Errors
    /// `Invalid` for a relation without a table, or values of other types.
    pub fn insert(&self, host: &mut impl Host, relation: &str, facts: &[Vec<Value>]) -> Result<(), Error> {
        let (id, table) = self.table(relation)?;
        let batch = batch(&self.core.relations[id], facts)?;
        host.add_rows(&table.name, &batch)
    }

    /// Takes facts away from a relation that has a table, however often they are there.
    ///
    /// # Errors
    /// As [`insert`](Installed::insert).
    pub fn delete(&self, host: &mut impl Host, relation: &str, facts: &[Vec<Value>]) -> Result<(), Error> {
        let (id, table) = self.table(relation)?;
        batch(&self.core.relations[id], facts)?;
        for fact in facts {
            let equals =
                table.columns.iter().zip(fact).map(|(name, value)| format!("{} = {}", quoted(name), sql(value)));
            let condition = equals.collect::<Vec<_>>().join(" AND ");
            host.run_sql(&format!("DELETE FROM {} WHERE {condition}", quoted(&table.name)))?;
        }
        Ok(())
    }

    /// The rows of a relation, each once, in order.
    ///
    /// # Errors
    /// `Invalid` for an unknown relation; `Data` for a row that cannot be computed.
    pub fn rows(&self, host: &mut impl Host, relation: &str) -> Result<Vec<Vec<Value>>, Error> {
        let id = self.relation(relation)?;
        let mut planner = self.planner(&self.core, &HashMap::new());
        let plan = planner.named(id);
        sorted(host.read_plan(&plan)?)
    }

    /// The answers of a query: an atom with constants and variables, `path("a", x)`. Each answer has
    /// a value for each variable, in the order in which they first stand; a query without variables
    /// has one answer, the number 1, or none. A relation that is kept is looked up; of another one
    /// only what the constants ask for is computed (magic sets).
    ///
    /// # Errors
    /// As [`rows`](Installed::rows); `Invalid` for what is no atom.
    pub fn query(&self, host: &mut impl Host, atom: &str) -> Result<Vec<Vec<Value>>, Error> {
        let (core, answer) = self.asked(atom)?;
        let is_stored = |relation: RelationId| self.stored.contains_key(&relation);
        let asked = magic::asked(&core, answer, &is_stored);
        let mut planner = self.planner(&asked.core, &asked.origins);
        sorted(host.read_plan(&planner.named(answer))?)
    }

    /// Takes down what the program has made.
    ///
    /// # Errors
    /// `Invalid` when other views depend on it.
    pub fn drop(mut self, host: &mut impl Host) -> Result<(), Error> {
        self.take_down(host)
    }

    /// The plan of a relation, over the tables and views of the program.
    ///
    /// # Errors
    /// `Invalid` for an unknown relation.
    pub fn plan(&self, relation: &str) -> Result<Arc<Plan>, Error> {
        let id = self.relation(relation)?;
        let mut planner = self.planner(&self.core, &HashMap::new());
        Ok(planner.named(id))
    }

    /// The plan of a query; see [`query`](Installed::query).
    ///
    /// # Errors
    /// As there.
    pub fn query_plan(&self, atom: &str) -> Result<Arc<Plan>, Error> {
        let (core, answer) = self.asked(atom)?;
        let is_stored = |relation: RelationId| self.stored.contains_key(&relation);
        let asked = magic::asked(&core, answer, &is_stored);
        Ok(self.planner(&asked.core, &asked.origins).named(answer))
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// The table that facts of a relation come to.
    pub(crate) fn table(&self, relation: &str) -> Result<(RelationId, &Stored), Error> {
        let id = self.relation(relation)?;
        let table = match self.core.is_derived(id) {
            true => self.inputs.get(&id),
            false => self.stored.get(&id),
        };
        let table = table.ok_or_else(|| {
            Error::invalid(format!("relation {relation} has rules, and no facts from outside"))
                .with_hint(format!("Declare them: .input {relation}"))
        })?;
        Ok((id, table))
    }

    fn relation(&self, name: &str) -> Result<RelationId, Error> {
        let known = || self.core.relations.iter().map(|relation| relation.name.as_str());
        self.core.relation_named(name).ok_or_else(|| unknown("relation", name, known()))
    }

    /// The program with a relation for the query's answers.
    fn asked(&self, atom: &str) -> Result<(Core, RelationId), Error> {
        let atom = parse_atom(atom)?;
        let mut program = Program { text: String::new(), ..self.program.clone() };
        let declared = program.relations.iter().find(|relation| relation.name.text == atom.relation.text);
        let declared = declared.ok_or_else(|| {
            unknown("relation", &atom.relation.text, self.core.relations.iter().map(|relation| relation.name.as_str()))
        })?;
        let mut attributes: Vec<Attribute> = vec![];
        for (argument, attribute) in atom.arguments.iter().zip(&declared.attributes) {
            if let ArgumentKind::Variable(name) = &argument.kind
                && !attributes.iter().any(|known| known.name.text == *name)
            {
                let name = Name { text: name.clone(), at: argument.at };
                attributes.push(Attribute { name, type_name: attribute.type_name.clone() });
            }
        }
        let arguments = attributes
            .iter()
            .map(|attribute| Argument {
                kind: ArgumentKind::Variable(attribute.name.text.clone()),
                at: attribute.name.at,
            })
            .collect();
        let name = Name { text: ANSWER.to_owned(), at: atom.at };
        program.relations.push(RelationDeclaration { name: name.clone(), attributes, is_equivalence: false });
        let head = Atom { relation: name, arguments, at: atom.at };
        program.clauses.push(Clause { at: atom.at, heads: vec![head], body: Formula::Atom(atom) });
        let core = check(&program)?;
        let answer = core.relations.len() - 1;
        Ok((core, answer))
    }

    fn planner<'a>(&self, core: &'a Core, origins: &HashMap<RelationId, RelationId>) -> Planner<'a> {
        let mut planner = Planner::new(core);
        let mut stored: Vec<(&RelationId, &Stored)> = self.stored.iter().collect();
        stored.sort_unstable_by_key(|(id, _)| **id);
        stored.into_iter().for_each(|(id, stored)| planner.store(*id, stored.clone()));
        for (id, table) in &self.inputs {
            planner.add_input(*id, table.clone());
        }
        for (id, origin) in origins {
            if let Some(table) = self.inputs.get(origin) {
                planner.add_input(*id, table.clone());
            }
        }
        planner
    }

    fn make(&mut self, host: &mut impl Host) -> Result<(), Error> {
        let existing: HashMap<String, RelationInfo> =
            host.list_relations()?.into_iter().map(|info| (info.name.clone(), info)).collect();
        for id in 0..self.core.relations.len() {
            let relation = &self.core.relations[id];
            let derived = self.core.is_derived(id);
            match existing.get(&relation.name).filter(|_| !derived && relation.facts.is_empty()) {
                Some(info) => {
                    let stored = existing_relation(relation, info)?;
                    self.stored.insert(id, stored);
                }
                None if !derived => {
                    let stored = self.make_table(host, id, self.core.relations[id].name.clone())?;
                    self.stored.insert(id, stored);
                }
                None if relation.is_input => {
                    let stored = self.make_table(host, id, format!("{}_input", relation.name))?;
                    self.inputs.insert(id, stored);
                }
                None => {}
            }
        }
        self.make_views(host)
    }

    fn make_table(&mut self, host: &mut impl Host, id: RelationId, name: String) -> Result<Stored, Error> {
        let relation = &self.core.relations[id];
        let column =
            |column: &crate::core::Column| format!("{} {} NOT NULL", quoted(&column.name), column.base.sql_name());
        let columns: Vec<String> = relation.columns.iter().map(column).collect();
        host.run_sql(&format!("CREATE TABLE {} ({})", quoted(&name), columns.join(", ")))?;
        self.made.push((false, name.clone()));
        if !relation.facts.is_empty() && !self.core.is_derived(id) {
            host.add_rows(&name, &batch(relation, &relation.facts)?)?;
        }
        Ok(stored(relation, name, true))
    }

    fn make_views(&mut self, host: &mut impl Host) -> Result<(), Error> {
        let core = self.core.clone();
        let mut planner = self.planner(&core, &HashMap::new());
        let wanted = wanted_views(&core, &planner);
        for component in planner.components().to_vec() {
            for id in component.into_iter().filter(|id| wanted[*id]) {
                let relation = &core.relations[id];
                let plan = planner.named(id);
                host.create_view(&relation.name, &plan, &self.definition(relation))?;
                self.made.push((true, relation.name.clone()));
                let view = stored(relation, relation.name.clone(), false);
                planner.store(id, view.clone());
                self.stored.insert(id, view);
            }
        }
        Ok(())
    }

    /// The rules of a relation, as SHOW CREATE shows them.
    fn definition(&self, relation: &Relation) -> String {
        let mut out = format!("-- The Datalog relation {}:", relation.name);
        for clause in &self.program.clauses {
            if clause.heads.iter().any(|head| head.relation.text == relation.name) {
                let text = self.program.text.get(clause.at.start..clause.at.end).unwrap_or_default();
                text.lines().for_each(|line| out.push_str(&format!("\n-- {line}")));
            }
        }
        out
    }

    fn take_down(&mut self, host: &mut impl Host) -> Result<(), Error> {
        while let Some((is_view, name)) = self.made.pop() {
            let kind = if is_view { "MATERIALIZED VIEW" } else { "TABLE" };
            host.run_sql(&format!("DROP {kind} {}", quoted(&name)))?;
        }
        Ok(())
    }
}

/// Which relations get views.
fn wanted_views(core: &Core, planner: &Planner<'_>) -> Vec<bool> {
    let all = !core.relations.iter().any(|relation| relation.is_output);
    let derived = |id: RelationId| core.is_derived(id);
    let mut wanted: Vec<bool> =
        (0..core.relations.len()).map(|id| derived(id) && (all || core.relations[id].is_output)).collect();
    for id in 0..core.relations.len() {
        for read in planner.reads(id) {
            if derived(*read) && planner.is_recursive(*read) && !planner.component(*read).contains(&id) {
                wanted[*read] = true;
            }
        }
    }
    // Plans within plans get no deeper than a few levels.
    let mut depth = vec![0; core.relations.len()];
    for component in planner.components() {
        let below = component.iter().flat_map(|id| planner.reads(*id)).filter(|read| !component.contains(read));
        let level = 1 + below.map(|read| depth[*read]).max().unwrap_or(0);
        for id in component.iter().filter(|id| derived(**id)) {
            wanted[*id] |= level > INLINE_MAX;
            depth[*id] = if wanted[*id] { 0 } else { level };
        }
    }
    wanted
}

fn stored(relation: &Relation, name: String, is_bag: bool) -> Stored {
    let columns = relation.columns.iter().map(|column| column.name.clone()).collect();
    let types = relation.columns.iter().map(|column| column.base.data_type()).collect();
    Stored { name, columns, types, is_bag, has_nulls: false }
}

/// A relation of the database that a program reads as its own.
fn existing_relation(relation: &Relation, info: &RelationInfo) -> Result<Stored, Error> {
    let fields = info.schema.fields();
    let name = &info.name;
    if fields.len() != relation.columns.len() {
        let (has, wants) = (fields.len(), relation.columns.len());
        return Err(Error::invalid(format!("\"{name}\" exists with {has} columns, but the program's has {wants}"))
            .at(relation.at.start)
            .with_hint("Give the program's relation another name, or as many attributes."));
    }
    for (field, column) in fields.iter().zip(&relation.columns) {
        if !fits(field.data_type(), column.base) {
            return Err(Error::invalid(format!(
                "column \"{}\" of \"{name}\" has not the type of attribute {}",
                field.name(),
                column.name
            ))
            .at(relation.at.start)
            .with_hint("Symbols are text, numbers are integers, floats are double precision."));
        }
    }
    Ok(Stored {
        name: name.clone(),
        columns: fields.iter().map(|field| field.name().clone()).collect(),
        types: fields.iter().map(|field| field.data_type().clone()).collect(),
        is_bag: true,
        has_nulls: fields.iter().any(|field| field.is_nullable()),
    })
}

fn fits(of: &DataType, base: Base) -> bool {
    match base {
        Base::Symbol | Base::Record(_) | Base::Branches(_) => *of == DataType::Utf8View,
        Base::Number | Base::Unsigned => of.is_signed_integer(),
        Base::Float => matches!(of, DataType::Float32 | DataType::Float64),
    }
}

/// An atom, with a full stop or a question mark at its end, or nothing.
fn parse_atom(text: &str) -> Result<Atom, Error> {
    let bare = text.trim_end().trim_end_matches(['?', '.']);
    let program = Program::parse(&format!("{bare}."))?;
    let mut clauses = program.clauses.into_iter();
    match (clauses.next(), clauses.next()) {
        (Some(Clause { mut heads, body: Formula::And(parts), .. }), None) if heads.len() == 1 && parts.is_empty() => {
            heads.pop().ok_or_else(|| Error::internal("a clause without a head"))
        }
        _ => Err(Error::invalid("a query is one atom").with_hint("Write it like this: path(\"a\", x).")),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn sql(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Number(number) => format!("({number})::bigint"),
        Value::Float(number) => format!("'{number}'::double precision"),
    }
}

/// Facts as a batch of the relation's columns.
pub(crate) fn batch(relation: &Relation, facts: &[Vec<Value>]) -> Result<RecordBatch, Error> {
    let mut columns: Vec<ArrayRef> = vec![];
    let mut fields = vec![];
    if let Some(fact) = facts.iter().find(|fact| fact.len() != relation.columns.len()) {
        let (wanted, given) = (relation.columns.len(), fact.len());
        return Err(Error::invalid(format!("relation {} has {wanted} attributes, not {given}", relation.name)));
    }
    for (idx, column) in relation.columns.iter().enumerate() {
        let values = || facts.iter().map(|fact| &fact[idx]);
        let array: Option<ArrayRef> = match column.base.data_type() {
            DataType::Int64 => values().map(number).collect::<Option<Int64Array>>().map(|array| Arc::new(array) as _),
            DataType::Float64 => {
                values().map(float).collect::<Option<Float64Array>>().map(|array| Arc::new(array) as _)
            }
            _ => values().map(text).collect::<Option<StringViewArray>>().map(|array| Arc::new(array) as _),
        };
        columns.push(array.ok_or_else(|| {
            Error::invalid(format!("a value for attribute {} of {} has another type", column.name, relation.name))
        })?);
        fields.push(Field::new(&column.name, column.base.data_type(), false));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(Error::from)
}

fn number(value: &Value) -> Option<Option<i64>> {
    match value {
        Value::Number(number) => Some(Some(*number)),
        _ => None,
    }
}

fn float(value: &Value) -> Option<Option<f64>> {
    match value {
        Value::Float(number) => Some(Some(*number)),
        _ => None,
    }
}

fn text(value: &Value) -> Option<Option<&str>> {
    match value {
        Value::Text(text) => Some(Some(text)),
        _ => None,
    }
}

/// The rows of an answer, each once, in order.
pub(crate) fn sorted(rows: Rows) -> Result<Vec<Vec<Value>>, Error> {
    let mut out = Vec::with_capacity(rows.num_rows());
    for batch in &rows.batches {
        for row in 0..batch.num_rows() {
            out.push(batch.columns().iter().map(|column| value(column, row)).collect());
        }
    }
    out.sort_by(|one: &Vec<Value>, other| {
        one.iter().zip(other).map(|(a, b)| order(a, b)).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    out.dedup();
    Ok(out)
}

fn value(column: &ArrayRef, row: usize) -> Value {
    match column.data_type() {
        DataType::Int64 => Value::Number(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => Value::Float(column.as_primitive::<Float64Type>().value(row)),
        _ => Value::Text(column.as_string_view().value(row).to_owned()),
    }
}

fn order(one: &Value, other: &Value) -> std::cmp::Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.cmp(other),
        (Value::Float(one), Value::Float(other)) => one.total_cmp(other),
        (Value::Text(one), Value::Text(other)) => one.cmp(other),
        _ => std::cmp::Ordering::Equal,
    }
}
