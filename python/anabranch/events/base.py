"""What all events share, and how a verb makes the next ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..durations import ticks as ticks_of
from ..errors import GroupingError, ProgrammingError, TraceError, unknown_column
from ..expr import Expr, When, as_column, check_names, col, expand, listed
from ..tracing import Row, trace
from ..types import DataType, Schema
from .context import _FrameCtx


if TYPE_CHECKING:
    from .whole import Events


class Input(NamedTuple):
    """What is pushed into an input: its columns, when a row begins, what one tick is, and what else
    was said of it."""

    name: str
    columns: Dict[str, DataType]
    like: Any
    time: Optional[str]
    end: Optional[str]
    instants: bool
    unit: Optional[int]
    options: Mapping[str, Any] = {}
    frame: Any = None


class Base:
    """What all events share: the frame that the engine runs, its inputs, its columns and its
    ticks."""

    def __init__(self, frame: Any, inputs: Mapping[str, Input], unit: Optional[int], instants: bool,
                 bound: Mapping[str, Any] = {}) -> None:
        self._frame, self._inputs, self._unit, self._instants = frame, dict(inputs), unit, instants
        self._bound = dict(bound)
        # Keys of the groups that it stands in: a pair of events has them once.
        self._group: Tuple[str, ...] = ()
        self._known = {name: DataType(of) for name, of in frame.columns()}

    # -- what it is ----------------------------------------------------------------------------

    @property
    def columns(self) -> List[str]:
        """Names of the columns."""
        return list(self._known)

    @property
    def dtypes(self) -> List[DataType]:
        """Types of the columns."""
        return list(self._known.values())

    @property
    def schema(self) -> Schema:
        """Names and types."""
        return Schema(self._known, self._frame.like())

    def collect_schema(self) -> Schema:
        """Names and types; nothing runs."""
        return self.schema

    def explain(self) -> str:
        """The plan, with what is known of its streams and what that chooses."""
        return self._frame.explain()

    def __repr__(self) -> str:
        columns = ", ".join(f"{n} {of}" for n, of in self._known.items())
        return f"<Events ({columns}) of {', '.join(self._inputs)}>"

    def __getitem__(self, name: str) -> Expr:
        if name not in self._known:
            raise unknown_column(name, self._known)
        return col(name)

    # -- expressions ---------------------------------------------------------------------------

    def _new(self, frame: Any, *others: "Events") -> "Events":
        inputs, bound = dict(self._inputs), dict(self._bound)
        unit = self._unit
        for other in others:
            inputs.update(other._inputs)
            bound.update(other._bound)
            unit = unit if unit is not None else other._unit
        from .whole import Events

        made = Events(frame, inputs, unit, self._instants or any(o._instants for o in others), bound)
        made._group = self._group
        return made

    def _in_group(self, frame: Any, keys: Sequence[str]) -> "Events":
        """The events of a group, as the body of a query sees them."""
        made = self._new(frame)
        made._group = (*self._group, *keys)
        return made

    def _together(self, other: Any) -> "Events":
        if not isinstance(other, Base):
            raise ProgrammingError(f"{type(other).__name__} is no events", hint="relation.events(time=..) makes events of rows")
        if None not in (self._unit, other._unit) and self._unit != other._unit:
            raise ProgrammingError("the ticks of the two are of different lengths", hint="give both inputs one unit=")
        return other

    def _ctx(self, *, ticks: bool = False, more: Mapping[str, Tuple[str, DataType]] = {}) -> "_FrameCtx":
        return _FrameCtx(self, ticks, more)

    def _expr(self, value: Any) -> Expr:
        if callable(value) and not isinstance(value, (Expr, When, str)):
            value = trace(value, Row(self._known, col))
        if value is None:
            raise TraceError("the function returned None", hint="a lambda returns its expression; def needs return")
        if isinstance(value, (Mapping, tuple, list)):
            raise TraceError(f"an expression was expected, not {type(value).__name__}")
        if isinstance(value, str) and value not in self._known:
            raise unknown_column(value, self._known)
        return as_column(value)

    def _items(self, exprs: Sequence[Any], more: Mapping[str, Any]) -> List[Expr]:
        traced: List[Any] = []
        for e in exprs:
            if callable(e) and not isinstance(e, (Expr, When, str)):
                e = trace(e, Row(self._known, col))
                if isinstance(e, Mapping):
                    traced += [as_column(v).alias(n) for n, v in e.items()]
                    continue
            traced.extend(e if isinstance(e, (list, tuple)) else [e])
        return [self._expr(e) for e in traced] + [self._expr(e).alias(n) for n, e in more.items()]

    def _texts(self, exprs: Sequence[Expr], ctx: "_FrameCtx") -> Tuple[List[str], List[str]]:
        """Names and SQL of columns."""
        for e in exprs:
            if e._agg:
                raise GroupingError("an aggregate stands where none can", hint="agg(..), or group_by(..).agg(..)")
        made = [column for e in exprs for column in expand(e, ctx)]
        check_names(name for name, _ in made)
        return [name for name, _ in made], [sql.sql for _, sql in made]

    def _keys(self, other: "Events", on: Any, left_on: Any, right_on: Any) -> Tuple[List[Expr], List[Expr]]:
        if on is not None:
            if left_on is not None or right_on is not None:
                raise ProgrammingError("give on, or left_on and right_on")
            left_on = right_on = on
        left, right = [self._expr(k) for k in listed(left_on)], [other._expr(k) for k in listed(right_on)]
        if len(left) != len(right):
            raise ProgrammingError(f"there are {len(left)} keys on the left and {len(right)} on the right")
        return left, right

    def _span(self, value: Any, what: str = "a duration") -> int:
        return ticks_of(value, self._unit, what=what)

    def _verb(self, verb: str, *ticks: Optional[int]) -> "Events":
        return self._new(self._frame.lifetimes(verb, list(ticks)))
