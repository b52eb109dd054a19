//! Functions and operators of arrays, with PostgreSQL's rules for NULL, for empty arrays and for
//! subscripts.
//!
//! An array begins at 1; an empty one has no dimensions, so its length is NULL. NULL among elements
//! is unequal to all in `@>`, `<@` and `&&`; equal to itself, and the greatest, in comparisons and
//! where elements are looked for.

mod change;
mod look;
mod subscripted;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use anabranch_batch::{TextLimit, numeric};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DynComparator, Int32Array, ListArray, UInt32Array, make_comparator,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{SortOptions, cast, concat, take};
use arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type, Int64Type};
use datafusion_common::{Result as DfResult, plan_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use self::change::{append, assign, assign_part, join, prepend, remove, replace, reverse, slice, trim};
use self::look::{
    bucket, cardinality, compare, contains, dimensions, element, has, length, lower, n_dimensions, overlaps, position,
    positions,
};
pub(crate) use self::subscripted::{SUBSCRIPTED, settle_subscripts};
use crate::resolve::common_types::union_type;
use crate::resolve::documents::{elements_limit_of, form_in_list, form_of, marked_field, marked_list};
use crate::resolve::type_marks::EnumMark;
use crate::resolve::type_names::{is_number, is_text, sql_name};

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArrayCall {
    Array,
    Element,
    Int,
}

/// What a function gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Array,
    Element,
    Int,
    Ints,
    Bool,
    Text,
}

type Compute = fn(&Arguments) -> DfResult<ArrayRef>;

/// A function of arrays.
#[derive(Debug)]
pub(crate) struct ArrayFunction {
    name: &'static str,
    aliases: Vec<String>,
    takes: &'static [ArrayCall],
    required: usize,
    answer: Answer,
    compute: Compute,
    signature: Signature,
}

/// Names, arguments, how many of them must be given, answer, what computes it.
type Entry = (&'static [&'static str], &'static [ArrayCall], usize, Answer, Compute);

const FUNCTIONS: [Entry; 23] = {
    use ArrayCall::{Array, Element, Int};
    [
        (
            &["array_append", "list_append", "array_push_back", "list_push_back"],
            &[Array, Element],
            2,
            Answer::Array,
            append,
        ),
        (
            &["array_prepend", "list_prepend", "array_push_front", "list_push_front"],
            &[Element, Array],
            2,
            Answer::Array,
            prepend,
        ),
        (&["array_concat", "array_cat", "list_concat", "list_cat"], &[Array, Array], 2, Answer::Array, join),
        (
            &["array_remove", "list_remove", "array_remove_all", "list_remove_all"],
            &[Array, Element],
            2,
            Answer::Array,
            remove,
        ),
        (
            &["array_replace", "list_replace", "array_replace_all", "list_replace_all"],
            &[Array, Element, Element],
            3,
            Answer::Array,
            replace,
        ),
        (
            &["array_position", "list_position", "array_indexof", "list_indexof"],
            &[Array, Element, Int],
            2,
            Answer::Int,
            position,
        ),
        (&["array_positions", "list_positions"], &[Array, Element], 2, Answer::Ints, positions),
        (&["array_length", "list_length", "array_upper"], &[Array, Int], 1, Answer::Int, length),
        (&["array_lower"], &[Array, Int], 2, Answer::Int, lower),
        (&["cardinality"], &[Array], 1, Answer::Int, cardinality),
        (&["array_ndims", "list_ndims"], &[Array], 1, Answer::Int, n_dimensions),
        (&["array_dims", "list_dims"], &[Array], 1, Answer::Text, dimensions),
        (&["array_has_all", "list_has_all"], &[Array, Array], 2, Answer::Bool, contains),
        (&["array_has_any", "list_has_any", "arrays_overlap"], &[Array, Array], 2, Answer::Bool, overlaps),
        (&["array_has", "list_has", "array_contains", "list_contains"], &[Array, Element], 2, Answer::Bool, has),
        (&["__width_bucket"], &[Element, Array], 2, Answer::Int, bucket),
        (&["array_compare"], &[Array, Array], 2, Answer::Int, compare),
        (
            &["array_element", "array_extract", "list_element", "list_extract"],
            &[Array, Int],
            2,
            Answer::Element,
            element,
        ),
        (&["array_slice", "list_slice"], &[Array, Int, Int, Int], 3, Answer::Array, slice),
        (&["trim_array"], &[Array, Int], 2, Answer::Array, trim),
        (&["__array_assigned"], &[Array, Element, Int], 3, Answer::Array, assign),
        (&["__array_assigned_part"], &[Array, Array, Int, Int], 4, Answer::Array, assign_part),
        (&["array_reverse", "list_reverse"], &[Array], 1, Answer::Array, reverse),
    ]
};

