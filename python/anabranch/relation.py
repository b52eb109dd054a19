"""Relations: questions that are built, and asked when somebody wants rows.

A relation is the text of a query and its columns. Each method writes a longer text and has the engine
plan it, so that unknown names and wrong types are errors of the line that writes them.
"""

from __future__ import annotations

import datetime as _dt
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import sqltext as q
from . import types as t
from .durations import parse as parse_duration
from .errors import (GroupingError, NotSupportedError, ProgrammingError, TraceError, UnknownName,
                     unknown_column)
from .expr import (Ctx, Expr, When, as_column, check_grouping, check_names, col, direction, expand, lit, listed,
                   spread)
from .rows import Batch, Results, Rows
from .tracing import Row, trace
from .types import DataType, Schema
from .values import Commit

__all__ = ["Relation", "Table", "View", "Source", "GroupBy"]


class Relation(Results):
    """A multiset of rows, described by a query. Lazy and immutable.

    >>> import anabranch as ab
    >>> db = ab.connect()
    >>> r = db.values([("ada", 3), ("bo", 4)], {"who": str, "n": int})
    >>> r.filter(ab.col("n") > 3).fetchall()
    [('bo', 4)]
    """

    def __init__(
        self, db: Any, text: str, *, from_: Optional[str] = None, schema: Optional[Schema] = None,
        order: Sequence[Tuple[str, bool, bool]] = (), holds: Sequence[Any] = (), rows: Optional[Rows] = None,
        alias: Optional[str] = None, status: Optional[str] = None,
    ) -> None:
        self._db = db
        self._text = text
        self._from = from_
        self._order = tuple(order)
        self._holds = tuple(holds)
        self._fixed = rows
        self._alias = alias
        self.status = status
        self._closing: Optional[str] = None
        self._known = schema if schema is not None else (rows.schema if rows is not None else db._schema_of(text))

    # -- what it is ----------------------------------------------------------------------------------

    @property
    def columns(self) -> List[str]:
        """Names of the columns."""
        return list(self._known)

    @property
    def dtypes(self) -> List[DataType]:
        """Types of the columns."""
        return list(self._known.values())

    @property
    def schema(self) -> Schema:
        """Names and types."""
        return self._known

    @property
    def width(self) -> int:
        """How many columns."""
        return len(self._known)

    def collect_schema(self) -> Schema:
        """Names and types; asks for no rows."""
        return self._known

    def sql_query(self) -> str:
        """The text that runs."""
        if self._order:
            items = ", ".join(direction(q.name(name), down, last) for name, down, last in self._order)
            return f"SELECT * FROM {self._source()} ORDER BY {items}"
        return self._text

    def _source(self) -> str:
        """What stands behind FROM."""
        return self._from if self._from is not None else f"({self._text}) AS {q.name(self._alias or '_')}"

    def _ctx(self, holds: Optional[list] = None) -> Ctx:
        def ask(sql: str) -> str:
            schema = self._db._schema_of(f"SELECT {sql} AS x FROM {self._source()}")
            return str(schema["x"])
        ctx = Ctx(self._known, q.name, ask)
        ctx.register = self._db._function_name
        return ctx

    def _new(self, text: str, *others: "Relation", order: Sequence = (), schema: Optional[Schema] = None) -> "Relation":
        holds = self._holds + tuple(h for other in others for h in other._holds)
        return Relation(self._db, text, order=order, holds=holds, schema=schema)

    def _expr(self, value: Any) -> Expr:
        """An expression of a name, an expression or a lambda."""
        if callable(value) and not isinstance(value, (Expr, When, str)):
            value = trace(value, self._row())
        if isinstance(value, (bool,)):
            return lit(value)
        if isinstance(value, (Mapping, tuple, list)):
            raise TraceError(f"an expression was expected, not {type(value).__name__}")
        if value is None:
            raise TraceError("the function returned None", hint="a lambda returns its expression; def needs return")
        if isinstance(value, str) and value not in self._known:
            raise unknown_column(value, self._known)
        return as_column(value)

    def _row(self) -> Row:
        return Row(self._known, col)

    def _items(self, exprs: Sequence[Any], more: Mapping[str, Any]) -> list:
        """The columns of select: names and texts."""
        traced: list = []
        for expr in exprs:
            if callable(expr) and not isinstance(expr, (Expr, When, str)):
                expr = trace(expr, self._row())
                if isinstance(expr, Mapping):
                    traced += [as_column(value).alias(name) for name, value in expr.items()]
                    continue
            traced.extend(expr if isinstance(expr, (list, tuple)) else [expr])
        made = [self._expr(e) for e in traced] + [self._expr(e).alias(n) for n, e in more.items()]
        return made

    # -- rows and columns ----------------------------------------------------------------------------

    def select(self, *exprs: Any, **named_exprs: Any) -> "Relation":
        """These columns, computed; aggregates alone give one row."""
        made = self._items(exprs, named_exprs)
        if not made:
            raise ProgrammingError("select needs at least one column")
        check_grouping(made)
        ctx = self._ctx()
        columns = [column for e in made for column in expand(e, ctx)]
        check_names(name for name, _ in columns)
        text = ", ".join(_as(sql.sql, name) for name, sql in columns)
        kept = {sql.sql: name for name, sql in columns}
        order = [(kept[q.name(n)], d, l) for n, d, l in self._order if q.name(n) in kept]
        return self._new(f"SELECT {text} FROM {self._source()}", order=order if len(order) == len(self._order) else ())

    def with_columns(self, *exprs: Any, **named_exprs: Any) -> "Relation":
        """All columns, and these; one of a name that is there replaces it."""
        made = self._items(exprs, named_exprs)
        ctx = self._ctx()
        new: Dict[str, str] = {}
        for e in made:
            for name, sql in expand(e, ctx):
                if name in new:
                    check_names([name, name])
                if e._agg and not e._window:
                    sql_text = f"(SELECT {sql.sql} FROM {self._source()})"
                else:
                    sql_text = sql.sql
                new[name] = sql_text
        parts = [_as(new.pop(name), name) if name in new else q.name(name) for name in self._known]
        parts += [_as(sql, name) for name, sql in new.items()]
        order = () if any(n in named_exprs for n, _, _ in self._order) else self._order
        return self._new(f"SELECT {', '.join(parts)} FROM {self._source()}", order=order)

    def map(self, f: Callable) -> "Relation":
        """The columns that ``f`` returns for a row: ``map(lambda r: {"a": r.x + 1})``."""
        made = trace(f, self._row())
        if not isinstance(made, Mapping):
            raise TraceError(f"map needs a dict of columns, not {type(made).__name__}", hint='lambda r: {"a": r.x + 1}')
        return self.select(**{name: value if isinstance(value, (Expr, When)) else lit(value) for name, value in made.items()})

    def drop(self, *columns: Any, strict: bool = True) -> "Relation":
        """Without these columns."""
        names = [n for c in columns for n in self._names(c, strict)]
        kept = [n for n in self._known if n not in names]
        if not kept:
            raise ProgrammingError("no column would be left")
        return self.select(*[col(n) for n in kept])

    def _names(self, selection: Any, strict: bool = True) -> List[str]:
        if isinstance(selection, (list, tuple)):
            return [n for one in selection for n in self._names(one, strict)]
        if isinstance(selection, Expr):
            if selection._select is not None:
                return selection._select(self._known)
            selection = selection._out
        if selection not in self._known:
            if strict:
                raise unknown_column(selection, self._known)
            return []
        return [selection]

    def rename(self, mapping: Union[Mapping[str, str], Callable[[str], str]], *, strict: bool = True) -> "Relation":
        """Columns under other names."""
        if callable(mapping):
            mapping = {n: mapping(n) for n in self._known}
        for name in mapping:
            if strict and name not in self._known:
                raise unknown_column(name, self._known)
        made = self.select(*[col(n).alias(mapping.get(n, n)) for n in self._known])
        made._order = tuple((mapping.get(n, n), d, l) for n, d, l in self._order)
        return made

    def cast(self, types: Any, *, strict: bool = True) -> "Relation":
        """Columns of other types: a dict of names, or one type for all."""
        if not isinstance(types, Mapping):
            types = {name: types for name in self._known}
        for name in types:
            if name not in self._known:
                raise unknown_column(name, self._known)
        return self.with_columns(**{name: col(name).cast(of, strict=strict) for name, of in types.items()})

    def filter(self, *predicates: Any, **equal: Any) -> "Relation":
        """The rows for which all predicates are true."""
        return self._where(predicates, equal, "{}")

    def remove(self, *predicates: Any, **equal: Any) -> "Relation":
        """The rows for which not all predicates are true: false or NULL."""
        return self._where(predicates, equal, "(({}) IS NOT TRUE)")

    def _predicate(self, predicates: Sequence[Any], equal: Mapping[str, Any] = {}) -> str:
        tests = [self._expr(p) for one in predicates for p in (one if isinstance(one, (list, tuple)) else [one])]
        tests += [col(name) == value for name, value in equal.items()]
        ctx = self._ctx()
        parts = []
        for test in tests:
            if test._agg and not test._window:
                raise GroupingError("a predicate cannot aggregate", hint="group_by(..).agg(..).filter(..), or .over(..)")
            for _, sql in expand(test, ctx):
                if sql._type is not None and sql.type not in ("boolean", "null"):
                    from .errors import TypeMismatch

                    raise TypeMismatch(f"a predicate is a boolean, not {sql.type}", hint="compare: ab.col(..) > 0")
                parts.append(sql.sql)
        return " AND ".join(parts) or "true"

    def _where(self, predicates: Sequence[Any], equal: Mapping[str, Any], template: str) -> "Relation":
        windows = any(isinstance(p, Expr) and p._window for p in predicates)
        text = template.format(self._predicate(predicates, equal)) if not windows else None
        if text is None:
            made = self.with_columns(_keep=self._expr(predicates[0] if len(predicates) == 1 else _all(predicates)))
            return made.filter(col("_keep") if template == "{}" else ~col("_keep").fill_null(False)).drop("_keep")
        return self._new(f"SELECT * FROM {self._source()} WHERE {text}", order=self._order, schema=None)

    def sort(self, by: Any, *more: Any, descending: Any = False, nulls_last: Any = False) -> "Relation":
        """In this order when read, or cut by ``head`` right after; NULL comes first unless ``nulls_last``."""
        keys = [self._expr(k) for k in (*listed(by), *more)]
        ctx = self._ctx()
        flat = [column for key in keys for column in expand(key, ctx)]
        downs, lasts = spread(descending, len(flat)), spread(nulls_last, len(flat))
        order, hidden = [], {}
        for i, ((_, sql), down, last) in enumerate(zip(flat, downs, lasts)):
            name = next((n for n in self._known if q.name(n) == sql.sql), None)
            if name is None:
                hidden[f"_sort{i}"] = sql.sql
                name = f"_sort{i}"
            order.append((name, down, last))
        if hidden:
            return _Sorted(self, hidden, order)
        made = self._new(self._text, order=order, schema=self._known)
        made._from = self._from
        return made

    def head(self, n: int = 5) -> "Relation":
        """The first rows in the order of a ``sort`` before, or else by all columns. Kept current in a view."""
        return self.slice(0, n)

    def limit(self, n: int = 5) -> "Relation":
        """See ``head``."""
        return self.head(n)

    def tail(self, n: int = 5) -> "Relation":
        """The last rows of a ``sort`` right before."""
        if not self._order:
            raise ProgrammingError("rows have no order; tail needs a sort before it", hint='.sort("time").tail()')
        turned = self.sort([c for c, _, _ in self._order], descending=[not d for _, d, _ in self._order],
                           nulls_last=[not l for _, _, l in self._order])
        return turned.head(n).sort([c for c, _, _ in self._order], descending=[d for _, d, _ in self._order],
                                   nulls_last=[l for _, _, l in self._order])

    def slice(self, offset: int, length: Optional[int] = None) -> "Relation":
        """Rows from ``offset`` on, in the order of a ``sort`` before."""
        order = self._order or tuple((name, False, False) for name in self._known)
        items = ", ".join(direction(q.name(n), d, l) for n, d, l in order)
        cut = (f" LIMIT {int(length)}" if length is not None else "") + (f" OFFSET {int(offset)}" if offset else "")
        return self._new(f"SELECT * FROM {self._source()} ORDER BY {items}{cut}", order=self._order, schema=self._known)

    def top_k(self, k: int, *, by: Any, reverse: Any = False) -> "Relation":
        """The ``k`` rows that are greatest by ``by``; ties by the other columns."""
        return self._extreme(k, by, reverse, True)

    def bottom_k(self, k: int, *, by: Any, reverse: Any = False) -> "Relation":
        """The ``k`` rows that are least by ``by``; ties by the other columns."""
        return self._extreme(k, by, reverse, False)

    def _extreme(self, k: int, by: Any, reverse: Any, top: bool) -> "Relation":
        keys = listed(by)
        turned = spread(reverse, len(keys))
        rest = [n for n in self._known if n not in keys]
        return self.sort([*keys, *rest], descending=[top != r for r in turned] + [False] * len(rest),
                         nulls_last=[True] * len(keys) + [False] * len(rest)).head(k)

    def unique(self, subset: Any = None, *, keep: str = "any", order_by: Any = None) -> "Relation":
        """Each row once; or one row for each of the values of ``subset``."""
        if keep not in ("any", "first", "last", "none"):
            raise ProgrammingError(f"keep is any, first, last or none, not {keep!r}")
        names = self._names(subset) if subset is not None else list(self._known)
        if keep == "none":
            n = _free("_n", self._known)
            keys = ", ".join(map(q.name, names))
            counted = f"SELECT *, count(*) OVER (PARTITION BY {keys}) AS {q.name(n)} FROM {self._source()}"
            return self._new(f"SELECT {self._list()} FROM ({counted}) AS _ WHERE {q.name(n)} = 1")
        if keep in ("first", "last") and order_by is None:
            raise ProgrammingError(f"rows have no order; keep={keep!r} needs order_by", hint='unique(.., order_by="time")')
        if len(names) == len(self._known):
            return self._new(f"SELECT DISTINCT {self._list()} FROM {self._source()}", order=self._order)
        rest = [n for n in self._known if n not in names]
        ctx = self._ctx()
        order = [direction(self._expr(o)._build(ctx).sql, keep == "last", keep == "last") for o in listed(order_by)]
        order += [direction(q.name(n), False, False) for n in rest]
        n = _free("_n", self._known)
        ranked = (f"SELECT *, row_number() OVER (PARTITION BY {', '.join(map(q.name, names))} ORDER BY {', '.join(order)}) "
                  f"AS {q.name(n)} FROM {self._source()}")
        return self._new(f"SELECT {self._list()} FROM ({ranked}) AS _ WHERE {q.name(n)} = 1", order=self._order)

    def _list(self, of: str = "") -> str:
        return ", ".join(of + q.name(n) for n in self._known)

    # -- groups --------------------------------------------------------------------------------------

    def group_by(self, *by: Any, maintain_order: bool = False, **named_by: Any) -> "GroupBy":
        """Rows with equal keys together; ``.agg(..)`` follows."""
        if maintain_order:
            raise NotSupportedError("maintain_order is not supported", hint="sort afterwards")
        return GroupBy(self, self._items(by, named_by))

    def agg(self, *aggs: Any, **named_aggs: Any) -> "Relation":
        """Aggregates over all rows: one row."""
        return self.select(*aggs, **named_aggs)

    def _windowed(self, call: str, index: str, keys: Sequence[Any], **kw: Any) -> "GroupBy":
        for name in ("window_start", "window_end"):
            if name in self._known:
                raise ProgrammingError(f'column "{name}" is in the way of the window\'s', hint="rename it first")
        return GroupBy(self, [self._expr(k) for k in keys], windows=call, index=index, **kw)

    def _index(self, index_column: Any) -> str:
        name = index_column._out if isinstance(index_column, Expr) else index_column
        if name not in self._known:
            raise unknown_column(str(name), self._known)
        return name

    def _span(self, value: Any, index: str) -> str:
        of = self._known[index]
        span = parse_duration(value)
        if t.is_integer(of):
            if span.ticks is None and isinstance(value, str) and value.endswith("i") is False:
                raise ProgrammingError(f'"{index}" is a number, so {value!r} needs a number too', sqlstate="42804")
            return str(span.ticks)
        if span.ticks is not None and not isinstance(value, str):
            return f"INTERVAL '{span.micros} microseconds'"
        if span.months:
            raise NotSupportedError("windows of months are not supported here",
                                    hint=f'group_by(ab.col("{index}").dt.truncate("{value}"))')
        return span.interval()

    def group_by_dynamic(
        self, index_column: Any, *, every: Any, period: Any = None, offset: Any = None, include_boundaries: bool = False,
        closed: str = "left", label: str = "left", group_by: Any = None, start_by: str = "window",
    ) -> "GroupBy":
        """Groups of windows of time: every so often, ``period`` long. Input need not be sorted."""
        if start_by != "window" or label == "datapoint":
            raise NotSupportedError("windows would move with the earliest row", hint="give offset=")
        if closed not in ("left", "right"):
            raise NotSupportedError(f"closed={closed!r} is not supported", hint='"left" or "right"')
        if label not in ("left", "right"):
            raise ProgrammingError(f"label is left or right, not {label!r}")
        index = self._index(index_column)
        base = self
        if closed == "right":
            # A window (a, b] has what [a, b) has of times one tick earlier.
            moved = f"{q.name(index)} - " + ("1" if t.is_integer(self._known[index]) else "INTERVAL '1 microsecond'")
            base = self.with_columns(_tick=Expr(lambda ctx: ctx.sql(f"({moved})")))
        on = index if base is self else "_tick"
        step, size = self._span(every, index), self._span(period if period is not None else every, index)
        shift = f", OFFSET => {self._span(offset, index)}" if offset is not None else ""
        source = base._from if base._from is not None else f"({base._text})"
        if step == size:
            call = f"TUMBLE({source}, {q.name(on)}, {size}{shift})" if not shift else (
                f"TUMBLE({_table(source)}, DESCRIPTOR({q.name(on)}), {size}{shift})" if False else
                f"TUMBLE(DATA => {_table(source)}, TIMECOL => DESCRIPTOR({q.name(on)}), SIZE => {size}{shift})")
        else:
            call = f"HOP({source}, {q.name(on)}, {step}, {size})" if not shift else (
                f"HOP(DATA => {_table(source)}, TIMECOL => DESCRIPTOR({q.name(on)}), SLIDE => {step}, SIZE => {size}{shift})")
        return base._windowed(call, index, listed(group_by), boundaries=include_boundaries,
                              label="window_start" if label == "left" else "window_end")

    def session(self, index_column: Any, *, gap: Any, group_by: Any = None) -> "GroupBy":
        """Groups of rows that follow each other within ``gap``; columns ``window_start`` and ``window_end``."""
        index, keys = self._index(index_column), listed(group_by)
        names = [n for k in keys for n in self._names(k)]
        by = f" PARTITION BY ({', '.join(map(q.name, names))})" if names else ""
        source = self._from if self._from is not None else f"({self._text})"
        call = f"SESSION({source}{by}, {q.name(index)}, {self._span(gap, index)})"
        return self._windowed(call, index, keys, boundaries=False, label=None)

    def cumulate(self, index_column: Any, *, step: Any, size: Any, group_by: Any = None) -> "GroupBy":
        """Windows that grow by ``step`` until they are ``size`` long."""
        index = self._index(index_column)
        source = self._from if self._from is not None else f"({self._text})"
        call = f"CUMULATE({source}, {q.name(index)}, {self._span(step, index)}, {self._span(size, index)})"
        return self._windowed(call, index, listed(group_by), boundaries=False, label=None)

    def rolling(self, index_column: Any, *, period: Any, offset: Any = None, closed: str = "right",
                group_by: Any = None) -> "GroupBy":
        """One row a row, over the rows of the last ``period``."""
        if offset is not None or closed != "right":
            raise NotSupportedError("rolling knows no offset and closed='right' only")
        index = self._index(index_column)
        return Rolling(self, index, self._span(period, index), [n for k in listed(group_by) for n in self._names(k)])

    # -- several relations ---------------------------------------------------------------------------

    def _other(self, other: Any) -> "Relation":
        if isinstance(other, Relation):
            if other._db._root is not self._db._root:
                raise ProgrammingError("the relations are of two databases", hint="create_table in one from .collect() of the other")
            return other
        from .data import is_data

        if is_data(other) or isinstance(other, Rows):
            return self._db.relation(other)
        raise ProgrammingError(f"{type(other).__name__} is no relation", hint="db.relation(..) or db.values(..)")

    def join(
        self, other: Any, on: Any = None, how: str = "inner", *, left_on: Any = None, right_on: Any = None,
        suffix: str = "_right", nulls_equal: bool = False, coalesce: Optional[bool] = None, validate: str = "m:m",
    ) -> "Relation":
        """Rows of both with equal keys. Columns of the same name get ``suffix`` on the right side."""
        right = self._other(other)
        words = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN", "outer": "FULL JOIN"}
        if how == "cross":
            if on is not None or left_on is not None or right_on is not None:
                raise ProgrammingError("a cross join has no keys")
            return self._joined(right, "CROSS JOIN", None, set(), suffix)
        if how not in words and how not in ("semi", "anti"):
            raise ProgrammingError(f"how is inner, left, right, full, semi, anti or cross, not {how!r}")
        left_keys, right_keys = self._keys(right, on, left_on, right_on)
        self._validate(right, left_keys, right_keys, validate)
        equals = "IS NOT DISTINCT FROM" if nulls_equal else "="
        lctx, rctx = self._side("l"), right._side("r")
        tests = [f"{a._build(lctx).sql} {equals} {b._build(rctx).sql}" for a, b in zip(left_keys, right_keys)]
        test = " AND ".join(tests)
        if how in ("semi", "anti"):
            word = "EXISTS" if how == "semi" else "NOT EXISTS"
            return self._new(f"SELECT {self._list('l.')} FROM {_named(self, 'l')} WHERE {word} "
                             f"(SELECT 1 FROM {_named(right, 'r')} WHERE {test})", right, order=self._order)
        merged = {b._out: a._out for a, b in zip(left_keys, right_keys)} if coalesce or (coalesce is None and how != "full") else {}
        return self._joined(right, words[how], test, merged, suffix, how)

    def _keys(self, right: "Relation", on: Any, left_on: Any, right_on: Any) -> Tuple[List[Expr], List[Expr]]:
        if on is not None:
            if left_on is not None or right_on is not None:
                raise ProgrammingError("give on, or left_on and right_on")
            left_on = right_on = on
        if left_on is None or right_on is None:
            raise ProgrammingError("a join needs keys", hint='on="k", or left_on= and right_on=; how="cross" has none')
        left, rights = [self._expr(k) for k in listed(left_on)], [right._expr(k) for k in listed(right_on)]
        if len(left) != len(rights):
            raise ProgrammingError(f"there are {len(left)} keys on the left and {len(rights)} on the right")
        return left, rights

    def _side(self, alias: str) -> Ctx:
        def ask(sql: str) -> str:
            return str(self._db._schema_of(f"SELECT {sql} AS x FROM {_named(self, alias)}")["x"])
        ctx = Ctx(self._known, lambda name: f"{alias}.{q.name(name)}", ask)
        ctx.register = self._db._function_name
        return ctx

    def _validate(self, right: "Relation", left_keys: List[Expr], right_keys: List[Expr], validate: str) -> None:
        if validate == "m:m":
            return
        sides = {"1:1": (True, True), "1:m": (True, False), "m:1": (False, True)}
        if validate not in sides:
            raise ProgrammingError(f"validate is m:m, 1:1, 1:m or m:1, not {validate!r}")
        for wanted, side, keys in zip(sides[validate], (self, right), (left_keys, right_keys)):
            key = getattr(side, "primary_key", None)
            if wanted and (not key or not set(key) <= {k._out for k in keys}):
                raise NotSupportedError(f"validate={validate!r} needs a primary key among the keys",
                                        hint="unique(keys) before the join makes sure")

    def _joined(self, right: "Relation", word: str, test: Optional[str], merged: Any, suffix: str,
                how: str = "inner") -> "Relation":
        columns, names = [], list(self._known)
        for name in self._known:
            sql = f"l.{q.name(name)}"
            partner = next((r for r, l in dict(merged).items() if l == name), None) if merged else None
            if partner is not None and how in ("right", "full") and partner in right._known:
                sql = f"coalesce({sql}, r.{q.name(partner)})"
            columns.append(_as(sql, name))
        for name in right._known:
            if merged and name in merged:
                continue
            shown = name + suffix if name in names else name
            if shown in names:
                from .errors import DuplicateName

                raise DuplicateName(f'column "{shown}" would be there twice', hint="choose another suffix=")
            names.append(shown)
            columns.append(_as(f"r.{q.name(name)}", shown))
        on = f" ON {test}" if test is not None else ""
        return self._new(f"SELECT {', '.join(columns)} FROM {_named(self, 'l')} {word} {_named(right, 'r')}{on}", right)

    def join_where(self, other: Any, *predicates: Any, how: str = "inner", suffix: str = "_right") -> "Relation":
        """Pairs of rows for which all predicates hold: expressions (right columns by their suffixed names) or ``lambda l, r``."""
        right = self._other(other)
        words = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN"}
        if how not in words:
            raise ProgrammingError(f"how is inner, left, right or full, not {how!r}")
        both = {**{n: (f"l.{q.name(n)}", of) for n, of in self._known.items()}}
        for n, of in right._known.items():
            both[n + suffix if n in self._known else n] = (f"r.{q.name(n)}", of)
        ask = lambda sql: str(self._db._schema_of(  # noqa: E731
            f"SELECT {sql} AS x FROM {_named(self, 'l')} CROSS JOIN {_named(right, 'r')}")["x"])
        ctx = Ctx({n: of for n, (_, of) in both.items()}, lambda n: both[n][0], ask)
        ctx.register = self._db._function_name
        side = lambda known, alias: Row(known, lambda n: Expr(  # noqa: E731
            lambda c: c.sql(f"{alias}.{q.name(n)}", known[n]), n, roots=True))
        tests = []
        for p in predicates:
            if callable(p) and not isinstance(p, Expr):
                p = trace(p, side(self._known, "l"), side(right._known, "r"))
            tests.append(as_column(p)._build(ctx).sql)
        return self._joined(right, words[how], " AND ".join(tests) or "true", {}, suffix, how)

    def join_asof(
        self, other: Any, *, on: Any = None, left_on: Any = None, right_on: Any = None, by: Any = None, by_left: Any = None,
        by_right: Any = None, strategy: str = "backward", tolerance: Any = None, allow_exact_matches: bool = True,
        suffix: str = "_right", coalesce: bool = True, check_sortedness: Any = None,
    ) -> "Relation":
        """Each left row with the right row nearest before it (after it, for ``strategy="forward"``). No order needed."""
        right = self._other(other)
        if strategy == "nearest":
            return self._nearest(right, on, left_on, right_on, by, by_left, by_right, tolerance, allow_exact_matches, suffix, coalesce)
        if strategy not in ("backward", "forward"):
            raise ProgrammingError(f"strategy is backward, forward or nearest, not {strategy!r}")
        times = self._keys(right, on, left_on, right_on)
        keys = self._keys(right, by, by_left, by_right) if by is not None or by_left is not None else ([], [])
        lctx, rctx = self._side("l"), right._side("r")
        tests = [f"{a._build(lctx).sql} = {b._build(rctx).sql}" for a, b in zip(*keys)]
        a, b = times[0][0]._build(lctx).sql, times[1][0]._build(rctx).sql
        sign = {"backward": ">", "forward": "<"}[strategy] + ("=" if allow_exact_matches else "")
        tests.append(f"{a} {sign} {b}")
        if tolerance is not None:
            span = self._span(tolerance, times[0][0]._out or "") if times[0][0]._out in self._known else str(tolerance)
            tests.append(f"{a} <= {b} + {span}" if strategy == "backward" else f"{b} <= {a} + {span}")
        merged = {r._out: l._out for l, r in zip(*keys)}
        if coalesce and on is not None:
            merged[times[1][0]._out] = times[0][0]._out
        return self._joined(right, "ASOF LEFT JOIN", " AND ".join(tests), merged, suffix, "left")

    def _nearest(self, right: "Relation", on: Any, left_on: Any, right_on: Any, by: Any, by_left: Any, by_right: Any,
                 tolerance: Any, exact: bool, suffix: str, coalesce: bool) -> "Relation":
        """Backward and forward; the nearer, the later at a tie."""
        lefts, rights = self._keys(right, on, left_on, right_on)
        left_time, right_time = lefts[0]._out, rights[0]._out
        marks = {n: _free(n, {**self._known, **right._known}) for n in ("_at", "_b", "_f")}
        marked = right.with_columns(**{marks["_at"]: col(right_time)})
        kw: Dict[str, Any] = dict(left_on=left_time, right_on=right_time, by=by, by_left=by_left, by_right=by_right,
                                  tolerance=tolerance, allow_exact_matches=exact)
        keys = listed(by) or listed(by_right)
        rest = [n for n in marked._known if n not in keys]
        back = self.join_asof(marked, **kw, suffix="_b")
        # Each side's columns under names of its own, so that one of them can be chosen.
        def named_side(suffix_: str, strategy: str, left: "Relation") -> "Relation":
            renamed = marked.rename({n: f"{n}{suffix_}" for n in rest})
            sided = dict(kw)
            sided["right_on"] = right_time + suffix_ if right_time in rest else right_time
            return left.join_asof(renamed, **sided, strategy=strategy, suffix="_x")
        del back
        both = named_side("_asof_f", "forward", named_side("_asof_b", "backward", self))
        before, after = col(marks["_at"] + "_asof_b"), col(marks["_at"] + "_asof_f")
        later = before.is_null() | ((after - col(left_time)) <= (col(left_time) - before))
        chosen = {}
        for name in rest:
            if name == marks["_at"] or (coalesce and on is not None and name == right_time):
                continue
            shown = name + suffix if name in self._known else name
            pick = When([(later.fill_null(False), col(name + "_asof_f"))], None).otherwise(col(name + "_asof_b"))
            chosen[shown] = pick
        return both.select(*[col(n) for n in self._known], **chosen)

    def union(self, *others: Any) -> "Relation":
        """The rows of all, duplicates kept; columns by place."""
        return self._set("UNION ALL", others)

    def union_by_name(self, *others: Any) -> "Relation":
        """The rows of all, columns by name; what one lacks is NULL."""
        relations = [self, *map(self._other, others)]
        names = list(dict.fromkeys(n for r in relations for n in r._known))
        def aligned(r: "Relation") -> "Relation":
            of = {n: next(s._known[n] for s in relations if n in s._known) for n in names}
            return r.select(*[col(n) if n in r._known else lit(None, of[n]).alias(n) for n in names])
        first, *rest = map(aligned, relations)
        return first.union(*rest)

    def except_(self, other: Any, *, all: bool = False) -> "Relation":  # noqa: A002
        """The rows that ``other`` has not; each once unless ``all``."""
        return self._set("EXCEPT ALL" if all else "EXCEPT", [other])

    def intersect(self, other: Any, *, all: bool = False) -> "Relation":  # noqa: A002
        """The rows that both have; each once unless ``all``."""
        return self._set("INTERSECT ALL" if all else "INTERSECT", [other])

    def _set(self, word: str, others: Sequence[Any]) -> "Relation":
        relations = [self, *map(self._other, others)]
        for other in relations[1:]:
            if other.width != self.width:
                raise ProgrammingError(f"the relations have {self.width} and {other.width} columns", sqlstate="42601",
                                       hint="select the same columns, or union_by_name")
        text = f" {word} ".join(f"SELECT {r._list()} FROM {r._source()}" for r in relations)
        return self._new(text, *relations[1:])

    # -- shapes --------------------------------------------------------------------------------------

    def explode(self, columns: Any, *more: Any, empty_as_null: bool = False, keep_nulls: bool = True) -> "Relation":
        """A row for each element of a list; a list that is NULL keeps its row unless ``keep_nulls=False``."""
        names = [n for c in (*listed(columns), *more) for n in self._names(c)]
        if len(names) != 1:
            raise NotSupportedError("explode takes one column", hint="explode one after the other")
        (name,) = names
        c = q.name(name)
        parts = [f"CASE WHEN {c} IS NULL THEN ARRAY[NULL] ELSE {c} END" if False else c if n == name else q.name(n) for n in self._known]
        texts = [f"unnest({p}) AS {q.name(n)}" if n == name else p for n, p in zip(self._known, parts)]
        text = f"SELECT {', '.join(texts)} FROM {self._source()}"
        extra = []
        if keep_nulls:
            extra.append(f"{c} IS NULL")
        if empty_as_null:
            extra.append(f"cardinality({c}) = 0")
        if extra:
            of = self._known[name][:-2]
            nulls = ", ".join(f"CAST(NULL AS {of}) AS {q.name(n)}" if n == name else q.name(n) for n in self._known)
            text = f"{text} UNION ALL SELECT {nulls} FROM {self._source()} WHERE {' OR '.join(extra)}"
        return self._new(text)

    def unnest(self, *columns: Any) -> "Relation":
        """The fields of a struct as columns."""
        raise NotSupportedError("unnest of structs is not supported yet", hint='select(ab.col("s").struct.field("a"))')

    def unpivot(self, on: Any = None, *, index: Any = None, variable_name: Optional[str] = None,
                value_name: Optional[str] = None) -> "Relation":
        """A row for each of the columns ``on``: its name and its value."""
        keys = [n for c in listed(index) for n in self._names(c)]
        names = [n for c in listed(on) for n in self._names(c)] if on is not None else [n for n in self._known if n not in keys]
        variable, value = variable_name or "variable", value_name or "value"
        check_names([*keys, variable, value])
        kept = "".join(q.name(k) + ", " for k in keys)
        text = " UNION ALL ".join(f"SELECT {kept}{q.text(n)} AS {q.name(variable)}, {q.name(n)} AS {q.name(value)} FROM {self._source()}"
                                  for n in names)
        return self._new(text)

    def pivot(self, on: Any, on_columns: Sequence[Any], *, index: Any, values: Any, aggregate_function: Any) -> "Relation":
        """A column for each of ``on_columns``, the values that ``on`` may have."""
        functions = {"sum", "mean", "min", "max", "count", "len", "median", "first", "last", "item"}
        key, value = self._expr(on), self._expr(values)
        def aggregate(e: Expr) -> Expr:
            if callable(aggregate_function) and not isinstance(aggregate_function, str):
                return trace(aggregate_function, e)
            if aggregate_function not in functions:
                raise ProgrammingError(f"aggregate_function {aggregate_function!r} is not known", hint=", ".join(sorted(functions)))
            return getattr(e, "min" if aggregate_function in ("first", "last", "item") else aggregate_function)()
        columns = {str(v): aggregate(value).filter(key == v) for v in on_columns}
        return self.group_by(*listed(index)).agg(**columns)

    def drop_nulls(self, subset: Any = None) -> "Relation":
        """The rows without NULL in these columns."""
        names = self._names(subset) if subset is not None else list(self._known)
        return self.filter(*[col(n).is_not_null() for n in names])

    def fill_null(self, value: Any) -> "Relation":
        """``value`` for every NULL of a column it fits."""
        text, of = q.literal(value)
        del text
        same = [n for n, o in self._known.items() if o == of or (t.is_number(o) and t.is_number(of)) or (t.is_text(o) and t.is_text(of))]
        return self.with_columns(*[col(n).fill_null(value) for n in same]) if same else self

    def with_row_index(self, name: str = "index", *, order_by: Any = None, offset: int = 0) -> "Relation":
        """A column that numbers the rows in the order of ``order_by``."""
        if order_by is None:
            raise ProgrammingError("rows have no order; with_row_index needs order_by", hint='with_row_index(order_by="time")')
        if name in self._known:
            check_names([name, name])
        ctx = self._ctx()
        order = [direction(self._expr(o)._build(ctx).sql, False, False) for o in listed(order_by)]
        order += [direction(q.name(n), False, False) for n in self._known]
        number = f"row_number() OVER (ORDER BY {', '.join(order)}) + {int(offset) - 1}"
        return self._new(f"SELECT {_as(number, name)}, {self._list()} FROM {self._source()}")

    def alias(self, name: str) -> "Relation":
        """The same under a name that ``sql`` can use."""
        made = self._new(self._text, order=self._order, schema=self._known)
        made._from, made._alias = self._from, name
        return made

    def pipe(self, f: Callable, *args: Any, **kw: Any) -> Any:
        """``f(self, ..)``, for chains."""
        return f(self, *args, **kw)

    def sql(self, query: str, *, table_name: str = "self") -> "Relation":
        """A query of SQL over this relation, called ``self`` in it."""
        text = f"WITH {q.name(table_name)} AS ({self.sql_query() if not self._order else self._text}) {query}"
        return self._new(text)

    def match_recognize(
        self, *, partition_by: Any = None, order_by: Any, measures: Mapping[str, Any], pattern: str, define: Mapping[str, Any],
        after: str = "past last row", within: Any = None,
    ) -> "Relation":
        """Row patterns: SQL's MATCH_RECOGNIZE. Measures and conditions are texts of SQL or expressions."""
        def text(value: Any) -> str:
            return value if isinstance(value, str) else as_column(value)._build(self._ctx()).sql
        parts = []
        if partition_by is not None:
            parts.append("PARTITION BY " + ", ".join(q.name(n) for c in listed(partition_by) for n in self._names(c)))
        parts.append("ORDER BY " + ", ".join(q.name(n) for c in listed(order_by) for n in self._names(c)))
        parts.append("MEASURES " + ", ".join(f"{text(m)} AS {q.name(n)}" for n, m in measures.items()))
        parts.append("ONE ROW PER MATCH")
        parts.append(f"AFTER MATCH SKIP {after.upper()}")
        within_ = f" WITHIN {self._span(within, self._names(listed(order_by)[0])[0])}" if within is not None else ""
        parts.append(f"PATTERN ({pattern}){within_}")
        parts.append("DEFINE " + ", ".join(f"{n} AS {text(d)}" for n, d in define.items()))
        source = self._from if self._from is not None else f"({self._text}) AS _"
        return self._new(f"SELECT * FROM {source} MATCH_RECOGNIZE ({' '.join(parts)})")

    # -- reading -------------------------------------------------------------------------------------

    def collect(self, *, as_of: Optional[int] = None, timeout: Any = None) -> Rows:
        """The rows as of the last commit, or as of an earlier one that is retained."""
        if self._fixed is not None:
            return self._fixed
        text = self.sql_query()
        if as_of is not None:
            text += f" AS OF {int(as_of)}"
        rows = self._db._ask(text, timeout=timeout)
        return rows

    def _rows(self) -> Rows:
        return self.collect()

    def fetchone(self) -> Optional[tuple]:
        """The first row, asked anew at each call; ``for row in rel`` walks all of them."""
        return self.collect().first()

    def fetchmany(self, n: int = 1) -> List[tuple]:
        """The first ``n`` rows, asked anew at each call."""
        return self.collect().all()[:n]

    async def collect_async(self, **kw: Any) -> Rows:
        """``collect`` for coroutines: the loop goes on meanwhile."""
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(None, lambda: self.collect(**kw))

    def collect_batches(self, rows: Optional[int] = None) -> Iterator[Batch]:
        """The rows in batches."""
        return self.collect().batches(rows)

    def row_count(self) -> int:
        """How many rows."""
        if self._fixed is not None:
            return len(self._fixed)
        return self._db._ask(f"SELECT count(*) AS n FROM {self._source()}").item()

    def __iter__(self) -> Iterator[tuple]:
        return iter(self.collect())

    def __bool__(self) -> bool:
        raise TypeError("a relation is a question; write .row_count() or .item()")

    def __len__(self) -> int:
        raise TypeError("a relation is a question; write .row_count() or .item()")

    def __getitem__(self, name: Any) -> Any:
        if isinstance(name, str):
            if name not in self._known:
                raise unknown_column(name, self._known)
            return col(name)
        return self.select(*name)

    def __reduce__(self) -> Any:
        raise TypeError(f"a relation cannot be pickled; its text can: {q.shown(self.sql_query())}")

    def __arrow_c_schema__(self) -> Any:
        return self._known.__arrow_c_schema__()

    def __repr__(self) -> str:
        from .display import table

        rows = self._shown()
        if rows is None:
            columns = "\n".join(f"  {n}: {of}" for n, of in self._known.items())
            if self._db.closed:
                return f"{columns}\n(the database is closed)"
            return f"{columns}\n{self.explain().splitlines()[0]}"
        return table(rows, footer=self._footer(rows), rows_max=self._db._option("display_rows"),
                     width=self._db._option("display_width"))

    def _shown(self) -> Optional[Rows]:
        if self._db.closed:
            return None
        return self.collect()

    def _footer(self, rows: Rows) -> str:
        if self.status is not None:
            return self.status
        return f"{len(rows)} row{'' if len(rows) == 1 else 's'}"

    def _repr_html_(self) -> str:
        from .display import html

        rows = self._shown()
        return html(rows, footer=self._footer(rows), live=isinstance(self, View)) if rows is not None else ""

    # -- keeping -------------------------------------------------------------------------------------

    def explain(self, *, format: str = "text", analyze: bool = False) -> str:
        """The plan, as text."""
        if format != "text" or analyze:
            raise NotSupportedError("explain knows format='text' only, and does not run the query")
        rows = self._db._run(f"EXPLAIN {self.sql_query()}")
        return "\n".join(str(row[0]) for row in rows)

    def show_graph(self, path: Any = None) -> Any:
        """The plan as a picture (SVG)."""
        from .graph import Graph

        graph = Graph(self.explain())
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(graph.svg)
        return graph

    def create_table(self, name: str, **kw: Any) -> "Table":
        """A table with these rows as they are now."""
        return self._db.create_table(name, self, **kw)

    def create_view(self, name: str, **kw: Any) -> "View":
        """A view that is kept current."""
        return self._db.create_view(name, self, **kw)

    def live(self, name: Optional[str] = None) -> "View":
        """A view that is kept current until its last Python object goes."""
        return self._db._live(self, name)

    def insert_into(self, table: Any) -> Commit:
        """These rows, appended to a table."""
        target = table._name if isinstance(table, Table) else table
        return self._db._write(f"INSERT INTO {q.name(target)} ({self._list()}) {self.sql_query()}")

    def write_parquet(self, path: Any) -> None:
        """The rows as a Parquet file (needs pyarrow or polars)."""
        _write(self.collect(), path, "parquet")

    def write_csv(self, path: Any) -> None:
        """The rows as a CSV file with a header."""
        import csv

        rows = self.collect()
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(rows.columns)
            writer.writerows(["" if cell is None else cell for cell in row] for row in rows._native.texts(len(rows)))

    def write_json(self, path: Any) -> None:
        """The rows as lines of JSON."""
        import json

        with open(path, "w", encoding="utf-8") as file:
            for row in self.collect().to_dicts():
                file.write(json.dumps(row, default=str) + "\n")

    def events(self, *, time: str, end: Optional[str] = None, duration: Any = 1, unit: Optional[str] = None, **kw: Any) -> Any:
        """The rows as events of the time in a column; ``run()`` reads them as they are then.

        ``end`` names a column of ends, ``duration`` says how long a row is in force otherwise; the other arguments
        are those of ``Events.input``.
        """
        from .events import of_relation

        return of_relation(self, time=time, end=end, duration=duration, unit=unit, **kw)

    # -- live ----------------------------------------------------------------------------------------

    def changes(self, **kw: Any) -> Any:
        """The changes as they happen: an iterator, and an async iterator, of batches. See ``live.Changes``."""
        from .live import Changes

        return Changes(self, **kw)

    def subscribe(self, *, progress: bool = False, envelope: Optional[str] = None, key: Any = None, **kw: Any) -> Any:
        """Changes, and with ``progress`` the times before which all were given."""
        from .live import Subscription

        return Subscription(self, progress=progress, envelope=envelope, key=key, **kw)

    def on_change(self, f: Callable, **kw: Any) -> Any:
        """Calls ``f(batch)`` for each change, on the thread of callbacks."""
        from .live import on_change

        return on_change(self, f, **kw)

    def show(self, rows: int = 20, *, every: Any = "250ms", duration: Any = None) -> None:
        """The rows, refreshed in place in a terminal or notebook; elsewhere printed once."""
        from .show import show

        show(self, rows, every=every, duration=duration)

    def plot(self, x: str, y: str, **kw: Any) -> Any:
        """A chart of two columns."""
        from .show import plot

        return plot(self, x, y, **kw)


