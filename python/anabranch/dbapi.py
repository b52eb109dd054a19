"""DB-API 2.0 (PEP 249): connections that begin transactions by themselves.

>>> import anabranch.dbapi as db
>>> with db.connect() as connection:
...     cursor = connection.cursor()
...     _ = cursor.execute("CREATE TABLE t (k int, v text)")
...     _ = cursor.executemany("INSERT INTO t VALUES (?, ?)", [(1, "a"), (2, "b")])
...     connection.commit()
...     cursor.execute("SELECT v FROM t WHERE k = ?", [2]).fetchone()
('b',)
"""

from __future__ import annotations

import datetime as _dt
import threading
import time as _time
from typing import Any, Iterator, List, Optional, Sequence, Tuple

from . import sqltext as q
from .database import Connection as _Native, Database, connect as _connect
from .errors import (DatabaseError, DataError, Error, IntegrityError, InterfaceError, InternalError, NotSupportedError,
                     OperationalError, ProgrammingError, Warning)
from .rows import Rows

__all__ = [
    "apilevel", "threadsafety", "paramstyle", "connect", "Connection", "Cursor", "Warning", "Error", "InterfaceError",
    "DatabaseError", "DataError", "OperationalError", "IntegrityError", "InternalError", "ProgrammingError",
    "NotSupportedError", "Date", "Time", "Timestamp", "DateFromTicks", "TimeFromTicks", "TimestampFromTicks", "Binary",
    "STRING", "BINARY", "NUMBER", "DATETIME", "ROWID",
]

apilevel = "2.0"
threadsafety = 2
paramstyle = "qmark"

Date, Time, Timestamp, Binary = _dt.date, _dt.time, _dt.datetime, bytes


