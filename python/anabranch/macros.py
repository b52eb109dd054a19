"""Traced aggregates in the text of a statement: each call is written out as sums."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Tuple

from . import sqltext as q
from .errors import SqlSyntaxError

_Tokens = List[Tuple[str, str]]


def expanded(text: str, aggregates: Mapping[str, Any]) -> str:
    """The statement with every call of these aggregates in the form of built-in ones.

    FILTER and OVER behind a call go with every sum in it.
    """
    tokens = list(q.tokens(text))
    if not any(kind == "name" and _plain(part) in aggregates for kind, part in tokens):
        return text
    return "".join(part for _, part in _written_out(tokens, aggregates))


def _written_out(tokens: _Tokens, aggregates: Mapping[str, Any]) -> _Tokens:
    out: _Tokens = []
    at = 0
    while at < len(tokens):
        kind, part = tokens[at]
        opening = _next(tokens, at + 1)
        is_call = kind == "name" and _plain(part) in aggregates and opening is not None and tokens[opening][1] == "("
        if not is_call or opening is None or _is_qualified(tokens, at):
            out.append((kind, part))
            at += 1
            continue
        closing = _closing(tokens, opening)
        arguments = [_text(_written_out(a, aggregates)) for a in _split(tokens[opening + 1:closing])]
        at = closing + 1
        filter_, at = _filter(tokens, at)
        over, at = _over(tokens, at)
        out.append(("other", aggregates[_plain(part)]._sql(arguments, filter_, over)))
    return out


def _plain(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part.lower()


def _text(tokens: _Tokens) -> str:
    return "".join(part for _, part in tokens).strip()


def _next(tokens: _Tokens, at: int) -> Optional[int]:
    """The next token that is neither space nor comment."""
    while at < len(tokens):
        kind, part = tokens[at]
        if kind not in ("line", "block") and not part.isspace():
            return at
        at += 1
    return None


def _is_qualified(tokens: _Tokens, at: int) -> bool:
    return at > 0 and tokens[at - 1][1] == "."


def _closing(tokens: _Tokens, opening: int) -> int:
    depth = 0
    for at in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[at][1], 0)
        if depth == 0:
            return at
    raise SqlSyntaxError("a bracket is not closed")


def _split(tokens: _Tokens) -> List[_Tokens]:
    """Arguments, which commas part."""
    parts: List[_Tokens] = [[]]
    depth = 0
    for kind, part in tokens:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(part, 0)
        if part == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append((kind, part))
    return [] if len(parts) == 1 and not _text(parts[0]) else parts


def _filter(tokens: _Tokens, at: int) -> Tuple[Optional[str], int]:
    word = _next(tokens, at)
    if word is None or tokens[word][1].upper() != "FILTER":
        return None, at
    opening = _next(tokens, word + 1)
    if opening is None or tokens[opening][1] != "(":
        return None, at
    closing = _closing(tokens, opening)
    inside = _text(tokens[opening + 1:closing])
    if not inside.upper().startswith("WHERE"):
        raise SqlSyntaxError("FILTER needs WHERE")
    return f"({inside[5:].strip()})", closing + 1


def _over(tokens: _Tokens, at: int) -> Tuple[Optional[str], int]:
    word = _next(tokens, at)
    if word is None or tokens[word][1].upper() != "OVER":
        return None, at
    opening = _next(tokens, word + 1)
    if opening is None or tokens[opening][1] != "(":
        raise SqlSyntaxError("OVER of a traced aggregate needs its window in brackets", hint="OVER (PARTITION BY ..)")
    closing = _closing(tokens, opening)
    return _text(tokens[opening + 1:closing]), closing + 1