class _Sorted(Relation):
    """A relation sorted by something that is no column of it."""

    def __init__(self, base: Relation, hidden: Mapping[str, str], order: Sequence[Tuple[str, bool, bool]]) -> None:
        self._shown_columns = list(base._known)
        text = f"SELECT *, {', '.join(_as(sql, name) for name, sql in hidden.items())} FROM {base._source()}"
        super().__init__(base._db, text, order=order, holds=base._holds, schema=base._known)

    def sql_query(self) -> str:
        items = ", ".join(direction(q.name(name), down, last) for name, down, last in self._order)
        return f"SELECT {self._list()} FROM {self._source()} ORDER BY {items}"

    def slice(self, offset: int, length: Optional[int] = None) -> Relation:
        cut = (f" LIMIT {int(length)}" if length is not None else "") + (f" OFFSET {int(offset)}" if offset else "")
        return Relation(self._db, self.sql_query() + cut, holds=self._holds)

    def _new(self, text: str, *others: Relation, order: Sequence = (), schema: Optional[Schema] = None) -> Relation:
        return super()._new(text, *others, order=(), schema=schema)


class GroupBy:
    """Groups of a relation: ``agg`` makes a row of each."""

    def __init__(self, relation: Relation, keys: List[Expr], *, windows: Optional[str] = None, index: Optional[str] = None,
                 boundaries: bool = False, label: Optional[str] = None, having: Optional[Any] = None) -> None:
        self._relation, self._keys = relation, keys
        self._windows, self._index, self._boundaries, self._label = windows, index, boundaries, label
        self._having = having
        for key in keys:
            if key._agg:
                raise GroupingError("a key cannot aggregate")

    def having(self, *predicates: Any) -> "GroupBy":
        """Only the groups for which this holds; predicates aggregate."""
        return GroupBy(self._relation, self._keys, windows=self._windows, index=self._index, boundaries=self._boundaries,
                       label=self._label, having=_all([self._relation._expr(p) for p in predicates]))

    def agg(self, *aggs: Any, **named_aggs: Any) -> Relation:
        """A row a group: the keys, then the aggregates."""
        r = self._relation
        made = r._items(aggs, named_aggs)
        ctx = r._ctx()
        keys = [column for k in self._keys for column in expand(k, ctx)]
        names = {name for name, _ in keys}
        for e in made:
            if not e._agg and e._roots and not e._window:
                if e._select is not None:
                    continue
                raise GroupingError(f'column "{e._out}" is not aggregated', hint=f'ab.col("{e._out}").sum(), .implode(), ..')
        columns = []
        for e in made:
            if e._select is not None:
                chosen = e._select
                e = Expr(e._build, e._out, agg=e._agg,
                         select=lambda cs, chosen=chosen: [n for n in chosen(cs) if n not in names])
            columns += expand(e, ctx)
        windows = self._window_columns()
        check_names([n for n, _ in keys] + [n for n, _ in windows] + [n for n, _ in columns])
        parts = [_as(sql.sql, name) for name, sql in keys] + [_as(sql, name) for name, sql in windows]
        parts += [_as(sql.sql, name) for name, sql in columns]
        source = f"{self._windows} AS _w" if self._windows else r._source()
        grouped = [sql.sql for _, sql in keys]
        if self._windows:
            grouped += ["window_start", "window_end"]
        text = f"SELECT {', '.join(parts)} FROM {source}"
        if grouped:
            text += " GROUP BY " + ", ".join(grouped)
        else:
            text += " HAVING count(*) > 0"
        if self._having is not None:
            text += f" HAVING {self._having._build(ctx).sql}"
        made_relation = r._new(text)
        if self._windows:
            # Final answers need to know which window they are of.
            made_relation._closing = text.replace("SELECT ", 'SELECT window_end AS "_window_end", ', 1)
        return made_relation

    def _window_columns(self) -> List[Tuple[str, str]]:
        if not self._windows:
            return []
        if self._label is None:
            return [("window_start", "window_start"), ("window_end", "window_end")]
        bounds = [("_lower_boundary", "window_start"), ("_upper_boundary", "window_end")] if self._boundaries else []
        return bounds + [(self._index or "", self._label)]

    def _each(self, f: Callable[[Expr], Expr]) -> Relation:
        keys = {k._out for k in self._keys} | ({self._index} if self._windows else set()) | {"_tick"}
        return self.agg(*[f(col(n)) for n in self._relation._known if n not in keys])

    def len(self, name: str = "len") -> Relation:
        """How many rows each group has."""
        from .expr import length

        return self.agg(length().alias(name))

    def sum(self) -> Relation:
        """The sums of all other columns."""
        return self._each(lambda c: c.sum())

    def mean(self) -> Relation:
        """The means of all other columns."""
        return self._each(lambda c: c.mean())

    def min(self) -> Relation:
        """The least values of all other columns."""
        return self._each(lambda c: c.min())

    def max(self) -> Relation:
        """The greatest values of all other columns."""
        return self._each(lambda c: c.max())

    def median(self) -> Relation:
        """The medians of all other columns."""
        return self._each(lambda c: c.median())

    def n_unique(self) -> Relation:
        """How many different values all other columns have."""
        return self._each(lambda c: c.n_unique())

    def map_groups(self, *args: Any, **kw: Any) -> Any:
        """Not offered: a Python call a group."""
        raise NotSupportedError("map_groups is not supported", hint="write @ab.udaf, or group_apply on events")

    def __iter__(self) -> Any:
        raise NotSupportedError("groups cannot be walked", hint=".agg(..), or partition the rows that were read")


