//! Functors: what they compute, row by row of plain values.
//!
//! Law: `+ - * / %` of numbers are the engine's own arithmetic, whose overflow and division by zero
//! are row errors; all else is here. A value that does not exist (a text that is no number, a power
//! out of range) is a row error too. NULL in, NULL out.
//!
//! Source: the functors of Souffle's language reference. Departures: numbers have 64 bits and do not
//! wrap around, lengths and positions count characters, and `ord` is a hash.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringViewBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type};
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use regex::Regex;

use crate::record::{self, Part};

/// A functor on values of known types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Functor {
    /// `+`, of numbers or of floats.
    Add,
    Subtract,
    /// `-` of unsigned numbers: an error below zero.
    SubtractUnsigned,
    Multiply,
    Divide,
    Modulo,
    /// `^` of numbers.
    Power,
    PowerFloat,
    Negate,
    NegateFloat,
    Band,
    Bor,
    Bxor,
    Bshl,
    Bshr,
    Bshru,
    Bnot,
    Land,
    Lor,
    Lxor,
    Lnot,
    Min,
    Max,
    Cat,
    Length,
    Substring,
    Ord,
    NumberToText,
    FloatToText,
    TextToNumber,
    TextToUnsigned,
    TextToFloat,
    NumberToFloat,
    NumberToUnsigned,
    FloatToNumber,
    FloatToUnsigned,
    /// The value itself, in a type of the same values.
    Same,
    Match,
    Contains,
    /// `range(..)` of numbers, a list.
    Range,
    RangeFloat,
    /// A record of the arguments, in text form. Which of them are text tells the first argument:
    /// a letter each, `s` for symbols and `r` for records.
    Record,
    /// As [`Record`](Functor::Record), with the branch's name as second argument.
    Branch,
    /// Whether a text is of the branch that the second argument names; `""` for records.
    IsOf,
    /// A symbol in a record, by its position.
    TextPart,
    NumberPart,
    FloatPart,
    /// A record in a record.
    InnerPart,
}

impl Functor {
    /// Whether the functor has no value for some arguments (an overflow apart).
    pub fn may_fail(self) -> bool {
        use Functor as F;
        matches!(
            self,
            F::SubtractUnsigned
                | F::Divide
                | F::Modulo
                | F::Power
                | F::TextToNumber
                | F::TextToUnsigned
                | F::TextToFloat
                | F::NumberToUnsigned
                | F::FloatToNumber
                | F::FloatToUnsigned
                | F::Range
                | F::RangeFloat
                | F::Match
        )
    }

