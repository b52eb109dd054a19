"""Expressions: what is computed of columns, without the rows.

An expression knows how to write itself as SQL for given columns; where SQL's word has another meaning
than Polars' word of the same name, it writes what Polars means (principle 2 of the package).
"""

from __future__ import annotations

import math
import re
from typing import Any, Callable, Iterable, List, Mapping, Optional, Sequence, Union

from . import sqltext as q
from . import types as t
from .durations import parse as parse_duration
from .errors import (DuplicateName, GroupingError, NotSupportedError, ProgrammingError, TraceError, TypeMismatch,
                     unknown_column)
from .tracing import Traced

IntoExpr = Any
DEFAULT_NAME = "literal"


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


class Expr(Traced):
    """A computation over columns. Immutable; built by ``ab.col``, operators and methods.

    >>> import anabranch as ab
    >>> (ab.col("a") + 1).sql(a=int)
    '("a" + 1)'
    """

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

    # -- building ------------------------------------------------------------------------------------

    def _derive(self, f: Callable[..., Any], *others: "Expr", out: Optional[str] = None, type: Any = None) -> "Expr":
        operands = (self,) + others

        def build(ctx: Ctx) -> Sql:
            made = f(ctx, *[operand._build(ctx) for operand in operands])
            if isinstance(made, Sql):
                return made
            return ctx.sql(made, type)

        return Expr(
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
            if empty is not None:
                text = f"coalesce({text}, {empty})"
            return ctx.sql(text, type(argument) if callable(type) else type)

        return Expr(build, self._out, agg=True, select=self._select, roots=self._roots)

    # -- what it is called ---------------------------------------------------------------------------

    def alias(self, name: str) -> "Expr":
        """The same under another name."""
        return Expr(self._build, name, agg=self._agg, select=self._select, window=self._window, roots=self._roots)

    @property
    def name(self) -> "Names":
        """Names made of the column's: ``.name.prefix("x_")``."""
        return Names(self)

    def sql(self, **columns: Any) -> str:
        """The SQL of this expression; ``columns`` gives the types of those it reads."""
        schema = {name: t.sql_type(of) for name, of in columns.items()}
        ctx = Ctx(_Any(schema), q.name, lambda text: "text")
        return self._build(ctx).sql

    def __repr__(self) -> str:
        try:
            return f"<Expr {self.sql()}>"
        except Exception:
            return "<Expr>"

    # -- operators -----------------------------------------------------------------------------------

    def __add__(self, other: Any) -> "Expr":
        return self._derive(_add, as_operand(other))

    def __radd__(self, other: Any) -> "Expr":
        return as_operand(other)._derive(_add, self, out=self._out)

    def __sub__(self, other: Any) -> "Expr":
        return self._f("({0} - {1})", other)

    def __rsub__(self, other: Any) -> "Expr":
        return as_operand(other)._f("({0} - {1})", self).alias_like(self)

    def __mul__(self, other: Any) -> "Expr":
        return self._f("({0} * {1})", other)

    def __rmul__(self, other: Any) -> "Expr":
        return as_operand(other)._f("({0} * {1})", self).alias_like(self)

    def __truediv__(self, other: Any) -> "Expr":
        return self._derive(_divide, as_operand(other))

    def __rtruediv__(self, other: Any) -> "Expr":
        return as_operand(other)._derive(_divide, self).alias_like(self)

    def __floordiv__(self, other: Any) -> "Expr":
        return self._derive(_floor_divide, as_operand(other))

    def __rfloordiv__(self, other: Any) -> "Expr":
        return as_operand(other)._derive(_floor_divide, self).alias_like(self)

    def __mod__(self, other: Any) -> "Expr":
        return self._derive(_modulo, as_operand(other))

    def __rmod__(self, other: Any) -> "Expr":
        return as_operand(other)._derive(_modulo, self).alias_like(self)

    def __pow__(self, other: Any) -> "Expr":
        return self._derive(_power, as_operand(other))

    def __rpow__(self, other: Any) -> "Expr":
        return as_operand(other)._derive(_power, self).alias_like(self)

    def __neg__(self) -> "Expr":
        return self._f("(-{0})")

    def __pos__(self) -> "Expr":
        return self

    def __abs__(self) -> "Expr":
        return self._f("abs({0})")

    def __round__(self, n: int = 0) -> "Expr":
        return self.round(n)

    def _compare(self, op: str, other: Any) -> "Expr":
        if other is None:
            raise ProgrammingError(f"{op} None is never true", hint="write .is_null() or .is_not_null()")
        return self._derive(lambda ctx, a, b: _compared(ctx, op, a, b), as_operand(other), type="boolean")

    def __eq__(self, other: Any) -> "Expr":  # type: ignore[override]
        return self._compare("=", other)

    def __ne__(self, other: Any) -> "Expr":  # type: ignore[override]
        return self._compare("<>", other)

    def __lt__(self, other: Any) -> "Expr":
        return self._compare("<", other)

    def __le__(self, other: Any) -> "Expr":
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> "Expr":
        return self._compare(">", other)

    def __ge__(self, other: Any) -> "Expr":
        return self._compare(">=", other)

    def __and__(self, other: Any) -> "Expr":
        return self._derive(lambda ctx, a, b: _logic(ctx, "AND", "&", a, b), as_operand(other))

    def __rand__(self, other: Any) -> "Expr":
        return as_operand(other).__and__(self)

    def __or__(self, other: Any) -> "Expr":
        return self._derive(lambda ctx, a, b: _logic(ctx, "OR", "|", a, b), as_operand(other))

    def __ror__(self, other: Any) -> "Expr":
        return as_operand(other).__or__(self)

    def __xor__(self, other: Any) -> "Expr":
        return self._derive(lambda ctx, a, b: _logic(ctx, "<>", "#", a, b), as_operand(other))

    def __rxor__(self, other: Any) -> "Expr":
        return as_operand(other).__xor__(self)

    def __invert__(self) -> "Expr":
        return self._derive(
            lambda ctx, a: ctx.sql(f"(NOT {a.sql})", "boolean") if a.type == "boolean" else ctx.sql(f"(~{a.sql})", a.type)
        )

    def xor(self, other: Any) -> "Expr":
        """True where exactly one side is; of integers, bit by bit."""
        return self.__xor__(other)

    def __getitem__(self, key: Any) -> "Expr":
        if isinstance(key, str):
            return self.struct.field(key)
        if isinstance(key, int) and not isinstance(key, bool):
            return self.list.get(key)
        raise TraceError(f"{key!r} is no field and no place", hint=".str.slice, .list.slice")

    def alias_like(self, other: "Expr") -> "Expr":
        """The same under the name that ``other`` has."""
        return Expr(self._build, other._out, agg=self._agg, select=self._select, window=self._window, roots=self._roots)

    # -- values --------------------------------------------------------------------------------------

    def cast(self, to: Any, *, strict: bool = True) -> "Expr":
        """The values as another type. A value that does not fit is a row error, or NULL if not ``strict``."""
        wanted = t.sql_type(to)
        return self._derive(lambda ctx, a: ctx.sql(_cast(a, wanted, strict), wanted))

    def is_null(self) -> "Expr":
        """Whether there is no value."""
        return self._f("({0} IS NULL)", type="boolean")

    def is_not_null(self) -> "Expr":
        """Whether there is a value."""
        return self._f("({0} IS NOT NULL)", type="boolean")

    def is_nan(self) -> "Expr":
        """Whether it is not a number (of floats)."""
        return self._f("isnan({0})", type="boolean")

    def is_not_nan(self) -> "Expr":
        """Whether it is a number."""
        return self._f("(NOT isnan({0}))", type="boolean")

    def is_finite(self) -> "Expr":
        """Whether it is neither infinite nor NaN."""
        return self._f("(NOT isnan({0}) AND abs({0}) <> CAST('Infinity' AS double precision))", type="boolean")

    def is_infinite(self) -> "Expr":
        """Whether it is infinite."""
        return self._f("(abs({0}) = CAST('Infinity' AS double precision))", type="boolean")

    def is_in(self, values: Any) -> "Expr":
        """Whether it is one of ``values``: a list, or a relation of one column."""
        if hasattr(values, "sql_query") and hasattr(values, "columns"):
            return self._f("({0} IN (" + _escape(values.sql_query()) + "))", type="boolean")
        if isinstance(values, Expr):
            return values.list.contains(self)
        if isinstance(values, (str, bytes)):
            raise ProgrammingError("is_in takes a list of values", hint=f"is_in([{values!r}])")
        items = [value for value in values if value is not None]
        if not items:
            return self._f("CASE WHEN {0} IS NULL THEN NULL ELSE false END", type="boolean")
        listed_ = ", ".join(_escape(q.literal(value)[0]) for value in items)
        return self._f("({0} IN (" + listed_ + "))", type="boolean")

    def is_between(self, lower: Any, upper: Any, closed: str = "both") -> "Expr":
        """Whether it lies between two bounds; ``closed`` is both, left, right or none."""
        if closed not in ("both", "left", "right", "none"):
            raise ProgrammingError(f"closed is both, left, right or none, not {closed!r}")
        left = ">=" if closed in ("both", "left") else ">"
        right = "<=" if closed in ("both", "right") else "<"
        lower, upper = as_column_or_lit(lower), as_column_or_lit(upper)
        return self._f("({0} " + left + " {1} AND {0} " + right + " {2})", lower, upper, type="boolean")

    def eq_missing(self, other: Any) -> "Expr":
        """Equality in which NULL equals NULL."""
        return self._f("({0} IS NOT DISTINCT FROM {1})", other, type="boolean")

    def ne_missing(self, other: Any) -> "Expr":
        """The opposite of ``eq_missing``."""
        return self._f("({0} IS DISTINCT FROM {1})", other, type="boolean")

    def fill_null(self, value: Any) -> "Expr":
        """``value`` where there is none."""
        return self._f("coalesce({0}, {1})", value)

    def fill_nan(self, value: Any) -> "Expr":
        """``value`` where it is NaN."""
        return self._f("CASE WHEN isnan({0}) THEN {1} ELSE {0} END", value)

    def nullif(self, other: Any) -> "Expr":
        """NULL where it equals ``other``."""
        return self._f("nullif({0}, {1})", other)

    def abs(self) -> "Expr":
        """Without the sign."""
        return self._f("abs({0})")

    def sign(self) -> "Expr":
        """-1, 0 or 1, of the same type."""
        return self._derive(
            lambda ctx, a: ctx.sql(f"CASE WHEN {a.sql} > 0 THEN 1 WHEN {a.sql} < 0 THEN -1 WHEN {a.sql} = 0 THEN 0 END", "bigint")
            if t.is_integer(a.type) else f"sign({a.sql})"
        )

    def _math(self, name: str) -> "Expr":
        return self._derive(lambda ctx, a: ctx.sql(f"{name}({_as_float(a)})", "double precision"))

    def sqrt(self) -> "Expr":
        """The square root."""
        return self._math("sqrt")

    def cbrt(self) -> "Expr":
        """The cube root."""
        return self._math("cbrt")

    def exp(self) -> "Expr":
        """e to the power of it."""
        return self._math("exp")

    def log(self, base: float = math.e) -> "Expr":
        """The logarithm, natural unless ``base`` is given."""
        if base == math.e:
            return self._math("ln")
        if base == 10:
            return self._math("log")
        return self._derive(lambda ctx, a: ctx.sql(f"(ln({_as_float(a)}) / ln({q.literal(float(base))[0]}))", "double precision"))

    def log10(self) -> "Expr":
        """The logarithm to base ten."""
        return self._math("log")

    def log1p(self) -> "Expr":
        """The natural logarithm of one more."""
        return self._derive(lambda ctx, a: ctx.sql(f"ln(1.0 + {_as_float(a)})", "double precision"))

    def sin(self) -> "Expr":
        """The sine."""
        return self._math("sin")

    def cos(self) -> "Expr":
        """The cosine."""
        return self._math("cos")

    def tan(self) -> "Expr":
        """The tangent."""
        return self._math("tan")

    def arcsin(self) -> "Expr":
        """The inverse of the sine."""
        return self._math("asin")

    def arccos(self) -> "Expr":
        """The inverse of the cosine."""
        return self._math("acos")

    def arctan(self) -> "Expr":
        """The inverse of the tangent."""
        return self._math("atan")

    def sinh(self) -> "Expr":
        """The hyperbolic sine."""
        return self._math("sinh")

    def cosh(self) -> "Expr":
        """The hyperbolic cosine."""
        return self._math("cosh")

    def tanh(self) -> "Expr":
        """The hyperbolic tangent."""
        return self._math("tanh")

    def degrees(self) -> "Expr":
        """Radians as degrees."""
        return self._math("degrees")

    def radians(self) -> "Expr":
        """Degrees as radians."""
        return self._math("radians")

    def pow(self, exponent: Any) -> "Expr":
        """To the power of ``exponent``."""
        return self.__pow__(exponent)

    def floor(self) -> "Expr":
        """The largest whole number that is not greater."""
        return self._derive(lambda ctx, a: a if t.is_integer(a.type) else ctx.sql(f"floor({a.sql})", a.type))

    def ceil(self) -> "Expr":
        """The smallest whole number that is not less."""
        return self._derive(lambda ctx, a: a if t.is_integer(a.type) else ctx.sql(f"ceil({a.sql})", a.type))

    def round(self, decimals: int = 0, mode: str = "half_to_even") -> "Expr":
        """Rounded to so many places; halves go to the even side, or away from zero."""
        if mode not in ("half_to_even", "half_away_from_zero"):
            raise ProgrammingError(f"mode is half_to_even or half_away_from_zero, not {mode!r}")
        return self._derive(lambda ctx, a: ctx.sql(_round(a, decimals, mode), None if t.is_decimal(a.type) else a.type))

    def clip(self, lower_bound: Any = None, upper_bound: Any = None) -> "Expr":
        """Moved to the nearest bound where it lies outside; NULL stays."""
        made = self
        if lower_bound is not None:
            made = made._f("CASE WHEN {0} < {1} THEN {1} ELSE {0} END", lower_bound)
        if upper_bound is not None:
            made = made._f("CASE WHEN {0} > {1} THEN {1} ELSE {0} END", upper_bound)
        return made

    def replace(self, old: Any, new: Any = None) -> "Expr":
        """Values replaced by a mapping; others stay."""
        mapping = old if isinstance(old, Mapping) else dict(zip(listed(old), listed(new)))
        return self._replaced(mapping, self)

    def replace_strict(self, old: Any, new: Any = None, *, default: Any = None) -> "Expr":
        """Values replaced by a mapping; others become ``default``."""
        mapping = old if isinstance(old, Mapping) else dict(zip(listed(old), listed(new)))
        return self._replaced(mapping, as_operand(default))

    def _replaced(self, mapping: Mapping, otherwise: "Expr") -> "Expr":
        parts = []
        for key, value in mapping.items():
            test = "{0} IS NULL" if key is None else "{0} = " + _escape(q.literal(key)[0])
            parts.append(f"WHEN {test} THEN {_escape(q.literal(value)[0])}")
        return self._f("CASE " + " ".join(parts) + " ELSE {1} END", otherwise)

    def hash(self) -> "Expr":
        """A number from 0 to 2^56 that depends on the value only: ``filter(col.hash() % 100 == 0)``."""
        digits = "(strpos('0123456789abcdef', substr(md5(CAST({0} AS text)), %d, 1)) - 1)"
        parts = [f"{digits % (i + 1)} * {16 ** (13 - i)}" for i in range(14)]
        return self._f("(" + " + ".join(parts) + ")", type="bigint")

    # -- aggregates ----------------------------------------------------------------------------------

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
        return Expr(build, self._out, agg=True, select=self._select, roots=self._roots)

    def null_count(self) -> "Expr":
        """How many rows have no value."""
        def build(ctx: Ctx) -> Sql:
            a = self._build(ctx.plain()).sql
            if ctx.frame:
                return ctx.sql(f"({ctx.count()} - {ctx.count(a)})", "bigint")
            return ctx.sql(f"({modified(ctx, 'count(*)')} - {modified(ctx, f'count({a})')})", "bigint")
        return Expr(build, self._out, agg=True, select=self._select, roots=self._roots)

    def _end(self, order_by: Any, which: str) -> "Expr":
        if order_by is None:
            def missing(ctx: Ctx) -> Sql:
                if ctx.frame:
                    return ctx.call(which + "_value", [self._build(ctx.plain()).sql], ctx=ctx)
                if ctx.order is not None:
                    return ctx.sql(f"{which}_value({self._build(ctx.plain()).sql}) OVER ({ctx.over})")
                raise ProgrammingError(f"rows have no order; {which} needs order_by", hint=f'.{which}(order_by="..")')
            return Expr(missing, self._out, agg=True, select=self._select, roots=self._roots)
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

    def std(self, ddof: int = 1) -> "Expr":
        """The standard deviation, of a sample (``ddof=1``) or of all (``ddof=0``)."""
        return self._aggregate({0: "stddev_pop({x})", 1: "stddev_samp({x})"}[_ddof(ddof)])

    def var(self, ddof: int = 1) -> "Expr":
        """The variance, of a sample (``ddof=1``) or of all (``ddof=0``)."""
        return self._aggregate({0: "var_pop({x})", 1: "var_samp({x})"}[_ddof(ddof)])

    def quantile(self, quantile: float, interpolation: str) -> "Expr":
        """The value below which that share lies; ``interpolation`` must be said, and is ``"linear"``."""
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
        return Expr(build, self._out, agg=True, select=self._select, roots=self._roots)

    def top_k(self, k: int) -> "Expr":
        """The ``k`` greatest values, as a list: of events with their ranks."""
        def build(ctx: Ctx) -> Sql:
            a = self._build(ctx.plain())
            if ctx.frame:
                return ctx.call("top_k", [a.sql], ctx=ctx, number=float(k))
            return ctx.sql(f"(array_agg({a.sql} ORDER BY {a.sql} DESC) FILTER (WHERE {a.sql} IS NOT NULL))[1:{int(k)}]")
        return Expr(build, self._out, agg=True, select=self._select, roots=self._roots)

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
        return Expr(build, self._out, agg=True, select=self._select, roots=self._roots)

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
        """An aggregate over the rows where all predicates are true; ``col.filter(p).sum()`` is ``col.sum().filter(p)``."""
        tests = [as_column(p) for p in predicates]
        if not self._agg:
            return Filtered(self, tests)
        def build(ctx: Ctx) -> Sql:
            parts = [p._build(ctx.plain()).sql for p in tests]
            if ctx.filter:
                parts.append(ctx.filter)
            return self._build(ctx.but(filter=" AND ".join(f"({p})" for p in parts)))
        return Expr(build, self._out, agg=self._agg, select=self._select, window=self._window, roots=self._roots)

    def distinct(self) -> "Expr":
        """An aggregate that takes equal values once."""
        return Expr(lambda ctx: self._build(ctx.but(distinct=True)), self._out, agg=self._agg, select=self._select,
                    roots=self._roots)

    def unique(self) -> "Expr":
        """See ``distinct``."""
        return self.distinct()

    # -- windows -------------------------------------------------------------------------------------

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

        return Expr(build, self._out, select=self._select, window=True, roots=self._roots)

    def _needs_order(self, call: str, what: str, type: Any = None) -> "Expr":
        def build(ctx: Ctx) -> Sql:
            if ctx.order is None:
                raise ProgrammingError(f"rows have no order; {what} needs over(order_by=)",
                                       hint=f'.{what}(..).over("key", order_by="time")')
            a = self._build(ctx.plain())
            return ctx.sql(call.format(x=a.sql, over=f"OVER ({ctx.over})", order=ctx.order), type)
        return Expr(build, self._out, agg=True, select=self._select, roots=self._roots)

    def rank(self, method: str, descending: bool = False) -> "Expr":
        """The place among the rows of the window, from 1; ``method`` is min, dense or ordinal and must be said."""
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
        return Expr(build, self._out, agg=True, select=self._select, roots=self._roots)

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
            return ctx.sql(f"{call.format(x=a.sql)} OVER ({ctx.over} ROWS BETWEEN {frame} AND CURRENT ROW)")
        return Expr(build, self._out, agg=True, select=self._select, roots=self._roots)

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

    # -- namespaces ----------------------------------------------------------------------------------

    @property
    def str(self) -> Any:
        """What can be done with texts."""
        from .namespaces import StringNamespace

        return StringNamespace(self)

    @property
    def dt(self) -> Any:
        """What can be done with times."""
        from .namespaces import TimeNamespace

        return TimeNamespace(self)

    @property
    def list(self) -> Any:
        """What can be done with lists."""
        from .namespaces import ListNamespace

        return ListNamespace(self)

    @property
    def struct(self) -> Any:
        """What can be done with structs."""
        from .namespaces import StructNamespace

        return StructNamespace(self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> "Expr":
        if method != "__call__" or kwargs:
            raise TraceError(f"np.{ufunc.__name__}.{method} cannot be traced", hint="write @ab.udf")
        ops: Mapping[Any, Callable] = {
            "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
            "divide": lambda a, b: a / b, "true_divide": lambda a, b: a / b, "power": lambda a, b: a ** b,
            "minimum": lambda a, b: min_horizontal(a, b), "maximum": lambda a, b: max_horizontal(a, b),
            "absolute": lambda a: a.abs(), "fabs": lambda a: a.abs(), "negative": lambda a: -a,
            "greater": lambda a, b: a > b, "less": lambda a, b: a < b, "equal": lambda a, b: a == b,
            "greater_equal": lambda a, b: a >= b, "less_equal": lambda a, b: a <= b, "not_equal": lambda a, b: a != b,
            "isnan": lambda a: a.is_nan(), "sqrt": lambda a: a.sqrt(), "exp": lambda a: a.exp(),
            "log": lambda a: a.log(), "log10": lambda a: a.log10(), "sin": lambda a: a.sin(), "cos": lambda a: a.cos(),
            "tan": lambda a: a.tan(), "floor": lambda a: a.floor(), "ceil": lambda a: a.ceil(),
            "floor_divide": lambda a, b: a // b, "remainder": lambda a, b: a % b, "sign": lambda a: a.sign(),
        }
        if ufunc.__name__ not in ops:
            raise TraceError(f"np.{ufunc.__name__} cannot be traced", hint="write @ab.udf")
        return ops[ufunc.__name__](*[as_operand(value) for value in inputs])


class Filtered(Expr):
    """Values of the rows for which predicates are true: an aggregate must follow, which then is over these rows."""

    __slots__ = ("_inner", "_tests")

    def __init__(self, inner: Expr, tests: List[Expr]) -> None:
        def build(ctx: Ctx) -> Sql:
            raise ProgrammingError("filter of an expression leaves a column of another length",
                                   hint="aggregate it (.filter(p).sum()), or filter the relation")
        super().__init__(build, inner._out, select=inner._select, roots=True)
        self._inner, self._tests = inner, tests


def _aggregate_filtered(name: str) -> Callable[..., Expr]:
    def method(self: Filtered, *arguments: Any, **named_arguments: Any) -> Expr:
        return getattr(self._inner, name)(*arguments, **named_arguments).filter(*self._tests)
    method.__doc__ = getattr(Expr, name).__doc__
    return method


for _name in ("sum mean min max count len n_unique null_count first last any all median std var quantile percentile_cont "
              "percentile_disc product single sum_squares avg_squares top_k min_by max_by implode string_agg bit_and "
              "bit_or").split():
    setattr(Filtered, _name, _aggregate_filtered(_name))


class Names:
    """Names made of the column's own."""

    def __init__(self, expr: Expr) -> None:
        self._expr = expr

    def _with(self, f: Callable[[str], str]) -> Expr:
        expr = self._expr
        made = Expr(expr._build, None, agg=expr._agg, select=expr._select, window=expr._window, roots=expr._roots)
        if expr._select is None:
            return made.alias(f(expr._out or DEFAULT_NAME))
        made._value = f
        return made

    def prefix(self, prefix: str) -> Expr:
        """The name with a prefix."""
        return self._with(lambda name: prefix + name)

    def suffix(self, suffix: str) -> Expr:
        """The name with a suffix."""
        return self._with(lambda name: name + suffix)

    def keep(self) -> Expr:
        """The name as it was."""
        return self._expr

    def map(self, f: Callable[[str], str]) -> Expr:
        """The name by a function."""
        return self._with(f)


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


_OF_EVENTS = re.compile(r"(\w+)\((?:(\d+\.?\d*(?:e-?\d+)?)\) WITHIN GROUP|(\*)|)")


def _of_events(ctx: Ctx, call: str, argument: str, is_ordered: bool) -> Sql:
    """An aggregate of events: a call by name, which the verb makes."""
    found = _OF_EVENTS.match(call)
    if found is None or found[1] in ("string_agg", "bit_and", "bit_or"):
        raise NotSupportedError(f"{call.split('(')[0]} is no aggregate of events", hint="write @ab.udaf")
    if is_ordered:
        raise NotSupportedError(f"{found[1]} of events goes by when they begin", hint="leave order_by out")
    return ctx.call(found[1], [] if found[3] else [argument], ctx=ctx, number=float(found[2]) if found[2] else None)


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


def _add(ctx: Ctx, a: Sql, b: Sql) -> Sql:
    if t.is_text(a.type) or t.is_text(b.type):
        if not (t.is_text(a.type) and t.is_text(b.type)):
            raise TypeMismatch(f"{a.type} + {b.type} is not defined", hint=".cast(str) one side, or ab.format")
        return ctx.sql(f"({a.sql} || {b.sql})", "text")
    return ctx.sql(f"({a.sql} + {b.sql})", "double precision" if "double precision" in (a.type, b.type) and t.is_number(a.type) and t.is_number(b.type) else None)


def _as_float(a: Sql) -> str:
    return a.sql if t.is_float(a.type) else f"CAST({a.sql} AS double precision)"


def _divide(ctx: Ctx, a: Sql, b: Sql) -> Sql:
    if t.is_integer(a.type) and t.is_integer(b.type):
        return ctx.sql(f"(CAST({a.sql} AS double precision) / {b.sql})", "double precision")
    return ctx.sql(f"({a.sql} / {b.sql})", None)


def _floor_divide(ctx: Ctx, a: Sql, b: Sql) -> Sql:
    if t.is_integer(a.type) and t.is_integer(b.type):
        wrong = f"CASE WHEN {a.sql} % {b.sql} <> 0 AND ({a.sql} < 0) <> ({b.sql} < 0) THEN 1 ELSE 0 END"
        return ctx.sql(f"({a.sql} / {b.sql} - {wrong})", "bigint")
    return ctx.sql(f"floor({a.sql} / {b.sql})", None)


def _modulo(ctx: Ctx, a: Sql, b: Sql) -> Sql:
    wrong = f"CASE WHEN {a.sql} % {b.sql} <> 0 AND ({a.sql} < 0) <> ({b.sql} < 0) THEN {b.sql} ELSE 0 END"
    return ctx.sql(f"({a.sql} % {b.sql} + {wrong})", "bigint" if t.is_integer(a.type) and t.is_integer(b.type) else None)


def _power(ctx: Ctx, a: Sql, b: Sql) -> Sql:
    whole = t.is_integer(a.type) and t.is_integer(b.type)
    if whole and b.sql.isdigit() and 1 <= int(b.sql) <= 16:
        return ctx.sql("(" + " * ".join([a.sql] * int(b.sql)) + ")", "bigint")
    power = f"power({_as_float(a)}, {_as_float(b)})"
    return ctx.sql(f"CAST({power} AS bigint)", "bigint") if whole else ctx.sql(power, "double precision")


def _compared(ctx: Ctx, op: str, a: Sql, b: Sql) -> Sql:
    return ctx.sql(f"({a.sql} {op} {b.sql})", "boolean")


def _logic(ctx: Ctx, word: str, sign: str, a: Sql, b: Sql) -> Sql:
    if a.type in ("boolean", "null") or b.type == "boolean":
        return ctx.sql(f"({a.sql} {word} {b.sql})", "boolean")
    if not (t.is_integer(a.type) and t.is_integer(b.type)):
        raise TypeMismatch(f"{sign} of {a.type} and {b.type} is not defined", hint="write brackets: (a > 1) & (b > 2)")
    return ctx.sql(f"({a.sql} {sign} {b.sql})", a.type)


def _cast(a: Sql, wanted: str, strict: bool) -> str:
    word = "CAST" if strict else "TRY_CAST"
    if t.is_integer(wanted):
        if t.is_float(a.type) or t.is_decimal(a.type):
            return f"{word}(trunc({a.sql}) AS {wanted})"
        if a.type == "boolean":
            return f"CASE WHEN {a.sql} THEN 1 WHEN NOT {a.sql} THEN 0 END"
    if wanted == "boolean" and t.is_number(a.type):
        return f"({a.sql} <> 0)"
    if t.is_float(wanted) and a.type == "boolean":
        return f"CAST(CASE WHEN {a.sql} THEN 1 WHEN NOT {a.sql} THEN 0 END AS {wanted})"
    if wanted == "text" and t.is_float(a.type):
        return (f"CASE WHEN {a.sql} = trunc({a.sql}) AND abs({a.sql}) < 1e15 THEN CAST({a.sql} AS text) || '.0' "
                f"ELSE CAST({a.sql} AS text) END")
    if wanted == "text" and a.type == "timestamp":
        return f"to_char({a.sql}, 'YYYY-MM-DD HH24:MI:SS.US')"
    return f"{word}({a.sql} AS {wanted})"


def _round(a: Sql, decimals: int, mode: str) -> str:
    if t.is_integer(a.type):
        return a.sql
    if t.is_decimal(a.type):
        if mode == "half_away_from_zero":
            return f"round({a.sql}, {decimals})"
        scale = 10 ** decimals
        y = f"({a.sql} * {scale})"
        return (f"round(CASE WHEN abs({y} - trunc({y})) = 0.5 THEN 2 * round({y} / 2, 0) ELSE round({y}, 0) END / {scale}, {decimals})")
    y = a.sql if decimals == 0 else f"({a.sql} * CAST('{10.0 ** decimals!r}' AS double precision))"
    if mode == "half_to_even":
        rounded = (f"CASE WHEN abs({y} - trunc({y})) = 0.5 THEN 2 * trunc(({y} + sign({y}) * 0.5) / 2) ELSE round({y}) END")
        # (Of two neighbours of a half the even one: half of the one away from zero, cut, and doubled.)
        rounded = f"CASE WHEN abs({y} - trunc({y})) = 0.5 THEN 2 * round({y} / 2) ELSE round({y}) END"
    else:
        rounded = f"(sign({y}) * floor(abs({y}) + 0.5))"
    return rounded if decimals == 0 else f"({rounded} / CAST('{10.0 ** decimals!r}' AS double precision))"


# -- making expressions ------------------------------------------------------------------------------


def col(name: Any, *names: str) -> Expr:
    """A column, or several that are treated alike.

    >>> import anabranch as ab
    >>> ab.col("price") * 2
    <Expr ("price" * 2)>
    """
    all_names = list(name) if isinstance(name, (list, tuple)) else [name, *names]
    if all_names == ["*"]:
        return all()
    if any_types(all_names):
        from .selectors import by_dtype

        return by_dtype(*all_names)
    if len(all_names) == 1:
        return Expr(lambda ctx: ctx.col(name if isinstance(name, str) else all_names[0]), all_names[0], roots=True)

    def select(columns: Mapping) -> List[str]:
        for one in all_names:
            if one not in columns:
                raise unknown_column(one, columns)
        return all_names

    return many(select)


def any_types(values: Iterable) -> bool:
    """Whether the values are types, not names."""
    return builtin_any(not isinstance(v, str) for v in values)


def many(select: Callable[[Mapping], List[str]]) -> Expr:
    """An expression for each of the columns that ``select`` names."""
    def build(ctx: Ctx) -> Sql:
        if ctx.current is None:
            raise ProgrammingError("several columns stand where one is wanted", hint="name one column")
        return ctx.col(ctx.current)
    return Expr(build, None, select=select, roots=True)


def lit(value: Any, dtype: Any = None) -> Expr:
    """A constant.

    >>> import anabranch as ab
    >>> ab.lit("x")
    <Expr 'x'>
    """
    if isinstance(value, Expr):
        return value
    text, of = q.literal(value)
    if dtype is not None:
        of = t.sql_type(dtype)
        text = f"CAST({text} AS {of})"
    made = Expr(lambda ctx: ctx.sql(text, None if of == "null" else of), DEFAULT_NAME)
    made._is_lit = True
    return made


def as_operand(value: Any) -> Expr:
    """An operand: a text is a constant."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, When):
        return value.end()
    return lit(value)


def as_column(value: Any) -> Expr:
    """An argument: a text names a column."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, When):
        return value.end()
    if isinstance(value, str):
        return col(value)
    return lit(value)


as_column_or_lit = as_column


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
                agg=builtin_any(e._agg for e in exprs), roots=builtin_any(e._roots for e in exprs))


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


class When:
    """``ab.when(..).then(..)``, which ends with ``.otherwise(..)`` or else is NULL."""

    def __init__(self, cases: list, test: Optional[Expr]) -> None:
        self._cases, self._test = cases, test

    def then(self, value: Any) -> "When":
        """The value where the condition is true; a text names a column, as in Polars."""
        if self._test is None:
            raise ProgrammingError("then stands after when")
        return When(self._cases + [(self._test, as_column(value))], None)

    def when(self, *predicates: Any) -> "When":
        """Another condition, for rows where the ones before are not true."""
        return When(self._cases, _both(predicates))

    def otherwise(self, value: Any) -> Expr:
        """The value of all other rows."""
        return self._made(as_column(value))

    def end(self) -> Expr:
        """NULL for all other rows."""
        return self._made(None)

    def alias(self, name: str) -> Expr:
        """The same under another name."""
        return self.end().alias(name)

    def _made(self, otherwise: Optional[Expr]) -> Expr:
        parts = [part for case in self._cases for part in case]
        def text(ctx: Ctx, *made: Sql) -> Sql:
            pairs = [f"WHEN {made[2 * i].sql} THEN {made[2 * i + 1].sql}" for i in range(len(self._cases))]
            last = f" ELSE {made[-1].sql}" if otherwise is not None else ""
            return ctx.sql("CASE " + " ".join(pairs) + last + " END")
        rest = parts[1:] + ([otherwise] if otherwise is not None else [])
        return parts[0]._derive(text, *rest, out=self._cases[0][1]._out)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.end(), name)


def when(*predicates: Any) -> When:
    """A value by conditions: ``ab.when(p).then(x).otherwise(y)``."""
    return When([], _both(predicates))


def _both(predicates: Iterable[Any]) -> Expr:
    parts = [as_column(p) for p in predicates]
    made = parts[0]
    for part in parts[1:]:
        made = made & part
    return made


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
            raise DuplicateName(f'column "{name}" is there twice', hint=f'.alias("..") gives one another name')
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


import builtins as _builtins  # noqa: E402

builtin_any = _builtins.any
