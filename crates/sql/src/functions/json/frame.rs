//! Functions of documents, described as data: what they take, what they give, and how a row is
//! computed.
//!
//! Law: NULL in, NULL out, unless a function says otherwise. Whether an argument is a document is
//! told by its field: documents are texts whose fields are [marked](crate::resolve::documents).

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use anabranch_batch::{json, numeric};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanBuilder, Int32Builder, ListBuilder, StringViewArray, StringViewBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int64Type};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, exec_err, plan_err};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::document::quoted;
use super::{list, row};
use crate::functions::output::{is_null, printer};
use crate::resolve::documents::{DocumentForm, form_in_list, form_of};
use crate::resolve::operands::markable;
use crate::resolve::type_names::{is_number, is_text, sql_name};

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// A document, or a text that is read as one.
    Document,
    /// A text.
    Text,
    /// A name or a number: of a member, or of an element.
    Key,
    /// Names and numbers: a list of texts, or the text of one.
    Path,
    /// A boolean.
    Bool,
    /// Any value.
    Any,
}

/// What a function gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gives {
    Json,
    Jsonb,
    Text,
    Bool,
    Int,
    Texts,
}

/// An argument of one row.
#[derive(Clone, Debug)]
pub(super) enum Arg {
    Null,
    Text(String),
    Number(i64),
    Path(Vec<Option<String>>),
    Bool(bool),
    /// A value as a document, and as a text; the text of NULL is none.
    Value {
        json: String,
        text: Option<String>,
    },
}

impl Arg {
    pub fn text(&self) -> &str {
        match self {
            Arg::Text(text) => text,
            Arg::Value { json, .. } => json,
            _ => "",
        }
    }

    pub fn path(&self) -> &[Option<String>] {
        match self {
            Arg::Path(path) => path,
            _ => &[],
        }
    }
}

/// The answer of one row.
#[derive(Clone, Debug)]
pub(super) enum FrameOut {
    Null,
    Text(String),
    Bool(bool),
    Int(i32),
    Texts(Vec<Option<String>>),
}

/// A text as a document in normal form.
pub(super) fn normalised(text: String) -> Result<FrameOut, String> {
    json::normal(&text).map(FrameOut::Text).ok_or_else(|| json::fault(&text))
}

pub(super) type Compute = fn(&[Arg]) -> Result<FrameOut, String>;

/// See the [module](self).
#[derive(Clone, Copy)]
pub(super) struct DescribedField {
    pub name: &'static str,
    pub takes: &'static [Takes],
    /// How many of the arguments must be given.
    pub required: usize,
    /// Whether the last argument may be there any number of times.
    pub repeats: bool,
    /// Whether NULL in any argument gives NULL.
    pub is_strict: bool,
    pub gives: Gives,
    pub compute: Compute,
}

/// A function of documents.
pub(super) struct JsonFunction {
    of: DescribedField,
    signature: Signature,
}

impl JsonFunction {
    pub fn udf(of: DescribedField) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(JsonFunction { of, signature: Signature::user_defined(Volatility::Immutable) }))
    }

    fn takes(&self, at: usize) -> Option<Takes> {
        let last = self.of.takes.last().filter(|_| self.of.repeats);
        self.of.takes.get(at).or(last).copied()
    }

    fn fits(&self, types: &[DataType]) -> bool {
        types.len() >= self.of.required
            && types.iter().enumerate().all(|(at, is)| self.takes(at).is_some_and(|takes| fits(takes, is)))
    }
}

fn fits(takes: Takes, is: &DataType) -> bool {
    is.is_null()
        || match takes {
            Takes::Document | Takes::Text => is_text(is),
            Takes::Key => is_text(is) || is.is_integer(),
            Takes::Path => is_text(is) || matches!(is, DataType::List(_)),
            Takes::Bool => *is == DataType::Boolean,
            Takes::Any => true,
        }
}

impl std::fmt::Debug for JsonFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("JsonFunction").field(&self.of.name).finish()
    }
}

