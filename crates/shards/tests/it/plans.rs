//! The plans of Quill, figures 1 and 4, and a long one: equal contents at every time, whatever the
//! shards (statements A9, A10, A14).

use anabranch_engine::frame::{Frame, FrameAggregate, How, col, count, count_rows, lit, max, min, sum};
use anabranch_shards::{Layout, Move, Shards};

use crate::support::{same_as_one_shard, source};

/// The aggregates that are put together of parts.
fn parts() -> Vec<FrameAggregate> {
    vec![
        count_rows().alias("n"),
        count(col("x")).alias("c"),
        sum(col("x")).alias("s"),
        min(col("x")).alias("lo"),
        max(col("x")).alias("hi"),
    ]
}

fn aggregate(frame: Frame) -> Frame {
    frame.agg(parts())
}

fn add(frame: Frame) -> Frame {
    let total = |name: &str| sum(col(name)).alias(name);
    frame.agg([total("n"), total("c"), total("s"), min(col("lo")).alias("lo"), max(col("hi")).alias("hi")])
}

/// The four plans of figure 1, each over rows in some windows.
fn figure_1(layout: Layout, windows: fn(Frame) -> Frame) -> [Shards; 4] {
    let s = source("l", layout).rekey(["k"]);
    let whole = |frame| aggregate(windows(frame));
    [
        s.redistribute(Move::FLAT).query(whole),
        s.query(whole).redistribute(Move::FLAT).query(add),
        s.query(whole).redistribute(Move::LOCAL).query(add).redistribute(Move::FLAT).query(add),
        s.redistribute(Move::LOCAL).query(whole).redistribute(Move::FLAT).query(add),
    ]
}

fn windows() -> [fn(Frame) -> Frame; 4] {
    [|f| f, |f| f.tumbling(10), |f| f.hopping(20, 5, 0), |f| f.alter_duration(7)]
}

#[test]
fn plans_of_figure_1_count_what_one_shard_counts() {
    for plan in 0..4 {
        for (at, windows) in windows().into_iter().enumerate() {
            same_as_one_shard(&format!("figure 1 {plan} {at}"), |layout| figure_1(layout, windows)[plan].clone());
        }
    }
}

#[test]
fn plans_of_figure_1_equal_the_plain_query() {
    for plan in 0..4 {
        anabranch_testing::rng::cases("plain query", 6, |rng| {
            let rows = [("l", crate::support::rows(rng, 50))];
            let layout = Layout::grid(2, 2);
            let one = source("l", Layout::flat(1)).query(|q| q.tumbling(10).group_by([col("k")]).agg(parts()));
            let expected = crate::support::run(rng, &one, 1, &rows).changes();
            let program = &figure_1(layout, |f| f.tumbling(10))[plan];
            let found = crate::support::run(rng, program, 4, &rows).changes();
            assert_eq!(crate::support::updates(&found), crate::support::updates(&expected));
        });
    }
}

/// The three plans of figure 4: both hashed; the right side everywhere; the right side in each
/// process, hashed there.
fn figure_4(layout: Layout, join: fn(Frame, Frame) -> Frame) -> [Shards; 3] {
    let (l, r) = (source("l", layout).rekey(["k"]), source("r", layout).rekey(["k"]));
    [
        l.redistribute(Move::FLAT).query_with(&r.redistribute(Move::FLAT), join),
        l.query_with(&r.broadcast(Move::GLOBAL).broadcast(Move::LOCAL), join),
        l.redistribute(Move::LOCAL).query_with(&r.broadcast(Move::GLOBAL).redistribute(Move::LOCAL), join),
    ]
}

fn joins() -> [fn(Frame, Frame) -> Frame; 3] {
    [|l, r| l.join(&r, [], [], How::Inner), |l, r| l.join(&r, [], [], How::Left), |l, r| l.where_not_exists(&r, [], [])]
}

#[test]
fn plans_of_figure_4_join_what_one_shard_joins() {
    for plan in 0..3 {
        for (at, join) in joins().into_iter().enumerate() {
            same_as_one_shard(&format!("figure 4 {plan} {at}"), |layout| figure_4(layout, join)[plan].clone());
        }
    }
}

/// Statement A10, of semi joins: rows of the left that have a pair, by the three plans.
#[test]
fn plans_of_figure_4_find_what_has_a_pair() {
    let has_pair = "SELECT k, j, x FROM shard WHERE EXISTS (SELECT 1 FROM other WHERE other.k = shard.k)";
    for plan in 0..3 {
        same_as_one_shard(&format!("semi join {plan}"), |layout| {
            let (l, r) = (source("l", layout).rekey(["k"]), source("r", layout).rekey(["k"]));
            match plan {
                0 => l.redistribute(Move::FLAT).sql_with(&r.redistribute(Move::FLAT), has_pair),
                1 => l.sql_with(&r.broadcast(Move::GLOBAL).broadcast(Move::LOCAL), has_pair),
                _ => {
                    let right = r.broadcast(Move::GLOBAL).redistribute(Move::LOCAL);
                    l.redistribute(Move::LOCAL).sql_with(&right, has_pair)
                }
            }
        });
    }
}

#[test]
fn a_full_join_with_a_replicated_side_is_refused() {
    let full = |l: Frame, r: Frame| l.join(&r, [], [], How::Full);
    let [both, everywhere, hybrid] = figure_4(Layout::grid(2, 2), full);
    both.check().unwrap();
    everywhere.check().unwrap_err();
    hybrid.check().unwrap_err();
}

/// Clicks of users that are no robots, by advertisement: a robot clicks more than twice in ten
/// ticks.
fn clicks(layout: Layout) -> Shards {
    let users = source("l", layout).rekey(["k"]).redistribute(Move::FLAT);
    let robots = users.query(|q| q.alter_duration(10).agg([count_rows().alias("c")]).filter(col("c").gt(lit(2i64))));
    let people = users.query_with(&robots, |clicks, robots| clicks.where_not_exists(&robots, [], []));
    people.rekey(["j"]).redistribute(Move::FLAT).query(|q| q.hopping(20, 10, 0).agg([count_rows().alias("n")]))
}

#[test]
fn clicks_of_people_are_counted_once_whatever_the_shards() {
    same_as_one_shard("robots", clicks);
    let plan = clicks(Layout::flat(2)).explain().unwrap();
    assert_eq!(plan.matches("(as above)").count(), 1, "{plan}");
}
