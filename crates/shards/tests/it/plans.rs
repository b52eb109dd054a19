//! The plans of Quill, figures 1 and 4, and a long one: equal contents at every time, whatever the
//! shards (statements A9, A10, A14).

use std::collections::BTreeMap;

use anabranch_batch::Time;
use anabranch_engine::frame::{Event, Frame, FrameAggregate, How, col, count, count_rows, lit, max, min, sum};
use anabranch_shards::{Layout, Move, Shards};
use anabranch_testing::rng::{Rng, cases};

use crate::support::{rows, run, same_as_one_shard, same_in_all_layouts, source, updates};

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
        cases("plain query", 6, |rng| {
            let rows = [("l", rows(rng, 50))];
            let layout = Layout::grid(2, 2);
            let one = source("l", Layout::flat(1)).query(|q| q.tumbling(10).group_by([col("k")]).agg(parts()));
            let expected = run(rng, &one, 1, &rows).changes();
            let program = &figure_1(layout, |f| f.tumbling(10))[plan];
            let found = run(rng, program, 4, &rows).changes();
            assert_eq!(updates(&found), updates(&expected));
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

/// Statement A10, of right outer joins: safe where both sides are hashed (a); refused where the
/// right side is replicated (b), (c), since each copy of a row without a pair would come out.
#[test]
fn a_right_outer_join_with_a_replicated_side_is_refused() {
    let right_outer: fn(Frame, Frame) -> Frame = |l, r| r.join(&l, [], [], How::Left);
    same_as_one_shard("right outer", |layout| figure_4(layout, right_outer)[0].clone());
    for plan in 1..3 {
        depends_on_shards(|layout| figure_4(layout, right_outer)[plan].clone());
    }
    let in_sql = "SELECT other.k, shard.x, other.x AS y FROM shard RIGHT JOIN other ON shard.k = other.k";
    let sides = |layout| (source("l", layout).rekey(["k"]), source("r", layout).rekey(["k"]));
    same_as_one_shard("right outer in SQL", |layout| {
        let (l, r) = sides(layout);
        l.redistribute(Move::FLAT).sql_with(&r.redistribute(Move::FLAT), in_sql)
    });
    depends_on_shards(|layout| {
        let (l, r) = sides(layout);
        l.sql_with(&r.broadcast(Move::GLOBAL).broadcast(Move::LOCAL), in_sql)
    });
    depends_on_shards(|layout| {
        let (l, r) = sides(layout);
        l.redistribute(Move::LOCAL).sql_with(&r.broadcast(Move::GLOBAL).redistribute(Move::LOCAL), in_sql)
    });
}

/// Asserts that a program is refused, and that the refusal is right: it yields other contents in
/// two processes than in one shard.
fn depends_on_shards(build: impl Fn(Layout) -> Shards) {
    let layout = Layout::grid(2, 2);
    let error = build(layout).check().unwrap_err();
    assert!(error.message.starts_with("the program depends on the number of shards: "), "{}", error.message);
    let mut rng = Rng::new(11);
    let inputs = [("l", rows(&mut rng, 60)), ("r", rows(&mut rng, 20))];
    let mut changes = |layout: Layout| updates(&run(&mut rng, &build(layout), layout.shards(), &inputs).changes());
    assert_ne!(changes(layout), changes(Layout::flat(1)));
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
}

/// Statement A14: the same as a naive evaluation; `users` is computed once.
#[test]
fn clicks_of_people_are_those_of_a_naive_evaluation() {
    cases("naive robots", 3, |rng| {
        let made: Vec<Click> = (0..120).map(|_| Click::any(rng)).collect();
        let expected = naive_clicks(&made);
        assert!(naive_people(&made).count() < made.len(), "there are no robots");
        let inputs = [("l", made.iter().map(|click| click.events(rng)).collect())];
        same_in_all_layouts(rng, clicks, &inputs, &expected);
    });
    let program = clicks(Layout::flat(2));
    let plan = program.explain().unwrap();
    assert_eq!(plan.matches("(as above)").count(), 1, "{plan}");
    let steps = program.run().unwrap();
    let steps: Vec<&str> = steps.moved().iter().map(|(name, _)| *name).collect();
    let count = |name: &str| steps.iter().filter(|step| **step == name).count();
    assert_eq!((count("source"), count("redistribute"), count("query")), (1, 2, 3), "{steps:?}");
}

/// A click: of a user, on an advertisement, at a time.
struct Click {
    user: i64,
    ad: i64,
    time: i64,
}

impl Click {
    fn any(rng: &mut Rng) -> Click {
        Click { user: rng.between(0, 9), ad: rng.between(0, 3), time: rng.between(0, 60) }
    }

    /// The click as a point, or as a start that is taken back one tick later.
    fn events(&self, rng: &mut Rng) -> Vec<Event> {
        let (time, row) = (self.time, vec![self.user.into(), self.ad.into(), 0i64.into()]);
        match rng.chance(50) {
            true => vec![Event::point(time, row)],
            false => vec![Event::start(time, row.clone()), Event::end(time + 1, time, row)],
        }
    }
}

/// Clicks of users with at most two clicks in the ten ticks until then, in the plainest code.
fn naive_people(made: &[Click]) -> impl Iterator<Item = &Click> {
    let is_recent = |click: &Click, other: &Click| {
        other.user == click.user && other.time <= click.time && click.time < other.time + 10
    };
    made.iter().filter(move |click| made.iter().filter(|other| is_recent(click, other)).count() <= 2)
}

/// Changes of their number by advertisement, in windows of twenty ticks at every tenth.
fn naive_clicks(made: &[Click]) -> BTreeMap<(Time, Vec<String>), i64> {
    let mut changes: BTreeMap<(Time, Vec<String>), i64> = BTreeMap::new();
    for (window_end, ad) in (0..=9).flat_map(|window| (0..=3).map(move |ad| (10 * window, ad))) {
        let is_in = |click: &&Click| click.ad == ad && window_end - 20 < click.time && click.time <= window_end;
        let n = naive_people(made).filter(is_in).count();
        if n > 0 {
            let row = vec![ad.to_string(), n.to_string()];
            *changes.entry((window_end, row.clone())).or_default() += 1;
            *changes.entry((window_end + 10, row)).or_default() -= 1;
        }
    }
    changes.retain(|_, diff| *diff != 0);
    changes
}
