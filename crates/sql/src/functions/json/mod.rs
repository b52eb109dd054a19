//! Functions and operators of `json` and `jsonb`, as in PostgreSQL 15, chapter 9.16.
//!
//! Reading order: [`document`] (trees of documents), [`frame`] (functions as data), this table,
//! [`build`], [`edit`], [`operators`], [`order`], [`path`] (`jsonpath`).
//!
//! Left out: records (`json_populate_record`), and functions of two types in one call.

mod assign;
mod build;
mod document;
mod edit;
mod frame;
mod list;
pub(crate) mod operators;
mod order;
mod path;
mod row;

use std::cmp::Ordering;
use std::sync::Arc;

use anabranch_batch::TextLimit;
use anabranch_batch::json::{fault, normal, without_zeros};
use datafusion_expr::ScalarUDF;

use build::{array_of, joined, line, object_of, object_of_lists, of_list, pair};
use document::{Document, DocumentNode, Value, quoted};
use edit::{delete, delete_all, delete_path, set};
use frame::Takes::{Any, Bool, Document as Doc, Key, Path, Text};
pub(crate) use frame::marked;
use frame::{Arg, Compute, DescribedField, FrameOut, Gives, JsonFunction, Takes, normalised, udf_of_document};
use path::Question;

/// The function of rows with documents, which programs that are cut from queries name.
pub(crate) fn document_row() -> Arc<ScalarUDF> {
    row::udf()
}

/// What the order of a document is the order of.
pub(crate) fn order_key(document: &str) -> Result<String, String> {
    order::key(&Document::read(document)?)
}

/// All functions of documents.
pub(crate) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
    let of_table = TABLE.iter().map(|(name, takes, required, gives, compute)| {
        JsonFunction::udf(DescribedField {
            name,
            takes,
            required: *required,
            repeats: VARIADIC.contains(name),
            is_strict: !LENIENT.contains(name),
            gives: *gives,
            compute: *compute,
        })
    });
    of_table.chain([list::udf(), udf_of_document()])
}

/// Functions whose last argument may be there any number of times, also none.
const VARIADIC: [&str; 10] = [
    "__jsonb_greatest",
    "__jsonb_least",
    "json_build_array",
    "jsonb_build_array",
    "json_build_object",
    "jsonb_build_object",
    "json_extract_path",
    "jsonb_extract_path",
    "json_extract_path_text",
    "jsonb_extract_path_text",
];

/// Functions that are called with NULL, too.
const LENIENT: [&str; 8] = [
    "__jsonb_greatest",
    "__jsonb_least",
    "json_build_array",
    "jsonb_build_array",
    "json_build_object",
    "jsonb_build_object",
    "__json_pair",
    "__jsonb_assigned",
];

type Row = (&'static str, &'static [Takes], usize, Gives, Compute);

