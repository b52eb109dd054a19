//! Calls whose value is another one each time, in a syntax tree.

use std::ops::ControlFlow;

use datafusion_expr::sqlparser::ast::{Expr, Visit, visit_expressions};

use crate::syntax::names::fold;

/// Functions of chance and of counters. (The clock stands still within a query.)
const VOLATILE: [&str; 8] = ["random", "rand", "uuid", "gen_random_uuid", "nextval", "setval", "currval", "lastval"];

/// The first call of a volatile function, its name without schema.
pub fn volatile_call(part: &impl Visit) -> Option<String> {
    let found = visit_expressions(part, |expr| match expr {
        Expr::Function(call) => {
            let name = call.name.0.last().and_then(|part| part.as_ident()).map(fold);
            match name.filter(|name| VOLATILE.contains(&name.as_str())) {
                Some(name) => ControlFlow::Break(name),
                None => ControlFlow::Continue(()),
            }
        }
        _ => ControlFlow::Continue(()),
    });
    found.break_value()
}
