//! What was acknowledged is there after the database was closed and opened again.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use anabranch_engine::store::{Disk, DiskFile, Faults, SimulatedDisk, StoreOptions, Threads};
use anabranch_engine::{
    Connector, Database, DatabaseOptions, Error, Options, Poll, ReadProgress, Session, SourceReader, SourceSpec,
    StepStatus,
};
use arrow::datatypes::SchemaRef;

use crate::connections;
use crate::support::{Silent, ask, fail, pairs, run};

/// A store without threads of its own, so that nothing depends on when these run.
fn keeping() -> StoreOptions {
    StoreOptions { threads: Threads::None, ..StoreOptions::default() }
}

fn open(disk: &SimulatedDisk) -> Session {
    Session::open_on(Arc::new(disk.clone()), keeping(), Options::default()).unwrap()
}

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("anabranch-engine-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn options(&self) -> DatabaseOptions {
        DatabaseOptions { path: Some(self.0.clone()), ..DatabaseOptions::default() }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn tables_views_and_indexes_come_back() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(
        &mut session,
        "CREATE TABLE t (k bigint PRIMARY KEY, v text DEFAULT 'x'); INSERT INTO t VALUES (1, 'a'), (2, 'b')",
    );
    run(&mut session, "CREATE VIEW p AS SELECT k, upper(v) AS u FROM t; CREATE INDEX ON p (u)");
    run(&mut session, "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n, max(u) AS u FROM p");
    run(&mut session, "DELETE FROM t WHERE k = 1; INSERT INTO t (k) VALUES (3); UPDATE t SET v = 'c' WHERE k = 2");
    let time = session.time();
    for _ in 0..3 {
        drop(session);
        session = open(&disk);
        assert_eq!(session.time(), time);
        assert_eq!(ask(&mut session, "SELECT * FROM t ORDER BY k"), ["2 c", "3 x"]);
        assert_eq!(ask(&mut session, "SELECT * FROM m"), ["2 X"]);
        assert_eq!(ask(&mut session, "SHOW INDEXES"), ["p_u_idx p u"]);
    }
    assert!(fail(&mut session, "INSERT INTO t VALUES (2, 'again')").message.contains("duplicate key"));
    run(&mut session, "INSERT INTO t VALUES (4, 'd')");
    assert_eq!(ask(&mut session, "SELECT * FROM m"), ["3 X"]);
}

#[test]
fn names_that_were_chosen_stay() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(
        &mut session,
        "CREATE TABLE t (a int, b int); CREATE INDEX ON t (a); CREATE INDEX ON t (b); CREATE INDEX ON t (a)",
    );
    run(
        &mut session,
        "DROP INDEX t_a_idx; CREATE VIEW v AS SELECT a FROM t; CREATE OR REPLACE VIEW v AS SELECT b AS a FROM t",
    );
    run(&mut session, "INSERT INTO t VALUES (1, 2); CREATE TABLE u AS SELECT a + b AS c, 'x' AS d FROM t");
    drop(session);
    let mut session = open(&disk);
    assert_eq!(ask(&mut session, "SHOW INDEXES"), ["t_a_idx1 t a", "t_b_idx t b"]);
    assert_eq!(ask(&mut session, "SELECT * FROM v"), ["2"]);
    assert_eq!(ask(&mut session, "SELECT * FROM u"), ["3 x"]);
    run(&mut session, "DROP TABLE t CASCADE; CREATE TABLE t (z text)");
    drop(session);
    let mut session = open(&disk);
    assert_eq!(ask(&mut session, "SHOW TABLES"), ["t z null", "u c, d null"]);
    assert_eq!(ask(&mut session, "SELECT * FROM t"), Vec::<String>::new());
}

