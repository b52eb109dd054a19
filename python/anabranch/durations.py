"""Durations in Polars' language: ``"1h30m"``, a ``timedelta``, or a number of ticks."""

from __future__ import annotations

import datetime as _dt
import re
from typing import Any, NamedTuple, Optional

from .errors import ProgrammingError

_MICROS = {"us": 1, "ms": 1000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000,
           "w": 7 * 86_400_000_000}
_MONTHS = {"mo": 1, "q": 3, "y": 12}


class Duration(NamedTuple):
    """Months and microseconds; ``ticks`` is set for a bare number."""

    months: int
    micros: int
    ticks: Optional[int] = None

    def interval(self) -> str:
        """As a literal of SQL."""
        parts = []
        if self.months:
            parts.append(f"{self.months} months")
        if self.micros or not parts:
            days, rest = divmod(abs(self.micros), 86_400_000_000)
            sign = "-" if self.micros < 0 else ""
            if days:
                parts.append(f"{sign}{days} days")
            if rest or not parts:
                parts.append(f"{sign}{rest} microseconds")
        return "INTERVAL '" + " ".join(parts) + "'"


def parse(value: Any, *, what: str = "a duration") -> Duration:
    """A duration of text, ``timedelta`` or ticks.

    >>> parse("1h30m").micros
    5400000000
    >>> parse("1mo").months
    1
    """
    if isinstance(value, bool):
        raise ProgrammingError(f"{what} cannot be {value!r}", sqlstate="22023")
    if isinstance(value, int):
        return Duration(0, value, value)
    if isinstance(value, _dt.timedelta):
        return Duration(0, (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds)
    if not isinstance(value, str):
        raise ProgrammingError(f"{what} cannot be {value!r}", sqlstate="22023", hint='write "10s", a timedelta or ticks')
    text = value.strip()
    sign = -1 if text.startswith("-") else 1
    rest = text.lstrip("+-")
    parts = re.findall(r"(\d+)(ns|us|ms|mo|s|m|h|d|w|q|y)", rest)
    if not parts or "".join(n + u for n, u in parts) != rest:
        raise ProgrammingError(f"{what} cannot be {value!r}", sqlstate="22023",
                               hint='a duration is numbers with ns us ms s m h d w mo q y: "1h30m"')
    months = micros = 0
    for number, unit in parts:
        if unit == "ns":
            if int(number) % 1000:
                raise ProgrammingError(f"{what} {value!r} is finer than a microsecond", sqlstate="22023")
            micros += int(number) // 1000
        elif unit in _MONTHS:
            months += int(number) * _MONTHS[unit]
        else:
            micros += int(number) * _MICROS[unit]
    return Duration(sign * months, sign * micros)


def seconds(value: Any) -> float:
    """A wall-clock time in seconds; a number is one of seconds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    parsed = parse(value)
    if parsed.months:
        raise ProgrammingError("months have no fixed length", sqlstate="22023")
    return parsed.micros / 1e6


def ticks(value: Any, unit_micros: Optional[int], *, what: str = "a duration") -> int:
    """A duration in ticks of a timeline; ``unit_micros`` is what one tick is, None when nobody
    said."""
    parsed = parse(value, what=what)
    if parsed.ticks is not None:
        return parsed.ticks
    if parsed.months:
        raise ProgrammingError("months have no fixed ticks", sqlstate="22023",
                               hint='write "30d", or group_by_dynamic on a relation')
    if unit_micros is None:
        raise ProgrammingError(f"{what} {value!r} needs the length of a tick", sqlstate="22023",
                               hint='give unit="s" to Events.input, or write a number of ticks')
    if parsed.micros % unit_micros:
        raise ProgrammingError(f"{what} {value!r} is finer than a tick", sqlstate="22023")
    return parsed.micros // unit_micros


UNITS = {"us": 1, "ms": 1000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
