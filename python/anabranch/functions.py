"""Functions of one's own: ``@ab.udf`` by row, by batch, or asynchronous; aggregates are in
``aggregates``.

The engine calls a function with a batch of rows; this module makes arrays or values of them, leaves
rows with NULL out, and puts results back in their places. An exception is the error of its row.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import typing
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import _native
from . import data as _data
from .errors import DataError, ProgrammingError
from .expr import Ctx, Expr, Sql, as_column
from .types import DataType, sql_type

__all__ = ["udf", "udaf", "UserFunction", "Array", "check"]



class Array:
    """A column as a batch function gets it that asks for ``ab.Array``: Arrow's, without another
    package.

    ``len(a)``, ``a.to_list()``, iteration, and ``__arrow_c_stream__`` (a table of one column).
    """

    __slots__ = ("_native",)

    def __init__(self, native: Any) -> None:
        self._native = native

    def to_list(self) -> List[Any]:
        """The values, NULL as None."""
        return self._native.list(0)

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Any:
        return iter(self.to_list())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._native.__arrow_c_stream__(requested_schema)


@typing.overload
def udf(f: Callable[..., Any]) -> "UserFunction": ...


@typing.overload
def udf(
    f: None = None, *, returns: Any = None, name: Optional[str] = None, pure: bool = True, nulls: str = "skip",
    batch_rows: int = 65536, max_in_flight: int = 64, timeout: Any = None, retries: int = 0,
) -> Callable[[Callable[..., Any]], "UserFunction"]: ...


def udf(
    f: Any = None, *, returns: Any = None, name: Optional[str] = None, pure: bool = True, nulls: str = "skip",
    batch_rows: int = 65536, max_in_flight: int = 64, timeout: Any = None, retries: int = 0,
) -> Any:
    """A Python function as one of SQL and of expressions.

    Annotations decide how it is called. ``np.ndarray``, ``pl.Series``, ``pa.Array`` or
    ``ab.Array``: **by batch**, once for some thousand rows, with arrays, and the result is of the
    same length. ``int``, ``float``, ``str``, ..: **by row**, which costs about a microsecond a row.
    ``async def``: by row, ``max_in_flight`` of them at a time.

    Parameters
    ----------
    returns
        The type of the values, unless the annotation of the result says it.
    name
        The name in SQL, unless it is the function's own.
    pure
        Whether equal arguments always give equal values. If not, the value for each combination of
        arguments is computed once and kept, so that a row that goes takes away what it brought.
        Async functions are never pure.
    nulls
        ``"skip"``: a row with NULL in an argument is not shown, and its value is NULL. ``"pass"``:
        it is shown. A parameter ``T | None`` of a row function is passed its NULL.
    batch_rows
        Rows of one call, at most.
    max_in_flight, timeout, retries
        Of async functions: how many run at a time, how long one may take, how often it is tried
        again.

    Raises
    ------
    ProgrammingError
        When no type of the result is known, or the annotations mix arrays and values.

    >>> import anabranch as ab
    >>> @ab.udf
    ... def shout(s: str) -> str:
    ...     return s.upper() + "!"
    >>> db = ab.connect()
    >>> db.values([("ada",), (None,)], {"s": str}).select(shout("s")).sort("s").fetchall()
    [(None,), ('ADA!',)]
    >>> db.register("shout", shout); db.sql("SELECT shout('bo')").item()
    'BO!'
    """
    def made(f: Callable) -> UserFunction:
        return UserFunction(f, returns, name, pure, nulls, batch_rows, max_in_flight, timeout, retries)
    return made if f is None else made(f)


class UserFunction:
    """A function of Python's that expressions and SQL can call; see ``udf``. ``func`` is the
    function itself."""

    def __init__(self, f: Callable, returns: Any, name: Optional[str], pure: bool, nulls: str, batch_rows: int,
                 max_in_flight: int, timeout: Any, retries: int) -> None:
        if not callable(f):
            raise ProgrammingError(f"@ab.udf needs a function, not {type(f).__name__}")
        if nulls not in ("skip", "pass"):
            raise ProgrammingError(f'nulls is "skip" or "pass", not {nulls!r}')
        self.func = f
        self.name = checked_name(name or getattr(f, "__name__", "function"))
        self.__doc__, self.__name__ = f.__doc__, self.name
        self._nulls, self._batch_rows = nulls, max(1, batch_rows)
        self._flight = (max(1, max_in_flight), timeout, retries)
        self.signature = inspect.signature(f)
        hints = hints_of(f)
        self._parameters = _parameters(self.signature, self.name)
        kinds = {p: _kind(hints.get(p)) for p in self._parameters}
        self.mode = _mode(f, self.name, set(kinds.values()))
        self._kinds = list(kinds.values())
        self.pure = pure and self.mode != "async"
        self._optional = [nulls == "pass" or _is_optional(hints.get(p)) for p in self._parameters]
        self._arguments = [_argument(hints.get(p), self.mode) for p in self._parameters]
        self.returns = self._returned(returns, hints)
        self._kept: Dict[Any, Any] = {}
        self._lock = threading.RLock()

    def _returned(self, returns: Any, hints: Dict[str, Any]) -> DataType:
        given = returns if returns is not None else _plain(hints.get("return"))
        if given is None or _kind(given) != "value":
            line = f"@ab.udf(returns=float)\ndef {self.name}{self.signature}: .."
            raise ProgrammingError(f"the type of what {self.name}() gives is not known", sqlstate="42P13", hint=f"write {line!r}")
        return sql_type(given)

    def __call__(self, *arguments: Any) -> Expr:
        """The function of columns, expressions or constants."""
        if len(arguments) != len(self._parameters):
            raise ProgrammingError(f"{self.name}() takes {len(self._parameters)} arguments, not {len(arguments)}",
                                   sqlstate="42883")
        parts = [as_column(a) for a in arguments]
        return call_of(self, parts, self.returns)

    # -- as the engine has it ----------------------------------------------------------------------

    def _native_for(self, db: Any) -> Any:
        """The function for the engine; arguments of batch functions are of any type."""
        columns = {p: of or DataType("text") for p, of in zip(self._parameters, self._arguments)}
        like = db._like({**columns, "_result": self.returns})
        is_typed = all(self._arguments)
        return _native.Function.scalar(self.name, _Caller(self, like), like, is_typed)

    def _register(self, db: Any, name: str) -> None:
        db._add_function(checked_name(name), self, self._native_for(db))

    def _call(self, rows: Any, like: Any) -> Any:
        """One column of values for the rows, in parts of ``batch_rows``."""
        n = len(rows)
        if n <= self._batch_rows:
            return self._part(rows, like)
        parts = [self._part(rows.slice(at, self._batch_rows), like) for at in range(0, n, self._batch_rows)]
        return _native.Rows.below(parts)

    def _part(self, rows: Any, like: Any) -> Any:
        if self.mode == "batch":
            return _by_batch(self, rows, like)
        columns = [rows.list(i) for i in range(len(self._parameters))]
        given: List[Tuple] = list(zip(*columns)) if columns else [()] * len(rows)
        skipped = [any(v is None and not o for v, o in zip(row, self._optional)) for row in given]
        values = self._values([row for row, skip in zip(given, skipped) if not skip])
        at = iter(values)
        return _native.Rows.from_columns(["_result"], [[None if skip else next(at) for skip in skipped]], like)

    def _values(self, rows: List[Tuple]) -> List[Any]:
        if self.pure:
            return [self.func(*row) for row in rows]
        with self._lock:
            new = [row for row in dict.fromkeys(map(_key, rows)) if row not in self._kept]
            by_key = {_key(row): row for row in rows}
            if self.mode == "async":
                found = run_async(self.func, [by_key[key] for key in new], *self._flight)
            else:
                found = [self.func(*by_key[key]) for key in new]
            self._kept.update(zip(new, found))
            return [self._kept[_key(row)] for row in rows]

    def __repr__(self) -> str:
        how = {"row": "python, row by row", "batch": "python, by batch", "async": "python, asynchronous"}[self.mode]
        return f"<function {self.name}({', '.join(self._parameters)}) -> {self.returns}, {how}>"


class _Caller:
    """What the engine holds: it keeps neither the database nor the engine alive."""

    __slots__ = ("_function", "_like")

    def __init__(self, function: UserFunction, like: Any) -> None:
        self._function, self._like = function, like

    def __call__(self, rows: Any) -> Any:
        return self._function._call(rows, self._like)


def call_of(function: Any, parts: Sequence[Expr], returns: Any) -> Expr:
    """A call of a registered function, by the name that the place it stands in has for it."""
    def build(ctx: Ctx) -> Sql:
        name = ctx.register(function)
        return ctx.sql(f"{name}({', '.join(p._build(ctx).sql for p in parts)})", returns)
    first = parts[0] if parts else None
    return Expr(build, first._out if first is not None else function.name,
                select=next((p._select for p in parts if p._select), None), agg=any(p._agg for p in parts),
                window=any(p._window for p in parts), roots=any(p._roots for p in parts))


def checked_name(name: str) -> str:
    """A name that SQL can call without quotes."""
    if not (name.isidentifier() and name.isascii()):
        raise ProgrammingError(f"{name!r} is no name for a function of SQL", sqlstate="42601", hint='name="my_function"')
    return name.lower()


def hints_of(f: Callable) -> Dict[str, Any]:
    """The annotations, also where they were written as text; those that cannot be read are left
    out.

    Names in them are looked for where the function was written, too: in the locals of a function
    around it.
    """
    import sys

    around: Any = sys._getframe(1)
    while around is not None and around.f_globals.get("__name__", "").startswith("anabranch"):
        around = around.f_back
    names = dict(around.f_locals) if around is not None else {}
    found: Dict[str, Any] = {}
    for name, annotation in getattr(f, "__annotations__", {}).items():
        try:
            found[name] = eval(annotation, getattr(f, "__globals__", {}), names) if isinstance(annotation, str) else annotation
        except Exception:  # a name that is not there
            continue
    return found


def _parameters(signature: inspect.Signature, name: str) -> List[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for parameter in signature.parameters.values():
        if parameter.kind not in kinds:
            raise ProgrammingError(f"{name}() has parameter {parameter}: functions of SQL take a fixed number of arguments",
                                   sqlstate="42P13")
    return list(signature.parameters)


def _plain(annotation: Any) -> Any:
    """Without ``| None``."""
    if annotation is None:
        return None
    parts = [a for a in getattr(annotation, "__args__", ()) if a is not type(None)]
    is_union = getattr(annotation, "__origin__", None) is typing.Union or type(annotation).__name__ == "UnionType"
    return parts[0] if is_union and len(parts) == 1 else annotation


def _is_optional(annotation: Any) -> bool:
    return _plain(annotation) is not annotation


def _kind(annotation: Any) -> str:
    """``value``, or which arrays: ``numpy``, ``polars``, ``pyarrow``, ``anabranch``; ``unknown``
    without annotation."""
    plain = _plain(annotation)
    if plain is None or plain is inspect.Parameter.empty:
        return "unknown"
    if plain is Array:
        return "anabranch"
    origin = getattr(plain, "__origin__", plain)
    module, name = getattr(origin, "__module__", "").split(".")[0], getattr(origin, "__name__", "")
    if (module, name) in (("numpy", "ndarray"), ("polars", "Series"), ("pyarrow", "Array"), ("pyarrow", "ChunkedArray")):
        return module
    return "value"


def _mode(f: Callable, name: str, kinds: set) -> str:
    arrays = kinds - {"value", "unknown"}
    if inspect.iscoroutinefunction(f):
        if arrays:
            raise ProgrammingError(f"{name}() is async and takes arrays: async functions take values", sqlstate="42P13")
        return "async"
    if "unknown" in kinds:
        raise ProgrammingError(f"{name}() has a parameter without annotation", sqlstate="42P13",
                               hint="def f(x: float): values, row by row; def f(x: np.ndarray): arrays, by batch")
    if arrays and len(arrays | (kinds - arrays)) > 1:
        raise ProgrammingError(f"{name}() mixes {' and '.join(sorted(kinds))} in its annotations", sqlstate="42P13")
    return "batch" if arrays else "row"


def _argument(annotation: Any, mode: str) -> Optional[DataType]:
    plain = _plain(annotation)
    if mode == "batch" or plain in (None, Any, object):
        return None
    return sql_type(plain)


def _key(row: Tuple) -> Any:
    try:
        hash(row)
        return row
    except TypeError:
        return repr(row)


# -- by batch --------------------------------------------------------------------------------------


def _by_batch(function: UserFunction, rows: Any, like: Any) -> Any:
    """The function once, over the rows without NULL unless NULLs are passed."""
    n = len(rows)
    present = None if function._nulls == "pass" else rows.present()
    given = rows if present is None else rows.masked(present)
    arrays = [_array(given, i, kind) for i, kind in enumerate(function._kinds)]
    if not arrays or len(given) or not n:
        value = function.func(*arrays)
    else:
        return _native.Rows.from_columns(["_result"], [[None] * n], like)
    result = _column(value, like)
    if len(result) != len(given):
        raise DataError(f"{function.name}() gave {len(result)} values for {len(given)} rows", sqlstate="22023")
    return result if present is None else result.spread(present)


def _array(rows: Any, at: int, kind: str) -> Any:
    one = rows.project([at], ["x"])
    if kind == "anabranch":
        return Array(one)
    if kind == "polars":
        import polars

        return polars.DataFrame(one)["x"]
    if kind == "pyarrow":
        import pyarrow

        column = pyarrow.table(one).column(0)
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    from .rows import Rows

    return Rows(one).numpy()["x"]


def _column(value: Any, like: Any) -> Any:
    """What a function gave, as one column of the promised type."""
    if isinstance(value, Array):
        return value._native.project([0], ["_result"])
    module = _data.module_of(value)
    if module == "numpy" and getattr(value, "ndim", 1) == 0:
        raise DataError(f"it gave one value ({value!r}), not an array", sqlstate="22023")
    if module in ("numpy", "polars", "pyarrow", "pandas"):
        return _data._column("_result", value, like, False)
    if isinstance(value, (list, tuple)):
        return _native.Rows.from_columns(["_result"], [list(value)], like)
    if hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"):
        found = _native.Rows.from_capsule(value)
        return found.project([0], ["_result"])
    raise DataError(f"it gave {type(value).__name__}, not an array", sqlstate="22023")


# -- async -----------------------------------------------------------------------------------------


def run_async(f: Callable, rows: Sequence[Tuple], max_in_flight: int, timeout: Any, retries: int) -> List[Any]:
    """The results of a coroutine function for all rows, so many at a time."""
    from .durations import seconds

    limit = None if timeout is None else seconds(timeout)

    async def one(gate: asyncio.Semaphore, row: Tuple) -> Any:
        async with gate:
            for attempt in range(retries + 1):
                try:
                    return await asyncio.wait_for(f(*row), limit)
                except Exception:
                    if attempt == retries:
                        raise
        raise AssertionError("the last attempt returns or raises")

    async def all_of() -> List[Any]:
        gate = asyncio.Semaphore(max_in_flight)
        return list(await asyncio.gather(*[one(gate, row) for row in rows]))

    return asyncio.run(all_of()) if rows else []


def udaf(kind: Any = None, **kw: Any) -> Any:
    """An aggregate of one's own: see ``anabranch.aggregates.udaf``."""
    from .aggregates import udaf as made

    return made(kind, **kw)


def check(kind: Any, rows: Sequence[Tuple]) -> None:
    """The law of an aggregate, on some rows: see ``anabranch.testing.check_udaf``."""
    from .aggregates import check as checked

    checked(kind, rows)


