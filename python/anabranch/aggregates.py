"""Aggregates of one's own: ``@ab.udaf`` on a class with initial, accumulate, retract, merge and
finish.

Where the methods are arithmetic on the state, they are traced: the state is then a tuple of
built-in sums, and the aggregate is as fast as these. Otherwise its methods run in Python.
"""

from __future__ import annotations

import inspect
import itertools
import random
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, overload

from . import _native
from . import sqltext as q
from .errors import Error, ProgrammingError, TraceError
from .expr import Ctx, Expr, Sql, When, as_column, as_operand, lit
from .functions import checked_name
from .tracing import trace
from .types import DataType, sql_type

__all__ = ["udaf", "UserAggregate", "check"]

_METHODS = ("initial", "accumulate", "retract", "merge", "unmerge", "finish")


@overload
def udaf(kind: type, *, returns: Any = None, name: Optional[str] = None, mode: str = "auto") -> "UserAggregate": ...


@overload
def udaf(
    kind: None = None, *, returns: Any = None, name: Optional[str] = None, mode: str = "auto",
) -> Callable[[type], "UserAggregate"]: ...


def udaf(
    kind: Any = None, *, returns: Any = None, name: Optional[str] = None, mode: str = "auto",
) -> Any:
    """A class as an aggregate of SQL, of expressions and of events.

    ``initial(self)`` gives the state of no rows; ``accumulate(self, state, *args)`` the state with
    a row more, ``retract(self, state, *args)`` with one less, ``merge(self, a, b)`` the state of
    the rows of both, and ``finish(self, state)`` the value. Methods return states and never change
    them in place. Rows with NULL in an argument are left out.

    Law (``ab.testing.check_udaf`` tests it): the order of rows does not matter, retract undoes
    accumulate, merge is accumulating the rows of both.

    Parameters
    ----------
    returns
        The type of the value.
    mode
        ``"traced"``: the methods are traced once and become built-in sums; ``TraceError`` says what
        cannot be. ``"row"``: they run in Python, row by row. ``"batch"``: ``accumulate(self,
        states, places, *arrays)`` gives the list of states anew, ``places[i]`` is that of row
        ``i``, arrays are ``ab.Array``; ``retract`` likewise, and ``merge`` must add up states of
        rows that were only retracted. ``"auto"``: traced if possible, else by row. Without
        ``retract``, rows are kept and walked when their group changes.

    >>> import anabranch as ab
    >>> @ab.udaf(returns=float)
    ... class mean_square:
    ...     def initial(self): return (0.0, 0)
    ...     def accumulate(self, s, x): return (s[0] + x * x, s[1] + 1)
    ...     def finish(self, s): return s[0] / s[1]
    >>> db = ab.connect()
    >>> db.values([(1.0,), (3.0,)], {"x": float}).select(m=mean_square("x")).item()
    5.0
    """
    def made(kind: Any) -> UserAggregate:
        return UserAggregate(kind, returns, name, mode)
    return made if kind is None else made(kind)


