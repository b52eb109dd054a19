//! What a transaction wrote, found by keys: random statements against a model, with savepoints.

use std::collections::BTreeMap;

use anabranch_engine::Session;

use crate::support::{Numbers, ask, fail, run, tag, with_workers};

/// A row's other columns, by its key.
type Model = BTreeMap<i64, (i64, i64)>;

const TABLE: &str = "CREATE TABLE t (id bigint PRIMARY KEY, a bigint, v bigint); CREATE INDEX t_a ON t (a);
     CREATE MATERIALIZED VIEW s AS SELECT count(*) AS n, coalesce(sum(v), 0)::bigint AS s FROM t;
     INSERT INTO t SELECT i, i % 5, i FROM generate_series(0, 19) AS g(i);
     PREPARE put(bigint, bigint, bigint) AS INSERT INTO t VALUES ($1, $2, $3);
     PREPARE upsert(bigint, bigint, bigint) AS
         INSERT INTO t VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v;
     PREPARE add(bigint, bigint) AS UPDATE t SET v = v + $2 WHERE id = $1;
     PREPARE moved(bigint, bigint) AS UPDATE t SET a = $2 WHERE a = $1;
     PREPARE gone(bigint) AS DELETE FROM t WHERE id = $1;
     PREPARE one(bigint) AS SELECT a, v FROM t WHERE id = $1;
     PREPARE some(bigint) AS SELECT count(*), sum(v) FROM t WHERE a = $1;
     PREPARE view_of_all AS SELECT * FROM s;";

/// One statement that changes rows, and what it does to the model.
fn change(session: &mut Session, numbers: &mut Numbers, model: &mut Model) {
    let (id, a, v) = (numbers.below(30), numbers.below(5), numbers.below(100));
    match numbers.below(6) {
        0 if model.contains_key(&id) => {
            run(session, "SAVEPOINT before");
            let error = fail(session, &format!("EXECUTE put({id}, {a}, {v})"));
            assert_eq!(error.sqlstate(), "23505");
            run(session, "ROLLBACK TO before");
        }
        0 => {
            run(session, &format!("EXECUTE put({id}, {a}, {v})"));
            model.insert(id, (a, v));
        }
        1 => {
            run(session, &format!("EXECUTE upsert({id}, {a}, {v})"));
            model.entry(id).and_modify(|row| row.1 += v).or_insert((a, v));
        }
        2 | 3 => {
            let changed = tag(session, &format!("EXECUTE add({id}, {v})"));
            assert_eq!(changed, format!("UPDATE {}", u8::from(model.contains_key(&id))));
            model.entry(id).and_modify(|row| row.1 += v);
        }
        4 => {
            let to = numbers.below(5);
            let rows: Vec<_> = model.values_mut().filter(|row| row.0 == a).collect();
            assert_eq!(tag(session, &format!("EXECUTE moved({a}, {to})")), format!("UPDATE {}", rows.len()));
            rows.into_iter().for_each(|row| row.0 = to);
        }
        _ => {
            let changed = tag(session, &format!("EXECUTE gone({id})"));
            assert_eq!(changed, format!("DELETE {}", u8::from(model.remove(&id).is_some())));
        }
    }
}

/// What is read by each way to read it.
fn check(session: &mut Session, numbers: &mut Numbers, model: &Model) {
    let (id, a) = (numbers.below(30), numbers.below(5));
    let row: Vec<_> = model.get(&id).iter().map(|(a, v)| format!("{a} {v}")).collect();
    assert_eq!(ask(session, &format!("EXECUTE one({id})")), row);
    let of_a: Vec<i64> = model.values().filter(|row| row.0 == a).map(|row| row.1).collect();
    let sum = if of_a.is_empty() { "null".to_string() } else { of_a.iter().sum::<i64>().to_string() };
    assert_eq!(ask(session, &format!("EXECUTE some({a})")), [format!("{} {sum}", of_a.len())]);
    let sum: i64 = model.values().map(|row| row.1).sum();
    assert_eq!(ask(session, "EXECUTE view_of_all"), [format!("{} {sum}", model.len())]);
    assert_eq!(ask(session, "SELECT count(*), sum(v) FROM t WHERE id >= 0"), [format!("{} {sum}", model.len())]);
}

#[test]
fn statements_of_a_transaction_find_what_those_before_them_wrote() {
    with_workers(|session| {
        run(session, TABLE);
        let mut numbers = Numbers(11);
        let mut model: Model = (0..20).map(|i| (i, (i % 5, i))).collect();
        for _ in 0..12 {
            run(session, "BEGIN");
            let begun = model.clone();
            let mut saved = None;
            for _ in 0..25 {
                change(session, &mut numbers, &mut model);
                check(session, &mut numbers, &model);
                match numbers.below(8) {
                    0 => {
                        run(session, "SAVEPOINT here");
                        saved = Some(model.clone());
                    }
                    1 if saved.is_some() => {
                        run(session, "ROLLBACK TO here");
                        model = saved.clone().unwrap();
                    }
                    _ => {}
                }
            }
            match numbers.below(3) {
                0 => {
                    run(session, "ROLLBACK");
                    model = begun;
                }
                _ => drop(run(session, "COMMIT")),
            }
            check(session, &mut numbers, &model);
        }
    });
}
