"""Methods that compute a value of many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from .. import sqltext as q
from .. import types as t
from ..errors import NotSupportedError, ProgrammingError
from .context import Ctx, Sql, _ddof, _escape, listed, modified
from .node import Node, as_column, made

if TYPE_CHECKING:
    from .whole import Expr


class Aggregates(Node):
    """A value of many rows, of each group or of all."""

    __slots__ = ()

    def sum(self) -> "Expr":
        """The sum; of nothing, 0."""
        def of(ctx: Ctx, a: Sql) -> Any:
            return f"CASE WHEN {a.sql} THEN 1 WHEN NOT {a.sql} THEN 0 END" if a.type == "boolean" else a.sql
        def typed(a: Sql) -> Optional[str]:
            return "double precision" if a._type == "double precision" else "bigint" if a._type and t.is_integer(a._type) else None
        return self._aggregate("sum({d}{x})", of=of, empty="0", type=typed)

    def mean(self) -> "Expr":
        """The mean; of nothing, NULL."""
        def of(ctx: Ctx, a: Sql) -> Any:
            return f"CASE WHEN {a.sql} THEN 1.0 WHEN NOT {a.sql} THEN 0.0 END" if a.type == "boolean" else a.sql
        return self._aggregate("avg({d}{x})", of=of)

    def min(self) -> "Expr":
        """The least value."""
        return self._aggregate("min({x})", type=lambda a: a._type)

    def max(self) -> "Expr":
        """The greatest value."""
        return self._aggregate("max({x})", type=lambda a: a._type)

    def count(self) -> "Expr":
        """How many values there are; NULL is none."""
        return self._aggregate("count({d}{x})", type="bigint")

    def len(self) -> "Expr":
        """How many rows there are, NULL included."""
        return self._aggregate("count(*)", type="bigint")

    def n_unique(self) -> "Expr":
        """How many different values there are; NULL is one of them."""
        def build(ctx: Ctx) -> Sql:
            a = self._build(ctx.plain()).sql
            if ctx.frame:
                some, all_, there = ctx.but(distinct=True).count(a), ctx.count(), ctx.count(a)
                return ctx.sql(f"({some} + CASE WHEN {all_} > {there} THEN 1 ELSE 0 END)", "bigint")
            return ctx.sql(
                f"({modified(ctx, f'count(DISTINCT {a})')} + "
                f"CASE WHEN {modified(ctx, 'count(*)')} > {modified(ctx, f'count({a})')} THEN 1 ELSE 0 END)", "bigint")
        return made(build, self._out, agg=True, select=self._select, roots=self._roots)

    def null_count(self) -> "Expr":
        """How many rows have no value."""
        def build(ctx: Ctx) -> Sql:
            a = self._build(ctx.plain()).sql
            if ctx.frame:
                return ctx.sql(f"({ctx.count()} - {ctx.count(a)})", "bigint")
            return ctx.sql(f"({modified(ctx, 'count(*)')} - {modified(ctx, f'count({a})')})", "bigint")
        return made(build, self._out, agg=True, select=self._select, roots=self._roots)

    def _end(self, order_by: Any, which: str) -> "Expr":
        if order_by is None:
            def missing(ctx: Ctx) -> Sql:
                if ctx.frame:
                    return ctx.call(which + "_value", [self._build(ctx.plain()).sql], ctx=ctx)
                if ctx.order is not None:
                    return ctx.sql(f"{which}_value({self._build(ctx.plain()).sql}) OVER ({ctx.over})")
                raise ProgrammingError(f"rows have no order; {which} needs order_by", hint=f'.{which}(order_by="..")')
            return made(missing, self._out, agg=True, select=self._select, roots=self._roots)
        return self._aggregate(which + "_value({x}{o})", order_by=order_by, type=lambda a: a._type)

    def first(self, order_by: Any = None) -> "Expr":
        """The value of the first row by ``order_by``."""
        return self._end(order_by, "first")

    def last(self, order_by: Any = None) -> "Expr":
        """The value of the last row by ``order_by``."""
        return self._end(order_by, "last")

    def any(self) -> "Expr":
        """Whether one is true; of nothing, false."""
        return self._aggregate("bool_or({x})", empty="false", type="boolean")

    def all(self) -> "Expr":
        """Whether none is false; of nothing, true."""
        return self._aggregate("bool_and({x})", empty="true", type="boolean")

    def median(self) -> "Expr":
        """The middle value, or the mean of the two in the middle."""
        return self._aggregate("median({x})")

    def mode(self) -> "Expr":
        """The most frequent value, the least of those that are as frequent."""
        return self._aggregate("mode({x})")

    def std(self, ddof: int = 1) -> "Expr":
        """The standard deviation, of a sample (``ddof=1``) or of all (``ddof=0``)."""
        return self._aggregate({0: "stddev_pop({x})", 1: "stddev_samp({x})"}[_ddof(ddof)])

    def var(self, ddof: int = 1) -> "Expr":
        """The variance, of a sample (``ddof=1``) or of all (``ddof=0``)."""
        return self._aggregate({0: "var_pop({x})", 1: "var_samp({x})"}[_ddof(ddof)])

    def quantile(self, quantile: float, interpolation: str) -> "Expr":
        """The value below which that share lies; ``interpolation`` must be said, and is
        ``"linear"``."""
        if interpolation != "linear":
            raise NotSupportedError(f"interpolation {interpolation!r} is not supported", hint='"linear", or percentile_disc(p)')
        return self.percentile_cont(quantile)

    def percentile_cont(self, p: float) -> "Expr":
        """The value at that share, between two if it falls there."""
        return self._aggregate(f"percentile_cont({float(p)!r}) WITHIN GROUP (ORDER BY {{x}})")

    def percentile_disc(self, p: float) -> "Expr":
        """The first value at or past that share."""
        return self._aggregate(f"percentile_disc({float(p)!r}) WITHIN GROUP (ORDER BY {{x}})")

    def sum_squares(self) -> "Expr":
        """The sum of squares."""
        return (self * self).sum()

    def avg_squares(self) -> "Expr":
        """The mean of squares."""
        return (self * self).mean()

    def product(self) -> "Expr":
        """The product: of events only."""
        return self._events_only("product")

    def single(self) -> "Expr":
        """The one value there is: of events only."""
        return self._events_only("single")

    def _events_only(self, name: str, *arguments: Any) -> "Expr":
        def build(ctx: Ctx) -> Sql:
            if not ctx.frame:
                raise NotSupportedError(f"{name} is an aggregate of events", hint="write @ab.udaf, or use it on Events")
            return ctx.call(name, [self._build(ctx.plain()).sql], ctx=ctx)
        return made(build, self._out, agg=True, select=self._select, roots=self._roots)

    def top_k(self, k: int) -> "Expr":
        """The ``k`` greatest values, as a list: of events with their ranks."""
        def build(ctx: Ctx) -> Sql:
            a = self._build(ctx.plain())
            if ctx.frame:
                return ctx.call("top_k", [a.sql], ctx=ctx, number=float(k))
            return ctx.sql(f"(array_agg({a.sql} ORDER BY {a.sql} DESC) FILTER (WHERE {a.sql} IS NOT NULL))[1:{int(k)}]")
        return made(build, self._out, agg=True, select=self._select, roots=self._roots)

    def min_by(self, by: Any) -> "Expr":
        """The value of the row in which ``by`` is least."""
        return self._by(by, "ASC NULLS LAST")

    def max_by(self, by: Any) -> "Expr":
        """The value of the row in which ``by`` is greatest."""
        return self._by(by, "DESC NULLS LAST")

    def _by(self, by: Any, direction: str) -> "Expr":
        key = as_column(by)
        def build(ctx: Ctx) -> Sql:
            if ctx.frame:
                raise NotSupportedError("min_by and max_by are no aggregates of events", hint="write @ab.udaf")
            inner = ctx.plain()
            a, b = self._build(inner), key._build(inner)
            return ctx.sql(modified(ctx, f"first_value({a.sql} ORDER BY {b.sql} {direction}, {a.sql})"), a._type)
        return made(build, self._out, agg=True, select=self._select, roots=self._roots)

    def implode(self, order_by: Any = None) -> "Expr":
        """All values as one list, ordered by ``order_by`` or else by themselves."""
        order = listed(order_by) or [self]
        return self._aggregate("array_agg({x}{o})", order_by=order, within=order_by is None)

    def string_agg(self, separator: str = ",", order_by: Any = None) -> "Expr":
        """All texts as one, ordered by ``order_by`` or else by themselves."""
        order = listed(order_by) or [self]
        return self._aggregate("string_agg({x}, " + _escape(q.text(separator)) + "{o})", order_by=order, type="text")

    def bit_and(self) -> "Expr":
        """All values, and-ed bit by bit."""
        return self._aggregate("bit_and({x})")

    def bit_or(self) -> "Expr":
        """All values, or-ed bit by bit."""
        return self._aggregate("bit_or({x})")

    def filter(self, *predicates: Any) -> "Expr":
        """An aggregate over the rows where all predicates are true; ``col.filter(p).sum()`` is
        ``col.sum().filter(p)``."""
        tests = [as_column(p) for p in predicates]
        if not self._agg:
            from .whole import Filtered

            return Filtered(self, tests)
        def build(ctx: Ctx) -> Sql:
            parts = [p._build(ctx.plain()).sql for p in tests]
            if ctx.filter:
                parts.append(ctx.filter)
            return self._build(ctx.but(filter=" AND ".join(f"({p})" for p in parts)))
        return made(build, self._out, agg=self._agg, select=self._select, window=self._window, roots=self._roots)

    def distinct(self) -> "Expr":
        """An aggregate that takes equal values once."""
        return made(lambda ctx: self._build(ctx.but(distinct=True)), self._out, agg=self._agg, select=self._select,
                    roots=self._roots)

    def unique(self) -> "Expr":
        """See ``distinct``."""
        return self.distinct()
