"""Relations, put together."""

from __future__ import annotations

from typing import Mapping, Optional, Sequence, Tuple

from .. import sqltext as q
from ..expr import direction
from ..types import Schema
from .columns import Columns
from .groups import Groups
from .joins import Joins
from .keeping import Keeping
from .question import _as
from .reading import Reading
from .shapes import Shapes


class Relation(Columns, Groups, Joins, Shapes, Reading, Keeping):
    """A multiset of rows, described by a query. Lazy and immutable.

    >>> import anabranch as ab
    >>> db = ab.connect()
    >>> r = db.values([("ada", 3), ("bo", 4)], {"who": str, "n": int})
    >>> r.filter(ab.col("n") > 3).fetchall()
    [('bo', 4)]
    """


class _Sorted(Relation):
    """A relation sorted by something that is no column of it."""

    def __init__(self, base: Relation, hidden: Mapping[str, str], order: Sequence[Tuple[str, bool, bool]]) -> None:
        self._shown_columns = list(base._known)
        text = f"SELECT *, {', '.join(_as(sql, name) for name, sql in hidden.items())} FROM {base._source()}"
        super().__init__(base._db, text, order=order, holds=base._holds, schema=base._known)

    def sql_query(self) -> str:
        items = ", ".join(direction(q.name(name), down, last) for name, down, last in self._order)
        return f"SELECT {self._list()} FROM {self._source()} ORDER BY {items}"

    def _unordered(self) -> str:
        return f"SELECT {self._list()} FROM {self._source()}"

    def slice(self, offset: int, length: Optional[int] = None) -> Relation:
        cut = (f" LIMIT {int(length)}" if length is not None else "") + (f" OFFSET {int(offset)}" if offset else "")
        return Relation(self._db, self.sql_query() + cut, holds=self._holds)

    def _new(self, text: str, *others: Relation, order: Sequence = (), schema: Optional[Schema] = None) -> Relation:
        return super()._new(text, *others, order=(), schema=schema)
