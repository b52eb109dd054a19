"""Databases: where tables, views and sources live."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _native, data as _data
from . import sqltext as q
from .errors import (DuplicateName, Error, IntegrityError, InterfaceError, NotSupportedError, ProgrammingError, UnknownName,
                     nearest, unknown_column)
from .expr import Expr, as_column, col, listed
from .relation import Relation, Source, Table, View
from .rows import Rows
from .tracing import Row, trace
from .types import Schema, schema_columns, sql_type
from .values import Commit

__all__ = ["Database", "connect", "default_database"]

_open: "weakref.WeakSet[Database]" = weakref.WeakSet()
_OPTIONS: Dict[str, Any] = {
    "replacement_scans": True, "display_rows": 20, "display_width": None, "progress": "auto", "callbacks_max": 1024,
}


def connect(
    target: Union[str, os.PathLike] = ":memory:", *, read_only: bool = False, workers: Optional[int] = None,
    config: Optional[Mapping] = None,
) -> "Database":
    """Opens a database; in memory unless a directory is named.

    What a database in a directory has answered is on disk: see docs/durability.md.

    >>> import anabranch as ab
    >>> with ab.connect() as db:
    ...     db.sql("SELECT 1 + 1").item()
    2
    """
    where = os.fspath(target)
    if where.startswith(("postgres://", "postgresql://")):
        raise NotSupportedError("remote databases are not supported yet", hint='connect(), or a client of PostgreSQL')
    if read_only:
        raise NotSupportedError("read_only is not supported yet", hint="transaction(read_only=True)")
    return Database(workers=workers, config=config, _folder=None if where == ":memory:" else os.fsdecode(where))


class Database:
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
        _folder: Optional[str] = None,
    ) -> None:
        n = max(1, (os.cpu_count() or 1) - 1) if workers is None else workers
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise ProgrammingError(f"workers is a number from 0, not {workers!r}", sqlstate="22023")
        self._engine = _native.Engine(n, _manual, _folder)
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._scans: Dict[str, Any] = {}
        self._functions: Dict[str, Any] = {}
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
        """Drops what an earlier process made for itself and left behind; views of the user's may hold some of it."""
        left = [(name, kind) for name, (kind, _) in self._kinds().items() if name.startswith("_py_")]
        for name, kind in reversed(left):
            word = {"MaterializedView": "MATERIALIZED VIEW"}.get(kind, kind.upper())
            try:
                self._engine.execute(f"DROP {word} {q.name(name)}")
            except Error:
                pass
        numbers = [int(name.rsplit("_", 1)[1]) for name, _ in left if name.rsplit("_", 1)[1].isdigit()]
        self._numbers = itertools.count(max(numbers, default=0) + 1)

    # -- asking --------------------------------------------------------------------------------------

    def _run(self, text: str) -> Rows:
        """Runs a script; the last statement's rows."""
        outcomes = self._engine.execute(text)
        self._changed(text)
        for _, _, rows, _ in reversed(outcomes):
            if rows is not None:
                return Rows(rows)
        return Rows(_native.Rows.from_columns([], []))

    def _ask(self, text: str, timeout: Any = None) -> Rows:
        if timeout is None:
            return Rows(self._engine.execute(text)[-1][2])
        return self._in_time(text, timeout)

    def _in_time(self, text: str, timeout: Any) -> Rows:
        from .durations import seconds
        from .errors import Cancelled, TimedOut

        timer = threading.Timer(seconds(timeout), self._engine.interrupt)
        timer.start()
        try:
            return Rows(self._engine.execute(text)[-1][2])
        except Cancelled:
            raise TimedOut(f"the query took longer than {timeout}") from None
        finally:
            timer.cancel()

    def _changed(self, text: str) -> None:
        """Forgets what it knew of columns when a script may have changed them."""
        if any(word in text.upper() for word in ("CREATE", "DROP", "ALTER", "ROLLBACK")):
            self._schemas.clear()

    def _schema_of(self, text: str) -> Schema:
        known = self._schemas.get(text)
        if known is not None:
            return known
        fields, empty = self._engine.describe(text)
        names = [name for name, _, _ in fields]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DuplicateName(f'column "{twice}" is there twice', hint="AS gives one another name")
        schema = Schema({name: _known_type(of) for name, of, _ in fields}, empty)
        if len(self._schemas) > 4096:
            self._schemas.clear()
        self._schemas[text] = schema
        return schema

    def _fresh(self, what: str) -> str:
        return f"_py_{what}_{next(self._numbers)}"

    # -- SQL -----------------------------------------------------------------------------------------

    def sql(self, text: str, params: Any = None, *, alias: Optional[str] = None) -> Relation:
        """One statement. A query is a relation, asked at each read; others run once, now.

        Names of Python variables that hold relations or frames are found (``set("replacement_scans", False)``).
        """
        return self._sql(text, params, alias, 2)

    def _sql(self, text: str, params: Any, alias: Optional[str], depth: int) -> Relation:
        if q.statements(text) != 1:
            raise ProgrammingError(f"one statement was expected, but there are {q.statements(text)}",
                                   sqlstate="42601", hint="execute(..) runs several")
        bound = q.bind(text, params).strip().rstrip(";")
        if q.is_query(bound):
            bound, holds = self._with_scans(bound, depth + 1)
            return Relation(self, bound, alias=alias, holds=holds)
        bound, holds = self._with_scans(bound, depth + 1)
        outcomes = self._engine.execute(bound)
        self._changed(bound)
        tag, detail, rows, changes = outcomes[-1]
        if changes is not None:
            changes.close()
            raise ProgrammingError("SUBSCRIBE gives changes, not rows", hint="relation.changes()")
        if rows is not None:
            return Relation(self, bound, rows=Rows(rows), holds=holds)
        empty = Rows(_native.Rows.from_columns([], []))
        return Relation(self, bound, rows=empty, status=tag if not detail else f"{tag}: {detail}")

    def execute(self, text: str, params: Any = None) -> Rows:
        """Runs a script, now; the last statement's rows."""
        bound, _ = self._with_scans(q.bind(text, params), 2)
        return self._run(bound)

    def executemany(self, text: str, rows: Any) -> Commit:
        """Runs one INSERT with ``?`` for every row, as one commit."""
        values = [tuple(row) for row in rows] if not hasattr(rows, "_native") else rows.fetchall()
        parts = list(q.tokens(text))
        at = next((i for i, (k, p) in enumerate(parts) if k == "name" and p.upper() == "VALUES"), None)
        if q.first_word(text) != "INSERT" or at is None:
            n = 0
            for row in values:
                self._run(q.bind(text, row))
                n += 1
            return Commit(self.now(), n)
        head, row_text = "".join(p for _, p in parts[: at + 1]), "".join(p for _, p in parts[at + 1:])
        if not values:
            return Commit(self.now(), 0)
        return self._write(head + ", ".join(q.bind(row_text, row) for row in values))

    def _with_scans(self, text: str, depth: int) -> Tuple[str, List[Any]]:
        """The text with Python variables put in the place of names that nobody knows."""
        if not self._options["replacement_scans"] and not self._scans:
            return text, []
        names = [n for n in q.relations_in(text)]
        if not names:
            return text, []
        known = {name.lower() for name, _, _ in self._engine.relations()}
        ctes, holds = [], []
        for name in names:
            if name.lower() in known or name in known:
                continue
            found = self._scans.get(name)
            if found is None and self._options["replacement_scans"]:
                found = _variable(name, depth)
            if found is None:
                continue
            relation = self._scanned(name, found)
            if relation is None:
                continue
            holds += list(relation._holds) + [relation]
            ctes.append(f"{q.name(name)} AS ({relation.sql_query() if not relation._order else relation._text})")
        if not ctes:
            return text, []
        word = q.first_word(text)
        if word == "WITH":
            at = text.upper().index("WITH") + 4
            return f"{text[:at]} {', '.join(ctes)},{text[at:]}", holds
        if word in ("SELECT", "VALUES", "TABLE"):
            return f"WITH {', '.join(ctes)} {text}", holds
        for cte_name, relation in zip([n for n in names], holds):
            del cte_name, relation
        return _replaced(text, {n: h for n, h in zip([c.split(" AS ")[0] for c in ctes], ctes)}), holds

    def _scanned(self, name: str, found: Any) -> Optional[Relation]:
        if isinstance(found, Relation):
            if found._db is not self:
                raise ProgrammingError(f'variable "{name}" is a relation of another database')
            return found
        if isinstance(found, Rows) or _data.is_data(found):
            return self.relation(found)
        kind = type(found).__name__
        if _data.module_of(found) == "polars" and kind == "LazyFrame":
            raise UnknownName(f'relation "{name}" does not exist', sqlstate="42P01",
                              hint=f"the variable {name} is a LazyFrame: {name}.collect() it first")
        if isinstance(found, (dict, list)):
            raise UnknownName(f'relation "{name}" does not exist', sqlstate="42P01",
                              hint=f"the variable {name} is a {kind}: db.values({name}) or db.relation({name}) makes a relation of it")
        return None

    # -- relations -----------------------------------------------------------------------------------

    def _kinds(self) -> Dict[str, Tuple[str, List[str]]]:
        return {name: (kind, key) for name, kind, key in self._engine.relations()}

    def _primary_key(self, name: str) -> List[str]:
        return self._kinds().get(name, ("", []))[1]

    def table(self, name: str) -> Any:
        """The table, view or source of that name."""
        kinds = self._kinds()
        if name not in kinds:
            near = nearest(name, [n for n in kinds if not n.startswith("_py_")])
            raise UnknownName(f'relation "{name}" does not exist', sqlstate="42P01",
                              hint=f'did you mean "{near}"?' if near else None)
        kind = kinds[name][0]
        if kind == "Table":
            return Table(self, name)
        if kind == "Source":
            return Source(self, name)
        return View(self, name)

    def view(self, name: str) -> View:
        """The view of that name."""
        found = self.table(name)
        if not isinstance(found, View):
            raise ProgrammingError(f'"{name}" is no view', sqlstate="42809")
        return found

    def relation(self, data: Any, *, copy: Optional[bool] = None, nan_to_null: bool = True) -> Relation:
        """A relation of rows that Python holds: frames, arrays, dicts, lists."""
        if isinstance(data, Relation):
            return data
        return self._captured(_data.native(data, nan_to_null=nan_to_null))

    def values(self, rows: Any, schema: Any = None) -> Relation:
        """A relation of these rows: tuples, dicts, or a dict of columns."""
        if schema is None:
            return self._captured(_data.native(rows))
        columns = schema_columns(schema)
        return self._captured(_data.native(rows, names=list(columns), like=self._like(columns)), columns)

    def _like(self, columns: Mapping[str, str]) -> Any:
        """No rows, with Arrow's types of SQL's."""
        casts = ", ".join(f"CAST(NULL AS {of}) AS {q.name(name)}" for name, of in columns.items())
        return self._engine.describe(f"SELECT {casts}")[1]

    def _captured(self, rows: Any, columns: Optional[Mapping[str, str]] = None) -> Relation:
        """Rows in a hidden table that goes when the last relation over it goes."""
        name = self._fresh("data")
        types = dict(zip(rows.names, rows.types)) if columns is None else dict(columns)
        if not types:
            raise ProgrammingError("there are no columns")
        self._create(name, types, _Keys())
        if len(rows):
            self._engine.insert(name, rows)
        holder = _Held(self._engine, name)
        schema = self._schema_of(f"SELECT * FROM {q.name(name)}")
        return Relation(self, f"SELECT * FROM {q.name(name)}", from_=q.name(name), holds=[holder], schema=schema)

    def register(self, name: str, obj: Any) -> None:
        """A frame, a relation or a user function under a name of SQL."""
        if name in self._kinds():
            raise DuplicateName(f'relation "{name}" exists', sqlstate="42P07", hint="choose another name")
        if hasattr(obj, "_register"):
            obj._register(self, name)
            return
        self._scans[name] = self.relation(obj)

    def unregister(self, name: str) -> None:
        """Forgets a name that was registered."""
        if name not in self._scans and name not in self._functions:
            raise UnknownName(f'"{name}" is not registered', sqlstate="42P01")
        self._scans.pop(name, None)
        self._functions.pop(name, None)

    def create_table(
        self, name: str, schema_or_data: Any, *, primary_key: Any = None, watermark: Optional[Tuple[str, Any]] = None,
        append_only: bool = False, replace: bool = False, if_not_exists: bool = False,
    ) -> Table:
        """A table of a schema (a dict of types), or of data that it takes in."""
        kinds = self._kinds()
        if name in kinds:
            if if_not_exists:
                return self.table(name)
            if not replace:
                raise DuplicateName(f'relation "{name}" already exists', sqlstate="42P07",
                                    hint="replace=True, or if_not_exists=True")
        keys = _Keys(listed(primary_key), watermark)
        given = schema_or_data
        rows: Any = None
        if _is_schema(given):
            columns: Mapping[str, Any] = schema_columns(given)
        elif isinstance(given, Relation):
            columns = given.schema
            rows = given.collect()._native
        else:
            rows = _data.native(given)
            columns = dict(zip(rows.names, rows.types))
            unknown = [n for n, of in zip(rows.names, _null_columns(rows)) if of]
            if unknown:
                raise ProgrammingError(f'column "{unknown[0]}" has no value and so no type', sqlstate="42P18",
                                       hint="create_table(name, schema), then insert")
        for key in keys.primary_key:
            if key not in columns:
                raise unknown_column(key, columns)
        if name in kinds:
            self.drop(name)
        self._create(name, columns, keys)
        if append_only:
            self._append_only.add(name)
        table = Table(self, name)
        if rows is not None and len(rows):
            try:
                self.insert(name, Rows(rows))
            except Error:
                self.drop(name)
                raise
        return table

    def _create(self, name: str, columns: Mapping[str, Any], keys: "_Keys") -> None:
        parts = [f"{q.name(n)} {sql_type(of)}" for n, of in columns.items()]
        if keys.primary_key:
            parts.append(f"PRIMARY KEY ({', '.join(map(q.name, keys.primary_key))})")
        if keys.watermark is not None:
            column, delay = keys.watermark
            if column not in columns:
                raise unknown_column(column, columns)
            from .durations import parse
            from .types import is_integer

            span = parse(delay)
            text = str(span.ticks if span.ticks is not None else span.micros) if is_integer(sql_type(columns[column])) else span.interval()
            parts.append(f"WATERMARK FOR {q.name(column)} AS {q.name(column)} - {text}")
        self._engine.execute(f"CREATE TABLE {q.name(name)} ({', '.join(parts)})")
        self._schemas.clear() if not name.startswith("_py_") else None

    def _writable(self, table: Any) -> Table:
        found = table if isinstance(table, Table) else self.table(table)
        if not isinstance(found, Table) or isinstance(found, Source):
            kind = "source" if isinstance(found, Source) else "view"
            raise ProgrammingError(f'{kind} "{found._name}" cannot be written', sqlstate="42809",
                                   hint="write the tables it reads")
        return found

    def insert(self, table: Any, data: Any) -> Commit:
        """Appends rows, as one commit. Columns go by name, values of tuples by place."""
        target = self._writable(table)
        like = target.schema._arrow
        rows = _data.fitted(data, target.columns, like, target._name)
        n = len(rows)
        if n == 0:
            return Commit(self.now(), 0)
        if set(rows.names) == set(target.columns):
            order = [rows.names.index(name) for name in target.columns]
            if order != list(range(len(order))):
                rows = rows.project(order, target.columns)
            try:
                return Commit(self._engine.insert(target._name, rows), n)
            except Error as error:
                raise _converted(error) from None
        staged = self._captured(rows)
        columns = ", ".join(map(q.name, rows.names))
        return self._write(f"INSERT INTO {q.name(target._name)} ({columns}) SELECT {columns} FROM {staged._from}")

    def upsert(self, table: Any, data: Any, *, on: Any = None) -> Commit:
        """Puts rows in the place of those with the same primary key."""
        target = self._writable(table)
        key = target.primary_key
        if not key:
            raise ProgrammingError(f'table "{target._name}" has no primary key', hint='create_table(.., primary_key="id")')
        if on is not None and set(listed(on)) != set(key):
            raise ProgrammingError(f"on is {listed(on)}, but the primary key is {key}", sqlstate="42P10")
        if target.append_only:
            raise ProgrammingError(f'table "{target._name}" is append-only', sqlstate="42809")
        rows = _data.fitted(data, target.columns, target.schema._arrow, target._name)
        missing = [k for k in key if k not in rows.names]
        if missing:
            raise ProgrammingError(f'the rows have no column "{missing[0]}" of the primary key')
        if len(rows) == 0:
            return Commit(self.now(), 0)
        staged = self._captured(rows, {n: target.schema[n] for n in rows.names})
        keys = ", ".join(map(q.name, key))
        twice = self._ask(f"SELECT {keys} FROM {staged._from} GROUP BY {keys} HAVING count(*) > 1 LIMIT 1")
        if len(twice):
            raise ProgrammingError(f"the key {twice.all()[0]!r} is in the rows twice", sqlstate="21000")
        names = ", ".join(map(q.name, rows.names))
        rest = [n for n in rows.names if n not in key]
        does = "DO UPDATE SET " + ", ".join(f"{q.name(n)} = excluded.{q.name(n)}" for n in rest) if rest else "DO NOTHING"
        self._write(f"INSERT INTO {q.name(target._name)} ({names}) SELECT {names} FROM {staged._from} ON CONFLICT ({keys}) {does}")
        return Commit(self.now(), len(rows))

    def _write(self, text: str) -> Commit:
        try:
            tag = self._engine.execute(text)[-1][0]
        except Error as error:
            raise _converted(error) from None
        last = tag.split()[-1] if tag else ""
        return Commit(self._engine.time(), int(last) if last.isdigit() else 0)

    def _condition(self, target: Table, where: Any) -> str:
        if isinstance(where, bool):
            return "true" if where else "false"
        return target._predicate([where])

    def delete(self, table: Any, where: Any = None, *, keys: Any = None) -> Commit:
        """Takes away the rows for which ``where`` is true (an expression, a lambda, a column), or those with these keys."""
        target = self._writable(table)
        if (where is None) == (keys is None):
            raise ProgrammingError("delete needs where or keys", hint="truncate() takes all rows away")
        if target.append_only:
            raise ProgrammingError(f'table "{target._name}" is append-only', sqlstate="42809")
        if keys is None:
            return self._write(f"DELETE FROM {q.name(target._name)} WHERE {self._condition(target, where)}")
        names = target.primary_key or target.columns
        rows = _data.fitted(keys, names, target.schema._arrow, target._name)
        if len(rows) == 0:
            return Commit(self.now(), 0)
        staged = self._captured(rows, {n: target.schema[n] for n in rows.names})
        tests = " AND ".join(f"k.{q.name(n)} IS NOT DISTINCT FROM {q.name(target._name)}.{q.name(n)}" for n in rows.names)
        return self._write(f"DELETE FROM {q.name(target._name)} WHERE EXISTS (SELECT 1 FROM {staged._from} AS k WHERE {tests})")

    def update(self, table: Any, where: Any = None, **set: Any) -> Commit:  # noqa: A002
        """Changes columns of the rows for which ``where`` is true: ``update("t", ab.col("k") == 1, n=ab.col("n") + 1)``."""
        target = self._writable(table)
        if not set:
            raise ProgrammingError("update needs columns to change", hint='update("t", where, n=0)')
        if target.append_only:
            raise ProgrammingError(f'table "{target._name}" is append-only', sqlstate="42809")
        ctx = target._ctx()
        parts = []
        for name, value in set.items():
            if name not in target.schema:
                raise unknown_column(name, target.schema)
            if callable(value) and not isinstance(value, Expr):
                value = trace(value, Row(target.schema, col))
            made = value if isinstance(value, Expr) else _constant(value)
            parts.append(f"{q.name(name)} = {as_column(made)._build(ctx).sql}")
        test = "true" if where is None else self._condition(target, where)
        return self._write(f"UPDATE {q.name(target._name)} SET {', '.join(parts)} WHERE {test}")

    def truncate(self, table: Any) -> Commit:
        """Takes away all rows."""
        target = self._writable(table)
        n = target.row_count()
        return self._write(f"TRUNCATE {q.name(target._name)}")._replace(rows=n)

    # -- views, sources ------------------------------------------------------------------------------

    def create_view(
        self, name: str, query: Any, *, emit: str = "change", materialized: bool = True, replace: bool = False, wait: bool = True,
    ) -> View:
        """A view that is kept current; with ``materialized=False`` only a name for a query."""
        if emit not in ("change", "close"):
            raise ProgrammingError(f"emit is change or close, not {emit!r}")
        holds: Sequence[Any] = ()
        if hasattr(query, "relation") and not isinstance(query, Relation):
            raise NotSupportedError("views of events are not supported yet", hint="db.start(events)")
        if isinstance(query, Relation):
            text, holds = (query._text if query._order else query.sql_query()), query._holds
        else:
            text, scanned = self._with_scans(q.bind(query, None).strip().rstrip(";"), 2)
            holds = scanned
        kinds = self._kinds()
        if name in kinds:
            if not replace:
                raise DuplicateName(f'relation "{name}" already exists', sqlstate="42P07", hint="replace=True")
            self.drop(name)
        word = "MATERIALIZED VIEW" if materialized else "VIEW"
        closing = " EMIT ON WINDOW CLOSE" if emit == "close" else ""
        definition = text
        if emit == "close" and isinstance(query, Relation) and query._closing is not None:
            hidden = self._fresh("closed")
            self._closed_view(hidden, query._closing)
            text, closing = f"SELECT {query._list()} FROM {q.name(hidden)}", ""
            holds = (*holds, _Held(self._engine, hidden, "MATERIALIZED VIEW"))
        if closing:
            self._closed_view(name, text)
        else:
            self._run(f"CREATE {word} {q.name(name)} AS {text}")
        if wait and materialized:
            self._engine.execute(f"SELECT count(*) FROM {q.name(name)}")
        view = View(self, name, definition=definition, emit=emit, holds=holds)
        self._keep(name, holds)
        return view

    def _closed_view(self, name: str, text: str) -> None:
        try:
            self._run(f"CREATE MATERIALIZED VIEW {q.name(name)} AS {text} EMIT ON WINDOW CLOSE")
        except ProgrammingError as error:
            error.hint = error.hint or 'create_table(.., watermark=("ts", "5s"))'
            raise

    def _keep(self, name: str, holds: Sequence[Any]) -> None:
        """A named view outlives its Python object, and so does what it captured."""
        if holds:
            self._kept = getattr(self, "_kept", {})
            self._kept[name] = tuple(holds)

    def _live(self, relation: Relation, name: Optional[str]) -> View:
        if name is not None:
            return self.create_view(name, relation)
        hidden = self._fresh("view")
        text = relation._text if relation._order else relation.sql_query()
        self._run(f"CREATE MATERIALIZED VIEW {q.name(hidden)} AS {text}")
        view = View(self, hidden, definition=text, anonymous=True, holds=relation._holds)
        # What is derived of the view keeps it, as the view itself does.
        view._holds = (*view._holds, _Held(self._engine, hidden, "MATERIALIZED VIEW"))
        return view

    def create_source(self, name: str, connector: str, *, schema: Any = None, watermark: Any = None, **options: Any) -> Source:
        """A source of a connector, for example ``"file"`` with ``path=``."""
        columns = ""
        if schema is not None:
            parts = [f"{q.name(n)} {of}" for n, of in schema_columns(schema).items()]
            if watermark is not None:
                from .durations import parse

                parts.append(f"WATERMARK FOR {q.name(watermark[0])} AS {q.name(watermark[0])} - {parse(watermark[1]).interval()}")
            columns = f" ({', '.join(parts)})"
        elif watermark is not None:
            raise ProgrammingError("a watermark of a source needs its schema", hint="schema={..}")
        settings = {"connector": connector, **{k: v for k, v in options.items() if v is not None}}
        with_ = ", ".join(f"{k} = {q.text(_setting(v))}" for k, v in settings.items())
        self._run(f"CREATE SOURCE {q.name(name)}{columns} WITH ({with_})")
        return Source(self, name)

    def create_index(self, table: Any, columns: Any, *, name: Optional[str] = None) -> None:
        """An index: queries with these keys share it."""
        target = table._name if isinstance(table, Relation) and hasattr(table, "_name") else table
        name = name or f"{target}_{'_'.join(listed(columns))}"
        self._run(f"CREATE INDEX {q.name(name)} ON {q.name(target)} ({', '.join(map(q.name, listed(columns)))})")

    def drop(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None:
        """Drops a relation; those that depend on it stop that unless ``cascade``."""
        kinds = self._kinds()
        if name not in kinds:
            if if_exists:
                return
            near = nearest(name, [n for n in kinds if not n.startswith("_py_")])
            raise UnknownName(f'relation "{name}" does not exist', sqlstate="42P01",
                              hint=f'did you mean "{near}"?' if near else None)
        word = {"Table": "TABLE", "Source": "SOURCE", "View": "VIEW", "MaterializedView": "MATERIALIZED VIEW"}[kinds[name][0]]
        self._run(f"DROP {word} {q.name(name)}{' CASCADE' if cascade else ''}")
        self._append_only.discard(name)
        getattr(self, "_kept", {}).pop(name, None)

    def read_csv(
        self, path: Any, *, live: bool = False, schema: Any = None, header: Optional[bool] = None,
        delimiter: Optional[str] = None, quote: Optional[str] = None, null: Optional[str] = None, on_error: str = "fail",
        rate: Optional[float] = None, poll: Any = "1s", watermark: Any = None, retain: Any = None,
    ) -> Any:
        """Rows of CSV files: a path, a folder, a pattern or a list. ``live=True`` follows new lines and files."""
        options = {"header": header, "delimiter": delimiter, "quote": quote, "null": null}
        return self._files("csv", path, live, schema, on_error, rate, poll, watermark, retain, options)

    def read_json(
        self, path: Any, *, live: bool = False, schema: Any = None, on_error: str = "fail", rate: Optional[float] = None,
        poll: Any = "1s", watermark: Any = None, retain: Any = None,
    ) -> Any:
        """Rows of files with one JSON object a line."""
        return self._files("json", path, live, schema, on_error, rate, poll, watermark, retain, {})

    def read_parquet(
        self, path: Any, *, columns: Any = None, live: bool = False, schema: Any = None, rate: Optional[float] = None,
        poll: Any = "1s", watermark: Any = None, retain: Any = None,
    ) -> Any:
        """Rows of Parquet files."""
        made = self._files("parquet", path, live, schema, "fail", rate, poll, watermark, retain, {})
        return made.select(*columns) if columns is not None else made

    def _files(self, format: str, path: Any, live: bool, schema: Any, on_error: str, rate: Any, poll: Any, watermark: Any,
               retain: Any, options: Mapping[str, Any]) -> Any:
        from .files import follow, read

        given = {"format": format, "on_error": on_error, "rate": rate, "retain": retain, **options}
        given = {k: v for k, v in given.items() if v is not None and not (k == "on_error" and v == "fail")}
        if live:
            return follow(self, path, schema, watermark, poll, given)
        return read(self, path, schema, watermark, given)

    # -- the rest ------------------------------------------------------------------------------------

    def transaction(self, *, read_only: bool = False) -> Any:
        """Several statements as one: commits, or rolls back when it raises."""
        raise NotSupportedError("transactions of several statements are not supported yet",
                                hint="one statement is one transaction: insert many rows at once")

    def run_transaction(self, fn: Callable, *, retries: int = 5) -> Any:
        """Runs ``fn(connection)`` in a transaction, again when another was first."""
        return self.transaction()

    def connection(self) -> "Database":
        """A connection of its own settings: for now, this database."""
        self._check_open()
        return self

    def cursor(self) -> Any:
        """A DB-API cursor."""
        from .dbapi import Connection

        return Connection(self, owned=False).cursor()

    def start(self, events: Any, *inputs: Any) -> Any:
        """Sets events to work; push rows into what it returns."""
        from .events import start

        self._check_open()
        return start(self, events)

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


class _Held:
    """A hidden relation that is dropped with the last Python object over it."""

    __slots__ = ("name", "_finalizer", "__weakref__")

    def __init__(self, engine: Any, name: str, kind: str = "TABLE") -> None:
        self.name = name
        self._finalizer = weakref.finalize(self, engine.post, f"DROP {kind} {q.name(name)}")
        self._finalizer.atexit = False


class _Keys:
    def __init__(self, primary_key: Sequence[str] = (), watermark: Optional[Tuple[str, Any]] = None) -> None:
        self.primary_key, self.watermark = list(primary_key), watermark


def _is_schema(given: Any) -> bool:
    if isinstance(given, Schema):
        return True
    if isinstance(given, Mapping):
        values = list(given.values())
        return bool(values) and all(_is_type(v) for v in values)
    return hasattr(given, "__arrow_c_schema__") and not hasattr(given, "__arrow_c_stream__")


def _is_type(value: Any) -> bool:
    if isinstance(value, str):
        return True
    if isinstance(value, type):
        return True
    return getattr(value, "__origin__", None) is list or type(value).__name__ in ("DataType",) or (
        type(value).__module__.split(".")[0] in ("pyarrow", "polars") and not hasattr(value, "__len__"))


def _null_columns(rows: Any) -> List[bool]:
    return [rows.is_null(i) for i in range(len(rows.names))]


def _known_type(of: str) -> str:
    from .types import DataType

    return DataType(of)


def _constant(value: Any) -> Expr:
    from .expr import lit

    return lit(value)


def _setting(value: Any) -> str:
    return "true" if value is True else "false" if value is False else str(value)


def _option_value(name: str, text: str) -> Any:
    default = _OPTIONS[name]
    if isinstance(default, bool):
        return text.lower() in ("1", "true", "on", "yes")
    return int(text) if text.isdigit() else text


def _converted(error: Error) -> Error:
    """An error of constraints as such; everything else as it is."""
    if error.sqlstate.startswith("23") and not isinstance(error, IntegrityError):
        made = IntegrityError(error.message)
        made.__dict__.update(error.__dict__)
        return made
    return error


def _variable(name: str, depth: int) -> Any:
    """A Python variable of the caller: its locals, then its globals."""
    import sys

    frame: Any = sys._getframe(depth)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("anabranch"):
        frame = frame.f_back
    if frame is None:
        return None
    for scope in (frame.f_locals, frame.f_globals):
        if name in scope:
            return scope[name]
        for key in scope:
            if key.lower() == name and key != name:
                return scope[key]
    return None


def _replaced(text: str, ctes: Mapping[str, str]) -> str:
    """The statement with queries in the place of names, for statements that take no WITH."""
    out = []
    for kind, part in q.tokens(text):
        plain = part if part.startswith('"') else q.name(part.lower()) if kind == "name" else None
        if plain in ctes and out and "".join(out).rstrip().upper().endswith(("FROM", "JOIN", ",")):
            out.append(ctes[plain].split(" AS ", 1)[1] + f" AS {plain}")
        else:
            out.append(part)
    return "".join(out)


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
