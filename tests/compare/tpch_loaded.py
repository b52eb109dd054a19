#!/usr/bin/env python3
"""DuckDB's side of `anabranch-bench tpch --first-build` and `--changes`: CPU seconds of queries, on
one thread.

Usage: python tests/compare/tpch_loaded.py FOLDER       (needs duckdb)

The folder has a Parquet file for each table and `spec.json`: texts of queries, and ranges of order
keys. Rows are loaded first. Without ranges a query is answered three times, and the median counts.
With ranges each of them is taken away with its lines and put back; after each change the query is
answered in full, and the median of change and answer counts. Prints one JSON object.
"""

import json
import pathlib
import statistics
import sys
import time

import duckdb

TABLES = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"]
KEYS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}


def seconds(database: duckdb.DuckDBPyConnection, *statements: str) -> float:
    """CPU seconds of some statements, answers fetched."""
    start = time.process_time()
    for statement in statements:
        database.execute(statement).fetchall()
    return time.process_time() - start


def changed(database: duckdb.DuckDBPyConnection, text: str, ranges: list[list[int]]) -> float:
    """The median cost of a change and the answer after it."""
    found = []
    for low, high in ranges:
        within = {table: f"{key} >= {low} and {key} < {high}" for table, key in KEYS.items()}
        for table, condition in within.items():
            database.execute(f"create or replace temp table kept_{table} as from {table} where {condition}")
        found.append(seconds(database, *(f"delete from {t} where {c}" for t, c in within.items()), text))
        found.append(seconds(database, *(f"insert into {t} from kept_{t}" for t in KEYS), text))
    return statistics.median(found)


def main() -> None:
    """Loads, then answers."""
    folder = pathlib.Path(sys.argv[1])
    spec = json.loads((folder / "spec.json").read_text())
    database = duckdb.connect(config={"threads": 1})
    for table in TABLES:
        database.execute(f"create table {table} as from read_parquet('{folder / table}.parquet')")
    answers = {}
    for query, text in spec["queries"].items():
        if spec["ranges"]:
            answers[query] = {"cpu_s": changed(database, text, spec["ranges"])}
        else:
            answers[query] = {"cpu_s": statistics.median(seconds(database, text) for _ in range(3))}
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
