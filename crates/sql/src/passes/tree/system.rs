//! Names of PostgreSQL's system schemas.
//!
//! The catalog has system relations under plain names (`pg_class`), and those of the other schema
//! under both (`information_schema.tables`). Functions, operators and types of `pg_catalog` are
//! those without a schema.

use datafusion_expr::sqlparser::ast::{
    self, BinaryOperator, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident,
    JoinOperator, ObjectName, ObjectNamePart, OrderBy, OrderByKind, Select, SelectItem, SetExpr, TableAlias,
    TableFactor, TableWithJoins, Value,
};

use super::expression_names::item_name;
use super::hooks::Names;
use crate::error::Result;
use crate::functions::table::FUNCTIONS;
use crate::resolve::catalog::Catalog;
use crate::resolve::user_types::{cast_text, enum_call};
use crate::syntax::names::{fold, object_name};
use crate::syntax::parse::parse_expr;
use crate::syntax::relation_calls::called;
use crate::syntax::template::template;
use crate::syntax::walk::look_outside_queries;

const CATALOG: &str = "pg_catalog";
const INFORMATION: &str = "information_schema";
const PUBLIC: &str = "public";

/// Gives a table, or a function called as one, the name that the catalog knows.
pub(super) fn rename_table(factor: &mut TableFactor, names: &Names) {
    let TableFactor::Table { name, alias, .. } = factor else { return };
    strip(name);
    let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(fold)).collect();
    let (known, own) = match parts.as_deref() {
        Some([table]) if names.reachable().iter().all(|(known, _)| known != table) => {
            let Some(known) = names.catalog.and_then(|catalog| catalog.own(table)) else { return };
            (known, table.clone())
        }
        // (A client's own table may hide one of that name.)
        Some([.., schema, table]) if schema == PUBLIC => {
            if names.catalog.is_none_or(|catalog| catalog.own(table).is_none()) {
                return;
            }
            (format!("{PUBLIC}.{table}"), table.clone())
        }
        // (A database before the schema says nothing.)
        Some([.., schema, table]) => (format!("{schema}.{table}"), table.clone()),
        _ => return,
    };
    let own = Ident::with_quote('"', own);
    alias.get_or_insert_with(|| TableAlias { explicit: true, name: own, columns: vec![], at: None });
    *name = ObjectName::from(vec![Ident::with_quote('"', known)]);
}

/// A sequence in FROM is a row of where it stands.
///
/// # Errors
/// None.
pub(super) fn read_sequence(factor: &mut TableFactor, names: &Names) -> Result<()> {
    let TableFactor::Table { name, alias, args: None, .. } = factor else { return Ok(()) };
    let (Some(catalog), Ok(full)) = (names.catalog, object_name(name)) else { return Ok(()) };
    if names.reachable().iter().any(|(known, _)| *known == full)
        || catalog.relation(&full).is_some()
        || !catalog.is_sequence(&full)
    {
        return Ok(());
    }
    let literal = full.replace('\'', "''");
    let own = full.rsplit_once('.').map_or(full.as_str(), |(_, own)| own);
    let shown = alias.as_ref().map_or_else(|| Ident::with_quote('"', own), |alias| alias.name.clone());
    let query = template(&format!(
        "SELECT 1 FROM (SELECT __sequence_last('{literal}') AS last_value, CAST(0 AS bigint) AS log_cnt, \
         __sequence_called('{literal}') AS is_called) AS {shown}"
    ))?;
    if let SetExpr::Select(select) = *query.body
        && let Some(from) = select.from.into_iter().next()
    {
        *factor = from.relation;
    }
    Ok(())
}

/// Gives `schema.table.*` the name that the table has in its query.
pub(super) fn rename_wildcards(select: &mut Select) {
    for item in &mut select.projection {
        if let SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
            && name.0.len() > 1
        {
            name.0.drain(..name.0.len() - 1);
        }
    }
}