/// Name, arguments, how many must be given, answer, and what computes a row.
#[rustfmt::skip]
const TABLE: &[Row] = &[
    ("json_in", &[Text], 1, Gives::Json, |args| read(TextLimit::Json, args)),
    ("jsonb_in", &[Text], 1, Gives::Jsonb, |args| read(TextLimit::Jsonb, args)),
    ("__jsonb_document", &[Doc], 1, Gives::Jsonb, |args| Ok(FrameOut::Text(args[0].text().to_string()))),
    ("__jsonb_scalar", &[Doc, Text, Text], 3, Gives::Text, scalar),
    ("__json_get", &[Doc, Key], 2, Gives::Json, |args| get(args, raw)),
    ("__jsonb_get", &[Doc, Key], 2, Gives::Jsonb, |args| get_of_jsonb(args, raw)),
    ("__json_get_text", &[Doc, Key], 2, Gives::Text, |args| get(args, plain)),
    ("__jsonb_get_text", &[Doc, Key], 2, Gives::Text, |args| get_of_jsonb(args, plain)),
    ("__json_path", &[Doc, Path], 2, Gives::Json, |args| follow(args, raw)),
    ("__jsonb_path", &[Doc, Path], 2, Gives::Jsonb, |args| follow(args, raw)),
    ("__json_path_text", &[Doc, Path], 2, Gives::Text, |args| follow(args, plain)),
    ("__jsonb_order", &[Doc], 1, Gives::Text, |args| order_key(args[0].text()).map(FrameOut::Text)),
    ("__jsonb_plain", &[Doc], 1, Gives::Jsonb, |args| Ok(FrameOut::Text(without_zeros(args[0].text()).into_owned()))),
    ("__jsonb_orders", &[Path], 1, Gives::Texts, orders),
    ("__jsonb_greatest", &[Doc], 1, Gives::Jsonb, |args| extreme(args, Ordering::Greater)),
    ("__jsonb_least", &[Doc], 1, Gives::Jsonb, |args| extreme(args, Ordering::Less)),
    ("__jsonb_contains", &[Doc, Doc], 2, Gives::Bool, |args| contains(args)),
    ("__jsonb_exists", &[Doc, Text], 2, Gives::Bool, |args| Ok(FrameOut::Bool(Document::read(args[0].text())?.has(args[1].text())))),
    ("__jsonb_exists_any", &[Doc, Path], 2, Gives::Bool, exists_any),
    ("__jsonb_exists_all", &[Doc, Path], 2, Gives::Bool, exists_all),
    ("__jsonb_concat", &[Doc, Doc], 2, Gives::Jsonb, concat),
    ("__jsonb_delete", &[Doc, Key], 2, Gives::Jsonb, delete),
    ("__jsonb_delete_all", &[Doc, Path], 2, Gives::Jsonb, delete_all),
    ("__jsonb_delete_path", &[Doc, Path], 2, Gives::Jsonb, delete_path),
    ("__json_pair", &[Any, Any], 2, Gives::Text, pair),
    ("__json_element", &[Any], 1, Gives::Json, |args| Ok(FrameOut::Text(line(&args[0])))),
    ("__json_list", &[Path], 1, Gives::Json, |args| Ok(FrameOut::Text(format!("[{}]", joined(args[0].path()).trim_start())))),
    ("__jsonb_list", &[Path], 1, Gives::Jsonb, |args| normalised(format!("[{}]", joined(args[0].path())))),
    ("__json_of_list", &[Any], 1, Gives::Json, |args| of_list(args).map(FrameOut::Text)),
    ("__jsonb_of_list", &[Any], 1, Gives::Jsonb, |args| normalised(of_list(args)?)),
    ("__json_object", &[Path], 1, Gives::Json, |args| Ok(FrameOut::Text(format!("{{ {} }}", joined(args[0].path()))))),
    ("__jsonb_object", &[Path], 1, Gives::Jsonb, |args| normalised(format!("{{{}}}", joined(args[0].path())))),
    ("to_json", &[Any], 1, Gives::Json, |args| Ok(FrameOut::Text(args[0].text().to_string()))),
    ("to_jsonb", &[Any], 1, Gives::Jsonb, |args| normalised(args[0].text().to_string())),
    ("row_to_json", &[Any], 1, Gives::Json, |args| Ok(FrameOut::Text(args[0].text().to_string()))),
    ("array_to_json", &[Any], 1, Gives::Json, |args| Ok(FrameOut::Text(args[0].text().to_string()))),
    ("__json_lines", &[Doc], 1, Gives::Json, |args| Ok(FrameOut::Text(lines(args[0].text())))),
    ("json_build_array", &[Any], 0, Gives::Json, |args| Ok(FrameOut::Text(array_of(args)))),
    ("jsonb_build_array", &[Any], 0, Gives::Jsonb, |args| normalised(array_of(args))),
    ("json_build_object", &[Any], 0, Gives::Json, |args| object_of(args).map(FrameOut::Text)),
    ("jsonb_build_object", &[Any], 0, Gives::Jsonb, |args| normalised(object_of(args)?)),
    ("json_object", &[Path, Path], 1, Gives::Json, |args| object_of_lists(args).map(FrameOut::Text)),
    ("jsonb_object", &[Path, Path], 1, Gives::Jsonb, |args| normalised(object_of_lists(args)?)),
    ("json_array_length", &[Doc], 1, Gives::Int, array_length),
    ("jsonb_array_length", &[Doc], 1, Gives::Int, array_length),
    ("json_typeof", &[Doc], 1, Gives::Text, type_name),
    ("jsonb_typeof", &[Doc], 1, Gives::Text, type_name),
    ("json_extract_path", &[Doc, Text], 1, Gives::Json, |args| extract(args, raw)),
    ("jsonb_extract_path", &[Doc, Text], 1, Gives::Jsonb, |args| extract(args, normal_part)),
    ("json_extract_path_text", &[Doc, Text], 1, Gives::Text, |args| extract(args, plain)),
    ("jsonb_extract_path_text", &[Doc, Text], 1, Gives::Text, |args| extract(args, plain_of_jsonb)),
    ("json_strip_nulls", &[Doc], 1, Gives::Json, |args| strip_nulls(args[0].text(), ",", ":").map(FrameOut::Text)),
    ("jsonb_strip_nulls", &[Doc], 1, Gives::Jsonb, |args| normalised(strip_nulls(args[0].text(), ",", ":")?)),
    ("jsonb_pretty", &[Doc], 1, Gives::Text, pretty),
    ("jsonb_set", &[Doc, Path, Doc, Bool], 3, Gives::Jsonb, |args| set(args, false)),
    ("__jsonb_assigned", &[Doc, Path, Text, Doc], 4, Gives::Jsonb, assigned),
    ("jsonb_insert", &[Doc, Path, Doc, Bool], 3, Gives::Jsonb, |args| set(args, true)),
    ("jsonb_path_exists", &[Doc, Text, Doc, Bool], 2, Gives::Bool, |args| exists_by_path(args, false)),
    ("jsonb_path_match", &[Doc, Text, Doc, Bool], 2, Gives::Bool, |args| matched_by_path(args, false)),
    ("jsonb_path_query_array", &[Doc, Text, Doc, Bool], 2, Gives::Jsonb, array_by_path),
    ("jsonb_path_query_first", &[Doc, Text, Doc, Bool], 2, Gives::Jsonb, first_by_path),
    ("__jsonb_path_values", &[Doc, Text, Doc, Bool], 2, Gives::Texts, all_by_path),
    ("__jsonb_path_is_there", &[Doc, Text], 2, Gives::Bool, |args| exists_by_path(args, true)),
    ("__jsonb_path_holds", &[Doc, Text], 2, Gives::Bool, |args| matched_by_path(args, true)),
    ("__json_elements", &[Doc], 1, Gives::Texts, |args| elements(args, raw)),
    ("__jsonb_elements", &[Doc], 1, Gives::Texts, |args| elements(args, normal_part)),
    ("__json_elements_text", &[Doc], 1, Gives::Texts, |args| elements(args, plain)),
    ("__jsonb_elements_text", &[Doc], 1, Gives::Texts, |args| elements(args, plain_of_jsonb)),
    ("__json_keys", &[Doc], 1, Gives::Texts, |args| members(args, |_, name, _| Some(name.to_string()))),
    ("__json_values", &[Doc], 1, Gives::Texts, |args| members(args, |document, _, node| raw(document, node))),
    ("__jsonb_values", &[Doc], 1, Gives::Texts, |args| members(args, |document, _, node| normal_part(document, node))),
    ("__json_values_text", &[Doc], 1, Gives::Texts, |args| members(args, |document, _, node| plain(document, node))),
    ("__jsonb_values_text", &[Doc], 1, Gives::Texts, |args| members(args, |document, _, node| plain_of_jsonb(document, node))),
];