class Rolling(GroupBy):
    """Windows that end at each row: the row with those of the last ``period``."""

    def __init__(self, relation: Relation, index: str, period: str, keys: List[str]) -> None:
        super().__init__(relation, [])
        self._at, self._period, self._names = index, period, keys

    def agg(self, *aggs: Any, **named_aggs: Any) -> Relation:
        """A row a row: the keys, the index, then the aggregates over the rows of the window."""
        r = self._relation
        made = r._items(aggs, named_aggs)
        inner = r._side("w")
        columns = [column for e in made for column in expand(e, inner)]
        shown = [*self._names, self._at]
        number = _free("_row", r._known)
        keyed = "".join(f"{q.name(n)}, " for n in shown)
        numbered = (f"SELECT {keyed}row_number() OVER (ORDER BY {', '.join(q.name(n) for n in r._known)}) AS {q.name(number)} "
                    f"FROM {r._source()}")
        tests = [f"s.{q.name(n)} IS NOT DISTINCT FROM w.{q.name(n)}" for n in self._names]
        at = q.name(self._at)
        tests.append(f"w.{at} > s.{at} - {self._period} AND w.{at} <= s.{at}")
        grouped = ", ".join(f"s.{q.name(n)}" for n in [*shown, number])
        parts = [_as(f"s.{q.name(n)}", n) for n in shown] + [_as(sql.sql, name) for name, sql in columns]
        check_names([*shown, *[n for n, _ in columns]])
        return r._new(f"SELECT {', '.join(parts)} FROM ({numbered}) AS s JOIN {_named(r, 'w')} ON {' AND '.join(tests)} "
                      f"GROUP BY {grouped}")


