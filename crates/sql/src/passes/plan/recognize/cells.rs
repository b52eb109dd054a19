//! The functions of `MATCH_RECOGNIZE`, taken out of its expressions: what is left refers to cells
//! by name.
//!
//! ```text
//! B.price < PREV(B.price)     "LAST(b.price)" < "PREV(LAST(b.price), 1)"
//! ```
//!
//! A column is that of the last row; with a variable, of the last row taken for it.

use anabranch_plan::recognize::{At, End, Fold};
use datafusion_expr::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Value,
};

use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::names::{fold, object_name};
use crate::syntax::parse::parse_expr;
use crate::syntax::walk::{Changing, change};

/// A cell that an expression refers to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) value: DraftValue,
}

/// What the cell is; arguments are expressions over a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DraftValue {
    Column { argument: Box<Expr>, at: At },
    Classifier,
    MatchNumber,
    Fold { function: Fold, argument: Option<Box<Expr>>, variable: Option<usize> },
}

/// Takes cells out of expressions.
pub(super) struct Lowering<'a> {
    /// Names of the variables.
    variables: &'a [String],
    pub(super) cells: Vec<Draft>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(variables: &'a [String]) -> Lowering<'a> {
        Lowering { variables, cells: Vec::new() }
    }

    /// Replaces what depends on the match by cells.
    ///
    /// # Errors
    /// `Invalid` for functions that are called wrongly, `UnknownName` for unknown variables,
    /// `Unsupported` for subqueries.
    pub(super) fn lower(&mut self, expr: &mut Expr) -> Result<()> {
        change(expr, self)
    }

    /// The reference to a cell.
    fn cell(&mut self, name: String, value: DraftValue) -> Expr {
        let known = self.cells.iter().find(|cell| cell.value == value).map(|cell| cell.name.clone());
        let name = known.unwrap_or_else(|| {
            // (Different cells are written differently.)
            self.cells.push(Draft { name: name.clone(), value });
            name
        });
        Expr::Identifier(Ident::with_quote('"', name))
    }

    fn column(&mut self, argument: Expr, at: At) -> Expr {
        let of = match at.variable {
            Some(variable) => format!("{}.{argument}", self.variables[variable]),
            None => argument.to_string(),
        };
        let end = if at.end == End::First { "FIRST" } else { "LAST" };
        let mut name = match at.skipped {
            0 => format!("{end}({of})"),
            skipped => format!("{end}({of}, {skipped})"),
        };
        if at.offset != 0 {
            let step = if at.offset < 0 { "PREV" } else { "NEXT" };
            name = format!("{step}({name}, {})", at.offset.unsigned_abs());
        }
        self.cell(name, DraftValue::Column { argument: Box::new(argument), at })
    }

    /// What stands for a call; `None` for a function that has nothing to do with the match.
    fn call(&mut self, function: &Function) -> Result<Option<Expr>> {
        let name = function.name.to_string().to_uppercase();
        Ok(Some(match name.as_str() {
            "FIRST" | "LAST" | "PREV" | "NEXT" => {
                let (argument, at) = self.navigate(function)?;
                self.column(argument, at)
            }
            "CLASSIFIER" if arguments(function).is_empty() => {
                self.cell("CLASSIFIER()".to_owned(), DraftValue::Classifier)
            }
            "CLASSIFIER" => return Err(SqlError::unsupported("CLASSIFIER of a variable", "Write CLASSIFIER().")),
            "MATCH_NUMBER" => self.cell("MATCH_NUMBER()".to_owned(), DraftValue::MatchNumber),
            "COUNT" => self.fold(Fold::Count, function)?,
            "SUM" => self.fold(Fold::Sum, function)?,
            "MIN" => self.fold(Fold::Min, function)?,
            "MAX" => self.fold(Fold::Max, function)?,
            "AVG" => {
                let [FunctionArg::Unnamed(FunctionArgExpr::Expr(of))] = arguments(function) else {
                    return Err(wrong(function));
                };
                // (Its parts are looked at next.)
                parse_expr(&format!("(CAST(SUM({of}) AS double precision) / NULLIF(COUNT({of}), 0))"))?
            }
            _ => return Ok(None),
        }))
    }

    fn fold(&mut self, kind: Fold, function: &Function) -> Result<Expr> {
        if function.filter.is_some() || function.over.is_some() {
            return Err(SqlError::unsupported(
                "FILTER or OVER inside MATCH_RECOGNIZE",
                "Write a CASE inside the aggregate.",
            ));
        }
        if matches!(&function.args, FunctionArguments::List(list) if list.duplicate_treatment.is_some()) {
            return Err(SqlError::unsupported(
                "DISTINCT inside MATCH_RECOGNIZE",
                "Aggregate all rows of the variable.",
            ));
        }
        let (argument, variable) = match arguments(function) {
            [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] if kind == Fold::Count => (None, None),
            [FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name))] if kind == Fold::Count => {
                (None, Some(self.variable_of_wildcard(name)?))
            }
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::QualifiedWildcard(name, _)))] if kind == Fold::Count => {
                (None, Some(self.variable_of_wildcard(name)?))
            }
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(of))] => {
                let (argument, variable) = self.row_expression(of)?;
                (Some(Box::new(argument)), variable)
            }
            _ => return Err(wrong(function)),
        };
        let value = DraftValue::Fold { function: kind, argument, variable };
        Ok(self.cell(function.to_string(), value))
    }

    fn variable_of_wildcard(&self, name: &ObjectName) -> Result<usize> {
        self.variable(&object_name(name)?)
    }

    /// The expression over a row, and which row.
    fn navigate(&self, function: &Function) -> Result<(Expr, At)> {
        let (of, count) = match arguments(function) {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(of))] => (of, None),
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(of)), FunctionArg::Unnamed(FunctionArgExpr::Expr(count))] => {
                (of, Some(whole(count).ok_or_else(|| wrong(function))?))
            }
            _ => return Err(wrong(function)),
        };
        let name = function.name.to_string().to_uppercase();
        if let "FIRST" | "LAST" = name.as_str() {
            let (argument, variable) = self.row_expression(of)?;
            let end = if name == "FIRST" { End::First } else { End::Last };
            return Ok((argument, At { end, variable, skipped: count.unwrap_or(0), offset: 0 }));
        }
        let (argument, mut at) = match of {
            Expr::Function(inner) if ["FIRST", "LAST"].contains(&inner.name.to_string().to_uppercase().as_str()) => {
                self.navigate(inner)?
            }
            of => {
                let (argument, variable) = self.row_expression(of)?;
                (argument, At { end: End::Last, variable, skipped: 0, offset: 0 })
            }
        };
        let count = i64::try_from(count.unwrap_or(1)).map_err(|_| wrong(function))?;
        at.offset = if name == "PREV" { -count } else { count };
        Ok((argument, at))
    }

    /// An expression over one row without the variable that its columns name, and that variable.
    fn row_expression(&self, expr: &Expr) -> Result<(Expr, Option<usize>)> {
        let mut plain = expr.clone();
        let mut columns = Columns { lowering: self, variables: vec![] };
        change(&mut plain, &mut columns)?;
        columns.variables.dedup();
        match columns.variables.as_slice() {
            [] => Ok((plain, None)),
            [variable] => Ok((plain, *variable)),
            _ => Err(SqlError::new(ErrorKind::Invalid, format!("{expr} takes columns of several rows"))
                .with_hint("The argument of a function of MATCH_RECOGNIZE is about the rows of one variable.")),
        }
    }

    fn variable(&self, name: &str) -> Result<usize> {
        self.variables.iter().position(|variable| variable == name).ok_or_else(|| {
            SqlError::new(
                ErrorKind::UnknownName,
                format!("variable \"{name}\" is not in the pattern of MATCH_RECOGNIZE"),
            )
            .with_hint(format!("The pattern has {}.", self.variables.join(", ")))
        })
    }
}

