//! What casts to `uuid` and `char(n)` mean: the text in the form of the type, or an error. (Those
//! to documents are in `json`.)

use std::sync::Arc;

use anabranch_batch::TextLimit;
use datafusion_expr::ScalarUDF;

use super::rows::RowCall::Text;
use super::rows::{Out, RowAnswer, RowFunction, RowValue, Way};

/// All functions of this module.
pub(crate) fn all() -> [Arc<ScalarUDF>; 2] {
    [RowFunction::udf(UUID_IN, &[], UUID), RowFunction::udf(CHARACTER_IN, &[], CHARACTER)]
}

/// Text in the form of a uuid.
pub(crate) const UUID_IN: &str = "uuid_in";

/// Text without the spaces at its end, which mean nothing in `char(n)`.
pub(crate) const CHARACTER_IN: &str = "character_in";

const CHARACTER: &[Way] = &[Way {
    takes: &[Text],
    required: 1,
    answer: RowAnswer::Text,
    compute: |args, _| Ok(Out::Text(args[0].text().trim_end_matches(' ').to_owned())),
}];

const UUID: &[Way] =
    &[Way { takes: &[Text], required: 1, answer: RowAnswer::Text, compute: |args, _| read(TextLimit::Uuid, args) }];

fn read(form: TextLimit, args: &[RowValue]) -> Result<Out, String> {
    let text = args[0].text();
    form.fit(text).map(|fitted| Out::Text(fitted.into_owned())).ok_or_else(|| form.misfit(text))
}
