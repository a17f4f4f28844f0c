#!/usr/bin/env python3
"""What `parallax watch` costs the server that it watches, side by side with bpftrace doing the like.

Redis GET (redis-benchmark, no pipeline) and an nginx that serves a small file (`parallax drive`, closed loop). Server
and client are pinned to different cores. In each round the server is left alone, asked for nothing, watched, and
traced by bpftrace, in turns; who goes first takes turns too. Two ratios to the same round's `alone`:
  throughput      as the client says it
  CPU a request   of the whole server, from its threads' schedstat: the observer's own process shares a core with the
                  client on a machine with two cores and slows that, and this figure does not mind
The floor is programs that do nothing at the places where those of `watch` are (crates/watch/examples): what a server
loses to these is the kernel's price for asking, and no program can give it back. The ends are those at the end of a
read and of a write alone, without which nothing is known of a request at all.
In a run of its own `watch --self` reads the kernel's account of its programs: nanoseconds a request.

The bpftrace script (watch_cost.bt) does what tracing scripts for databases do: time from the return of a read to the return
of a write as a power-of-two distribution, and who ran after the server's thread was pre-empted. That is less than
`watch` does: no bytes, no sums that are exact, no arrival.

Needs root, BTF, Redis, nginx and bpftrace. Prints one row a round and the medians; it judges nothing.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from processes import CLIENT_CORE, PARALLAX, drive, free_port, measured, pinned, wait_until_answers

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PATIENCE_S = 30

NGINX = """
user root root; worker_processes 1; daemon off; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000; sendfile on; open_file_cache max=16;
  client_body_temp_path {dir}; proxy_temp_path {dir}; fastcgi_temp_path {dir};
  uwsgi_temp_path {dir}; scgi_temp_path {dir};
  server {{ listen 127.0.0.1:{port} backlog=4096; root {dir}; }}
}}
"""


def stopped(process, how=signal.SIGTERM):
    if process.poll() is None:
        process.send_signal(how)
    try:
        return process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


@contextlib.contextmanager
def redis(args):
    """Redis: the pids of its processes, and a function that drives it and returns requests and requests a second."""
    with tempfile.TemporaryDirectory() as folder:
        port = str(free_port())
        command = ["redis-server", "--port", port, "--dir", folder, "--save", "", "--appendonly", "no"]
        server = pinned("0", command, stdout=subprocess.DEVNULL)

        def load():
            command = ["redis-benchmark", "-p", port, "-t", "get", "-c", "32", "-n", str(args.requests), "-q"]
            text, _ = measured(command)
            return args.requests, float(re.findall(r"([\d.]+) requests per second", text)[-1])

        try:
            ask = ["redis-cli", "-p", port, "ping"]
            deadline = time.monotonic() + PATIENCE_S
            while subprocess.run(ask, capture_output=True).stdout != b"PONG\n" and time.monotonic() < deadline:
                time.sleep(0.05)
            yield [server.pid], load
        finally:
            stopped(server)


@contextlib.contextmanager
def nginx(args):
    with tempfile.TemporaryDirectory() as folder:
        port, config = free_port(), Path(folder, "nginx.conf")
        Path(folder, "small.txt").write_text("o" * 500)
        config.write_text(NGINX.format(dir=folder, port=port))
        server = pinned("0", ["nginx", "-c", str(config)], stderr=subprocess.DEVNULL)
        url = f"http://127.0.0.1:{port}/small.txt"

        def load():
            document, _ = drive(args.parallax, ["-c", "32", "-n", str(args.requests)], url)
            totals = document["results"]["totals"]
            return totals["sent"], totals["throughput_per_s"]

        try:
            wait_until_answers(url)
            children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
            yield [server.pid, *map(int, children)], load
        finally:
            stopped(server)


@contextlib.contextmanager
def alone(args, pids):
    yield {}


@contextlib.contextmanager
def watch(args, pids, more=()):
    """Watched; its run.json is in what it yields when it has ended."""
    told = {}
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, "watch")
        command = [args.parallax, "watch", "-p", str(pids[0]), "-o", str(record), *args.watch, *more]
        process = pinned(CLIENT_CORE, command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + PATIENCE_S
        while not (record / "run.json").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"watch did not begin: {process.stderr.read()}")
            time.sleep(0.01)
        try:
            yield told
        finally:
            _, said = stopped(process, signal.SIGINT)
        if process.returncode != 0:
            sys.exit(f"watch ended with {process.returncode}: {said}")
        told.update(json.loads((record / "run.json").read_text()))


# It looks for tracepoints where some hosts have nothing mounted: it gets them in a mount namespace of its own.
WITH_TRACEFS = """
[ -e /sys/kernel/debug/tracing/events ] || mount -t debugfs debugfs /sys/kernel/debug
[ -e /sys/kernel/debug/tracing/events ] || mount -t tracefs tracefs /sys/kernel/debug/tracing
exec bpftrace "$@"
"""


@contextlib.contextmanager
def bpftrace(args, pids):
    # The last is the one that serves.
    command = ["unshare", "--mount", "sh", "-c", WITH_TRACEFS, "sh", str(HERE / "watch_cost.bt"), str(pids[-1])]
    process = pinned(CLIENT_CORE, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # It says so in its BEGIN, when all is attached.
    while (line := process.stdout.readline()) != "attached\n":
        if not line:
            sys.exit(f"bpftrace did not begin: {process.stderr.read()}")
    try:
        yield {}
    finally:
        stopped(process, signal.SIGINT)


@contextlib.contextmanager
def floor(args, pids, tracepoints=()):
    command = [str(ROOT / "target/release/examples/watch_floor"), *tracepoints]
    process = pinned(CLIENT_CORE, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if process.stdout.readline() != "attached\n":
        sys.exit("the floor did not begin")
    try:
        yield {}
    finally:
        # It ends with its standard input.
        process.communicate(timeout=PATIENCE_S)


def ends(args, pids):
    return floor(args, pids, ["sock_recv_length", "sock_send_length"])


def build_floor():
    command = ["cargo", "build", "--release", "--quiet", "-p", "watch", "--example", "watch_floor"]
    subprocess.run(command, cwd=ROOT, check=True)


def cpu_ns(pids):
    """Run time of all threads, to their last switch or tick."""
    tasks = [task for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def measure(observer, args, pids, load):
    with observer(args, pids) as told:
        before = cpu_ns(pids)
        requests, rate = load()
        used = cpu_ns(pids) - before
    return rate, used / requests, told


OBSERVERS = {"alone": alone, "ends": ends, "floor": floor, "watch": watch, "bpftrace": bpftrace}


def compare(name, server, args):
    observers = {key: value for key, value in OBSERVERS.items() if key != "bpftrace" or shutil.which("bpftrace")}
    print(f"\n{name}, {args.requests} requests a run; requests a second, and ns of the server's CPU a request")
    print("  " + "".join(f"{key:>20}" for key in observers))
    rates, costs = {key: [] for key in observers}, {key: [] for key in observers}
    with server(args) as (pids, load):
        load()
        for turn in range(args.pairs):
            for key in observers if turn % 2 == 0 else reversed(observers):
                rate, cost, told = measure(observers[key], args, pids, load)
                rates[key].append(rate)
                costs[key].append(cost)
                if key == "watch":
                    check(told, args.requests)
            row = "".join(f"{rates[key][-1]:12.0f} {costs[key][-1]:7.0f}" for key in observers)
            print(f"  {row}", flush=True)
        for key in list(observers)[1:]:
            tell(f"{key} / alone", rates[key], rates["alone"], costs[key], costs["alone"])
        programs(args, pids, load)


def check(told, requests):
    results = told["watch"]
    if results["requests"] < requests:
        print(f"  watch saw {results['requests']} of {requests}: {results['losses']}")


def tell(what, rates, rates_alone, costs, costs_alone):
    def ratios(mine, others):
        each = [one / other for one, other in zip(mine, others)]
        return f"{statistics.median(each):.3f} ({min(each):.2f} to {max(each):.2f})"

    more = statistics.median(one - other for one, other in zip(costs, costs_alone))
    print(f"  {what:17} throughput {ratios(rates, rates_alone)}, CPU a request {ratios(costs, costs_alone)}, {more:+.0f} ns")


def watch_itself(args, pids):
    """The kernel's account costs a little by itself, so the compared runs are without it."""
    return watch(args, pids, ["--self"])


