//! Functions of the embedding program, which SQL calls by name.
//!
//! A [`UserFunction`] computes a column from columns, one value a row. An aggregate is a
//! [`UserAggregate`](crate::frame::UserAggregate), as in frames.
//!
//! Law: a function is one of values: the same arguments give the same value, whenever it is called.
//! The engine calls it as often as it likes, in batches of any size, on any thread. A function that
//! fails (or panics) on a batch is asked again row by row; what fails then is an error of that row,
//! which leaves with the row.
//!
//! ```
//! use std::sync::Arc;
//! use anabranch_engine::functions::{Function, UserFunction};
//! use anabranch_engine::{Options, Session};
//! use arrow::array::{ArrayRef, AsArray, Int64Array};
//! use arrow::datatypes::{DataType, Int64Type};
//!
//! struct Double;
//! impl UserFunction for Double {
//!     fn name(&self) -> &str { "twice" }
//!     fn arguments(&self) -> &[DataType] { &[DataType::Int64] }
//!     fn output_type(&self) -> &DataType { &DataType::Int64 }
//!     fn call(&self, columns: &[ArrayRef], _rows: usize) -> Result<ArrayRef, String> {
//!         let doubled = columns[0].as_primitive::<Int64Type>().iter().map(|x| x.map(|x| 2 * x));
//!         Ok(Arc::new(doubled.collect::<Int64Array>()))
//!     }
//! }
//!
//! let mut session = Session::new(Options::default())?;
//! session.register_function("twice", Function::scalar(Double));
//! let rows = session.query("SELECT twice(21)")?;
//! assert_eq!(rows.batches[0].column(0).as_primitive::<Int64Type>().value(0), 42);
//! # Ok::<(), anabranch_engine::Error>(())
//! ```

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use anabranch_operators::aggregate::custom::{CustomAggregate, Invertible, UserAggregate};
use anabranch_plan::Foreign;
use anabranch_sql::UserAggregateFunction;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion_common::{DataFusionError, Result as DfResult};
use datafusion_expr::{
    AggregateUDF, ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// A function of values. See the [module page](self).
pub trait UserFunction: Send + Sync + 'static {
    /// The name, for messages and plans.
    fn name(&self) -> &str;

    /// Types of the arguments, as plans have them (texts are views). Others are cast where SQL
    /// implies a cast.
    fn arguments(&self) -> &[DataType];

    /// Whether arguments of other types are taken as they are.
    fn takes_any(&self) -> bool {
        false
    }

    /// Type of the values.
    fn output_type(&self) -> &DataType;

    /// One value for each of the `rows` rows of the columns; NULLs are not left out.
    ///
    /// # Errors
    /// Why some row has no value.
    fn call(&self, columns: &[ArrayRef], rows: usize) -> Result<ArrayRef, String>;
}

/// A function that a session can make known to SQL.
#[derive(Clone, Debug)]
pub struct Function(FunctionKind);

#[derive(Clone, Debug)]
enum FunctionKind {
    Scalar(Arc<ScalarUDF>),
    Aggregate(Arc<AggregateUDF>),
}

impl Function {
    /// A function of values.
    pub fn scalar(function: impl UserFunction) -> Function {
        let signature = match function.arguments() {
            [] => Signature::nullary(Volatility::Immutable),
            arguments if function.takes_any() => Signature::any(arguments.len(), Volatility::Immutable),
            arguments => Signature::exact(arguments.to_vec(), Volatility::Immutable),
        };
        let scalar = Scalar { function: Arc::new(function), signature };
        Function(FunctionKind::Scalar(Arc::new(ScalarUDF::new_from_impl(scalar))))
    }

    /// An aggregate of so many arguments. Its rows are kept, and walked when a group changes.
    ///
    /// # Panics
    /// If the aggregate reads when events begin: rows of relations do not.
    pub fn aggregate(aggregate: impl UserAggregate, n_arguments: usize) -> Function {
        Function::of_aggregate(CustomAggregate::new(aggregate), n_arguments)
    }

    /// An aggregate whose rows can be taken out again: a state a group, and no rows.
    ///
    /// # Panics
    /// As [`aggregate`](Self::aggregate).
    pub fn aggregate_invertible(aggregate: impl Invertible, n_arguments: usize) -> Function {
        Function::of_aggregate(CustomAggregate::invertible(aggregate), n_arguments)
    }

    fn of_aggregate(aggregate: CustomAggregate, n_arguments: usize) -> Function {
        assert!(!aggregate.reads_starts(), "rows of relations do not begin");
        let name = aggregate.name().to_owned();
        let typed = aggregate.clone();
        let output_type = Box::new(move |arguments: &[DataType]| typed.output_type(arguments));
        let function = Foreign::new(&name, aggregate);
        Function(FunctionKind::Aggregate(UserAggregateFunction::udaf(&name, n_arguments, output_type, function)))
    }

    pub(crate) fn as_scalar(&self) -> Option<&Arc<ScalarUDF>> {
        match &self.0 {
            FunctionKind::Scalar(function) => Some(function),
            FunctionKind::Aggregate(_) => None,
        }
    }

    pub(crate) fn as_aggregate(&self) -> Option<&Arc<AggregateUDF>> {
        match &self.0 {
            FunctionKind::Aggregate(function) => Some(function),
            FunctionKind::Scalar(_) => None,
        }
    }
}

/// A function of values, as expressions carry it. Equal are those that are the same object.
struct Scalar {
    function: Arc<dyn UserFunction>,
    signature: Signature,
}

impl Scalar {
    fn address(&self) -> usize {
        Arc::as_ptr(&self.function).cast::<()>() as usize
    }
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scalar").field(&self.function.name()).finish()
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.address() == other.address()
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

impl ScalarUDFImpl for Scalar {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(self.function.output_type().clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let columns = args.args.iter().map(|arg| arg.to_array(args.number_rows)).collect::<DfResult<Vec<_>>>()?;
        let rows = args.number_rows;
        let called = catch_unwind(AssertUnwindSafe(|| self.function.call(&columns, rows)));
        let values = called.unwrap_or_else(|_| Err(format!("function {}() panicked", self.function.name())));
        let values = values.map_err(DataFusionError::Execution)?;
        if values.len() != rows || values.data_type() != self.function.output_type() {
            return Err(DataFusionError::Execution(format!(
                "function {}() gave {} values of type {} for {rows} rows of type {}",
                self.function.name(),
                values.len(),
                values.data_type(),
                self.function.output_type()
            )));
        }
        Ok(ColumnarValue::Array(values))
    }
}
