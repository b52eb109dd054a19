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
from typing import Any as _Any

from . import selectors
from ._native import __version__
from .database import Database, _close_all, connect, default_database
from .errors import *  # noqa: F401,F403
from .errors import Error, NotSupportedError
from .expr import (Expr, all, coalesce, col, concat_list, concat_str, element, exclude, format, func, length as len, lit,
                   max_horizontal, min_horizontal, now, sql_expr, struct, when)
from .relation import GroupBy, Relation, Source, Table, View
from .rows import Batch, Rows
from .types import (Boolean, Bytes, DataType, Date, Float32, Float64, Int8, Int16, Int32, Int64, IntervalType, Json, List,
                    Numeric, Schema, Text, Time, Timestamp, TimestampTz, UInt8, UInt16, UInt32, UInt64, Uuid)
from .values import Commit, Counts, Early, Event, Interval

apilevel, threadsafety, paramstyle = "2.0", 2, "qmark"
least, greatest = min_horizontal, max_horizontal

_LATE = {
    "Events": "events", "Pattern": "events", "Run": "events", "reg": "events", "start": "events", "end": "events",
    "window_start": "events", "window_end": "events", "udf": "functions", "udaf": "functions", "iterate": "iterate",
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


def param(name: str) -> Expr:
    """A parameter: not offered in expressions; constants are captured."""
    raise NotSupportedError("param is not supported yet", hint=f"{name} is captured: write the Python variable itself")


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
