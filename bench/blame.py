#!/usr/bin/env python3
"""Whether `explain` names what was planted, from the records of the client and of the server.

Each trial is a real run: a server on one core, `parallax watch` next to it, `parallax drive` on the other core.

Places: the planted server of tests/kernel, and 50 ms that are planted in one of six places.
  client    the client is stopped (SIGSTOP), again and again
  network   a relay between the two holds every answer back
  queue     the server does not read what has arrived
  cpu       the handler works
  blocked   the handler sleeps
  hog       others have the server's core while the handler wants it
A trial has found it when `explain CLIENT SERVER --json` says that place (`blame.place`).

Causes: servers that nobody here wrote, or small programs, and 20 to 120 ms, another time in each trial.
  timer-node, timer-asyncio, timer-python      a timer of an event loop, a sleep of a thread
  upstream-nginx, upstream-node, upstream-node-new   another server, over kept or new connections
  stopped, frozen                              SIGSTOP, the freezer of control groups
  lock-mariadb, lock-python                    a row lock, a lock in the program: its owner is named
  delayed-ack                                  a response in two pieces, as the client's kernel gives it
  hog-X and quiet-X, X one of nginx, redis, node, python, mariadb: others have the server's core; and without them
A trial has found it when the rule is the expected one and its sentence has the expected name in it. In the quiet
control no sentence may speak of contention.

Needs root and BTF, and two cores. Judges nothing unless told by --misses how often it may be wrong.
"""
import argparse
import collections
import contextlib
import http.client
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

import cause_servers as causes
from cause_servers import CLIENT_CORE, CPUS, SERVER_CORE, start
from processes import built

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLANTED_S = 0.05
PATIENCE_S = 60


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


def stop_for(stop, ms):
    try:
        stop(False)
        time.sleep(ms / 1000)
    finally:
        stop(True)


def run(args, folder, server, port, load, path, stops=None):
    """One run with both records: what `explain` makes of them. `stops`: what is stopped again and again, called with
    whether it is to go on, or None for the client; and for how many milliseconds."""
    client, watch = folder / "client", folder / "watch"
    out = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    watching = start([args.parallax, "watch", "-p", server, "--requests", "all", "-o", watch], CLIENT_CORE, **out)
    wait_for(watch / "run.json", watching)
    url = f"http://127.0.0.1:{port}{path}"
    load = [BRIEF.get(word, word) if args.brief else word for word in load]
    command = [args.parallax, "drive", "--quiet", "--requests", "all", "-o", client, *load, url]
    driving = start(command, CLIENT_CORE, **out)
    try:
        wait_for(client / "run.json", driving)
        stop_client = lambda go: driving.send_signal(signal.SIGCONT if go else signal.SIGSTOP)
        while stops and driving.poll() is None:
            time.sleep(0.25)
            stop_for(stops[0] or stop_client, stops[1])
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


# Twice as many connections as are busy when 120 ms are planted.
LOAD = ["-c", "10", "-r", "40/s", "-d", "1500ms"]
# As many connections as come due in a stop: none waits for another's.
STOPPED = ["-c", "32", "-r", "400/s", "-d", "1500ms"]
# Half of what the core can do, so that requests do not wait for each other.
SLOW = ["-c", "4", "-r", "8/s", "-d", "2s"]
# Of a lock with one owner: each waits for that, few for each other.
LOCKED = ["-c", "4", "-r", "6/s", "-d", "2s"]
# How long the load lasts, where the whole must be brief.
BRIEF = {"1500ms": "700ms", "2s": "1s"}

# A control on a host that does something else is carried out again, so often at most.
NOISY = 5

SHORTEST_MS, LONGEST_MS = 20, 120


def in_client(args, folder):
    with planted(args) as (pid, port):
        return run(args, folder, pid, port, STOPPED, "/burn=200us", (None, PLANTED_S * 1000))


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

# What a cause is called: the rule's name and what must be in its sentence.
SAID = collections.namedtuple("SAID", "explained rule words", defaults=("",))


def of_program(args, folder, language, code, **values):
    with causes.program(language, code, **values) as (process, port):
        return run(args, folder, process.pid, port, LOAD, "/")


def timer(language, code):
    return lambda args, folder, ms: SAID(of_program(args, folder, language, code, ms=ms), "blocked-timer")


def sleeping_thread(args, folder, ms):
    code = causes.threads(causes.PYTHON_SLEEPS, ms=ms)
    return SAID(of_program(args, folder, "python", code), "blocked-timer")


