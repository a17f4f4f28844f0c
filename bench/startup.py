#!/usr/bin/env python3
"""How long a program takes from its start to its exit when it only prints its version.

Ours and its peers take turns on one core, ahead of other work on this machine where that is allowed. Prints the median,
the fastest and the slowest of each in milliseconds; it judges nothing. /bin/true is what starting any process costs here.
"""
import argparse
import os
import shutil
import statistics
import time

from processes import CLIENT_CORE, built

PEERS = [["/bin/true"], ["wrk", "--version"], ["curl", "--version"], ["nginx", "-v"]]


def milliseconds(command):
    """posix_spawn(3) copies nothing of this interpreter, so its size is no part of the time."""
    silent = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_WRONLY, 0) for fd in (1, 2)]
    began = time.perf_counter()
    os.waitpid(os.posix_spawn(command[0], command, os.environ, file_actions=silent), 0)
    return (time.perf_counter() - began) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--parallax", help="the binary to measure [default: built by scripts/dist]")
    args = parser.parse_args()
    commands = [[args.parallax or built(), "--version"]]
    commands += [[shutil.which(peer[0]), *peer[1:]] for peer in PEERS if shutil.which(peer[0])]
    os.sched_setaffinity(0, {int(CLIENT_CORE)})
    try:
        os.nice(-19)
    except PermissionError:
        pass
    times = [[] for _ in commands]
    for _ in range(args.runs):
        for command, own in zip(commands, times):
            own.append(milliseconds(command))
    for command, own in zip(commands, times):
        name = " ".join([os.path.basename(command[0]), *command[1:]])
        print(f"{statistics.median(own):8.2f} ({min(own):.2f} to {max(own):.2f})  {name}")


if __name__ == "__main__":
    main()
