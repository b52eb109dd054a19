//! `repeat`, `lpad` and `rpad`: DataFusion's, with PostgreSQL's bound on the length of a text.
//!
//! Law: a text that would be longer than a gigabyte is an error, before anything is allocated.
//! Cost: one look at the lengths.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::compute::{cast, max};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature};

/// Most bytes of a text: a gigabyte less its header.
const TEXT_BYTES_MAX: i128 = 0x3fff_ffff - 4;

/// Most bytes of a character in UTF-8.
const CHARACTER_BYTES_MAX: i128 = 4;

/// A function whose second argument says how long its result is.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bounded {
    inner: Arc<ScalarUDF>,
}

impl Bounded {
    /// The function with its bound, or as it is if it needs none.
    pub(crate) fn around(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        match function.name() {
            "repeat" | "lpad" | "rpad" => Arc::new(ScalarUDF::from(Self { inner: function })),
            _ => function,
        }
    }

    /// Refuses lengths beyond the bound.
    fn check(&self, args: &ScalarFunctionArgs) -> DfResult<()> {
        let counts = cast(&args.args[1].to_array(args.number_rows)?, &DataType::Int64)?;
        let counts = counts.as_primitive::<Int64Type>();
        let Some(greatest) = max(counts) else { return Ok(()) };
        let fits = |count: i64, bytes: i128| i128::from(count) * bytes <= TEXT_BYTES_MAX;
        if self.inner.name() != "repeat" {
            // (A character may take so many bytes, and PostgreSQL counts them all.)
            return if fits(greatest, CHARACTER_BYTES_MAX) { Ok(()) } else { exec_err!("requested length too large") };
        }
        let texts = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Utf8View)?;
        let texts = texts.as_string_view();
        let longest = texts.lengths().max().unwrap_or_default();
        let all_fit = fits(greatest, i128::from(longest))
            || (0..texts.len()).all(|row| {
                texts.is_null(row) || counts.is_null(row) || fits(counts.value(row), texts.value(row).len() as i128)
            });
        if all_fit { Ok(()) } else { exec_err!("requested length too large") }
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        self.inner.return_type(arg_types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        self.check(&args)?;
        self.inner.invoke_with_args(args)
    }
}