def upstream(proxy):
    def trial(args, folder, ms):
        with causes.program("python", causes.PYTHON_TIMER, core=CLIENT_CORE, ms=ms) as (_, there), proxy(there) as (process, port):
            return SAID(run(args, folder, process.pid, port, LOAD, "/"), "upstream-at", f"127.0.0.1:{there}")

    return trial


def node_proxy(keep):
    return lambda there: causes.program("node", causes.NODE_UPSTREAM, upstream=there, keep=keep)


def stopped(args, folder, ms):
    with causes.nginx() as (process, port):
        stop = lambda go: process.send_signal(signal.SIGCONT if go else signal.SIGSTOP)
        return SAID(run(args, folder, process.pid, port, STOPPED, "/file.txt", (stop, ms)), "stopped-by", "SIGSTOP")


def frozen(args, folder, ms):
    group = pathlib.Path("/sys/fs/cgroup/unified" if os.path.exists("/sys/fs/cgroup/unified") else "/sys/fs/cgroup")
    group /= f"parallax-blame-{os.getpid()}"
    group.mkdir()
    try:
        with causes.nginx() as (process, port):
            (group / "cgroup.procs").write_text(str(process.pid))
            freeze = lambda go: (group / "cgroup.freeze").write_text("0" if go else "1")
            return SAID(run(args, folder, process.pid, port, STOPPED, "/file.txt", (freeze, ms)), "stopped-by", "freezer")
    finally:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.02)


@contextlib.contextmanager
def again_and_again(work):
    """Calls `work` in another thread until the block is over."""
    over = threading.Event()

    def repeat():
        while not over.is_set():
            work()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def locked_row(args, folder, ms):
    with causes.mariadb(args.data) as (process, port, ask):
        hold = f"BEGIN; UPDATE d.t SET v = v + 1 WHERE id = 1; DO SLEEP({ms / 1000}); COMMIT; DO SLEEP(0.005);"
        # New connections: what they say is known from their greeting on.
        with (
            again_and_again(lambda: ask(hold * max(1, int(900 / ms)))),
            causes.gateway(port, causes.query("UPDATE d.t SET v = v + 1 WHERE id = 1"), mysql=True) as (_, gateway),
        ):
            explained = run(args, folder, process.pid, gateway, LOCKED, "/")
        return SAID(explained, "blocked-lock-of", "commit")


def locked_in_python(args, folder, ms):
    with causes.program("python", causes.threads(causes.PYTHON_LOCKS, ms=ms)) as (process, port):
        connection = http.client.HTTPConnection("127.0.0.1", port)

        def hold():
            connection.request("GET", "/hold")
            connection.getresponse().read()
            time.sleep(0.005)

        with again_and_again(hold):
            explained = run(args, folder, process.pid, port, LOCKED, "/want")
        connection.close()
        return SAID(explained, "blocked-lock-of", "GET /hold")


def delayed_ack(args, folder, _):
    # One request right after the other: the client's kernel then expects to acknowledge with the next one.
    with causes.program("python", causes.PYTHON_PIECES) as (process, port):
        return SAID(run(args, folder, process.pid, port, ["-c", "2", "-d", "1500ms"], "/"), "network-held-back")


@contextlib.contextmanager
def working(args, name, urgent):
    """A server whose requests work for some 12 ms on the server's core: its pid and its port."""
    if name == "node":
        with causes.program("node", causes.NODE_BURN, urgent, turns=12_000_000) as (process, port):
            yield process.pid, port
    elif name == "python":
        with causes.program("python", causes.threads(causes.PYTHON_BURNS, ms=12), urgent) as (process, port):
            yield process.pid, port
    elif name == "nginx":
        with causes.nginx(urgent=urgent, megabytes=0.25) as (process, port):
            yield process.pid, port
    elif name == "redis":
        script = b"local n = 0 for i = 1, 3000000 do n = n + i end return 1"
        with causes.redis(urgent) as (process, port):
            with causes.gateway(port, causes.redis_command(b"EVAL", script, b"0")) as (_, http):
                yield process.pid, http
    else:
        with causes.mariadb(args.data, urgent) as (process, port, _):
            with causes.gateway(port, causes.query("SELECT BENCHMARK(180000, SHA1('a'))"), mysql=True) as (_, http):
                yield process.pid, http


def note_scheduled(pid, times):
    """How long each thread of a process ran so far, and how long it waited for a CPU: the kernel's own account."""
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            ran, waited, _ = (thread / "schedstat").read_text().split()
            times[thread.name] = int(ran), int(waited)


