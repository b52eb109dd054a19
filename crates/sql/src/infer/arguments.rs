//! The types that operators and functions of one type want.

use anabranch_batch::numeric;
use arrow::datatypes::{DataType, IntervalUnit};
use datafusion_expr::Operator;

use crate::passes::expr::numbers::OF_DOUBLES;
use crate::resolve::type_names::is_number;

pub(super) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
pub(super) const TEXT: DataType = DataType::Utf8View;

/// The type of an operand beside one of another type.
pub(super) fn operand(op: Operator, beside: &DataType) -> Option<DataType> {
    let is_moment = matches!(beside, DataType::Timestamp(..) | DataType::Time64(_));
    match op {
        Operator::StringConcat if matches!(beside, DataType::List(_)) => Some(beside.clone()),
        Operator::StringConcat => Some(TEXT),
        Operator::LikeMatch | Operator::ILikeMatch | Operator::NotLikeMatch | Operator::NotILikeMatch => Some(TEXT),
        Operator::RegexMatch | Operator::RegexIMatch | Operator::RegexNotMatch | Operator::RegexNotIMatch => Some(TEXT),
        Operator::Plus if is_moment => Some(INTERVAL),
        Operator::Plus if *beside == DataType::Date32 => Some(DataType::Int32),
        Operator::Multiply | Operator::Divide if *beside == INTERVAL => Some(DataType::Float64),
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo
            if is_number(beside) || is_moment || *beside == INTERVAL || *beside == DataType::Date32 =>
        {
            Some(beside.clone())
        }
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo => None,
        _ => Some(beside.clone()),
    }
}

/// The type of an argument of a function of one type; `None` where the argument alone decides.
pub(super) fn argument(function: &str, n_args: usize, at: usize) -> Option<DataType> {
    let whole = Some(DataType::Int32);
    match (function, at) {
        ("round" | "trunc", 0) if n_args == 2 => Some(numeric::TYPE),
        ("round" | "trunc", _) if n_args == 2 => whole,
        ("abs" | "sign" | "negative", _) => Some(DataType::Float64),
        (name, _) if OF_DOUBLES.contains(&name) => Some(DataType::Float64),
        ("left" | "right" | "repeat" | "lpad" | "rpad", 1) => whole,
        ("substr" | "substring", 1 | 2) | ("split_part", 2) => whole,
        ("chr", 0) | ("make_date" | "make_interval", _) => whole,
        ("interval_times" | "interval_divide", 1) => Some(DataType::Float64),
        ("to_hex", 0) => Some(DataType::Int64),
        (name, _) if OF_TEXTS.contains(&name) => Some(TEXT),
        _ => None,
    }
}

/// Functions whose other arguments are texts.
const OF_TEXTS: [&str; 26] = [
    "ascii",
    "btrim",
    "char_length",
    "character_length",
    "concat",
    "concat_ws",
    "initcap",
    "left",
    "length",
    "lower",
    "lpad",
    "ltrim",
    "md5",
    "octet_length",
    "position",
    "regexp_replace",
    "repeat",
    "replace",
    "reverse",
    "right",
    "rpad",
    "rtrim",
    "split_part",
    "strpos",
    "translate",
    "upper",
];
