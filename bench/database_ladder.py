#!/usr/bin/env python3
"""MariaDB at one steady rate over 1, 2, 4 … connections, for both of its schedulers, by drive and by sysbench.

The rate is the one at which the server uses about `--share` of its core with 16 connections. Each level is driven by
`parallax drive --workload oltp-read-write` and by sysbench with `--rate`, who goes first takes turns. Printed per
level: the rate reached, response times in milliseconds, the server's CPU time per transaction in microseconds, and the
client's lag in milliseconds. sysbench has one percentile and no account of the server. It judges nothing.
"""
import argparse
import re
import resource

from database_servers import Mariadb, server
from processes import built, drive, known, measured, phase

ROWS, TABLES = 10_000, 4
SIZE = ["--tables", str(TABLES), "--rows", str(ROWS)]
SCHEDULERS = ["one-thread-per-connection", "pool-of-threads"]
HEAD = "  connections     by    rate/s    mean     p95     p99   server CPU   lag p99"


def ours(args, mariadb, rate, connections, seconds):
    options = ["--workload", "oltp-read-write", *SIZE, "-r", f"{rate}/s", "-c", str(connections), "-d", f"{seconds}s"]
    # A login for each connection is the server's work too, so it comes before the run.
    options += ["--warmup", "3s", "--watch-cpu", str(mariadb.process.pid)]
    return drive(args.parallax, options, mariadb.url())[0]


def our_row(document, connections):
    results = document["results"]
    journey = results["journeys"][0]
    response, done = journey["response"], max(journey["completed"], 1)
    times = [response["mean_ns"], known(response, 0.95), known(response, 0.99)]
    lag = known(phase(document, "client_lag"), 0.99)
    cpu = results["cpu"]["server_ns"] / done / 1e3
    cell = lambda ns, width: f"{ns / 1e6:{width}.2f}" if ns is not None else f"{'-':>{width}}"
    print(f"  {connections:11}   ours {results['totals']['journeys_per_s']:9.2f}{''.join(cell(ns, 8) for ns in times)}"
          f" {cpu:12.0f}{cell(lag, 10)}", flush=True)


def sysbench_row(mariadb, rate, connections, seconds):
    words = [f"--tables={TABLES}", f"--table-size={ROWS}", f"--threads={connections}", f"--rate={rate}", f"--time={seconds}"]
    text, _ = measured(mariadb.sysbench("oltp_read_write", *words, "--percentile=95", "run"))
    number = lambda pattern: float(re.search(pattern, text).group(1))
    reached = number(r"transactions:.*\(([\d.]+) per sec")
    mean, high = number(r"avg:\s+([\d.]+)"), number(r"95th percentile:\s+([\d.]+)")
    print(f"  {connections:11}   sysb {reached:9.2f}{mean:8.2f}{high:8.2f}", flush=True)


def ladder(args, scheduler):
    options = ["--max-connections=2200", f"--thread-handling={scheduler}", "--innodb-flush-log-at-trx-commit=0"]
    with server(Mariadb, *options) as mariadb:
        measured([args.parallax, "prepare", mariadb.url(), *SIZE])
        if args.rate is None:
            pilot = ours(args, mariadb, 50, 16, 5)
            cpu = pilot["results"]["cpu"]["server_ns"] / max(pilot["results"]["journeys"][0]["completed"], 1)
            args.rate = int(args.share * 1e9 / cpu)
        print(f"\n{scheduler}, {args.rate}/s asked for, {args.seconds} s per level\n{HEAD}", flush=True)
        for turn, connections in enumerate(args.levels):
            by_ours = lambda: our_row(ours(args, mariadb, args.rate, connections, args.seconds), connections)
            by_sysbench = lambda: sysbench_row(mariadb, args.rate, connections, args.seconds)
            for run in (by_ours, by_sysbench) if turn % 2 == 0 else (by_sysbench, by_ours):
                run()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallax", help="the program to measure; otherwise it is built")
    parser.add_argument("--rate", type=int, help="transactions per second; found for the share unless given")
    parser.add_argument("--share", type=float, default=0.5, help="of the server's core")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--levels", type=lambda text: [int(each) for each in text.split(",")],
                        default=[2**power for power in range(12)], help="1,2,4, … 2048 unless given")
    args = parser.parse_args()
    # A descriptor per connection, in the server and in the client.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    args.parallax = args.parallax or built()
    for scheduler in SCHEDULERS:
        ladder(args, scheduler)


if __name__ == "__main__":
    main()
