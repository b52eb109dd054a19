"""Live files: lines that are appended, and files that are new, become rows."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from typing import Any, Dict, Mapping, Optional

from . import sqltext as q
from .durations import seconds
from .errors import Error, UnavailableError
from .files import matching, name_of
from .relation import Source


class Follower(Source):
    """A table that a thread fills from files. Lines count when they are complete."""

    _stop: threading.Event

    @classmethod
    def start(cls, db: Any, path: str, schema: Any, watermark: Any, poll: Any, options: Dict[str, Any]) -> "Follower":
        """Takes in what is there, and begins to follow."""
        name = name_of(db, path)
        found = matching(path)
        if schema is None:
            if not found:
                raise UnavailableError(f"no file matches {path!r} yet", hint="give schema={..}")
            with_ = ", ".join(f"{k} = {q.text(str(v).lower() if isinstance(v, bool) else str(v))}"
                              for k, v in {"connector": "file", "path": found[0], **options}.items())
            probe = db._fresh("probe")
            db._engine.execute(f"CREATE SOURCE {q.name(probe)} WITH ({with_})")
            schema = dict(db._schema_of(f"SELECT * FROM {q.name(probe)}"))
            db._engine.execute(f"DROP SOURCE {q.name(probe)}")
        db.create_table(name, schema, watermark=watermark)
        source = cls(db, name)
        source._begin(path, seconds(poll), options)
        return source

    def _begin(self, path: str, poll: float, options: Mapping[str, Any]) -> None:
        self._files = _Files(self._db, self._name, path, dict(options))
        self._stop = threading.Event()
        self._files.turn()
        self._thread = threading.Thread(target=_follow, args=(weakref.ref(self._db), self._files, self._stop, poll),
                                        name="anabranch follow", daemon=True)
        self._thread.start()
        self._db.__dict__.setdefault("_followers", []).append(self._stop)

    @property
    def state(self) -> str:
        """``running``, ``done`` (stopped) or ``failed``."""
        if self._files.error is not None:
            return "failed"
        return "done" if self._stop.is_set() else "running"

    @property
    def rows_read(self) -> int:
        """Rows taken in."""
        return self._files.rows

    @property
    def progress(self) -> Optional[float]:
        """A live source has no end."""
        return None

    @property
    def skipped(self) -> int:
        """Bad lines left out."""
        return self._files.skipped

    @property
    def error(self) -> Optional[str]:
        """Why it failed."""
        return self._files.error

    def stop(self) -> None:
        """Follows no more; the rows stay."""
        self._stop.set()
        self._thread.join(5)


class _Files:
    """Positions in the files of a pattern."""

    def __init__(self, db: Any, table: str, pattern: str, options: Dict[str, Any]) -> None:
        self.engine, self.table, self.pattern = db._engine, table, pattern
        self.options = {k: v for k, v in options.items() if k not in ("rate", "retain")}
        self.by_lines = options.get("format") in ("csv", "json")
        self.at: Dict[str, int] = {}
        self.sizes: Dict[str, int] = {}
        self.rows, self.skipped, self.error = 0, 0, None  # type: ignore[assignment]
        self.columns: Dict[str, str] = {}

    def turn(self) -> None:
        """Takes in what is complete."""
        for path in matching(self.pattern):
            try:
                size = os.path.getsize(path)
                if size <= self.at.get(path, 0):
                    continue
                if self.by_lines:
                    self._lines(path, size)
                elif self.sizes.get(path) == size and path not in self.at:
                    self._copy(path)
                    self.at[path] = size
                self.sizes[path] = size
            except OSError as error:
                self.error = str(error)

    def _lines(self, path: str, size: int) -> None:
        at = self.at.get(path, 0)
        with open(path, "rb") as file:
            file.seek(at)
            data = file.read(size - at)
        end = data.rfind(b"\n") + 1
        if end == 0:
            return
        data = data[:end]
        if at == 0:
            self._copy(path) if end == size else self._part(data)
        else:
            if self.options.get("format") == "csv" and self._has_header(path):
                with open(path, "rb") as file:
                    data = file.readline() + data
            self._part(data)
        self.at[path] = at + end

    def _has_header(self, path: str) -> bool:
        if "header" in self.options:
            return bool(self.options["header"])
        with open(path, encoding="utf-8", errors="replace") as file:
            first = file.readline().strip().lower().split(self.options.get("delimiter", ","))
        names = {n.lower() for n in self.columns_of()}
        return all(cell.strip().strip('"') in names for cell in first)

    def columns_of(self) -> Dict[str, str]:
        """The table's columns."""
        if not self.columns:
            fields, _ = self.engine.describe(f"SELECT * FROM {q.name(self.table)}")
            self.columns = {name: of for name, of, _ in fields}
        return self.columns

    def _part(self, data: bytes) -> None:
        suffix = ".csv" if self.options.get("format") == "csv" else ".jsonl"
        with tempfile.NamedTemporaryFile(suffix=suffix, delete=False) as file:
            file.write(data)
        try:
            self._copy(file.name)
        finally:
            os.unlink(file.name)

    def _copy(self, path: str) -> None:
        options = dict(self.options)
        with_ = ", ".join(f"{k} = {q.text(str(v).lower() if isinstance(v, bool) else str(v))}" for k, v in options.items())
        tag, detail, _, _ = self.engine.execute(f"COPY {q.name(self.table)} FROM {q.text(path)} WITH ({with_})")[-1]
        self.rows += int(tag.split()[-1])
        if detail:
            number = next((w for w in detail.split() if w.isdigit()), "0")
            self.skipped += int(number)


def _follow(db: Any, files: _Files, stop: threading.Event, poll: float) -> None:
    while not stop.wait(poll):
        owner = db()
        if owner is None or owner.closed:
            return
        del owner
        try:
            files.turn()
        except Error as error:
            files.error = error.message
            return
