//! What casts to domains and enumerations mean, and the order of enumerations.
//!
//! ```text
//! x::mood      __enum_in(x, 'mood', labels)                    the text, marked, if it is a label
//! x::posint    __domain_in(x::int, x::int > 0, 'problem', ..)  the value, if no test is false
//! a.m < b.m    __enum_order(a.m, 'mood', labels) < __enum_order(b.m, 'mood', labels)
//! ```

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, ListArray, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Int32Type};
use datafusion_common::{Result as DfResult, ScalarValue, exec_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::resolve::documents::{DocumentForm, form_of};
use crate::resolve::type_marks::EnumMark;
use crate::resolve::type_names::{is_text, sql_name};

/// A text as a value of an enumeration.
pub(crate) const ENUM_IN: &str = "__enum_in";
/// The texts of an array as values of an enumeration.
pub(crate) const ENUMS_IN: &str = "__enums_in";
/// The place of a value among the labels.
pub(crate) const ENUM_ORDER: &str = "__enum_order";
/// The places of the values of an array.
pub(crate) const ENUM_ORDERS: &str = "__enum_orders";
/// The label at a place.
pub(crate) const ENUM_LABEL: &str = "__enum_label";
const DOMAIN_IN: &str = "__domain_in";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum TypeVerb {
    EnumIn,
    EnumsIn,
    EnumOrder,
    EnumOrders,
    EnumLabel,
    DomainIn,
}

#[derive(Debug)]
struct TypeFunction {
    verb: TypeVerb,
    signature: Signature,
}

/// All functions of this module.
pub(crate) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
    use TypeVerb::{DomainIn, EnumIn, EnumLabel, EnumOrder, EnumOrders, EnumsIn};
    [EnumIn, EnumsIn, EnumOrder, EnumOrders, EnumLabel, DomainIn].into_iter().map(|verb| {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Arc::new(ScalarUDF::from(TypeFunction { verb, signature }))
    })
}

impl PartialEq for TypeFunction {
    fn eq(&self, other: &Self) -> bool {
        self.verb == other.verb
    }
}

impl Eq for TypeFunction {}

impl Hash for TypeFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.verb.hash(state);
    }
}

/// Refuses a cast of what is neither a text nor of the enumeration.
fn check_read(from: &Field, mark: &EnumMark) -> DfResult<()> {
    let is = from.data_type();
    let other = match (EnumMark::of(from), form_of(from)) {
        (Some(other), _) if other.name != mark.name => other.name,
        (_, Some(DocumentForm::Json)) => "json".to_owned(),
        (_, Some(DocumentForm::Jsonb)) => "jsonb".to_owned(),
        _ if is_text(is) || is.is_null() => return Ok(()),
        _ => sql_name(is),
    };
    plan_err!("cannot cast type {other} to {}", mark.name)
}

fn text_of(value: Option<&ScalarValue>) -> String {
    value.and_then(|value| value.try_as_str().flatten()).unwrap_or_default().to_owned()
}

/// The places of values among the labels.
fn places_of(values: &ArrayRef, mark: &EnumMark) -> DfResult<ArrayRef> {
    let values = cast(values, &DataType::Utf8View)?;
    let place = |text: &str| match mark.place(text) {
        Some(place) => Ok(place as i32),
        None => exec_err!("{}", mark.misfit(text)),
    };
    let places = values.as_string_view().iter().map(|text| text.map(place).transpose());
    Ok(Arc::new(places.collect::<DfResult<Int32Array>>()?))
}