impl JsonFunction {
    /// The arguments with calls around columns of documents, and with rows that keep marks; `None`
    /// where nothing is to be done. Rows are computed without the marks of columns, but with those
    /// of calls.
    fn with_marks(&self, args: &[Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
        let marked = |(at, arg): (usize, &Expr)| {
            if self.takes(at) != Some(Takes::Any) {
                return None;
            }
            with_mark(arg, schema)
        };
        let marked: Vec<Option<Expr>> = args.iter().enumerate().map(marked).collect();
        let any = marked.iter().any(Option::is_some);
        any.then(|| args.iter().zip(marked).map(|(arg, marked)| marked.unwrap_or_else(|| arg.clone())).collect())
    }
}

/// A value in a call around it, whose mark stays where that of a column does not; a row so in all
/// its columns, and a row that may be NULL in all its branches.
fn with_mark(value: &Expr, schema: &DFSchema) -> Option<Expr> {
    if let Expr::Alias(alias) = value {
        return with_mark(&alias.expr, schema);
    }
    if let Expr::Case(case) = value {
        let mut case = case.clone();
        let mut is_changed = false;
        for (_, then) in &mut case.when_then_expr {
            if let Some(marked) = row::marked(then, schema, document) {
                **then = marked;
                is_changed = true;
            }
        }
        if is_changed {
            return Some(Expr::Case(case));
        }
    }
    let (is_document, is_list) = kind_of(value, schema)?;
    if is_list {
        return (!list::is_marked(value)).then(|| list::marked(value.clone()));
    }
    match value {
        // (The mark of what is chosen is that of an argument, which a column has not.)
        Expr::ScalarFunction(call) if !CHOOSING.contains(&call.func.name()) => row::marked(value, schema, document),
        _ => is_document.then(|| document(value.clone())),
    }
}

/// Whether a value is a document, and whether it is a list of these; of what CASE and its like
/// choose, the first branch that is one tells.
fn kind_of(value: &Expr, schema: &DFSchema) -> Option<(bool, bool)> {
    let field = markable(value, schema)?;
    let of_field = (form_of(&field).is_some(), form_in_list(&field).is_some());
    let branches: Vec<&Expr> = match value {
        Expr::Case(case) => {
            case.when_then_expr.iter().map(|(_, then)| then.as_ref()).chain(case.else_expr.as_deref()).collect()
        }
        Expr::ScalarFunction(call) if CHOOSING.contains(&call.func.name()) && call.func.name() != ELEMENT => {
            call.args.iter().collect()
        }
        _ => return Some(of_field),
    };
    let told = branches.into_iter().filter_map(|branch| kind_of(branch, schema)).find(|kind| *kind != (false, false));
    Some(told.unwrap_or(of_field))
}

/// The function of an element of a list.
const ELEMENT: &str = "array_element";

/// Functions that give one of their arguments, or an element of it.
const CHOOSING: [&str; 3] = [ELEMENT, "coalesce", "nullif"];

/// A document in a call, whose mark stays where that of a column does not.
fn document(value: Expr) -> Expr {
    udf_of_document().call(vec![value])
}

/// The function that gives a document as it is, with its mark.
pub(super) fn udf_of_document() -> Arc<ScalarUDF> {
    JsonFunction::udf(DescribedField {
        name: "__json_document",
        takes: &[Takes::Document],
        required: 1,
        repeats: false,
        is_strict: true,
        gives: Gives::Json,
        compute: |args| Ok(FrameOut::Text(args[0].text().to_string())),
    })
}

/// The call with marks, if it is one of a function of documents that lacks them.
pub(crate) fn marked(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::ScalarFunction(function) = &expr else { return Transformed::no(expr) };
    let Some(own) = function.func.inner().downcast_ref::<JsonFunction>() else { return Transformed::no(expr) };
    match own.with_marks(&function.args, schema) {
        Some(args) => Transformed::yes(function.func.call(args)),
        None => Transformed::no(expr),
    }
}

impl PartialEq for JsonFunction {
    fn eq(&self, other: &Self) -> bool {
        self.of.name == other.of.name
    }
}

impl Eq for JsonFunction {}

impl Hash for JsonFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.name.hash(state);
    }
}

