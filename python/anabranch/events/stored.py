"""Events of relations: read when they run, or followed commit by commit by a view.

A view of events holds all of them, or what is in force just before the frontier, which goes with
the watermark of the table, or with the commits.
"""

from __future__ import annotations

from typing import Any, Optional

from ..durations import UNITS, ticks as ticks_of
from ..errors import NotSupportedError, ProgrammingError, unknown_column
from ..types import DataType
from .base import Input
from .whole import Events, of_relation


def events_of(relation: Any, *, time: Optional[str], end: Optional[str], duration: Any, unit: Optional[str], **kw: Any) -> Events:
    """The events of a relation's rows. Those of a relation in the catalog can become a view."""
    stored = getattr(relation, "_name", None) is not None
    if time is None:
        if not stored:
            raise ProgrammingError("the rows have no times", hint='events(time="at")')
        return _contents(relation)
    if time not in relation.schema:
        raise unknown_column(time, relation.schema)
    name = kw.pop("name", None)
    if stored and name is None and not kw and _watermark(relation) == time:
        try:
            return _followed(relation, time, end, duration, unit)
        except ProgrammingError as error:
            # (The catalog knows whether rows stay, also of tables that another process has made.)
            if "events stay" not in error.message:
                raise
    return of_relation(relation, time=time, name=name or "rows", end=end, duration=duration, unit=unit, **kw)


def _watermark(relation: Any) -> Optional[str]:
    """The column of the relation's watermark."""
    for row in relation._db._run("SHOW WATERMARKS").to_dicts():
        values = [str(v) for v in row.values()]
        if values[0] == relation._name:
            return values[1]
    return None


def _followed(relation: Any, time: str, end: Optional[str], duration: Any, unit: Optional[str]) -> Events:
    instants = relation.schema[time].startswith("timestamp")
    micros = 1 if instants else UNITS[unit] if unit is not None else None
    options: dict = {}
    if end is not None:
        options["end"] = end
    elif duration is not None:
        options["constant_duration"] = ticks_of(duration, micros, what="the duration")
    frame = relation._db._engine.events(relation._name, options)
    columns = {n: DataType(of) for n, of in relation.schema.items()}
    given = Input(relation._name, columns, relation.schema._arrow, time, end, instants, micros)
    return Events(frame, {relation._name: given}, micros, instants, {relation._name: relation})


def _contents(relation: Any) -> Events:
    frame = relation._db._engine.contents(relation._name)
    columns = {n: DataType(of) for n, of in relation.schema.items()}
    given = Input(relation._name, columns, relation.schema._arrow, None, None, True, 1)
    return Events(frame, {relation._name: given}, 1, True, {relation._name: relation})


def database_of(events: Events) -> Any:
    """The database whose relations all inputs of the events are.

    Raises ``NotSupportedError`` where an input is no relation of a database: such events have no
    rows that a view could follow.
    """
    databases = []
    for name in events._inputs:
        relation = events._bound.get(name)
        if relation is None or getattr(relation, "_name", None) != name:
            raise NotSupportedError(f'input "{name}" is no relation that events can follow',
                                    hint='create_table(.., watermark=("at", 0), append_only=True), then .events(time="at")')
        databases.append(relation._db)
    if any(db._root is not databases[0]._root for db in databases):
        raise ProgrammingError("the events are of two databases", hint="create the tables in one")
    return databases[0]
