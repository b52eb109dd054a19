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
    Array, ArrayRef, AsArray, BinaryViewArray, BinaryViewBuilder, BooleanBuilder, Int32Array, Int32Builder, Int64Array,
    Int64Builder, ListBuilder, StringViewArray, StringViewBuilder,
};
use arrow::buffer::NullBuffer;
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
        let n_rows = args.number_rows;
        let columns: Vec<ArrayRef> =
            args.args.iter().zip(way.takes).map(|(arg, kind)| column_of(arg, *kind)).collect::<DfResult<_>>()?;
        let is_constant: Vec<bool> = args.args.iter().map(|arg| matches!(arg, ColumnarValue::Scalar(_))).collect();
        let mut builder = Builder::new(way.answer, n_rows);
        let has_null_constant = columns.iter().zip(&is_constant).any(|(column, is)| *is && column.is_null(0));
        if has_null_constant || n_rows == 0 {
            (0..n_rows).for_each(|_| builder.append(Out::Null));
            return Ok(ColumnarValue::Array(builder.finish()));
        }
        let varying = columns.iter().zip(&is_constant).filter(|(_, is)| !**is);
        let nulls = NullBuffer::union_many(varying.map(|(column, _)| column.nulls()));
        let readers: Vec<ValueReader> =
            columns.iter().zip(way.takes).map(|(column, kind)| reader(column, *kind)).collect();
        // (What a row that is NULL holds is not to be read.)
        let mut values: Vec<RowValue> = vec![RowValue::Text(""); readers.len()];
        for (at, reader) in readers.iter().enumerate().filter(|(at, _)| is_constant[*at]) {
            values[at] = reader.value(0);
        }
        let mut patterns = Patterns::default();
        for row in 0..n_rows {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                builder.append(Out::Null);
                continue;
            }
            for (at, (value, reader)) in values.iter_mut().zip(&readers).enumerate() {
                if !is_constant[at] {
                    *value = reader.value(row);
                }
            }
            match (way.compute)(&values, &mut patterns) {
                Ok(out) => builder.append(out),
                Err(problem) => return exec_err!("{problem}"),
            }
        }
        Ok(ColumnarValue::Array(builder.finish()))
    }
}

/// The values of an argument; one, if it is a constant.
fn column_of(arg: &ColumnarValue, kind: RowCall) -> DfResult<ArrayRef> {
    let column = match arg {
        ColumnarValue::Array(column) => cast(column, &arrow_type(kind))?,
        ColumnarValue::Scalar(value) => cast(&value.to_array()?, &arrow_type(kind))?,
    };
    if kind == RowCall::Quoted { read_quoted(&column) } else { Ok(column) }
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

/// A column whose type is known.
enum ValueReader<'a> {
    Text(&'a StringViewArray),
    Int(&'a Int64Array),
    Int4(&'a Int32Array),
    Bytes(&'a BinaryViewArray),
}

fn reader(column: &ArrayRef, kind: RowCall) -> ValueReader<'_> {
    match kind {
        RowCall::Text => ValueReader::Text(column.as_string_view()),
        RowCall::Int => ValueReader::Int(column.as_primitive::<Int64Type>()),
        RowCall::Int4 => ValueReader::Int4(column.as_primitive::<Int32Type>()),
        RowCall::Bytes | RowCall::Quoted => ValueReader::Bytes(column.as_binary_view()),
    }
}

impl<'a> ValueReader<'a> {
    /// The value of a row that is not NULL.
    fn value(&self, row: usize) -> RowValue<'a> {
        match self {
            Self::Text(column) => RowValue::Text(column.value(row)),
            Self::Int(column) => RowValue::Int(column.value(row)),
            Self::Int4(column) => RowValue::Int(i64::from(column.value(row))),
            Self::Bytes(column) => RowValue::Bytes(column.value(row)),
        }
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
    fn new(answer: RowAnswer, n_rows: usize) -> Self {
        match answer {
            RowAnswer::Text => Self::Text(StringViewBuilder::with_capacity(n_rows)),
            RowAnswer::Int => Self::Int(Int32Builder::with_capacity(n_rows)),
            RowAnswer::Long => Self::Long(Int64Builder::with_capacity(n_rows)),
            RowAnswer::Bool => Self::Bool(BooleanBuilder::with_capacity(n_rows)),
            RowAnswer::Bytes => Self::Bytes(BinaryViewBuilder::with_capacity(n_rows)),
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
