//! The functions of regular expressions: `regexp_match`, `regexp_replace` and their like,
//! `substring(text FROM pattern)`, and the operators `~`, `~*`, `!~`, `!~*`.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF, lit};

use super::rows::RowCall::{Int, Text};
use super::rows::{Out, Patterns, RowAnswer, RowFunction, RowValue, Way};
use crate::regex::{Flags, RegexMatch, SearchedText};
use crate::resolve::type_names::is_text;

/// All functions of this module.
pub(crate) fn all() -> [Arc<ScalarUDF>; 9] {
    [
        RowFunction::udf("regexp_match", &[], MATCH),
        RowFunction::udf("__regexp_rows", &[], ROWS),
        RowFunction::udf("regexp_replace", &[], REPLACE),
        RowFunction::udf("regexp_split_to_array", &[], SPLIT),
        RowFunction::udf("regexp_like", &[], LIKE),
        RowFunction::udf("regexp_count", &[], COUNT),
        RowFunction::udf("regexp_instr", &[], INSTR),
        RowFunction::udf("regexp_substr", &[], SUBSTR),
        RowFunction::udf("substring_regex", &[], SUBSTRING),
    ]
}

const MATCH: &[Way] =
    &[Way { takes: &[Text, Text, Text], required: 2, answer: RowAnswer::Texts, compute: first_match }];
const ROWS: &[Way] = &[Way { takes: &[Text, Text, Text], required: 2, answer: RowAnswer::Texts, compute: all_matches }];
const REPLACE: &[Way] = &[
    Way { takes: &[Text, Text, Text, Text], required: 3, answer: RowAnswer::Text, compute: replace_flagged },
    Way { takes: &[Text, Text, Text, Int, Int, Text], required: 4, answer: RowAnswer::Text, compute: replace_nth },
];
const SPLIT: &[Way] = &[Way { takes: &[Text, Text, Text], required: 2, answer: RowAnswer::Texts, compute: split }];
const LIKE: &[Way] = &[Way { takes: &[Text, Text, Text], required: 2, answer: RowAnswer::Bool, compute: like }];
const COUNT: &[Way] = &[Way { takes: &[Text, Text, Int, Text], required: 2, answer: RowAnswer::Int, compute: count }];
const INSTR: &[Way] =
    &[Way { takes: &[Text, Text, Int, Int, Int, Text, Int], required: 2, answer: RowAnswer::Int, compute: instr }];
const SUBSTR: &[Way] =
    &[Way { takes: &[Text, Text, Int, Int, Text, Int], required: 2, answer: RowAnswer::Text, compute: substr }];
const SUBSTRING: &[Way] = &[Way { takes: &[Text, Text], required: 2, answer: RowAnswer::Text, compute: substring }];

/// `text ~ pattern` and its like as calls.
pub(crate) fn match_operators(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expr else { return Ok(Transformed::no(expr)) };
    let (flags, is_negated) = match op {
        Operator::RegexMatch => ("", false),
        Operator::RegexIMatch => ("i", false),
        Operator::RegexNotMatch => ("", true),
        Operator::RegexNotIMatch => ("i", true),
        _ => return Ok(Transformed::no(expr)),
    };
    let is_read = |side: &Expr| side.get_type(schema).is_ok_and(|is| is_text(&is) || is.is_null());
    if !is_read(left) || !is_read(right) {
        return Ok(Transformed::no(expr));
    }
    let mut args = vec![left.as_ref().clone(), right.as_ref().clone()];
    if !flags.is_empty() {
        args.push(lit(flags));
    }
    let test = RowFunction::udf("regexp_like", &[], LIKE).call(args);
    Ok(Transformed::yes(if is_negated { Expr::Not(Box::new(test)) } else { test }))
}

type Answered = Result<Out, String>;

/// Flags of a function that takes no `g`.
fn flags(arg: Option<&RowValue>, function: &str) -> Result<Flags, String> {
    let Some(text) = arg else { return Ok(Flags::default()) };
    match Flags::read(text.text())? {
        (flags, false) => Ok(flags),
        (_, true) => Err(format!("{function}() does not support the \"global\" option")),
    }
}

/// A whole number that is at least some, or what stands for it where it is not given.
fn number(arg: Option<&RowValue>, name: &str, least: i64, or: i64) -> Result<usize, String> {
    let n = arg.map_or(or, |arg| arg.int());
    if n < least || n > i64::from(i32::MAX) {
        return Err(format!("invalid value for parameter \"{name}\": {n}"));
    }
    Ok(n as usize)
}

