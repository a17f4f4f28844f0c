#!/usr/bin/env python3
"""Whether `explain` names the place where 50 ms were planted, from the records of the client and of the server.

Each trial is a real run: the planted server of tests/kernel on a core of its own, `parallax watch` beside it,
`parallax drive` on the other core, and 50 ms that are planted in one of six places:
  client    the client is stopped (SIGSTOP), again and again
  network   a relay between the two holds every answer back
  queue     the server does not read what has arrived
  cpu       the handler works
  blocked   the handler sleeps
  hog       others have the server's core while the handler wants it
A trial has found it when `explain CLIENT SERVER --json` says that place (`blame.place`).

Needs root and BTF, and two cores. Judges nothing unless told by --misses how often it may be wrong.
"""
import argparse
import contextlib
import json
import os
import pathlib
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from processes import built

ROOT = pathlib.Path(__file__).resolve().parent.parent
CPUS = sorted(os.sched_getaffinity(0))
CLIENT_CORE, SERVER_CORE = CPUS[0], CPUS[-1]
PLANTED_S = 0.05
PATIENCE_S = 60


def start(command, core, urgent=True, **more):
    def prepare():
        os.sched_setaffinity(0, {core})
        if urgent:
            # Ahead of all other work on this host, which would be one more thing to blame; below this program, which
            # has to act in time.
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))

    return subprocess.Popen([str(word) for word in command], preexec_fn=prepare, **more)


