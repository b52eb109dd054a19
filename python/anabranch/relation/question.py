"""What every relation is, and how its methods make the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence, Tuple

from .. import sqltext as q
from .. import types as t
from ..durations import parse as parse_duration
from ..errors import NotSupportedError, ProgrammingError, TraceError, unknown_column
from ..expr import Ctx, Expr, When, as_column, col, direction, lit
from ..rows import Results, Rows
from ..tracing import Row, trace
from ..types import DataType, Schema


if TYPE_CHECKING:
    from .whole import Relation


class Question(Results):
    """What every relation is: a text of SQL, its columns, and the objects that the text names."""

    # Whether the rows are kept, so that reading them is a look-up.
    _is_current = False

    def __init__(
        self, db: Any, text: str, *, from_: Optional[str] = None, schema: Optional[Schema] = None,
        order: Sequence[Tuple[str, bool, bool]] = (), holds: Sequence[Any] = (), rows: Optional[Rows] = None,
        alias: Optional[str] = None, status: Optional[str] = None,
    ) -> None:
        self._db = db
        self._text = text
        self._from = from_
        self._order = tuple(order)
        self._holds = tuple(holds)
        self._fixed = rows
        self._alias = alias
        self.status = status
        self._closing: Optional[str] = None
        self._known = schema if schema is not None else (rows.schema if rows is not None else db._schema_of(text))

    # -- what it is ----------------------------------------------------------------------------

    @property
    def columns(self) -> List[str]:
        """Names of the columns."""
        return list(self._known)

    @property
    def dtypes(self) -> List[DataType]:
        """Types of the columns."""
        return list(self._known.values())

    @property
    def schema(self) -> Schema:
        """Names and types."""
        return self._known

    @property
    def width(self) -> int:
        """How many columns."""
        return len(self._known)

    def collect_schema(self) -> Schema:
        """Names and types; asks for no rows."""
        return self._known

    def sql_query(self) -> str:
        """The text that runs."""
        if self._order:
            items = ", ".join(direction(q.name(name), down, last) for name, down, last in self._order)
            return f"SELECT * FROM {self._source()} ORDER BY {items}"
        return self._text

    def _unordered(self) -> str:
        """The text without an order of its rows, for views and for names in other texts."""
        return self._text

    def _source(self) -> str:
        """What stands behind FROM."""
        return self._from if self._from is not None else f"({self._text}) AS {q.name(self._alias or '_')}"

    def _ctx(self, holds: Optional[list] = None) -> Ctx:
        def ask(sql: str) -> str:
            schema = self._db._schema_of(f"SELECT {sql} AS x FROM {self._source()}")
            return str(schema["x"])
        ctx = Ctx(self._known, q.name, ask)
        ctx.register = self._db._function_name
        return ctx

    def _new(self, text: str, *others: "Relation", order: Sequence = (), schema: Optional[Schema] = None) -> "Relation":
        holds = self._holds + tuple(h for other in others for h in other._holds)
        from .whole import Relation

        return Relation(self._db, text, order=order, holds=holds, schema=schema)

    def _expr(self, value: Any) -> Expr:
        """An expression of a name, an expression or a lambda."""
        if callable(value) and not isinstance(value, (Expr, When, str)):
            value = trace(value, self._row())
        if isinstance(value, (bool,)):
            return lit(value)
        if isinstance(value, (Mapping, tuple, list)):
            raise TraceError(f"an expression was expected, not {type(value).__name__}")
        if value is None:
            raise TraceError("the function returned None", hint="a lambda returns its expression; def needs return")
        if isinstance(value, str) and value not in self._known:
            raise unknown_column(value, self._known)
        return as_column(value)

    def _row(self) -> Row:
        return Row(self._known, col)

    def _items(self, exprs: Sequence[Any], more: Mapping[str, Any]) -> list:
        """The columns of select: names and texts."""
        traced: list = []
        for expr in exprs:
            if callable(expr) and not isinstance(expr, (Expr, When, str)):
                expr = trace(expr, self._row())
                if isinstance(expr, Mapping):
                    traced += [as_column(value).alias(name) for name, value in expr.items()]
                    continue
            traced.extend(expr if isinstance(expr, (list, tuple)) else [expr])
        made = [self._expr(e) for e in traced] + [self._expr(e).alias(n) for n, e in more.items()]
        return made

    def _list(self, of: str = "") -> str:
        return ", ".join(of + q.name(n) for n in self._known)

    def _names(self, selection: Any, strict: bool = True) -> List[str]:
        if isinstance(selection, (list, tuple)):
            return [n for one in selection for n in self._names(one, strict)]
        if isinstance(selection, Expr):
            if selection._select is not None:
                return selection._select(self._known)
            selection = selection._out
        if selection not in self._known:
            if strict:
                raise unknown_column(selection, self._known)
            return []
        return [selection]

    def _span(self, value: Any, index: str) -> str:
        of = self._known[index]
        span = parse_duration(value)
        if t.is_integer(of):
            if span.ticks is None and isinstance(value, str) and value.endswith("i") is False:
                raise ProgrammingError(f'"{index}" is a number, so {value!r} needs a number too', sqlstate="42804")
            return str(span.ticks)
        if span.ticks is not None and not isinstance(value, str):
            return f"INTERVAL '{span.micros} microseconds'"
        if span.months:
            raise NotSupportedError("windows of months are not supported here",
                                    hint=f'group_by(ab.col("{index}").dt.truncate("{value}"))')
        return span.interval()

    def _side(self, alias: str) -> Ctx:
        def ask(sql: str) -> str:
            return str(self._db._schema_of(f"SELECT {sql} AS x FROM {_named(self, alias)}")["x"])
        ctx = Ctx(self._known, lambda name: f"{alias}.{q.name(name)}", ask)
        ctx.register = self._db._function_name
        return ctx


def _as(sql: str, name: str) -> str:
    return sql if sql == q.name(name) else f"{sql} AS {q.name(name)}"


def _named(relation: Relation, alias: str) -> str:
    return f"{relation._from} AS {alias}" if relation._from is not None else f"({relation._text}) AS {alias}"


def _table(source: str) -> str:
    return source if source.startswith("(") else f"TABLE {source}"


def _free(name: str, taken: Mapping) -> str:
    while name in taken:
        name = "_" + name
    return name


def _all(predicates: Sequence[Any]) -> Expr:
    made = as_column(predicates[0])
    for p in predicates[1:]:
        made = made & as_column(p)
    return made
