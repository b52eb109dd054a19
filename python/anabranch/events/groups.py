"""Groups of events: aggregates over what is in force, and queries for each group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, List, Sequence, Tuple

from .. import sqltext as q
from ..errors import GroupingError, ProgrammingError
from ..expr import Expr, check_names, expand, listed
from .base import Base
from .context import _AggregateCtx

if TYPE_CHECKING:
    from .whole import Events


class Groups(Base):
    """Verbs that treat events with equal keys together."""

    def group_by(self, *keys: Any, **named_keys: Any) -> "EventGroups":
        """Events with equal keys together; ``.agg(..)`` follows."""
        return EventGroups(self, self._items(keys, named_keys))

    def agg(self, *aggs: Any, **named_aggs: Any) -> "Events":
        """Snapshot aggregates over all events: one event for each piece of time in which there are
        any."""
        return EventGroups(self, []).agg(*aggs, **named_aggs)

    def group_apply(self, *keys_and_body: Any) -> "Events":
        """A query for each group, as if there were no others: ``group_apply("k", lambda g:
        g.session(10))``."""
        keys, body = _body(keys_and_body)
        ctx = self._ctx()
        names, texts = self._texts([self._expr(k) for k in keys], ctx)
        made = self._frame.group_apply(names, texts, lambda g: _framed(body(self._in_group(g, names))), ctx.functions)
        return self._new(made)

    def group_apply_with(self, other: "Events", *keys_and_body: Any) -> "Events":
        """A query of two inputs for each pair of groups with equal keys: the body takes both."""
        keys, body = _body(keys_and_body)
        self._together(other)
        ctx = self._ctx()
        names, texts = self._texts([self._expr(k) for k in keys], ctx)
        inner = lambda a, b: _framed(body(self._in_group(a, names), other._in_group(b, names)))  # noqa: E731
        return self._new(self._frame.group_apply_with(other._frame, names, texts, inner, ctx.functions), other)


class EventGroups:
    """Groups of events: ``agg`` gives an event for each piece of time in which a group has rows."""

    def __init__(self, events: "Events", keys: List[Expr]) -> None:
        self._events, self._keys = events, keys

    def agg(self, *aggs: Any, **named_aggs: Any) -> "Events":
        """The keys, then the aggregates over the rows in force."""
        events = self._events
        made = events._items(aggs, named_aggs)
        ctx = _AggregateCtx(events, self._keys)
        names = [name for name, _ in ctx.keys]
        columns: List[Tuple[str, str]] = []
        for e in made:
            if not e._agg and e._roots and e._out not in names:
                raise GroupingError(f'column "{e._out}" is not aggregated', hint=f'ab.col("{e._out}").sum(), .max(), ..')
            columns += [(name, sql.sql) for name, sql in expand(e, ctx)]
        check_names([*names, *[name for name, _ in columns]])
        frame = ctx.aggregated()
        outputs = [q.name(n) for n in names] + [sql for _, sql in columns]
        shown = names + [n for n, _ in columns]
        if [(n, q.name(n)) for n, _ in frame.columns()] == list(zip(shown, outputs)):
            return events._new(frame)
        return events._new(frame.select(shown, outputs, ctx.functions))


def _body(keys_and_body: Sequence[Any]) -> Tuple[List[Any], Callable]:
    if len(keys_and_body) < 2 or not callable(keys_and_body[-1]):
        raise ProgrammingError("group_apply needs keys, then a function of a group",
                               hint='group_apply("k", lambda g: g.session(10))')
    return [k for one in keys_and_body[:-1] for k in listed(one)], keys_and_body[-1]


def _framed(made: Any) -> Any:
    if not isinstance(made, Base):
        raise ProgrammingError(f"the query of a group gave {type(made).__name__}, not events",
                               hint="a lambda returns its result; def needs return")
    return made._frame
