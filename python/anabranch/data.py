"""Rows from Python: whatever holds them, as Arrow."""

from __future__ import annotations

import sys
from typing import Any, List, Mapping, Optional, Sequence

from . import _native
from .errors import NotSupportedError, ProgrammingError

_PANDAS = "pandas"


def module_of(value: Any) -> str:
    """The package a value's class is from."""
    return type(value).__module__.split(".")[0]


def is_data(value: Any) -> bool:
    """Whether a Python variable can be a relation of SQL by its name."""
    if hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"):
        return True
    if module_of(value) == _PANDAS and type(value).__name__ == "DataFrame":
        return True
    return module_of(value) == "numpy" and type(value).__name__ == "ndarray" and getattr(value, "ndim", 0) >= 1


def native(
    data: Any, *, names: Optional[Sequence[str]] = None, like: Any = None, nan_to_null: bool = True,
) -> Any:
    """The data as rows of the native layer.

    ``names`` are those of the target's columns, for tuples; ``like`` gives types of columns by
    name.
    """
    from .relation import Relation
    from .rows import Rows

    if isinstance(data, Rows):
        return data._native
    if isinstance(data, Relation):
        return data.collect()._native
    if isinstance(data, _native.Rows):
        return data
    if module_of(data) == "polars" and type(data).__name__ == "LazyFrame":
        raise ProgrammingError("a LazyFrame has no rows yet", hint="collect() it first")
    if module_of(data) == _PANDAS and type(data).__name__ == "DataFrame":
        return _of_pandas(data, like, nan_to_null)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        if module_of(data) == "polars" and type(data).__name__ == "Series":
            data = data.to_frame()
        return _native.Rows.from_capsule(data)
    if module_of(data) == "numpy":
        return _of_array(data, names, like)
    if isinstance(data, Mapping):
        return _of_columns(dict(data), like, nan_to_null)
    if isinstance(data, (str, bytes)):
        raise ProgrammingError(f"{type(data).__name__} is no set of rows", hint="a list of tuples, a dict of columns, a frame")
    try:
        rows = list(data)
    except TypeError:
        raise ProgrammingError(f"{type(data).__name__} is no set of rows",
                               hint="a list of tuples, a dict of columns, a frame, or anything with __arrow_c_stream__") from None
    return _of_rows(rows, names, like)


def _of_rows(rows: List[Any], names: Optional[Sequence[str]], like: Any) -> Any:
    if rows and isinstance(rows[0], Mapping):
        found: dict = {}
        for row in rows:
            for name in row:
                found.setdefault(name, None)
        columns = {name: [row.get(name) for row in rows] for name in found}
        return _of_columns(columns, like, True)
    if rows and hasattr(rows[0], "_fields") and names is None:
        names = list(rows[0]._fields)
    if rows and hasattr(rows[0], "__dataclass_fields__"):
        fields = list(rows[0].__dataclass_fields__)
        return _of_columns({name: [getattr(row, name) for row in rows] for name in fields}, like, True)
    if names is None:
        n = len(rows[0]) if rows else 0
        names = [f"column{i + 1}" for i in range(n)]
    for i, row in enumerate(rows):
        if not isinstance(row, (tuple, list)):
            raise ProgrammingError(f"row {i} is {row!r}, which is neither a tuple nor a dict",
                                   hint="one column: [(1,), (2,)]")
        if len(row) != len(names):
            raise ProgrammingError(f"row {i} has {len(row)} values for {len(names)} columns", sqlstate="42601",
                                   hint="columns: " + ", ".join(names))
    columns = [[row[i] for row in rows] for i in range(len(names))]
    return _native.Rows.from_columns(list(names), columns, like)


def _of_columns(columns: Mapping, like: Any, nan_to_null: bool) -> Any:
    names = [str(name) for name in columns]
    values = list(columns.values())
    if any(module_of(v) in ("numpy", _PANDAS, "polars", "pyarrow") or hasattr(v, "__arrow_c_stream__") for v in values):
        parts = [_column(name, value, like, nan_to_null) for name, value in zip(names, values)]
        lengths = {len(part) for part in parts}
        if len(lengths) > 1:
            raise ProgrammingError("columns have different lengths: " + ", ".join(
                f"{name} {len(part)}" for name, part in zip(names, parts)), sqlstate="22023")
        return _native.Rows.beside(parts)
    lists = [list(value) if not isinstance(value, list) else value for value in values]
    return _native.Rows.from_columns(names, lists, like)


def _column(name: str, value: Any, like: Any, nan_to_null: bool) -> Any:
    """One column as rows of that column."""
    module = module_of(value)
    if module == "polars":
        return _native.Rows.from_capsule(value.alias(name).to_frame())
    if module == "numpy":
        return _numpy_column(name, value, like, False)
    if module == _PANDAS:
        return _pandas_column(name, value, like, nan_to_null)
    if module == "pyarrow":
        import pyarrow

        return _native.Rows.from_capsule(pyarrow.table({name: value}))
    return _native.Rows.from_columns([name], [list(value)], like)


