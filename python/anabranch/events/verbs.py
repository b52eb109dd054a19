"""Verbs of one stream: rows, lifetimes, windows, neighbours, patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from .. import _native
from .. import sqltext as q
from ..errors import ProgrammingError, TypeMismatch, unknown_column
from ..expr import Ctx, Expr, When, as_column, col
from ..patterns import Pattern
from ..types import DataType
from .base import Base

if TYPE_CHECKING:
    from .whole import Events


class Verbs(Base):
    """Verbs that take one stream of events."""

    # -- rows ----------------------------------------------------------------------------------

    def filter(self, *predicates: Any, **equal: Any) -> "Events":
        """The events for which all predicates are true."""
        tests = [self._expr(p) for p in predicates] + [col(n) == v for n, v in equal.items()]
        ctx = self._ctx()
        _, texts = self._texts([t.alias(f"p{i}") for i, t in enumerate(tests)], ctx)
        return self._new(self._frame.filter(" AND ".join(texts) or "true", ctx.functions))

    def select(self, *exprs: Any, **named_exprs: Any) -> "Events":
        """These columns, computed. ``ab.start()``, ``ab.end()`` and the bounds of windows can be
        among them."""
        ctx = self._ctx()
        names, texts = self._texts(self._items(exprs, named_exprs), ctx)
        return self._new(self._frame.select(names, texts, ctx.functions))

    def with_columns(self, *exprs: Any, **named_exprs: Any) -> "Events":
        """All columns, and these; one of a name that is there replaces it."""
        ctx = self._ctx()
        names, texts = self._texts(self._items(exprs, named_exprs), ctx)
        return self._new(self._frame.with_columns(names, texts, ctx.functions))

    def explode(self, column: str) -> "Events":
        """An event for each element of a list; events without elements are left out."""
        if column not in self._known:
            raise unknown_column(column, self._known)
        return self._new(self._frame.explode(column))

    def union(self, *others: "Events") -> "Events":
        """The events of all; columns by place."""
        made = self
        for other in others:
            made = made._new(made._frame.union(made._together(other)._frame), other)
        return made

    def distinct(self) -> "Events":
        """Each distinct row once, while there is one."""
        return self._verb("distinct")

    # -- lifetimes -----------------------------------------------------------------------------

    def shift(self, duration: Any) -> "Events":
        """Lifetimes moved; back, for negative durations."""
        return self._verb("shift", self._span(duration))

    def alter_duration(self, duration: Any) -> "Events":
        """Every event lasts so long from its start (None: for ever): a sliding window under an
        aggregate.

        An expression gives each event a duration of its own, in ticks; it may read ``ab.start()``
        and ``ab.end()``.
        """
        if duration is None:
            return self._verb("alter_duration", None)
        if isinstance(duration, (Expr, When)) or callable(duration):
            return self.alter_lifetime(None, duration)
        return self._verb("alter_duration", self._span(duration))

    def alter_lifetime(self, start: Any = None, duration: Any = None) -> "Events":
        """New starts, and durations: expressions in ticks. Without a duration events keep
        theirs."""
        ctx = self._ctx(ticks=True)
        def text(value: Any) -> Optional[str]:
            if value is None:
                return None
            if isinstance(value, (Expr, When)) or callable(value):
                return self._expr(value)._build(ctx).sql
            return str(self._span(value))
        new_start, new_duration = text(start), text(duration)
        return self._new(self._frame.alter_lifetime(new_start, new_duration, ctx.functions))

    def extend(self, duration: Any) -> "Events":
        """Ends moved later, or earlier for negative durations; what that leaves nothing of is
        gone."""
        return self._verb("extend", self._span(duration))

    def clip_duration(self, limit: Any) -> "Events":
        """Lifetimes of at most so long."""
        return self._verb("clip_duration", self._span(limit))

    def point_at_end(self) -> "Events":
        """The end of each event, as a point."""
        return self._verb("point_at_end")

    def chop(self, period: Any, offset: Any = 0) -> "Events":
        """Lifetimes cut at every ``offset + k * period``."""
        return self._verb("chop", self._span(period), self._span(offset))

    def stitch(self) -> "Events":
        """Events of equal rows that touch become one."""
        return self._verb("stitch")

    def session(self, timeout: Any, maximum: Any = None) -> "Events":
        """Every event lasts until its session ends: ``timeout`` after the session's last event."""
        return self._verb("session", self._span(timeout), None if maximum is None else self._span(maximum))

    # -- windows -------------------------------------------------------------------------------

    def tumbling(self, size: Any, offset: Any = 0) -> "Events":
        """Windows closed on the right, one after the other, each reported when it is over."""
        return self.hopping(size, size, offset)

    def hopping(self, size: Any, period: Any, offset: Any = 0) -> "Events":
        """Windows of ``size`` at every ``period``, closed on the right, each reported when it is
        over."""
        return self._verb("hopping", self._span(size), self._span(period), self._span(offset))

    def repetitive_hopping(self, size: Any, period: Any, offset: Any = 0) -> "Events":
        """Hopping windows with an event for every window that an event lies in."""
        return self._verb("repetitive_hopping", self._span(size), self._span(period), self._span(offset))

    def quantize(self, size: Any, period: Any = None, offset: Any = 0) -> "Events":
        """Windows closed on the left, reported from their start while they fill: those of SQL."""
        return self._verb("quantize", self._span(size), self._span(size if period is None else period), self._span(offset))

    def quantize_progressive(self, size: Any, period: Any, progress: Any, offset: Any = 0) -> "Events":
        """As ``quantize``, with results every ``progress`` inside a window."""
        return self._verb("quantize_progressive", self._span(size), self._span(period), self._span(progress), self._span(offset))

    def emit(self, rule: Any) -> "Events":
        """When windows report, said right after them: ``"on_close"``, ``"early"`` (every change),
        or every so often."""
        if rule in ("on_close", "early"):
            return self._verb("emit_" + rule)
        return self._verb("emit_progressive", self._span(rule))

    # -- neighbours and patterns ---------------------------------------------------------------

    def consecutive_pairs(self) -> "Events":
        """Every event with the next one, as points at the second."""
        return self._verb("consecutive_pairs")

    def followed_by_immediate(self, first: Any, second: Any, within: Any = None) -> "Events":
        """An event for which ``first`` holds with the next one, if ``second`` holds for that."""
        ctx = self._ctx()
        a, b = (self._expr(e)._build(ctx).sql for e in (first, second))
        limit = None if within is None else self._span(within)
        return self._new(self._frame.followed_by_immediate(a, b, limit, ctx.functions))

    def sessionize(self, *keys: Any, opens: Any, closes: Any) -> "Events":
        """Every event that opens a session of its key with the next one that closes it."""
        ctx = self._ctx()
        names, texts = self._texts([self._expr(k) for k in keys], ctx)
        a, b = (self._expr(e)._build(ctx).sql for e in (opens, closes))
        return self._new(self._frame.sessionize(names, texts, a, b, ctx.functions))

    def detect(self, pattern: Pattern) -> "Events":
        """Where a pattern is met: an event from the match's last event until the match ends, with
        the registers."""
        if not isinstance(pattern, Pattern):
            raise ProgrammingError(f"{type(pattern).__name__} is no pattern", hint="ab.Pattern.event(..).then(..)")
        registers = {name: value for name, value in pattern._registers}
        typed = {n: _type_of_constant(n, v) for n, v in registers.items()}
        ctx = self._ctx(more={reg_name(n): (reg_name(n), of) for n, of in typed.items()})
        initial = [as_column(v)._build(ctx).sql if isinstance(v, Expr) else q.literal(v)[0] for v in registers.values()]
        names, types = list(typed), [str(of) for of in typed.values()]
        like = _native.Rows.of_types(names, types) if names else _native.Rows.from_columns([], [])
        within = None if pattern._within is None else self._span(pattern._within, "the duration of a pattern")
        made = self._frame.detect(pattern._spec(ctx), like, initial, within, sorted(pattern._flags), ctx.functions)
        return self._new(made)


def _type_of_constant(name: str, value: Any) -> DataType:
    if isinstance(value, (Expr, When)):
        made = as_column(value)._build(Ctx({}, q.name, lambda text: "bigint"))
        return DataType(made.type)
    of = q.literal(value)[1]
    if of == "null":
        raise TypeMismatch(f'register "{name}" begins as NULL, of no type', hint=f'register("{name}", ab.lit(None, int))')
    return DataType(of)


def reg_name(name: str) -> str:
    """The name that expressions have for a register."""
    return f"@register {name}"
