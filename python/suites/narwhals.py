#!/usr/bin/env python3
"""Runs the tests of Narwhals that take a table of Ibis, over this package's backend.

Usage: narwhals.py [--in-order] [--folder FOLDER] [PYTEST ARGUMENT ..]

The tests come from the source package on PyPI, in the version that is installed; pytest,
hypothesis, polars, pandas, pyarrow, ibis-framework and duckdb must be there. A relation has no
order, so the rows of an answer are compared as a multiset; with --in-order they are compared as
Narwhals does, in the order in which rows were put in.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request

BACKEND = ("return ibis.duckdb.connect()", "import anabranch.ibis, anabranch; return anabranch.ibis.backend(anabranch.connect())")
COMPARED = "    result = {key: _to_comparable_list(result[key]) for key in expected}\n"
SORTED = COMPARED + """    if is_ibis and len({len(list(v)) for v in [*result.values(), *expected.values()]}) == 1:
        def _cell(v):
            is_number = isinstance(v, (int, float)) and not isinstance(v, bool)
            return (v is None or v != v, str(round(v, 6) + 0.0) if is_number else str(v))
        def _sorted(columns):
            rows = sorted(zip(*columns.values()), key=lambda row: [_cell(v) for v in row])
            return {n: [row[i] for row in rows] for i, n in enumerate(columns)}
        result, expected = _sorted(result), _sorted({n: expected[n] for n in result})
"""


def fetched(folder: pathlib.Path, version: str) -> pathlib.Path:
    """The source package, unpacked."""
    tests = folder / f"narwhals-{version}"
    if not tests.exists():
        page = "https://pypi.org/pypi/narwhals/json"
        with urllib.request.urlopen(page) as answer:
            files = json.load(answer)["releases"][version]
        source = next(file["url"] for file in files if file["packagetype"] == "sdist")
        with urllib.request.urlopen(urllib.parse.urljoin(page, source)) as answer:
            tarfile.open(fileobj=io.BytesIO(answer.read())).extractall(folder, filter="data")
    return tests


def put(path: pathlib.Path, before: str, after: str) -> None:
    """Writes one text in the place of another."""
    text = path.read_text()
    if before not in text and after not in text:
        sys.exit(f"{path} has changed: {before!r} is not in it")
    if not (after in text and before in after):
        path.write_text(text.replace(before, after))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--in-order", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path.home() / ".cache" / "anabranch" / "suites")
    options, further = parser.parse_known_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    tests = fetched(options.folder, importlib.metadata.version("narwhals"))
    put(tests / "tests" / "conftest.py", *BACKEND)
    put(tests / "tests" / "utils.py", *((SORTED, COMPARED) if options.in_order else (COMPARED, SORTED)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--constructors=ibis", "-k", "ibis", "tests"]
    return subprocess.call(command + further, cwd=tests, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})


if __name__ == "__main__":
    sys.exit(main())
