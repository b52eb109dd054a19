"""A backend for Ibis: ``ibis.anabranch.connect()``, or ``anabranch.ibis.backend(db)`` over a
database that is open.

Expressions become SQL as for PostgreSQL. ``create_view`` makes a view that is kept current, so that
``con.create_view(name, expr)`` and ``con.table(name)`` read what has changed since. Narwhals takes
Ibis tables, and so runs over this backend as well.

How far it goes stands in docs/python.md.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, List, Mapping, Optional

import ibis.expr.operations as ops
import ibis.expr.schema as sch
import ibis.expr.types as ir
import sqlglot as sg
import sqlglot.expressions as sge
from ibis.backends.sql import SQLBackend
from ibis.backends.sql.compilers.postgres import PostgresCompiler
from ibis.formats.pandas import PandasData
from ibis.formats.pyarrow import PyArrowSchema
from sqlglot.dialects.postgres import Postgres

from . import __version__
from .database import Database, connect
from .errors import Error, TypeMismatch, UnknownName
from .relation import Relation


class Dialect(Postgres):
    """PostgreSQL's, with ``TRY_CAST``."""

    class Generator(Postgres.Generator):  # type: ignore[name-defined]
        """Texts of the engine's own words."""

        TRANSFORMS = {
            **Postgres.Generator.TRANSFORMS,
            sge.TryCast: lambda self, e: f"TRY_CAST({self.sql(e, 'this')} AS {self.sql(e, 'to')})",
        }


class Compiler(PostgresCompiler):
    """SQL for the engine: PostgreSQL's, but for structs, first values and failing casts."""

    dialect = Dialect
    UNSUPPORTED_OPS = (*PostgresCompiler.UNSUPPORTED_OPS, ops.RandomScalar, ops.RandomUUID, ops.Hash)
    SIMPLE_OPS = {name: f for name, f in PostgresCompiler.SIMPLE_OPS.items() if name != ops.Hash}

    def visit_StructColumn(self, op: Any, *, names: Any, values: Any) -> Any:
        """Fields have their names, not those of ``ROW``."""
        parts = [part for name, value in zip(names, values) for part in (sge.convert(name), value)]
        return self.f.anon.named_struct(*parts)

    def visit_StructField(self, op: Any, *, arg: Any, field: str) -> Any:
        """A field by its name."""
        return sge.Bracket(this=sge.paren(arg, copy=False), expressions=[sge.convert(field)])

    def visit_First(self, op: Any, *, arg: Any, where: Any, order_by: Any, include_null: bool) -> Any:
        """The first value; without an order the least, so that a view has always the same."""
        return self._end(arg, where, order_by, include_null, at=1)

    def visit_Last(self, op: Any, *, arg: Any, where: Any, order_by: Any, include_null: bool) -> Any:
        """The last value; without an order the greatest."""
        return self._end(arg, where, order_by, include_null, at=-1)

    def visit_Arbitrary(self, op: Any, *, arg: Any, where: Any) -> Any:
        """The least: a view has always the same."""
        return self.agg.min(arg, where=where)

    def _end(self, arg: Any, where: Any, order_by: Any, include_null: bool, at: int) -> Any:
        if not order_by:
            return (self.agg.min if at == 1 else self.agg.max)(arg, where=where)
        if not include_null:
            there = arg.is_(sge.Null()).not_()
            where = there if where is None else sg.and_(where, there)
        order = order_by if at == 1 else [_turned(key) for key in order_by]
        # (Places are counted from 0 here, and from 1 in the text.)
        gathered = self.agg.array_agg(arg, where=where, order_by=order)
        return sge.Bracket(this=sge.paren(gathered, copy=False), expressions=[sge.convert(0)])

    def visit_Date(self, op: Any, *, arg: Any) -> Any:
        """A cast: the engine has no function of that name."""
        return sge.Cast(this=arg, to=sge.DataType(this=sge.DataType.Type.DATE))

    def visit_TryCast(self, op: Any, *, arg: Any, to: Any) -> Any:
        """NULL where the value does not fit."""
        return sge.TryCast(this=arg, to=self.type_mapper.from_ibis(to))


