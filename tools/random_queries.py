#!/usr/bin/env python3
"""Asks random queries of PostgreSQL and of a running server, also as views kept through changes,
and compares the answers.

Usage: python tools/random_queries.py --port 5432 [--seed 1] [--batches 100] [--log FILE] (needs
psycopg)

A batch has tables with random rows of all types, and some twenty queries: joins, subqueries
correlated three deep, windows, set operations, aggregates, functions of every chapter. Each query
is a materialized view, made before the rows come; then rows are inserted, updated and deleted, and
after each round the view and the query asked anew are both compared with PostgreSQL's answer. What
differs is printed with its seed; `--batch N --query M` runs one again. Refusals are counted by
their messages, and so are queries that fail in PostgreSQL and are answered here. Exit status 1 if
an answer differs.

Numbers are compared with a relative error of 1e-9, since means of whole numbers are floats here;
rows are compared as bags.
"""

import argparse
import collections
import decimal
import pathlib
import random
import re
import sys
import time

import psycopg

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from slt_expect import server  # noqa: E402

COLUMNS = {
    "a": [("id", "int"), ("i", "int"), ("l", "big"), ("t", "text"), ("n", "num"), ("d", "date")],
    "b": [("id", "int"), ("i", "int"), ("f", "float"), ("t", "text"), ("s", "ts"), ("o", "bool")],
    "c": [("id", "int"), ("l", "big"), ("n", "num"), ("m", "numeric"), ("v", "interval"), ("o", "bool")],
    "e": [("id", "int"), ("i", "int"), ("h", "small"), ("r", "ints"), ("j", "json"), ("z", "tz"), ("d", "date")],
}
NAMES = {
    "int": "integer", "big": "bigint", "small": "smallint", "text": "text", "num": "numeric(8,2)", "numeric": "numeric",
    "float": "double precision", "date": "date", "ts": "timestamp", "tz": "timestamptz", "bool": "boolean", "interval": "interval",
    "ints": "integer[]", "json": "jsonb",
}
NUMBERS = ["int", "big", "small", "num", "numeric", "float"]
WHOLE = ["int", "big", "small"]
ORDERED = ["int", "big", "small", "num", "numeric", "float", "text", "date", "ts", "tz", "interval", "bool"]
RANK = {"small": 0, "int": 1, "big": 2, "num": 3, "numeric": 4, "float": 5}
WORDS = ["", "a", "ab", "abc", "Abc", "b", "ba", "x1", "1", "12", "a%", "a_b", "äö", " a ", "zz"]


class Chance(random.Random):
    """Random choices by weight."""

    def one(self, *weighted):
        values, weights = weighted[0::2], weighted[1::2]
        return self.choices(values, weights)[0]


def literal(chance: Chance, kind: str) -> str:
    """A constant of a type, as text that both sides read alike."""
    pick = chance.random
    if pick() < 0.05 and kind != "json":
        return f"NULL::{NAMES[kind]}"
    if kind == "int":
        return str(chance.randint(-3, 6))
    if kind == "big":
        return f"{chance.randint(-3, 6)}::bigint"
    if kind == "small":
        return f"{chance.randint(0, 5)}::smallint"
    if kind == "num":
        return f"{chance.randint(-300, 900) / 100:.2f}::numeric(8,2)"
    if kind == "numeric":
        return f"{chance.randint(-3000, 9000) / 1000:.3f}"
    if kind == "float":
        return f"{chance.choice([0.5, 1.5, -2.25, 3, 0, 1e3, 0.1])}::double precision"
    if kind == "text":
        return f"'{chance.choice(WORDS)}'"
    if kind == "date":
        return f"DATE '2024-0{chance.randint(1, 3)}-{chance.randint(1, 28):02}'"
    if kind == "ts":
        return f"TIMESTAMP '2024-0{chance.randint(1, 3)}-{chance.randint(1, 28):02} {chance.randint(0, 23):02}:30:00'"
    if kind == "tz":
        return f"TIMESTAMPTZ '2024-0{chance.randint(1, 3)}-{chance.randint(1, 28):02} {chance.randint(0, 23):02}:30:00+00'"
    if kind == "bool":
        return chance.choice(["true", "false"])
    if kind == "interval":
        return f"INTERVAL '{chance.choice(['1 day', '2 hours', '90 minutes', '3 days 4 hours', '10 seconds'])}'"
    if kind == "ints":
        return f"ARRAY[{', '.join(str(chance.randint(0, 4)) for _ in range(chance.randint(1, 3)))}]"
    return chance.choice(["'{\"a\": 1}'::jsonb", "'[1, 2]'::jsonb", "'3'::jsonb", "'{\"a\": {\"b\": \"x\"}, \"c\": null}'::jsonb"])


def cell(chance: Chance, kind: str) -> str:
    """A value of a row."""
    if chance.random() < 0.15:
        return "NULL"
    if kind == "json":
        return chance.choice(["'{\"a\": 1, \"b\": [1, 2]}'", "'{\"a\": \"x\"}'", "'[3, 4]'", "'\"s\"'", "'{}'", "'null'"])
    if kind == "interval":
        return f"INTERVAL '{chance.choice(['1 day', '2 hours', '90 minutes', '25 hours', '3 days'])}'"
    text = literal(chance, kind)
    return "NULL" if text.startswith("NULL") else text


class Scope:
    """Columns in reach: (text, type); `own` are those of the innermost query."""

    def __init__(self, outer=(), own=()):
        self.outer, self.own = list(outer), list(own)

    def all(self):
        return self.outer + self.own

    def inner(self):
        return self.outer + self.own


