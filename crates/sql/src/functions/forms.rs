//! What casts to `uuid`, `varchar(n)`, `char(n)`, `name` and `"char"` mean: the text in the form of
//! the type, or an error. (Those to documents are in `json`.)
//!
//! Cost: one pass over the texts; a cast that says no length gives the column as it is.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_batch::TextLimit;
use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion_common::{Result as DfResult, ScalarValue, plan_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::rows::RowCall::Text;
use super::rows::{Out, RowAnswer, RowFunction, RowValue, Way};
use super::same_value::SameValue;
use crate::resolve::documents::{marked_field, shown_form_of};

/// All functions of this module.
pub(crate) fn all() -> [Arc<ScalarUDF>; 7] {
    [
        SameValue::udf(UUID_OF, |field| marked_field(field.clone(), TextLimit::Uuid)),
        SameValue::udf(UNMARKED, unmarked),
        RowFunction::udf(UUID_IN, &[], UUID),
        CutText::udf(CHARACTER_IN),
        CutText::udf(VARYING_IN),
        CutText::udf(NAME_IN),
        CutText::udf(LETTER_IN),
    ]
}

/// Text in the form of a uuid.
pub(crate) const UUID_IN: &str = "uuid_in";

/// A text that is a uuid, marked as one.
pub(crate) const UUID_OF: &str = "__uuid";

/// Text without the spaces at its end, which mean nothing in `char(n)`, cut to a length.
pub(crate) const CHARACTER_IN: &str = "character_in";

/// Text cut to a length.
pub(crate) const VARYING_IN: &str = "varying_in";

/// Text cut to the length of names.
pub(crate) const NAME_IN: &str = "name_in";

/// The first character of a text.
pub(crate) const LETTER_IN: &str = "letter_in";

/// A value without the mark of a type of texts or times, which says nothing of values beside it.
pub(crate) const UNMARKED: &str = "__unmarked";

/// The function of a limit, and its length if it says one.
pub(crate) fn reader_of(limit: TextLimit) -> (&'static str, Option<u64>) {
    let said = |n: u64| (n != TextLimit::UNBOUNDED).then_some(n);
    match limit {
        TextLimit::Varchar(n) => (VARYING_IN, said(n)),
        TextLimit::Char(n) => (CHARACTER_IN, said(n)),
        TextLimit::Name => (NAME_IN, None),
        TextLimit::Letter => (LETTER_IN, None),
        TextLimit::Uuid => (UUID_IN, None),
        TextLimit::Json => ("json_in", None),
        TextLimit::Jsonb => ("jsonb_in", None),
    }
}

const UUID: &[Way] =
    &[Way { takes: &[Text], required: 1, answer: RowAnswer::Text, compute: |args, _| read(TextLimit::Uuid, args) }];

fn read(form: TextLimit, args: &[RowValue]) -> Result<Out, String> {
    let text = args[0].text();
    form.fit(text).map(|fitted| Out::Text(fitted.into_owned())).ok_or_else(|| form.misfit(text))
}

/// `character_in(text, n)` and its like: the text as the type keeps it, marked as of that type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CutText {
    name: &'static str,
    signature: Signature,
}

impl CutText {
    fn udf(name: &'static str) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { name, signature: Signature::user_defined(Volatility::Immutable) }))
    }

    fn limit(&self, length: Option<i64>) -> TextLimit {
        let length = length.and_then(|n| u64::try_from(n).ok()).unwrap_or(TextLimit::UNBOUNDED);
        match self.name {
            CHARACTER_IN => TextLimit::Char(length),
            NAME_IN => TextLimit::Name,
            LETTER_IN => TextLimit::Letter,
            _ => TextLimit::Varchar(length),
        }
    }
}

impl ScalarUDFImpl for CutText {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> DfResult<Vec<DataType>> {
        match types {
            [_] => Ok(vec![DataType::Utf8View]),
            [_, length] if length.is_integer() => Ok(vec![DataType::Utf8View, DataType::Int64]),
            _ => plan_err!("function {} takes a text and a length", self.name),
        }
    }

    fn return_type(&self, _types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Utf8View)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let length = match args.scalar_arguments.get(1).copied().flatten() {
            Some(ScalarValue::Int64(length)) => *length,
            _ => None,
        };
        Ok(Arc::new(marked_field(Field::new(self.name, DataType::Utf8View, true), self.limit(length))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let length = match args.args.get(1) {
            Some(ColumnarValue::Scalar(ScalarValue::Int64(length))) => *length,
            Some(ColumnarValue::Array(lengths)) if !lengths.is_empty() => {
                lengths.as_primitive_opt::<Int64Type>().map(|lengths| lengths.value(0))
            }
            _ => None,
        };
        let limit = self.limit(length);
        let text = args.args[0].cast_to(&DataType::Utf8View, None)?;
        if limit.takes_all() {
            return Ok(text);
        }
        Ok(match text {
            ColumnarValue::Scalar(ScalarValue::Utf8View(Some(text))) => {
                ColumnarValue::Scalar(ScalarValue::Utf8View(Some(limit.cut(&text).to_string())))
            }
            ColumnarValue::Array(texts) => ColumnarValue::Array(cut_column(limit, &texts)),
            null => null,
        })
    }
}

fn cut_column(limit: TextLimit, column: &ArrayRef) -> ArrayRef {
    let texts = column.as_string_view();
    if texts.iter().flatten().all(|text| limit.cut(text).len() == text.len()) {
        return column.clone();
    }
    let cut: StringViewArray = texts.iter().map(|text| text.map(|text| limit.cut(text))).collect();
    Arc::new(cut)
}

/// What is left of a field's marks: those of documents and `uuid`.
fn unmarked(field: &Field) -> Field {
    match shown_form_of(field) {
        Some(TextLimit::Uuid | TextLimit::Json | TextLimit::Jsonb) => field.clone(),
        _ => field.clone().with_metadata(HashMap::new()),
    }
}
