//! Window table functions: `TUMBLE`, `HOP` and `CUMULATE`, as the queries they stand for.
//!
//! A window is two more columns, `window_start` and `window_end`, left-closed and right-open; a row
//! that lies in several windows comes several times, and a row without a time in none. Two
//! spellings are read, told apart by `DESCRIPTOR`:
//!
//! ```text
//!     TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTES [, offset])        Flink: also a column window_time
//!     TUMBLE(t, ts, INTERVAL '10 minutes' [, offset])                          RisingWave
//!     HOP(.., slide, size [, offset])       CUMULATE(.., step, size [, offset])
//! ```
//!
//! Sizes are intervals without months, or whole numbers if the column is one. Windows are aligned
//! to the epoch (or 0) plus the offset. Flink's arguments may be named: `DATA`, `TIMECOL`, `SIZE`,
//! `SLIDE`, `STEP`, `OFFSET`.
//!
//! Cost: one expression a row, and a row out for every window; no state.

use arrow::datatypes::{DataType, Field};
use datafusion_expr::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArgOperator, FunctionArguments, Ident, ObjectName, Select, TableAlias,
    TableFactor,
};

use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::catalog::Catalog;
use crate::resolve::types::column_type_name;
use crate::syntax::names::{fold, object_name};
use crate::syntax::span::Span;
use crate::syntax::template::template;

/// Most windows that a row may lie in.
const WINDOWS_MAX: i64 = 10_000;

/// The functions, by what their sizes are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WindowKind {
    Tumble,
    Hop,
    Cumulate,
}

/// A call, understood.
struct Call {
    kind: WindowKind,
    /// What stands after FROM.
    data: String,
    /// The time column.
    time: String,
    /// From one window to the next, or from one end to the next.
    step: Span,
    size: Span,
    offset: Option<Span>,
    /// Whether it is spelt as in Flink.
    has_window_time: bool,
}

/// Replaces a call by its query.
///
/// # Errors
/// `Type` for windows of a timestamp that are numbers; of reading the call.
pub(super) fn rewrite(factor: &mut TableFactor, catalog: Option<&dyn Catalog>) -> Result<()> {
    let TableFactor::Table { name, alias, args: Some(args), .. } = factor else { return Ok(()) };
    let kind = match object_name(name)?.as_str() {
        "tumble" => WindowKind::Tumble,
        "hop" => WindowKind::Hop,
        "cumulate" => WindowKind::Cumulate,
        _ => return Ok(()),
    };
    let call = Call::read(kind, &args.args)?;
    call.check_sizes(catalog)?;
    let subquery = template(&call.query()?)?;
    *factor = TableFactor::Derived { lateral: false, subquery, alias: alias.take(), sample: None };
    Ok(())
}

/// Gives calls without an alias the names of their tables, so that `bid.price` is a column of
/// `HOP(bid, ..)`.
///
/// # Errors
/// None.
pub(super) fn name_after_tables(select: &mut Select) -> Result<()> {
    let factors = || {
        select
            .from
            .iter()
            .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)))
    };
    let names: Vec<Option<String>> = factors().map(shown_name).collect();
    let is_alone = |name: &String| names.iter().flatten().filter(|other| *other == name).count() == 1;
    let is_alone: Vec<bool> = names.iter().map(|name| name.as_ref().is_some_and(is_alone)).collect();
    let mut at = 0;
    for from in &mut select.from {
        let joined = from.joins.iter_mut().map(|join| &mut join.relation);
        for factor in std::iter::once(&mut from.relation).chain(joined) {
            if let (Some(name), true) = (&names[at], is_alone[at]) {
                name_call(factor, name);
            }
            at += 1;
        }
    }
    Ok(())
}

/// What a factor's columns are called by: its alias, its own name, or the table that a call is
/// about.
fn shown_name(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(fold(&alias.name))
        }
        TableFactor::Table { args: Some(args), .. } => match args.args.first()? {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(table))) => Some(fold(table)),
            FunctionArg::Named { arg: FunctionArgExpr::Expr(Expr::Identifier(table)), .. } => Some(fold(table)),
            _ => None,
        },
        TableFactor::Table { name, .. } => object_name(name).ok(),
        _ => None,
    }
}

