//! Options of DataFusion that change plans.

use datafusion_common::config::ConfigOptions;

use crate::passes::pass::{Chosen, Loss, Pass, PassEntry};
use crate::resolve::type_names::UTC;

const OPTIONS: &[Pass<fn(&mut ConfigOptions)>] = &[
    Pass {
        name: "enable_subquery_sort_elimination",
        run: |options| options.sql_parser.enable_subquery_sort_elimination = false,
        gives: "the order of a subquery stays",
        reason: "the planner drops the order, by which a LIMIT above chooses its rows",
        example: "SELECT k FROM (SELECT k FROM u ORDER BY k DESC) AS d LIMIT 1",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "enable_physical_uncorrelated_scalar_subquery",
        run: |options| options.optimizer.enable_physical_uncorrelated_scalar_subquery = false,
        gives: "a join with a scalar subquery that has no outer columns",
        reason: "DataFusion leaves such a subquery to its own run time",
        example: "SELECT k FROM t WHERE x > (SELECT min(x) FROM u)",
        without: Loss::Failure,
    },
];

/// DataFusion's options for a planner.
pub(crate) fn options(chosen: Chosen) -> ConfigOptions {
    let mut options = ConfigOptions::default();
    OPTIONS.iter().filter(|pass| chosen.runs(pass.name)).for_each(|pass| (pass.run)(&mut options));
    options.execution.time_zone = Some(UTC.into());
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.map_string_types_to_utf8view = true;
    options
}

/// Whether a function is evaluated by the planner, which folds what has no columns. (Evaluation has
/// the library's defaults, where literals with a point are floats.)
pub(crate) fn is_planner(options: &ConfigOptions) -> bool {
    options.sql_parser.parse_float_as_decimal
}

/// The options that change plans.
pub(super) fn described() -> impl Iterator<Item = PassEntry> {
    OPTIONS.iter().map(|pass| pass.described("an option of DataFusion, which is switched off"))
}
