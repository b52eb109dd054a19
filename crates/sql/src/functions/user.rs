//! Aggregates that users have written: names and types for the planner, and the function that plans
//! carry.
//!
//! Law: the planner never computes one; operators do, by what [`Foreign`] holds.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use anabranch_plan::Foreign;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result as DfResult, not_impl_err, plan_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

/// The type of an aggregate's results over arguments of these types, or why there is none.
pub type OutputType = dyn Fn(&[DataType]) -> Result<DataType, String> + Send + Sync;

/// An aggregate of a user's, as the planner knows it. Equal are those whose functions are the same
/// object.
pub struct UserAggregateFunction {
    name: String,
    signature: Signature,
    output_type: Box<OutputType>,
    function: Foreign,
}

impl fmt::Debug for UserAggregateFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserAggregateFunction").field("function", &self.function).finish_non_exhaustive()
    }
}

impl UserAggregateFunction {
    /// An aggregate of so many arguments, which are taken as they are.
    pub fn udaf(name: &str, n_arguments: usize, output_type: Box<OutputType>, function: Foreign) -> Arc<AggregateUDF> {
        let signature = match n_arguments {
            0 => Signature::nullary(Volatility::Immutable),
            n => Signature::any(n, Volatility::Immutable),
        };
        Arc::new(AggregateUDF::from(UserAggregateFunction { name: name.to_owned(), signature, output_type, function }))
    }

    /// What the plan carries, if the planner's function is one of a user's.
    pub(crate) fn function_of(function: &AggregateUDF) -> Option<&Foreign> {
        let inner: &dyn AggregateUDFImpl = function.inner().as_ref();
        inner.downcast_ref::<UserAggregateFunction>().map(|user| &user.function)
    }
}

impl PartialEq for UserAggregateFunction {
    fn eq(&self, other: &UserAggregateFunction) -> bool {
        self.name == other.name && self.function == other.function
    }
}

impl Eq for UserAggregateFunction {}

impl Hash for UserAggregateFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.function.hash(state);
    }
}

impl AggregateUDFImpl for UserAggregateFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        let told = (self.output_type)(arg_types);
        told.or_else(|reason| plan_err!("aggregate \"{}\" is refused: {reason}", self.name))
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> DfResult<Box<dyn Accumulator>> {
        not_impl_err!("{} is computed by operators", self.name)
    }

    fn state_fields(&self, _args: StateFieldsArgs) -> DfResult<Vec<FieldRef>> {
        Ok(vec![])
    }
}