def _numpy_column(name: str, array: Any, like: Any, nan_to_null: bool) -> Any:
    import numpy

    mask = None
    if isinstance(array, numpy.ma.MaskedArray):
        mask = numpy.ma.getmaskarray(array)
        array = array.data
    if array.ndim != 1:
        return _native.Rows.from_columns([name], [[list(v) for v in array]], like)
    kind = array.dtype.kind
    if kind == "M":
        missing = numpy.isnat(array)
        unit = numpy.datetime_data(array.dtype)[0]
        array = array.astype("datetime64[D]" if unit == "D" else "datetime64[us]")
        mask = missing if mask is None else (mask | missing)
        array = numpy.where(missing, numpy.zeros(1, array.dtype), array)
    if kind == "c":
        raise NotSupportedError(f'column "{name}" is complex', hint="two columns: x.real, x.imag")
    if kind in "biufM" and array.dtype.itemsize <= 8 and not (kind == "f" and array.dtype.itemsize == 2):
        if nan_to_null and kind == "f":
            missing = numpy.isnan(array)
            if missing.any():
                mask = missing if mask is None else (mask | missing)
        valid = None if mask is None or not mask.any() else (~mask).tobytes()
        array = numpy.ascontiguousarray(array)
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("<"))
        return _native.Rows.from_bytes(name, array.dtype.str, array.tobytes(), valid)
    if kind == "f":
        return _numpy_column(name, array.astype("float32"), like, nan_to_null)
    values = array.tolist() if kind != "m" else array.astype("timedelta64[us]").astype(object).tolist()
    if mask is not None:
        values = [None if gone else value for value, gone in zip(values, mask)]
    return _native.Rows.from_columns([name], [values], like)


def _of_array(array: Any, names: Optional[Sequence[str]], like: Any) -> Any:
    import numpy

    if not isinstance(array, numpy.ndarray):
        raise ProgrammingError(f"{type(array).__name__} is no set of rows")
    if array.dtype.names:
        return _native.Rows.beside([_numpy_column(name, array[name], like, False) for name in array.dtype.names])
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    if array.ndim != 2:
        raise ProgrammingError(f"an array of {array.ndim} dimensions is no table")
    names = list(names) if names else [f"column{i + 1}" for i in range(array.shape[1])]
    if len(names) != array.shape[1]:
        raise ProgrammingError(f"the array has {array.shape[1]} columns for {len(names)}", sqlstate="42601")
    return _native.Rows.beside([_numpy_column(name, array[:, i], like, False) for i, name in enumerate(names)])


def _of_pandas(frame: Any, like: Any, nan_to_null: bool) -> Any:
    columns = [str(name) for name in frame.columns]
    parts = [_pandas_column(name, frame.iloc[:, i], like, nan_to_null) for i, name in enumerate(columns)]
    names = [str(name) for name in frame.index.names if name is not None]
    for name in names:
        parts.append(_pandas_column(name, frame.index.get_level_values(name).to_series(), like, nan_to_null))
    return _native.Rows.beside(parts) if parts else _native.Rows.from_columns([], [])


def _pandas_column(name: str, series: Any, like: Any, nan_to_null: bool) -> Any:
    import numpy

    dtype = series.dtype
    text = str(dtype)
    if isinstance(dtype, numpy.dtype) and dtype.kind in "biufM":
        return _numpy_column(name, series.to_numpy(), like, nan_to_null)
    if text.startswith("datetime64[") and "," in text:
        naive = series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
        rows = _numpy_column(name, naive, None, nan_to_null)
        return rows.as_instants()
    if hasattr(series.array, "__arrow_array__") and "pyarrow" in sys.modules and "pyarrow" in text:
        import pyarrow

        return _native.Rows.from_capsule(pyarrow.table({name: pyarrow.array(series)}))
    missing = series.isna().to_numpy()
    if hasattr(series.array, "_mask") and hasattr(series.array, "_data"):
        values = numpy.ma.masked_array(series.array._data, mask=series.array._mask)
        return _numpy_column(name, values, like, False)
    if text == "category":
        series = series.astype(object)
    listed = [None if gone else value for value, gone in zip(series.tolist(), missing)]
    return _native.Rows.from_columns([name], [listed], like)


def fitted(data: Any, columns: Sequence[str], like: Any, table: str) -> Any:
    """Rows for a table: columns by name (or by place, for tuples), with the names that are
    there."""
    rows = native(data, names=columns, like=like)
    given = rows.names
    if set(given) <= set(columns):
        return rows
    if given and all(name == f"column{i + 1}" for i, name in enumerate(given)) and len(given) == len(columns):
        return rows.project(list(range(len(given))), list(columns))
    from .errors import unknown_column

    raise unknown_column(next(name for name in given if name not in columns), columns, of=f' in table "{table}"')


