"""Operators of Python between expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import ProgrammingError, TraceError
from .arithmetic import _add, _compared, _divide, _floor_divide, _logic, _modulo, _power
from .node import Node, as_operand

if TYPE_CHECKING:
    from .whole import Expr


class Operators(Node):
    """What ``+``, ``==``, ``&`` and the like mean."""

    __slots__ = ()

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
