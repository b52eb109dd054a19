//! What a path yields of a document.

use std::cmp::Ordering;

use anabranch_batch::numeric::{self, Number, Outcome};

use super::syntax::{JsonPath, PathExpr, PathStep, read};
use super::value::PathValue;
use crate::regex::{Flags, Regex, SearchedText};

/// Why a path yields nothing.
enum PathFailure {
    /// It is no path, or its variables are none: never kept silent.
    Path(String),
    /// The document is not as it says.
    Document(String),
}

/// What a path is asked of.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub document: &'a str,
    pub path: &'a str,
    /// An object: values of the names that begin with `$`.
    pub variables: &'a str,
    /// A document that is not as the path says is no error.
    pub is_silent: bool,
}

/// The values that a path yields, as documents; `None` where an error is kept silent.
///
/// # Errors
/// Those of the path, and of a document that is not as the path says.
pub(crate) fn values(of: Question<'_>) -> Result<Option<Vec<String>>, String> {
    told(of, found(of))
}

/// Whether the predicate of a path is true; `None` if it is unknown, or an error is kept silent.
///
/// # Errors
/// As for [`values`]; a path that yields no single truth value.
pub(crate) fn matches(of: Question<'_>) -> Result<Option<bool>, String> {
    let is = |values: Vec<String>| match values.as_slice() {
        [one] if one == "true" => Ok(Some(true)),
        [one] if one == "false" => Ok(Some(false)),
        [one] if one == "null" => Ok(None),
        _ => Err(PathFailure::Document("single boolean result is expected".to_owned())),
    };
    told(of, found(of).and_then(is)).map(Option::flatten)
}

fn told<T>(of: Question<'_>, found: Result<T, PathFailure>) -> Result<Option<T>, String> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(PathFailure::Document(_)) if of.is_silent => Ok(None),
        Err(PathFailure::Document(problem) | PathFailure::Path(problem)) => Err(problem),
    }
}

fn found(of: Question<'_>) -> Result<Vec<String>, PathFailure> {
    let (document, path, variables) = prepared(of)?;
    let run = Run { is_strict: path.is_strict, root: &document, variables: &variables };
    let found = run.sequence(&path.root, &Scope { current: &document, last: None }).map_err(PathFailure::Document)?;
    let text = |value: &PathValue| {
        let mut text = String::new();
        value.write(&mut text);
        text
    };
    Ok(found.iter().map(text).collect())
}

fn prepared(of: Question<'_>) -> Result<(PathValue, JsonPath, PathValue), PathFailure> {
    let path = read(of.path).map_err(PathFailure::Path)?;
    let variables = PathValue::read(of.variables).map_err(PathFailure::Path)?;
    if !matches!(variables, PathValue::Object(_)) {
        return Err(PathFailure::Path("\"vars\" argument is not an object".to_owned()));
    }
    Ok((PathValue::read(of.document).map_err(PathFailure::Path)?, path, variables))
}

struct Run<'a> {
    is_strict: bool,
    root: &'a PathValue,
    variables: &'a PathValue,
}

/// Where an expression stands.
struct Scope<'a> {
    /// `@`
    current: &'a PathValue,
    /// `last`: the place of the last element of the array that subscripts are of.
    last: Option<usize>,
}

type Found = Result<Vec<PathValue>, String>;