impl ScalarUDFImpl for TypeFunction {
    fn name(&self) -> &str {
        match self.verb {
            TypeVerb::EnumIn => ENUM_IN,
            TypeVerb::EnumsIn => ENUMS_IN,
            TypeVerb::EnumOrder => ENUM_ORDER,
            TypeVerb::EnumOrders => ENUM_ORDERS,
            TypeVerb::EnumLabel => ENUM_LABEL,
            TypeVerb::DomainIn => DOMAIN_IN,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        Ok(match self.verb {
            TypeVerb::EnumIn | TypeVerb::EnumLabel => DataType::Utf8View,
            TypeVerb::EnumsIn => DataType::new_list(DataType::Utf8View, true),
            TypeVerb::EnumOrder => DataType::Int32,
            TypeVerb::EnumOrders => DataType::new_list(DataType::Int32, true),
            TypeVerb::DomainIn => types.first().cloned().unwrap_or(DataType::Null),
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let argument = |at: usize| text_of(args.scalar_arguments.get(at).copied().flatten());
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.name(), self.return_type(&types)?, true);
        Ok(match self.verb {
            TypeVerb::EnumIn | TypeVerb::EnumsIn | TypeVerb::EnumLabel => {
                let mark = EnumMark { name: argument(1), labels: argument(2) };
                if self.verb == TypeVerb::EnumIn {
                    check_read(&args.arg_fields[0], &mark)?;
                }
                Arc::new(mark.mark(field))
            }
            TypeVerb::EnumOrder | TypeVerb::EnumOrders => Arc::new(field),
            TypeVerb::DomainIn => Arc::new(field.with_metadata(args.arg_fields[0].metadata().clone())),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let constant = |at: usize| match args.args.get(at) {
            Some(ColumnarValue::Scalar(value)) => text_of(Some(value)),
            Some(ColumnarValue::Array(values)) if !values.is_empty() => {
                text_of(ScalarValue::try_from_array(values, 0).ok().as_ref())
            }
            _ => String::new(),
        };
        match self.verb {
            TypeVerb::EnumIn => {
                let mark = EnumMark { name: constant(1), labels: constant(2) };
                let values = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Utf8View)?;
                match values.as_string_view().iter().flatten().find(|text| mark.place(text).is_none()) {
                    Some(text) => exec_err!("{}", mark.misfit(text)),
                    None => Ok(ColumnarValue::Array(values)),
                }
            }
            TypeVerb::EnumsIn => {
                let mark = EnumMark { name: constant(1), labels: constant(2) };
                let lists = args.args[0].to_array(args.number_rows)?;
                let lists = cast(&lists, &DataType::new_list(DataType::Utf8View, true))?;
                places_of(lists.as_list::<i32>().values(), &mark)?;
                Ok(ColumnarValue::Array(lists))
            }
            TypeVerb::EnumOrder => {
                let mark = EnumMark { name: constant(1), labels: constant(2) };
                Ok(ColumnarValue::Array(places_of(&args.args[0].to_array(args.number_rows)?, &mark)?))
            }
            TypeVerb::EnumOrders => {
                let mark = EnumMark { name: constant(1), labels: constant(2) };
                let lists = args.args[0].to_array(args.number_rows)?;
                let Some(lists) = lists.as_list_opt::<i32>() else { return exec_err!("an array was expected") };
                let places = places_of(lists.values(), &mark)?;
                let field = Arc::new(Field::new_list_field(DataType::Int32, true));
                let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
                Ok(ColumnarValue::Array(Arc::new(ListArray::try_new(field, offsets, places, nulls)?)))
            }
            TypeVerb::EnumLabel => {
                let mark = EnumMark { name: constant(1), labels: constant(2) };
                let labels: Vec<&str> = mark.labels().collect();
                let places = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Int32)?;
                let places = places.as_primitive::<Int32Type>().iter();
                let texts = places.map(|place| labels.get(usize::try_from(place?).ok()?).copied());
                Ok(ColumnarValue::Array(Arc::new(texts.collect::<StringViewArray>())))
            }
            TypeVerb::DomainIn => {
                for at in (1..args.args.len().saturating_sub(1)).step_by(2) {
                    let passes = cast(&args.args[at].to_array(args.number_rows)?, &DataType::Boolean)?;
                    let passes = passes.as_boolean();
                    if (0..passes.len()).any(|row| passes.is_valid(row) && !passes.value(row)) {
                        return exec_err!("{}", constant(at + 1));
                    }
                }
                Ok(args.args.into_iter().next().unwrap_or(ColumnarValue::Scalar(ScalarValue::Null)))
            }
        }
    }
}
