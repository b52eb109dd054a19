//! Loops within a subquery that refer to outer columns: each variable carries the values of the
//! domain in columns of its own.
//!
//! ```text
//! v := body(v, A)     becomes     v' := push(D, body(select v'.columns from v' where v'.D = A, A))
//! ```
//!
//! Law: the rows of `v'` with a value are the rows that `v` has for this value, round by round: the
//! loops of all values run side by side. Variables that depend on no outer column stay as they are.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, Result as DfResult};
use datafusion_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::{Extension, Filter, LogicalPlan, LogicalPlanBuilder, Subquery, TableScan};
use datafusion_expr::{BinaryExpr, Expr, Operator, TableSource, lit};

use crate::passes::plan::recursion::LoopNode;

/// How the outer columns of a loop, and the loop's variables, are renamed.
pub(super) struct Widening {
    /// The outer columns, as the loop refers to them.
    pub outer: Vec<Column>,
    /// The same under names that nothing within the loop hides.
    pub renamed: Vec<Column>,
    /// The columns of the variables that carry the values.
    pub keys: Vec<FieldRef>,
    /// The variables that carry them, with all their columns.
    pub variables: Vec<(String, SchemaRef)>,
}

impl Widening {
    /// Whether this is a scan of a variable that carries the values of these columns.
    pub fn is_scan_of(&self, plan: &LogicalPlan, outer: &[Column]) -> bool {
        let LogicalPlan::TableScan(scan) = plan else { return false };
        self.renamed == outer && self.variable(scan).is_some() && scan.projection.is_none()
    }

    /// The columns of such a scan that carry them.
    pub fn keys_of(&self, scan: &LogicalPlan) -> Vec<Column> {
        let columns = scan.schema().columns();
        columns[columns.len() - self.keys.len()..].to_vec()
    }

    /// A plan of the loop's body, with the renamed outer columns, and with the variables that carry
    /// them.
    pub fn apply(&self, plan: LogicalPlan) -> DfResult<LogicalPlan> {
        let variables = self.variables.iter().map(|(name, _)| name.clone()).collect();
        self.within(plan, &Visible { outer: vec![true; self.outer.len()], variables })
    }

    fn variable(&self, scan: &TableScan) -> Option<&SchemaRef> {
        let name = scan.table_name.table();
        self.variables.iter().find(|(variable, _)| variable == name).map(|(_, schema)| schema)
    }

    fn within(&self, plan: LogicalPlan, visible: &Visible) -> DfResult<LogicalPlan> {
        if let LogicalPlan::TableScan(scan) = &plan
            && visible.variables.contains(scan.table_name.table())
            && let Some(schema) = self.variable(scan)
        {
            return self.scan(scan, schema);
        }
        let mut visible_below = visible.clone();
        if let Some(node) = loop_of(&plan) {
            visible_below.variables.retain(|name| !node.variables.contains(name));
        }
        let inputs: Vec<DFSchema> = plan.inputs().into_iter().map(|input| input.schema().as_ref().clone()).collect();
        let names = NamePreserver::new(&plan);
        let plan = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|part| self.part(part, &inputs, visible))?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })?;
        let is_join = matches!(plan.data, LogicalPlan::Join(_));
        let mut n_inputs = 0;
        let plan = plan.data.map_children(|input| {
            n_inputs += 1;
            // The right side of a join may name columns of the left.
            let bound = if is_join && n_inputs == 2 { &inputs[..1] } else { &[] };
            Ok(Transformed::yes(self.within(input, &visible_below.without(bound, &self.outer))?))
        })?;
        Ok(plan.data)
    }

    /// The variable's own columns, of the rows with the outer columns' values.
    fn scan(&self, scan: &TableScan, schema: &SchemaRef) -> DfResult<LogicalPlan> {
        let shown: Vec<Expr> = scan.projected_schema.columns().into_iter().map(Expr::Column).collect();
        let source = Arc::new(VariableSource(Arc::clone(schema)));
        let wide = LogicalPlanBuilder::scan(scan.table_name.clone(), source, None)?.build()?;
        let keys = self.keys_of(&wide);
        let equal = keys.into_iter().zip(&self.keys).zip(&self.renamed).map(|((key, field), outer)| {
            let outer = Expr::OuterReferenceColumn(field.clone(), outer.clone());
            Expr::BinaryExpr(BinaryExpr::new(Box::new(Expr::Column(key)), Operator::IsNotDistinctFrom, Box::new(outer)))
        });
        let equal = equal.reduce(Expr::and).unwrap_or_else(|| lit(true));
        let own = LogicalPlan::Filter(Filter::try_new(equal, Arc::new(wide))?);
        let own = LogicalPlanBuilder::from(own).project(shown)?.build()?;
        match scan.filters.iter().cloned().reduce(Expr::and) {
            Some(filter) => LogicalPlanBuilder::from(own).filter(filter)?.build(),
            None => Ok(own),
        }
    }

    fn part(&self, part: Expr, inputs: &[DFSchema], visible: &Visible) -> DfResult<Transformed<Expr>> {
        let inside = |subquery: Subquery| -> DfResult<Subquery> {
            let plan = Arc::unwrap_or_clone(subquery.subquery);
            let plan = self.within(plan, &visible.without(inputs, &self.outer))?;
            let outer_ref_columns = subquery.outer_ref_columns.into_iter().map(|outer| self.reference(outer, visible));
            let outer_ref_columns = outer_ref_columns.collect();
            Ok(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: subquery.spans })
        };
        Ok(Transformed::yes(match part {
            Expr::OuterReferenceColumn(..) => self.reference(part, visible),
            Expr::ScalarSubquery(subquery) => Expr::ScalarSubquery(inside(subquery)?),
            Expr::Exists(Exists { subquery, negated }) => Expr::Exists(Exists { subquery: inside(subquery)?, negated }),
            Expr::InSubquery(test) => {
                let subquery = inside(test.subquery)?;
                Expr::InSubquery(InSubquery { subquery, ..test })
            }
            Expr::SetComparison(test) => {
                let subquery = inside(test.subquery)?;
                Expr::SetComparison(SetComparison { subquery, ..test })
            }
            other => return Ok(Transformed::no(other)),
        }))
    }

    fn reference(&self, expr: Expr, visible: &Visible) -> Expr {
        let Expr::OuterReferenceColumn(field, column) = expr else { return expr };
        let at = self.outer.iter().position(|outer| *outer == column).filter(|at| visible.outer[*at]);
        match at {
            Some(at) => Expr::OuterReferenceColumn(field, self.renamed[at].clone()),
            None => Expr::OuterReferenceColumn(field, column),
        }
    }
}