/// Functions of several rows, and the lists whose elements these are.
pub(crate) fn lists_of(name: &str) -> Option<&'static [(&'static str, &'static str)]> {
    Some(match name {
        "json_array_elements" => &[("__json_elements", "value")],
        "jsonb_array_elements" => &[("__jsonb_elements", "value")],
        "json_array_elements_text" => &[("__json_elements_text", "value")],
        "jsonb_array_elements_text" => &[("__jsonb_elements_text", "value")],
        "jsonb_path_query" => &[("__jsonb_path_values", "")],
        "json_object_keys" | "jsonb_object_keys" => &[("__json_keys", "")],
        "json_each" => &[("__json_keys", "key"), ("__json_values", "value")],
        "jsonb_each" => &[("__json_keys", "key"), ("__jsonb_values", "value")],
        "json_each_text" => &[("__json_keys", "key"), ("__json_values_text", "value")],
        "jsonb_each_text" => &[("__json_keys", "key"), ("__jsonb_values_text", "value")],
        _ => return None,
    })
}

/// What the order of each document of a list is the order of.
fn orders(args: &[Arg]) -> Result<FrameOut, String> {
    let key = |document: &Option<String>| document.as_deref().map(order_key).transpose();
    Ok(FrameOut::Texts(args[0].path().iter().map(key).collect::<Result<_, String>>()?))
}

