"""Exceptions: who must act decides the class, and ``sqlstate`` says what happened.

Every error has ``message``, ``sqlstate``, ``kind``, ``detail``, ``hint``, ``position`` (of
characters in ``statement``, from 0), ``line`` and ``column`` (from 1). ``str()`` is the message,
the line with a caret, the detail and the hint.

>>> import anabranch as ab
>>> try:
...     ab.connect().sql("SELECT 1 / 0").fetchall()
... except ab.DataError as error:
...     print(error.sqlstate)
22012
"""

from __future__ import annotations

import difflib
from typing import Any, Iterable, Optional

__all__ = [
    "Warning", "SnapshotWarning", "Error", "InterfaceError", "DatabaseError", "DataError", "RowError", "ConversionError",
    "IntegrityError", "NotSupportedError", "ProgrammingError", "SqlSyntaxError", "UnknownName", "DuplicateName",
    "TypeMismatch", "GroupingError", "TraceError", "OperationalError", "SerializationError", "OutOfMemory",
    "Cancelled", "TimedOut", "LockedError", "ReadOnlyError", "UnavailableError", "InternalError",
]


class Warning(Exception):  # noqa: A001 (the name is PEP 249's)
    """Something worth knowing; never raised."""


class SnapshotWarning(UserWarning):
    """A snapshot could not be written. The log has everything, and grows until one can be."""