impl Run<'_> {
    fn sequence(&self, of: &PathExpr, scope: &Scope<'_>) -> Found {
        use PathExpr as E;
        let one = |value: PathValue| Ok(vec![value]);
        match of {
            E::Root => one(self.root.clone()),
            E::Current => one(scope.current.clone()),
            E::Last => match scope.last {
                Some(last) => one(PathValue::Number(last.to_string())),
                None => Err("LAST is allowed only in array subscripts".to_owned()),
            },
            E::Variable(name) => match self.variables {
                PathValue::Object(members) => match members.iter().rev().find(|(own, _)| own == name) {
                    Some((_, value)) => one(value.clone()),
                    None => Err(format!("could not find jsonpath variable \"{name}\"")),
                },
                _ => Err("\"vars\" argument is not an object".to_owned()),
            },
            E::Null => one(PathValue::Null),
            E::Bool(is) => one(PathValue::Bool(*is)),
            E::Number(text) => one(PathValue::Number(plain(&number(text)?))),
            E::String(text) => one(PathValue::String(text.clone())),
            E::Signed { is_minus, of } => {
                let operator = if *is_minus { "-" } else { "+" };
                let values = self.opened(self.sequence(of, scope)?);
                let signed = values.iter().map(|value| match value {
                    PathValue::Number(text) if *is_minus => Ok(PathValue::Number(plain(&number(text)?.negated()))),
                    PathValue::Number(_) => Ok(value.clone()),
                    _ => Err(format!("operand of unary jsonpath operator {operator} is not a numeric value")),
                });
                signed.collect()
            }
            E::Arithmetic { op, left, right } => self.arithmetic(*op, left, right, scope),
            E::Step { of, step } => {
                let values = self.sequence(of, scope)?;
                let mut found = Vec::new();
                for value in &values {
                    self.step(step, value, scope, &mut found)?;
                }
                Ok(found)
            }
            predicate => one(self.truth(predicate, scope)?.map_or(PathValue::Null, PathValue::Bool)),
        }
    }

    fn arithmetic(&self, op: char, left: &PathExpr, right: &PathExpr, scope: &Scope<'_>) -> Found {
        let operand = |side: &str, of: &PathExpr| match self.opened(self.sequence(of, scope)?).as_slice() {
            [PathValue::Number(text)] => number(text),
            _ => Err(format!("{side} operand of jsonpath operator {op} is not a single numeric value")),
        };
        let (left, right) = (operand("left", left)?, operand("right", right)?);
        let outcome: Outcome = match op {
            '+' => left.plus(&right),
            '-' => left.minus(&right),
            '*' => left.times(&right),
            '/' => left.divided(&right),
            _ => left.remainder(&right),
        };
        Ok(vec![PathValue::Number(plain(&outcome.map_err(|fault| fault.to_string())?))])
    }

    fn step(
        &self,
        step: &PathStep,
        value: &PathValue,
        scope: &Scope<'_>,
        found: &mut Vec<PathValue>,
    ) -> Result<(), String> {
        // (Arrays are opened by the steps that look at members and values.)
        let is_opened = match step {
            PathStep::Member(_) | PathStep::AnyMember | PathStep::Filter(_) => true,
            PathStep::Method(name) => !matches!(name.as_str(), "type" | "size"),
            _ => false,
        };
        if let (PathValue::Array(elements), true, false) = (value, is_opened, self.is_strict) {
            return elements.iter().try_for_each(|element| self.step_of_one(step, element, scope, found));
        }
        self.step_of_one(step, value, scope, found)
    }

    fn step_of_one(
        &self,
        step: &PathStep,
        value: &PathValue,
        scope: &Scope<'_>,
        found: &mut Vec<PathValue>,
    ) -> Result<(), String> {
        let strict = |problem: &str| if self.is_strict { Err(problem.to_owned()) } else { Ok(()) };
        match (step, value) {
            (PathStep::Member(name), PathValue::Object(members)) => {
                match members.iter().rev().find(|(own, _)| own == name) {
                    Some((_, member)) => found.push(member.clone()),
                    None => strict(&format!("JSON object does not contain key \"{name}\""))?,
                }
            }
            (PathStep::Member(_), _) => strict("jsonpath member accessor can only be applied to an object")?,
            (PathStep::AnyMember, PathValue::Object(members)) => {
                found.extend(members.iter().map(|(_, member)| member.clone()));
            }
            (PathStep::AnyMember, _) => strict("jsonpath wildcard member accessor can only be applied to an object")?,
            (PathStep::AnyLevel(from, to), value) => levels(value, 0, *from, *to, found),
            (PathStep::AnyElement, PathValue::Array(elements)) => found.extend(elements.iter().cloned()),
            (PathStep::AnyElement, value) => match self.is_strict {
                true => return Err("jsonpath wildcard array accessor can only be applied to an array".to_owned()),
                false => found.push(value.clone()),
            },
            (PathStep::Elements(subscripts), value) => self.elements(subscripts, value, scope, found)?,
            (PathStep::Filter(predicate), value) => {
                let scope = Scope { current: value, last: scope.last };
                if self.truth(predicate, &scope)? == Some(true) {
                    found.push(value.clone());
                }
            }
            (PathStep::Method(name), value) => self.method(name, value, found)?,
        }
        Ok(())
    }

    fn elements(
        &self,
        subscripts: &[(PathExpr, Option<PathExpr>)],
        value: &PathValue,
        scope: &Scope<'_>,
        found: &mut Vec<PathValue>,
    ) -> Result<(), String> {
        let elements = match value {
            PathValue::Array(elements) => elements.as_slice(),
            _ if self.is_strict => return Err("jsonpath array accessor can only be applied to an array".to_owned()),
            value => std::slice::from_ref(value),
        };
        let n_elements = elements.len() as i64;
        let inner = Scope { current: scope.current, last: Some(elements.len().saturating_sub(1)) };
        let place = |of: &PathExpr| -> Result<i64, String> {
            let is_empty_last = elements.is_empty() && matches!(of, PathExpr::Last);
            if is_empty_last {
                return Ok(-1);
            }
            match self.sequence(of, &inner)?.as_slice() {
                [PathValue::Number(text)] => {
                    let cut = number(text)?.cut(0).map_err(|fault| fault.to_string())?;
                    cut.to_string().parse().map_err(|_| "jsonpath array subscript is out of integer range".to_owned())
                }
                _ => Err("jsonpath array subscript is not a single numeric value".to_owned()),
            }
        };
        for (from, to) in subscripts {
            let from = place(from)?;
            let to = to.as_ref().map_or(Ok(from), place)?;
            if self.is_strict && (from < 0 || from > to || to >= n_elements) {
                return Err("jsonpath array subscript is out of bounds".to_owned());
            }
            let places = from.max(0)..(to.saturating_add(1)).min(n_elements);
            found.extend(places.map(|at| elements[at as usize].clone()));
        }
        Ok(())
    }

    fn method(&self, name: &str, value: &PathValue, found: &mut Vec<PathValue>) -> Result<(), String> {
        let of_number = |change: fn(&Number) -> Outcome| match value {
            PathValue::Number(text) => {
                let changed = change(&number(text)?).map_err(|fault| fault.to_string())?;
                Ok(PathValue::Number(plain(&changed)))
            }
            _ => Err(format!("jsonpath item method .{name}() can only be applied to a numeric value")),
        };
        found.push(match (name, value) {
            ("type", value) => PathValue::String(value.type_name().to_owned()),
            ("size", PathValue::Array(elements)) => PathValue::Number(elements.len().to_string()),
            ("size", _) if self.is_strict => {
                return Err("jsonpath item method .size() can only be applied to an array".to_owned());
            }
            ("size", _) => PathValue::Number("1".to_owned()),
            ("ceiling", _) => of_number(Number::ceiling)?,
            ("floor", _) => of_number(Number::floor)?,
            ("abs", _) => of_number(|number| Ok(number.abs()))?,
            ("double", PathValue::Number(text) | PathValue::String(text)) => match text.trim().parse::<f64>() {
                Ok(value) if value.is_finite() => {
                    let text = plain(&numeric::from_float(value, 15));
                    let is_fraction = text.contains('.');
                    let short = if is_fraction { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
                    PathValue::Number(short.to_owned())
                }
                _ => {
                    let problem = "string argument of jsonpath item method .double() is not a valid representation of a double precision number";
                    return Err(problem.to_owned());
                }
            },
            ("double", _) => {
                let problem = "jsonpath item method .double() can only be applied to a string or numeric value";
                return Err(problem.to_owned());
            }
            ("keyvalue", PathValue::Object(members)) => {
                let pair = |(name, value): &(String, PathValue)| {
                    PathValue::Object(vec![
                        ("id".to_owned(), PathValue::Number("0".to_owned())),
                        ("key".to_owned(), PathValue::String(name.clone())),
                        ("value".to_owned(), value.clone()),
                    ])
                };
                found.extend(members.iter().map(pair));
                return Ok(());
            }
            _ => return Err("jsonpath item method .keyvalue() can only be applied to an object".to_owned()),
        });
        Ok(())
    }

    /// Whether a predicate holds; `None` if that is unknown.
    fn truth(&self, of: &PathExpr, scope: &Scope<'_>) -> Result<Option<bool>, String> {
        use PathExpr as E;
        Ok(match of {
            E::And(left, right) => match self.truth(left, scope)? {
                Some(false) => Some(false),
                left => match (left, self.truth(right, scope)?) {
                    (_, Some(false)) => Some(false),
                    (Some(true), right) => right,
                    _ => None,
                },
            },
            E::Or(left, right) => match self.truth(left, scope)? {
                Some(true) => Some(true),
                left => match (left, self.truth(right, scope)?) {
                    (_, Some(true)) => Some(true),
                    (Some(false), right) => right,
                    _ => None,
                },
            },
            E::Not(of) => self.truth(of, scope)?.map(|is| !is),
            E::IsUnknown(of) => Some(self.truth(of, scope)?.is_none()),
            E::Exists(of) => self.sequence(of, scope).ok().map(|values| !values.is_empty()),
            E::Compare { op, left, right } => self.of_pairs(left, Some(right), scope, |left, right| {
                compared(left, right?).map_or_else(|| unlike(op, left, right?), |order| Some(holds(op, order)))
            }),
            E::StartsWith(of, start) => self.of_pairs(of, Some(start), scope, |of, start| match (of, start?) {
                (PathValue::String(of), PathValue::String(start)) => Some(of.starts_with(start.as_str())),
                _ => None,
            }),
            E::LikeRegex { of, pattern, flags } => {
                let regex = Regex::new(pattern, regex_flags(flags)?)?;
                self.of_pairs(of, None, scope, |of, _| match of {
                    PathValue::String(of) => regex.is_match(&SearchedText::new(of)).ok(),
                    _ => None,
                })
            }
            _ => None,
        })
    }

    /// Whether a relation holds of some pair of values.
    fn of_pairs(
        &self,
        left: &PathExpr,
        right: Option<&PathExpr>,
        scope: &Scope<'_>,
        holds: impl Fn(&PathValue, Option<&PathValue>) -> Option<bool>,
    ) -> Option<bool> {
        let left = self.opened(self.sequence(left, scope).ok()?);
        let right: Vec<Option<PathValue>> = match right {
            Some(right) => self.opened(self.sequence(right, scope).ok()?).into_iter().map(Some).collect(),
            None => vec![None],
        };
        let (mut is_found, mut is_unknown) = (false, false);
        for left in &left {
            for right in &right {
                match holds(left, right.as_ref()) {
                    Some(true) if !self.is_strict => return Some(true),
                    Some(is) => is_found |= is,
                    None if self.is_strict => return None,
                    None => is_unknown = true,
                }
            }
        }
        if is_found || !is_unknown { Some(is_found) } else { None }
    }

    /// The elements of arrays in their place.
    fn opened(&self, values: Vec<PathValue>) -> Vec<PathValue> {
        if self.is_strict {
            return values;
        }
        let open = |value| match value {
            PathValue::Array(elements) => elements,
            value => vec![value],
        };
        values.into_iter().flat_map(open).collect()
    }
}

