//! Functions that are computed row by row of plain values, described as data.
//!
//! Law: NULL in, NULL out, unless a function says otherwise. Arguments have the types that are
//! declared; others are refused when the query is planned. Cost: one call and one allocation a row,
//! so functions on hot paths stay DataFusion's.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use anabranch_batch::TextLimit;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, BooleanBuilder, Int32Builder, Int64Builder, ListBuilder,
    StringViewBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Int32Type, Int64Type};
use datafusion_common::{Result as DfResult, exec_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::bytes_in;
use super::forms::UUID_IN;
use crate::regex::{Flags, Regex};
use crate::resolve::documents::marked_field;
use crate::resolve::type_names::{is_text, sql_name};

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RowCall {
    Text,
    /// Any whole number.
    Int,
    /// A whole number of at most four bytes.
    Int4,
    Bytes,
    /// A literal in quotes, which is read as bytes. (Other texts are refused when calls are
    /// settled.)
    Quoted,
}

/// What a function gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RowAnswer {
    Text,
    Int,
    Long,
    Bool,
    Bytes,
    Texts,
}

/// An argument of one row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowValue<'a> {
    Null,
    Text(&'a str),
    Int(i64),
    Bytes(&'a [u8]),
}

impl<'a> RowValue<'a> {
    pub(crate) fn text(self) -> &'a str {
        match self {
            RowValue::Text(text) => text,
            _ => "",
        }
    }

    pub(crate) fn int(self) -> i64 {
        match self {
            RowValue::Int(n) => n,
            _ => 0,
        }
    }

    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            RowValue::Bytes(bytes) => bytes,
            _ => &[],
        }
    }
}

/// The answer of one row.
#[derive(Debug)]
pub(crate) enum Out {
    Null,
    Text(String),
    Int(i64),
    Bool(bool),
    Bytes(Vec<u8>),
    Texts(Vec<Option<String>>),
}

/// Patterns that were read, by text and flags.
#[derive(Default)]
pub(crate) struct Patterns {
    read: HashMap<(String, Flags), Rc<Regex>>,
    /// The one that was asked for last, mostly the only one.
    last: Option<(String, Flags, Rc<Regex>)>,
}

impl Patterns {
    /// The pattern of that text, read once a batch.
    pub(crate) fn get(&mut self, pattern: &str, flags: Flags) -> Result<Rc<Regex>, String> {
        if let Some((text, of, regex)) = &self.last
            && text == pattern
            && *of == flags
        {
            return Ok(regex.clone());
        }
        let regex = match self.read.entry((pattern.to_string(), flags)) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(place) => place.insert(Rc::new(Regex::new(pattern, flags)?)).clone(),
        };
        self.last = Some((pattern.to_string(), flags, regex.clone()));
        Ok(regex)
    }
}

/// Computes the answer of one row; an error in PostgreSQL's words.
pub(crate) type Compute = fn(&[RowValue], &mut Patterns) -> Result<Out, String>;

/// One way to call a function: by these arguments.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) takes: &'static [RowCall],
    /// How many of the arguments must be given.
    pub(crate) required: usize,
    pub(crate) answer: RowAnswer,
    pub(crate) compute: Compute,
}

/// For ways that DataFusion computes, column by column: never called.
pub(crate) fn by_datafusion(_: &[RowValue], _: &mut Patterns) -> Result<Out, String> {
    Err("this is computed by DataFusion".into())
}

/// A function with all its ways.
#[derive(Debug)]
pub(crate) struct RowFunction {
    name: &'static str,
    aliases: Vec<String>,
    ways: &'static [Way],
    /// What computes the first way in place of its `compute`.
    first: Option<Arc<ScalarUDF>>,
    signature: Signature,
}

