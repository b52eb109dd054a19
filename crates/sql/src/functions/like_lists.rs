//! `x LIKE ANY (list)`, `ILIKE` and `ALL`, where the list is not written out: each pattern is
//! tried.
//!
//! Law: as OR and AND of the single tests: NULL where NULL decides. No pattern matches: ANY is
//! false, ALL is true. Cost: one test a pattern and row, over columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array};
use arrow::compute::{cast, ilike, like, nilike, nlike, take};
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result as DfResult, exec_err, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::resolve::type_names::{is_text, sql_name};

/// The functions, by the operator and whether one pattern is enough.
const NAMES: [(&str, &str, bool); 8] = [
    ("__like_any", "~~", true),
    ("__like_all", "~~", false),
    ("__ilike_any", "~~*", true),
    ("__ilike_all", "~~*", false),
    ("__not_like_any", "!~~", true),
    ("__not_like_all", "!~~", false),
    ("__not_ilike_any", "!~~*", true),
    ("__not_ilike_all", "!~~*", false),
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
                plan_err!("operator does not exist: {} {} {}", sql_name(value), self.operator, sql_name(list))
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
        let test = match self.operator {
            "~~" => like,
            "~~*" => ilike,
            "!~~" => nlike,
            _ => nilike,
        };
        let tests = test(&beside, &patterns)?;
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
