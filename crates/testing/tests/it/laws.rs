//! The laws for every family of operators and for random plans. A test is a line; what it means is
//! in `anabranch_testing::laws`.

use std::process::Command;
use std::sync::Arc;

use anabranch_plan::{AggregateFunction, JoinKind, Plan};
use anabranch_testing::build::{Builder, Relation, call};
use anabranch_testing::generator::expressions::Fallible;
use anabranch_testing::generator::history::{History, Size, relations};
use anabranch_testing::generator::plans::{AGGREGATES, JOINS, Plans, SET_OPERATIONS, STATISTICS};
use anabranch_testing::generator::values::Pool;
use anabranch_testing::laws::{HASH_MASK, Setting, hold, hold_under, programs};
use anabranch_testing::rng::{Rng, cases};

/// Histories with odd floats, for operators that only compare values.
const SPECIAL: Size = Size { pool: Pool::Special, ..Size::SMALL };

/// Checks the laws of plans that `make` puts together over random relations and histories.
fn laws(name: &str, count: usize, size: Size, make: impl Fn(&mut Rng, &mut Plans) -> Arc<Plan>) {
    cases(name, count, |rng| {
        let relations = relations(rng, 3);
        let history = History::random(rng, &relations, size);
        let fallible = if rng.chance(20) { Fallible::Sometimes } else { Fallible::Never };
        let plan = make(rng, &mut Plans::new(&relations, fallible));
        hold(rng, &plan, &history);
    });
}

fn join_laws(name: &str, kind: JoinKind) {
    for size in [Size::SMALL, SPECIAL, Size::LARGE] {
        laws(name, 6, size, |rng, plans| {
            let (left, right) = (plans.relation(0), plans.relation(1));
            plans.join(rng, &left, &right, kind)
        });
    }
}

/// Plans over inputs that are there before: their histories are joined before they are sorted.
#[test]
fn joins_of_histories() {
    for kind in JOINS {
        cases("joins_of_histories", 20, |rng| {
            let relations = relations(rng, 3);
            let history = History::random(rng, &relations, Size::LARGE);
            let fallible = if rng.chance(20) { Fallible::Sometimes } else { Fallible::Never };
            let mut plans = Plans::new(&relations, fallible);
            let (left, right) = (plans.relation(0), plans.relation(1));
            let plan = plans.join(rng, &left, &right, kind);
            let late = |setting: Setting| Setting { arranged: true, late: true, compacting: true, ..setting };
            let settings: Vec<Setting> = Setting::draw(rng).into_iter().map(late).collect();
            hold_under(&plan, &history, &settings);
        });
    }
}

fn aggregate_laws(name: &str, size: Size, functions: &[AggregateFunction]) {
    laws(name, 8, size, |rng, plans| {
        let input = plans.relation(0);
        plans.aggregate_with(rng, &input, functions)
    });
}

#[test]
fn scans() {
    laws("scans", 5, SPECIAL, |rng, plans| plans.scan(rng));
}

#[test]
fn stages() {
    laws("stages", 12, Size::SMALL, |rng, plans| {
        let input = plans.scan(rng);
        plans.stage(rng, &input)
    });
}

#[test]
fn unions() {
    laws("unions", 6, SPECIAL, |rng, plans| {
        let inputs = [plans.scan(rng), plans.scan(rng), plans.scan(rng)];
        plans.union(rng, &inputs)
    });
}

#[test]
fn constants() {
    laws("constants", 6, SPECIAL, |rng, plans| {
        let input = plans.scan(rng);
        let types = anabranch_testing::build::types(&input);
        let rows = plans.constant(rng, &types);
        let union = plans.union(rng, &[input, rows.clone()]);
        plans.join(rng, &union, &rows, JoinKind::Left)
    });
}

#[test]
fn inner_joins() {
    join_laws("inner_joins", JoinKind::Inner);
}

#[test]
fn left_joins() {
    join_laws("left_joins", JoinKind::Left);
}

#[test]
fn right_joins() {
    join_laws("right_joins", JoinKind::Right);
}

#[test]
fn full_joins() {
    join_laws("full_joins", JoinKind::Full);
}

#[test]
fn semi_joins() {
    join_laws("semi_joins", JoinKind::LeftSemi);
}

#[test]
fn anti_joins() {
    join_laws("anti_joins", JoinKind::LeftAnti);
}

#[test]
fn null_aware_anti_joins() {
    join_laws("null_aware_anti_joins", JoinKind::LeftAntiNullAware);
}

#[test]
fn mark_joins() {
    join_laws("mark_joins", JoinKind::LeftMark);
}

