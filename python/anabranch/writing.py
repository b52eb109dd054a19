"""Tables, and what is written into them."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence, Tuple

from . import data as _data
from . import sqltext as q
from .errors import DuplicateName, Error, IntegrityError, ProgrammingError, unknown_column
from .expr import Expr, as_column, col, listed, lit
from .relation import Relation, Source, Table
from .rows import Rows
from .tracing import Row, trace
from .types import Schema, schema_columns, sql_type
from .values import Commit


class Keys:
    """What a table promises: its primary key, and the watermark of its time."""

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


def converted(error: Error) -> Error:
    """An error of constraints as such; everything else as it is."""
    if error.sqlstate.startswith("23") and not isinstance(error, IntegrityError):
        made = IntegrityError(error.message)
        made.__dict__.update(error.__dict__)
        return made
    return error


class Writing:
    """The part of a database that makes tables and writes them."""

    _engine: Any
    _check_writable: Any

    def create_table(
        self, name: str, schema_or_data: Any, *, primary_key: Any = None, watermark: Optional[Tuple[str, Any]] = None,
        append_only: bool = False, replace: bool = False, if_not_exists: bool = False,
    ) -> Table:
        """A table of a schema (a dict of types), or of data that it takes in."""
        self._check_writable("create_table")
        kinds = self._kinds()
        if name in kinds:
            if if_not_exists:
                return self.table(name)
            if not replace:
                raise DuplicateName(f'relation "{name}" already exists', sqlstate="42P07",
                                    hint="replace=True, or if_not_exists=True")
        keys = Keys(listed(primary_key), watermark)
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
        self._create(name, columns, keys, " APPEND ONLY" if append_only else "")
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

    def _create(self, name: str, columns: Mapping[str, Any], keys: "Keys", promise: str = "") -> None:
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
        self._engine.execute(f"CREATE TABLE {q.name(name)} ({', '.join(parts)}){promise}")
        self._schemas.clear() if not name.startswith("_py_") else None

    def _writable(self, table: Any) -> Table:
        self._check_writable("it")
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
                raise converted(error) from None
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
            raise converted(error) from None
        last = tag.split()[-1] if tag else ""
        return Commit(self._engine.time(), int(last) if last.isdigit() else 0)

    def _condition(self, target: Table, where: Any) -> str:
        if isinstance(where, bool):
            return "true" if where else "false"
        return target._predicate([where])

    def delete(self, table: Any, where: Any = None, *, keys: Any = None) -> Commit:
        """Takes away the rows for which ``where`` is true (an expression, a lambda, a column), or
        those with these keys."""
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
        """Changes columns of the rows for which ``where`` is true: ``update("t", ab.col("k") == 1,
        n=ab.col("n") + 1)``."""
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
            made = value if isinstance(value, Expr) else lit(value)
            parts.append(f"{q.name(name)} = {as_column(made)._build(ctx).sql}")
        test = "true" if where is None else self._condition(target, where)
        return self._write(f"UPDATE {q.name(target._name)} SET {', '.join(parts)} WHERE {test}")

    def truncate(self, table: Any) -> Commit:
        """Takes away all rows."""
        target = self._writable(table)
        n = target.row_count()
        return self._write(f"TRUNCATE {q.name(target._name)}")._replace(rows=n)