    /// The functor applied to expressions.
    pub fn call(self, mut arguments: Vec<Expr>) -> Expr {
        let operator = match self {
            Functor::Add => Some(Operator::Plus),
            Functor::Subtract => Some(Operator::Minus),
            Functor::Multiply => Some(Operator::Multiply),
            Functor::Divide => Some(Operator::Divide),
            Functor::Modulo => Some(Operator::Modulo),
            _ => None,
        };
        match (operator, arguments.len()) {
            (Some(operator), 2) => {
                let (Some(right), Some(left)) = (arguments.pop(), arguments.pop()) else {
                    unreachable!("there are two arguments")
                };
                Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))
            }
            _ if self == Functor::Same => arguments.pop().expect("the checker has counted the arguments"),
            _ if self == Functor::Negate => {
                let operand = arguments.pop().expect("the checker has counted the arguments");
                Expr::BinaryExpr(BinaryExpr::new(Box::new(lit(0_i64)), Operator::Minus, Box::new(operand)))
            }
            _ => ScalarUDF::from(Implementation::of(self)).call(arguments),
        }
    }

    fn name(self) -> &'static str {
        use Functor as F;
        match self {
            F::Add | F::Subtract | F::Multiply | F::Divide | F::Modulo | F::Negate | F::Same => "datalog_operator",
            F::SubtractUnsigned => "datalog_minus",
            F::Power => "datalog_power",
            F::PowerFloat => "datalog_power_float",
            F::NegateFloat => "datalog_negate",
            F::Band => "datalog_band",
            F::Bor => "datalog_bor",
            F::Bxor => "datalog_bxor",
            F::Bshl => "datalog_bshl",
            F::Bshr => "datalog_bshr",
            F::Bshru => "datalog_bshru",
            F::Bnot => "datalog_bnot",
            F::Land => "datalog_land",
            F::Lor => "datalog_lor",
            F::Lxor => "datalog_lxor",
            F::Lnot => "datalog_lnot",
            F::Min => "datalog_min",
            F::Max => "datalog_max",
            F::Cat => "datalog_cat",
            F::Length => "datalog_strlen",
            F::Substring => "datalog_substr",
            F::Ord => "datalog_ord",
            F::NumberToText => "datalog_number_to_string",
            F::FloatToText => "datalog_float_to_string",
            F::TextToNumber => "datalog_to_number",
            F::TextToUnsigned => "datalog_to_unsigned",
            F::TextToFloat => "datalog_to_float",
            F::NumberToFloat => "datalog_number_to_float",
            F::NumberToUnsigned => "datalog_number_to_unsigned",
            F::FloatToNumber => "datalog_float_to_number",
            F::FloatToUnsigned => "datalog_float_to_unsigned",
            F::Match => "datalog_match",
            F::Contains => "datalog_contains",
            F::Range => "datalog_range",
            F::RangeFloat => "datalog_range_float",
            F::Record => "datalog_record",
            F::Branch => "datalog_branch",
            F::IsOf => "datalog_is_of",
            F::TextPart => "datalog_text_part",
            F::NumberPart => "datalog_number_part",
            F::FloatPart => "datalog_float_part",
            F::InnerPart => "datalog_inner_part",
        }
    }

    /// The type of the functor's values; of min and max, that of the first argument.
    fn output(self, arguments: &[DataType]) -> DataType {
        use Functor as F;
        let list = |item| DataType::List(Arc::new(Field::new_list_field(item, true)));
        match self {
            F::Min | F::Max => arguments.first().cloned().unwrap_or(DataType::Int64),
            F::PowerFloat | F::NegateFloat | F::TextToFloat | F::NumberToFloat | F::FloatPart => DataType::Float64,
            F::Cat | F::Substring | F::NumberToText | F::FloatToText => DataType::Utf8View,
            F::Record | F::Branch | F::TextPart | F::InnerPart => DataType::Utf8View,
            F::Match | F::Contains | F::IsOf => DataType::Boolean,
            F::Range => list(DataType::Int64),
            F::RangeFloat => list(DataType::Float64),
            _ => DataType::Int64,
        }
    }
}

/// A plain value of one row.
#[derive(Clone, Copy, Debug)]
enum Cell<'a> {
    Text(&'a str),
    Number(i64),
    Float(f64),
}

