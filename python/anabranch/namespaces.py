"""What can be done with texts, times, lists and structs: Polars' names and meanings."""

from __future__ import annotations

import re
from typing import Any, Optional

from . import sqltext as q
from .durations import parse as parse_duration
from .errors import NotSupportedError, ProgrammingError
from .expr import Ctx, Expr, Sql, _escape, as_operand


class _Namespace:
    def __init__(self, expr: Expr) -> None:
        self._expr = expr

    def _f(self, template: str, *others: Any, type: Any = None) -> Expr:
        return self._expr._f(template, *others, type=type)


class StringNamespace(_Namespace):
    """Texts. Patterns are regular expressions unless ``literal=True``.

    >>> import anabranch as ab
    >>> ab.col("k").str.starts_with("a")
    <Expr starts_with("k", 'a')>
    """

    def contains(self, pattern: Any, *, literal: bool = False) -> Expr:
        """Whether the pattern occurs."""
        if literal:
            return self._f("(strpos({0}, {1}) > 0)", pattern, type="boolean")
        return self._f("({0} ~ {1})", pattern, type="boolean")

    def starts_with(self, prefix: Any) -> Expr:
        """Whether it begins so."""
        return self._f("starts_with({0}, {1})", prefix, type="boolean")

    def ends_with(self, suffix: Any) -> Expr:
        """Whether it ends so."""
        return self._f("(right({0}, length({1})) = {1})", suffix, type="boolean")

    def find(self, pattern: str, *, literal: bool = False) -> Expr:
        """The place of the first match in characters, from 0; NULL without one."""
        if not literal and re.escape(pattern) != pattern and re.search(r"[\\.^$*+?{}\[\]|()]", pattern):
            raise NotSupportedError("find of a pattern is not supported", hint="find(.., literal=True)")
        return self._f("(nullif(strpos({0}, {1}), 0) - 1)", pattern, type="bigint")

    def extract(self, pattern: str, group_index: int = 1) -> Expr:
        """A group of the first match; 0 is the whole of it. NULL without a match."""
        if group_index == 0:
            pattern, group_index = f"({_uncaptured(pattern)})", 1
        return self._f("(regexp_match({0}, {1}))[" + str(int(group_index)) + "]", pattern, type="text")

    def extract_all(self, pattern: str) -> Expr:
        """All matches, as a list."""
        raise NotSupportedError("extract_all is not supported", hint="extract(pattern, 0) for the first match")

    def replace(self, pattern: str, value: str, *, literal: bool = False) -> Expr:
        """The first match replaced; ``$1`` in ``value`` is a group."""
        if literal:
            return self._f(
                "CASE WHEN strpos({0}, {1}) = 0 THEN {0} ELSE left({0}, strpos({0}, {1}) - 1) || {2} || "
                "substr({0}, strpos({0}, {1}) + length({1})) END", pattern, value, type="text")
        return self._f("regexp_replace({0}, {1}, {2})", pattern, _groups(value), type="text")

    def replace_all(self, pattern: str, value: str, *, literal: bool = False) -> Expr:
        """All matches replaced; ``$1`` in ``value`` is a group."""
        if literal:
            return self._f("replace({0}, {1}, {2})", pattern, value, type="text")
        return self._f("regexp_replace({0}, {1}, {2}, 'g')", pattern, _groups(value), type="text")

    def split(self, by: str) -> Expr:
        """The parts between ``by``, as a list."""
        return self._f("string_to_array({0}, {1})", by, type="text[]")

    def slice(self, offset: int, length: Optional[int] = None) -> Expr:
        """Characters from ``offset`` on; a negative one counts from the end."""
        n = "" if length is None else f", {int(length)}"
        if offset >= 0:
            return self._f(f"substr({{0}}, {offset + 1}{n})", type="text")
        if length is None:
            return self._f(f"right({{0}}, {-offset})", type="text")
        return self._f(f"left(right({{0}}, {-offset}), greatest({int(length)} - greatest({-offset} - length({{0}}), 0), 0))", type="text")

    def head(self, n: int) -> Expr:
        """The first ``n`` characters; all but the last ones for negative ``n``."""
        return self._f(f"left({{0}}, {int(n)})", type="text")

    def tail(self, n: int) -> Expr:
        """The last ``n`` characters; all but the first ones for negative ``n``."""
        return self._f(f"right({{0}}, {int(n)})", type="text")

    def len_chars(self) -> Expr:
        """How many characters."""
        return self._f("CAST(length({0}) AS bigint)", type="bigint")

    def len_bytes(self) -> Expr:
        """How many bytes."""
        return self._f("CAST(octet_length({0}) AS bigint)", type="bigint")

    def to_uppercase(self) -> Expr:
        """In capitals."""
        return self._f("upper({0})", type="text")

    def to_lowercase(self) -> Expr:
        """In small letters."""
        return self._f("lower({0})", type="text")

    def to_titlecase(self) -> Expr:
        """Each word with a capital."""
        return self._f("initcap({0})", type="text")

    def strip_chars(self, characters: Optional[str] = None) -> Expr:
        """Without these characters (white space) at both ends."""
        return self._f("btrim({0}, {1})", _stripped(characters), type="text")

    def strip_chars_start(self, characters: Optional[str] = None) -> Expr:
        """Without these characters (white space) at the beginning."""
        return self._f("ltrim({0}, {1})", _stripped(characters), type="text")

    def strip_chars_end(self, characters: Optional[str] = None) -> Expr:
        """Without these characters (white space) at the end."""
        return self._f("rtrim({0}, {1})", _stripped(characters), type="text")

    def strip_prefix(self, prefix: str) -> Expr:
        """Without this beginning, if it is there."""
        return self._f("CASE WHEN starts_with({0}, {1}) THEN substr({0}, length({1}) + 1) ELSE {0} END", prefix, type="text")

    def strip_suffix(self, suffix: str) -> Expr:
        """Without this end, if it is there."""
        if not suffix:
            return self._expr
        return self._f("CASE WHEN right({0}, length({1})) = {1} THEN left({0}, length({0}) - length({1})) ELSE {0} END",
                       suffix, type="text")

    def pad_start(self, length: int, fill_char: str = " ") -> Expr:
        """Filled up at the beginning; longer texts stay."""
        return self._f(f"CASE WHEN length({{0}}) >= {int(length)} THEN {{0}} ELSE lpad({{0}}, {int(length)}, {{1}}) END",
                       fill_char, type="text")

    def pad_end(self, length: int, fill_char: str = " ") -> Expr:
        """Filled up at the end; longer texts stay."""
        return self._f(f"CASE WHEN length({{0}}) >= {int(length)} THEN {{0}} ELSE rpad({{0}}, {int(length)}, {{1}}) END",
                       fill_char, type="text")

    def zfill(self, length: int) -> Expr:
        """Filled up with zeros behind the sign."""
        n = int(length)
        return self._f(
            f"CASE WHEN length({{0}}) >= {n} THEN {{0}} WHEN left({{0}}, 1) IN ('-', '+') THEN "
            f"left({{0}}, 1) || lpad(substr({{0}}, 2), {n - 1}, '0') ELSE lpad({{0}}, {n}, '0') END", type="text")

    def reverse(self) -> Expr:
        """Backwards."""
        return self._f("reverse({0})", type="text")

    def join(self, delimiter: str = "", *, order_by: Any = None) -> Expr:
        """All texts as one: see ``string_agg``."""
        return self._expr.string_agg(delimiter, order_by)

    def like(self, pattern: Any) -> Expr:
        """SQL's LIKE: ``%`` is any text, ``_`` any character."""
        return self._f("({0} LIKE {1})", pattern, type="boolean")

    def ilike(self, pattern: Any) -> Expr:
        """LIKE that takes no care of capitals."""
        return self._f("({0} ILIKE {1})", pattern, type="boolean")

    def to_date(self, format: Optional[str] = None) -> Expr:
        """A date, by a format of strftime (``%Y-%m-%d``)."""
        if format in (None, "%Y-%m-%d"):
            return self._expr.cast("date")
        return self._f("to_date({0}, " + _escape(q.text(template(format))) + ")", type="date")

    def to_datetime(self, format: Optional[str] = None, *, time_zone: Optional[str] = None) -> Expr:
        """A timestamp, by a format of strftime."""
        made = self._expr.cast("timestamp") if format is None else self._f(
            "CAST(to_timestamp({0}, " + _escape(q.text(template(format))) + ") AT TIME ZONE 'UTC' AS timestamp)", type="timestamp")
        return made.dt.replace_time_zone(time_zone) if time_zone else made

    def to_integer(self, *, base: int = 10, strict: bool = True) -> Expr:
        """A whole number."""
        if base != 10:
            raise NotSupportedError("to_integer of another base than 10 is not supported")
        return self._expr.cast("bigint", strict=strict)

    def to_decimal(self, scale: int = 10) -> Expr:
        """An exact decimal."""
        return self._expr.cast(f"numeric(38,{scale})")

    def json_path_match(self, path: str) -> Expr:
        """A value inside a document."""
        raise NotSupportedError("json operators are not supported yet", hint="@ab.udf with json.loads")

    def json_decode(self, dtype: Any) -> Expr:
        """A document as a struct."""
        raise NotSupportedError("json operators are not supported yet", hint="@ab.udf with json.loads")


