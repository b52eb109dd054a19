//! What functors compute for one row, from plain values.

use std::collections::HashMap;

use regex::Regex;

use super::kind::Functor;
use crate::record::{self, RecordPart};

/// A plain value of one row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell<'a> {
    Text(&'a str),
    Number(i64),
    Float(f64),
}

/// What a functor gives for one row.
#[derive(Debug)]
pub(super) enum Out {
    Text(String),
    Number(i64),
    Float(f64),
    Bool(bool),
    Numbers(Vec<i64>),
    Floats(Vec<f64>),
}

impl<'a> Cell<'a> {
    fn text(self) -> &'a str {
        match self {
            Cell::Text(text) => text,
            _ => "",
        }
    }

    fn number(self) -> i64 {
        match self {
            Cell::Number(number) => number,
            _ => 0,
        }
    }

    fn float(self) -> f64 {
        match self {
            Cell::Float(number) => number,
            Cell::Number(number) => number as f64,
            Cell::Text(_) => 0.0,
        }
    }
}

/// The value of a functor for one row, or why there is none. Patterns are compiled once a batch.
pub(super) fn compute(
    functor: Functor,
    args: &[Cell<'_>],
    patterns: &mut HashMap<String, Regex>,
) -> Result<Out, String> {
    use Functor as F;
    let (text, number, float) = (|i: usize| args[i].text(), |i: usize| args[i].number(), |i: usize| args[i].float());
    let truth = |holds: bool| Ok(Out::Number(i64::from(holds)));
    match functor {
        F::SubtractUnsigned => {
            let difference = number(0).checked_sub(number(1)).filter(|difference| *difference >= 0);
            difference
                .map(Out::Number)
                .ok_or_else(|| format!("{} - {} is not an unsigned number", number(0), number(1)))
        }
        F::Power => power(number(0), number(1)).map(Out::Number),
        F::PowerFloat => Ok(Out::Float(float(0).powf(float(1)))),
        F::NegateFloat => Ok(Out::Float(-float(0))),
        F::Band => Ok(Out::Number(number(0) & number(1))),
        F::Bor => Ok(Out::Number(number(0) | number(1))),
        F::Bxor => Ok(Out::Number(number(0) ^ number(1))),
        F::Bshl => Ok(Out::Number(number(0).wrapping_shl(number(1) as u32))),
        F::Bshr => Ok(Out::Number(number(0).wrapping_shr(number(1) as u32))),
        F::Bshru => Ok(Out::Number((number(0) as u64).wrapping_shr(number(1) as u32) as i64)),
        F::Bnot => Ok(Out::Number(!number(0))),
        F::Land => truth(number(0) != 0 && number(1) != 0),
        F::Lor => truth(number(0) != 0 || number(1) != 0),
        F::Lxor => truth((number(0) != 0) != (number(1) != 0)),
        F::Lnot => truth(number(0) == 0),
        F::Min | F::Max => Ok(extreme(functor == F::Max, args)),
        F::Cat => Ok(Out::Text(args.iter().map(|cell| cell.text()).collect())),
        F::Length => Ok(Out::Number(text(0).chars().count() as i64)),
        F::Substring => Ok(Out::Text(substring(text(0), number(1), number(2)))),
        F::Ord => Ok(Out::Number(ordinal(text(0)))),
        F::NumberToText => Ok(Out::Text(number(0).to_string())),
        F::FloatToText => Ok(Out::Text(float(0).to_string())),
        F::TextToNumber => parse_number(text(0)).map(Out::Number),
        F::TextToUnsigned => parse_number(text(0)).and_then(unsigned).map(Out::Number),
        F::TextToFloat => {
            let parsed = text(0).trim().parse::<f64>();
            parsed.map(Out::Float).map_err(|_| format!("'{}' is no float", text(0)))
        }
        F::NumberToFloat => Ok(Out::Float(float(0))),
        F::NumberToUnsigned => unsigned(number(0)).map(Out::Number),
        F::FloatToNumber => whole(float(0)).map(Out::Number),
        F::FloatToUnsigned => whole(float(0)).and_then(unsigned).map(Out::Number),
        F::Match => pattern(text(0), patterns).map(|regex| Out::Bool(regex.is_match(text(1)))),
        F::Contains => Ok(Out::Bool(text(1).contains(text(0)))),
        F::Range => range(args),
        F::RangeFloat => range_float(args),
        F::Record => Ok(Out::Text(record::write(None, parts(text(0), &args[1..])))),
        F::Branch => Ok(Out::Text(record::write(Some(text(1)), parts(text(0), &args[2..])))),
        F::IsOf => Ok(Out::Bool(record::is_of(text(0), Some(text(1)).filter(|name| !name.is_empty())))),
        F::TextPart => Ok(Out::Text(record::unquoted(record::part(text(0), number(1) as usize)))),
        F::NumberPart => Ok(Out::Number(record::part(text(0), number(1) as usize).parse().unwrap_or_default())),
        F::FloatPart => Ok(Out::Float(record::part(text(0), number(1) as usize).parse().unwrap_or_default())),
        F::InnerPart => Ok(Out::Text(record::part(text(0), number(1) as usize).to_owned())),
        F::Add | F::Subtract | F::Multiply | F::Divide | F::Modulo | F::Negate | F::Same => {
            Err("this is computed by the engine".to_owned())
        }
    }
}

fn parts<'a>(letters: &'a str, cells: &'a [Cell<'a>]) -> impl Iterator<Item = RecordPart<'a>> {
    letters.chars().zip(cells).map(|(letter, cell)| match cell {
        Cell::Text(text) if letter == 'r' => RecordPart::Inner(text),
        Cell::Text(text) => RecordPart::Text(text),
        Cell::Number(number) => RecordPart::Number(*number),
        Cell::Float(number) => RecordPart::Float(*number),
    })
}

