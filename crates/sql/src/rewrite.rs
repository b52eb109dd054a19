//! Rewrites on the syntax tree, before DataFusion sees it.
//!
//! - `EXCEPT` and `INTERSECT` become marked joins, which [`setop`](crate::setop) plans with SQL's multiplicities;
//!   DataFusion would turn them into semijoins, which count wrongly.
//! - Unnamed function calls in the select list of a derived table or CTE get the function's name, as in PostgreSQL.
//! - Repeated select items at the top get names of their own; the plan's root restores what the user sees.
//! - `FETCH FIRST` becomes `LIMIT`, `mod(a, b)` becomes `a % b`.
//! - Constructs that DataFusion would drop in silence are refused.

use std::ops::ControlFlow;

use datafusion_expr::sqlparser::ast::{
    self, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, LimitClause, Query, SelectItem,
    SetExpr, SetOperator, SetQuantifier, TableFactor, VisitMut, VisitorMut,
};
use datafusion_expr::sqlparser::dialect::PostgreSqlDialect;
use datafusion_expr::sqlparser::parser::Parser;

use crate::error::{Result, SqlError};
use crate::parse::fold;

/// Alias that marks a join as a set operation; followed by `except`, `except_all`, `intersect` or `intersect_all`.
pub(crate) const SET_MARK: &str = "__anabranch_";

/// Rewrites a whole query.
///
/// # Errors
/// `Unsupported` for what DataFusion would ignore.
pub(crate) fn rewrite(query: &Query) -> Result<Query> {
    let mut query = query.clone();
    name_repeated(&mut query);
    match query.visit(&mut Rewriter) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(query),
    }
}

/// Rewrites an expression.
pub(crate) fn rewrite_expr(expr: &Expr) -> Result<Expr> {
    let mut expr = expr.clone();
    match expr.visit(&mut Rewriter) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(expr),
    }
}

/// The names of a query's columns as PostgreSQL gives them, where the text decides: `None` for items whose names (or
/// number) come from relations. The second list counts from the end, for items after a wildcard.
pub(crate) fn output_names(query: &Query) -> (Vec<Option<String>>, Vec<Option<String>>) {
    let Some(items) = select_items(&query.body) else {
        return (vec![], vec![]);
    };
    let is_wildcard = |item: &&SelectItem| {
        matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
            || matches!(item, SelectItem::UnnamedExpr(Expr::CompoundFieldAccess { .. }))
    };
    let front = items.iter().take_while(|i| !is_wildcard(i)).map(item_name).collect();
    let back = items.iter().rev().take_while(|i| !is_wildcard(i)).map(item_name).collect();
    (front, back)
}

fn select_items(body: &SetExpr) -> Option<&Vec<SelectItem>> {
    match body {
        SetExpr::Select(select) => Some(&select.projection),
        SetExpr::Query(query) => select_items(&query.body),
        SetExpr::SetOperation { left, .. } => select_items(left),
        _ => None,
    }
}

fn item_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        SelectItem::UnnamedExpr(expr) => Some(expr_name(expr).unwrap_or_else(|| "?column?".into())),
        _ => None,
    }
}

fn expr_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(ident) => Some(fold(ident)),
        Expr::CompoundIdentifier(parts) => parts.last().map(fold),
        Expr::Function(function) => function.name.0.last().and_then(|part| part.as_ident()).map(fold),
        Expr::Nested(inner) => expr_name(inner),
        Expr::Cast { expr, data_type, .. } => {
            expr_name(expr).or_else(|| Some(data_type.to_string().split(['(', ' ']).next()?.to_lowercase()))
        }
        Expr::Case { else_result, .. } => {
            else_result.as_ref().and_then(|e| column_name(e)).or_else(|| Some("case".into()))
        }
        Expr::Extract { .. } => Some("extract".into()),
        Expr::Substring { .. } => Some("substring".into()),
        Expr::Position { .. } => Some("position".into()),
        Expr::Trim { .. } => Some("btrim".into()),
        Expr::Ceil { .. } => Some("ceil".into()),
        Expr::Floor { .. } => Some("floor".into()),
        Expr::Overlay { .. } => Some("overlay".into()),
        Expr::Exists { .. } => Some("exists".into()),
        Expr::Array(_) => Some("array".into()),
        Expr::TypedString(typed) => Some(typed.data_type.to_string().to_lowercase()),
        Expr::Interval(_) => Some("interval".into()),
        Expr::Value(value) => matches!(value.value, ast::Value::Boolean(_)).then(|| "bool".into()),
        Expr::Subquery(query) => output_names(query).0.into_iter().next().flatten(),
        _ => None,
    }
}

fn column_name(expr: &Expr) -> Option<String> {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)).then(|| expr_name(expr))?
}

/// Gives repeated items of the top select list names of their own: DataFusion wants them distinct.
fn name_repeated(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else {
        return;
    };
    let mut seen: Vec<String> = Vec::new();
    for (n, item) in select.projection.iter_mut().enumerate() {
        let shown = match item {
            SelectItem::UnnamedExpr(expr) => expr.to_string(),
            SelectItem::ExprWithAlias { alias, .. } => alias.to_string(),
            _ => continue,
        };
        if !seen.contains(&shown) {
            seen.push(shown);
            continue;
        }
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            continue;
        };
        *item = SelectItem::ExprWithAlias {
            expr: expr.clone(),
            alias: Ident::with_quote('"', format!("__repeated_{n}")),
        };
    }
}

