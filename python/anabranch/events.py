"""Events: rows with lifetimes on the data's own time, and queries over them that run on history and live.

The verbs have the names of ``docs/verbs``. An ``Events`` is a question, built and checked as it is written;
``run`` answers it at once, ``db.start`` keeps it at work while rows are pushed. Ticks are those of the time
column: microseconds of a timestamp, the numbers themselves otherwise (``unit`` says what one is).
"""

from __future__ import annotations

import datetime as _dt
import warnings
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _native
from . import data as _data
from . import sqltext as q
from .durations import UNITS, ticks as ticks_of
from .errors import (DuplicateName, GroupingError, NotSupportedError, ProgrammingError, TraceError, TypeMismatch,
                     unknown_column)
from .expr import Ctx, Expr, Sql, When, as_column, check_names, col, expand, listed, lit
from .patterns import Pattern, reg
from .rows import Rows
from .runs import Run
from .tracing import Row, trace
from .types import DataType, Schema, is_integer, schema_columns
from .values import Event

__all__ = ["Events", "Pattern", "Run", "Event", "reg", "start", "end", "window_start", "window_end"]

FOREVER = 2**63 - 1


class Input(NamedTuple):
    """What is pushed into an input: its columns, when a row begins, and what one tick is."""

    name: str
    columns: Dict[str, DataType]
    like: Any
    time: Optional[str]
    end: Optional[str]
    instants: bool
    unit: Optional[int]


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
    """Where the window begins that the event's results are about: exclusive for windows closed on the right."""
    return _bound("@window_start", "window_start")


def window_end() -> Expr:
    """Where the window ends that the event's results are about: exclusive for windows closed on the left."""
    return _bound("@window_end", "window_end")


