//! `mode(x)`, the most frequent value, `percentile_disc(x, part)` and `percentile_cont(x, part)`:
//! what `mode() WITHIN GROUP (ORDER BY x)` and `percentile_disc(part) WITHIN GROUP (ORDER BY x)`
//! are rewritten to. Only their types matter: operators compute them.

use std::sync::Arc;

use anabranch_batch::numeric::TYPE;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result as DfResult, not_impl_err, plan_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use crate::functions::intervals::INTERVAL;
use crate::resolve::documents::is_kind_of_text;
use crate::resolve::type_marks::EnumMark;
use crate::resolve::type_names::{is_number, sql_name};

/// The functions.
pub(crate) fn all() -> [Arc<AggregateUDF>; 3] {
    let function = |name, signature| Arc::new(AggregateUDF::from(FunctionOfValues { name, signature }));
    [
        function("mode", Signature::any(1, Volatility::Immutable)),
        function("percentile_disc", Signature::any(2, Volatility::Immutable)),
        function(PERCENTILE_CONT, Signature::user_defined(Volatility::Immutable)),
    ]
}

pub(crate) const PERCENTILE_CONT: &str = "percentile_cont";

/// A function whose result is one of the values of its first argument.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FunctionOfValues {
    name: &'static str,
    signature: Signature,
}

impl AggregateUDFImpl for FunctionOfValues {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Between numbers lie doubles, and between intervals there are intervals.
    fn coerce_types(&self, arg_types: &[DataType]) -> DfResult<Vec<DataType>> {
        match arg_types {
            [value, _] if *value == INTERVAL => Ok(vec![INTERVAL, DataType::Float64]),
            // (A plain numeric is a float in the resolved plan:
            // `settle_numbers::settle_arguments`.)
            [TYPE, _] => Ok(vec![TYPE, DataType::Float64]),
            [value, _] if is_number(value) || value.is_null() => Ok(vec![DataType::Float64; 2]),
            [value, _] => plan_err!("function {}(numeric, {}) does not exist", self.name, sql_name(value)),
            _ => plan_err!("function {} takes a part", self.name),
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(match &arg_types[0] {
            of if *of == TYPE && self.name == PERCENTILE_CONT => DataType::Float64,
            of => of.clone(),
        })
    }

    /// (The most frequent document is one, and so is a label.)
    fn return_field(&self, arg_fields: &[FieldRef]) -> DfResult<FieldRef> {
        let types: Vec<DataType> = arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.name, self.return_type(&types)?, true);
        let is_chosen = |of: &FieldRef| match self.name {
            "mode" => is_kind_of_text(of),
            _ => EnumMark::of(of).is_some(),
        };
        Ok(Arc::new(match arg_fields.first().filter(|of| is_chosen(of)) {
            Some(of) => field.with_metadata(of.metadata().clone()),
            None => field,
        }))
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> DfResult<Box<dyn Accumulator>> {
        not_impl_err!("{} is computed by operators", self.name)
    }

    fn state_fields(&self, _args: StateFieldsArgs) -> DfResult<Vec<FieldRef>> {
        Ok(vec![])
    }
}
