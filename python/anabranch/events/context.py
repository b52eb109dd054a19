"""What expressions over events are written for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .. import _native
from .. import sqltext as q
from ..expr import Ctx, Expr, Sql
from ..types import DataType


if TYPE_CHECKING:
    from .base import Base


class _FrameCtx(Ctx):
    """What an expression over events is written for; it notes the functions that are called."""

    __slots__ = ("_events", "_used", "instants")

    def __init__(self, events: "Base", ticks: bool, more: Mapping[str, Tuple[str, DataType]]) -> None:
        self._events = events
        self._used: Dict[str, Tuple[Any, Any]] = {}
        self.instants = events._instants
        columns = {**events._known, **{n: of for n, (_, of) in more.items()}}
        types = [(n, str(of)) for n, of in more.items()]
        super().__init__(columns, q.name, lambda text: self._type(text, types))
        self.frame = "ticks" if ticks else "events"  # type: ignore[assignment]
        self.register = self._registered

    def _type(self, text: str, more: Sequence[Tuple[str, str]]) -> str:
        like = _native.Rows.of_types([n for n, _ in more], [of for _, of in more]) if more else None
        return self._events._frame.type_of(text, self.functions, like)

    def _registered(self, function: Any) -> str:
        name = f"_py_{function.name}_{id(function):x}"
        if name not in self._used:
            self._used[name] = (function, function._native_for(_Types))
        return name

    @property
    def functions(self) -> List[Tuple[str, Any]]:
        """Functions that the expressions call, by name."""
        return [(name, native) for name, (_, native) in self._used.items()]

    def but(self, **changes: Any) -> Ctx:
        other = _FrameCtx.__new__(type(self))
        for slots in (kind.__slots__ for kind in type(self).__mro__ if hasattr(kind, "__slots__")):
            for slot in slots:
                setattr(other, slot, changes.get(slot, getattr(self, slot)))
        return other


class _AggregateCtx(_FrameCtx):
    """What aggregates of events are written for: calls are noted, and stand for columns of the
    verb's result."""

    __slots__ = ("keys", "_calls")

    def __init__(self, events: "Base", keys: Sequence[Expr]) -> None:
        super().__init__(events, False, {})
        self._calls: Dict[Any, str] = {}
        plain = _FrameCtx(events, False, {})
        plain._used = self._used
        names, texts = events._texts(keys, plain)
        self.keys = list(zip(names, texts))
        self.call = self._called
        self.ask = self._typed

    def _called(self, function: str, arguments: Sequence[str], *, ctx: Ctx, number: Optional[float] = None,
                type: Any = None, user: Any = None) -> Sql:
        key = (function, tuple(arguments), ctx.filter, ctx.distinct, number, user)
        if key not in self._calls:
            self._calls[key] = f"_agg{len(self._calls)}"
        return self.sql(q.name(self._calls[key]), type)

    def aggregated(self) -> Any:
        """The frame of the aggregates that were called so far."""
        calls = []
        for (function, arguments, filter_, distinct, number, user), name in self._calls.items():
            native = None if user is None else user._native_for(_Types)
            calls.append((name, function, list(arguments), filter_, distinct, number, native))
        names, texts = [n for n, _ in self.keys], [t for _, t in self.keys]
        return self._events._frame.aggregate(names, texts, calls, self.functions)

    def _typed(self, text: str) -> str:
        if any(q.name(name) in text for name in self._calls.values()):
            return self.aggregated().type_of(text, self.functions)
        return self._type(text, [])


class _Types:
    """Types of SQL as columns, without a database."""

    @staticmethod
    def _like(columns: Mapping[str, Any]) -> Any:
        return _native.Rows.of_types(list(columns), [str(of) for of in columns.values()])