#[test]
fn watermarks_and_rows_that_pass_come_back() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(&mut session, "CREATE TABLE t (k int, ts bigint, WATERMARK FOR ts AS ts - 5) WITH (retain = 'none')");
    run(&mut session, "CREATE MATERIALIZED VIEW m AS SELECT sum(k) AS k, count(*) AS n FROM t");
    run(
        &mut session,
        "INSERT INTO t VALUES (1, 10), (2, 20); INSERT INTO t VALUES (4, 3); INSERT INTO t VALUES (8, 16)",
    );
    let watermarks = ask(&mut session, "SHOW WATERMARKS");
    assert_eq!(watermarks, ["t ts 15 1"]);
    drop(session);
    let mut session = open(&disk);
    assert_eq!(ask(&mut session, "SHOW WATERMARKS"), watermarks);
    assert_eq!(ask(&mut session, "SELECT * FROM m"), ["11 3"]);
    run(&mut session, "INSERT INTO t VALUES (16, 14); INSERT INTO t VALUES (32, 15)");
    assert_eq!(ask(&mut session, "SELECT * FROM m"), ["43 4"]);
    assert_eq!(ask(&mut session, "SHOW WATERMARKS"), ["t ts 15 2"]);
    assert!(fail(&mut session, "CREATE MATERIALIZED VIEW l AS SELECT k FROM t").message.contains("passed already"));
}

#[test]
fn history_is_retained_again_and_what_was_before_is_refused() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(&mut session, "SET retain_history = '1 h'; CREATE TABLE t (a int); INSERT INTO t VALUES (1)");
    let before = session.time();
    run(&mut session, "INSERT INTO t VALUES (2)");
    assert_eq!(ask(&mut session, &format!("SELECT a FROM t AS OF {before}")), ["1"]);
    drop(session);
    let mut session = open(&disk);
    let error = fail(&mut session, &format!("SELECT a FROM t AS OF {before}"));
    assert!(error.message.contains("cannot be read as of"), "{error:?}");
    let opened = session.time();
    run(&mut session, "INSERT INTO t VALUES (3)");
    assert_eq!(ask(&mut session, &format!("SELECT count(*) FROM t AS OF {opened}")), ["2"]);
    assert_eq!(ask(&mut session, "SHOW retain_history"), ["1 h"]);
}

#[test]
fn a_transaction_is_there_whole_or_not_at_all() {
    for stops_at in 0..40 {
        let disk = SimulatedDisk::new();
        let mut session = open(&disk);
        run(&mut session, "CREATE TABLE t (a int); CREATE TABLE u (a int); INSERT INTO t VALUES (0)");
        let stops_at = disk.n_operations() + stops_at;
        disk.set_faults(Faults { stops_at: Some(stops_at), ..Faults::default() });
        let done = session.execute(
            "BEGIN; INSERT INTO t VALUES (1); INSERT INTO u VALUES (1); DELETE FROM t WHERE a = 0; COMMIT; CREATE TABLE v AS SELECT 7 AS a",
        );
        drop(session);
        let mut seed = stops_at as usize * 7 + 3;
        let disk = disk.crash(|n| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n.max(1)
        });
        let mut session = open(&disk);
        let rows = (ask(&mut session, "SELECT a FROM t"), ask(&mut session, "SELECT a FROM u"));
        let whole = (vec!["1".to_string()], vec!["1".to_string()]);
        let nothing = (vec!["0".to_string()], vec![]);
        assert!(rows == whole || (rows == nothing && done.is_err()), "{stops_at}: {rows:?}");
        match session.query("SELECT a FROM v") {
            Ok(_) => assert_eq!(ask(&mut session, "SELECT a FROM v"), ["7"]),
            Err(_) => assert!(done.is_err()),
        }
    }
}

/// Numbers from 1 on, three a poll; goes on where it was.
#[derive(Clone)]
struct Numbers {
    next: i64,
    last: i64,
}

impl Connector for Numbers {
    fn open(&self, _: &SourceSpec) -> Result<Box<dyn SourceReader>, Error> {
        Ok(Box::new(self.clone()))
    }

    fn resume(&self, _: &SourceSpec, position: &str) -> Result<Box<dyn SourceReader>, Error> {
        let next = position.parse().map_err(|_| Error::data(format!("{position} is no number")))?;
        if next > self.last + 1 {
            return Err(Error::unavailable("the numbers have become fewer"));
        }
        Ok(Box::new(Numbers { next, last: self.last }))
    }
}

