"""Answers as tables: for terminals, and for notebooks."""

from __future__ import annotations

import html as _html
import shutil
import unicodedata
from typing import Any, List, Optional

ROWS_MAX = 20


def _cells(rows: Any, n: int) -> List[List[str]]:
    return [["NULL" if cell is None else cell.replace("\n", "\\n") for cell in row] for row in rows._native.texts(n)]


def _width(text: str) -> int:
    """Columns of a terminal that a text takes: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(ch) in "WF" for ch in text)
    return len(text) + wide - sum(unicodedata.combining(ch) > 0 for ch in text)


def _cut(text: str, width: int) -> str:
    """The text, or its beginning and a mark where it is wider."""
    if _width(text) <= width:
        return text
    while text and _width(text) > width - 1:
        text = text[:-1]
    return text + "…"


def table(rows: Any, *, footer: str = "", rows_max: int = ROWS_MAX, width: Optional[int] = None) -> str:
    """A table of at most ``rows_max`` rows, types below names."""
    names, types = rows.columns, [str(of) for of in rows.dtypes]
    if not names:
        return footer
    cells = _cells(rows, rows_max)
    width = width or shutil.get_terminal_size((100, 24)).columns
    columns = list(zip(names, types, *cells)) if cells else list(zip(names, types))
    widths = [min(40, max(map(_width, column))) for column in columns]
    shown = len(widths)
    while shown > 1 and sum(widths[:shown]) + 3 * shown + 1 > width:
        shown -= 1
    if shown == 1:
        widths[0] = max(4, min(widths[0], width - 4))
    def line(parts: List[str], numbers: bool = False) -> str:
        out = []
        for part, w, of in zip(parts[:shown], widths, types):
            text = _cut(part, w)
            space = " " * (w - _width(text))
            out.append(space + text if numbers and _right(of) else text + space)
        return "│ " + " │ ".join(out) + " │"
    bars = ["─" * (w + 2) for w in widths[:shown]]
    out = ["┌" + "┬".join(bars) + "┐", line(names), line(types), "├" + "┼".join(bars) + "┤"]
    out += [line(row, True) for row in cells]
    out.append("└" + "┴".join(bars) + "┘")
    notes = []
    if len(rows) > len(cells):
        notes.append(f"{len(cells)} of {len(rows)} rows shown")
    if shown < len(names):
        notes.append(f"columns left out: {', '.join(names[shown:])}")
    if footer:
        notes.append(footer)
    return "\n".join(out + notes)


def _right(of: str) -> bool:
    from .types import is_number

    return is_number(of)


def html(rows: Any, *, footer: str = "", live: bool = False, rows_max: int = ROWS_MAX) -> str:
    """The same for notebooks; everything is escaped."""
    side = ["right" if _right(of) else "left" for of in rows.dtypes]
    head = "".join(f"<th style='text-align:{at}'>{_html.escape(name)}<br><small>{_html.escape(of)}</small></th>"
                   for name, of, at in zip(rows.columns, rows.dtypes, side))
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:{at};white-space:nowrap'>{_html.escape(cell)}</td>"
                         for cell, at in zip(row, side)) + "</tr>"
        for row in _cells(rows, rows_max))
    badge = "<span style='color:#0a7'>●</span> " if live else ""
    more = f"{min(len(rows), rows_max)} of {len(rows)} rows shown · " if len(rows) > rows_max else ""
    return (f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<small>{badge}{more}{_html.escape(footer)}</small>")
