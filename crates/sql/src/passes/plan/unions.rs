//! Columns of several types in `UNION` and `VALUES`.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::metadata::FieldMetadata;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, DFSchemaRef, Result as DfResult, ScalarValue, plan_err};
use datafusion_expr::logical_plan::{Distinct, LogicalPlan, LogicalPlanBuilder, Projection, Union};
use datafusion_expr::{Expr, ExprSchemable, cast, lit};

use crate::error::{ErrorKind, SqlError};
use crate::functions::conversions::ByteaIn;
use crate::functions::decimal_text::decimal;
use crate::functions::enumerations::label_of;
use crate::functions::table::call;
use crate::passes::expr::matched::{Choice, misfit};
use crate::passes::plan::conform::{conform, types_of};
use crate::resolve::common_types::{
    float_among, float_of_numbers, plain_of_lists, plain_of_numbers, timestamp_among_dates, union_type,
};
use crate::resolve::documents::{DocumentForm, form_of, kept_form_of};
use crate::resolve::type_marks::EnumMark;
use crate::resolve::type_names::{is_number, sql_name};
use crate::type_words::CAST_ONE_SIDE;

/// Text beside other types in a UNION: literals are read as the other type, as in PostgreSQL;
/// DataFusion would make text of all.
pub(crate) fn match_unions(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    Ok(plan
        .transform_up_with_subqueries(|node| match node {
            LogicalPlan::Union(union) => match_union(union),
            other => Ok(Transformed::no(other)),
        })?
        .data)
}

