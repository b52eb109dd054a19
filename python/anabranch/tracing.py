"""Lambdas are traced: called once with stand-ins for columns, and what they do is written down."""

from __future__ import annotations

import threading
import traceback
from typing import Any, Callable, Mapping

from .errors import TraceError, unknown_column

_state = threading.local()


def _where() -> str:
    """The line of user code that is at fault."""
    for frame in reversed(traceback.extract_stack()):
        if "/anabranch/" not in frame.filename.replace("\\", "/"):
            return f" (line {frame.lineno}: {frame.line})" if frame.line else f" (line {frame.lineno})"
    return ""


class Traced:
    """What an expression refuses, because only a value could answer."""

    __slots__ = ()

    def _refuse(self, what: str, hint: str) -> Any:
        raise TraceError(f"{what} needs a value, and an expression has none{_where()}",
                         hint=hint + "; @ab.udf runs any Python")

    def __bool__(self) -> bool:
        return self._refuse("and, or, not, if, while, in, chained comparison, min, max",
                            "write & | ~ with brackets, ab.when, ab.least, .is_in")

    def __iter__(self) -> Any:
        return self._refuse("iteration", "write .list.eval or explode")

    def __len__(self) -> int:
        return self._refuse("len()", "write .str.len_chars() or .list.len()")

    def __int__(self) -> int:
        return self._refuse("int()", "write .cast(int)")

    def __float__(self) -> float:
        return self._refuse("float()", "write .cast(float), .sqrt() and the like")

    def __complex__(self) -> complex:
        return self._refuse("complex()", "write .cast(..)")

    def __index__(self) -> int:
        return self._refuse("use as an index", "write .cast(int)")

    def __contains__(self, item: Any) -> bool:
        return self._refuse("in", "write .is_in(..) or .str.contains(..)")

    def __str__(self) -> str:
        if getattr(_state, "depth", 0):
            return self._refuse("str() and f-strings", 'write ab.format("{}", ..) or .cast(str)')
        return repr(self)

    def __format__(self, spec: str) -> str:
        if getattr(_state, "depth", 0):
            return self._refuse("f-strings and format()", 'write ab.format("{}", ..) or .cast(str)')
        return repr(self)

    def __hash__(self) -> int:
        if getattr(_state, "depth", 0):
            return self._refuse("hash() and keys of a dict", "write .replace({..}) or ab.when")
        return id(self)

    def __await__(self) -> Any:
        return self._refuse("await", "write an async @ab.udf")

    def __divmod__(self, other: Any) -> Any:
        return self._refuse("divmod()", "write // and %")

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            raise TraceError(f"expressions do not change{_where()}", hint="return a new one")


class Row:
    """A row while a lambda is traced: ``r.name`` or ``r["any name"]``."""

    __slots__ = ("_columns", "_make")

    def __init__(self, columns: Mapping, make: Callable[[str], Any]) -> None:
        object.__setattr__(self, "_columns", columns)
        object.__setattr__(self, "_make", make)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._columns:
            raise unknown_column(name, self._columns)
        return self._make(name)

    def __getitem__(self, name: str) -> Any:
        if name not in self._columns:
            raise unknown_column(str(name), self._columns)
        return self._make(name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise TraceError(f'rows do not change: r.{name} = ..{_where()}', hint="map(lambda r: {..}) or with_columns")

    __setitem__ = __setattr__

    def __iter__(self) -> Any:
        raise TraceError(f"a row cannot be walked while it is traced{_where()}", hint="name its columns")


def trace(f: Callable, *rows: Any) -> Any:
    """The function's result for stand-ins of rows."""
    _state.depth = getattr(_state, "depth", 0) + 1
    try:
        return f(*rows)
    except TraceError:
        raise
    except AttributeError as error:
        from .errors import nearest
        from .expr import Expr

        known = [n for n in dir(Expr) if not n.startswith("_")]
        near = nearest(str(getattr(error, "name", "")), known)
        raise TraceError(f"{error}{_where()}", hint=f"did you mean .{near}?" if near else "@ab.udf runs any Python") from error
    except TypeError as error:
        raise TraceError(f"{error}{_where()}", hint="@ab.udf runs any Python") from error
    finally:
        _state.depth -= 1
