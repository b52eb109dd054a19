//! The types of `$1`, `$2` .. from what the parameters stand beside.
//!
//! Law: as in PostgreSQL, a parameter has the type that a literal in quotes would have in its
//! place; the first place that says a type decides. A parameter that no place says a type of is
//! text.
//!
//! Left out: functions that take several types, beyond those of the table [`argument`]; there a
//! cast says the type. Cost: one first plan a statement for each round in which types are found.

mod arguments;
mod known;
mod written;

use std::sync::Arc;

use anabranch_batch::TextLimit;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::expr::{AggregateFunction, InList, Like, ScalarFunction};
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_expr::sqlparser::ast;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use crate::change::ChangePart;
use crate::error::Result;
use crate::planner::{Checked, Planner};
use crate::resolve::common_types::{float_among, union_type};
use crate::resolve::parameters::{Parameters, index_of};
use crate::resolve::type_names::is_text;
use crate::syntax::statement::{Copied, CopyTo, MergePart, Parsed, Statement};

use arguments::{INTERVAL, TEXT, argument, operand};
use known::{Known, kept_form};
use written::{is_plain_row, written_types};

impl Checked for Known {
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

impl Planner<'_> {
    /// A statement's parameters as fields: their types, and marks of those that are `uuid` or
    /// documents. `given` are the types that are known already.
    ///
    /// # Errors
    /// Whatever planning finds wrong with the statement before types are looked at.
    pub fn parameter_fields(&self, parsed: &Parsed, given: &[Option<DataType>]) -> Result<Vec<Field>> {
        let mut known = Known::of(given, parsed.parameters);
        if known.is_open() {
            let mut parts = self.parts(&parsed.statement)?;
            parts.iter().for_each(|part| written_types(part, &mut known));
            parts.retain(|part| !is_plain_row(&part.query));
            while known.is_open() {
                let before = known.clone();
                self.find(&parts, &mut known);
                if known == before {
                    break;
                }
            }
        }
        Ok(known.fields())
    }

