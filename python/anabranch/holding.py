"""What Python holds, as relations: frames, arrays, lists, and functions under names of SQL."""

from __future__ import annotations

import weakref
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import data as _data
from . import sqltext as q
from .errors import DuplicateName, ProgrammingError, UnknownName, nearest
from .relation import Relation, Source, Table, View
from .types import schema_columns
from .writing import Keys


class Held:
    """A hidden relation that is dropped with the last Python object over it."""

    __slots__ = ("name", "_finalizer", "__weakref__")

    def __init__(self, engine: Any, name: str, kind: str = "TABLE") -> None:
        self.name = name
        self._finalizer = weakref.finalize(self, engine.post, f"DROP {kind} {q.name(name)}")
        self._finalizer.atexit = False


class Holding:
    """The part of a database that finds relations, and makes them of what Python holds."""

    _engine: Any

    def _kinds(self) -> Dict[str, Tuple[str, List[str]]]:
        return {name: (kind, key) for name, kind, key in self._engine.relations()}

    def _primary_key(self, name: str) -> List[str]:
        return self._kinds().get(name, ("", []))[1]

    def table(self, name: str) -> Any:
        """The table, view or source of that name."""
        kinds = self._kinds()
        if name not in kinds:
            near = nearest(name, [n for n in kinds if not n.startswith("_py_")])
            raise UnknownName(f'relation "{name}" does not exist', sqlstate="42P01",
                              hint=f'did you mean "{near}"?' if near else None)
        kind = kinds[name][0]
        if kind == "Table":
            return Table(self, name)
        if kind == "Source":
            return Source(self, name)
        return View(self, name)

    def view(self, name: str) -> View:
        """The view of that name."""
        found = self.table(name)
        if not isinstance(found, View):
            raise ProgrammingError(f'"{name}" is no view', sqlstate="42809")
        return found

    def relation(self, data: Any, *, copy: Optional[bool] = None, nan_to_null: bool = True) -> Relation:
        """A relation of rows that Python holds: frames, arrays, dicts, lists."""
        if isinstance(data, Relation):
            return data
        return self._captured(_data.native(data, nan_to_null=nan_to_null))

    def values(self, rows: Any, schema: Any = None) -> Relation:
        """A relation of these rows: tuples, dicts, or a dict of columns."""
        if schema is None:
            return self._captured(_data.native(rows))
        columns = schema_columns(schema)
        return self._captured(_data.native(rows, names=list(columns), like=self._like(columns)), columns)

    def _like(self, columns: Mapping[str, str]) -> Any:
        """No rows, with Arrow's types of SQL's."""
        casts = ", ".join(f"CAST(NULL AS {of}) AS {q.name(name)}" for name, of in columns.items())
        return self._engine.describe(f"SELECT {casts}")[1]

    def _captured(self, rows: Any, columns: Optional[Mapping[str, str]] = None) -> Relation:
        """Rows in a hidden table that goes when the last relation over it goes. It is part of no
        transaction."""
        types = dict(zip(rows.names, rows.types)) if columns is None else dict(columns)
        if not types:
            raise ProgrammingError("there are no columns")
        return self._hidden("data", types, rows)

    def _variable_of(self, relation: Relation) -> Relation:
        """A hidden empty table with the columns of a relation: a name for a variable of a loop,
        which hides the table."""
        return self._hidden("variable", relation.schema, None)

    def _hidden(self, what: str, types: Mapping[str, Any], rows: Any) -> Relation:
        name, root = self._fresh(what), self._root
        root._create(name, types, Keys())
        if rows is not None and len(rows):
            root._engine.insert(name, rows)
        holder = Held(root._engine, name)
        schema = root._schema_of(f"SELECT * FROM {q.name(name)}")
        return Relation(self, f"SELECT * FROM {q.name(name)}", from_=q.name(name), holds=[holder], schema=schema)

    # -- functions ---------------------------------------------------------------------------------

    def register(self, name: str, obj: Any) -> None:
        """A frame, a relation or a function of one's own under a name of SQL."""
        if name in self._kinds():
            raise DuplicateName(f'relation "{name}" exists', sqlstate="42P07", hint="choose another name")
        if hasattr(obj, "_register"):
            obj._register(self, name)
            return
        if callable(obj):
            raise ProgrammingError(f"{getattr(obj, '__name__', obj)!r} is no function of SQL yet", hint="@ab.udf makes it one")
        self._scans[name] = self.relation(obj)

    def unregister(self, name: str) -> None:
        """Forgets a name that was registered. Views that call a function go on."""
        known = [d for d in (self._scans, self._functions, self._macros) if name in d]
        if not known:
            raise UnknownName(f'"{name}" is not registered', sqlstate="42P01")
        if name in self._functions:
            self._engine.unregister_function(name)
            self._function_names = {f: n for f, n in self._function_names.items() if n != name}
        for names in known:
            names.pop(name)

    def _add_function(self, name: str, function: Any, native: Any) -> None:
        """Makes a function known to the engine."""
        self._engine.register_function(name, native)
        self._functions[name] = function
        self._function_names[function] = name
        self._macros.pop(name, None)
        self._schemas.clear()

    def _add_macro(self, name: str, aggregate: Any) -> None:
        """Makes an aggregate known that is written as sums in the text of a statement."""
        self._macros[name] = aggregate
        self._schemas.clear()

    def _function_name(self, function: Any) -> str:
        """The name of a function in SQL; one that was not registered gets a name of its own."""
        name = self._function_names.get(function)
        if name is None:
            name = f"_py_{function.name}_{next(self._numbers)}"
            self._add_function(name, function, function._native_for(self))
        return name

    def _expanded(self, text: str) -> str:
        """The statement with traced aggregates written out."""
        if not self._macros:
            return text
        from .macros import expanded

        return expanded(text, self._macros)