class UserAggregate:
    """An aggregate of Python's; see ``udaf``. ``kind`` is the class, ``mode`` how it runs."""

    def __init__(self, kind: Any, returns: Any, name: Optional[str], mode: str) -> None:
        if mode not in ("auto", "traced", "batch", "row"):
            raise ProgrammingError(f"mode is auto, traced, batch or row, not {mode!r}")
        if not isinstance(kind, type):
            raise ProgrammingError(f"@ab.udaf needs a class, not {type(kind).__name__}")
        if returns is None:
            raise ProgrammingError(f"the type of what {kind.__name__} gives is not known", sqlstate="42P13",
                                   hint="@ab.udaf(returns=float)")
        missing = [m for m in ("initial", "accumulate", "finish") if not hasattr(kind, m)]
        if missing:
            raise ProgrammingError(f"aggregate {kind.__name__} has no method {missing[0]}", sqlstate="42P13",
                                   hint="initial, accumulate, finish; retract and merge where there are such")
        self.kind, self.returns = kind, sql_type(returns)
        self.name = checked_name(name or kind.__name__)
        self.__doc__, self.__name__ = kind.__doc__, self.name
        self._methods = kind()
        self._has_retract = hasattr(kind, "retract")
        first = 2 if mode == "batch" else 1
        self._parameters = list(inspect.signature(self._methods.accumulate).parameters)[first:]
        self._trace: Optional[_Trace] = None
        self.mode = mode
        if mode in ("auto", "traced"):
            try:
                self._trace = _Trace(self)
                self.mode = "traced"
            except (Error, ArithmeticError) as error:
                if mode == "traced":
                    raise _not_traced(error) from error
                self.mode = "row"

    def __call__(self, *arguments: Any) -> Expr:
        """The aggregate of columns or expressions, for agg, select and over."""
        if len(arguments) != len(self._parameters):
            raise ProgrammingError(f"{self.name}() takes {len(self._parameters)} arguments, not {len(arguments)}",
                                   sqlstate="42883")
        parts = [as_column(a) for a in arguments]
        out = parts[0]._out if parts else self.name
        if self._trace is not None:
            return self._trace.of(parts).cast(self.returns).alias(out)
        def build(ctx: Ctx) -> Sql:
            inner = ctx.plain()
            texts = [p._build(inner).sql for p in parts]
            if ctx.frame:
                return ctx.call(self.name, texts, ctx=ctx, type=self.returns, user=self)
            if ctx.over is not None:
                raise ProgrammingError(f"{self.name}() is an aggregate of groups", sqlstate="0A000",
                                       hint="group_by(..).agg(..), and join its result")
            call = f"{ctx.register(self)}({', '.join(texts)})"
            return ctx.sql(call + (f" FILTER (WHERE {ctx.filter})" if ctx.filter else ""), self.returns)
        return Expr(build, out, agg=True, roots=any(p._roots for p in parts))

    def _native_for(self, db: Any, types: Optional[Sequence[Any]] = None) -> Any:
        columns = {p: DataType("text") for p in self._parameters}
        if types is not None:
            columns = {p: DataType(of) for p, of in zip(self._parameters, types)}
        like = db._like({**columns, "_result": self.returns})
        inverse = "none" if not self._has_retract else "states" if self.mode == "batch" else "rows"
        return _native.Function.aggregate(self.name, _Methods(self, like), like, inverse)

    def _register(self, db: Any, name: str) -> None:
        name = checked_name(name)
        if self._trace is not None:
            db._add_macro(name, self)
        else:
            db._add_function(name, self, self._native_for(db))

    def _sql(self, arguments: Sequence[str], filter: Optional[str], over: Optional[str]) -> str:
        """A call in SQL, of arguments that are SQL. What depends on their types is computed as with
        floats."""
        if len(arguments) != len(self._parameters):
            raise ProgrammingError(f"{self.name}() takes {len(self._parameters)} arguments, not {len(arguments)}",
                                   sqlstate="42883")
        asked: List[str] = []
        def ask(text: str) -> str:
            asked.append(text)
            return "double precision"
        def made(shown: Sequence[str]) -> str:
            parts = [Expr(lambda ctx, text=text: ctx.sql(f"({text})"), "x", roots=True) for text in shown]
            ctx = Ctx({}, q.name, ask).but(filter=filter, over=over)
            return self._trace.of(parts).cast(self.returns)._build(ctx).sql  # type: ignore[union-attr]
        text = made(arguments)
        if asked:
            text = made([f"CAST(({a}) AS double precision)" for a in arguments])
        return text

    def __repr__(self) -> str:
        return f"<aggregate {self.name}({', '.join(self._parameters)}) -> {self.returns}, {self.mode}>"


def _not_traced(error: Exception) -> TraceError:
    if isinstance(error, TraceError):
        return error
    return TraceError(str(error).splitlines()[0], hint='mode="row" runs any Python')


# -- tracing ---------------------------------------------------------------------------------------


class _Slot:
    """A part of the state while a method is traced: itself, and what was added to it."""

    __slots__ = ("place", "terms")

    def __init__(self, place: Any, terms: Tuple = ()) -> None:
        self.place, self.terms = place, terms

    def __add__(self, other: Any) -> "_Slot":
        if isinstance(other, _Slot):
            return _Slot((self.place, other.place), self.terms + other.terms)
        return _Slot(self.place, self.terms + ((1, _term(other)),))

    __radd__ = __add__

    def __sub__(self, other: Any) -> "_Slot":
        if isinstance(other, _Slot):
            return self._refuse()
        return _Slot(self.place, self.terms + ((-1, _term(other)),))

    def _refuse(self, *_: Any) -> Any:
        raise TraceError("the state of a traced aggregate is added to, or taken from, and nothing else",
                         hint='mode="row" runs any Python')

    __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = __pow__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __iter__ = __len__ = __getitem__ = __neg__ = __abs__ = _refuse
    __eq__ = __ne__ = __hash__ = _refuse  # type: ignore[assignment]
    __float__ = __int__ = __index__ = __contains__ = _refuse


def _term(value: Any) -> Expr:
    if isinstance(value, (Expr, When)) or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return as_operand(value)
    raise TraceError(f"{value!r} cannot be added to the state of a traced aggregate", hint='mode="row" runs any Python')


