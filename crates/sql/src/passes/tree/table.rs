//! The rewrites of the syntax tree, in the order in which they run.

use super::hooks::{Hooks, NONE};
use super::parts::PARTS;
use super::{
    array_calls, conditions, distinct_from, fetch, grouping, inner_order, lifted_aggregates, limits, named_windows,
    null_treatments, outer_aggregates, outer_groups, positions, record_parts, records, recursion, refuse, reg_types,
    shadowed, star, subquery, system, type_kinds, values_queries, values_types, vectors, whole_rows,
};
use crate::passes::pass::{Loss, Pass};
use crate::passes::plan::repeated_rows;

/// Walks over the tree, one after another. Within a walk the rewrites of one part run in this
/// order.
pub(super) const WALKS: &[&[Pass<Hooks>]] = &[RECURSION, SYSTEM, OPERANDS, TESTS, PARTS, OPERATORS];

/// Named queries that read themselves. All later rewrites look at each term of such a query alone.
const RECURSION: &[Pass<Hooks>] = &[
    Pass {
        name: "names that hide named queries",
        run: Hooks { whole: Some(|query, _| shadowed::rename(query)), ..NONE },
        gives: "other names for queries of an inner WITH that are named like one of an outer WITH",
        reason: "DataFusion refuses a name that an outer WITH has",
        example: "WITH a AS (SELECT k FROM t) SELECT k FROM (WITH a AS (SELECT x AS k FROM t) SELECT k FROM a) AS q",
        without: Loss::Failure,
    },
    Pass {
        name: "positions in parentheses",
        run: Hooks { query: Some(|query, _| positions::take_out(query)), ..NONE },
        gives: "positions without parentheses in ORDER BY and GROUP BY",
        reason: "DataFusion takes a number in parentheses for a constant",
        example: "SELECT k FROM t ORDER BY (1) DESC LIMIT 1",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "recursive queries as calls",
        run: Hooks { query: Some(|query, _| recursion::settle(query)), ..NONE },
        gives: "calls in FROM that are planned as loops, and named queries that read earlier ones only",
        reason: "DataFusion's loop has one variable, whose rows it keeps in a table of its run time",
        example: "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r",
        without: Loss::Failure,
    },
];

/// Schemas. All later rewrites know one name of each relation, function and type.
const SYSTEM: &[Pass<Hooks>] = &[
    Pass {
        name: "names of schemas",
        run: Hooks {
            ordered: Some(|select, order_by, names| {
                if let Some(catalog) = names.catalog {
                    system::empty(select, order_by, catalog);
                }
                type_kinds::drop_branches(select)
            }),
            factor: Some(|factor, names| {
                system::read_sequence(factor, names)?;
                system::rename_table(factor, names);
                Ok(())
            }),
            select: Some(|select, names| {
                system::rename_wildcards(select);
                reg_types::show_names(select, names);
                Ok(())
            }),
            expr: Some(|expr, names| {
                if let Some(catalog) = names.catalog {
                    system::empty_array(expr, catalog);
                    system::user_types(expr, catalog)?;
                }
                reg_types::rewrite(expr);
                system::rename_parts(expr, names);
                Ok(())
            }),
            ..NONE
        },
        gives: "the catalog's one name of each table; names without pg_catalog; lookups in place of casts to regclass",
        reason: "DataFusion looks functions up by their whole name, and knows neither the types nor OPERATOR()",
        example: "SELECT pg_catalog.upper(s) AS c FROM t WHERE s OPERATOR(pg_catalog.~) 'a'",
        without: Loss::Failure,
    },
    Pass {
        name: "records of documents",
        run: Hooks { factor: Some(records::rewrite), ..NONE },
        gives: "a query of the members that the alias or a table names in place of jsonb_to_record and its like",
        reason: "DataFusion has no functions whose columns the alias declares",
        example: "SELECT r.a FROM jsonb_to_record('{\"a\": 1}') AS r(a int)",
        without: Loss::Failure,
    },
    Pass {
        name: "parts of rows",
        run: Hooks { select: Some(record_parts::spell), ..NONE },
        gives: "lists to unnest in place of columns of calls, and the values of rows",
        reason: "DataFusion has no functions of several columns in select lists, and no fields f1, f2 ..",
        example: "SELECT k, (jsonb_each('{\"a\": 1}')).key, (row(k, x)).f2 FROM t",
        without: Loss::Failure,
    },
    Pass {
        name: "take vectors of the catalog apart",
        run: Hooks {
            select: Some(|select, _| {
                vectors::name_fields(select);
                Ok(())
            }),
            expr: Some(|expr, _| vectors::rewrite(expr)),
            ..NONE
        },
        gives: "unnest in place of _pg_expandarray; places of vectors from 1; get_field",
        reason: "DataFusion has neither the function, nor lists that count from 0, nor fields behind a point",
        example: "SELECT (information_schema._pg_expandarray(a)).n AS n FROM w",
        without: Loss::Failure,
    },
];

