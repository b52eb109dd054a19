//! Rewrites of the expressions of a logical plan, where types decide: two tables, one before
//! DataFusion coerces types and one after (`cast_table`).
//!
//! All rewrites of a table are tried at each expression, inner expressions first, in the order of
//! the table; then those of plan nodes. Columns keep their names.
//!
//! Law: an expression has the type and the values that PostgreSQL gives it, or planning fails.

mod blanks;
mod byte_patterns;
pub(crate) mod calls;
pub(crate) mod cast_table;
pub(crate) mod casts;
pub(crate) mod common_type;
pub(crate) mod dates;
mod document_casts;
pub(crate) mod filter_arguments;
mod greatest_arrays;
mod joined_texts;
mod kinds;
pub(crate) mod marked_literals;
pub(crate) mod matched;
pub(crate) mod moments;
pub(crate) mod numbers;
mod ordered_tests;
pub(crate) mod quoted_literals;
mod time_arguments;
mod window_defaults;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, Result as DfResult};
use datafusion_expr::Expr;
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_expr::utils::merge_schema;

use crate::functions::arrays::settle_subscripts;
use crate::functions::cast_to_text::write_arguments;
use crate::functions::coalesce::read_alternatives;
use crate::functions::numerics::compute_plain;
use crate::functions::regex::match_operators;
use crate::functions::settle_numbers::settle_arguments;
use crate::passes::pass::{Chosen, Loss, Pass, PassEntry};
use crate::passes::plan::joined_bytes::join_bytes;
use crate::passes::plan::label_calls::by_places;
use crate::passes::plan::unions::{match_branches, match_values};
use crate::time::functions::negate_interval;

/// A rewrite of expressions, or of the nodes that have them.
#[derive(Clone, Copy)]
pub(crate) enum Settle {
    /// Refuses an expression over rows of this schema.
    Check(fn(&Expr, &DFSchema) -> DfResult<()>),
    /// Rewrites an expression over rows of this schema.
    Expr(fn(Expr, &DFSchema) -> DfResult<Transformed<Expr>>),
    /// Rewrites a node whose expressions are settled.
    Node(fn(LogicalPlan) -> DfResult<Transformed<LogicalPlan>>),
}