impl SourceReader for Numbers {
    fn schema(&self) -> SchemaRef {
        pairs(&[]).schema()
    }

    fn poll(&mut self, _: usize) -> Result<Poll, Error> {
        let numbers: Vec<(i64, &str)> = (self.next..=self.last).take(3).map(|number| (number, "n")).collect();
        self.next += numbers.len() as i64;
        Ok(if numbers.is_empty() { Poll::Done } else { Poll::Rows(pairs(&numbers)) })
    }

    fn progress(&self) -> ReadProgress {
        ReadProgress { rows: self.next as u64 - 1, ..ReadProgress::default() }
    }

    fn position(&self) -> Option<String> {
        Some(self.next.to_string())
    }
}

#[test]
fn sources_go_on_where_they_were() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    session.register_connector("numbers", Arc::new(Numbers { next: 1, last: 20 }));
    run(&mut session, "CREATE SOURCE s WITH (connector = 'numbers')");
    run(&mut session, "SET wait_for_sources = off; CREATE MATERIALIZED VIEW m AS SELECT sum(k) AS k FROM s");
    while session.sources()[0].rows < 6 {
        session.step().unwrap();
    }
    session.commit().unwrap();
    drop(session);

    let mut session = open(&disk);
    run(&mut session, "SET wait_for_sources = off");
    let rows: i64 = ask(&mut session, "SELECT count(*) FROM s")[0].parse().unwrap();
    assert!((6..20).contains(&rows), "{rows}");
    assert!(ask(&mut session, "SHOW SOURCES")[0].contains("\"numbers\" is not registered"));
    session.register_connector("numbers", Arc::new(Numbers { next: 1, last: 20 }));
    run(&mut session, "SET wait_for_sources = on");
    assert_eq!(ask(&mut session, "SELECT k FROM m"), ["210"]);
    assert_eq!(session.sources()[0].rows, 20);
    drop(session);

    // Read to its end, it needs no connector any more.
    let mut session = open(&disk);
    assert_eq!(ask(&mut session, "SELECT k FROM m"), ["210"]);
    assert!(ask(&mut session, "SHOW SOURCES")[0].starts_with("s numbers done 20"));
}

#[test]
fn a_source_that_cannot_go_on_says_so() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    session.register_connector("numbers", Arc::new(Numbers { next: 1, last: 20 }));
    session.register_connector("silent", Arc::new(Silent));
    run(&mut session, "CREATE SOURCE s WITH (connector = 'numbers'); CREATE SOURCE z WITH (connector = 'silent')");
    while session.sources()[0].rows < 6 {
        session.step().unwrap();
    }
    session.commit().unwrap();
    drop(session);
    let mut session = open(&disk);
    session.register_connector("numbers", Arc::new(Numbers { next: 1, last: 2 }));
    session.register_connector("silent", Arc::new(Silent));
    let shown = ask(&mut session, "SHOW SOURCES");
    assert!(shown[0].contains("it cannot go on where it was: the numbers have become fewer"), "{shown:?}");
    assert!(shown[1].starts_with("z silent running"), "{shown:?}");
    let error = fail(&mut session, "SELECT count(*) FROM s");
    assert!(error.message.contains("cannot go on where it was"), "{error:?}");
}

#[test]
fn a_full_disk_leaves_reads_and_room_brings_writes_back() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(&mut session, "CREATE TABLE t (k bigint PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a')");
    run(&mut session, "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t; CREATE VIEW w AS SELECT k FROM t");
    disk.set_faults(Faults { capacity_bytes: Some(0), ..Faults::default() });
    for statement in [
        "INSERT INTO t VALUES (2, 'b')",
        "DELETE FROM t",
        "DROP VIEW w",
        "DROP TABLE t CASCADE",
        "CREATE OR REPLACE VIEW w AS SELECT k + 1 AS k FROM t",
        "CREATE MATERIALIZED VIEW x AS SELECT k FROM t",
        "CREATE TABLE u AS SELECT 1 AS a",
        "SET retain_history = '1 h'",
    ] {
        let error = fail(&mut session, statement);
        assert_eq!(error.sqlstate(), "53100", "{statement}: {error:?}");
    }
    assert_eq!(ask(&mut session, "SELECT * FROM t"), ["1 a"]);
    assert_eq!(ask(&mut session, "SELECT n FROM m"), ["1"]);
    assert_eq!(ask(&mut session, "SELECT * FROM w"), ["1"]);
    disk.set_faults(Faults::default());
    run(&mut session, "INSERT INTO t VALUES (2, 'b'); DROP VIEW w");
    drop(session);
    let mut session = open(&disk);
    assert_eq!(ask(&mut session, "SELECT * FROM t ORDER BY k"), ["1 a", "2 b"]);
    assert_eq!(ask(&mut session, "SHOW VIEWS"), Vec::<String>::new());
}

