//! What casts to `uuid`, `json` and `jsonb` mean: the text in the form of the type, or an error.

use std::sync::Arc;

use anabranch_batch::TextLimit;
use datafusion_expr::ScalarUDF;

use super::rows::Kind::Text;
use super::rows::{Answer, Out, RowFunction, Value, Way};

/// All functions of this module.
pub(crate) fn all() -> [Arc<ScalarUDF>; 3] {
    [
        RowFunction::udf("uuid_in", &[], UUID),
        RowFunction::udf("json_in", &[], JSON),
        RowFunction::udf("jsonb_in", &[], JSONB),
    ]
}

const UUID: &[Way] =
    &[Way { takes: &[Text], required: 1, answer: Answer::Text, compute: |args, _| read(TextLimit::Uuid, args) }];
const JSON: &[Way] =
    &[Way { takes: &[Text], required: 1, answer: Answer::Text, compute: |args, _| read(TextLimit::Json, args) }];
const JSONB: &[Way] =
    &[Way { takes: &[Text], required: 1, answer: Answer::Text, compute: |args, _| read(TextLimit::Jsonb, args) }];

fn read(form: TextLimit, args: &[Value]) -> Result<Out, String> {
    let text = args[0].text();
    form.fit(text).map(|fitted| Out::Text(fitted.into_owned())).ok_or_else(|| form.misfit(text))
}
