//! `jsonb_to_record(doc) AS r(a int, b text)`: members of a document as columns that the alias
//! declares, and `jsonb_populate_record(NULL::t, doc)`, as columns of a table.
//!
//! ```text
//!     jsonb_populate_record(NULL::t, doc)   jsonb_to_record(doc) AS r(columns of t)
//!     jsonb_to_record(doc) AS r(a int)      (SELECT CAST(doc ->> 'a' AS int) AS a) AS r
//!     jsonb_to_recordset(doc) AS r(a int)   (SELECT CAST(value ->> 'a' AS int) AS a
//!                                            FROM jsonb_array_elements(doc) AS e(value)) AS r
//! ```

use arrow::datatypes::FieldRef;
use datafusion_expr::sqlparser::ast::{
    DataType, Expr, Ident, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, Value,
};

use super::hooks::Names;
use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::types::column_type_name;
use crate::syntax::names::{fold, object_name};
use crate::syntax::parse::parse_expr;
use crate::syntax::relation_calls::called_in_from;
use crate::syntax::template::template;

/// Puts the query in the place of the call.
///
/// # Errors
/// `Invalid` without declared columns, `Unsupported` for columns of arrays.
pub(super) fn rewrite(factor: &mut TableFactor, names: &Names) -> Result<()> {
    name_populated(factor, names)?;
    let Some((name, args)) = called_in_from(factor) else { return Ok(()) };
    let name = name.to_lowercase();
    let kind = if name.starts_with("jsonb") { "jsonb" } else { "json" };
    let is_set = match (name.strip_prefix(kind), args.as_slice()) {
        (Some("_to_record"), [_]) => false,
        (Some("_to_recordset"), [_]) => true,
        _ => return Ok(()),
    };
    let document = format!("CAST({} AS {kind})", args[0]);
    let TableFactor::Table { alias, .. } = factor else { return Ok(()) };
    let alias = alias.clone().filter(|alias| !alias.columns.is_empty()).ok_or_else(|| {
        SqlError::new(ErrorKind::Invalid, "a column definition list is required for functions returning \"record\"")
            .with_hint(format!("Declare the columns: {name}(..) AS r(a int, b text)."))
    })?;
    let of = if is_set { "__element.value" } else { document.as_str() };
    let members: Vec<String> = alias.columns.iter().map(|column| member(column, of)).collect::<Result<_>>()?;
    let from = match is_set {
        true => format!(" FROM {kind}_array_elements({document}) AS __element(value)"),
        false => String::new(),
    };
    let subquery = template(&format!("SELECT {}{from}", members.join(", ")))?;
    let alias = Some(TableAlias { columns: vec![], ..alias });
    *factor = TableFactor::Derived { lateral: true, subquery, alias, sample: None };
    Ok(())
}

/// The call that declares the columns of a table in place of one that names the table.
fn name_populated(factor: &mut TableFactor, names: &Names) -> Result<()> {
    let Some((name, args)) = called_in_from(factor) else { return Ok(()) };
    let name = name.to_lowercase();
    let (true, [row, document]) = (POPULATING.contains(&name.as_str()), args.as_slice()) else { return Ok(()) };
    let target = name.replace("_populate_", "_to_");
    let columns = columns_of(row, names)?;
    let TableFactor::Table { alias, .. } = &*factor else { return Ok(()) };
    let own = alias.as_ref().map_or_else(|| Ident::new(&name), |alias| alias.name.clone());
    if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
        let hint = "Name the columns in the select list: SELECT r.a AS b FROM ..";
        return Err(SqlError::unsupported(format!("other names for the columns of {name}()"), hint));
    }
    let column = |(column, is): &(String, String)| format!("{} {is}", Ident::with_quote('"', column));
    let declared: Vec<String> = columns.iter().map(column).collect();
    let query = template(&format!("SELECT 1 FROM {target}({document}) AS {own}({})", declared.join(", ")))?;
    if let SetExpr::Select(select) = *query.body
        && let Some(from) = select.from.into_iter().next()
    {
        *factor = from.relation;
    }
    Ok(())
}

/// Functions that read members as columns of a table.
const POPULATING: [&str; 4] =
    ["json_populate_record", "json_populate_recordset", "jsonb_populate_record", "jsonb_populate_recordset"];

/// A member of a document as a value of a column of a table: `(jsonb_populate_record(NULL::t,
/// doc)).a`.
///
/// # Errors
/// As for the call in FROM.
pub(super) fn populated(name: &str, args: &[&Expr], names: &Names) -> Result<Option<Vec<(String, Expr)>>> {
    let (true, [row, document]) = (matches!(name, "json_populate_record" | "jsonb_populate_record"), args) else {
        return Ok(None);
    };
    let kind = if name.starts_with("jsonb") { "jsonb" } else { "json" };
    let of = format!("CAST({document} AS {kind})");
    let columns = columns_of(row, names)?.into_iter();
    let column = |(column, is): (String, String)| {
        let operator = if matches!(is.as_str(), "json" | "jsonb") { "->" } else { "->>" };
        let key = column.replace('\'', "''");
        Ok((column, parse_expr(&format!("CAST({of} {operator} '{key}' AS {is})"))?))
    };
    columns.map(column).collect::<Result<Vec<_>>>().map(Some)
}

/// The columns of the table whose NULL the first argument is, and their types.
fn columns_of(row: &Expr, names: &Names) -> Result<Vec<(String, String)>> {
    let named = match row {
        Expr::Cast { expr, data_type: DataType::Custom(name, _), .. } if matches!(expr.as_ref(), Expr::Value(value) if matches!(value.value, Value::Null)) => {
            object_name(name).ok()
        }
        _ => None,
    };
    let relation = named.and_then(|name| {
        let catalog = names.catalog?;
        catalog.relation(&catalog.own(&name).unwrap_or(name))
    });
    let Some(relation) = relation else {
        let hint = "Write jsonb_populate_record(NULL::t, document) with the name of a table, or declare the columns: jsonb_to_record(document) AS r(a int).";
        return Err(SqlError::unsupported("a record that is not NULL of a table's type", hint));
    };
    let column = |field: &FieldRef| (field.name().clone(), column_type_name(field));
    Ok(relation.schema.fields().iter().map(column).collect())
}

fn member(column: &TableAliasColumnDef, of: &str) -> Result<String> {
    let name = fold(&column.name);
    let Some(data_type) = &column.data_type else {
        return Err(SqlError::new(ErrorKind::Syntax, format!("column \"{name}\" of a record has no type")));
    };
    let key = name.replace('\'', "''");
    let alias = &column.name;
    Ok(match data_type {
        DataType::JSON | DataType::JSONB => format!("CAST({of} -> '{key}' AS {data_type}) AS {alias}"),
        DataType::Array(_) => {
            let hint = "Declare the column as jsonb, and take its elements: jsonb_array_elements(r.a).";
            return Err(SqlError::unsupported(format!("column \"{name}\" of a record, which is an array"), hint));
        }
        _ => format!("CAST({of} ->> '{key}' AS {data_type}) AS {alias}"),
    })
}