class TimeNamespace(_Namespace):
    """Dates, times and spans.

    >>> import anabranch as ab
    >>> ab.col("ts").dt.year().sql(ts="timestamp")
    'CAST(extract(year FROM "ts") AS bigint)'
    """

    def _part(self, part: str) -> Expr:
        return self._f(f"CAST(extract({part} FROM {{0}}) AS bigint)", type="bigint")

    def year(self) -> Expr:
        """The year."""
        return self._part("year")

    def month(self) -> Expr:
        """The month, from 1."""
        return self._part("month")

    def day(self) -> Expr:
        """The day of the month, from 1."""
        return self._part("day")

    def hour(self) -> Expr:
        """The hour."""
        return self._part("hour")

    def minute(self) -> Expr:
        """The minute."""
        return self._part("minute")

    def second(self) -> Expr:
        """The whole second."""
        return self._f("CAST(floor(extract(second FROM {0})) AS bigint)", type="bigint")

    def millisecond(self) -> Expr:
        """The milliseconds of the second."""
        return self._f("(CAST(floor(extract(second FROM {0}) * 1000) AS bigint) % 1000)", type="bigint")

    def microsecond(self) -> Expr:
        """The microseconds of the second."""
        return self._f("(CAST(floor(extract(second FROM {0}) * 1000000) AS bigint) % 1000000)", type="bigint")

    def quarter(self) -> Expr:
        """The quarter, from 1."""
        return self._part("quarter")

    def week(self) -> Expr:
        """The ISO week, from 1."""
        return self._part("week")

    def weekday(self) -> Expr:
        """The day of the week: Monday is 1, Sunday 7."""
        return self._part("isodow")

    def ordinal_day(self) -> Expr:
        """The day of the year, from 1."""
        return self._part("doy")

    def iso_year(self) -> Expr:
        """The year of the ISO week."""
        return self._part("isoyear")

    def date(self) -> Expr:
        """The date."""
        return self._f("CAST({0} AS date)", type="date")

    def time(self) -> Expr:
        """The time of day."""
        return self._f("CAST({0} AS time)", type="time")

    def truncate(self, every: Any) -> Expr:
        """The start of the span of this length that it lies in."""
        span = parse_duration(every)
        if span.months and span.micros:
            raise ProgrammingError("a span is of months or of shorter units, not of both")
        units = {1: "month", 3: "quarter", 12: "year"}
        if span.months:
            if span.months not in units:
                raise NotSupportedError(f"truncate({every!r}) is not supported", hint='"1mo", "1q" or "1y"')
            return self._kept(f"date_trunc('{units[span.months]}', {{0}})")
        if every in ("1w",):
            return self._kept("date_trunc('week', {0})")
        origin = "1970-01-05" if span.micros % (7 * 86_400_000_000) == 0 else "1970-01-01"
        return self._kept(f"date_bin({_escape(span.interval())}, {{0}}, TIMESTAMP '{origin} 00:00:00')")

    def _kept(self, template_: str) -> Expr:
        def text(ctx: Ctx, a: Sql) -> Any:
            if a.type == "timestamptz":
                inner = f"({a.sql} AT TIME ZONE 'UTC')"
                return ctx.sql(f"(({template_.format(inner)}) AT TIME ZONE 'UTC')", "timestamptz")
            if a.type == "date":
                return ctx.sql(f"CAST({template_.format(f'CAST({a.sql} AS timestamp)')} AS date)", "date")
            return ctx.sql(template_.format(a.sql), a.type)
        return self._expr._derive(text)

    def offset_by(self, by: Any) -> Expr:
        """Moved by a duration; months keep the day of the month where they can."""
        interval = parse_duration(by).interval()
        def text(ctx: Ctx, a: Sql) -> Any:
            if a.type == "date":
                return ctx.sql(f"CAST({a.sql} + {interval} AS date)", "date")
            return ctx.sql(f"({a.sql} + {interval})", a.type)
        return self._expr._derive(text)

    def epoch(self, time_unit: str = "us") -> Expr:
        """Time since 1970 in ``us``, ``ms``, ``s`` or ``d``, whole."""
        factor = {"ns": None, "us": "1000000", "ms": "1000", "s": "1", "d": None}.get(time_unit)
        if time_unit == "d":
            return self._f("(CAST({0} AS date) - DATE '1970-01-01')", type="bigint")
        if factor is None:
            raise NotSupportedError(f"epoch({time_unit!r}) is not supported", hint="us, ms, s or d")
        def text(ctx: Ctx, a: Sql) -> Any:
            value = f"CAST({a.sql} AS timestamp)" if a.type == "date" else a.sql
            return ctx.sql(f"CAST(floor(extract(epoch FROM {value}) * {factor}) AS bigint)", "bigint")
        return self._expr._derive(text)

    def timestamp(self, time_unit: str = "us") -> Expr:
        """See ``epoch``."""
        return self.epoch(time_unit)

    def strftime(self, format: str) -> Expr:
        """As text, by a format of strftime."""
        return self._f("to_char({0}, " + _escape(q.text(template(format))) + ")", type="text")

    def to_string(self, format: str) -> Expr:
        """See ``strftime``."""
        return self.strftime(format)

    def convert_time_zone(self, time_zone: str) -> Expr:
        """The same instant; the engine keeps UTC, so only ``"UTC"`` is known."""
        if time_zone.upper() != "UTC":
            raise NotSupportedError("columns of time zones other than UTC are not kept",
                                    hint=f"replace_time_zone(None) after sql_expr(\"ts AT TIME ZONE '{time_zone}'\")")
        return self._f("{0}", type="timestamptz")

    def replace_time_zone(self, time_zone: Optional[str]) -> Expr:
        """The same clock face in a zone (an instant then), or without one."""
        if time_zone is None:
            return self._f("({0} AT TIME ZONE 'UTC')", type="timestamp")
        return self._f("({0} AT TIME ZONE " + _escape(q.text(time_zone)) + ")", type="timestamptz")

    def month_start(self) -> Expr:
        """The first day of the month."""
        def text(ctx: Ctx, a: Sql) -> Any:
            if a.type == "date":
                return ctx.sql(f"CAST(date_trunc('month', CAST({a.sql} AS timestamp)) AS date)", "date")
            days = f"CAST(extract(day FROM {a.sql}) AS bigint) - 1"
            return ctx.sql(f"({a.sql} - make_interval(days => CAST({days} AS integer)))", a.type)
        return self._expr._derive(text)

    def month_end(self) -> Expr:
        """The last day of the month."""
        def text(ctx: Ctx, a: Sql) -> Any:
            if a.type != "date":
                raise NotSupportedError("month_end of a timestamp is not supported", hint=".dt.date().dt.month_end()")
            return ctx.sql(f"CAST(date_trunc('month', CAST({a.sql} AS timestamp)) + INTERVAL '1 month' - INTERVAL '1 day' AS date)", "date")
        return self._expr._derive(text)

    def _total(self, micros: int) -> Expr:
        return self._f(f"CAST(trunc(extract(epoch FROM {{0}}) * 1000000 / {micros}) AS bigint)", type="bigint")

    def total_days(self) -> Expr:
        """A span in whole days."""
        return self._total(86_400_000_000)

    def total_hours(self) -> Expr:
        """A span in whole hours."""
        return self._total(3_600_000_000)

    def total_minutes(self) -> Expr:
        """A span in whole minutes."""
        return self._total(60_000_000)

    def total_seconds(self) -> Expr:
        """A span in whole seconds."""
        return self._total(1_000_000)

    def total_milliseconds(self) -> Expr:
        """A span in whole milliseconds."""
        return self._total(1000)

    def total_microseconds(self) -> Expr:
        """A span in microseconds."""
        return self._total(1)


