//! What an index is on, where that is not columns alone: `CREATE INDEX ON t (lower(name), id)`.
//!
//! Law: the text of a part parses to the same part. Columns stand without the table's name, which
//! may change.

use std::fmt;
use std::ops::ControlFlow;

use datafusion_expr::sqlparser::ast::{self, Expr, Ident};

use crate::syntax::names::fold;

/// A column, or an expression over columns of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexPart(Expr);

impl IndexPart {
    /// The part, as it is written.
    pub fn new(mut expr: Expr) -> IndexPart {
        while let Expr::Nested(inner) = expr {
            expr = *inner;
        }
        change_columns(&mut expr, &mut |_| {});
        IndexPart(expr)
    }

    /// The column, if the part is one.
    pub fn column(&self) -> Option<String> {
        match &self.0 {
            Expr::Identifier(ident) => Some(fold(ident)),
            _ => None,
        }
    }

    /// The names of its columns; some may be no columns.
    pub fn columns(&self) -> Vec<String> {
        let mut names = Vec::new();
        change_columns(&mut self.0.clone(), &mut |ident| names.push(fold(ident)));
        names
    }

    /// The part with columns under other names, all at once.
    #[must_use]
    pub fn renamed(&self, name_of: &dyn Fn(&str) -> Option<String>) -> IndexPart {
        let mut expr = self.0.clone();
        change_columns(&mut expr, &mut |ident| {
            if let Some(name) = name_of(&fold(ident)) {
                *ident = Ident::with_quote('"', name);
            }
        });
        IndexPart(expr)
    }

    /// What it adds to the name that an index is given.
    pub fn name(&self) -> String {
        match &self.0 {
            Expr::Identifier(ident) => fold(ident),
            Expr::Function(call) => {
                call.name.0.last().map_or_else(|| "expr".into(), |part| part.to_string().to_lowercase())
            }
            _ => "expr".into(),
        }
    }
}

/// As PostgreSQL shows the definition of an index: calls and columns bare, others in parentheses.
impl fmt::Display for IndexPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            bare @ (Expr::Identifier(_) | Expr::Function(_)) => bare.fmt(f),
            operation @ Expr::BinaryOp { .. } => write!(f, "(({operation}))"),
            other => write!(f, "({other})"),
        }
    }
}

/// Looks at the columns, which lose the name of their table.
fn change_columns(expr: &mut Expr, seen: &mut dyn FnMut(&mut Ident)) {
    let _ = ast::visit_expressions_mut(expr, |part| {
        if let Expr::CompoundIdentifier(path) = part
            && let Some(last) = path.pop()
        {
            *part = Expr::Identifier(last);
        }
        if let Expr::Identifier(ident) = part {
            seen(ident);
        }
        ControlFlow::<()>::Continue(())
    });
}