struct Rewriter;

impl VisitorMut for Rewriter {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        let result = refuse_query(query)
            .and_then(|()| fetch_to_limit(query))
            .and_then(|()| mark_set_operations(&mut query.body));
        if let Some(with) = &mut query.with {
            with.cte_tables.iter_mut().for_each(|cte| name_calls(&mut cte.query));
        }
        flow(result)
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        if let TableFactor::Derived { subquery, .. } = factor {
            name_calls(subquery);
        }
        flow(refuse_factor(factor))
    }

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<SqlError> {
        flow(refuse_select(select))
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        if let Some(replacement) = mod_to_operator(expr) {
            *expr = replacement;
        }
        if let Expr::Interval(interval) = expr {
            // `INTERVAL '90' DAY (3)`: the precision of the leading field says nothing about the value.
            interval.leading_precision = None;
        }
        format_of_to_char(expr);
        any_to_in(expr);
        ControlFlow::Continue(())
    }
}

fn flow(result: Result<()>) -> ControlFlow<SqlError> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

fn refuse_query(query: &Query) -> Result<()> {
    if let Some(with) = &query.with
        && with.recursive
        && with.cte_tables.iter().any(refers_to_itself)
    {
        return Err(SqlError::unsupported(
            "WITH RECURSIVE",
            "Recursive queries come with a later version; a fixed number of steps can be written as joins.",
        ));
    }
    if !query.locks.is_empty() {
        return Err(SqlError::unsupported(
            "SELECT .. FOR UPDATE",
            "Leave the clause out: statements are strictly serialisable.",
        ));
    }
    if query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some() {
        return Err(SqlError::unsupported("this clause at the end of the query", "Leave it out."));
    }
    if !query.pipe_operators.is_empty() {
        return Err(SqlError::unsupported("|>", "Write nested queries or WITH."));
    }
    Ok(())
}

fn refers_to_itself(cte: &ast::Cte) -> bool {
    let name = fold(&cte.alias.name);
    let mut found = false;
    let _ = ast::visit_relations(&cte.query, |relation| {
        found |= matches!(relation.0.as_slice(), [part] if part.as_ident().is_some_and(|i| fold(i) == name));
        ControlFlow::<()>::Continue(())
    });
    found
}

fn refuse_select(select: &ast::Select) -> Result<()> {
    if select.into.is_some() {
        return Err(SqlError::unsupported("SELECT INTO", "Write CREATE TABLE, then INSERT INTO .. SELECT."));
    }
    if select.top.is_some() {
        return Err(SqlError::unsupported("SELECT TOP", "Write LIMIT at the end of the query."));
    }
    if !select.cluster_by.is_empty() || !select.distribute_by.is_empty() || !select.sort_by.is_empty() {
        return Err(SqlError::unsupported("SORT BY, CLUSTER BY and DISTRIBUTE BY", "Write ORDER BY."));
    }
    Ok(())
}

fn refuse_factor(factor: &TableFactor) -> Result<()> {
    match factor {
        TableFactor::Table { version: Some(_), .. } => Err(SqlError::unsupported(
            "FOR SYSTEM_TIME AS OF",
            "Reads see the present; keep history in a table with a time column.",
        )),
        TableFactor::Table { sample: Some(_), .. } => {
            Err(SqlError::unsupported("TABLESAMPLE", "Filter by a condition on the key."))
        }
        TableFactor::Pivot { .. } | TableFactor::Unpivot { .. } => {
            Err(SqlError::unsupported("PIVOT", "Write one aggregate with FILTER (WHERE ..) for each column."))
        }
        TableFactor::MatchRecognize { .. } => {
            Err(SqlError::unsupported("MATCH_RECOGNIZE", "Patterns over time come with a later version."))
        }
        _ => Ok(()),
    }
}

/// `FETCH FIRST n ROWS ONLY` is `LIMIT n`.
fn fetch_to_limit(query: &mut Query) -> Result<()> {
    let Some(fetch) = query.fetch.take() else {
        return Ok(());
    };
    if fetch.with_ties || fetch.percent {
        return Err(SqlError::unsupported("FETCH .. WITH TIES or PERCENT", "Write FETCH FIRST n ROWS ONLY."));
    }
    let count = fetch.quantity.unwrap_or_else(|| Expr::value(ast::Value::Number("1".into(), false)));
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => *limit = Some(count),
        other => {
            *other = Some(LimitClause::LimitOffset {
                limit: Some(count),
                offset: None,
                limit_by: vec![],
            });
        }
    }
    Ok(())
}

