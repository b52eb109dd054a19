//! Where an unknown name stands: the planner's messages say which name, the syntax tree knows
//! where.

use std::ops::ControlFlow;

use datafusion_expr::sqlparser::ast::{self, Expr, Query, Spanned};
use datafusion_expr::sqlparser::tokenizer::Location;

use crate::error::{ErrorKind, SqlError};
use crate::functions::table::FUNCTIONS;
use crate::resolve::suggest::nearest;
use crate::resolve::types::{ADDRESSES, RANGES, WORDS, refused};
use crate::syntax::names::fold;
use crate::syntax::walk::{Look, Looking, look};

/// Functions of other systems, or of types that there are not, and what is written here.
const ELSEWHERE: [(&str, &str); 87] = [
    ("abbrev", ADDRESSES),
    ("approx_count_distinct", "Write count(DISTINCT x): it is exact, and kept current."),
    ("array_extract", "Write list[n]; the first element is 1."),
    ("broadcast", ADDRESSES),
    ("charindex", "Write strpos(text, part)."),
    ("convert", "Write CAST(x AS type), or x::type."),
    ("count_if", "Write count(*) FILTER (WHERE condition)."),
    ("countif", "Write count(*) FILTER (WHERE condition)."),
    ("curdate", "Write current_date."),
    ("date_add", "Write time + interval '1 day'."),
    ("date_diff", DIFFERENCE),
    ("date_format", "Write to_char(time, 'YYYY-MM-DD')."),
    ("date_sub", "Write time - interval '1 day'."),
    ("dateadd", "Write time + interval '1 day'."),
    ("datediff", DIFFERENCE),
    ("epoch", "Write extract(epoch FROM time)."),
    ("epoch_ms", "Write extract(epoch FROM time) * 1000, or to_timestamp(milliseconds / 1000.0)."),
    ("family", ADDRESSES),
    ("formatdatetime", "Write to_char(time, 'YYYY-MM-DD')."),
    ("from_unixtime", "Write to_timestamp(seconds)."),
    ("get_json_object", DOCUMENTS),
    ("getdate", "Write now()."),
    ("group_concat", "Write string_agg(text, ',')."),
    ("hop_end", WINDOWS),
    ("hop_start", WINDOWS),
    ("host", ADDRESSES),
    ("if", CHOICE),
    ("iff", CHOICE),
    ("ifnull", "Write coalesce(x, y)."),
    ("iif", CHOICE),
    ("instr", "Write strpos(text, part)."),
    ("isempty", RANGES),
    ("isnull", "Write x IS NULL, or coalesce(x, y) for another value."),
    ("json_extract", DOCUMENTS),
    ("json_extract_scalar", DOCUMENTS),
    ("json_extract_string", DOCUMENTS),
    ("julianday", "Subtract dates: b - a is in days."),
    ("lcase", "Write lower(text)."),
    ("len", "Write length(text)."),
    ("list", "Write array_agg(x)."),
    ("list_append", LISTS),
    ("list_concat", LISTS),
    ("list_contains", LISTS),
    ("list_distinct", LISTS),
    ("list_extract", LISTS),
    ("list_filter", LISTS),
    ("list_sort", LISTS),
    ("list_sum", LISTS),
    ("list_transform", LISTS),
    ("list_value", "Write ARRAY[a, b]."),
    ("listagg", "Write string_agg(text, ',')."),
    ("lower_inc", RANGES),
    ("lower_inf", RANGES),
    ("masklen", ADDRESSES),
    ("mz_now", "Write now(): a condition such as ts >= now() - INTERVAL '1 day' is kept current."),
    ("netmask", ADDRESSES),
    ("network", ADDRESSES),
    ("nvl", "Write coalesce(x, y)."),
    ("pg_sleep", "Wait in the program that asks."),
    ("plainto_tsquery", WORDS),
    ("proctime", "Write now(), or let the source bring the time."),
    ("rand", "Write random()."),
    ("range_agg", RANGES),
    ("range_intersect_agg", RANGES),
    ("range_merge", RANGES),
    ("regexp_extract", "Write substring(text FROM 'pattern')."),
    ("safe_cast", "Write CASE WHEN text ~ '^[0-9]+$' THEN text::bigint END."),
    ("session_end", WINDOWS),
    ("session_start", WINDOWS),
    ("split", "Write string_to_array(text, ',')."),
    ("strftime", "Write to_char(time, 'YYYY-MM-DD')."),
    ("string_split", "Write string_to_array(text, ',')."),
    ("strptime", "Write to_timestamp(text, 'YYYY-MM-DD')."),
    ("struct_pack", "Write ROW(a, b), or jsonb_build_object('a', a)."),
    ("sysdate", "Write now()."),
    ("timestampdiff", DIFFERENCE),
    ("to_tsquery", WORDS),
    ("to_tsvector", WORDS),
    ("ts_rank", WORDS),
    ("tumble_end", WINDOWS),
    ("tumble_start", WINDOWS),
    ("ucase", "Write upper(text)."),
    ("unix_timestamp", "Write extract(epoch FROM time)."),
    ("upper_inc", RANGES),
    ("upper_inf", RANGES),
    ("websearch_to_tsquery", WORDS),
    ("width_bucket", "Write width_bucket(x, low, high, n), or a CASE of the bounds."),
];

const DIFFERENCE: &str = "Subtract: of dates b - a is in days, of times extract(epoch FROM b - a) is in seconds.";
const WINDOWS: &str =
    "Write FROM TUMBLE(t, ts, INTERVAL '1 minute'), which has window_start and window_end; HOP and SESSION, too.";
const DOCUMENTS: &str = "Write document -> 'name' for a part, ->> 'name' for its text, or #>> '{a,b}' for a path.";
const LISTS: &str = "Lists are arrays: write list || x, x = ANY (list), or ARRAY(SELECT .. FROM unnest(list) AS x).";
const CHOICE: &str = "Write CASE WHEN condition THEN x ELSE y END.";

/// Adds the place of the name that an error is about, and a hint for unknown functions.
pub(crate) fn complete(mut error: SqlError, query: &Query) -> SqlError {
    if let Some(name) = error.message.strip_prefix("function ").and_then(|m| m.strip_suffix(" does not exist"))
        && FUNCTIONS.window.contains_key(name)
    {
        error.hint = Some(format!("Write {name}(..) OVER (ORDER BY column)."));
        error.message = format!("window function {name} requires an OVER clause");
        error.kind = ErrorKind::Invalid;
    }
    if error.message == "operator does not exist: text + text" {
        error.hint = Some("Texts are joined with ||, as in a || b.".into());
    }
    if let Some(operands) = error.message.strip_prefix("operator does not exist: ")
        && operands.starts_with("timestamp")
        && [" + bigint", " + integer", " - bigint", " - integer"].iter().any(|number| operands.ends_with(number))
    {
        error.hint = Some("Add an interval, as in t + INTERVAL '5 days'.".into());
    }
    if error.kind == ErrorKind::UnknownName
        && let Some(name) = error.message.strip_prefix("function ").and_then(|m| m.split([' ', '(']).next())
        && let Some((_, hint)) = ELSEWHERE.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))
    {
        error.hint = Some((*hint).into());
    }
    if error.kind == ErrorKind::UnknownName
        && let Some(name) = error.message.strip_prefix("function ").and_then(|m| m.split([' ', '(']).next())
        && let Some(hint) = refused(name)
    {
        error.hint = Some(hint.into());
    }
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
