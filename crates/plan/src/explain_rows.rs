//! How as-of joins, sessions, row patterns and window functions are shown by `EXPLAIN`.

use std::fmt::Write as _;

use anabranch_spec::frame::{Exclude, FrameBound, WindowFrame};
use datafusion_common::DFSchema;

use crate::explain::{aggregate_call, equals, expression, list, name, names, order};
use crate::ir::Plan;
use crate::recognize::{Recognize, Skip};
use anabranch_spec::asof::{AsofJoin, Strategy};
use anabranch_spec::session::SessionWindows;
use anabranch_spec::window::{Place, Window, WindowFunction};

/// An as-of join.
pub(crate) fn asof(plan: &Plan, left: &Plan, right: &Plan, asof: &AsofJoin) -> String {
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

/// Sessions.
pub(crate) fn session(plan: &Plan, input: &Plan, session: &SessionWindows) -> String {
    let mut out = String::from("Session");
    if !session.partition.is_empty() {
        let _ = write!(out, " by {}", list(session.partition.iter().map(|at| name(&input.schema, *at))));
    }
    let _ = write!(out, " of {} within {} [{}]", name(&input.schema, session.time), session.gap, names(&plan.schema));
    out
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

/// Window functions.
pub(crate) fn window(plan: &Plan, input: &Plan, window: &Window) -> String {
    let mut out = String::from("Window");
    if !window.partition.is_empty() {
        let _ = write!(out, " by {}", list(window.partition.iter().map(|at| name(&input.schema, *at))));
    }
    if !window.order.is_empty() {
        let _ = write!(out, " order by {}", order(&input.schema, &window.order));
    }
    let calls = window.calls.iter().zip(plan.schema.fields().iter().skip(input.schema.fields().len()));
    let calls = calls.map(|(call, field)| {
        let frame = frame(&input.schema, &call.frame);
        let text = match &call.function {
            WindowFunction::Aggregate(call) => format!("{} over {frame}", aggregate_call(&input.schema, call)),
            WindowFunction::Value { column, place } => {
                let column = name(&input.schema, *column);
                match place {
                    Place::First => format!("first_value({column}) over {frame}"),
                    Place::Last => format!("last_value({column}) over {frame}"),
                    Place::Nth(n) => format!("nth_value({column}, {n}) over {frame}"),
                }
            }
            WindowFunction::PercentRank => "percent_rank()".to_owned(),
            WindowFunction::CumeDist => "cume_dist()".to_owned(),
        };
        format!("{text} as {}", field.name())
    });
    let _ = write!(out, " [{}]", list(calls));
    out
}

fn frame(input: &DFSchema, frame: &WindowFrame) -> String {
    let bound = |bound: FrameBound| match bound {
        FrameBound::First => "first".to_owned(),
        FrameBound::Last => "last".to_owned(),
        FrameBound::Rows(rows) => format!("row {rows:+}"),
        FrameBound::Peers(groups) => format!("peers {groups:+}"),
        FrameBound::Key(column) => name(input, column),
    };
    let exclude = match frame.exclude {
        Exclude::Nothing => "",
        Exclude::Row => " without row",
        Exclude::Peers => " without peers",
        Exclude::Ties => " without ties",
    };
    format!("({} .. {}{exclude})", bound(frame.start), bound(frame.end))
}
