"""What was read: rows that stay as they are."""

from __future__ import annotations

import math
from typing import Any, Dict, Iterator, List, Optional, Sequence

from . import _native
from .errors import ProgrammingError, needs
from .types import DataType, Schema

__all__ = ["Rows", "Batch"]


class Results:
    """How rows leave, whoever has them: ``_rows()`` gives them."""

    def _rows(self) -> "Rows":
        raise NotImplementedError

    def pl(self, *, lazy: bool = False) -> Any:
        """A Polars frame; buffers are shared where Polars can."""
        return self._rows()._pl(lazy)

    def df(self, *, dtype_backend: Optional[str] = None) -> Any:
        """A pandas frame; ``dtype_backend="pyarrow"`` keeps Arrow's columns."""
        return self._rows()._df(dtype_backend)

    def arrow(self) -> Any:
        """A ``pyarrow.Table`` on the same buffers."""
        return self._rows()._arrow()

    def numpy(self) -> Dict[str, Any]:
        """An array a column, masked where values are missing."""
        return self._rows()._numpy()

    def fetchnumpy(self) -> Dict[str, Any]:
        """See ``numpy``."""
        return self._rows()._numpy()

    def fetchdf(self) -> Any:
        """See ``df``."""
        return self._rows()._df(None)

    def to_dicts(self) -> List[Dict[str, Any]]:
        """A dict a row."""
        rows = self._rows()
        names = rows.columns
        return [dict(zip(names, row)) for row in rows.fetchall()]

    def rows(self, named: bool = False) -> List[Any]:
        """A tuple a row, or a dict if ``named``."""
        return self.to_dicts() if named else self._rows().all()

    def item(self) -> Any:
        """The one value of an answer of one row and one column."""
        rows = self._rows()
        if rows.shape != (1, 1):
            raise ProgrammingError(f"item() needs one row of one column, not {rows.shape[0]} of {rows.shape[1]}",
                                   sqlstate="21000")
        return rows.all()[0][0]

    def first(self) -> Any:
        """The first row, or None."""
        rows = self._rows()
        return rows[0] if len(rows) else None

    def fetchall(self) -> List[Any]:
        """All rows, as tuples."""
        return self._rows().all()

    def batches(self, rows: Optional[int] = None) -> Iterator["Batch"]:
        """The rows in batches, of at most so many rows."""
        return self._rows()._batches(rows)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._rows()._native.__arrow_c_stream__(requested_schema)