/// Names the unnamed calls in a select list after their functions, unless an `ORDER BY` might refer to them.
fn name_calls(query: &mut Query) {
    if query.order_by.is_some() {
        return;
    }
    let SetExpr::Select(select) = query.body.as_mut() else {
        return;
    };
    let names: Vec<Option<String>> = select.projection.iter().map(item_name).collect();
    for n in 0..names.len() {
        let SelectItem::UnnamedExpr(expr @ Expr::Function(_)) = &select.projection[n] else {
            continue;
        };
        let unique = names.iter().filter(|name| **name == names[n]).count() == 1;
        if let (Some(name), true) = (&names[n], unique) {
            select.projection[n] = SelectItem::ExprWithAlias {
                expr: expr.clone(),
                alias: Ident::with_quote('"', name),
            };
        }
    }
}

fn mark_set_operations(body: &mut SetExpr) -> Result<()> {
    let SetExpr::SetOperation { op, set_quantifier, left, right } = body else {
        return Ok(());
    };
    let all = match set_quantifier {
        SetQuantifier::All => "_all",
        SetQuantifier::None | SetQuantifier::Distinct => "",
        _ => return Err(SqlError::unsupported("BY NAME", "List the columns in the same order on both sides.")),
    };
    let name = match op {
        SetOperator::Union => {
            mark_set_operations(left)?;
            return mark_set_operations(right);
        }
        SetOperator::Except | SetOperator::Minus => "except",
        SetOperator::Intersect => "intersect",
    };
    let mut template = template(&format!("SELECT * FROM (a CROSS JOIN b) AS \"{SET_MARK}{name}{all}\""))?;
    if let SetExpr::Select(select) = template.body.as_mut()
        && let Some(TableFactor::NestedJoin { table_with_joins, .. }) =
            select.from.first_mut().map(|from| &mut from.relation)
        && let Some(join) = table_with_joins.joins.first_mut()
    {
        join.relation = derived(right)?;
        table_with_joins.relation = derived(left)?;
    }
    *body = *template.body;
    Ok(())
}

fn derived(side: &SetExpr) -> Result<TableFactor> {
    let subquery = match side {
        SetExpr::Query(query) => query.clone(),
        other => {
            let mut query = template("SELECT 1")?;
            query.body = Box::new(other.clone());
            query
        }
    };
    Ok(TableFactor::Derived {
        lateral: false,
        subquery,
        alias: None,
        sample: None,
    })
}

/// A syntax tree to fill in.
pub(crate) fn template(text: &str) -> Result<Box<Query>> {
    Ok(Parser::new(&PostgreSqlDialect {}).try_with_sql(text)?.parse_query()?)
}

fn mod_to_operator(expr: &Expr) -> Option<Expr> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    if !function.name.to_string().eq_ignore_ascii_case("mod") {
        return None;
    }
    match list.args.as_slice() {
        [
            FunctionArg::Unnamed(FunctionArgExpr::Expr(left)),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(right)),
        ] => Some(Expr::Nested(Box::new(Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(left.clone()))),
            op: BinaryOperator::Modulo,
            right: Box::new(Expr::Nested(Box::new(right.clone()))),
        }))),
        _ => None,
    }
}

/// `x = ANY (query)` is `x IN (query)`, and `x <> ALL (query)` is `x NOT IN (query)`.
fn any_to_in(expr: &mut Expr) {
    let (left, right, negated) = match expr {
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => (left, right, false),
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
        _ => return,
    };
    if let Expr::Subquery(subquery) = right.as_ref() {
        *expr = Expr::InSubquery {
            expr: left.clone(),
            subquery: subquery.clone(),
            negated,
        };
    }
}

/// PostgreSQL's date patterns, longest first, and chrono's for the same.
const DATE_PATTERNS: [(&str, &str); 25] = [
    ("HH24", "%H"), ("HH12", "%I"), ("YYYY", "%Y"), ("yyyy", "%Y"), ("Month", "%B"), ("Mon", "%b"), ("Day", "%A"), ("DDD", "%j"),
    ("IYYY", "%G"), ("HH", "%I"), ("MI", "%M"), ("SS", "%S"), ("MS", "%3f"), ("US", "%6f"), ("MM", "%m"), ("DD", "%d"), ("Dy", "%a"),
    ("YY", "%y"), ("IW", "%V"), ("AM", "%p"), ("PM", "%p"), ("am", "%P"), ("pm", "%P"), ("ID", "%u"), ("TZ", "%Z"),
];

/// Writes the pattern of `to_char(time, 'YYYY-MM-DD')` as DataFusion reads it; patterns with `%` are left alone.
fn format_of_to_char(expr: &mut Expr) {
    let Expr::Function(function) = expr else {
        return;
    };
    if !function.name.to_string().eq_ignore_ascii_case("to_char") {
        return;
    }
    let FunctionArguments::List(list) = &mut function.args else {
        return;
    };
    if let [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))] = list.args.as_mut_slice()
        && let ast::Value::SingleQuotedString(pattern) = &mut value.value
        && !pattern.contains('%')
    {
        *pattern = chrono_pattern(pattern);
    }
}

fn chrono_pattern(pattern: &str) -> String {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        if let Some((from, to)) = DATE_PATTERNS.iter().find(|(from, _)| rest.starts_with(from)) {
            out.push_str(to);
            rest = &rest[from.len()..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}
