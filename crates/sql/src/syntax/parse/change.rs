//! `INSERT`, `UPDATE`, `DELETE` and `TRUNCATE`.

use datafusion_expr::sqlparser::ast;
use datafusion_expr::sqlparser::tokenizer::Token;

use super::Input;
use super::subscripted::subscripted;
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::names::{fold, object_name};
use crate::syntax::relation_calls::called;
use crate::syntax::statement::{Conflict, Delete, Insert, Overriding, Statement, Truncate, Update};
use crate::syntax::subscripts::{assigned, is_partial, own_column};
use crate::syntax::template::template;

impl Input<'_> {
    pub(super) fn insert(&mut self) -> Result<Statement> {
        match self.parser.parse_statement()? {
            ast::Statement::Insert(insert) => insert_of(insert, None),
            _ => Err(self.unexpected("INSERT INTO")),
        }
    }

    pub(super) fn update(&mut self) -> Result<Statement> {
        match self.parser.parse_statement()? {
            ast::Statement::Update(update) => update_of(update, None),
            _ => Err(self.unexpected("UPDATE")),
        }
    }

    pub(super) fn delete(&mut self) -> Result<Statement> {
        match self.parser.parse_statement()? {
            ast::Statement::Delete(delete) => delete_of(delete, None),
            _ => Err(self.unexpected("DELETE FROM")),
        }
    }

    /// `TRUNCATE [TABLE] [ONLY] name, .. [RESTART IDENTITY] [CASCADE]`.
    pub(super) fn truncate(&mut self) -> Result<Statement> {
        self.expect("TRUNCATE")?;
        self.eat("TABLE");
        self.eat("ONLY");
        let mut tables = vec![self.name()?];
        while self.eat_token(&Token::Comma) {
            self.eat("ONLY");
            let table = self.name()?;
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
        let restarts = self.eat("RESTART IDENTITY");
        self.eat("CONTINUE IDENTITY");
        let cascade = self.eat("CASCADE");
        self.eat("RESTRICT");
        Ok(Statement::Truncate(Truncate { tables, restarts, cascade }))
    }
}

/// A statement that changes a table, where the parser has found it behind `WITH`.
pub(super) fn behind_with(query: ast::Query) -> std::result::Result<Result<Statement>, Box<ast::Query>> {
    let with = query.with.clone();
    match *query.body {
        ast::SetExpr::Insert(ast::Statement::Insert(insert)) => Ok(insert_of(insert, with)),
        ast::SetExpr::Update(ast::Statement::Update(update)) => Ok(update_of(update, with)),
        ast::SetExpr::Delete(ast::Statement::Delete(delete)) => Ok(delete_of(delete, with)),
        body => Err(Box::new(ast::Query { body: Box::new(body), ..query })),
    }
}

/// `[WITH ..] INSERT ..`.
fn insert_of(insert: ast::Insert, with: Option<ast::With>) -> Result<Statement> {
    if let Some(or) = &insert.or {
        let hint = match or {
            ast::SqliteOnConflict::Ignore => "Write INSERT INTO .. ON CONFLICT DO NOTHING.",
            ast::SqliteOnConflict::Replace => {
                "Write INSERT INTO .. ON CONFLICT (key) DO UPDATE SET column = excluded.column."
            }
            _ => "Leave it out: an INSERT that fails changes nothing.",
        };
        return Err(SqlError::unsupported(format!("INSERT {or}"), hint));
    }
    if insert.ignore {
        return Err(SqlError::unsupported("INSERT IGNORE", "Write INSERT INTO .. ON CONFLICT DO NOTHING."));
    }
    if insert.overwrite || insert.replace_into || insert.partitioned.is_some() {
        return Err(SqlError::unsupported("this form of INSERT", "Write INSERT INTO table (columns) query."));
    }
    let ast::TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::unsupported("INSERT into a function", "Name a table."));
    };
    let (table, alias) = (object_name(name)?, insert.table_alias.map(|alias| fold(&alias.alias)));
    let conflict = insert.on.map(|on| conflict(on, alias.as_deref().unwrap_or(&table))).transpose()?;
    let columns = insert.columns.iter().map(object_name).collect::<Result<Vec<_>>>()?;
    // (Columns that are not named have their defaults.)
    let mut query = match insert.source {
        Some(query) => query,
        None => template("VALUES (DEFAULT)")?,
    };
    // Outer queries come first: those of the source may name them.
    if let Some(mut outer) = with {
        let inner = query.with.take();
        outer.recursive |= inner.as_ref().is_some_and(|inner| inner.recursive);
        outer.cte_tables.extend(inner.into_iter().flat_map(|inner| inner.cte_tables));
        query.with = Some(outer);
    }
    Ok(Statement::Insert(Insert {
        table,
        alias,
        columns,
        query,
        conflict,
        returning: insert.returning,
        overriding: Overriding::Unsaid,
    }))
}