class Events:
    """A query over events. Immutable; errors are raised by the verb that makes them.

    >>> import anabranch as ab
    >>> e = ab.Events.input("in", {"x": int, "at": int}, time="at")
    >>> sums = e.tumbling(10).agg(n=ab.len(), x=ab.col("x").sum())
    >>> sums.run({"in": [(5, 3), (6, 7), (1, 14)]}).fetchall()
    [(10, 20, 2, 11), (20, 30, 1, 1)]
    """

    def __init__(self, frame: Any, inputs: Mapping[str, Input], unit: Optional[int], instants: bool,
                 bound: Mapping[str, Any] = {}) -> None:
        self._frame, self._inputs, self._unit, self._instants = frame, dict(inputs), unit, instants
        self._bound = dict(bound)
        self._known = {name: DataType(of) for name, of in frame.columns()}

    @staticmethod
    def input(
        name: str, schema: Any, *, time: Optional[str] = None, end: Optional[str] = None, duration: Any = 1,
        unit: Optional[str] = None, append_only: bool = False, constant_hop: Any = None, interval_free: bool = False,
        sorted: bool = False, sorted_by: Any = None, bounded: bool = False, unique_key: Any = None,
        on_disorder: Optional[str] = None, begins_at: Any = None, reorder_latency: Any = 0,
        punctuation_period: Any = None, partition_by: Any = None, low_watermark: Optional[Tuple[Any, Any]] = None,
        on_completed: str = "close", without_end_edges: bool = False, report_late: bool = False, latency: Any = 0,
    ) -> "Events":
        """A named input of events.

        Parameters
        ----------
        schema
            Names and types of the columns.
        time, end
            The columns that say when a row begins, and when it ends (NULL: not known). Without ``time`` events are
            pushed as objects, ``ab.Event.point(3, row)``.
        duration
            How long rows without an ``end`` column are in force; 1 is a point; None: until an end edge comes.
        unit
            What one tick of an integer time is: us, ms, s, m, h or d.
        append_only, constant_hop, interval_free, sorted, sorted_by, bounded, unique_key
            Promises: docs/verbs/inputs.md. A row that breaks one is refused when it is pushed.
        on_disorder, begins_at, reorder_latency, punctuation_period, partition_by, low_watermark, on_completed
            How rows are brought in order, and what becomes of late ones (``"error"``, ``"drop"``, ``"adjust"``).
        latency
            How long rows may wait to be batched, by the clock on the wall.
        """
        columns = {n: DataType(of) for n, of in schema_columns(schema).items()}
        like = _native.Rows.of_types(list(columns), [str(of) for of in columns.values()])
        for one in (time, end):
            if one is not None and one not in columns:
                raise unknown_column(one, columns)
        instants = time is not None and columns[time].startswith("timestamp")
        if unit is not None and (unit not in UNITS or instants):
            raise ProgrammingError("a timestamp has microseconds; unit is for integers" if instants else
                                   f"unit is one of {', '.join(UNITS)}, not {unit!r}")
        micros = 1 if instants else UNITS[unit] if unit is not None else None
        span = lambda value, what: ticks_of(value, micros, what=what)  # noqa: E731
        options: Dict[str, Any] = {}
        if time is not None:
            options["time"] = time
        if end is not None:
            options["end"] = end
        elif append_only:
            options["append_only"] = True
        elif duration is not None and time is not None:
            options["constant_duration"] = span(duration, "the duration")
        for key, given in (("constant_hop", constant_hop), ("punctuation_period", punctuation_period)):
            if given is not None:
                options[key] = span(given, key)
        for key, flag in (("interval_free", interval_free), ("sorted", sorted), ("bounded", bounded),
                          ("without_end_edges", without_end_edges), ("report_late", report_late)):
            if flag:
                options[key] = True
        for key, names in (("sorted_by", sorted_by), ("unique_key", unique_key), ("partition_by", partition_by)):
            if names is not None:
                options[key] = listed(names)
                missing = [n for n in options[key] if n not in columns]
                if missing:
                    raise unknown_column(missing[0], columns)
        if on_disorder is not None:
            if on_disorder not in ("error", "drop", "adjust"):
                raise ProgrammingError(f"on_disorder is error, drop or adjust, not {on_disorder!r}")
            options["on_disorder"] = on_disorder
        if begins_at is not None:
            options["begins_at"] = instant(begins_at, instants)
        if reorder_latency not in (0, None):
            options["reorder_latency"] = span(reorder_latency, "reorder_latency")
        if low_watermark is not None:
            options["low_watermark"] = tuple(span(v, "low_watermark") for v in low_watermark)
        if on_completed not in ("close", "flush", "nothing"):
            raise ProgrammingError(f"on_completed is close, flush or nothing, not {on_completed!r}")
        if on_completed != "close":
            options["on_completed"] = on_completed
        if latency:
            from .durations import seconds

            options["latency"] = seconds(latency)
        frame = _native.Frame.input(name, like, options)
        return Events(frame, {name: Input(name, columns, like, time, end, instants, micros)}, micros, instants)

    # -- what it is ------------------------------------------------------------------------------------

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

    # -- expressions -----------------------------------------------------------------------------------

    def _new(self, frame: Any, *others: "Events") -> "Events":
        inputs, bound = dict(self._inputs), dict(self._bound)
        unit = self._unit
        for other in others:
            inputs.update(other._inputs)
            bound.update(other._bound)
            unit = unit if unit is not None else other._unit
        return Events(frame, inputs, unit, self._instants or any(o._instants for o in others), bound)

    def _together(self, other: Any) -> "Events":
        if not isinstance(other, Events):
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

    # -- rows ------------------------------------------------------------------------------------------

    def filter(self, *predicates: Any, **equal: Any) -> "Events":
        """The events for which all predicates are true."""
        tests = [self._expr(p) for p in predicates] + [col(n) == v for n, v in equal.items()]
        ctx = self._ctx()
        _, texts = self._texts([t.alias(f"p{i}") for i, t in enumerate(tests)], ctx)
        return self._new(self._frame.filter(" AND ".join(texts) or "true", ctx.functions))

    def select(self, *exprs: Any, **named_exprs: Any) -> "Events":
        """These columns, computed. ``ab.start()``, ``ab.end()`` and the bounds of windows can be among them."""
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

    # -- lifetimes -------------------------------------------------------------------------------------

    def shift(self, duration: Any) -> "Events":
        """Lifetimes moved; back, for negative durations."""
        return self._verb("shift", self._span(duration))

    def alter_duration(self, duration: Any) -> "Events":
        """Every event lasts so long from its start (None: for ever): a sliding window under an aggregate.

        An expression gives each event a duration of its own, in ticks; it may read ``ab.start()`` and ``ab.end()``.
        """
        if duration is None:
            return self._verb("alter_duration", None)
        if isinstance(duration, (Expr, When)) or callable(duration):
            return self.alter_lifetime(None, duration)
        return self._verb("alter_duration", self._span(duration))

    def alter_lifetime(self, start: Any = None, duration: Any = None) -> "Events":
        """New starts, and durations: expressions in ticks. Without a duration events keep theirs."""
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
        """Ends moved later, or earlier for negative durations; what that leaves nothing of is gone."""
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

    # -- windows ---------------------------------------------------------------------------------------

    def tumbling(self, size: Any, offset: Any = 0) -> "Events":
        """Windows closed on the right, one after the other, each reported when it is over."""
        return self.hopping(size, size, offset)

    def hopping(self, size: Any, period: Any, offset: Any = 0) -> "Events":
        """Windows of ``size`` at every ``period``, closed on the right, each reported when it is over."""
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
        """When windows report, said right after them: ``"on_close"``, ``"early"`` (every change), or every so often."""
        if rule in ("on_close", "early"):
            return self._verb("emit_" + rule)
        return self._verb("emit_progressive", self._span(rule))

    # -- groups ----------------------------------------------------------------------------------------

    def group_by(self, *keys: Any, **named_keys: Any) -> "EventGroups":
        """Events with equal keys together; ``.agg(..)`` follows."""
        return EventGroups(self, self._items(keys, named_keys))

    def agg(self, *aggs: Any, **named_aggs: Any) -> "Events":
        """Snapshot aggregates over all events: one event for each piece of time in which there are any."""
        return EventGroups(self, []).agg(*aggs, **named_aggs)

    def group_apply(self, *keys_and_body: Any) -> "Events":
        """A query for each group, as if there were no others: ``group_apply("k", lambda g: g.session(10))``."""
        keys, body = _body(keys_and_body)
        ctx = self._ctx()
        names, texts = self._texts([self._expr(k) for k in keys], ctx)
        made = self._frame.group_apply(names, texts, lambda g: _framed(body(self._new(g))), ctx.functions)
        return self._new(made)

    def group_apply_with(self, other: "Events", *keys_and_body: Any) -> "Events":
        """A query of two inputs for each pair of groups with equal keys: the body takes both."""
        keys, body = _body(keys_and_body)
        self._together(other)
        ctx = self._ctx()
        names, texts = self._texts([self._expr(k) for k in keys], ctx)
        inner = lambda a, b: _framed(body(self._new(a), other._new(b)))  # noqa: E731
        return self._new(self._frame.group_apply_with(other._frame, names, texts, inner, ctx.functions), other)

    # -- several events --------------------------------------------------------------------------------

    def join(self, other: "Events", *, on: Any = None, left_on: Any = None, right_on: Any = None, how: str = "inner",
             where: Any = None, suffix: str = "_right") -> "Events":
        """Pairs with equal keys while both are in force; keys of ``on`` appear once.

        ``how`` is inner, left or full. ``where`` is a condition over the pair's columns, or ``lambda l, r``.
        """
        self._together(other)
        if how not in ("inner", "left", "full"):
            raise ProgrammingError(f"how is inner, left or full, not {how!r}")
        left, right = self._keys(other, on, left_on, right_on)
        lctx, rctx = self._ctx(), other._ctx()
        lefts, rights = [k._build(lctx).sql for k in left], [k._build(rctx).sql for k in right]
        predicate = None
        functions = lctx.functions + rctx.functions
        if where is not None:
            plain = self._new(self._frame.join(other._frame, lefts, rights, "inner", None, functions), other)
            pctx = plain._ctx()
            predicate = self._pair_condition(other, plain, where)._build(pctx).sql
            functions = functions + pctx.functions
        made = self._new(self._frame.join(other._frame, lefts, rights, how, predicate, functions), other)
        return made._merged(self, other, listed(on), how, suffix)

    def _pair_condition(self, other: "Events", pairs: "Events", where: Any) -> Expr:
        if callable(where) and not isinstance(where, (Expr, When)):
            names = {n: pairs.columns[len(self._known) + i] for i, n in enumerate(other._known)}
            where = trace(where, Row(self._known, col), Row(other._known, lambda n: col(names[n])))
        return as_column(where)

    def _merged(self, left: "Events", right: "Events", on: Sequence[Any], how: str, suffix: str) -> "Events":
        """The pair's columns with the keys of ``on`` once, and right columns under the suffix that was asked for."""
        keys = [k for k in on if isinstance(k, str)]
        right_names = self.columns[len(left._known):]
        columns: List[Expr] = []
        for name in left._known:
            if name in keys and how == "full":
                partner = right_names[list(right._known).index(name)]
                columns.append(col(name).fill_null(col(partner)).alias(name))
            else:
                columns.append(col(name))
        for own, shown in zip(right._known, right_names):
            if own not in keys:
                columns.append(col(shown).alias(own + suffix if shown != own else own))
        names = [e._out for e in columns]
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise DuplicateName(f'column "{twice}" would be there twice', hint="choose another suffix=")
        return self.select(*columns) if names != self.columns else self

    def join_asof(self, other: "Events", *, by: Any = None, by_left: Any = None, by_right: Any = None,
                  strategy: str = "backward", tolerance: Any = None, allow_exact_matches: bool = True,
                  how: str = "left", suffix: str = "_right") -> "Events":
        """Each event with the events of ``other`` that begin nearest to it: points, when they are known.

        Without a tolerance, events that look forward wait for the end of the input to know that none comes.
        """
        self._together(other)
        if strategy not in ("backward", "forward", "nearest"):
            raise ProgrammingError(f"strategy is backward, forward or nearest, not {strategy!r}")
        if how not in ("inner", "left"):
            raise ProgrammingError(f"how is inner or left, not {how!r}")
        if strategy != "backward" and how == "left" and tolerance is None:
            warnings.warn("without tolerance= events wait for the end of the input to know that none comes after them",
                          stacklevel=2)
        left, right = self._keys(other, by, by_left, by_right)
        lctx, rctx = self._ctx(), other._ctx()
        made = self._frame.join_asof(
            other._frame, [k._build(lctx).sql for k in left], [k._build(rctx).sql for k in right], strategy,
            None if tolerance is None else self._span(tolerance, "the tolerance"), allow_exact_matches, how == "left",
            lctx.functions + rctx.functions)
        return self._new(made, other)._merged(self, other, listed(by), how, suffix)

    def where_not_exists(self, other: "Events", *, on: Any = None, left_on: Any = None, right_on: Any = None,
                         where: Any = None) -> "Events":
        """Events while ``other`` has none with their keys (for which ``where`` holds)."""
        self._together(other)
        left, right = self._keys(other, on, left_on, right_on)
        lctx, rctx = self._ctx(), other._ctx()
        lefts, rights = [k._build(lctx).sql for k in left], [k._build(rctx).sql for k in right]
        functions, predicate = lctx.functions + rctx.functions, None
        if where is not None:
            pairs = self._new(self._frame.join(other._frame, lefts, rights, "inner", None, functions), other)
            pctx = pairs._ctx()
            predicate = self._pair_condition(other, pairs, where)._build(pctx).sql
            functions = functions + pctx.functions
        return self._new(self._frame.where_not_exists(other._frame, lefts, rights, predicate, functions), other)

    def clip_by(self, other: "Events", *, on: Any = None, left_on: Any = None, right_on: Any = None) -> "Events":
        """Events that end when one of ``other`` begins after them."""
        self._together(other)
        left, right = self._keys(other, on, left_on, right_on)
        lctx, rctx = self._ctx(), other._ctx()
        made = self._frame.clip_by(other._frame, [k._build(lctx).sql for k in left], [k._build(rctx).sql for k in right],
                                   lctx.functions + rctx.functions)
        return self._new(made, other)

    # -- neighbours and patterns -------------------------------------------------------------------------

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
        """Where a pattern is met: an event from the match's last event until the match ends, with the registers."""
        if not isinstance(pattern, Pattern):
            raise ProgrammingError(f"{type(pattern).__name__} is no pattern", hint="ab.Pattern.event(..).then(..)")
        registers = {name: value for name, value in pattern._registers}
        typed = {n: _type_of_constant(n, v) for n, v in registers.items()}
        ctx = self._ctx(more={reg_name(n): (reg_name(n), of) for n, of in typed.items()})
        initial = [as_column(v)._build(ctx).sql if isinstance(v, Expr) else q.literal(v)[0] for v in registers.values()]
        like = _native.Rows.of_types(list(typed), [str(of) for of in typed.values()])
        within = None if pattern._within is None else self._span(pattern._within, "the duration of a pattern")
        made = self._frame.detect(pattern._spec(ctx), like, initial, within, sorted(pattern._flags), ctx.functions)
        return self._new(made)

    # -- running ---------------------------------------------------------------------------------------

    def run(self, inputs: Optional[Mapping[str, Any]] = None) -> Rows:
        """The answer for all of these rows at once: columns ``start`` and ``end`` (NULL: never) before the query's.

        Inputs made by ``relation.events(..)`` read their relation; rows for them need not be given.
        """
        given = {**self._bound, **(inputs or {})}
        missing = [n for n in self._inputs if n not in given]
        if missing:
            raise ProgrammingError(f'input "{missing[0]}" has no rows', hint=f'run({{"{missing[0]}": rows}})')
        with Run(self) as run:
            for name, rows in given.items():
                run.push(name, rows)
            run.finish()
            return run.lifetimes()

    def relation(self, snapshot: bool = False) -> Any:
        """Events as a relation of SQL: not offered as something that is kept current."""
        raise NotSupportedError("events are no relation that is kept current yet", hint="db.relation(events.run({..}))")

    def __iter__(self) -> Any:
        raise TypeError("events are a question; run({..}) answers it, db.start(events) keeps it at work")

    def __reduce__(self) -> Any:
        raise TypeError("events cannot be pickled; build them in each process")


