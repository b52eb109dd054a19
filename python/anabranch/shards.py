"""Sharded programs: physical plans that a person writes. What is computed, what the key is, and
what moves are said apart; docs/shards.md tells what each step means."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _native
from .errors import ProgrammingError, unknown_column
from .events.base import Base, Input
from .expr import listed
from .rows import Rows
from .types import DataType, Schema

__all__ = ["Branches", "Shards"]

_SCOPES = ("flat", "local", "global")
_WIDTH_MAX = 2**32 - 1
_PLANS = ("auto", "flat", "exp", "max", "para", "local")


#: Shards for rows to go to: the first so many, those of a list, or a named group.
_Places = Union[None, int, Sequence[int], Mapping[str, Sequence[int]]]


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_count(value: Any) -> bool:
    return _is_number(value) and 1 <= value <= _WIDTH_MAX


def _is_rate(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")


def _para(plan: str, **options: Any) -> Tuple[Any, ...]:
    """Options of a parallel split, as the engine takes them."""
    for name, value in options.items():
        is_right, what = {"seed": (lambda seed: _is_number(seed) and seed < 2**64, "a number from 0"),
                          "rate": (_is_rate, "a number of rows a second, above 0"),
                          "rate_of_one": (_is_rate, "a number of rows a second, above 0"),
                          }.get(name, (_is_count, "a number from 1"))
        if value is None:
            continue
        if not is_right(value):
            raise ProgrammingError(f"{name} is {what}, not {value!r}")
        if plan != "para":
            raise ProgrammingError(f'{name} is an option of plan="para", not of {plan!r}')
    seed = options["seed"]
    return (options["splitters"], options["window"], 0 if seed is None else seed, options["rate"],
            options["rate_of_one"])


def _is_group(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and all(isinstance(name, str) for name in value)


def _numbers(shards: Any) -> List[int]:
    is_list = isinstance(shards, (list, tuple, range))
    if not is_list or not all(_is_number(shard) for shard in shards):
        raise ProgrammingError(f"shards are a number, numbers in a list, or a named list of them, not {shards!r}",
                               hint='shards=2, shards=[0, 2] or shards={"socket 1": [2, 3]}')
    return list(shards)


class Shards:
    """A stream in several shards, as a plan. Immutable; errors are raised by the step that makes
    them.

    >>> import anabranch as ab
    >>> views = ab.Events.input("views", {"ad": int, "at": int}, time="at").shards(2)
    >>> counts = (views.rekey("ad")
    ...     .query(lambda shard: shard.tumbling(10).agg(n=ab.len()))
    ...     .redistribute()
    ...     .query(lambda shard: shard.agg(n=ab.col("n").sum())))
    >>> counts.run({"views": [(7, 1), (7, 2), (7, 3), (8, 12)]}).fetchall()
    [(10, 20, 7, 3), (20, 30, 8, 1)]
    """

    def __init__(self, native: Any, inputs: Mapping[str, Input] = {}, relations: Mapping[str, Any] = {},
                 unit: Optional[int] = None, instants: bool = False) -> None:
        self._native = native
        self._inputs, self._relations = dict(inputs), dict(relations)
        self._unit, self._instants = unit, instants
        self._known = {name: DataType(of) for name, of in native.columns()}

    @staticmethod
    def stored(folder: Union[str, os.PathLike]) -> "Shards":
        """The rows that ``run.to_store(folder)`` has written, where they lie."""
        return Shards(_native.Shards.stored(os.fspath(folder)))

    # -- what it is --------------------------------------------------------------------------------

    @property
    def columns(self) -> List[str]:
        """Names of the columns."""
        return list(self._known)

    @property
    def schema(self) -> Schema:
        """Names and types."""
        return Schema(self._known, self._native.like())

    @property
    def key(self) -> List[str]:
        """Names of the key's columns; none for rows without a key."""
        return self._native.key()

    @property
    def width(self) -> int:
        """The number of shards."""
        return self._native.width()

    def explain(self) -> str:
        """The steps, where rows lie after each, and whether they are partial."""
        return self._native.explain()

    def check(self) -> "Shards":
        """Itself, if its result does not depend on the number of shards; else an error that says
        which step is to blame."""
        self._native.check()
        return self

    def __repr__(self) -> str:
        columns = ", ".join(f"{name} {of}" for name, of in self._known.items())
        key = f", by ({', '.join(self.key)})" if self.key else ""
        return f"<Shards ({columns}) in {self.width}{key}>"

    # -- steps -------------------------------------------------------------------------------------

    def query(self, body: Callable) -> "Shards":
        """A query over the events of each shard by itself; of each key, if there is a key:
        ``query(lambda shard: shard.agg(n=ab.len()))``."""
        return self._new(self._native.query(lambda frame: _framed(body(self._events(frame)))))

    def query_with(self, other: "Shards", body: Callable) -> "Shards":
        """A query of two inputs over each pair of shards of equal number; of rows of equal keys."""
        other = _shards(other)
        both = lambda a, b: _framed(body(self._events(a), other._events(b)))  # noqa: E731
        return self._new(self._native.query_with(other._native, both), other)

    def group_apply(self, columns: Any, body: Callable) -> "Shards":
        """A query over the events of each group of equal columns by themselves, wherever they lie:
        ``group_apply("ad", lambda ad: ad.tumbling(10).agg(n=ab.len()))``. Rows move to the shard of
        their group, unless the query means the same without."""
        keyed = self.rekey(columns)
        unmoved = keyed.query(body)
        try:
            return unmoved.check()
        except ProgrammingError:
            return keyed.redistribute().query(body)

    def sql(self, text: str) -> "Shards":
        """A query of SQL over the rows of each shard, which are the table ``shard``."""
        return self._new(self._native.sql(text))

    def sql_with(self, other: "Shards", text: str) -> "Shards":
        """As ``sql``, over each pair of shards; rows of the second are the table ``other``."""
        other = _shards(other)
        return self._new(self._native.sql_with(other._native, text), other)

    def union(self, other: "Shards") -> "Shards":
        """The rows of both, shard by shard; without a key."""
        other = _shards(other)
        return self._new(self._native.union(other._native), other)

    def rekey(self, *columns: Any) -> "Shards":
        """The key is these columns from now on; their hash is computed once. Moves nothing."""
        return self._new(self._native.rekey([name for one in columns for name in listed(one)]))

    def redistribute(self, scope: str = "flat", *, shards: _Places = None) -> "Shards":
        """Each row to the shard of its key's hash: among all (``flat``), within each process
        (``local``), between processes (``global``), or to the first so many ``shards``, or to those
        of a list, or of a named group: ``shards={"socket 1": [2, 3]}``."""
        return self._moved("redistribute", scope, shards)

    def reshard(self, scope: str = "flat", *, shards: _Places = None) -> "Shards":
        """Rows spread evenly: by a hash of all columns, or in whole batches, if they come of an
        input that is ``append_only``."""
        return self._moved("reshard", scope, shards)

    def broadcast(self, scope: str = "flat", *, shards: _Places = None) -> "Shards":
        """All rows to each shard."""
        return self._moved("broadcast", scope, shards)

    def multicast(self, targets: Any) -> "Shards":
        """Each row to the shards that an expression names: a number, a list of numbers, or NULL.
        A text is an expression of SQL: ``multicast("k % 4")``."""
        (text,), functions = self._texts([targets])
        return self._new(self._native.multicast(text, functions))

    def packed_by(self, column: str) -> "Shards":
        """Promises of pushed rows that each shard has a range of the column's values: queries by
        it need no movement. A row that breaks the promise is refused."""
        return self._new(self._native.packed_by(column))

    def in_time_order(self) -> "Shards":
        """Rows of each shard leave in order of time."""
        return self._new(self._native.in_time_order())

    def split(self, width: int, route: Any, broadcast: Any = None, *, plan: str = "auto",
              share: float = 0.01, splitters: Optional[int] = None, window: Optional[int] = None,
              seed: Optional[int] = None, rate: Optional[float] = None,
              rate_of_one: Optional[float] = None) -> "Branches":
        """Branches ``0 .. width``: rows for which ``broadcast`` is true go to each, others to that
        of ``route``, or to none if it is NULL.

        ``plan`` is ``auto``, ``flat``, ``exp``, ``max``, ``para`` or ``local``; all give the same
        branches. ``auto`` goes by the cost model of the shards: in one process as ``local``, the
        cheapest by measured constants. ``share`` is the part of the rows that are broadcast, as
        the models take it. A text is an expression of SQL: ``split(8, "k % 8", broadcast="k IS
        NULL")``. ``explain()`` tells the plan that was chosen, and its modelled cost.

        Options of ``para`` (SCSQ, paper V): ``splitters``, else as many as a ``rate`` in rows a
        second needs, at most one in each shard; ``window``, rows that go to one splitter together,
        else doubled while the modelled rate of the router grows; ``seed`` of the choice of a
        splitter for each window; ``rate_of_one``, that of one splitter of one branch.
        """
        if isinstance(width, bool) or not isinstance(width, int) or not 1 <= width <= _WIDTH_MAX:
            raise ProgrammingError(f"width is a number of branches from 1 to {_WIDTH_MAX}, not {width!r}",
                                   hint='split(8, ab.col("k") % 8)')
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
            raise ProgrammingError(f"share is a number from 0 to 1, not {share!r}")
        if plan not in _PLANS:
            raise ProgrammingError(f"plan is one of {', '.join(_PLANS)}, not {plan!r}")
        para = _para(plan, splitters=splitters, window=window, seed=seed, rate=rate, rate_of_one=rate_of_one)
        given = [route] if broadcast is None else [route, broadcast]
        texts, functions = self._texts(given)
        made = self._native.split(width, texts[0], texts[1] if len(texts) > 1 else None, plan, share, para, functions)
        return Branches(made, self)

    # -- running -----------------------------------------------------------------------------------

    def start(self, *, checked: bool = True, wire: bool = False, addresses: Optional[Sequence[str]] = None) -> Any:
        """Sets the program to work, a thread a shard; rows of relations are read now. With ``wire``
        rows cross between shards as bytes. ``addresses`` are those of several processes, of which
        this one is the first; the others ``serve``."""
        from .shard_runs import ShardRun

        if checked:
            self.check()
        return ShardRun(self, wire, None if addresses is None else list(addresses))

    def serve(self, process: int, addresses: Sequence[str]) -> None:
        """Works at the shards of process ``process`` of several, until the first ends the run."""
        self._native.serve(process, list(addresses))

    def run(self, inputs: Optional[Mapping[str, Any]] = None, *, checked: bool = True) -> Rows:
        """All events for all of these rows at once: ``start``, ``end`` (NULL: never), the columns.
        """
        with self._fed(inputs, checked) as run:
            return run.lifetimes()

    def collect(self, inputs: Optional[Mapping[str, Any]] = None, *, checked: bool = True) -> Rows:
        """The rows in force in the end: the answer of a program over relations."""
        with self._fed(inputs, checked) as run:
            return run.rows()

    def _fed(self, inputs: Optional[Mapping[str, Any]], checked: bool) -> Any:
        missing = [name for name in self._inputs if name not in (inputs or {})]
        if missing:
            raise ProgrammingError(f'input "{missing[0]}" has no rows', hint=f'run({{"{missing[0]}": rows}})')
        run = self.start(checked=checked)
        try:
            for name, rows in (inputs or {}).items():
                run.push(name, rows)
        except BaseException:
            run.close()
            raise
        return run

    # -- how ---------------------------------------------------------------------------------------

    def _new(self, native: Any, *others: "Shards") -> "Shards":
        inputs, relations = dict(self._inputs), dict(self._relations)
        unit, instants = self._unit, self._instants
        for other in others:
            inputs.update(other._inputs)
            relations.update(other._relations)
            unit = unit if unit is not None else other._unit
            instants = instants or other._instants
        return Shards(native, inputs, relations, unit, instants)

    def _events(self, frame: Any) -> Any:
        from .events import Events

        made = Events(frame, {}, self._unit, self._instants)
        made._group = tuple(self.key)
        return made

    def _texts(self, exprs: Sequence[Any]) -> Tuple[List[str], Any]:
        """Expressions over the columns, as SQL, and the functions that they call. A text that names
        no column is SQL already."""
        for one in exprs:
            if isinstance(one, (list, tuple, set, dict)):
                raise ProgrammingError(f"an expression was expected, not {type(one).__name__}",
                                       hint="a list of shards is ab.concat_list(ab.lit(0), ab.lit(2)), or \"array[0, 2]\"")
        events = self._events(_native.Frame.input("shard", self._native.like(), {}))
        ctx = events._ctx()
        is_sql = [isinstance(one, str) and one not in self._known for one in exprs]
        built = [events._expr(one).alias(f"e{at}") for at, one in enumerate(exprs) if not is_sql[at]]
        made = iter(events._texts(built, ctx)[1])
        return [one if is_text else next(made) for one, is_text in zip(exprs, is_sql)], ctx.functions

    def _moved(self, kind: str, scope: str, shards: _Places) -> "Shards":
        if scope not in _SCOPES:
            raise ProgrammingError(f"scope is one of {', '.join(_SCOPES)}, not {scope!r}")
        if shards is None or _is_number(shards):
            return self._new(self._native.moved(kind, scope, shards))
        name, listed_shards = next(iter(shards.items())) if _is_group(shards) else ("of a list", shards)
        return self._new(self._native.moved(kind, scope, None, (name, _numbers(listed_shards))))

    def __iter__(self) -> Any:
        raise TypeError("a sharded program is a question; run({..}) or collect() answers it")

    def __reduce__(self) -> Any:
        raise TypeError("sharded programs cannot be pickled; build them in each process")


