//! What `check` accepts and refuses (statement A12), each refusal with a run that shows why.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_engine::frame::{
    Arrived, Event, Frame, Given, How, Instance, UserOperator, avg, col, count_rows, lit, sum,
};
use anabranch_shards::{Layout, Move, Shards};
use anabranch_testing::rng::Rng;
use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};

use crate::support::{rows, run, same_as_one_shard, source, updates};

/// Asserts that a program is refused with this message, and that it does depend on the number of
/// shards.
fn refused(build: impl Fn(Layout) -> Shards, message: &str) {
    assert_eq!(build(Layout::flat(3)).check().unwrap_err().message, message);
    let mut rng = Rng::new(7);
    let inputs = [("l", rows(&mut rng, 60)), ("r", rows(&mut rng, 60))];
    let used = |program: &Shards, name: &str| program.explain().unwrap().contains(&format!("source {name} "));
    let mut changes = |layout: Layout| {
        let program = build(layout);
        let given: Vec<_> = inputs.iter().filter(|(name, _)| used(&program, name)).cloned().collect();
        updates(&run(&mut rng, &program, layout.shards(), &given).changes())
    };
    assert_ne!(changes(Layout::flat(3)), changes(Layout::flat(1)), "the program does not depend on shards");
}

fn keyed(name: &str, layout: Layout) -> Shards {
    source(name, layout).rekey(["k"])
}

#[test]
fn partial_counts_are_not_a_result() {
    refused(
        |layout| keyed("l", layout).query(|q| q.agg([count_rows().alias("n")])),
        "the program ends with partial results of each shard: n",
    );
    refused(
        |layout| keyed("l", layout).query(|q| q.agg([count_rows().alias("n")])).redistribute(Move::FLAT),
        "the program ends with partial results of each shard: n",
    );
}

#[test]
fn means_are_not_put_together() {
    let mean = |layout| keyed("l", layout).query(|q| q.agg([avg(col("x")).alias("m")]));
    let error = mean(Layout::flat(2)).check().unwrap_err();
    assert!(error.message.starts_with("the program depends on the number of shards: "), "{}", error.message);
}

#[test]
fn counts_are_added_not_counted() {
    refused(
        |layout| {
            let counts = keyed("l", layout).query(|q| q.agg([count_rows().alias("n")]));
            counts.redistribute(Move::FLAT).query(|q| q.agg([count_rows().alias("n")]))
        },
        "the program depends on the number of shards: partial results are not put together by a plain aggregate of theirs",
    );
    refused(
        |layout| {
            let counts = keyed("l", layout).query(|q| q.agg([count_rows().alias("n")]));
            let few =
                |q: anabranch_engine::frame::Frame| q.filter(col("n").lt(lit(3i64))).agg([sum(col("n")).alias("n")]);
            counts.redistribute(Move::FLAT).query(few)
        },
        "the program depends on the number of shards: partial results are not put together by a plain aggregate of theirs",
    );
}

#[test]
fn rows_of_arbitrary_places_are_not_joined() {
    let error = |layout: Layout, place: fn(Shards) -> Shards| {
        let (l, r) = (place(keyed("l", layout)), keyed("r", layout));
        l.query_with(&r, |a, b| a.join(&b, [], [], How::Inner)).check().unwrap_err().message
    };
    for place in [|s: Shards| s, |s: Shards| s.redistribute(Move::FLAT)] {
        let message = error(Layout::flat(2), place);
        assert!(message.starts_with("the program depends on the number of shards: "), "{message}");
    }
}

#[test]
fn a_place_by_another_key_is_no_place() {
    let message = "the program ends with partial results of each shard: n";
    let count = |q: anabranch_engine::frame::Frame| q.agg([count_rows().alias("n")]);
    refused(|layout| keyed("l", layout).redistribute(Move::FLAT).rekey(["j"]).query(count), message);
    refused(|layout| source("l", layout).rekey(["k", "j"]).redistribute(Move::FLAT).rekey(["k"]).query(count), message);
    // Another key between moves nothing.
    same_as_one_shard("a key that comes again", |layout| {
        keyed("l", layout).redistribute(Move::FLAT).rekey(["j"]).rekey(["k"]).query(count)
    });
    // The place by part of a key is one.
    same_as_one_shard("part of a key", |layout| {
        keyed("l", layout).redistribute(Move::FLAT).rekey(["j", "k"]).query(count)
    });
}

