#!/usr/bin/env python3
"""Clients of other hands against a server: psql, psycopg, asyncpg, SQLAlchemy, PgJDBC,
node-postgres, pgx.

Usage: run.py --anabranch PROGRAM --cache FOLDER [NAME ..]

Starts a server with users and TLS, runs the checks of each client, and ends with `N passed, N
failed`. A client whose toolchain is missing is skipped with a line that says so. NAMEs choose
checks by a part of their names.
"""
import argparse
import contextlib
import dataclasses
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.parse

HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass
class At:
    """Where a server is, and how to log in."""
    port: int
    user: str
    password: str
    reader: str | None
    ca: str | None
    cache: pathlib.Path
    http: int
    program: str = ""

    def environment(self):
        names = {"PGHOST": "127.0.0.1", "PGPORT": str(self.port), "PGUSER": self.user, "PGPASSWORD": self.password,
                 "PGDATABASE": "anabranch", "PGSSLROOTCERT": self.ca or "",
                 "PGSSLMODE": "verify-ca" if self.ca else "disable"}
        return {**os.environ, **names}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def certificate(folder):
    """A certificate of its own for 127.0.0.1, and its key."""
    files = [str(folder / "server.crt"), str(folder / "server.key")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", files[0], "-keyout", files[1]],
                   check=True, capture_output=True)
    return files


