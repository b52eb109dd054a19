"""Aggregates as verbs over events call them."""

from __future__ import annotations

import re

from ..errors import NotSupportedError
from .context import Ctx, Sql


_OF_EVENTS = re.compile(r"(\w+)\((?:(\d+\.?\d*(?:e-?\d+)?)\) WITHIN GROUP|(\*)|)")


def _of_events(ctx: Ctx, call: str, argument: str, is_ordered: bool) -> Sql:
    """An aggregate of events: a call by name, which the verb makes."""
    found = _OF_EVENTS.match(call)
    if found is None or found[1] in ("string_agg", "bit_and", "bit_or"):
        raise NotSupportedError(f"{call.split('(')[0]} is no aggregate of events", hint="write @ab.udaf")
    if is_ordered:
        raise NotSupportedError(f"{found[1]} of events goes by when they begin", hint="leave order_by out")
    return ctx.call(found[1], [] if found[3] else [argument], ctx=ctx, number=float(found[2]) if found[2] else None)
