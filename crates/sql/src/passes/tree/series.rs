//! Functions that yield several rows: `generate_series`, `unnest` and `string_to_table`, in FROM
//! and in the select list.
//!
//! ```text
//! FROM generate_series(1, 3) AS g(n)         FROM (SELECT unnest(generate_series(1, 3)) AS n) AS g
//! FROM unnest(a, b) AS t(x, y)               FROM (SELECT unnest(a) AS x, unnest(b) AS y) AS t
//! FROM unnest(a) WITH ORDINALITY AS t(x, i)  FROM (SELECT unnest(a) AS x, unnest(generate_series(1, cardinality(a))) AS i) AS t
//! SELECT generate_series(1, 3)               SELECT unnest(generate_series(1, 3))
//! FROM string_to_array('a,b', ',') AS s      FROM (SELECT string_to_array('a,b', ',') AS s) AS s
//! FROM ROWS FROM (f(x), g(y)) AS t(a, b)     FROM (SELECT unnest(f(x)) AS a, unnest(g(y)) AS b) AS t
//! ```

use datafusion_expr::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Select, SelectItem, SetExpr, TableFactor, Visit,
};

use crate::error::{ErrorKind, Result, SqlError};
use crate::functions::all_elements::ALL_ELEMENTS;
use crate::functions::json::lists_of;
use crate::functions::table::FUNCTIONS;
use crate::syntax::names::fold;
use crate::syntax::parse::operands::ROWS_FROM;
use crate::syntax::parse::parse_expr;
use crate::syntax::template::template;
use crate::syntax::walk::{change_outside_queries, look_outside_queries};

/// A call in FROM, taken apart.
pub(super) struct Series {
    /// The name it goes by.
    pub(super) table: Ident,
    /// The names of its columns.
    pub(super) columns: Vec<String>,
    /// The items of a select list that yields its rows.
    pub(super) items: String,
}

/// Rewrites a call in FROM.
///
/// # Errors
/// `Unsupported` for functions in ROWS FROM that give no rows.
pub(super) fn in_from(factor: &mut TableFactor) -> Result<()> {
    let Some(series) = called(factor)? else { return Ok(()) };
    let query = template(&format!("SELECT 1 FROM (SELECT {}) AS {}", series.items, series.table))?;
    if let SetExpr::Select(select) = *query.body
        && let Some(from) = select.from.into_iter().next()
    {
        *factor = from.relation;
    }
    Ok(())
}

/// The call that stands here, of a function that yields rows or one of values.
///
/// # Errors
/// As for [`in_from`].
pub(super) fn called(factor: &TableFactor) -> Result<Option<Series>> {
    match of(factor)? {
        Some(series) => Ok(Some(series)),
        None => value(factor),
    }
}

/// The call that stands here, if one does.
///
/// # Errors
/// As for [`in_from`].
pub(super) fn of(factor: &TableFactor) -> Result<Option<Series>> {
    let (name, lists, alias, ordinality) = match factor {
        TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. } => {
            let name = name.to_string().to_lowercase();
            let Some(lists) = lists(&name, &args.args) else { return Ok(None) };
            (name, lists, alias, *with_ordinality)
        }
        TableFactor::Function { name, args, alias, with_ordinality, .. } => {
            let name = name.to_string().to_lowercase();
            let Some(lists) = lists(&name, args) else { return Ok(None) };
            (name, lists, alias, *with_ordinality)
        }
        TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. } => {
            let lists = array_exprs.iter().map(ToString::to_string).collect();
            ("unnest".to_string(), lists, alias, *with_ordinality)
        }
        _ => return Ok(None),
    };
    let table = alias.as_ref().map_or_else(|| Ident::with_quote('"', &name), |alias| alias.name.clone());
    let given: Vec<String> = alias.iter().flat_map(|alias| &alias.columns).map(|column| fold(&column.name)).collect();
    let single = alias.is_some() && lists.len() == 1;
    let own = own_names(&name, factor);
    let column = |at: usize| match given.get(at) {
        Some(name) => name.clone(),
        None if own.get(at).is_some_and(|own| !own.is_empty()) => own[at].clone(),
        None if single && at == 0 => fold(&table),
        None if at == lists.len() => "ordinality".to_string(),
        None => name.clone(),
    };
    let mut columns: Vec<String> = (0..lists.len()).map(column).collect();
    let mut lists = lists.clone();
    if ordinality {
        columns.push(column(lists.len()));
        let lengths: Vec<String> = lists.iter().map(|list| format!("cardinality({list})")).collect();
        let longest = if lengths.len() == 1 { lengths[0].clone() } else { format!("greatest({})", lengths.join(", ")) };
        lists.push(format!("generate_series(1::bigint, {longest}::bigint)"));
    }
    check_names(&table, columns.len(), given.len())?;
    let item = |(n, list): (usize, &String)| {
        // (Names are distinct below; what is shown is the list of columns.)
        let name = if columns[..n].contains(&columns[n]) { format!("__repeated_{n}") } else { columns[n].clone() };
        format!("{} AS {}", unnested(list), Ident::with_quote('"', name))
    };
    let items: Vec<String> = lists.iter().enumerate().map(item).collect();
    Ok(Some(Series { table, columns, items: items.join(", ") }))
}

