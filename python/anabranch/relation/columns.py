"""Methods of one relation: columns, rows, order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Sequence, Union

from .. import sqltext as q
from ..errors import GroupingError, ProgrammingError, TraceError, TypeMismatch, unknown_column
from ..expr import Expr, When, check_grouping, check_names, col, direction, expand, lit, listed, spread
from ..tracing import trace
from .question import Question, _all, _as, _free

if TYPE_CHECKING:
    from .whole import Relation


class Columns(Question):
    """Which columns and which rows, in which order."""

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
        """In this order when read, or cut by ``head`` right after; NULL comes first unless
        ``nulls_last``."""
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
            from .whole import _Sorted

            return _Sorted(self, hidden, order)
        made = self._new(self._text, order=order, schema=self._known)
        made._from = self._from
        return made

    def head(self, n: int = 5) -> "Relation":
        """The first rows in the order of a ``sort`` before, or else by all columns. Kept current in
        a view."""
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