def _turned(key: Any) -> Any:
    """An order the other way round."""
    if isinstance(key, sge.Ordered):
        return sge.Ordered(this=key.this, desc=not key.args.get("desc"), nulls_first=not key.args.get("nulls_first"))
    return sge.Ordered(this=key, desc=True, nulls_first=False)


class Backend(SQLBackend):
    """A database of this package as Ibis sees it."""

    name = "anabranch"
    compiler = Compiler()
    supports_temporary_tables = False
    supports_create_or_replace = False
    supports_python_udfs = False

    con: Database

    @property
    def version(self) -> str:
        """The version of the package."""
        return __version__

    def do_connect(self, database: Any = ":memory:", **kw: Any) -> None:
        """Opens a database, or takes one that is open."""
        self.con = database if isinstance(database, Database) else connect(database, **kw)
        if self.con is not database:
            self._drop_memtables()

    def _drop_memtables(self) -> None:
        """Drops tables of rows that an earlier process, or this one, had in memory; a view may hold
        some."""
        for name in filter(_is_memtable, list(self.con._kinds())):
            try:
                self.con.drop(name)
            except Error:
                pass

    def _from_url(self, url: Any, **kw: Any) -> "Backend":
        return self.connect(url.path.lstrip("/") or ":memory:", **kw)

    def disconnect(self) -> None:
        """Closes the database."""
        if not self.con.closed:
            self._drop_memtables()
        self.con.close()

    # -- names -------------------------------------------------------------------------------------

    def list_tables(self, *, like: Optional[str] = None, database: Any = None) -> List[str]:
        """Tables, sources and views."""
        names = [name for name in self.con._kinds() if not name.startswith("_py_") and not _is_memtable(name)]
        return self._filter_with_like(sorted(names), like)

    def get_schema(self, name: str, *, catalog: Any = None, database: Any = None) -> sch.Schema:
        """The columns of a relation."""
        from ibis.common.exceptions import TableNotFound

        try:
            return self._schema(self.con.table(name))
        except UnknownName:
            raise TableNotFound(name) from None

    def _get_schema_using_query(self, query: str) -> sch.Schema:
        return self._schema(Relation(self.con, query))

    @staticmethod
    def _schema(relation: Relation) -> sch.Schema:
        import pyarrow as pa

        plain = pa.schema([pa.field(f.name, _plain(f.type), f.nullable) for f in pa.schema(relation.schema)])
        return PyArrowSchema.to_ibis(plain)

    # -- statements --------------------------------------------------------------------------------

    def raw_sql(self, query: Any) -> Any:
        """Runs a statement."""
        text = query if isinstance(query, str) else query.sql(dialect=self.dialect)
        return self.con._run(text)

    @contextmanager
    def _safe_raw_sql(self, query: Any, *args: Any, **kw: Any) -> Iterator[Any]:
        yield self.raw_sql(query)

    def to_pyarrow(self, expr: ir.Expr, /, *, params: Optional[Mapping] = None, limit: Any = None, **kw: Any) -> Any:
        """The answer as Arrow holds it."""
        import pyarrow as pa

        self._run_pre_execute_hooks(expr)
        asked = expr.as_table()
        schema = asked.schema()
        rows = Relation(self.con, self.compile(asked, params=params, limit=limit)).collect().arrow()
        columns = [_cast(rows.column(i), of) for i, of in enumerate(schema.to_pyarrow().types)]
        return expr.__pyarrow_result__(pa.Table.from_arrays(columns, schema=schema.to_pyarrow()))

    def to_pyarrow_batches(
        self, expr: ir.Expr, /, *, params: Optional[Mapping] = None, limit: Any = None, chunk_size: int = 1_000_000, **kw: Any,
    ) -> Any:
        """The answer in batches."""
        import pyarrow as pa

        table = self.to_pyarrow(expr.as_table(), params=params, limit=limit)
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=chunk_size))

    def execute(self, expr: ir.Expr, /, *, params: Optional[Mapping] = None, limit: Any = None, **kw: Any) -> Any:
        """The answer as pandas has it."""
        asked = expr.as_table()
        table = self.to_pyarrow(asked, params=params, limit=limit)
        frame = PandasData.convert_table(table.to_pandas(), asked.schema())
        return expr.__pandas_result__(frame)

    # -- definitions -------------------------------------------------------------------------------

    def create_table(
        self, name: str, /, obj: Any = None, *, schema: Any = None, database: Any = None, temp: bool = False,
        overwrite: bool = False,
    ) -> ir.Table:
        """A table of a schema, of data, or of an expression's rows as they are now."""
        import ibis

        if obj is None:
            columns = {n: self.compiler.type_mapper.to_string(of) for n, of in ibis.schema(schema).items()}
            self.con.create_table(name, columns, replace=overwrite)
            return self.table(name)
        rows = self._rows_of(obj, schema)
        if schema is not None:
            rows = rows.cast(ibis.schema(schema).to_pyarrow())
        self.con.create_table(name, rows, replace=overwrite)
        return self.table(name)

    def create_view(self, name: str, /, obj: ir.Table, *, database: Any = None, overwrite: bool = False) -> ir.Table:
        """A view that is kept current."""
        self._run_pre_execute_hooks(obj)
        self.con.create_view(name, Relation(self.con, self.compile(obj)), replace=overwrite)
        return self.table(name)

    def drop_table(self, name: str, /, *, database: Any = None, force: bool = False) -> None:
        """Drops a table."""
        self.con.drop(name, if_exists=force)

    def drop_view(self, name: str, /, *, database: Any = None, force: bool = False) -> None:
        """Drops a view."""
        self.con.drop(name, if_exists=force)

    def insert(self, name: str, /, obj: Any, *, database: Any = None, overwrite: bool = False) -> None:
        """Appends rows."""
        rows = self._rows_of(obj, None)
        if overwrite:
            self.con.truncate(name)
        self.con.insert(name, rows)

    def _rows_of(self, obj: Any, schema: Any) -> Any:
        """The rows of an expression, or of what Python holds, which leave no table behind."""
        import ibis

        made = obj if isinstance(obj, ir.Expr) else ibis.memtable(obj, schema=schema)
        op = made.op()
        return op.data.to_pyarrow(op.schema) if isinstance(op, ops.InMemoryTable) else self.to_pyarrow(made)

    def _register_in_memory_table(self, op: ops.InMemoryTable) -> None:
        if op.name not in self.con._kinds():
            rows = op.data.to_pyarrow(op.schema)
            self.con._create(op.name, dict(zip(rows.schema.names, self.con.relation(rows).schema.values())), _no_keys())
            if len(rows):
                self.con.insert(op.name, rows)

    def _finalize_memtable(self, name: str) -> None:
        if not self.con.closed:
            self.con._engine.post(f"DROP TABLE {sg.to_identifier(name, quoted=True).sql()}")


