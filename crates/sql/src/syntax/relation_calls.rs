//! Relations that the parser's tree cannot say, as calls of functions with reserved names.
//!
//! ```text
//! a EXCEPT ALL b                   FROM __except_all((a), (b))
//! t MATCH_RECOGNIZE (clause) AS m  FROM __match_recognize((SELECT * FROM t), 'clause') AS m
//! a ASOF LEFT JOIN r ON c          a ASOF JOIN r MATCH_CONDITION (__asof_left()) ON c
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
