#!/usr/bin/env python3
"""Writes crates/batch/src/numeric/reference.txt: what PostgreSQL computes of random numerics.

Usage: python tools/numeric_reference.py [--dsn "host=.. port=.. user=postgres"] [--seed N] (needs
psycopg)

A line is `operation a b result`, separated by spaces; `-` stands for an operand that there is not,
`!` for an error. Numbers are written with their trailing zeros, on which the digits of quotients
depend. Without --dsn a server is started as in slt_expect.py.
"""

import argparse
import contextlib
import pathlib
import random

import psycopg

from slt_expect import ROOT, server

FILE = ROOT / "crates/batch/src/numeric/reference.txt"
PAIRS = {"+": "{a} + {b}", "-": "{a} - {b}", "*": "{a} * {b}", "/": "{a} / {b}", "%": "{a} % {b}"}
SINGLES = {"sqrt": "sqrt({a})", "exp": "exp({a})", "ln": "ln({a})", "ceil": "ceil({a})", "floor": "floor({a})"}


def digits(rng: random.Random, most: int) -> str:
    n = rng.randint(1, most)
    kind = rng.random()
    if kind < 0.1:
        return "9" * n
    if kind < 0.2:
        return "1" + "0" * (n - 1)
    return "".join(rng.choice("0123456789") for _ in range(n))


def number(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.03:
        return rng.choice(["NaN", "Infinity", "-Infinity"])
    if kind < 0.07:
        return rng.choice(["0", "0.00", "1", "-1", "10000", "0.0001", "9999", "1.0"])
    most = rng.choice([2, 5, 12, 25, 60])
    whole = digits(rng, most).lstrip("0") or "0"
    fraction = "." + digits(rng, most) if rng.random() < 0.7 else ""
    if rng.random() < 0.2 and fraction:
        whole, fraction = "0", "." + "0" * rng.randint(0, 30) + fraction[1:]
    return rng.choice(["", "-"]) + whole + fraction


def small(rng: random.Random) -> str:
    """What exponentials and powers are taken of."""
    fraction = "." + digits(rng, 6) if rng.random() < 0.8 else ""
    return rng.choice(["", "", "-"]) + str(rng.randint(0, rng.choice([1, 3, 20, 150]))) + fraction


def ask(cursor: psycopg.Cursor, text: str) -> str:
    try:
        cursor.execute(f"SELECT ({text})::text")
        return cursor.fetchone()[0]
    except psycopg.Error:
        return "!"


def lines(cursor: psycopg.Cursor, rng: random.Random):
    def quoted(value: str) -> str:
        return f"'{value}'::numeric"

    for _ in range(2500):
        op, a, b = rng.choice(list(PAIRS)), number(rng), number(rng)
        if rng.random() < 0.5:
            op = "/"
        yield f"{op} {a} {b} {ask(cursor, PAIRS[op].format(a=quoted(a), b=quoted(b)))}"
    for _ in range(500):
        op, a, places = rng.choice(["round", "trunc"]), number(rng), rng.randint(-8, 20)
        yield f"{op} {a} {places} {ask(cursor, f'{op}({quoted(a)}, {places})')}"
    for _ in range(700):
        op = rng.choice(list(SINGLES))
        a = small(rng) if op == "exp" else number(rng)
        yield f"{op} {a} - {ask(cursor, SINGLES[op].format(a=quoted(a)))}"
    for _ in range(500):
        op = rng.choice(["power", "log"])
        a, b = small(rng), small(rng)
        yield f"{op} {a} {b} {ask(cursor, f'{op}({quoted(a)}, {quoted(b)})')}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn")
    parser.add_argument("--bin", default="/usr/lib/postgresql/15/bin")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        dsn = arguments.dsn or stack.enter_context(server(arguments.bin))
        with psycopg.connect(dsn, autocommit=True) as connection, connection.cursor() as cursor:
            text = "\n".join(lines(cursor, random.Random(arguments.seed))) + "\n"
    pathlib.Path(FILE).write_text(text)


if __name__ == "__main__":
    main()
