"""Functions that make expressions: constants, any function of SQL, several columns as one."""

from __future__ import annotations

from typing import Any, Callable, Iterable, List, Optional

from .. import sqltext as q
from .. import types as t
from ..errors import ProgrammingError
from .arithmetic import _cast
from .context import Ctx, Sql, _flat, modified
from .node import DEFAULT_NAME, as_column, lit, many
from .whole import Expr


def all() -> Expr:  # noqa: A001 (Polars' name)
    """All columns."""
    return many(lambda columns: list(columns))


def exclude(*names: Any) -> Expr:
    """All columns but these."""
    left_out = set(_flat(names))
    return many(lambda columns: [name for name in columns if name not in left_out])


def sql_expr(text: str) -> Expr:
    """An expression in SQL.

    >>> import anabranch as ab
    >>> ab.sql_expr("a + 1")
    <Expr (a + 1)>
    """
    if q.statements(text) != 1:
        raise ProgrammingError("one expression of SQL was expected")
    return Expr(lambda ctx: ctx.sql(f"({text})"), DEFAULT_NAME, roots=True)


def param(name: str, dtype: Any) -> Expr:
    """A value that is given later, by ``relation.bind(name=value)``. Its type is known before.

    >>> import anabranch as ab
    >>> db = ab.connect()
    >>> r = db.values([(1,), (2,), (3,)], {"n": int}).filter(ab.col("n") > ab.param("least", int))
    >>> r.bind(least=2).fetchall()
    [(3,)]
    """
    if not (name.isidentifier() and name.isascii()):
        raise ProgrammingError(f"{name!r} is no name of a parameter", sqlstate="42P02")
    of = t.sql_type(dtype)
    return Expr(lambda ctx: ctx.sql(f"CAST({q.parameter(name)} AS {of})", of), name)


def element() -> Expr:
    """The element of a list, inside ``list.eval``."""
    def build(ctx: Ctx) -> Sql:
        if ctx.element is None:
            raise ProgrammingError("ab.element() stands for an element inside .list.eval(..)")
        return ctx.element
    return Expr(build, "element", roots=True)


def func(name: str, *arguments: Any) -> Expr:
    """Any function of SQL.

    >>> import anabranch as ab
    >>> ab.func("md5", "k")
    <Expr md5("k")>
    """
    exprs = [as_column(a) for a in arguments]
    if not name.replace("_", "").isalnum():
        raise ProgrammingError(f"{name!r} is not the name of a function")
    def build(ctx: Ctx) -> Sql:
        return ctx.sql(f"{name}({', '.join(e._build(ctx).sql for e in exprs)})")
    first = exprs[0] if exprs else None
    return Expr(build, first._out if first is not None else name, select=first._select if first is not None else None,
                agg=any(e._agg for e in exprs), roots=any(e._roots for e in exprs))


def length() -> Expr:
    """How many rows there are."""
    def build(ctx: Ctx) -> Sql:
        return ctx.sql(ctx.count() if ctx.frame else modified(ctx, "count(*)"), "bigint")
    return Expr(build, "len", agg=True)


def now() -> Expr:
    """The time of the last commit."""
    return Expr(lambda ctx: ctx.sql("now()", "timestamptz"), "now")


def _fold(template: Callable[[List[str]], str], exprs: Iterable[Any], out: Optional[str] = None, type: Any = None) -> Expr:
    parts = [as_column(e) for e in _flat(exprs)]
    if not parts:
        raise ProgrammingError("at least one column was expected")
    return parts[0]._derive(lambda ctx, *made: template([m.sql for m in made]), *parts[1:], out=out, type=type)


def coalesce(*exprs: Any) -> Expr:
    """The first value that is there."""
    return _fold(lambda parts: f"coalesce({', '.join(parts)})", exprs)


def min_horizontal(*exprs: Any) -> Expr:
    """The least of several columns, NULL left out."""
    return _fold(lambda parts: f"least({', '.join(parts)})", exprs)


def max_horizontal(*exprs: Any) -> Expr:
    """The greatest of several columns, NULL left out."""
    return _fold(lambda parts: f"greatest({', '.join(parts)})", exprs)


def _texts(exprs: Iterable[Any]) -> List[Expr]:
    return [as_column(e)._derive(lambda ctx, a: a if t.is_text(a.type) else ctx.sql(_cast(a, "text", True), "text"))
            for e in _flat(exprs)]


def concat_str(*exprs: Any, separator: str = "") -> Expr:
    """Several columns as one text; NULL where one is."""
    between = f" || {q.text(separator)} || " if separator else " || "
    return _fold(lambda parts: f"({between.join(parts)})", _texts(exprs), type="text")


def format(template: str, *exprs: Any) -> Expr:  # noqa: A001 (Polars' name)
    """A text with ``{}`` for each expression; NULL where one is."""
    parts = template.split("{}")
    if len(parts) - 1 != len(exprs):
        raise ProgrammingError(f"the template has {len(parts) - 1} places for {len(exprs)} expressions")
    made = _texts(exprs)
    pieces: list = []
    for i, part in enumerate(parts):
        if part:
            pieces.append(lit(part))
        if i < len(made):
            pieces.append(made[i])
    named = made[0]._out if made else None
    return _fold(lambda texts: f"({' || '.join(texts)})", pieces, out=named, type="text")


def struct(*exprs: Any, **named: Any) -> Expr:
    """Several columns as one struct."""
    parts = [as_column(e) for e in _flat(exprs)] + [as_column(e).alias(n) for n, e in named.items()]
    names = [p._out or DEFAULT_NAME for p in parts]
    return _fold(lambda texts: "named_struct(" + ", ".join(f"{q.text(n)}, {x}" for n, x in zip(names, texts)) + ")", parts)


def concat_list(*exprs: Any) -> Expr:
    """Several columns as one list."""
    return _fold(lambda parts: f"ARRAY[{', '.join(parts)}]", exprs)