#[test]
fn after_a_sync_that_failed_nothing_is_shown_until_it_is_opened_again() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(&mut session, "CREATE TABLE t (a int); INSERT INTO t VALUES (1)");
    disk.set_faults(Faults { sync_fails: true, ..Faults::default() });
    assert_eq!(fail(&mut session, "INSERT INTO t VALUES (2)").sqlstate(), "58030");
    // Whether the row is on disk is not known, so a read would show what may be gone tomorrow.
    assert_eq!(fail(&mut session, "SELECT * FROM t").sqlstate(), "58030");
    assert_eq!(fail(&mut session, "INSERT INTO t VALUES (3)").sqlstate(), "58030");
    drop(session);
    let mut session = open(&disk);
    let rows = ask(&mut session, "SELECT a FROM t ORDER BY a");
    assert!(rows == ["1"] || rows == ["1", "2"], "{rows:?}");
}

#[test]
fn one_process_has_a_folder_open() {
    let folder = Folder::new("lock");
    let database = Database::open(folder.options()).unwrap();
    let error = Database::open(folder.options()).unwrap_err();
    assert_eq!(error.sqlstate(), "55006");
    assert!(error.message.contains(&format!("by process {}", std::process::id())), "{error:?}");
    let mut connection = database.connect().unwrap();
    connections::run(&mut connection, "CREATE TABLE t (a int); INSERT INTO t VALUES (1)");
    database.close().unwrap();
    let mut connection = Database::open(folder.options()).unwrap().connect().unwrap();
    assert_eq!(connections::ask(&mut connection, "SELECT a FROM t"), ["1"]);
}

#[test]
fn a_folder_with_other_files_is_refused() {
    let folder = Folder::new("other");
    std::fs::create_dir_all(&folder.0).unwrap();
    std::fs::write(folder.0.join("letter.txt"), "dear").unwrap();
    let error = Database::open(folder.options()).unwrap_err();
    assert_eq!(error.sqlstate(), "3D000");
    assert!(error.message.contains("letter.txt"), "{error:?}");
}

/// A disk whose syncs wait until they may go on.
#[derive(Clone)]
struct Gated {
    disk: SimulatedDisk,
    gate: Arc<(Mutex<Gate>, Condvar)>,
}

#[derive(Default)]
struct Gate {
    is_shut: bool,
    n_waiting: usize,
    n_syncs: usize,
}

impl Gated {
    fn set(&self, is_shut: bool) {
        self.gate.0.lock().unwrap().is_shut = is_shut;
        self.gate.1.notify_all();
    }

    fn await_waiting(&self) {
        let gate = self.gate.0.lock().unwrap();
        drop(self.gate.1.wait_while(gate, |gate| gate.n_waiting == 0).unwrap());
    }

    fn wrapped(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(GatedFile { file, gate: self.gate.clone() })
    }
}

struct GatedFile {
    file: Box<dyn DiskFile>,
    gate: Arc<(Mutex<Gate>, Condvar)>,
}

impl Disk for Gated {
    fn place(&self) -> String {
        self.disk.place()
    }
    fn names(&self) -> io::Result<Vec<String>> {
        self.disk.names()
    }
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.wrapped(self.disk.create(name)?))
    }
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.wrapped(self.disk.open(name)?))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }
    fn sync_names(&self) -> io::Result<()> {
        self.disk.sync_names()
    }
    fn lock(&self, name: &str, holder: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.disk.lock(name, holder)
    }
}