class ListNamespace(_Namespace):
    """Lists. Places count from 0; negative ones from the end.

    >>> import anabranch as ab
    >>> ab.col("a").list.len()
    <Expr CAST(cardinality("a") AS bigint)>
    """

    def len(self) -> Expr:
        """How many elements."""
        return self._f("CAST(cardinality({0}) AS bigint)", type="bigint")

    def get(self, index: int) -> Expr:
        """One element; NULL past the end."""
        place = f"{index + 1}" if index >= 0 else f"(cardinality({{0}}) + {index + 1})"
        return self._f("({0})[" + place + "]")

    def first(self) -> Expr:
        """The first element."""
        return self.get(0)

    def last(self) -> Expr:
        """The last element."""
        return self.get(-1)

    def contains(self, item: Any) -> Expr:
        """Whether it is one of the elements."""
        return self._f("coalesce({1} = ANY({0}), {0} IS NULL AND NULL)", as_operand(item), type="boolean")

    def max(self) -> Expr:
        """The greatest element."""
        return self._f("array_max({0})")

    def min(self) -> Expr:
        """The least element."""
        return self._f("array_min({0})")

    def sum(self) -> Expr:
        """The sum of the elements: see ``explode`` for now."""
        raise NotSupportedError("list.sum is not supported", hint="explode(..), then group_by(..).agg(..)")

    def mean(self) -> Expr:
        """The mean of the elements: see ``explode`` for now."""
        raise NotSupportedError("list.mean is not supported", hint="explode(..), then group_by(..).agg(..)")

    def sort(self, *, descending: bool = False) -> Expr:
        """In order."""
        return self._f("array_sort({0}, 'DESC', 'NULLS FIRST')" if descending else "array_sort({0})")

    def reverse(self) -> Expr:
        """Backwards."""
        return self._f("array_reverse({0})")

    def unique(self) -> Expr:
        """Each element once, in order."""
        return self._f("array_sort(array_distinct({0}))")

    def n_unique(self) -> Expr:
        """How many different elements."""
        return self._f("CAST(cardinality(array_distinct({0})) AS bigint)", type="bigint")

    def join(self, separator: str) -> Expr:
        """The elements as one text."""
        return self._f("array_to_string({0}, {1})", separator, type="text")

    def slice(self, offset: int, length: Optional[int] = None) -> Expr:
        """Elements from ``offset`` on."""
        if offset < 0:
            raise NotSupportedError("a slice from the end is not supported")
        end = "cardinality({0})" if length is None else str(offset + length)
        return self._f("({0})[" + f"{offset + 1}:{end}" + "]")

    def head(self, n: int = 5) -> Expr:
        """The first elements."""
        return self.slice(0, n)

    def concat(self, other: Any) -> Expr:
        """Both lists, one behind the other."""
        return self._f("array_cat({0}, {1})", other)

    def explode(self) -> Expr:
        """A row for each element."""
        return self._f("unnest({0})")

    def eval(self, f: Any) -> Expr:
        """An expression of each element: needs lambdas of the engine."""
        raise NotSupportedError("list.eval is not supported yet", hint="explode(..), then group_by(..).agg(..implode())")


