"""Sharded programs: statements A9, A10, A12, A17 of Quill's plans from Python; errors; runs."""

import random
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import anabranch as ab


def views(shards):
    return ab.Events.input("views", {"ad": int, "n": int, "at": int}, time="at").shards(shards)


ROWS = [(random.Random(at).randrange(9), at % 4, at) for at in range(1, 301)]


def count(shard):
    return shard.tumbling(50).agg(n=ab.len())


def add(shard):
    return shard.agg(n=ab.col("n").sum())


PLANS = {
    "a": lambda s: s.redistribute().query(count),
    "b": lambda s: s.query(count).redistribute().query(add),
    "c": lambda s: s.query(count).redistribute("local").query(add).redistribute().query(add),
    "d": lambda s: s.redistribute("local").query(count).redistribute().query(add),
}


@pytest.mark.parametrize("plan", sorted(PLANS))
@pytest.mark.parametrize("shards", [1, 2, 3, (2, 2)])
def test_the_four_plans_of_a_count_agree(plan, shards):
    expected = ab.Events.input("views", {"ad": int, "n": int, "at": int}, time="at").tumbling(50)
    expected = sorted(expected.group_by("ad").agg(n=ab.len()).run({"views": ROWS}))
    program = PLANS[plan](views(shards).rekey("ad"))
    pieces = {}
    for start, end, ad, n in program.check().run({"views": ROWS}):
        for tick in range(start, end):
            pieces[(ad, tick)] = pieces.get((ad, tick), 0) + n
    assert pieces == {(ad, tick): n for start, end, ad, n in expected for tick in range(start, end)}


def test_rows_move_to_groups_of_shards_and_branches_lie_where_a_list_says():
    counted = sorted(views(1).group_apply("ad", count).run({"views": ROWS}))
    for places in (2, [3, 1], {"socket 1": [2, 3]}):
        placed = views(4).rekey("ad").redistribute(shards=places).query(count)
        assert sorted(placed.check().run({"views": ROWS})) == counted
    assert "socket 1 (2, 3)" in placed.explain()
    with placed.start() as run:
        run.limit_bytes(1 << 20)
        run.push("views", ROWS)
        run.finish()
        moved = [step for step in run.profile().to_dicts() if step["action"].startswith("query")]
    assert {step["shard"] for step in moved if step["rows_out"]} <= {2, 3}

    def branches(shards):
        return views(shards).split(8, ab.col("ad") % 8)

    expected = sorted(branches(1).map(count).merge().run({"views": ROWS}))
    assert sorted(branches(4).placed([3, 1]).map(count).merge().run({"views": ROWS})) == expected
    for wrong in (-1, [0, -1], {"a": [0], "b": [1]}, "two", [9], {"nowhere": []}):
        with pytest.raises(ab.ProgrammingError):
            views(4).rekey("ad").redistribute(shards=wrong)


def summed(rows):
    """Rows by shard, time and columns, as often as they are there. (Before a time is complete it
    may be told in several changes.)"""
    sums = {}
    for shard, at, diff, *row in rows:
        sums[(shard, at, *row)] = sums.get((shard, at, *row), 0) + diff
    return {row: often for row, often in sums.items() if often}