@contextlib.contextmanager
def planted(args, *options, urgent=True):
    """The planted server: its pid and its port. Beside hogs it is one process among others."""
    with tempfile.TemporaryDirectory() as folder:
        command = [args.planted, "--folder", folder, *options]
        process = start(command, SERVER_CORE, urgent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            words = process.stdout.readline().split()
            yield int(words[3]), int(words[1].rsplit(":", 1)[1])
        finally:
            process.stdin.close()
            process.wait()


@contextlib.contextmanager
def hogs(args, count):
    with tempfile.TemporaryDirectory() as folder:
        command = lambda n: [args.hog, f"hog-{n}", f"{folder}/{n}"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        processes = [start(command(n), SERVER_CORE, False, **pipes) for n in range(count)]
        try:
            for process in processes:
                process.stdout.readline()
            yield
        finally:
            for process in processes:
                process.stdin.close()
                process.wait()


class Relay:
    """Between client and server: what the server sends is handed on as much later as was planted."""

    def __init__(self, port):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.to = ("127.0.0.1", port)
        self.selector = selectors.DefaultSelector()
        self.held = []
        self.over = False
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()

    def run(self):
        while not self.over:
            due = self.held[0][0] - time.monotonic() if self.held else 0.1
            for key, _ in self.selector.select(max(0, min(due, 0.1))):
                if key.data is None:
                    self.accept()
                else:
                    self.take(key)
            while self.held and self.held[0][0] <= time.monotonic():
                _, other, data = self.held.pop(0)
                with contextlib.suppress(OSError):
                    other.sendall(data) if data else other.shutdown(socket.SHUT_WR)

    def accept(self):
        client, _ = self.listener.accept()
        server = socket.create_connection(self.to)
        for one, other, held in ((client, server, 0), (server, client, PLANTED_S)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.selector.register(one, selectors.EVENT_READ, (other, held))

    def take(self, key):
        other, held = key.data
        try:
            data = key.fileobj.recv(65536)
        except OSError:
            data = b""
        if not data:
            self.selector.unregister(key.fileobj)
        if held == 0 and data:
            other.sendall(data)
        else:
            self.held.append((time.monotonic() + held, other, data))


def wait_for(path, process):
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{' '.join(process.args)} did not begin: {process.stderr.read()}")
        time.sleep(0.005)


def run(args, folder, server, port, load, path, stops=False):
    """One run with both records: what `explain` makes of them."""
    client, watch = folder / "client", folder / "watch"
    out = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    watching = start([args.parallax, "watch", "-p", server, "--requests", "all", "-o", watch], CLIENT_CORE, **out)
    wait_for(watch / "run.json", watching)
    url = f"http://127.0.0.1:{port}{path}"
    command = [args.parallax, "drive", "--quiet", "--requests", "all", "-o", client, *load, url]
    driving = start(command, CLIENT_CORE, **out)
    try:
        wait_for(client / "run.json", driving)
        while stops and driving.poll() is None:
            time.sleep(0.25)
            driving.send_signal(signal.SIGSTOP)
            time.sleep(PLANTED_S)
            driving.send_signal(signal.SIGCONT)
        _, said = driving.communicate(timeout=PATIENCE_S)
    finally:
        driving.kill()
        watching.send_signal(signal.SIGINT)
        _, watch_said = watching.communicate(timeout=PATIENCE_S)
    # 3: done, and this host was too busy for the times to be believed.
    if driving.returncode not in (0, 3) or watching.returncode != 0:
        raise RuntimeError(f"drive {driving.returncode}: {said}; watch {watching.returncode}: {watch_said}")
    explain = [args.parallax, "explain", client, watch, "--json"]
    done = subprocess.run([str(word) for word in explain], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"explain: {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


LOAD = ["-c", "4", "-r", "40/s", "-d", "1500ms"]
# As many connections as come due in a stop: none waits for another's.
STOPPED = ["-c", "32", "-r", "400/s", "-d", "1500ms"]
# Half of what the core can do, so that requests do not wait for each other.
SLOW = ["-c", "4", "-r", "8/s", "-d", "2s"]


def in_client(args, folder):
    with planted(args) as (pid, port):
        return run(args, folder, pid, port, STOPPED, "/burn=200us", stops=True)


def in_network(args, folder):
    with planted(args) as (pid, port), Relay(port) as relay:
        return run(args, folder, pid, relay.port, LOAD, "/burn=200us")


def in_queue(args, folder):
    with planted(args, "--late-read", "50ms") as (pid, port):
        return run(args, folder, pid, port, LOAD, "/burn=200us")


def on_cpu(args, folder):
    with planted(args) as (pid, port):
        return run(args, folder, pid, port, SLOW, "/burn=50ms")


def blocked(args, folder):
    with planted(args) as (pid, port):
        return run(args, folder, pid, port, LOAD, "/sleep=50ms")


def hogged(args, folder):
    # Five share the core: 12 ms of work take 60.
    with planted(args, urgent=False) as (pid, port), hogs(args, 4):
        return run(args, folder, pid, port, SLOW, "/burn=12ms")


# Where 50 ms are planted, and what `explain` has to call the place.
PLACES = {
    "client": (in_client, "client"),
    "network": (in_network, "network"),
    "queue": (in_queue, "socket_queue"),
    "cpu": (on_cpu, "handler_cpu"),
    "blocked": (blocked, "handler_blocked"),
    "hog": (hogged, "cpu_contention"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--only", help="one place")
    parser.add_argument("--parallax", help="the binary to measure [default: built with the profile dist]")
    parser.add_argument("--planted", default=str(ROOT / "target/debug/planted"))
    parser.add_argument("--hog", default=str(ROOT / "target/debug/hog"))
    parser.add_argument("--misses", type=int, help="fail when a place is missed more often")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    if len(CPUS) < 2:
        sys.exit("two cores are needed: one for the client, one for the server")
    if os.geteuid() != 0:
        sys.exit("the observer needs root")
    if not pathlib.Path(args.planted).exists():
        sys.exit(f"{args.planted} is not there: cargo build -p kernel --bins")
    args.parallax = args.parallax or built()
    # What it starts begins as an ordinary process again.
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(20))
    failed = []
    for place, (trial, name) in PLACES.items():
        if args.only not in (None, place):
            continue
        said = {}
        for _ in range(args.trials):
            with tempfile.TemporaryDirectory() as folder:
                blame = trial(args, pathlib.Path(folder))["blame"]
            said[blame["place"]] = said.get(blame["place"], 0) + 1
            if args.verbose or blame["place"] != name:
                print(f"  {place}: {json.dumps(blame)}", flush=True)
        found = said.get(name, 0)
        print(f"{place:9} named {found}/{args.trials}; all that was said: {said}", flush=True)
        if args.misses is not None and args.trials - found > args.misses:
            failed.append(place)
    if failed:
        sys.exit(f"the wrong place was named for {', '.join(failed)}")


if __name__ == "__main__":
    main()
