//! `WINDOW w AS (..)`, `OVER w` and `OVER (w ROWS ..)`: each call has its whole window.
//!
//! Law: a window that begins with another's name has that one's partition, and its order if it has
//! one; it may add an order and a frame, and change neither. `OVER w` is the window itself, with
//! its frame.

use datafusion_expr::sqlparser::ast::{
    Expr, Ident, NamedWindowDefinition, NamedWindowExpr, OrderBy, Select, WindowSpec, WindowType,
};

use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::names::fold;
use crate::syntax::parse::exclude::is_exclusion;
use crate::syntax::walk::change_outside_queries;

/// Writes the windows of a SELECT out.
///
/// # Errors
/// For windows that are not there, are there twice, or say again what the named one says.
pub(super) fn write_out(select: &mut Select, order_by: Option<&mut OrderBy>) -> Result<()> {
    let mut known: Vec<(String, WindowSpec)> = Vec::new();
    for NamedWindowDefinition(name, window) in std::mem::take(&mut select.named_window) {
        if known.iter().any(|(other, _)| *other == fold(&name)) {
            return Err(invalid(format!("window \"{}\" is already defined", fold(&name))));
        }
        let window = match window {
            NamedWindowExpr::NamedWindow(of) => named(&of, &known)?.clone(),
            NamedWindowExpr::WindowSpec(window) => whole(window, &known)?,
        };
        known.push((fold(&name), window));
    }
    let mut of_call = |expr: &mut Expr| {
        let Expr::Function(function) = expr else { return Ok(()) };
        let Some(over) = &mut function.over else { return Ok(()) };
        *over = WindowType::WindowSpec(match over {
            WindowType::NamedWindow(name) => named(name, &known)?.clone(),
            WindowType::WindowSpec(window) => whole(window.clone(), &known)?,
        });
        Ok(())
    };
    for item in &mut select.projection {
        change_outside_queries(item, &mut of_call)?;
    }
    if let Some(qualify) = &mut select.qualify {
        change_outside_queries(qualify, &mut of_call)?;
    }
    match order_by {
        Some(order_by) => change_outside_queries(order_by, &mut of_call),
        None => Ok(()),
    }
}

fn named<'a>(name: &Ident, known: &'a [(String, WindowSpec)]) -> Result<&'a WindowSpec> {
    let name = fold(name);
    let found = known.iter().find(|(other, _)| *other == name);
    found.map(|(_, window)| window).ok_or_else(|| invalid(format!("window \"{name}\" does not exist")))
}

/// A window with what it takes of the one that it names.
fn whole(mut window: WindowSpec, known: &[(String, WindowSpec)]) -> Result<WindowSpec> {
    let Some(name) = window.window_name.take() else { return Ok(window) };
    let of = named(&name, known)?;
    let name = fold(&name);
    if of.window_frame.is_some() {
        return Err(invalid(format!("cannot copy window \"{name}\" because it has a frame clause"))
            .with_hint("Write OVER with the name alone, without parentheses."));
    }
    let (excluded, own): (Vec<Expr>, Vec<Expr>) = window.partition_by.into_iter().partition(is_exclusion);
    if !own.is_empty() {
        return Err(invalid(format!("cannot override PARTITION BY clause of window \"{name}\"")));
    }
    if !window.order_by.is_empty() && !of.order_by.is_empty() {
        return Err(invalid(format!("cannot override ORDER BY clause of window \"{name}\"")));
    }
    window.partition_by = excluded.into_iter().chain(of.partition_by.iter().cloned()).collect();
    if window.order_by.is_empty() {
        window.order_by = of.order_by.clone();
    }
    Ok(window)
}

fn invalid(message: String) -> SqlError {
    SqlError::new(ErrorKind::Invalid, message)
}
