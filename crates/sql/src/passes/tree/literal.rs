//! Literals and calls that DataFusion reads otherwise than PostgreSQL.

use anabranch_batch::TextLimit;
use datafusion_expr::sqlparser::ast::{
    self, AccessExpr, ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Expr, FunctionArg, FunctionArgExpr,
    FunctionArguments, Subscript, UnaryOperator,
};

use crate::functions::numerics::NEGATIVE;
use crate::resolve::types::text_limit;

/// Digits of a literal, and powers of ten, beyond which it is no decimal of a type with a scale.
const DIGITS_MAX: usize = 30;

/// Rewrites one expression whose parts are done.
pub(super) fn rewrite(expr: &mut Expr) {
    if let Some(replacement) = mod_to_operator(expr).or_else(|| cut_to_length(expr)) {
        *expr = replacement;
    }
    match expr {
        // `INTERVAL '90' DAY (3)`: the precision of the leading field says nothing about the value.
        Expr::Interval(interval) => {
            interval.leading_precision = None;
            if let Expr::Value(value) = interval.value.as_mut() {
                spell_interval(&mut value.value);
            }
        }
        Expr::TypedString(typed) if is_form(&typed.data_type) => {
            let form = typed.data_type.to_string().to_lowercase();
            if let Ok(read) = crate::syntax::parse::parse_expr(&format!("{form}_in({})", typed.value)) {
                *expr = read;
            }
        }
        Expr::TypedString(typed) => adapt_text(&mut typed.value.value, &typed.data_type),
        Expr::Cast { expr: inner, data_type, .. } => {
            if let Expr::Value(value) = inner.as_mut() {
                add_dimensions(&value.value, data_type);
                adapt_text(&mut value.value, data_type);
            }
        }
        Expr::Value(value) => {
            if let ast::Value::Number(digits, _) = &value.value
                && is_huge(digits)
            {
                *expr = numeric(digits.clone());
            }
        }
        Expr::Function(_) => format_of_to_char(expr),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } if !is_literal(inner) => {
            let inner = std::mem::replace(inner.as_mut(), Expr::value(ast::Value::Null));
            *expr = negated(inner);
        }
        Expr::CompoundFieldAccess { access_chain, .. } => access_chain.iter_mut().for_each(close_slice),
        _ => {}
    }
}

fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) | Expr::Interval(_) => true,
        Expr::Nested(inner) => is_literal(inner),
        _ => false,
    }
}

/// `-x` as a function, which takes plain numerics too.
fn negated(value: Expr) -> Expr {
    Expr::Function(ast::Function {
        name: ast::ObjectName::from(vec![ast::Ident::new(NEGATIVE)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(ast::FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(value))],
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

fn is_form(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Uuid | DataType::JSON | DataType::JSONB)
}

/// Makes the text of a typed literal one that DataFusion reads.
fn adapt_text(value: &mut ast::Value, data_type: &DataType) {
    match data_type {
        DataType::Timestamp(..) | DataType::Datetime(_) => add_seconds(value),
        DataType::Custom(name, _) if name.to_string().eq_ignore_ascii_case("timestamptz") => add_seconds(value),
        DataType::Interval { .. } => spell_interval(value),
        _ => {}
    }
}

/// `'{{1,2},{3,4}}'::int[]` is an `int[][]`: in PostgreSQL the value says how many dimensions there are, here the type does.
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

/// `2024-01-02 03:04` is `2024-01-02 03:04:00`.
fn add_seconds(value: &mut ast::Value) {
    let ast::Value::SingleQuotedString(text) = value else {
        return;
    };
    let is_minute = |at: usize| {
        let b = text.as_bytes();
        b.len() >= at
            && b[at - 3] == b':'
            && b[at - 6].is_ascii_whitespace() | (b[at - 6] == b'T')
            && b[at - 1].is_ascii_digit()
    };
    if text.len() >= 16 && text.is_ascii() && is_minute(16) && text.as_bytes().get(16) != Some(&b':') {
        text.insert_str(16, ":00");
    }
}

/// `1 day 04:05:06` is `1 day 4 hours 5 minutes 6 seconds`.
fn spell_interval(value: &mut ast::Value) {
    if let ast::Value::SingleQuotedString(text) = value
        && let Some(spelt) = crate::functions::input::spell_interval(text)
    {
        *text = spelt;
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

/// `x::varchar(3)` is the first three characters of the text; `x::char(3)` without spaces at its end.
fn cut_to_length(expr: &Expr) -> Option<Expr> {
    let Expr::Cast { kind, expr: inner, data_type, array: false, format } = expr else {
        return None;
    };
    let limit = text_limit(data_type).ok()??;
    let (TextLimit::Varchar(n) | TextLimit::Char(n)) = limit else {
        return crate::syntax::parse::parse_expr(&format!("{limit}_in(CAST({inner} AS text))")).ok();
    };
    let text = Expr::Cast {
        kind: kind.clone(),
        expr: inner.clone(),
        data_type: DataType::Text,
        array: false,
        format: format.clone(),
    };
    let number = |n: u64| Some(Box::new(Expr::value(ast::Value::Number(n.to_string(), false))));
    let cut = Expr::Substring {
        expr: Box::new(text),
        substring_from: number(1),
        substring_for: number(n),
        special: false,
        shorthand: false,
    };
    Some(match limit {
        TextLimit::Char(_) => Expr::Trim {
            expr: Box::new(cut),
            trim_where: Some(ast::TrimWhereField::Trailing),
            trim_what: None,
            trim_characters: None,
        },
        _ => cut,
    })
}

/// PostgreSQL's date patterns, longest first, and chrono's for the same.
const DATE_PATTERNS: [(&str, &str); 25] = [
    ("HH24", "%H"),
    ("HH12", "%I"),
    ("YYYY", "%Y"),
    ("yyyy", "%Y"),
    ("Month", "%B"),
    ("Mon", "%b"),
    ("Day", "%A"),
    ("DDD", "%j"),
    ("IYYY", "%G"),
    ("HH", "%I"),
    ("MI", "%M"),
    ("SS", "%S"),
    ("MS", "%3f"),
    ("US", "%6f"),
    ("MM", "%m"),
    ("DD", "%d"),
    ("Dy", "%a"),
    ("YY", "%y"),
    ("IW", "%V"),
    ("AM", "%p"),
    ("PM", "%p"),
    ("am", "%P"),
    ("pm", "%P"),
    ("ID", "%u"),
    ("TZ", "%Z"),
];

/// Writes the pattern of `to_char(time, 'YYYY-MM-DD')`, `to_date` and `to_timestamp` as DataFusion reads it; patterns with `%` are left alone.
fn format_of_to_char(expr: &mut Expr) {
    let Expr::Function(function) = expr else {
        return;
    };
    let name = function.name.to_string().to_lowercase();
    if !matches!(name.as_str(), "to_char" | "to_date" | "to_timestamp") {
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