/// Trees that the parser built otherwise than PostgreSQL. All later rewrites rely on their shape.
const OPERANDS: &[Pass<Hooks>] = &[
    Pass {
        name: "literals as conditions",
        run: Hooks {
            select: Some(|select, _| conditions::read_conditions(select)),
            expr: Some(|expr, _| conditions::read_operands(expr)),
            ..NONE
        },
        gives: "casts to boolean of literals in quotes that are conditions",
        reason: "DataFusion takes such a literal for a text",
        example: "SELECT k FROM t WHERE k > 1 AND 'true'",
        without: Loss::Failure,
    },
    Pass {
        name: "treatment of NULLs by window functions",
        run: Hooks { expr: Some(|expr, _| null_treatments::settle(expr)), ..NONE },
        gives: "IGNORE NULLS behind the call, and no RESPECT NULLS",
        reason: "DataFusion reads the words in one place, and ours plans the calls without RESPECT NULLS",
        example: "SELECT k, lag(x RESPECT NULLS) OVER (ORDER BY k) AS b FROM t",
        without: Loss::Failure,
    },
    Pass {
        name: "columns of * without some",
        run: Hooks {
            select: Some(|select, names| match names.catalog {
                Some(catalog) => star::write_out(select, names.reachable(), catalog),
                None => Ok(()),
            }),
            ..NONE
        },
        gives: "columns in place of * EXCLUDE, * EXCEPT and * REPLACE",
        reason: "later rewrites take * for all columns",
        example: "SELECT * EXCLUDE (k) FROM t JOIN u USING (x)",
        without: Loss::Failure,
    },
    Pass {
        name: "ORDER BY ALL as positions",
        run: Hooks { query: Some(star::order_by_all), ..NONE },
        gives: "the positions of all items in the place of ALL",
        reason: "DataFusion orders by columns alone, and not at all above UNION",
        example: "SELECT k, x + 1 AS y FROM t ORDER BY ALL",
        without: Loss::Failure,
    },
    Pass {
        name: "sets of groups in each other",
        run: Hooks { select: Some(|select, _| grouping::spell(select)), ..NONE },
        gives: "GROUPING SETS of lists, each set once after DISTINCT; nothing in the place of ()",
        reason: "DataFusion reads ROLLUP and CUBE within GROUPING SETS as calls, and no empty tuple",
        example: "SELECT k, count(*) AS n FROM t GROUP BY GROUPING SETS (k, ROLLUP (k))",
        without: Loss::Failure,
    },
    Pass {
        name: "FETCH FIRST as LIMIT, or as a rank",
        run: Hooks { query: Some(|query, _| fetch::to_limit(query)), ..NONE },
        gives: "LIMIT n; for WITH TIES a condition on rank()",
        reason: "DataFusion ignores FETCH FIRST",
        example: "SELECT k FROM t ORDER BY k FETCH FIRST 1 ROW ONLY",
        without: Loss::Failure,
    },
    Pass {
        name: "limits of rows",
        run: Hooks { query: Some(|query, _| limits::settle(query)), ..NONE },
        gives: "a condition on row_number() for limits that are read from tables",
        reason: "DataFusion takes constants for limits",
        example: "SELECT k FROM t ORDER BY k LIMIT (SELECT count(*) - 2 FROM u)",
        without: Loss::Failure,
    },
    Pass {
        name: "whole rows",
        run: Hooks {
            ordered: Some(|select, order_by, names| match names.catalog {
                Some(catalog) => whole_rows::write_out(select, order_by, names.reachable(), catalog),
                None => Ok(()),
            }),
            ..NONE
        },
        gives: "rows with the names of columns in place of names of tables",
        reason: "DataFusion takes the name of a table for that of a column",
        example: "SELECT count(t) AS n FROM t",
        without: Loss::Failure,
    },
    Pass {
        name: "orders of queries in aggregates over them",
        run: Hooks { ordered: Some(|select, _, _| inner_order::carry(select)), ..NONE },
        gives: "lists in the order of the query in FROM that they are made of",
        reason: "rows have no order, and DataFusion drops that of a query in FROM",
        example: "SELECT array_agg(k) AS l FROM (SELECT k FROM t ORDER BY x DESC) q",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "constants in the order of aggregates",
        run: Hooks { expr: Some(|expr, _| inner_order::drop_constants(expr)), ..NONE },
        gives: "calls without the constants that rows were to be in the order of",
        reason: "DataFusion takes a number there for the place of a column",
        example: "SELECT array_agg(k ORDER BY 0) AS l FROM t",
        without: Loss::Failure,
    },
    Pass {
        name: "named windows written out",
        run: Hooks { ordered: Some(|select, order_by, _| named_windows::write_out(select, order_by)), ..NONE },
        gives: "calls with their whole window in place of WINDOW and names of windows",
        reason: "DataFusion reads no more of OVER (w ..) than what stands behind the name",
        example: "SELECT k, sum(x) OVER (w ORDER BY x) AS s FROM t WINDOW w AS (PARTITION BY k)",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "IN of one column",
        run: Hooks { expr: Some(|expr, _| refuse::in_of_columns(expr)), ..NONE },
        gives: "queries behind IN with as many columns as there are values before it",
        reason: "what IN is rewritten to counts the rows, and looks at the first column",
        example: "SELECT k IN (SELECT k, x FROM t) AS is_in FROM t",
        without: Loss::Refusal,
    },
    END_OPERANDS,
    LITERAL_OPERANDS,
];

