//! `SELECT t FROM t`, `count(t)`, `row_to_json(t)`, `(t).a`: the name of a table is its row.
//!
//! ```text
//!     t            named_struct('a', t.a, 'b', t.b)
//!     (t).a        t.a
//!     t IS NULL    (t.a, t.b) IS NULL
//!     e            e.value              beside jsonb_array_elements(..) e, whose rows are values
//! ```
//!
//! Law: a column of that name is meant before the table. Where an outer join makes up NULLs in
//! place of a table's rows such a row is NULL, and one of NULLs is not: a column tells them apart
//! (`made_up_rows`), or the name stays unknown.

use datafusion_expr::sqlparser::ast::{
    AccessExpr, CaseWhen, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, OrderBy, Select, TableFactor,
    Value,
};

use super::columns::{Known, factor_columns};
use super::made_up_rows::{MadeUp, made_up};
use super::series::gives_rows;
use datafusion_expr::sqlparser::ast::helpers::attached_token::AttachedToken;

use crate::error::{Result, SqlError};
use crate::functions::json::lists_of;
use crate::resolve::catalog::Catalog;
use crate::syntax::names::{fold, object_name};
use crate::syntax::relation_calls::call;
use crate::syntax::walk::change_outside_queries;

/// The function of names and values that make a row.
const NAMED_ROW: &str = "named_struct";

/// Writes the rows of a SELECT out.
///
/// # Errors
/// `Unsupported` for `t.*` as an argument where made up rows are not told from others.
pub(super) fn write_out(
    select: &mut Select,
    order_by: Option<&mut OrderBy>,
    known: &Known,
    catalog: &dyn Catalog,
) -> Result<()> {
    let factors = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    let of_values: Vec<String> = factors.clone().filter(|factor| has_values(factor)).filter_map(name_of).collect();
    let tables: Vec<(String, Option<Vec<String>>)> =
        factors.filter_map(|factor| Some((name_of(factor)?, factor_columns(factor, known, catalog)))).collect();
    let made_up: MadeUp = select.from.iter().flat_map(|from| made_up(from, name_of)).collect();
    if tables.is_empty() {
        return Ok(());
    }
    let is_column = |name: &str| {
        let has = |columns: &Option<Vec<String>>| {
            columns.as_ref().is_none_or(|columns| columns.iter().any(|column| column == name))
        };
        tables.iter().any(|(_, columns)| has(columns))
    };
    let row = |ident: &Ident| {
        let name = fold(ident);
        let (_, columns) = tables.iter().find(|(table, _)| *table == name)?;
        // (The value of a function that an outer join has made up is NULL, as its row is.)
        let is_told = of_values.contains(&name) || !matches!(made_up.get(&name), Some(None));
        columns.as_ref().filter(|_| is_told && !is_column(&name))
    };
    let written = |table: &Ident| {
        let columns = row(table)?;
        let text = |name: &String| Expr::value(Value::SingleQuotedString(name.clone()));
        let values = || columns.iter().flat_map(|column| [text(column), column_of(table, column)]).collect();
        Some(match (columns.as_slice(), made_up.get(&fold(table)).and_then(Option::as_ref)) {
            ([value], _) if of_values.contains(&fold(table)) => column_of(table, value),
            (_, None) => call(NAMED_ROW, values()),
            (_, Some(column)) => unless_null(column_of(table, column), call(NAMED_ROW, values())),
        })
    };
    let mut write = |expr: &mut Expr| {
        let written = match expr {
            Expr::CompoundFieldAccess { root, access_chain } => match (root.as_ref(), access_chain.as_slice()) {
                // (`t.r[1]` is a column of the table.)
                (Expr::Function(_), [AccessExpr::Dot(_), ..]) => {
                    if let Some(table) = table_of(root) {
                        **root = Expr::Identifier(table);
                    }
                    None
                }
                (Expr::Nested(inner), [AccessExpr::Dot(Expr::Identifier(field)), rest @ ..]) => {
                    let (field, rest) = (fold(field), rest.to_vec());
                    table_of(inner).map(|table| match rest.is_empty() {
                        true => column_of(&table, &field),
                        false => {
                            Expr::CompoundFieldAccess { root: Box::new(column_of(&table, &field)), access_chain: rest }
                        }
                    })
                }
                _ => None,
            },
            Expr::IsNull(value) => values_of(value).map(|values| Expr::IsNull(Box::new(Expr::Tuple(values)))),
            Expr::IsNotNull(value) => values_of(value).map(|values| Expr::IsNotNull(Box::new(Expr::Tuple(values)))),
            Expr::Identifier(table) => written(table),
            Expr::Function(function) => {
                let is_row = function.name.to_string().eq_ignore_ascii_case("row");
                if let FunctionArguments::List(list) = &mut function.args {
                    if is_row {
                        let arguments = std::mem::take(&mut list.args).into_iter();
                        list.args = arguments.flat_map(|argument| listed(argument, &tables)).collect();
                    }
                    let is_untold = |table: &Ident| {
                        let name = fold(table);
                        matches!(made_up.get(&name), Some(None)) && !of_values.contains(&name)
                    };
                    for argument in &mut list.args {
                        write_argument(argument, &written, &is_untold)?;
                    }
                }
                None
            }
            _ => None,
        };
        if let Some(written) = written {
            *expr = written;
        }
        Ok(())
    };
    for item in &mut select.projection {
        change_outside_queries(item, &mut write)?;
    }
    for part in [&mut select.selection, &mut select.having].into_iter().flatten() {
        change_outside_queries(part, &mut write)?;
    }
    change_outside_queries(&mut select.group_by, &mut write)?;
    match order_by {
        Some(order_by) => change_outside_queries(order_by, &mut write),
        None => Ok(()),
    }
}

