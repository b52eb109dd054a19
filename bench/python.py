"""Marks of the Python package, with peers in the same run.

    python bench/python.py [--rows 10000000] [--repeat 3]

Needs the package, built for release; DuckDB, Polars, Pathway and bytewax are measured where they
are installed. Times are of the process (CPU seconds, all threads) and of the clock; of `repeat`
runs the least is printed, and the greatest.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
import time
from typing import Any, Callable

ROWS: list = []


def there(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    waited_for = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + waited_for.ru_utime + waited_for.ru_stime


def measured(what: str, who: str, f: Callable[[], Any], repeat: int, rows: int = 0) -> float:
    """Runs ``f`` so often; prints the least and the greatest; the least time of the clock."""
    took = []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), cpu_seconds()
        f()
        took.append((time.perf_counter() - wall, cpu_seconds() - cpu))
    least, most = (min(wall for wall, _ in took), min(cpu for _, cpu in took)), max(took)
    rate = f"  {rows / least[1] / 1e6:8.2f} M rows/CPU s" if rows else ""
    print(f"{what:<34} {who:<12} {least[0] * 1e3:12.3f} ms .. {most[0] * 1e3:.3f}, CPU {least[1] * 1e3:.1f} ms{rate}", flush=True)
    ROWS.append((what, who, least))
    return least[0]


def startup(repeat: int) -> None:
    for who, module in (("anabranch", "anabranch"), ("duckdb", "duckdb"), ("polars", "polars")):
        if there(module):
            measured("import (a process of its own)", who, lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True), repeat)
    measured("an empty process", "python", lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), repeat)


def trivial(ab: Any, repeat: int) -> None:
    n = 1000
    db = ab.connect()
    t = db.create_table("t", {"k": int, "v": int}, primary_key="k")
    t.insert([(i, i) for i in range(100)])
    view = t.group_by().agg(n=ab.len()).create_view("n")

    def of(f: Callable[[], Any]) -> Callable[[], None]:
        def many() -> None:
            for _ in range(n):
                f()
        return many

    for what, f in [("SELECT 1", lambda: db.sql("SELECT 1").item()), ("a view of one row", view.item),
                    ("a row by its key", lambda: db.sql("SELECT v FROM t WHERE k = 7").item()),
                    ("an insert of one row", lambda: db.execute("INSERT INTO t VALUES (?, 1)", [next(numbers)]))]:
        numbers = iter(range(1000, 10**9))
        took = measured(f"{n} times: {what}", "anabranch", of(f), repeat)
        print(f"    one: {took / n * 1e6:.0f} us")
        if what.startswith("an insert"):
            db.execute("DELETE FROM t WHERE k >= 1000")
    db.close()
    if there("duckdb"):
        import duckdb

        con = duckdb.connect()
        took = measured(f"{n} times: SELECT 1", "duckdb", of(lambda: con.sql("SELECT 1").fetchall()), repeat)
        print(f"    one: {took / n * 1e6:.0f} us")


def ingest(ab: Any, rows: int, repeat: int) -> Any:
    import polars as pl

    frame = pl.DataFrame({"k": pl.int_range(rows, eager=True) % 1000, "x": pl.int_range(rows, eager=True)}).with_columns(y=pl.col("x") * 0.5)
    from anabranch import _native

    native = _native.Rows.from_capsule(frame)
    ours = native.buffer(1)[0].__array_interface__["data"][0]
    theirs = frame["x"].to_numpy().__array_interface__["data"][0]
    print(f"buffers are shared: {ours == theirs}")

    def whole() -> None:
        with ab.connect() as db:
            db.create_table("t", frame)
            db._engine.execute("SELECT count(*) FROM t")

    def engine_only() -> None:
        with ab.connect() as db:
            db.create_table("t", {"k": int, "x": int, "y": float})
            db._engine.insert("t", native)
            # (Rows that nothing reads are held as they came: without a read, closing would sort
            # them.)
            db._engine.execute("SELECT count(*) FROM t")

    measured("a Polars frame becomes a table", "anabranch", whole, repeat, rows)
    measured("the same, engine alone", "anabranch", engine_only, repeat, rows)
    return frame


def out(ab: Any, frame: Any, repeat: int) -> None:
    with ab.connect() as db:
        t = db.create_table("t", frame)
        rows = t.collect()
        measured("an answer to pyarrow", "anabranch", rows.arrow, repeat, len(rows))
        measured("an answer to Polars", "anabranch", rows.pl, repeat, len(rows))
        measured("an answer to NumPy", "anabranch", rows.numpy, repeat, len(rows))


def functions(ab: Any, frame: Any, repeat: int) -> None:
    import numpy as np

    @ab.udf(returns=float)
    def scaled(y: np.ndarray) -> Any:
        return y * 2.0 + 1.0

    @ab.udf(returns=float)
    def nothing(y: np.ndarray) -> Any:
        return y

    @ab.udaf(returns=float)
    class weighted:
        def initial(self): return (0.0, 0)
        def accumulate(self, s, x, w): return (s[0] + x * w, s[1] + w)
        def finish(self, s): return s[0] / s[1]

    with ab.connect() as db:
        t = db.create_table("t", frame)
        y = ab.col("y")
        n = len(frame)
        measured("sum of an expression", "built-in", t.select((y * 2.0 + 1.0).sum()).item, repeat, n)
        measured("sum of a batch udf", "anabranch", t.select(scaled("y").sum()).item, repeat, n)
        measured("sum of a udf that does nothing", "anabranch", t.select(nothing("y").sum()).item, repeat, n)
        g = t.group_by("k")
        measured("weighted mean by key", "built-in", g.agg(((y * ab.col("x")).sum() / ab.col("x").sum()).alias("m")).fetchall, repeat, n)
        measured("weighted mean by key", "traced udaf", g.agg(weighted("y", "x").alias("m")).fetchall, repeat, n)


def wordcount(ab: Any, rows: int, repeat: int) -> None:
    import polars as pl

    words = pl.DataFrame({"word": ("w" + (pl.int_range(rows, eager=True) * 7919 % 5000).cast(pl.String))})

    def ours() -> None:
        with ab.connect() as db:
            t = db.create_table("words", {"word": str})
            view = t.group_by("word").agg(n=ab.len()).create_view("counts")
            t.insert(words)
            assert view.row_count() == 5000

    measured("wordcount, kept current", "anabranch", ours, repeat, rows)
    measured("wordcount, once", "polars", lambda: words.group_by("word").len(), repeat, rows)
    if there("duckdb"):
        import duckdb

        con = duckdb.connect()
        con.register("words", words)
        measured("wordcount, once", "duckdb", lambda: con.sql("SELECT word, count(*) FROM words GROUP BY word").fetchall(), repeat, rows)
    few = rows // 20
    if there("bytewax"):
        import bytewax.operators as op
        from bytewax.dataflow import Dataflow
        from bytewax.testing import TestingSink, TestingSource, run_main

        listed = words["word"].head(few).to_list()

        def theirs() -> None:
            found: list = []
            flow = Dataflow("words")
            s = op.input("in", flow, TestingSource(listed, batch_size=10_000))
            s = op.count_final("count", s, lambda w: w)
            op.output("out", s, TestingSink(found))
            run_main(flow)
            assert len(found) == 5000

        measured(f"wordcount of {few} words", "bytewax", theirs, 1, few)
    if there("pathway"):
        measured(f"wordcount of {few} words", "pathway", lambda: pathway_words(words["word"].head(few).to_list()), 1, few)


def pathway_words(listed: list) -> None:
    import pandas as pd
    import pathway as pw

    t = pw.debug.table_from_pandas(pd.DataFrame({"word": listed}))
    counted = t.groupby(t.word).reduce(t.word, n=pw.reducers.count())
    assert len(pw.debug.table_to_pandas(counted)) == 5000


def windows(ab: Any, rows: int, repeat: int) -> None:
    import polars as pl

    frame = pl.DataFrame({"k": pl.int_range(rows, eager=True) % 100, "at": pl.int_range(rows, eager=True), "x": pl.int_range(rows, eager=True) % 17})

    def ours() -> None:
        with ab.connect() as db:
            t = db.create_table("t", {"k": int, "at": int, "x": int})
            view = t.group_by_dynamic("at", every=100_000, group_by="k").agg(n=ab.len(), s=ab.col("x").sum()).create_view("v")
            t.insert(frame)
            assert view.row_count() == 100 * ((rows + 99_999) // 100_000)

    measured("a grouped window, kept current", "anabranch", ours, repeat, rows)
    measured("a grouped window, once", "polars", lambda: frame.with_columns(w=pl.col("at") // 100_000).group_by("k", "w").agg(pl.len(), pl.col("x").sum()), repeat, rows)
    few = rows // 20
    if there("bytewax"):
        measured(f"a grouped window of {few} rows", "bytewax", lambda: bytewax_windows(frame.head(few)), 1, few)
    if there("pathway"):
        measured(f"a grouped window of {few} rows", "pathway", lambda: pathway_windows(frame.head(few)), 1, few)


def bytewax_windows(frame: Any) -> None:
    from datetime import datetime, timedelta, timezone

    import bytewax.operators as op
    import bytewax.operators.windowing as win
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, TestingSource, run_main

    zero = datetime(2026, 1, 1, tzinfo=timezone.utc)
    rows = [(str(k), (zero + timedelta(milliseconds=at), x)) for k, at, x in frame.rows()]
    found: list = []
    flow = Dataflow("windows")
    s = op.input("in", flow, TestingSource(rows, batch_size=10_000))
    # (Its watermark goes on with the clock of the machine: a short wait makes rows late on a slow
    # one.)
    clock = win.EventClock(lambda row: row[0], wait_for_system_duration=timedelta(days=1))
    tumbling = win.TumblingWindower(length=timedelta(milliseconds=100_000), align_to=zero)
    made = win.fold_window("sum", s, clock, tumbling, lambda: (0, 0), lambda a, row: (a[0] + 1, a[1] + row[1]),
                           lambda a, b: (a[0] + b[0], a[1] + b[1]))
    op.output("out", made.down, TestingSink(found))
    run_main(flow)
    assert sum(counted for _, (_, (counted, _)) in found) == len(rows)


def pathway_windows(frame: Any) -> None:
    import pathway as pw

    t = pw.debug.table_from_pandas(frame.to_pandas())
    made = t.windowby(t.at, window=pw.temporal.tumbling(duration=100_000), instance=t.k).reduce(
        k=pw.this._pw_instance, start=pw.this._pw_window_start, n=pw.reducers.count(), s=pw.reducers.sum(pw.this.x))
    assert pw.debug.table_to_pandas(made)["n"].sum() == len(frame)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    import anabranch as ab

    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores, anabranch {ab.__version__}")
    startup(given.repeat)
    trivial(ab, given.repeat)
    frame = ingest(ab, given.rows, given.repeat)
    out(ab, frame, given.repeat)
    functions(ab, frame, given.repeat)
    wordcount(ab, given.rows, given.repeat)
    windows(ab, given.rows, given.repeat)


if __name__ == "__main__":
    main()
