"""Patterns of events: parts that follow each other, with a register that is carried along."""

from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, Optional, Sequence, Tuple

from . import sqltext as q
from .errors import ProgrammingError, unknown_column
from .expr import Ctx, Expr, Sql, When, as_column
from .tracing import Row, trace

__all__ = ["Pattern", "reg"]


def reg(name: str) -> Expr:
    """A register, in the expressions of a pattern."""
    def build(ctx: Ctx) -> Sql:
        column = f"@register {name}"
        if column not in ctx.columns:
            known = [c[len("@register "):] for c in ctx.columns if c.startswith("@register ")]
            error = unknown_column(name, known)
            error.message = f'the pattern has no register "{name}"'
            error.hint = error.hint if known else f'.register("{name}", 0) declares it'
            raise error
        return ctx.sql(q.name(column), ctx.columns[column])
    return Expr(build, name, roots=True)


class Pattern:
    """A part of a pattern, or all of it. Immutable; each method gives a new one.

    >>> import anabranch as ab
    >>> fall = ab.Pattern.event(ab.col("x") < 0)
    >>> dip = fall.plus().then(ab.Pattern.event(ab.col("x") > 0)).register("n", 0).within(10)
    >>> e = ab.Events.input("in", {"x": int, "at": int}, time="at")
    >>> e.detect(dip).run({"in": [(-1, 1), (2, 2)]}).fetchall()
    [(2, 11, 0)]
    """

    __slots__ = ("_part", "_registers", "_within", "_flags")

    def __init__(self, part: Any, registers: Tuple = (), within: Any = None, flags: FrozenSet[str] = frozenset()) -> None:
        self._part, self._registers, self._within, self._flags = part, registers, within, flags

    @staticmethod
    def event(condition: Any) -> "Pattern":
        """One event that meets a condition, which may read the register. Several events at one time
        are none."""
        return Pattern(("event", condition, ()))

    @staticmethod
    def any_event() -> "Pattern":
        """One event, whatever it is."""
        return Pattern(("any_event", None, ()))

    @staticmethod
    def any_of(condition: Any) -> "Pattern":
        """All events at one time, some of which meets the condition."""
        return Pattern(("any_of", condition, ()))

    @staticmethod
    def all_of(condition: Any) -> "Pattern":
        """All events at one time, each of which meets the condition."""
        return Pattern(("all_of", condition, ()))

    @staticmethod
    def none_of(condition: Any) -> "Pattern":
        """All events at one time, none of which meets the condition."""
        return Pattern(("none_of", condition, ()))

    @staticmethod
    def sequence(*parts: "Pattern") -> "Pattern":
        """One part after another; nothing may lie between them."""
        return _joined("sequence", parts)

    @staticmethod
    def any_part(*parts: "Pattern") -> "Pattern":
        """Any one of these parts."""
        return _joined("any_part", parts)

    def then(self, following: "Pattern") -> "Pattern":
        """This, then ``following``."""
        return Pattern.sequence(self, following)

    def or_(self, other: "Pattern") -> "Pattern":
        """This, or ``other``; ``p | q`` is the same."""
        return Pattern.any_part(self, other)

    __or__ = or_

    def star(self) -> "Pattern":
        """Any number of times, also none."""
        return self.repeat(0)

    def plus(self) -> "Pattern":
        """At least once."""
        return self.repeat(1)

    def optional(self) -> "Pattern":
        """Once or not at all."""
        return self.repeat(0, 1)

    def repeat(self, min: int, max: Optional[int] = None) -> "Pattern":  # noqa: A002
        """At least ``min`` times, and at most ``max`` times if that is given."""
        if min < 0 or (max is not None and max < min):
            raise ProgrammingError(f"a part cannot be repeated {min} to {max} times", sqlstate="22023")
        return self._with(("repeat", self._part, min, max))

    def set(self, name: str, value: Any) -> "Pattern":
        """Where this part is met, a register becomes ``value``, which may read the event and the
        registers."""
        return self._with(_set(self._part, name, value))

    def register(self, name: str, initial: Any) -> "Pattern":
        """A register and its value at the start of a match."""
        return Pattern(self._part, self._registers + ((name, initial),), self._within, self._flags)

    def within(self, duration: Any) -> "Pattern":
        """Matches end so long after their first event, whether they are complete or not."""
        return Pattern(self._part, self._registers, duration, self._flags)

    def non_overlapping(self) -> "Pattern":
        """A match begins only when none is in progress in its group."""
        return Pattern(self._part, self._registers, self._within, self._flags | {"non_overlapping"})

    def in_order_of_arrival(self) -> "Pattern":
        """Events at one time are a sequence, in the order in which they came."""
        return Pattern(self._part, self._registers, self._within, self._flags | {"in_order_of_arrival"})

    def _with(self, part: Any) -> "Pattern":
        return Pattern(part, self._registers, self._within, self._flags)

    def _spec(self, ctx: Ctx) -> Any:
        """The pattern for the native layer, with expressions as SQL."""
        def text(value: Any) -> str:
            if callable(value) and not isinstance(value, (Expr, When, str)):
                value = trace(value, Row({n: of for n, of in ctx.columns.items() if not n.startswith("@")}, lambda n: as_column(n)))
            return as_column(value)._build(ctx).sql
        def spec(part: Any) -> Any:
            kind = part[0]
            if kind in ("sequence", "any_part"):
                return (kind, [spec(p) for p in part[1]])
            if kind == "repeat":
                return (kind, spec(part[1]), part[2], part[3])
            return (kind, None if part[1] is None else text(part[1]), [(n, text(v)) for n, v in part[2]])
        return spec(self._part)


def _set(part: Any, name: str, value: Any) -> Any:
    kind = part[0]
    if kind in ("sequence", "any_part"):
        return (kind, tuple(_set(p, name, value) for p in part[1]))
    if kind == "repeat":
        return (kind, _set(part[1], name, value), part[2], part[3])
    return (kind, part[1], part[2] + ((name, value),))


def _joined(kind: str, parts: Sequence[Pattern]) -> Pattern:
    for part in parts:
        if not isinstance(part, Pattern):
            raise ProgrammingError(f"{type(part).__name__} is no part of a pattern", hint="ab.Pattern.event(..)")
    registers: Dict[str, Any] = {}
    within, flags = None, frozenset()
    for part in parts:
        registers.update(part._registers)
        within = part._within if part._within is not None else within
        flags = flags | part._flags
    return Pattern((kind, tuple(p._part for p in parts)), tuple(registers.items()), within, flags)
