#!/usr/bin/env python3
"""MariaDB under sysbench at a steady rate, watched: the figures of docs/watch-mariadb.md.

Starts a MariaDB with a query cache in a temporary directory, drives it, and prints what `parallax watch` and
`parallax cpu` say of it next to the server's own counters. Needs root, mariadb-server and sysbench; ends what it
starts. `--keep DIR` keeps the record.
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TABLES = ["--tables=1", "--table-size=10000"]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Mariadb:
    """A server in a temporary directory."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.socket = os.path.join(folder, "socket")
        data = f"--datadir={folder}/data"
        install = ["mariadb-install-db", "--no-defaults", "--user=root", "--skip-test-db", data]
        install.append("--auth-root-authentication-method=normal")
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        command = ["mariadbd", "--no-defaults", "--user=root", data, f"--socket={self.socket}"]
        command += [f"--port={self.port}", "--bind-address=127.0.0.1", f"--pid-file={folder}/pid"]
        command += ["--query-cache-type=1", "--query-cache-size=32M"]
        with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        for _ in range(300):
            if self.process.poll() is not None:
                sys.exit("MariaDB does not start: see its log")
            try:
                self.ask("SELECT 1")
                break
            except subprocess.CalledProcessError:
                time.sleep(0.1)
        self.ask("CREATE DATABASE sbtest; CREATE USER app@'%'; GRANT ALL ON sbtest.* TO app@'%'")

    def ask(self, statement):
        command = ["mariadb", "--no-defaults", "--user=root", f"--socket={self.socket}", "-N", "-B"]
        done = subprocess.run(command + ["-e", statement], check=True, capture_output=True, text=True)
        return done.stdout

    def counters(self):
        names = "'Qcache_hits','Qcache_inserts','Qcache_not_cached','Questions'"
        rows = self.ask(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})")
        return {name: int(value) for name, value in (row.split("\t") for row in rows.splitlines())}

    def sysbench(self, *words):
        where = ["--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={self.port}"]
        where += ["--mysql-user=app", "--mysql-db=sbtest", "--db-ps-mode=disable"]
        return ["sysbench", "oltp_read_only", *where, *TABLES, *words]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parallax", default=os.path.join(here, "../target/release/parallax"))
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--rate", type=int, default=100, help="transactions per second, of 14 queries each")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--keep", help="directory for the record")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="watch-mariadb-")
    server = Mariadb(folder)
    try:
        measure(server, options, options.keep or os.path.join(folder, "record"))
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def measure(server, options, record):
    subprocess.run(server.sysbench("prepare"), check=True, stdout=subprocess.DEVNULL)
    server.ask("RESET QUERY CACHE")
    pid, seconds = str(server.process.pid), options.seconds
    load = [f"--threads={options.threads}", f"--rate={options.rate}", f"--time={seconds}"]
    watch = ["watch", "-p", pid, "--class", "mariadb-query-cache", "-i", "3s", "--no-tui", "-o", record]
    print("$ parallax", " ".join(["watch", "-p", "PID"] + watch[3:-2]), flush=True)
    watching = subprocess.Popen([options.parallax] + watch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not os.path.exists(os.path.join(record, "run.json")):
        if watching.poll() is not None:
            sys.exit(watching.stdout.read())
        time.sleep(0.05)
    before = server.counters()
    bench = subprocess.Popen(server.sysbench(*load, "run"), stdout=subprocess.PIPE, text=True)
    time.sleep(2)
    cpu = [options.parallax, "cpu", str(seconds - 4), "--", pid, str(bench.pid)]
    used = subprocess.run(cpu, capture_output=True, text=True, check=False)
    output = bench.communicate()[0]
    after = server.counters()
    watching.send_signal(signal.SIGINT)
    print(watching.communicate()[0], flush=True)
    print(f"$ parallax cpu {seconds - 4} -- PID-OF-MARIADBD PID-OF-SYSBENCH")
    print(used.stdout + used.stderr, flush=True)
    print("the server's own counters, while sysbench ran:")
    for name, value in after.items():
        print(f"  {name:18} {value - before[name]:8}")
    wanted = ("queries:", "transactions:", "avg:", "95th percentile:", "max:")
    print("sysbench:")
    print("\n".join(line for line in output.splitlines() if line.strip().startswith(wanted)))


if __name__ == "__main__":
    main()