class Queries:
    def __init__(self, seed: str) -> None:
        self.chance = Chance(seed)
        self.names = 0
        self.size = 0

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    # --- expressions ---

    def column(self, kind: str, scope: Scope) -> str | None:
        near = [text for text, own in scope.own if own == kind]
        far = [text for text, own in scope.outer if own == kind]
        if near and (not far or self.chance.random() < 0.75):
            return self.chance.choice(near)
        return self.chance.choice(far) if far else None

    def value(self, kind: str, scope: Scope, depth: int) -> str:
        self.size += 1
        pick = self.chance.random()
        if depth <= 0 or pick < 0.45 or self.size > 60:
            column = self.column(kind, scope) if self.chance.random() < 0.9 else None
            if column is None and depth > -3 and self.size < 60 and self.chance.random() < 0.5:
                return getattr(self, f"{kind}_value")(scope, min(depth, 0) - 1)
            return column or literal(self.chance, kind)
        if pick < 0.52:
            return self.case(kind, scope, depth - 1)
        if pick < 0.58:
            inner = [self.value(kind, scope, depth - 1) for _ in range(2)]
            if kind in ORDERED and self.chance.random() < 0.3:
                return f"{self.chance.choice(['greatest', 'least', 'nullif'])}({inner[0]}, {inner[1]})"
            return f"coalesce({inner[0]}, {inner[1]})"
        if pick < 0.66 and depth > 1 and kind not in ("ints", "json"):
            return self.scalar(kind, scope, depth - 1)
        return getattr(self, f"{kind}_value")(scope, depth - 1)

    def case(self, kind: str, scope: Scope, depth: int) -> str:
        other = f" ELSE {self.value(kind, scope, depth)}" if self.chance.random() < 0.7 else ""
        if self.chance.random() < 0.3:
            by = self.chance.choice(["int", "text", "bool"])
            return f"CASE {self.value(by, scope, depth)} WHEN {literal(self.chance, by)} THEN {self.value(kind, scope, depth)}{other} END"
        return f"CASE WHEN {self.condition(scope, depth)} THEN {self.value(kind, scope, depth)}{other} END"

    def arithmetic(self, kind: str, scope: Scope, depth: int) -> str:
        return f"({self.value(kind, scope, depth)} {self.chance.one('+', 4, '-', 4, '*', 2)} {self.value(kind, scope, depth)})"

    def int_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: self.arithmetic("int", scope, depth),
            lambda: f"({v('int')} % {self.chance.choice([2, 3, 7])})",
            lambda: f"({v('int')} / {self.chance.choice([2, 3, -2])})",
            lambda: f"(- {v('int')})",
            lambda: f"abs({v('int')})",
            lambda: f"length({v('text')})",
            lambda: f"strpos({v('text')}, {v('text')})",
            lambda: f"({v('date')} - {v('date')})",
            lambda: f"cardinality({v('ints')})",
            lambda: f"array_length({v('ints')}, 1)",
            lambda: f"({v('ints')})[{self.chance.randint(0, 3)}]",
            lambda: f"array_position({v('ints')}, {v('int')})",
            lambda: f"extract({self.chance.choice(['year', 'month', 'day', 'dow', 'doy', 'week', 'quarter'])} FROM {v('date')})::int",
            lambda: f"({v('bool')})::int",
            lambda: f"({v('num')})::int",
            lambda: f"({v('big')})::int",
            lambda: f"({v('int')} & {v('int')})",
            lambda: f"({v('int')} # {v('int')})",
            lambda: f"ascii({v('text')})",
            lambda: f"num_nulls({v('int')}, {v('text')})",
        ])()

    def big_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: self.arithmetic("big", scope, depth),
            lambda: f"({v('big')} + {v('int')})",
            lambda: f"({v('int')})::bigint",
            lambda: f"({v('float')})::bigint",
            lambda: f"mod({v('big')}, {self.chance.choice([2, 5])})",
            lambda: f"round({v('float')})::bigint",
            lambda: f"div({v('numeric')}, 2)::bigint",
        ])()

    def small_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([lambda: f"({v('small')} + {v('small')})", lambda: f"abs({v('small')})", lambda: f"(({v('int')}) % 100)::smallint"])()

    def num_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: f"({v('num')} + {v('num')})::numeric(8,2)",
            lambda: f"({v('int')})::numeric(8,2)",
            lambda: f"round({v('numeric')}, 1)::numeric(8,2)",
            lambda: f"abs({v('num')})",
        ])()

    def numeric_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: self.arithmetic("numeric", scope, depth),
            lambda: f"({v('num')} * {v('num')})",
            lambda: f"({v('num')} + {v('int')})",
            lambda: f"round({v('numeric')}, {self.chance.randint(-1, 3)})",
            lambda: f"trunc({v('numeric')})",
            lambda: f"floor({v('numeric')})",
            lambda: f"({v('numeric')} / {self.chance.choice(['3', '7', '-2', '1.25'])})",
            lambda: f"({v('int')})::numeric",
            lambda: f"({v('numeric')} % 2)",
            lambda: f"sign({v('numeric')})",
            lambda: f"extract(epoch FROM {v('interval')})",
        ])()

    def float_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: self.arithmetic("float", scope, depth),
            lambda: f"({v('int')})::double precision",
            lambda: f"({v('float')} / {self.chance.choice([2, 4, 0.5])})",
            lambda: f"sqrt(abs({v('float')}))",
            lambda: f"floor({v('float')})",
            lambda: f"({v('num')})::double precision",
            lambda: f"({v('float')} * {v('int')})",
            lambda: f"power({v('float')}, 2)",
            lambda: f"date_part('{self.chance.choice(['hour', 'day', 'epoch', 'month'])}', {v('ts')})::double precision",
        ])()

    def text_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        small = lambda: self.chance.randint(-2, 4)  # noqa: E731
        return self.chance.choice([
            lambda: f"({v('text')} || {v('text')})",
            lambda: f"upper({v('text')})",
            lambda: f"lower({v('text')})",
            lambda: f"left({v('text')}, {small()})",
            lambda: f"right({v('text')}, {small()})",
            lambda: f"substr({v('text')}, {small()}, {abs(small())})",
            lambda: f"replace({v('text')}, {v('text')}, {v('text')})",
            lambda: f"({v('int')})::text",
            lambda: f"({v('date')})::text",
            lambda: f"({v('bool')})::text",
            lambda: f"({v('interval')})::text",
            lambda: f"({v('ts')})::text",
            lambda: f"({v('ints')})::text",
            lambda: f"concat({v('text')}, {v('int')})",
            lambda: f"concat_ws(',', {v('text')}, {v('int')}, {v('text')})",
            lambda: f"lpad({v('text')}, {abs(small())}, 'xy')",
            lambda: f"btrim({v('text')}, 'a ')",
            lambda: f"split_part({v('text')}, 'b', {self.chance.choice([1, 2, -1])})",
            lambda: f"reverse({v('text')})",
            lambda: f"repeat({v('text')}, {small()})",
            lambda: f"initcap({v('text')})",
            lambda: f"md5({v('text')})",
            lambda: f"regexp_replace({v('text')}, '[ab]+', '<\\&>', 'g')",
            lambda: f"translate({v('text')}, 'ab', 'x')",
            lambda: f"to_char({v('date')}, '{self.chance.choice(['YYYY-MM-DD', 'Mon DD', 'IYYY-IW', 'Day', 'DDD'])}')",
            lambda: f"to_char({v('num')}, '{self.chance.choice(['FM990.00', '9999.9', 'S000', '999D99MI'])}')",
            lambda: f"array_to_string({v('ints')}, '-', '*')",
            lambda: f"({v('json')} ->> 'a')",
            lambda: f"({v('json')} -> 'a')::text",
            lambda: f"jsonb_typeof({v('json')})",
            lambda: f"quote_literal({v('text')})",
            lambda: f"format('%s-%s', {v('text')}, {v('int')})",
            lambda: f"pg_typeof({v(self.chance.choice(['int', 'numeric', 'text', 'date']))})::text",
        ])()

    def date_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: f"({v('date')} + {v('int')})",
            lambda: f"({v('date')} - {v('int')})",
            lambda: f"({v('ts')})::date",
            lambda: f"({v('date')} + INTERVAL '1 month')::date",
            lambda: f"make_date(2024, {self.chance.randint(1, 12)}, {self.chance.randint(1, 28)})",
        ])()

    def ts_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: f"({v('ts')} + {v('interval')})",
            lambda: f"({v('ts')} - {v('interval')})",
            lambda: f"({v('date')} + {v('interval')})",
            lambda: f"date_trunc('{self.chance.choice(['hour', 'day', 'week', 'month', 'quarter'])}', {v('ts')})",
            lambda: f"({v('date')})::timestamp",
            lambda: f"({v('ts')} + INTERVAL '1 month')",
            lambda: f"({v('tz')} AT TIME ZONE 'UTC')",
            lambda: f"date_bin('15 minutes', {v('ts')}, TIMESTAMP '2024-01-01')",
        ])()

    def tz_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([lambda: f"({v('tz')} + {v('interval')})", lambda: f"({v('ts')} AT TIME ZONE 'UTC')", lambda: f"date_trunc('day', {v('tz')})"])()

    def interval_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: f"({v('ts')} - {v('ts')})",
            lambda: f"({v('interval')} + {v('interval')})",
            lambda: f"({v('interval')} * {self.chance.choice([2, 0.5, -1])})",
            lambda: f"make_interval(hours => {v('int')})",
            lambda: f"(- {v('interval')})",
        ])()

    def bool_value(self, scope: Scope, depth: int) -> str:
        return f"({self.condition(scope, depth)})"

    def ints_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: f"ARRAY[{v('int')}, {v('int')}]",
            lambda: f"({v('ints')} || {v('ints')})",
            lambda: f"array_append({v('ints')}, {v('int')})",
            lambda: f"array_remove({v('ints')}, {v('int')})",
            lambda: f"({v('ints')})[1:2]",
            lambda: self.array_of_query(scope, depth),
        ])()

    def array_of_query(self, scope: Scope, depth: int) -> str:
        tables, own = self.tables(scope, 0)
        inner = Scope(scope.inner(), own)
        item = self.value("int", inner, 0)
        return f"ARRAY(SELECT {item} FROM {tables} WHERE {self.condition(inner, min(depth, 1))} ORDER BY 1)"

    def json_value(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        return self.chance.choice([
            lambda: f"({v('json')} -> 'a')",
            lambda: f"({v('json')} -> 0)",
            lambda: f"to_jsonb({v('int')})",
            lambda: f"jsonb_build_object('k', {v('int')}, 't', {v('text')})",
            lambda: f"jsonb_build_array({v('int')}, {v('text')})",
        ])()

    # --- conditions ---

    def condition(self, scope: Scope, depth: int) -> str:
        self.size += 1
        pick = self.chance.random()
        if depth <= 0 or self.size > 60 or pick < 0.4:
            return self.comparison(scope, depth - 1)
        if pick < 0.55:
            return f"({self.condition(scope, depth - 1)} {self.chance.one('AND', 3, 'OR', 2)} {self.condition(scope, depth - 1)})"
        if pick < 0.6:
            return f"NOT ({self.condition(scope, depth - 1)})"
        if pick < 0.75:
            return self.other_test(scope, depth - 1)
        return self.subquery_test(scope, depth - 1)

    def comparison(self, scope: Scope, depth: int) -> str:
        columns = [kind for _, kind in scope.own if kind in ORDERED] or ["int"]
        kind = self.chance.choice(columns)
        operator = self.chance.one("=", 5, "<", 2, "<>", 2, ">=", 2, "<=", 1, "IS DISTINCT FROM", 1, "IS NOT DISTINCT FROM", 1)
        left, right = kind, kind
        if kind in RANK and self.chance.random() < 0.2 and "DISTINCT" not in operator:
            right = self.chance.choice(NUMBERS)
        return f"{self.value(left, scope, depth)} {operator} {self.value(right, scope, depth)}"

    def other_test(self, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        kind = self.chance.choice([kind for _, kind in scope.own if kind in ORDERED] or ["int"])
        no = self.chance.choice(["", "NOT "])
        return self.chance.choice([
            lambda: f"{v(kind)} IS {no}NULL",
            lambda: f"{v(kind)} {no}BETWEEN {v(kind)} AND {v(kind)}",
            lambda: f"{v(kind)} {no}IN ({literal(self.chance, kind)}, {v(kind)}, {literal(self.chance, kind)})",
            lambda: f"{v('text')} {no}LIKE '{self.chance.choice(['a%', '%b', '_b%', '%', '', 'A%'])}'",
            lambda: f"{v('text')} {self.chance.choice(['~', '!~', '~*'])} '{self.chance.choice(['^a', 'b$', '[0-9]', 'a.c', '^$'])}'",
            lambda: f"({v('bool')}) IS {no}{self.chance.choice(['TRUE', 'FALSE', 'UNKNOWN'])}",
            lambda: f"({v('int')}, {v('text')}) = ({v('int')}, {v('text')})",
            lambda: f"({v('int')}, {v('text')}) < ({v('int')}, {v('text')})",
            lambda: f"{v('int')} = ANY ({v('ints')})",
            lambda: f"{v('int')} <> ALL ({v('ints')})",
            lambda: f"{v('ints')} @> {v('ints')}",
            lambda: f"{v('ints')} && {v('ints')}",
            lambda: f"{v('json')} @> '{{\"a\": 1}}'",
            lambda: f"{v('json')} ? 'a'",
            lambda: f"starts_with({v('text')}, 'a')",
            lambda: f"({v('ts')}, {v('ts')}) OVERLAPS ({v('ts')}, {v('ts')})",
        ])()

    def subquery_test(self, scope: Scope, depth: int) -> str:
        no = self.chance.choice(["", "NOT "])
        pick = self.chance.random()
        if pick < 0.35:
            return f"{no}EXISTS ({self.rows(scope, depth, [self.chance.choice(['int', 'text'])])})"
        kinds = [self.chance.choice(["int", "big", "text", "num", "date", "float"])]
        if pick < 0.7:
            return f"{self.value(kinds[0], scope, 0)} {no}IN ({self.rows(scope, depth, kinds)})"
        if pick < 0.8:
            kinds = ["int", self.chance.choice(["int", "text"])]
            left = ", ".join(self.value(kind, scope, 0) for kind in kinds)
            return f"({left}) {no}IN ({self.rows(scope, depth, kinds)})"
        operator = self.chance.choice(["<", "=", ">=", "<>"])
        return f"{self.value(kinds[0], scope, 0)} {operator} {self.chance.choice(['ANY', 'ALL'])} ({self.rows(scope, depth, kinds)})"

    # --- aggregates and windows ---

    def call(self, kind: str, scope: Scope, depth: int) -> str:
        v = lambda kind: self.value(kind, scope, depth)  # noqa: E731
        distinct = self.chance.one("", 5, "DISTINCT ", 1)
        if kind == "big":
            text = self.chance.choice([lambda: "count(*)", lambda: f"count({distinct}{v(self.chance.choice(ORDERED))})", lambda: f"sum({distinct}{v('int')})"])()
        elif kind == "int":
            text = self.chance.choice([lambda: f"{self.chance.choice(['min', 'max'])}({v('int')})", lambda: f"bit_or({v('int')})"])()
        elif kind == "numeric":
            text = self.chance.choice([
                lambda: f"sum({distinct}{v('numeric')})", lambda: f"sum({v('num')})", lambda: f"avg({distinct}{v('numeric')})", lambda: f"avg({v('num')})",
                lambda: f"max({v('numeric')})", lambda: f"sum({v('big')})::numeric", lambda: f"avg({v('int')})::numeric(20,6)"])()
        elif kind == "float":
            text = self.chance.choice([
                lambda: f"sum({v('float')})", lambda: f"avg({v('float')})", lambda: f"stddev_pop({v('float')})", lambda: f"corr({v('float')}, {v('float')})",
                lambda: f"regr_count({v('float')}, {v('float')})::double precision"])()
        elif kind == "text":
            text = self.chance.choice([
                lambda: f"min({v('text')})", lambda: f"max({v('text')})",
                lambda: (lambda item: f"string_agg({item}, ',' ORDER BY {item})")(v("text")),
                lambda: (lambda item: f"array_agg({item} ORDER BY {item})::text")(v("int"))])()
        elif kind == "bool":
            text = f"{self.chance.choice(['bool_and', 'bool_or', 'every'])}({v('bool')})"
        elif kind == "interval":
            text = f"{self.chance.choice(['min', 'max'])}({v('interval')})" if self.chance.random() < 0.7 else f"sum({v('interval')})"
        elif kind in ("small", "num", "date", "ts", "tz"):
            text = f"{self.chance.choice(['min', 'max'])}({v(kind)})"
        else:
            raise KeyError(kind)
        if self.chance.random() < 0.15:
            text = f"{text} FILTER (WHERE {self.condition(scope, 0)})" if "::" not in text.split(")")[-1] else text
        return text

    def scalar(self, kind: str, scope: Scope, depth: int) -> str:
        if self.chance.random() < 0.2 and kind in ORDERED:
            return f"({self.rows(scope, depth, [kind])} ORDER BY 1 LIMIT 1)" if self.chance.random() < 0.5 else f"(SELECT max(x{''}) FROM ({self.rows(scope, depth, [kind])}) AS q(x))".replace(
                "max", "min" if kind == "bool" else "max") if kind != "bool" else f"({self.rows(scope, depth, [kind])} ORDER BY 1 LIMIT 1)"
        tables, own = self.tables(scope, depth)
        inner = Scope(scope.inner(), own)
        arguments = Scope(own, own) if self.chance.random() < 0.85 else inner
        return f"(SELECT {self.call(kind, arguments, 0)} FROM {tables} WHERE {self.condition(inner, depth)})"

    def window(self, scope: Scope, unique: list[str]) -> tuple[str, str]:
        """A window function over a total order, and its type."""
        by = f"PARTITION BY {self.value(self.chance.choice(['int', 'text', 'bool']), scope, 0)} " if self.chance.random() < 0.6 else ""
        direction = self.chance.one("", 3, " DESC", 2, " NULLS FIRST", 1, " DESC NULLS LAST", 1)
        key_kind = self.chance.choice(["int", "big", "text", "num", "date", "float"])
        key = self.value(key_kind, scope, 0)
        total = f"ORDER BY {key}{direction}, {', '.join(unique)}"
        loose = f"ORDER BY {key}{direction}"
        pick = self.chance.random()
        kind = self.chance.choice(["int", "text", "num", "date"])
        if pick < 0.15:
            return f"row_number() OVER ({by}{total})", "big"
        if pick < 0.3:
            name = self.chance.choice(["rank", "dense_rank"])
            return f"{name}() OVER ({by}{loose})", "big"
        if pick < 0.36:
            name = self.chance.choice(["percent_rank", "cume_dist"])
            return f"{name}() OVER ({by}{loose})", "float"
        if pick < 0.4:
            return f"ntile({self.chance.randint(1, 4)}) OVER ({by}{total})", "int"
        if pick < 0.55:
            name = self.chance.choice(["lag", "lead"])
            extra = self.chance.one("", 3, ", 2", 1, ", 0", 1)
            return f"{name}({self.value(kind, scope, 0)}{extra}) OVER ({by}{total})", kind
        frame = self.frame(key_kind)
        if pick < 0.7:
            name = self.chance.choice(["first_value({})", "last_value({})", "nth_value({}, 2)"])
            frame, order = (frame, total) if not frame.startswith("RANGE") or "PRECEDING" not in frame.replace("UNBOUNDED PRECEDING", "") else ("", total)
            if re.search(r"\d", frame) and frame.startswith("RANGE"):
                frame = ""
            return f"{name.format(self.value(kind, scope, 0))} OVER ({by}{order} {frame})", kind
        call_kind = self.chance.choice(["big", "int", "numeric", "float", "bool"])
        call = self.call(call_kind, scope, 0)
        while "DISTINCT" in call or "::" in call.rsplit(")", 1)[-1]:
            call = self.call(call_kind, scope, 0)
        order = loose if frame.startswith(("RANGE", "GROUPS")) or not frame else total
        return f"{call} OVER ({by}{order} {frame})", call_kind

    def frame(self, key_kind: str) -> str:
        if self.chance.random() < 0.3:
            return ""
        unit = self.chance.choice(["ROWS", "RANGE", "GROUPS"])
        n = lambda: str(self.chance.randint(0, 2))  # noqa: E731
        if unit == "RANGE" and key_kind in ("text",):
            offset = None
        elif unit == "RANGE" and key_kind == "date":
            offset = lambda: "INTERVAL '10 days'"  # noqa: E731
        else:
            offset = n
        starts = ["UNBOUNDED PRECEDING", "CURRENT ROW"] + ([f"{offset()} PRECEDING", f"{offset()} FOLLOWING"] if offset else [])
        start = self.chance.choice(starts)
        ends = ["UNBOUNDED FOLLOWING"] + ([] if start.endswith("FOLLOWING") else ["CURRENT ROW"])
        if offset:
            ends.append(f"{offset()} FOLLOWING")
            if start == "UNBOUNDED PRECEDING" or start.endswith(" PRECEDING"):
                ends.append(f"{offset()} PRECEDING")
        exclude = self.chance.one("", 6, " EXCLUDE CURRENT ROW", 1, " EXCLUDE GROUP", 1, " EXCLUDE TIES", 1, " EXCLUDE NO OTHERS", 1)
        return f"{unit} BETWEEN {start} AND {self.chance.choice(ends)}{exclude}"

    # --- queries ---

    def tables(self, scope: Scope, depth: int) -> tuple[str, list[tuple[str, str]]]:
        table = self.chance.choice(list(COLUMNS))
        alias = self.name("t")
        text, own = f"{table} AS {alias}", [(f"{alias}.{name}", kind) for name, kind in COLUMNS[table]]
        pick = self.chance.random()
        if pick < 0.3:
            for _ in range(self.chance.one(1, 4, 2, 1)):
                other, alias = self.chance.choice(list(COLUMNS)), self.name("t")
                more = [(f"{alias}.{name}", kind) for name, kind in COLUMNS[other]]
                kind = self.chance.one("JOIN", 3, "LEFT JOIN", 3, "RIGHT JOIN", 1, "FULL JOIN", 1)
                shared = [(x, y) for x, kx in own for y, ky in more if kx == ky and kx in ORDERED]
                left, right = self.chance.choice(shared)
                on = f"{left} = {right}"
                if kind != "FULL JOIN" and self.chance.random() < 0.4:
                    outer = scope.inner() if kind in ("JOIN", "LEFT JOIN") else []
                    on += f" AND {self.condition(Scope(outer, own + more), 1)}"
                text += f" {kind} {other} AS {alias} ON {on}"
                own += more
        elif pick < 0.42 and depth > 0:
            alias = self.name("d")
            kinds = [self.chance.choice(["int", "text", "num"]), self.chance.choice(["big", "date", "int"])]
            shape = self.chance.choice([", LATERAL ({}) AS {}(v, w)", " LEFT JOIN LATERAL ({}) AS {}(v, w) ON true"])
            text += shape.format(self.rows(Scope(scope.inner(), own), depth - 1, kinds), alias)
            own += [(f"{alias}.v", kinds[0]), (f"{alias}.w", kinds[1])]
        elif pick < 0.48:
            alias = self.name("g")
            argument = self.column("int", Scope(scope.inner(), own)) or "2"
            if self.chance.random() < 0.5:
                text += f", generate_series(1, least({argument}, 4)) AS {alias}(v)"
            else:
                arrays = self.column("ints", Scope(scope.inner(), own)) or "ARRAY[1, 2, NULL]"
                text += f" {self.chance.choice(['CROSS JOIN', 'LEFT JOIN'])} unnest({arrays}) AS {alias}(v)"
                text += " ON true" if "LEFT JOIN unnest" in text else ""
            own.append((f"{alias}.v", "int"))
        elif pick < 0.54 and depth > 0:
            alias = self.name("d")
            kinds = [self.chance.choice(["int", "text"]), self.chance.choice(["big", "num", "ts"])]
            text = f"({self.rows(Scope(), depth - 1, kinds)}) AS {alias}(v, w)"
            own = [(f"{alias}.v", kinds[0]), (f"{alias}.w", kinds[1])]
        return text, own

    def rows(self, scope: Scope, depth: int, kinds: list[str]) -> str:
        """A query of columns of these types."""
        pick = self.chance.random()
        if pick < 0.08:
            rows = ", ".join("(" + ", ".join(self.value(kind, scope, 0) for kind in kinds) + ")" for _ in range(self.chance.randint(1, 3)))
            return f"VALUES {rows}" if self.chance.random() < 0.5 else f"SELECT * FROM (VALUES {rows}) AS {self.name('w')}"
        if pick < 0.2:
            word = self.chance.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"])
            return f"({self.plain(scope, depth, kinds)}) {word} ({self.plain(scope, 0, kinds)})"
        return self.plain(scope, depth, kinds)

    def plain(self, scope: Scope, depth: int, kinds: list[str]) -> str:
        tables, own = self.tables(scope, depth)
        inner = Scope(scope.inner(), own)
        where = f" WHERE {self.condition(inner, depth)}" if self.chance.random() < 0.8 else ""
        pick = self.chance.random()
        grouped = [kind for kind in kinds if kind in ("json", "ints")] == []
        if pick < 0.15 and grouped:
            groups = Scope(own, own)
            key_kind = kinds[0]
            key = self.column(key_kind, groups) or literal(self.chance, key_kind)
            items = [key] + [self.call(kind, groups, 0) for kind in kinds[1:]]
            if not any(key == text for text, _ in own):
                return f"SELECT {', '.join([self.call(kinds[0], groups, 0)] + items[1:])} FROM {tables}{where}"
            having = f" HAVING {self.call('big', groups, 0)} {self.chance.choice(['>', '=', '<='])} {self.chance.randint(0, 3)}" if self.chance.random() < 0.3 else ""
            return f"SELECT {', '.join(items)} FROM {tables}{where} GROUP BY {key}{having}"
        items = [self.value(kind, inner, min(depth, 1)) for kind in kinds]
        order = ", ".join(str(n + 1) for n in range(len(kinds)))
        if pick < 0.3 and "json" not in kinds:
            limit = f" LIMIT {self.chance.randint(0, 3)}" if self.chance.random() < 0.8 else ""
            offset = f" OFFSET {self.chance.randint(0, 2)}" if self.chance.random() < 0.3 else ""
            direction = self.chance.choice(["", " DESC"])
            return f"SELECT {', '.join(items)} FROM {tables}{where} ORDER BY {order.replace(',', direction + ',')}{direction}{limit}{offset}"
        if pick < 0.36 and "json" not in kinds:
            return f"SELECT DISTINCT ON ({items[0]}) {', '.join(items)} FROM {tables}{where} ORDER BY {items[0]}, {order}" if self.constant_free(items[0]) else f"SELECT DISTINCT {', '.join(items)} FROM {tables}{where}"
        distinct = "DISTINCT " if pick < 0.44 else ""
        return f"SELECT {distinct}{', '.join(items)} FROM {tables}{where}"

    @staticmethod
    def constant_free(text: str) -> bool:
        return re.match(r"^[a-z]+\d+\.\w+$", text) is not None

    def top(self) -> str:
        """A whole query. Its columns have names, so that it can be a view."""
        depth = self.chance.one(1, 2, 2, 3, 3, 2)
        pick = self.chance.random()
        if pick < 0.35:
            text = self.wide(depth)
        elif pick < 0.6:
            text = self.grouped(depth)
        elif pick < 0.8:
            text = self.windows(depth)
        elif pick < 0.9:
            kinds = [self.chance.choice(["int", "text", "num", "date", "float", "big"]) for _ in range(self.chance.randint(1, 3))]
            branches = [f"({self.plain(Scope(), depth - 1, kinds)})" for _ in range(self.chance.one(2, 3, 3, 1))]
            text = branches[0]
            for branch in branches[1:]:
                text += f" {self.chance.choice(['UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT', 'EXCEPT ALL', 'INTERSECT ALL'])} {branch}"
            text = f"SELECT * FROM ({text}) AS q({', '.join(f'x{n}' for n in range(len(kinds)))})"
        else:
            text = self.shared(depth)
        return text

    def items(self, items: list[str]) -> str:
        return ", ".join(f"{item} AS x{n}" for n, item in enumerate(items))

    def wide(self, depth: int) -> str:
        tables, own = self.tables(Scope(), depth)
        scope = Scope((), own)
        kinds = [self.chance.choice(list(NAMES)) for _ in range(self.chance.randint(1, 4))]
        items = [text for text, _ in own[:2]] + [self.value(kind, scope, depth) for kind in kinds]
        return f"SELECT {self.items(items)} FROM {tables} WHERE {self.condition(scope, depth)}"

    def grouped(self, depth: int) -> str:
        tables, own = self.tables(Scope(), depth)
        scope = Scope((), own)
        where = f" WHERE {self.condition(scope, depth)}" if self.chance.random() < 0.6 else ""
        calls = [self.call(self.chance.choice(["big", "int", "numeric", "float", "text", "bool", "date", "ts", "interval", "num"]), scope, 1) for _ in range(self.chance.randint(1, 3))]
        pick = self.chance.random()
        if pick < 0.25:
            return f"SELECT {self.items(calls)} FROM {tables}{where}"
        keys = self.chance.sample([text for text, kind in own if kind in ORDERED], 2)
        having = f" HAVING {self.call('big', scope, 0)} {self.chance.choice(['>', '=', '<='])} {self.chance.randint(0, 3)}" if self.chance.random() < 0.3 else ""
        if pick < 0.8:
            keys = keys[: self.chance.randint(1, 2)]
            return f"SELECT {self.items(keys + calls)} FROM {tables}{where} GROUP BY {', '.join(keys)}{having}"
        sets = self.chance.choice(["ROLLUP ({0}, {1})", "CUBE ({0}, {1})", "GROUPING SETS (({0}), ({1}), ())", "{0}, ROLLUP ({1})"]).format(*keys)
        return f"SELECT {self.items(keys + [f'grouping({keys[0]})'] + calls)} FROM {tables}{where} GROUP BY {sets}{having}"

    def windows(self, depth: int) -> str:
        tables, own = self.tables(Scope(), depth)
        scope = Scope((), own)
        unique = [text for text, kind in own if kind not in ("json",)]
        where = f" WHERE {self.condition(scope, depth - 1)}" if self.chance.random() < 0.4 else ""
        alike = any(text.split(".")[0][0] != "t" for text, _ in own)  # rows may be equal: two functions may order them differently
        calls = [self.window(scope, unique)[0] for _ in range(1 if alike else self.chance.randint(1, 3))]
        inner = f"SELECT {self.items(unique[:3] + calls)} FROM {tables}{where}"
        if self.chance.random() < 0.25:
            n = 3 + self.chance.randrange(len(calls))
            return f"SELECT x0, x1, x{min(n, len(unique[:3]) + len(calls) - 1)} FROM ({inner}) AS q WHERE x{min(n, len(unique[:3]) + len(calls) - 1)} IS NOT NULL"
        return inner

    def shared(self, depth: int) -> str:
        kinds = ["int", self.chance.choice(["text", "num", "big"])]
        rows = self.plain(Scope(), depth - 1, kinds)
        scope = Scope((), [("p.v", kinds[0]), ("p.w", kinds[1]), ("q.v", kinds[0]), ("q.w", kinds[1])])
        kind = self.chance.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        if self.chance.random() < 0.3:
            return f"WITH r(v, w) AS ({rows}) SELECT v, p.w AS x1, q.w AS x2 FROM r AS p {kind} r AS q USING (v)"
        items = [self.value(self.chance.choice(["int", "text", "big", "bool"]), scope, 1) for _ in range(2)]
        return f"WITH r(v, w) AS ({rows}) SELECT {self.items(['p.v', 'q.w'] + items)} FROM r AS p {kind} r AS q ON p.v = q.v"


# --- data ---


def definitions() -> list[str]:
    statements = []
    for table, columns in COLUMNS.items():
        statements.append(f"DROP TABLE IF EXISTS {table} CASCADE")
        statements.append(f"CREATE TABLE {table} ({', '.join(f'{name} {NAMES[kind]}' for name, kind in columns)})")
    return statements


class Changes:
    """Random changes of the tables; ids are unique."""

    def __init__(self, seed: str) -> None:
        self.chance = Chance(seed)
        self.ids = {table: [] for table in COLUMNS}
        self.next = 1

    def rows(self, table: str, count: int) -> str:
        rows = []
        for _ in range(count):
            cells = [str(self.next)] + [cell(self.chance, kind) for _, kind in COLUMNS[table][1:]]
            self.ids[table].append(self.next)
            self.next += 1
            rows.append(f"({', '.join(cells)})")
        return f"INSERT INTO {table} VALUES {', '.join(rows)}"

    def round(self, first: bool) -> list[str]:
        statements = []
        for table in COLUMNS:
            ids = self.ids[table]
            if first:
                statements.append(self.rows(table, self.chance.randint(3, 7)))
                continue
            if self.chance.random() < 0.6:
                statements.append(self.rows(table, self.chance.randint(1, 3)))
            for _ in range(self.chance.randint(0, 2)):
                if ids:
                    name, kind = self.chance.choice(COLUMNS[table][1:])
                    statements.append(f"UPDATE {table} SET {name} = {cell(self.chance, kind)} WHERE id = {self.chance.choice(ids)}")
            if ids and self.chance.random() < 0.5:
                gone = ids.pop(self.chance.randrange(len(ids)))
                statements.append(f"DELETE FROM {table} WHERE id = {gone}")
        return statements


# --- comparison ---

NUMERIC_OIDS = {20, 21, 23, 700, 701, 1700}


def canonical(text: str | None, number: bool) -> str:
    if text is None:
        return "NULL"
    if number:
        try:
            value = decimal.Decimal(text)
        except decimal.InvalidOperation:
            return text
        if not value.is_finite():
            return str(value)
        value = decimal.Context(prec=10).create_decimal(value)
        if value == 0:
            return "0"
        return format(value.normalize(), "f") if abs(value.adjusted()) < 30 else str(value.normalize())
    return text


class Side:
    def __init__(self, where: str) -> None:
        self.where = where
        self.connection = psycopg.connect(where, autocommit=True).pgconn
        for setting in ["SET TimeZone = 'UTC'", "SET statement_timeout = 10000"]:
            self.connection.exec_(setting.encode())

    def ask(self, sql: str):
        """Sorted rows, or the error."""
        result = self.connection.exec_(sql.encode())
        if result.status not in (psycopg.pq.ExecStatus.COMMAND_OK, psycopg.pq.ExecStatus.TUPLES_OK):
            message = (result.error_message or self.connection.error_message or b"").decode().strip()
            if self.connection.status != psycopg.pq.ConnStatus.OK:
                self.connection = psycopg.connect(self.where, autocommit=True).pgconn
                message = "CONNECTION LOST " + message
            return None, message
        numbers = [result.ftype(column) in NUMERIC_OIDS for column in range(result.nfields)]
        rows = []
        for row in range(result.ntuples):
            cells = []
            for column in range(result.nfields):
                value = result.get_value(row, column)
                cells.append(canonical(None if value is None else value.decode(), numbers[column]))
            rows.append(cells)
        return sorted(rows), ""


def close(left, right) -> bool:
    """Equal but for the last digits of numbers."""
    if left == right:
        return True
    if len(left) != len(right):
        return False
    for one, other in zip(left, right):
        for x, y in zip(one, other):
            if x != y:
                try:
                    p, q = float(x), float(y)
                except ValueError:
                    return False
                if abs(p - q) > 1e-8 * max(1.0, abs(p), abs(q)):
                    return False
    return True


def shape(message: str) -> str:
    """A message without its names and numbers."""
    line = message.splitlines()[0] if message else "?"
    return re.sub(r"\d+", "#", re.sub(r'"[^"]*"|\'[^\']*\'', "..", line))[:150]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True, help="where the server listens that is compared")
    parser.add_argument("--user", default="anabranch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--queries", type=int, default=20, help="queries a batch")
    parser.add_argument("--rounds", type=int, default=4, help="rounds of changes a batch")
    parser.add_argument("--batch", type=int, help="only this batch")
    parser.add_argument("--query", type=int, help="only this query of the batch")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this time")
    parser.add_argument("--verbose", action="store_true", help="print each query that is refused")
    parser.add_argument("--script", action="store_true", help="print the statements that lead to a difference")
    parser.add_argument("--bin", default="/usr/lib/postgresql/15/bin", help="folder of initdb and pg_ctl")
    options = parser.parse_args()
    refused: collections.Counter[str] = collections.Counter()
    examples: dict[str, str] = {}
    lenient: collections.Counter[str] = collections.Counter()
    equal = wrong = failed = asked = 0
    begun = time.time()

    with server(options.bin) as dsn:
        theirs = Side(dsn)
        ours = Side(f"host=127.0.0.1 port={options.port} user={options.user} dbname=anabranch sslmode=disable")
        batches = [options.batch] if options.batch is not None else range(options.batches)
        for batch in batches:
            if time.time() - begun > options.minutes * 60:
                break
            label = f"{options.seed}.{batch}"
            for statement in definitions():
                theirs.ask(statement)
                ours.ask(statement)
            changes = Changes(label)
            queries = {}
            log = list(definitions()) if options.script else []
            for n in range(options.queries):
                if options.query is not None and n != options.query:
                    continue
                sql = Queries(f"{label}.{n}").top()
                if theirs.ask(f"EXPLAIN {sql}")[0] is None:
                    if options.verbose:
                        print(f"{label}.{n} theirs: {theirs.ask(sql)[1]}\n   {sql}")
                    failed += 1
                    continue
                asked += 1
                rows, problem = ours.ask(f"CREATE MATERIALIZED VIEW v{n} AS {sql}")
                if rows is None:
                    refused[shape(problem)] += 1
                    examples.setdefault(shape(problem), f"{label}.{n} {sql}")
                    if options.verbose:
                        print(f"{label}.{n} REFUSED {problem}\n   {sql}")
                    continue
                queries[n] = sql
            reported = set()
            for round in range(options.rounds):
                for statement in changes.round(round == 0):
                    one, two = theirs.ask(statement)[1], ours.ask(statement)[1]
                    if options.script:
                        print(f"{statement};")
                    if bool(one) != bool(two):
                        print(f"CHANGE {label} {statement}\n  theirs {one}\n  ours {two}")
                for n, sql in queries.items():
                    expected, problem = theirs.ask(sql)
                    for form, text in [("view", f"SELECT * FROM v{n}"), ("query", sql)]:
                        if form == "query" and round not in (0, options.rounds - 1):
                            continue
                        answer, message = ours.ask(text)
                        if expected is None:
                            if answer is not None:
                                lenient[shape(problem)] += 1
                                examples.setdefault("L " + shape(problem), f"{label}.{n} {sql}")
                            else:
                                equal += 1
                        elif answer is None:
                            refused[form + ": " + shape(message)] += 1
                            examples.setdefault(form + ": " + shape(message), f"{label}.{n} {sql}")
                        elif close(expected, answer):
                            equal += 1
                        else:
                            wrong += 1
                            if (n, form) not in reported:
                                reported.add((n, form))
                                left = [row for row in expected if row not in answer][:3]
                                right = [row for row in answer if row not in expected][:3]
                                print(f"WRONG {label}.{n} {form} round {round}\n  {sql}\n  expected {left} ({len(expected)})\n  got      {right} ({len(answer)})", flush=True)
            for n in queries:
                ours.ask(f"DROP MATERIALIZED VIEW IF EXISTS v{n}")
            if batch % 25 == 24:
                print(f"-- {batch + 1} batches, {equal} equal, {wrong} wrong, {int(time.time() - begun)} s", flush=True)
    print(f"{asked} queries (and {failed} that PostgreSQL refuses): {equal} answers equal, {wrong} wrong, {sum(refused.values())} refused, {sum(lenient.values())} answered where PostgreSQL fails")
    for title, counter, prefix in [("refused", refused, ""), ("answered where PostgreSQL fails", lenient, "L ")]:
        print(title)
        for message, count in counter.most_common(40):
            print(f"{count:6} {message}\n         {examples[prefix + message]}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
