//! Foreign keys: random statements against a model, other clients' transactions, COPY, and
//! databases that come back.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_engine::store::{SimulatedDisk, StoreOptions, Threads};
use anabranch_engine::{Database, DatabaseOptions, DumpOptions, Options, Session, SourceRows, dump_on};

use crate::copying::send;
use crate::support::{Numbers, ask, fail, lines, run};

fn open(disk: &SimulatedDisk) -> Session {
    let keeping = StoreOptions { threads: Threads::None, ..StoreOptions::default() };
    Session::open_on(Arc::new(disk.clone()), keeping, Options::default()).unwrap()
}

/// Three tables, each row's key with what it refers to: `c` goes with `p`, `g` outlives `c`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    p: BTreeMap<i64, ()>,
    c: BTreeMap<i64, Option<i64>>,
    g: BTreeMap<i64, Option<i64>>,
    /// Rows that keep what they refer to.
    s: BTreeMap<i64, Option<i64>>,
}

impl Model {
    /// Deletes rows of `p` and what goes with them; nothing if a row refuses.
    fn delete_p(&mut self, gone: &[i64]) -> bool {
        let c: Vec<i64> =
            self.c.iter().filter(|(_, p)| p.is_some_and(|p| gone.contains(&p))).map(|(c, _)| *c).collect();
        if !self.delete_c(&c) {
            return false;
        }
        self.p.retain(|id, ()| !gone.contains(id));
        true
    }

    fn delete_c(&mut self, gone: &[i64]) -> bool {
        if self.s.values().any(|c| c.is_some_and(|c| gone.contains(&c))) {
            return false;
        }
        self.c.retain(|id, _| !gone.contains(id));
        let lost = self.g.values_mut().filter(|c| c.is_some_and(|c| gone.contains(&c)));
        lost.for_each(|c| *c = None);
        true
    }
}

#[test]
fn random_statements_leave_what_a_model_leaves() {
    for (seed, workers, index) in [(1, 0, ""), (2, 0, "CREATE INDEX ON c (p); CREATE INDEX ON g (c)"), (3, 2, "")] {
        let mut session = Session::new(Options { workers, ..Options::default() }).unwrap();
        run(
            &mut session,
            "CREATE TABLE p (id int PRIMARY KEY);
             CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE);
             CREATE TABLE g (id int PRIMARY KEY, c int REFERENCES c ON DELETE SET NULL);
             CREATE TABLE s (id int PRIMARY KEY, c int REFERENCES c);
             CREATE MATERIALIZED VIEW pairs AS SELECT g.id, c.p FROM g JOIN c ON g.c = c.id",
        );
        run(&mut session, index);
        let (mut numbers, mut model) = (Numbers(seed), Model::default());
        let mut refused = 0;
        for step in 0..300 {
            let (id, to) = (numbers.below(8), (numbers.below(5) > 0).then(|| numbers.below(8)));
            let to_text = to.map_or("NULL".to_owned(), |to| to.to_string());
            let mut after = model.clone();
            let (text, passes) = match numbers.below(9) {
                0 | 1 => {
                    let is_new = after.p.insert(id, ()).is_none();
                    (format!("INSERT INTO p VALUES ({id})"), is_new)
                }
                2 | 3 => {
                    let passes = to.is_none_or(|p| model.p.contains_key(&p)) && after.c.insert(id, to).is_none();
                    (format!("INSERT INTO c VALUES ({id}, {to_text})"), passes)
                }
                4 => {
                    let passes = to.is_none_or(|c| model.c.contains_key(&c)) && after.g.insert(id, to).is_none();
                    (format!("INSERT INTO g VALUES ({id}, {to_text})"), passes)
                }
                5 => {
                    let passes = to.is_none_or(|c| model.c.contains_key(&c)) && after.s.insert(id, to).is_none();
                    (format!("INSERT INTO s VALUES ({id}, {to_text})"), passes)
                }
                6 => {
                    let gone: Vec<i64> = model.p.keys().copied().filter(|p| p % 3 == id % 3).collect();
                    let passes = after.delete_p(&gone);
                    (format!("DELETE FROM p WHERE id % 3 = {}", id % 3), passes)
                }
                7 => {
                    let passes = after.delete_c(&[id]);
                    (format!("DELETE FROM c WHERE id = {id}"), passes)
                }
                _ => {
                    after.s.clear();
                    ("DELETE FROM s".to_owned(), true)
                }
            };
            let answer = session.execute(&text);
            assert_eq!(answer.is_ok(), passes, "seed {seed}, step {step}: {text}: {answer:?} with {model:?}");
            if passes {
                model = after;
            }
            refused += usize::from(!passes);
            if step % 10 == 9 {
                let rows = |of: &BTreeMap<i64, Option<i64>>| -> Vec<String> {
                    of.iter()
                        .map(|(id, to)| format!("{id} {}", to.map_or("null".into(), |to| to.to_string())))
                        .collect()
                };
                assert_eq!(ask(&mut session, "SELECT * FROM c ORDER BY id"), rows(&model.c), "{text}");
                assert_eq!(ask(&mut session, "SELECT * FROM g ORDER BY id"), rows(&model.g), "{text}");
                assert_eq!(ask(&mut session, "SELECT * FROM s ORDER BY id"), rows(&model.s), "{text}");
                let pairs = model.g.iter().filter_map(|(g, c)| Some((*g, *model.c.get(&(*c)?)?))).collect();
                assert_eq!(ask(&mut session, "SELECT * FROM pairs ORDER BY id"), rows(&pairs), "{text}");
            }
        }
        assert!(refused > 30, "seed {seed}: {refused}");
    }
}

