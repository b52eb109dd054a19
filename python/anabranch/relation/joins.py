"""Methods of several relations: joins and sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

from .. import sqltext as q
from ..errors import DuplicateName, NotSupportedError, ProgrammingError
from ..expr import Ctx, Expr, When, as_column, col, lit, listed
from ..rows import Rows
from ..tracing import Row, trace
from .question import Question, _as, _free, _named

if TYPE_CHECKING:
    from .whole import Relation


class Joins(Question):
    """Pairs of rows, and the rows of several relations."""

    def _other(self, other: Any) -> "Relation":
        if isinstance(other, Question):
            if other._db._root is not self._db._root:
                raise ProgrammingError("the relations are of two databases", hint="create_table in one from .collect() of the other")
            return other
        from ..data import is_data

        if is_data(other) or isinstance(other, Rows):
            return self._db.relation(other)
        raise ProgrammingError(f"{type(other).__name__} is no relation", hint="db.relation(..) or db.values(..)")

    def join(
        self, other: Any, on: Any = None, how: str = "inner", *, left_on: Any = None, right_on: Any = None,
        suffix: str = "_right", nulls_equal: bool = False, coalesce: Optional[bool] = None, validate: str = "m:m",
    ) -> "Relation":
        """Rows of both with equal keys. Columns of the same name get ``suffix`` on the right
        side."""
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
                raise DuplicateName(f'column "{shown}" would be there twice', hint="choose another suffix=")
            names.append(shown)
            columns.append(_as(f"r.{q.name(name)}", shown))
        on = f" ON {test}" if test is not None else ""
        return self._new(f"SELECT {', '.join(columns)} FROM {_named(self, 'l')} {word} {_named(right, 'r')}{on}", right)

    def join_where(self, other: Any, *predicates: Any, how: str = "inner", suffix: str = "_right") -> "Relation":
        """Pairs of rows for which all predicates hold: expressions (right columns by their suffixed
        names) or ``lambda l, r``."""
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
        """Each left row with the right row nearest before it (after it, for
        ``strategy="forward"``). No order needed."""
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
