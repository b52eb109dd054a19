"""Databases behind PostgreSQL's protocol: the same relations in methods and SQL, over psycopg.

The texts that relations write are SQL, so a server needs no part of this package. What needs rows,
functions or events of this process on the server's side is refused, with the way out.

Rows are read as a whole. Frames that are named in a query travel as VALUES in its text, up to
``CAPTURED_ROWS_MAX`` rows.
"""

from __future__ import annotations

import itertools
import queue
import random
import re
import threading
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from . import _native
from . import sqltext as q
from .database import Database
from .errors import Error, InterfaceError, NotSupportedError, UnavailableError, from_engine, needs
from .relation import Relation

CAPTURED_ROWS_MAX = 10_000

_TYPES: Dict[int, str] = {
    16: "boolean", 17: "bytea", 18: "text", 19: "text", 20: "bigint", 21: "smallint", 23: "integer", 25: "text", 26: "bigint",
    114: "json", 700: "real", 701: "double precision", 1042: "text", 1043: "text", 1082: "date", 1083: "time",
    1114: "timestamp", 1184: "timestamptz", 1186: "interval", 1700: "numeric", 2950: "uuid", 3802: "jsonb",
}
_ARRAYS: Dict[int, int] = {
    1000: 16, 1001: 17, 1005: 21, 1007: 23, 1009: 25, 1014: 1042, 1015: 1043, 1016: 20, 1021: 700, 1022: 701, 1115: 1114,
    1182: 1082, 1183: 1083, 1185: 1184, 1231: 1700, 2951: 2950,
}
_KINDS = {"r": "Table", "p": "Table", "f": "Source", "v": "View", "m": "MaterializedView"}


def connect(url: str, *, read_only: bool, config: Optional[Mapping]) -> "RemoteDatabase":
    """A database behind a URL of PostgreSQL."""
    return RemoteDatabase(RemoteEngine(url, read_only), url, config)


class RemoteDatabase(Database):
    """A database behind PostgreSQL's protocol. No events, and no functions of Python."""

    def __init__(self, engine: "RemoteEngine", url: str, config: Optional[Mapping]) -> None:
        super().__init__(config=config, _engine=engine, _read_only=engine._read_only)
        self._name = _without_password(url)
        # (Names of hidden views must not be those of other clients.)
        self._numbers = itertools.count(random.getrandbits(40))

    def connection(self) -> Any:
        self._check_open()
        return RemoteConnection(self._root)

    def _hidden(self, what: str, types: Mapping[str, Any], rows: Any) -> Relation:
        return written_out(self, types, rows)


class RemoteConnection(RemoteDatabase):
    """A connection of a remote database, with a transaction of its own."""

    def __init__(self, root: Database) -> None:
        self.__dict__.update(root.__dict__)
        self._root = root
        self._engine = root._engine.connect()

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


def written_out(db: Any, types: Mapping[str, Any], rows: Any) -> Relation:
    """Rows as VALUES in the text of the query."""
    given = [] if rows is None else rows.tuples()
    if len(given) > CAPTURED_ROWS_MAX:
        raise NotSupportedError(f"{len(given)} rows are too many to travel in the text of a query",
                                hint=f"create_table first; up to {CAPTURED_ROWS_MAX} rows are written out")
    columns = ", ".join(f"CAST({q.name(f'c{i}')} AS {of}) AS {q.name(n)}" for i, (n, of) in enumerate(types.items()))
    names = ", ".join(q.name(f"c{i}") for i in range(len(types)))
    listed = ", ".join("(" + ", ".join(q.literal(v)[0] for v in row) + ")" for row in given or [[None] * len(types)])
    text = f"SELECT {columns} FROM (VALUES {listed}) AS v ({names}){'' if given else ' WHERE false'}"
    return Relation(db, text, from_=f"({text})")


def _without_password(url: str) -> str:
    return re.sub(r"(://[^/:@]*):[^@/]*@", r"\1@", url)