/// Whether a table function is one over the rows of another table: its arguments name columns of
/// that one.
pub(super) fn is_call_of_rows(function: &ObjectName) -> bool {
    const NAMES: [&str; 5] = ["tumble", "hop", "cumulate", "session", "split"];
    object_name(function).is_ok_and(|name| NAMES.contains(&name.as_str()))
}

/// What a call over rows reads, as it stands after FROM, and the columns that it adds.
pub(super) fn read_by_call(function: &ObjectName, args: &[FunctionArg]) -> Option<(String, Vec<&'static str>)> {
    let value = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
        | FunctionArg::Named { arg: FunctionArgExpr::Expr(expr), .. } => Some(expr.clone()),
        _ => None,
    };
    let is_data = |arg: &&FunctionArg| matches!(arg, FunctionArg::Named { name, .. } if fold(name) == "data");
    let data = args.iter().find(is_data).or(args.first()).and_then(value)?;
    let rows = table("", &data).ok()?;
    if object_name(function).ok()? == "split" {
        return Some((rows, vec!["branch"]));
    }
    let is_descriptor = |expr: Expr| time_column("", "", expr).is_ok_and(|(_, is_descriptor)| is_descriptor);
    let has_window_time = args.iter().filter_map(value).any(is_descriptor);
    Some((rows, ["window_start", "window_end", "window_time"][..2 + usize::from(has_window_time)].to_vec()))
}

fn name_call(factor: &mut TableFactor, name: &str) {
    let TableFactor::Table { name: function, alias: alias @ None, args: Some(_), .. } = factor else { return };
    if is_call_of_rows(function) {
        *alias = Some(TableAlias { explicit: true, name: Ident::with_quote('"', name), columns: vec![], at: None });
    }
}

impl WindowKind {
    fn name(self) -> &'static str {
        match self {
            WindowKind::Tumble => "TUMBLE",
            WindowKind::Hop => "HOP",
            WindowKind::Cumulate => "CUMULATE",
        }
    }

    /// The arguments, in order; the last may be left out.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            WindowKind::Tumble => &["data", "timecol", "size", "offset"],
            WindowKind::Hop => &["data", "timecol", "slide", "size", "offset"],
            WindowKind::Cumulate => &["data", "timecol", "step", "size", "offset"],
        }
    }

    fn usage(self) -> String {
        let sizes = match self {
            WindowKind::Tumble => "size",
            WindowKind::Hop => "slide, size",
            WindowKind::Cumulate => "step, size",
        };
        format!("Write {}(table, time column, {sizes} [, offset]).", self.name())
    }
}

impl Call {
    /// Refuses whole numbers as sizes of windows over a column that is a moment.
    fn check_sizes(&self, catalog: Option<&dyn Catalog>) -> Result<()> {
        let relation = catalog.and_then(|catalog| catalog.relation(&self.data));
        let column = Ident::new(&self.time);
        let field = relation.and_then(|relation| relation.schema.field_with_name(&fold(&column)).cloned().ok());
        let is_moment = |field: &Field| matches!(field.data_type(), DataType::Timestamp(..) | DataType::Date32);
        match (&self.size, field.filter(is_moment)) {
            (Span::Ticks(ticks), Some(field)) => Err(SqlError::new(
                ErrorKind::Type,
                format!(
                    "column \"{}\" is of type {}: its windows are no numbers",
                    field.name(),
                    column_type_name(&field)
                ),
            )
            .with_hint(format!("Write an interval: INTERVAL '{ticks} minutes'."))),
            _ => Ok(()),
        }
    }