#[test]
fn a_relation_joined_with_itself() {
    laws("a_relation_joined_with_itself", 10, Size::SMALL, |rng, plans| {
        let (left, right) = (plans.relation(0), plans.relation(0));
        let kind = *rng.pick(&anabranch_testing::generator::plans::JOINS);
        plans.join(rng, &left, &right, kind)
    });
}

#[test]
fn joins_of_three() {
    laws("joins_of_three", 10, Size::SMALL, |rng, plans| {
        let (a, b, c) = (plans.relation(0), plans.relation(1), plans.relation(2));
        let inner = plans.join(rng, &a, &b, JoinKind::Inner);
        plans.join(rng, &inner, &c, JoinKind::Inner)
    });
}

#[test]
fn asof_joins() {
    for size in [Size::SMALL, SPECIAL, Size::LARGE] {
        laws("asof_joins", 12, size, |rng, plans| {
            let (left, right) = (plans.relation(0), plans.relation(1));
            plans.asof(rng, &left, &right)
        });
    }
}

#[test]
fn sessions() {
    for size in [Size::SMALL, SPECIAL, Size::LARGE] {
        laws("sessions", 20, size, |rng, plans| {
            let input = plans.relation(0);
            plans.session(rng, &input)
        });
    }
}

#[test]
fn row_patterns() {
    laws("row_patterns", 60, Size::SMALL, |rng, plans| {
        let input = plans.relation(0);
        plans.recognize(rng, &input)
    });
}

#[test]
fn window_functions() {
    laws("window_functions", 60, Size::SMALL, |rng, plans| {
        let input = plans.relation(0);
        plans.window(rng, &input)
    });
}

#[test]
fn aggregates() {
    for size in [Size::SMALL, Size::LARGE] {
        aggregate_laws("aggregates", size, &AGGREGATES);
    }
}

#[test]
fn sums_and_counts() {
    use AggregateFunction::{Avg, Count, Sum};
    aggregate_laws("sums_and_counts", Size::LARGE, &[Count, Sum, Avg]);
}

#[test]
fn minima_and_maxima() {
    use AggregateFunction::{FirstValue, LastValue, Max, Median, Min};
    aggregate_laws("minima_and_maxima", Size::LARGE, &[Min, Max]);
    aggregate_laws("minima_and_maxima", SPECIAL, &[Min, Max, FirstValue, LastValue]);
    aggregate_laws("minima_and_maxima", Size::LARGE, &[FirstValue, LastValue, Median]);
}

#[test]
fn sums_with_infinities_and_nans() {
    use AggregateFunction::{Avg, Count, Sum};
    aggregate_laws("sums_with_infinities_and_nans", SPECIAL, &[Count, Sum, Avg]);
}

#[test]
fn statistics() {
    aggregate_laws("statistics", Size::LARGE, &STATISTICS);
}

#[test]
fn texts_and_arrays() {
    use AggregateFunction::{ArrayAgg, StringAgg};
    aggregate_laws("texts_and_arrays", Size::SMALL, &[ArrayAgg, StringAgg(", ".to_string())]);
}

#[test]
fn distinct_rows() {
    for size in [SPECIAL, Size::LARGE] {
        laws("distinct_rows", 6, size, |rng, plans| {
            let input = plans.scan(rng);
            plans.distinct(&input)
        });
    }
}

#[test]
fn first_rows() {
    for size in [Size::SMALL, SPECIAL, Size::LARGE] {
        laws("first_rows", 8, size, |rng, plans| {
            let input = plans.scan(rng);
            plans.top(rng, &input)
        });
    }
}

#[test]
fn set_operations() {
    for operation in SET_OPERATIONS {
        laws("set_operations", 5, SPECIAL, |rng, plans| {
            let (left, right) = (plans.scan(rng), plans.scan(rng));
            plans.set(rng, &left, &right, operation)
        });
    }
}

/// Rows against a changing scalar, as in the TPC-H queries 11, 15 and 22.
#[test]
fn rows_against_one_changing_row() {
    laws("rows_against_one_changing_row", 8, Size::SMALL, |rng, plans| {
        let (rows, all) = (plans.relation(0), plans.relation(0));
        let kind = *rng.pick(&[JoinKind::Inner, JoinKind::Left, JoinKind::LeftSemi, JoinKind::LeftAnti]);
        plans.against_one_row(rng, &rows, &all, kind)
    });
}

#[test]
fn unnested_lists() {
    cases("unnested_lists", 6, |rng| {
        let relations = [Relation::new("r0", &relations(rng, 1)[0].types)];
        let history = History::random(rng, &relations, Size::SMALL);
        let mut build = Builder::new();
        let input = build.scan(&relations[0]);
        let mut elements = call(AggregateFunction::ArrayAgg, &input, Some(0));
        elements.order = vec![anabranch_testing::build::descending(0)];
        let mut shorter = call(AggregateFunction::ArrayAgg, &input, Some(0));
        shorter.distinct = true;
        let lists = build.aggregate(&input, &[1], vec![elements, shorter]);
        let columns: &[usize] = if rng.chance(50) { &[1] } else { &[1, 2] };
        let plan = build.unnest(&lists, columns, rng.chance(50));
        hold(rng, &plan, &history);
    });
}