impl ScalarUDFImpl for JsonFunction {
    fn name(&self) -> &str {
        self.of.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> DfResult<Vec<DataType>> {
        if self.fits(types) {
            return Ok(types.to_vec());
        }
        let types: Vec<String> = types.iter().map(sql_name).collect();
        plan_err!("function {}({}) does not exist", self.of.name, types.join(", "))
    }

    fn return_type(&self, _types: &[DataType]) -> DfResult<DataType> {
        Ok(match self.of.gives {
            Gives::Json | Gives::Jsonb | Gives::Text => DataType::Utf8View,
            Gives::Bool => DataType::Boolean,
            Gives::Int => DataType::Int32,
            Gives::Texts => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true))),
        })
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let field = Field::new(self.of.name, self.return_type(&[])?, true);
        Ok(Arc::new(match self.of.gives {
            Gives::Json => DocumentForm::Json.mark(field),
            Gives::Jsonb => DocumentForm::Jsonb.mark(field),
            _ => field,
        }))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> DfResult<ExprSimplifyResult> {
        Ok(match self.with_marks(&args, info.schema()) {
            Some(args) => ExprSimplifyResult::Simplified(JsonFunction::udf(self.of).call(args)),
            None => ExprSimplifyResult::Original(args),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let n_rows = args.number_rows;
        let columns = args.args.iter().enumerate().map(|(at, arg)| {
            let takes = self.takes(at).unwrap_or(Takes::Any);
            let form = args.arg_fields.get(at).and_then(|field| form_of(field).or_else(|| form_in_list(field)));
            Column::new(takes, arg.to_array(n_rows)?, form)
        });
        let columns = columns.collect::<DfResult<Vec<Column>>>()?;
        let mut builder = Builder::new(self.of.gives);
        for row in 0..n_rows {
            if self.of.is_strict && columns.iter().any(|column| column.is_null(row)) {
                builder.append(FrameOut::Null);
                continue;
            }
            let values: Vec<Arg> = columns.iter().map(|column| column.arg(row)).collect();
            match (self.of.compute)(&values) {
                Ok(out) => builder.append(out),
                Err(problem) => return exec_err!("{problem}"),
            }
        }
        Ok(ColumnarValue::Array(builder.finish()))
    }
}

/// A column of arguments.
struct Column {
    takes: Takes,
    values: ArrayRef,
    form: Option<DocumentForm>,
}

impl Column {
    fn new(takes: Takes, values: ArrayRef, form: Option<DocumentForm>) -> DfResult<Column> {
        let is = values.data_type().clone();
        let values = match takes {
            _ if is.is_null() => values,
            Takes::Document | Takes::Text => cast(&values, &DataType::Utf8View)?,
            Takes::Key | Takes::Path if is_text(&is) => cast(&values, &DataType::Utf8View)?,
            Takes::Key => cast(&values, &DataType::Int64)?,
            _ => values,
        };
        Ok(Column { takes, values, form })
    }

    fn is_null(&self, row: usize) -> bool {
        is_null(&self.values, row)
    }

    fn arg(&self, row: usize) -> Arg {
        if self.is_null(row) {
            return if self.takes == Takes::Any { Arg::Value { json: "null".into(), text: None } } else { Arg::Null };
        }
        let text = || self.values.as_string_view().value(row).to_string();
        match self.takes {
            Takes::Document | Takes::Text => Arg::Text(text()),
            Takes::Key if is_text(self.values.data_type()) => Arg::Text(text()),
            Takes::Key => Arg::Number(self.values.as_primitive::<Int64Type>().value(row)),
            Takes::Path if is_text(self.values.data_type()) => Arg::Path(path_of(&text())),
            Takes::Path => Arg::Path(elements(&self.values, row)),
            Takes::Bool => Arg::Bool(self.values.as_boolean().value(row)),
            Takes::Any => {
                let mut json = String::new();
                push_value(&self.values, row, self.form, &mut json);
                let mut text = String::new();
                printer(&self.values)(row, &mut text);
                if *self.values.data_type() == DataType::Boolean {
                    text = self.values.as_boolean().value(row).to_string();
                }
                Arg::Value { json, text: Some(text) }
            }
        }
    }
}

/// The elements of a list as texts.
fn elements(values: &ArrayRef, row: usize) -> Vec<Option<String>> {
    let Some(list) = values.as_list_opt::<i32>() else { return vec![] };
    let elements = list.value(row);
    let print = printer(&elements);
    (0..elements.len())
        .map(|at| {
            (!is_null(&elements, at)).then(|| {
                let mut text = String::new();
                print(at, &mut text);
                text
            })
        })
        .collect()
}

/// The names in the text of a list: `{a,b}`.
pub(super) fn path_of(text: &str) -> Vec<Option<String>> {
    let inner = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let (mut names, mut name, mut in_quotes, mut was_quoted) = (Vec::new(), String::new(), false, false);
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => name.extend(chars.next()),
            '"' => (in_quotes, was_quoted) = (!in_quotes, true),
            ',' if !in_quotes => {
                names.push(finished(&name, was_quoted));
                (name, was_quoted) = (String::new(), false);
            }
            // (Lists in the list: their elements follow each other.)
            '{' | '}' if !in_quotes => {}
            c => name.push(c),
        }
    }
    if !inner.trim().is_empty() {
        names.push(finished(&name, was_quoted));
    }
    names
}

