#!/usr/bin/env python3
"""Fills in the expected results of tests/slt/*.slt by running the statements on PostgreSQL.

Usage: python tools/slt_expect.py [--dsn "host=.. port=.. user=postgres"] [--check] [FILE ..] (needs
psycopg)

Without --dsn a server is started in a temporary folder from the binaries under --bin (PostgreSQL
15; run as user `postgres` when we are root) and stopped at the end. Each file starts with an empty
schema. What changes on the way:

- `CREATE MATERIALIZED VIEW` becomes `CREATE VIEW` there: always current, as ours is;
- records under `skipif postgresql` are kept as they are: their expectations are written and checked
  by hand;
- numbers of type numeric lose trailing zeros after the point, as in crates/testing/tests/it/slt.rs:
  the scale of a
  computed numeric differs between systems and is not part of its value.

Column types, results and counts are written; statements never are. A statement that PostgreSQL
refuses though the file expects success, or the other way round, stops the tool. With --check
nothing is written and a difference is an error.
"""

import argparse
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import psycopg

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUMERIC, FLOATS, INTEGERS = 1700, {700, 701}, {20, 21, 23, 26}


@contextlib.contextmanager
def server(binaries: str) -> Iterator[str]:
    """A fresh server for the length of the block; yields its connection string."""
    with tempfile.TemporaryDirectory() as folder:
        def run(command: str) -> None:
            prefix = ["su", "postgres", "-c"] if os.geteuid() == 0 else ["sh", "-c"]
            subprocess.run(prefix + [command], check=True, stdout=subprocess.DEVNULL)

        os.chmod(folder, 0o777)
        run(f"{binaries}/initdb -D {folder}/data -A trust -U postgres --no-sync --locale=C.UTF-8 -E UTF8")
        run(f"{binaries}/pg_ctl -D {folder}/data -w -l {folder}/log -o '-k {folder} -c listen_addresses= -c fsync=off -c jit=off' start")
        try:
            yield f"host={folder} user=postgres dbname=postgres"
        finally:
            run(f"{binaries}/pg_ctl -D {folder}/data -w -m immediate stop")


def canonical(text: bytes | None, oid: int) -> str:
    """A cell as it stands in the files."""
    if text is None:
        return "NULL"
    cell = text.decode()
    if oid == NUMERIC and "." in cell:
        cell = cell.rstrip("0").rstrip(".")
    if oid == NUMERIC or oid in FLOATS:
        cell = "0" if cell == "-0" else cell
    elif oid == 1042:  # char(n)
        cell = cell.rstrip()
    return cell if cell else "(empty)"


def letter(oid: int) -> str:
    """The sqllogictest letter of a column type."""
    return "I" if oid in INTEGERS else "R" if oid == NUMERIC or oid in FLOATS else "T"


def for_postgresql(sql: str) -> str:
    """The statement as PostgreSQL has to see it."""
    return re.sub(r"\bMATERIALIZED VIEW\b", "VIEW", sql, count=1, flags=re.IGNORECASE)


class Database:
    """One connection, results as the server's text."""

    def __init__(self, dsn: str) -> None:
        self.connection = psycopg.connect(dsn, autocommit=True).pgconn
        self.run("SET client_min_messages = error")
        self.run("DROP SCHEMA IF EXISTS public CASCADE")
        self.run("CREATE SCHEMA public")
        self.run("SET TimeZone = 'UTC'")
        self.run("SET DateStyle = 'ISO, MDY'")

    def run(self, sql: str) -> tuple[str | None, object]:
        """Error text, and the result."""
        result = self.connection.exec_(sql.encode())
        failed = result.status not in (psycopg.pq.ExecStatus.COMMAND_OK, psycopg.pq.ExecStatus.TUPLES_OK)
        return (result.error_message.decode().strip() if failed else None), result


def results(result, mode: str) -> tuple[str, list[str]]:
    """Type letters and result lines."""
    rows = [
        [canonical(result.get_value(row, column), result.ftype(column)) for column in range(result.nfields)]
        for row in range(result.ntuples)
    ]
    if mode == "rowsort":
        rows.sort(key=lambda row: [cell.encode() for cell in row])
    return "".join(letter(result.ftype(column)) for column in range(result.nfields)), [" ".join(row) for row in rows]


def rewrite(path: pathlib.Path, dsn: str) -> tuple[str, int]:
    """The file's text with results filled in, and how many queries it asks."""
    database = Database(dsn)
    queries = 0
    out: list[str] = []
    for number, block in records(path.read_text()):
        head = next((index for index, line in enumerate(block) if line.startswith(("statement", "query"))), None)
        if head is None:
            out += block + [""]
            continue
        line = block[head]
        divider = block.index("----") if "----" in block else len(block)
        sql = "\n".join(block[head + 1 : divider])
        queries += line.startswith("query")
        if any(re.match(r"skipif\s+postgresql", part) for part in block[:head]):
            out += block + [""]
            continue
        error, result = database.run(for_postgresql(sql))
        place = f"{path}:{number + head}"
        if re.match(r"(statement|query) error", line):
            if error is None:
                sys.exit(f"{place}: expected an error, PostgreSQL accepts\n{sql}")
            out += block[:divider] + ([] if divider == len(block) else block[divider:]) + [""]
            continue
        if error is not None:
            sys.exit(f"{place}: PostgreSQL says {error}\n{sql}")
        if line.startswith("statement"):
            if line.startswith("statement count"):
                block[head] = f"statement count {int(result.command_tuples or 0)}"
            out += block + [""]
            continue
        mode = "rowsort" if "rowsort" in line else ""
        letters, lines = results(result, mode)
        out += block[:head] + [f"query {letters} {mode}".rstrip()] + block[head + 1 : divider] + ["----"] + lines + [""]
    return "\n".join(out).rstrip("\n") + "\n", queries


def records(text: str) -> Iterator[tuple[int, list[str]]]:
    """Blocks of lines between blank lines, with the number of their first line."""
    block: list[str] = []
    for number, line in enumerate(text.splitlines() + [""], start=1):
        if line.strip():
            block.append(line.rstrip())
        elif block:
            yield number - len(block), block
            block = []


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--dsn", help="connection string of a PostgreSQL 15 whose schema `public` may be emptied")
    arguments.add_argument("--bin", default="/usr/lib/postgresql/15/bin", help="folder of initdb and pg_ctl")
    arguments.add_argument("--check", action="store_true", help="write nothing; fail if a file would change")
    arguments.add_argument("files", nargs="*", type=pathlib.Path)
    options = arguments.parse_args()
    with contextlib.nullcontext(options.dsn) if options.dsn else server(options.bin) as dsn:
        total, changed = 0, []
        for path in options.files or sorted((ROOT / "tests" / "slt").glob("*.slt")):
            text, queries = rewrite(path, dsn)
            total += queries
            if text != path.read_text():
                changed.append(path.name)
                if not options.check:
                    path.write_text(text)
        print(f"{total} queries; changed: {', '.join(changed) or 'nothing'}")
        if options.check and changed:
            sys.exit(1)


if __name__ == "__main__":
    main()
