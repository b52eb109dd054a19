//! From checked rules to plans.
//!
//! Law: the plan of a relation denotes the relation's rows, each once. A relation that is stored (a
//! table, or a view made before) is scanned; another is planned in place. Relations that depend on
//! each other make one loop whose variables are sets, so the loop's rounds are semi-naive in the
//! engine. A set that is known already may replace a variable of such a loop: the least fixed point
//! of the rest is the same (Bekic's lemma), so each relation of a component can be planned alone.
//!
//! Joins are ordered by what is bound: first atoms with constants, then the atom with most columns
//! bound; conditions and negations as soon as their variables are; what can fail as late as
//! possible.
//!
//! Reading order: [`build`] (nodes), [`term`] (values), [`body`] (joins), [`aggregate`].

mod aggregate;
mod body;
mod build;
mod term;

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_plan::RoundLimit;
use anabranch_plan::ir::{Binding, Recursive};
use anabranch_plan::{Node, Plan};
use arrow::datatypes::{DataType, Field};
use datafusion_expr::{Expr, cast};

use crate::check::bound::{Bound, variables_of};
use crate::core::{Core, Relation, RelationId, Rule};
use crate::stratify;
use crate::value::Value;
use body::BodyRows;
use build::{column, distinct, filtered, named_schema, plan, stage, union};

/// Where the rows of a relation are.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// The catalog's name.
    pub name: String,
    /// Names of the columns there.
    pub columns: Vec<String>,
    /// Types of the columns there, of the same values.
    pub types: Vec<DataType>,
    /// Whether rows may repeat.
    pub is_bag: bool,
    /// Whether values may be missing; such rows are no facts.
    pub has_nulls: bool,
}

/// Makes plans for the relations of a program.
pub(crate) struct Planner<'a> {
    core: &'a Core,
    /// Relations that are scanned.
    stored: HashMap<RelationId, Stored>,
    /// Facts from outside of relations that have rules too.
    inputs: HashMap<RelationId, Stored>,
    /// Plans that were made.
    made: HashMap<RelationId, Arc<Plan>>,
    /// Relations that depend on each other, through relations that are not stored.
    components: Vec<Vec<RelationId>>,
    reads: Vec<Vec<RelationId>>,
    /// The relations of the loop that is being planned: their variables.
    variables: HashMap<RelationId, usize>,
}

