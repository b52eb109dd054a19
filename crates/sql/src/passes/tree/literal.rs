//! Literals and calls that DataFusion reads otherwise than PostgreSQL.

use anabranch_batch::TextLimit;
use datafusion_expr::sqlparser::ast::{
    self, AccessExpr, ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Expr, FunctionArg, FunctionArgExpr,
    FunctionArguments, Subscript, UnaryOperator,
};

use crate::error::{ErrorKind, Result, SqlError};
use crate::functions::arrays::SUBSCRIPTED;
use crate::functions::at_time_zone::AT_TIME_ZONE;
use crate::functions::block::BLOCK;
use crate::functions::element_forms::list_reader_of;
use crate::functions::forms::reader_of;
use crate::functions::numerics::NEGATIVE;
use crate::resolve::types::{element_limit, text_limit};

/// Digits of a literal, and powers of ten, beyond which it is no decimal of a type with a scale.
const DIGITS_MAX: usize = 30;

/// Rewrites one expression whose parts are done.
///
/// # Errors
/// A text that is no interval.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    if let Some(replacement) = mod_to_operator(expr).or_else(|| read_elements(expr)).or_else(|| cut_to_length(expr)) {
        *expr = replacement;
    }
    if let Some(replacement) = crate::time::literal::rewrite(expr)? {
        *expr = replacement;
    }
    match expr {
        Expr::TypedString(typed) => {
            if let Some(read) = cut_text(&typed.data_type, &typed.value.to_string()) {
                *expr = read;
            }
        }
        Expr::Cast { expr: inner, data_type, .. } => {
            if let Expr::Value(value) = inner.as_mut() {
                add_dimensions(&value.value, data_type);
            }
        }
        Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) if is_huge(digits) => *expr = numeric(digits.clone()),
            ast::Value::UnicodeStringLiteral(text) => {
                *expr = Expr::value(ast::Value::SingleQuotedString(text.clone()));
            }
            ast::Value::SingleQuotedByteStringLiteral(_) => {
                return Err(SqlError::unsupported("a bit string", "Write a whole number, or a bytea: '\\x05'::bytea."));
            }
            _ => {}
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } if is_least(inner) => {
            *expr = Expr::value(ast::Value::Number(BEYOND_BIGINT.into(), false));
        }
        // (DataFusion has no sign before numbers that it takes for bytes.)
        Expr::UnaryOp { op: UnaryOperator::Plus, expr: inner } if !is_literal(inner) => {
            let inner = std::mem::replace(inner.as_mut(), Expr::value(ast::Value::Null));
            *expr = Expr::Nested(Box::new(inner));
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } if !is_literal(inner) => {
            let inner = std::mem::replace(inner.as_mut(), Expr::value(ast::Value::Null));
            *expr = called(NEGATIVE, vec![inner]);
        }
        Expr::AtTimeZone { timestamp, time_zone } => {
            let take = |part: &mut Expr| std::mem::replace(part, Expr::value(ast::Value::Null));
            *expr = called(AT_TIME_ZONE, vec![take(timestamp), take(time_zone)]);
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            let has_step =
                |access: &AccessExpr| matches!(access, AccessExpr::Subscript(Subscript::Slice { stride: Some(_), .. }));
            if access_chain.iter().any(has_step) {
                let error = SqlError::new(ErrorKind::Syntax, "syntax error at or near \":\"");
                return Err(error.with_hint("A slice has two bounds, a[1:2], and no step."));
            }
            let is_slice = |access: &AccessExpr| matches!(access, AccessExpr::Subscript(Subscript::Slice { .. }));
            let n_subscripts = access_chain.iter().filter(|access| matches!(access, AccessExpr::Subscript(_))).count();
            if n_subscripts > 1 && access_chain.iter().any(is_slice) {
                *expr = called(BLOCK, block_arguments(root, access_chain)?);
                return Ok(());
            }
            access_chain.iter_mut().for_each(close_slice);
            let is_index = |access: &AccessExpr| matches!(access, AccessExpr::Subscript(Subscript::Index { .. }));
            if access_chain.iter().all(is_index) {
                let element = std::mem::replace(expr, Expr::value(ast::Value::Null));
                *expr = called(SUBSCRIPTED, vec![element]);
            }
        }
        _ => {}
    }
    Ok(())
}

/// An array, and the bounds of a slice of each of its dimensions: a subscript alone is a slice from
/// 1.
fn block_arguments(root: &Expr, access_chain: &[AccessExpr]) -> Result<Vec<Expr>> {
    let number = |digits: &str| Expr::value(ast::Value::Number(digits.into(), false));
    let mut arguments = vec![root.clone()];
    for access in access_chain {
        let (from, to) = match access {
            AccessExpr::Subscript(Subscript::Index { index }) => (number("1"), index.clone()),
            AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, .. }) => (
                lower_bound.clone().unwrap_or_else(|| number("1")),
                upper_bound.clone().unwrap_or_else(|| number("2147483647")),
            ),
            AccessExpr::Dot(_) => {
                let hint = "Slice the array in a derived table, and take its part there.";
                return Err(SqlError::unsupported("a part of a slice of several dimensions", hint));
            }
        };
        arguments.extend([from, to]);
    }
    Ok(arguments)
}

