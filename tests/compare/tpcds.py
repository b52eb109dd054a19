#!/usr/bin/env python3
"""Compares the 99 queries of TPC-DS with DuckDB: asked once, and kept current as views while sales
and returns are deleted and put in again.

Usage: python tests/compare/tpcds.py [--anabranch target/release/anabranch] [--workers N] [--scale
S] [--queries 1,2,3]

Data and queries are those of DuckDB's extension `tpcds`, which this script's own requirements pin
(tpcds-requirements.txt): it is published for other versions of DuckDB than the rest of the tests
use. A view has its query without the last LIMIT, for which of several equal rows come first is
open. Ends with a line `N passed, N failed`, a case a query and a case a view, and exits with 1 when
an answer differs.
"""

import argparse
import contextlib
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import duckdb
import psycopg
from duckdb_extensions import import_extension

from results import canonical, same

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TYPES = {"VARCHAR": "text", "INTEGER": "int", "BIGINT": "bigint", "DATE": "date"}
RELATIVE = 1e-9

# Tables that change, and the column that says which of their rows go and come again.
CHANGED = {
    "store_sales": "ss_ticket_number",
    "store_returns": "sr_ticket_number",
    "catalog_sales": "cs_order_number",
    "catalog_returns": "cr_order_number",
    "web_sales": "ws_order_number",
    "web_returns": "wr_order_number",
    "inventory": "inv_item_sk",
}


@contextlib.contextmanager
def server(program: str, workers: int) -> Iterator[psycopg.Connection]:
    """A connection to a server that ends with the block."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [program, "serve", "--listen", f"127.0.0.1:{port}", "--workers", str(workers)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield connected(port)
        finally:
            process.terminate()
            process.wait()


def connected(port: int) -> psycopg.Connection:
    for attempt in range(100):
        try:
            return psycopg.connect(host="127.0.0.1", port=port, user="any", dbname="any", autocommit=True)
        except psycopg.OperationalError:
            if attempt == 99:
                raise
            time.sleep(0.1)
    raise AssertionError("the loop returns or raises")


def load(peer: duckdb.DuckDBPyConnection, ours: psycopg.Cursor, folder: pathlib.Path) -> None:
    """The peer's tables and rows, in our engine too."""
    for (table,) in peer.execute("select table_name from duckdb_tables() order by 1").fetchall():
        described = peer.execute(f"describe {table}").fetchall()
        columns = ", ".join(f"{name} {TYPES.get(kind, kind)}" for name, kind, *_ in described)
        ours.execute(f"create table {table} ({columns})")
        file = folder / f"{table}.csv"
        peer.execute(f"copy {table} to '{file}' (header false)")
        with file.open("rb") as rows, ours.copy(f"copy {table} from stdin (format csv)") as copy:
            while block := rows.read(1 << 20):
                copy.write(block)


def differences(expected: list[tuple], actual: list[tuple]) -> list[str]:
    """What differs between two multisets of rows, in words; empty when nothing does."""
    if len(expected) != len(actual):
        return [f"rows: expected {len(expected)}, got {len(actual)}"]

    # (Numbers decide last and rounded, for both sides round them differently.)
    def key(row: list) -> tuple:
        texts = tuple("" if cell is None else str(cell) for cell in row if not is_number(cell))
        return texts, tuple(f"{cell:.6e}" for cell in row if is_number(cell))

    def is_number(cell: object) -> bool:
        return hasattr(cell, "as_tuple")

    left, right = (sorted(([canonical(cell) for cell in row] for row in rows), key=key) for rows in (expected, actual))
    found = [
        f"expected {[str(cell) for cell in one]}, got {[str(cell) for cell in other]}"
        for one, other in zip(left, right)
        if len(one) != len(other) or not all(same(a, b, RELATIVE) for a, b in zip(one, other))
    ]
    return found[:3]


class Comparison:
    """Answers of both, and how many agree."""

    def __init__(self, peer: duckdb.DuckDBPyConnection, ours: psycopg.Cursor) -> None:
        self.peer, self.ours = peer, ours
        self.failures: dict[str, list[str]] = {}
        self.with_rows: set[str] = set()

    def check(self, case: str, expected: str, actual: str) -> None:
        """Asks both; a difference is a failure of the case."""
        try:
            self.ours.execute(actual)
            rows = self.peer.execute(expected).fetchall()
            found = differences(rows, self.ours.fetchall())
            self.with_rows.update([case] if rows else [])
        except psycopg.Error as error:
            found = [str(error)]
        if found:
            self.failures.setdefault(case, []).extend(found)
            print(f"  {case}:", *found, sep="\n    ", flush=True)

    def change(self, statement: str) -> None:
        """The same change on both sides."""
        self.peer.execute(statement)
        self.ours.execute(statement)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--anabranch", default=str(ROOT / "target" / "release" / "anabranch"))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--scale", type=float, default=0.05)
    parser.add_argument("--queries", type=lambda text: {int(number) for number in text.split(",")})
    options = parser.parse_args()
    import_extension("tpcds")
    peer = duckdb.connect()
    peer.execute("load tpcds")
    queries = dict(peer.execute("select query_nr, query from tpcds_queries() order by 1").fetchall())
    queries = {number: text.strip().rstrip(";") for number, text in queries.items()}
    queries = {number: text for number, text in queries.items() if not options.queries or number in options.queries}
    peer.execute(f"call dsdgen(sf={options.scale})")
    with server(options.anabranch, options.workers) as connection, tempfile.TemporaryDirectory() as folder:
        ours = connection.cursor()
        load(peer, ours, pathlib.Path(folder))
        run = Comparison(peer, ours)
        for number, text in queries.items():
            run.check(f"query {number}", text, text)
        unlimited = {number: re.sub(r"\s+limit\s+\d+\s*$", "", text, flags=re.I) for number, text in queries.items()}
        for number, text in unlimited.items():
            columns = len(peer.execute(f"describe {text}").fetchall())
            # (Some columns of a query have one name.)
            names = ", ".join(f"c{n}" for n in range(columns))
            ours.execute(f"create materialized view view_{number} ({names}) as {text}")
        for phase in ("at first", "after deletions", "after insertions"):
            for table, column in CHANGED.items():
                if phase == "after deletions":
                    peer.execute(f"create table gone_{table} as select * from {table} where {column} % 7 = 3")
                    ours.execute(f"create table gone_{table} as select * from {table} where {column} % 7 = 3")
                    run.change(f"delete from {table} where {column} % 7 = 3")
                if phase == "after insertions":
                    run.change(f"insert into {table} select * from gone_{table} where {column} % 2 = 0")
            for number, text in unlimited.items():
                run.check(f"view {number}", text, f"select * from view_{number}")
    # (Two empty answers are equal, and say little.)
    if not options.queries and len(run.with_rows) < len(queries):
        run.failures["rows"] = ["too few answers have rows: choose a larger --scale"]
    failed = len(run.failures)
    print(f"{len(run.with_rows)} of {2 * len(queries)} cases have rows")
    print(f"{max(2 * len(queries) - failed, 0)} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
