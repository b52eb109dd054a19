//! kill -9 under load: what was answered is there once, what was not is there whole or not at all.
//!
//! `KILLS=n` kills n times (50 without), `SEED=n` changes the moments.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::Place;

/// Number n goes into two tables at once; now and then with a definition, a load or a change of all
/// rows.
fn script(n: u64) -> String {
    let put = format!(
        "BEGIN; INSERT INTO t VALUES ({n}, repeat('x', {})); INSERT INTO u VALUES ({n}); COMMIT;\n",
        n % 97 * 40
    );
    let beside = match n % 16 {
        3 => format!("CREATE TABLE w{n} AS SELECT n, 'w' AS w FROM u WHERE n > {n} - 5;\n"),
        7 => format!("DROP TABLE IF EXISTS w{};\n", n - 4),
        9 => "COPY loaded FROM 'load.csv';\n".to_string(),
        11 => "UPDATE t SET v = 'changed' WHERE n % 7 = 0 AND v <> 'changed';\n".to_string(),
        13 => format!(
            "CREATE MATERIALIZED VIEW x AS SELECT n % 3 AS k, count(*) AS c FROM u GROUP BY 1; DROP MATERIALIZED VIEW x; -- {n}\n"
        ),
        _ => String::new(),
    };
    put + &beside
}

/// Runs until it is killed: the numbers that were sent, and those whose COMMIT was answered.
fn run_and_kill(place: &Place, start: u64, workers: &str, after: Duration) -> (u64, u64) {
    let mut command = place.command(&["db", "-q", "--ends", "--workers", workers]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let sent = Arc::new(AtomicU64::new(start));
    let its_sent = sent.clone();
    let writer = thread::spawn(move || {
        for n in start.. {
            its_sent.store(n + 1, Ordering::SeqCst);
            if input.write_all(script(n).as_bytes()).is_err() {
                break;
            }
        }
    });
    let reader = thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        lines.filter(|line| line.contains("\"COMMIT\"")).count() as u64
    });
    thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    writer.join().unwrap();
    (sent.load(Ordering::SeqCst), start + reader.join().unwrap())
}

fn numbers(text: &str) -> Vec<u64> {
    text.lines().skip(1).map(|line| line.parse().unwrap()).collect()
}

#[test]
fn a_killed_process_has_lost_nothing() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (kills, seed) = (number("KILLS").unwrap_or(50), number("SEED").unwrap_or(1));
    let mut bits = seed;
    let place = Place::new();
    place.write("load.csv", "1,a\n2,b\n3,c\n");
    let make = "CREATE TABLE t (n bigint PRIMARY KEY, v text); CREATE TABLE u (n bigint);
        CREATE TABLE loaded (a int, b text); CREATE INDEX ON t (v);
        CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n, sum(n) AS s FROM t;
        CREATE MATERIALIZED VIEW l AS SELECT b, count(*) AS n FROM loaded GROUP BY b";
    place.run(&["db", "-q", "-c", make]).good();
    let (mut next, mut n_answered) = (0, 0);
    for kill in 0..kills {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let after = Duration::from_millis(20 + (bits >> 33) % 380);
        let (sent, answered) = run_and_kill(&place, next, ["0", "1", "2"][kill as usize % 3], after);
        n_answered += answered - next;
        let ask = |sql: &str| place.run(&["db", "-q", "--csv", "-c", sql]).good().to_string();
        let told = format!("kill {kill} of seed {seed} after {after:?}: {next} to {answered} answered, {sent} sent");
        let there = numbers(&ask("SELECT n FROM t ORDER BY n"));
        let until = there.len() as u64;
        assert!(there.iter().copied().eq(0..until), "{told}: a number is missing or twice");
        assert!(answered <= until && until <= sent, "{told}: {until} are there");
        assert_eq!(numbers(&ask("SELECT n FROM u ORDER BY n")), there, "{told}: a transaction is there in part");
        let sum = if until == 0 { String::new() } else { (until * (until - 1) / 2).to_string() };
        assert_eq!(ask("SELECT * FROM m"), format!("n,s\n{until},{sum}\n"), "{told}: the view is another");
        let loads = numbers(&ask("SELECT DISTINCT n FROM l"));
        assert!(loads.len() <= 1, "{told}: a load is there in part");
        if kill % 10 == 9 {
            assert!(place.run(&["check", "db"]).good().starts_with("db is sound"), "{told}");
        }
        next = until;
    }
    assert!(n_answered > kills, "{n_answered} commits were answered under {kills} kills: the load was none");
}