    fn read(kind: WindowKind, args: &[FunctionArg]) -> Result<Call> {
        let mut given = in_order(kind.name(), &kind.usage(), kind.arguments(), args)?.into_iter();
        let mut next = || given.next().flatten();
        let wrong =
            || SqlError::new(ErrorKind::Invalid, format!("{} lacks an argument", kind.name())).with_hint(kind.usage());
        let data = next().ok_or_else(wrong)?;
        let (time, has_window_time) = time_column(kind.name(), &kind.usage(), next().ok_or_else(wrong)?)?;
        let step = span(kind.name(), next().ok_or_else(wrong)?)?;
        let size = match kind {
            WindowKind::Tumble => step.clone(),
            WindowKind::Hop | WindowKind::Cumulate => span(kind.name(), next().ok_or_else(wrong)?)?,
        };
        let offset = next().map(|offset| span(kind.name(), offset)).transpose()?;
        let data = table(kind.name(), &data)?;
        let call = Call { kind, data, time, step, size, offset, has_window_time };
        call.check()?;
        Ok(call)
    }

    fn check(&self) -> Result<()> {
        let invalid = |message: String| Err(SqlError::new(ErrorKind::Invalid, message).with_hint(self.kind.usage()));
        let (step, size) = (self.step.amount(), self.size.amount());
        if step <= 0 || size <= 0 {
            return invalid(format!("the windows of {} have a positive size", self.kind.name()));
        }
        let is_fine = |span: &Span| matches!(span, Span::Interval(nanos) if nanos % 1000 != 0);
        if is_fine(&self.step) || is_fine(&self.size) {
            return invalid(format!("the sizes of {} are whole microseconds", self.kind.name()));
        }
        let same = |other: &Span| matches!(other, Span::Ticks(_)) == matches!(self.size, Span::Ticks(_));
        if !same(&self.step) || !self.offset.iter().all(same) {
            return invalid(format!("the sizes of {} are all intervals, or all numbers", self.kind.name()));
        }
        if self.kind == WindowKind::Cumulate && size % step != 0 {
            return invalid("the size of CUMULATE is a multiple of its step".to_owned());
        }
        if self.n_windows() > WINDOWS_MAX {
            return invalid(format!("a row would lie in {} windows of {}", self.n_windows(), self.kind.name()));
        }
        Ok(())
    }

    /// Windows that a row lies in, at most.
    fn n_windows(&self) -> i64 {
        let (step, size) = (self.step.amount(), self.size.amount());
        size / step + i64::from(size % step != 0)
    }

    fn query(&self) -> Result<String> {
        let Call { data, time, step, size, .. } = self;
        let inner = |columns: String| format!("SELECT *, {columns} FROM {data} WHERE ({time}) IS NOT NULL");
        let end = if self.has_window_time { self.window_time() } else { String::new() };
        Ok(match self.kind {
            WindowKind::Tumble => {
                let windowed = inner(format!("{} AS window_start", self.floor(size, time)));
                format!("SELECT *, window_start + {size} AS window_end{end} FROM ({windowed}) AS __windowed")
            }
            WindowKind::Hop => {
                let last = self.start(step);
                let starts: Vec<String> =
                    (0..self.n_windows()).map(|n| format!("({last}) - {}", step.times(n))).collect();
                let windowed = inner(format!("unnest(make_array({})) AS window_start", starts.join(", ")));
                let windowed =
                    format!("SELECT *, window_start + {size} AS window_end{end} FROM ({windowed}) AS __windowed");
                if size.amount() % step.amount() == 0 {
                    return Ok(windowed);
                }
                format!("SELECT * FROM ({windowed}) AS __hopping WHERE window_end > {}", self.slice())
            }
            WindowKind::Cumulate => {
                let start = self.start(size);
                let ends: Vec<String> =
                    (1..=self.n_windows()).map(|n| format!("({start}) + {}", step.times(n))).collect();
                let windowed =
                    inner(format!("{start} AS window_start, unnest(make_array({})) AS window_end", ends.join(", ")));
                format!("SELECT *{end} FROM ({windowed}) AS __windowed WHERE window_end > {}", self.slice())
            }
        })
    }