def programs(args, pids, load):
    """What the kernel says that the programs took."""
    _, _, told = measure(watch_itself, args, pids, load)
    results = told["watch"]
    rows = sorted(results.get("self_cost", []), key=lambda row: -row["ns"])
    if not rows:
        why = [fact["why"] for fact in told.get("missing", []) if fact["what"] == "self_cost"]
        sys.exit(f"watch --self has no account of its programs: {'; '.join(why) or 'and does not say why'}")
    requests = results["requests"]
    total = sum(row["ns"] for row in rows) / requests
    print(f"  watch's programs: {total:.0f} ns a request, by the kernel's statistics")
    for row in rows[:6]:
        each = row["ns"] / max(1, row["runs"])
        print(f"    {row['name']:24} {row['runs'] / requests:6.2f} runs a request, {each:6.0f} ns each")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--only", choices=["redis", "nginx"])
    parser.add_argument("--parallax", default=PARALLAX)
    parser.add_argument("--watch", nargs="*", default=[], help="more options for watch, after `--watch`")
    args = parser.parse_args()
    if os.geteuid() != 0 or os.cpu_count() < 2:
        sys.exit("needs root, and two cores: one for the server, one for the client")
    build_floor()
    for name, program, server in (("redis", "redis-server", redis), ("nginx", "nginx", nginx)):
        if args.only in (None, name):
            if not shutil.which(program):
                sys.exit(f"{program} is not here: scripts/setup bench")
            compare(name, server, args)


if __name__ == "__main__":
    main()
