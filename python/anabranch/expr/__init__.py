"""Expressions: what is computed of columns, without the rows.

An expression knows how to write itself as SQL for given columns. Where a word of SQL has another
meaning than the same word of Polars, the expression writes what Polars means.

Reading order: ``context`` (the place an expression is written for), ``node`` (what all share),
``arithmetic``, ``events``; the methods in ``operators``, ``values``, ``aggregates``, ``windows``,
``names``; ``whole`` puts them together; ``making``, ``conditions`` and ``columns`` use them.
"""

from __future__ import annotations

from typing import Any

from .columns import check_grouping, check_names, expand, named
from .conditions import When, when
from .context import Ctx, Sql, _escape, direction, listed, modified, spread
from .making import (all, coalesce, concat_list, concat_str, element, exclude, format, func, length,
                     max_horizontal, min_horizontal, now, param, sql_expr, struct)
from .names import Names
from .node import DEFAULT_NAME, any_types, as_column, as_column_or_lit, as_operand, col, lit, many
from .whole import Expr, Filtered

IntoExpr = Any