/// The names that a call gives to its columns; empty where the columns have none.
fn own_names(name: &str, factor: &TableFactor) -> Vec<String> {
    let of_call = |name: &str| -> Vec<String> {
        lists_of(name).unwrap_or_default().iter().map(|(_, own)| own.to_string()).collect()
    };
    let (ROWS_FROM, TableFactor::Table { args: Some(args), .. }) = (name, factor) else { return of_call(name) };
    let each = args.args.iter().filter_map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(call))) => {
            let name = call.name.to_string().to_lowercase();
            let n_columns = match &call.args {
                FunctionArguments::List(list) => lists(&name, &list.args).map_or(1, |lists| lists.len()),
                _ => 1,
            };
            let mut names = of_call(&name);
            names.resize(n_columns, String::new());
            names.iter_mut().filter(|own| own.is_empty()).for_each(|own| own.clone_from(&name));
            Some(names)
        }
        _ => None,
    });
    each.flatten().collect()
}

/// Refuses more names than there are columns.
fn check_names(table: &Ident, n_columns: usize, n_given: usize) -> Result<()> {
    if n_given <= n_columns {
        return Ok(());
    }
    let (table, columns) = (fold(table), if n_columns == 1 { "column" } else { "columns" });
    let message = format!("table \"{table}\" has {n_columns} columns available but {n_given} columns specified");
    let hint = format!("Give {n_columns} {columns} a name, or fewer.");
    Err(SqlError::new(ErrorKind::Invalid, message).with_hint(hint))
}

/// A function of values in FROM: one row of its answer.
///
/// # Errors
/// More than one name of a column.
fn value(factor: &TableFactor) -> Result<Option<Series>> {
    let TableFactor::Table { name, alias, args: Some(args), with_ordinality: false, .. } = factor else {
        return Ok(None);
    };
    let function = name.to_string().to_lowercase();
    if !FUNCTIONS.scalar.contains_key(&function) {
        return Ok(None);
    }
    let table = alias.as_ref().map_or_else(|| Ident::with_quote('"', &function), |alias| alias.name.clone());
    let given: Vec<_> = alias.iter().flat_map(|alias| &alias.columns).collect();
    check_names(&table, 1, given.len())?;
    let column = given.first().map_or_else(|| fold(&table), |column| fold(&column.name));
    let args: Vec<String> = args.args.iter().map(ToString::to_string).collect();
    let items = format!("{function}({}) AS {}", args.join(", "), Ident::with_quote('"', &column));
    Ok(Some(Series { table, columns: vec![column], items }))
}

/// `unnest` yields the elements of all dimensions: `unnest(list)` is
/// `unnest(__all_elements(list))`.
pub(super) fn all_dimensions(expr: &mut Expr) -> Result<()> {
    let Expr::Function(function) = expr else { return Ok(()) };
    let FunctionArguments::List(arguments) = &mut function.args else { return Ok(()) };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(list))] = arguments.args.as_mut_slice() else { return Ok(()) };
    let is_done = matches!(list, Expr::Function(call) if call.name.to_string() == ALL_ELEMENTS || call.name.to_string() == "generate_series");
    if function.name.to_string().eq_ignore_ascii_case("unnest") && !is_done {
        *list = parse_expr(&format!("{ALL_ELEMENTS}({list})"))?;
    }
    Ok(())
}

/// The matches of a regular expression, each the text of an array.
const REGEXP_ROWS: &str = "__regexp_rows";

/// The elements of a list. (A list of documents, or of lists, is one of texts to the planner.)
pub(super) fn unnested(list: &str) -> String {
    const FORMS: [(&str, &str); 5] = [
        ("__json_elements(", "__json_document"),
        ("__json_values(", "__json_document"),
        ("__jsonb_elements(", "__jsonb_document"),
        ("__jsonb_values(", "__jsonb_document"),
        ("__jsonb_path_values(", "__jsonb_document"),
    ];
    let form = FORMS.into_iter().find(|(start, _)| list.starts_with(start));
    match form {
        Some((_, form)) => format!("{form}(unnest({list}))"),
        None if list.starts_with(REGEXP_ROWS) => format!("CAST(unnest({list}) AS text[])"),
        None => format!("unnest({list})"),
    }
}

/// Whether a function yields several rows.
pub(super) fn gives_rows(name: &str) -> bool {
    let of_lists = ["unnest", "generate_series", "generate_subscripts", "string_to_table", "regexp_split_to_table"];
    of_lists.contains(&name) || matches!(name, "regexp_matches" | "pg_partition_ancestors") || lists_of(name).is_some()
}

/// Whether a part of a select list yields several rows.
pub(super) fn unnests(part: &impl Visit) -> bool {
    let mut found = false;
    look_outside_queries(part, &mut |expr| {
        found |= matches!(expr, Expr::Function(call) if gives_rows(&call.name.to_string().to_lowercase()));
    });
    found
}