impl RowFunction {
    /// A function whose first way is DataFusion's, and the others are added.
    pub(crate) fn beside(
        first: Arc<ScalarUDF>,
        name: &'static str,
        aliases: &[&str],
        ways: &'static [Way],
    ) -> Arc<ScalarUDF> {
        let aliases = aliases.iter().map(|alias| alias.to_string()).collect();
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(Self { name, aliases, ways, first: Some(first), signature }))
    }

    pub(crate) fn udf(name: &'static str, aliases: &[&str], ways: &'static [Way]) -> Arc<ScalarUDF> {
        let aliases = aliases.iter().map(|alias| alias.to_string()).collect();
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(Self { name, aliases, ways, first: None, signature }))
    }

    /// The way that arguments of these types take.
    fn way(&self, types: &[DataType]) -> Option<&'static Way> {
        self.ways.iter().find(|way| {
            (way.required..=way.takes.len()).contains(&types.len())
                && way.takes.iter().zip(types).all(|(kind, is)| takes(*kind, is))
        })
    }
}

fn takes(kind: RowCall, is: &DataType) -> bool {
    is.is_null()
        || match kind {
            RowCall::Text | RowCall::Quoted => is_text(is),
            RowCall::Int => is.is_integer(),
            RowCall::Int4 => matches!(is, DataType::Int8 | DataType::Int16 | DataType::Int32),
            RowCall::Bytes => is_bytes(is),
        }
}

pub(crate) fn is_bytes(is: &DataType) -> bool {
    matches!(is, DataType::Binary | DataType::BinaryView)
}

fn arrow_type(kind: RowCall) -> DataType {
    match kind {
        RowCall::Text | RowCall::Quoted => DataType::Utf8View,
        RowCall::Int => DataType::Int64,
        RowCall::Int4 => DataType::Int32,
        RowCall::Bytes => DataType::BinaryView,
    }
}

impl PartialEq for RowFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for RowFunction {}

impl Hash for RowFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> DfResult<Vec<DataType>> {
        match self.way(types) {
            Some(way) => Ok(way.takes.iter().take(types.len()).map(|kind| arrow_type(*kind)).collect()),
            None => {
                let types: Vec<String> = types.iter().map(sql_name).collect();
                plan_err!("function {}({}) does not exist", self.name, types.join(", "))
            }
        }
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        Ok(answer_type(self.way(types).map_or(self.ways[0].answer, |way| way.answer)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.name, self.return_type(&types)?, true);
        Ok(Arc::new(if self.name == UUID_IN { marked_field(field, TextLimit::Uuid) } else { field }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let Some(way) = self.way(&types) else { return exec_err!("function {} does not take these types", self.name) };
        if let (Some(first), true) = (&self.first, std::ptr::eq(way, &raw const self.ways[0])) {
            return delegate(first, way, args);
        }
        let columns = args.args.iter().zip(way.takes);
        let columns = columns
            .map(|(arg, kind)| {
                let column = cast(&arg.to_array(args.number_rows)?, &arrow_type(*kind))?;
                if *kind == RowCall::Quoted { read_quoted(&column) } else { Ok(column) }
            })
            .collect::<DfResult<Vec<ArrayRef>>>()?;
        let mut patterns = Patterns::default();
        let mut builder = Builder::new(way.answer);
        let mut values = Vec::with_capacity(columns.len());
        for row in 0..args.number_rows {
            if columns.iter().any(|column| column.is_null(row)) {
                builder.append(Out::Null);
                continue;
            }
            values.clear();
            values.extend(columns.iter().zip(way.takes).map(|(column, kind)| value(column, *kind, row)));
            match (way.compute)(&values, &mut patterns) {
                Ok(out) => builder.append(out),
                Err(problem) => return exec_err!("{problem}"),
            }
        }
        Ok(ColumnarValue::Array(builder.finish()))
    }
}

fn read_quoted(column: &ArrayRef) -> DfResult<ArrayRef> {
    let mut read = BinaryViewBuilder::with_capacity(column.len());
    for text in column.as_string_view() {
        match text.map(bytes_in::read).transpose() {
            Ok(bytes) => read.append_option(bytes),
            Err(problem) => return exec_err!("{problem}"),
        }
    }
    Ok(Arc::new(read.finish()))
}

/// The arguments of a call that are literals in quotes to be read as bytes, by their places.
pub(crate) fn quoted_places(function: &ScalarUDF, types: &[DataType]) -> Vec<usize> {
    let way = function.inner().downcast_ref::<RowFunction>().and_then(|function| function.way(types));
    let places = way.into_iter().flat_map(|way| way.takes.iter().take(types.len()).enumerate());
    places.filter(|(_, kind)| **kind == RowCall::Quoted).map(|(place, _)| place).collect()
}

fn answer_type(answer: RowAnswer) -> DataType {
    match answer {
        RowAnswer::Text => DataType::Utf8View,
        RowAnswer::Int => DataType::Int32,
        RowAnswer::Long => DataType::Int64,
        RowAnswer::Bool => DataType::Boolean,
        RowAnswer::Bytes => DataType::BinaryView,
        RowAnswer::Texts => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true))),
    }
}