/// The text of the number or the boolean that a document is, to be read as another type.
fn scalar(args: &[Arg]) -> Result<FrameOut, String> {
    let document = Document::read(args[0].text())?;
    let (is, wanted) = (document.root.type_name(), args[1].text());
    if is == wanted {
        return Ok(FrameOut::Text(args[0].text().trim().to_owned()));
    }
    let told = if is == "number" { "numeric" } else { is };
    Err(format!("cannot cast jsonb {told} to type {}", args[2].text()))
}

/// A document with the value at its subscripts.
fn assigned(args: &[Arg]) -> Result<FrameOut, String> {
    let of = |arg: &Arg| if matches!(arg, Arg::Null) { None } else { Some(arg.text().to_owned()) };
    let (document, value) = (of(&args[0]), of(&args[3]).unwrap_or_else(|| "null".to_owned()));
    normalised(assign::assigned(document.as_deref(), args[1].path(), args[2].text(), &value)?)
}

type Take = fn(&Document<'_>, &DocumentNode) -> Option<String>;

/// Document, path, and what else was said; operators keep errors of the document silent.
fn question(args: &[Arg], is_operator: bool) -> Question<'_> {
    Question {
        document: args[0].text(),
        path: args[1].text(),
        variables: args.get(2).map_or("{}", Arg::text),
        is_silent: is_operator || matches!(args.get(3), Some(Arg::Bool(true))),
    }
}

fn exists_by_path(args: &[Arg], is_operator: bool) -> Result<FrameOut, String> {
    let found = path::values(question(args, is_operator))?;
    Ok(found.map_or(FrameOut::Null, |found| FrameOut::Bool(!found.is_empty())))
}

fn matched_by_path(args: &[Arg], is_operator: bool) -> Result<FrameOut, String> {
    Ok(path::matches(question(args, is_operator))?.map_or(FrameOut::Null, FrameOut::Bool))
}

fn array_by_path(args: &[Arg]) -> Result<FrameOut, String> {
    normalised(format!("[{}]", path::values(question(args, false))?.unwrap_or_default().join(", ")))
}

fn first_by_path(args: &[Arg]) -> Result<FrameOut, String> {
    let found = path::values(question(args, false))?.unwrap_or_default();
    found.into_iter().next().map_or(Ok(FrameOut::Null), normalised)
}

fn all_by_path(args: &[Arg]) -> Result<FrameOut, String> {
    let found = path::values(question(args, false))?.unwrap_or_default();
    Ok(FrameOut::Texts(found.iter().map(|value| normal(value)).collect()))
}

fn raw(document: &Document<'_>, node: &DocumentNode) -> Option<String> {
    Some(document.raw(node).to_string())
}

/// The part in its normal form, which that of a text need not have.
fn normal_part(document: &Document<'_>, node: &DocumentNode) -> Option<String> {
    normal(document.raw(node))
}

fn plain(document: &Document<'_>, node: &DocumentNode) -> Option<String> {
    document.plain(node)
}

/// The part as a text, in the normal form if it is an array or an object.
fn plain_of_jsonb(document: &Document<'_>, node: &DocumentNode) -> Option<String> {
    match node.value {
        Value::Array(_) | Value::Object(_) => normal_part(document, node),
        _ => plain(document, node),
    }
}

fn text_or_null(text: Option<String>) -> FrameOut {
    text.map_or(FrameOut::Null, FrameOut::Text)
}

fn read(form: TextLimit, args: &[Arg]) -> Result<FrameOut, String> {
    let text = args[0].text();
    form.fit(text).map(|fitted| FrameOut::Text(fitted.into_owned())).ok_or_else(|| form.misfit(text))
}

