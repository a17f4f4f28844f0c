#!/usr/bin/env python3
"""How well each pace keeps its schedule, seen from both ends, and what it costs.

Evenly spaced requests for /plaintext on the built-in target. For every pace and rate, in turn:
  lag      `schedule_lag` as the client records it
  off      arrival in the server's kernel against the schedule, by the server's own account (`serve --arrivals`);
           the way there, a wake-up of the server excluded, is in it
  most/ms  the most arrivals in one millisecond, and what even spacing would bring
  CPU      of the whole client process a request, from wait4(2)
Peers (oha, wrk2, wrk, where they are installed) run in between; of them the server's account is all there is.
A line `core` shows the hiccups of the client's core: a loop that does nothing but read the clock, and its gaps.
"""
import argparse
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import processes
from processes import CLIENT_CORE, SERVER_CORE, built, drive, known, measured, phase, quantile, target

PACES = ["precise", "balanced", "efficient"]

HICCUP = """
import sys, time
clock, gaps, end = time.perf_counter_ns, [], time.perf_counter_ns() + int(float(sys.argv[1]) * 1e9)
last = clock()
while last < end:
    now = clock()
    if now - last > 20_000: gaps.append(now - last)
    last = now
print(*gaps)
"""


def hiccups(seconds):
    text, _ = measured([sys.executable, "-c", HICCUP, str(seconds)])
    gaps = [int(gap) for gap in text.split()]
    lost = sum(gaps) / 1e9 / seconds
    longest = max(gaps, default=0) / 1e3
    print(f"  {'core':22} alone: {len(gaps) / seconds:.0f} gaps over 20 us a second, {lost:.2%} of the time, longest {longest:.0f} us")
    return lost


def peer(name, url, rate, args):
    """A peer's command for this rate; what it prints is not looked at, the server knows better."""
    seconds, connections = f"{args.seconds}s", str(args.connections)
    return {
        "oha": ["oha", "--no-tui", "-z", seconds, "-c", connections, "-q", str(rate), "--worker-threads", "1", url],
        "wrk2": ["wrk2", "-t1", f"-c{connections}", f"-d{seconds}", f"-R{rate}", url],
    }[name]


def run(name, rate, args):
    """One run: offsets of the arrivals from the schedule, and the client's CPU a request, and its document."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "arrivals")
        with target(args.parallax, "--arrivals", str(log)) as address:
            url = f"http://{address}/plaintext"
            if name in PACES:
                options = ["--pace", name, "-r", f"{rate}/s", "-c", str(args.connections), "-d", f"{args.seconds}s"]
                # A worker that never sleeps takes the last core for itself, and leaves the rest of its client the other.
                core = f"{SERVER_CORE},{CLIENT_CORE}" if name == "precise" else CLIENT_CORE
                document, cpu = drive(args.parallax, options, url, core=core)
            else:
                document, (_, cpu) = None, measured(peer(name, url, rate, args))
        # The first is the one that asked whether the server answers.
        arrivals = [int(line) for line in log.read_text().split()][1:]
    period = 1e9 / rate
    if document:
        start = document["time"]["started_monotonic_ns"]
    else:
        # Unknown: the even schedule that leaves half of the arrivals early and half late.
        start = statistics.median(at - i * period for i, at in enumerate(arrivals))
    off = [abs(at - start - i * period) / 1000 for i, at in enumerate(arrivals)]
    first = arrivals[0]
    bins = {}
    for at in arrivals:
        bins[(at - first) // 1_000_000] = bins.get((at - first) // 1_000_000, 0) + 1
    return off, max(bins.values()), cpu / len(arrivals) * 1e6, document


def show(name, rate, rounds):
    offs = [[quantile(off, q) for q in (0.5, 0.99)] + [max(off)] for off, *_ in rounds]
    off = [statistics.median(column) for column in zip(*offs)]
    most = statistics.median(most for _, most, *_ in rounds)
    cpu = [cpu for _, _, cpu, _ in rounds]
    text = f"  {name:22}"
    if rounds[0][3]:
        lags = []
        for *_, document in rounds:
            lag = phase(document, "schedule_lag")
            lags.append([known(lag, 0.5) / 1e3, known(lag, 0.99) / 1e3, lag["max_ns"] / 1e3])
        lag = [statistics.median(column) for column in zip(*lags)]
        text += f" lag {lag[0]:8.1f} {lag[1]:8.1f} {lag[2]:8.0f}"
    else:
        text += " " * 31
    text += f"   off {off[0]:8.1f} {off[1]:8.1f} {off[2]:8.0f}   most/ms {most:4.0f} of {rate / 1000:g}"
    text += f"   CPU {statistics.median(cpu):6.2f} us ({min(cpu):.1f} to {max(cpu):.1f})"
    if rounds[0][3]:
        words = [document["verdict"]["word"] for *_, document in rounds]
        text += "   " + ", ".join(f"{words.count(word)} {word}" for word in sorted(set(words)))
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rates", type=int, nargs="+", default=[5000, 10000])
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--paces", nargs="+", default=PACES)
    parser.add_argument("--realtime", action="store_true", help="SCHED_FIFO for all but `precise`: on a machine that others use")
    parser.add_argument("--parallax", help="the binary to measure [default: built with the profile dist]")
    args = parser.parse_args()
    args.parallax = args.parallax or built()
    peers = [name for name in ("oha", "wrk2") if shutil.which(name)]
    for rate in args.rates:
        print(f"\n{rate}/s for {args.seconds} s, medians of {args.rounds} rounds; us: p50, p99, max")
        rounds = {name: [] for name in [*args.paces, *peers]}
        for turn in range(args.rounds):
            hiccups(1)
            for name in rounds:
                # A thread that never sleeps would be held back for a twentieth of each second.
                processes.REALTIME = args.realtime and name != "precise"
                rounds[name].append(run(name, rate, args))
        for name, got in rounds.items():
            show(name, rate, got)


if __name__ == "__main__":
    main()