#[test]
fn random_plans() {
    laws("random_plans", 60, Size::SMALL, |rng, plans| {
        let depth = rng.between(1, 4) as usize;
        plans.plan(rng, depth)
    });
}

#[test]
fn random_plans_over_many_rows() {
    laws("random_plans_over_many_rows", 15, Size::LARGE, |rng, plans| {
        let depth = rng.between(1, 3) as usize;
        plans.plan(rng, depth)
    });
}

/// Queries that are installed and dropped at random, with common parts that they share or not.
#[test]
fn programs_of_queries_that_share() {
    for (count, size) in [(40, Size::SMALL), (8, Size::LARGE)] {
        cases("programs_of_queries_that_share", count, |rng| {
            let relations = relations(rng, 3);
            let history = History::random(rng, &relations, size);
            let plans = related_plans(rng, &mut Plans::new(&relations, Fallible::Never));
            programs::run(rng, &plans, &history);
        });
    }
}

/// The same over sums by group, which tell their rows again to a later reader.
#[test]
fn programs_of_queries_that_share_sums() {
    for (count, size) in [(40, Size::SMALL), (8, Size::LARGE)] {
        cases("programs_of_queries_that_share_sums", count, |rng| {
            let relations = relations(rng, 3);
            let history = History::random(rng, &relations, size);
            let plans = plans_of_sums(rng, &mut Plans::new(&relations, Fallible::Never));
            programs::run(rng, &plans, &history);
        });
    }
}

/// Plans over a few sums and distinct rows.
fn plans_of_sums(rng: &mut Rng, plans: &mut Plans) -> Vec<Arc<Plan>> {
    use AggregateFunction::{Avg, Count, Sum};
    let relations: Vec<Arc<Plan>> = (0..3).map(|relation| plans.relation(relation)).collect();
    let sums = relations.iter().map(|relation| plans.aggregate_with(rng, relation, &[Count, Sum, Avg]));
    let mut sums: Vec<Arc<Plan>> = sums.collect();
    sums.push(plans.distinct(&relations[0]));
    let over_them = (0..8).map(|_| {
        let (input, relation) = (rng.pick(&sums).clone(), rng.pick(&relations).clone());
        match rng.below(4) {
            0 => plans.aggregate(rng, &input),
            1 => plans.join(rng, &input, &relation, JoinKind::Inner),
            _ => plans.stage(rng, &input),
        }
    });
    let over_them: Vec<Arc<Plan>> = over_them.collect();
    sums.into_iter().chain(over_them).collect()
}

/// Plans that are made of each other.
fn related_plans(rng: &mut Rng, plans: &mut Plans) -> Vec<Arc<Plan>> {
    let mut all: Vec<Arc<Plan>> = (0..3).map(|relation| plans.relation(relation)).collect();
    all.push(plans.scan(rng));
    for _ in 0..8 {
        let (left, right) = (rng.pick(&all).clone(), plans.relation(rng.below(3)));
        let input = rng.pick(&all).clone();
        all.push(match rng.below(6) {
            0 => plans.stage(rng, &input),
            1 => plans.aggregate(rng, &input),
            2 => plans.distinct(&input),
            3 => plans.top(rng, &input),
            _ => {
                let kind = *rng.pick(&anabranch_testing::generator::plans::JOINS);
                plans.join(rng, &left, &right, kind)
            }
        });
    }
    all
}

/// Collisions cost time, never an answer: the other tests again in processes whose hashes have
/// three bits, and none.
#[test]
fn colliding_hashes_change_no_answer() {
    if std::env::var(HASH_MASK).is_ok() {
        return;
    }
    for mask in ["7", "0"] {
        let this = std::env::current_exe().expect("a running test knows its program");
        let names = ["laws::random_plans", "laws::inner_joins", "laws::aggregates", "laws::distinct_rows"];
        let names = names.into_iter().chain([
            "laws::first_rows",
            "laws::set_operations",
            "laws::full_joins",
            "laws::asof_joins",
            "laws::sessions",
            "laws::programs_of_queries_that_share",
        ]);
        let output = Command::new(this).arg("--exact").args(names).env(HASH_MASK, mask).output();
        let output = output.expect("a test program can run itself");
        assert!(
            output.status.success(),
            "with {HASH_MASK}={mask}:\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
