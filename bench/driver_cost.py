#!/usr/bin/env python3
"""What one request costs the client, side by side with wrk and with the floor.

Keep-alive requests over 64 connections in a closed loop, all stamps and histograms on, the record written.
Server and client are pinned to different cores, and everything takes turns, so that a drift of the machine's speed
meets all alike. CPU time is user + system of the whole client process, from wait4(2); requests are those the tool
says it sent. The floor is a client that does nothing but send and receive (crates/reactor/examples/floor):
  read      epoll, plain reads           stamps    epoll, reads that take the kernel's stamp
  batched   as stamps, but all answers of a wake are read before the next requests are sent
  uring     io_uring with stamps         uring16   the same, waiting for 16 answers at a time
With --against, the client of another binary takes the place of wrk and the floor: what a change costs.
Prints one row per round and the ratios; it judges nothing.
"""
import argparse
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from processes import built, drive, measured, nginx, target

FLOORS = ["read", "stamps", "batched", "uring", "uring16"]
COUNTERS = ["perf", "stat", "-x,", "-e", "instructions:u,instructions:k", "-o"]


def run(name, address, args, prefix=()):
    """One client's run: CPU seconds, requests, and requests per second."""
    url = f"http://{address}/plaintext"
    connections, seconds = str(args.connections), str(args.seconds)
    if name == "wrk":
        text, cpu = measured([*prefix, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", url])
        rate = float(re.search(r"Requests/sec:\s*([\d.]+)", text).group(1))
        return cpu, int(re.search(r"(\d+) requests in", text).group(1)), rate
    if name in ("ours", "before"):
        binary = args.parallax if name == "ours" else args.against
        document, cpu = drive(binary, ["-c", connections, "-d", f"{seconds}s"], url, prefix)
        totals = document["results"]["totals"]
        return cpu, totals["sent"], totals["throughput_per_s"]
    text, cpu = measured([*prefix, args.floor, name, address, connections, seconds])
    requests = json.loads(text)["requests"]
    return cpu, requests, requests / args.seconds


def compare(server, address, args):
    names = ["before", "ours"] if args.against else ["wrk", "ours", *(FLOORS if args.floor else [])]
    print(f"\n{server}, {args.connections} connections, {args.seconds} s per run; us of CPU per request")
    print("  " + "".join(f"{name:>9}" for name in names))
    costs, rates = {name: [] for name in names}, {name: [] for name in names}
    for turn in range(args.pairs):
        # Who goes first takes turns too.
        for name in names if turn % 2 == 0 else reversed(names):
            cpu, requests, rate = run(name, address, args)
            costs[name].append(cpu / requests * 1e6)
            rates[name].append(rate)
        print("  " + "".join(f"{costs[name][-1]:9.2f}" for name in names), flush=True)
    if args.against:
        return tell_change(costs["ours"], costs["before"])
    for name in names[1:]:
        tell(f"{name} / wrk", costs[name], costs["wrk"], rates[name], rates["wrk"])
    if args.floor:
        tell("ours / floor (stamps)", costs["ours"], costs["stamps"], rates["ours"], rates["stamps"])


def tell(what, costs, other_costs, rates, other_rates):
    def ratios(mine, theirs):
        each = [one / other for one, other in zip(mine, theirs)]
        return f"{statistics.median(each):.3f} ({min(each):.2f} to {max(each):.2f})"

    print(f"  {what:22} CPU per request {ratios(costs, other_costs)}, throughput {ratios(rates, other_rates)}")


def tell_change(costs, costs_before):
    """The median of the pairs' ratios, with its 95 % order-statistic interval (sign test)."""
    ratios = sorted(after / before for after, before in zip(costs, costs_before))
    n = len(ratios)
    # The most ranks that can be left out at each end with at most 2.5 % of chance on either side.
    below = [sum(math.comb(n, k) for k in range(rank + 1)) / 2**n for rank in range(n)]
    out = sum(1 for share in below if share <= 0.025)
    interval = f"{ratios[out - 1]:.3f} to {ratios[n - out]:.3f}, 95 %" if out else "too few pairs for an interval"
    print(f"  ours / before: median {statistics.median(ratios):.3f} of {n} pairs ({interval})")


def instructions(address, args):
    """Instructions a request, user and kernel: neighbours on this machine change them least."""
    totals = {}
    for name in ["wrk", "ours", *(FLOORS if args.floor else [])]:
        with tempfile.NamedTemporaryFile("r") as out:
            _, requests, _ = run(name, address, args, prefix=[*COUNTERS, out.name, "--"])
            counts = [int(line.split(",")[0]) for line in out if "instructions" in line and line[0].isdigit()]
        if len(counts) != 2:
            return print("  instructions: this machine does not count them")
        user, kernel = (count / requests for count in counts)
        totals[name] = user + kernel
        print(f"  instructions per request, {name:8} {user:7.0f} user + {kernel:7.0f} kernel = {user + kernel:7.0f}, "
              f"{totals[name] / totals['wrk']:.3f} of wrk's")


def floor_binary():
    """The floor, built where there is a compiler."""
    if not shutil.which("cargo"):
        return None
    return built("reactor", example="floor")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--parallax", help="the binary to measure [default: built with the profile dist]")
    parser.add_argument("--against", help="another binary to compare with, in place of wrk and the floor")
    parser.add_argument("--floor", help="the floor's binary, or `none` [default: built]")
    args = parser.parse_args()
    args.parallax = args.parallax or built()
    if os.cpu_count() < 2:
        sys.exit("two cores are needed: one for the server, one for the client")
    if args.against:
        args.floor = "none"
    args.floor = {None: floor_binary, "none": lambda: None}.get(args.floor, lambda: args.floor)()
    with nginx() as nginx_address, target(args.parallax) as target_address:
        for server, address in [("nginx", nginx_address), ("the built-in target", target_address)]:
            if address:
                compare(server, address, args)
                if shutil.which("perf") and not args.against:
                    instructions(address, args)


if __name__ == "__main__":
    main()
