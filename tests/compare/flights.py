#!/usr/bin/env python3
"""Compares the final answers of examples/flights.sql, as kept current by anabranch, with DuckDB's
on the same files.

Usage: python tests/compare/flights.py [--anabranch target/release/anabranch] [--workers N] (needs
duckdb)

DuckDB gets the same file: sources become views on the Parquet files and materialized views become
plain ones. The script ends with a line `N passed, N failed` and exits with 1 when a view differs.
"""

import argparse
import pathlib
import re
import subprocess
import sys

import duckdb

from results import differences, json_values

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "examples" / "flights.sql"


def statements(text: str) -> list[str]:
    """The statements of a script without comments (no string in it holds a semicolon or two
    dashes)."""
    return [part.strip() for part in re.sub(r"--.*", "", text).split(";") if part.strip()]


def answers_of_anabranch(binary: str, workers: int, views: list[str]) -> dict[str, list[dict]]:
    """Runs the script to the end of its sources and reads every view, in one session."""
    script = SCRIPT.read_text() + "\n"
    for view in views:
        script += f"SELECT '{view}' AS __view;\nSELECT * FROM {view};\n"
    command = [binary, "--json", "--workers", str(workers), "-f", "-"]
    run = subprocess.run(command, cwd=ROOT, input=script, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"anabranch ended with {run.returncode}\n{run.stderr}")
    answers: dict[str, list[dict]] = {}
    rows: list[dict] = []
    for row in json_values(run.stdout):
        if "__view" in row:
            rows = answers.setdefault(row["__view"], [])
        else:
            rows.append(row)
    return answers


def answers_of_duckdb() -> dict[str, list[dict]]:
    """The same questions, asked once over the whole files."""
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    answers: dict[str, list[dict]] = {}
    for statement in statements(SCRIPT.read_text()):
        if source := re.match(r"CREATE SOURCE (\w+) .*path = '([^']+)'", statement, re.DOTALL):
            database.execute(f"CREATE VIEW {source[1]} AS SELECT * FROM read_parquet('{ROOT / source[2]}')")
        elif view := re.match(r"CREATE MATERIALIZED VIEW (\w+)", statement):
            database.execute(statement.replace("MATERIALIZED VIEW", "VIEW", 1))
            result = database.execute(f"SELECT * FROM {view[1]}")
            names = [column[0] for column in result.description]
            answers[view[1]] = [dict(zip(names, row)) for row in result.fetchall()]
    return answers


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--anabranch", default=str(ROOT / "target" / "release" / "anabranch"))
    arguments.add_argument("--workers", type=int, default=1)
    arguments.add_argument("--show", action="store_true", help="print DuckDB's answers and stop")
    options = arguments.parse_args()
    expected = answers_of_duckdb()
    if options.show:
        for view, rows in expected.items():
            print(view, *rows[:12], sep="\n  ")
        return
    actual = answers_of_anabranch(options.anabranch, options.workers, list(expected))
    failed = 0
    for view, rows in expected.items():
        found = differences(rows, actual.get(view, []), relative=1e-9)
        failed += bool(found)
        print(f"{'FAILED' if found else 'ok':6} {view} ({len(rows)} rows)", *found, sep="\n    ")
    print(f"{len(expected) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
