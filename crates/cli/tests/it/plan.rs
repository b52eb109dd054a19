//! `anabranch plan`: programs of SQL, written, edited and run.

use crate::support::Place;

const TABLES: &str = "
CREATE TABLE views (ad bigint, who text, cost numeric(10,2));
CREATE TABLE ads (ad bigint, campaign text, price numeric);
INSERT INTO views SELECT i % 7, 'u' || i % 11, (i % 13) * 1.25 FROM generate_series(1, 300) AS g(i);
INSERT INTO ads SELECT i, 'c' || i % 3, i * 1.5 FROM generate_series(0, 6) AS g(i);
";

const QUERY: &str = "SELECT campaign, count(*) AS n, avg(cost) AS cost, max(price) AS price
FROM views JOIN ads USING (ad) WHERE cost > 2 GROUP BY campaign ORDER BY campaign LIMIT 10";

const SPLIT: &str = "views = db.shards(\"views\", [\"ad\"])
branches = views.split(4, \"ad % 4\", broadcast=\"ad = 6\", plan=\"exp\").merge()
result = branches.sql(\"SELECT branch, count(*) AS n FROM shard GROUP BY branch\")
";

/// Lines of rows that come in no order.
fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[1..].sort();
    lines
}

#[test]
fn a_query_is_written_as_a_program_and_run() {
    let place = Place::new();
    place.run(&["shop", "-q", "-c", TABLES]).good();
    let explain = format!("EXPLAIN (FORMAT python) {QUERY}");
    let written = place.run(&["shop", "--format", "plain", "-c", &explain]);
    let program = written.good();
    assert!(program.contains("ads = db.shards(\"ads\", [\"ad\", \"campaign\", \"price\"])\n"), "{program}");
    assert!(program.contains(".broadcast()"), "{program}");
    place.write("q.py", program);
    let expected = sorted(place.run(&["shop", "--csv", "-c", QUERY]).good());
    for shards in ["1", "2", "3"] {
        let ran = place.run(&["plan", "q.py", "shop", "--shards", shards, "--format", "csv"]);
        assert_eq!(sorted(ran.good()), expected, "{shards} shards");
    }
    let moved = place.run(&["plan", "q.py", "shop", "--moved"]).err;
    assert!(moved.contains("broadcast: "), "{moved}");
    let profile = place.run(&["plan", "q.py", "shop", "--profile", "--format", "csv"]).err;
    assert!(profile.starts_with("shard,step,action,rows_in,"), "{profile}");
    assert!(profile.lines().any(|line| line.starts_with("0,") && line.contains(",broadcast,")), "{profile}");
    // Edited so that rows that match do not lie together.
    place.write("edited.py", program.replace(".broadcast()", ".rekey(\"ad\").redistribute()"));
    let refused = place.run(&["plan", "edited.py", "shop", "--shards", "2"]);
    assert!(refused.code == 1 && refused.err.contains("depends on the number of shards"), "{}", refused.err);
    let explained = place.run(&["plan", "edited.py", "shop", "--explain"]);
    assert!(explained.good().contains("redistribute: by key (ad)"), "{}", explained.out);
    // Locations, between which and within which rows move.
    place.write(
        "near.py",
        "views = db.shards(\"views\", [\"ad\"]).rekey(\"ad\").redistribute(scope=\"local\")
s = views.sql(\"SELECT ad, count(*) AS n FROM shard GROUP BY ad\").rekey(\"ad\").redistribute()
result = s.sql(\"SELECT ad, sum(n) AS n FROM shard GROUP BY ad\")\n",
    );
    let counts = sorted(place.run(&["shop", "--csv", "-c", "SELECT ad, count(*) AS n FROM views GROUP BY ad"]).good());
    for shards in ["4", "2x2", "1x3", "3x1"] {
        let ran = place.run(&["plan", "near.py", "shop", "--shards", shards, "--format", "csv"]);
        assert_eq!(sorted(ran.good()), counts, "{shards} shards");
    }
    let explained = place.run(&["plan", "near.py", "shop", "--shards", "2x2", "--explain"]);
    assert!(explained.good().contains("local"), "{}", explained.out);
    for wrong in ["0", "2x0", "x", "1025", "64x64"] {
        let refused = place.run(&["plan", "near.py", "shop", "--shards", wrong]);
        assert!(refused.code != 0 && refused.err.contains("--shards"), "{wrong}: {}", refused.err);
    }
    place.write("number.py", "result = db.shards(\"views\", [\"ad\"], shards=4)\n");
    let refused = place.run(&["plan", "number.py", "shop"]);
    assert!(refused.code == 1 && refused.err.contains("plan --shards 4"), "{}", refused.err);
    // Branches, and a result without rows.
    place.write("split.py", SPLIT);
    let ran = place.run(&["plan", "split.py", "shop", "--shards", "2", "--format", "csv"]);
    let query = "SELECT branch, count(*) AS n FROM SPLIT(views, ad % 4, 4, ad = 6) GROUP BY branch";
    assert_eq!(sorted(ran.good()), sorted(place.run(&["shop", "--csv", "-c", query]).good()));
    place.write("none.py", "result = db.shards(\"views\").sql(\"SELECT ad, who FROM shard WHERE cost < 0\")\n");
    let ran = place.run(&["plan", "none.py", "shop", "--format", "csv"]);
    assert_eq!(ran.good(), "ad,who\n");
    let from_pipe = place.run_with(&["plan", "-", "-c", TABLES, "--format", "csv"], program);
    assert_eq!(sorted(from_pipe.good()), expected);
}

#[test]
fn a_wrong_program_names_the_line() {
    let place = Place::new();
    place.write("p.py", "t = db.shards(\"t\")\n\nresult = t.sort(\"a\")\n");
    let ran = place.run(&["plan", "p.py", "-c", "CREATE TABLE t (a int)"]);
    assert!(ran.code == 1 && ran.err.contains("line 3: there is no verb \"sort\""), "{}", ran.err);
    place.write("p.py", "t = db.shards(\"t\")\nresult = t.sql(\"SELECT b FROM shard\")\n");
    let ran = place.run(&["plan", "p.py", "-c", "CREATE TABLE t (a int)"]);
    assert!(ran.code == 1 && ran.err.contains("step \"result\""), "{}", ran.err);
    let ran = place.run(&["plan", "none.py"]);
    assert!(ran.code == 1 && ran.err.contains("cannot read none.py"), "{}", ran.err);
}

/// What a text may not have is refused with its line, and no text ends the process.
#[test]
fn texts_that_go_too_far_are_refused() {
    let place = Place::new();
    let refused = |text: &str, why: &str| {
        place.write("p.py", text);
        let ran =
            place.run(&["plan", "p.py", "-c", "CREATE TABLE t (a int); INSERT INTO t VALUES (1)", "--shards", "2"]);
        assert!(ran.code == 1 && ran.err.contains(why), "{text:.80}: {}", ran.err);
    };
    let long = |n: usize| format!("s = db.shards(\"t\"){}\n", ".sql(\"SELECT a FROM shard\")".repeat(n));
    refused(&long(900), "line 1: more than 400 steps in a row");
    let lines = "s = s.union(db.shards(\"t\"))\n".repeat(500);
    refused(&format!("s = db.shards(\"t\")\n{lines}"), "line 401: more than 400 steps in a row");
    place.write("p.py", long(200));
    let ran = place.run(&["plan", "p.py", "-c", "CREATE TABLE t (a int); INSERT INTO t VALUES (1)", "--format", "csv"]);
    assert_eq!(ran.good(), "a\n1\n");
    refused(&format!("s = {}db.shards(\"t\"){}\n", "(".repeat(12_000), ")".repeat(12_000)), "parentheses");
    refused("s = db.shards(\"t\").sql(\"SELECT '\\x41' FROM shard\")\n", "line 1: \"\\x\" in a text");
    refused("s = db.shards(\"t\").sql(\"SELECT a FROM shard AS OF 1\")\n", "AS OF 1 in a query over events");
    refused("s = db.shards(\"t\").split(20000, \"a\", broadcast=\"a = 1\").merge()\n", "10000 branches at most");
}