/// Before DataFusion coerces types.
pub(crate) const SETTLED: &[Pass<Settle>] = &[
    Pass {
        name: "refuse constants out of range",
        run: Settle::Check(numbers::check_constant),
        gives: "sums, products and quotients of constants within their type",
        reason: "DataFusion computes constants modulo the width of their type",
        example: "SELECT 2147483647::integer + 1::integer AS n",
        without: Loss::Refusal,
    },
    Pass {
        name: "refuse what has no operator",
        run: Settle::Check(kinds::check),
        gives: "comparisons and casts within a kind of values",
        reason: "DataFusion takes dates and times for the numbers that they are kept as",
        example: "SELECT k FROM w WHERE d > k",
        without: Loss::Refusal,
    },
    Pass {
        name: "refuse values without a common type",
        run: Settle::Check(matched::check),
        gives: "values of one kind in CASE, coalesce, greatest, least and arrays",
        reason: "DataFusion takes dates for the numbers that they are kept as, and reads texts as numbers",
        example: "SELECT CASE WHEN k = 1 THEN d ELSE 1 END AS q FROM w",
        without: Loss::Refusal,
    },
    Pass {
        name: "refuse texts in place of times",
        run: Settle::Check(time_arguments::check),
        gives: "date_trunc and its like of times, and of literals in quotes",
        reason: "DataFusion reads all texts as times, row by row",
        example: "SELECT date_trunc('day', s) AS q FROM t",
        without: Loss::Refusal,
    },
    Pass {
        name: "subscripts of arrays of arrays",
        run: Settle::Expr(settle_subscripts),
        gives: "NULL in place of an array that was taken out of one",
        reason: "types of arrays have dimensions here",
        example: "SELECT (ARRAY[ARRAY[k]])[1] AS q FROM t",
        without: Loss::Cost,
    },
    Pass {
        name: "refuse string_agg of what is no text",
        run: Settle::Check(joined_texts::check),
        gives: "string_agg of texts and of bytes",
        reason: "DataFusion prints the values",
        example: "SELECT string_agg(k, ',') AS q FROM t",
        without: Loss::Refusal,
    },
    Pass {
        name: "refuse remainders of floats",
        run: Settle::Check(numbers::check_types),
        gives: "remainders of exact numbers, and conditions that are boolean",
        reason: "DataFusion has remainders of floats",
        example: "SELECT f % g AS q FROM w",
        without: Loss::Refusal,
    },
    Pass {
        name: "patterns of bytes",
        run: Settle::Expr(byte_patterns::match_bytes),
        gives: "calls that match bytes",
        reason: "DataFusion has LIKE of texts only, and reads bytes as texts in ILIKE",
        example: "SELECT '\\x6162'::bytea LIKE 'a%' AS q FROM t",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "literals without negative scale",
        run: Settle::Expr(|expr, _| Ok(numbers::without_negative_scale(expr))),
        gives: "1e2 as 100",
        reason: "DataFusion gives 1e2 a scale of -2, and divides by zero when it casts the literal",
        example: "SELECT x / 1e2 AS q FROM t",
        without: Loss::Failure,
    },
    Pass {
        name: "arithmetic of numerics without a scale",
        run: Settle::Expr(compute_plain),
        gives: "calls of our functions for what is computed with numerics without a scale",
        reason: "DataFusion has no arithmetic on the type that holds them",
        example: "SELECT CASE WHEN k > 0 THEN 2 ELSE n / 3 END * 2 AS q FROM w",
        without: Loss::Failure,
    },
    Pass {
        name: "spaces that fill up char(n)",
        run: Settle::Expr(blanks::fill_up),
        gives: "values with their spaces, where these are seen",
        reason: "columns of char(n) are kept without them",
        example: "SELECT octet_length(c) AS q FROM codes",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "literals beside uuid and char(n)",
        run: Settle::Expr(marked_literals::read_literals),
        gives: "literals in the form in which such columns are kept",
        reason: "both types are text to DataFusion",
        example: "SELECT k FROM codes WHERE c = 'x  '",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "documents, arrays and intervals that are tested",
        run: Settle::Expr(ordered_tests::settle),
        gives: "IN, BETWEEN and CASE by what orders the values",
        reason: "documents are texts to DataFusion, and literals beside arrays are no arrays",
        example: "SELECT k FROM codes WHERE j IN ('1.0', '2')",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "documents that are chosen",
        run: Settle::Expr(ordered_tests::mark_chosen),
        gives: "documents, and literals read as documents, in coalesce, CASE, greatest, least and arrays",
        reason: "neither keeps the mark of its values",
        example: "SELECT CASE WHEN j IS NULL THEN j ELSE '[1,2]' END AS q FROM codes",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "casts of documents and uuids",
        run: Settle::Expr(document_casts::settle),
        gives: "the number or the boolean that a document is",
        reason: "to DataFusion a document is a text, and 1.7 no text of an integer",
        example: "SELECT '1.7'::jsonb::integer AS q FROM t",
        without: Loss::Failure,
    },
    Pass {
        name: "defaults of lag and lead",
        run: Settle::Expr(window_defaults::match_default),
        gives: "a value and a default of one type",
        reason: "DataFusion leaves the default as it is written",
        example: "SELECT lag(n, 1, 0) OVER (ORDER BY n) AS q FROM w",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "common types",
        run: Settle::Expr(common_type::settle_types),
        gives: "values that are compared, computed with or chosen from in one type",
        reason: "DataFusion rounds a literal in quotes to the other side's scale, and makes decimals of floats beside decimals",
        example: "SELECT k FROM w WHERE n < '12.754'",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "round before a cast to integer",
        run: Settle::Expr(numbers::round_before_integer),
        gives: "a cast of a whole number",
        reason: "DataFusion cuts the fraction off",
        example: "SELECT n::integer AS i FROM w",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "functions of double precision",
        run: Settle::Expr(numbers::widen_single),
        gives: "arguments of double precision in place of real",
        reason: "DataFusion computes in the width of the argument",
        example: "SELECT sqrt(r) AS q FROM w",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "round floats to even",
        run: Settle::Expr(numbers::round_to_even),
        gives: "rint in place of round, of floats",
        reason: "DataFusion rounds halves of floats away from zero",
        example: "SELECT round(f) AS q FROM w",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "negation that overflows",
        run: Settle::Expr(numbers::checked_negation),
        gives: "0 - x in place of -x, of whole numbers",
        reason: "DataFusion negates modulo the width of the type",
        example: "SELECT -m AS q FROM w",
        without: Loss::Refusal,
    },
    Pass {
        name: "negation of intervals",
        run: Settle::Expr(negate_interval),
        gives: "all parts of an interval negated, with an error beyond the type",
        reason: "DataFusion negates modulo the width of each part",
        example: "SELECT -make_interval(months => m) AS q FROM w",
        without: Loss::Refusal,
    },
    Pass {
        name: "arithmetic of floats",
        run: Settle::Expr(numbers::checked_floats),
        gives: "quotients that fail for a divisor of zero, and results that fail beyond the type",
        reason: "DataFusion answers infinity, or zero",
        example: "SELECT 1.5::double precision / (f - f) AS q FROM w",
        without: Loss::Refusal,
    },
    Pass {
        name: "dates beside timestamps",
        run: Settle::Expr(dates::compare_dates),
        gives: "comparisons in microseconds",
        reason: "DataFusion compares in nanoseconds, in which there is room from 1677 to 2262 only",
        example: "SELECT d FROM w WHERE d < ts AND DATE '0900-01-01' < ts",
        without: Loss::Failure,
    },
    Pass {
        name: "parts of dates that are cut off",
        run: Settle::Expr(dates::cut_dates),
        gives: "moments and intervals for literals in quotes, and the names of units that all know",
        reason: "to DataFusion literals in quotes are texts",
        example: "SELECT date_bin('1 day', ts, '2024-01-01') AS q FROM w",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "sums of times of day",
        run: Settle::Expr(moments::sum_times),
        gives: "sums and means of intervals",
        reason: "DataFusion has no sums of times",
        example: "SELECT avg(ts::time) AS q FROM w",
        without: Loss::Failure,
    },
    Pass {
        name: "ranges over times of day and intervals",
        run: Settle::Expr(moments::range_over_times),
        gives: "frames over microseconds and lengths; plain numerics as keys that stay as they are",
        reason: "DataFusion has ranges of numbers and timestamps only",
        example: "SELECT count(*) OVER (ORDER BY ts::time RANGE INTERVAL '1 hour' PRECEDING) AS q FROM w",
        without: Loss::Failure,
    },
    Pass {
        name: "literals in coalesce",
        run: Settle::Expr(read_alternatives),
        gives: "literals of the type of the other arguments",
        reason: "DataFusion rounds the literal to the scale of the others",
        example: "SELECT coalesce(n, '2.254') AS q FROM w",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "arguments that are numerics without a scale",
        run: Settle::Expr(settle_arguments),
        gives: "arguments of the type that the function takes",
        reason: "DataFusion has no casts of the type that holds them",
        example: "SELECT sin(n::numeric) AS q FROM w",
        without: Loss::Failure,
    },
    Pass {
        name: "differences of timestamps",
        run: Settle::Expr(dates::timestamp_difference),
        gives: "an interval of days and hours",
        reason: "DataFusion counts hours only",
        example: "SELECT ts - TIMESTAMP '2020-01-01 00:00:00' AS q FROM w",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "a digit for the carry",
        run: Settle::Expr(numbers::digit_for_carry),
        gives: "ceil, floor and round of a decimal with one more digit",
        reason: "DataFusion keeps the precision, in which 9.9 rounds to nothing",
        example: "SELECT ceil(9.9::numeric(2,1)) AS q",
        without: Loss::Failure,
    },
    Pass {
        name: "places that are cut off",
        run: Settle::Expr(numbers::drop_places),
        gives: "ceil, floor and trunc of decimals without the places that they cut off",
        reason: "DataFusion keeps the scale, so that ceil(1.2) is 2.0",
        example: "SELECT trunc(1.999, 2) AS a, floor(n) AS b FROM w",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "round to places",
        run: Settle::Expr(numbers::settle_rounding),
        gives: "round(x, n) of decimals with the type that it was planned with",
        reason: "DataFusion changes the type once the places are constant",
        example: "SELECT round(n, 1 + 0) AS q FROM w",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "date_part as a float",
        run: Settle::Expr(numbers::part_with_fraction),
        gives: "parts of double precision, seconds with their fraction",
        reason: "DataFusion answers whole numbers",
        example: "SELECT date_part('second', ts) AS q FROM w",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "bytes read from text",
        run: Settle::Expr(numbers::read_bytea),
        gives: "the bytes that an escaped text stands for",
        reason: "DataFusion takes the bytes of the text itself",
        example: "SELECT '\\x4142'::bytea AS q",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "regular expressions",
        run: Settle::Expr(match_operators),
        gives: "calls of our regular expressions",
        reason: "DataFusion reads the patterns of another dialect",
        example: "SELECT k FROM t WHERE s ~ '\\ma'",
        without: Loss::Failure,
    },
    Pass {
        name: "calls of functions of text",
        run: Settle::Expr(calls::settle_calls),
        gives: "calls whose arguments are texts, and escapes of LIKE written as backslashes",
        reason: "DataFusion takes bytes for text",
        example: "SELECT reverse('\\x41'::bytea) AS q",
        without: Loss::Refusal,
    },
    Pass {
        name: "arguments that are shown",
        run: Settle::Expr(write_arguments),
        gives: "arguments of concat and its like as PostgreSQL shows them",
        reason: "DataFusion writes true and false in full",
        example: "SELECT concat(s, k > 1) AS q FROM t",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "guard arguments by FILTER",
        run: Settle::Expr(filter_arguments::guard_arguments),
        gives: "arguments of an aggregate computed for the rows that pass",
        reason: "DataFusion computes the argument of every row",
        example: "SELECT sum(10 / (x - 10)) FILTER (WHERE x <> 10) AS q FROM t",
        without: Loss::Failure,
    },
    Pass {
        name: "labels that aggregates choose",
        run: Settle::Node(by_places),
        gives: "mode, percentile_disc, and min and max over windows, of the places of labels",
        reason: "labels are texts to DataFusion, and in the order of texts",
        example: "SELECT max(__enum_in(s, 'e', 'b\u{1f}a')) OVER () AS q FROM t",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "bytes that are joined",
        run: Settle::Node(join_bytes),
        gives: "string_agg of hexadecimal digits, read as bytes above it",
        reason: "DataFusion joins the printed texts of bytes",
        example: "SELECT string_agg(s::bytea, '\\x2c'::bytea) AS q FROM t",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "numbers of several types in UNION",
        run: Settle::Node(match_branches),
        gives: "branches of one type, floats before decimals, timestamps of microseconds before dates",
        reason: "DataFusion makes decimals of floats beside decimals, and nanoseconds of dates beside timestamps",
        example: "SELECT 1e-20::double precision AS q UNION ALL SELECT n FROM w",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "numbers of several types in VALUES",
        run: Settle::Node(match_values),
        gives: "rows of floats, if one value is a float",
        reason: "DataFusion has cast the rows to a decimal of 15 places",
        example: "SELECT * FROM (VALUES (1e-20::double precision), (2.5)) AS v(q)",
        without: Loss::WrongAnswer,
    },
];

