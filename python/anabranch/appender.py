"""Rows one by one, written in commits of many."""

from __future__ import annotations

import threading
import time as _time
from typing import Any, List

from .durations import seconds
from .errors import ProgrammingError
from .values import Commit


class Appender:
    """Collects rows, and writes them when there are ``rows`` of them, ``every`` so often, at
    ``flush`` and at the end.

    >>> import anabranch as ab
    >>> t = ab.connect().create_table("t", {"n": int})
    >>> with t.appender() as a:
    ...     a.row(1); a.row(2)
    >>> t.row_count()
    2
    """

    def __init__(self, table: Any, *, rows: int, every: Any) -> None:
        self._table, self._rows, self._every = table, rows, seconds(every)
        self._held: List[tuple] = []
        self._lock = threading.Lock()
        self._since = _time.monotonic()

    def row(self, *values: Any) -> None:
        """One row, by place."""
        if len(values) != self._table.width:
            raise ProgrammingError(f"a row has {self._table.width} values, not {len(values)}", sqlstate="42601")
        with self._lock:
            self._held.append(values)
            due = len(self._held) >= self._rows or _time.monotonic() - self._since >= self._every
        if due:
            self.flush()

    def add(self, data: Any) -> None:
        """Many rows."""
        self.flush()
        self._table.insert(data)

    def flush(self) -> Commit:
        """Writes what is held, as one commit."""
        with self._lock:
            held, self._held, self._since = self._held, [], _time.monotonic()
        return self._table.insert(held) if held else Commit(self._table._db.now(), 0)

    def __enter__(self) -> "Appender":
        return self

    def __exit__(self, kind: Any, *exc: Any) -> None:
        if kind is None:
            self.flush()
