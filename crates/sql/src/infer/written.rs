//! Types of parameters that the syntax says.

use anabranch_batch::TextLimit;
use arrow::datatypes::{DataType, Field};
use datafusion_expr::sqlparser::ast::{self, LimitClause, SelectItem, SetExpr};

use super::known::Known;
use crate::change::ChangePart;
use crate::resolve::type_names::is_text;
use crate::resolve::types::{arrow_type, element_limit, text_limit};
use crate::syntax::walk::{Look, Looking, look};

/// Types that the syntax says: of LIMIT and OFFSET, of a condition that is a parameter, of casts to
/// types of text, and of values in a row without a table.
pub(super) fn written_types(part: &ChangePart, known: &mut Known) {
    look(part.query.as_ref(), &mut Written { known });
    if let SetExpr::Select(select) = part.query.body.as_ref()
        && select.from.is_empty()
    {
        for (item, wanted) in select.projection.iter().zip(&part.wanted) {
            if let (SelectItem::UnnamedExpr(expr), Some(wanted)) = (item, wanted) {
                known.note_field(parameter(expr), wanted);
            }
        }
    }
}

/// Whether a query is one row of parameters and literals.
pub(super) fn is_plain_row(query: &ast::Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let is_value = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(ast::Expr::Value(_)));
    select.from.is_empty() && select.selection.is_none() && select.projection.iter().all(is_value)
}

struct Written<'a> {
    known: &'a mut Known,
}

impl Looking for Written<'_> {
    fn query(&mut self, query: &ast::Query) -> Look {
        let (limit, offset) = match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => (Some(limit), Some(offset)),
            None => (None, None),
        };
        let fetch = query.fetch.as_ref().and_then(|fetch| fetch.quantity.as_ref());
        for expr in limit.into_iter().chain(offset).chain(fetch) {
            self.known.note(parameter(expr), &DataType::Int64);
        }
        Look::Continue(())
    }

    fn expr(&mut self, expr: &ast::Expr) -> Look {
        if let ast::Expr::Cast { expr: cast, data_type, .. } = expr
            && let Some(at) = parameter(cast)
        {
            self.cast(at, data_type);
        }
        if let ast::Expr::Function(ast::Function {
            over: Some(ast::WindowType::WindowSpec(ast::WindowSpec { window_frame: Some(frame), .. })),
            ..
        }) = expr
            && frame.units != ast::WindowFrameUnits::Range
        {
            for bound in std::iter::once(&frame.start_bound).chain(&frame.end_bound) {
                if let ast::WindowFrameBound::Preceding(Some(n)) | ast::WindowFrameBound::Following(Some(n)) = bound {
                    self.known.note(parameter(n), &DataType::Int64);
                }
            }
        }
        Look::Continue(())
    }

    fn select(&mut self, select: &ast::Select) -> Look {
        for condition in select.selection.iter().chain(&select.having) {
            self.known.note(parameter(condition), &DataType::Boolean);
        }
        Look::Continue(())
    }
}

impl Written<'_> {
    /// A parameter with a cast to a type of text, or to an array of texts: the plan does not tell
    /// these types apart.
    fn cast(&mut self, at: usize, data_type: &ast::DataType) {
        let Ok(field) = arrow_type(data_type).map(|is| Field::new("", is, true)) else { return };
        let element = match field.data_type() {
            DataType::List(element) => element.data_type(),
            is => is,
        };
        if !is_text(element) {
            return;
        }
        let form = text_limit(data_type).ok().flatten().or_else(|| element_limit(data_type).ok().flatten());
        let is_told = |form: &TextLimit| matches!(form, TextLimit::Uuid | TextLimit::Json | TextLimit::Jsonb);
        if let Some(form) = form.filter(is_told) {
            self.known.note_form(Some(at), form);
        }
        self.known.note(Some(at), field.data_type());
    }
}

/// Which parameter a written expression is.
fn parameter(expr: &ast::Expr) -> Option<usize> {
    match expr {
        ast::Expr::Nested(inner) => parameter(inner),
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Placeholder(name) => name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1),
            _ => None,
        },
        _ => None,
    }
}
