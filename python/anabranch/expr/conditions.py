"""``when(..).then(..).otherwise(..)``."""

from __future__ import annotations

from typing import Any, Iterable, Optional

from ..errors import ProgrammingError
from .context import Ctx, Sql
from .node import Unfinished, as_column
from .whole import Expr


class When(Unfinished):
    """``ab.when(..).then(..)``, which ends with ``.otherwise(..)`` or else is NULL."""

    def __init__(self, cases: list, test: Optional[Expr]) -> None:
        self._cases, self._test = cases, test

    def then(self, value: Any) -> "When":
        """The value where the condition is true; a text names a column, as in Polars."""
        if self._test is None:
            raise ProgrammingError("then stands after when")
        return When(self._cases + [(self._test, as_column(value))], None)

    def when(self, *predicates: Any) -> "When":
        """Another condition, for rows where the ones before are not true."""
        return When(self._cases, _both(predicates))

    def otherwise(self, value: Any) -> Expr:
        """The value of all other rows."""
        return self._made(as_column(value))

    def end(self) -> Expr:
        """NULL for all other rows."""
        return self._made(None)

    def alias(self, name: str) -> Expr:
        """The same under another name."""
        return self.end().alias(name)

    def _made(self, otherwise: Optional[Expr]) -> Expr:
        parts = [part for case in self._cases for part in case]
        def text(ctx: Ctx, *made: Sql) -> Sql:
            pairs = [f"WHEN {made[2 * i].sql} THEN {made[2 * i + 1].sql}" for i in range(len(self._cases))]
            last = f" ELSE {made[-1].sql}" if otherwise is not None else ""
            return ctx.sql("CASE " + " ".join(pairs) + last + " END")
        rest = parts[1:] + ([otherwise] if otherwise is not None else [])
        return parts[0]._derive(text, *rest, out=self._cases[0][1]._out)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.end(), name)


def when(*predicates: Any) -> When:
    """A value by conditions: ``ab.when(p).then(x).otherwise(y)``."""
    return When([], _both(predicates))


def _both(predicates: Iterable[Any]) -> Expr:
    parts = [as_column(p) for p in predicates]
    made = parts[0]
    for part in parts[1:]:
        made = made & part
    return made