    /// Where the slice begins that the time is in. (No window begins or ends inside of a slice, so
    /// windows are a function of the slice, and rows of a slice can be summed up before: rewrite
    /// `slices` of plans.)
    fn slice(&self) -> String {
        self.floor(&self.step.common(&self.size), &self.time)
    }

    /// Where the last window begins, of those that begin so far apart.
    fn start(&self, apart: &Span) -> String {
        match self.step.common(&self.size) == *apart {
            true => self.floor(apart, &self.time),
            false => self.floor(apart, &self.slice()),
        }
    }

    /// The last boundary at or before a time.
    fn floor(&self, span: &Span, time: &str) -> String {
        match &self.offset {
            None => format!("window_floor({span}, {time})"),
            Some(offset) => format!("window_floor({span}, ({time}) - {offset}) + {offset}"),
        }
    }

    /// Flink's column of the last instant of a window.
    fn window_time(&self) -> String {
        let end = match self.kind {
            WindowKind::Cumulate => "window_end".to_owned(),
            WindowKind::Tumble | WindowKind::Hop => format!("window_start + {}", self.size),
        };
        let grain = if matches!(self.size, Span::Ticks(_)) { "1" } else { "INTERVAL '1 millisecond'" };
        format!(", {end} - {grain} AS window_time")
    }
}

/// The arguments of a function in the order of their names, those left out as `None`.
pub(super) fn in_order(function: &str, usage: &str, names: &[&str], args: &[FunctionArg]) -> Result<Vec<Option<Expr>>> {
    let place_of = |name: &str| names.iter().position(|known| name.eq_ignore_ascii_case(known));
    let mut given = vec![None; names.len()];
    for (at, arg) in args.iter().enumerate() {
        let (at, arg) = match arg {
            FunctionArg::Unnamed(arg) => (Some(at), arg),
            FunctionArg::Named { name, arg, operator: FunctionArgOperator::RightArrow } => (place_of(&name.value), arg),
            FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. } => (None, arg),
        };
        match (at.and_then(|at| given.get_mut(at)), arg) {
            (Some(place @ None), FunctionArgExpr::Expr(expr)) => *place = Some(expr.clone()),
            _ => {
                let message = format!("{function} has no such argument: {arg}");
                return Err(SqlError::new(ErrorKind::Invalid, message).with_hint(usage));
            }
        }
    }
    Ok(given)
}

/// What stands after FROM for the rows that are read.
pub(super) fn table(name: &str, data: &Expr) -> Result<String> {
    match data {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => Ok(data.to_string()),
        Expr::Subquery(query) => Ok(format!("({query}) AS __windowed")),
        other => Err(SqlError::new(ErrorKind::Invalid, format!("{name} cannot read {other}"))
            .with_hint("Name a table, a source or a view.")),
    }
}

/// The time column, and whether it is given as `DESCRIPTOR(column)`.
pub(super) fn time_column(name: &str, usage: &str, expr: Expr) -> Result<(String, bool)> {
    let wrong = |expr: &Expr| {
        SqlError::new(ErrorKind::Invalid, format!("{name} wants a column of times, not {expr}")).with_hint(usage)
    };
    let (column, is_descriptor) = match &expr {
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("descriptor") => {
            let FunctionArguments::List(list) = &function.args else { return Err(wrong(&expr)) };
            match list.args.as_slice() {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(column))] => (column.clone(), true),
                _ => return Err(wrong(&expr)),
            }
        }
        _ => (expr.clone(), false),
    };
    match column {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => Ok((column.to_string(), is_descriptor)),
        _ => Err(wrong(&expr)),
    }
}

pub(super) fn span(name: &str, expr: Expr) -> Result<Span> {
    Span::read(&expr).ok_or_else(|| {
        SqlError::new(ErrorKind::Invalid, format!("{name} wants constant sizes, not {expr}"))
            .with_hint("Write an interval of weeks, days, hours, minutes or seconds: months are not all of one length.")
    })
}
