//! `numeric_mean(sum, count)`: the quotient of whole numbers as plain `numeric`, with the digits of
//! PostgreSQL. NULL where the sum is.

use std::sync::Arc;

use anabranch_batch::numeric::{self, Number, Reader};
use arrow::datatypes::DataType;
use datafusion_common::{DataFusionError, Result, exec_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct NumericMean {
    signature: Signature,
}

impl NumericMean {
    pub(super) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::any(2, Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for NumericMean {
    fn name(&self) -> &str {
        "numeric_mean"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(numeric::TYPE)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let reader =
            |at: usize| -> Result<Option<Reader>> { Ok(Reader::new(&args.args[at].to_array(args.number_rows)?)) };
        let (Some(sums), Some(counts)) = (reader(0)?, reader(1)?) else {
            return exec_err!("a mean is the quotient of numbers");
        };
        let means = numeric::map_pairs(&sums, &counts, args.number_rows, Number::divided);
        means.map(ColumnarValue::Array).map_err(|fault| DataFusionError::Execution(fault.to_string()))
    }
}
