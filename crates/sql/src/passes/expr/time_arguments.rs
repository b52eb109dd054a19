//! Texts that functions of times are given.
//!
//! ```text
//! date_trunc('day', s)    function date_trunc(unknown, text) does not exist
//! age(d, s)               function age(date, text) does not exist
//! ```
//!
//! Literals in quotes, and parameters, have no type of their own: they are read as times.

use datafusion_common::{DFSchema, Result as DfResult, plan_err};
use datafusion_expr::{Expr, ExprSchemable};

use crate::functions::at_time_zone::AT_TIME_ZONE;
use crate::passes::expr::matched::Choice;
use crate::resolve::operands::operand_name;
use crate::resolve::type_names::is_text;

/// Functions that read texts as times, and their arguments of which that is so.
const READING: [(&str, &[usize]); 5] =
    [("date_trunc", &[1]), ("date_part", &[1]), ("date_bin", &[0, 1, 2]), ("age", &[0, 1]), (AT_TIME_ZONE, &[0])];

/// Refuses a text that is no literal.
pub(super) fn check(expr: &Expr, schema: &DFSchema) -> DfResult<()> {
    let Expr::ScalarFunction(call) = expr else { return Ok(()) };
    let Some((name, places)) = READING.iter().find(|(name, _)| *name == call.func.name()) else { return Ok(()) };
    let is_read = |value: &Expr| {
        let is = value.get_type(schema).is_ok_and(|is| is_text(&is));
        is && value.to_field(schema).is_ok_and(|(_, field)| Choice::of(value, &field).is_some())
    };
    if !places.iter().filter_map(|at| call.args.get(*at)).any(is_read) {
        return Ok(());
    }
    let mut types: Vec<String> = call.args.iter().map(|value| operand_name(value, schema)).collect();
    if *name == AT_TIME_ZONE {
        types.reverse();
        return plan_err!("function pg_catalog.timezone({}) does not exist", types.join(", "));
    }
    plan_err!("function {name}({}) does not exist", types.join(", "))
}
