"""Files as relations and as sources."""

from __future__ import annotations

import os
import re
from typing import Any, List, Mapping

from . import sqltext as q
from .errors import NotSupportedError, UnavailableError


def paths_of(path: Any) -> List[str]:
    """The path, or each of a list, as text."""
    if isinstance(path, (list, tuple)):
        return [os.fspath(p) for p in path]
    return [os.fspath(path)]


def name_of(db: Any, path: str) -> str:
    """A free name after the file."""
    stem = os.path.basename(path.rstrip("/")).split(".")[0]
    stem = re.sub(r"\W+", "_", stem).strip("_").lower() or os.path.basename(os.path.dirname(path)) or "source"
    stem = re.sub(r"\W+", "_", stem)
    taken, n, name = {r[0] for r in db._engine.relations()}, 1, stem
    while name in taken:
        n += 1
        name = f"{stem}_{n}"
    return name


def read(db: Any, path: Any, schema: Any, watermark: Any, options: Mapping[str, Any]) -> Any:
    """A relation of the files' rows as they are now."""
    from .holding import Held
    from .relation import Relation

    paths = paths_of(path)
    parts, holds = [], []
    for one in paths:
        if not re.search(r"[*?\[]", one) and not os.path.exists(one):
            raise UnavailableError(f"there is no file {one!r}", sqlstate="58030")
        name = db._fresh("file")
        db.create_source(name, "file", schema=schema, watermark=watermark, path=one, **options)
        holds.append(Held(db._engine, name, "SOURCE"))
        parts.append(f"SELECT * FROM {q.name(name)}")
    if len(parts) == 1:
        return Relation(db, parts[0], from_=q.name(holds[0].name), holds=holds)
    return Relation(db, " UNION ALL ".join(parts), holds=holds)


def follow(db: Any, path: Any, schema: Any, watermark: Any, poll: Any, options: Mapping[str, Any]) -> Any:
    """A source that takes lines that are appended and files that are new."""
    from .durations import seconds

    paths = paths_of(path)
    if len(paths) != 1:
        raise NotSupportedError("a live source takes one path or pattern")
    return db.create_source(
        name_of(db, paths[0]), "file", schema=schema, watermark=watermark, path=paths[0], follow=True,
        poll=f"{round(seconds(poll) * 1e6)} us", **options,
    )
