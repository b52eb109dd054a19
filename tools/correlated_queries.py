#!/usr/bin/env python3
"""Asks random correlated queries of PostgreSQL and of a running server, and compares the answers.

Usage: python tools/correlated_queries.py --port 5432 [--seed 1] [--queries 1000] [--dsn ".."]
(needs psycopg)

Queries nest up to three deep: scalar subqueries, EXISTS, IN, ANY, ALL, LATERAL with aggregates,
limits, unions, windows and outer joins, with outer columns of any level, over small tables with
NULLs and equal rows. An answer that differs is printed with its seed; refusals are counted by their
messages. Exit status 1 if an answer differs.
"""

import argparse
import collections
import pathlib
import random
import sys

import psycopg

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from slt_expect import server  # noqa: E402

TABLES = {"a": ["k", "x"], "b": ["k", "y"], "c": ["x", "y"]}


class Queries:
    """Random queries; `scope` lists the columns in reach, innermost tables last."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = 0

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def value(self, scope: list[str], depth: int) -> str:
        pick = self.random.random()
        if pick < 0.7 or depth == 0:
            return self.random.choice(scope[-6:] if self.random.random() < 0.6 else scope)
        if pick < 0.85:
            return f"({self.random.choice(scope)} + {self.random.randint(0, 2)})"
        return self.scalar(scope, depth - 1)

    def comparison(self, scope: list[str], depth: int) -> str:
        return f"{self.value(scope, depth)} {self.random.choice(['=', '<', '<>', '>=', '='])} {self.value(scope, depth)}"

    def condition(self, scope: list[str], depth: int) -> str:
        pick = self.random.random()
        if pick < 0.5 or depth == 0:
            return self.comparison(scope, depth)
        if pick < 0.6:
            word = self.random.choice(["AND", "OR", "AND"])
            return f"({self.condition(scope, depth)} {word} {self.condition(scope, depth - 1)})"
        if pick < 0.65:
            return f"NOT ({self.condition(scope, depth - 1)})"
        return self.test(scope, depth - 1)

    def test(self, scope: list[str], depth: int) -> str:
        pick = self.random.random()
        if pick < 0.35:
            negation = self.random.choice(["", "NOT "])
            return f"{negation}EXISTS ({self.rows(scope, depth, 1)})"
        value = self.value(scope, 0)
        if pick < 0.7:
            return f"{value} {self.random.choice(['IN', 'NOT IN'])} ({self.rows(scope, depth, 1)})"
        operator = self.random.choice(["<", "=", ">=", "<>"])
        return f"{value} {operator} {self.random.choice(['ANY', 'ALL'])} ({self.rows(scope, depth, 1)})"

    def scalar(self, scope: list[str], depth: int) -> str:
        call = self.random.choice(["count(*)", "max({})", "min({})", "sum({})", "count({})"])
        tables, own = self.tables(scope, depth)
        call = call.format(self.random.choice(own))
        return f"(SELECT {call} FROM {tables} WHERE {self.condition(scope + own, depth)})"

    def tables(self, scope: list[str], depth: int) -> tuple[str, list[str]]:
        table = self.random.choice(list(TABLES))
        alias = self.name("t")
        text, own = f"{table} AS {alias}", [f"{alias}.{column}" for column in TABLES[table]]
        pick = self.random.random()
        if pick < 0.25:
            other, alias = self.random.choice(list(TABLES)), self.name("t")
            more = [f"{alias}.{column}" for column in TABLES[other]]
            kind = self.random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "LEFT JOIN"])
            text += f" {kind} {other} AS {alias} ON {self.comparison(own + more if kind != 'JOIN' else scope + own + more, 0)}"
            own += more
        elif pick < 0.4 and depth > 0:
            alias = self.name("d")
            kind = self.random.choice([", LATERAL ({}) AS {}(v, w)", " LEFT JOIN LATERAL ({}) AS {}(v, w) ON true"])
            text += kind.format(self.rows(scope + own, depth - 1, 2), alias)
            own += [f"{alias}.v", f"{alias}.w"]
        return text, own

    def rows(self, scope: list[str], depth: int, width: int) -> str:
        tables, own = self.tables(scope, depth)
        where = f" WHERE {self.condition(scope + own, depth)}"
        items = [self.value(scope + own, 0) for _ in range(width)]
        pick = self.random.random()
        if pick < 0.15:
            group = own[0]
            calls = [f"{self.random.choice(['count', 'max', 'sum'])}({self.random.choice(own)})" for _ in range(width - 1)]
            return f"SELECT {', '.join([group] + calls)} FROM {tables}{where} GROUP BY {group}"
        if pick < 0.3:
            order = ", ".join(str(n + 1) for n in range(width))
            offset = self.random.choice(["", " OFFSET 1"])
            return f"SELECT {', '.join(items)} FROM {tables}{where} ORDER BY {order} LIMIT {self.random.randint(1, 2)}{offset}"
        if pick < 0.4:
            other, more = self.tables(scope, 0)
            branch = ", ".join(self.value(scope + more, 0) for _ in range(width))
            kind = self.random.choice(["UNION ALL", "UNION"])
            return f"SELECT {', '.join(items)} FROM {tables}{where} {kind} SELECT {branch} FROM {other}"
        distinct = "DISTINCT " if pick < 0.5 else ""
        return f"SELECT {distinct}{', '.join(items)} FROM {tables}{where}"

    def query(self) -> str:
        depth = self.random.randint(1, 3)
        tables, own = self.tables([], depth)
        items = own + [self.value(own, depth), self.test(own, depth - 1) if self.random.random() < 0.4 else own[0]]
        return f"SELECT {', '.join(items)} FROM {tables} WHERE {self.condition(own, depth)}"


def fill(seed: int) -> list[str]:
    """Statements that make the tables."""
    chance = random.Random(seed)
    statements = []
    for table, columns in TABLES.items():
        statements.append(f"DROP TABLE IF EXISTS {table}")
        statements.append(f"CREATE TABLE {table} ({', '.join(f'{column} bigint' for column in columns)})")
        value = lambda: "NULL" if chance.random() < 0.15 else str(chance.randint(0, 4))  # noqa: E731
        rows = ", ".join(f"({', '.join(value() for _ in columns)})" for _ in range(chance.randint(4, 8)))
        statements.append(f"INSERT INTO {table} VALUES {rows}")
    return statements


def ask(connection, sql: str) -> tuple[list[str] | None, str]:
    """Sorted rows, or the error."""
    result = connection.exec_(sql.encode())
    if result.status not in (psycopg.pq.ExecStatus.COMMAND_OK, psycopg.pq.ExecStatus.TUPLES_OK):
        return None, result.error_message.decode().strip()
    cells = lambda row: [result.get_value(row, column) for column in range(result.nfields)]  # noqa: E731
    return sorted(str(cells(row)) for row in range(result.ntuples)), ""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--port", type=int, required=True, help="where the server listens that is compared")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--queries", type=int, default=1000)
    arguments.add_argument("--bin", default="/usr/lib/postgresql/15/bin", help="folder of initdb and pg_ctl")
    options = arguments.parse_args()
    refused: collections.Counter[str] = collections.Counter()
    equal = wrong = 0
    with server(options.bin) as dsn:
        theirs = psycopg.connect(dsn, autocommit=True).pgconn
        where = f"host=127.0.0.1 port={options.port} user=anabranch dbname=anabranch sslmode=disable"
        ours = psycopg.connect(where, autocommit=True).pgconn
        ask(ours, "SET statement_timeout = 5000")
        for n in range(options.queries):
            seed = options.seed * 1_000_000 + n
            if n % 50 == 0:
                for statement in fill(seed):
                    ask(theirs, statement)
                    ask(ours, statement)
            sql = Queries(seed).query()
            expected, problem = ask(theirs, sql)
            if expected is None:
                continue
            answer, problem = ask(ours, sql)
            if answer is None:
                refused[problem.splitlines()[0]] += 1
            elif answer == expected:
                equal += 1
            else:
                wrong += 1
                print(f"seed {seed} (tables {seed - n % 50})\n{sql}\nexpected {expected}\ngot      {answer}")
    print(f"{equal} equal, {wrong} wrong, {sum(refused.values())} refused")
    for message, count in refused.most_common(12):
        print(f"{count:6} {message}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