class StructNamespace(_Namespace):
    """Structs."""

    def field(self, name: str) -> Expr:
        """One field."""
        made = self._f("({0})[" + _escape(q.text(name)) + "]")
        return made.alias(name)


def _uncaptured(pattern: str) -> str:
    return re.sub(r"(?<!\\)\((?!\?)", "(?:", pattern)


def _groups(value: str) -> str:
    """Polars' ``$1`` and ``${1}`` as SQL's ``\\1``."""
    escaped = value.replace("\\", "\\\\")
    return re.sub(r"\$\{?(\d)\}?", r"\\\1", escaped).replace("$$", "$")


def _stripped(characters: Optional[str]) -> str:
    return " \t\n\r\x0b\x0c" if characters is None else characters


_CODES = {"Y": "YYYY", "m": "MM", "d": "DD", "H": "HH24", "I": "HH12", "M": "MI", "S": "SS", "f": "US", "j": "DDD",
          "y": "YY", "p": "AM", "b": "Mon", "B": "FMMonth", "a": "Dy", "A": "FMDay", "%": "%", "F": "YYYY-MM-DD",
          "T": "HH24:MI:SS", "G": "IYYY", "V": "IW", "u": "ID"}


def template(format: str) -> str:
    """A format of strftime as one of SQL.

    >>> template("%Y-%m-%d")
    'YYYY-MM-DD'
    """
    out, i = [], 0
    text = ""
    while i < len(format):
        if format[i] == "%" and i + 1 < len(format):
            code = format[i + 1]
            if code not in _CODES:
                raise NotSupportedError(f"%{code} of strftime is not supported", hint="known: " + " ".join("%" + c for c in _CODES))
            if text:
                out.append('"' + text + '"' if any(ch.isalpha() for ch in text) else text)
                text = ""
            out.append(_CODES[code])
            i += 2
        else:
            text += format[i]
            i += 1
    if text:
        out.append('"' + text + '"' if any(ch.isalpha() for ch in text) else text)
    return "".join(out)