/// The value and what is in it, by levels.
fn levels(value: &PathValue, level: u32, from: u32, to: u32, found: &mut Vec<PathValue>) {
    let is_leaf = !matches!(value, PathValue::Array(_) | PathValue::Object(_));
    // (`last` alone asks for what holds nothing.)
    if (level >= from && level <= to) || (from == u32::MAX && is_leaf && level > 0) {
        found.push(value.clone());
    }
    if level >= to {
        return;
    }
    match value {
        PathValue::Array(elements) => elements.iter().for_each(|element| levels(element, level + 1, from, to, found)),
        PathValue::Object(members) => members.iter().for_each(|(_, value)| levels(value, level + 1, from, to, found)),
        _ => {}
    }
}

/// The order of two scalars of one type.
fn compared(left: &PathValue, right: &PathValue) -> Option<Ordering> {
    Some(match (left, right) {
        (PathValue::Null, PathValue::Null) => Ordering::Equal,
        (PathValue::Bool(left), PathValue::Bool(right)) => left.cmp(right),
        (PathValue::Number(left), PathValue::Number(right)) => number(left).ok()?.compare(&number(right).ok()?),
        (PathValue::String(left), PathValue::String(right)) => left.cmp(right),
        _ => return None,
    })
}

/// What a comparison of different types says: null differs from all others, the rest is unknown.
fn unlike(op: &str, left: &PathValue, right: &PathValue) -> Option<bool> {
    (*left == PathValue::Null || *right == PathValue::Null).then_some(op == "!=")
}

fn holds(op: &str, order: Ordering) -> bool {
    match op {
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    }
}

/// Flags of SQL as those of PostgreSQL's patterns.
fn regex_flags(letters: &str) -> Result<Flags, String> {
    let mut flags = Flags { stops_at_lines: true, ..Flags::default() };
    for letter in letters.chars() {
        match letter {
            'i' => flags.ignores_case = true,
            's' => flags.stops_at_lines = false,
            'm' => flags.anchors_at_lines = true,
            'q' => flags.is_literal = true,
            other => return Err(format!("unrecognized flag character \"{other}\" in LIKE_REGEX predicate")),
        }
    }
    Ok(flags)
}

fn number(text: &str) -> Result<Number, String> {
    numeric::parse(text).map_err(|_| format!("\"{text}\" is no number"))
}

fn plain(number: &Number) -> String {
    number.to_string()
}
