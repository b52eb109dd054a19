"""Methods that compute a value of the rows around each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence, Union

from .. import sqltext as q
from ..durations import parse as parse_duration
from ..errors import NotSupportedError, ProgrammingError
from .context import Ctx, Sql, _escape, _flat, direction, listed, spread
from .node import Node, as_column, made, of_whole_numbers

if TYPE_CHECKING:
    from .whole import Expr


class Windows(Node):
    """A value of the rows around each row: OVER."""

    __slots__ = ()

    def over(
        self, *partition_by: Any, order_by: Any = None, descending: Union[bool, Sequence[bool]] = False,
        nulls_last: Union[bool, Sequence[bool]] = False, rows: Any = None, range: Any = None, mapping_strategy: Any = None,
    ) -> "Expr":
        """Computed for each row over the rows with the same keys.

        ``rows=(-2, 0)`` and ``range=("-1h", 0)`` bound the window; None in them means unbounded.
        """
        if mapping_strategy is not None:
            raise NotSupportedError("mapping_strategy is not supported", hint="group_by(..).agg(..) and a join")
        keys = [as_column(k) for k in _flat(partition_by)]
        order = [as_column(o) for o in listed(order_by)]
        downs, lasts = spread(descending, len(order)), spread(nulls_last, len(order))

        def build(ctx: Ctx) -> Sql:
            inner = ctx.plain()
            parts = []
            if keys:
                parts.append("PARTITION BY " + ", ".join(k._build(inner).sql for k in keys))
            sorted_ = None
            if order:
                sorted_ = ", ".join(direction(o._build(inner).sql, d, n) for o, d, n in zip(order, downs, lasts))
                parts.append("ORDER BY " + sorted_)
            if rows is not None:
                parts.append("ROWS BETWEEN " + _bounds(rows, str))
            if range is not None:
                parts.append("RANGE BETWEEN " + _bounds(range, _range_bound))
            return self._build(ctx.but(over=" ".join(parts), order=sorted_, filter=None, distinct=False))

        return made(build, self._out, select=self._select, window=True, roots=self._roots)

    def _needs_order(self, call: str, what: str, type: Any = None) -> "Expr":
        def build(ctx: Ctx) -> Sql:
            if ctx.order is None:
                raise ProgrammingError(f"rows have no order; {what} needs over(order_by=)",
                                       hint=f'.{what}(..).over("key", order_by="time")')
            a = self._build(ctx.plain())
            return ctx.sql(call.format(x=a.sql, over=f"OVER ({ctx.over})", order=ctx.order), type)
        return made(build, self._out, agg=True, select=self._select, roots=self._roots)

    def rank(self, method: str, descending: bool = False) -> "Expr":
        """The place among the rows of the window, from 1; ``method`` is min, dense or ordinal and
        must be said."""
        names = {"min": "rank", "dense": "dense_rank", "ordinal": "row_number"}
        if method not in names:
            raise NotSupportedError(f"rank method {method!r} is not supported", hint="min, dense or ordinal")
        def build(ctx: Ctx) -> Sql:
            a = self._build(ctx.plain())
            window = ctx.over or ""
            if ctx.order is None:
                window = (window + " " if window else "") + "ORDER BY " + direction(a.sql, descending, True)
            rank_ = f"{names[method]}() OVER ({window})"
            return ctx.sql(f"CASE WHEN {a.sql} IS NULL THEN NULL ELSE {rank_} END", "bigint")
        return made(build, self._out, agg=True, select=self._select, roots=self._roots)

    def shift(self, n: int = 1, *, fill_value: Any = None) -> "Expr":
        """The value ``n`` rows before; after, for negative ``n``."""
        name, n_ = ("lag", n) if n >= 0 else ("lead", -n)
        fill = "" if fill_value is None else ", " + _escape(q.literal(fill_value)[0])
        return self._needs_order(f"{name}({{x}}, {n_}{fill}) {{over}}", "shift")

    def diff(self, n: int = 1) -> "Expr":
        """The difference to the value ``n`` rows before."""
        name, n_ = ("lag", n) if n >= 0 else ("lead", -n)
        return self._needs_order(f"({{x}} - {name}({{x}}, {n_}) {{over}})", "diff")

    def pct_change(self, n: int = 1) -> "Expr":
        """The change relative to the value ``n`` rows before."""
        return self._needs_order(
            f"(CAST({{x}} AS double precision) / CAST(lag({{x}}, {n}) {{over}} AS double precision) - 1)", "pct_change")

    def cum_sum(self) -> "Expr":
        """The sum of the rows up to this one."""
        return self._running("sum({x})", "cum_sum")

    def cum_count(self) -> "Expr":
        """How many values there are up to this row."""
        return self._running("count({x})", "cum_count")

    def cum_min(self) -> "Expr":
        """The least value up to this row."""
        return self._running("min({x})", "cum_min")

    def cum_max(self) -> "Expr":
        """The greatest value up to this row."""
        return self._running("max({x})", "cum_max")

    def _running(self, call: str, what: str, frame: str = "UNBOUNDED PRECEDING") -> "Expr":
        def build(ctx: Ctx) -> Sql:
            if ctx.order is None:
                raise ProgrammingError(f"rows have no order; {what} needs over(order_by=)")
            a = self._build(ctx.plain())
            text = f"{call.format(x=a.sql)} OVER ({ctx.over} ROWS BETWEEN {frame} AND CURRENT ROW)"
            return ctx.sql(of_whole_numbers(call, a, text))
        return made(build, self._out, agg=True, select=self._select, roots=self._roots)

    def rolling_sum(self, n: int) -> "Expr":
        """The sum of the last ``n`` rows."""
        return self._running("sum({x})", "rolling_sum", f"{n - 1} PRECEDING")

    def rolling_mean(self, n: int) -> "Expr":
        """The mean of the last ``n`` rows."""
        return self._running("avg({x})", "rolling_mean", f"{n - 1} PRECEDING")

    def rolling_min(self, n: int) -> "Expr":
        """The least of the last ``n`` rows."""
        return self._running("min({x})", "rolling_min", f"{n - 1} PRECEDING")

    def rolling_max(self, n: int) -> "Expr":
        """The greatest of the last ``n`` rows."""
        return self._running("max({x})", "rolling_max", f"{n - 1} PRECEDING")


def _bounds(pair: Any, show: Callable[[Any], str]) -> str:
    low, high = pair
    def bound(value: Any, unbounded: str) -> str:
        if value is None:
            return f"UNBOUNDED {unbounded}"
        if value == 0:
            return "CURRENT ROW"
        text = show(value)
        return f"{text[1:]} PRECEDING" if text.startswith("-") else f"{text} FOLLOWING"
    return f"{bound(low, 'PRECEDING')} AND {bound(high, 'FOLLOWING')}"


def _range_bound(value: Any) -> str:
    if isinstance(value, (int, float)):
        return str(value)
    parsed = parse_duration(value)
    sign = "-" if parsed.micros < 0 or parsed.months < 0 else ""
    return sign + parsed._replace(months=abs(parsed.months), micros=abs(parsed.micros)).interval()
