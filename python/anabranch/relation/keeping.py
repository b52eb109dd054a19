"""Methods that keep the answer: views, tables, files, live changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional

from .. import sqltext as q
from ..errors import ProgrammingError
from ..rows import Rows
from ..values import Commit
from .question import Question

if TYPE_CHECKING:
    from .stored import Table, View


class Keeping(Question):
    """Answers that are kept, written or watched."""

    def explain(self, *, format: str = "text", analyze: bool = False) -> str:
        """The plan, as text; with ``analyze=True`` it runs, and tells rows, time and bytes of each
        step.

        ``format="json"`` gives a list of steps without a reader: each has ``step``, ``remark``
        (what is shared, what it has cost) and ``inputs``, the steps that it reads. Lines about the
        whole are under ``remarks``.
        """
        if format not in ("text", "json"):
            raise ProgrammingError(f"format is text or json, not {format!r}", sqlstate="22023")
        rows = self._db._run(f"EXPLAIN {'ANALYZE ' if analyze else ''}{self.sql_query()}")
        text = "\n".join(str(row[0]) for row in rows)
        if format == "text":
            return text
        from ..graph import as_json

        return as_json(text)

    def show_graph(self, path: Any = None) -> Any:
        """The plan as a picture (SVG)."""
        from ..graph import Graph

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

    def events(
        self, *, time: Optional[str] = None, end: Optional[str] = None, duration: Any = 1, unit: Optional[str] = None, **kw: Any,
    ) -> Any:
        """The rows as events of the time in a column; ``run()`` reads them as they are then.

        ``end`` names a column of ends, ``duration`` says how long a row is in force otherwise; the
        other arguments are those of ``Events.input``.

        Events of an append-only table or source whose watermark is of ``time`` can be kept current:
        ``db.create_view(name, events)``. So can those without ``time``: a row is then in force from
        the commit that brings it to the commit that takes it.
        """
        from ..events.stored import events_of

        return events_of(self, time=time, end=end, duration=duration, unit=unit, **kw)

    def changes(self, **kw: Any) -> Any:
        """The changes as they happen: an iterator, and an async iterator, of batches. See
        ``live.Changes``."""
        from ..live import Changes

        return Changes(self, **kw)

    def subscribe(self, *, progress: bool = False, envelope: Optional[str] = None, key: Any = None, **kw: Any) -> Any:
        """Changes, and with ``progress`` the times before which all were given."""
        from ..live import Subscription

        return Subscription(self, progress=progress, envelope=envelope, key=key, **kw)

    def on_change(self, f: Callable, **kw: Any) -> Any:
        """Calls ``f(batch)`` for each change, on the thread of callbacks."""
        from ..live import on_change

        return on_change(self, f, **kw)

    def show(self, rows: int = 20, *, every: Any = "250ms", duration: Any = None) -> None:
        """The rows, refreshed in place in a terminal or notebook; elsewhere printed once."""
        from ..show import show

        show(self, rows, every=every, duration=duration)

    def plot(self, x: str, y: str, **kw: Any) -> Any:
        """A chart of two columns."""
        from ..show import plot

        return plot(self, x, y, **kw)


def _write(rows: Rows, path: Any, kind: str) -> None:
    try:
        import pyarrow.parquet as parquet

        parquet.write_table(rows.arrow(), path)
    except ImportError:
        rows.pl().write_parquet(path)