#[test]
fn copies_do_not_come_out_and_are_not_spread() {
    refused(
        |layout| source("l", layout).broadcast(Move::FLAT),
        "the program's result is replicated: each copy comes out",
    );
    refused(
        |layout| keyed("l", layout).broadcast(Move::FLAT).redistribute(Move::FLAT),
        "the program depends on the number of shards: a redistribute of rows that are replicated",
    );
    refused(
        |layout| source("l", layout).query_with(&source("r", layout).broadcast(Move::FLAT), |l, r| l.union(&r)),
        "the program depends on the number of shards: a union of rows that are split with rows that are replicated",
    );
}

#[test]
fn one_hop_is_not_enough_for_a_key() {
    let message = "the program ends with partial results of each shard: n";
    let count = |q: anabranch_engine::frame::Frame| q.agg([count_rows().alias("n")]);
    for reach in [Move::LOCAL, Move::GLOBAL] {
        let program = keyed("l", Layout::grid(2, 2)).redistribute(reach).query(count);
        assert_eq!(program.check().unwrap_err().message, message);
    }
    same_as_one_shard("two hops", |layout| {
        keyed("l", layout).redistribute(Move::GLOBAL).redistribute(Move::LOCAL).query(count)
    });
}

#[test]
fn stateless_queries_and_single_shards_are_safe() {
    same_as_one_shard("stateless", |layout| source("l", layout).query(|q| q.filter(col("x").gt(lit(2i64))).shift(3)));
    same_as_one_shard("single shard", |layout| {
        source("l", layout).reshard(Move::to_shards(1)).query(|q| q.agg([avg(col("x")).alias("m")]))
    });
}

#[test]
fn mistakes_are_said_with_a_way_out() {
    let s = source("l", Layout::flat(2));
    let error = s.redistribute(Move::FLAT).check().unwrap_err();
    assert_eq!(error.message, "rows without a key are redistributed");
    let error = s.rekey(["kk"]).check().unwrap_err();
    assert_eq!(
        (error.message.as_str(), error.hint.as_deref()),
        ("there is no column \"kk\" to be a key", Some("Columns: k, j, x."),)
    );
    let error = s.reshard(Move::to_shards(3)).check().unwrap_err();
    assert_eq!(error.message, "rows cannot move to 3 shards: there are 2");
    let error = s.query_with(&s.rekey(["k"]), |l, _| l).check().unwrap_err();
    assert_eq!(error.message, "a query of rows keyed by () and of rows keyed by (k)");
    let twice = s.query_with(&source("l", Layout::flat(2)), |l, r| l.union(&r));
    assert_eq!(twice.run().err().unwrap().message, "two sources of the program are named \"l\"");
}

#[test]
fn plans_show_what_lies_where() {
    let s = keyed("l", Layout::flat(2));
    let counts = s.query(|q| q.agg([count_rows().alias("n")])).redistribute(Move::LOCAL);
    let total = counts.query(|q| q.agg([sum(col("n")).alias("n")])).redistribute(Move::FLAT);
    let program = total.query(|q| q.agg([sum(col("n")).alias("n")]));
    let expected = "\
query by (k): by key (k)
  redistribute: by key (k); partial: n
    query by (k): arbitrary across processes, by key (k) within; partial: n
      redistribute local: arbitrary across processes, by key (k) within; partial: n
        query by (k): arbitrary; partial: n
          rekey (k): arbitrary
            source l in 2 shards: arbitrary
";
    assert_eq!(program.explain().unwrap(), expected);
}

/// The number of each row among those of its key.
struct Numbers;

/// Rows of each key so far.
#[derive(Default)]
struct Seen(BTreeMap<i64, i64>);

impl UserOperator for Numbers {
    fn name(&self) -> &str {
        "numbers"
    }

    fn output(&self, _inputs: &[Vec<DataType>]) -> Result<Vec<(String, DataType)>, String> {
        Ok(["k", "n"].map(|name| (name.to_owned(), DataType::Int64)).to_vec())
    }