def test_subscribers_and_progress():
    program = views(2).rekey("ad").redistribute().query(count)
    with program.start() as run:
        run.push("views", ROWS)
        expected = summed(run.finish())
    heard = []
    with program.start() as run:
        run.subscribe(lambda rows: heard.extend(rows.fetchall()))
        for at in range(0, len(ROWS), 50):
            run.push("views", ROWS[at:at + 50])
            run.advance("views", ROWS[at][2])
        assert run.progress().sources[0].frontiers == [251, 251]
        begun = time.monotonic()
        while not heard and time.monotonic() - begun < 20:
            run.advance_all(251)
        assert heard and not run.changes().fetchall()
        assert run.progress().frontier == 251
        assert not run.finish().fetchall()
        progress = run.progress()
    assert summed(heard) == expected
    assert (progress.sources[0].name, progress.sources[0].rows, progress.sources[0].share) == ("views", 300, None)
    assert (progress.queued, progress.row_errors, progress.failed) == (0, 0, None)

    with views(2).query(lambda s: s.select(q=60 // ab.col("n"))).start() as run:
        run.push("views", [(1, 0, 1), (1, 2, 1)])
        with pytest.raises(ab.DataError):
            run.finish()
        # (The row has ended, and its error with it; the run goes on.)
        assert (run.progress().row_errors, run.progress().failed) == (0, None)


def test_routes_are_of_columns_alone():
    for route in (ab.start() % 4, ab.end() % 4):
        with pytest.raises(ab.Error, match="reads their lifetimes"):
            views(2).split(4, route).merge().run({"views": ROWS})


def test_an_idle_shard_holds_up_no_other():
    with views(2).rekey("ad").redistribute().query(count).start() as run:
        run.push("views", [(1, 0, 10), (1, 0, 60)], shard=0)
        run.advance("views", 100, shard=0)
        assert not run.changes().fetchall()
        run.idle("views", 1)
        assert run.changes().fetchall()


def test_groups_are_applied_to_where_they_lie():
    grouped = views(3).group_apply("ad", count)
    assert grouped.explain().count("redistribute") == 1
    assert sorted(grouped.run({"views": ROWS})) == sorted(views(1).group_apply("ad", count).run({"views": ROWS}))
    assert "redistribute" not in views(3).packed_by("ad").group_apply("ad", count).explain()
    assert "redistribute" not in views(3).group_apply("ad", lambda ad: ad.filter(ab.col("n") > 2)).explain()


def test_the_three_plans_of_a_join_agree():
    def inputs():
        left = ab.Events.input("l", {"k": int, "x": int, "at": int}, time="at", duration=40).shards((2, 2)).rekey("k")
        right = ab.Events.input("r", {"k": int, "y": int, "at": int}, time="at", duration=90).shards((2, 2)).rekey("k")
        return left, right

    def join(a, b):
        return a.join(b, on="k").select("x", "y")

    def shuffled(l, r):
        return l.redistribute().query_with(r.redistribute(), join)

    def broadcast(l, r):
        return l.query_with(r.broadcast(), join)

    def mixed(l, r):
        return l.redistribute("local").query_with(r.broadcast("global").redistribute("local"), join)

    given = {"l": [(at % 5, at, at) for at in range(100)], "r": [(at % 7, at, at * 3) for at in range(30)]}
    answers = [sorted(plan(*inputs()).run(given)) for plan in (shuffled, broadcast, mixed)]
    assert answers[0] == answers[1] == answers[2] and len(answers[0]) > 100


QUERIES = [
    "SELECT region, sum(amount) AS total FROM orders GROUP BY region",
    "SELECT region, count(*) AS n, avg(amount) AS mean FROM orders JOIN places USING (place) GROUP BY region",
    "SELECT DISTINCT place FROM orders WHERE amount > 50",
    "SELECT place, amount FROM orders ORDER BY amount DESC, place LIMIT 7",
    "SELECT o.place, (SELECT max(amount) FROM orders i WHERE i.place = o.place) AS most FROM orders o WHERE amount > 95",
    "SELECT place FROM places WHERE place NOT IN (SELECT place FROM orders WHERE amount < 10)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_printed_programs_run_as_python(query):
    if "orders GROUP BY region" in query:
        query = query.replace("FROM orders", "FROM orders JOIN places USING (place)")
    with ab.connect() as db:
        db.create_table("orders", {"place": int, "amount": int}).insert([(i * 7 % 20, i * 37 % 101) for i in range(400)])
        db.create_table("places", {"place": int, "region": str}).insert([(i, f"r{i % 3}") for i in range(25)])
        text = "\n".join(line for (line,) in db.sql(f"EXPLAIN (FORMAT python) {query}").fetchall())
        env = {"db": db}
        exec(text, env)
        assert sorted(env["result"].collect()) == sorted(db.sql(query).fetchall())


def test_rows_of_a_relation_are_read_when_the_program_starts():
    with ab.connect() as db:
        t = db.create_table("t", {"k": int})
        program = db.shards(t, shards=2).sql("SELECT k FROM shard WHERE k > 1")
        t.insert([(1,), (2,), (3,)])
        assert sorted(program.collect()) == [(2,), (3,)]
        more = db.shards(db.sql("SELECT k * 2 AS k2 FROM t"), shards=3)
        assert sorted(more.collect()) == [(2,), (4,), (6,)] and more.width == 3


def test_branches_by_every_plan_are_the_same():
    answers = []
    for plan in ("auto", "flat", "exp", "max", "para", "local"):
        split = views(3).split(10, ab.col("ad"), ab.col("n") == 3, plan=plan)
        counts = split.map(lambda branch: branch.tumbling(300).agg(n=ab.len()))
        answers.append(sorted(counts.check().merge().run({"views": ROWS})))
        assert "fan-outs" in counts.explain()
    assert all(answer == answers[0] for answer in answers)
    broadcast = sum(n == 3 for _, n, _ in ROWS)
    assert [row[2:] for row in answers[0]] == [
        (b, broadcast + sum(ad == b and n != 3 for ad, n, _ in ROWS)) for b in range(10)]
    tree = split.map(lambda b: b.tumbling(300).select("ad", one=ab.lit(1)).group_by("ad").agg(n=ab.len()))
    by_tree = tree.merge_tree("ad", 3, lambda rows: rows.agg(n=ab.col("n").sum()))
    at_once = tree.merge_by("ad", add)
    # (Rows of a tree have the number of its root, 0, as their branch.)
    found = [(start, end, ad, n) for start, end, ad, branch, n in by_tree.run({"views": ROWS})]
    assert sorted(found) == sorted(at_once.run({"views": ROWS}))
    ordered = split.merge_by_time().run({"views": ROWS}).fetchall()
    assert len(ordered) == len(answers[0]) * broadcast + sum(n != 3 for _, n, _ in ROWS)


def test_options_of_a_parallel_split_change_no_branch():
    def branches(plan="para", **options):
        return views(3).split(10, ab.col("ad"), ab.col("n") == 3, plan=plan, **options)

    expected = sorted(branches("flat").merge().run({"views": ROWS}))
    for options in ({"splitters": 1}, {"splitters": 5, "window": 1, "seed": 7}, {"window": 3}, {"rate": 1e6}):
        assert sorted(branches(**options).merge().run({"views": ROWS})) == expected, options
    told = branches(splitters=2, window=64, seed=9).explain()
    assert "parasplit" in told and "2 splitters (given), windows of 64 rows (given), seed 9" in told
    assert "1 splitters (for the wanted rate)" in branches(rate=1000).explain()
    assert "one in each shard; the wanted rate needs" in branches(rate=1e9, rate_of_one=1e6).explain()
    assert "flat, the cheapest in one process" in branches("auto").explain()
    assert "flat, the cheapest in one process" in branches("local").explain()
    between = views((2, 2)).split(10, ab.col("ad"), ab.col("n") == 3)
    assert "exptree, the fastest between processes" in between.explain()
    for name in ("splitters", "window", "rate"):
        with pytest.raises(ab.ProgrammingError, match=f"{name} is a number"):
            branches(**{name: 0})
    with pytest.raises(ab.ProgrammingError, match='seed is an option of plan="para"'):
        branches("flat", seed=3)


def test_rows_go_to_the_shards_that_an_expression_names():
    with views(3).multicast(ab.when(ab.col("n") == 0).then(None).otherwise(ab.col("n") - 1)).start(checked=False) as run:
        run.push("views", [(1, n, 0) for n in range(4)])
        assert sorted((shard, n) for shard, _, diff, _, n, _ in run.finish() if diff > 0) == [(0, 1), (1, 2), (2, 3)]
    listed = views(3).multicast(ab.concat_list(ab.lit(0), ab.lit(2)))
    with listed.start(checked=False) as run:
        run.push("views", [(1, 1, 0)])
        assert sorted(row[0] for row in run.finish() if row[2] > 0) == [0, 2]


def test_texts_of_sql_are_expressions():
    by_text = views(3).split(10, "ad", "n = 3", plan="exp").merge().run({"views": ROWS})
    by_expr = views(3).split(10, ab.col("ad"), ab.col("n") == 3).merge().run({"views": ROWS})
    assert sorted(by_text) == sorted(by_expr)
    with views(3).multicast("case when n > 0 then n - 1 end").start(checked=False) as run:
        run.push("views", [(1, n, 0) for n in range(4)])
        assert sorted((shard, n) for shard, _, diff, _, n, _ in run.finish() if diff > 0) == [(0, 1), (1, 2), (2, 3)]


def test_live_rows_come_out_as_time_moves():
    with views(2).rekey("ad").redistribute().query(count).start() as run:
        run.push("views", [(1, 0, 3), (1, 0, 4)], shard=0)
        run.push("views", [ab.Event.point(5, (1, 0, 5))], shard=1)
        run.advance("views", 60, shard=0)
        assert not run.changes().fetchall(), "the other shard has not come so far"
        run.advance("views", 60, shard=1)
        assert [row[1:] for row in run.changes()] == [(50, 1, 1, 3), (100, -1, 1, 3)]
        assert run.frontiers() and min(run.frontiers()) >= 50
        profile = run.profile()
        with ab.connect() as db:
            taken = db.relation(profile).filter(ab.col("action") == "redistribute")["kept", "near"].collect().fetchall()
        assert sum(kept + near for kept, near in taken) == 3
        with pytest.raises(ab.ProgrammingError, match="has taken a part"):
            run.lifetimes()


def test_datasets_in_memory_in_folders_and_as_bytes(tmp_path):
    counts = views(2).rekey("ad").redistribute().query(count)
    expected = sorted(counts.run({"views": ROWS}))

    def run():
        run = counts.start()
        run.push("views", ROWS)
        return run

    kept = ab.Datasets()
    assert sorted(run().to_memory(kept, "counts").run()) == expected
    assert "counts" in kept and [d.name for d in kept] == ["counts"] and len(kept) == 1
    assert sorted(run().to_store(tmp_path / "counts").run()) == expected
    assert sorted(ab.Shards.stored(tmp_path / "counts").rekey("ad").query(add).run()) == expected
    paths = [tmp_path / "0.bin", tmp_path / "1.bin"]
    run().to_binary(paths)
    again = ab.Events.input("c", {"ad": int, "n": int}).shards(2)
    with again.start() as reading:
        for shard, path in enumerate(paths):
            reading.play_binary("c", shard, path)
        assert sorted(reading.lifetimes()) == expected
    del kept["counts"]
    with pytest.raises(ab.Error, match='no dataset "counts"'):
        kept["counts"]


def test_errors_name_what_is_wrong():
    s = views(2)
    with pytest.raises(ab.ProgrammingError, match='no column "adx".*'):
        s.rekey("adx")
    with pytest.raises(ab.ProgrammingError, match="without a key"):
        s.redistribute()
    with pytest.raises(ab.ProgrammingError, match="scope is one of"):
        s.rekey("ad").redistribute("nearby")
    with pytest.raises(ab.ProgrammingError, match="2 shards and of 3 shards"):
        s.query_with(views(3), lambda a, b: a.union(b))
    with pytest.raises(ab.ProgrammingError, match="partial results of each shard: n"):
        s.rekey("ad").query(count).run({"views": ROWS})
    with pytest.raises(ab.ProgrammingError, match="gave NoneType, not events"):
        s.query(lambda shard: None)
    with pytest.raises(ZeroDivisionError):
        s.query(lambda shard: 1 // 0)
    with pytest.raises(ab.ProgrammingError, match='input "views" has no rows'):
        s.run()
    with pytest.raises(ab.ProgrammingError, match="only an input becomes shards"):
        ab.Events.input("x", {"a": int, "at": int}, time="at").filter(ab.col("a") > 1).shards(2)
    with pytest.raises(ab.ProgrammingError, match="shards is a number from 1"):
        views(0)
    for wrong in ((2,), (2, 3, 4), "2", 1.5, (2, True)):
        with pytest.raises(ab.ProgrammingError, match="shards is a number from 1"):
            views(wrong)
    for wrong in (2**40, 0, -1, "8", 1.5, True):
        with pytest.raises(ab.ProgrammingError, match="width is a number of branches"):
            s.split(wrong, ab.col("ad"))
    with pytest.raises(ab.ProgrammingError, match="share is a number from 0 to 1"):
        s.split(4, ab.col("ad"), plan="max", share=2)
    with pytest.raises(ab.ProgrammingError, match="an expression was expected, not list"):
        s.multicast([0, 1])
    for wrong in (1.5, ab.lit("one"), "'one'"):
        with pytest.raises(ab.Error, match="a multicast names shards by a whole number"):
            s.multicast(wrong)
    with pytest.raises(ab.Error, match="the route of a split is a whole number"):
        s.split(4, "'one'")
    with pytest.raises(ab.ProgrammingError, match="plan is one of"):
        s.split(4, ab.col("ad"), plan="random")
    with pytest.raises(ab.Error, match=r"a row is routed to branch \d of 4"):
        s.split(4, ab.col("ad")).merge().run({"views": ROWS})
    with pytest.raises(ab.ProgrammingError, match="shard=0"):
        s.start().push("views", [ab.Event.point(1, (1, 1, 1))])
    with pytest.raises(ab.Error, match="there is no shard 7"):
        s.start().push("views", ROWS, shard=7)
    run = s.start()
    run.close()
    run.close()
    with pytest.raises(ab.InterfaceError):
        run.push("views", ROWS)


def test_two_processes_of_one_program():
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(f"127.0.0.1:{free.getsockname()[1]}")
    program = (
        "import anabranch as ab\n"
        "v = ab.Events.input('views', {'ad': int, 'n': int, 'at': int}, time='at').shards((2, 1)).rekey('ad')\n"
        "p = v.redistribute().query(lambda s: s.tumbling(50).agg(n=ab.len()))\n"
        f"p.serve(1, {ports!r})\n"
    )
    other = subprocess.Popen([sys.executable, "-c", program])
    try:
        counts = views((2, 1)).rekey("ad").redistribute().query(count)
        with counts.start(addresses=ports) as run:
            run.push("views", ROWS)
            found = sorted(run.lifetimes())
            far = sum(row["far"] for row in run.profile().to_dicts())
        assert found == sorted(views(1).rekey("ad").query(count).run({"views": ROWS}, checked=False))
        assert far > 0
        assert other.wait(30) == 0
    finally:
        other.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupt_stops_a_run():
    with ab.connect() as db:
        db.create_table("t", {"x": int}).insert([(x,) for x in range(6000)])
        t = db.shards("t", shards=2)
        program = t.sql_with(t, "SELECT sum((shard.x * 31 + other.x * 17 + third.x) % 7) AS n FROM shard, other, shard AS third")
        timer = threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT))
        begun = time.monotonic()
        timer.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                program.collect(checked=False)
        finally:
            timer.cancel()
        assert time.monotonic() - begun < 20