class Branches:
    """A stream that is split: each branch is worked on by itself, then they are merged.

    >>> import anabranch as ab
    >>> rows = ab.Events.input("rows", {"k": int, "at": int}, time="at").shards(2)
    >>> counts = rows.split(8, ab.col("k") % 8).map(lambda branch: branch.agg(n=ab.len()))
    >>> sorted(counts.merge().run({"rows": [(1, 0), (9, 0), (2, 0)]}))
    [(0, 1, 1, 2), (0, 1, 2, 1)]
    """

    def __init__(self, native: Any, of: Shards) -> None:
        self._native, self._of = native, of

    def placed(self, shards: Sequence[int]) -> "Branches":
        """The same branches, in the shards of a list by turns; said right after ``split``."""
        return Branches(self._native.placed(_numbers(shards)), self._of)

    def map(self, body: Callable) -> "Branches":
        """A query over each branch by itself; its column ``branch`` stays."""
        return Branches(self._native.map(lambda frame: _framed(body(self._of._events(frame)))), self._of)

    def merge(self) -> Shards:
        """All rows of all branches, with the column ``branch``."""
        return self._of._new(self._native.merge())

    def merge_by_time(self) -> Shards:
        """All rows in one shard and in order of time."""
        return self._of._new(self._native.merge_by_time())

    def merge_by(self, on: Any, body: Callable) -> Shards:
        """Rows of all branches with equal ``on``, put together by a query: ``merge_by("minute",
        lambda rows: rows.agg(n=ab.col("n").sum()))``."""
        return self.merge().rekey(on).redistribute().query(body)

    def merge_tree(self, on: Any, fan_in: int, body: Callable) -> Shards:
        """As ``merge_by``, by a tree of nodes that take in ``fan_in`` branches each; the query
        gives the columns that it takes."""
        inner = lambda frame: _framed(body(self._of._events(frame)))  # noqa: E731
        return self._of._new(self._native.merge_tree(listed(on), fan_in, inner))

    def explain(self) -> str:
        """The plan that was chosen, its modelled cost with a core a node and in one process, and
        the steps."""
        return self._native.explain()

    def check(self) -> "Branches":
        """Itself, if the branches do not depend on the number of shards."""
        self._native.check()
        return self

    def __repr__(self) -> str:
        return f"<Branches of {self._of!r}>"


