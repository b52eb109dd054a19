"""Small values: intervals, events, commits."""

from __future__ import annotations

import datetime as _dt
from typing import Any, NamedTuple, Optional

__all__ = ["Interval", "Commit", "Event"]


class Interval:
    """A span of months, days and microseconds, as SQL has it.

    >>> from datetime import timedelta
    >>> Interval(0, 1, 1) == timedelta(days=1, microseconds=1)
    True
    """

    __slots__ = ("months", "days", "microseconds")

    def __init__(self, months: int = 0, days: int = 0, microseconds: int = 0) -> None:
        self.months, self.days, self.microseconds = months, days, microseconds

    def timedelta(self) -> _dt.timedelta:
        """The same span; months have no fixed length.

        >>> Interval(0, 2, 0).timedelta()
        datetime.timedelta(days=2)
        """
        if self.months:
            from .errors import ConversionError

            raise ConversionError(f"{self!r} has months, whose length is not fixed")
        return _dt.timedelta(days=self.days, microseconds=self.microseconds)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Interval):
            return self._key() == other._key()
        if isinstance(other, _dt.timedelta):
            return self.months == 0 and self.timedelta() == other
        return NotImplemented

    def _key(self) -> tuple:
        return (self.months, self.days, self.microseconds)

    def __hash__(self) -> int:
        return hash(self._key()) if self.months else hash(self.timedelta())

    def __repr__(self) -> str:
        return f"Interval(months={self.months}, days={self.days}, microseconds={self.microseconds})"

    def __reduce__(self) -> Any:
        return (Interval, self._key())


class Commit(NamedTuple):
    """What a write did: its time, in microseconds, and how many rows it changed."""

    time: int
    rows: int


class Event:
    """A row with its lifetime, pushed into a run.

    >>> Event.point(3, ("ada", 1)).time
    3
    """

    __slots__ = ("kind", "time", "other", "row")

    def __init__(self, kind: str, time: Any, other: Any, row: Any) -> None:
        self.kind, self.time, self.other, self.row = kind, time, other, row

    @staticmethod
    def point(time: Any, row: Any) -> "Event":
        """A row in force for one tick."""
        return Event("point", time, None, row)

    @staticmethod
    def start(time: Any, row: Any) -> "Event":
        """A row in force from ``time`` until an end edge comes."""
        return Event("start", time, None, row)

    @staticmethod
    def end(time: Any, start: Any, row: Any) -> "Event":
        """The end of a row that began at ``start``."""
        return Event("end", time, start, row)

    @staticmethod
    def interval(start: Any, end: Any, row: Any) -> "Event":
        """A row in force from ``start`` until before ``end``."""
        return Event("interval", start, end, row)

    def __repr__(self) -> str:
        return f"Event.{self.kind}({self.time!r}, {self.other!r}, {self.row!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self.kind, self.time, self.other))

    def __reduce__(self) -> Any:
        return (Event, (self.kind, self.time, self.other, self.row))


class Early(NamedTuple):
    """An early answer: the share of the data behind it, and its rows."""

    share: float
    rows: Any


class Counts(NamedTuple):
    """Rows that were late: left out, and moved."""

    dropped: int
    moved: int


