"""SQL as text: names, constants, parameters."""

from __future__ import annotations

import datetime as _dt
import decimal as _decimal
import math
import re
import uuid as _uuid
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple

from .errors import ConversionError, ProgrammingError
from .values import Interval


def name(text: str) -> str:
    """An identifier in quotes.

    >>> name('a"b')
    '"a""b"'
    """
    return '"' + text.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text constant.

    >>> text("it's")
    "'it''s'"
    """
    if "\x00" in value:
        raise ConversionError("a text cannot hold the character of code 0")
    return "'" + value.replace("'", "''") + "'"


def literal(value: Any) -> Tuple[str, str]:
    """A constant of SQL and its type.

    >>> literal(1.5)
    ("CAST('1.5' AS double precision)", 'double precision')
    """
    module = type(value).__module__
    if module == "numpy" and hasattr(value, "item"):
        value = value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return "NULL", "null"
    if isinstance(value, bool):
        return ("true" if value else "false"), "boolean"
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return (str(value) if value >= 0 else f"({value})"), "bigint"
        return f"CAST('{value}' AS numeric({min(38, len(str(abs(value))))},0))", f"numeric({len(str(abs(value)))},0)"
    if isinstance(value, float):
        shown = "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity") if math.isinf(value) else repr(value)
        return f"CAST('{shown}' AS double precision)", "double precision"
    if isinstance(value, _decimal.Decimal):
        digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
        if not isinstance(exponent, int):
            raise ConversionError(f"{value!r} has no place in a numeric")
        scale = max(0, -exponent)
        precision = max(1, len(digits) + max(0, exponent), scale)
        return f"CAST('{value:f}' AS numeric({precision},{scale}))", f"numeric({precision},{scale})"
    if isinstance(value, str):
        return text(value), "text"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"CAST('\\x{bytes(value).hex()}' AS bytea)", "bytea"
    if isinstance(value, _dt.datetime):
        if value.tzinfo is not None:
            utc = value.astimezone(_dt.timezone.utc).replace(tzinfo=None)
            return f"CAST('{utc.isoformat(sep=' ')}+00' AS timestamptz)", "timestamptz"
        return f"CAST('{value.isoformat(sep=' ')}' AS timestamp)", "timestamp"
    if isinstance(value, _dt.date):
        return f"CAST('{value.isoformat()}' AS date)", "date"
    if isinstance(value, _dt.time):
        return f"CAST('{value.isoformat()}' AS time)", "time"
    if isinstance(value, _dt.timedelta):
        micros = value.seconds * 1_000_000 + value.microseconds
        return f"INTERVAL '{value.days} days {micros} microseconds'", "interval"
    if isinstance(value, Interval):
        return f"INTERVAL '{value.months} months {value.days} days {value.microseconds} microseconds'", "interval"
    if isinstance(value, _uuid.UUID):
        return f"'{value}'", "text"
    if isinstance(value, (list, tuple)):
        parts = [literal(v) for v in value]
        of = next((t for _, t in parts if t != "null"), "bigint")
        return f"CAST(ARRAY[{', '.join(p for p, _ in parts)}] AS {of}[])", f"{of}[]"
    raise ConversionError(f"{value!r} of type {type(value).__name__} has no constant in SQL",
                          hint="db.values(..) or db.relation(..) takes whole columns")


_TOKEN = re.compile(
    r"""(?P<quoted>'(?:[^']|'')*'|[eE]'(?:[^'\\]|\\.|'')*')|(?P<dollar>\$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?P=tag)?\$)"""
    r"""|(?P<name>"(?:[^"]|"")*"|[^\W\d]\w*)|(?P<line>--[^\n]*)|(?P<block>/\*.*?\*/)|(?P<number>\d[\w.]*)"""
    r"""|(?P<param>\$\w+)|(?P<mark>\?)|(?P<other>.)""",
    re.S,
)


def tokens(sql: str) -> Iterator[Tuple[str, str]]:
    """Kinds and texts of a statement's parts, so that quotes and comments are left alone."""
    for match in _TOKEN.finditer(sql):
        yield match.lastgroup or "other", match[0]


def bind(sql: str, params: Any) -> str:
    """The statement with its parameters as constants: a sequence for ``?`` and ``$1``, a mapping
    for ``$name``.

    >>> bind("SELECT ?, '?'", [1])
    "SELECT 1, '?'"
    >>> bind("SELECT $n", {"n": "x"})
    "SELECT 'x'"
    """
    if params is None:
        return sql
    by_name = isinstance(params, Mapping)
    if not by_name and (isinstance(params, (str, bytes)) or not isinstance(params, Sequence)):
        raise ProgrammingError(f"parameters are a sequence or a mapping, not {type(params).__name__}")
    out, used, marks = [], set(), 0
    for kind, part in tokens(sql):
        if kind == "dollar":
            kind = "other"
        if kind == "mark" and not by_name:
            if marks >= len(params):
                raise ProgrammingError(f"there are more ? than the {len(params)} parameters", sqlstate="42P02")
            out.append(literal(params[marks])[0])
            used.add(marks)
            marks += 1
        elif kind == "param":
            key = part[1:]
            if by_name:
                if key not in params:
                    raise ProgrammingError(f"there is no parameter ${key}", sqlstate="42P02",
                                           hint="parameters: " + ", ".join(map(str, params)))
                out.append(literal(params[key])[0])
                used.add(key)
            else:
                if not key.isdigit() or not 1 <= int(key) <= len(params):
                    raise ProgrammingError(f"there is no parameter ${key}", sqlstate="42P02",
                                           hint=f"a sequence of {len(params)} has $1 to ${len(params)}; a mapping has names")
                out.append(literal(params[int(key) - 1])[0])
                used.add(int(key) - 1)
        else:
            out.append(part)
    if len(used) < len(params):
        n = len(params) - len(used)
        raise ProgrammingError(f"{n} of {len(params)} parameters are not used", sqlstate="42P02")
    return "".join(out)