fn get(args: &[Arg], take: Take) -> Result<FrameOut, String> {
    let document = Document::read(args[0].text())?;
    let node = match &args[1] {
        Arg::Number(at) => document.root.element(*at),
        name => document.root.member(name.text()),
    };
    Ok(text_or_null(node.and_then(|node| take(&document, node))))
}

/// A scalar of jsonb is also its own only element, as in PostgreSQL.
fn get_of_jsonb(args: &[Arg], take: Take) -> Result<FrameOut, String> {
    let document = Document::read(args[0].text())?;
    match &args[1] {
        Arg::Number(0 | -1) if document.root.is_scalar() => Ok(text_or_null(take(&document, &document.root))),
        _ => get(args, take),
    }
}

fn follow(args: &[Arg], take: Take) -> Result<FrameOut, String> {
    let document = Document::read(args[0].text())?;
    Ok(text_or_null(document.follow(args[1].path()).and_then(|node| take(&document, node))))
}

fn extract(args: &[Arg], take: Take) -> Result<FrameOut, String> {
    let document = Document::read(args[0].text())?;
    let path: Vec<Option<String>> = args[1..].iter().map(|arg| Some(arg.text().to_string())).collect();
    Ok(text_or_null(document.follow(&path).and_then(|node| take(&document, node))))
}

/// The greatest or the least of documents; NULL is left out.
fn extreme(args: &[Arg], wanted: Ordering) -> Result<FrameOut, String> {
    let mut best: Option<(String, &str)> = None;
    for text in args.iter().filter(|arg| matches!(arg, Arg::Text(_))).map(Arg::text) {
        let key = order::key(&Document::read(text)?)?;
        if best.as_ref().is_none_or(|(of_best, _)| key.cmp(of_best) == wanted) {
            best = Some((key, text));
        }
    }
    Ok(text_or_null(best.map(|(_, text)| text.to_string())))
}

fn contains(args: &[Arg]) -> Result<FrameOut, String> {
    Ok(FrameOut::Bool(Document::read(args[0].text())?.contains(&Document::read(args[1].text())?)))
}

fn exists_any(args: &[Arg]) -> Result<FrameOut, String> {
    let document = Document::read(args[0].text())?;
    Ok(FrameOut::Bool(args[1].path().iter().flatten().any(|name| document.has(name))))
}

fn exists_all(args: &[Arg]) -> Result<FrameOut, String> {
    let document = Document::read(args[0].text())?;
    Ok(FrameOut::Bool(args[1].path().iter().flatten().all(|name| document.has(name))))
}

/// Members of both objects, those of the second last; or elements of both, where what is no array
/// is an element.
fn concat(args: &[Arg]) -> Result<FrameOut, String> {
    let (left, right) = (Document::read(args[0].text())?, Document::read(args[1].text())?);
    let inner = |document: &Document<'_>| {
        let text = document.raw(&document.root).to_string();
        match document.root.value {
            Value::Array(_) | Value::Object(_) => text[1..text.len() - 1].trim().to_string(),
            _ => text,
        }
    };
    let both = |open: char, close: char, left: String, right: String| {
        let comma = if left.is_empty() || right.is_empty() { "" } else { ", " };
        normalised(format!("{open}{left}{comma}{right}{close}"))
    };
    match (&left.root.value, &right.root.value) {
        (Value::Object(_), Value::Object(_)) => both('{', '}', inner(&left), inner(&right)),
        (Value::Object(_), _) => both('[', ']', left.raw(&left.root).to_string(), inner(&right)),
        (_, Value::Object(_)) => both('[', ']', inner(&left), right.raw(&right.root).to_string()),
        _ => both('[', ']', inner(&left), inner(&right)),
    }
}

fn array_length(args: &[Arg]) -> Result<FrameOut, String> {
    match Document::read(args[0].text())?.root.value {
        Value::Array(elements) => Ok(FrameOut::Int(i32::try_from(elements.len()).unwrap_or(i32::MAX))),
        Value::Object(_) => Err("cannot get array length of a non-array".to_string()),
        _ => Err("cannot get array length of a scalar".to_string()),
    }
}