/// `ARRAY(query)` of a query that has no rows: an empty list.
pub(super) fn empty_array(expr: &mut Expr, catalog: &dyn Catalog) {
    if let Expr::Function(function) = expr
        && let FunctionArguments::Subquery(query) = &function.args
        && let SetExpr::Select(select) = query.body.as_ref()
        && has_no_rows(select, catalog)
        && let Ok(empty) = parse_expr("CAST('{}' AS text[])")
    {
        *expr = empty;
    }
}

/// Writes casts to users' types out, and functions of enumerations.
///
/// # Errors
/// Of a domain's condition that cannot be read.
pub(super) fn user_types(expr: &mut Expr, catalog: &dyn Catalog) -> Result<()> {
    let text = match expr {
        Expr::Cast { expr: value, data_type: data_type @ (DataType::Custom(..) | DataType::Array(_)), .. } => {
            cast_text(value, data_type, catalog)?
        }
        Expr::TypedString(typed) if matches!(typed.data_type, DataType::Custom(..)) => {
            cast_text(&Expr::Value(typed.value.clone()), &typed.data_type, catalog)?
        }
        Expr::Function(_) => called(expr).and_then(|(name, args)| match name.to_lowercase() {
            name if name.starts_with("enum_") => enum_call(&name, &args, catalog),
            _ => None,
        }),
        _ => None,
    };
    if let Some(text) = text {
        let is_call = matches!(expr, Expr::Function(_));
        *expr = parse_expr(&text)?;
        return if is_call { user_types(expr, catalog) } else { Ok(()) };
    }
    Ok(())
}

/// Takes the system schema out of an expression's names.
pub(super) fn rename_parts(expr: &mut Expr, names: &Names) {
    match expr {
        Expr::Function(function) => {
            strip(&mut function.name);
        }
        Expr::CompoundIdentifier(parts) if parts.len() > 2 => {
            let (schema, table) = (fold(&parts[0]), fold(&parts[1]));
            let is_known = || {
                let known = format!("{schema}.{table}");
                names.catalog.is_some_and(|catalog| catalog.relation(&known).is_some())
            };
            if schema == CATALOG || schema == INFORMATION || schema == PUBLIC || is_known() {
                parts.remove(0);
            }
        }
        Expr::BinaryOp { op, .. } => {
            if let Some(plain) = plain_operator(op) {
                *op = plain;
            }
        }
        Expr::Collate { collation, .. } => {
            strip(collation);
        }
        _ => {}
    }
}

/// Takes `pg_catalog.` away.
fn strip(name: &mut ObjectName) {
    let schema = |part: &ObjectNamePart| part.as_ident().map(fold);
    if name.0.len() > 1 && name.0.first().and_then(schema).as_deref() == Some(CATALOG) {
        name.0.remove(0);
    }
}

/// `OPERATOR(pg_catalog.~)` as `~`.
fn plain_operator(op: &BinaryOperator) -> Option<BinaryOperator> {
    let BinaryOperator::PGCustomBinaryOperator(parts) = op else { return None };
    let (operator, schema) = parts.split_last()?;
    if !matches!(schema, [] | [_]) || schema.first().is_some_and(|schema| !schema.eq_ignore_ascii_case(CATALOG)) {
        return None;
    }
    match parse_expr(&format!("a {operator} b")).ok()? {
        Expr::BinaryOp { op, .. } => Some(op),
        _ => None,
    }
}

/// A SELECT from a system relation that never has rows needs no plan: its columns are NULL, and its
/// condition is false.
pub(super) fn empty(select: &mut Select, order_by: Option<&mut OrderBy>, catalog: &dyn Catalog) {
    let is_plain = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    if !has_no_rows(select, catalog) || !select.projection.iter().all(is_plain) {
        return;
    }
    for item in &mut select.projection {
        let name = item_name(item).unwrap_or_default();
        let alias = Ident::with_quote('"', name);
        *item = SelectItem::ExprWithAlias { expr: Expr::value(Value::Null), alias };
    }
    select.from.clear();
    select.selection = Some(Expr::value(Value::Boolean(false)));
    select.group_by = GroupByExpr::Expressions(vec![], vec![]);
    select.having = None;
    select.distinct = None;
    if let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = order_by {
        for key in keys {
            key.expr = Expr::value(Value::Number("1".into(), false));
        }
    }
}