fn finished(name: &str, was_quoted: bool) -> Option<String> {
    match was_quoted {
        true => Some(name.to_string()),
        false if name.trim().eq_ignore_ascii_case("null") => None,
        false => Some(name.trim().to_string()),
    }
}

/// Appends a value as a document; those of a list have the form that is told of the list.
fn push_value(values: &ArrayRef, row: usize, form: Option<DocumentForm>, out: &mut String) {
    if is_null(values, row) {
        out.push_str("null");
        return;
    }
    let is = values.data_type();
    if let DataType::List(_) = is {
        let list = values.as_list::<i32>().value(row);
        out.push('[');
        for at in 0..list.len() {
            if at > 0 {
                out.push(',');
            }
            push_value(&list, at, form, out);
        }
        out.push(']');
        return;
    }
    if let DataType::Struct(fields) = is {
        push_record(fields, values.as_struct().columns(), row, out);
        return;
    }
    let mut text = String::new();
    printer(values)(row, &mut text);
    match is {
        DataType::Boolean => out.push_str(if values.as_boolean().value(row) { "true" } else { "false" }),
        // (NaN and the infinities are no numbers of JSON.)
        is if (is_number(is) || *is == numeric::TYPE) && !text.ends_with(['N', 'y']) => out.push_str(&text),
        DataType::Timestamp(_, zone) => {
            let text = text.replacen(' ', "T", 1);
            let minutes = if zone.is_some() && text.ends_with("+00") { ":00" } else { "" };
            out.push_str(&quoted(&format!("{text}{minutes}")));
        }
        _ if form.is_some() => out.push_str(&text),
        _ => out.push_str(&quoted(&text)),
    }
}

/// Appends a row as an object. Columns of `ROW(..)` have numbers, from one on.
fn push_record(fields: &Fields, columns: &[ArrayRef], row: usize, out: &mut String) {
    out.push('{');
    for (at, (field, column)) in fields.iter().zip(columns).enumerate() {
        let is_numbered = *field.name() == format!("c{at}");
        let name = if is_numbered { format!("f{}", at + 1) } else { field.name().clone() };
        out.push_str(if at > 0 { "," } else { "" });
        out.push_str(&quoted(&name));
        out.push(':');
        push_value(column, row, form_of(field).or_else(|| form_in_list(field)), out);
    }
    out.push('}');
}

enum Builder {
    Text(StringViewBuilder),
    Bool(BooleanBuilder),
    Int(Int32Builder),
    Texts(ListBuilder<StringViewBuilder>),
}

impl Builder {
    fn new(gives: Gives) -> Builder {
        match gives {
            Gives::Json | Gives::Jsonb | Gives::Text => Builder::Text(StringViewBuilder::new()),
            Gives::Bool => Builder::Bool(BooleanBuilder::new()),
            Gives::Int => Builder::Int(Int32Builder::new()),
            Gives::Texts => {
                let element = Field::new_list_field(DataType::Utf8View, true);
                Builder::Texts(ListBuilder::new(StringViewBuilder::new()).with_field(element))
            }
        }
    }

    fn append(&mut self, out: FrameOut) {
        match (self, out) {
            (Builder::Text(builder), FrameOut::Text(text)) => builder.append_value(text),
            (Builder::Text(builder), _) => builder.append_null(),
            (Builder::Bool(builder), FrameOut::Bool(is)) => builder.append_value(is),
            (Builder::Bool(builder), _) => builder.append_null(),
            (Builder::Int(builder), FrameOut::Int(n)) => builder.append_value(n),
            (Builder::Int(builder), _) => builder.append_null(),
            (Builder::Texts(builder), FrameOut::Texts(texts)) => builder.append_value(texts),
            (Builder::Texts(builder), _) => builder.append_null(),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Builder::Text(mut builder) => {
                let texts: StringViewArray = builder.finish();
                Arc::new(texts)
            }
            Builder::Bool(mut builder) => Arc::new(builder.finish()),
            Builder::Int(mut builder) => Arc::new(builder.finish()),
            Builder::Texts(mut builder) => Arc::new(builder.finish()),
        }
    }
}
