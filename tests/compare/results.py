"""Reads rows printed as JSON and compares them, as multisets, with rows of another engine."""

import datetime
import decimal
import json
import math
from collections.abc import Iterator


def json_values(text: str) -> Iterator[dict]:
    """The objects in a text of JSON values one after the other; arrays are taken apart. Other lines
    are skipped."""
    decoder = json.JSONDecoder(parse_float=decimal.Decimal)
    position = 0
    while position < len(text):
        if text[position] not in "[{":
            end = position if text[position].isspace() else text.find("\n", position)
            position = len(text) if end < 0 else end + 1
            continue
        value, position = decoder.raw_decode(text, position)
        yield from value if isinstance(value, list) else [value]


def canonical(value: object) -> object:
    """A value in the form both sides share: numbers as Decimal, everything else as text, NULL as
    None."""
    if value is None or isinstance(value, (bool, decimal.Decimal)):
        return value
    if isinstance(value, int):
        return decimal.Decimal(value)
    if isinstance(value, float):
        return decimal.Decimal(repr(value)) if math.isfinite(value) else str(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat().replace("T", " ")
    text = str(value)
    try:
        return decimal.Decimal(text)
    except decimal.InvalidOperation:
        return text.replace("T", " ") if text[:4].isdigit() and "T" in text[10:11] else text


def same(left: object, right: object, relative: float) -> bool:
    """Whether two canonical values agree: text exactly, numbers within `relative` (0 means
    exactly).

    Where `relative` allows a difference, so is one unit in the last place of `right`: an average of
    decimals is a decimal, rounded to its scale.
    """
    if not isinstance(left, decimal.Decimal) or not isinstance(right, decimal.Decimal):
        return left == right
    if left == right:
        return True
    scale = max(abs(left), abs(right))
    exponent = right.as_tuple().exponent
    last_place = decimal.Decimal(1).scaleb(exponent) if isinstance(exponent, int) and exponent < 0 else 0
    return relative > 0 and abs(left - right) <= max(scale * decimal.Decimal(relative), last_place)


def differences(expected: list[dict], actual: list[dict], relative: float, shown: int = 5) -> list[str]:
    """What differs between two multisets of rows, in words; empty when nothing does. Columns go by
    name, order is free.

    Rows are paired in the order of their cells that are compared exactly, then of their numbers, so
    that small differences in numbers do not change the pairing.
    """
    if expected and actual and list(expected[0]) != list(actual[0]):
        return [f"columns: expected {list(expected[0])}, got {list(actual[0])}"]
    left, right = (sorted(([canonical(cell) for cell in row.values()] for row in rows), key=_order) for rows in (expected, actual))
    found = [] if len(left) == len(right) else [f"rows: expected {len(left)}, got {len(right)}"]
    for one, other in zip(left, right):
        if not all(same(a, b, relative) for a, b in zip(one, other)):
            found.append(f"expected {[str(cell) for cell in one]}, got {[str(cell) for cell in other]}")
    return found if len(found) <= shown else found[:shown] + [f"and {len(found) - shown} more"]


def _order(row: list) -> tuple:
    """Sort key of a canonical row: exact cells first, numbers after them and rounded."""
    exact = tuple("" if isinstance(cell, decimal.Decimal) else str(cell) for cell in row)
    numbers = tuple(round(cell, 4) if isinstance(cell, decimal.Decimal) else decimal.Decimal(0) for cell in row)
    return exact, numbers
