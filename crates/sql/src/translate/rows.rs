//! Leaves and the nodes that only move rows: scans, literal rows, unions, `unnest`.

use std::sync::Arc;

use anabranch_plan::{Node, Plan};
use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::logical_plan::{EmptyRelation, TableScan, Unnest, Values};
use datafusion_expr::{Expr, cast};

use super::expr::{column, resolve};
use super::schema::{Draft, drafts, either_null, schema};
use super::stage::{self, Column, stage};
use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::common_types::union_type;
use crate::resolve::type_names::{canonical, sql_name};
use crate::type_words::CAST_ONE_SIDE;

/// The rows of a relation.
pub(super) fn scan(scan: &TableScan) -> Result<Arc<Plan>> {
    let all = scan.source.schema();
    let columns: Vec<usize> = match &scan.projection {
        Some(columns) => columns.clone(),
        None => (0..all.fields().len()).collect(),
    };
    let columns_schema: Vec<Draft> = columns
        .iter()
        .map(|at| {
            let field = all.field(*at);
            (field.name().clone(), field.data_type().clone(), field.is_nullable())
        })
        .collect();
    let plan = Arc::new(Plan {
        node: Node::Scan { relation: catalog_name(scan.table_name.table()), columns },
        schema: schema(columns_schema),
    });
    filtered(scan, plan)
}

/// The rows of a scan that pass its conditions.
pub(super) fn filtered(scan: &TableScan, plan: Arc<Plan>) -> Result<Arc<Plan>> {
    let filters =
        scan.filters.iter().map(|e| resolve(e, &scan.projected_schema, &plan.schema)).collect::<Result<Vec<_>>>()?;
    stage::filter(plan, filters)
}

/// `VALUES`: rows that are literals are kept as they are, others are computed from nothing.
pub(super) fn values(values: &Values) -> Result<Arc<Plan>> {
    let nothing = DFSchema::empty();
    let types: Vec<DataType> = values.schema.fields().iter().map(|f| canonical(f.data_type())).collect();
    let mut constants: Vec<Vec<ScalarValue>> = Vec::new();
    let mut computed: Vec<Arc<Plan>> = Vec::new();
    for row in &values.values {
        if let Some(row) = literal_row(row, &types) {
            constants.push(row);
            continue;
        }
        let mut columns: Vec<Column> = Vec::new();
        for ((expr, data_type), field) in row.iter().zip(&types).zip(values.schema.fields()) {
            let expr = resolve(expr, &nothing, &nothing)?;
            columns.push((cast(expr, data_type.clone()), Some(field.name().clone())));
        }
        computed.push(stage(unit(), vec![], columns)?);
    }
    if constants.is_empty() && !computed.is_empty() {
        return union(computed);
    }
    let columns = values
        .schema
        .fields()
        .iter()
        .zip(types)
        .enumerate()
        .map(|(n, (field, data_type))| {
            let nullable = constants.iter().any(|row| row[n].is_null());
            (field.name().clone(), data_type, nullable)
        })
        .collect();
    let constant = Arc::new(Plan { node: Node::Constant { rows: constants }, schema: schema(columns) });
    match computed.is_empty() {
        true => Ok(constant),
        false => union(std::iter::once(constant).chain(computed).collect()),
    }
}

fn literal_row(row: &[Expr], types: &[DataType]) -> Option<Vec<ScalarValue>> {
    row.iter()
        .zip(types)
        .map(|(expr, data_type)| match expr {
            Expr::Literal(value, _) if value.data_type() == *data_type => Some(value.clone()),
            Expr::Literal(value, _) => value.cast_to(data_type).ok(),
            Expr::Alias(alias) => match alias.expr.as_ref() {
                Expr::Literal(value, _) => value.cast_to(data_type).ok(),
                _ => None,
            },
            _ => None,
        })
        .collect()
}

/// One row without columns.
fn unit() -> Arc<Plan> {
    Arc::new(Plan { node: Node::Constant { rows: vec![vec![]] }, schema: schema(vec![]) })
}