/// Whether nothing can come out: a relation without rows is joined so that there is no row without
/// it, and no aggregate makes a row of nothing.
fn has_no_rows(select: &Select, catalog: &dyn Catalog) -> bool {
    let groups = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if !keys.is_empty());
    let is_empty = select.from.iter().any(|from| joined_is_empty(from, catalog))
        || select.selection.as_ref().is_some_and(|condition| is_never_true(condition, select, catalog));
    is_empty && (groups || !has_aggregate(select))
}

/// Whether a condition over system relations wants a column not to be NULL that always is.
fn is_never_true(condition: &Expr, select: &Select, catalog: &dyn Catalog) -> bool {
    let is_system = |from: &TableWithJoins| match &from.relation {
        TableFactor::Table { name, .. } => {
            let mut name = name.clone();
            strip(&mut name);
            name.to_string().starts_with("pg_") && catalog.relation(&name.to_string()).is_some()
        }
        _ => false,
    };
    match condition {
        Expr::BinaryOp { op: BinaryOperator::And, left, right } => {
            is_never_true(left, select, catalog) || is_never_true(right, select, catalog)
        }
        Expr::IsNotNull(value) => is_always_null(value) && select.from.iter().all(is_system),
        _ => false,
    }
}

fn joined_is_empty(from: &TableWithJoins, catalog: &dyn Catalog) -> bool {
    from.joins.iter().fold(factor_is_empty(&from.relation, catalog), |left, join| {
        let right = factor_is_empty(&join.relation, catalog);
        match join.join_operator {
            JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => left || right,
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => left,
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => right,
            JoinOperator::FullOuter(_) => left && right,
            _ => false,
        }
    })
}

fn factor_is_empty(factor: &TableFactor, catalog: &dyn Catalog) -> bool {
    match factor {
        TableFactor::UNNEST { array_exprs, .. } => array_exprs.iter().all(is_always_null),
        TableFactor::Table { name, args: Some(call), .. } if name.to_string().ends_with("unnest") => {
            let values: Option<Vec<bool>> = call
                .args
                .iter()
                .map(|arg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(is_always_null(value)),
                    _ => None,
                })
                .collect();
            values.is_some_and(|values| values.into_iter().all(|is_null| is_null))
        }
        TableFactor::Table { name, args: None, .. } => {
            let mut name = name.clone();
            strip(&mut name);
            let parts: Vec<String> = name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
            catalog.never_has_rows(&parts.join("."))
        }
        TableFactor::NestedJoin { table_with_joins, .. } => joined_is_empty(table_with_joins, catalog),
        TableFactor::Derived { subquery, .. } => match subquery.body.as_ref() {
            SetExpr::Select(select) => has_no_rows(select, catalog),
            _ => false,
        },
        _ => false,
    }
}

/// Lists of system relations that are NULL in each row: options and privileges.
fn is_always_null(value: &Expr) -> bool {
    const NULLS: [&str; 9] = [
        "reloptions",
        "relacl",
        "attacl",
        "attoptions",
        "attfdwoptions",
        "nspacl",
        "datacl",
        "spcoptions",
        "proconfig",
    ];
    let column = match value {
        Expr::Identifier(column) => column,
        Expr::CompoundIdentifier(parts) => match parts.last() {
            Some(column) => column,
            None => return false,
        },
        _ => return false,
    };
    NULLS.contains(&fold(column).as_str())
}

/// Whether an aggregate is in the select list or in HAVING.
fn has_aggregate(select: &Select) -> bool {
    let mut found = false;
    let mut see = |expr: &Expr| {
        if let Expr::Function(function) = expr
            && function.over.is_none()
        {
            let mut name = function.name.clone();
            strip(&mut name);
            found |= FUNCTIONS.aggregate.contains_key(&name.to_string().to_lowercase());
        }
    };
    select.projection.iter().for_each(|item| look_outside_queries(item, &mut see));
    select.having.iter().for_each(|having| look_outside_queries(having, &mut see));
    found
}