@contextlib.contextmanager
def server(program, cache):
    """A server with two users and TLS."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cert, key = certificate(folder)
        entries = ""
        for user, more in (("ann", []), ("reader", ["--read-only"])):
            made = subprocess.run([program, "password", "--user", user, *more], input="s3cret pass", text=True,
                                  check=True, capture_output=True)
            entries += made.stdout
        (folder / "users.toml").write_text(entries)
        port, http = free_port(), free_port()
        process = subprocess.Popen([program, "serve", "--listen", f"127.0.0.1:{port}", "--http", f"127.0.0.1:{http}",
                                    "--users", folder / "users.toml", "--tls-cert", cert, "--tls-key", key,
                                    "--log", "warn"])
        try:
            for _ in range(200):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.05)
            yield At(port, "ann", "s3cret pass", "reader", cert, cache, http, program)
        finally:
            process.send_signal(signal.SIGTERM)
            if process.wait(30) != 0:
                raise RuntimeError("the server did not end well")


def psql(at):
    """Every command that lists or describes runs, and shows what is there."""
    if not shutil.which("psql"):
        raise Missing("psql is not installed")
    run = lambda *commands: subprocess.run(
        ["psql", "-X", "-A", "-t", *[word for command in commands for word in ("-c", command)]], text=True,
        env=at.environment(), capture_output=True, timeout=120)
    made = run("CREATE TABLE ps_t (a int PRIMARY KEY, b varchar(10) NOT NULL DEFAULT 'x', c numeric(10, 2))",
               "CREATE VIEW ps_v AS SELECT a, b FROM ps_t", "CREATE INDEX ps_i ON ps_t (b)",
               "CREATE MATERIALIZED VIEW ps_m AS SELECT count(*) AS n FROM ps_t",
               "CREATE TABLE ps_r (a int REFERENCES ps_t)")
    assert made.returncode == 0, made.stderr
    for command in (r"\d", r"\d ps_t", r"\d+ ps_t", r"\d ps_v", r"\d+ ps_v", r"\d ps_m", r"\d ps_i", r"\d ps_r", r"\dt", r"\dt+",
                    r"\di", r"\dv", r"\dm", r"\ds", r"\l", r"\dn", r"\du", r"\df", r"\dT", r"\dp", r"\sv ps_v", r"\db",
                    r"\dx", r"\dt ps*", r"\conninfo", r"\encoding", r"\d nothing"):
        shown = run(command)
        assert "ERROR" not in shown.stderr, f"{command}: {shown.stderr}"
    listed = {r"\dt": "ps_t|table", r"\dv": "ps_v|view", r"\dm": "ps_m|materialized view", r"\dn": "public|",
              r"\du": "anabranch|", r"\l": "anabranch|", r"\d ps_m": "n|bigint", r"\d ps_i": "b|character varying(10)",
              r"\d": "public|ps_t|table", r"\sv ps_v": "SELECT a, b"}
    for command, part in listed.items():
        assert part in run(command).stdout, (command, run(command).stdout)
    # (Without -t: references stand below the table.)
    footers = [subprocess.run(["psql", "-X", "-c", rf"\d {table}"], text=True, env=at.environment(), capture_output=True,
                              timeout=120).stdout for table in ("ps_r", "ps_t")]
    assert "Foreign-key constraints:" in footers[0] and "Referenced by:" in footers[1], footers
    shown = run(r"\d ps_t").stdout
    for part in ("a|integer||not null|", "b|character varying(10)||not null|'x'", "numeric(10,2)"):
        assert part in shown, shown
    assert "ps_i|index" in run(r"\di").stdout
    error = run("SELECT b FROM ps_tt").stderr
    assert "LINE 1: SELECT b FROM ps_tt" in error and "ps_t" in error.split("HINT")[1], error


def psql_copy(at):
    r"""\copy both ways."""
    if not shutil.which("psql"):
        raise Missing("psql is not installed")
    run = lambda *commands: subprocess.run(
        ["psql", "-X", "-A", "-t", *[word for command in commands for word in ("-c", command)]], text=True,
        env=at.environment(), capture_output=True, timeout=120)
    assert run("CREATE TABLE ps_t2 (a int PRIMARY KEY, b text, c numeric(10, 2))").returncode == 0
    copied = subprocess.run(["psql", "-X", "-c", r"\copy ps_t2 FROM STDIN"], input="1\tone\t1.5\n2\ttwo\t\\N\n",
                            text=True, env=at.environment(), capture_output=True, timeout=60)
    assert copied.returncode == 0, copied.stderr
    assert run(r"\copy (SELECT a, b, c FROM ps_t2 ORDER BY a) TO STDOUT").stdout == "1\tone\t1.50\n2\ttwo\t\\N\n"


def http(at):
    """Probes, metrics, a query and a subscription."""
    import base64
    import json
    import urllib.error
    import urllib.request
    base = f"http://127.0.0.1:{at.http}"
    login = {"Authorization": "Basic " + base64.b64encode(f"{at.user}:{at.password}".encode()).decode()}

    def ask(path, data=None, headers=login):
        request = urllib.request.Request(base + path, data=data, headers=headers)
        return urllib.request.urlopen(request, timeout=30)

    assert ask("/healthz", headers={}).read() == b"ok\n" and ask("/readyz", headers={}).read() == b"ready\n"
    try:
        ask("/query", b"SELECT 1", headers={})
        raise AssertionError("nobody was let in")
    except urllib.error.HTTPError as error:
        assert error.code == 401, error
    ask("/query", b"CREATE TABLE ht (a int); INSERT INTO ht VALUES (1)")
    answer = json.load(ask("/query", json.dumps({"sql": "SELECT a, a / 2.0 AS h FROM ht"}).encode()))
    assert answer["rows"][0]["a"] == 1, answer
    try:
        ask("/query", b"SELECT 1 / 0")
        raise AssertionError("a number was divided by zero")
    except urllib.error.HTTPError as error:
        assert error.code == 400 and json.load(error)["code"] == "22012"
    # A transaction ends with its request.
    ask("/query", b"BEGIN; INSERT INTO ht VALUES (2); COMMIT; BEGIN; INSERT INTO ht VALUES (3); ROLLBACK")
    try:
        ask("/query", b"BEGIN; INSERT INTO ht VALUES (4)")
        raise AssertionError("a transaction was left open")
    except urllib.error.HTTPError as error:
        assert error.code == 400 and json.load(error)["code"] == "25000"
    answer = json.load(ask("/query", b"DELETE FROM ht WHERE a > 1 RETURNING a, current_user AS by"))
    assert answer["rows"] == [{"a": 2, "by": at.user}], answer
    text = ask("/metrics").read().decode()
    assert "# HELP anabranch_statements" in text and "# TYPE anabranch_connections gauge" in text, text
    with ask("/subscribe?relation=ht") as events:
        lines = [events.readline().decode().strip() for _ in range(2)]
    assert lines[0] == "event: change" and json.loads(lines[1][6:])["a"] == 1, lines
    # (Columns named like the protocol's, and like each other, keep their values.)
    ask("/query", b"CREATE TABLE ht_named (time int, diff int); INSERT INTO ht_named VALUES (77, 88)")
    with ask("/subscribe?relation=ht_named") as events:
        change = json.loads([events.readline().decode().strip() for _ in range(2)][1][6:])
    assert (change["diff"], change["time_1"], change["diff_1"]) == (1, 77, 88), change
    answer = json.load(ask("/query", b"SELECT 1 AS a, 2 AS a"))
    assert answer["rows"] == [{"a": 1, "a_1": 2}], answer


def shell(at):
    """Our own: TLS with the server's certificate checked, which is its own authority."""
    def ask(host, root, sql="SELECT current_user AS me, pg_typeof(1)"):
        address = (f"postgresql://{at.user}:{urllib.parse.quote(at.password)}@{host}:{at.port}/anabranch"
                   f"?sslmode=verify-full&sslrootcert={root}")
        return subprocess.run([at.program, "--connect", address, "-c", sql], capture_output=True, text=True, timeout=60)

    told = ask("localhost", at.ca)
    assert told.returncode == 0 and at.user in told.stdout, told
    assert ask("127.0.0.1", at.ca).returncode == 0
    with tempfile.TemporaryDirectory() as folder:
        other, _ = certificate(pathlib.Path(folder))
        told = ask("localhost", other)
        assert told.returncode != 0 and "certificate" in told.stderr + told.stdout, told