class Error(Exception):
    """What all exceptions of this package are."""

    default_sqlstate = "XX000"

    def __init__(
        self,
        message: str = "",
        *,
        sqlstate: Optional[str] = None,
        kind: str = "invalid",
        detail: Optional[str] = None,
        hint: Optional[str] = None,
        position: Optional[int] = None,
        statement: Optional[str] = None,
        traceback: Optional[str] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate or self.default_sqlstate
        self.kind = kind
        self.detail = detail
        self.hint = hint
        self.position = position
        self.statement = statement
        self.traceback = traceback

    @property
    def line(self) -> Optional[int]:
        """Line of ``statement``, from 1."""
        if self.position is None or self.statement is None:
            return None
        return self.statement.count("\n", 0, self.position) + 1

    @property
    def column(self) -> Optional[int]:
        """Column in the line, from 1."""
        if self.position is None or self.statement is None:
            return None
        return self.position - (self.statement.rfind("\n", 0, self.position) + 1) + 1

    def __str__(self) -> str:
        parts = [self.message]
        if self.statement is not None and self.line is not None and self.column is not None:
            lines = self.statement.splitlines() or [""]
            label = f"LINE {self.line}: "
            parts.append(label + (lines[self.line - 1] if self.line <= len(lines) else ""))
            parts.append(" " * (len(label) + self.column - 1) + "^")
        if self.detail:
            parts.append(f"detail: {self.detail}")
        if self.hint:
            parts.append(f"hint: {self.hint}")
        if self.traceback:
            parts.append(self.traceback.rstrip())
        return "\n".join(parts)

    def __reduce__(self) -> Any:
        return (_rebuilt, (type(self), self.message, self.__dict__))


def _rebuilt(kind: type, message: str, attributes: dict) -> Error:
    error = kind(message)
    error.__dict__.update(attributes)
    return error


class InterfaceError(Error):
    """The object cannot be used (any more, or here): closed, another process, a call from
    within."""

    default_sqlstate = "08003"


class DatabaseError(Error):
    """Something about the data or the statement."""


class DataError(DatabaseError):
    """Values are at fault."""

    default_sqlstate = "22000"


class RowError(DataError):
    """Rows that cannot be computed are in what was read. The view is well again when they are
    gone."""


class ConversionError(DataError):
    """A Python value does not fit its column."""

    default_sqlstate = "22018"


class IntegrityError(DatabaseError):
    """A constraint would be broken; nothing was changed."""

    default_sqlstate = "23000"


class NotSupportedError(DatabaseError):
    """This is not there (yet); the hint says what to do instead."""

    default_sqlstate = "0A000"


class ProgrammingError(DatabaseError):
    """Change the statement or the argument."""

    default_sqlstate = "42000"


class SqlSyntaxError(ProgrammingError):
    """The text is not SQL."""

    default_sqlstate = "42601"


class UnknownName(ProgrammingError):
    """No relation, column or function of that name; the hint has the nearest."""

    default_sqlstate = "42703"


class DuplicateName(ProgrammingError):
    """The name is taken, or written twice."""

    default_sqlstate = "42701"


class TypeMismatch(ProgrammingError):
    """Types do not fit together; cast one side."""

    default_sqlstate = "42804"


class GroupingError(ProgrammingError):
    """An aggregate beside a plain column."""

    default_sqlstate = "42803"


class TraceError(ProgrammingError, TypeError):
    """A Python function did what an expression cannot."""

    default_sqlstate = "42P13"


class OperationalError(DatabaseError):
    """Something outside the statement: retry, or repair it."""

    default_sqlstate = "58000"


class SerializationError(OperationalError):
    """Another transaction was first; run it again."""

    default_sqlstate = "40001"


class OutOfMemory(OperationalError):
    """The memory limit is reached."""

    default_sqlstate = "53200"


class Cancelled(OperationalError):
    """The statement was interrupted; data are unharmed."""

    default_sqlstate = "57014"


class TimedOut(OperationalError):
    """It took longer than allowed."""

    default_sqlstate = "57014"


class LockedError(OperationalError):
    """Another process has it."""

    default_sqlstate = "55P03"


class ReadOnlyError(OperationalError):
    """It was opened for reading only."""

    default_sqlstate = "25006"


class UnavailableError(OperationalError):
    """A file or a network did not answer."""

    default_sqlstate = "58030"


class InternalError(DatabaseError):
    """A bug of ours; please report it."""

    default_sqlstate = "XX000"


_BY_STATE = {
    "42601": SqlSyntaxError, "42P01": UnknownName, "42703": UnknownName, "42883": UnknownName, "42704": UnknownName,
    "42P07": DuplicateName, "42701": DuplicateName, "42710": DuplicateName, "42712": DuplicateName,
    "42804": TypeMismatch, "42846": TypeMismatch, "42803": GroupingError, "42P13": TraceError,
    "40001": SerializationError, "53200": OutOfMemory, "57014": Cancelled, "55P03": LockedError,
    "25006": ReadOnlyError, "58030": UnavailableError, "08006": UnavailableError, "08003": InterfaceError,
    "22018": ConversionError, "21000": ProgrammingError, "2BP01": ProgrammingError,
}
_BY_CLASS = {
    "22": DataError, "23": IntegrityError, "0A": NotSupportedError, "42": ProgrammingError, "08": OperationalError,
    "53": OperationalError, "54": OperationalError, "55": OperationalError, "57": OperationalError,
    "58": OperationalError, "XX": InternalError, "40": OperationalError, "25": OperationalError,
}
_BY_KIND = {
    "invalid": ProgrammingError, "data": DataError, "unavailable": UnavailableError, "closed": InterfaceError,
    "cancelled": Cancelled, "internal": InternalError,
}


def class_of(kind: str, sqlstate: str) -> type:
    """The exception for an error of the engine."""
    if kind in ("cancelled", "closed", "internal"):
        return _BY_KIND[kind]
    return _BY_STATE.get(sqlstate) or _BY_CLASS.get(sqlstate[:2]) or _BY_KIND.get(kind, DatabaseError)


def from_engine(
    kind: str,
    sqlstate: str,
    message: str,
    detail: Optional[str],
    hint: Optional[str],
    position: Optional[int],
    statement: Optional[str],
) -> Error:
    """The exception for an error of the engine; ``position`` is one of bytes."""
    if position is not None and statement is not None:
        position = len(statement.encode()[:position].decode(errors="ignore"))
    message, trace = _untraced(message)
    chosen = class_of(kind, sqlstate)
    if trace is not None:
        chosen = RowError
    if kind == "data" and ("rows have errors" in message or "row has errors" in message or "row has an error" in message):
        chosen = RowError
    return chosen(
        message, sqlstate=sqlstate or None, kind=kind, detail=detail, hint=hint, position=position,
        statement=statement, traceback=trace,
    )


def _untraced(message: str) -> tuple:
    """A message without the traceback of Python that the native layer has put into it, and the
    traceback."""
    head, fence, rest = message.partition("\x1f")
    if not fence:
        return message, None
    trace, _, tail = rest.partition("\x1f")
    return head + tail, trace.replace("\x1e", "\n")


def nearest(name: str, known: Iterable[str]) -> Optional[str]:
    """The known name that is most like ``name``, if one is."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return found[0] if found else None


def unknown_column(name: str, known: Iterable[str], *, of: str = "") -> UnknownName:
    """The error for a column that is not there."""
    known = list(known)
    near = nearest(name, known)
    if not name.isidentifier() and any(ch in name for ch in "<>=+*/() "):
        hint = f"for an expression write ab.sql_expr({name!r})"
    elif near:
        hint = f'did you mean "{near}"?'
    else:
        hint = "columns: " + ", ".join(known[:20])
    return UnknownName(f'no column "{name}"{of}', hint=hint)


def needs(package: str, method: str) -> ModuleNotFoundError:
    """The error for an optional package that is absent."""
    return ModuleNotFoundError(f"{method} needs {package}: pip install {package}", name=package)
