"""Anabranch: standing queries over changing data, embedded in Python.

>>> import anabranch as ab
>>> with ab.connect() as db:
...     t = db.create_table("sales", {"item": str, "price": int})
...     totals = t.group_by("item").agg(total=ab.col("price").sum()).create_view("totals")
...     _ = t.insert([("tea", 3), ("tea", 4), ("jam", 5)])
...     totals.sort("item").fetchall()
[('jam', 5), ('tea', 7)]
"""

from __future__ import annotations

import atexit as _atexit
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any


def _refuse_subinterpreters() -> None:
    """Threads of the engine belong to one interpreter."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            module: _Any = __import__(name)
            current, main = module.get_current(), module.get_main()
        except (ImportError, AttributeError):
            continue
        if current != main:
            raise ImportError("anabranch cannot be imported in a subinterpreter: use threads, or processes")
        return


_refuse_subinterpreters()

from . import selectors  # noqa: E402
from ._native import __version__
from .database import Database, _close_all, connect, default_database
from .errors import *  # noqa: F401,F403
from .errors import Error, NotSupportedError
from .expr import (Expr, all, coalesce, col, concat_list, concat_str, element, exclude, format, func, length as len, lit,
                   max_horizontal, min_horizontal, now, param, sql_expr, struct, when)
from .relation import GroupBy, Relation, Source, Table, View
from .rows import Batch, Rows
from .types import (Boolean, Bytes, DataType, Date, Float32, Float64, Int8, Int16, Int32, Int64, IntervalType, Json, List,
                    Numeric, Schema, Text, Time, Timestamp, TimestampTz, UInt8, UInt16, UInt32, UInt64, Uuid)
from .values import Commit, Counts, Early, Event, Interval

apilevel, threadsafety, paramstyle = "2.0", 2, "qmark"
least, greatest = min_horizontal, max_horizontal

if _TYPE_CHECKING:
    from . import dbapi, testing
    from .aggregates import UserAggregate, udaf
    from .database import Connection
    from .events import Events, end, start, window_end, window_start
    from .functions import Array, UserFunction, udf
    from .live import Change, Changes, Handle, Progress, Subscription
    from .loops import iterate
    from .patterns import Pattern, reg
    from .runs import Early, Play, Run
    from .shard_runs import Datasets, ShardRun
    from .shards import Branches, Shards

__all__ = [
    "Array", "Batch", "Boolean", "Branches", "Bytes", "Cancelled", "Change", "Changes", "Commit", "Connection", "ConversionError",
    "Counts", "DataError", "DataType", "Database", "Datasets", "DatabaseError", "Date", "DuplicateName", "Early", "Error", "Event",
    "Events", "Expr", "Float32", "Float64", "GroupBy", "GroupingError", "Handle", "Int16", "Int32", "Int64", "Int8",
    "IntegrityError", "InterfaceError", "InternalError", "Interval", "IntervalType", "Json", "List", "LockedError",
    "NotSupportedError", "Numeric", "OperationalError", "OutOfMemory", "Pattern", "Play", "ProgrammingError", "Progress",
    "ReadOnlyError", "Relation", "RowError", "Rows", "Run", "Schema", "SerializationError", "Source", "SqlSyntaxError",
    "ShardRun", "Shards", "Subscription", "Table", "Text", "Time", "TimedOut", "Timestamp", "TimestampTz", "TraceError", "TypeMismatch",
    "UInt16", "UInt32", "UInt64", "UInt8", "UnavailableError", "UnknownName", "UserAggregate", "UserFunction", "Uuid",
    "View", "Warning", "__version__", "all", "apilevel", "coalesce", "col", "concat_list", "concat_str", "connect",
    "count", "create_table", "dbapi", "default_database", "element", "end", "exclude", "format", "func", "greatest",
    "iterate", "least", "len", "lit", "max", "max_horizontal", "mean", "min", "min_horizontal", "now", "param",
    "paramstyle", "read_csv", "read_json", "read_parquet", "reg", "relation", "selectors", "sql", "sql_expr", "start",
    "struct", "sum", "table", "testing", "threadsafety", "udaf", "udf", "values", "when", "window_end", "window_start",
]

_LATE = {
    "Events": "events", "Pattern": "patterns", "Run": "runs", "Play": "runs", "Early": "runs", "reg": "patterns", "start": "events", "end": "events",
    "window_start": "events", "window_end": "events", "udf": "functions", "udaf": "aggregates", "Array": "functions", "iterate": "loops", "UserFunction": "functions", "UserAggregate": "aggregates", "Connection": "database",
    "Shards": "shards", "Branches": "shards", "ShardRun": "shard_runs", "Datasets": "shard_runs",
    "Changes": "live", "Subscription": "live", "Change": "live", "Progress": "live", "Handle": "live",
}


def __getattr__(name: str) -> _Any:
    if name in _LATE:
        import importlib

        return getattr(importlib.import_module("." + _LATE[name], __name__), name)
    if name in ("testing", "dbapi", "errors", "types"):
        import importlib

        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'anabranch' has no attribute {name!r}")


def sum(*columns: _Any) -> Expr:  # noqa: A001
    """``ab.col(..).sum()``."""
    return col(*columns).sum()


def mean(*columns: _Any) -> Expr:
    """``ab.col(..).mean()``."""
    return col(*columns).mean()


def min(*columns: _Any) -> Expr:  # noqa: A001
    """``ab.col(..).min()``."""
    return col(*columns).min()


def max(*columns: _Any) -> Expr:  # noqa: A001
    """``ab.col(..).max()``."""
    return col(*columns).max()


def count(*columns: _Any) -> Expr:
    """``ab.col(..).count()``."""
    return col(*columns).count()


def sql(text: str, params: _Any = None, *, alias: _Any = None) -> Relation:
    """``default_database().sql(..)``."""
    return default_database()._sql(text, params, alias, 2)


def table(name: str) -> _Any:
    """``default_database().table(..)``."""
    return default_database().table(name)


def values(rows: _Any, schema: _Any = None) -> Relation:
    """``default_database().values(..)``."""
    return default_database().values(rows, schema)


def relation(data: _Any, **kw: _Any) -> Relation:
    """``default_database().relation(..)``."""
    return default_database().relation(data, **kw)


def read_csv(path: _Any, **kw: _Any) -> _Any:
    """``default_database().read_csv(..)``."""
    return default_database().read_csv(path, **kw)


def read_json(path: _Any, **kw: _Any) -> _Any:
    """``default_database().read_json(..)``."""
    return default_database().read_json(path, **kw)


def read_parquet(path: _Any, **kw: _Any) -> _Any:
    """``default_database().read_parquet(..)``."""
    return default_database().read_parquet(path, **kw)


def create_table(name: str, schema_or_data: _Any, **kw: _Any) -> Table:
    """``default_database().create_table(..)``."""
    return default_database().create_table(name, schema_or_data, **kw)


_atexit.register(_close_all)
