//! `greatest`, `least`, `nullif` and arrays, with plain numerics and literals among their values.

use std::sync::Arc;

use anabranch_batch::TextLimit;
use anabranch_batch::dimensions::next_ragged;
use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result as DfResult, exec_err, plan_err};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::numerics::{as_floats, coerced, plain_among};
use crate::passes::expr::matched::misfit_of_types;
use crate::resolve::documents::{form_of, kept_form_of, marked_list};
use crate::resolve::type_marks::EnumMark;
use crate::resolve::type_names::is_text;

/// Functions that choose among values, of which plain numerics make plain ones.
pub(super) const CHOOSING: [&str; 3] = ["greatest", "least", "nullif"];

/// A function that chooses among values.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Choosing {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl Choosing {
    /// The function with plain numerics, or as it is.
    pub(crate) fn around(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        match CHOOSING.contains(&function.name()) || function.name() == MAKE_ARRAY {
            true => Arc::new(ScalarUDF::from(Self {
                inner: function,
                signature: Signature::user_defined(Volatility::Immutable),
            })),
            false => function,
        }
    }
}

impl Choosing {
    /// The type that literals beside others will have.
    fn of_literals(&self, arg_types: &[DataType]) -> Option<DataType> {
        one_beside_text(arg_types)
    }
}

impl ScalarUDFImpl for Choosing {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        match plain_among(arg_types).or_else(|| self.of_literals(arg_types)) {
            Some(common) if self.name() == MAKE_ARRAY => self.inner.return_type(&vec![common; arg_types.len()]),
            Some(common) => Ok(common),
            None => self.inner.return_type(&as_floats(arg_types)),
        }
    }

    /// (An array of documents is told as such, and so is a document that is not another.)
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.name(), self.return_type(&types)?, true);
        let form = args.arg_fields.iter().find_map(|field| form_of(field));
        if self.name() == MAKE_ARRAY
            && let Some(mark) = args.arg_fields.iter().find_map(|field| EnumMark::of(field))
        {
            return Ok(Arc::new(mark.mark(field)));
        }
        Ok(Arc::new(match (form, self.name()) {
            (Some(form), MAKE_ARRAY) => form.mark_list(field),
            (Some(form), _) => form.mark(field),
            (None, MAKE_ARRAY) if args.arg_fields.iter().any(|of| kept_form_of(of) == Some(TextLimit::Uuid)) => {
                marked_list(field, TextLimit::Uuid)
            }
            _ => field,
        }))
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> DfResult<Vec<DataType>> {
        match plain_among(arg_types).or_else(|| self.of_literals(arg_types)) {
            // (The planner has no cast to plain numerics: `settle_arguments` makes it; literals are
            // read by `common_type`.)
            Some(_) => Ok(arg_types.to_vec()),
            None => coerced(&self.inner, arg_types).or_else(|error| {
                let what = if self.name() == MAKE_ARRAY { "ARRAY".to_owned() } else { self.name().to_uppercase() };
                match misfit_of_types(&what, arg_types) {
                    Some(problem) => plan_err!("{problem}"),
                    None => Err(error),
                }
            }),
        }
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> DfResult<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let made = self.inner.invoke_with_args(args)?;
        if self.name() == MAKE_ARRAY {
            check_parts(&made)?;
        }
        Ok(made)
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }
}

/// Refuses arrays in one whose lengths differ.
fn check_parts(made: &ColumnarValue) -> DfResult<()> {
    let is_of_arrays = matches!(made.data_type(), DataType::List(of) if matches!(of.data_type(), DataType::List(_)));
    if is_of_arrays && next_ragged(made.to_array(1)?.as_list(), 0).is_some() {
        return exec_err!("multidimensional arrays must have array expressions with matching dimensions");
    }
    Ok(())
}

pub(crate) const MAKE_ARRAY: &str = "make_array";

/// The type of intervals, times, arrays or bytes, which literals beside them will have.
fn one_beside_text(arg_types: &[DataType]) -> Option<DataType> {
    let firm: Vec<&DataType> = arg_types.iter().filter(|is| !is_text(is) && !is.is_null()).collect();
    let (first, rest) = firm.split_first()?;
    let is_read = first.is_temporal()
        || **first == DataType::Boolean
        || matches!(first, DataType::List(_) | DataType::Binary | DataType::BinaryView);
    (is_read && arg_types.iter().any(is_text) && rest.iter().all(|is| is == first)).then(|| (*first).clone())
}