def DateFromTicks(ticks: float) -> _dt.date:
    """The local date of seconds since the epoch."""
    return Date(*_time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> _dt.time:
    """The local time of day of seconds since the epoch."""
    return Time(*_time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> _dt.datetime:
    """The local time of seconds since the epoch."""
    return Timestamp(*_time.localtime(ticks)[:6])


class _TypeObject:
    """What a column's ``type_code`` may be equal to."""

    def __init__(self, *beginnings: str) -> None:
        self._beginnings = beginnings

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and other.startswith(self._beginnings))

    __hash__ = object.__hash__


STRING = _TypeObject("text", "varchar", "character", "char", "json", "uuid")
BINARY = _TypeObject("bytea")
NUMBER = _TypeObject("tinyint", "smallint", "integer", "bigint", "real", "double", "numeric", "u", "boolean")
DATETIME = _TypeObject("date", "time", "interval")
ROWID = _TypeObject("rowid")


def connect(target: Any = ":memory:", *, autocommit: bool = False, **kw: Any) -> "Connection":
    """Opens a database, as ``anabranch.connect`` does, and one connection; closing the connection
    closes both."""
    database = _connect(target, **kw)
    return Connection(database.connection(), autocommit=autocommit, database=database)


class Connection:
    """A connection. The first statement that reads or writes begins a transaction, unless
    ``autocommit``."""

    Warning, Error, InterfaceError, DatabaseError = Warning, Error, InterfaceError, DatabaseError
    DataError, OperationalError, IntegrityError = DataError, OperationalError, IntegrityError
    InternalError, ProgrammingError, NotSupportedError = InternalError, ProgrammingError, NotSupportedError

    def __init__(self, native: _Native, *, autocommit: bool = False, database: Optional[Database] = None) -> None:
        self._native, self._database, self._lock = native, database, threading.RLock()
        self._autocommit = autocommit

    @property
    def autocommit(self) -> bool:
        """Whether each statement commits by itself; setting it commits what is open."""
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if value and self._native.in_transaction:
            self.commit()
        self._autocommit = value

    def cursor(self) -> "Cursor":
        """A cursor."""
        self._native._check_open()
        return Cursor(self)

    def commit(self) -> None:
        """Ends the transaction: what was written takes effect. Without one, nothing happens."""
        self._native._check_open()
        if self._native.in_transaction:
            self._native.commit()

    def rollback(self) -> None:
        """Ends the transaction: what was written is forgotten. Without one, nothing happens."""
        self._native._check_open()
        if self._native.in_transaction:
            self._native.rollback()

    def close(self) -> None:
        """Closes; an open transaction is rolled back."""
        self._native.close()
        if self._database is not None:
            self._database.close()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if not self._native.closed and kind is None:
            self.commit()
        self.close()

    def _run(self, text: str) -> Tuple[str, Optional[Rows]]:
        with self._lock:
            word = q.first_word(text)
            begins = word in ("SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "MERGE")
            if not self._autocommit and begins and not self._native.in_transaction:
                self._native.begin()
            elif not begins and word in ("CREATE", "DROP", "ALTER") and self._native.in_transaction and not self._autocommit:
                # Definitions are no part of transactions: what is open ends first.
                self._native.commit()
            outcomes = self._native._engine.execute(text)
            self._native._changed(text)
            tag, _, rows, changes = outcomes[-1]
            if changes is not None:
                changes.close()
                raise NotSupportedError("SUBSCRIBE gives changes, which cursors do not have", hint="relation.changes()")
            return tag, None if rows is None else Rows(rows)


class Cursor:
    """A cursor: one statement's rows, at one place."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._rows: Optional[Rows] = None
        self._closed = False
        self.rowcount = -1
        self.rownumber: Optional[int] = None

    @property
    def description(self) -> Optional[List[tuple]]:
        """For each column seven values: its name, its type as SQL names it, and None."""
        if self._rows is None:
            return None
        return [(n, str(of), None, None, None, None, None) for n, of in zip(self._rows.columns, self._rows.dtypes)]

    def execute(self, operation: str, parameters: Any = None) -> "Cursor":
        """Runs one statement; parameters are a sequence for ``?``, or a mapping for ``$name``."""
        self._check()
        if q.statements(operation) != 1:
            raise ProgrammingError(f"one statement was expected, but there are {q.statements(operation)}", sqlstate="42601")
        tag, self._rows = self.connection._run(q.bind(operation, parameters))
        last = tag.split()[-1] if tag else ""
        self.rowcount = len(self._rows) if self._rows is not None else int(last) if last.isdigit() else -1
        self.rownumber = 0 if self._rows is not None else None
        return self

    def executemany(self, operation: str, seq_of_parameters: Any) -> "Cursor":
        """Runs one statement for each of the parameters."""
        self._check()
        n = 0
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
            n += max(0, self.rowcount)
        self.rowcount, self._rows = n, None
        return self

    def _result(self) -> Rows:
        self._check()
        if self._rows is None:
            raise ProgrammingError("there are no rows to fetch", hint="execute a query first")
        return self._rows

    def fetchone(self) -> Optional[tuple]:
        """The next row, or None."""
        row = self._result().fetchone()
        if row is not None and self.rownumber is not None:
            self.rownumber += 1
        return row

    def fetchmany(self, size: Optional[int] = None) -> List[tuple]:
        """The next rows."""
        rows = self._result().fetchmany(self.arraysize if size is None else size)
        self.rownumber = (self.rownumber or 0) + len(rows)
        return rows

    def fetchall(self) -> List[tuple]:
        """All rows that were not fetched yet."""
        rows = self._result().fetchall()
        self.rownumber = (self.rownumber or 0) + len(rows)
        return rows

    def __iter__(self) -> Iterator[tuple]:
        while (row := self.fetchone()) is not None:
            yield row

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing."""

    def setoutputsize(self, size: int, column: Optional[int] = None) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Closes the cursor."""
        self._closed, self._rows = True, None

    def _check(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self.connection._native._check_open()

    def __enter__(self) -> "Cursor":
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()