class Table(Relation):
    """A table: a relation that can be written."""

    def __init__(self, db: Any, name: str, schema: Optional[Schema] = None) -> None:
        self._name = name
        super().__init__(db, f"SELECT * FROM {q.name(name)}", from_=q.name(name), schema=schema)

    @property
    def name(self) -> str:
        """The name in the catalog."""
        return self._name

    @property
    def primary_key(self) -> List[str]:
        """The columns of the primary key."""
        return self._db._primary_key(self._name)

    @property
    def append_only(self) -> bool:
        """Whether rows were promised to stay."""
        return self._name in self._db._append_only

    def insert(self, data: Any) -> Commit:
        """Appends rows, as one commit."""
        return self._db.insert(self._name, data)

    def upsert(self, data: Any, *, on: Any = None) -> Commit:
        """Puts rows in the place of those with their keys."""
        return self._db.upsert(self._name, data, on=on)

    def delete(self, where: Any = None, *, keys: Any = None) -> Commit:
        """Takes away the rows for which ``where`` is true, or those with these keys."""
        return self._db.delete(self._name, where, keys=keys)

    def update(self, where: Any = None, **set: Any) -> Commit:  # noqa: A002
        """Changes columns of the rows for which ``where`` is true."""
        return self._db.update(self._name, where, **set)

    def truncate(self) -> Commit:
        """Takes away all rows."""
        return self._db.truncate(self._name)

    def drop_table(self) -> None:
        """Drops the table."""
        self._db.drop(self._name)

    def appender(self, *, rows: int = 65536, every: Any = "10ms") -> Any:
        """Rows one by one, written in commits of many."""
        from .appender import Appender

        return Appender(self, rows=rows, every=every)