impl<'a> Planner<'a> {
    pub fn new(core: &'a Core) -> Planner<'a> {
        let reads = stratify::reads(core);
        let components = stratify::components(&reads);
        Planner {
            core,
            stored: HashMap::new(),
            inputs: HashMap::new(),
            made: HashMap::new(),
            components,
            reads,
            variables: HashMap::new(),
        }
    }

    /// Lets plans scan the relation from now on.
    pub fn store(&mut self, relation: RelationId, stored: Stored) {
        self.stored.insert(relation, stored);
        self.made.clear();
        // What is scanned depends on nothing.
        self.reads[relation].clear();
        self.components = stratify::components(&self.reads);
    }

    /// Lets the plan of a relation with rules scan its facts from outside, too.
    pub fn add_input(&mut self, relation: RelationId, stored: Stored) {
        self.inputs.insert(relation, stored);
    }

    /// The plan of a relation, with the names of its attributes.
    pub fn named(&mut self, relation: RelationId) -> Arc<Plan> {
        let plan = self.relation(relation);
        let columns = self.core.relations[relation].columns.iter();
        let field = columns.map(|column| Field::new(&column.name, column.base.data_type(), true));
        Arc::new(Plan { node: plan.node.clone(), schema: named_schema(field.collect()) })
    }

    /// Whether the relation depends on itself.
    pub fn is_recursive(&self, relation: RelationId) -> bool {
        self.reads[relation].contains(&relation) || self.component(relation).len() > 1
    }

    /// The relations that the relation depends on and that depend on it, itself included.
    pub fn component(&self, relation: RelationId) -> &[RelationId] {
        let component = self.components.iter().find(|component| component.contains(&relation));
        component.expect("every relation is in a component")
    }

    /// Components, each after those that it reads.
    pub fn components(&self) -> &[Vec<RelationId>] {
        &self.components
    }

    pub(crate) fn reads(&self, relation: RelationId) -> &[RelationId] {
        &self.reads[relation]
    }

    /// The rows of a relation, each once unless it is stored as a bag.
    fn relation(&mut self, id: RelationId) -> Arc<Plan> {
        if let Some(index) = self.variables.get(&id) {
            let types = column_types(&self.core.relations[id]);
            return plan(Node::Variable { depth: 0, index: *index }, &types);
        }
        if let Some(stored) = self.stored.get(&id) {
            return scan(stored, &self.core.relations[id]);
        }
        if let Some(made) = self.made.get(&id) {
            return Arc::clone(made);
        }
        let made = match self.is_recursive(id) {
            true => self.fixed_point(id),
            false => self.once(id),
        };
        self.made.insert(id, Arc::clone(&made));
        made
    }

    /// Whether rows of the relation may repeat.
    fn is_bag(&self, relation: RelationId) -> bool {
        self.stored.get(&relation).is_some_and(|stored| stored.is_bag)
    }

    /// A loop of the relations that depend on each other.
    fn fixed_point(&mut self, id: RelationId) -> Arc<Plan> {
        let component = self.component(id).to_vec();
        let variables = component.iter().enumerate().map(|(index, relation)| (*relation, index)).collect();
        // A loop around this one has variables that no relation of this component depends on.
        let around = std::mem::replace(&mut self.variables, variables);
        let mut bindings = vec![];
        for relation in &component {
            let plan = self.once(*relation);
            let name = self.core.relations[*relation].name.clone();
            bindings.push(Binding { name, schema: plan.schema.clone(), plan });
        }
        let result = self.relation(id);
        self.variables = around;
        let types = column_types(&self.core.relations[id]);
        plan(Node::Recursive(Box::new(Recursive { bindings, result, limit: RoundLimit::None })), &types)
    }

    /// What facts and rules give in one step.
    fn once(&mut self, id: RelationId) -> Arc<Plan> {
        let core = self.core;
        let relation = &core.relations[id];
        let types = column_types(relation);
        let mut parts = vec![];
        if let Some(stored) = self.inputs.get(&id) {
            parts.push(scan(stored, relation));
        }
        if !relation.facts.is_empty() {
            let rows = relation.facts.iter().map(|fact| fact.iter().map(Value::to_scalar).collect());
            parts.push(plan(Node::Constant { rows: rows.collect() }, &types));
        }
        for rule in core.rules.iter().filter(|rule| rule.head == id) {
            parts.push(self.rule(rule));
        }
        distinct(&union(parts, &types))
    }

    fn rule(&mut self, rule: &Rule) -> Arc<Plan> {
        let needed = variables_of(|visit| rule.arguments.iter().for_each(|term| term.variables(visit)));
        let rows = self.body(rule, &rule.body, BodyRows::unit(), &needed, &Bound::new());
        let head = rule.arguments.iter().zip(column_types(&self.core.relations[rule.head]));
        let project = head.map(|(term, data_type)| (rows.value(term), data_type)).collect();
        stage(&rows.plan, vec![], project)
    }
}

fn column_types(relation: &Relation) -> Vec<DataType> {
    relation.columns.iter().map(|column| column.base.data_type()).collect()
}

/// The facts of a stored relation, in the types of the program.
fn scan(stored: &Stored, relation: &Relation) -> Arc<Plan> {
    let columns = stored.columns.iter().zip(&stored.types);
    let fields = columns.map(|(name, data_type)| Field::new(name, data_type.clone(), true)).collect();
    let columns = (0..relation.columns.len()).collect();
    let node = Node::Scan { relation: stored.name.clone(), columns };
    let scan = Arc::new(Plan { node, schema: named_schema(fields) });
    let wanted = column_types(relation);
    let present = |idx| Expr::IsNotNull(Box::new(column(&scan, idx)));
    let filter = if stored.has_nulls { (0..wanted.len()).map(present).collect() } else { vec![] };
    if wanted == stored.types {
        return filtered(&scan, filter);
    }
    let convert = |(idx, (wanted, has)): (usize, (DataType, &DataType))| match wanted == *has {
        true => (column(&scan, idx), wanted),
        false => (cast(column(&scan, idx), wanted.clone()), wanted),
    };
    let project = wanted.into_iter().zip(&stored.types).enumerate().map(convert).collect();
    stage(&scan, filter, project)
}