#[test]
fn a_transaction_conflicts_with_one_that_takes_what_it_refers_to() {
    let database = Database::open(DatabaseOptions::default()).unwrap();
    let (mut one, mut other) = (database.connect().unwrap(), database.connect().unwrap());
    one.execute("CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p)")
        .unwrap();
    one.execute("INSERT INTO p VALUES (1), (2)").unwrap();
    one.execute("BEGIN; INSERT INTO c VALUES (1, 1)").unwrap();
    other.execute("DELETE FROM p WHERE id = 1").unwrap();
    let error = one.execute("COMMIT").unwrap_err();
    assert_eq!(error.sqlstate(), "40001", "{error:?}");

    // The other way round: a row comes that refers to what a transaction has deleted.
    one.execute("BEGIN; DELETE FROM p WHERE id = 2").unwrap();
    other.execute("INSERT INTO c VALUES (2, 2)").unwrap();
    let error = one.execute("COMMIT").unwrap_err();
    assert_eq!(error.sqlstate(), "40001", "{error:?}");
    one.execute("INSERT INTO c VALUES (3, 2)").unwrap();
}

#[test]
fn rows_that_are_copied_refer_to_rows_that_are_there() {
    let mut here = Database::open(DatabaseOptions::default()).unwrap().connect().unwrap();
    here.execute(
        "CREATE TABLE p (id int PRIMARY KEY, up int REFERENCES p); INSERT INTO p VALUES (1, NULL);
         CREATE TABLE c (id int, p int REFERENCES p)",
    )
    .unwrap();
    for begin in ["", "BEGIN"] {
        here.execute(begin).unwrap();
        // Rows of one COPY may refer to each other, in any order.
        assert_eq!(send(&mut here, "COPY p FROM STDIN CSV", b"2,3\n3,1\n4,\n", 5).unwrap(), "COPY 3");
        assert_eq!(send(&mut here, "COPY c FROM STDIN CSV", b"1,1\n2,4\n3,\n", 5).unwrap(), "COPY 3");
        here.execute("DELETE FROM c; UPDATE p SET up = NULL; DELETE FROM p WHERE id > 1").unwrap();
        if !begin.is_empty() {
            here.execute("COMMIT").unwrap();
        }
    }
    let error = send(&mut here, "COPY p FROM STDIN CSV", b"5,6\n7,5\n", 5).unwrap_err();
    assert_eq!(error.sqlstate(), "23503");
    assert_eq!(error.detail.as_deref(), Some("Key (up)=(6) is not present in table \"p\"."));
    let error = send(&mut here, "COPY c FROM STDIN CSV", b"4,1\n5,9\n", 5).unwrap_err();
    assert_eq!(error.detail.as_deref(), Some("Key (p)=(9) is not present in table \"p\"."));
    let counted = here.query("SELECT (SELECT count(*) FROM p), (SELECT count(*) FROM c)").unwrap();
    assert_eq!(lines(&counted), ["1 0"]);
}

#[test]
fn foreign_keys_come_back_and_are_dumped_behind_the_rows() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    // Two tables that refer to each other, and one to itself.
    run(
        &mut session,
        "CREATE TABLE a (id int PRIMARY KEY, b int); CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a ON DELETE SET NULL);
         ALTER TABLE a ADD CONSTRAINT of_b FOREIGN KEY (b) REFERENCES b (id) ON DELETE CASCADE;
         CREATE TABLE tree (id int, up int, name text UNIQUE, PRIMARY KEY (id), FOREIGN KEY (up) REFERENCES tree (id));
         CREATE TABLE named (name text REFERENCES tree (name));
         INSERT INTO a VALUES (1, NULL), (2, NULL); INSERT INTO b VALUES (1, 2), (2, 1); UPDATE a SET b = id;
         INSERT INTO tree VALUES (1, 3, 'x'), (2, 1, 'y'), (3, NULL, 'z'); INSERT INTO named VALUES ('y')",
    );
    drop(session);
    let mut script = Vec::new();
    dump_on(&disk, DumpOptions { sources: SourceRows::ReadAgain }, &mut script).unwrap();
    let script = String::from_utf8(script).unwrap();
    let mut again = Session::new(Options::default()).unwrap();
    run(&mut again, &script);
    for mut session in [open(&disk), again] {
        for (text, constraint) in [
            ("INSERT INTO b VALUES (3, 9)", "b_a_fkey"),
            ("UPDATE a SET b = 7", "of_b"),
            ("DELETE FROM tree WHERE id = 3", "tree_up_fkey"),
            ("DELETE FROM tree WHERE id = 2", "named_name_fkey"),
        ] {
            let error = fail(&mut session, text);
            assert!(error.sqlstate() == "23503" && error.message.contains(constraint), "{text}: {error:?}");
        }
        run(&mut session, "DELETE FROM b WHERE id = 1");
        let left = (ask(&mut session, "SELECT * FROM a"), ask(&mut session, "SELECT * FROM b"));
        assert_eq!(left, (vec!["2 2".to_owned()], vec!["2 null".to_owned()]));
        for text in ["ALTER TABLE tree RENAME TO t", "ALTER TABLE tree RENAME id TO i", "DROP INDEX tree_name_key"] {
            assert_eq!(fail(&mut session, text).sqlstate(), "2BP01", "{text}");
        }
    }
}
