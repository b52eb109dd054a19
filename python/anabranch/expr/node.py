"""What all expressions share, and the few that others are made of: columns and constants.

``Expr`` is put together in ``whole``. The files of its methods import this one only, and make
expressions by ``made``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, List, Mapping, Optional

from .. import sqltext as q
from .. import types as t
from ..errors import ProgrammingError, unknown_column
from ..tracing import Traced
from .context import Ctx, Sql, listed, modified
from .events import _of_events

if TYPE_CHECKING:
    from .whole import Expr

DEFAULT_NAME = "literal"


class Node(Traced):
    """What every expression is: a function from a place to SQL, and what is known of it before."""

    __slots__ = ("_build", "_out", "_agg", "_select", "_value", "_is_lit", "_window", "_roots")

    def __init__(
        self,
        build: Callable[[Ctx], Sql],
        out: Optional[str] = None,
        *,
        agg: bool = False,
        select: Optional[Callable[[Mapping], List[str]]] = None,
        window: bool = False,
        roots: bool = False,
    ) -> None:
        self._build = build
        self._out = out
        self._agg = agg
        self._select = select
        self._is_lit = False
        self._value = None
        self._window = window
        self._roots = roots

    # -- building ---------------------------------------------------------------------------

    def _derive(self, f: Callable[..., Any], *others: "Expr", out: Optional[str] = None, type: Any = None) -> "Expr":
        operands = (self,) + others

        def build(ctx: Ctx) -> Sql:
            made = f(ctx, *[operand._build(ctx) for operand in operands])
            if isinstance(made, Sql):
                return made
            return ctx.sql(made, type)

        return made(
            build, out or self._out,
            agg=any(o._agg for o in operands),
            select=next((o._select for o in operands if o._select), None),
            window=any(o._window for o in operands),
            roots=any(o._roots for o in operands),
        )

    def _f(self, template: str, *others: Any, type: Any = None) -> "Expr":
        """A template of SQL with ``{0}`` for this and ``{1}`` .. for the others."""
        exprs = [as_operand(o) for o in others]
        return self._derive(lambda ctx, *parts: template.format(*[p.sql for p in parts]), *exprs, type=type)

    def _aggregate(
        self, call: str, *, type: Any = None, of: Optional[Callable[[Ctx, Sql], Any]] = None,
        order_by: Any = None, empty: Optional[str] = None, within: bool = False,
    ) -> "Expr":
        """An aggregate: ``call`` has ``{x}`` for the argument and ``{d}`` for DISTINCT."""
        order = [as_column(o) for o in listed(order_by)]

        def build(ctx: Ctx) -> Sql:
            inner = ctx.plain()
            argument = self._build(inner)
            if of is not None:
                argument = inner.sql(*made) if isinstance(made := of(inner, argument), tuple) else inner.sql(made)
            ordered = ""
            if order and not (ctx.over is not None):
                ordered = " ORDER BY " + ", ".join(o._build(inner).sql + " NULLS FIRST" for o in order)
            if ctx.frame:
                made = _of_events(ctx, call, argument.sql, bool(listed(order_by)) and not within)
                return made if empty is None else ctx.sql(f"coalesce({made.sql}, {empty})")
            text = call.format(x=argument.sql, d="DISTINCT " if ctx.distinct else "", o=ordered)
            text = modified(ctx, text)
            text = of_whole_numbers(call, argument, text)
            if empty is not None:
                text = f"coalesce({text}, {empty})"
            return ctx.sql(text, type(argument) if callable(type) else type)

        return made(build, self._out, agg=True, select=self._select, roots=self._roots)

    def alias_like(self, other: "Expr") -> "Expr":
        """The same under the name that ``other`` has."""
        return made(self._build, other._out, agg=self._agg, select=self._select, window=self._window, roots=self._roots)


def of_whole_numbers(call: str, argument: Sql, text: str) -> str:
    """A mean of whole numbers as frames have it: in SQL it is a numeric."""
    wanted = {"avg(": "double precision"}.get(call[:4])
    if wanted is None or not argument._type or not t.is_integer(argument._type):
        return text
    return f"CAST({text} AS {wanted})"


class Unfinished:
    """What becomes an expression where one is wanted."""

    def end(self) -> "Expr":
        """The expression."""
        raise NotImplementedError


def made(build: Callable[[Ctx], Sql], out: Optional[str] = None, **known: Any) -> "Expr":
    """An expression with all methods."""
    from .whole import Expr

    return Expr(build, out, **known)


def col(name: Any, *names: str) -> "Expr":
    """A column, or several that are treated alike.

    >>> import anabranch as ab
    >>> ab.col("price") * 2
    <Expr ("price" * 2)>
    """
    all_names = list(name) if isinstance(name, (list, tuple)) else [name, *names]
    if all_names == ["*"]:
        return many(list)
    if any_types(all_names):
        from ..selectors import by_dtype

        return by_dtype(*all_names)
    if len(all_names) == 1:
        return made(lambda ctx: ctx.col(name if isinstance(name, str) else all_names[0]), all_names[0], roots=True)

    def select(columns: Mapping) -> List[str]:
        for one in all_names:
            if one not in columns:
                raise unknown_column(one, columns)
        return all_names

    return many(select)


def any_types(values: Iterable) -> bool:
    """Whether the values are types, not names."""
    return any(not isinstance(v, str) for v in values)


def many(select: Callable[[Mapping], List[str]]) -> "Expr":
    """An expression for each of the columns that ``select`` names."""
    def build(ctx: Ctx) -> Sql:
        if ctx.current is None:
            raise ProgrammingError("several columns stand where one is wanted", hint="name one column")
        return ctx.col(ctx.current)
    return made(build, None, select=select, roots=True)


def lit(value: Any, dtype: Any = None) -> "Expr":
    """A constant.

    >>> import anabranch as ab
    >>> ab.lit("x")
    <Expr 'x'>
    """
    if isinstance(value, Node):
        return value
    text, of = q.literal(value)
    if dtype is not None:
        of = t.sql_type(dtype)
        text = f"CAST({text} AS {of})"
    constant = made(lambda ctx: ctx.sql(text, None if of == "null" else of), DEFAULT_NAME)
    constant._is_lit = True
    return constant


def as_operand(value: Any) -> "Expr":
    """An operand: a text is a constant."""
    if isinstance(value, Node):
        return value
    if isinstance(value, Unfinished):
        return value.end()
    return lit(value)


def as_column(value: Any) -> "Expr":
    """An argument: a text names a column."""
    if isinstance(value, Node):
        return value
    if isinstance(value, Unfinished):
        return value.end()
    if isinstance(value, str):
        return col(value)
    return lit(value)


as_column_or_lit = as_column