/// The first whole number that is a `numeric` in PostgreSQL.
const BEYOND_BIGINT: &str = "9223372036854775808";

/// Whether an expression is the least `bigint`, whose negation is a `numeric`.
fn is_least(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_least(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => {
            matches!(inner.as_ref(), Expr::Value(value)
                if matches!(&value.value, ast::Value::Number(digits, _) if digits == BEYOND_BIGINT))
        }
        _ => false,
    }
}

fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) | Expr::Interval(_) => true,
        Expr::Nested(inner) => is_literal(inner),
        _ => false,
    }
}

/// An operator as a function of ours: `-x` takes plain numerics too, and `AT TIME ZONE` has
/// PostgreSQL's types.
fn called(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(ast::Function {
        name: ast::ObjectName::from(vec![ast::Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(ast::FunctionArgumentList {
            duplicate_treatment: None,
            args: args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect(),
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}

/// `a[2:]` goes to the end, where DataFusion would take -1 for it, and `a[:2]` begins at 1.
fn close_slice(access: &mut AccessExpr) {
    if let AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, .. }) = access {
        let number = |n: i32| Expr::value(ast::Value::Number(n.to_string(), false));
        lower_bound.get_or_insert_with(|| number(1));
        upper_bound.get_or_insert_with(|| number(i32::MAX));
    }
}

/// `'{{1,2},{3,4}}'::int[]` is an `int[][]`: in PostgreSQL the value says how many dimensions there
/// are, here the type does.
fn add_dimensions(value: &ast::Value, data_type: &mut DataType) {
    let ast::Value::SingleQuotedString(text) = value else { return };
    let n_braces = text.chars().filter(|c| !c.is_whitespace()).take_while(|c| *c == '{').count();
    let mut levels = 0;
    let mut inner = &*data_type;
    while let DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) = inner {
        (inner, levels) = (element, levels + 1);
    }
    if levels == 0 || text.contains("{}") {
        return;
    }
    for _ in levels..n_braces {
        *data_type = DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(data_type.clone()), None));
    }
}

fn is_huge(digits: &str) -> bool {
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let is_far = exponent.parse::<i64>().map_or(true, |exponent| exponent.unsigned_abs() > DIGITS_MAX as u64);
    is_far || mantissa.len() > DIGITS_MAX
}

fn numeric(digits: String) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::value(ast::Value::SingleQuotedString(digits))),
        data_type: DataType::Numeric(ast::ExactNumberInfo::None),
        array: false,
        format: None,
    }
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
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(left)), FunctionArg::Unnamed(FunctionArgExpr::Expr(right))] => {
            Some(Expr::Nested(Box::new(Expr::BinaryOp {
                left: Box::new(Expr::Nested(Box::new(left.clone()))),
                op: BinaryOperator::Modulo,
                right: Box::new(Expr::Nested(Box::new(right.clone()))),
            })))
        }
        _ => None,
    }
}

/// `x::uuid[]` reads each element.
fn read_elements(expr: &Expr) -> Option<Expr> {
    let Expr::Cast { expr: inner, data_type, array: false, .. } = expr else { return None };
    let reader = list_reader_of(element_limit(data_type).ok()??)?;
    let mut data_type = data_type.clone();
    if let Expr::Value(value) = inner.as_ref() {
        add_dimensions(&value.value, &mut data_type);
    }
    let mut dimensions = String::new();
    let mut list = &data_type;
    while let DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) = list {
        dimensions.push_str("[]");
        list = element;
    }
    crate::syntax::parse::parse_expr(&format!("{reader}(CAST({inner} AS text{dimensions}))")).ok()
}

/// `x::varchar(3)` is the first three characters of the text; `x::char(3)` without spaces at its
/// end.
fn cut_to_length(expr: &Expr) -> Option<Expr> {
    let Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr: inner, data_type, array: false, .. } = expr
    else {
        return None;
    };
    let is_letter = text_limit(data_type).ok()? == Some(TextLimit::Letter);
    match inner.as_ref() {
        // (A number is the code of the letter.)
        Expr::Value(value) if is_letter && matches!(&value.value, ast::Value::Number(digits, _) if digits != "0") => {
            cut_text(data_type, &format!("chr({inner})"))
        }
        _ => cut_text(data_type, &format!("CAST({inner} AS text)")),
    }
}

/// A text in the form of a type of texts.
fn cut_text(data_type: &DataType, text: &str) -> Option<Expr> {
    let (reader, length) = reader_of(text_limit(data_type).ok()??);
    let length = length.map(|n| format!(", {n}")).unwrap_or_default();
    crate::syntax::parse::parse_expr(&format!("{reader}({text}{length})")).ok()
}
