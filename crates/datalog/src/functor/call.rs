//! Functors in plans: calls as expressions, and their evaluation over columns.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringViewBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use super::compute::{Cell, Out, compute};
use super::kind::Functor;

impl Functor {
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