/// `SELECT` without `FROM`, or a relation known to be empty.
pub(super) fn empty(empty: &EmptyRelation) -> Arc<Plan> {
    if empty.produce_one_row {
        return unit();
    }
    let columns = drafts(&empty.schema)
        .into_iter()
        .map(|(name, data_type, nullable)| (name, canonical(&data_type), nullable))
        .collect();
    Arc::new(Plan { node: Node::Constant { rows: vec![] }, schema: schema(columns) })
}

/// The rows of all inputs; unions below are taken in.
pub(super) fn union(inputs: Vec<Arc<Plan>>) -> Result<Arc<Plan>> {
    let mut flat: Vec<Arc<Plan>> = Vec::new();
    for input in align(inputs)? {
        match &input.node {
            Node::Union { inputs } => flat.extend(inputs.iter().cloned()),
            _ => flat.push(input),
        }
    }
    if flat.len() == 1 {
        return Ok(flat.remove(0));
    }
    let Some(first) = flat.first() else {
        return Err(SqlError::internal("a union has no inputs"));
    };
    let schema = flat.iter().fold(first.schema.clone(), |schema, input| either_null(&schema, &input.schema));
    Ok(Arc::new(Plan { node: Node::Union { inputs: flat }, schema }))
}

/// The inputs with their columns cast to common types.
pub(super) fn align(inputs: Vec<Arc<Plan>>) -> Result<Vec<Arc<Plan>>> {
    let Some(first) = inputs.first() else {
        return Ok(inputs);
    };
    let mut types: Vec<DataType> = first.schema.fields().iter().map(|f| f.data_type().clone()).collect();
    for input in &inputs[1..] {
        for (known, field) in types.iter_mut().zip(input.schema.fields()) {
            let common = union_type(known, field.data_type()).ok_or_else(|| {
                SqlError::new(
                    ErrorKind::Type,
                    format!("UNION types {} and {} cannot be matched", sql_name(known), sql_name(field.data_type())),
                )
                .with_hint(CAST_ONE_SIDE)
            })?;
            *known = canonical(&common);
        }
    }
    inputs
        .into_iter()
        .map(|input| {
            let columns = (0..types.len())
                .map(|at| {
                    let is = input.schema.field(at);
                    let expr = column(&input.schema, at);
                    let same = *is.data_type() == types[at];
                    (if same { expr } else { cast(expr, types[at].clone()) }, Some(is.name().clone()))
                })
                .collect();
            stage(input, vec![], columns)
        })
        .collect()
}

/// One row for each element of a list, or of several side by side.
pub(super) fn unnest(unnest: &Unnest, input: Arc<Plan>) -> Result<Arc<Plan>> {
    if !unnest.struct_type_columns.is_empty() {
        return Err(SqlError::unsupported("unnest() of a struct", "Name its fields, as in (s).field."));
    }
    if unnest.list_type_columns.iter().any(|(_, list)| list.depth != 1) {
        return Err(SqlError::unsupported(
            "unnest() of nested lists at once",
            "Unnest one level in each of several subqueries.",
        ));
    }
    let lists: Vec<usize> = unnest.list_type_columns.iter().map(|(at, _)| *at).collect();
    let columns = drafts(&input.schema)
        .into_iter()
        .enumerate()
        .map(|(n, (name, data_type, nullable))| match &data_type {
            DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _)
                if lists.contains(&n) =>
            {
                (name, canonical(element.data_type()), true)
            }
            _ => (name, data_type, nullable),
        })
        .collect();
    let plan = Arc::new(Plan {
        node: Node::Unnest { input, columns: lists, outer: unnest.options.preserve_nulls() },
        schema: schema(columns),
    });
    Ok(stage::take(plan, &unnest.dependency_indices))
}

/// A relation of `public` that another of its name hides is named with its schema.
fn catalog_name(name: &str) -> String {
    name.strip_prefix("public.").unwrap_or(name).to_string()
}