/// Rewrites all expressions of a plan by a table, also in subqueries, keeping column names.
pub(crate) fn settle(plan: LogicalPlan, passes: &'static [Pass<Settle>], chosen: Chosen) -> DfResult<LogicalPlan> {
    let runs: Vec<Settle> = passes.iter().filter(|pass| chosen.runs(pass.name)).map(|pass| pass.run).collect();
    let settled = plan.transform_up_with_subqueries(|node| {
        let schema = match &node {
            LogicalPlan::TableScan(_) | LogicalPlan::Extension(_) => return Ok(Transformed::no(node)),
            other => merge_schema(&other.inputs()),
        };
        let names = NamePreserver::new(&node);
        let settle_named = |expr: Expr| {
            let name = names.save(&expr);
            let settled = expr.transform_up(|e| settle_one(e, &schema, &runs))?;
            Ok(settled.update_data(|e| name.restore(e)))
        };
        let node = node.map_expressions(|expr| match expr {
            // (The columns are those of its keys. It has no name of its own.)
            Expr::GroupingSet(_) => expr.map_children(settle_named),
            expr => settle_named(expr),
        })?;
        let of_node = runs.iter().filter_map(|run| if let Settle::Node(run) = run { Some(run) } else { None });
        let mut node = node;
        let mut is_recomputed = false;
        for run in of_node {
            if !is_recomputed {
                node = node.map_data(|node| node.recompute_schema())?;
                is_recomputed = true;
            }
            node = node.transform_data(run)?;
        }
        Ok(node)
    })?;
    Ok(settled.data)
}

/// (No part of the walk: each level of an expression would take the room of all rewrites.)
#[inline(never)]
fn settle_one(expr: Expr, schema: &DFSchema, runs: &[Settle]) -> DfResult<Transformed<Expr>> {
    let mut settled = Transformed::no(expr);
    for run in runs {
        match run {
            Settle::Check(check) => check(&settled.data, schema)?,
            Settle::Expr(run) => settled = settled.transform_data(|expr| run(expr, schema))?,
            Settle::Node(_) => {}
        }
    }
    Ok(settled)
}

/// The rewrites of a table, in the order in which they run.
pub(crate) fn described(passes: &'static [Pass<Settle>]) -> impl Iterator<Item = PassEntry> {
    passes.iter().map(|pass| {
        pass.described(match pass.run {
            Settle::Check(_) | Settle::Expr(_) => "an expression of the plan",
            Settle::Node(_) => "a node of the plan",
        })
    })
}
