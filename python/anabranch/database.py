"""Databases: where tables, views and sources live."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Union

from . import _native
from . import sqltext as q
from .asking import Asking
from .errors import Error, InterfaceError, NotSupportedError, ProgrammingError, SerializationError
from .holding import Holding
from .relation import Relation
from .types import Schema
from .views import Defining
from .writing import Writing

__all__ = ["Database", "connect", "default_database"]

_open: "weakref.WeakSet[Database]" = weakref.WeakSet()
_OPTIONS: Dict[str, Any] = {
    "replacement_scans": True, "display_rows": 20, "display_width": None, "progress": "auto", "callbacks_max": 1024,
}


def connect(
    target: Union[str, os.PathLike] = ":memory:", *, read_only: bool = False, workers: Optional[int] = None,
    config: Optional[Mapping] = None, snapshots: Optional[str] = None,
) -> "Database":
    """Opens a database: in memory, in a directory, or behind ``postgres://user@host:port/name``.

    What a database in a directory has answered is on disk: see docs/durability.md. A remote one
    needs psycopg; relations in SQL and methods, writes and changes are as here, events and
    functions of Python are not there. With ``read_only=True`` statements that write raise
    ``ReadOnlyError``. Snapshots of a database in a directory go to ``snapshots``, as
    ``"s3://bucket/prefix"``, once they were told to.

    >>> import anabranch as ab
    >>> with ab.connect() as db:
    ...     db.sql("SELECT 1 + 1").item()
    2
    """
    where = os.fspath(target)
    if where.startswith(("postgres://", "postgresql://")):
        from . import remote

        if workers is not None:
            raise ProgrammingError("workers are those of the server", hint="leave workers= out")
        if snapshots is not None:
            raise ProgrammingError("snapshots are the server's", hint="start it with --snapshots")
        return remote.connect(where, read_only=read_only, config=config)
    folder = None if where == ":memory:" else os.fsdecode(where)
    if folder is None and snapshots is not None:
        raise ProgrammingError("a database in memory has no snapshots", hint="name a directory for it")
    return Database(
        workers=workers, config=config, _folder=folder, _read_only=read_only, _snapshots=snapshots
    )


class Database(Asking, Holding, Writing, Defining):
    """A database; a context manager that closes it. Usable from any thread.

    >>> import anabranch as ab
    >>> db = ab.connect()
    >>> t = db.create_table("t", {"k": str, "n": int}, primary_key="k")
    >>> t.insert([("a", 1)]).rows
    1
    >>> db.sql("SELECT sum(n) FROM t").item()
    1
    """

    def __init__(
        self, *, workers: Optional[int] = None, config: Optional[Mapping] = None, _manual: bool = False,
        _folder: Optional[str] = None, _engine: Any = None, _read_only: bool = False,
        _snapshots: Optional[str] = None,
    ) -> None:
        self._read_only = _read_only
        n = max(1, (os.cpu_count() or 1) - 1) if workers is None else workers
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise ProgrammingError(f"workers is a number from 0, not {workers!r}", sqlstate="22023")
        self._engine = _engine if _engine is not None else _native.Engine(n, _manual, _folder, _snapshots)
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._scans: Dict[str, Any] = {}
        self._functions: Dict[str, Any] = {}
        self._function_names: Dict[Any, str] = {}
        self._macros: Dict[str, Any] = {}
        self._kept: Dict[str, Any] = {}
        self._root: Database = self
        self._append_only: set = set()
        self._temporary: set = set()
        self._schemas: Dict[str, Schema] = {}
        self._options = dict(_OPTIONS)
        self._callbacks: Any = None
        self._name = "memory" if _folder is None else _folder
        _open.add(self)
        for name in _OPTIONS:
            given = os.environ.get("ANABRANCH_" + name.upper())
            if given is not None:
                self._options[name] = _option_value(name, given)
        for name, value in (config or {}).items():
            self.set(name, value)
        if _folder is not None:
            self._tidy()

    def _tidy(self) -> None:
        """Drops what an earlier process made for itself and left behind; views of the user's may
        hold some of it."""
        left = [(name, kind) for name, (kind, _) in self._kinds().items() if name.startswith("_py_")]
        for name, kind in reversed(left):
            word = {"MaterializedView": "MATERIALIZED VIEW"}.get(kind, kind.upper())
            try:
                self._engine.execute(f"DROP {word} {q.name(name)}")
            except Error:
                pass
        tables = [name for name, (kind, _) in self._kinds().items() if kind == "Table"]
        made = {name: self._run(f"SHOW CREATE TABLE {q.name(name)}").all()[0][1] for name in tables}
        self._append_only = {name for name, text in made.items() if text.endswith("APPEND ONLY")}
        numbers = [int(name.rsplit("_", 1)[1]) for name, _ in left if name.rsplit("_", 1)[1].isdigit()]
        self._numbers = itertools.count(max(numbers, default=0) + 1)

    # -- connections -------------------------------------------------------------------------------

    @contextmanager
    def transaction(self, *, read_only: bool = False) -> Iterator["Connection"]:
        """Several statements as one, on a connection of their own: commits, or rolls back when the
        block raises.

        A transaction that has read what another has changed since fails to commit with
        ``SerializationError``.

        >>> import anabranch as ab
        >>> db = ab.connect()
        >>> t = db.create_table("t", {"n": int})
        >>> with db.transaction() as tx:
        ...     _ = tx.insert("t", [(1,)])
        ...     _ = tx.insert("t", [(2,)])
        >>> t.row_count()
        2
        """
        connection = self.connection()
        try:
            connection.begin(read_only=read_only)
            yield connection
            if connection.in_transaction:
                connection.commit()
        finally:
            # (An open transaction is rolled back with its connection.)
            connection.close()

    def run_transaction(self, fn: Callable, *, retries: int = 5) -> Any:
        """Runs ``fn(connection)`` in a transaction, again when another was first; gives what ``fn``
        gives."""
        for attempt in range(retries + 1):
            try:
                with self.transaction() as connection:
                    return fn(connection)
            except SerializationError:
                if attempt == retries:
                    raise

    def connection(self) -> "Connection":
        """A connection with settings and a transaction of its own; it has the methods of the
        database."""
        self._check_open()
        return Connection(self._root)

    def cursor(self) -> Any:
        """A cursor of DB-API 2.0 that commits each statement by itself."""
        from .dbapi import Connection as Adapter

        return Adapter(self.connection(), autocommit=True).cursor()

    def start(self, events: Any, *inputs: Any) -> Any:
        """Sets events, or a sharded program, to work; push rows into what it returns."""
        from .runs import start
        from .shards import Shards

        self._check_open()
        if isinstance(events, Shards):
            return events.start()
        return start(self, events)

    def shards(self, relation: Any, columns: Any = None, *, shards: Any = None) -> Any:
        """A relation, or columns of it, in so many shards, each on a thread of its own: the
        beginning of a sharded program. Its rows are read when the program starts. ``(2, 4)`` is two
        processes of four shards; None: one a core.

        ``EXPLAIN (FORMAT python)`` writes programs in this form.

        >>> import anabranch as ab
        >>> db = ab.connect()
        >>> _ = db.create_table("views", {"ad": int}).insert([(7,), (7,), (8,)])
        >>> counts = db.shards("views", ["ad"], shards=2).rekey("ad").redistribute()
        >>> counts = counts.sql("SELECT ad, count(*) AS n FROM shard GROUP BY ad")
        >>> sorted(counts.collect())
        [(7, 2), (8, 1)]
        """
        from .shards import of_relation

        self._check_open()
        return of_relation(self, relation, columns, shards)

    def progressive(self, events: Any, sources: Mapping[str, Any], steps: int = 10) -> Any:
        """Early answers over growing shares of rows, refined to the exact one: an iterator of
        ``Early(share, rows)``. Sources are data, relations or files, one for each input.

        >>> import anabranch as ab
        >>> e = ab.Events.input("in", {"g": str, "at": int}, time="at")
        >>> with ab.connect() as db:
        ...     counts = e.group_by("g").agg(n=ab.len())
        ...     answers = list(db.progressive(counts, {"in": [("a", 1), ("b", 2), ("a", 3)]}, 2))
        >>> answers[-1].share, sorted(answers[-1].rows)
        (1.0, [('a', 2), ('b', 1)])
        """
        from .events import Events
        from .runs import progressive

        self._check_open()
        if not isinstance(events, Events):
            raise ProgrammingError(f"{type(events).__name__} is no events", hint="ab.Events.input(..)")
        return progressive(events, sources, steps)

    def relations(self) -> Relation:
        """Tables, views and sources: name and kind."""
        rows = [(n, k.lower(), ", ".join(key)) for n, k, key in self._engine.relations() if not n.startswith("_py_")]
        return self.values(rows, {"name": str, "kind": str, "primary_key": str})

    def sources(self) -> Relation:
        """Sources and where they stand."""
        rows = [(s["name"], s["state"], s["rows"], s["skipped"], s["error"]) for s in self._engine.sources()]
        return self.values(rows, {"name": str, "state": str, "rows": int, "skipped": int, "error": str})

    def arrangements(self) -> Relation:
        """What is remembered, and for whom."""
        return self.relation(self._run("SHOW ARRANGEMENTS"))

    def watermarks(self) -> Relation:
        """Watermarks of tables and sources, and rows that were late."""
        return self.relation(self._run("SHOW WATERMARKS"))

    def settings(self) -> Relation:
        """Settings and their values."""
        rows = [(n, str(v)) for n, v in self._options.items()]
        rows += [(r[0], r[1]) for r in self._run("SHOW ALL").all()]
        return self.values(rows, {"name": str, "value": str})

    def late(self, name: str) -> int:
        """How many rows of a table or source were late and left out."""
        rows = self._run("SHOW WATERMARKS")
        for row in rows.to_dicts():
            if next(iter(row.values())) == name:
                return int(next(v for k, v in row.items() if "late" in k))
        raise ProgrammingError(f'"{name}" has no watermark', hint='create_table(.., watermark=("ts", "5s"))')

    def now(self) -> int:
        """The time of the last commit, in microseconds."""
        return self._engine.time()

    def set(self, name: str, value: Any) -> None:
        """Changes a setting."""
        if name in self._options:
            self._options[name] = value
            return
        shown = "on" if value is True else "off" if value is False else str(value)
        self._engine.execute(f"SET {name} = {q.text(shown)}")

    def get(self, name: str) -> Any:
        """The value of a setting."""
        if name in self._options:
            return self._options[name]
        return self._run(f"SHOW {name}").all()[0][-1 if len(self._run(f"SHOW {name}").columns) == 1 else 1]

    def _option(self, name: str) -> Any:
        return self._options[name]

    def flush(self) -> None:
        """Reads bounded sources to their end, and waits until every view is current."""
        self._engine.execute("FLUSH")

    def interrupt(self) -> None:
        """Stops the statement that runs, from another thread."""
        self._engine.interrupt()

    def checkpoint(self) -> None:
        """Writes a snapshot of a database on disk."""
        raise NotSupportedError("checkpoints need a database on disk")

    @property
    def snapshot_failure(self) -> Optional[str]:
        """Why the last snapshot of a database in a directory could not be written; None if it was,
        or if none was due. The first statement after a failure warns with ``SnapshotWarning``,
        too.
        """
        return self._engine.snapshot_failure

    def close(self) -> None:
        """Ends the engine. Rows that were read stay valid. Closing again does nothing."""
        if self._callbacks is not None:
            self._callbacks.stop()
        self._engine.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._engine.closed

    def _check_open(self) -> None:
        if self.closed:
            raise InterfaceError("the database is closed", hint="connect anew")

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a database cannot be pickled; connect in each process")

    def __repr__(self) -> str:
        if self.closed:
            return "<Database, closed>"
        kinds = [k for n, (k, _) in self._kinds().items() if not n.startswith("_py_")]
        return f"<Database in {self._name}: {len(kinds)} relation{'' if len(kinds) == 1 else 's'}>"

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("a database cannot be walked; .relations() lists what is in it")


def _option_value(name: str, text: str) -> Any:
    default = _OPTIONS[name]
    if isinstance(default, bool):
        return text.lower() in ("1", "true", "on", "yes")
    return int(text) if text.isdigit() else text


class Connection(Database):
    """A connection of a database: its own settings and transaction; everything else it shares.

    ``begin()``, ``commit()``, ``rollback()``; a context manager that closes it, which rolls an open
    transaction back.
    """

    def __init__(self, root: Database) -> None:
        self.__dict__.update(root.__dict__)
        self._root = root
        self._engine = root._engine.connect()

    def _hidden(self, what: str, types: Mapping[str, Any], rows: Any) -> Relation:
        """Inside a transaction rows are written into the text: definitions cannot change there."""
        if not self.in_transaction:
            return super()._hidden(what, types, rows)
        columns = ", ".join(f"CAST({q.name(f'c{i}')} AS {of}) AS {q.name(n)}" for i, (n, of) in enumerate(types.items()))
        names = ", ".join(q.name(f"c{i}") for i in range(len(types)))
        given = [] if rows is None else rows.tuples()
        listed = ", ".join("(" + ", ".join(q.literal(v)[0] for v in row) + ")" for row in given or [[None] * len(types)])
        text = f"SELECT {columns} FROM (VALUES {listed}) AS v ({names}){'' if given else ' WHERE false'}"
        return Relation(self, text, from_=f"({text})")

    def begin(self, *, read_only: bool = False) -> None:
        """Begins a transaction."""
        self._engine.execute("BEGIN READ ONLY" if read_only else "BEGIN")

    def commit(self) -> None:
        """Makes what was written since ``begin`` take effect, as one commit."""
        self._engine.execute("COMMIT")
        self._schemas.clear()

    def rollback(self) -> None:
        """Forgets what was written since ``begin``."""
        self._engine.execute("ROLLBACK")
        self._schemas.clear()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, or has failed and waits for ``rollback``."""
        return self._engine.transaction() != "none"

    def close(self) -> None:
        """Ends the connection; an open transaction is rolled back."""
        self._engine.close()

    def __repr__(self) -> str:
        return "<Connection, closed>" if self.closed else f"<Connection to {self._name}>"


_default: Optional[Database] = None
_default_lock = threading.Lock()


def default_database() -> Database:
    """The database of ``ab.sql`` and its like: in memory, made at first use."""
    global _default
    with _default_lock:
        if _default is None or _default.closed:
            _default = Database()
        return _default


def _close_all() -> None:
    for database in list(_open):
        if database._process == os.getpid():
            try:
                database.close()
            except Exception:  # the interpreter goes
                pass
