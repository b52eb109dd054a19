//! The shell over a server: the same commands, the same answers.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Stdio};

use crate::support::Place;

/// A server of the same binary, which ends with its test.
pub struct Server {
    child: Child,
    pub url: String,
}

impl Server {
    pub fn start(place: &Place) -> Server {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let mut command = place.command(&["serve", "--listen", &address, "--log", "info", "--log-json"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // (The first line of the log says where it listens.)
        let mut line = String::new();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        log.read_line(&mut line).unwrap();
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        for _ in 0..100 {
            if std::net::TcpStream::connect(&address).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        Server { child, url: format!("postgresql://ann@{address}/any") }
    }
}

impl Server {
    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const SCRIPT: &str = "\
CREATE TABLE t (a int PRIMARY KEY, b text, c numeric(10, 2), d double precision, e int[], f boolean, g date);
INSERT INTO t VALUES (1, 'x', 1.5, 0.25, ARRAY[1, 2], true, '2024-01-02'), (2, NULL, NULL, 'NaN', NULL, false, NULL);
CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(c) AS s FROM t;
CREATE INDEX by_b ON t (b);
CREATE VIEW w AS SELECT a FROM t;
SELECT * FROM t ORDER BY a;
SELECT n, s FROM v \\gx
\\d
\\d t
\\dt t*
\\dv+
\\dm
\\di by*
\\dn
\\df
.tables w
.schema
\\x
SELECT a, b FROM t ORDER BY a;
\\x
SELECT n FROM v \\watch 0.01 c=2
BEGIN;
DELETE FROM t WHERE a = 1;
SELECT count(*) AS n FROM t;
ROLLBACK;
\\timing off
.mode csv
SELECT a, f, e FROM t ORDER BY a;
";

#[test]
fn a_server_answers_as_a_session_does() {
    let place = Place::new();
    let server = Server::start(&place);
    place.write("s.sql", SCRIPT);
    for format in ["table", "csv", "json", "jsonl", "markdown", "plain"] {
        let here = place.run(&["--format", format, "-f", "s.sql"]);
        let there = place.run(&["--format", format, "--connect", &server.url, "-f", "s.sql"]);
        assert_eq!(there.good(), here.good(), "{format}");
        place.run(&["--connect", &server.url, "-q", "-c", "DROP TABLE t CASCADE"]).good();
    }
    // (Of users a server knows more.)
    let (here, there) = (place.run(&["-c", "\\du"]), place.run(&["--connect", &server.url, "-c", "\\du"]));
    assert!(here.good().contains("(1 row)"));
    assert!(there.good().contains(" ann ") && there.good().contains("(2 rows)"));
    let watched = place.run(&["-q", "--csv", "-c", "SELECT 1 AS one \\watch 0.01 c=3"]);
    assert_eq!(watched.good(), "one\n1\none\n1\none\n1\n");
}

#[test]
fn errors_of_a_server_have_their_places() {
    let place = Place::new();
    let server = Server::start(&place);
    place.write("c.sql", "CREATE TABLE flights (id int);\n\nSELECT *\nFROM flihgts;\n");
    let here = place.run(&["-q", "-f", "c.sql"]);
    let there = place.run(&["-q", "--connect", &server.url, "-f", "c.sql"]);
    assert_eq!((there.code, &there.err), (1, &here.err));
    let ran = place.run(&["--connect", "postgresql://127.0.0.1:1/x", "-c", "SELECT 1"]);
    assert!(ran.code == 1 && ran.err.contains("cannot connect to 127.0.0.1:1"), "{}", ran.err);
    assert!(place.run(&["--connect", "nowhere", "-c", "SELECT 1"]).err.contains("not the address of a server"));
}

#[test]
fn a_subscription_of_a_server_ends_at_its_limit() {
    let place = Place::new();
    let server = Server::start(&place);
    let sql = "CREATE TABLE t (a int); INSERT INTO t VALUES (7)";
    place.run(&["--connect", &server.url, "-q", "-c", sql]).good();
    let up_to = "SUBSCRIBE t WITH (PROGRESS) UP TO 9000000000000000";
    let mut child = place.command(&["--connect", &server.url, "--jsonl", "-c", up_to]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.contains("\"diff\":1,\"a\":7"), "{first}");
    assert!(lines.next().unwrap().unwrap().starts_with("{\"progress\":"));
    place.run(&["--connect", &server.url, "-q", "-c", "INSERT INTO t VALUES (8)"]).good();
    let next = lines.map_while(Result::ok).find(|line| !line.contains("progress")).unwrap();
    assert!(next.contains("\"a\":8"), "{next}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_file_is_imported_and_a_statement_edited() {
    let place = Place::new();
    place.write("rows.csv", "k,name\n1,tea\n2,jam\n");
    let ran = place.run(&["-q", "--csv", "-c", ".import rows.csv made", "-c", "SELECT k, name FROM made ORDER BY k"]);
    assert_eq!(ran.good(), "k,name\n1,tea\n2,jam\n");
    let sql = "CREATE TABLE t (k int, name text)";
    let ran =
        place.run(&["-q", "--csv", "-c", sql, "-c", ".import --skip 1 rows.csv t", "-c", "SELECT sum(k) AS k FROM t"]);
    assert_eq!(ran.good(), "k\n3\n");
    let ran = place.run(&[
        "-q",
        "--csv",
        "-c",
        sql,
        "-c",
        "\\copy t FROM 'rows.csv' (FORMAT csv, HEADER)",
        "-c",
        "SELECT count(*) AS n FROM t",
    ]);
    assert_eq!(ran.good(), "n\n2\n");
    assert_eq!(place.run(&["-c", "\\copy t"]).code, 1);
    assert!(place.run(&["-c", "\\watch"]).err.contains("there is none"));
    place.write("editor.sh", "echo \"SELECT 2 AS two;\" > \"$1\"\n");
    let mut command = place.command(&["--csv", "-c", "SELECT 1 AS one", "-c", "\\e"]);
    let output = command.env("EDITOR", "sh editor.sh").output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "one\n1\ntwo\n2\n");
}
