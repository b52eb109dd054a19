"""Asking: statements, their parameters, and Python variables in the place of relations."""

from __future__ import annotations

import threading
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import _native, data as _data
from . import sqltext as q
from .errors import DuplicateName, ProgrammingError, ReadOnlyError, UnknownName
from .relation import Relation
from .rows import Rows
from .types import DataType, Schema
from .values import Commit


class Asking:
    """The part of a database that runs statements."""

    _engine: Any
    _read_only: bool

    def _run(self, text: str) -> Rows:
        """Runs a script; the last statement's rows."""
        self._check_bound(text)
        outcomes = self._engine.execute(text)
        self._changed(text)
        for _, _, rows, _ in reversed(outcomes):
            if rows is not None:
                return Rows(rows)
        return Rows(_native.Rows.from_columns([], []))

    def _check_bound(self, text: str) -> None:
        name = q.unbound(text)
        if name is not None:
            raise ProgrammingError(f"parameter {name} has no value", sqlstate="42P02", hint=f"relation.bind({name}=..)")

    def _ask(self, text: str, timeout: Any = None) -> Rows:
        self._check_bound(text)
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
        schema = Schema({name: DataType(of) for name, of, _ in fields}, empty)
        if len(self._schemas) > 4096:
            self._schemas.clear()
        self._schemas[text] = schema
        return schema

    def _fresh(self, what: str) -> str:
        return f"_py_{what}_{next(self._numbers)}"

    def _check_reads(self, text: str) -> None:
        """Refuses a script that writes where the database was opened for reading."""
        if self._read_only:
            word = q.writing(text)
            if word is not None:
                self._check_writable(word)

    def _check_writable(self, what: str) -> None:
        if self._read_only:
            raise ReadOnlyError(f"the database was opened for reading only: {what} writes", hint="connect without read_only=True")

    # -- SQL ---------------------------------------------------------------------------------------

    def sql(self, text: str, params: Any = None, *, alias: Optional[str] = None) -> Relation:
        """One statement. A query is a relation, asked at each read; others run once, now.

        Names of Python variables that hold relations or frames are found
        (``set("replacement_scans", False)``).
        """
        return self._sql(text, params, alias, 2)

    def _sql(self, text: str, params: Any, alias: Optional[str], depth: int) -> Relation:
        if q.statements(text) != 1:
            raise ProgrammingError(f"one statement was expected, but there are {q.statements(text)}",
                                   sqlstate="42601", hint="execute(..) runs several")
        self._check_reads(text)
        bound = self._expanded(q.bind(text, params)).strip().rstrip(";")
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
        self._check_reads(text)
        bound, _ = self._with_scans(self._expanded(q.bind(text, params)), 2)
        return self._run(bound)

    def executemany(self, text: str, rows: Any) -> Commit:
        """Runs one INSERT with ``?`` for every row, as one commit."""
        self._check_reads(text)
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
        """The text with Python variables put in the place of names that the database does not
        know."""
        if not self._options["replacement_scans"] and not self._scans:
            return text, []
        names = [n for n in q.relations_in(text)]
        if not names:
            return text, []
        known = {name.lower() for name, _, _ in self._engine.relations()}
        ctes: Dict[str, str] = {}
        holds: List[Any] = []
        for name in names:
            if name.lower() in known or name in known:
                continue
            found = self._scans.get(name)
            if found is None and self._options["replacement_scans"]:
                found = variable_of_caller(name, depth)
            if found is None:
                continue
            relation = self._scanned(name, found)
            if relation is None:
                continue
            holds += list(relation._holds) + [relation]
            ctes[q.name(name)] = relation._unordered()
        if not ctes:
            return text, []
        return _with(text, ctes), holds

    def _scanned(self, name: str, found: Any) -> Optional[Relation]:
        if isinstance(found, Relation):
            if found._db._root is not self._root:
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


def variable_of_caller(name: str, depth: int) -> Any:
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


def _with(text: str, ctes: Mapping[str, str]) -> str:
    """The statement with queries under names: in a WITH, or in the place of names where no WITH may
    stand."""
    listed = ", ".join(f"{name} AS ({query})" for name, query in ctes.items())
    words = [part.upper() for kind, part in q.tokens(text) if kind == "name"][:2]
    if words and words[0] in ("SELECT", "VALUES", "TABLE"):
        return f"WITH {listed} {text}"
    if words[:1] == ["WITH"] and words[1:] != ["MUTUALLY"]:
        word = "RECURSIVE" if words[1:] == ["RECURSIVE"] else "WITH"
        at = text.upper().index(word) + len(word)
        return f"{text[:at]} {listed},{text[at:]}"
    return _replaced(text, ctes)


def _replaced(text: str, ctes: Mapping[str, str]) -> str:
    """The statement with queries in the place of names, for statements that take no WITH."""
    out = []
    for kind, part in q.tokens(text):
        plain = part if part.startswith('"') else q.name(part.lower()) if kind == "name" else None
        if plain in ctes and out and "".join(out).rstrip().upper().endswith(("FROM", "JOIN", ",")):
            out.append(f"({ctes[plain]}) AS {plain}")
        else:
            out.append(part)
    return "".join(out)
