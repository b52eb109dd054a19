//! `INSERT`, `UPDATE`, `DELETE` and `COPY .. FROM`.

use datafusion_expr::sqlparser::ast;
use datafusion_expr::sqlparser::tokenizer::Token;

use super::{Input, object_name};
use crate::error::{ErrorKind, Result, SqlError};
use crate::statement::{CopyFrom, Delete, Insert, Statement, Update};

impl Input<'_> {
    pub(super) fn insert(&mut self) -> Result<Statement> {
        let ast::Statement::Insert(insert) = self.parser.parse_statement()? else {
            return Err(self.unexpected("INSERT INTO"));
        };
        if insert.on.is_some() {
            return Err(SqlError::unsupported(
                "INSERT .. ON CONFLICT",
                "DELETE the rows with these keys first, or UPDATE them.",
            ));
        }
        if insert.returning.is_some() {
            return Err(returning());
        }
        if insert.overwrite || insert.replace_into || insert.partitioned.is_some() {
            return Err(SqlError::unsupported("this form of INSERT", "Write INSERT INTO table (columns) query."));
        }
        let ast::TableObject::TableName(name) = &insert.table else {
            return Err(SqlError::unsupported("INSERT into a function", "Name a table."));
        };
        let columns = insert.columns.iter().map(object_name).collect::<Result<Vec<_>>>()?;
        let Some(query) = insert.source else {
            return Err(SqlError::unsupported(
                "INSERT .. DEFAULT VALUES",
                "Write VALUES (DEFAULT, ..), one DEFAULT for each column.",
            ));
        };
        Ok(Statement::Insert(Insert { table: object_name(name)?, columns, query }))
    }

    pub(super) fn update(&mut self) -> Result<Statement> {
        let ast::Statement::Update(update) = self.parser.parse_statement()? else {
            return Err(self.unexpected("UPDATE"));
        };
        if update.returning.is_some() {
            return Err(returning());
        }
        if update.from.is_some() || !update.table.joins.is_empty() {
            return Err(SqlError::unsupported(
                "UPDATE .. FROM",
                "Use a subquery: SET x = (SELECT .. WHERE ..) and WHERE EXISTS (..).",
            ));
        }
        if !update.order_by.is_empty() || update.limit.is_some() || update.or.is_some() {
            return Err(SqlError::unsupported("UPDATE .. LIMIT", "Choose the rows with WHERE key IN (SELECT ..)."));
        }
        let mut assignments: Vec<(String, ast::Expr)> = Vec::new();
        for assignment in update.assignments {
            let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
                return Err(SqlError::unsupported("SET (a, b) = ..", "Write one assignment for each column."));
            };
            let column = object_name(name)?;
            if assignments.iter().any(|(known, _)| *known == column) {
                return Err(SqlError::new(ErrorKind::Duplicate, format!("column \"{column}\" is assigned twice")));
            }
            assignments.push((column, assignment.value));
        }
        Ok(Statement::Update(Update {
            table: relation_name(&update.table.relation)?,
            assignments,
            selection: update.selection,
        }))
    }

    pub(super) fn delete(&mut self) -> Result<Statement> {
        let ast::Statement::Delete(delete) = self.parser.parse_statement()? else {
            return Err(self.unexpected("DELETE FROM"));
        };
        if delete.returning.is_some() {
            return Err(returning());
        }
        if delete.using.is_some() {
            return Err(SqlError::unsupported("DELETE .. USING", "Use a subquery: WHERE EXISTS (SELECT ..)."));
        }
        if !delete.order_by.is_empty() || delete.limit.is_some() || !delete.tables.is_empty() {
            return Err(SqlError::unsupported("DELETE .. LIMIT", "Choose the rows with WHERE key IN (SELECT ..)."));
        }
        let (ast::FromTable::WithFromKeyword(tables) | ast::FromTable::WithoutKeyword(tables)) = &delete.from;
        match tables.as_slice() {
            [table] if table.joins.is_empty() => {
                Ok(Statement::Delete(Delete { table: relation_name(&table.relation)?, selection: delete.selection }))
            }
            _ => Err(SqlError::unsupported("DELETE from several tables", "Write one DELETE for each table.")),
        }
    }

    pub(super) fn copy(&mut self) -> Result<Statement> {
        self.expect("COPY")?;
        if self.parser.peek_token_ref().token == Token::LParen {
            return Err(copy_to());
        }
        let table = self.name()?;
        let columns = match self.parser.peek_token_ref().token {
            Token::LParen => self.name_list()?,
            _ => vec![],
        };
        if self.eat("TO") {
            return Err(copy_to());
        }
        self.expect("FROM")?;
        let path = match self.parser.peek_token_ref().token.clone() {
            Token::SingleQuotedString(path) => path,
            Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("stdin") => "-".into(),
            _ => return Err(self.unexpected("a path in quotes, or STDIN")),
        };
        self.parser.advance_token();
        self.eat("WITH");
        let options = match self.parser.peek_token_ref().token {
            Token::LParen => self.options()?,
            _ => self.copy_old_options()?,
        };
        Ok(Statement::CopyFrom(CopyFrom { table, columns, path, options }))
    }

    /// `CSV HEADER DELIMITER ','`: the options before PostgreSQL 9.
    fn copy_old_options(&mut self) -> Result<Vec<(String, String)>> {
        let mut options = Vec::new();
        while let Some(word) = self.word(0) {
            self.parser.advance_token();
            match word.as_str() {
                "CSV" | "JSON" | "PARQUET" | "TBL" => options.push(("format".into(), word.to_lowercase())),
                "HEADER" => options.push(("header".into(), "true".into())),
                "DELIMITER" | "NULL" | "QUOTE" | "ESCAPE" => {
                    self.eat("AS");
                    options.push((word.to_lowercase(), self.option_value()?));
                }
                _ => {
                    return Err(SqlError::new(ErrorKind::Syntax, format!("unknown COPY option {word}"))
                        .with_hint("Write options as WITH (format = csv, header = true)."));
                }
            }
        }
        Ok(options)
    }
}

fn relation_name(table: &ast::TableFactor) -> Result<String> {
    match table {
        ast::TableFactor::Table { name, alias: None, .. } => object_name(name),
        ast::TableFactor::Table { alias: Some(_), .. } => {
            Err(SqlError::unsupported("an alias for the changed table", "Write the table's own name before columns."))
        }
        _ => Err(SqlError::new(ErrorKind::Syntax, "expected the name of a table")),
    }
}

fn returning() -> SqlError {
    SqlError::unsupported("RETURNING", "SELECT the rows in a statement of its own; reads see all earlier writes.")
}

fn copy_to() -> SqlError {
    SqlError::unsupported(
        "COPY .. TO",
        "Run the query with an output format, as in: anabranch -c 'SELECT ..' --format csv > file.csv.",
    )
}
