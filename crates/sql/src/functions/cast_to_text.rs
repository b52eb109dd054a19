//! `value_to_text(x)`: what `CAST(x AS text)` means of values that Arrow writes otherwise than
//! PostgreSQL, also within lists.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringViewArray, StringViewBuilder};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult};
use datafusion_expr::{Expr, ExprSchemable};

use crate::functions::conversions::Conversion;
use crate::functions::output::{is_null, printer};
use crate::functions::placed_text::placed_text;
use crate::resolve::type_names::is_text;

/// A cast to text, or to a list of texts, of what Arrow writes otherwise; and lists that are
/// written by `array_to_string`.
pub(crate) fn write_cast(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::Cast(cast) if is_text(cast.field.data_type()) && placed_text(&cast.expr, schema).is_some() => {
            Ok(placed_text(&cast.expr, schema).map_or_else(|| Transformed::no(Expr::Cast(cast)), Transformed::yes))
        }
        Expr::Cast(cast) if cast.expr.get_type(schema).is_ok_and(|from| is_ours(&from, cast.field.data_type())) => {
            Ok(Transformed::yes(to_text(*cast.expr, cast.field.data_type())))
        }
        Expr::ScalarFunction(mut call) if call.func.name() == "array_to_string" && !call.args.is_empty() => {
            let texts = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true)));
            if !call.args[0].get_type(schema).is_ok_and(|from| is_ours(&from, &texts)) {
                return Ok(Transformed::no(Expr::ScalarFunction(call)));
            }
            let array = std::mem::take(&mut call.args[0]);
            let is_nested = matches!(array.get_type(schema)?, DataType::List(of) if depth(of.data_type()) > 0);
            call.args[0] = match is_nested {
                true => Conversion::call("elements_to_text", array, &texts, write_flat),
                false => to_text(array, &texts),
            };
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Arguments of functions that write values of any type: as PostgreSQL shows them, booleans as
/// letters.
pub(crate) fn write_arguments(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::ScalarFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
    // (A truth value in quotes is `true`, as its cast is.)
    let is_quoted = matches!(call.func.name(), "quote_literal" | "quote_nullable" | "quote_ident");
    if !is_quoted && !matches!(call.func.name(), "concat" | "concat_ws" | "format" | "array_to_string") {
        return Ok(Transformed::no(Expr::ScalarFunction(call)));
    }
    let is_of_array = call.func.name() == "array_to_string";
    let mut is_changed = false;
    for arg in call.args.iter_mut().take(if is_of_array { 1 } else { usize::MAX }) {
        let Ok(is) = arg.get_type(schema) else { continue };
        let to = match &is {
            DataType::List(element) if is_of_array && !innermost(element.data_type()).is_null() => texts_like(&is),
            _ if is_of_array || is.is_null() || is_text(&is) => continue,
            DataType::Boolean if is_quoted => continue,
            _ => DataType::Utf8View,
        };
        if let Some(text) = placed_text(arg, schema) {
            *arg = text;
            is_changed = true;
        } else if !is_text(innermost(&is)) || to == DataType::Utf8View {
            *arg = Conversion::call("value_out", std::mem::take(arg), &to, write_out);
            is_changed = true;
        }
    }
    let call = Expr::ScalarFunction(call);
    Ok(if is_changed { Transformed::yes(call) } else { Transformed::no(call) })
}

fn innermost(is: &DataType) -> &DataType {
    match is {
        DataType::List(element) => innermost(element.data_type()),
        other => other,
    }
}

/// The type with texts in place of its elements.
fn texts_like(is: &DataType) -> DataType {
    match is {
        DataType::List(element) => {
            DataType::List(Arc::new(Field::new_list_field(texts_like(element.data_type()), true)))
        }
        _ => DataType::Utf8View,
    }
}

fn write_out(values: &ArrayRef, to: &DataType) -> DfResult<ArrayRef> {
    match values.as_boolean_opt() {
        Some(values) => {
            let letters = values.iter().map(|value| Some(if value? { "t" } else { "f" }));
            Ok(Arc::new(letters.collect::<StringViewArray>()))
        }
        None => write_with(values, to, write_out),
    }
}

/// Whether values of a type are written here when they are cast to another.
fn is_ours(from: &DataType, to: &DataType) -> bool {
    use DataType as D;
    match (from, to) {
        (D::List(from), D::List(to)) => is_ours(from.data_type(), to.data_type()),
        (_, to) if !is_text(to) => false,
        (D::Date32 | D::Time64(TimeUnit::Microsecond) | D::Timestamp(..), _) => true,
        (D::Interval(_) | D::List(_) | D::Struct(_) | D::Binary | D::BinaryView | D::LargeBinary, _) => true,
        (from, _) => from.is_floating(),
    }
}

/// Levels of lists within a type.
fn depth(is: &DataType) -> usize {
    match is {
        DataType::List(element) => 1 + depth(element.data_type()),
        _ => 0,
    }
}

/// The texts of the innermost elements of lists of lists, in one list for each.
fn write_flat(values: &ArrayRef, to: &DataType) -> DfResult<ArrayRef> {
    let mut lists = values.as_list::<i32>().clone();
    while let Some(inner) = lists.values().as_list_opt::<i32>().cloned() {
        let ends = lists.offsets().iter().map(|at| inner.offsets()[*at as usize]).collect::<Vec<i32>>();
        let element = match inner.data_type() {
            DataType::List(element) => element.clone(),
            _ => break,
        };
        let offsets = OffsetBuffer::new(ends.into());
        lists = ListArray::try_new(element, offsets, inner.values().clone(), lists.nulls().cloned())?;
    }
    let lists: ArrayRef = Arc::new(lists);
    write(&lists, to)
}

fn to_text(value: Expr, to: &DataType) -> Expr {
    Conversion::call("value_to_text", value, to, write)
}

/// The texts of values; of a list's, in a list.
fn write(values: &ArrayRef, to: &DataType) -> DfResult<ArrayRef> {
    write_with(values, to, write)
}

fn write_with(
    values: &ArrayRef,
    to: &DataType,
    write: fn(&ArrayRef, &DataType) -> DfResult<ArrayRef>,
) -> DfResult<ArrayRef> {
    if let DataType::List(element) = to {
        let lists = values.as_list::<i32>();
        let texts = write(lists.values(), element.data_type())?;
        let written = ListArray::try_new(element.clone(), lists.offsets().clone(), texts, lists.nulls().cloned())?;
        return Ok(Arc::new(written));
    }
    let micros;
    let values = match values.data_type() {
        // (`date_bin` of DataFusion gives nanoseconds.)
        DataType::Timestamp(unit, zone) if *unit != TimeUnit::Microsecond => {
            micros = cast(values, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?;
            &micros
        }
        _ => values,
    };
    let print = printer(values);
    let mut texts = StringViewBuilder::with_capacity(values.len());
    let mut text = String::new();
    for row in 0..values.len() {
        if is_null(values, row) {
            texts.append_null();
        } else {
            text.clear();
            print(row, &mut text);
            texts.append_value(&text);
        }
    }
    let texts: ArrayRef = Arc::new(texts.finish());
    Ok(if *to == DataType::Utf8View { texts } else { cast(&texts, to)? })
}