/// The columns of a table that `ROW(t.*)` has, where `f(t.*)` has its row; any other argument as it
/// is.
fn listed(argument: FunctionArg, tables: &[(String, Option<Vec<String>>)]) -> Vec<FunctionArg> {
    let columns = starred(&argument).and_then(|table| {
        let (_, columns) = tables.iter().find(|(name, _)| *name == fold(table))?;
        let column = |name: &String| FunctionArg::Unnamed(FunctionArgExpr::Expr(column_of(table, name)));
        Some(columns.as_ref()?.iter().map(column).collect::<Vec<_>>())
    });
    columns.unwrap_or_else(|| vec![argument])
}

fn column_of(table: &Ident, column: &str) -> Expr {
    Expr::CompoundIdentifier(vec![table.clone(), Ident::with_quote('"', column)])
}

/// The table of `t.*` as an argument.
fn starred(argument: &FunctionArg) -> Option<&Ident> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => match name.0.as_slice() {
            [part] => part.as_ident(),
            _ => None,
        },
        _ => None,
    }
}

/// The name by which a query knows an entry of FROM.
fn name_of(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. } => Some(fold(&alias.name)),
        TableFactor::Table { name, args: None, .. } => {
            let name = object_name(name).ok()?;
            Some(name.rsplit_once('.').map_or(name.clone(), |(_, own)| own.to_owned()))
        }
        _ => None,
    }
}

/// Whether a factor is a function whose rows are single values, so that its name is their value.
fn has_values(factor: &TableFactor) -> bool {
    let (name, alias) = match factor {
        TableFactor::Table { name, args: Some(_), with_ordinality: false, alias, .. }
        | TableFactor::Function { name, with_ordinality: false, alias, .. } => (name.to_string(), alias),
        TableFactor::UNNEST { with_ordinality: false, alias, .. } => ("unnest".to_owned(), alias),
        _ => return false,
    };
    let name = name.to_lowercase();
    let has_name = alias.as_ref().is_some_and(|alias| alias.columns.len() == 1);
    // (Of others the table and its column have one name.)
    lists_of(&name).map_or(has_name && gives_rows(&name), |lists| lists.len() == 1)
}

/// `t.*` among arguments is the row of the table.
fn write_argument(
    argument: &mut FunctionArg,
    written: &dyn Fn(&Ident) -> Option<Expr>,
    is_untold: &dyn Fn(&Ident) -> bool,
) -> Result<()> {
    let Some(table) = starred(argument) else { return Ok(()) };
    if is_untold(table) {
        let name = &table.value;
        let message = format!("{name}.* as an argument, where an outer join makes up rows of {name}");
        return Err(SqlError::unsupported(message, "Name a column of it that is never NULL."));
    }
    if let Some(row) = written(table) {
        *argument = FunctionArg::Unnamed(FunctionArgExpr::Expr(row));
    }
    Ok(())
}

/// A value, or NULL where another is NULL.
fn unless_null(tells: Expr, value: Expr) -> Expr {
    let condition = Expr::IsNotNull(Box::new(tells));
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result: value }],
        else_result: None,
    }
}

/// The values of a row that was written out.
fn values_of(expr: &Expr) -> Option<Vec<Expr>> {
    let row = match expr {
        Expr::Case { operand: None, conditions, else_result: None, .. } => &conditions.first()?.result,
        row => row,
    };
    let (name, args) = crate::syntax::relation_calls::called(row)?;
    (name == NAMED_ROW).then(|| args.into_iter().skip(1).step_by(2).cloned().collect())
}

/// The table whose row was written out.
fn table_of(expr: &Expr) -> Option<Ident> {
    match values_of(expr)?.first()? {
        Expr::CompoundIdentifier(parts) => parts.first().cloned(),
        _ => None,
    }
}