fn match_union(union: Union) -> DfResult<Transformed<LogicalPlan>> {
    let type_of = |input: &LogicalPlan, at: usize| input.schema().field(at).data_type().clone();
    let mut inputs = union.inputs.clone();
    let n = inputs.iter().map(|input| input.schema().fields().len()).min().unwrap_or(0);
    let mut changed = false;
    check_branches("UNION", &inputs.iter().map(Arc::as_ref).collect::<Vec<_>>())?;
    // Literals beside documents, uuids and labels are such.
    let has_marks = |input: &&Arc<LogicalPlan>| input.schema().fields().iter().any(|field| reads_literals(field));
    let marked: Vec<DFSchemaRef> = inputs.iter().filter(has_marks).map(|input| input.schema().clone()).collect();
    for marked in marked {
        for input in &mut inputs {
            let read = mark_beside(input.as_ref().clone(), &marked)?;
            changed |= read != **input;
            *input = Arc::new(read);
        }
    }
    for at in 0..n {
        let mut types = inputs.iter().map(|input| type_at(input, at)).filter(is_read_from_text);
        let Some(wanted) = types.next().map(|first| types.fold(first, stronger)) else { continue };
        for input in &mut inputs {
            let is = type_of(input, at);
            if !is.is_string() {
                continue;
            }
            let Some(read) = with_literal_read(input, at, &wanted)? else {
                let (is, wanted) = (sql_name(&is), sql_name(&wanted));
                let message = format!("UNION types {wanted} and {is} cannot be matched");
                return Err(SqlError::new(ErrorKind::Type, message).with_hint(CAST_ONE_SIDE).into());
            };
            *input = Arc::new(read);
            changed = true;
        }
    }
    if !changed {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}

/// The type of a column; of a union, which is told as its first branch is, that of all branches.
fn type_at(plan: &LogicalPlan, at: usize) -> DataType {
    match plan {
        LogicalPlan::Union(union) => {
            let types = union.inputs.iter().map(|input| type_at(input, at));
            types.filter(is_read_from_text).reduce(stronger).unwrap_or(DataType::Utf8View)
        }
        LogicalPlan::Distinct(Distinct::All(input)) => type_at(input, at),
        other => other.schema().field(at).data_type().clone(),
    }
}

/// The type that values of two types have beside each other.
fn stronger(one: DataType, other: DataType) -> DataType {
    union_type(&one, &other).unwrap_or(one)
}

/// Whether literals beside a column are read as values of its type.
fn reads_literals(field: &Field) -> bool {
    form_of(field).is_some() || kept_form_of(field).is_some() || EnumMark::of(field).is_some()
}

/// The text of a column that is a literal.
fn literal_at(plan: &LogicalPlan, at: usize) -> Option<String> {
    let LogicalPlan::Projection(projection) = plan else { return None };
    match projection.expr.get(at)?.clone().unalias() {
        Expr::Literal(literal, None) => literal.try_as_str().flatten().map(str::to_owned),
        _ => None,
    }
}

/// Refuses branches whose columns have no type in common.
pub(crate) fn check_branches(operation: &str, branches: &[&LogicalPlan]) -> DfResult<()> {
    let n = branches.iter().map(|branch| branch.schema().fields().len()).min().unwrap_or(0);
    let mut problems =
        (0..n).filter_map(|at| misfit(operation, branches.iter().map(|branch| Choice::of_column(branch, at))));
    match problems.next() {
        Some(problem) => Err(SqlError::new(ErrorKind::Type, problem).with_hint(CAST_ONE_SIDE).into()),
        None => Ok(()),
    }
}

/// Two plans, each with its literals in quotes read as values of the other's columns.
pub(crate) fn read_beside(left: LogicalPlan, right: LogicalPlan) -> DfResult<(LogicalPlan, LogicalPlan)> {
    let (of_left, of_right) = (types_of(&left), types_of(&right));
    let read = |mut plan: LogicalPlan, of: &[DataType], other: &[DataType]| -> DfResult<LogicalPlan> {
        for at in 0..of.len().min(other.len()) {
            if of[at].is_string() && is_read_from_text(&other[at]) {
                plan = with_literal_read(&plan, at, &other[at])?.unwrap_or(plan);
            }
        }
        Ok(plan)
    };
    let (left, right) = (read(left, &of_left, &of_right)?, read(right, &of_right, &of_left)?);
    let (marks_of_left, marks_of_right) = (left.schema().clone(), right.schema().clone());
    Ok((mark_beside(left, &marks_of_right)?, mark_beside(right, &marks_of_left)?))
}

/// The plan with its literals read as the documents, uuids, labels and `char(n)` that they stand
/// beside.
fn mark_beside(mut plan: LogicalPlan, other: &DFSchema) -> DfResult<LogicalPlan> {
    for at in 0..plan.schema().fields().len().min(other.fields().len()) {
        let LogicalPlan::Projection(projection) = &plan else { break };
        let (own, beside) = (plan.schema().field(at), other.field(at));
        let Some(text) = literal_at(&plan, at) else { continue };
        let read = match (form_of(beside), kept_form_of(beside), EnumMark::of(beside)) {
            _ if !own.data_type().is_string() => continue,
            (Some(DocumentForm::Jsonb), ..) => call("jsonb_in", vec![lit(text)]),
            (None, None, Some(mark)) if mark.place(&text).is_none() => return plan_err!("{}", mark.misfit(&text)),
            (None, None, Some(mark)) => label_of(lit(text), &mark),
            (None, Some(form), _) => {
                let Some(fitted) = form.fit(&text) else { return plan_err!("{}", form.misfit(&text)) };
                let fitted = fitted.into_owned();
                Expr::Literal(ScalarValue::Utf8View(Some(fitted)), Some(FieldMetadata::from(beside.metadata())))
            }
            _ => continue,
        };
        let mut exprs = projection.expr.clone();
        exprs[at] = read.alias(own.name());
        plan = LogicalPlan::Projection(Projection::try_new(exprs, projection.input.clone())?);
    }
    Ok(plan)
}

/// Exact numbers beside floats in a UNION are floats, those beside plain numerics are these, and
/// dates beside timestamps are timestamps, as in PostgreSQL; DataFusion would make decimals of all,
/// or nanoseconds.
pub(crate) fn match_branches(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(union) = node else { return Ok(Transformed::no(node)) };
    let mut types: Vec<Vec<DataType>> = union.inputs.iter().map(|input| types_of(input)).collect();
    let n = types.iter().map(Vec::len).min().unwrap_or(0);
    for at in 0..n {
        let column: Vec<DataType> = types.iter().map(|types| types[at].clone()).collect();
        let common = float_of_numbers(&column).or_else(|| timestamp_among_dates(&column));
        let common = common.or_else(|| plain_of_numbers(&column)).or_else(|| plain_of_lists(&column));
        if let Some(common) = common {
            let values = types.iter_mut().map(|types| &mut types[at]).filter(|is| !is.is_null());
            values.for_each(|is| *is = common.clone());
        }
    }
    let is_kept = |(input, types): (&Arc<LogicalPlan>, &Vec<DataType>)| types_of(input) == *types;
    let is_stale = union.schema.fields().iter().zip(types.iter().flatten()).any(|(field, is)| field.data_type() != is);
    if union.inputs.iter().zip(&types).all(is_kept) && !is_stale {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let conformed = union.inputs.iter().zip(&types).map(|(input, types)| {
        let names: Vec<String> = input.schema().fields().iter().map(|field| field.name().clone()).collect();
        conform(input.as_ref().clone(), &types_of(input), types, &names).map(Arc::new)
    });
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(conformed.collect::<DfResult<_>>()?)?)))
}

