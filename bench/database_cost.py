#!/usr/bin/env python3
"""What one transaction costs the client: against sysbench, pgbench and redis-benchmark, interleaved.

The same statements, prepared, over the same number of connections to the same server by TCP; the server on one core,
the client on the other. CPU time is user + system of the whole client process, from wait4(2), and transactions are
those the tool says it completed. Closed loop, and then at the rate `--share` of what the slower one reached there
(redis-benchmark has no rate). The floor, for Redis, is a client that only sends and receives the same bytes
(crates/reactor/examples/floor). Prints one row per round, and the ratios with their range; it judges nothing.
"""
import argparse
import json
import re
import statistics
import sys
import tempfile
from pathlib import Path

from database_servers import Mariadb, Postgres, Redis, server
from processes import built, drive, measured

ROWS, TABLES = 100_000, 1
# What pgbench -S sends.
SELECT = """
[targets.db]
url = "{url}"
[[request]]
name = "select"
sql = "SELECT abalance FROM pgbench_accounts WHERE aid = {{{{random 1 {rows}}}}}"
"""


class Case:
    """One load, as ours and as the peer's: each runs for `seconds` and returns CPU seconds and transactions."""

    def __init__(self, name, ours, peer, floor=None):
        self.name, self.ours, self.peer, self.floor = name, ours, peer, floor


def by_drive(args, url, options, journeys=False):
    def run(rate):
        pace = ["-r", f"{rate}/s"] if rate else []
        document, cpu = drive(args.parallax, [*pace, "-c", str(args.connections), "-d", f"{args.seconds}s", *options], url)
        results = document["results"]
        done = results["journeys"][0]["completed"] if journeys else results["totals"]["ok"]
        return cpu, done

    return run


def by_sysbench(args, mariadb):
    def run(rate):
        words = [f"--tables={TABLES}", f"--table-size={ROWS}", f"--threads={args.connections}", f"--time={args.seconds}"]
        text, cpu = measured(mariadb.sysbench("oltp_read_only", *words, f"--rate={rate or 0}", "run"))
        return cpu, int(re.search(r"transactions:\s+(\d+)", text).group(1))

    return run


def by_pgbench(args, postgres, script):
    def run(rate):
        pace = ["-R", str(rate)] if rate else []
        words = ["-n", "-M", "prepared", "-c", str(args.connections), "-j", "1", "-T", str(args.seconds), *pace, *script]
        text, cpu = measured(postgres.pgbench(*words))
        return cpu, int(re.search(r"actually processed: (\d+)", text).group(1))

    return run


def by_redis_benchmark(args, redis, pipeline):
    """It takes a number of requests and no time, so the first run finds how many fill the time."""
    state = {"requests": 200_000 * pipeline}

    def once():
        words = ["-p", str(redis.port), "-t", "get", "-c", str(args.connections), "-P", str(pipeline), "--csv"]
        text, cpu = measured(["redis-benchmark", *words, "-n", str(state["requests"])])
        rate = float(re.search(r'"GET","([\d.]+)"', text).group(1))
        return cpu, state["requests"], rate

    def run(_):
        if "known" not in state:
            state["known"] = once()[2]
            # A multiple of what is under way at once: it leaves before the last responses otherwise.
            whole = pipeline * args.connections
            state["requests"] = max(1, int(state["known"] * args.seconds) // whole) * whole
        return once()[:2]

    return run


def by_floor(args, redis, pipeline):
    def run(_):
        request = "*2\r\n$3\r\nGET\r\n$16\r\nkey:__rand_int__\r\n" * pipeline
        where = f"127.0.0.1:{redis.port}"
        text, cpu = measured([args.floor, "stamps", where, str(args.connections), str(args.seconds), request])
        return cpu, json.loads(text)["requests"] * pipeline

    return run


def compare(case, rate, args):
    names = ["peer", "ours", *(["floor"] if case.floor else [])]
    runs = {name: getattr(case, name) for name in names}
    print(f"\n{case.name}, {args.connections} connections, " + (f"{rate}/s" if rate else "closed loop"), flush=True)
    print("  us of CPU per transaction, transactions/s: " + ", ".join(names))
    costs, rates = {name: [] for name in names}, {name: [] for name in names}
    for turn in range(args.pairs):
        # Who goes first takes turns too.
        for name in names if turn % 2 == 0 else reversed(names):
            cpu, done = runs[name](rate)
            costs[name].append(cpu / done * 1e6)
            rates[name].append(done / args.seconds)
        row = [f"{costs[name][-1]:9.2f} {rates[name][-1]:9.0f}/s" for name in names]
        print("  " + "  ".join(row), flush=True)
    for name in [name for name in names if name != "ours"]:
        say(f"CPU, ours / {name}", [ours / other for ours, other in zip(costs["ours"], costs[name])])
        say(f"throughput, ours / {name}", [ours / other for ours, other in zip(rates["ours"], rates[name])])
    return min(statistics.median(rates[name]) for name in ("peer", "ours"))


def say(what, ratios):
    print(f"  {what}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)


def both(case, args):
    reached = compare(case, None, args)
    compare(case, int(reached * args.share), args)


def mariadb_cases(args):
    with server(Mariadb, "--max-connections=600") as mariadb:
        size = [f"--tables={TABLES}", f"--table-size={ROWS}"]
        measured(mariadb.sysbench("oltp_read_only", *size, "prepare"))
        ours = by_drive(args, mariadb.url(), ["--workload", "oltp-read-only", "--tables", str(TABLES), "--rows", str(ROWS)], journeys=True)
        both(Case("MariaDB, oltp_read_only / sysbench", ours, by_sysbench(args, mariadb)), args)


def postgres_cases(args):
    with server(Postgres) as postgres, tempfile.TemporaryDirectory() as folder:
        measured(postgres.pgbench("-i", "-q"))
        scenario = Path(folder, "select.toml")
        scenario.write_text(SELECT.format(url=postgres.url(), rows=ROWS), encoding="utf-8")
        select = by_drive(args, str(scenario), [])
        both(Case("PostgreSQL, select / pgbench -S -M prepared", select, by_pgbench(args, postgres, ["-S"])), args)
        tpcb = by_drive(args, postgres.url(), ["--workload", "tpcb-like", "--rows", str(ROWS)], journeys=True)
        both(Case("PostgreSQL, tpcb-like / pgbench -M prepared", tpcb, by_pgbench(args, postgres, [])), args)


def redis_cases(args):
    args.floor = built("reactor", "floor")
    with server(Redis) as redis:
        for pipeline in (1, 16):
            options = ["--command", "GET key:__rand_int__", "--pipeline", str(pipeline)]
            case = Case(
                f"Redis, GET, pipeline {pipeline} / redis-benchmark",
                by_drive(args, redis.url(), options),
                by_redis_benchmark(args, redis, pipeline),
                by_floor(args, redis, pipeline),
            )
            compare(case, None, args)


CASES = {"mariadb": mariadb_cases, "postgres": postgres_cases, "redis": redis_cases}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="*", metavar="SERVER", help="of " + ", ".join(CASES) + "; all unless given")
    parser.add_argument("--parallax", help="the program to measure; otherwise it is built")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--share", type=float, default=0.5)
    args = parser.parse_args()
    unknown = set(args.servers) - set(CASES)
    if unknown:
        sys.exit(f"{', '.join(sorted(unknown))}: they are {', '.join(CASES)}")
    args.parallax = args.parallax or built()
    for name in args.servers or CASES:
        CASES[name](args)


if __name__ == "__main__":
    main()
