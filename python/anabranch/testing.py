"""Helpers for tests of views and queries."""

from __future__ import annotations

from collections import Counter
from typing import Any, List, Sequence, Tuple

from . import data as _data
from .database import Database
from .rows import Rows

__all__ = ["database", "feed", "assert_current", "assert_rows", "assert_same", "check_udaf", "changelog"]


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
    """An aggregate of one's own keeps its law: order does not matter, retract undoes accumulate, merge equals both."""
    from .functions import check

    check(kind, [tuple(row) if isinstance(row, (tuple, list)) else (row,) for row in rows])


def changelog(events: Any, steps: Sequence[Any]) -> List[str]:
    """What an Events query gives for pushed events, as text: ``"@10 +1 (5,)"``."""
    from .events import changelog as run

    return run(events, steps)


