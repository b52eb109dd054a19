"""Names made of the column's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from .node import DEFAULT_NAME, made

if TYPE_CHECKING:
    from .whole import Expr


class Names:
    """Names made of the column's own."""

    def __init__(self, expr: "Expr") -> None:
        self._expr = expr

    def _with(self, f: Callable[[str], str]) -> "Expr":
        expr = self._expr
        named = made(expr._build, None, agg=expr._agg, select=expr._select, window=expr._window, roots=expr._roots)
        if expr._select is None:
            return named.alias(f(expr._out or DEFAULT_NAME))
        named._value = f
        return named

    def prefix(self, prefix: str) -> "Expr":
        """The name with a prefix."""
        return self._with(lambda name: prefix + name)

    def suffix(self, suffix: str) -> "Expr":
        """The name with a suffix."""
        return self._with(lambda name: name + suffix)

    def keep(self) -> "Expr":
        """The name as it was."""
        return self._expr

    def map(self, f: Callable[[str], str]) -> "Expr":
        """The name by a function."""
        return self._with(f)