def first_word(sql: str) -> str:
    """The keyword a statement begins with, in capitals."""
    for kind, part in tokens(sql):
        if kind in ("line", "block") or part.isspace():
            continue
        if part == "(":
            continue
        return part.upper() if kind == "name" else part
    return ""


def statements(sql: str) -> int:
    """How many statements a text has."""
    n, open_ = 0, False
    for kind, part in tokens(sql):
        if kind in ("line", "block") or part.isspace():
            continue
        if part == ";":
            n, open_ = n + open_, False
        else:
            open_ = True
    return n + open_


def relations_in(sql: str) -> Iterator[str]:
    """Names that may be relations: those after FROM, JOIN, a comma or INTO, without those of
    WITH."""
    parts = [(k, p) for k, p in tokens(sql) if k not in ("line", "block") and not p.isspace()]
    ctes = set()
    for i, (kind, part) in enumerate(parts):
        begins = i and (parts[i - 1][1].upper() in ("WITH", "RECURSIVE") or parts[i - 1][1] == ",")
        if kind == "name" and begins and _behind_columns(parts, i + 1).upper() == "AS":
            ctes.add(_plain(part))
    seen = set()
    for i, (kind, part) in enumerate(parts[:-1]):
        if part.upper() in ("FROM", "JOIN", "TABLE", "INTO", "SUBSCRIBE") or part in (",", "("):
            after_kind, after = parts[i + 1]
            if after_kind != "name":
                continue
            following = parts[i + 2][1] if i + 2 < len(parts) else ""
            if following in ("(", "."):
                continue
            plain = _plain(after)
            if plain not in ctes and plain not in seen:
                seen.add(plain)
                yield plain


def _behind_columns(parts: Sequence[Tuple[str, str]], at: int) -> str:
    """What stands behind a list of columns in brackets, if one begins here; else what stands
    here."""
    depth = 0
    for _, part in parts[at:]:
        depth += {"(": 1, ")": -1}.get(part, 0)
        if depth == 0 and part != ")":
            return part
    return ""


def _plain(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part.lower()


def shown(sql: str, width: int = 60) -> str:
    """A statement on one line."""
    line = " ".join(sql.split())
    return line if len(line) <= width else line[: width - 2] + ".."


def is_query(sql: str) -> bool:
    """Whether a statement is a question that can be asked again."""
    return first_word(sql) in ("SELECT", "WITH", "VALUES", "TABLE")


_READING = frozenset(
    "SELECT WITH VALUES TABLE SHOW EXPLAIN SET RESET BEGIN START COMMIT END ROLLBACK ABORT SAVEPOINT RELEASE SUBSCRIBE FETCH MOVE "
    "DECLARE CLOSE DISCARD FLUSH".split())
_WRITING = frozenset("INSERT UPDATE DELETE MERGE".split())


def writing(sql: str) -> Optional[str]:
    """The first word of a script that writes, or that may: a statement of another kind, or INSERT
    and the like below WITH and EXPLAIN. None where all statements only read."""
    words: List[str] = []
    for kind, part in [*tokens(sql), ("end", ";")]:
        if part == ";":
            if words and words[0] not in _READING:
                return words[0]
            if words and words[0] in ("WITH", "EXPLAIN", "DECLARE"):
                found = next((w for w in words[1:] if w in _WRITING), None)
                if found:
                    return found
            words = []
        elif kind == "name" and not part.startswith('"'):
            words.append(part.upper())
    return None


def parameter(name: str) -> str:
    """What stands in a text for a value that is given later: NULL with a mark, so that the text
    has types before."""
    return f"/*${name}*/NULL"


def unbound(sql: str) -> Optional[str]:
    """A parameter of the text that has no value yet."""
    if "/*$" not in sql:
        return None
    return next((part[3:-2] for kind, part in tokens(sql) if kind == "block" and part.startswith("/*$")), None)


def given(sql: str, name: str, value: str) -> Optional[str]:
    """The text with a value for a parameter; None where there is no such parameter."""
    mark, is_marked, out = f"/*${name}*/", False, []
    found = False
    for kind, part in tokens(sql):
        if is_marked:
            part, found = value, True
        is_marked = kind == "block" and part == mark
        out.append("" if is_marked else part)
    return "".join(out) if found else None