class View(Relation):
    """A view: kept current; reading it is a look-up."""

    def __init__(self, db: Any, name: str, *, definition: str = "", emit: str = "change", anonymous: bool = False,
                 holds: Sequence[Any] = ()) -> None:
        self._name, self.definition, self.emit = name, definition, emit
        super().__init__(db, f"SELECT * FROM {q.name(name)}", from_=q.name(name), holds=holds)
        self._anonymous = anonymous

    @property
    def name(self) -> str:
        """The name in the catalog."""
        return self._name

    def drop(self, *columns: Any, **kw: Any) -> Any:  # type: ignore[override]
        """Without arguments drops the view; with columns, the relation without them."""
        if columns:
            return super().drop(*columns, **kw)
        self._db.drop(self._name)
        return None

    def _footer(self, rows: Rows) -> str:
        now = _dt.datetime.now().strftime("%H:%M:%S")
        return f"view · live · {len(rows)} row{'' if len(rows) == 1 else 's'} as of {now}"

    def freshness(self) -> _dt.timedelta:
        """How old the last commit is that its rows show."""
        micros = _dt.datetime.now(_dt.timezone.utc).timestamp() * 1e6 - self._db.now()
        return _dt.timedelta(microseconds=max(0, int(micros)))

    def stats(self) -> Dict[str, Any]:
        """Rows and memory of what the view keeps."""
        return {"rows": self.row_count(), "name": self._name}

    def wait_for(self, predicate: Callable[[Rows], bool], timeout: Any = "10s") -> bool:
        """Reads at every change until ``predicate(rows)`` is true; False when time is over."""
        import time as _time

        from .durations import seconds

        deadline = _time.monotonic() + seconds(timeout)
        with self.changes(snapshot=False) as changes:
            while True:
                if predicate(self.collect()):
                    return True
                left = deadline - _time.monotonic()
                if left <= 0:
                    return False
                changes._wait(min(left, 0.25))


