//! Where an unknown name stands: the planner's messages say which name, the syntax tree knows
//! where.

use std::ops::ControlFlow;

use datafusion_expr::sqlparser::ast::{self, Expr, Query, Spanned};
use datafusion_expr::sqlparser::tokenizer::Location;

use crate::error::{ErrorKind, SqlError};
use crate::functions::table::FUNCTIONS;
use crate::resolve::suggest::nearest;
use crate::syntax::names::fold;
use crate::syntax::walk::{Look, Looking, look};

/// Adds the place of the name that an error is about, and a hint for unknown functions.
pub(crate) fn complete(mut error: SqlError, query: &Query) -> SqlError {
    if error.kind == ErrorKind::UnknownName
        && error.hint.is_none()
        && let Some(name) = error.message.strip_prefix("function ").and_then(|m| m.split(' ').next())
        && let Some(known) = nearest(name, FUNCTIONS.names())
    {
        error.hint = Some(format!("Perhaps you meant {known}()."));
    }
    let named =
        matches!(error.kind, ErrorKind::UnknownName | ErrorKind::Type | ErrorKind::Invalid | ErrorKind::Unsupported);
    if !named || error.line_column.is_some() || error.position.is_some() {
        return error;
    }
    match name_in(&error.message).and_then(|name| find(query, &name)) {
        Some(location) => error.at(location),
        None => error,
    }
}

/// The name a message is about: in double quotes, or after the word `function`.
fn name_in(message: &str) -> Option<String> {
    let quoted = message.split('"').nth(1);
    let function = message.split("function ").nth(1).and_then(|rest| rest.split([' ', '(']).next());
    let name = quoted.or(function)?;
    Some(name.rsplit('.').next().unwrap_or(name).to_string())
}

fn find(query: &Query, name: &str) -> Option<Location> {
    let mut finder = Finder { name, found: None };
    look(query, &mut finder);
    finder.found
}

struct Finder<'a> {
    name: &'a str,
    found: Option<Location>,
}

impl Finder<'_> {
    /// Stops at `place` if this is the name.
    fn check(&mut self, ident: &ast::Ident, place: Location) -> Look {
        if ident.span.start.line > 0 && (fold(ident) == self.name || ident.value == self.name) {
            self.found = Some(place);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn check_name(&mut self, name: &ast::ObjectName) -> Look {
        match name.0.last().and_then(|part| part.as_ident()) {
            Some(ident) => self.check(ident, ident.span.start),
            None => ControlFlow::Continue(()),
        }
    }
}

impl Looking for Finder<'_> {
    fn relation(&mut self, relation: &ast::ObjectName) -> Look {
        self.check_name(relation)
    }

    fn expr(&mut self, expr: &Expr) -> Look {
        match expr {
            Expr::Identifier(ident) => self.check(ident, ident.span.start),
            Expr::CompoundIdentifier(parts) => {
                let place = expr.span().start;
                parts.iter().try_for_each(|part| self.check(part, place))
            }
            Expr::Function(function) => self.check_name(&function.name),
            _ => ControlFlow::Continue(()),
        }
    }
}