    /// The queries that a statement consists of.
    fn parts(&self, statement: &Statement) -> Result<Vec<ChangePart>> {
        let of = |query: &ast::Query| vec![ChangePart { query: Box::new(query.clone()), wanted: vec![] }];
        match statement {
            Statement::Select { query, .. } => Ok(of(query)),
            Statement::Subscribe(subscribe) => Ok(of(&subscribe.query)),
            Statement::Explain(explain) => Ok(of(&explain.query)),
            Statement::ExplainChange(change) => self.parts(change),
            Statement::CreateTableAs(create) => Ok(of(&create.query)),
            Statement::Declare(declare) => self.parts(&declare.statement.statement),
            Statement::CopyTo(CopyTo { copied: Copied::Query(query), .. }) => Ok(of(query)),
            Statement::Insert(insert) => self.parts_of_insert(insert),
            Statement::Update(update) => self.parts_of_update(update),
            Statement::Delete(delete) => self.parts_of_delete(delete),
            Statement::ChangesInWith(with) => {
                let statements = with.parts.iter().map(|(_, part)| part).chain([&with.main]);
                // (What reads the rows that a part returns is not planned here.)
                Ok(statements.filter_map(|statement| self.parts(statement).ok()).flatten().collect())
            }
            Statement::Merge(merge) => {
                let parts = merge.parts.iter().map(|part| match part {
                    MergePart::Update(update) => self.parts_of_update(update),
                    MergePart::Delete(delete) => self.parts_of_delete(delete),
                    MergePart::Insert(insert) => self.parts_of_insert(insert),
                });
                Ok(parts.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
            }
            _ => Ok(vec![]),
        }
    }

    /// Adds the types that the parts say, given those that are known. A part that cannot be planned
    /// so far says none: planning it in full tells why.
    fn find(&self, parts: &[ChangePart], known: &mut Known) {
        for part in parts {
            if let Some(found) = guesses().iter().find_map(|guess| self.find_in(part, known, guess).ok()) {
                *known = found;
            }
        }
    }

    /// What is known and what a part says. What is planned of an unknown type counts as a `guess`.
    fn find_in(&self, part: &ChangePart, known: &Known, guess: &Option<DataType>) -> Result<Known> {
        self.with_known(Parameters::Known(known.guessed(guess).into())).guarded(&part.query, |context| {
            let mut finding = Finding { known: known.clone() };
            finding.plan(&context.logical(&part.query)?, &part.wanted)?;
            Ok(finding.known)
        })
    }
}

/// What an unknown type counts as, so that the part can be planned: NULL first. The planner has no
/// operators of NULL for times, and no list of NULL.
fn guesses() -> [Option<DataType>; 5] {
    [None, Some(INTERVAL), Some(TEXT), Some(DataType::Float64), Some(list_of(DataType::Int64))]
}

fn list_of(element: DataType) -> DataType {
    DataType::new_list(element, true)
}

/// A walk over a plan that takes note of types.
struct Finding {
    known: Known,
}

impl Finding {
    fn plan(&mut self, plan: &LogicalPlan, wanted: &[Option<FieldRef>]) -> Result<()> {
        let mut nodes = Vec::new();
        plan.apply_with_subqueries(|node| {
            nodes.push(node.clone());
            Ok(TreeNodeRecursion::Continue)
        })?;
        // Inner queries first, as they are read first.
        for node in nodes.iter().rev() {
            let schema = merge_schema(&node.inputs());
            let is_condition = matches!(node, LogicalPlan::Filter(_));
            if let LogicalPlan::Values(values) = node {
                self.columns(&values.values, &schema);
            }
            if let LogicalPlan::Union(union) = node {
                self.branches(&union.inputs);
            }
            node.apply_expressions(|expr| {
                self.expr(expr, &schema, is_condition.then_some(&DataType::Boolean));
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        let mut top = plan;
        while let LogicalPlan::Sort(_) | LogicalPlan::Limit(_) | LogicalPlan::SubqueryAlias(_) = top {
            top = top.inputs()[0];
        }
        if let LogicalPlan::Projection(projection) = top {
            for (expr, wanted) in projection.expr.iter().zip(wanted) {
                if let (Some(at), Some(wanted)) = (index_of(bare(expr)), wanted) {
                    self.known.note_field(Some(at), wanted);
                }
                self.expr(expr, projection.input.schema(), wanted.as_ref().map(|wanted| wanted.data_type()));
            }
        }
        Ok(())
    }

    /// The columns of VALUES.
    fn columns(&mut self, rows: &[Vec<Expr>], schema: &DFSchema) {
        let width = rows.first().map_or(0, Vec::len);
        for at in 0..width {
            let column: Vec<&Expr> = rows.iter().filter_map(|row| row.get(at)).collect();
            self.alike(&column, schema, None);
        }
    }

    /// The columns of UNION: a parameter has the type of another branch.
    fn branches(&mut self, inputs: &[Arc<LogicalPlan>]) {
        let width = inputs.first().map_or(0, |input| input.schema().fields().len());
        for at in 0..width {
            let is_open = |is: &DataType| is.is_null() || is_text(is);
            let mut types = inputs.iter().map(|input| input.schema().field(at).data_type().clone());
            let Some(wanted) = types.find(|is| !is_open(is)) else { continue };
            for input in inputs {
                let mut branch = input.as_ref();
                while let LogicalPlan::SubqueryAlias(_) = branch {
                    branch = branch.inputs()[0];
                }
                if let LogicalPlan::Projection(projection) = branch {
                    self.expr(&projection.expr[at], projection.input.schema(), Some(&wanted));
                }
            }
        }
    }

    /// The type of an expression, unless it is a parameter of an unknown type, NULL, or a literal
    /// in quotes.
    fn type_of(&self, expr: &Expr, schema: &DFSchema) -> Option<DataType> {
        if let Some(at) = index_of(expr) {
            return self.known.type_of(at);
        }
        match expr {
            Expr::Alias(alias) => self.type_of(&alias.expr, schema),
            Expr::Literal(value, _) if is_text(&value.data_type()) => None,
            Expr::Literal(ScalarValue::Int64(Some(n)), _) if i32::try_from(*n).is_ok() => Some(DataType::Int32),
            _ => expr.get_type(schema).ok().filter(|is| !is.is_null()),
        }
    }

    /// The common type of values that must be of one type; `None` if none of them says a type.
    fn common(&self, values: &[&Expr], schema: &DFSchema) -> Option<DataType> {
        let types: Vec<DataType> = values.iter().filter_map(|value| self.type_of(value, schema)).collect();
        let first = types.first()?.clone();
        let common = types[1..].iter().try_fold(first.clone(), |common, is| union_type(&common, is));
        Some(float_among(&types).or(common).unwrap_or(first))
    }

    fn alike(&mut self, values: &[&Expr], schema: &DFSchema, wanted: Option<&DataType>) {
        let common = self.common(values, schema).or_else(|| wanted.cloned());
        let is_text_beside =
            || values.iter().any(|value| matches!(value, Expr::Literal(literal, _) if !literal.is_null()));
        let common = common.or_else(|| is_text_beside().then_some(TEXT));
        if let Some(form) = values.iter().find_map(|value| uuid_form(value, schema)) {
            values.iter().for_each(|value| self.known.note_form(index_of(value), form));
        }
        values.iter().for_each(|value| self.expr(value, schema, common.as_ref()));
    }

    fn expr(&mut self, expr: &Expr, schema: &DFSchema, wanted: Option<&DataType>) {
        if let (Some(at), Some(wanted)) = (index_of(expr), wanted) {
            return self.known.note(Some(at), wanted);
        }
        match expr {
            Expr::Alias(alias) => self.expr(&alias.expr, schema, wanted),
            Expr::Cast(cast) => self.expr(&cast.expr, schema, Some(cast.field.data_type())),
            Expr::TryCast(cast) => self.expr(&cast.expr, schema, Some(cast.field.data_type())),
            Expr::Not(inner) => self.expr(inner, schema, Some(&DataType::Boolean)),
            Expr::IsTrue(inner) | Expr::IsFalse(inner) | Expr::IsNotTrue(inner) | Expr::IsNotFalse(inner) => {
                self.expr(inner, schema, Some(&DataType::Boolean));
            }
            Expr::Negative(inner) => self.expr(inner, schema, wanted.or(Some(&DataType::Float64))),
            Expr::BinaryExpr(binary) => self.binary(binary, schema),
            Expr::Like(Like { expr, pattern, .. }) | Expr::SimilarTo(Like { expr, pattern, .. }) => {
                self.expr(expr, schema, Some(&TEXT));
                self.expr(pattern, schema, Some(&TEXT));
            }
            Expr::Between(between) => {
                self.alike(&[&between.expr, &between.low, &between.high], schema, None);
            }
            Expr::InList(InList { expr, list, .. }) => {
                let values: Vec<&Expr> = std::iter::once(expr.as_ref()).chain(list).collect();
                self.alike(&values, schema, None);
            }
            Expr::InSubquery(test) => self.compared(&test.expr, &test.subquery.subquery, schema),
            Expr::SetComparison(test) => self.compared(&test.expr, &test.subquery.subquery, schema),
            Expr::Case(case) => {
                let whens = case.when_then_expr.iter().map(|(when, _)| when.as_ref());
                match case.expr.as_deref() {
                    Some(value) => {
                        let compared: Vec<&Expr> = std::iter::once(value).chain(whens).collect();
                        self.alike(&compared, schema, None);
                    }
                    None => whens.for_each(|when| self.expr(when, schema, Some(&DataType::Boolean))),
                }
                let thens = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
                let chosen: Vec<&Expr> = thens.chain(case.else_expr.as_deref()).collect();
                self.alike(&chosen, schema, wanted);
            }
            Expr::ScalarFunction(call) => self.call(call, schema, wanted),
            Expr::AggregateFunction(AggregateFunction { params, func }) => {
                let is_percentile = func.name().starts_with("percentile_");
                let part = is_percentile.then_some(DataType::Float64);
                let wanted = |at: usize| part.as_ref().filter(|_| at > 0);
                params.args.iter().enumerate().for_each(|(at, arg)| self.expr(arg, schema, wanted(at)));
                params.filter.iter().for_each(|filter| self.expr(filter, schema, Some(&DataType::Boolean)));
            }
            Expr::WindowFunction(call) => {
                let first = call.params.args.first().and_then(|value| self.type_of(value, schema));
                for (at, arg) in call.params.args.iter().enumerate() {
                    let wanted = match (call.fun.name(), at) {
                        ("lag" | "lead" | "nth_value", 1) | ("ntile", 0) => Some(DataType::Int32),
                        ("lag" | "lead", 2) => first.clone(),
                        _ => None,
                    };
                    self.expr(arg, schema, wanted.as_ref());
                }
                let around = call.params.partition_by.iter().chain(call.params.order_by.iter().map(|key| &key.expr));
                around.for_each(|value| self.expr(value, schema, None));
            }
            other => {
                let walked = other.apply_children(|child| {
                    self.expr(child, schema, None);
                    Ok(TreeNodeRecursion::Continue)
                });
                debug_assert!(walked.is_ok(), "the closure does not fail");
            }
        }
    }

    /// A value that is compared with the column of a query.
    fn compared(&mut self, value: &Expr, query: &LogicalPlan, schema: &DFSchema) {
        let is = query.schema().fields().first().map(|field| field.data_type().clone());
        self.expr(value, schema, is.filter(|is| !is.is_null()).as_ref());
    }

    fn binary(&mut self, binary: &BinaryExpr, schema: &DFSchema) {
        let BinaryExpr { left, op, right } = binary;
        if let Operator::And | Operator::Or = op {
            self.expr(left, schema, Some(&DataType::Boolean));
            return self.expr(right, schema, Some(&DataType::Boolean));
        }
        // Inner parameters first: what they are may decide about this one.
        for side in [left, right].into_iter().filter(|side| index_of(side).is_none()) {
            self.expr(side, schema, None);
        }
        for (side, other) in [(left, right), (right, left)] {
            if index_of(side).is_none() {
                continue;
            }
            let is_literal = matches!(other.as_ref(), Expr::Literal(literal, _) if is_text(&literal.data_type()));
            let beside = self.type_of(other, schema).or_else(|| is_literal.then_some(TEXT));
            if let Some(form) = uuid_form(other, schema).filter(|_| is_comparison(*op)) {
                self.known.note_form(index_of(side), form);
            }
            if let Some(wanted) = beside.and_then(|beside| operand(*op, &beside)) {
                self.expr(side, schema, Some(&wanted));
            }
        }
    }

    fn call(&mut self, call: &ScalarFunction, schema: &DFSchema, wanted: Option<&DataType>) {
        let name = call.func.name();
        let args: Vec<&Expr> = call.args.iter().collect();
        if matches!(name, "coalesce" | "greatest" | "least" | "nullif" | "mod") {
            return self.alike(&args, schema, wanted);
        }
        if let ("array_has", [list, element]) = (name, args.as_slice())
            && let Some(form) = uuid_form(element, schema)
        {
            self.known.note_form(index_of(list), form);
        }
        if let Some(wanted) = self.of_lists(name, &args, schema) {
            return args.iter().zip(wanted).for_each(|(arg, wanted)| self.expr(arg, schema, wanted.as_ref()));
        }
        for (at, arg) in args.iter().enumerate() {
            self.expr(arg, schema, argument(name, args.len(), at).as_ref());
        }
    }
}

impl Finding {
    /// The types of the arguments of a function of lists, beside those that are known.
    fn of_lists(&self, name: &str, args: &[&Expr], schema: &DFSchema) -> Option<Vec<Option<DataType>>> {
        let known = |at: usize| args.get(at).and_then(|arg| self.type_of(arg, schema));
        let element = |list: Option<DataType>| match list? {
            DataType::List(element) => Some(element.data_type().clone()),
            _ => None,
        };
        let list_beside = |at: usize| known(at).map(list_of);
        Some(match name {
            // `element = ANY(list)`
            "array_has" => vec![list_beside(1), element(known(0))],
            "array_append" | "array_position" | "array_positions" | "array_remove" => {
                vec![list_beside(1), element(known(0)), Some(DataType::Int64)]
            }
            "array_prepend" => vec![element(known(1)), list_beside(0)],
            "array_replace" => vec![list_beside(1), element(known(0)), element(known(0))],
            "array_concat" | "array_has_all" | "array_has_any" | "array_compare" => {
                let list = (0..args.len()).find_map(known);
                vec![list; args.len()]
            }
            name if name.ends_with("like_any") || name.ends_with("like_all") => vec![Some(TEXT), Some(list_of(TEXT))],
            _ => return None,
        })
    }
}

fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => bare(&alias.expr),
        expr => expr,
    }
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// The form of a column of `uuid`. (What is compared with a document is compared as it is written.)
fn uuid_form(expr: &Expr, schema: &DFSchema) -> Option<TextLimit> {
    let Expr::Column(column) = bare(expr) else { return None };
    let (_, field) = schema.qualified_field_from_column(column).ok()?;
    kept_form(field).filter(|form| *form == TextLimit::Uuid)
}
