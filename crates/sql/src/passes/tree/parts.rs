//! The rewrites of the syntax tree that run last: those of its parts.

use datafusion_expr::sqlparser::ast::TableFactor;

use super::hooks::{Hooks, NONE};
use super::names::{name_derived, name_repeated, rename_reference, rename_table, rename_wildcards};
use super::{
    array_query, asof, calls, case, columns, compared_list, counts, distinct_on, frame_bounds, grouped_casts,
    json_lists, lateral, literal, membership, merged, order_names, output_names, refuse, repeated_columns, rows,
    series, session, set_operations, similar, split_table, subquery, symmetric, unnested_names, window_table,
};
use crate::passes::pass::{Loss, Pass};

/// All other rewrites.
pub(super) const PARTS: &[Pass<Hooks>] = &[
    Pass {
        name: "refuse names of several columns of a derived table",
        run: Hooks {
            ordered: Some(|select, order_by, names| match names.catalog {
                Some(catalog) => repeated_columns::refuse(select, order_by.as_deref(), names.reachable(), catalog),
                None => Ok(()),
            }),
            ..NONE
        },
        gives: "names of one column each",
        reason: "the first of them keeps the name, which DataFusion takes for a column's",
        example: "SELECT k FROM (SELECT k, x AS k FROM u) AS d",
        without: Loss::Refusal,
    },
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
        name: "computed offsets of frames",
        run: Hooks {
            expr: Some(|expr, _| {
                frame_bounds::fold(expr);
                Ok(())
            }),
            ..NONE
        },
        gives: "the number that an offset is computed of",
        reason: "DataFusion takes literals only",
        example: "SELECT count(*) OVER (ORDER BY k ROWS 1 + 1 PRECEDING) AS q FROM u",
        without: Loss::Failure,
    },
    Pass {
        name: "refuse what would be dropped",
        run: Hooks {
            query: Some(|query, _| refuse::query(query)),
            factor: Some(|factor, _| refuse::factor(factor)),
            select: Some(|select, _| refuse::select(select)),
            expr: Some(|expr, _| {
                refuse::frame(expr)?;
                refuse::distinct_over(expr)
            }),
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
            ordered: Some(|select, order_by, _| order_names::write_out(select, order_by)),
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
        name: "names beside lists that are unnested",
        run: Hooks {
            whole: Some(|query, _| unnested_names::hide_at_top(query)),
            with: Some(|query, names| {
                if let Some(catalog) = names.catalog {
                    unnested_names::hide_named(query, names.reachable(), catalog);
                }
            }),
            factor: Some(|factor, names| {
                if let Some(catalog) = names.catalog {
                    unnested_names::hide(factor, names.reachable(), catalog);
                }
                Ok(())
            }),
            ..NONE
        },
        gives: "other names for values that are called like a column that they are computed of",
        reason: "DataFusion has both beside each other below Unnest, and takes the name for ambiguous",
        example: "SELECT q.k FROM (SELECT k + 1 AS k, unnest(ARRAY[x]) AS e FROM u) AS q",
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
        name: "functions beside their table",
        run: Hooks { ordered: Some(|select, _, _| lateral::write_out(select)), ..NONE },
        gives: "a LATERAL query that unnests in its select list",
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
            ordered: Some(|select, order_by, names| {
                let Some(catalog) = names.catalog else { return Ok(()) };
                distinct_on::write_out(select, order_by.as_deref(), names.reachable(), catalog)
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
        run: Hooks { factor: Some(|factor, names| window_table::rewrite(factor, names.catalog)), ..NONE },
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
        run: Hooks { select: Some(|select, _| counts::count_in_projection(select)), ..NONE },
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
