//! `x LIKE ANY (list)`, `ILIKE`, `~` and `ALL`, where the list is not written out: each pattern is
//! tried.
//!
//! Law: as OR and AND of the single tests: NULL where NULL decides. No pattern matches: ANY is
//! false, ALL is true. Cost: one test a pattern and row, over columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringViewArray, UInt32Array};
use arrow::compute::{cast, ilike, like, nilike, nlike, take};
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result as DfResult, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::rows::Patterns;
use crate::regex::{Flags, SearchedText};
use crate::resolve::type_names::{is_text, sql_name};

/// The functions, by the operator and whether one pattern is enough.
const NAMES: [(&str, &str, bool); 16] = [
    ("__like_any", "~~", true),
    ("__like_all", "~~", false),
    ("__ilike_any", "~~*", true),
    ("__ilike_all", "~~*", false),
    ("__not_like_any", "!~~", true),
    ("__not_like_all", "!~~", false),
    ("__not_ilike_any", "!~~*", true),
    ("__not_ilike_all", "!~~*", false),
    ("__regex_any", "~", true),
    ("__regex_all", "~", false),
    ("__iregex_any", "~*", true),
    ("__iregex_all", "~*", false),
    ("__not_regex_any", "!~", true),
    ("__not_regex_all", "!~", false),
    ("__not_iregex_any", "!~*", true),
    ("__not_iregex_all", "!~*", false),
];

/// All functions of this module.
pub(crate) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
    NAMES.into_iter().map(|(name, operator, is_any)| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(LikeList { name, operator, is_any, signature }))
    })
}

/// The function of an operator and ANY or ALL.
pub(crate) fn name_of(operator: &str, is_any: bool) -> Option<&'static str> {
    NAMES.iter().find(|(_, known, of_any)| *known == operator && *of_any == is_any).map(|(name, _, _)| *name)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct LikeList {
    name: &'static str,
    operator: &'static str,
    is_any: bool,
    signature: Signature,
}

impl ScalarUDFImpl for LikeList {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> DfResult<Vec<DataType>> {
        let is_list = |is: &DataType| match is {
            DataType::List(element) => is_text(element.data_type()) || element.data_type().is_null(),
            other => other.is_null(),
        };
        match types {
            [value, list] if (is_text(value) || value.is_null()) && is_list(list) => {
                let element = Field::new_list_field(DataType::Utf8View, true);
                Ok(vec![DataType::Utf8View, DataType::List(Arc::new(element))])
            }
            _ => {
                let [value, list] = types else { return plan_err!("LIKE of a list takes a text and a list") };
                let DataType::List(element) = list else {
                    return plan_err!("op ANY/ALL (array) requires array on right side");
                };
                let (value, element) = (sql_name(value), sql_name(element.data_type()));
                plan_err!("operator does not exist: {value} {} {element}", self.operator)
            }
        }
    }

    fn return_type(&self, _types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let [values, lists] = args.args.as_slice() else { return exec_err!("{} takes a text and a list", self.name) };
        let values = cast(&values.to_array(args.number_rows)?, &DataType::Utf8View)?;
        let lists = lists.to_array(args.number_rows)?;
        let lists = lists.as_list::<i32>();
        let patterns = cast(lists.values(), &DataType::Utf8View)?;
        let offsets = lists.value_offsets();
        // Each pattern beside the value of its row.
        let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
            return exec_err!("a list has ends");
        };
        let patterns = patterns.slice(*first as usize, (last - first) as usize);
        let rows = offsets.windows(2).enumerate().flat_map(|(row, ends)| (ends[0]..ends[1]).map(move |_| row as u32));
        let beside: ArrayRef = take(&values, &UInt32Array::from_iter_values(rows), None)?;
        let tests = match self.operator {
            "~~" => like(&beside, &patterns)?,
            "~~*" => ilike(&beside, &patterns)?,
            "!~~" => nlike(&beside, &patterns)?,
            "!~~*" => nilike(&beside, &patterns)?,
            operator => matched(beside.as_string_view(), patterns.as_string_view(), operator)?,
        };
        let answers: BooleanArray = (0..args.number_rows)
            .map(|row| {
                if lists.is_null(row) {
                    return None;
                }
                let from = (offsets[row] - first) as usize;
                let until = (offsets[row + 1] - first) as usize;
                let own = || (from..until).map(|at| tests.is_valid(at).then(|| tests.value(at)));
                // (The value that decides; else NULL if there is one.)
                if own().any(|test| test == Some(self.is_any)) {
                    return Some(self.is_any);
                }
                if own().any(|test| test.is_none()) { None } else { Some(!self.is_any) }
            })
            .collect();
        Ok(ColumnarValue::Array(Arc::new(answers)))
    }
}

/// Whether texts match the regular expressions beside them; whether they do not, of `!~`.
fn matched(texts: &StringViewArray, patterns: &StringViewArray, operator: &str) -> DfResult<BooleanArray> {
    let flags = if operator.ends_with('*') { "i" } else { "" };
    let (flags, _) = Flags::read(flags).map_err(|problem| exec_datafusion_err!("{problem}"))?;
    let is_negated = operator.starts_with('!');
    let mut known = Patterns::default();
    let tests = texts.iter().zip(patterns).map(|(text, pattern)| {
        let (Some(text), Some(pattern)) = (text, pattern) else { return Ok(None) };
        let is_match = known.get(pattern, flags)?.is_match(&SearchedText::new(text))?;
        Ok(Some(is_match != is_negated))
    });
    tests.collect::<Result<BooleanArray, String>>().map_err(|problem| exec_datafusion_err!("{problem}"))
}