class Source(Table):
    """A source: rows that come from outside."""

    def _status(self) -> Dict[str, Any]:
        found = [s for s in self._db._engine.sources() if s["name"] == self._name]
        if not found:
            raise UnknownName(f'source "{self._name}" does not exist', sqlstate="42P01")
        return found[0]

    @property
    def state(self) -> str:
        """``running``, ``done`` or ``failed``."""
        return self._status()["state"]

    @property
    def rows_read(self) -> int:
        """Rows taken in."""
        return self._status()["rows"]

    @property
    def progress(self) -> Optional[float]:
        """The share that was read, from 0 to 1, where it is known."""
        status = self._status()
        return status["bytes_read"] / status["bytes_total"] if status["bytes_total"] else None

    @property
    def skipped(self) -> int:
        """Bad lines left out."""
        return self._status()["skipped"]

    @property
    def error(self) -> Optional[str]:
        """Why it failed."""
        return self._status()["error"]

    def wait(self, timeout: Any = None) -> None:
        """Waits until it is read to its end."""
        import time as _time

        from .durations import seconds

        deadline = None if timeout is None else _time.monotonic() + seconds(timeout)
        while self.state == "running":
            if deadline is not None and _time.monotonic() > deadline:
                from .errors import TimedOut

                raise TimedOut(f'source "{self._name}" still runs')
            _time.sleep(0.01)


def _as(sql: str, name: str) -> str:
    return sql if sql == q.name(name) else f"{sql} AS {q.name(name)}"


def _named(relation: Relation, alias: str) -> str:
    return f"{relation._from} AS {alias}" if relation._from is not None else f"({relation._text}) AS {alias}"


def _table(source: str) -> str:
    return source if source.startswith("(") else f"TABLE {source}"


def _free(name: str, taken: Mapping) -> str:
    while name in taken:
        name = "_" + name
    return name


def _all(predicates: Sequence[Any]) -> Expr:
    made = as_column(predicates[0])
    for p in predicates[1:]:
        made = made & as_column(p)
    return made


def _write(rows: Rows, path: Any, kind: str) -> None:
    try:
        import pyarrow.parquet as parquet

        parquet.write_table(rows.arrow(), path)
    except ImportError:
        rows.pl().write_parquet(path)


