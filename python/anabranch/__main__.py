"""``anabranch`` and ``python -m anabranch``: the shell, scripts, the server and the demo of the
program.

``--load FILE`` runs a Python file first, which registers functions (it sees ``db``); then ``-c``,
``-f`` or standard input run in a database in memory.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from typing import List, Optional

from . import _native


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs a command line; the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if any(word == "--load" or word.startswith("--load=") for word in given):
        return _with_functions(given)
    return _native.command_line(["anabranch", *given])


def _with_functions(arguments: List[str]) -> int:
    """Statements that may call functions of a Python file."""
    import anabranch as ab

    parser = argparse.ArgumentParser(prog="anabranch --load", description="Runs SQL with functions of Python, in memory.")
    parser.add_argument("--load", required=True, help="a Python file that registers functions: it sees `db`")
    parser.add_argument("-c", dest="command", help="statements to run")
    parser.add_argument("-f", dest="file", help="a file of statements")
    parser.add_argument("--csv", action="store_true", help="rows as CSV")
    parser.add_argument("--json", action="store_true", help="rows as lines of JSON")
    given = parser.parse_args(arguments)
    with ab.connect() as db:
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
