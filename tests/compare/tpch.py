#!/usr/bin/env python3
"""Compares the 22 TPC-H queries, kept current as materialized views, with DuckDB's answers on the
same rows.

Usage: python tests/compare/tpch.py [--program target/release/tpch-check] [--scale 0.01 --scale 0.1]
[--only NAME] (needs duckdb)

The program streams the generated rows into a session (several batch sizes, several numbers of
workers; all views together with shared indexes, one by one, and made after the rows are there),
then deletes and updates, and writes what every view contains after each phase. DuckDB reads the
same rows from Parquet, makes the same changes with the same statements and answers the same queries
from scratch. Whole numbers, decimals, text and dates have to be equal; columns that DuckDB computes
as DOUBLE (averages and quotients) within 1e-6. Ends with a line `N passed, N failed`.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import duckdb

from results import canonical, same

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RELATIVE = 1e-6


class Run(NamedTuple):
    """One way to get the same answers."""

    mode: str
    batch: int
    workers: int

    def name(self, scale: str) -> str:
        return f"scale-{scale}-{self.mode}-batch-{self.batch}-workers-{self.workers}"


RUNS = {
    "0.01": [
        Run("together", 100, 0),
        Run("together", 1000, 1),
        Run("together", 20000, 2),
        Run("alone", 1000, 0),
        Run("alone", 7000, 3),
        Run("late", 5000, 1),
    ],
    "0.1": [Run("together", 10000, 1), Run("together", 100000, 2), Run("alone", 50000, 1), Run("late", 50000, 2)],
}


class Answer(NamedTuple):
    """Rows in no order, and which columns are approximate."""

    rows: list[tuple]
    approximate: list[bool]


def run_program(program: str, out: pathlib.Path, scale: str, run: Run) -> float:
    """Runs the program, which leaves its results in `out`; seconds it took."""
    start = time.monotonic()
    options = {"--out": out, "--scale": scale, "--batch": run.batch, "--workers": run.workers, "--mode": run.mode}
    command = [program] + [str(word) for option in options.items() for word in option]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\nended with {done.returncode}\n{done.stderr}")
    return time.monotonic() - start


def expected_answers(folder: pathlib.Path) -> dict[tuple[str, str], Answer]:
    """DuckDB's answers by phase and query, over the rows and by the manifest in `folder`."""
    manifest = json.loads((folder / "manifest.json").read_text())
    database = duckdb.connect()
    for table in sorted((folder / "tables").glob("*.parquet")):
        database.execute(f"create table {table.stem} as select * from read_parquet('{table}')")
    answers = {}
    for phase in manifest["phases"]:
        for statement in phase["statements"]:
            database.execute(statement)
        for query, text in manifest["queries"].items():
            answers[phase["name"], query] = fetch(database, text)
    return answers


def fetch(database: duckdb.DuckDBPyConnection, text: str) -> Answer:
    result = database.execute(text)
    approximate = [str(column[1]) in ("DOUBLE", "FLOAT") for column in result.description]
    return Answer(result.fetchall(), approximate)


def differences(expected: Answer, actual: Answer) -> list[str]:
    """What differs, in words; empty when nothing does. Columns go by position, rows in no order."""
    left, right = sorted_rows(expected.rows, expected.approximate), sorted_rows(actual.rows, expected.approximate)
    if left and right and len(left[0]) != len(right[0]):
        return [f"columns: expected {len(left[0])}, got {len(right[0])}"]
    found = [] if len(left) == len(right) else [f"rows: expected {len(left)}, got {len(right)}"]
    for one, other in zip(left, right):
        cells = zip(one, other, expected.approximate)
        if not all(same(a, b, RELATIVE if approximate else 0) for a, b, approximate in cells):
            found.append(f"expected {[str(cell) for cell in one]}, got {[str(cell) for cell in other]}")
    return found if len(found) <= 3 else found[:3] + [f"and {len(found) - 3} more"]


def sorted_rows(rows: list[tuple], approximate: list[bool]) -> list[list]:
    """Canonical rows in the order of their exact cells; approximate ones decide last and
    rounded."""

    def key(row: list) -> tuple:
        exact = tuple(cell_key(cell) for cell, rough in zip(row, approximate) if not rough)
        return exact, tuple(f"{cell:.4e}" if cell is not None else "" for cell, rough in zip(row, approximate) if rough)

    return sorted(([canonical(cell) for cell in row] for row in rows), key=key)


def cell_key(cell: object) -> str:
    """Equal numbers of different scale (1.5 and 1.50) have equal keys."""
    return "" if cell is None else str(cell.normalize()) if hasattr(cell, "normalize") else str(cell)


def compare(out: pathlib.Path, expected: dict[tuple[str, str], Answer]) -> tuple[int, int]:
    """Compares all results of one run; how many agree and how many do not."""
    database = duckdb.connect()
    passed = failed = 0
    for (phase, query), answer in expected.items():
        actual = fetch(database, f"select * from read_parquet('{out / phase / f'{query}.parquet'}')")
        found = differences(answer, actual)
        passed, failed = passed + (not found), failed + bool(found)
        if found:
            print(f"  {phase} {query}:", *found, sep="\n    ")
    return passed, failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "target" / "release" / "tpch-check"))
    parser.add_argument("--scale", action="append", choices=list(RUNS), help="default: all")
    parser.add_argument("--only", default="", help="only runs whose name contains this")
    arguments = parser.parse_args()
    passed = failed = 0
    for scale in arguments.scale or list(RUNS):
        with tempfile.TemporaryDirectory(prefix="tpch-") as folder:
            base = pathlib.Path(folder)
            run_program(arguments.program, base, scale, Run("tables", 1, 0))
            expected = expected_answers(base)
            filled = sum(bool(answer.rows) for answer in expected.values())
            print(f"scale {scale}: DuckDB has rows for {filled} of {len(expected)} answers")
            for run in RUNS[scale]:
                name = run.name(scale)
                if arguments.only not in name:
                    continue
                try:
                    seconds = run_program(arguments.program, base / name, scale, run)
                    good, bad = compare(base / name, expected)
                except (RuntimeError, duckdb.Error) as error:
                    print(error)
                    good, bad, seconds = 0, len(expected), 0.0
                print(f"{name}: {good} equal, {bad} different, {seconds:.1f} s", flush=True)
                passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
