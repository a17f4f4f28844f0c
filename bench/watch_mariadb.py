#!/usr/bin/env python3
"""MariaDB under sysbench at a steady rate, watched: the figures of docs/watch-mariadb.md.

Starts a MariaDB with a query cache in a temporary directory, drives it, and prints what `parallax watch` and
`parallax cpu` say of it next to the server's own counters. Needs root, mariadb-server and sysbench; ends what it
starts. `--keep DIR` keeps the record.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time

from database_servers import Mariadb, server

TABLES = ["--tables=1", "--table-size=10000"]


def counters(mariadb):
    names = "'Qcache_hits','Qcache_inserts','Qcache_not_cached','Questions'"
    rows = mariadb.ask(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})")
    return {name: int(value) for name, value in (row.split("\t") for row in rows.splitlines())}


def sysbench(mariadb, *words):
    return mariadb.sysbench("oltp_read_only", "--db-ps-mode=disable", *TABLES, *words)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parallax", default=os.path.join(here, "../target/release/parallax"))
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--rate", type=int, default=100, help="transactions per second, of 14 queries each")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--keep", help="directory for the record")
    options = parser.parse_args()
    cache = ["--query-cache-type=1", "--query-cache-size=32M"]
    with server(Mariadb, *cache, core=None) as mariadb, tempfile.TemporaryDirectory() as folder:
        measure(mariadb, options, options.keep or os.path.join(folder, "record"))


def measure(mariadb, options, record):
    subprocess.run(sysbench(mariadb, "prepare"), check=True, stdout=subprocess.DEVNULL)
    mariadb.ask("RESET QUERY CACHE")
    pid, seconds = str(mariadb.process.pid), options.seconds
    load = [f"--threads={options.threads}", f"--rate={options.rate}", f"--time={seconds}"]
    watch = ["watch", "-p", pid, "--class", "mariadb-query-cache", "-i", "3s", "--no-tui", "-o", record]
    print("$ parallax", " ".join(["watch", "-p", "PID"] + watch[3:-2]), flush=True)
    watching = subprocess.Popen([options.parallax] + watch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not os.path.exists(os.path.join(record, "run.json")):
        if watching.poll() is not None:
            sys.exit(watching.stdout.read())
        time.sleep(0.05)
    before = counters(mariadb)
    bench = subprocess.Popen(sysbench(mariadb, *load, "run"), stdout=subprocess.PIPE, text=True)
    time.sleep(2)
    cpu = [options.parallax, "cpu", str(seconds - 4), "--", pid, str(bench.pid)]
    used = subprocess.run(cpu, capture_output=True, text=True, check=False)
    output = bench.communicate()[0]
    after = counters(mariadb)
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
