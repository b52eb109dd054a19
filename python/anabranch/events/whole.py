"""Events, put together: their input, their verbs, and the answer."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Tuple

from .. import _native
from ..durations import UNITS, ticks as ticks_of
from ..errors import NotSupportedError, ProgrammingError, unknown_column
from ..expr import listed
from ..rows import Rows
from ..runs import Run
from ..types import DataType, schema_columns
from .base import Input
from .groups import Groups
from .joins import Joins
from .times import instant
from .verbs import Verbs


class Events(Verbs, Groups, Joins):
    """A query over events. Immutable; errors are raised by the verb that makes them.

    >>> import anabranch as ab
    >>> e = ab.Events.input("in", {"x": int, "at": int}, time="at")
    >>> sums = e.tumbling(10).agg(n=ab.len(), x=ab.col("x").sum())
    >>> sums.run({"in": [(5, 3), (6, 7), (1, 14)]}).fetchall()
    [(10, 20, 2, 11), (20, 30, 1, 1)]
    """

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
            The columns that say when a row begins, and when it ends (NULL: not known). Without
            ``time`` events are pushed as objects, ``ab.Event.point(3, row)``.
        duration
            How long rows without an ``end`` column are in force; 1 is a point; None: until an end
            edge comes.
        unit
            What one tick of an integer time is: us, ms, s, m, h or d.
        append_only, constant_hop, interval_free, sorted, sorted_by, bounded, unique_key
            Promises: docs/verbs/inputs.md. A row that breaks one is refused when it is pushed.
        on_disorder, begins_at, reorder_latency, punctuation_period, partition_by, low_watermark,
        on_completed
            How rows are brought in order, and what becomes of late ones (``"error"``, ``"drop"``,
            ``"adjust"``).
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
            from ..durations import seconds

            options["latency"] = seconds(latency)
        frame = _native.Frame.input(name, like, options)
        return Events(frame, {name: Input(name, columns, like, time, end, instants, micros, options, frame)}, micros, instants)

    # -- running -------------------------------------------------------------------------------

    def run(self, inputs: Optional[Mapping[str, Any]] = None) -> Rows:
        """The answer for all of these rows at once: columns ``start`` and ``end`` (NULL: never)
        before the query's.

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

    def shards(self, shards: Any = None) -> Any:
        """The input in so many shards, each on a thread of its own: the beginning of a sharded
        program. ``(2, 4)`` is two processes of four; None: one a core."""
        from ..shards import of_events

        return of_events(self, shards)

    def relation(self, snapshot: bool = False) -> Any:
        """All events as a relation that is kept current: columns ``start`` and ``end`` (NULL: not
        known, or never) before the query's. With ``snapshot=True`` the events in force just before
        the frontier, without these columns.

        Inputs are relations of one database: ``table.events(time="at")``. The relation goes with
        its last Python object; ``db.create_view(name, events)`` gives it a name.
        """
        from .stored import database_of

        db = database_of(self)
        return db._live_events(self, snapshot)

    def __iter__(self) -> Any:
        raise TypeError("events are a question; run({..}) answers it, db.start(events) keeps it at work")

    def __reduce__(self) -> Any:
        raise TypeError("events cannot be pickled; build them in each process")


def of_relation(relation: Any, *, time: str, name: str = "rows", **kw: Any) -> Events:
    """The rows of a relation as events, read when the query runs."""
    made = Events.input(name, relation.schema, time=time, **kw)
    made._bound = {name: relation}
    return made
