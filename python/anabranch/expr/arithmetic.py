"""Operators, casts and rounding as Polars means them, in SQL."""

from __future__ import annotations

from .. import types as t
from ..errors import TypeMismatch
from .context import Ctx, Sql


def _add(ctx: Ctx, a: Sql, b: Sql) -> Sql:
    if t.is_text(a.type) or t.is_text(b.type):
        if not (t.is_text(a.type) and t.is_text(b.type)):
            raise TypeMismatch(f"{a.type} + {b.type} is not defined", hint=".cast(str) one side, or ab.format")
        return ctx.sql(f"({a.sql} || {b.sql})", "text")
    return ctx.sql(f"({a.sql} + {b.sql})", "double precision" if "double precision" in (a.type, b.type) and t.is_number(a.type) and t.is_number(b.type) else None)


def _as_float(a: Sql) -> str:
    return a.sql if t.is_float(a.type) else f"CAST({a.sql} AS double precision)"


def _divide(ctx: Ctx, a: Sql, b: Sql) -> Sql:
    if t.is_integer(a.type) and t.is_integer(b.type):
        return ctx.sql(f"(CAST({a.sql} AS double precision) / {b.sql})", "double precision")
    return ctx.sql(f"({a.sql} / {b.sql})", None)


def _floor_divide(ctx: Ctx, a: Sql, b: Sql) -> Sql:
    if t.is_integer(a.type) and t.is_integer(b.type):
        wrong = f"CASE WHEN {a.sql} % {b.sql} <> 0 AND ({a.sql} < 0) <> ({b.sql} < 0) THEN 1 ELSE 0 END"
        # (A sum of bigints is a numeric where it is divided.)
        quotient = f"CAST({a.sql} AS bigint) / CAST({b.sql} AS bigint)"
        return ctx.sql(f"({quotient} - {wrong})", "bigint")
    return ctx.sql(f"floor({a.sql} / {b.sql})", None)


def _modulo(ctx: Ctx, a: Sql, b: Sql) -> Sql:
    wrong = f"CASE WHEN {a.sql} % {b.sql} <> 0 AND ({a.sql} < 0) <> ({b.sql} < 0) THEN {b.sql} ELSE 0 END"
    return ctx.sql(f"({a.sql} % {b.sql} + {wrong})", "bigint" if t.is_integer(a.type) and t.is_integer(b.type) else None)


def _power(ctx: Ctx, a: Sql, b: Sql) -> Sql:
    whole = t.is_integer(a.type) and t.is_integer(b.type)
    if whole and b.sql.isdigit() and 1 <= int(b.sql) <= 16:
        return ctx.sql("(" + " * ".join([a.sql] * int(b.sql)) + ")", "bigint")
    power = f"power({_as_float(a)}, {_as_float(b)})"
    return ctx.sql(f"CAST({power} AS bigint)", "bigint") if whole else ctx.sql(power, "double precision")


def _compared(ctx: Ctx, op: str, a: Sql, b: Sql) -> Sql:
    return ctx.sql(f"({a.sql} {op} {b.sql})", "boolean")


def _logic(ctx: Ctx, word: str, sign: str, a: Sql, b: Sql) -> Sql:
    if a.type in ("boolean", "null") or b.type == "boolean":
        return ctx.sql(f"({a.sql} {word} {b.sql})", "boolean")
    if not (t.is_integer(a.type) and t.is_integer(b.type)):
        raise TypeMismatch(f"{sign} of {a.type} and {b.type} is not defined", hint="write brackets: (a > 1) & (b > 2)")
    return ctx.sql(f"({a.sql} {sign} {b.sql})", a.type)


def _cast(a: Sql, wanted: str, strict: bool) -> str:
    word = "CAST" if strict else "TRY_CAST"
    if t.is_integer(wanted):
        if t.is_float(a.type) or t.is_decimal(a.type):
            return f"{word}(trunc({a.sql}) AS {wanted})"
        if a.type == "boolean":
            return f"CASE WHEN {a.sql} THEN 1 WHEN NOT {a.sql} THEN 0 END"
    if wanted == "boolean" and t.is_number(a.type):
        return f"({a.sql} <> 0)"
    if t.is_float(wanted) and a.type == "boolean":
        return f"CAST(CASE WHEN {a.sql} THEN 1 WHEN NOT {a.sql} THEN 0 END AS {wanted})"
    if wanted == "text" and t.is_float(a.type):
        return (f"CASE WHEN {a.sql} = trunc({a.sql}) AND abs({a.sql}) < 1e15 THEN CAST({a.sql} AS text) || '.0' "
                f"ELSE CAST({a.sql} AS text) END")
    if wanted == "text" and a.type == "timestamp":
        return f"to_char({a.sql}, 'YYYY-MM-DD HH24:MI:SS.US')"
    return f"{word}({a.sql} AS {wanted})"


def _round(a: Sql, decimals: int, mode: str) -> str:
    if t.is_integer(a.type):
        return a.sql
    if t.is_decimal(a.type):
        if mode == "half_away_from_zero":
            return f"round({a.sql}, {decimals})"
        scale = 10 ** decimals
        y = f"({a.sql} * {scale})"
        return (f"round(CASE WHEN abs({y} - trunc({y})) = 0.5 THEN 2 * round({y} / 2, 0) ELSE round({y}, 0) END / {scale}, {decimals})")
    y = a.sql if decimals == 0 else f"({a.sql} * CAST('{10.0 ** decimals!r}' AS double precision))"
    if mode == "half_to_even":
        rounded = (f"CASE WHEN abs({y} - trunc({y})) = 0.5 THEN 2 * trunc(({y} + sign({y}) * 0.5) / 2) ELSE round({y}) END")
        # (Of two neighbours of a half the even one: half of the one away from zero, cut, and
        # doubled.)
        rounded = f"CASE WHEN abs({y} - trunc({y})) = 0.5 THEN 2 * round({y} / 2) ELSE round({y}) END"
    else:
        rounded = f"(sign({y}) * floor(abs({y}) + 0.5))"
    return rounded if decimals == 0 else f"({rounded} / CAST('{10.0 ** decimals!r}' AS double precision))"
