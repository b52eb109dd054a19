//! `MATCH_RECOGNIZE`: the function that the parser made of it becomes a marked derived table, which [`recognize`](crate::passes::plan::recognize) plans.

use datafusion_expr::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, TableAlias, TableAliasColumnDef, TableFactor, Value,
};

use crate::error::{Result, SqlError};
use crate::syntax::parse::MATCH_RECOGNIZE;

/// Alias that marks the table. Its columns are named by the clause's text, the alias of the user, and the columns of that.
pub(crate) const RECOGNIZE_MARK: &str = "__recognize";

/// Marks a call.
///
/// # Errors
/// None that a user can cause.
pub(super) fn mark(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::Table { name, alias, args: Some(args), .. } = factor else { return Ok(()) };
    if name.to_string() != MATCH_RECOGNIZE {
        return Ok(());
    }
    let wrong = || SqlError::internal("MATCH_RECOGNIZE is a function of a table and a text");
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(subquery))),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(text))),
    ] = args.args.as_slice()
    else {
        return Err(wrong());
    };
    let Value::SingleQuotedString(text) = &text.value else { return Err(wrong()) };
    let mut columns = vec![TableAliasColumnDef::from_name(text.clone())];
    if let Some(alias) = alias.take() {
        columns.push(TableAliasColumnDef { name: alias.name, data_type: None });
        columns.extend(alias.columns);
    }
    let mark = TableAlias { explicit: true, name: Ident::new(RECOGNIZE_MARK), columns, at: None };
    *factor = TableFactor::Derived { lateral: false, subquery: subquery.clone(), alias: Some(mark), sample: None };
    Ok(())
}
