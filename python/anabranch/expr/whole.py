"""Expressions, put together: what is computed of columns, without the rows."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping

from .. import sqltext as q
from .. import types as t
from ..errors import ProgrammingError, TraceError
from .aggregates import Aggregates
from .context import Ctx, Sql, _Any
from .names import Names
from .node import as_operand
from .operators import Operators
from .values import Values
from .windows import Windows


class Expr(Operators, Values, Aggregates, Windows):
    """A computation over columns. Immutable; built by ``ab.col``, operators and methods.

    >>> import anabranch as ab
    >>> (ab.col("a") + 1).sql(a=int)
    '("a" + 1)'
    """

    __slots__ = ()

    # -- what it is called -------------------------------------------------------------------

    def alias(self, name: str) -> "Expr":
        """The same under another name."""
        return Expr(self._build, name, agg=self._agg, select=self._select, window=self._window, roots=self._roots)

    @property
    def name(self) -> "Names":
        """Names made of the column's: ``.name.prefix("x_")``."""
        return Names(self)

    def sql(self, **columns: Any) -> str:
        """The SQL of this expression; ``columns`` gives the types of those it reads."""
        schema = {name: t.sql_type(of) for name, of in columns.items()}
        ctx = Ctx(_Any(schema), q.name, lambda text: "text")
        return self._build(ctx).sql

    def __repr__(self) -> str:
        try:
            return f"<Expr {self.sql()}>"
        except Exception:
            return "<Expr>"

    # -- namespaces --------------------------------------------------------------------------

    @property
    def str(self) -> Any:
        """What can be done with texts."""
        from ..namespaces import StringNamespace

        return StringNamespace(self)

    @property
    def dt(self) -> Any:
        """What can be done with times."""
        from ..namespaces import TimeNamespace

        return TimeNamespace(self)

    @property
    def list(self) -> Any:
        """What can be done with lists."""
        from ..namespaces import ListNamespace

        return ListNamespace(self)

    @property
    def struct(self) -> Any:
        """What can be done with structs."""
        from ..namespaces import StructNamespace

        return StructNamespace(self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> "Expr":
        if method != "__call__" or kwargs:
            raise TraceError(f"np.{ufunc.__name__}.{method} cannot be traced", hint="write @ab.udf")
        from .making import max_horizontal, min_horizontal

        ops: Mapping[Any, Callable] = {
            "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
            "divide": lambda a, b: a / b, "true_divide": lambda a, b: a / b, "power": lambda a, b: a ** b,
            "minimum": lambda a, b: min_horizontal(a, b), "maximum": lambda a, b: max_horizontal(a, b),
            "absolute": lambda a: a.abs(), "fabs": lambda a: a.abs(), "negative": lambda a: -a,
            "greater": lambda a, b: a > b, "less": lambda a, b: a < b, "equal": lambda a, b: a == b,
            "greater_equal": lambda a, b: a >= b, "less_equal": lambda a, b: a <= b, "not_equal": lambda a, b: a != b,
            "isnan": lambda a: a.is_nan(), "sqrt": lambda a: a.sqrt(), "exp": lambda a: a.exp(),
            "log": lambda a: a.log(), "log10": lambda a: a.log10(), "sin": lambda a: a.sin(), "cos": lambda a: a.cos(),
            "tan": lambda a: a.tan(), "floor": lambda a: a.floor(), "ceil": lambda a: a.ceil(),
            "floor_divide": lambda a, b: a // b, "remainder": lambda a, b: a % b, "sign": lambda a: a.sign(),
        }
        if ufunc.__name__ not in ops:
            raise TraceError(f"np.{ufunc.__name__} cannot be traced", hint="write @ab.udf")
        return ops[ufunc.__name__](*[as_operand(value) for value in inputs])


class Filtered(Expr):
    """Values of the rows for which predicates are true: an aggregate must follow, which then is
    over these rows."""

    __slots__ = ("_inner", "_tests")

    def __init__(self, inner: Expr, tests: List[Expr]) -> None:
        def build(ctx: Ctx) -> Sql:
            raise ProgrammingError("filter of an expression leaves a column of another length",
                                   hint="aggregate it (.filter(p).sum()), or filter the relation")
        super().__init__(build, inner._out, select=inner._select, roots=True)
        self._inner, self._tests = inner, tests


def _aggregate_filtered(name: str) -> Callable[..., Expr]:
    def method(self: Filtered, *arguments: Any, **named_arguments: Any) -> Expr:
        return getattr(self._inner, name)(*arguments, **named_arguments).filter(*self._tests)
    method.__doc__ = getattr(Expr, name).__doc__
    return method


for _name in ("sum mean min max count len n_unique null_count first last any all median mode std var quantile percentile_cont "
              "percentile_disc product single sum_squares avg_squares top_k min_by max_by implode string_agg bit_and "
              "bit_or").split():
    setattr(Filtered, _name, _aggregate_filtered(_name))