fn group<'t>(found: &RegexMatch, group: usize, text: &SearchedText<'t>) -> Option<Cow<'t, str>> {
    let (start, end) = (*found.groups.get(group)?)?;
    Some(text.part(start, end))
}

fn first_match(args: &[RowValue], patterns: &mut Patterns) -> Answered {
    let flags = match Flags::read(args.get(2).map_or("", |flags| flags.text()))? {
        (flags, false) => flags,
        (_, true) => {
            return Err("regexp_match() does not support the \"global\" option".into());
        }
    };
    let regex = patterns.get(args[1].text(), flags)?;
    let text = SearchedText::new(args[0].text());
    let Some(found) = regex.find(&text, 0)? else { return Ok(Out::Null) };
    let groups = if regex.n_groups() == 0 { 0..1 } else { 1..regex.n_groups() + 1 };
    Ok(Out::Texts(groups.map(|n| group(&found, n, &text).map(Cow::into_owned)).collect()))
}

/// The groups of each match, as the texts of arrays; of the first match without the flag `g`.
fn all_matches(args: &[RowValue], patterns: &mut Patterns) -> Answered {
    let (flags, is_global) = Flags::read(args.get(2).map_or("", |flags| flags.text()))?;
    let n_groups = patterns.get(args[1].text(), flags)?.n_groups();
    let groups = if n_groups == 0 { 0..1 } else { 1..n_groups + 1 };
    let text = SearchedText::new(args[0].text());
    let mut rows = Vec::new();
    matches(args, flags, 0, patterns, |found| {
        let element = |n| match group(found, n, &text) {
            Some(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
            None => "NULL".to_string(),
        };
        let elements: Vec<String> = groups.clone().map(element).collect();
        rows.push(Some(format!("{{{}}}", elements.join(","))));
        !is_global
    })?;
    Ok(Out::Texts(rows))
}

fn like(args: &[RowValue], patterns: &mut Patterns) -> Answered {
    let regex = patterns.get(args[1].text(), flags(args.get(2), "regexp_like")?)?;
    let text = SearchedText::new(args[0].text());
    Ok(Out::Bool(regex.is_match(&text)?))
}

pub(super) fn substring(args: &[RowValue], patterns: &mut Patterns) -> Answered {
    let regex = patterns.get(args[1].text(), Flags::default())?;
    let text = SearchedText::new(args[0].text());
    let found = regex.find(&text, 0)?;
    let part = found.and_then(|found| group(&found, regex.n_groups().min(1), &text));
    Ok(part.map_or(Out::Null, |part| Out::Text(part.into_owned())))
}

/// The place of a group; of a pattern without groups, the first is the match.
fn subexpression(number: usize, found: &RegexMatch) -> usize {
    let has_groups = found.groups.len() > 1;
    if number == 1 && !has_groups { 0 } else { number }
}

/// The matches from a place on, each beginning where the last one ended.
fn matches(
    args: &[RowValue],
    flags: Flags,
    start: usize,
    patterns: &mut Patterns,
    mut each: impl FnMut(&RegexMatch) -> bool,
) -> Result<(), String> {
    let regex = patterns.get(args[1].text(), flags)?;
    let text = SearchedText::new(args[0].text());
    let mut at = start;
    while let Some(found) = regex.find(&text, at)? {
        let is_enough = each(&found);
        if is_enough {
            break;
        }
        // An empty match would be found again.
        at = found.end() + usize::from(found.start() == found.end());
    }
    Ok(())
}

fn count(args: &[RowValue], patterns: &mut Patterns) -> Answered {
    let start = number(args.get(2), "start", 1, 1)? - 1;
    let mut n = 0;
    matches(args, flags(args.get(3), "regexp_count")?, start, patterns, |_| {
        n += 1;
        false
    })?;
    Ok(Out::Int(n))
}

/// The n-th match from a place on.
fn nth(
    args: &[RowValue],
    flags: Flags,
    start: usize,
    n: usize,
    patterns: &mut Patterns,
) -> Result<Option<RegexMatch>, String> {
    let mut seen = 0;
    let mut wanted = None;
    matches(args, flags, start, patterns, |found| {
        seen += 1;
        if seen == n {
            wanted = Some(found.clone());
        }
        seen == n
    })?;
    Ok(wanted)
}

fn instr(args: &[RowValue], patterns: &mut Patterns) -> Answered {
    let start = number(args.get(2), "start", 1, 1)? - 1;
    let n = number(args.get(3), "n", 1, 1)?;
    let at_end = match args.get(4).map_or(0, |option| option.int()) {
        option @ 0..=1 => option == 1,
        option => return Err(format!("invalid value for parameter \"endoption\": {option}")),
    };
    let number_of_group = number(args.get(6), "subexpr", 0, 0)?;
    let flags = flags(args.get(5), "regexp_instr")?;
    let found = nth(args, flags, start, n, patterns)?;
    let place = found.and_then(|found| found.groups.get(subexpression(number_of_group, &found)).copied().flatten());
    Ok(Out::Int(place.map_or(0, |(start, end)| if at_end { end } else { start } as i64 + 1)))
}

fn substr(args: &[RowValue], patterns: &mut Patterns) -> Answered {
    let start = number(args.get(2), "start", 1, 1)? - 1;
    let n = number(args.get(3), "n", 1, 1)?;
    let number_of_group = number(args.get(5), "subexpr", 0, 0)?;
    let flags = flags(args.get(4), "regexp_substr")?;
    let Some(found) = nth(args, flags, start, n, patterns)? else { return Ok(Out::Null) };
    let text = SearchedText::new(args[0].text());
    Ok(group(&found, subexpression(number_of_group, &found), &text)
        .map_or(Out::Null, |part| Out::Text(part.into_owned())))
}

fn split(args: &[RowValue], patterns: &mut Patterns) -> Answered {
    let flags = flags(args.get(2), "regexp_split_to_array")?;
    let text = SearchedText::new(args[0].text());
    let mut parts = Vec::new();
    let (mut from, mut last_end) = (0, 0);
    matches(args, flags, 0, patterns, |found| {
        // An empty match at either end, or just behind another match, divides nothing.
        if found.start() < text.len() && found.end() > last_end {
            parts.push(Some(text.part(from, found.start()).into_owned()));
            from = found.end();
        }
        last_end = found.end();
        false
    })?;
    parts.push(Some(text.part(from, text.len()).into_owned()));
    Ok(Out::Texts(parts))
}

fn replace_flagged(args: &[RowValue], patterns: &mut Patterns) -> Answered {
    let letters = args.get(3).map_or("", |flags| flags.text());
    if let Some(digit) = letters.chars().next().filter(char::is_ascii_digit) {
        return Err(format!("invalid regular expression option: \"{digit}\""));
    }
    let (flags, is_global) = Flags::read(letters)?;
    replace(args, flags, 0, usize::from(!is_global), patterns)
}

fn replace_nth(args: &[RowValue], patterns: &mut Patterns) -> Answered {
    let start = number(args.get(3), "start", 1, 1)? - 1;
    let (flags, is_global) = Flags::read(args.get(5).map_or("", |flags| flags.text()))?;
    let or = if is_global { 0 } else { 1 };
    let n = number(args.get(4), "n", 0, or)?;
    replace(args, flags, start, n, patterns)
}

/// Replaces the n-th match from a place on; all for `n` of 0.
fn replace(args: &[RowValue], flags: Flags, start: usize, n: usize, patterns: &mut Patterns) -> Answered {
    let text = SearchedText::new(args[0].text());
    let mut out = String::new();
    let (mut from, mut seen) = (0, 0);
    matches(args, flags, start, patterns, |found| {
        seen += 1;
        if n == 0 || seen == n {
            out.push_str(&text.part(from, found.start()));
            fill_in(args[2].text(), found, &text, &mut out);
            from = found.end();
        }
        seen == n
    })?;
    out.push_str(&text.part(from, text.len()));
    Ok(Out::Text(out))
}

/// The replacement, with `\1` to `\9` for groups, `\&` for the match and `\\` for a backslash.
fn fill_in(replacement: &str, found: &RegexMatch, text: &SearchedText, out: &mut String) {
    let mut rest = replacement.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match rest.clone().next() {
            Some(digit @ ('1'..='9' | '&')) => {
                let n = digit.to_digit(10).unwrap_or(0) as usize;
                out.extend(group(found, n, text));
                rest.next();
            }
            Some('\\') => {
                out.push('\\');
                rest.next();
            }
            _ => out.push('\\'),
        }
    }
}
