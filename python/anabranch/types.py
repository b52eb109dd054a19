"""Types: what SQL, Python, Arrow and Polars call the same thing."""

from __future__ import annotations

import datetime as _dt
import decimal as _decimal
import re
import uuid as _uuid
from typing import Any, Iterator, Mapping, Optional

from .errors import ProgrammingError, TypeMismatch

__all__ = ["DataType", "Schema", "Boolean", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64",
           "Float32", "Float64", "Text", "Bytes", "Date", "Time", "Timestamp", "TimestampTz", "IntervalType", "Json",
           "Uuid", "Numeric", "List", "sql_type"]


class DataType(str):
    """A type by its name in SQL; equal to that text.

    >>> Int64
    bigint
    >>> Numeric(10, 2) == "numeric(10,2)"
    True
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


Boolean = DataType("boolean")
Int8, Int16, Int32, Int64 = (DataType(n) for n in ("tinyint", "smallint", "integer", "bigint"))
UInt8, UInt16, UInt32, UInt64 = (DataType(n) for n in ("utinyint", "usmallint", "uinteger", "ubigint"))
Float32, Float64 = DataType("real"), DataType("double precision")
Text, Bytes = DataType("text"), DataType("bytea")
Date, Time = DataType("date"), DataType("time")
Timestamp, TimestampTz = DataType("timestamp"), DataType("timestamptz")
IntervalType = DataType("interval")
Json, Uuid = DataType("json"), DataType("uuid")


def Numeric(precision: int = 38, scale: int = 10) -> DataType:
    """Exact decimals of so many digits, ``scale`` of them behind the point."""
    return DataType(f"numeric({precision},{scale})")


def List(element: Any) -> DataType:
    """Lists of one type."""
    return DataType(f"{sql_type(element)}[]")


_PYTHON = {
    bool: Boolean, int: Int64, float: Float64, str: Text, bytes: Bytes, bytearray: Bytes, _dt.date: Date,
    _dt.time: Time, _dt.datetime: Timestamp, _dt.timedelta: IntervalType, _decimal.Decimal: Numeric(),
    _uuid.UUID: Uuid,
}

_SPELLED = {
    "int1": "tinyint", "int2": "smallint", "int4": "integer", "int": "integer", "int8": "bigint", "int16": "smallint",
    "int32": "integer", "int64": "bigint", "float": "double precision", "float4": "real", "float8": "double precision",
    "float32": "real", "float64": "double precision", "double": "double precision", "bool": "boolean",
    "string": "text", "str": "text", "utf8": "text", "binary": "bytea", "datetime": "timestamp",
    "uint8": "utinyint", "uint16": "usmallint", "uint32": "uinteger", "uint64": "ubigint",
    "uint1": "utinyint", "uint2": "usmallint", "uint4": "uinteger",
    "timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz", "halffloat": "real",
    "float16": "real", "large_string": "text", "string_view": "text", "large_utf8": "text", "categorical": "text",
    "enum": "text", "large_binary": "bytea", "utf8view": "text", "largeutf8": "text", "binary_view": "bytea", "date32": "date", "date32[day]": "date",
    "time64[us]": "time", "timestamp[us]": "timestamp", "timestamp[ns]": "timestamp", "timestamp[ms]": "timestamp",
    "timestamp[s]": "timestamp", "duration[us]": "interval", "month_day_nano_interval": "interval", "null": "text",
}


def sql_type(of: Any) -> DataType:
    """The SQL name of a type given as text, a Python class, or a type of Arrow or Polars.

    >>> sql_type(int), sql_type("numeric(10, 2)"), sql_type(list[str])
    (bigint, numeric(10,2), text[])
    """
    if isinstance(of, DataType):
        return of
    if isinstance(of, str):
        text = re.sub(r"\s+", " ", of.strip().lower()).replace(", ", ",").replace(" (", "(")
        if text.endswith("[]"):
            return DataType(f"{sql_type(text[:-2])}[]")
        if text.startswith("decimal"):
            text = "numeric" + text[len("decimal"):].replace("128", "")
        inner = re.fullmatch(r"(?:large|fixedsize)?list\((?:\d+ x )?(.*)\)", text)
        if inner:
            return List(inner[1])
        if not re.fullmatch(r"[a-z][a-z0-9_ ]*(\([^;]*\))?(\[[a-z]*\])?( with time zone| without time zone)?", text):
            raise TypeMismatch(f"{of!r} is not the name of a type")
        return DataType(_SPELLED.get(text, text))
    if isinstance(of, type) and of in _PYTHON:
        return _PYTHON[of]
    origin = getattr(of, "__origin__", None)
    if origin is list:
        return List(of.__args__[0])
    module = type(of).__module__.split(".")[0]
    if not isinstance(of, type) and module == "pyarrow":
        return _of_arrow(str(of))
    if module == "polars" or (isinstance(of, type) and of.__module__.split(".")[0] == "polars"):
        return _of_polars(of)
    if isinstance(of, type) and of.__module__ == "numpy" or module == "numpy":
        return sql_type(getattr(of, "__name__", None) or str(of))
    raise TypeMismatch(f"{of!r} is not a type", hint='write a name of SQL ("bigint"), int, float, str, or an Arrow type')


def _of_arrow(text: str) -> DataType:
    decimal = re.fullmatch(r"decimal\d*\((\d+), (-?\d+)\)", text)
    if decimal:
        return Numeric(int(decimal[1]), int(decimal[2]))
    if re.fullmatch(r"timestamp\[\w+, tz=.*\]", text):
        return TimestampTz
    inner = re.fullmatch(r"(?:large_)?(?:list|list_view)<\w+: (.*)>", text)
    if inner:
        return List(_of_arrow(inner[1]))
    if text.startswith("dictionary<values="):
        return _of_arrow(text[len("dictionary<values="):].split(",")[0])
    return DataType(_SPELLED.get(text, text))


def _of_polars(of: Any) -> DataType:
    name = getattr(of, "__name__", None) or type(of).__name__
    if name == "Decimal":
        return Numeric(getattr(of, "precision", None) or 38, getattr(of, "scale", 0) or 0)
    if name == "Datetime":
        return TimestampTz if getattr(of, "time_zone", None) else Timestamp
    if name == "List":
        return List(of.inner)
    if name == "Duration":
        return IntervalType
    return DataType(_SPELLED.get(name.lower(), name.lower()))


class Schema(Mapping):
    """Names and types of columns, in order.

    >>> Schema({"a": "bigint"})
    Schema({'a': bigint})
    """

    def __init__(self, columns: Mapping, arrow: Any = None) -> None:
        self._columns = {name: sql_type(of) for name, of in columns.items()}
        self._arrow = arrow

    def __getitem__(self, name: str) -> DataType:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def names(self) -> list:
        """The names, in order."""
        return list(self._columns)

    def dtypes(self) -> list:
        """The types, in order."""
        return list(self._columns.values())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Mapping):
            return self._columns == {n: sql_type(t) for n, t in other.items()} and list(self) == list(other)
        return NotImplemented

    def __repr__(self) -> str:
        return f"Schema({self._columns!r})"

    def __arrow_c_schema__(self) -> Any:
        if self._arrow is None:
            raise ProgrammingError("this schema belongs to no relation, so Arrow's types are not known")
        return self._arrow.__arrow_c_schema__()


def schema_columns(schema: Any) -> dict:
    """Columns and their SQL types of a dict, or of an object with an Arrow schema."""
    if isinstance(schema, Mapping):
        return {str(name): sql_type(of) for name, of in schema.items()}
    if hasattr(schema, "__arrow_c_schema__"):
        from . import _native

        rows = _native.Rows.from_schema(schema)
        return dict(zip(rows.names, (DataType(t) for t in rows.types)))
    raise ProgrammingError(f"a schema is a dict of names and types, not {type(schema).__name__}")


NUMERIC_FLOAT = {"real", "double precision"}
INTEGERS = {"tinyint", "smallint", "integer", "bigint", "uint8", "uint16", "uint32", "uint64",
            "utinyint", "usmallint", "uinteger", "ubigint"}


def is_integer(name: str) -> bool:
    """Whether a type has whole numbers."""
    return name in INTEGERS


def is_float(name: str) -> bool:
    """Whether a type is a float."""
    return name in NUMERIC_FLOAT


def is_decimal(name: str) -> bool:
    """Whether a type is exact with digits behind the point."""
    return name.startswith("numeric")


def is_number(name: str) -> bool:
    """Whether a type is one of numbers."""
    return is_integer(name) or is_float(name) or is_decimal(name)


def is_text(name: str) -> bool:
    """Whether a type is one of texts."""
    return name == "text" or name.startswith(("varchar", "char"))


def is_temporal(name: str) -> bool:
    """Whether a type is one of times."""
    return name.startswith(("timestamp", "date", "time", "interval"))


def fields_of(of: str) -> Optional[list]:
    """Names of the fields of a struct's type, ``struct("a": int64, ..)``; None for other types."""
    if not of.startswith("struct(") or not of.endswith(")"):
        return None
    names, depth, at = [], 0, len("struct(")
    expects_name = True
    while at < len(of) - 1:
        if of[at] == '"':
            end = at + 1
            while of[end] != '"' or of[end + 1:end + 2] == '"':
                end += 2 if of[end] == '"' else 1
            if depth == 0 and expects_name:
                names.append(of[at + 1:end].replace('""', '"'))
                expects_name = False
            at = end
        elif of[at] in "(<[":
            depth += 1
        elif of[at] in ")>]":
            depth -= 1
        elif of[at] == "," and depth == 0:
            expects_name = True
        at += 1
    return names