/// The same in VALUES, whose rows have been cast to a common type already.
pub(crate) fn match_values(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Values(values) = node else { return Ok(Transformed::no(node)) };
    let mut rows = values.values.clone();
    let mut is_changed = false;
    for (at, field) in values.schema.fields().iter().enumerate() {
        let is = field.data_type();
        if !is.is_decimal() && !is.is_temporal() {
            continue;
        }
        let given = |value: &Expr| match value {
            Expr::Cast(cast) if cast.field.data_type() == field.data_type() => cast.expr.as_ref().clone(),
            other => other.clone(),
        };
        let type_of = |row: &Vec<Expr>| given(&row[at]).get_type(&values.schema);
        let types = values.values.iter().map(type_of).collect::<DfResult<Vec<_>>>()?;
        if is.is_temporal() {
            // (What is computed of moments may have another type since it was settled.)
            let settled = types.iter().find(|of| !of.is_null()).filter(|first| first.is_temporal() && *first != is);
            if let Some(settled) = settled.filter(|first| types.iter().all(|of| of.is_null() || of == *first)) {
                rows.iter_mut().for_each(|row| {
                    let value = given(&row[at]);
                    row[at] = cast(value, settled.clone());
                });
                is_changed = true;
            }
            continue;
        }
        if let Some(float) = float_among(&types) {
            rows.iter_mut().for_each(|row| row[at] = cast(given(&row[at]), float.clone()));
            is_changed = true;
        }
    }
    if !is_changed {
        return Ok(Transformed::no(LogicalPlan::Values(values)));
    }
    Ok(Transformed::yes(LogicalPlanBuilder::values(rows)?.build()?))
}

fn is_read_from_text(data_type: &DataType) -> bool {
    is_number(data_type)
        || data_type.is_temporal()
        || matches!(data_type, DataType::Boolean | DataType::List(_) | DataType::BinaryView | DataType::Binary)
}

/// The plan with the literal that is this column read as another type; `None` if the column is no
/// literal.
fn with_literal_read(plan: &LogicalPlan, at: usize, wanted: &DataType) -> DfResult<Option<LogicalPlan>> {
    let LogicalPlan::Projection(projection) = plan else { return Ok(None) };
    let mut exprs = projection.expr.clone();
    let name = exprs[at].schema_name().to_string();
    let literal = exprs[at].clone().unalias();
    if !matches!(literal, Expr::Literal(..)) {
        return Ok(None);
    }
    let read = match (wanted, literal_at(plan, at).as_deref().and_then(decimal)) {
        // (A decimal of its own digits is not rounded to those of the others.)
        (wanted, Some(own)) if wanted.is_decimal() => Expr::Literal(own, None),
        (DataType::BinaryView | DataType::Binary, _) => ByteaIn::udf().call(vec![literal]),
        _ => cast(literal, wanted.clone()),
    };
    exprs[at] = read.alias(name);
    Ok(Some(LogicalPlan::Projection(Projection::try_new(exprs, projection.input.clone())?)))
}
