"""Queries over events at work: rows and time in, events out."""

from __future__ import annotations

import datetime as _dt
import time as _time
import weakref
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional

from . import _native
from . import data as _data
from .errors import InterfaceError, ProgrammingError, nearest
from .rows import Rows
from .values import Counts, Event

__all__ = ["Early", "Play", "Run", "progressive"]

_END = 2**63 - 1


class Run:
    """A query over events at work, on a thread of its own; ``db.start(events)`` makes one.

    What comes out depends on the rows and the order of time alone, not on what was pushed when. A
    context manager that closes it; ``finish`` is not implied.

    >>> import anabranch as ab
    >>> e = ab.Events.input("in", {"x": int, "at": int}, time="at")
    >>> with ab.connect() as db, db.start(e.tumbling(10).agg(n=ab.len())) as run:
    ...     run.push("in", [(1, 3), (2, 7)])
    ...     run.advance("in", 25)
    ...     run.lifetimes().fetchall()
    [(10, 20, 2)]
    """

    def __init__(self, events: Any) -> None:
        self._events = events
        self._native = _native.Run(events._frame)
        self._finalizer = weakref.finalize(self, self._native.close)

    def _input(self, name: str) -> Any:
        return _input_of(self._events, name)

    def _ticks(self, time: Any, instants: bool) -> int:
        from .events import instant

        return instant(time, instants)

    def push(self, input: str, data: Any) -> None:  # noqa: A002
        """Gives rows to an input: a frame, tuples, dicts, or ``ab.Event`` objects; in any order
        between two advances."""
        of = self._input(input)
        if isinstance(data, (list, tuple)) and data and isinstance(data[0], Event):
            return self._push_events(of, data)
        if of.time is None:
            raise ProgrammingError(f'input "{input}" does not say which column is the time',
                                   hint="Events.input(.., time=..), or push ab.Event objects")
        rows = _fitted(data, of)
        if len(rows):
            self._native.push(input, rows)

    def _push_events(self, of: Any, events: Any) -> None:
        self._native.push_events(of.name, *_parts(of, events, self._events._instants))

    def advance(self, input: str, time: Any) -> None:  # noqa: A002
        """Promises that no row before ``time`` will come into an input; results before the least
        promise come out."""
        of = self._input(input)
        self._native.advance(input, self._ticks(time, of.instants))

    def advance_all(self, time: Any) -> None:
        """``advance`` for all inputs."""
        self._native.advance_all(self._ticks(time, self._events._instants))

    def advance_partition(self, input: str, values: Any, time: Any) -> None:  # noqa: A002
        """Promises that no row of one partition, given by the values of its columns, will come
        before ``time``."""
        of = self._input(input)
        values = [values] if not isinstance(values, (list, tuple)) else list(values)
        rows = _native.Rows.from_columns([f"v{i}" for i in range(len(values))], [[v] for v in values])
        self._native.advance_partition(input, rows, self._ticks(time, of.instants))

    def idle(self, input: str) -> None:  # noqa: A002
        """An input does not hold up the others until rows come into it again."""
        self._input(input)
        self._native.idle(input)

    def flush(self) -> None:
        """Hands on rows that wait to be batched; changes no result."""
        self._native.flush()

    def tick(self) -> Optional[_dt.timedelta]:
        """Hands on what has waited long enough; after how long to call again, if rows wait."""
        wait = self._native.tick()
        return None if wait is None else _dt.timedelta(seconds=wait)

    def finish(self) -> None:
        """Ends all inputs: everything comes out."""
        self._native.finish()

    def lifetimes(self) -> Rows:
        """Events that are complete since the last call: ``start``, ``end`` (NULL: never), the
        columns."""
        return Rows(self._native.lifetimes(self._events._instants))

    def changes(self) -> Rows:
        """What has come out since the last call, as changes: ``time``, ``diff``, the columns."""
        return Rows(self._native.changes(self._events._instants))

    def drain(self) -> Rows:
        """See ``changes``."""
        return self.changes()

    @property
    def frontier(self) -> int:
        """No event before this time, in ticks, will come out."""
        return self._native.frontier()

    def late(self, input: str) -> Counts:  # noqa: A002
        """How many rows of an input were dropped and moved."""
        self._input(input)
        return Counts(*self._native.late(input))

    def late_rows(self, input: str) -> Optional[Rows]:  # noqa: A002
        """Rows dropped and moved since the last call, if the input reports them: ``time``, columns,
        ``moved`` ticks."""
        of = self._input(input)
        rows = self._native.late_rows(input, list(of.columns), self._events._instants)
        return None if rows is None else Rows(rows)

    def play(self, sources: Mapping[str, Any], pace: Any = "fast") -> "Play":
        """History as input: data or files for inputs, as fast as it goes or at so many ticks a
        second."""
        return Play(self, sources, pace)

    def play_to_end(self, sources: Mapping[str, Any], pace: Any = "fast") -> None:
        """Plays all of it; the inputs then end."""
        for _ in self.play(sources, pace):
            pass

    def close(self) -> None:
        """Ends the run. Closing again does nothing."""
        self._finalizer.detach()
        self._native.close()

    @property
    def closed(self) -> bool:
        """Whether it was ended."""
        return self._native.closed

    def __enter__(self) -> "Run":
        if self.closed:
            raise InterfaceError("the run was closed")
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a run cannot be pickled; start one in each process")


