//! The rewrites of the syntax tree, in the order in which they run.

use datafusion_expr::sqlparser::ast::TableFactor;

use super::hooks::{Hooks, NONE};
use super::names::{name_derived, name_repeated, rename_reference, rename_table, rename_wildcards};
use super::{
    array_query, asof, calls, case, columns, compared_list, distinct_from, distinct_on, fetch, grouped_casts, grouping,
    inner_order, json_lists, lateral, limits, literal, membership, merged, named_windows, order_names,
    outer_aggregates, output_names, record_parts, records, recursion, refuse, reg_types, rows, series, session,
    set_operations, shadowed, similar, split_table, subquery, symmetric, system, type_kinds, values_types, vectors,
    whole_rows, window_table,
};
use crate::passes::pass::{Loss, Pass};

/// Walks over the tree, one after another. Within a walk the rewrites of one part run in this
/// order.
pub(super) const WALKS: &[&[Pass<Hooks>]] = &[RECURSION, SYSTEM, OPERANDS, TESTS, PARTS];

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
        name: "parts of rows",
        run: Hooks { select: Some(|select, _| record_parts::spell(select)), ..NONE },
        gives: "calls in FROM whose columns are named, and the values of rows",
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
        name: "records of documents",
        run: Hooks { factor: Some(|factor, _| records::rewrite(factor)), ..NONE },
        gives: "a query of the members that the alias names in place of jsonb_to_record and its like",
        reason: "DataFusion has no functions whose columns the alias declares",
        example: "SELECT r.a FROM jsonb_to_record('{\"a\": 1}') AS r(a int)",
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

