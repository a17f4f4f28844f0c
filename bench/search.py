#!/usr/bin/env python3
"""How near `drive --search` comes to a capacity that is known: the built-in target's token bucket.

Each trial plants a capacity between 500/s and 5000/s, spread evenly over the logarithm, searches for it with
`p99 < 20ms`, and compares. Prints one line a trial and the sum. Judges nothing: the host takes part.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time

from processes import built


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--binary", help="the binary to measure [default: built with the profile dist]")
    parser.add_argument("--over", default="queue", choices=["queue", "refuse"])
    parser.add_argument("more", nargs="*", help="further options of drive, behind --")
    options = parser.parse_args()
    options.binary = options.binary or built()
    return options


def trial(binary, address, capacity, over, more):
    # A server that refuses what is over its capacity breaks `error_share < 1%` at 1/0.99 of it.
    known = capacity if over == "queue" else capacity / 0.99
    with tempfile.TemporaryDirectory() as folder:
        command = [binary, "drive", "--search", "p99 < 20ms", "--quiet", "--json", "-o", folder, *more]
        begun = time.monotonic()
        done = subprocess.run(
            [*command, f"{address}/capacity?rate={capacity}/s&over={over}"], capture_output=True, text=True
        )
        took = time.monotonic() - begun
    if not done.stdout:
        return None, f"{capacity:>6}/s  exit {done.returncode}: {done.stderr.strip()}", 0
    found = json.loads(done.stdout)
    answer, probes = found["answer"], len(found["probes"])
    holds, fails = answer["holds_per_s"], answer["fails_per_s"]
    off = None if holds is None else holds / known - 1
    unfit = sum(probe["says"] == "client" for probe in found["probes"])
    line = (
        f"{capacity:>6}/s  holds {holds}/s  fails {fails}/s  "
        f"{'no answer' if off is None else f'{off:+.2%}'}  {probes} probes, {unfit} unfit, {took:.0f} s, "
        f"limit {answer['limit']}, {'confirmed' if answer['confirmed'] else 'not confirmed'}"
    )
    return off, line, probes


def main():
    options = arguments()
    draw = random.Random(options.seed)
    serve = subprocess.Popen([options.binary, "serve", "-l", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+", serve.stdout.readline()).group()
        good, most = 0, 0
        for _ in range(options.trials):
            capacity = round(500 * 10 ** draw.random())
            off, line, probes = trial(options.binary, address, capacity, options.over, options.more)
            good += off is not None and abs(off) <= 0.03
            most = max(most, probes)
            print(line, flush=True)
        print(f"{good} of {options.trials} within 3 %, at most {most} probes")
    finally:
        serve.terminate()
        serve.wait()


if __name__ == "__main__":
    sys.exit(main())
