//! What casts to `uuid` mean: the text in the form of the type, or an error. (Those to documents
//! are in `json`.)

use std::sync::Arc;

use anabranch_batch::TextLimit;
use datafusion_expr::ScalarUDF;

use super::rows::RowCall::Text;
use super::rows::{Out, RowAnswer, RowFunction, RowValue, Way};

/// All functions of this module.
pub(crate) fn all() -> [Arc<ScalarUDF>; 1] {
    [RowFunction::udf("uuid_in", &[], UUID)]
}

const UUID: &[Way] =
    &[Way { takes: &[Text], required: 1, answer: RowAnswer::Text, compute: |args, _| read(TextLimit::Uuid, args) }];

fn read(form: TextLimit, args: &[RowValue]) -> Result<Out, String> {
    let text = args[0].text();
    form.fit(text).map(|fitted| Out::Text(fitted.into_owned())).ok_or_else(|| form.misfit(text))
}
