"""``python -m anabranch [-c SQL] [-f FILE] [--csv | --json]``: statements from the command line."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from typing import List, Optional

import anabranch as ab


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs statements of ``-c``, of a file, or of standard input."""
    parser = argparse.ArgumentParser(prog="python -m anabranch", description="Runs SQL in a database in memory.")
    parser.add_argument("-c", dest="command", help="statements to run")
    parser.add_argument("-f", dest="file", help="a file of statements")
    parser.add_argument("--load", help="a Python file that registers functions: it sees `db`")
    parser.add_argument("--csv", action="store_true", help="rows as CSV")
    parser.add_argument("--json", action="store_true", help="rows as lines of JSON")
    given = parser.parse_args(arguments)
    with ab.connect() as db:
        if given.load:
            with open(given.load, encoding="utf-8") as file:
                exec(compile(file.read(), given.load, "exec"), {"db": db, "__name__": "__anabranch__"})
        if given.command is not None:
            text = given.command
        elif given.file is not None:
            with open(given.file, encoding="utf-8") as file:
                text = file.read()
        else:
            text = sys.stdin.read()
        try:
            rows = db.execute(text)
        except ab.Error as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        if not rows.columns:
            return 0
        if given.csv:
            writer = csv.writer(sys.stdout)
            writer.writerow(rows.columns)
            writer.writerows(rows.fetchall())
        elif given.json:
            for row in rows.to_dicts():
                print(json.dumps(row, default=str))
        else:
            print(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