class EventGroups:
    """Groups of events: ``agg`` gives an event for each piece of time in which a group has rows."""

    def __init__(self, events: Events, keys: List[Expr]) -> None:
        self._events, self._keys = events, keys

    def agg(self, *aggs: Any, **named_aggs: Any) -> Events:
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


class _FrameCtx(Ctx):
    """What an expression over events is written for; it notes the functions that are called."""

    __slots__ = ("_events", "_used", "instants")

    def __init__(self, events: Events, ticks: bool, more: Mapping[str, Tuple[str, DataType]]) -> None:
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
    """What aggregates of events are written for: calls are noted, and stand for columns of the verb's result."""

    __slots__ = ("keys", "_calls")

    def __init__(self, events: Events, keys: Sequence[Expr]) -> None:
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


def _body(keys_and_body: Sequence[Any]) -> Tuple[List[Any], Callable]:
    if len(keys_and_body) < 2 or not callable(keys_and_body[-1]):
        raise ProgrammingError("group_apply needs keys, then a function of a group",
                               hint='group_apply("k", lambda g: g.session(10))')
    return [k for one in keys_and_body[:-1] for k in listed(one)], keys_and_body[-1]


def _framed(made: Any) -> Any:
    if not isinstance(made, Events):
        raise ProgrammingError(f"the query of a group gave {type(made).__name__}, not events",
                               hint="a lambda returns its result; def needs return")
    return made._frame


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


def of_relation(relation: Any, *, time: str, name: str = "rows", **kw: Any) -> Events:
    """The rows of a relation as events, read when the query runs."""
    made = Events.input(name, relation.schema, time=time, **kw)
    made._bound = {name: relation}
    return made