def contended(name, by_hogs):
    def trial(args, folder, _):
        options = ["-H", "Accept-Encoding: gzip"]
        with working(args, name, urgent=False) as (pid, port), hogs(args, 4 if by_hogs else 0):
            before, after = {}, {}
            note_scheduled(pid, before)
            # Again and again, because a thread's account ends with it.
            with again_and_again(lambda: (note_scheduled(pid, after), time.sleep(0.02))):
                explained = run(args, folder, pid, port, [*SLOW, *options], "/file.txt" if name == "nginx" else "/")
        if by_hogs:
            return SAID(explained, "contention-by", "hog-")
        # Others may work on this host: it was no control if the kernel says so.
        since = [[now - then for now, then in zip(after[tid], before.get(tid, (0, 0)))] for tid in after]
        ran, waited = (sum(times) for times in zip(*since))
        return SAID(explained, None) if waited * 3 < ran else None

    return trial


WORKERS = ("nginx", "redis", "node", "python", "mariadb")

CAUSES = {
    "timer-node": timer("node", causes.NODE_TIMER),
    "timer-asyncio": timer("python", causes.PYTHON_TIMER),
    "timer-python": sleeping_thread,
    "upstream-nginx": upstream(causes.nginx),
    "upstream-node": upstream(node_proxy("true")),
    "upstream-node-new": upstream(node_proxy("false")),
    "stopped": stopped,
    "frozen": frozen,
    "lock-mariadb": locked_row,
    "lock-python": locked_in_python,
    "delayed-ack": delayed_ack,
    **{f"hog-{name}": contended(name, True) for name in WORKERS},
    **{f"quiet-{name}": contended(name, False) for name in WORKERS},
}


def is_place(args, name, _):
    trial, place = PLACES[name]
    with tempfile.TemporaryDirectory() as folder:
        blame = trial(args, pathlib.Path(folder))["blame"]
    return blame["place"] == place, blame["place"], blame["sentence"]


def is_cause(args, name, n):
    """One of the trials of a cause, over which the times planted are spread evenly."""
    ms = SHORTEST_MS + (LONGEST_MS - SHORTEST_MS) * (n + 0.5) / args.trials
    for _ in range(NOISY):
        with tempfile.TemporaryDirectory() as folder:
            said = CAUSES[name](args, pathlib.Path(folder), ms)
        if said:
            break
    else:
        return False, "not quiet", f"others had this host's CPUs in {NOISY} trials"
    sentences = said.explained["sentences"]
    blame = said.explained["blame"]
    if said.rule is None:
        rules = [sentence["rule"] for sentence in sentences if sentence["place"] == "cpu_contention"]
        return not rules and blame["place"] != "cpu_contention", (rules or ["none"])[0], blame["sentence"]
    own = [sentence for sentence in sentences if sentence["place"] == blame["place"]][:1]
    rule = own[0]["rule"] if own else blame["place"]
    return rule == said.rule and said.words in blame["sentence"], rule, f"{ms:.0f} ms: {blame['sentence']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--only", help="these places and causes, with commas between")
    parser.add_argument("--parallax", help="the binary to measure [default: built with the profile dist]")
    parser.add_argument("--planted", default=str(ROOT / "target/debug/planted"))
    parser.add_argument("--hog", default=str(ROOT / "target/debug/hog"))
    parser.add_argument("--misses", type=int, help="fail when one is missed more often")
    parser.add_argument("--brief", action="store_true", help="half the load in each trial")
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
    names = [name for name in [*PLACES, *CAUSES] if args.only is None or name in args.only.split(",")]
    with contextlib.ExitStack() as stack:
        if any("mariadb" in name for name in names):
            args.data = stack.enter_context(causes.mariadb_data())
        failed = [name for name in names if is_missed(args, name)]
    if failed:
        sys.exit(f"what was planted was missed for {', '.join(failed)}")


def is_missed(args, name):
    """Carries out the trials of one place or cause; whether it was missed more often than allowed."""
    said, found, began = collections.Counter(), 0, time.monotonic()
    for n in range(args.trials):
        is_found, word, sentence = (is_place if name in PLACES else is_cause)(args, name, n)
        said[word] += 1
        found += is_found
        if args.verbose or not is_found:
            print(f"  {name}: {'found' if is_found else 'MISSED'}: {word}: {sentence}", flush=True)
    took = time.monotonic() - began
    print(f"{name:18} found {found}/{args.trials} in {took:.0f} s; all that was said: {dict(said)}", flush=True)
    return args.misses is not None and args.trials - found > args.misses


if __name__ == "__main__":
    main()
