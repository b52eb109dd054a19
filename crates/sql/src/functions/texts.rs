//! Functions of text that DataFusion computes otherwise than PostgreSQL, and what text functions
//! refuse.

use std::sync::Arc;

use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue, plan_err};
use datafusion_expr::{Expr, ExprSchemable, Like, ScalarUDF, cast, lit};

use arrow::datatypes::DataType;

use super::rows::Kind::{Int, Int4, Text};
use super::rows::{Answer, Out, Patterns, RowFunction, Value, Way, is_bytes};
use super::{FUNCTIONS, call};
use crate::resolve::type_names::sql_name;

/// All functions of this module.
pub(crate) fn all() -> [Arc<ScalarUDF>; 5] {
    [
        RowFunction::udf("chr", &[], CHR),
        RowFunction::udf("to_hex", &[], TO_HEX),
        RowFunction::udf("lpad", &[], LPAD),
        RowFunction::udf("rpad", &[], RPAD),
        RowFunction::udf("like_escape", &[], LIKE_ESCAPE),
    ]
}

const CHR: &[Way] = &[Way { takes: &[Int], required: 1, answer: Answer::Text, compute: chr }];
const TO_HEX: &[Way] = &[
    Way { takes: &[Int4], required: 1, answer: Answer::Text, compute: |args, _| hex(args, u64::from(u32::MAX)) },
    Way { takes: &[Int], required: 1, answer: Answer::Text, compute: |args, _| hex(args, u64::MAX) },
];
const LPAD: &[Way] =
    &[Way { takes: &[Text, Int, Text], required: 2, answer: Answer::Text, compute: |args, _| pad(args, Side::Left) }];
const RPAD: &[Way] =
    &[Way { takes: &[Text, Int, Text], required: 2, answer: Answer::Text, compute: |args, _| pad(args, Side::Right) }];
const LIKE_ESCAPE: &[Way] = &[Way { takes: &[Text, Text], required: 2, answer: Answer::Text, compute: like_escape }];

/// Most bytes of a text, at four a character: a gigabyte less its header.
const PADDED_BYTES_MAX: i64 = 0x3fff_ffff - 4;

type Answered = Result<Out, String>;

fn chr(args: &[Value], _: &mut Patterns) -> Answered {
    match args[0].int() {
        n @ ..0 => Err(format!("character number must be positive: {n}")),
        0 => Err("null character not permitted".into()),
        n if n > 0x10_ffff => Err(format!("requested character too large for encoding: {n}")),
        n => match char::from_u32(n as u32) {
            Some(c) => Ok(Out::Text(c.to_string())),
            None => Err(format!("requested character not valid for encoding: {n}")),
        },
    }
}

fn hex(args: &[Value], mask: u64) -> Answered {
    Ok(Out::Text(format!("{:x}", args[0].int() as u64 & mask)))
}

#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

fn pad(args: &[Value], side: Side) -> Answered {
    let (text, length) = (args[0].text(), args[1].int().max(0));
    if length.saturating_mul(4) > PADDED_BYTES_MAX {
        return Err("requested length too large".into());
    }
    let length = length as usize;
    let fill = args.get(2).map_or(" ", |fill| fill.text());
    let n = text.chars().count();
    let cut: String = text.chars().take(length).collect();
    if fill.is_empty() || n >= length {
        return Ok(Out::Text(cut));
    }
    let fill: String = fill.chars().cycle().take(length - n).collect();
    Ok(Out::Text(match side {
        Side::Left => fill + &cut,
        Side::Right => cut + &fill,
    }))
}

/// A pattern of LIKE with another escape character, with backslashes for it.
fn like_escape(args: &[Value], _: &mut Patterns) -> Answered {
    let mut letters = args[1].text().chars();
    let escape = letters.next();
    if letters.next().is_some() {
        return Err("invalid escape string".into());
    }
    let mut out = String::new();
    let mut pattern = args[0].text().chars();
    while let Some(c) = pattern.next() {
        let (c, is_escaped) = match escape {
            Some(escape) if escape == c => match pattern.next() {
                Some(c) => (c, true),
                None => return Err("LIKE pattern must not end with escape character".into()),
            },
            _ => (c, c == '\\'),
        };
        if c == '\\' || (is_escaped && matches!(c, '%' | '_')) {
            out.push('\\');
        }
        out.push(c);
    }
    Ok(Out::Text(out))
}

/// Functions of text that DataFusion would also compute of bytes, as if they were written out.
const OF_TEXT: [&str; 15] = [
    "left",
    "right",
    "reverse",
    "upper",
    "lower",
    "repeat",
    "replace",
    "translate",
    "initcap",
    "split_part",
    "starts_with",
    "ends_with",
    "ascii",
    "quote_literal",
    "quote_ident",
];

/// Calls as PostgreSQL types them: no bytes for texts, four bytes for small constants, other
/// escapes of LIKE by ours.
pub(crate) fn settle_calls(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::ScalarFunction(call) if OF_TEXT.contains(&call.func.name()) => {
            for arg in &call.args {
                if arg.get_type(schema).is_ok_and(|is| is_bytes(&is)) {
                    let types: Vec<String> = call
                        .args
                        .iter()
                        .map(|arg| arg.get_type(schema).map_or("unknown".into(), |is| sql_name(&is)))
                        .collect();
                    return plan_err!("function {}({}) does not exist", call.func.name(), types.join(", "));
                }
            }
            Ok(Transformed::no(Expr::ScalarFunction(call)))
        }
        Expr::ScalarFunction(mut of) if of.func.name() == "to_hex" && of.args.len() == 1 && is_small(&of.args[0]) => {
            of.args[0] = cast(std::mem::take(&mut of.args[0]), DataType::Int32);
            Ok(Transformed::yes(Expr::ScalarFunction(of)))
        }
        // (What DataFusion plans for `= ANY(array)`.)
        Expr::ScalarFunction(mut of) if of.func.name() == "array_has" => {
            of.func = FUNCTIONS.scalar["array_has"].clone();
            Ok(Transformed::yes(Expr::ScalarFunction(of)))
        }
        Expr::Like(Like { negated, expr, pattern, escape_char: Some(escape), case_insensitive }) if escape != '\\' => {
            let pattern = Box::new(call("like_escape", vec![*pattern, lit(escape.to_string())]));
            let like = Like { negated, expr, pattern, escape_char: None, case_insensitive };
            Ok(Transformed::yes(Expr::Like(like)))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// A whole number in the text of a query that PostgreSQL takes for an `integer`.
fn is_small(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(n)), _) => i32::try_from(*n).is_ok(),
        Expr::Negative(inner) => is_small(inner),
        _ => false,
    }
}
