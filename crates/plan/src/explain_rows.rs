//! How as-of joins and row patterns are shown by `EXPLAIN`.

use std::fmt::Write as _;

use crate::asof::{Asof, Strategy};
use crate::explain::{equals, expression, list, name, names, order};
use crate::ir::Plan;
use crate::recognize::{Recognize, Skip};

/// An as-of join.
pub(crate) fn asof(plan: &Plan, left: &Plan, right: &Plan, asof: &Asof) -> String {
    let (left_time, right_time) = (name(&left.schema, asof.left_time), name(&right.schema, asof.right_time));
    let outer = if asof.outer { " left" } else { "" };
    let equal = if asof.exact { "=" } else { "" };
    let times = match asof.strategy {
        Strategy::Backward => format!("{left_time} >{equal} {right_time}"),
        Strategy::Forward => format!("{left_time} <{equal} {right_time}"),
        Strategy::Nearest if asof.exact => format!("{left_time} near {right_time}"),
        Strategy::Nearest => format!("{left_time} near {right_time}, not equal"),
    };
    let keys = asof.left_key.iter().zip(&asof.right_key);
    let equals = equals(asof.nulls);
    let keys = keys.map(|(l, r)| format!("{} {equals} {} and ", name(&left.schema, *l), name(&right.schema, *r)));
    let within = asof.tolerance.map(|tolerance| format!(" within {tolerance}")).unwrap_or_default();
    format!("Asof{outer} on {}{times}{within} [{}]", keys.collect::<String>(), names(&plan.schema))
}

/// A row pattern.
pub(crate) fn recognize(input: &Plan, recognize: &Recognize) -> String {
    let mut out = String::from("Recognize");
    if !recognize.partition.is_empty() {
        let _ = write!(out, " by {}", list(recognize.partition.iter().map(|at| name(&input.schema, *at))));
    }
    let _ = write!(out, " order by {} pattern ({})", order(&input.schema, &recognize.order), recognize.pattern_text());
    if let Some(within) = recognize.within {
        let _ = write!(out, " within {within}");
    }
    let conditions: Vec<String> = recognize
        .variables
        .iter()
        .filter_map(|variable| Some(format!("{} as {}", variable.name, expression(variable.condition.as_ref()?))))
        .collect();
    if !conditions.is_empty() {
        let _ = write!(out, " where {}", conditions.join(", "));
    }
    let variable = |variable: usize| recognize.variables[variable].name.clone();
    match recognize.skip {
        Skip::PastLastRow => {}
        Skip::ToNextRow => out.push_str(" skip to next row"),
        Skip::ToFirst(of) => _ = write!(out, " skip to first {}", variable(of)),
        Skip::ToLast(of) => _ = write!(out, " skip to last {}", variable(of)),
    }
    let _ = write!(out, " [{}]", list(recognize.output.iter().map(|cell| cell.name.clone())));
    out
}