/// What a functor gives for one row.
#[derive(Debug)]
enum Out {
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

fn compute(functor: Functor, args: &[Cell<'_>], patterns: &mut HashMap<String, Regex>) -> Result<Out, String> {
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

fn parts<'a>(letters: &'a str, cells: &'a [Cell<'a>]) -> impl Iterator<Item = Part<'a>> {
    letters.chars().zip(cells).map(|(letter, cell)| match cell {
        Cell::Text(text) if letter == 'r' => Part::Inner(text),
        Cell::Text(text) => Part::Text(text),
        Cell::Number(number) => Part::Number(*number),
        Cell::Float(number) => Part::Float(*number),
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
pub(crate) fn ordinal(text: &str) -> i64 {
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

/// A functor as the engine calls it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Implementation {
    functor: Functor,
    signature: Signature,
}

impl Implementation {
    fn of(functor: Functor) -> Implementation {
        Implementation { functor, signature: Signature::variadic_any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Implementation {
    fn name(&self) -> &str {
        self.functor.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> DfResult<DataType> {
        Ok(self.functor.output(arguments))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let n_rows = args.number_rows;
        let mut columns = Vec::with_capacity(args.args.len());
        for column in args.args {
            columns.push(Column::new(&column.into_array(n_rows)?)?);
        }
        let output = self.functor.output(&columns.iter().map(Column::data_type).collect::<Vec<_>>());
        let mut builder = Builder::new(&output);
        let mut patterns = HashMap::new();
        let mut cells = Vec::with_capacity(columns.len());
        for row in 0..n_rows {
            cells.clear();
            cells.extend(columns.iter().map_while(|column| column.cell(row)));
            if cells.len() < columns.len() {
                builder.append_null();
                continue;
            }
            match compute(self.functor, &cells, &mut patterns) {
                Ok(out) => builder.append(out),
                Err(message) => return exec_err!("{message}"),
            }
        }
        Ok(ColumnarValue::Array(builder.finish()))
    }
}

/// An argument's column in the one form of its kind.
enum Column {
    Text(ArrayRef),
    Number(ArrayRef),
    Float(ArrayRef),
}

impl Column {
    fn new(array: &ArrayRef) -> DfResult<Column> {
        Ok(match array.data_type() {
            DataType::Int64 => Column::Number(Arc::clone(array)),
            DataType::Float64 => Column::Float(Arc::clone(array)),
            integer if integer.is_integer() => Column::Number(cast(array, &DataType::Int64)?),
            DataType::Utf8View => Column::Text(Arc::clone(array)),
            _ => Column::Text(cast(array, &DataType::Utf8View)?),
        })
    }

    fn data_type(&self) -> DataType {
        match self {
            Column::Text(_) => DataType::Utf8View,
            Column::Number(_) => DataType::Int64,
            Column::Float(_) => DataType::Float64,
        }
    }

    /// The value of a row; `None` for NULL.
    fn cell(&self, row: usize) -> Option<Cell<'_>> {
        let (Column::Text(array) | Column::Number(array) | Column::Float(array)) = self;
        if array.is_null(row) {
            return None;
        }
        Some(match self {
            Column::Text(array) => Cell::Text(array.as_string_view().value(row)),
            Column::Number(array) => Cell::Number(array.as_primitive::<Int64Type>().value(row)),
            Column::Float(array) => Cell::Float(array.as_primitive::<Float64Type>().value(row)),
        })
    }
}

/// The column of answers.
enum Builder {
    Text(StringViewBuilder),
    Number(Int64Builder),
    Float(Float64Builder),
    Bool(BooleanBuilder),
    Numbers(ListBuilder<Int64Builder>),
    Floats(ListBuilder<Float64Builder>),
}

impl Builder {
    fn new(output: &DataType) -> Builder {
        match output {
            DataType::Utf8View => Builder::Text(StringViewBuilder::new()),
            DataType::Float64 => Builder::Float(Float64Builder::new()),
            DataType::Boolean => Builder::Bool(BooleanBuilder::new()),
            DataType::List(item) if *item.data_type() == DataType::Float64 => {
                Builder::Floats(ListBuilder::new(Float64Builder::new()))
            }
            DataType::List(_) => Builder::Numbers(ListBuilder::new(Int64Builder::new())),
            _ => Builder::Number(Int64Builder::new()),
        }
    }

    fn append(&mut self, out: Out) {
        match (self, out) {
            (Builder::Text(builder), Out::Text(text)) => builder.append_value(text),
            (Builder::Number(builder), Out::Number(number)) => builder.append_value(number),
            (Builder::Float(builder), Out::Float(number)) => builder.append_value(number),
            (Builder::Bool(builder), Out::Bool(holds)) => builder.append_value(holds),
            (Builder::Numbers(builder), Out::Numbers(values)) => builder.append_value(values.into_iter().map(Some)),
            (Builder::Floats(builder), Out::Floats(values)) => builder.append_value(values.into_iter().map(Some)),
            _ => unreachable!("a functor gives values of its output type"),
        }
    }

    fn append_null(&mut self) {
        match self {
            Builder::Text(builder) => builder.append_null(),
            Builder::Number(builder) => builder.append_null(),
            Builder::Float(builder) => builder.append_null(),
            Builder::Bool(builder) => builder.append_null(),
            Builder::Numbers(builder) => builder.append_null(),
            Builder::Floats(builder) => builder.append_null(),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Builder::Text(mut builder) => Arc::new(builder.finish()),
            Builder::Number(mut builder) => Arc::new(builder.finish()),
            Builder::Float(mut builder) => Arc::new(builder.finish()),
            Builder::Bool(mut builder) => Arc::new(builder.finish()),
            Builder::Numbers(mut builder) => Arc::new(builder.finish()),
            Builder::Floats(mut builder) => Arc::new(builder.finish()),
        }
    }
}