# Checks that do not hold yet, and why. They run when they are named.
NOT_YET = {}

# Seconds that a check may take: one that waits for ever is a failure.
CHECK_SECONDS = 240


class Missing(Exception):
    """A toolchain is not there."""


def program_check(name, *needs, part=None):
    """Runs the script NAME of this folder, or one part of it, with the server's address in the
    environment."""
    def check(at):
        for need in needs:
            if not shutil.which(need):
                raise Missing(f"{need} is not installed")
        folder = at.cache / "clients" / name
        folder.mkdir(parents=True, exist_ok=True)
        for source in (HERE / name).iterdir():
            shutil.copy(source, folder)
        command = ["bash", "-e", "run.sh"] + ([part] if part else [])
        done = subprocess.run(command, cwd=folder, env=at.environment(), text=True, capture_output=True, timeout=900)
        if done.returncode == 77:
            raise Missing(done.stdout.strip().splitlines()[-1])
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    check.__name__ = f"{name}_{part}" if part else name
    return check


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--anabranch", required=True)
    parser.add_argument("--cache", required=True, type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    import python_clients
    checks = [psql, psql_copy, http, shell, *python_clients.CHECKS, program_check("jdbc", "java", "javac", "mvn"),
              program_check("jdbc", "java", "javac", "mvn", part="copy"), program_check("node", "node", "npm"),
              program_check("pgx", "go"), program_check("pgx", "go", part="copy")]
    passed = failed = 0

    def late(_signal, _frame):
        raise TimeoutError(f"the check took more than {CHECK_SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    with server(arguments.anabranch, arguments.cache.absolute()) as at:
        for check in checks:
            name = check.__name__
            if arguments.names and not any(part in name for part in arguments.names):
                continue
            if not arguments.names and name in NOT_YET:
                print(f"not yet {name}: {NOT_YET[name]}")
                continue
            signal.alarm(CHECK_SECONDS)
            try:
                check(at)
                passed += 1
                print(f"ok      {name}")
            except Missing as missing:
                print(f"skipped {name}: {missing}")
            except Exception:  # (Whatever a client raises is a failure of its check.)
                failed += 1
                print(f"FAILED  {name}")
                traceback.print_exc()
            signal.alarm(0)
            sys.stdout.flush()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
