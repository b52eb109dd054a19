"""Groups of rows: by keys, by windows of time, around each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

from .. import sqltext as q
from .. import types as t
from ..errors import GroupingError, NotSupportedError, ProgrammingError, unknown_column
from ..expr import Expr, check_names, col, expand, listed
from .question import Question, _all, _as, _free, _named, _table

if TYPE_CHECKING:
    from .whole import Relation


class Groups(Question):
    """Methods that put rows together; aggregates follow."""

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
        """Groups of rows that follow each other within ``gap``; columns ``window_start`` and
        ``window_end``."""
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
        """One row a row, over the rows of the last ``period``.

        The window of a row at ``t`` is from ``t + offset`` to ``t + offset + period``; without
        ``offset`` it ends at the row. ``closed`` says which ends belong to it.
        """
        if closed not in ("right", "left", "both", "none"):
            raise ProgrammingError(f"closed is right, left, both or none, not {closed!r}")
        index = self._index(index_column)
        span = self._span(period, index)
        begin = f"- {span}" if offset is None else f"+ {self._span(offset, index)}"
        end = "" if offset is None else f"{begin} + {span}"
        window = Window(begin, end, closed, may_be_empty=offset is not None or closed in ("left", "none"))
        return Rolling(self, index, window, [n for k in listed(group_by) for n in self._names(k)])


class GroupBy:
    """Groups of a relation: ``agg`` makes a row of each."""

    def __init__(self, relation: "Relation", keys: List[Expr], *, windows: Optional[str] = None, index: Optional[str] = None,
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

    def agg(self, *aggs: Any, **named_aggs: Any) -> "Relation":
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

    def _each(self, f: Callable[[Expr], Expr]) -> "Relation":
        keys = {k._out for k in self._keys} | ({self._index} if self._windows else set()) | {"_tick"}
        return self.agg(*[f(col(n)) for n in self._relation._known if n not in keys])

    def len(self, name: str = "len") -> "Relation":
        """How many rows each group has."""
        from ..expr import length

        return self.agg(length().alias(name))

    def sum(self) -> "Relation":
        """The sums of all other columns."""
        return self._each(lambda c: c.sum())

    def mean(self) -> "Relation":
        """The means of all other columns."""
        return self._each(lambda c: c.mean())

    def min(self) -> "Relation":
        """The least values of all other columns."""
        return self._each(lambda c: c.min())

    def max(self) -> "Relation":
        """The greatest values of all other columns."""
        return self._each(lambda c: c.max())

    def median(self) -> "Relation":
        """The medians of all other columns."""
        return self._each(lambda c: c.median())

    def n_unique(self) -> "Relation":
        """How many different values all other columns have."""
        return self._each(lambda c: c.n_unique())

    def map_groups(self, *args: Any, **kw: Any) -> Any:
        """Not offered: a Python call a group."""
        raise NotSupportedError("map_groups is not supported", hint="write @ab.udaf, or group_apply on events")

    def __iter__(self) -> Any:
        raise NotSupportedError("groups cannot be walked", hint=".agg(..), or partition the rows that were read")


class Window(NamedTuple):
    """Where the window of a row begins and ends, as SQL behind its time; which ends belong to
    it."""

    begin: str
    end: str
    closed: str
    may_be_empty: bool

    def test(self, row: str, other: str) -> str:
        """Whether the time ``other`` lies in the window of the time ``row``."""
        after = ">=" if self.closed in ("left", "both") else ">"
        before = "<=" if self.closed in ("right", "both") else "<"
        return f"{other} {after} {row} {self.begin} AND {other} {before} {row} {self.end}".rstrip()


class Rolling(GroupBy):
    """Windows around each row: the rows of the last ``period``, or of one at an offset."""

    def __init__(self, relation: "Relation", index: str, window: Window, keys: List[str]) -> None:
        super().__init__(relation, [])
        self._at, self._window, self._names = index, window, keys

    def agg(self, *aggs: Any, **named_aggs: Any) -> "Relation":
        """A row a row: the keys, the index, then the aggregates over the rows of the window."""
        r = self._relation
        made = r._items(aggs, named_aggs)
        inner = r._side("w")
        there = _free("_there", r._known)
        if self._window.may_be_empty:
            # A row whose window is empty stays, with aggregates of no rows.
            inner = inner.but(filter=f"w.{q.name(there)}")
        columns = [column for e in made for column in expand(e, inner)]
        shown = [*self._names, self._at]
        number = _free("_row", r._known)
        keyed = "".join(f"{q.name(n)}, " for n in shown)
        numbered = (f"SELECT {keyed}row_number() OVER (ORDER BY {', '.join(q.name(n) for n in r._known)}) AS {q.name(number)} "
                    f"FROM {r._source()}")
        tests = [f"s.{q.name(n)} IS NOT DISTINCT FROM w.{q.name(n)}" for n in self._names]
        at = q.name(self._at)
        tests.append(self._window.test(f"s.{at}", f"w.{at}"))
        grouped = ", ".join(f"s.{q.name(n)}" for n in [*shown, number])
        parts = [_as(f"s.{q.name(n)}", n) for n in shown] + [_as(sql.sql, name) for name, sql in columns]
        check_names([*shown, *[n for n, _ in columns]])
        word, windowed = "JOIN", _named(r, "w")
        if self._window.may_be_empty:
            word, windowed = "LEFT JOIN", f"(SELECT *, true AS {q.name(there)} FROM {r._source()}) AS w"
        return r._new(f"SELECT {', '.join(parts)} FROM ({numbered}) AS s {word} {windowed} ON {' AND '.join(tests)} "
                      f"GROUP BY {grouped}")