fn type_name(args: &[Arg]) -> Result<FrameOut, String> {
    Ok(FrameOut::Text(Document::read(args[0].text())?.root.type_name().to_string()))
}

fn strip_nulls(text: &str, comma: &str, colon: &str) -> Result<String, String> {
    let document = Document::read(text)?;
    let mut out = String::with_capacity(text.len());
    push_stripped(&document, &document.root, comma, colon, &mut out);
    Ok(out)
}

fn push_stripped(document: &Document<'_>, node: &DocumentNode, comma: &str, colon: &str, out: &mut String) {
    match &node.value {
        Value::Object(members) => {
            out.push('{');
            let there = members.iter().filter(|(_, own)| !matches!(own.value, Value::Null));
            for (at, (name, own)) in there.enumerate() {
                out.push_str(if at > 0 { comma } else { "" });
                out.push_str(&quoted(name));
                out.push_str(colon);
                push_stripped(document, own, comma, colon, out);
            }
            out.push('}');
        }
        Value::Array(elements) => {
            out.push('[');
            for (at, own) in elements.iter().enumerate() {
                out.push_str(if at > 0 { comma } else { "" });
                push_stripped(document, own, comma, colon, out);
            }
            out.push(']');
        }
        _ => out.push_str(document.raw(node)),
    }
}

fn pretty(args: &[Arg]) -> Result<FrameOut, String> {
    let text = normal(args[0].text()).ok_or_else(|| fault(args[0].text()))?;
    let document = Document::read(&text)?;
    let mut out = String::new();
    push_pretty(&document, &document.root, 0, &mut out);
    Ok(FrameOut::Text(out))
}

/// A document with each of its outermost parts on a line of its own.
fn lines(document: &str) -> String {
    let (mut depth, mut is_quoted, mut is_escaped) = (0, false, false);
    let mut out = String::with_capacity(document.len());
    for c in document.chars() {
        out.push(c);
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = is_quoted,
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 1 => out.push_str("\n "),
            _ => {}
        }
    }
    out
}

fn push_pretty(document: &Document<'_>, node: &DocumentNode, depth: usize, out: &mut String) {
    let mut parts = |open: char, close: char, inner: &[(Option<&str>, &DocumentNode)]| {
        out.push(open);
        for (at, (name, own)) in inner.iter().enumerate() {
            out.push_str(if at > 0 { ",\n" } else { "\n" });
            out.push_str(&"    ".repeat(depth + 1));
            if let Some(name) = name {
                out.push_str(&format!("{}: ", quoted(name)));
            }
            push_pretty(document, own, depth + 1, out);
        }
        out.push('\n');
        out.push_str(&"    ".repeat(depth));
        out.push(close);
    };
    match &node.value {
        Value::Object(members) => {
            let inner: Vec<_> = members.iter().map(|(name, own)| (Some(name.as_str()), own)).collect();
            parts('{', '}', &inner);
        }
        Value::Array(elements) => {
            let inner: Vec<_> = elements.iter().map(|own| (None, own)).collect();
            parts('[', ']', &inner);
        }
        _ => out.push_str(document.raw(node)),
    }
}

fn elements(args: &[Arg], take: Take) -> Result<FrameOut, String> {
    let document = Document::read(args[0].text())?;
    match &document.root.value {
        Value::Array(elements) => Ok(FrameOut::Texts(elements.iter().map(|own| take(&document, own)).collect())),
        Value::Object(_) => Err("cannot extract elements from an object".to_string()),
        _ => Err("cannot extract elements from a scalar".to_string()),
    }
}

fn members(args: &[Arg], take: fn(&Document<'_>, &str, &DocumentNode) -> Option<String>) -> Result<FrameOut, String> {
    let document = Document::read(args[0].text())?;
    match &document.root.value {
        Value::Object(members) => {
            Ok(FrameOut::Texts(members.iter().map(|(name, own)| take(&document, name, own)).collect()))
        }
        Value::Array(_) => Err("cannot deconstruct an array as an object".to_string()),
        _ => Err("cannot deconstruct a scalar".to_string()),
    }
}
