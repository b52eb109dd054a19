//! `MERGE`: one UPDATE, DELETE or INSERT for each WHEN, of rows for which no WHEN before it held.

use datafusion_expr::sqlparser::ast::{self, Expr};
use datafusion_expr::sqlparser::parser::Parser;
use datafusion_expr::sqlparser::tokenizer::Token;

use super::Input;
use super::change::{assignments, relation_name};
use super::parse_expr;
use crate::error::Result;
use crate::syntax::names::{quoted, quoted_path};
use crate::syntax::statement::{Delete, Insert, Merge, MergePart, Overriding, Statement, Update};
use crate::syntax::template::template;

impl Input<'_> {
    /// `MERGE INTO table [AS alias] USING source ON condition WHEN .. THEN ..`.
    pub(super) fn merge(&mut self) -> Result<Statement> {
        self.expect("MERGE INTO")?;
        self.eat("ONLY");
        let (table, alias) = relation_name(&self.parser.parse_table_factor()?)?;
        self.expect("USING")?;
        let source = self.parser.parse_table_factor()?;
        self.expect("ON")?;
        let on = self.parser.parse_expr()?;
        let target = Target { table, alias, source, on };
        // Conditions of earlier parts, of rows that match and of those that do not.
        let (mut matched, mut unmatched) = (vec![], vec![]);
        let mut parts = Vec::new();
        while self.eat("WHEN") {
            let is_matched = !self.eat("NOT");
            self.expect("MATCHED")?;
            if self.eat("BY") {
                self.expect(if is_matched { "SOURCE" } else { "TARGET" })?;
            }
            let own = if self.eat("AND") { Some(self.parser.parse_expr()?) } else { None };
            self.expect("THEN")?;
            let earlier = if is_matched { &mut matched } else { &mut unmatched };
            let condition = condition(own.as_ref(), earlier);
            earlier.push(own.map_or_else(|| "true".to_owned(), |own| own.to_string()));
            if self.eat("DO NOTHING") {
                continue;
            }
            parts.push(match is_matched {
                true if self.eat("DELETE") => MergePart::Delete(target.delete(&condition)?),
                true => {
                    self.expect("UPDATE SET")?;
                    let list = self.parser.parse_comma_separated(Parser::parse_assignment)?;
                    MergePart::Update(target.update(&condition, list)?)
                }
                false => MergePart::Insert(self.merged_rows(&target, &condition)?),
            });
        }
        if matched.is_empty() && unmatched.is_empty() {
            return Err(self.unexpected("WHEN"));
        }
        Ok(Statement::Merge(Merge { table: target.table, parts }))
    }

    /// `INSERT [(columns)] VALUES (values)`.
    fn merged_rows(&mut self, target: &Target, condition: &str) -> Result<Insert> {
        self.expect("INSERT")?;
        let is_list = self.parser.peek_token_ref().token == Token::LParen;
        let mut columns = if is_list { self.name_list()? } else { vec![] };
        let overriding = match (self.eat("OVERRIDING SYSTEM VALUE"), self.eat("OVERRIDING USER VALUE")) {
            (true, _) => Overriding::System,
            (_, true) => Overriding::User,
            _ => Overriding::Unsaid,
        };
        self.expect("VALUES")?;
        self.expect_token(&Token::LParen)?;
        let mut values = self.parser.parse_comma_separated(Parser::parse_expr)?;
        self.expect_token(&Token::RParen)?;
        // (A column that is not named has its default.)
        let is_default = |value: &Expr| value.to_string().eq_ignore_ascii_case("default");
        if columns.len() == values.len() {
            let given: Vec<bool> = values.iter().map(|value| !is_default(value)).collect();
            let mut is_given = given.iter();
            columns.retain(|_| is_given.next().is_some_and(|given| *given));
            values.retain(|value| !is_default(value));
        }
        target.insert(condition, columns, &values, overriding)
    }
}

/// What all parts of a statement share.
struct Target {
    table: String,
    alias: Option<String>,
    source: ast::TableFactor,
    on: Expr,
}

impl Target {
    fn source(&self) -> Vec<ast::TableWithJoins> {
        vec![ast::TableWithJoins { relation: self.source.clone(), joins: vec![] }]
    }

    fn matching(&self, condition: &str) -> Result<Option<Expr>> {
        parse_expr(&format!("({}) AND {condition}", self.on)).map(Some)
    }

    fn update(&self, condition: &str, list: Vec<ast::Assignment>) -> Result<Update> {
        Ok(Update {
            table: self.table.clone(),
            assignments: assignments(list, self.alias.as_deref().unwrap_or(&self.table))?,
            selection: self.matching(condition)?,
            alias: self.alias.clone(),
            from: self.source(),
            returning: None,
            with: None,
        })
    }

    fn delete(&self, condition: &str) -> Result<Delete> {
        Ok(Delete {
            table: self.table.clone(),
            selection: self.matching(condition)?,
            alias: self.alias.clone(),
            using: self.source(),
            returning: None,
            with: None,
        })
    }

    fn insert(&self, condition: &str, columns: Vec<String>, values: &[Expr], overriding: Overriding) -> Result<Insert> {
        let values: Vec<String> =
            values.iter().enumerate().map(|(n, value)| format!("{value} AS \"__value_{n}\"")).collect();
        let alias = self.alias.as_ref().map(|alias| format!(" AS {}", quoted(alias))).unwrap_or_default();
        let query = template(&format!(
            "SELECT {} FROM {} WHERE NOT EXISTS (SELECT 1 FROM {}{alias} WHERE {}) AND {condition}",
            values.join(", "),
            self.source,
            quoted_path(&self.table),
            self.on
        ))?;
        let table = self.table.clone();
        Ok(Insert { table, alias: None, columns, query, conflict: None, returning: None, overriding })
    }
}

/// Whether a part's own condition holds, and none of those before it.
fn condition(own: Option<&Expr>, earlier: &[String]) -> String {
    let own = own.map_or_else(|| "true".to_owned(), |own| format!("({own})"));
    earlier.iter().fold(own, |all, earlier| format!("{all} AND ({earlier}) IS NOT TRUE"))
}