/// All functions of this module.
pub(crate) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
    std::iter::once(subscripted::udf()).chain(FUNCTIONS.iter().map(|(names, takes, required, answer, compute)| {
        let function = ArrayFunction {
            name: names[0],
            aliases: names[1..].iter().map(|name| name.to_string()).collect(),
            takes,
            required: *required,
            answer: *answer,
            compute: *compute,
            signature: Signature::user_defined(Volatility::Immutable),
        };
        Arc::new(ScalarUDF::from(function))
    }))
}

impl PartialEq for ArrayFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ArrayFunction {}

impl Hash for ArrayFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

fn list_of(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(element, true)))
}

fn element_type(list: &DataType) -> Option<&DataType> {
    match list {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            Some(field.data_type())
        }
        _ => None,
    }
}

impl ArrayFunction {
    /// The type of the elements of all arguments; `None` if they have none in common.
    fn common_element(&self, types: &[DataType]) -> Option<DataType> {
        let mut common = DataType::Null;
        for (kind, is) in self.takes.iter().zip(types) {
            let of = match kind {
                ArrayCall::Int => continue,
                ArrayCall::Array if is.is_null() => continue,
                ArrayCall::Array => element_type(is)?,
                ArrayCall::Element => is,
            };
            common = match (&common, of) {
                (DataType::Null, of) => of.clone(),
                (_, DataType::Null) => common,
                // (A literal in quotes is read as an element, by `marked_literals`.)
                (common, of) if is_text(of) && !is_text(common) && *kind == ArrayCall::Element => common.clone(),
                (common, of) if is_text(common) && !is_text(of) && *kind == ArrayCall::Array => of.clone(),
                (common, of) => union_type(common, of).filter(|union| {
                    let is_number = |is: &DataType| is.is_numeric() || *is == numeric::TYPE;
                    is_number(common) == is_number(of) && (union == common || union == of || is_number(of))
                })?,
            };
        }
        Some(common)
    }
}