    fn start(&self) -> Box<dyn Instance> {
        Box::new(Seen::default())
    }
}

impl Instance for Seen {
    fn advance(&mut self, _upto: i64, inputs: &[Arrived<'_>], out: &mut Given) -> Result<(), String> {
        let Some(keys) = inputs[0].columns().first() else { return Ok(()) };
        let keys = keys.as_primitive::<Int64Type>();
        let number = |key: i64| {
            let seen = self.0.entry(key).or_default();
            *seen += 1;
            *seen
        };
        let numbers: Int64Array = keys.values().iter().copied().map(number).collect();
        out.points(vec![Arc::new(keys.clone()) as ArrayRef, Arc::new(numbers)], inputs[0].times().to_vec());
        Ok(())
    }
}

#[test]
fn an_operator_of_a_user_is_safe_where_rows_of_a_key_lie_together() {
    let keyed = source("l", Layout::flat(3)).rekey(["k"]);
    let error = keyed.operator(Numbers).check().unwrap_err();
    assert!(error.to_string().contains("depends on the number of shards"), "{error}");
    let program = keyed.redistribute(Move::FLAT).operator(Numbers);
    program.check().unwrap();
    let mut run = program.run().unwrap();
    for shard in 0..3 {
        let row = |key: i64| Event::point(shard as i64, [key.into(), 0i64.into(), 0i64.into()]);
        run.push("l", shard, vec![row(1), row(2)]).unwrap();
    }
    let mut found: Vec<String> = run.finish().unwrap().lifetimes().unwrap().iter().map(ToString::to_string).collect();
    found.sort();
    assert_eq!(found, ["[0, 1) 1, 1", "[0, 1) 2, 1", "[1, 2) 1, 2", "[1, 2) 2, 2", "[2, 3) 1, 3", "[2, 3) 2, 3"]);
}

#[test]
fn a_union_keeps_rows_where_they_are() {
    let (l, r) = (source("l", Layout::flat(2)), source("r", Layout::flat(2)));
    let both = l.rekey(["k"]).union(&r);
    both.check().unwrap();
    let mut run = both.run().unwrap();
    let row = |key: i64| vec![Event::point(1, [key.into(), 0i64.into(), 0i64.into()])];
    run.push("l", 0, row(1)).unwrap();
    run.push("r", 1, row(2)).unwrap();
    let outcome = run.finish().unwrap();
    assert_eq!([0, 1].map(|shard| outcome.changes_of(shard).len()), [2, 2], "a row and its end each");
    let error = l.union(&source("r", Layout::flat(3))).check().unwrap_err();
    assert!(error.to_string().contains("a query of 2 shards and of 3 shards"), "{error}");
}

/// Sums of each shard, 0 or `instead` where there is nothing to add, then their sum.
fn sums_or(layout: Layout, instead: i64) -> Shards {
    let sums = keyed("l", layout).query(|q| {
        let sums = q.agg([sum(col("x")).filter(col("x").gt(lit(5i64))).alias("a")]);
        let or = datafusion_expr::when(col("a").is_not_null(), col("a")).otherwise(lit(instead));
        sums.select([col("k"), or.unwrap().alias("n")])
    });
    sums.redistribute(Move::FLAT).query(|q| q.agg([sum(col("n")).alias("n")]))
}

#[test]
fn sums_of_nothing_may_be_zero_and_nothing_else() {
    same_as_one_shard("sums or zero", |layout| sums_or(layout, 0));
    let tree = |layout| {
        let sums =
            keyed("l", layout).query(|q| q.agg([sum(col("x")).alias("a")]).select([col("k"), col("a").alias("n")]));
        let put = |q: Frame| q.agg([sum(col("n")).alias("a")]).select([col("k"), col("a").alias("n")]);
        sums.redistribute(Move::LOCAL).query(put).redistribute(Move::FLAT).query(put)
    };
    same_as_one_shard("renamed sums by a tree", tree);
    let error = sums_or(Layout::flat(3), 1).check().unwrap_err();
    assert!(error.message.starts_with("the program depends on the number of shards: "), "{}", error.message);
}