class Rows(Results):
    """An answer. Immutable; valid after the database is closed.

    >>> import anabranch as ab
    >>> rows = ab.connect().sql("SELECT 1 AS a, 'x' AS b").collect()
    >>> rows.columns, rows.shape, list(rows)
    (['a', 'b'], (1, 2), [(1, 'x')])
    """

    __slots__ = ("_native", "_at", "_tuples", "time")

    def __init__(self, native: Any, time: Optional[int] = None) -> None:
        self._native = native
        self._at = 0
        self._tuples: Optional[list] = None
        self.time = time

    def _rows(self) -> "Rows":
        return self

    def all(self) -> List[Any]:
        """All rows, as a new list of tuples."""
        if self._tuples is None:
            self._tuples = self._native.tuples()
        return list(self._tuples)

    @property
    def columns(self) -> List[str]:
        """Names of the columns."""
        return self._native.names

    @property
    def dtypes(self) -> List[DataType]:
        """Types of the columns."""
        return [DataType(of) for of in self._native.types]

    @property
    def schema(self) -> Schema:
        """Names and types."""
        return Schema(dict(zip(self.columns, self.dtypes)), self._native)

    @property
    def shape(self) -> tuple:
        """How many rows and columns."""
        return (len(self._native), len(self.columns))

    @property
    def notices(self) -> List[str]:
        """What a reader should know: a source that failed."""
        return self._native.notices

    def __len__(self) -> int:
        return len(self._native)

    def __bool__(self) -> bool:
        return len(self._native) > 0

    def __iter__(self) -> Iterator[tuple]:
        return iter(self.all())

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, str):
            return self._native.list(self._place(place))
        if isinstance(place, slice):
            return self.all()[place]
        n = len(self._native)
        if not -n <= place < n:
            raise IndexError(f"row {place} of {n}")
        return self._native.slice(place % n, 1).tuples()[0]

    def _place(self, name: str) -> int:
        from .errors import unknown_column

        if name not in self.columns:
            raise unknown_column(name, self.columns)
        return self.columns.index(name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Rows):
            return self.columns == other.columns and self.all() == other.all()
        if isinstance(other, list):
            return self.all() == other
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def fetchall(self) -> List[Any]:
        """The rows that were not fetched yet, as tuples."""
        rows, self._at = self.all()[self._at:], len(self)
        return rows

    def fetchone(self) -> Optional[tuple]:
        """The next row, or None."""
        if self._at >= len(self):
            return None
        self._at += 1
        return self[self._at - 1]

    def fetchmany(self, n: int = 1) -> List[tuple]:
        """The next ``n`` rows."""
        rows = self._native.slice(self._at, n).tuples()
        self._at += len(rows)
        return rows

    def _batches(self, rows: Optional[int]) -> Iterator["Batch"]:
        if rows is None:
            yield from (Batch(part, self.time) for part in self._native.parts())
            return
        for at in range(0, len(self), rows):
            yield Batch(self._native.slice(at, rows), self.time)

    def _arrow(self) -> Any:
        try:
            import pyarrow
        except ImportError:
            raise needs("pyarrow", ".arrow()") from None
        return pyarrow.table(self._native)

    def _pl(self, lazy: bool) -> Any:
        try:
            import polars
        except ImportError:
            raise needs("polars", ".pl()") from None
        months = [name for name, of in zip(self.columns, self.dtypes) if of == "interval"]
        if months:
            return self._pl_spans(polars, months, lazy)
        frame = polars.DataFrame(self._native)
        return frame.lazy() if lazy else frame

    def _pl_spans(self, polars: Any, names: Sequence[str], lazy: bool) -> Any:
        """Intervals become durations, which have no months."""
        series = []
        for idx, name in enumerate(self.columns):
            if name in names:
                spans = [None if v is None else v.timedelta() for v in self._native.list(idx)]
                series.append(polars.Series(name, spans, dtype=polars.Duration("us")))
            else:
                series.append(polars.DataFrame(self._native.project([idx], [name]))[name])
        frame = polars.DataFrame(series)
        return frame.lazy() if lazy else frame

    def _df(self, backend: Optional[str]) -> Any:
        try:
            import pandas
        except ImportError:
            raise needs("pandas", ".df()") from None
        if backend == "pyarrow":
            table = self._arrow()
            return table.to_pandas(types_mapper=pandas.ArrowDtype)
        if backend is not None:
            raise ProgrammingError(f'dtype_backend is None or "pyarrow", not {backend!r}')
        columns = {}
        for idx, (name, of) in enumerate(zip(self.columns, self.dtypes)):
            columns[idx] = self._pandas_column(pandas, idx, of)
        frame = pandas.DataFrame(columns)
        frame.columns = self.columns
        return frame

    def _pandas_column(self, pandas: Any, idx: int, of: str) -> Any:
        found = self._native.buffer(idx)
        if found is not None:
            import numpy

            buffer, valid = found
            values = numpy.asarray(buffer)
            if of == "timestamptz":
                series = pandas.Series(values.copy()).dt.tz_localize("UTC")
                return series if valid is None else series.where(numpy.frombuffer(bytes(valid), dtype=bool))
            if valid is None:
                return pandas.Series(values)
            present = numpy.frombuffer(bytes(valid), dtype=bool)
            if values.dtype.kind in "iu":
                return pandas.Series(pandas.arrays.IntegerArray(values.copy(), ~present))
            if values.dtype.kind == "f":
                return pandas.Series(numpy.where(present, values, numpy.nan))
            return pandas.Series(values.copy()).where(present)
        values = self._native.list(idx)
        if of == "boolean":
            return pandas.Series(values, dtype="boolean" if None in values else bool)
        if of == "date":
            return pandas.Series(pandas.to_datetime(pandas.Series(values, dtype=object)))
        if of == "text":
            return pandas.Series(values, dtype=object if not values else None)
        return pandas.Series(values, dtype=object)

    def _numpy(self) -> Dict[str, Any]:
        try:
            import numpy
        except ImportError:
            raise needs("numpy", ".numpy()") from None
        return {name: self._numpy_column(numpy, idx, of) for idx, (name, of) in enumerate(zip(self.columns, self.dtypes))}

    def _numpy_column(self, numpy: Any, idx: int, of: str) -> Any:
        found = self._native.buffer(idx)
        if found is not None:
            buffer, valid = found
            values = numpy.asarray(buffer)
            if valid is None:
                return values
            return numpy.ma.masked_array(values, mask=~numpy.frombuffer(bytes(valid), dtype=bool))
        values = self._native.list(idx)
        missing = [value is None for value in values]
        if of == "boolean":
            made = numpy.array([bool(value) for value in values], dtype=bool)
        elif of == "date":
            made = numpy.array(values, dtype="datetime64[D]")
        else:
            made = numpy.empty(len(values), dtype=object)
            made[:] = values
        return numpy.ma.masked_array(made, mask=missing) if any(missing) else made

    def __arrow_c_schema__(self) -> Any:
        return self._native.__arrow_c_schema__()

    def __repr__(self) -> str:
        from .display import table

        n = len(self)
        return table(self, footer=f"{n} row{'' if n == 1 else 's'}")

    def _repr_html_(self) -> str:
        from .display import html

        n = len(self)
        return html(self, footer=f"{n} row{'' if n == 1 else 's'}")

    def __reduce__(self) -> Any:
        return (_unpickled, (self.columns, [self._native.list(i) for i in range(len(self.columns))],
                             [str(of) for of in self.dtypes], self.time))


def _unpickled(names: list, columns: list, types: list, time: Optional[int]) -> Rows:
    return Rows(_native.Rows.from_columns(names, columns), time)


class Batch(Rows):
    """One Arrow record batch of an answer, or of changes."""

    __slots__ = ()

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._native.__arrow_c_array__(requested_schema)


def same(a: Any, b: Any) -> bool:
    """Equality of values in which NaN equals NaN."""
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        return True
    return a == b


