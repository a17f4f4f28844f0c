#!/usr/bin/env python3
"""Whether the client's memory stays flat.

Drives the built-in target at the highest rate it takes, open and closed loop in turn if asked, and samples the
client's resident set. Prints a line every ten seconds and the growth from the second minute to the last.
"""
import argparse
import statistics
import subprocess
import sys
import tempfile
import time

from processes import CLIENT_CORE, built, pinned, target


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", help="open loop at this rate instead of a closed loop, e.g. 50k/s")
    parser.add_argument("--parallax", help="the binary to measure [default: built with the profile dist]")
    args = parser.parse_args()
    args.parallax = args.parallax or built()
    with target(args.parallax) as address, tempfile.TemporaryDirectory() as folder:
        watch(f"http://{address}/plaintext", folder, args)


def watch(url, folder, args):
    seconds = int(args.minutes * 60)
    command = [args.parallax, "drive", "-w", "1", "-c", "64", "-d", f"{seconds}s", "--quiet", "-v", "-o", f"{folder}/run", url]
    if args.rate:
        command += ["--rate", args.rate]
    client = pinned(CLIENT_CORE, command, stdout=subprocess.PIPE, text=True)
    begin, samples = time.monotonic(), []
    while client.poll() is None:
        at = time.monotonic() - begin
        try:
            samples.append((at, resident_kib(client.pid)))
        except (OSError, StopIteration):
            break
        if len(samples) % 10 == 1:
            print(f"{at:6.0f} s {samples[-1][1]:8d} KiB", flush=True)
        time.sleep(1)
    report, _ = client.communicate()
    print(next(line.strip() for line in report.splitlines() if "scheduled =" in line))
    early = [kib for at, kib in samples if 60 <= at < 120]
    late = [kib for at, kib in samples if at >= seconds - 60]
    if not early or seconds < 180:
        sys.exit("a run of at least 3 minutes is needed to compare the second minute with the last")
    growth = statistics.median(late) / statistics.median(early) - 1
    print(f"second minute {statistics.median(early):.0f} KiB, last minute {statistics.median(late):.0f} KiB: "
          f"growth {growth:+.2%}")


if __name__ == "__main__":
    main()
