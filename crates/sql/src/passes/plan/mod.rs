//! Rewrites of DataFusion's logical plan: the steps from its first plan to its optimised one, in
//! order.
//!
//! Extension nodes for what DataFusion lacks are planned while names are resolved:
//! `set_operations`, `asof`, `recognize`, `recursion`.
//!
//! A plan with a subquery that the steps leave, or refuse, is unnested by the general method of
//! `unnest` first, and then takes the same steps.
//!
//! Law: the plan means what PostgreSQL says that the query means, or planning fails.

pub(crate) mod asof;
mod chosen_documents;
pub(crate) mod clock;
pub(crate) mod conform;
pub(crate) mod decorrelate;
mod deviations;
pub(crate) mod distinct_on;
mod document_marks;
mod everywhere;
pub(crate) mod guarded_rules;
mod interval_keys;
mod interval_sets;
mod interval_sums;
mod join_pairs;
mod join_tests;
pub(crate) mod joined_bytes;
pub(crate) mod label_calls;
mod list_elements;
mod list_order;
mod list_tests;
pub(crate) mod options;
pub(crate) mod outer_conditions;
pub(crate) mod outer_joins;
pub(crate) mod recognize;
pub(crate) mod recursion;
pub(crate) mod repeated_rows;
pub(crate) mod rules;
pub(crate) mod session;
pub(crate) mod set_operations;
pub(crate) mod subqueries;
pub(crate) mod subquery_arguments;
pub(crate) mod temporal_filters;
pub(crate) mod unions;
pub(crate) mod unnest;
mod unordered;
mod widths;

use std::sync::Arc;

use datafusion_common::Result as DfResult;
use datafusion_common::config::ConfigOptions;
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_optimizer::analyzer::Analyzer;

use crate::error::Result;
use crate::passes::expr::cast_table::CASTS;
use crate::passes::expr::{self, SETTLED, Settle};
use crate::passes::pass::{Chosen, Loss, Pass, PassEntry};
use crate::passes::plan::clock::Clock;

