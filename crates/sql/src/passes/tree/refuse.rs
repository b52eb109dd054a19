//! Constructs that DataFusion would drop in silence are refused, with what to write instead.

use datafusion_expr::sqlparser::ast::{
    self, DuplicateTreatment, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, SelectItem, Spanned,
    TableFactor,
};

use super::expression_names::select_items;
use crate::error::{ErrorKind, Result, SqlError};
use crate::functions::table::FUNCTIONS;
use crate::syntax::walk::change_outside_queries;

/// Refuses clauses of a query.
///
/// # Errors
/// `Unsupported`, with another way.
pub(super) fn query(query: &Query) -> Result<()> {
    if query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some() {
        return Err(SqlError::unsupported("this clause at the end of the query", "Leave it out."));
    }
    if !query.pipe_operators.is_empty() {
        return Err(SqlError::unsupported("|>", "Write nested queries or WITH."));
    }
    Ok(())
}

/// Refuses functions of what there is not.
///
/// # Errors
/// `Unsupported`, with another way.
pub(super) fn function(function: &ast::Function) -> Result<()> {
    let name = function.name.to_string().to_lowercase();
    if let FunctionArguments::List(list) = &function.args
        && list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
        && list.args.iter().any(|arg| matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::Wildcard)))
    {
        let message = format!("DISTINCT * in {name}() names no values");
        return Err(SqlError::new(ErrorKind::Syntax, message)
            .with_hint("Count the rows of SELECT DISTINCT * in a derived table."));
    }
    if let FunctionArguments::List(list) = &function.args
        && matches!(list.args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)])
        && name != "count"
        && FUNCTIONS.aggregate.contains_key(&name)
    {
        return Err(SqlError::new(ErrorKind::UnknownName, format!("function {name}() does not exist"))
            .with_hint(format!("Name what is aggregated: {name}(x).")));
    }
    let hint = match name.as_str() {
        "pg_column_size" => "Rows lie in columns, which are packed: octet_length(x::text) tells the bytes of a text.",
        "scale" => "Zeros at the end of a numeric are not kept: min_scale(x) tells the digits that it needs.",
        "array_fill" => "Arrays begin at 1: leave the bounds out, and write the lengths as ARRAY[2, 3].",
        "setseed" => "random() cannot be repeated: keep its numbers in a table.",
        _ => return Ok(()),
    };
    let is_filled = |list: &ast::FunctionArgumentList| list.args.len() < 3;
    match &function.args {
        FunctionArguments::List(list) if name == "array_fill" && is_filled(list) => Ok(()),
        _ => Err(SqlError::unsupported(format!("{name}()"), hint)),
    }
}

/// Refuses clauses of a SELECT.
///
/// # Errors
/// `Unsupported`, with another way.
pub(super) fn select(select: &ast::Select) -> Result<()> {
    if select.into.is_some() {
        return Err(SqlError::unsupported("SELECT INTO", "Write CREATE TABLE, then INSERT INTO .. SELECT."));
    }
    for (part, word) in [(&select.selection, "WHERE"), (&select.having, "HAVING")] {
        if let Some(part) = part
            && has_window(part)?
        {
            let hint = "Compute it in a derived table, and compare outside: SELECT .. FROM (SELECT *, rank() OVER (..) AS n FROM t) AS r WHERE n = 1.";
            return Err(SqlError::new(ErrorKind::Invalid, format!("window functions are not allowed in {word}"))
                .with_hint(hint));
        }
    }
    if groups_by_window(select)? {
        let hint = "Compute it in a derived table, and group outside: SELECT n FROM (SELECT rank() OVER (..) AS n FROM t) AS r GROUP BY n.";
        return Err(SqlError::new(ErrorKind::Invalid, "window functions are not allowed in GROUP BY").with_hint(hint));
    }
    for join in select.from.iter().flat_map(|from| &from.joins) {
        joined(join)?;
    }
    if select.top.is_some() {
        return Err(SqlError::unsupported("SELECT TOP", "Write LIMIT at the end of the query."));
    }
    if !select.cluster_by.is_empty() || !select.distribute_by.is_empty() || !select.sort_by.is_empty() {
        return Err(SqlError::unsupported("SORT BY, CLUSTER BY and DISTRIBUTE BY", "Write ORDER BY."));
    }
    Ok(())
}

/// Refuses a join that does not say which rows meet.
///
/// # Errors
/// `Syntax`, at the relation that is joined.
fn joined(join: &ast::Join) -> Result<()> {
    use ast::{JoinConstraint::None as Nothing, JoinOperator as Operator};
    let (Operator::Join(Nothing)
    | Operator::Inner(Nothing)
    | Operator::Left(Nothing)
    | Operator::LeftOuter(Nothing)
    | Operator::Right(Nothing)
    | Operator::RightOuter(Nothing)
    | Operator::FullOuter(Nothing)) = &join.join_operator
    else {
        return Ok(());
    };
    let error = SqlError::new(ErrorKind::Syntax, "syntax error: JOIN without ON or USING")
        .with_hint("Say which rows meet, as in JOIN b ON a.id = b.id; CROSS JOIN joins each row with all.");
    Err(error.at(join.relation.span().start))
}

