#!/usr/bin/env python3
"""What `parallax watch` costs the server that it watches, side by side with bpftrace doing the like.

Redis GET (redis-benchmark, no pipeline) and an nginx that serves a small file (wrk), each under one load that goes on
all the time, as fast as the server answers. Server and client are pinned to different cores, ahead of everything else
there. In each round the server is left alone, asked for nothing, watched, and traced by bpftrace, in turns by chance;
each turn is cut into windows of a tenth of a second, and of each window these are taken:
  CPU a request   of the server's process by its own clock, over the answers that it wrote (/proc/PID/io)
  throughput      these answers
Whoever else uses the machine can only add to the first: the windows of the quietest tenth are compared, and the median
is printed beside them. For the throughput likewise those of the fastest tenth.

The floor is programs that do nothing at the places where those of `watch` are (crates/watch/examples): what a server
loses to these is the kernel's price for asking, and no program can give it back. The ends are those at the end of a
read and of a write alone, without which nothing is known of a request at all.
In turns of their own the kernel's account of programs (kernel.bpf_stats_enabled) is read for `watch` and for bpftrace:
nanoseconds per request, their ratio, and the bar that `watch` must keep (BARS). `watch --self` names the programs.

The bpftrace script (watch_cost.bt) does what tracing scripts for databases do: time from the return of a read to the return
of a write as a power-of-two distribution, and who ran after the server's thread was preempted. That is less than
`watch` does: no bytes, no sums that are exact, no arrival.

Needs root, BTF, Redis, nginx, wrk and bpftrace. Prints a row per observer. Ends with 1 if a bar is not kept.
"""
import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import processes
from processes import CLIENT_CORE, SERVER_CORE, built, free_port, pinned, wait_until_answers

HERE = Path(__file__).resolve().parent
# bpftrace detaches slowly while server and client have both cores.
PATIENCE_S = 120
WINDOW_S = 0.1
# An observer that has just come, or another that has just gone, is not measured.
SETTLING_S = 0.3
# Before the client, which leaves nothing of its core to those that come after it.
OBSERVER = 2
# Time in watch's programs, at most: ns per Redis GET, and per small file of nginx.
BARS = {"redis": 1100, "nginx": 1300}
STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")

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
def loaded(command):
    client = pinned(CLIENT_CORE, command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        if client.poll() is not None:
            sys.exit(f"{' '.join(command)} ended with {client.returncode}")
        yield
    finally:
        stopped(client, signal.SIGKILL)


@contextlib.contextmanager
def redis(args):
    """Redis under load: the pids of its processes, and how often it writes for an answer."""
    with tempfile.TemporaryDirectory() as folder:
        port = str(free_port())
        command = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no"]
        server = pinned(SERVER_CORE, command, stdout=subprocess.DEVNULL)
        try:
            ask = ["redis-cli", "-p", port, "ping"]
            deadline = time.monotonic() + PATIENCE_S
            while subprocess.run(ask, capture_output=True).stdout != b"PONG\n" and time.monotonic() < deadline:
                time.sleep(0.05)
            with loaded(["redis-benchmark", "-p", port, "-t", "get", "-c", "32", "-l", "-q"]):
                yield [server.pid], 1
        finally:
            stopped(server)


@contextlib.contextmanager
def nginx(args):
    """Likewise; the last of its processes is the one that serves. It writes the head, then the file."""
    with tempfile.TemporaryDirectory() as folder:
        port, config = free_port(), Path(folder, "nginx.conf")
        Path(folder, "small.txt").write_text("o" * 500)
        config.write_text(NGINX.format(dir=folder, port=port))
        server = pinned(SERVER_CORE, ["nginx", "-c", str(config)], stderr=subprocess.DEVNULL)
        url = f"http://127.0.0.1:{port}/small.txt"
        try:
            wait_until_answers(url)
            children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
            with loaded(["wrk", "-t1", "-c32", "-d86400s", url]):
                yield [server.pid, *map(int, children)], 2
        finally:
            stopped(server)


@contextlib.contextmanager
def alone(args, pids):
    yield {}


@contextlib.contextmanager
def watch(args, pids, more=()):
    """Watched; its run.json is in what it yields when it has ended."""
    observed = {}
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, "watch")
        command = [args.parallax, "watch", "-p", str(pids[0]), "-o", str(record), *args.watch, *more]
        process = pinned(CLIENT_CORE, command, OBSERVER, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + PATIENCE_S
        while not (record / "run.json").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"watch did not begin: {process.stderr.read()}")
            time.sleep(0.01)
        observed["pid"] = process.pid
        try:
            yield observed
        finally:
            _, said = stopped(process, signal.SIGINT)
        if process.returncode != 0:
            sys.exit(f"watch ended with {process.returncode}: {said}")
        observed.update(json.loads((record / "run.json").read_text()))