/// A step from DataFusion's first plan of a query to its optimised one.
enum Step {
    /// A rewrite of the whole plan.
    Plan(Pass<fn(LogicalPlan) -> DfResult<LogicalPlan>>),
    /// Rewrites of expressions.
    Expressions(&'static [Pass<Settle>]),
    /// DataFusion resolves GROUPING and coerces types.
    Types,
    /// Functions of the clock and of chance are refused in standing queries.
    Clock,
    /// DataFusion's rules, as `rules` changes their list.
    Rules,
    /// Columns beside unnested lists are columns again.
    Repeated,
}

/// Before all steps, since the steps for common forms are then those of the plan.
const BESIDE: Pass<fn(LogicalPlan) -> DfResult<LogicalPlan>> = Pass {
    name: "entries of FROM beside rows",
    run: unnest::beside::flatten,
    gives: "projections, filters and lists over the rows before a LATERAL entry, in place of a join with it",
    reason: "decorrelate_lateral_join takes conditions of equality only, and joins",
    example: "SELECT t.k, y.z, e.n FROM t, LATERAL (SELECT t.x + 1 AS z) AS y, generate_series(1, y.z) AS e(n)",
    without: Loss::Cost,
};

/// Before all steps, since these tell rows apart by all their columns.
const UNORDERED: Pass<fn(LogicalPlan) -> DfResult<LogicalPlan>> = Pass {
    name: "refuse documents that are told apart",
    run: unordered::check,
    gives: "DISTINCT, GROUP BY, ORDER BY, UNION and comparisons of what has an equality and an order",
    reason: "documents are texts to DataFusion",
    example: "SELECT DISTINCT '{}'::json AS j",
    without: Loss::Refusal,
};

const LITERALS_IN_UNION: &str = "literals in UNION";
const TESTS_OF_JOINS: &str = "subqueries in the ON of outer joins";

const STEPS: &[Step] = &[
    Step::Plan(Pass {
        name: "subqueries in aggregates",
        run: subquery_arguments::lift,
        gives: "columns of the rows below, in place of subqueries within aggregates, window functions and orders",
        reason: "DataFusion decorrelates subqueries of filters and select lists only",
        example: "SELECT sum((SELECT max(u.x) FROM u WHERE u.k = t.k)) AS q FROM t",
        without: Loss::Cost,
    }),
    Step::Plan(Pass {
        name: TESTS_OF_JOINS,
        run: join_tests::lift,
        gives: "columns of the side that they are about, in place of subqueries in the ON of outer joins",
        reason: "DataFusion decorrelates subqueries of filters and select lists only",
        example: "SELECT t.k, u.x FROM t LEFT JOIN u ON u.k = t.k AND t.x > (SELECT min(p.x) FROM p WHERE p.id = t.k)",
        without: Loss::Failure,
    }),
    Step::Plan(Pass {
        name: "widths of whole numbers",
        run: widths::settle,
        gives: "quotients of sums of bigints as numerics, and the names of types of whole numbers",
        reason: "literals are bigints here and integers in PostgreSQL, and sums of bigints are bigints here",
        example: "SELECT sum(CAST(x AS bigint)) / 3 AS q FROM t",
        without: Loss::WrongAnswer,
    }),
    Step::Plan(Pass {
        name: "deviations of exact numbers",
        run: deviations::replace,
        gives: "counts, sums and sums of squares, and functions of them",
        reason: "DataFusion computes variances of floats, PostgreSQL those of exact numbers exactly",
        example: "SELECT stddev(x) AS s, var_pop(x) AS v FROM t",
        without: Loss::WrongAnswer,
    }),
    Step::Plan(Pass {
        name: "tests of subqueries",
        run: subqueries::settle,
        gives: "EXISTS, IN, ANY and ALL in the forms that DataFusion decorrelates rightly",
        reason: "decorrelate_predicate_subquery drops what lies between the condition and the test",
        example: "SELECT k FROM t WHERE EXISTS (SELECT count(*) FROM u WHERE u.k = t.k)",
        without: Loss::WrongAnswer,
    }),
    Step::Plan(Pass {
        name: "scalar subqueries by inequality",
        run: decorrelate::replace,
        gives: "a join with the answers for the distinct outer values",
        reason: "scalar_subquery_to_join leaves subqueries whose outer columns are not compared by equality",
        example: "SELECT k, (SELECT count(*) FROM u WHERE u.k < t.k) AS q FROM t",
        without: Loss::Cost,
    }),
    Step::Plan(Pass {
        name: "elements with an order of their own",
        run: list_elements::mark_all,
        gives: "elements of arrays of documents and labels marked as such",
        reason: "Unnest drops the marks of lists, so that documents are sorted as texts",
        example: "SELECT unnest(ARRAY[j, '9', '10']) AS e FROM codes ORDER BY e LIMIT 2",
        without: Loss::WrongAnswer,
    }),
    Step::Plan(Pass {
        name: LITERALS_IN_UNION,
        run: unions::match_unions,
        gives: "literals in quotes of the type of the other branches",
        reason: "DataFusion makes text of all branches",
        example: "SELECT x FROM t UNION ALL SELECT '7'",
        without: Loss::WrongAnswer,
    }),
    Step::Expressions(SETTLED),
    Step::Types,
    Step::Expressions(CASTS),
    Step::Clock,
    Step::Plan(Pass {
        name: "DISTINCT ON as a first row",
        run: distinct_on::replace,
        gives: "a filter on row_number()",
        reason: "replace_distinct_aggregate computes one first_value for each column",
        example: "SELECT DISTINCT ON (k) k, x FROM t ORDER BY k, x",
        without: Loss::Failure,
    }),
    Step::Plan(Pass {
        name: "intervals as keys",
        run: interval_keys::replace,
        gives: "groups, partitions and keys of joins by the lengths of intervals",
        reason: "DataFusion tells 1 day from 24 hours, PostgreSQL does not",
        example: "SELECT count(*) AS n FROM (VALUES (INTERVAL '1 day'), (INTERVAL '24 hours')) v (i) GROUP BY i",
        without: Loss::WrongAnswer,
    }),
    Step::Plan(Pass {
        name: "keys behind unnested lists",
        run: repeated_rows::forget_keys,
        gives: "values of which nothing is known, below lists that are unnested",
        reason: "what is unique before unnest is taken to be so behind it, and grouped by less",
        example: "SELECT n FROM (SELECT k, unnest(ARRAY[x, x + 1]) AS e, count(*) AS n FROM (SELECT k, max(x) AS x FROM t GROUP BY k) g GROUP BY 1, 2) s",
        without: Loss::WrongAnswer,
    }),
    Step::Rules,
    Step::Repeated,
    Step::Plan(Pass {
        name: "order of arrays in ANY and ALL",
        run: list_order::compare,
        gives: "calls that compare arrays, in place of operators",
        reason: "NULL within an array is the least to the kernels that compare lists",
        example: "SELECT k FROM t WHERE ARRAY[x] > ALL (SELECT ARRAY[x] FROM u WHERE x > 5)",
        without: Loss::WrongAnswer,
    }),
    Step::Plan(Pass {
        name: "marks of documents",
        run: document_marks::replace,
        gives: "calls around columns that are documents, in functions of documents",
        reason: "rows are computed without the marks of columns, and common_sub_expression_eliminate makes columns",
        example: "SELECT jsonb_build_array(d), to_jsonb(d) FROM (SELECT jsonb_build_object('k', k) AS d FROM t) q",
        without: Loss::WrongAnswer,
    }),
];

/// Resolves types, decorrelates and optimises.
///
/// # Errors
/// Of any step.
pub(crate) fn optimise(
    plan: LogicalPlan,
    config: &Arc<ConfigOptions>,
    clock: Clock,
    chosen: Chosen,
) -> Result<LogicalPlan> {
    let plan = if chosen.runs(UNORDERED.name) { (UNORDERED.run)(plan)? } else { plan };
    if !unnest::has_subqueries(&plan) {
        return steps(plan, config, clock, chosen);
    }
    let plan = match chosen.runs(BESIDE.name) {
        // (The general method may have a rule for what fails there.)
        true => (BESIDE.run)(plan.clone()).unwrap_or(plan),
        false => plan,
    };
    // (DataFusion pulls conditions out of LATERAL through windows and limits.)
    let is_lateral = unnest::is_lateral(&plan);
    let first = match is_lateral {
        true => None,
        false => Some(steps(plan.clone(), config, clock, chosen)),
    };
    match first {
        Some(Ok(plan)) if !unnest::is_nested(&plan) => return Ok(plan),
        _ => {}
    }
    // What the steps for common forms do not unnest, the general method may. (It hides literals
    // behind columns.)
    let lifted = subquery_arguments::lift(plan)
        .and_then(|plan| if chosen.runs(TESTS_OF_JOINS) { join_tests::lift(plan) } else { Ok(plan) })
        .and_then(|plan| if chosen.runs(LITERALS_IN_UNION) { unions::match_unions(plan) } else { Ok(plan) });
    let general = lifted.map_err(Into::into).and_then(|plan| {
        let first = unnest::unnest(plan.clone()).map_err(Into::into);
        let first: Result<LogicalPlan> = first.and_then(|plan| steps(plan, config, clock, chosen));
        first.or_else(|error| unnest_shared(plan, config, clock, chosen).map_err(|_| error))
    });
    match (general, first) {
        (Ok(plan), None) => Ok(plan),
        (Ok(plan), Some(_)) if !unnest::is_nested(&plan) => Ok(plan),
        (_, Some(first)) => first,
        (Err(error), None) => Err(error),
    }
}

/// Rows that stand in several places are planned once, by themselves. (So they are not optimised
/// with what stands around them, and a plan that can do without is better.)
fn unnest_shared(plan: LogicalPlan, config: &Arc<ConfigOptions>, clock: Clock, chosen: Chosen) -> Result<LogicalPlan> {
    let settle = |plan| steps(plan, config, clock, chosen).map_err(Into::into);
    steps(unnest::unnest_shared(plan, &settle)?, config, clock, chosen)
}

fn steps(plan: LogicalPlan, config: &Arc<ConfigOptions>, clock: Clock, chosen: Chosen) -> Result<LogicalPlan> {
    let mut plan = plan;
    for step in STEPS {
        plan = match step {
            Step::Plan(pass) if chosen.runs(pass.name) => (pass.run)(plan)?,
            Step::Plan(_) => plan,
            Step::Expressions(passes) => expr::settle(plan, passes, chosen)?,
            Step::Types => Analyzer::new().execute_and_check(plan, config, |_, _| {})?,
            Step::Clock => {
                clock.check(&plan)?;
                plan
            }
            Step::Rules => rules::optimise(plan, config, clock, chosen)?,
            Step::Repeated => repeated_rows::unmark(plan)?,
        };
    }
    Ok(plan)
}

/// The rewrites, in the order in which they run.
pub(crate) fn described() -> Vec<PassEntry> {
    let mut described: Vec<PassEntry> = options::described().collect();
    described.push(UNORDERED.described("a plan"));
    described.push(BESIDE.described("a plan"));
    for step in STEPS {
        match step {
            Step::Plan(pass) => described.push(pass.described("a plan")),
            Step::Expressions(passes) => described.extend(expr::described(passes)),
            Step::Types | Step::Clock | Step::Repeated => {}
            Step::Rules => described.extend(rules::described()),
        }
    }
    described
}
