"""The place an expression is written for: columns, and the window, filter or groups around it."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, Optional

from ..errors import NotSupportedError, ProgrammingError, unknown_column


class Sql:
    """Text of SQL and its type, which is asked for only when somebody wants it."""

    __slots__ = ("sql", "_type", "ctx")

    def __init__(self, sql: str, type_: Optional[str], ctx: "Ctx") -> None:
        self.sql, self._type, self.ctx = sql, type_, ctx

    @property
    def type(self) -> str:
        """The SQL name of the type."""
        if self._type is None:
            self._type = self.ctx.probe(self.sql)
        return self._type


class Ctx:
    """What an expression is written for: columns, and the window, filter or grouping around it."""

    __slots__ = ("columns", "quote", "ask", "over", "order", "filter", "distinct", "current", "element", "frame", "register",
                 "call")

    def __init__(self, columns: Mapping, quote: Callable[[str], str], ask: Callable[[str], str]) -> None:
        self.columns, self.quote, self.ask = columns, quote, ask
        self.over: Optional[str] = None
        self.order: Optional[str] = None
        self.filter: Optional[str] = None
        self.distinct = False
        self.current: Optional[str] = None
        self.element: Optional[Sql] = None
        self.frame = False
        self.register: Callable[[Any], str] = lambda function: function.name
        self.call: Any = None

    def but(self, **changes: Any) -> "Ctx":
        """The same with some parts changed."""
        other = Ctx(self.columns, self.quote, self.ask)
        for slot in ("over", "order", "filter", "distinct", "current", "element", "frame", "register", "call"):
            setattr(other, slot, changes.get(slot, getattr(self, slot)))
        return other

    def plain(self) -> "Ctx":
        """For an argument of an aggregate: no window or filter of its own."""
        return self.but(over=None, order=None, filter=None, distinct=False)

    def count(self, argument: Optional[str] = None) -> str:
        """How many rows of events there are, or values."""
        return self.call("count", [] if argument is None else [argument], ctx=self, type="bigint").sql

    def probe(self, sql: str) -> str:
        """The type of an expression, as the engine sees it."""
        return self.ask(sql)

    def col(self, name: str) -> Sql:
        """A column."""
        if name not in self.columns:
            raise unknown_column(name, self.columns)
        return Sql(self.quote(name), self.columns[name], self)

    def sql(self, text: str, type_: Optional[str] = None) -> Sql:
        """A text for this place."""
        return Sql(text, type_, self)


class _Any(dict):
    """Columns of which every one is there, for showing an expression."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "double precision"


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _ddof(ddof: int) -> int:
    if ddof not in (0, 1):
        raise NotSupportedError(f"ddof={ddof} is not supported", hint="0 or 1")
    return ddof


def listed(value: Any) -> list:
    """Nothing, one or several as a list."""
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return list(value)
    return [value]


def _flat(values: Iterable) -> list:
    out: list = []
    for value in values:
        out.extend(value if isinstance(value, (list, tuple)) else [value])
    return out


def spread(value: Any, n: int) -> list:
    """One flag for each of ``n``."""
    if isinstance(value, (list, tuple)):
        if len(value) != n:
            raise ProgrammingError(f"there are {n} columns, but {len(value)} flags")
        return list(value)
    return [value] * n


def direction(sql: str, descending: bool, nulls_last: bool) -> str:
    """An item of ORDER BY."""
    return f"{sql} {'DESC' if descending else 'ASC'} NULLS {'LAST' if nulls_last else 'FIRST'}"


def modified(ctx: Ctx, call: str) -> str:
    """An aggregate's call with the filter and window around it."""
    if ctx.filter:
        call += f" FILTER (WHERE {ctx.filter})"
    if ctx.over is not None:
        call += f" OVER ({ctx.over})"
    return call