/// `[WITH ..] UPDATE ..`.
fn update_of(update: ast::Update, with: Option<ast::With>) -> Result<Statement> {
    if !update.table.joins.is_empty() {
        return Err(SqlError::unsupported("UPDATE of a join", "Write UPDATE table SET .. FROM other WHERE .."));
    }
    let from = match update.from {
        Some(ast::UpdateTableFromKind::AfterSet(from) | ast::UpdateTableFromKind::BeforeSet(from)) => from,
        None => vec![],
    };
    if !update.order_by.is_empty() || update.limit.is_some() || update.or.is_some() {
        return Err(SqlError::unsupported("UPDATE .. LIMIT", "Choose the rows with WHERE key IN (SELECT ..)."));
    }
    let (table, alias) = relation_name(&update.table.relation)?;
    Ok(Statement::Update(Update {
        assignments: assignments(update.assignments, alias.as_deref().unwrap_or(&table))?,
        table,
        alias,
        from,
        selection: update.selection,
        returning: update.returning,
        with,
    }))
}

/// `[WITH ..] DELETE ..`.
fn delete_of(delete: ast::Delete, with: Option<ast::With>) -> Result<Statement> {
    if !delete.order_by.is_empty() || delete.limit.is_some() || !delete.tables.is_empty() {
        return Err(SqlError::unsupported("DELETE .. LIMIT", "Choose the rows with WHERE key IN (SELECT ..)."));
    }
    let (ast::FromTable::WithFromKeyword(tables) | ast::FromTable::WithoutKeyword(tables)) = &delete.from;
    match tables.as_slice() {
        [table] if table.joins.is_empty() => {
            let (table, alias) = relation_name(&table.relation)?;
            let (using, selection) = (delete.using.unwrap_or_default(), delete.selection);
            Ok(Statement::Delete(Delete { table, alias, selection, using, returning: delete.returning, with }))
        }
        _ => Err(SqlError::unsupported("DELETE from several tables", "Write one DELETE for each table.")),
    }
}

/// The name of a changed table, and its other name.
pub(super) fn relation_name(table: &ast::TableFactor) -> Result<(String, Option<String>)> {
    match table {
        ast::TableFactor::Table { name, alias, .. } => {
            let full = object_name(name)?;
            let own = name.0.last().and_then(|part| part.as_ident()).map(fold);
            let alias = alias.as_ref().map(|alias| fold(&alias.name));
            // (In its statement a table of another schema has its plain name.)
            Ok((full.clone(), alias.or(own.filter(|own| *own != full))))
        }
        _ => Err(SqlError::new(ErrorKind::Syntax, "expected the name of a table")),
    }
}

/// The columns assigned to, each once; `(a, b) = (x, y)` is two assignments.
pub(super) fn assignments(list: Vec<ast::Assignment>, table: &str) -> Result<Vec<(String, ast::Expr)>> {
    let mut out: Vec<(String, ast::Expr)> = Vec::new();
    for assignment in list {
        let pairs = match (assignment.target, assignment.value) {
            (ast::AssignmentTarget::ColumnName(name), value) => vec![(object_name(&name)?, value)],
            (ast::AssignmentTarget::Tuple(names), ast::Expr::Tuple(values)) if names.len() == values.len() => {
                let names = names.iter().map(object_name).collect::<Result<Vec<_>>>()?;
                names.into_iter().zip(values).collect()
            }
            (ast::AssignmentTarget::Tuple(names), value)
                if row_of(&value).is_some_and(|row| row.len() == names.len()) =>
            {
                let names = names.iter().map(object_name).collect::<Result<Vec<_>>>()?;
                names.into_iter().zip(row_of(&value).unwrap_or_default()).collect()
            }
            (ast::AssignmentTarget::Tuple(names), ast::Expr::Subquery(query))
                if n_columns(&query).is_none_or(|n_columns| n_columns == names.len()) =>
            {
                let names = names.iter().map(object_name).collect::<Result<Vec<_>>>()?;
                let values = (0..names.len()).map(|at| column_of(&query, at, names.len()));
                let values = values.collect::<Result<Vec<_>>>()?;
                names.into_iter().zip(values).collect()
            }
            (ast::AssignmentTarget::Tuple(_), _) => {
                let message = "number of columns does not match number of values";
                return Err(SqlError::new(ErrorKind::Syntax, message));
            }
        };
        for (column, value) in pairs {
            if let Some((column, subscripts)) = subscripted(&column) {
                match out.iter_mut().find(|(known, _)| *known == column) {
                    Some((_, before)) if is_partial(before) => {
                        *before = assigned(before.clone(), value, subscripts);
                        continue;
                    }
                    Some(_) => return Err(assigned_twice(column)),
                    None => {
                        let before = own_column(table, column);
                        out.push((column.to_owned(), assigned(before, value, subscripts)));
                        continue;
                    }
                }
            }
            if out.iter().any(|(known, _)| *known == column) {
                return Err(assigned_twice(&column));
            }
            out.push((column, value));
        }
    }
    Ok(out)
}

