"""Times of events: the bounds of a lifetime and of a window, and times given as ticks."""

from __future__ import annotations

import datetime as _dt
from typing import Any

from .. import sqltext as q
from ..errors import ProgrammingError
from ..expr import Ctx, Expr, Sql


FOREVER = 2**63 - 1


def _bound(name: str, out: str) -> Expr:
    def build(ctx: Ctx) -> Sql:
        if not ctx.frame:
            raise ProgrammingError(f"ab.{out}() is about events", hint="name the column with the time")
        ticks = q.name(name)
        if ctx.frame == "ticks" or not getattr(ctx, "instants", False):
            return ctx.sql(ticks, "bigint")
        return ctx.sql(f"(TIMESTAMP '1970-01-01 00:00:00' + {ticks} * INTERVAL '1 microsecond')", "timestamp")
    return Expr(build, out, roots=True)


def start() -> Expr:
    """When the event begins."""
    return _bound("@start", "start")


def end() -> Expr:
    """When the event ends; NULL when that was not known as it began."""
    return _bound("@end", "end")


def window_start() -> Expr:
    """Where the window begins that the event's results are about: exclusive for windows closed on
    the right."""
    return _bound("@window_start", "window_start")


def window_end() -> Expr:
    """Where the window ends that the event's results are about: exclusive for windows closed on the
    left."""
    return _bound("@window_end", "window_end")


def instant(value: Any, instants: bool) -> int:
    """A time in ticks: a number, or a datetime on a timeline of timestamps."""
    if isinstance(value, _dt.datetime):
        if not instants:
            raise ProgrammingError("this timeline is of numbers", hint="give a number of ticks")
        if value.tzinfo is not None:
            value = value.astimezone(_dt.timezone.utc).replace(tzinfo=None)
        return (value - _dt.datetime(1970, 1, 1)) // _dt.timedelta(microseconds=1)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ProgrammingError(f"{value!r} is no time", hint="a number of ticks, or a datetime")
    return value