def of_relation(db: Any, relation: Any, columns: Optional[Sequence[str]], shards: Any) -> Shards:
    """A relation in shards: its rows are read when the program starts, and are in force for
    ever."""
    from .relation import Relation

    if not isinstance(relation, Relation):
        relation = db.table(relation)
    known = relation.schema
    for name in columns or ():
        if name not in known:
            raise unknown_column(name, known)
    rows = relation.select(*columns) if columns else relation
    name = f"{relation._alias or getattr(relation, 'name', None) or 'rows'} {next(db._numbers)}"
    processes, threads = _layout(shards)
    return Shards(_native.Shards.source(name, _like(rows), {}, processes, threads), relations={name: rows})


def of_events(events: Any, shards: Any) -> Shards:
    """An input of events in shards."""
    names = list(events._inputs)
    of = events._inputs[names[0]] if len(names) == 1 else None
    if of is None or events._bound or events._frame is not of.frame:
        raise ProgrammingError("only an input becomes shards", hint="Events.input(..).shards(n), then query(lambda shard: ..)")
    options: Dict[str, Any] = {}
    refused = [key for key in of.options if key not in ("time", "end", "constant_duration", "append_only")]
    if refused:
        raise ProgrammingError(f"an input in shards has no {refused[0]}", hint="rows of shards are pushed in any order between two advances")
    options.update(of.options)
    processes, threads = _layout(shards)
    native = _native.Shards.source(of.name, of.like, options, processes, threads)
    return Shards(native, {of.name: of}, {}, of.unit, of.instants)


def _like(relation: Any) -> Any:
    arrow = relation.schema._arrow
    return arrow if arrow is not None else relation.limit(0).collect()._native


def _layout(shards: Any) -> Tuple[int, int]:
    """Processes and shards of each: ``4``, or ``(2, 4)``."""
    if shards is None:
        return 1, os.cpu_count() or 1
    both = shards if isinstance(shards, tuple) else (1, shards)
    if len(both) != 2 or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in both):
        raise ProgrammingError(f"shards is a number from 1, or (processes, shards of each), not {shards!r}",
                               hint="shards=4, or shards=(2, 4) for two processes of four")
    return both[0], both[1]


def _shards(other: Any) -> Shards:
    if not isinstance(other, Shards):
        raise ProgrammingError(f"{type(other).__name__} is no sharded program", hint="db.shards(relation), or Events.input(..).shards(n)")
    return other


def _framed(made: Any) -> Any:
    if not isinstance(made, Base):
        raise ProgrammingError(f"the query of a shard gave {type(made).__name__}, not events",
                               hint="a lambda returns its result; def needs return")
    return made._frame