impl DiskFile for GatedFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, bytes)
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, bytes)
    }
    fn truncate(&self, length: u64) -> io::Result<()> {
        self.file.truncate(length)
    }
    fn sync(&self) -> io::Result<()> {
        let mut gate = self.gate.0.lock().unwrap();
        gate.n_waiting += 1;
        gate.n_syncs += 1;
        self.gate.1.notify_all();
        let mut gate = self.gate.1.wait_while(gate, |gate| gate.is_shut).unwrap();
        gate.n_waiting -= 1;
        drop(gate);
        self.file.sync()
    }
}

#[test]
fn an_answer_shows_only_what_lasts_and_one_sync_serves_many() {
    let disk = Gated { disk: SimulatedDisk::new(), gate: Arc::default() };
    let database = Database::open_on(Arc::new(disk.clone()), keeping(), Options::default()).unwrap();
    let mut first = database.connect().unwrap();
    connections::run(&mut first, "CREATE TABLE t (a int); CREATE TABLE u (a int)");
    disk.set(true);
    let writer = thread::spawn(move || first.execute("INSERT INTO t VALUES (1)").map(|_| first));
    disk.await_waiting();
    // The engine goes on: others write meanwhile, and wait as well; so does who reads what does not
    // last yet.
    let others: Vec<_> = (0..8)
        .map(|idx| {
            let mut connection = database.connect().unwrap();
            thread::spawn(move || connection.execute(&format!("INSERT INTO u VALUES ({idx})")).map(|_| ()))
        })
        .collect();
    let mut reader = database.connect().unwrap();
    let reader = thread::spawn(move || connections::ask(&mut reader, "SELECT a FROM t"));
    // With relaxed durability a commit is done at once; it is seen before it lasts.
    let mut hasty = database.connect().unwrap();
    thread::sleep(Duration::from_millis(50));
    assert!(!writer.is_finished() && !reader.is_finished() && others.iter().all(|other| !other.is_finished()));
    let before = disk.gate.0.lock().unwrap().n_syncs;
    disk.set(false);
    let mut first = writer.join().unwrap().unwrap();
    assert_eq!(reader.join().unwrap(), ["1"]);
    others.into_iter().for_each(|other| other.join().unwrap().unwrap());
    let n_syncs = disk.gate.0.lock().unwrap().n_syncs - before;
    assert!(n_syncs <= 4, "eight commits took {n_syncs} syncs");
    connections::run(&mut hasty, "SET durability = relaxed");
    disk.set(true);
    connections::run(&mut hasty, "INSERT INTO t VALUES (2)");
    assert_eq!(connections::ask(&mut first, "SELECT count(*) FROM t"), ["2"]);
    // One transaction may be relaxed by itself.
    let relaxed = "BEGIN; SET LOCAL durability = relaxed; INSERT INTO t VALUES (3); COMMIT";
    connections::run(&mut first, relaxed);
    assert_eq!(connections::ask(&mut first, "SHOW durability"), ["full"]);
    assert_eq!(connections::ask(&mut hasty, "SELECT count(*) FROM t"), ["3"]);
    connections::run(&mut first, "SET LOCAL durability = relaxed");
    assert_eq!(connections::ask(&mut first, "SHOW durability"), ["full"]);
    assert_eq!(connections::fail(&mut first, "BEGIN; SET LOCAL memory_limit = off").sqlstate(), "0A000");
    disk.set(false);
    database.close().unwrap();
}

#[test]
fn an_idle_session_over_a_folder_takes_no_turns() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(&mut session, "CREATE TABLE t (a int); INSERT INTO t VALUES (1)");
    while session.step().unwrap() == StepStatus::Working {}
    let before = disk.n_operations();
    for _ in 0..10 {
        session.step().unwrap();
    }
    run(&mut session, "DELETE FROM t WHERE a = 7; UPDATE t SET a = 3 WHERE a = 7");
    assert_eq!(disk.n_operations(), before, "nothing changed, so nothing is written");
}

