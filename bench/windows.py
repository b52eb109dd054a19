"""What a row costs that comes to one partition under window functions, beside DuckDB.

Usage: python bench/windows.py [--rows 1000000] [--runs 5] [--within]

Rows come behind all others; with --within they come late, a hundredth of the partition before its
end and, of frames that move, anywhere.

Needs the package, numpy, pyarrow and duckdb. Ours: CPU time of an `INSERT` of one row, all threads,
with a view that the row changes current; the least of the runs, and all of them. Without a view and
with a view `p + 1` stand beside, so that the window's own part can be told. DuckDB: CPU time of the
query asked anew, on one thread, which is what one has there after each row.
"""

import argparse
import time

import numpy
import pyarrow

import anabranch

VIEWS = {
    "no view": None,
    "p + 1": "p + 1",
    "running total": "sum(p) OVER (PARTITION BY k ORDER BY t)",
    "mean of 10 rows": "avg(p) OVER (PARTITION BY k ORDER BY t ROWS 10 PRECEDING)",
    "greatest of a range": "max(p) OVER (PARTITION BY k ORDER BY t RANGE BETWEEN 100 PRECEDING AND CURRENT ROW)",
}
WITHIN = {
    "no view": None,
    "p + 1": "p + 1",
    "running total, late": "sum(p) OVER (PARTITION BY k ORDER BY t)",
    "greatest so far": "max(p) OVER (PARTITION BY k ORDER BY t)",
    "value before": "lag(p) OVER (PARTITION BY k ORDER BY t)",
    "mean of 10 rows": "avg(p) OVER (PARTITION BY k ORDER BY t ROWS 10 PRECEDING)",
    "greatest of a range": "max(p) OVER (PARTITION BY k ORDER BY t RANGE BETWEEN 100 PRECEDING AND CURRENT ROW)",
}
APPENDED = 1000


def table(rows: int) -> pyarrow.Table:
    numbers = numpy.arange(rows)
    return pyarrow.table({"k": numpy.ones(rows, dtype=numpy.int64), "t": numbers, "p": numbers % 100})


def ours(rows: int, computed: str | None, runs: int, late: int | None = None) -> list[float]:
    """Microseconds a row; of rows that come at most so many before the end, if that is said."""
    with anabranch.connect() as db:
        db.create_table("q", {"k": int, "t": int, "p": int}).insert(table(rows))
        if computed:
            db.sql(f"SELECT t, {computed} AS x FROM q").create_view("v")
        following, costs = rows, []

        def append(count: int) -> None:
            nonlocal following
            for _ in range(count):
                at = following if late is None else rows - 1 - (following * 7919) % late
                db.execute(f"INSERT INTO q VALUES (1, {at}, {following % 100})")
                following += 1
            if late is not None:
                return
            if computed:
                assert db.sql(f"SELECT count(*) FROM v WHERE t >= {following - count}").item() == count

        append(APPENDED)  # (The first row behind a partition looks at all of it.)
        time.sleep(1)
        for _ in range(runs):
            before = time.process_time()
            append(APPENDED)
            costs.append((time.process_time() - before) / APPENDED * 1e6)
        return costs


def theirs(rows: int, computed: str, runs: int) -> list[float]:
    """Microseconds a query."""
    import duckdb

    db = duckdb.connect(config={"threads": 1})
    q = table(rows)  # noqa: F841 (read by its name)
    db.execute("CREATE TABLE q AS SELECT * FROM q")
    costs = []
    for _ in range(runs):
        before = time.process_time()
        db.execute(f"SELECT max(x) FROM (SELECT t, {computed} AS x FROM q)").fetchall()
        costs.append((time.process_time() - before) * 1e6)
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--within", action="store_true")
    options = parser.parse_args()
    print("| view | a row, us CPU: least (all runs) | DuckDB anew, us CPU: least |")
    print("|---|---:|---:|")
    for name, computed in (WITHIN if options.within else VIEWS).items():
        late = options.rows // (100 if name.endswith("late") else 1) if options.within else None
        costs = ours(options.rows, computed, options.runs, late)
        all_runs = ", ".join(f"{cost:.0f}" for cost in costs)
        peer = f"{min(theirs(options.rows, computed, options.runs)):,.0f}" if computed else ""
        print(f"| {name} | {min(costs):.0f} ({all_runs}) | {peer} |", flush=True)


if __name__ == "__main__":
    main()