const LITERAL_OPERANDS: Pass<Hooks> = Pass {
    name: "IS DISTINCT FROM a literal in quotes",
    run: Hooks { expr: Some(|expr, _| distinct_from::compare_literal(expr)), ..NONE },
    gives: "(x = 'text') IS NOT TRUE, whose literal is read as a value of the type of x",
    reason: "DataFusion finds no common type of a boolean, or an interval, and a text",
    example: "SELECT (k > 0) IS DISTINCT FROM 'true' AS q FROM w",
    without: Loss::Failure,
};

const END_OPERANDS: Pass<Hooks> = Pass {
    name: "end operands of IS DISTINCT FROM",
    run: Hooks { expr: Some(|expr, _| distinct_from::end_operand(expr)), ..NONE },
    gives: "IS DISTINCT FROM whose operand ends before AND and OR",
    reason: "the parser takes all that follows for the operand",
    example: "SELECT k FROM t WHERE x IS DISTINCT FROM 10 AND k < 3",
    without: Loss::Failure,
};

/// Tests of subqueries. They run before the walk that makes scalar subqueries of one row.
const TESTS: &[Pass<Hooks>] = &[
    Pass {
        name: "keys that are columns of a query around",
        run: Hooks {
            factor: Some(|factor, _| outer_groups::settle_lateral(factor)),
            expr: Some(|expr, _| outer_groups::settle(expr)),
            ..NONE
        },
        gives: "a constant as the key of a subquery whose key is an outer column",
        reason: "DataFusion takes the outer column for one of the subquery's by its place",
        example: "SELECT k, (SELECT sum(u.x) FROM u WHERE u.k = t.k GROUP BY t.k) AS q FROM t",
        without: Loss::WrongAnswer,
    },
    LIFTED_AGGREGATES,
    Pass {
        name: "aggregates of outer columns in subqueries",
        run: Hooks { expr: Some(|expr, _| outer_aggregates::lift(expr)), ..NONE },
        gives: "what a subquery without FROM selects, where its aggregates are those of the query around it",
        reason: "DataFusion takes every aggregate for one of the query in which it stands",
        example: "SELECT (SELECT sum(t.k)) AS n FROM t",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "compare with the one row of an aggregate",
        run: Hooks { expr: Some(|expr, _| subquery::compare_with_one_row(expr)), ..NONE },
        gives: "x op (query) in place of IN, ANY and ALL of an aggregate without groups",
        reason: "DataFusion pulls the condition out of the aggregate, which then has no row where there is none",
        example: "SELECT k FROM t WHERE 0 IN (SELECT count(*) FROM u WHERE u.k = t.k)",
        without: Loss::Cost,
    },
    Pass {
        name: "ANY as IN",
        run: Hooks { expr: Some(|expr, _| subquery::any_to_in(expr)), ..NONE },
        gives: "IN for = ANY, NOT IN for <> ALL; a column of its own name for the others",
        reason: "DataFusion plans three joins for ANY, where IN is one semijoin",
        example: "SELECT k FROM t WHERE x = ANY (SELECT x FROM u)",
        without: Loss::Cost,
    },
    Pass {
        name: "subqueries in VALUES",
        run: Hooks { query: Some(|query, _| values_queries::select_rows(query)), ..NONE },
        gives: "a query for each row, put together by UNION ALL",
        reason: "DataFusion plans no subqueries in lists of rows",
        example: "SELECT c FROM (VALUES ((SELECT max(x) FROM u)), (3)) v (c)",
        without: Loss::Failure,
    },
    Pass {
        name: "literals beside columns in VALUES",
        run: Hooks { query: Some(|query, _| values_queries::select_untold(query)), ..NONE },
        gives: "a query for each row, put together by UNION ALL, where a literal is read as what it stands beside",
        reason: "DataFusion takes the literal for a text, and refuses a column of two types",
        example: "SELECT v.c FROM w, LATERAL (VALUES (w.d), ('2020-01-02')) v (c)",
        without: Loss::Failure,
    },
    Pass {
        name: "types of literals in VALUES",
        run: Hooks { query: Some(|query, _| values_types::cast_literals(query)), ..NONE },
        gives: "casts of literals in quotes to the type that another row says",
        reason: "DataFusion takes the literal for a text, and refuses a column of two types",
        example: "SELECT d FROM (VALUES (date '2020-01-01'), ('2020-01-02')) v (d)",
        without: Loss::Failure,
    },
    Pass {
        name: "select from VALUES",
        run: Hooks { expr: Some(|expr, _| subquery::select_values(expr)), ..NONE },
        gives: "x IN (SELECT c FROM (VALUES ..))",
        reason: "DataFusion plans IN of a SELECT only",
        example: "SELECT k FROM t WHERE k NOT IN (VALUES (1), (3))",
        without: Loss::Cost,
    },
    Pass {
        name: "count beyond OFFSET",
        run: Hooks { expr: Some(|expr, _| subquery::count_beyond_offset(expr)), ..NONE },
        gives: "a comparison of a count in place of EXISTS (.. OFFSET n)",
        reason: "DataFusion drops the offset of a correlated EXISTS",
        example: "SELECT k FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.k = u.k OFFSET 1)",
        without: Loss::Cost,
    },
];

