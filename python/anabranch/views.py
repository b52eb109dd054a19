"""Views, sources, indexes and files."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

from . import sqltext as q
from .errors import DuplicateName, NotSupportedError, ProgrammingError, RowError, UnknownName, nearest
from .expr import listed
from .holding import Held
from .relation import Relation, Source, View
from .types import schema_columns


class Defining:
    """The part of a database that makes views, sources and indexes, and drops them."""

    _engine: Any
    _check_writable: Any

    def create_view(
        self, name: str, query: Any, *, emit: str = "change", materialized: bool = True, replace: bool = False, wait: bool = True,
        snapshot: bool = False,
    ) -> View:
        """A view that is kept current; with ``materialized=False`` only a name for a query.

        A view of ``Events`` has all events, with columns ``start`` and ``end`` (NULL: not known, or
        never); with ``snapshot=True`` those in force just before the frontier of time, without
        these columns. Its inputs are relations of this database: ``table.events(time="at")``.
        """
        self._check_writable("create_view")
        if emit not in ("change", "close"):
            raise ProgrammingError(f"emit is change or close, not {emit!r}")
        holds: Sequence[Any] = ()
        if hasattr(query, "_frame"):
            return self._view_of_events(name, query, emit, materialized, replace, snapshot)
        if snapshot:
            raise ProgrammingError("snapshot=True is of events", hint="a view of a relation has its rows as of now")
        if isinstance(query, Relation):
            text, holds = query._unordered(), query._holds
        else:
            text, scanned = self._with_scans(self._expanded(query).strip().rstrip(";"), 2)
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
            holds = (*holds, Held(self._engine, hidden, "MATERIALIZED VIEW"))
        if closing:
            self._closed_view(name, text)
        else:
            self._run(f"CREATE {word} {q.name(name)} AS {text}")
        if wait and materialized:
            try:
                self._engine.execute(f"SELECT count(*) FROM {q.name(name)}")
            except RowError:
                pass  # rows that cannot be computed are told to those that read them
        view = View(self, name, definition=definition, emit=emit, holds=holds)
        self._keep(name, holds)
        return view

    def _view_of_events(self, name: str, events: Any, emit: str, materialized: bool, replace: bool, snapshot: bool) -> View:
        """A view of all events, or of those in force just before their frontier."""
        from .events.stored import database_of

        if emit != "change" or not materialized:
            raise NotSupportedError("a view of events is kept current as it is", hint='events.emit(..) says when windows are told')
        db = database_of(events)
        if db._root is not self._root:
            raise ProgrammingError("the events are of another database")
        if name in self._kinds():
            if not replace:
                raise DuplicateName(f'relation "{name}" already exists', sqlstate="42P07", hint="replace=True")
            self.drop(name)
        self._engine.create_view(name, events._frame, snapshot)
        self._schemas.clear()
        return View(self, name, definition=events.explain())

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
        text = relation._unordered()
        self._run(f"CREATE MATERIALIZED VIEW {q.name(hidden)} AS {text}")
        view = View(self, hidden, definition=text, anonymous=True, holds=relation._holds)
        # What is derived of the view keeps it, as the view itself does.
        view._holds = (*view._holds, Held(self._engine, hidden, "MATERIALIZED VIEW"))
        return view

    def _live_events(self, events: Any, snapshot: bool) -> View:
        hidden = self._fresh("view")
        self._engine.create_view(hidden, events._frame, snapshot)
        view = View(self, hidden, definition=events.explain(), anonymous=True)
        view._holds = (*view._holds, Held(self._engine, hidden, "MATERIALIZED VIEW"))
        return view

    def create_source(self, name: str, connector: str, *, schema: Any = None, watermark: Any = None, **options: Any) -> Source:
        """A source of a connector, for example ``"file"`` with ``path=``."""
        self._check_writable("create_source")
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
        self._check_writable("create_index")
        target = table._name if isinstance(table, Relation) and hasattr(table, "_name") else table
        name = name or f"{target}_{'_'.join(listed(columns))}"
        self._run(f"CREATE INDEX {q.name(name)} ON {q.name(target)} ({', '.join(map(q.name, listed(columns)))})")

    def drop(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None:
        """Drops a relation; those that depend on it stop that unless ``cascade``."""
        self._check_writable("drop")
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
        """Rows of CSV files: a path, a folder, a pattern or a list. ``live=True`` makes a source
        that takes lines once they are complete, and new files; it looks each ``poll``. In a
        database in a folder it goes on where it was."""
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


def _setting(value: Any) -> str:
    return "true" if value is True else "false" if value is False else str(value)
