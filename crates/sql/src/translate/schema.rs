//! Schemas of plans: unqualified, unique names; types that batches carry.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields};
use datafusion_common::{DFSchema, DFSchemaRef, TableReference};
use datafusion_expr::Expr;

/// A computed column's name is cut at this many characters; columns are addressed by position,
/// names are for people.
const NAME_CHARS_MAX: usize = 60;

/// A name is cut only if it is so much longer: one that was cut and numbered stays what it is when
/// it comes to another schema.
const NAME_CHARS_SPARE: usize = 8;

/// A column to be: name, type, nullability.
pub(crate) type Draft = (String, DataType, bool);

/// The schema of these columns; repeated names get a number.
pub(crate) fn schema(columns: Vec<Draft>) -> DFSchemaRef {
    let mut used: HashMap<String, usize> = HashMap::new();
    let mut fields: Vec<Field> = Vec::with_capacity(columns.len());
    for (name, data_type, nullable) in columns {
        let name = unused(&mut used, shortened(name));
        fields.push(Field::new(name, data_type, nullable));
    }
    let schema = DFSchema::from_unqualified_fields(Fields::from(fields), HashMap::new())
        .expect("repeated names were numbered apart");
    Arc::new(schema)
}

fn unused(used: &mut HashMap<String, usize>, name: String) -> String {
    let mut candidate = name.clone();
    while used.contains_key(&candidate) {
        let n = used.entry(name.clone()).or_insert(0);
        *n += 1;
        candidate = format!("{name}_{n}");
    }
    used.insert(candidate.clone(), 0);
    candidate
}

fn shortened(name: String) -> String {
    let mut from_limit = name.char_indices().skip(NAME_CHARS_MAX);
    match (from_limit.next(), from_limit.nth(NAME_CHARS_SPARE)) {
        (Some((at, _)), Some(_)) => format!("{}..", &name[..at]),
        _ => name,
    }
}

/// The columns of a schema, to build another from.
pub(crate) fn drafts(schema: &DFSchema) -> Vec<Draft> {
    schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone(), field.is_nullable())).collect()
}

/// The columns of the first schema, nullable where either is.
pub(crate) fn either_null(first: &DFSchema, second: &DFSchema) -> DFSchemaRef {
    let columns = drafts(first)
        .into_iter()
        .zip(second.fields())
        .map(|((name, data_type, nullable), other)| (name, data_type, nullable || other.is_nullable()))
        .collect();
    schema(columns)
}

/// The schema with its first columns renamed. Names that repeat are kept, and told apart by a
/// numbered qualifier.
pub(crate) fn rename(schema: &DFSchema, names: &[String]) -> DFSchemaRef {
    let name_of = |n: usize| names.get(n).unwrap_or_else(|| schema.field(n).name()).clone();
    let all: Vec<String> = (0..schema.fields().len()).map(name_of).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    all.iter().for_each(|name| *counts.entry(name).or_default() += 1);
    let fields = schema
        .fields()
        .iter()
        .enumerate()
        .map(|(n, field)| {
            let repeated = counts[all[n].as_str()] > 1;
            let qualifier = repeated.then(|| TableReference::bare(format!("{}", n + 1)));
            let field = Field::new(&all[n], field.data_type().clone(), field.is_nullable());
            (qualifier, Arc::new(field))
        })
        .collect();
    let renamed = DFSchema::new_with_metadata(fields, HashMap::new()).expect("repeated names were qualified apart");
    Arc::new(renamed)
}

/// The name a user gave to an expression; names that the planner made up are none.
pub(crate) fn alias_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Alias(alias) if alias.name.starts_with("__") && matches!(alias.expr.as_ref(), Expr::Literal(..)) => {
            Some(function_within(alias.name.trim_start_matches('_')).to_string())
        }
        Expr::Alias(alias) if !alias.name.starts_with("__") && !alias.name.contains(['(', '.', ' ']) => {
            Some(alias.name.clone())
        }
        _ => None,
    }
}

/// The function whose answer is unnested, of the name that the planner has made for that.
fn function_within(name: &str) -> &str {
    match name.strip_prefix("unnest_placeholder(") {
        Some(call) => call.split('(').next().unwrap_or(call),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_cut_and_numbered_stays_in_other_schemas() {
        let long = "x".repeat(200);
        let columns = vec![(long.clone(), DataType::Int64, false); 3];
        let first = schema(columns);
        assert_eq!(first.field(2).name(), &format!("{}.._2", &long[..NAME_CHARS_MAX]));
        let second = schema(drafts(&first).into_iter().skip(1).collect());
        let names = |of: &DFSchema| of.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
        assert_eq!(names(&second), names(&first)[1..]);
    }
}
