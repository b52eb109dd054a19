#!/usr/bin/env python3
"""The server beside PostgreSQL 15: pgbench against both, by turns, on the same rows.

Usage: serve.py --anabranch PROGRAM [--bin FOLDER] [--seconds N] [--runs N] [--rows N]

Three questions: look-ups by key (prepared, 16 connections); INSERTs of one row with fsync at 32
connections, with five views over the table on our side and none on the other; the aggregate of one
group while rows are inserted, which is a view on our side and a query on the other. Then, of our
side alone: what idle clients cost, how far subscribers are behind, how long it takes to open a
large database. Each line of the output is an object of JSON. Where PostgreSQL is not installed, a
line says so and nothing is measured.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

LOOK_UP = "\\set k random(1, {rows})\nSELECT v FROM look WHERE k = :k;\n"
INSERT = "\\set k random(1, 1000000000)\nINSERT INTO ins VALUES (:k, :k % 100, 1);\n"
READ_VIEW = "SELECT g, n, s FROM v1 WHERE g = 3;\n"
READ_QUERY = "SELECT g % 10 AS g, count(*) AS n, sum(v) AS s FROM ins WHERE g % 10 = 3 GROUP BY g % 10;\n"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def postgresql(binaries, folder):
    """A server of PostgreSQL with its own settings, fsync included; yields its port."""
    port = free_port()
    as_user = ["su", "postgres", "-c"] if os.geteuid() == 0 else ["sh", "-c"]
    if os.geteuid() == 0:
        subprocess.run(["chown", "postgres", folder], check=True)
    run = lambda command: subprocess.run(as_user + [command], check=True, stdout=subprocess.DEVNULL)
    run(f"{binaries}/initdb -D {folder}/data -A trust -U postgres")
    run(f"{binaries}/pg_ctl -D {folder}/data -w -l {folder}/log -o '-p {port} -k {folder} -c listen_addresses=127.0.0.1' start")
    try:
        yield port
    finally:
        run(f"{binaries}/pg_ctl -D {folder}/data -m fast stop")


@contextlib.contextmanager
def anabranch(program, folder):
    """Our server over a database on disk; yields its port and its process."""
    port = free_port()
    command = [program, "serve", "--listen", f"127.0.0.1:{port}", "--data", f"{folder}/database", "--log", "warn"]
    process = subprocess.Popen(command)
    try:
        for _ in range(12_000):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.005)
        yield port, process
    finally:
        process.terminate()
        process.wait(30)


def psql(port, *commands):
    words = [word for command in commands for word in ("-c", command)]
    subprocess.run(["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", "postgres", *words],
                   check=True, stdout=subprocess.DEVNULL)


def pgbench(binaries, port, script, clients, seconds, rate=None):
    """Transactions a second, their mean latency and the latency of the 99th percentile, in ms."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "script.sql").write_text(script)
        command = [f"{binaries}/pgbench", "-n", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-M", "prepared",
                   "-c", str(clients), "-j", "2", "-T", str(seconds), "-f", "script.sql", "-l", "postgres"]
        command += ["-R", str(rate)] if rate else []
        told = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout
        logs = pathlib.Path(folder).glob("pgbench_log.*")
        micros = sorted(int(line.split()[2]) for log in logs for line in log.read_text().splitlines())
    number = lambda pattern: float(re.search(pattern, told).group(1))
    return number(r"tps = ([\d.]+)"), number(r"latency average = ([\d.]+)"), micros[len(micros) * 99 // 100] / 1000


@contextlib.contextmanager
def writing(arguments, port, rate):
    """INSERTs at a steady rate meanwhile."""
    seconds = arguments.seconds + 2
    writer = threading.Thread(target=pgbench, args=(arguments.bin, port, INSERT, 2, seconds, rate))
    writer.start()
    time.sleep(1)
    yield
    writer.join()


def compare(question, arguments, ours, theirs, scripts, clients, writes=None):
    """Both, by turns, with so many INSERTs a second beside; the ratio is of the medians."""
    rates = {"anabranch": [], "postgresql": []}
    for _ in range(arguments.runs):
        for name, port, script in (("anabranch", ours, scripts[0]), ("postgresql", theirs, scripts[1])):
            with writing(arguments, port, writes) if writes else contextlib.nullcontext():
                rate, latency, slow = pgbench(arguments.bin, port, script, clients, arguments.seconds)
            rates[name].append(rate)
            print(json.dumps({"question": question, "of": name, "clients": clients, "per_second": round(rate),
                              "latency_ms": latency, "p99_ms": slow, "load": os.getloadavg()[0]}), flush=True)
    median = lambda values: sorted(values)[len(values) // 2]
    ratio = median(rates["anabranch"]) / median(rates["postgresql"])
    print(json.dumps({"question": question, "ratio": round(ratio, 3)}), flush=True)


def subscribers(port, pid, n_subscribers, per_second, seconds):
    """How far subscribers of one view are behind the commits that change it. Each reads all
    changes; one of them looks at the clock."""
    psql(port, "CREATE TABLE told (k int PRIMARY KEY, at double precision)",
         "CREATE MATERIALIZED VIEW heard AS SELECT k, at FROM told")
    address = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    copy = "COPY (SUBSCRIBE TO heard) TO STDOUT"
    others = [subprocess.Popen(["psql", "-X", "-q", address, "-c", copy], stdout=subprocess.DEVNULL)
              for _ in range(n_subscribers - 1)]
    looks = subprocess.Popen(["stdbuf", "-oL", "psql", "-X", "-q", address, "-c", copy], stdout=subprocess.PIPE, bufsize=0)
    time.sleep(2)
    batch, lags = per_second // 20, []

    def look():
        rest = b""
        while chunk := looks.stdout.read(1 << 16):
            now, lines = time.time(), (rest + chunk).split(b"\n")
            rest = lines.pop()
            lags.extend(now - float(line.rsplit(b"\t", 1)[1]) for line in lines if line)

    looking = threading.Thread(target=look)
    looking.start()
    before = of_process(pid)[0]
    writer = subprocess.Popen(["psql", "-X", "-q", address], stdin=subprocess.PIPE, text=True)
    begin, n_rows = time.time(), 0
    while time.time() - begin < seconds:
        rows = ", ".join(f"({k}, {time.time():.6f})" for k in range(n_rows, n_rows + batch))
        writer.stdin.write(f"INSERT INTO told VALUES {rows};\n")
        writer.stdin.flush()
        n_rows += batch
        time.sleep(max(0.0, begin + n_rows / per_second - time.time()))
    writer.stdin.close()
    writer.wait()
    took = time.time() - begin
    for _ in range(600):
        if len(lags) >= n_rows:
            break
        time.sleep(0.05)
    spent = of_process(pid)[0] - before
    for other in [*others, looks]:
        other.kill()
        other.wait()
    looking.join()
    lags.sort()
    at = lambda share: round(1000 * lags[int(len(lags) * share)], 1) if lags else None
    print(json.dumps({"question": "subscribers", "subscribers": n_subscribers, "changes": n_rows, "heard": len(lags),
                      "changes_per_second": round(n_rows / took), "lag_ms_median": at(0.5), "lag_ms_p99": at(0.99),
                      "core_percent": round(100 * spent / took)}), flush=True)


def opening(program, folder, n_rows, n_views):
    """How long it takes until rows, and until all views, of a database can be read."""
    with anabranch(program, folder) as (port, _):
        begin = time.time()
        psql(port, "CREATE TABLE big (k bigint, g bigint, v bigint)",
             f"INSERT INTO big SELECT n, n % 1000, n % 7 FROM generate_series(1, {n_rows}) AS g(n)")
        loaded = time.time()
        views = [f"CREATE MATERIALIZED VIEW w{n} AS SELECT g % {10 + n} AS g, count(*) AS n, sum(v) AS s FROM big GROUP BY g % {10 + n}"
                 for n in range(n_views)]
        psql(port, *views, *[f"SELECT count(*) FROM w{n}" for n in range(n_views)])
        made = time.time()
    stopped = time.time()
    with anabranch(program, folder) as (port, process):
        psql(port, "SELECT k FROM big WHERE k = 7 LIMIT 1")
        rows = time.time()
        psql(port, *[f"SELECT count(*) FROM w{n}" for n in range(n_views)])
        all_views = time.time()
        memory = of_process(process.pid)[1]
    print(json.dumps({"question": "opening", "rows": n_rows, "views": n_views, "load_s": round(loaded - begin, 1),
                      "make_views_s": round(made - loaded, 1), "rows_readable_s": round(rows - stopped, 1),
                      "views_readable_s": round(all_views - stopped, 1), "resident_mb": memory // 1024}), flush=True)


def of_process(pid):
    """Seconds of processor time, and kilobytes of memory."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(re.search(r"VmRSS:\s+(\d+)", status).group(1))


def log_in(port):
    """A client that has logged in and does nothing."""
    client = socket.create_connection(("127.0.0.1", port))
    body = (196_608).to_bytes(4, "big") + b"user\0idle\0\0"
    client.sendall((len(body) + 4).to_bytes(4, "big") + body)
    told = b""
    while not told.endswith(b"Z\0\0\0\5I"):
        told += client.recv(4096)
    return client


def idle(port, pid, n_clients, seconds):
    """Shares of a core, and memory of each client."""
    memory = of_process(pid)[1]
    clients = [log_in(port) for _ in range(n_clients)]
    time.sleep(0.5)
    (before, after_login) = of_process(pid)
    time.sleep(seconds)
    spent = of_process(pid)[0] - before
    print(json.dumps({"question": "idle clients", "clients": n_clients, "core_percent": round(100 * spent / seconds, 2),
                      "kb_each": round((after_login - memory) / n_clients)}), flush=True)
    for client in clients:
        client.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--anabranch", required=True)
    parser.add_argument("--bin", default="/usr/lib/postgresql/15/bin")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--subscribers", type=int, default=100)
    parser.add_argument("--open-rows", type=int, default=10_000_000)
    arguments = parser.parse_args()
    if not pathlib.Path(arguments.bin, "pgbench").exists():
        print("PostgreSQL 15 is not installed here: nothing is measured")
        return 0
    with tempfile.TemporaryDirectory() as there, tempfile.TemporaryDirectory() as here:
        with postgresql(arguments.bin, there) as theirs, anabranch(arguments.anabranch, here) as (ours, process):
            idle(ours, process.pid, 100, arguments.seconds)
            for port in (ours, theirs):
                psql(port, "CREATE TABLE look (k int PRIMARY KEY, v text)",
                     f"INSERT INTO look SELECT n, 'value ' || n FROM generate_series(1, {arguments.rows}) AS g(n)",
                     "CREATE TABLE ins (k bigint, g bigint, v bigint)")
            psql(theirs, "VACUUM ANALYZE look")
            for n in range(1, 6):
                by = f"g % {10 * n}"
                psql(ours, f"CREATE MATERIALIZED VIEW v{n} AS SELECT {by} AS g, count(*) AS n, sum(v) AS s FROM ins GROUP BY {by}")
            look_up = LOOK_UP.format(rows=arguments.rows)
            compare("look-up by key", arguments, ours, theirs, [look_up] * 2, 16)
            compare("insert of a row", arguments, ours, theirs, [INSERT] * 2, 32)
            compare("aggregate of a group", arguments, ours, theirs, [READ_VIEW, READ_QUERY], 4, writes=500)
            subscribers(ours, process.pid, arguments.subscribers, 10_000, arguments.seconds)
    with tempfile.TemporaryDirectory() as here:
        opening(arguments.anabranch, here, arguments.open_rows, 20)
    return 0


if __name__ == "__main__":
    sys.exit(main())
