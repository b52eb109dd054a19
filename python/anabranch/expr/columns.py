"""Expressions as the columns of a query: their names, and what may stand together."""

from __future__ import annotations

from typing import Any, Iterable, List

from ..errors import DuplicateName, GroupingError
from .context import Ctx, _flat
from .node import DEFAULT_NAME, as_column
from .whole import Expr


def named(exprs: Iterable[Any], **more: Any) -> List[Expr]:
    """The expressions of ``select`` and the like: texts name columns, keywords give names."""
    out = [as_column(e) for e in _flat(exprs)]
    out += [as_column(e).alias(name) for name, e in more.items()]
    return out


def expand(expr: Expr, ctx: Ctx) -> list:
    """An expression's columns: names and texts of SQL."""
    if expr._select is None:
        made = expr._build(ctx)
        return [(expr._out or DEFAULT_NAME, made)]
    out = []
    for name in expr._select(ctx.columns):
        made = expr._build(ctx.but(current=name))
        shown = expr._value(name) if callable(expr._value) else (expr._out or name)
        out.append((shown, made))
    return out


def check_names(names: Iterable[str]) -> None:
    """Refuses a name that is there twice."""
    seen = set()
    for name in names:
        if name in seen:
            raise DuplicateName(f'column "{name}" is there twice', hint='.alias("..") gives one another name')
        seen.add(name)


def check_grouping(exprs: Iterable[Expr]) -> bool:
    """Whether the expressions aggregate; refuses a mixture."""
    exprs = list(exprs)
    aggregates = [e for e in exprs if e._agg]
    if not aggregates:
        return False
    for e in exprs:
        if not e._agg and e._roots and not e._window:
            raise GroupingError(f'column "{e._out}" stands beside an aggregate',
                                hint="group_by(..).agg(..), or .over(..) for the aggregate")
    return True
