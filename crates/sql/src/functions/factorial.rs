//! `factorial(n)`: a numeric, as long as it becomes.

use std::sync::Arc;

use anabranch_batch::numeric::{Builder, Number, TYPE};
use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// The greatest number whose factorial PostgreSQL's numeric holds.
const MAX: i64 = 32_177;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Factorial {
    signature: Signature,
}

impl Factorial {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        let signature = Signature::uniform(1, vec![DataType::Int64], Volatility::Immutable);
        Arc::new(ScalarUDF::from(Self { signature }))
    }
}

impl ScalarUDFImpl for Factorial {
    fn name(&self) -> &str {
        "factorial"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> DfResult<DataType> {
        Ok(TYPE)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let values = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Int64)?;
        let values = values.as_primitive::<Int64Type>();
        let mut out = Builder::with_capacity(values.len());
        for row in 0..values.len() {
            if values.is_null(row) {
                out.append(None);
                continue;
            }
            match values.value(row) {
                ..0 => return exec_err!("factorial of a negative number is undefined"),
                n if n > MAX => return exec_err!("value overflows numeric format"),
                n => {
                    let product = (2..=n).try_fold(Number::new(1i128, 0), |product, factor| {
                        product.times(&Number::new(i128::from(factor), 0))
                    });
                    let Ok(product) = product else { return exec_err!("value overflows numeric format") };
                    out.append(Some(&product));
                }
            }
        }
        Ok(ColumnarValue::Array(out.finish()))
    }
}
