//! A program in a database: tables of facts, views of answers, queries.
//!
//! Law: at every commit a relation's view holds the least fixed point of the rules over the facts
//! as of that commit. What was made before a failure is taken down again.
//!
//! Reading order: this file, `host` (sessions and connections), `stored` (which relations have
//! tables and views), `facts` (values as rows).

mod facts;
mod host;
mod stored;

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_engine::{Error, RelationInfo};
use anabranch_plan::Plan;

use crate::ast::{Argument, ArgumentKind, Atom, Attribute, Clause, Formula, Name, Program, RelationDeclaration};
use crate::check::check;
use crate::core::{Column, Core, Relation, RelationId};
use crate::magic;
use crate::near::unknown;
use crate::plan::{Planner, Stored};
use crate::value::Value;
pub(crate) use facts::batch;
use facts::sorted;
pub use host::Host;
use stored::{existing_relation, stored, wanted_views};

/// Name of the relation that a query asks for; no program can declare it.
const ANSWER: &str = "?";

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
    /// which is read then. Relations of `.output` and `.printsize` become materialized views, and
    /// so does a recursive relation that others read; without any output all relations with rules
    /// do. A relation with rules and `.input` has a table `<name>_input` beside. Names are as in
    /// the program, so SQL has to quote those with capital letters.
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

    /// The answers of a query: an atom with constants and variables, `path("a", x)`. Each answer
    /// has a value for each variable, in the order in which they first stand; a query without
    /// variables has one answer, the number 1, or none. A relation that is kept is looked up; of
    /// another one only what the constants ask for is computed (magic sets).
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
        let column = |column: &Column| format!("{} {} NOT NULL", quoted(&column.name), column.base.sql_name());
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