class Play:
    """Sources on their way into a run: an iterator of the share that was pushed, in turns."""

    _ROWS = 8192

    def __init__(self, run: Run, sources: Mapping[str, Any], pace: Any) -> None:
        if pace != "fast" and (isinstance(pace, bool) or not isinstance(pace, (int, float)) or pace <= 0):
            raise ProgrammingError(f'pace is "fast" or ticks a second, not {pace!r}')
        self._run, self._pace = run, pace
        self._turns: List[Any] = []
        self._rows = 0
        for name, data in sources.items():
            of = run._input(name)
            rows = Rows(_data.fitted(_opened(data, of), list(of.columns), of.like, name))
            self._rows += len(rows)
            at = rows.columns.index(of.time)
            times = [run._ticks(t, of.instants) for t in rows._native.list(at)]
            order = sorted(range(len(times)), key=times.__getitem__)
            if order != list(range(len(order))):
                listed = rows.all()
                rows = Rows(_native.Rows.from_columns(list(rows.columns), [list(c) for c in zip(*[listed[i] for i in order])], of.like))
                times = [times[i] for i in order]
            for first in range(0, len(rows), self._ROWS):
                self._turns.append((times[first], name, rows._native.slice(first, self._ROWS)))
        self._turns.sort(key=lambda turn: turn[0])
        self._inputs = list(sources)

    def __iter__(self) -> Any:
        began, first = _time.monotonic(), self._turns[0][0] if self._turns else 0
        pushed = 0
        for time, name, rows in self._turns:
            if self._pace != "fast":
                _time.sleep(max(0.0, (time - first) / self._pace - (_time.monotonic() - began)))
            self._run.push(name, Rows(rows))
            pushed += len(rows)
            yield pushed / max(1, self._rows)
        for name in self._inputs:
            self._run._native.advance(name, _END)


class Early(NamedTuple):
    """An answer on the way to the exact one: the share of the rows that it is over, and its
    rows."""

    share: float
    rows: Rows


def progressive(events: Any, sources: Mapping[str, Any], steps: int = 10) -> Iterator[Early]:
    """Answers over growing shares of rows at hand; the last one, at share 1, is exact.

    Rows begin when they are read and never end, so the query does not look at time.
    """
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ProgrammingError(f"steps is a whole number from 1 on, not {steps!r}")
    for name in sources:
        _input_of(events, name)
    bound = {name: rows for name, rows in events._bound.items() if name not in sources}
    given = [(name, _input_of(events, name), data) for name, data in {**bound, **sources}.items()]
    answers = _native.Progressive(events._frame, [(n, _fitted(_opened(data, of), of)) for n, of, data in given], steps)
    return _early(answers)


def _early(answers: Any) -> Iterator[Early]:
    try:
        while (early := answers.step()) is not None:
            yield Early(early[0], Rows(early[1]))
    finally:
        answers.close()


def _input_of(events: Any, name: str) -> Any:
    found = events._inputs.get(name)
    if found is None:
        near = nearest(name, events._inputs)
        raise ProgrammingError(f'the query has no input "{name}"',
                               hint=f'did you mean "{near}"?' if near else "inputs: " + ", ".join(events._inputs))
    return found


def _parts(of: Any, events: Any, instants: bool) -> Any:
    """Events as rows with the columns of an input, their kinds, times, and other times."""
    from .events import instant

    values = [[e.row.get(n) for n in of.columns] if isinstance(e.row, Mapping) else list(e.row) for e in events]
    for event, row in zip(events, values):
        if len(row) != len(of.columns):
            raise ProgrammingError(f'{event!r} has {len(row)} values for {len(of.columns)} columns', sqlstate="42601")
    columns = [[row[i] for row in values] for i in range(len(of.columns))]
    rows = _native.Rows.from_columns(list(of.columns), columns, of.like)
    times = [instant(e.time, instants) for e in events]
    others = [None if e.other is None else instant(e.other, instants) for e in events]
    return rows, [e.kind for e in events], times, others


def _fitted(data: Any, of: Any) -> Any:
    """Rows with the columns of an input, in its order."""
    rows = _data.fitted(data, list(of.columns), of.like, of.name)
    missing = [n for n in of.columns if n not in rows.names]
    if missing:
        raise ProgrammingError(f'the rows pushed into "{of.name}" have no column "{missing[0]}"', sqlstate="42703")
    order = [rows.names.index(n) for n in of.columns]
    if order != list(range(len(order))):
        rows = rows.project(order, list(of.columns))
    return rows


def _opened(data: Any, of: Any) -> Any:
    """Rows of a source; a path is a file of rows."""
    import os

    if not isinstance(data, (str, os.PathLike)):
        return data
    from .database import Database

    path = os.fspath(data)
    reads: Dict[str, str] = {".csv": "read_csv", ".parquet": "read_parquet", ".json": "read_json", ".jsonl": "read_json"}
    kind = reads.get(os.path.splitext(path)[1])
    if kind is None:
        raise ProgrammingError(f"{path!r} is no file of rows", hint=".csv, .parquet, .json or .jsonl")
    with Database() as db:
        return getattr(db, kind)(path).collect()


def start(db: Any, events: Any) -> Run:
    """Sets events to work."""
    from .events import Events

    if not isinstance(events, Events):
        raise ProgrammingError(f"{type(events).__name__} is no events", hint="ab.Events.input(..)")
    return Run(events)