impl Changing for Lowering<'_> {
    fn expr(&mut self, expr: &mut Expr) -> Result<()> {
        let last = |variable| At { end: End::Last, variable, skipped: 0, offset: 0 };
        let replacement = match expr {
            Expr::Identifier(_) => Some(self.column(expr.clone(), last(None))),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [variable, column] => {
                    let variable = self.variable(&fold(variable))?;
                    Some(self.column(Expr::Identifier(column.clone()), last(Some(variable))))
                }
                _ => None,
            },
            Expr::Function(function) => self.call(function)?,
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => return Err(no_subquery()),
            _ => None,
        };
        if let Some(replacement) = replacement {
            *expr = replacement;
        }
        Ok(())
    }
}

/// Takes the variables off the columns of an expression over one row.
struct Columns<'a> {
    lowering: &'a Lowering<'a>,
    /// Of each column.
    variables: Vec<Option<usize>>,
}

impl Changing for Columns<'_> {
    fn expr(&mut self, expr: &mut Expr) -> Result<()> {
        match expr {
            Expr::Identifier(_) => self.variables.push(None),
            Expr::CompoundIdentifier(parts) => {
                if let [variable, column] = parts.as_slice() {
                    self.variables.push(Some(self.lowering.variable(&fold(variable))?));
                    *expr = Expr::Identifier(column.clone());
                }
            }
            Expr::Function(function) => {
                let name = function.name.to_string().to_uppercase();
                if ["FIRST", "LAST", "PREV", "NEXT", "CLASSIFIER", "MATCH_NUMBER", "COUNT", "SUM", "MIN", "MAX", "AVG"]
                    .contains(&name.as_str())
                {
                    return Err(SqlError::new(
                        ErrorKind::Invalid,
                        format!("{function} cannot stand inside another function of the match"),
                    )
                    .with_hint("Only PREV and NEXT take FIRST(..) or LAST(..)."));
                }
            }
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => return Err(no_subquery()),
            _ => {}
        }
        Ok(())
    }
}

fn no_subquery() -> SqlError {
    SqlError::unsupported("a subquery inside MATCH_RECOGNIZE", "Join before the pattern is looked for.")
}

fn arguments(function: &Function) -> &[FunctionArg] {
    match &function.args {
        FunctionArguments::List(list) => &list.args,
        _ => &[],
    }
}

fn whole(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.to_string().parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

fn wrong(function: &Function) -> SqlError {
    SqlError::new(ErrorKind::Invalid, format!("{function} is not called as in MATCH_RECOGNIZE"))
        .with_hint("Write FIRST(A.x), LAST(A.x, 2), PREV(x), NEXT(LAST(A.x), 2), or an aggregate of one argument.")
}