class _Trace:
    """An aggregate as sums: what each part of the state adds up, and the value of them."""

    def __init__(self, aggregate: UserAggregate) -> None:
        self._methods, self._n = aggregate._methods, len(aggregate._parameters)
        start = trace(self._methods.initial)
        self._is_tuple = isinstance(start, tuple)
        self._start = start if self._is_tuple else (start,)
        if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in self._start):
            raise TraceError("a traced state is a number or a tuple of numbers", hint='mode="row" runs any Python')
        marks = [_marked(i) for i in range(self._n)]
        added = self._terms("accumulate", marks)
        if aggregate._has_retract:
            self._check_inverse(added, self._terms("retract", marks))
        if hasattr(self._methods, "merge"):
            self._check_merge()
        self._reads = [{i for i in range(self._n) if any(f'"_a{i}"' in _text(e) for _, e in terms)} for terms in added]
        probe = [lit(v) for v in self._start]
        self._finished(probe)

    def _state(self, parts: Sequence[Any]) -> Any:
        return tuple(parts) if self._is_tuple else parts[0]

    def _terms(self, method: str, arguments: Sequence[Expr]) -> List[Tuple]:
        """What a method adds to each part of the state: pairs of a sign and an expression."""
        slots = [_Slot(i) for i in range(len(self._start))]
        made = trace(getattr(self._methods, method), self._state(slots), *arguments)
        parts = made if self._is_tuple and isinstance(made, tuple) else (made,)
        if len(parts) != len(slots):
            raise TraceError(f"{method} gives a state of {len(parts)} parts, not {len(slots)}")
        for i, part in enumerate(parts):
            if not isinstance(part, _Slot) or part.place != i:
                raise TraceError(f"{method} sets part {i} of the state instead of adding to it",
                                 hint='mode="row" runs any Python')
        return [part.terms for part in parts]

    def _check_inverse(self, added: Sequence[Tuple], removed: Sequence[Tuple]) -> None:
        for plus, minus in zip(added, removed):
            there = sorted((sign, _text(e)) for sign, e in plus)
            back = sorted((-sign, _text(e)) for sign, e in minus)
            if there != back:
                raise TraceError("retract does not take away what accumulate adds", hint='mode="row" runs any Python')

    def _check_merge(self) -> None:
        left = [_Slot(("a", i)) for i in range(len(self._start))]
        right = [_Slot(("b", i)) for i in range(len(self._start))]
        made = trace(self._methods.merge, self._state(left), self._state(right))
        parts = made if self._is_tuple and isinstance(made, tuple) else (made,)
        wanted = [{("a", i), ("b", i)} for i in range(len(self._start))]
        found = [set(p.place) if isinstance(p, _Slot) and not p.terms and isinstance(p.place[0], tuple) else None for p in parts]
        if found != wanted:
            raise TraceError("merge does not add up the parts of the state", hint='mode="row" runs any Python')

    def _finished(self, state: Sequence[Expr]) -> Expr:
        made = trace(self._methods.finish, self._state(state))
        if isinstance(made, (int, float, str, bool)):
            return lit(made)
        if not isinstance(made, (Expr, When)):
            raise TraceError(f"finish gives {type(made).__name__}, not a value", hint="a lambda needs no return, def does")
        return as_operand(made)

    def of(self, arguments: Sequence[Expr]) -> Expr:
        """The aggregate of these columns."""
        parts: List[Expr] = []
        for start, terms, reads in zip(self._start, self._terms("accumulate", list(arguments)), self._reads):
            total = lit(start)
            hidden = [a.is_not_null() for i, a in enumerate(arguments) if i not in reads]
            for sign, e in terms:
                summed = (e.cast(float) if isinstance(start, float) else e).sum()
                for test in hidden:
                    summed = summed.filter(test)
                # (Nothing is added to a zero at the start.)
                is_zero = start == 0 and total._is_lit
                total = summed if is_zero and sign > 0 else total + summed if sign > 0 else total - summed
            parts.append(total)
        return self._finished(parts)


def _marked(i: int) -> Expr:
    """A stand-in for argument ``i``."""
    return Expr(lambda ctx: ctx.sql(f'"_a{i}"', "double precision"), f"_a{i}", roots=True)


def _text(e: Expr) -> str:
    return e._build(Ctx({}, q.name, lambda text: "double precision")).sql


# -- in Python -------------------------------------------------------------------------------------


class _Later:
    """Rows on their way into a state: applied to it one by one, those that come before those that
    go."""

    __slots__ = ("added", "removed")

    def __init__(self, added: Tuple = (), removed: Tuple = ()) -> None:
        self.added, self.removed = added, removed