fn assigned_twice(column: &str) -> SqlError {
    SqlError::new(ErrorKind::Syntax, format!("multiple assignments to same column \"{column}\""))
}

/// The values of `ROW (x, y)`.
fn row_of(value: &ast::Expr) -> Option<Vec<ast::Expr>> {
    let (name, values) = called(value)?;
    name.eq_ignore_ascii_case("row").then(|| values.into_iter().cloned().collect())
}

/// How many columns a query has, where its select list tells.
fn n_columns(query: &ast::Query) -> Option<usize> {
    let ast::SetExpr::Select(select) = query.body.as_ref() else { return None };
    let is_one = |item: &ast::SelectItem| {
        matches!(item, ast::SelectItem::UnnamedExpr(_) | ast::SelectItem::ExprWithAlias { .. })
    };
    select.projection.iter().all(is_one).then_some(select.projection.len())
}

/// One of the columns of a query, as a value.
fn column_of(query: &ast::Query, at: usize, n_columns: usize) -> Result<ast::Expr> {
    let names: Vec<String> = (0..n_columns).map(|n| format!("c{n}")).collect();
    let mut value = template(&format!("SELECT __row.c{at} FROM (SELECT 1) AS __row({})", names.join(", ")))?;
    if let ast::SetExpr::Select(select) = value.body.as_mut()
        && let Some(ast::TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|from| &mut from.relation)
    {
        **subquery = query.clone();
    }
    Ok(ast::Expr::Subquery(value))
}

fn conflict(on: ast::OnInsert, own: &str) -> Result<Conflict> {
    let ast::OnInsert::OnConflict(conflict) = on else {
        let hint = "Write ON CONFLICT (key) DO UPDATE SET ..";
        return Err(SqlError::unsupported("ON DUPLICATE KEY UPDATE", hint));
    };
    let (columns, constraint) = match conflict.conflict_target {
        None => (vec![], None),
        Some(ast::ConflictTarget::Columns(columns)) => (columns.iter().map(fold).collect(), None),
        Some(ast::ConflictTarget::OnConstraint(name)) => (vec![], Some(object_name(&name)?)),
    };
    Ok(match conflict.action {
        ast::OnConflictAction::DoNothing => Conflict { columns, constraint, update: None, selection: None },
        ast::OnConflictAction::DoUpdate(_) if columns.is_empty() && constraint.is_none() => {
            let message = "syntax error: ON CONFLICT DO UPDATE names no columns";
            let hint = "Name the key's columns: ON CONFLICT (key) DO UPDATE SET ..";
            return Err(SqlError::new(ErrorKind::Syntax, message).with_hint(hint));
        }
        ast::OnConflictAction::DoUpdate(update) => {
            let update_of = Some(assignments(update.assignments, own)?);
            Conflict { columns, constraint, update: update_of, selection: update.selection }
        }
    })
}

/// `EXISTS (SELECT 1 FROM using WHERE selection)`.
pub(crate) fn exists(using: Vec<ast::TableWithJoins>, selection: Option<ast::Expr>) -> Result<ast::Expr> {
    let mut subquery = template("SELECT 1 FROM t")?;
    if let ast::SetExpr::Select(select) = subquery.body.as_mut() {
        select.from = using;
        select.selection = selection;
    }
    Ok(ast::Expr::Exists { subquery, negated: false })
}