/// All other rewrites.
const PARTS: &[Pass<Hooks>] = &[
    Pass {
        name: "name repeated items",
        run: Hooks { whole: Some(|query, names| name_repeated(query, names.name_all)), ..NONE },
        gives: "items of the top select list with different names; the planner shows the user's",
        reason: "DataFusion refuses items that are spelt alike",
        example: "SELECT k + 1, k + 1 FROM t",
        without: Loss::Failure,
    },
    Pass {
        name: "items apart from columns of the order",
        run: Hooks {
            whole: Some(output_names::hide_at_top),
            query: Some(output_names::hide_within),
            factor: Some(output_names::drop_order_in_from),
            ..NONE
        },
        gives: "hidden names for items that are called like columns in expressions of ORDER BY",
        reason: "DataFusion looks for a name among the items first, and takes t.k for ambiguous beside an item k",
        example: "SELECT -k AS k FROM t ORDER BY t.k",
        without: Loss::Failure,
    },
    Pass {
        name: "refuse what would be dropped",
        run: Hooks {
            query: Some(|query, _| refuse::query(query)),
            factor: Some(|factor, _| refuse::factor(factor)),
            select: Some(|select, _| refuse::select(select)),
            expr: Some(|expr, _| refuse::distinct_over(expr)),
            ..NONE
        },
        gives: "no clause that DataFusion ignores",
        reason: "DataFusion plans the query as if the clause were not there",
        example: "SELECT k FROM t TABLESAMPLE BERNOULLI (10)",
        without: Loss::Refusal,
    },
    Pass {
        name: "order by names of items",
        run: Hooks {
            query: Some(|query, _| order_names::as_positions(query)),
            ordered: Some(|select, order_by, _| {
                order_names::write_out(select, order_by);
                Ok(())
            }),
            ..NONE
        },
        gives: "items without a name of their own in the place of the names that PostgreSQL gives them",
        reason: "DataFusion names such an item by its text",
        example: "SELECT max(x) FROM t GROUP BY k ORDER BY max",
        without: Loss::Failure,
    },
    Pass {
        name: "ARRAY of a query",
        run: Hooks { expr: Some(|expr, _| array_query::rewrite(expr)), ..NONE },
        gives: "array_agg in a scalar subquery, or an empty list",
        reason: "DataFusion knows no function of a query",
        example: "SELECT ARRAY(SELECT k FROM t ORDER BY k) AS a",
        without: Loss::Failure,
    },
    Pass {
        name: "aggregates of documents",
        run: Hooks { expr: Some(|expr, _| json_lists::rewrite(expr)), ..NONE },
        gives: "array_agg in a function that makes a document of a list",
        reason: "DataFusion has no aggregates of documents",
        example: "SELECT json_agg(k ORDER BY k) AS a FROM t",
        without: Loss::Failure,
    },
    Pass {
        name: "set operations as calls",
        run: Hooks { query: Some(|query, _| set_operations::call(&mut query.body)), ..NONE },
        gives: "calls in FROM that are planned as set operations with multiplicities",
        reason: "DataFusion plans EXCEPT ALL and INTERSECT ALL as semijoins, which keep all copies of a row or none",
        example: "SELECT k FROM t EXCEPT ALL SELECT k FROM u",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "complete lists of columns",
        run: Hooks {
            with: Some(|query, names| {
                if let Some(catalog) = names.catalog {
                    columns::complete_with(query, names.reachable(), catalog);
                }
            }),
            factor: Some(|factor, names| {
                if let Some(catalog) = names.catalog {
                    columns::complete_alias(factor, names.reachable(), catalog);
                }
                Ok(())
            }),
            ..NONE
        },
        gives: "aliases that name all columns",
        reason: "DataFusion refuses an alias that names the first columns only",
        example: "SELECT a, x FROM t AS d(a)",
        without: Loss::Failure,
    },
    Pass {
        name: "tell columns of derived tables apart",
        run: Hooks {
            query: Some(|query, names| {
                let Some(catalog) = names.catalog else { return Ok(()) };
                let mut with = query.with.iter_mut().flat_map(|with| &mut with.cte_tables);
                with.try_for_each(|cte| merged::tell_apart(&mut cte.query, names.reachable_outside(), catalog))
            }),
            factor: Some(|factor, names| match (factor, names.catalog) {
                (TableFactor::Derived { subquery, .. }, Some(catalog)) => {
                    merged::tell_apart(subquery, names.reachable(), catalog)
                }
                _ => Ok(()),
            }),
            ..NONE
        },
        gives: "columns of a query in FROM that have different names",
        reason: "DataFusion refuses two columns of one name, which only a wildcard lists",
        example: "SELECT * FROM (SELECT k, x AS k FROM u) AS d",
        without: Loss::Failure,
    },
    Pass {
        name: "name items of derived tables",
        run: Hooks {
            query: Some(|query, _| {
                let with = query.with.iter_mut().flat_map(|with| &mut with.cte_tables);
                with.for_each(|cte| name_derived(&mut cte.query, Some(&cte.alias)));
                Ok(())
            }),
            factor: Some(|factor, _| {
                if let TableFactor::Derived { subquery, alias, .. } = factor {
                    name_derived(subquery, alias.as_ref());
                }
                Ok(())
            }),
            ..NONE
        },
        gives: "calls named after their functions, and items with different names below a list of columns",
        reason: "DataFusion names a call by its text",
        example: "SELECT upper FROM (SELECT upper(s) FROM t) AS d",
        without: Loss::Failure,
    },
    Pass {
        name: "unnest lists beside their table",
        run: Hooks {
            ordered: Some(|select, order_by, names| {
                let Some(catalog) = names.catalog else { return Ok(()) };
                lateral::write_out(select, order_by, names.reachable(), catalog)
            }),
            ..NONE
        },
        gives: "a derived table of the rows with their elements",
        reason: "DataFusion unnests in a select list only",
        example: "SELECT w.k, e.x FROM w, unnest(w.a) AS e(x)",
        without: Loss::Failure,
    },
    Pass {
        name: "write out merged columns",
        run: Hooks {
            ordered: Some(|select, order_by, names| {
                let Some(catalog) = names.catalog else { return Ok(()) };
                merged::write_out(select, order_by, names.reachable(), catalog)
            }),
            ..NONE
        },
        gives: "ON in place of USING and NATURAL in full and right joins",
        reason: "DataFusion shows the left side's column, which is NULL for rows of the right side alone",
        example: "SELECT k FROM t FULL JOIN u USING (k)",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "keys of DISTINCT ON",
        run: Hooks {
            ordered: Some(|select, _, names| {
                let Some(catalog) = names.catalog else { return Ok(()) };
                distinct_on::write_out(select, names.reachable(), catalog)
            }),
            ..NONE
        },
        gives: "items of the select list in place of their positions and names",
        reason: "DataFusion takes a position for a constant, of which there is one group",
        example: "SELECT DISTINCT ON (1) k FROM t ORDER BY 1",
        without: Loss::Failure,
    },
    Pass {
        name: "as-of joins with their whole condition",
        run: Hooks {
            factor: Some(|factor, names| match factor {
                TableFactor::NestedJoin { table_with_joins, .. } => asof::settle(table_with_joins, names.catalog),
                _ => Ok(()),
            }),
            select: Some(|select, names| select.from.iter_mut().try_for_each(|from| asof::settle(from, names.catalog))),
            ..NONE
        },
        gives: "as-of joins in parentheses, which are planned as such",
        reason: "DataFusion has no as-of joins",
        example: "SELECT t.k, u.x FROM t ASOF LEFT JOIN u ON t.k = u.k AND t.x >= u.x",
        without: Loss::Failure,
    },
    Pass {
        name: "series as derived tables",
        run: Hooks {
            factor: Some(|factor, _| series::in_from(factor)),
            select: Some(|select, _| series::in_select(select)),
            ..NONE
        },
        gives: "unnest in a select list",
        reason: "DataFusion plans a call in FROM as a source of rows, which only its own run time has",
        example: "SELECT n FROM generate_series(1, 3) AS g(n)",
        without: Loss::Failure,
    },
    Pass {
        name: "rename tables named like columns",
        run: Hooks {
            factor: Some(|factor, names| {
                rename_table(factor, &names.hidden);
                Ok(())
            }),
            select: Some(|select, names| {
                rename_wildcards(select, &names.hidden);
                Ok(())
            }),
            after_expr: Some(|expr, names| {
                rename_reference(expr, &names.hidden);
                Ok(())
            }),
            ..NONE
        },
        gives: "tables whose names are no columns' names",
        reason: "DataFusion reads dept.id as the field id of the column dept, where there is one",
        example: "SELECT id FROM dept WHERE EXISTS (SELECT 1 FROM emp WHERE emp.dept = dept.id)",
        without: Loss::Failure,
    },
    Pass {
        name: "SESSION as a query",
        run: Hooks { factor: Some(|factor, _| session::rewrite(factor)), ..NONE },
        gives: "as-of joins of the rows with the starts and ends of sessions",
        reason: "DataFusion has no session windows",
        example: "SELECT k, window_start, window_end FROM SESSION(t, DESCRIPTOR(x), 5)",
        without: Loss::Failure,
    },
    Pass {
        name: "name windows after their tables",
        run: Hooks { select: Some(|select, _| window_table::name_after_tables(select)), ..NONE },
        gives: "an alias for a call without one, if nothing else in FROM has the name",
        reason: "the call becomes a derived table, to whose columns a table's name would not lead",
        example: "SELECT t.k, window_start FROM TUMBLE(t, DESCRIPTOR(x), 5)",
        without: Loss::Failure,
    },
    Pass {
        name: "TUMBLE, HOP and CUMULATE as queries",
        run: Hooks { factor: Some(|factor, _| window_table::rewrite(factor)), ..NONE },
        gives: "a query with columns for the bounds of windows",
        reason: "DataFusion has no tables of windows",
        example: "SELECT k, window_start FROM TUMBLE(t, DESCRIPTOR(x), 5)",
        without: Loss::Failure,
    },
    Pass {
        name: "SPLIT as a query",
        run: Hooks { factor: Some(split_table::rewrite), ..NONE },
        gives: "a query with a column for the branch of a row, which comes once in each",
        reason: "DataFusion has no tables of branches",
        example: "SELECT k, branch FROM SPLIT(t, x % 2, 2, k = 1)",
        without: Loss::Failure,
    },
    Pass {
        name: "count members in conditions",
        run: Hooks {
            select: Some(|select, names| match names.catalog {
                Some(catalog) => membership::count_in_conditions(select, catalog),
                None => Ok(()),
            }),
            ..NONE
        },
        gives: "IN (query) in three values, where NULL is not false",
        reason: "DataFusion plans a mark of two values",
        example: "SELECT k FROM t WHERE (k NOT IN (SELECT x FROM u)) IS NULL",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "count members in select lists",
        run: Hooks { select: Some(|select, _| subquery::count_in_projection(select)), ..NONE },
        gives: "counts in place of EXISTS, IN, ANY and ALL",
        reason: "DataFusion plans these in filters only",
        example: "SELECT k, k IN (SELECT x FROM u) AS found FROM t",
        without: Loss::Cost,
    },
    Pass {
        name: "one row of scalar subqueries",
        run: Hooks {
            expr: Some(|expr, names| match names.is_scalar(expr) {
                true => subquery::exactly_one_row(expr),
                false => Ok(()),
            }),
            ..NONE
        },
        gives: "scalar subqueries that are aggregates: one row, or an error where there are several",
        reason: "DataFusion joins with all rows of the subquery",
        example: "SELECT (SELECT x FROM t WHERE t.k = u.k AND t.s IS NULL) AS x FROM u",
        without: Loss::Cost,
    },
    Pass {
        name: "casts beside what they cast in GROUP BY",
        run: Hooks { select: Some(|select, _| grouped_casts::spell(select)), ..NONE },
        gives: "groups whose names differ",
        reason: "DataFusion calls a cast like its value, and wants names of groups to be distinct",
        example: "SELECT x, x::text, count(*) FROM t GROUP BY x, x::text",
        without: Loss::Failure,
    },
    Pass {
        name: "between symmetric",
        run: Hooks {
            expr: Some(|expr, _| {
                symmetric::spell(expr);
                Ok(())
            }),
            ..NONE
        },
        gives: "two comparisons where the ends of BETWEEN may change places",
        reason: "the parser does not read SYMMETRIC, and the mark in its place is no operator",
        example: "SELECT k FROM t WHERE k BETWEEN SYMMETRIC 2 AND 1",
        without: Loss::Failure,
    },
    Pass {
        name: "spell out comparisons of rows",
        run: Hooks {
            select: Some(|select, _| rows::spell_conditions(select)),
            expr: Some(|expr, _| rows::spell(expr)),
            ..NONE
        },
        gives: "comparisons of columns",
        reason: "DataFusion compares structs, in which NULL is a value",
        example: "SELECT k FROM t WHERE (k, x) < (2, 20)",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "calls of PostgreSQL",
        run: Hooks {
            after_expr: Some(|expr, names| {
                if !calls::is_of_a_user(expr, names)
                    && let Some(replacement) = calls::rewrite(expr)?
                {
                    *expr = replacement;
                }
                Ok(())
            }),
            ..NONE
        },
        gives: "operators and functions that DataFusion has",
        reason: "DataFusion lacks these, or reads them otherwise",
        example: "SELECT div(x, 7) AS q FROM t",
        without: Loss::Failure,
    },
    Pass {
        name: "literals of PostgreSQL",
        run: Hooks { after_expr: Some(|expr, _| literal::rewrite(expr)), ..NONE },
        gives: "literals, lengths and patterns as DataFusion writes them",
        reason: "DataFusion does not read them, or cuts nothing at a length",
        example: "SELECT s::varchar(1) || '!' AS c, 'abc'::varchar(2) AS d FROM t",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "unnest all dimensions",
        run: Hooks { after_expr: Some(|expr, _| series::all_dimensions(expr)), ..NONE },
        gives: "unnest of the elements of all dimensions in one list",
        reason: "DataFusion unnests the outermost lists only",
        example: "SELECT unnest(ARRAY[ARRAY[1, 2], ARRAY[3, 4]]) AS e FROM u",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "compare with the elements of a list",
        run: Hooks { after_expr: Some(|expr, _| compared_list::rewrite(expr)), ..NONE },
        gives: "one comparison for each element",
        reason: "DataFusion wants elements of the type of the value",
        example: "SELECT k FROM t WHERE k = ANY ('{1,3}')",
        without: Loss::Failure,
    },
    Pass {
        name: "say the type of a CASE",
        run: Hooks {
            after_expr: Some(|expr, _| {
                case::rewrite(expr);
                Ok(())
            }),
            ..NONE
        },
        gives: "a first branch with a type, never taken",
        reason: "DataFusion's planner takes the type of the first result for that of all",
        example: "SELECT sum(CASE WHEN k = 1 THEN '5' ELSE x END) AS n FROM t",
        without: Loss::Failure,
    },
    Pass {
        name: "SIMILAR TO as a regular expression",
        run: Hooks { after_expr: Some(|expr, _| similar::rewrite(expr)), ..NONE },
        gives: "x ~ '^(?:..)$'",
        reason: "DataFusion reads the pattern as a regular expression that need not match the whole text",
        example: "SELECT k FROM t WHERE s SIMILAR TO '(a|c)%'",
        without: Loss::WrongAnswer,
    },
];
