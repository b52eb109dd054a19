#!/usr/bin/env python3
"""DuckDB's side of `anabranch-bench nexmark`: answers one query over rows in a folder, on one
thread.

Usage: python tests/compare/nexmark.py FOLDER QUERY       (needs duckdb)

The folder has a Parquet file for each stream and `queries.json` (texts, and the streams they read).
Rows are loaded into tables first; CPU seconds are those of the query alone. Where
`qN.answer.parquet` exists, it is compared with DuckDB's answer as a multiset. Prints one JSON
object.
"""

import json
import pathlib
import resource
import sys
import time

import duckdb


def comparable(column: str, kind: str) -> str:
    """A column in the form that both sides share: all numbers as doubles of 12 digits, times and
    the rest as text."""
    if kind.startswith(("DOUBLE", "FLOAT", "DECIMAL", "HUGEINT", "BIGINT", "INTEGER", "UBIGINT", "SMALLINT")):
        return f"printf('%.11e', {column}::double)"
    return f"{column}::varchar"


def select(database: duckdb.DuckDBPyConnection, relation: str, names: list[str]) -> str:
    """The relation's rows, comparable, under names of the expected answer."""
    columns = database.execute(f"describe {relation}").fetchall()
    cells = [f'{comparable(chr(34) + column[0] + chr(34), column[1])} as "{name}"' for column, name in zip(columns, names)]
    return f"select {', '.join(cells)} from {relation}"


def compare(database: duckdb.DuckDBPyConnection, answer: pathlib.Path) -> dict:
    """How many rows are on one side only, and the first of them."""
    database.execute(f"create view ours as from read_parquet('{answer}')")
    names = [column[0] for column in database.execute("describe answer").fetchall()]
    ours, expected = select(database, "ours", names), select(database, "answer", names)
    database.execute(
        f"create table different as (select 'ours' as side, * from ({ours} except all {expected})) "
        f"union all (select 'duckdb', * from ({expected} except all {ours}))"
    )
    count = database.execute("select count(*) from different").fetchone()[0]
    return {"different": count, "example": str(database.execute("from different limit 4").fetchall())}


def main() -> None:
    """Answers, and compares where there is something to compare with."""
    folder, number = pathlib.Path(sys.argv[1]), sys.argv[2]
    query = json.loads((folder / "queries.json").read_text())[number]
    database = duckdb.connect(config={"threads": 1})
    for stream in query["streams"]:
        database.execute(f"create table {stream} as from read_parquet('{folder / stream}.parquet')")
    begin, cpu = time.monotonic(), time.process_time()
    database.execute(f"create table answer as {query['sql']}")
    figures = {"seconds": time.monotonic() - begin, "cpu_s": time.process_time() - cpu}
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures["rows"] = database.execute("select count(*) from answer").fetchone()[0]
    answer = folder / f"q{number}.answer.parquet"
    print(json.dumps(figures | (compare(database, answer) if answer.exists() else {})))


if __name__ == "__main__":
    main()