#[test]
fn recorded_values_that_make_no_sense_are_errors() {
    use anabranch_batch::{Batch, Diffs, Times};
    use anabranch_engine::store::{Commit, Created, Fact, Store};
    let mut seed = 7u64;
    let mut random = move |bound: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % bound
    };
    let texts = [
        "CREATE TABLE t (a bigint, b text)",
        "CREATE TABLE t (a bigint, ts bigint, WATERMARK FOR ts AS ts - 5)",
        "CREATE SOURCE s WITH (connector = 'numbers')",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE INDEX ON t (a)",
        "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM nothing",
        "DROP TABLE t",
        "SELECT 1",
        "",
        "no SQL at all; 'and",
        "CREATE TABLE t (a bigint, a text)",
    ];
    let (mut n_opened, mut n_refused) = (0, 0);
    for _ in 0..400 {
        let disk = SimulatedDisk::new();
        let (store, _) = Store::open(Arc::new(disk.clone()), keeping()).unwrap();
        let ids: Vec<u64> = (1..=1 + random(3) as u64).collect();
        let created = ids.iter().map(|id| Created { id: *id, text: texts[random(texts.len())].to_string() }).collect();
        let facts = ["watermark", "source", "columns", "retain_history"].iter().filter_map(|name| {
            let known: [&[u8]; 5] = [b"12 0", b"running 3\n9", b"done 1", b"5", &[1, 0, 0, 0, 1, 0, 0, 0, b'a', 1]];
            let mut value = known[random(known.len())].to_vec();
            if random(3) == 0 && !value.is_empty() {
                let at = random(value.len());
                value[at] ^= 1 << random(8);
            }
            let object = if random(2) == 0 { 0 } else { ids[random(ids.len())] };
            (random(3) > 0).then(|| Fact { object, name: name.to_string(), value: Some(value) })
        });
        let facts = facts.collect();
        let batch = Batch::new(pairs(&[(1, "x"), (2, "y")]).columns().to_vec(), Times::Constant(1), Diffs::Constant(1));
        let rows = if random(2) == 0 { vec![] } else { vec![(ids[random(ids.len())], batch)] };
        store.append(&Commit { time: 5, created, rows, facts, ..Commit::default() }).unwrap();
        store.close().unwrap();
        match Session::open_on(Arc::new(disk), keeping(), Options::default()) {
            Ok(mut session) => {
                n_opened += 1;
                session.register_connector("numbers", Arc::new(Numbers { next: 1, last: 20 }));
                let _ = session.query("SHOW SOURCES");
            }
            Err(error) => {
                n_refused += 1;
                assert!(!error.message.is_empty() && error.sqlstate() != "XX000", "{error:?}");
            }
        }
    }
    assert!(n_opened > 10 && n_refused > 100, "{n_opened} opened, {n_refused} refused");
}

/// The recorded constraint once had the schema's name in its own, and the database did not open.
#[test]
fn constraints_of_tables_in_schemas_come_back() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(
        &mut session,
        "CREATE SCHEMA app; CREATE TABLE app.t (k int UNIQUE, z int, CONSTRAINT uq UNIQUE (z, k)); \
         ALTER TABLE app.t ADD UNIQUE (z); CREATE UNIQUE INDEX own ON app.t (k, z); \
         CREATE TABLE \"a.b\" (k int UNIQUE); INSERT INTO app.t VALUES (1, 1)",
    );
    let known = "SELECT conname FROM pg_constraint WHERE contype = 'u' ORDER BY 1";
    let before = ask(&mut session, known);
    for _ in 0..2 {
        drop(session);
        session = open(&disk);
        assert_eq!(ask(&mut session, known), before);
        assert!(fail(&mut session, "INSERT INTO app.t VALUES (1, 2)").message.contains("duplicate key"));
    }
    run(&mut session, "ALTER TABLE app.t DROP CONSTRAINT uq");
    drop(session);
    session = open(&disk);
    assert_eq!(ask(&mut session, known).len(), before.len() - 1);
}
