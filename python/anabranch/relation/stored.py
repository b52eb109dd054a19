"""Relations with a name in the catalog: tables, views, sources."""

from __future__ import annotations

import datetime as _dt
from typing import Any, Callable, Dict, List, Optional, Sequence

from .. import sqltext as q
from ..errors import UnknownName
from ..rows import Rows
from ..types import Schema
from ..values import Commit
from .whole import Relation


class Table(Relation):
    """A table: a relation that can be written."""

    def __init__(self, db: Any, name: str, schema: Optional[Schema] = None) -> None:
        self._name = name
        super().__init__(db, f"SELECT * FROM {q.name(name)}", from_=q.name(name), schema=schema)

    @property
    def name(self) -> str:
        """The name in the catalog."""
        return self._name

    @property
    def primary_key(self) -> List[str]:
        """The columns of the primary key."""
        return self._db._primary_key(self._name)

    @property
    def append_only(self) -> bool:
        """Whether rows were promised to stay."""
        return self._name in self._db._append_only

    def insert(self, data: Any) -> Commit:
        """Appends rows, as one commit."""
        return self._db.insert(self._name, data)

    def upsert(self, data: Any, *, on: Any = None) -> Commit:
        """Puts rows in the place of those with their keys."""
        return self._db.upsert(self._name, data, on=on)

    def delete(self, where: Any = None, *, keys: Any = None) -> Commit:
        """Takes away the rows for which ``where`` is true, or those with these keys."""
        return self._db.delete(self._name, where, keys=keys)

    def update(self, where: Any = None, **set: Any) -> Commit:  # noqa: A002
        """Changes columns of the rows for which ``where`` is true."""
        return self._db.update(self._name, where, **set)

    def truncate(self) -> Commit:
        """Takes away all rows."""
        return self._db.truncate(self._name)

    def drop_table(self) -> None:
        """Drops the table."""
        self._db.drop(self._name)

    def appender(self, *, rows: int = 65536, every: Any = "10ms") -> Any:
        """Rows one by one, written in commits of many."""
        from ..appender import Appender

        return Appender(self, rows=rows, every=every)


class View(Relation):
    """A view: kept current; reading it is a look-up."""

    _is_current = True

    def __init__(self, db: Any, name: str, *, definition: str = "", emit: str = "change", anonymous: bool = False,
                 holds: Sequence[Any] = ()) -> None:
        self._name, self.definition, self.emit = name, definition, emit
        super().__init__(db, f"SELECT * FROM {q.name(name)}", from_=q.name(name), holds=holds)
        self._anonymous = anonymous

    @property
    def name(self) -> str:
        """The name in the catalog."""
        return self._name

    def drop(self, *columns: Any, **kw: Any) -> Any:  # type: ignore[override]
        """Without arguments drops the view; with columns, the relation without them."""
        if columns:
            return super().drop(*columns, **kw)
        self._db.drop(self._name)
        return None

    def _footer(self, rows: Rows) -> str:
        now = _dt.datetime.now().strftime("%H:%M:%S")
        return f"view · live · {len(rows)} row{'' if len(rows) == 1 else 's'} as of {now}"

    def freshness(self) -> _dt.timedelta:
        """How old the last commit is that its rows show."""
        micros = _dt.datetime.now(_dt.timezone.utc).timestamp() * 1e6 - self._db.now()
        return _dt.timedelta(microseconds=max(0, int(micros)))

    def stats(self) -> Dict[str, Any]:
        """Rows and memory of what the view keeps."""
        return {"rows": self.row_count(), "name": self._name}

    def wait_for(self, predicate: Callable[[Rows], bool], timeout: Any = "10s") -> bool:
        """Reads at every change until ``predicate(rows)`` is true; False when time is over."""
        import time as _time

        from ..durations import seconds

        deadline = _time.monotonic() + seconds(timeout)
        with self.changes(snapshot=False) as changes:
            while True:
                if predicate(self.collect()):
                    return True
                left = deadline - _time.monotonic()
                if left <= 0:
                    return False
                changes._wait(min(left, 0.25))


class Source(Table):
    """A source: rows that come from outside."""

    def _status(self) -> Dict[str, Any]:
        found = [s for s in self._db._engine.sources() if s["name"] == self._name]
        if not found:
            raise UnknownName(f'source "{self._name}" does not exist', sqlstate="42P01")
        return found[0]

    @property
    def state(self) -> str:
        """``unread`` (no query reads it yet), ``running``, ``done`` or ``failed``."""
        return self._status()["state"]

    @property
    def rows_read(self) -> int:
        """Rows taken in."""
        return self._status()["rows"]

    @property
    def progress(self) -> Optional[float]:
        """The share that was read, from 0 to 1, where it is known."""
        status = self._status()
        return status["bytes_read"] / status["bytes_total"] if status["bytes_total"] else None

    @property
    def skipped(self) -> int:
        """Bad lines left out."""
        return self._status()["skipped"]

    @property
    def error(self) -> Optional[str]:
        """Why it failed."""
        return self._status()["error"]

    def stop(self) -> None:
        """Reads no more; the rows stay."""
        self._db._run(f"ALTER SOURCE {q.name(self._name)} STOP")

    def wait(self, timeout: Any = None) -> None:
        """Waits until it is read to its end; a live one, until it has read what was there."""
        import time as _time

        from ..durations import seconds

        deadline = None if timeout is None else _time.monotonic() + seconds(timeout)
        while (status := self._status())["state"] == "running" and status["bounded"]:
            if deadline is not None and _time.monotonic() > deadline:
                from ..errors import TimedOut

                raise TimedOut(f'source "{self._name}" still runs')
            _time.sleep(0.01)
