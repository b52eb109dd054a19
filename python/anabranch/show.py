"""Relations shown in place, and as charts."""

from __future__ import annotations

import sys
import time as _time
from typing import Any, Optional

from .display import html, table
from .durations import seconds
from .errors import NotSupportedError, ProgrammingError, needs


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    if shell is None:
        return False
    running = shell.get_ipython()
    return running is not None and type(running).__name__ == "ZMQInteractiveShell"


def show(relation: Any, rows: int, *, every: Any, duration: Any) -> None:
    """Draws the rows again whenever they change; elsewhere prints once."""
    period = seconds(every)
    end = None if duration is None else _time.monotonic() + seconds(duration)
    notebook = _in_notebook()
    if not notebook and not sys.stdout.isatty():
        answer = relation.collect()
        print(table(answer, footer=relation._footer(answer), rows_max=rows))
        return
    handle: Any = None
    lines = 0
    try:
        with relation.changes(snapshot=False) as changes:
            while True:
                answer = relation.collect()
                if notebook:
                    from IPython.display import HTML, display

                    drawn = HTML(html(answer, footer=relation._footer(answer), live=True, rows_max=rows))
                    handle = handle.update(drawn) or handle if handle is not None else display(drawn, display_id=True)
                else:
                    text = table(answer, footer=relation._footer(answer), rows_max=rows)
                    if lines:
                        sys.stdout.write(f"\x1b[{lines}F\x1b[J")
                    sys.stdout.write(text + "\n")
                    sys.stdout.flush()
                    lines = text.count("\n") + 1
                _time.sleep(period)
                while True:
                    left = 3600.0 if end is None else end - _time.monotonic()
                    if left <= 0:
                        return
                    if changes._wait(min(left, 0.5)):
                        break
    except KeyboardInterrupt:
        return


def plot(
    relation: Any, x: str, y: str, *, color: Optional[str] = None, kind: str = "line", window: Any = None,
    every: Any = "250ms",
) -> Any:
    """A chart by Altair of the rows as they are now."""
    kinds = {"line": "mark_line", "bar": "mark_bar", "area": "mark_area", "point": "mark_point"}
    if kind not in kinds:
        raise ProgrammingError(f"kind is line, bar, area or point, not {kind!r}")
    if window is not None:
        raise NotSupportedError("window= needs a live chart", hint="filter the relation")
    for name in (x, y, *([color] if color else [])):
        relation[name]
    try:
        import altair
    except ImportError:
        raise needs("altair", ".plot()") from None
    chart = getattr(altair.Chart(altair.Data(values=relation.to_dicts())), kinds[kind])()
    channels = {"x": f"{x}:{_channel(relation.schema[x])}", "y": f"{y}:{_channel(relation.schema[y])}"}
    if color:
        channels["color"] = f"{color}:{_channel(relation.schema[color])}"
    return chart.encode(**channels)


def _channel(of: str) -> str:
    from .types import is_number, is_temporal

    return "Q" if is_number(of) else "T" if is_temporal(of) else "N"
