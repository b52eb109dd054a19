//! `WITH d AS (DELETE .. RETURNING ..) INSERT INTO .. SELECT .. FROM d`: statements that change
//! tables among the queries that WITH names.
//!
//! Law: all of them see the tables as they were before the statement. What one returns is put in
//! its place as literal rows, before what comes behind it is planned.

use datafusion_expr::sqlparser::ast::{self, SetExpr};

use crate::error::Result;
use crate::syntax::names::fold;
use crate::syntax::parse::parse_query;
use crate::syntax::statement::{ChangesInWith, Statement};

/// Takes the statements that change tables out of the WITH of a query, and leaves queries without
/// rows in their places. `read` reads a statement.
///
/// # Errors
/// Of the statements; `Unsupported` for such a statement within a query below.
pub(crate) fn take(
    query: &mut ast::Query,
    read: &dyn Fn(ast::Query) -> Result<Statement>,
) -> Result<Vec<(String, Statement)>> {
    let Some(with) = &mut query.with else { return Ok(vec![]) };
    let mut taken: Vec<(String, Statement)> = Vec::new();
    let mut before: Vec<ast::Cte> = Vec::new();
    for cte in &mut with.cte_tables {
        let changes = matches!(cte.query.body.as_ref(), SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_));
        if changes {
            let mut own = cte.query.as_ref().clone();
            let mut all =
                own.with.take().unwrap_or_else(|| ast::With { cte_tables: vec![], ..with_like(with.recursive) });
            all.cte_tables.splice(0..0, before.iter().cloned());
            own.with = (!all.cte_tables.is_empty()).then_some(all);
            taken.push((fold(&cte.alias.name), read(own)?));
            *cte.query = *parse_query("SELECT 1 WHERE false")?;
        }
        before.push(cte.clone());
    }
    Ok(taken)
}

fn with_like(recursive: bool) -> ast::With {
    let token = ast::helpers::attached_token::AttachedToken::empty();
    ast::With { with_token: token, recursive, cte_tables: vec![] }
}

impl ChangesInWith {
    /// A part of the statement, or the statement itself, with the rows that parts before it have
    /// returned: names, and queries of the rows.
    ///
    /// # Errors
    /// `UnknownName` for a part without RETURNING that is read.
    pub fn filled(statement: &Statement, returned: &[(String, Option<String>)]) -> Result<Statement> {
        let mut statement = statement.copied();
        let with = match &mut statement {
            Statement::Insert(insert) => insert.query.with.as_mut(),
            Statement::Update(update) => update.with.as_mut(),
            Statement::Delete(delete) => delete.with.as_mut(),
            Statement::Select { query, .. } => query.with.as_mut(),
            _ => None,
        };
        let Some(with) = with else { return Ok(statement) };
        for (name, text) in returned {
            let Some(at) = with.cte_tables.iter().position(|cte| fold(&cte.alias.name) == *name) else { continue };
            match text {
                Some(text) => {
                    let cte = &mut with.cte_tables[at];
                    *cte.query = *parse_query(text)?;
                }
                None => drop(with.cte_tables.remove(at)),
            }
        }
        Ok(statement)
    }
}
