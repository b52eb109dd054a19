//! `factorial(n)` as a plain `numeric`: DataFusion's ends at the factorial of twenty.
//!
//! Cost: the square of n at worst, for the digits grow with each factor.

use std::sync::Arc;

use anabranch_batch::numeric::{self, Number, TYPE};
use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// The greatest number whose factorial PostgreSQL's `numeric` holds.
const ARGUMENT_MAX: i64 = 32_177;

/// See the module.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Factorial {
    signature: Signature,
}

impl Factorial {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::exact(vec![DataType::Int64], Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for Factorial {
    fn name(&self) -> &str {
        "factorial"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(TYPE)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let column = args.args[0].to_array(args.number_rows)?;
        let mut numbers = numeric::Builder::with_capacity(args.number_rows);
        for n in column.as_primitive::<Int64Type>() {
            numbers.append(n.map(factorial).transpose()?.as_ref());
        }
        Ok(ColumnarValue::Array(numbers.finish()))
    }
}

fn factorial(n: i64) -> DfResult<Number> {
    match n {
        ..0 => return exec_err!("factorial of a negative number is undefined"),
        _ if n > ARGUMENT_MAX => return exec_err!("value overflows numeric format"),
        _ => {}
    }
    let number = |factor: i128| numeric::parse(&factor.to_string());
    let mut product = number(1);
    let mut factors: i128 = 1;
    for factor in 2..=i128::from(n) {
        factors *= factor;
        // (A factor has fifteen bits: the next one has room.)
        if factors > i128::MAX >> 16 || factor == i128::from(n) {
            product = product.and_then(|product| Ok(product.times(&number(factors)?)?));
            factors = 1;
        }
    }
    match product {
        Ok(product) => Ok(product),
        Err(_) => exec_err!("value overflows numeric format"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factorials_are_exact() {
        let text = |n| factorial(n).unwrap().to_string();
        assert_eq!((text(0), text(1), text(5)), ("1".into(), "1".into(), "120".into()));
        assert_eq!(text(25), "15511210043330985984000000");
        assert_eq!(text(100).len(), 158);
        assert!(factorial(-1).is_err() && factorial(32_178).is_err());
    }
}
