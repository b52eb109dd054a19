//! Rows of relations that several joins of a plan want by the same key: arranged once, with the
//! columns that any of them wants.
//!
//! Law: a side of a join that shows some columns of the rows of one relation that pass a filter
//! finds, in the arrangement of the same rows with more columns, the rows it asked for: a join
//! gathers the columns it needs by position, and multiplicities add up when columns are left out.
//!
//! Cost: once a query, a walk over the plan. Source: shared arrangements (VLDB 2020), within one
//! query; between queries primary keys and indexes do it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anabranch_plan::{Node, Plan};
use arrow::datatypes::{FieldRef, Fields};
use datafusion_common::DFSchema;
use datafusion_expr::Expr;

use crate::error::Error;

/// Rows of a relation that pass a filter, by a key (positions in the relation).
#[derive(Clone, PartialEq, Eq, Hash)]
struct Wish {
    relation: String,
    /// Over the relation's column names.
    filter: Vec<Expr>,
    key: Vec<usize>,
}

/// Which columns of which rows the joins of a plan want.
#[derive(Default)]
pub(crate) struct Leaves {
    columns: HashMap<Wish, BTreeMap<usize, FieldRef>>,
}

/// A leaf with the columns that all who want it need.
pub(super) struct Widened {
    pub plan: Arc<Plan>,
    /// Where the narrower plan's columns are.
    pub columns: Vec<usize>,
    /// The key's columns.
    pub key: Vec<usize>,
}

impl Leaves {
    pub fn of(plan: &Plan) -> Leaves {
        let mut leaves = Leaves::default();
        leaves.add(plan);
        leaves
    }

    fn add(&mut self, plan: &Plan) {
        if let Node::Join { left, right, left_key, right_key, .. } = &plan.node {
            self.add_side(left, left_key);
            self.add_side(right, right_key);
        }
        plan.inputs().into_iter().for_each(|input| self.add(input));
    }

    fn add_side(&mut self, side: &Plan, key: &[usize]) {
        let Some((wish, columns)) = wish(side, key) else { return };
        let known = self.columns.entry(wish).or_default();
        for (n, column) in columns.into_iter().enumerate() {
            known.entry(column).or_insert_with(|| Arc::clone(&side.schema.fields()[n]));
        }
    }

    /// The side of a join with the columns that others want besides; `None` if there are no others.
    ///
    /// # Errors
    /// `Internal` when a schema cannot be made.
    pub(super) fn widened(&self, side: &Plan, key: &[usize]) -> Result<Option<Widened>, Error> {
        let Some((wish, own)) = wish(side, key) else { return Ok(None) };
        let Some(all) = self.columns.get(&wish).filter(|all| all.len() > own.len()) else { return Ok(None) };
        let place = |column: &usize| all.keys().position(|known| known == column).expect("a wish was noted");
        let schema = schema_of(all.values())?;
        let scan_of = |columns: Vec<usize>, schema| {
            Arc::new(Plan { node: Node::Scan { relation: wish.relation.clone(), columns }, schema })
        };
        let plan = match &side.node {
            Node::Stage { input, filter, .. } => {
                let Node::Scan { columns, .. } = &input.node else { return Ok(None) };
                // The filter's columns come with the wanted ones.
                let mut read = all.clone();
                for (n, column) in columns.iter().enumerate() {
                    read.entry(*column).or_insert_with(|| Arc::clone(&input.schema.fields()[n]));
                }
                let input = scan_of(read.keys().copied().collect(), schema_of(read.values())?);
                let project = all.values().map(|field| Expr::Column(field.name().as_str().into())).collect();
                Arc::new(Plan { node: Node::Stage { input, filter: filter.clone(), project }, schema })
            }
            _ => scan_of(all.keys().copied().collect(), schema),
        };
        let columns = own.iter().map(place).collect();
        let key = wish.key.iter().map(place).collect();
        Ok(Some(Widened { plan, columns, key }))
    }
}

/// What the side of a join wants, and the relation's column behind each of its own; `None` if it is
/// no plain leaf.
fn wish(side: &Plan, key: &[usize]) -> Option<(Wish, Vec<usize>)> {
    let (relation, filter, columns) = match &side.node {
        Node::Scan { relation, columns } => (relation, vec![], columns.clone()),
        Node::Stage { input, filter, project } => {
            let Node::Scan { relation, columns } = &input.node else { return None };
            let chosen = project.iter().enumerate().map(|(n, expr)| match expr {
                // A column under its own name: leaves of one relation must agree in names.
                Expr::Column(column) if side.schema.field(n).name() == &column.name => {
                    input.schema.index_of_column_by_name(None, &column.name).map(|at| columns[at])
                }
                _ => None,
            });
            (relation, filter.clone(), chosen.collect::<Option<Vec<_>>>()?)
        }
        _ => return None,
    };
    let distinct = columns.iter().enumerate().all(|(n, column)| !columns[..n].contains(column));
    let key = key.iter().map(|at| columns[*at]).collect();
    distinct.then(|| (Wish { relation: relation.clone(), filter, key }, columns))
}

fn schema_of<'a>(fields: impl Iterator<Item = &'a FieldRef>) -> Result<Arc<DFSchema>, Error> {
    let fields: Fields = fields.cloned().collect();
    let schema = DFSchema::from_unqualified_fields(fields, HashMap::new());
    schema.map(Arc::new).map_err(|error| Error::internal(format!("columns of one relation share a name: {error}")))
}
