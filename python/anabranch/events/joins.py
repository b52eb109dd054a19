"""Verbs of two streams: joins in time."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, List, Sequence

from ..errors import DuplicateName, ProgrammingError
from ..expr import Expr, When, as_column, col, listed
from ..tracing import Row, trace
from .base import Base

if TYPE_CHECKING:
    from .whole import Events


class Joins(Base):
    """Verbs that take two streams of events."""

    def join(self, other: "Events", *, on: Any = None, left_on: Any = None, right_on: Any = None, how: str = "inner",
             where: Any = None, suffix: str = "_right") -> "Events":
        """Pairs with equal keys while both are in force; keys of ``on`` appear once.

        ``how`` is inner, left or full. ``where`` is a condition over the pair's columns, or
        ``lambda l, r``.
        """
        self._together(other)
        if how not in ("inner", "left", "full"):
            raise ProgrammingError(f"how is inner, left or full, not {how!r}")
        left, right = self._keys(other, on, left_on, right_on)
        lctx, rctx = self._ctx(), other._ctx()
        lefts, rights = [k._build(lctx).sql for k in left], [k._build(rctx).sql for k in right]
        predicate = None
        functions = lctx.functions + rctx.functions
        if where is not None:
            plain = self._new(self._frame.join(other._frame, lefts, rights, "inner", None, functions), other)
            pctx = plain._ctx()
            predicate = self._pair_condition(other, plain, where)._build(pctx).sql
            functions = functions + pctx.functions
        made = self._new(self._frame.join(other._frame, lefts, rights, how, predicate, functions), other)
        return made._merged(self, other, listed(on), how, suffix)

    def _pair_condition(self, other: "Events", pairs: "Events", where: Any) -> Expr:
        if callable(where) and not isinstance(where, (Expr, When)):
            names = dict(zip(other._of_right(), pairs.columns[len(self._known):]))
            names.update((key, key) for key in other._group)
            where = trace(where, Row(self._known, col), Row(other._known, lambda n: col(names[n])))
        return as_column(where)

    def _of_right(self) -> List[str]:
        """Columns that it brings into pairs: those of its group are the other's already."""
        return [name for name in self._known if name not in self._group]

    def _merged(self, left: "Events", right: "Events", on: Sequence[Any], how: str, suffix: str) -> "Events":
        """The pair's columns with the keys of ``on`` once, and right columns under the suffix that
        was asked for."""
        keys = [k for k in on if isinstance(k, str)]
        right_names, right_own = self.columns[len(left._known):], right._of_right()
        columns: List[Expr] = []
        for name in left._known:
            if name in keys and how == "full" and name in right_own:
                partner = right_names[right_own.index(name)]
                columns.append(col(name).fill_null(col(partner)).alias(name))
            else:
                columns.append(col(name))
        for own, shown in zip(right_own, right_names):
            if own not in keys:
                columns.append(col(shown).alias(own + suffix if shown != own else own))
        names = [e._out for e in columns]
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise DuplicateName(f'column "{twice}" would be there twice', hint="choose another suffix=")
        return self.select(*columns) if names != self.columns else self

    def join_asof(self, other: "Events", *, by: Any = None, by_left: Any = None, by_right: Any = None,
                  strategy: str = "backward", tolerance: Any = None, allow_exact_matches: bool = True,
                  how: str = "left", suffix: str = "_right") -> "Events":
        """Each event with the events of ``other`` that begin nearest to it: points, when they are
        known.

        Without a tolerance, events that look forward wait for the end of the input to know that
        none comes.
        """
        self._together(other)
        if strategy not in ("backward", "forward", "nearest"):
            raise ProgrammingError(f"strategy is backward, forward or nearest, not {strategy!r}")
        if how not in ("inner", "left"):
            raise ProgrammingError(f"how is inner or left, not {how!r}")
        if strategy != "backward" and how == "left" and tolerance is None:
            warnings.warn("without tolerance= events wait for the end of the input to know that none comes after them",
                          stacklevel=2)
        left, right = self._keys(other, by, by_left, by_right)
        lctx, rctx = self._ctx(), other._ctx()
        made = self._frame.join_asof(
            other._frame, [k._build(lctx).sql for k in left], [k._build(rctx).sql for k in right], strategy,
            None if tolerance is None else self._span(tolerance, "the tolerance"), allow_exact_matches, how == "left",
            lctx.functions + rctx.functions)
        return self._new(made, other)._merged(self, other, listed(by), how, suffix)

    def where_not_exists(self, other: "Events", *, on: Any = None, left_on: Any = None, right_on: Any = None,
                         where: Any = None) -> "Events":
        """Events while ``other`` has none with their keys (for which ``where`` holds)."""
        self._together(other)
        left, right = self._keys(other, on, left_on, right_on)
        lctx, rctx = self._ctx(), other._ctx()
        lefts, rights = [k._build(lctx).sql for k in left], [k._build(rctx).sql for k in right]
        functions, predicate = lctx.functions + rctx.functions, None
        if where is not None:
            pairs = self._new(self._frame.join(other._frame, lefts, rights, "inner", None, functions), other)
            pctx = pairs._ctx()
            predicate = self._pair_condition(other, pairs, where)._build(pctx).sql
            functions = functions + pctx.functions
        return self._new(self._frame.where_not_exists(other._frame, lefts, rights, predicate, functions), other)

    def clip_by(self, other: "Events", *, on: Any = None, left_on: Any = None, right_on: Any = None) -> "Events":
        """Events that end when one of ``other`` begins after them."""
        self._together(other)
        left, right = self._keys(other, on, left_on, right_on)
        lctx, rctx = self._ctx(), other._ctx()
        made = self._frame.clip_by(other._frame, [k._build(lctx).sql for k in left], [k._build(rctx).sql for k in right],
                                   lctx.functions + rctx.functions)
        return self._new(made, other)