def _is_memtable(name: str) -> bool:
    return name.startswith("ibis_") and "_memtable_" in name


def _no_keys() -> Any:
    from .writing import Keys

    return Keys()


def _plain(of: Any) -> Any:
    """A type of Arrow without views, which Ibis does not know."""
    import pyarrow as pa

    if of == pa.string_view():
        return pa.string()
    if of == pa.binary_view():
        return pa.binary()
    if pa.types.is_list(of):
        return pa.list_(_plain(of.value_type))
    if pa.types.is_struct(of):
        return pa.struct([pa.field(f.name, _plain(f.type), f.nullable) for f in of])
    return of


def _cast(column: Any, of: Any) -> Any:
    import pyarrow as pa

    if column.type == of:
        return column
    if _fields(column.type) != _fields(of):
        raise TypeMismatch(f"the answer has {column.type}, and Ibis expects {of}")
    try:
        return column.cast(of)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.chunked_array([pa.array(column.to_pylist(), type=of)])


def _fields(of: Any) -> Any:
    """Names of the fields of structs, in order: a cast would take fields by name, NULL where one is
    missing."""
    import pyarrow as pa

    if pa.types.is_struct(of):
        return [(f.name, _fields(f.type)) for f in of]
    return _fields(of.value_type) if pa.types.is_list(of) or pa.types.is_large_list(of) else None


def backend(db: Database) -> Backend:
    """A database that is open, as a backend of Ibis.

    >>> import anabranch as ab
    >>> from anabranch.ibis import backend                                    # doctest: +SKIP
    >>> con = backend(ab.connect())                                           # doctest: +SKIP
    """
    made = Backend()
    made.do_connect(db)
    return made
