//! `jsonb_to_record(doc) AS r(a int, b text)`: members of a document as columns that the alias
//! declares.
//!
//! ```text
//!     jsonb_to_record(doc) AS r(a int)      (SELECT CAST(doc ->> 'a' AS int) AS a) AS r
//!     jsonb_to_recordset(doc) AS r(a int)   (SELECT CAST(value ->> 'a' AS int) AS a
//!                                            FROM jsonb_array_elements(doc) AS e(value)) AS r
//! ```

use datafusion_expr::sqlparser::ast::{DataType, TableAlias, TableAliasColumnDef, TableFactor};

use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::names::fold;
use crate::syntax::relation_calls::called_in_from;
use crate::syntax::template::template;

/// Puts the query in the place of the call.
///
/// # Errors
/// `Invalid` without declared columns, `Unsupported` for columns of arrays.
pub(super) fn rewrite(factor: &mut TableFactor) -> Result<()> {
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