fn power(base: i64, exponent: i64) -> Result<i64, String> {
    let out_of_range = || format!("{base} ^ {exponent} is out of range");
    match u32::try_from(exponent) {
        Ok(exponent) => base.checked_pow(exponent).ok_or_else(out_of_range),
        // As in C: a fraction is cut to zero, but for powers of 1 and -1.
        Err(_) if exponent < 0 => match base {
            1 => Ok(1),
            -1 => Ok(if exponent % 2 == 0 { 1 } else { -1 }),
            0 => Err(out_of_range()),
            _ => Ok(0),
        },
        Err(_) => match base {
            0 | 1 => Ok(base),
            -1 => Ok(if exponent % 2 == 0 { 1 } else { -1 }),
            _ => Err(out_of_range()),
        },
    }
}

fn extreme(greatest: bool, args: &[Cell<'_>]) -> Out {
    let wins = |order: std::cmp::Ordering| if greatest { order.is_gt() } else { order.is_lt() };
    let mut best = args[0];
    for cell in &args[1..] {
        let order = match (*cell, best) {
            (Cell::Text(new), Cell::Text(old)) => new.cmp(old),
            (Cell::Number(new), Cell::Number(old)) => new.cmp(&old),
            (new, old) => new.float().total_cmp(&old.float()),
        };
        if wins(order) {
            best = *cell;
        }
    }
    match best {
        Cell::Text(text) => Out::Text(text.to_owned()),
        Cell::Number(number) => Out::Number(number),
        Cell::Float(number) => Out::Float(number),
    }
}

/// Empty where the start is outside of the text.
fn substring(text: &str, start: i64, length: i64) -> String {
    match (usize::try_from(start), usize::try_from(length)) {
        (Ok(start), Ok(length)) => text.chars().skip(start).take(length).collect(),
        _ => String::new(),
    }
}

/// A number of 63 bits that differs for different texts, but for a chance of one in 2^63 a pair.
/// (FNV-1a, then mixed: the same in every process and version.)
fn ordinal(text: &str) -> i64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    ((hash ^ (hash >> 32)) >> 1) as i64
}

pub(crate) fn parse_number(text: &str) -> Result<i64, String> {
    text.trim().parse().map_err(|_| format!("'{text}' is no number"))
}

pub(crate) fn unsigned(number: i64) -> Result<i64, String> {
    match number < 0 {
        true => Err(format!("{number} is not an unsigned number")),
        false => Ok(number),
    }
}

fn whole(number: f64) -> Result<i64, String> {
    let cut = number.trunc();
    // (2^63 is the first float above all numbers.)
    match (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&cut) {
        true => Ok(cut as i64),
        false => Err(format!("{number} is out of range for a number")),
    }
}

/// The regular expression of a pattern, which has to match a whole text; compiled once a batch.
fn pattern<'a>(text: &str, patterns: &'a mut HashMap<String, Regex>) -> Result<&'a Regex, String> {
    if !patterns.contains_key(text) {
        patterns.insert(text.to_owned(), compile(text)?);
    }
    Ok(&patterns[text])
}

/// The regular expression of a pattern.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let anchored = format!("^(?:{pattern})$");
    Regex::new(&anchored).map_err(|_| format!("'{pattern}' is no regular expression"))
}

/// Values of one `range`, at most.
const RANGE_MAX: usize = 10_000_000;

fn range(args: &[Cell<'_>]) -> Result<Out, String> {
    let (start, end) = (args[0].number(), args[1].number());
    let step = args.get(2).map_or(if end > start { 1 } else { -1 }, |step| step.number());
    if step == 0 {
        return Ok(Out::Numbers(if start == end { vec![] } else { vec![start] }));
    }
    let mut values = vec![];
    let mut next = Some(start);
    while let Some(value) = next.filter(|value| if step > 0 { *value < end } else { *value > end }) {
        if values.len() == RANGE_MAX {
            return Err(format!("range({start}, {end}, {step}) has more than {RANGE_MAX} values"));
        }
        values.push(value);
        next = value.checked_add(step);
    }
    Ok(Out::Numbers(values))
}

fn range_float(args: &[Cell<'_>]) -> Result<Out, String> {
    let (start, end) = (args[0].float(), args[1].float());
    let step = args.get(2).map_or(if end > start { 1.0 } else { -1.0 }, |step| step.float());
    if step == 0.0 {
        return Ok(Out::Floats(if start == end { vec![] } else { vec![start] }));
    }
    let mut values = vec![];
    let mut next = start;
    while if step > 0.0 { next < end } else { next > end } {
        if values.len() == RANGE_MAX {
            return Err(format!("range({start}, {end}, {step}) has more than {RANGE_MAX} values"));
        }
        values.push(next);
        // (Each value from the start, so that errors of rounding do not add up.)
        next = start + step * values.len() as f64;
    }
    Ok(Out::Floats(values))
}