const LIFTED_AGGREGATES: Pass<Hooks> = Pass {
    name: "aggregates of the query around a subquery",
    run: Hooks {
        ordered: Some(|select, order_by, names| match names.catalog {
            Some(catalog) => lifted_aggregates::lift(select, order_by, names.reachable(), catalog),
            None => Ok(()),
        }),
        ..NONE
    },
    gives: "columns of a derived table of the groups, in place of such aggregates and the query's own",
    reason: "DataFusion takes every aggregate for one of the query in which it stands",
    example: "SELECT k FROM t GROUP BY k HAVING EXISTS (SELECT 1 FROM u WHERE u.x > sum(t.x))",
    without: Loss::Failure,
};

/// Last, since the operators have no spelling that the parser reads, and others look for arrays.
const OPERATORS: &[Pass<Hooks>] = &[
    Pass {
        name: "named queries that unnest lists",
        run: Hooks { query: Some(|query, _| repeated_rows::derive_named(query)), ..NONE },
        gives: "a derived table in the named query, whose columns lose what is known of keys",
        reason: "DataFusion takes a key for unique behind Unnest, and leaves out DISTINCT",
        example: "WITH q AS (SELECT id, unnest(a) AS e FROM lists) SELECT id, count(*) AS n FROM q GROUP BY id",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "arrays with columns as calls",
        run: Hooks { after_expr: Some(|expr, _| array_calls::as_call(expr)), ..NONE },
        gives: "make_array(..)",
        reason: "DataFusion knows no columns of the queries around in an array",
        example: "SELECT y.z FROM t, LATERAL (SELECT ARRAY[t.k, u.k] AS z FROM u) AS y",
        without: Loss::Failure,
    },
    Pass {
        name: "IS DISTINCT FROM as an operator",
        run: Hooks { after_expr: Some(|expr, _| distinct_from::as_operator(expr)), ..NONE },
        gives: "an operator that our planner of operators gives its types",
        reason: "DataFusion finds no common type of a numeric with a scale and one without",
        example: "SELECT n IS DISTINCT FROM n::numeric AS q FROM w",
        without: Loss::Failure,
    },
];