# It looks for tracepoints where some hosts have nothing mounted: it gets them in a separate mount namespace.
WITH_TRACEFS = """
[ -e /sys/kernel/debug/tracing/events ] || mount -t debugfs debugfs /sys/kernel/debug
[ -e /sys/kernel/debug/tracing/events ] || mount -t tracefs tracefs /sys/kernel/debug/tracing
exec bpftrace "$@"
"""


@contextlib.contextmanager
def bpftrace(args, pids):
    # The last is the one that serves.
    command = ["unshare", "--mount", "sh", "-c", WITH_TRACEFS, "sh", str(HERE / "watch_cost.bt"), str(pids[-1])]
    process = pinned(CLIENT_CORE, command, OBSERVER, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # It says so in its BEGIN, when all is attached.
    while (line := process.stdout.readline()) != "attached\n":
        if not line:
            sys.exit(f"bpftrace did not begin: {process.stderr.read()}")
    try:
        yield {"pid": process.pid}
    finally:
        stopped(process, signal.SIGINT)


@contextlib.contextmanager
def floor(args, pids, tracepoints=()):
    command = [args.floor, *tracepoints]
    process = pinned(CLIENT_CORE, command, OBSERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if process.stdout.readline() != "attached\n":
        sys.exit("the floor did not begin")
    try:
        yield {}
    finally:
        # It ends with its standard input.
        process.communicate(timeout=PATIENCE_S)


def ends(args, pids):
    return floor(args, pids, ["sock_recv_length", "sock_send_length"])


def cpu_ns(pid):
    """Of all threads of a process up to now: clock_getcpuclockid(3) by hand."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def writes(pid):
    counts = Path(f"/proc/{pid}/io").read_text()
    return next(int(line.split()[1]) for line in counts.splitlines() if line.startswith("syscw"))


def windows(pid, writes_per_answer, seconds):
    """CPU ns a request and requests a second, a pair a window."""
    time.sleep(SETTLING_S)
    found, end = [], time.monotonic() + seconds
    before = time.monotonic(), cpu_ns(pid), writes(pid)
    while time.monotonic() < end:
        time.sleep(WINDOW_S)
        now = time.monotonic(), cpu_ns(pid), writes(pid)
        answers = (now[2] - before[2]) / writes_per_answer
        if answers > 0:
            found.append(((now[1] - before[1]) / answers, answers / (now[0] - before[0])))
        before = now
    return found


OBSERVERS = {"alone": alone, "ends": ends, "floor": floor, "watch": watch, "bpftrace": bpftrace}


def compare(name, server, args):
    observers = {key: value for key, value in OBSERVERS.items() if key != "bpftrace" or shutil.which("bpftrace")}
    found = {key: [] for key in observers}
    with server(args) as (pids, writes_per_answer):
        for turn in range(args.rounds):
            for key in random.sample(list(observers), len(observers)):
                with observers[key](args, pids) as observed:
                    found[key] += windows(pids[-1], writes_per_answer, args.seconds)
                if key == "watch":
                    check(observed)
        print(f"\n{name}, {args.rounds} turns of {args.seconds} s each, windows of {WINDOW_S} s")
        print("                 quietest tenth          median   fastest tenth, throughput")
        for key in observers:
            tell(key, found[key], found["alone"])
        for of in [key for key in ("floor", "bpftrace") if key in observers]:
            ratio(found, of)
        programs(args, pids)
        return keeps_bar(name, args, pids, writes_per_answer)


def check(observed):
    # What was under way when it came is not lost by it.
    losses = {what: lost for what, lost in observed["watch"]["losses"].items() if what != "mid_connection" and lost}
    if losses:
        print(f"  watch lost some: {losses}")


def quantile(values, share):
    return sorted(values)[int(share * (len(values) - 1))]


def ratio(found, of):
    """What an observer costs, by the quietest tenth and by the median of the CPU per request, as a ratio to another."""
    at = lambda key, share: quantile([cost for cost, _ in found[key]], share) - quantile([cost for cost, _ in found["alone"]], share)
    shares = (0.1, 0.5)
    shown = [f"{at('watch', share) / at(of, share):.2f}" if at(of, share) > 0 else "-" for share in shares]
    print(f"  CPU per request: watch / {of} {shown[0]} (quietest tenth), {shown[1]} (median)")


def tell(key, found, found_alone):
    costs, rates = zip(*found)
    alone_costs, alone_rates = zip(*found_alone)
    quiet, least = quantile(costs, 0.1), quantile(alone_costs, 0.1)
    median, usual = statistics.median(costs), statistics.median(alone_costs)
    rate, best = quantile(rates, 0.9), quantile(alone_rates, 0.9)
    print(f"  {key:10} {quiet:7.0f} ns {quiet - least:+6.0f}  {median:7.0f} ns {median - usual:+6.0f}  {rate:8.0f}/s  {rate / best:.3f}", flush=True)


def watch_itself(args, pids):
    """The kernel's account costs a little by itself, so the compared runs are without it."""
    return watch(args, pids, ["--self"])


def programs(args, pids):
    """What the kernel says that the programs took."""
    with watch_itself(args, pids) as observed:
        time.sleep(args.seconds)
    results = observed["watch"]
    rows = sorted(results.get("self_cost", []), key=lambda row: -row["ns"])
    if not rows:
        why = [fact["why"] for fact in observed.get("missing", []) if fact["what"] == "self_cost"]
        sys.exit(f"watch --self has no account of its programs: {'; '.join(why) or 'and does not say why'}")
    requests = results["requests"]
    total = sum(row["ns"] for row in rows) / requests
    print(f"  watch's programs: {total:.0f} ns a request, by the kernel's statistics")
    for row in rows[:6]:
        each = row["ns"] / max(1, row["runs"])
        print(f"    {row['name']:24} {row['runs'] / requests:6.2f} runs a request, {each:6.0f} ns each")


@contextlib.contextmanager
def statistics_on():
    before = STATISTICS.read_text()
    STATISTICS.write_text("1")
    try:
        yield
    finally:
        STATISTICS.write_text(before)


def program_ns(pid):
    """The time in all programs that a process has loaded, by the kernel's account."""
    found = {}
    for place in Path(f"/proc/{pid}/fdinfo").iterdir():
        fields = dict(line.split(":", 1) for line in place.read_text().splitlines() if ":" in line)
        if "run_time_ns" in fields:
            found[fields["prog_id"]] = int(fields["run_time_ns"])
    return sum(found.values())


def keeps_bar(name, args, pids, writes_per_answer):
    """Time in the programs of watch and of bpftrace, in turns by chance."""
    found = {key: [] for key in ("watch", "bpftrace") if key != "bpftrace" or shutil.which("bpftrace")}
    with statistics_on():
        for _ in range(args.rounds):
            for key in random.sample(list(found), len(found)):
                with OBSERVERS[key](args, pids) as observed:
                    time.sleep(SETTLING_S)
                    before = program_ns(observed["pid"]), writes(pids[-1])
                    time.sleep(args.seconds)
                    after = program_ns(observed["pid"]), writes(pids[-1])
                answers = (after[1] - before[1]) / writes_per_answer
                found[key].append((after[0] - before[0]) / answers)
    medians = {key: statistics.median(values) for key, values in found.items()}
    keeps = medians["watch"] <= BARS[name]
    print(f"  programs: watch {medians['watch']:.0f} ns per request, bar {BARS[name]}: {'kept' if keeps else 'NOT KEPT'}", end="")
    if "bpftrace" in medians:
        print(f"; bpftrace {medians['bpftrace']:.0f} ns; watch / bpftrace {medians['watch'] / medians['bpftrace']:.2f}", end="")
    print(flush=True)
    return keeps


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--only", choices=["redis", "nginx"])
    parser.add_argument("--parallax", help="the binary to measure [default: built with the profile dist]")
    parser.add_argument("--floor", help="the example watch_floor [default: built with the profile dist]")
    parser.add_argument("--watch", nargs="*", default=[], help="more options for watch, after `--watch`")
    args = parser.parse_args()
    if os.geteuid() != 0 or os.cpu_count() < 2:
        sys.exit("needs root, and two cores: one for the server, one for the client")
    args.parallax = args.parallax or built()
    args.floor = args.floor or built("watch", example="watch_floor")
    keeps = True
    processes.REALTIME = True
    for name, program, server in (("redis", "redis-server", redis), ("nginx", "nginx", nginx)):
        if args.only in (None, name):
            if not shutil.which(program):
                sys.exit(f"{program} is not here: scripts/setup bench")
            keeps &= compare(name, server, args)
    sys.exit(0 if keeps else 1)


if __name__ == "__main__":
    main()
