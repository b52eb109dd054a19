//! Relations that the parser's tree cannot say, as calls of functions with reserved names.
//!
//! ```text
//! a EXCEPT ALL b                   FROM __except_all((a), (b))
//! t MATCH_RECOGNIZE (clause) AS m  FROM __match_recognize((SELECT * FROM t), 'clause') AS m
//! a ASOF LEFT JOIN r ON c          a ASOF JOIN r MATCH_CONDITION (__asof_left()) ON c
//! SESSION(t PARTITION BY k, ts, gap)  FROM __session((SELECT * FROM t ..), ts, gap, k)
//! r AS (a UNION b), b reading r    FROM __recursive('__variable_r', 'distinct', (a), (b))
//! ```
//!
//! A call is walked through, printed and read again as any other, so it survives every rewrite.
//! Users' names do not begin with two underscores.

use datafusion_expr::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    ObjectNamePart, Query, TableFactor,
};

/// A table and the text of a clause.
pub(crate) const MATCH_RECOGNIZE: &str = "__match_recognize";

/// The condition of an as-of join that keeps left rows without a match.
///
/// From the parser an argument is the time of the left side, and the condition stands in ON. Once
/// the join is put together there is no ON, and the argument is the whole condition.
pub(crate) const ASOF_LEFT: &str = "__asof_left";

/// The condition of an as-of join that keeps left rows with a match only.
pub(crate) const ASOF_INNER: &str = "__asof_inner";

/// A query, a time, a gap and the columns of a partition.
pub(crate) const SESSION: &str = "__session";

/// The column of [`SESSION`] with the first time of a row's session.
pub(crate) const SESSION_FIRST: &str = "__session_first";

/// The column of [`SESSION`] with the last time of a row's session.
pub(crate) const SESSION_LAST: &str = "__session_last";

/// The limit of a `WITH MUTUALLY RECURSIVE`, as its first named query.
pub(crate) const MUTUALLY: &str = "__mutually";

/// The clause SEARCH of the named query before this one.
pub(crate) const SEARCH: &str = "__search";

/// The clause CYCLE of the named query before this one, or before its SEARCH.
pub(crate) const CYCLE: &str = "__cycle";

/// A loop of one variable: the variable's name, `all` or `distinct`, the first rows, the rows made
/// of others, the names of the first columns.
pub(crate) const RECURSIVE: &str = "__recursive";

/// A loop of several variables: the name of the variable that is read, `none`, `return` or `error`,
/// the limit; then for each variable its name, a row of its types, and its query.
pub(crate) const MUTUALLY_RECURSIVE: &str = "__mutually_recursive";

/// What the names of variables begin with.
const VARIABLE: &str = "__variable_";

/// The relation that a query within a loop reads where its user wrote `name`.
pub(crate) fn variable(name: &str) -> String {
    format!("{VARIABLE}{name}")
}

/// The name that the user gave to a variable; `None` for other relations.
pub(crate) fn variable_name(relation: &str) -> Option<&str> {
    relation.strip_prefix(VARIABLE)
}

/// The call of a function.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    Expr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::new(name))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: vec![] }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}

/// The name and arguments of an expression that is a call.
pub(crate) fn called(expr: &Expr) -> Option<(String, Vec<&Expr>)> {
    let Expr::Function(function) = expr else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    Some((function.name.to_string(), values(&list.args)?))
}

/// The name and arguments of an entry of FROM that is a call.
pub(crate) fn called_in_from(factor: &TableFactor) -> Option<(String, Vec<&Expr>)> {
    let TableFactor::Table { name, args: Some(args), .. } = factor else { return None };
    Some((name.to_string(), values(&args.args)?))
}

fn values(args: &[FunctionArg]) -> Option<Vec<&Expr>> {
    let value = |arg| match arg {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref value)) => Some(value),
        _ => None,
    };
    args.iter().map(value).collect()
}

/// The table that a query in an argument is.
pub(crate) fn table_of(subquery: &Query) -> TableFactor {
    TableFactor::Derived { lateral: false, subquery: Box::new(subquery.clone()), alias: None, sample: None }
}