impl ScalarUDFImpl for ArrayFunction {
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
        let fits = (self.required..=self.takes.len()).contains(&types.len())
            && self
                .takes
                .iter()
                .zip(types)
                .all(|(kind, is)| *kind != ArrayCall::Int || is.is_integer() || is.is_null());
        let common = self.common_element(types).filter(|_| fits);
        let Some(common) = common else {
            let types: Vec<String> = types.iter().map(sql_name).collect();
            return plan_err!("function {}({}) does not exist", self.name, types.join(", "));
        };
        // (The planner has no casts to plain numerics: `settle_arguments` makes that of an
        // element.)
        let is_settled = |is: &DataType| common == numeric::TYPE && is_number(is);
        let coerced = self.takes.iter().zip(types).map(|(kind, is)| match kind {
            ArrayCall::Array => list_of(common.clone()),
            ArrayCall::Element if is_settled(is) || is_text(is) && !is_text(&common) => is.clone(),
            ArrayCall::Element => common.clone(),
            ArrayCall::Int => DataType::Int64,
        });
        Ok(coerced.collect())
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        let common = self.common_element(types).unwrap_or(DataType::Null);
        Ok(match self.answer {
            Answer::Array => list_of(common),
            Answer::Element => common,
            Answer::Int => DataType::Int32,
            Answer::Ints => list_of(DataType::Int32),
            Answer::Bool => DataType::Boolean,
            Answer::Text => DataType::Utf8View,
        })
    }

    /// (Lists of documents and labels are told as such, and so are their elements.)
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.name, self.return_type(&types)?, true);
        let form = self.takes.iter().zip(args.arg_fields).find_map(|(kind, field)| match kind {
            ArrayCall::Array => form_in_list(field),
            ArrayCall::Element => form_of(field),
            ArrayCall::Int => None,
        });
        let label = self.takes.iter().zip(args.arg_fields).find_map(|(kind, field)| match kind {
            ArrayCall::Array => EnumMark::of_elements(field),
            ArrayCall::Element => EnumMark::of(field),
            ArrayCall::Int => None,
        });
        if let (Some(mark), Answer::Array | Answer::Element) = (label, self.answer) {
            return Ok(Arc::new(mark.mark(field)));
        }
        let is_uuid = self
            .takes
            .iter()
            .zip(args.arg_fields)
            .any(|(kind, field)| *kind == ArrayCall::Array && elements_limit_of(field) == Some(TextLimit::Uuid));
        Ok(Arc::new(match (form, self.answer) {
            (Some(form), Answer::Array) => form.mark_list(field),
            (Some(form), Answer::Element) => form.mark(field),
            (None, Answer::Array) if is_uuid => marked_list(field, TextLimit::Uuid),
            (None, Answer::Element) if is_uuid => marked_field(field, TextLimit::Uuid),
            _ => field,
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let mut arguments = Arguments { n_rows: args.number_rows, arrays: vec![], elements: vec![], ints: vec![] };
        for (arg, kind) in args.args.iter().zip(self.takes) {
            let column = arg.to_array(args.number_rows)?;
            match kind {
                ArrayCall::Array => {
                    let is = element_type(column.data_type()).cloned().unwrap_or(DataType::Null);
                    arguments.arrays.push(cast(&column, &list_of(is))?);
                }
                ArrayCall::Element => arguments.elements.push(column),
                ArrayCall::Int => arguments.ints.push(cast(&column, &DataType::Int64)?),
            }
        }
        let answer = (self.compute)(&arguments)?;
        let wanted = args.return_field.data_type();
        Ok(ColumnarValue::Array(if answer.data_type() == wanted { answer } else { cast(&answer, wanted)? }))
    }
}

/// The arguments by kind, in order; one entry a row.
struct Arguments {
    n_rows: usize,
    arrays: Vec<ArrayRef>,
    elements: Vec<ArrayRef>,
    ints: Vec<ArrayRef>,
}

impl Arguments {
    fn list(&self, n: usize) -> &ListArray {
        self.arrays[n].as_list()
    }

    /// The whole number in a row; `None` if it is NULL, and `or` if it was not given.
    fn int(&self, n: usize, row: usize, or: i64) -> Option<i64> {
        match self.ints.get(n) {
            None => Some(or),
            Some(column) => {
                let column = column.as_primitive::<Int64Type>();
                (!column.is_null(row)).then(|| column.value(row))
            }
        }
    }

    fn numbers(&self, each: impl Fn(usize) -> Option<i64>) -> ArrayRef {
        Arc::new((0..self.n_rows).map(|row| each(row).map(|n| n as i32)).collect::<Int32Array>())
    }

    fn tests(&self, each: impl Fn(usize) -> Option<bool>) -> ArrayRef {
        Arc::new((0..self.n_rows).map(each).collect::<BooleanArray>())
    }
}

/// Places of a list's elements among its values; `None` for a NULL.
fn places(list: &ListArray, row: usize) -> Option<std::ops::Range<usize>> {
    if list.is_null(row) {
        return None;
    }
    let offsets = list.value_offsets();
    Some(offsets[row] as usize..offsets[row + 1] as usize)
}

/// Lists being put together of values that lie in several columns.
struct Gathering {
    values: ArrayRef,
    /// Where each column begins among the values.
    starts: Vec<usize>,
    taken: Vec<u32>,
    /// How many of those belong to lists that are ended.
    n_ended: usize,
    lengths: Vec<usize>,
    is_valid: Vec<bool>,
}

impl Gathering {
    fn of(columns: &[&ArrayRef]) -> DfResult<Self> {
        let mut starts = vec![];
        let mut n = 0;
        for column in columns {
            starts.push(n);
            n += column.len();
        }
        let columns: Vec<&dyn Array> = columns.iter().map(|column| column.as_ref()).collect();
        Ok(Self { values: concat(&columns)?, starts, taken: vec![], n_ended: 0, lengths: vec![], is_valid: vec![] })
    }

    fn push(&mut self, column: usize, place: usize) {
        self.taken.push((self.starts[column] + place) as u32);
    }

    /// Ends the list of a row, of what was pushed since the last one.
    fn end(&mut self, is_valid: bool) {
        self.lengths.push(self.taken.len() - self.n_ended);
        self.n_ended = self.taken.len();
        self.is_valid.push(is_valid);
    }

    fn finish(self) -> DfResult<ArrayRef> {
        let values = take(&self.values, &UInt32Array::from(self.taken), None)?;
        let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths(self.lengths);
        Ok(Arc::new(ListArray::try_new(field, offsets, values, Some(NullBuffer::from(self.is_valid)))?))
    }
}

/// Values with one zero and one NaN.
fn comparable(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float64 => Arc::new(
            values
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|x| if x.is_nan() { f64::NAN } else { x + 0.0 }),
        ),
        DataType::Float32 => Arc::new(
            values
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|x| if x.is_nan() { f32::NAN } else { x + 0.0 }),
        ),
        _ => values.clone(),
    }
}

/// Compares values of two columns; NULL is the greatest.
fn comparator(left: &ArrayRef, right: &ArrayRef) -> DfResult<DynComparator> {
    let (left, right) = (comparable(left), comparable(right));
    if left.data_type().is_null() || right.data_type().is_null() {
        return Ok(Box::new(|_, _| Ordering::Equal));
    }
    Ok(make_comparator(&left, &right, SortOptions { descending: false, nulls_first: false })?)
}