/// The lists whose elements the call yields, as text.
pub(super) fn lists(name: &str, given: &[FunctionArg]) -> Option<Vec<String>> {
    let mut args: Vec<String> = given.iter().map(ToString::to_string).collect();
    match name {
        "generate_series" => Some(vec![format!("generate_series({})", args.join(", "))]),
        "string_to_table" => Some(vec![format!("string_to_array({})", args.join(", "))]),
        "regexp_split_to_table" => Some(vec![format!("regexp_split_to_array({})", args.join(", "))]),
        "regexp_matches" => Some(vec![format!("{REGEXP_ROWS}({})", args.join(", "))]),
        "unnest" => Some(args),
        ROWS_FROM => rows_from(given),
        // (There are no partitions; psql asks for those above a table.)
        "pg_partition_ancestors" if args.len() == 1 => {
            let number = format!("CAST({} AS oid)", args[0]);
            Some(vec![format!("array_remove(ARRAY[{number}], {number})")])
        }
        "generate_subscripts" if args.len() == 2 => {
            Some(vec![format!("generate_series(1, array_length({}, {}))", args[0], args[1])])
        }
        "generate_subscripts" if args.len() == 3 => Some(vec![format!(
            "(CASE WHEN {} THEN array_reverse(generate_series(1, array_length({list}, {dimension}))) \
             ELSE generate_series(1, array_length({list}, {dimension})) END)",
            args[2],
            list = args[0],
            dimension = args[1]
        )]),
        name => {
            let of_documents = lists_of(name)?.iter();
            if let (true, Some(document)) = (name.starts_with("jsonb_"), args.first_mut()) {
                *document = as_document(document);
            }
            Some(of_documents.map(|(list, _)| format!("{list}({})", args.join(", "))).collect())
        }
    }
}

/// A literal in quotes in the form that documents are kept in: members once, in their order.
fn as_document(argument: &str) -> String {
    match argument.starts_with('\'') && argument.ends_with('\'') {
        true => format!("CAST({argument} AS jsonb)"),
        false => argument.to_owned(),
    }
}

/// The lists of calls that stand beside each other; a call that gives one value is a list of it.
fn rows_from(calls: &[FunctionArg]) -> Option<Vec<String>> {
    let each = calls.iter().map(|call| {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(function))) = call else { return None };
        let FunctionArguments::List(list) = &function.args else { return None };
        let name = function.name.to_string().to_lowercase();
        lists(&name, &list.args).or_else(|| Some(vec![format!("ARRAY[{function}]")]))
    });
    each.collect::<Option<Vec<_>>>().map(|lists| lists.concat())
}

/// Rewrites the items of a select list that are such calls.
///
/// # Errors
/// `Unsupported` for calls of several columns.
pub(super) fn in_select(select: &mut Select) -> Result<()> {
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
        let Expr::Function(function) = expr else { continue };
        let name = function.name.to_string().to_lowercase();
        let FunctionArguments::List(list) = &function.args else { continue };
        let is_plain = list.args.iter().all(|arg| matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::Expr(_))));
        if !is_plain || name == "unnest" {
            continue;
        }
        let Some(lists) = lists(&name, &list.args) else { continue };
        if lists.len() > 1 {
            let hint = format!("Write FROM table, {name}(..) AS e(key, value).");
            return Err(SqlError::unsupported(format!("{name}() in a select list"), hint));
        }
        let unnested = parse_expr(&unnested(&lists[0]))?;
        *item = match item {
            SelectItem::ExprWithAlias { alias, .. } => {
                SelectItem::ExprWithAlias { expr: unnested, alias: alias.clone() }
            }
            _ => SelectItem::ExprWithAlias { expr: unnested, alias: Ident::with_quote('"', name) },
        };
    }
    select.projection.iter_mut().try_for_each(within_expression)
}

/// Calls within the expressions of an item: `generate_series(1, 3) * 2` is
/// `unnest(generate_series(1, 3)) * 2`, which is computed of each row.
fn within_expression(item: &mut SelectItem) -> Result<()> {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { return Ok(()) };
    if matches!(expr, Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("unnest")) {
        return Ok(());
    }
    change_outside_queries(expr, &mut |part| {
        let Expr::Function(function) = part else { return Ok(()) };
        let FunctionArguments::List(list) = &function.args else { return Ok(()) };
        let name = function.name.to_string().to_lowercase();
        if name == "unnest" || !gives_rows(&name) {
            // (What the function already unnests stays a list.)
            return if name == "unnest" { as_list(part) } else { Ok(()) };
        }
        if let Some([list]) = lists(&name, &list.args).as_deref() {
            *part = parse_expr(&unnested(list))?;
        }
        Ok(())
    })
}

/// `unnest(unnest(list))`, of which the inner one was put there, as `unnest(list)`.
fn as_list(expr: &mut Expr) -> Result<()> {
    let inner = match expr {
        Expr::Function(function) => match &function.args {
            FunctionArguments::List(list) => match list.args.as_slice() {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))] => inner.clone(),
                _ => return Ok(()),
            },
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    if matches!(&inner, Expr::Function(call) if call.name.to_string() == "unnest") {
        *expr = inner;
    }
    Ok(())
}
