"""Methods that give rows another shape: lists, pivots, NULL, numbers, patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence

from .. import sqltext as q
from .. import types as t
from ..errors import NotSupportedError, ProgrammingError, TypeMismatch
from ..expr import Expr, as_column, check_names, col, direction, listed
from ..tracing import trace
from ..types import fields_of
from .question import Question, _as

if TYPE_CHECKING:
    from .whole import Relation


class Shapes(Question):
    """Rows of another shape."""

    def explode(self, columns: Any, *more: Any, empty_as_null: bool = False, keep_nulls: bool = True) -> "Relation":
        """A row for each element of a list; a list that is NULL keeps its row unless
        ``keep_nulls=False``."""
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
        """The fields of structs as columns, in the place of the structs."""
        names = [n for c in columns for n in self._names(c)]
        parts = []
        for name in self._known:
            if name not in names:
                parts.append(col(name))
                continue
            fields = fields_of(self._known[name])
            if fields is None:
                raise TypeMismatch(f'column "{name}" is {self._known[name]}, not a struct', hint="explode takes lists apart")
            parts += [col(name).struct.field(field).alias(field) for field in fields]
        check_names(part._out or "" for part in parts)
        return self.select(*parts)

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
        made = self._new(self._unordered(), order=self._order, schema=self._known)
        made._from, made._alias = self._from, name
        return made

    def pipe(self, f: Callable, *args: Any, **kw: Any) -> Any:
        """``f(self, ..)``, for chains."""
        return f(self, *args, **kw)

    def sql(self, query: str, *, table_name: str = "self") -> "Relation":
        """A query of SQL over this relation, called ``self`` in it."""
        text = f"WITH {q.name(table_name)} AS ({self._unordered()}) {query}"
        return self._new(text)

    def match_recognize(
        self, *, partition_by: Any = None, order_by: Any, measures: Mapping[str, Any], pattern: str, define: Mapping[str, Any],
        after: str = "past last row", within: Any = None,
    ) -> "Relation":
        """Row patterns: SQL's MATCH_RECOGNIZE. Measures and conditions are texts of SQL or
        expressions."""
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
