"""The bounded forms of the temporal benchmark's questions in DuckDB and Polars, one thread, over
the same kind of rows in memory.

    python bench/temporal_peers.py [--events 10000000] [--runs 3]

Prints one JSON object a line: million events per CPU-second, as `anabranch-bench temporal` does.
Needs duckdb, polars and numpy. A bounded query sees all rows at once and answers once; the engine's
is maintained while time moves. Windows are (b - 100, b], as there.
"""

import argparse
import json
import os
import time

os.environ["POLARS_MAX_THREADS"] = "1"

import duckdb  # noqa: E402
import numpy as np  # noqa: E402
import polars as pl  # noqa: E402


def rows(events, per_tick, seed):
    random = np.random.default_rng(seed)
    return pl.DataFrame({
        "t": 1 + np.arange(events, dtype=np.int64) // per_tick,
        "key": random.integers(0, 1000, events, dtype=np.int32),
        "value": random.integers(0, 1_000_000, events, dtype=np.int64),
        "weight": random.random(events),
    })


WINDOW = "(t + 99) // 100"

DUCKDB = {
    "filter": "select * from events where key < 500",
    "project": "select t, key, value from events",
    "filter and project": "select t, key, value from events where key < 500",
    "tumbling count": f"select {WINDOW} as w, count(*) from events group by w",
    "tumbling sum": f"select {WINDOW} as w, sum(value) from events group by w",
    "hopping sum": "select w, sum(s) over (order by w rows 9 preceding) from "
                   "(select (t + 9) // 10 as w, sum(value) as s from events group by w)",
    "grouped tumbling sum": f"select {WINDOW} as w, key, sum(value) from events group by w, key",
    "grouped sliding sum": "select t, key, sum(s) over (partition by key order by t range 9 preceding) from "
                           "(select t, key, sum(value) as s from events group by t, key)",
    "join": "select l.t, l.key, l.value, r.value from lefts l join rights r on l.t = r.t and l.key = r.key",
    "asof": "select l.t, l.key, l.value, r.value from lefts l asof join rights r on l.key = r.key and l.t >= r.t",
    "where not exists": "select * from lefts l where not exists (select 1 from rights r where l.t = r.t and l.key = r.key)",
}

POLARS = {
    "filter": lambda e, l, r: e.filter(pl.col("key") < 500),
    "project": lambda e, l, r: e.select("t", "key", "value"),
    "filter and project": lambda e, l, r: e.filter(pl.col("key") < 500).select("t", "key", "value"),
    "tumbling count": lambda e, l, r: e.group_by(((pl.col("t") + 99) // 100).alias("w")).len(),
    "tumbling sum": lambda e, l, r: e.group_by(((pl.col("t") + 99) // 100).alias("w")).agg(pl.col("value").sum()),
    "hopping sum": lambda e, l, r: e.group_by(((pl.col("t") + 9) // 10).alias("w")).agg(pl.col("value").sum()).sort("w")
    .with_columns(pl.col("value").rolling_sum(10, min_samples=1)),
    "grouped tumbling sum": lambda e, l, r: e.group_by(((pl.col("t") + 99) // 100).alias("w"), "key")
    .agg(pl.col("value").sum()),
    "grouped sliding sum": lambda e, l, r: e.group_by("t", "key").agg(pl.col("value").sum()).sort("key", "t")
    .rolling(index_column="t", period="10i", group_by="key").agg(pl.col("value").sum()),
    "join": lambda e, l, r: l.join(r, on=["t", "key"]),
    "asof": lambda e, l, r: l.join_asof(r, on="t", by="key").drop_nulls("value_right"),
    "where not exists": lambda e, l, r: l.join(r, on=["t", "key"], how="anti"),
}


def measure(run, events, runs):
    rates = []
    for _ in range(runs):
        start = time.process_time()
        out = run()
        rates.append(events / 1e6 / (time.process_time() - start))
    return sorted(rates)[len(rates) // 2], out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    n = options.events
    events, lefts, rights = rows(n, 1000, 1), rows(n // 2, 500, 2), rows(n // 2, 500, 3)
    database = duckdb.connect(config={"threads": 1})
    for name in ["events", "lefts", "rights"]:
        database.register("frame", {"events": events, "lefts": lefts, "rights": rights}[name].to_arrow())
        database.execute(f"create table {name} as select * from frame")
    for case, sql in DUCKDB.items():
        rate, _ = measure(lambda: database.execute(f"create or replace temp table answer as {sql}"), n, options.runs)
        out = database.execute("select count(*) from answer").fetchone()[0]
        print(json.dumps({"bench": "temporal", "peer": f"duckdb {duckdb.__version__}", "case": case, "rate": rate, "outputs": out}), flush=True)
    for case, query in POLARS.items():
        plan = query(events.lazy(), lefts.lazy(), rights.lazy())
        rate, out = measure(lambda plan=plan: plan.collect(), n, options.runs)
        print(json.dumps({"bench": "temporal", "peer": f"polars {pl.__version__}", "case": case, "rate": rate, "outputs": len(out)}), flush=True)


if __name__ == "__main__":
    main()
