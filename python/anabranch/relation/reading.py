"""Methods that ask for rows, and how rows are shown."""

from __future__ import annotations

from typing import Any, Iterator, List, Optional

from .. import sqltext as q
from ..errors import ProgrammingError, unknown_column
from ..expr import col
from ..rows import Batch, Rows
from .question import Question


class Reading(Question):
    """The rows as of the last commit."""

    def collect(self, *, as_of: Optional[int] = None, timeout: Any = None) -> Rows:
        """The rows as of the last commit, or as of an earlier one that is retained."""
        if self._fixed is not None:
            return self._fixed
        text = self.sql_query()
        if as_of is not None:
            text += f" AS OF {int(as_of)}"
        rows = self._db._ask(text, timeout=timeout)
        return rows

    def bind(self, **params: Any) -> Any:
        """The relation with values for its parameters (``ab.param``); others stay open."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        for name, value in params.items():
            value_text = q.literal(value)[0]
            text = q.given(made._text, name, value_text)
            if text is None:
                raise ProgrammingError(f"there is no parameter {name}", sqlstate="42P02", hint=f'ab.param("{name}", int) makes one')
            made._text = text
            made._from = q.given(made._from, name, value_text) or made._from if made._from is not None else None
        return made

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
        from ..display import table

        rows = self._shown()
        if rows is None:
            columns = "\n".join(f"  {n}: {of}" for n, of in self._known.items())
            if self._db.closed:
                return f"{columns}\n(the database is closed)"
            return f"{columns}\n{self.explain().splitlines()[0]}"
        return table(rows, footer=self._footer(rows), rows_max=self._db._option("display_rows"),
                     width=self._db._option("display_width"))

    def _shown(self) -> Optional[Rows]:
        if self._db.closed or q.unbound(self._text) is not None:
            return None
        return self.collect()

    def _footer(self, rows: Rows) -> str:
        if self.status is not None:
            return self.status
        return f"{len(rows)} row{'' if len(rows) == 1 else 's'}"

    def _repr_html_(self) -> str:
        from ..display import html

        rows = self._shown()
        return html(rows, footer=self._footer(rows), live=self._is_current) if rows is not None else ""