/// Whether a group is a window function, or the item of that number is one.
fn groups_by_window(select: &ast::Select) -> Result<bool> {
    let ast::GroupByExpr::Expressions(groups, _) = &select.group_by else { return Ok(false) };
    for group in groups {
        let item = match group {
            Expr::Value(number) => {
                number.to_string().parse().ok().and_then(|n: usize| select.projection.get(n.checked_sub(1)?))
            }
            _ => None,
        };
        let is_window = match item {
            Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => has_window(expr)?,
            _ => has_window(group)?,
        };
        if is_window {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a window function stands in an expression, subqueries left out.
fn has_window(expr: &Expr) -> Result<bool> {
    let mut found = false;
    change_outside_queries(&mut expr.clone(), &mut |part| {
        found |= matches!(part, Expr::Function(function) if function.over.is_some());
        Ok(())
    })?;
    Ok(found)
}

/// Refuses IN of a query with several columns, of a value that is no row.
///
/// # Errors
/// `Syntax`.
pub(super) fn in_of_columns(expr: &Expr) -> Result<()> {
    let Expr::InSubquery { expr: value, subquery, .. } = expr else { return Ok(()) };
    let Some(items) = select_items(&subquery.body) else { return Ok(()) };
    let is_value = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    let is_row = |value: &Expr| matches!(value, Expr::Tuple(_) | Expr::Function(_) | Expr::Nested(_));
    if items.len() > 1 && items.iter().all(is_value) && !is_row(value) {
        return Err(SqlError::new(ErrorKind::Syntax, "subquery has too many columns")
            .with_hint("Select one column, or compare rows: (a, b) IN (SELECT x, y ..)."));
    }
    Ok(())
}

/// Refuses window functions over distinct arguments, as PostgreSQL does.
///
/// # Errors
/// `Unsupported`, with another way.
pub(super) fn distinct_over(expr: &Expr) -> Result<()> {
    if let Expr::Function(function) = expr
        && function.over.is_some()
        && let FunctionArguments::List(list) = &function.args
        && list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
    {
        return Err(SqlError::unsupported(
            "DISTINCT in a window function",
            "Mark the first row of each value with row_number() in a derived table, and aggregate with FILTER.",
        ));
    }
    Ok(())
}

/// Refuses frames of windows that end before they begin, in PostgreSQL's words.
///
/// # Errors
/// `Invalid`.
pub(super) fn frame(expr: &Expr) -> Result<()> {
    use ast::WindowFrameBound::{CurrentRow, Following, Preceding};
    let Expr::Function(ast::Function { over: Some(ast::WindowType::WindowSpec(window)), .. }) = expr else {
        return Ok(());
    };
    let Some(ast::WindowFrame { start_bound, end_bound, .. }) = &window.window_frame else { return Ok(()) };
    let message = match (start_bound, end_bound.as_ref().unwrap_or(&CurrentRow)) {
        (Following(None), _) => "frame start cannot be UNBOUNDED FOLLOWING",
        (_, Preceding(None)) => "frame end cannot be UNBOUNDED PRECEDING",
        (CurrentRow, Preceding(_)) => "frame starting from current row cannot have preceding rows",
        (Following(_), Preceding(_)) => "frame starting from following row cannot have preceding rows",
        (Following(_), CurrentRow) => "frame starting from following row cannot end with current row",
        _ => return Ok(()),
    };
    Err(SqlError::new(ErrorKind::Invalid, message)
        .with_hint("Write the end that comes first in the order first: BETWEEN 1 PRECEDING AND CURRENT ROW."))
}

/// Refuses entries of FROM.
///
/// # Errors
/// `Unsupported`, with another way.
pub(super) fn factor(factor: &TableFactor) -> Result<()> {
    match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => table_with_joins.joins.iter().try_for_each(joined),
        TableFactor::Table { version: Some(_), .. } => Err(SqlError::unsupported(
            "FOR SYSTEM_TIME AS OF",
            "Reads see the present; keep history in a table with a time column.",
        )),
        TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => {
            Err(SqlError::unsupported("TABLESAMPLE", "Filter by a condition on the key."))
        }
        TableFactor::TableFunction { .. } => Err(SqlError::unsupported(
            "TABLE(..) in FROM",
            "Name a table or a view, or write TUMBLE, HOP, CUMULATE or SPLIT.",
        )),
        TableFactor::Pivot { .. } | TableFactor::Unpivot { .. } => {
            Err(SqlError::unsupported("PIVOT", "Write one aggregate with FILTER (WHERE ..) for each column."))
        }
        _ => Ok(()),
    }
}