/// A variable as DataFusion scans it: conditions stay above.
struct VariableSource(SchemaRef);

impl TableSource for VariableSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0)
    }
}

/// What is seen at a place within the loop.
#[derive(Clone)]
struct Visible {
    /// For each outer column whether no row around the place has a column of the same name.
    outer: Vec<bool>,
    /// Variables of which no loop around the place has another one of the same name.
    variables: BTreeSet<String>,
}

impl Visible {
    /// What is seen from a query over rows of these schemas.
    fn without(&self, bound: &[DFSchema], outer: &[Column]) -> Visible {
        let is_bound = |column: &Column| bound.iter().any(|schema| schema.has_column(column));
        let visible = self.outer.iter().zip(outer).map(|(visible, column)| *visible && !is_bound(column));
        Visible { outer: visible.collect(), variables: self.variables.clone() }
    }
}

/// The loop that a node is.
pub(super) fn loop_of(plan: &LogicalPlan) -> Option<&LoopNode> {
    match plan {
        LogicalPlan::Extension(Extension { node }) => node.as_any().downcast_ref::<LoopNode>(),
        _ => None,
    }
}

/// The variables of a loop that depend on outer columns, or on variables that do; that which the
/// loop yields is among them. `is_free` tells whether an input refers to the outer columns.
pub(super) fn dependent(node: &LoopNode, is_free: &[bool]) -> DfResult<Vec<bool>> {
    let Some(result) = node.result() else { return Ok(vec![true; node.variables.len()]) };
    let mut dependent: Vec<bool> = is_free.to_vec();
    dependent[result] = true;
    loop {
        let mut changed = false;
        for (at, input) in node.inputs.iter().enumerate() {
            if !dependent[at] && reads(input, &node.variables, &dependent)? {
                (dependent[at], changed) = (true, true);
            }
        }
        if !changed {
            return Ok(dependent);
        }
    }
}

/// Whether a plan reads one of these variables. (A loop within may have one of the same name.)
fn reads(plan: &LogicalPlan, variables: &[String], wanted: &[bool]) -> DfResult<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let named = variables.iter().zip(wanted).any(|(name, wanted)| *wanted && name == scan.table_name.table());
            found |= named;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// The columns of a variable, and those that carry values.
pub(super) fn widened(schema: &SchemaRef, keys: &[FieldRef]) -> SchemaRef {
    let fields =
        schema.fields().iter().chain(keys).map(|field| Field::new(field.name(), field.data_type().clone(), true));
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}
