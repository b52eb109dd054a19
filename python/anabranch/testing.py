"""Helpers for tests of views and queries."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import data as _data
from .database import Database
from .rows import Rows

__all__ = ["database", "feed", "assert_current", "assert_rows", "assert_same", "check_udaf", "changelog", "row",
           "advance", "flush", "finish"]


def database(**kw: Any) -> Database:
    """A database in which nothing happens between calls and whose clock stands still."""
    return Database(workers=0, _manual=True, **kw)


def feed(view: Any, steps: Sequence[Tuple[int, Any, int, Any]]) -> List[Tuple[int, int, tuple]]:
    """Applies ``(time, table, diff, row)`` in order; the view's changes as ``(time, diff, row)``.

    >>> from anabranch import testing as at
    >>> with at.database() as db:
    ...     t = db.create_table("t", {"n": int})
    ...     at.feed(t, [(10, t, 1, (1,)), (20, t, -1, (1,))])
    [(10, 1, (1,)), (20, -1, (1,))]
    """
    db = view._db
    out: List[Tuple[int, int, tuple]] = []
    with view.changes(snapshot=False) as changes:
        for at in sorted({time for time, *_ in steps}):
            for table in {id(t): t for time, t, _, _ in steps if time == at}.values():
                mine = [(diff, row) for time, t, diff, row in steps if time == at and t is table]
                rows = _data.fitted([row for _, row in mine], table.columns, table.schema._arrow, table._name)
                db._engine.apply(table._name, rows, [diff for diff, _ in mine], at)
            db._engine.settle()
            while (batch := changes._take(0.05)) is not None:
                out += [(row[0], row[1], tuple(row[2:])) for row in batch.fetchall()]
    return out


def _counted(rows: Any) -> Counter:
    return Counter(map(repr, rows))


def assert_current(view: Any) -> None:
    """The view has the rows of its query asked anew."""
    kept, anew = view.fetchall(), Rows(view._db._engine.execute(view.definition)[-1][2]).all()
    assert _counted(kept) == _counted(anew), f'view "{view.name}" has {kept}, its query {anew}'


def assert_rows(relation: Any, expected: Sequence[Any], *, order: bool = False) -> None:
    """The relation has these rows, in any order unless ``order``."""
    found = relation.fetchall()
    wanted = [tuple(row) for row in expected]
    if order:
        assert found == wanted, f"{found} instead of {wanted}"
    else:
        assert _counted(found) == _counted(wanted), f"{found} instead of {wanted}"


def assert_same(a: Any, b: Any) -> None:
    """Two relations (or a relation and a text of SQL) have the same rows."""
    if isinstance(b, str):
        b = a._db.sql(b)
    assert_rows(a, b.fetchall())


def check_udaf(kind: Any, rows: Sequence[Any]) -> None:
    """An aggregate of one's own keeps its law: order does not matter, retract undoes accumulate,
    merge equals both."""
    from .functions import check

    check(kind, [tuple(row) if isinstance(row, (tuple, list)) else (row,) for row in rows])


class _Step(NamedTuple):
    """Something that happens to a run."""

    what: str
    input: Optional[str] = None
    value: Any = None


def row(input: str, event: Any) -> _Step:  # noqa: A002
    """A step of ``changelog``: an event comes into an input."""
    return _Step("row", input, event)


def advance(input: str, time: Any) -> _Step:  # noqa: A002
    """A step of ``changelog``: no row before ``time`` will come into an input."""
    return _Step("advance", input, time)


def flush() -> _Step:
    """A step of ``changelog``: what waits is handed on."""
    return _Step("flush")


def finish() -> _Step:
    """A step of ``changelog``: all inputs end."""
    return _Step("finish")


def changelog(events: Any, steps: Sequence[_Step]) -> List[str]:
    """The changes that an Events query gives for these steps: ``"@10 +1 5, a"``, in order of time.

    On the way the law is tested: the changes are the same when rows between two advances come in
    another order and are pushed together.

    >>> import anabranch as ab
    >>> from anabranch import testing as at
    >>> e = ab.Events.input("in", {"x": int, "at": int}, time="at")
    >>> at.changelog(e.select("x"), [at.row("in", ab.Event.point(3, (5, 3))), at.finish()])
    ['@3 +1 5', '@4 -1 5']
    """
    found = _replayed(events, [[step] for step in steps])
    together: List[List[_Step]] = []
    for step in steps:
        if step.what == "row" and together and together[-1][0].what == "row":
            together[-1].insert(0, step)
        else:
            together.append([step])
    other = _replayed(events, together)
    assert sorted(found) == sorted(other), f"the changes depend on the cut of the rows: {found} and {other}"
    return found


def _replayed(events: Any, turns: Sequence[Sequence[_Step]]) -> List[str]:
    from .runs import Run

    out: List[str] = []
    with Run(events) as run:
        for turn in turns:
            by_input: Dict[str, List[Any]] = {}
            for step in turn:
                if step.what == "row":
                    by_input.setdefault(str(step.input), []).append(step.value)
                elif step.what == "advance":
                    run.advance(str(step.input), step.value)
                else:
                    getattr(run, step.what)()
            for name, rows in by_input.items():
                run.push(name, rows)
            for time, diff, *values in run.changes():
                out.append(f"@{time} {diff:+d} {', '.join(map(str, values))}")
    return out