def _type_of(oid: int, modifier: int) -> str:
    if oid in _ARRAYS:
        return _type_of(_ARRAYS[oid], -1) + "[]"
    if oid == 1700 and modifier >= 4:
        return f"numeric({(modifier - 4) >> 16},{(modifier - 4) & 0x7FF})"
    return _TYPES.get(oid, "text")


class RemoteEngine:
    """What ``_native.Engine`` is for a database of this process, over one connection of psycopg."""

    # (The server's log tells of its snapshots.)
    snapshot_failure: Optional[str] = None

    def __init__(self, url: str, read_only: bool = False) -> None:
        try:
            import psycopg
        except ImportError:
            raise needs("psycopg[binary]", "a remote database") from None
        self._psycopg, self._url, self._read_only = psycopg, url, read_only
        self._lock = threading.RLock()
        try:
            self._connection = psycopg.connect(url, autocommit=True)
        except psycopg.OperationalError as error:
            raise UnavailableError(f"cannot connect to {_without_password(url)}: {error}".strip(), sqlstate="08006") from None
        adapters = self._connection.adapters
        # Documents and ids are texts here, as in the engine.
        for name in ("json", "jsonb", "uuid"):
            adapters.register_loader(name, _text_loader(psycopg))
        if read_only:
            self.execute("SET default_transaction_read_only = on")

    # -- statements --------------------------------------------------------------------------------

    def _raised(self, error: Any, script: Optional[str]) -> Error:
        diag = getattr(error, "diag", None)
        state = (diag.sqlstate if diag else None) or ("08006" if self._connection.closed else "58000")
        message = (diag.message_primary if diag else None) or str(error)
        made = from_engine("unavailable" if state[:2] in ("08", "57", "58") else "invalid", state, message,
                           diag.message_detail if diag else None, diag.message_hint if diag else None, None, script)
        if diag and diag.statement_position and script is not None:
            made.position = int(diag.statement_position) - 1
        return made

    def execute(self, script: str) -> List[Tuple[str, Optional[str], Optional[Any], Optional[Any]]]:
        """Runs a script: ``(tag, None, rows, changes)`` for each statement."""
        if q.first_word(script) == "SUBSCRIBE":
            return [("SUBSCRIBE", None, None, RemoteChanges(self, script))]
        self._check()
        with self._lock:
            try:
                cursor = self._connection.execute(script)
                outcomes = []
                while True:
                    outcomes.append((cursor.statusmessage or "", None, self._rows_of(cursor), None))
                    if not cursor.nextset():
                        return outcomes
            except self._psycopg.Error as error:
                raise self._raised(error, script) from None

    def _rows_of(self, cursor: Any) -> Optional[Any]:
        if cursor.description is None:
            return None
        result = cursor.pgresult
        names = [column.name for column in cursor.description]
        types = [_type_of(result.ftype(i), result.fmod(i)) for i in range(len(names))]
        return rows_of(names, types, cursor.fetchall())

    def describe(self, sql: str) -> Tuple[List[Tuple[str, str, bool]], Any]:
        """Columns of a query, without running it."""
        self._check()
        with self._lock:
            connection = self._connection.pgconn
            try:
                for result in (connection.prepare(b"", sql.encode()), connection.describe_prepared(b"")):
                    if result.status not in (1, 2):
                        raise self._psycopg.errors.error_from_result(result)
            except self._psycopg.Error as error:
                raise self._raised(error, sql) from None
            names = [(result.fname(i) or b"").decode() for i in range(result.nfields)]
            types = [_type_of(result.ftype(i), result.fmod(i)) for i in range(result.nfields)]
        fields = [(name, of, True) for name, of in zip(names, types)]
        return fields, _native.Rows.of_types(names, types)

    def relations(self) -> List[Tuple[str, str, List[str]]]:
        """Relations by name, with their primary keys."""
        kinds = self.execute(
            "SELECT c.relname, c.relkind FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'p', 'f', 'v', 'm')")[-1][2]
        keys = self.execute(
            "SELECT k.table_name, k.column_name FROM information_schema.key_column_usage k "
            "JOIN information_schema.table_constraints c ON c.constraint_name = k.constraint_name "
            "AND c.table_name = k.table_name WHERE c.constraint_type = 'PRIMARY KEY' ORDER BY k.ordinal_position")[-1][2]
        by_table: Dict[str, List[str]] = {}
        for table, column in keys.tuples():
            by_table.setdefault(table, []).append(column)
        return [(name, _KINDS.get(kind, "Table"), by_table.get(name, [])) for name, kind in kinds.tuples()]

    def insert(self, table: str, rows: Any) -> int:
        """Appends rows by COPY, as one commit."""
        self._check()
        columns = ", ".join(map(q.name, rows.names))
        with self._lock:
            try:
                with self._connection.cursor() as cursor:
                    with cursor.copy(f"COPY {q.name(table)} ({columns}) FROM STDIN") as copy:
                        for row in rows.tuples():
                            copy.write_row([_sent(value) for value in row])
            except self._psycopg.Error as error:
                raise self._raised(error, None) from None
        return self.time()

    def time(self) -> int:
        """The server's time, in microseconds."""
        found = self.execute("SELECT now()")[-1][2].tuples()[0][0]
        return int(found.timestamp() * 1_000_000)

    def sources(self) -> List[Dict[str, Any]]:
        """Sources are the server's own."""
        return []

    def post(self, script: str) -> None:
        """Runs a script; errors are dropped. For finalizers."""
        if self.closed:
            return
        # (A finalizer may run on a thread that holds the lock: another waits for it.)
        threading.Thread(target=self._posted, args=(script,), daemon=True).start()

    def _posted(self, script: str) -> None:
        try:
            self.execute(script)
        except Exception:  # the connection goes, or the object is gone already
            pass

    # -- the connection ----------------------------------------------------------------------------

    def connect(self) -> "RemoteEngine":
        """Another connection to the same server."""
        return RemoteEngine(self._url, self._read_only)

    def transaction(self) -> str:
        """``none``, ``open`` or ``failed``."""
        return {0: "none", 3: "failed"}.get(int(self._connection.info.transaction_status), "open")

    def interrupt(self) -> None:
        """Stops the statement that runs, from another thread."""
        self._connection.cancel_safe(timeout=5)

    def close(self) -> None:
        """Ends the connection; an open transaction is rolled back."""
        self._connection.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed, or the server is gone."""
        return bool(self._connection.closed)

    def _check(self) -> None:
        if self.closed:
            raise InterfaceError("the connection is closed", sqlstate="08003", hint="connect anew")

    # -- what a server cannot have of this process -------------------------------------------------

    def _refused(self, what: str, hint: str) -> Any:
        raise NotSupportedError(f"{what} of a remote database are not supported", hint=hint)

    def register_function(self, name: str, function: Any) -> None:
        """Refused."""
        self._refused("functions of Python", "connect to a directory, or run the function in the server's shell with --load")

    def unregister_function(self, name: str) -> bool:
        """There is none."""
        return False

    def events(self, relation: str, options: Any) -> Any:
        """Refused."""
        self._refused("events", "connect to a directory")

    def contents(self, relation: str) -> Any:
        """Refused."""
        self._refused("events", "connect to a directory")

    def create_view(self, name: str, frame: Any) -> None:
        """Refused."""
        self._refused("events", "connect to a directory")

    def apply(self, table: str, rows: Any, diffs: Sequence[int], time: Optional[int] = None) -> int:
        """Refused."""
        return self._refused("signed changes", "insert and delete")


def rows_of(names: Sequence[str], types: Sequence[str], tuples: Sequence[Tuple]) -> Any:
    """Values of psycopg as rows. Numerics without a scale get the one that their values need; where
    38 digits are too few for them, they are texts."""
    columns = [[row[i] for row in tuples] for i in range(len(names))]
    exact = [_scaled(column) if of == "numeric" else of for of, column in zip(types, columns)]
    return _native.Rows.from_columns(list(names), columns, _native.Rows.of_types(list(names), exact))


def _scaled(values: Sequence[Any]) -> str:
    """The type of exact numbers that has room for all of these."""
    there = [value.as_tuple() for value in values if value is not None]
    if not all(isinstance(value.exponent, int) for value in there):
        return "numeric"
    scale = max((max(0, -value.exponent) for value in there), default=0)
    whole = max((max(0, len(value.digits) + value.exponent) for value in there), default=0)
    return f"numeric(38,{scale})" if whole + scale <= 38 else "numeric"


def _sent(value: Any) -> Any:
    """A value as psycopg writes it."""
    if type(value).__name__ == "Interval" and hasattr(value, "timedelta"):
        return f"{value.months} months {value.days} days {value.microseconds} microseconds"
    return value


def _text_loader(psycopg: Any) -> Any:
    class AsText(psycopg.adapt.Loader):  # type: ignore[misc, name-defined]
        """The value as its text."""

        def load(self, data: Any) -> str:
            return bytes(data).decode()

    return AsText


class RemoteChanges:
    """SUBSCRIBE over a connection of its own; a thread reads what comes."""

    def __init__(self, engine: RemoteEngine, script: str) -> None:
        if "PROGRESS" in script:
            raise NotSupportedError("progress of a remote subscription is not told", hint="subscribe() without progress")
        self._engine, self._script = engine, script
        query = script.split(None, 1)[1]
        for word in (" WITH (", " AS OF ", " UP TO ", " ENVELOPE "):
            query = query.partition(word)[0]
        text = query if query.startswith("(") else f"(SELECT * FROM {query})"
        fields, _ = engine.describe(f"SELECT * FROM {text} AS _")
        second = ("state", "text") if " ENVELOPE " in script else ("diff", "bigint")
        self._names = ["time", second[0], *[name for name, _, _ in fields]]
        self._types = ["bigint", second[1], *[of for _, of, _ in fields]]
        self._own = engine.connect()
        self._heard: "queue.Queue[Any]" = queue.Queue()
        self._ended = False
        self._thread = threading.Thread(target=self._listen, name="anabranch subscription", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        try:
            with self._own._connection.cursor() as cursor:
                for row in cursor.stream(self._script):
                    self._heard.put(row)
            self._heard.put(None)
        except Exception as error:
            self._heard.put(error if not self._ended else None)

    def next(self, timeout: float) -> Tuple[str, Any]:
        """What came within the time: rows, nothing, or the end."""
        if self._ended:
            return ("end", None)
        try:
            first = self._heard.get(timeout=min(timeout, 3600.0)) if timeout > 0 else self._heard.get_nowait()
        except queue.Empty:
            return ("nothing", None)
        rows = []
        while isinstance(first, tuple):
            rows.append(first)
            try:
                # Rows of one commit follow each other at once.
                first = self._heard.get(timeout=0.005)
            except queue.Empty:
                break
        else:
            self._heard.put(first)
        if rows:
            return ("rows", rows_of(self._names, self._types, rows))
        self._ended = True
        ended = self._heard.get_nowait()
        if isinstance(ended, self._engine._psycopg.Error):
            raise self._engine._raised(ended, self._script)
        return ("end", None)

    def schema(self) -> Any:
        """The columns of the changes, as an answer without rows."""
        return _native.Rows.of_types(self._names, self._types)

    def close(self) -> None:
        """Takes the query back."""
        if not self._ended:
            self._ended = True
            threading.Thread(target=self._stop, daemon=True).start()

    def _stop(self) -> None:
        try:
            self._own.interrupt()
        except Exception:  # the server is gone
            pass
        self._own.close()
