"""A plan as a picture, and as JSON."""

from __future__ import annotations

import html as _html
import json
from typing import Any, List, Tuple


def as_json(plan: str) -> str:
    """The plan as an object: ``plan`` is a list of steps, each with the steps that it reads."""
    top: List[Any] = []
    remarks: List[str] = []
    stack: List[Tuple[int, Any]] = []
    for line in plan.splitlines():
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        words, _, remark = line.strip().partition("  -- ")
        if not stack and top or words.startswith("-- "):
            remarks.append(line.strip().removeprefix("-- "))
            continue
        step: Any = {"step": words, "remark": remark or None, "inputs": []}
        while stack and stack[-1][0] >= depth:
            stack.pop()
        is_of_the_whole = not stack and top
        if is_of_the_whole:
            remarks.append(line.strip())
            continue
        (stack[-1][1]["inputs"] if stack else top).append(step)
        stack.append((depth, step))
    return json.dumps({"plan": top, "remarks": remarks}, indent=2)


class Graph:
    """A plan drawn as SVG: ``.svg`` is the text; notebooks show it."""

    def __init__(self, plan: str) -> None:
        lines = [line for line in plan.splitlines() if line.strip()]
        row, width = 22, max((len(line) for line in lines), default=10) * 7.5 + 24
        parts = []
        stack: list = []
        for i, line in enumerate(lines):
            depth = len(line) - len(line.lstrip())
            while stack and stack[-1][0] >= depth:
                stack.pop()
            y = 10 + i * row
            if stack:
                px, py = stack[-1][1], stack[-1][2]
                parts.append(f"<path d='M{px + 4} {py + 8} V{y + 4} H{depth * 7.5 + 8}' fill='none' stroke='#8aa'/>")
            x = depth * 7.5 + 12
            parts.append(f"<circle cx='{x - 4}' cy='{y + 4}' r='3' fill='#277'/>")
            parts.append(f"<text x='{x + 4}' y='{y + 8}'>{_html.escape(line.strip())}</text>")
            stack.append((depth, x - 4, y + 4))
        self.svg = (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{20 + row * len(lines)}' "
                    f"font-family='monospace' font-size='12'>{''.join(parts)}</svg>")

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Graph of {self.svg.count('<text')} steps>"
