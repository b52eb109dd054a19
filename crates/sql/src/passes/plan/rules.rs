//! DataFusion's rules: the table of those that are left out, held back, or prepared.
//!
//! All other rules run as DataFusion orders them.

use std::sync::Arc;

use arrow::temporal_conversions::timestamp_us_to_datetime;
use datafusion_common::Result as DfResult;
use datafusion_common::config::ConfigOptions;
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_optimizer::optimizer::{Optimizer, OptimizerContext, OptimizerRule};

use crate::functions::wholes::check_folding;
use crate::passes::pass::{Chosen, Loss, Pass, PassEntry};
use crate::passes::plan::clock::Clock;
use crate::passes::plan::guarded_rules::{
    HeldBack, Prepared, contains_null_equality, filters_a_total, has_keys_equal_in_null,
};
use crate::passes::plan::list_tests::join_lists;
use crate::passes::plan::subqueries::constants_absent;

/// What becomes of a rule of DataFusion.
#[derive(Clone, Copy)]
enum Change {
    /// The rule does not run.
    Off,
    /// The rule does not run on plans of this kind.
    HeldBack(fn(&LogicalPlan) -> DfResult<bool>),
    /// The rule sees a node as this rewrite has left it.
    Prepared(fn(LogicalPlan) -> DfResult<LogicalPlan>),
}

/// The rules that are changed, by DataFusion's names for them.
const RULES: &[Pass<Change>] = &[
    Pass {
        name: "eliminate_join",
        run: Change::Off,
        gives: "inner joins with a unique key stay",
        reason: "such a join is linear in each side; the semijoin in its place keeps a count for each key",
        example: "SELECT t.k FROM t JOIN p ON t.k = p.id",
        without: Loss::Cost,
    },
    Pass {
        name: "single_distinct_aggregation_to_group_by",
        run: Change::Off,
        gives: "count(DISTINCT x) as one aggregate",
        reason: "the rule makes two aggregates of one",
        example: "SELECT k, count(DISTINCT x) AS n FROM t GROUP BY k",
        without: Loss::Cost,
    },
    Pass {
        name: "push_down_limit",
        run: Change::Off,
        gives: "a limit above joins and unions only",
        reason: "a second limit below keeps more state, and takes rows in another order than the first",
        example: "SELECT k FROM (SELECT t.k FROM t LEFT JOIN u ON t.k = u.k LIMIT 2) AS d",
        without: Loss::Cost,
    },
    Pass {
        name: "extract_equijoin_predicate",
        run: Change::HeldBack(has_keys_equal_in_null),
        gives: "a comparison stays a condition of a join whose keys are equal when both are NULL",
        reason: "the rule adds the comparison to these keys",
        example: "SELECT k FROM t WHERE x = (SELECT max(u.x) FROM u WHERE u.k > t.k + 1)",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "eliminate_cross_join",
        run: Change::HeldBack(contains_null_equality),
        gives: "joins whose keys are equal when both are NULL stay apart from others",
        reason: "the rule puts the keys of several joins under the setting of one",
        example: "SELECT t.k FROM t JOIN u ON t.x IS NOT DISTINCT FROM u.x, dept WHERE dept.id = t.k",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "push_down_filter",
        run: Change::HeldBack(filters_a_total),
        gives: "a condition without columns stays above an aggregate of all rows",
        reason: "the rule puts the condition below, where the aggregate has its one row all the same",
        example: "SELECT d.n FROM (SELECT count(*) AS n FROM t) AS d JOIN u ON 1 = 2",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "decorrelate_predicate_subquery",
        run: Change::Prepared(constants_absent),
        gives: "NOT EXISTS in place of NOT IN of a constant",
        reason: "the rule compares in the ON of an antijoin, where NULL is no match",
        example: "SELECT k FROM t WHERE coalesce(7, k) NOT IN (SELECT x FROM u)",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "simplify_expressions",
        run: Change::Prepared(|plan| join_lists(check_folding(plan)?)),
        gives: "sums of whole numbers without columns that fail beyond their type; one list in place of two",
        reason: "the rule folds constants modulo the width of their type, and takes IN () for false where x is NULL",
        example: "SELECT length('a') + 2147483647::integer AS q FROM w",
        without: Loss::Refusal,
    },
];

/// Runs DataFusion's optimiser with the rules that are left.
pub(super) fn optimise(
    plan: LogicalPlan,
    config: &Arc<ConfigOptions>,
    clock: Clock,
    chosen: Chosen,
) -> DfResult<LogicalPlan> {
    let settings = OptimizerContext::new_with_config_options(config.clone());
    let settings = match clock {
        Clock::Fixed(micros) => match timestamp_us_to_datetime(micros) {
            Some(now) => settings.with_query_execution_start_time(now.and_utc()),
            None => settings,
        },
        Clock::Running => settings.without_query_execution_start_time(),
    };
    Optimizer::with_rules(rules(chosen)).optimize(plan, &settings, |_, _| {})
}

fn rules(chosen: Chosen) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let changed = |rule: Arc<dyn OptimizerRule + Send + Sync>| -> Option<Arc<dyn OptimizerRule + Send + Sync>> {
        let entry = RULES.iter().find(|entry| entry.name == rule.name() && chosen.runs(entry.name));
        match entry.map(|entry| entry.run) {
            None => Some(rule),
            Some(Change::Off) => None,
            Some(Change::HeldBack(from)) => Some(Arc::new(HeldBack { rule, from })),
            Some(Change::Prepared(by)) => Some(Arc::new(Prepared { rule, by })),
        }
    };
    Optimizer::new().rules.into_iter().filter_map(changed).collect()
}

/// The changes, in the order of the table.
pub(super) fn described() -> impl Iterator<Item = PassEntry> {
    RULES.iter().map(|pass| {
        pass.described(match pass.run {
            Change::Off => "a rule of DataFusion, which is left out",
            Change::HeldBack(_) => "a rule of DataFusion, which is held back",
            Change::Prepared(_) => "a rule of DataFusion, which is prepared",
        })
    })
}