class _Methods:
    """The methods as the engine calls them, by batch."""

    def __init__(self, aggregate: UserAggregate, like: Any) -> None:
        self._methods, self._like = aggregate._methods, like
        self._n, self._is_batch = len(aggregate._parameters), aggregate.mode == "batch"
        self._waits = aggregate._has_retract and not self._is_batch

    def initial(self) -> Any:
        """The state of no rows."""
        return _Later() if self._waits else self._methods.initial()

    def accumulate(self, states: List[Any], places: List[int], rows: Any) -> List[Any]:
        """The states with the rows."""
        return self._put("accumulate", states, places, rows)

    def retract(self, states: List[Any], places: List[int], rows: Any) -> List[Any]:
        """The states without the rows."""
        return self._put("retract", states, places, rows)

    def _put(self, method: str, states: List[Any], places: List[int], rows: Any) -> List[Any]:
        present = rows.present()
        if present is not None:
            places = [p for p, there in zip(places, present) if there]
            rows = rows.masked(present)
        if self._is_batch:
            from .functions import Array

            arrays = [Array(rows.project([i], ["x"])) for i in range(self._n)]
            return list(getattr(self._methods, method)(list(states), places, *arrays))
        states = list(states)
        given: Any = zip(*[rows.list(i) for i in range(self._n)]) if self._n else itertools.repeat((), len(rows))
        if self._waits:
            return self._noted(method, states, places, given)
        put = getattr(self._methods, method)
        for place, row in zip(places, given):
            states[place] = put(states[place], *row)
        return states

    def _noted(self, method: str, states: List[Any], places: List[int], given: Any) -> List[Any]:
        noted: Dict[int, List[Tuple]] = {}
        for place, row in zip(places, given):
            noted.setdefault(place, []).append(row)
        for place, rows in noted.items():
            state = states[place]
            later = _Later(tuple(rows)) if method == "accumulate" else _Later((), tuple(rows))
            states[place] = self._joined(state, later)
        return states

    def _joined(self, state: Any, later: _Later) -> Any:
        if isinstance(state, _Later):
            return _Later(state.added + later.added, state.removed + later.removed)
        return self._settled(state, later)

    def _settled(self, state: Any, later: _Later) -> Any:
        for row in later.added:
            state = self._methods.accumulate(state, *row)
        for row in later.removed:
            state = self._methods.retract(state, *row)
        return state

    def _value(self, state: Any) -> Any:
        return self._settled(self._methods.initial(), state) if isinstance(state, _Later) else state

    def merge(self, a: Any, b: Any) -> Any:
        """The state of the rows of both."""
        if self._is_batch:
            return self._methods.merge(a, b)
        return self._settled(self._value(a), b) if isinstance(b, _Later) else self._methods.merge(self._value(a), b)

    def unmerge(self, a: Any, b: Any) -> Any:
        """The state of the rows of ``a`` without those of ``b``."""
        if isinstance(b, _Later):
            return self._settled(self._value(a), _Later(b.removed, b.added))
        return self._methods.unmerge(self._value(a), b)

    def finish(self, states: List[Any]) -> Any:
        """A value for each state, as one column."""
        values = [self._methods.finish(self._value(state)) for state in states]
        return _native.Rows.from_columns(["_result"], [values], self._like)


# -- the law ---------------------------------------------------------------------------------------


def check(kind: Any, rows: Sequence[Tuple], *, tolerance: float = 1e-9) -> None:
    """Raises ``AssertionError`` with the rows for which an aggregate breaks its law."""
    methods = kind._methods if isinstance(kind, UserAggregate) else kind()
    chance = random.Random(7)

    def of(some: Sequence[Tuple]) -> Any:
        state = methods.initial()
        for row in some:
            state = methods.accumulate(state, *row)
        return state

    def shown(state: Any) -> Any:
        try:
            return methods.finish(state)
        except Exception as error:  # a value that does not exist is equal to another one
            return type(error).__name__

    for size in range(len(rows) + 1):
        some = list(rows[:size])
        expected = shown(of(some))
        mixed = some[:]
        chance.shuffle(mixed)
        _same(expected, shown(of(mixed)), f"the order of rows matters: {some} and {mixed}", tolerance)
        if hasattr(methods, "retract"):
            for row in rows:
                _same(expected, shown(methods.retract(of([*some, row]), *row)), f"retract of {row} does not undo accumulate, after {some}", tolerance)
        if hasattr(methods, "merge"):
            at = chance.randrange(size + 1)
            _same(expected, shown(methods.merge(of(some[:at]), of(some[at:]))), f"merge of {some[:at]} and {some[at:]} is not accumulating both", tolerance)
        if hasattr(methods, "unmerge"):
            _same(expected, shown(methods.unmerge(of([*some, *rows]), of(rows))), f"unmerge does not undo merge, after {some}", tolerance)


def _same(a: Any, b: Any, what: str, tolerance: float) -> None:
    if isinstance(a, float) and isinstance(b, (int, float)):
        equal = a == b or (a != a and b != b) or abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))
    else:
        equal = a == b
    assert equal, f"{what}: {a!r} and {b!r}"
