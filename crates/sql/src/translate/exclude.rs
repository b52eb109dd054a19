//! Rows that a frame leaves out, out of the partition key that says so (`syntax/parse/exclude.rs`).

use anabranch_spec::frame::Exclude;
use datafusion_common::ScalarValue;
use datafusion_expr::Expr;
use datafusion_expr::expr::WindowFunction;

use crate::syntax::parse::exclude::EXCLUSIONS;

/// The call without the key, and what its frame leaves out.
pub(super) fn excluded(call: &WindowFunction) -> (WindowFunction, Exclude) {
    let mut call = call.clone();
    let mut exclude = Exclude::Nothing;
    call.params.partition_by.retain(|key| match exclusion(key) {
        Some(named) => {
            exclude = named;
            false
        }
        None => true,
    });
    (call, exclude)
}

fn exclusion(key: &Expr) -> Option<Exclude> {
    let text = match key {
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => text,
        Expr::Cast(cast) => return exclusion(&cast.expr),
        Expr::ScalarFunction(call) if call.name() == "concat" && call.args.len() == 1 => {
            return exclusion(&call.args[0]);
        }
        _ => return None,
    };
    let place = EXCLUSIONS.iter().position(|(_, literal)| literal == text)?;
    Some([Exclude::Nothing, Exclude::Row, Exclude::Peers, Exclude::Ties][place])
}
