//! Multicasts and splits in the text of a program.

use anabranch_engine::{Interrupt, Options, Session};
use anabranch_plan::program::{read, text};
use anabranch_shards::Layout;
use anabranch_shards::planned::{PlannedShards, read_program};
use anabranch_testing::row::{Contents, Row};

const ROWS: &str = "
create table rows (k bigint, who text, \"Branch of\" bigint, x numeric(10,2));
insert into rows select i, 'u' || i, case when i % 11 = 0 then null else i % 5 end, i * 0.25 from generate_series(1, 200) as g(i);
";

fn session() -> Session {
    let mut session = Session::new(Options::default()).unwrap();
    session.execute(ROWS).unwrap();
    session
}

fn contents(rows: &anabranch_engine::Rows) -> Contents {
    let of_batch = |batch: &arrow::array::RecordBatch| {
        (0..batch.num_rows()).map(|row| (Row::of_columns(batch.columns(), row), 1)).collect::<Vec<_>>()
    };
    rows.batches.iter().flat_map(of_batch).collect()
}

/// What a program yields in so many shards.
fn yielded(session: &mut Session, program: &str, shards: usize) -> Contents {
    let steps = read_program(program).unwrap();
    let planned = PlannedShards::new(&steps, session, Layout::flat(shards)).unwrap();
    let (outcome, _) = planned.run(&Interrupt::new()).unwrap();
    contents(&outcome.rows().unwrap())
}

/// What is printed is read as it was, and printed so again.
fn is_fixed_point(program: &str) {
    let steps = read(program).unwrap();
    let printed = text::python(&steps, "q");
    assert_eq!(printed, format!("# q\n{program}"));
    assert_eq!(read(&printed).unwrap(), steps);
}

const CALLS: [&str; 11] = [
    r#"split(8, "k % 8").merge()"#,
    r#"split(5, "Branch of").merge()"#,
    r#"split(5, "Branch of", broadcast="k % 9 = 0").merge()"#,
    r#"split(64, "k % 64", broadcast="x < 2.5", plan="exp").merge_by_time()"#,
    r#"split(64, "k % 64", broadcast="x < 2.5", plan="max", share=0.25).merge()"#,
    r#"split(7, "case when x > 10 then k % 7 end", broadcast="k = 3", plan="para").merge()"#,
    r#"split(7, "k % 7", plan="flat").merge_by_time()"#,
    r#"split(8, "k % 8").placed([1, 0]).merge()"#,
    r#"split(64, "k % 64", broadcast="x < 2.5", plan="local", share=0.25).merge()"#,
    r#"split(64, "k % 64", broadcast="x < 2.5", share=0.25).merge()"#,
    r#"split(5, "k % 5", broadcast="k = 3", plan="para", share=0.005, splitters=3, window=7, seed=9, rate=2000000, rate_of_one=1500000.5).merge()"#,
];

/// The same splits as queries of SQL.
const SPLITS: [&str; 11] = [
    "SPLIT(rows, k % 8, 8)",
    "SPLIT(rows, \"Branch of\", 5)",
    "SPLIT(rows, \"Branch of\", 5, k % 9 = 0)",
    "SPLIT(rows, k % 64, 64, x < 2.5)",
    "SPLIT(rows, k % 64, 64, x < 2.5)",
    "SPLIT(rows, case when x > 10 then k % 7 end, 7, k = 3)",
    "SPLIT(rows, k % 7, 7)",
    "SPLIT(rows, k % 8, 8)",
    "SPLIT(rows, k % 64, 64, x < 2.5)",
    "SPLIT(rows, k % 64, 64, x < 2.5)",
    "SPLIT(rows, k % 5, 5, k = 3)",
];

#[test]
fn splits_of_texts_are_those_of_sql() {
    let mut session = session();
    for (call, split) in CALLS.iter().zip(SPLITS) {
        let query = format!("select branch, count(*) as n, sum(x) as x from {split} group by branch");
        let expected = contents(&session.query(&query).unwrap());
        let program = format!(
            "rows = db.shards(\"rows\")\nb = rows.{call}\nresult = \
             b.sql(\"select branch, count(*) as n, sum(x) as x from shard group by branch\")\n"
        );
        is_fixed_point(&program);
        for shards in [1, 2, 3] {
            let steps = read_program(&program).unwrap();
            let planned = PlannedShards::new(&steps, &mut session, Layout::flat(shards)).unwrap();
            // (Branches lie in their shards: nothing is to move.)
            planned
                .program
                .check()
                .unwrap_or_else(|error| panic!("{program}{error:?}\n{}", planned.program.explain().unwrap()));
            let rows = yielded(&mut session, &program, shards);
            assert!(rows.is_close(&expected, 1e-9), "{program}{}", rows.difference(&expected));
        }
    }
}

/// The plan of each split is told before the steps of the program.
#[test]
fn plans_of_splits_are_explained() {
    let mut session = session();
    let mut told = |call: &str, layout| {
        let program = format!("rows = db.shards(\"rows\")\nb = rows.{call}.merge()\n");
        PlannedShards::new(&read_program(&program).unwrap(), &mut session, layout).unwrap().explain().unwrap()
    };
    let split = r#"split(64, "k % 64", broadcast="x < 2.5")"#;
    let here = told(split, Layout::flat(2));
    assert!(
        here.starts_with("b: split into 64 branches: flat, the cheapest in one process, fan-outs [64]\n"),
        "{here}"
    );
    assert!(here.contains("modelled, in one process: ") && here.contains("split 1 x 64"), "{here}");
    let between = told(split, Layout::grid(2, 1));
    assert!(between.contains("exptree, the fastest between processes"), "{between}");
    let para = told(r#"split(8, "k % 8", plan="para", splitters=2, window=64, seed=5)"#, Layout::flat(3));
    assert!(para.contains("in parallel: 2 splitters (given), windows of 64 rows (given), seed 5;"), "{para}");
}

#[test]
fn a_multicast_of_a_text_copies_rows_to_the_shards_it_names() {
    let mut session = session();
    let cases = [
        ("k % 3", "select k from rows"),
        ("array[0, 2]", "select k from rows union all select k from rows"),
        ("case when x > 5 then 1 end", "select k from rows where x > 5"),
    ];
    for (targets, query) in cases {
        let expected = contents(&session.query(query).unwrap());
        let program = format!(
            "rows = db.shards(\"rows\", [\"k\", \"x\"]).multicast(\"{targets}\")\nresult = \
             rows.sql(\"select k from shard\")\n"
        );
        let rows = yielded(&mut session, &program, 3);
        assert!(rows.is_close(&expected, 0.0), "{program}{}", rows.difference(&expected));
        let apart = "rows = db.shards(\"rows\", [\"k\", \"x\"])\ns = rows.multicast(\"TARGETS\")\n\
                     result = s.sql(\"select k from shard\")\n";
        is_fixed_point(&apart.replace("TARGETS", targets));
    }
    let program = "result = db.shards(\"rows\").multicast(\"k\")\n";
    let steps = read_program(program).unwrap();
    let planned = PlannedShards::new(&steps, &mut session, Layout::flat(2)).unwrap();
    assert!(planned.program.check().is_err(), "copies are the program's own affair");
}

/// Movements to the first so many shards, to a list of them, and to a named group.
#[test]
fn movements_of_texts_go_to_the_shards_that_they_name() {
    let mut session = session();
    let expected = contents(&session.query("select k, sum(x) as x from rows group by k").unwrap());
    let cases = [
        ("redistribute(shards=2)", "redistribute to 2 shards", vec![0, 1]),
        ("redistribute(shards=[2, 0])", "redistribute to group of a list (0, 2)", vec![0, 2]),
        (r#"redistribute(shards={"socket 1": [2, 3]})"#, "redistribute to group socket 1 (2, 3)", vec![2, 3]),
    ];
    let trailing = "b = db.shards(\"rows\").rekey(\"k\").redistribute(shards={\"a\": [0, 1,],})\n";
    assert!(text::python(&read(trailing).unwrap(), "q").contains(r#"shards={"a": [0, 1]}"#));
    for (call, told, places) in cases {
        let program = format!(
            "rows = db.shards(\"rows\", [\"k\", \"x\"])\nr = rows.rekey(\"k\").{call}\nresult = \
             r.sql(\"select k, sum(x) as x from shard group by k\")\n"
        );
        let steps = read_program(&program).unwrap();
        assert_eq!(read(&text::python(&steps, "q")).unwrap().steps.len(), steps.steps.len());
        assert!(text::python(&steps, "q").contains(call), "{}", text::python(&steps, "q"));
        let planned = PlannedShards::new(&steps, &mut session, Layout::flat(4)).unwrap();
        planned.program.check().unwrap();
        assert!(planned.program.explain().unwrap().contains(told), "{}", planned.program.explain().unwrap());
        let (outcome, _) = planned.run(&Interrupt::new()).unwrap();
        let filled = (0..4).filter(|shard| !outcome.changes_of(*shard).is_empty());
        assert_eq!(filled.collect::<Vec<_>>(), places);
        let rows = contents(&outcome.rows().unwrap());
        assert!(rows.is_close(&expected, 1e-9), "{program}{}", rows.difference(&expected));
    }
    let wrong = [
        (r#"redistribute(shards="two")"#, "no number of shards, and no list"),
        (r#"redistribute(shards=["a"])"#, "in a list of shards"),
        ("redistribute(shards={3: [1]})", "name of a group was expected"),
        (r#"redistribute(shards={"a": 1})"#, "where \"[\" was expected"),
        ("redistribute(scope=[1])", "is no scope"),
        ("redistribute(shards=2, shards=[0])", "\"shards\" is given twice"),
        ("redistribute(shards=[0 1])", "where \",\" or \"]\" was expected"),
        ("redistribute(shards=[0,,])", "in a list of shards"),
        ("rekey(columns=[\"k\"])", "no argument \"columns\""),
        ("split(4, \"k\").placed(1).merge()", "where \"[\" was expected"),
    ];
    for (call, word) in wrong {
        let (line, message) = read(&format!("a = db.shards(\"rows\")\nb = a.{call}\n")).unwrap_err();
        assert!(line == 2 && message.contains(word), "{call}: line {line}: {message}");
    }
    let absent = "b = db.shards(\"rows\").rekey(\"k\").redistribute(shards=[1, 7])\n";
    let error = PlannedShards::new(&read_program(absent).unwrap(), &mut session, Layout::flat(2)).err().unwrap();
    assert!(error.message.contains("step \"b\"") && error.message.contains("names shard 7"), "{error}");
}

#[test]
fn wrong_multicasts_and_splits_name_the_line() {
    let wrong = [
        ("multicast()", "multicast(..) takes one text"),
        ("multicast(3)", "multicast(..) takes one text"),
        ("multicast(\"k\", a)", "multicast(..) takes one text"),
        ("split(\"k\").merge()", "split(..) takes a number of branches"),
        ("split(0, \"k\").merge()", "1 to 4294967295"),
        ("split(1099511627776, \"k\").merge()", "1 to 4294967295"),
        ("split(8, \"k\")", "followed by .merge()"),
        ("split(8, \"k\").sql(\"select branch from shard\")", "followed by .merge()"),
        ("split(8, \"k\", plan=\"wide\").merge()", "auto, flat, exp, max, para"),
        ("split(8, \"k\", plan=\"max\", share=1.5).merge()", "from 0 to 1"),
        ("split(8, \"k\", \"k = 1\", broadcast=\"k = 2\").merge()", "two broadcasts"),
        ("split(8, \"k\", width=9).merge()", "no argument \"width\""),
        ("split(8, \"k\", plan=\"para\", splitters=0).merge()", "splitters of a split is 0"),
        ("split(8, \"k\", plan=\"para\", window=1.5).merge()", "window of a split is one"),
        ("split(8, \"k\", plan=\"para\", rate=0).merge()", "rate of a split is 0"),
        ("split(8, \"k\", plan=\"para\", rate=\"much\").merge()", "is no rate"),
        ("split(8, \"k\", seed=3).merge()", "seed is an option of plan=\"para\", not of \"auto\""),
        ("rekey(3)", "\"3\" among the arguments"),
    ];
    for (call, word) in wrong {
        let (line, message) = read(&format!("a = db.shards(\"rows\")\n\nb = a.{call}\n")).unwrap_err();
        assert!(line == 3 && message.contains(word), "{call}: line {line}: {message}");
    }
    let mut session = session();
    let planned = [
        ("multicast(\"nothing\")", "nothing"),
        ("split(8, \"random()\").merge()", "random"),
        ("split(8, \"sum(k)\").merge()", "sum(k)"),
        ("multicast(\"who\")", "not of type text"),
        ("multicast(\"array[who]\")", "not of type text[]"),
        ("split(8, \"x\").merge()", "not of type numeric"),
        ("split(8, \"k\", broadcast=\"k\").merge()", "not of type bigint"),
        ("split(8, \"k\", broadcast=\"x +\").merge()", ""),
    ];
    for (call, word) in planned {
        let steps = read_program(&format!("b = db.shards(\"rows\").{call}\n")).unwrap();
        let error = PlannedShards::new(&steps, &mut session, Layout::flat(2)).err().unwrap();
        assert!(error.message.contains("step \"b\"") && error.to_string().contains(word), "{call}: {error}");
    }
}