/// Has DataFusion's function compute a way.
fn delegate(function: &ScalarUDF, way: &Way, mut args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
    for ((arg, field), kind) in args.args.iter_mut().zip(&mut args.arg_fields).zip(way.takes) {
        *arg = arg.cast_to(&arrow_type(*kind), None)?;
        *field = Arc::new(field.as_ref().clone().with_data_type(arrow_type(*kind)));
    }
    let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
    let is = function.return_type(&types)?;
    args.return_field = Arc::new(args.return_field.as_ref().clone().with_data_type(is));
    function.invoke_with_args(args)?.cast_to(&answer_type(way.answer), None)
}

fn value(column: &ArrayRef, kind: RowCall, row: usize) -> RowValue<'_> {
    match kind {
        _ if column.is_null(row) => RowValue::Null,
        RowCall::Text => RowValue::Text(column.as_string_view().value(row)),
        RowCall::Int => RowValue::Int(column.as_primitive::<Int64Type>().value(row)),
        RowCall::Int4 => RowValue::Int(i64::from(column.as_primitive::<Int32Type>().value(row))),
        RowCall::Bytes | RowCall::Quoted => RowValue::Bytes(column.as_binary_view().value(row)),
    }
}

enum Builder {
    Text(StringViewBuilder),
    Int(Int32Builder),
    Long(Int64Builder),
    Bool(BooleanBuilder),
    Bytes(BinaryViewBuilder),
    Texts(ListBuilder<StringViewBuilder>),
}

impl Builder {
    fn new(answer: RowAnswer) -> Self {
        match answer {
            RowAnswer::Text => Self::Text(StringViewBuilder::new()),
            RowAnswer::Int => Self::Int(Int32Builder::new()),
            RowAnswer::Long => Self::Long(Int64Builder::new()),
            RowAnswer::Bool => Self::Bool(BooleanBuilder::new()),
            RowAnswer::Bytes => Self::Bytes(BinaryViewBuilder::new()),
            RowAnswer::Texts => {
                let element = Field::new_list_field(DataType::Utf8View, true);
                Self::Texts(ListBuilder::new(StringViewBuilder::new()).with_field(element))
            }
        }
    }

    fn append(&mut self, out: Out) {
        match (self, out) {
            (Self::Text(builder), Out::Text(text)) => builder.append_value(text),
            (Self::Text(builder), _) => builder.append_null(),
            (Self::Int(builder), Out::Int(n)) => builder.append_value(n as i32),
            (Self::Int(builder), _) => builder.append_null(),
            (Self::Long(builder), Out::Int(n)) => builder.append_value(n),
            (Self::Long(builder), _) => builder.append_null(),
            (Self::Bool(builder), Out::Bool(is)) => builder.append_value(is),
            (Self::Bool(builder), _) => builder.append_null(),
            (Self::Bytes(builder), Out::Bytes(bytes)) => builder.append_value(bytes),
            (Self::Bytes(builder), _) => builder.append_null(),
            (Self::Texts(builder), Out::Texts(texts)) => builder.append_value(texts),
            (Self::Texts(builder), _) => builder.append_null(),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Text(mut builder) => Arc::new(builder.finish()),
            Self::Int(mut builder) => Arc::new(builder.finish()),
            Self::Long(mut builder) => Arc::new(builder.finish()),
            Self::Bool(mut builder) => Arc::new(builder.finish()),
            Self::Bytes(mut builder) => Arc::new(builder.finish()),
            Self::Texts(mut builder) => Arc::new(builder.finish()),
        }
    }
}
