"""Methods that compute a value of each row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Mapping

from .. import sqltext as q
from .. import types as t
from ..errors import ProgrammingError
from .arithmetic import _as_float, _cast, _round
from .context import _escape, listed
from .node import Node, as_column_or_lit, as_operand

if TYPE_CHECKING:
    from .whole import Expr


class Values(Node):
    """A value of each row: casts, tests, NULL, mathematics, rounding."""

    __slots__ = ()

    def cast(self, to: Any, *, strict: bool = True) -> "Expr":
        """The values as another type. A value that does not fit is a row error, or NULL if not
        ``strict``."""
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
        if isinstance(values, Node):
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
        """A number from 0 to 2^56 that depends on the value only: ``filter(col.hash() % 100 ==
        0)``."""
        digits = "(strpos('0123456789abcdef', substr(md5(CAST({0} AS text)), %d, 1)) - 1)"
        parts = [f"{digits % (i + 1)} * {16 ** (13 - i)}" for i in range(14)]
        return self._f("(" + " + ".join(parts) + ")", type="bigint")
