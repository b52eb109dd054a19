"""Columns by their kind, as ``polars.selectors``: ``ab.selectors.numeric().sum()``."""

from __future__ import annotations

from typing import Any, Callable

from . import types as t
from .expr import Expr, many


class Selector(Expr):
    """A set of columns; ``~``, ``|`` and ``&`` of selectors are selectors.

    >>> import anabranch as ab
    >>> columns = {"a": "bigint", "k": "text"}
    >>> (~ab.selectors.numeric())._select(columns)
    ['k']
    """

    __slots__ = ("_test",)

    def __init__(self, test: Callable[[str, str], bool]) -> None:
        made = many(lambda columns: [name for name, of in columns.items() if test(name, of)])
        super().__init__(made._build, None, select=made._select, roots=True)
        self._test = test

    def __invert__(self) -> "Selector":
        return Selector(lambda name, of: not self._test(name, of))

    def __or__(self, other: Any) -> Any:
        if isinstance(other, Selector):
            return Selector(lambda name, of: self._test(name, of) or other._test(name, of))
        return super().__or__(other)

    def __and__(self, other: Any) -> Any:
        if isinstance(other, Selector):
            return Selector(lambda name, of: self._test(name, of) and other._test(name, of))
        return super().__and__(other)

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Selector):
            return Selector(lambda name, of: self._test(name, of) and not other._test(name, of))
        return super().__sub__(other)


def _of(test: Callable[[str], bool]) -> Selector:
    return Selector(lambda name, of: test(of))


def numeric() -> Selector:
    """Columns of numbers."""
    return _of(t.is_number)


def string() -> Selector:
    """Columns of texts."""
    return _of(t.is_text)


def temporal() -> Selector:
    """Columns of times."""
    return _of(t.is_temporal)


def boolean() -> Selector:
    """Columns of truth values."""
    return _of(lambda of: of == "boolean")


def by_dtype(*types: Any) -> Selector:
    """Columns of these types."""
    wanted = {str(t.sql_type(of)) for of in types}
    return _of(lambda of: of in wanted)


def by_name(*names: str) -> Selector:
    """Columns of these names."""
    return Selector(lambda name, of: name in names)


def starts_with(*prefixes: str) -> Selector:
    """Columns whose names begin so."""
    return Selector(lambda name, of: name.startswith(prefixes))


def ends_with(*suffixes: str) -> Selector:
    """Columns whose names end so."""
    return Selector(lambda name, of: name.endswith(suffixes))


def all() -> Selector:  # noqa: A001 (Polars' name)
    """All columns."""
    return Selector(lambda name, of: True)


