#!/usr/bin/env python3
"""Whether `parallax watch --budget 2%` keeps its promise: what throughput a saturated server loses to it, and whether its
estimates hold the truth.

Redis GET and an nginx that serves a small file, as in watch_cost.py: server and client are pinned to a core each, and the
server's is saturated. Turns of the same length follow one another: alone, watched, alone; the throughput of a watched
turn is compared with the mean of the two around it, so a slow drift cancels. Control: the same with three turns alone.
The answers are counted by the server's own writes (/proc/PID/io), over the whole turn, attaching at its begin left out.

Prints each loss, their medians and the bar (2.5 %); the share of the time that was seen; and in how many turns the
estimate of the rate held the true one, that of the whole watch. Ends with 1 if a bar is not kept. Needs root, BTF, Redis,
nginx and wrk, and a quiet machine.
"""
import argparse
import os
import shutil
import statistics
import sys
import time

import processes
from processes import built
from watch_cost import nginx, redis, watch, writes

BAR = 0.025
# Everything is counted at first, until its cost is known: a part of the promise, but not of a turn.
SETTLING_S = 3


def alone_turn(args, pids, each):
    time.sleep(0.3)
    return rate(args, pids, each)


def rate(args, pids, each):
    counted = counting(pids, each)
    time.sleep(args.seconds)
    return counted()


def counting(pids, each):
    """Answers per second from now on until the result is called."""
    before, begun = writes(pids[-1]), time.monotonic()
    return lambda: (writes(pids[-1]) - before) / each / (time.monotonic() - begun)


def watched_turn(args, pids, each):
    with watch(args, pids, ["--budget", args.budget]) as observed:
        counted = counting(pids, each)
        time.sleep(SETTLING_S)
        answers = rate(args, pids, each)
        whole = counted()
    return answers, whole, observed["watch"]


def loss(before, there, after):
    return 1 - there / ((before + after) / 2)


def pairs(name, server, args):
    losses, controls, held, shares, costs = [], [], [], [], []
    with server(args) as (pids, each):
        before = alone_turn(args, pids, each)
        for turn in range(args.pairs):
            there, whole, results = watched_turn(args, pids, each)
            after, control, last = (alone_turn(args, pids, each) for _ in range(3))
            losses.append(loss(before, there, after))
            controls.append(loss(after, control, last))
            before = last
            windows = results["windows"]
            seen = windows["in_windows_ns"] + windows["everything_ns"]
            shares.append(seen / 1e9 / (args.seconds + SETTLING_S))
            costs.append(windows["cost_ns"] / max(1, windows["server_cpu_ns"]))
            estimate = windows.get("rate_per_s")
            held.append(bool(estimate) and estimate["low"] <= whole <= estimate["high"])
            slower = (windows.get("slowdown") or {}).get("value") or 0
            interval = f"{estimate['low']:.0f} to {estimate['high']:.0f}/s" if estimate else "no estimate"
            print(f"  {name} {turn + 1:2}: loss {losses[-1]:+.2%}, control {controls[-1]:+.2%}, saw {shares[-1]:.0%} in"
                  f" {windows['windows']} windows, cost {costs[-1]:.2%} by its account, slower by {slower:.0%} within; {interval}, in truth {whole:.0f}/s", flush=True)
    median = statistics.median(losses)
    keeps = median <= BAR
    print(f"{name}: median loss {median:.2%} (control {statistics.median(controls):+.2%}), bar {BAR:.1%}:"
          f" {'kept' if keeps else 'NOT KEPT'}; saw {statistics.median(shares):.0%} of the time,"
          f" cost {statistics.median(costs):.2%} by its account; the rate was within its interval in {sum(held)} of {len(held)}")
    return keeps


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--budget", default="2%")
    parser.add_argument("--only", choices=["redis", "nginx"])
    parser.add_argument("--parallax", help="the binary to measure [default: built with the profile dist]")
    args = parser.parse_args()
    if os.geteuid() != 0 or os.cpu_count() < 2:
        sys.exit("needs root, and two cores: one for the server, one for the client")
    args.parallax, args.watch = args.parallax or built(), []
    keeps = True
    processes.REALTIME = True
    for name, program, server in (("redis", "redis-server", redis), ("nginx", "nginx", nginx)):
        if args.only in (None, name):
            if not shutil.which(program):
                sys.exit(f"{program} is not here: scripts/setup bench")
            keeps &= pairs(name, server, args)
    sys.exit(0 if keeps else 1)


if __name__ == "__main__":
    main()
