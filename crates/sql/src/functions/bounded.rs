//! `repeat`, `lpad`, `rpad`, `replace` and `array_repeat` (`array_fill`): DataFusion's, with
//! PostgreSQL's bounds on the length of a text and of an array.
//!
//! Law: a text that would be longer than a gigabyte is an error, before anything is allocated; so
//! are several texts of one batch that would take more than a quarter of that together, which
//! stages then compute in smaller parts. Cost: one look at the lengths; of `replace`, a search
//! where the texts may grow.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::compute::{cast, max};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature};

use crate::functions::series::FOLDED_MAX;
use crate::passes::plan::options::is_planner;

/// Most bytes of a text: a gigabyte less its header.
const TEXT_BYTES_MAX: i128 = 0x3fff_ffff - 4;

/// Most bytes of several texts of one batch, which are there at the same time.
const BATCH_BYTES_MAX: i128 = 1 << 28;

/// Most elements of an array, those of arrays within it counted.
const ELEMENTS_MAX: i128 = 134_217_727;

/// Bytes that an element takes at least, as an estimate.
const ELEMENT_BYTES: i128 = 8;

/// Most bytes of a character in UTF-8.
const CHARACTER_BYTES_MAX: i128 = 4;

/// A function whose arguments say how long its result is.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bounded {
    inner: Arc<ScalarUDF>,
}

impl Bounded {
    /// The function with its bound, or as it is if it needs none.
    pub(crate) fn around(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        match function.name() {
            "repeat" | "lpad" | "rpad" | "replace" | "array_repeat" => {
                Arc::new(ScalarUDF::from(Self { inner: function }))
            }
            _ => function,
        }
    }

    /// Refuses lengths beyond the bound.
    fn check(&self, args: &ScalarFunctionArgs) -> DfResult<()> {
        if self.inner.name() == "replace" {
            return self.check_replaced(args);
        }
        if self.inner.name() == "array_repeat" {
            return self.check_array(args);
        }
        let counts = cast(&args.args[1].to_array(args.number_rows)?, &DataType::Int64)?;
        let counts = counts.as_primitive::<Int64Type>();
        let Some(greatest) = max(counts) else { return Ok(()) };
        let fits = |count: i64, bytes: i128| i128::from(count) * bytes <= TEXT_BYTES_MAX;
        if self.inner.name() != "repeat" {
            // (A character may take so many bytes, and PostgreSQL counts them all.)
            if !fits(greatest, CHARACTER_BYTES_MAX) {
                return exec_err!("requested length too large");
            }
            return self.check_batch(
                || counts.iter().flatten().map(|count| i128::from(count.max(0))).sum(),
                greatest,
                args,
            );
        }
        let texts = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Utf8View)?;
        let texts = texts.as_string_view();
        let longest = texts.lengths().max().unwrap_or_default();
        let all_fit = fits(greatest, i128::from(longest))
            || (0..texts.len()).all(|row| {
                texts.is_null(row) || counts.is_null(row) || fits(counts.value(row), texts.value(row).len() as i128)
            });
        if !all_fit {
            return exec_err!("requested length too large");
        }
        let bytes = |row: usize| i128::from(counts.value(row).max(0)) * texts.value(row).len() as i128;
        let known = |row: &usize| texts.is_valid(*row) && counts.is_valid(*row);
        let greatest = greatest.saturating_mul(i64::from(longest));
        self.check_batch(|| (0..texts.len()).filter(known).map(bytes).sum(), greatest, args)
    }

    /// The same for an element, or an array, so many times.
    fn check_array(&self, args: &ScalarFunctionArgs) -> DfResult<()> {
        let counts = cast(&args.args[1].to_array(args.number_rows)?, &DataType::Int64)?;
        let counts = counts.as_primitive::<Int64Type>();
        let elements = args.args[0].to_array(args.number_rows)?;
        let within = |row: usize| elements.as_list_opt::<i32>().map_or(1, |lists| elements_of(&lists.value(row)));
        let n_elements = |row: usize| match counts.is_null(row) {
            true => 0,
            false => i128::from(counts.value(row).max(0)) * within(row),
        };
        let each: Vec<i128> = (0..counts.len()).map(n_elements).collect();
        let greatest = each.iter().copied().max().unwrap_or_default();
        if greatest > ELEMENTS_MAX {
            return exec_err!("array size exceeds the maximum allowed ({ELEMENTS_MAX})");
        }
        // (The planner leaves what is long to the time at which it is asked for.)
        if is_planner(&args.config_options) && greatest > FOLDED_MAX as i128 {
            return exec_err!("an array of {greatest} elements is not made while a query is planned");
        }
        self.check_batch(|| each.iter().sum::<i128>() * ELEMENT_BYTES, (greatest * ELEMENT_BYTES) as i64, args)
    }

    /// The same for a text in which each occurrence of another becomes a third.
    fn check_replaced(&self, args: &ScalarFunctionArgs) -> DfResult<()> {
        let texts = |at: usize| cast(&args.args[at].to_array(args.number_rows)?, &DataType::Utf8View);
        let (texts, from, to) = (texts(0)?, texts(1)?, texts(2)?);
        let (texts, from, to) = (texts.as_string_view(), from.as_string_view(), to.as_string_view());
        let longest = |texts: &StringViewArray| i128::from(texts.lengths().max().unwrap_or_default());
        // (An occurrence has one byte at least.)
        if longest(texts) * longest(to).max(1) * args.number_rows as i128 <= BATCH_BYTES_MAX {
            return Ok(());
        }
        let bytes = |row: usize| {
            if texts.is_null(row) || from.is_null(row) || to.is_null(row) || from.value(row).is_empty() {
                return 0;
            }
            let (text, from, to) = (texts.value(row), from.value(row), to.value(row));
            let grown = to.len() as i128 - from.len() as i128;
            text.len() as i128 + if grown > 0 { text.matches(from).count() as i128 * grown } else { 0 }
        };
        let each: Vec<i128> = (0..texts.len()).map(bytes).collect();
        let greatest = each.iter().copied().max().unwrap_or_default();
        if greatest > TEXT_BYTES_MAX {
            return exec_err!("requested length too large");
        }
        self.check_batch(|| each.iter().sum(), greatest as i64, args)
    }

    /// Refuses batches whose texts would take too much together; `greatest` is a bound for one.
    fn check_batch(&self, bytes: impl Fn() -> i128, greatest: i64, args: &ScalarFunctionArgs) -> DfResult<()> {
        let is_small = i128::from(greatest) * args.number_rows as i128 <= BATCH_BYTES_MAX;
        if is_small || args.number_rows == 1 || bytes() <= BATCH_BYTES_MAX {
            return Ok(());
        }
        let name = self.inner.name();
        exec_err!("out of memory: {name}() would make values of more than {BATCH_BYTES_MAX} bytes at a time")
    }
}

/// Elements of an array, those of arrays within it counted.
fn elements_of(list: &ArrayRef) -> i128 {
    match list.as_list_opt::<i32>() {
        Some(lists) => elements_of(lists.values()),
        None => list.len() as i128,
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
