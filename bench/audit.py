#!/usr/bin/env python3
"""Whether the audit finds what was done to a run, by the right finding, and nothing on a quiet host.

Each trial is a real run with a real fault: other work on the client's core, a CPU quota, a limit
of descriptors, a range of ports that is too small, a stop of 300 ms, other work on one worker's core. A trial has
found its fault when the record has the fault's own finding. The quiet trials have no fault, and none may be found.

Needs root, and Linux with control groups of either version. Client and server share the loopback interface, each on a
core of its own; two cores are enough. The quiet trials run at real-time priority, so that other work on the host is
not in them; a quiet trial is repeated when its own record shows that the host was not quiet:
stolen time, hiccups, or a worker that waited for a CPU. The evidence is looked at, not the verdict, and repeats are
printed.
"""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from processes import built

CPUS = sorted(os.sched_getaffinity(0))
CLIENT_CORE, SERVER_CORE = CPUS[0], CPUS[-1]
# Ahead of other work on this host, client, server and hogs alike.
NICENESS = -15
HOGS = 3
PATIENCE_S = 60


def start(command, core, group=None, urgent=False, **more):
    def prepare():
        os.sched_setaffinity(0, {core})
        if group:
            (group / "cgroup.procs").write_text(str(os.getpid()))
        if urgent:
            # Below this program, which has to act in time.
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, NICENESS)

    return subprocess.Popen(command, preexec_fn=prepare, stdin=subprocess.DEVNULL, **more)


def end(process):
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def server(binary, prefix=(), **more):
    command = [*prefix, binary, "serve", "-l", "127.0.0.1:0"]
    process = start(command, SERVER_CORE, stdout=subprocess.PIPE, text=True, **more)
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


@contextlib.contextmanager
def hogs(core, count=HOGS):
    processes = [start([sys.executable, "-c", "while True: pass"], core) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def namespace():
    """A network of its own with 32 local ports."""
    name = f"parallax-audit-{os.getpid()}"
    run = lambda *command: subprocess.run(["ip", *command], check=True)
    run("netns", "add", name)
    try:
        run("-n", name, "link", "set", "lo", "up")
        prefix = ["ip", "netns", "exec", name]
        narrow = ["sysctl", "-qw", "net.ipv4.ip_local_port_range=40000 40031"]
        subprocess.run([*prefix, *narrow], check=True)
        yield prefix
    finally:
        run("netns", "del", name)


@contextlib.contextmanager
def quota():
    """A control group that may use a tenth of a CPU, in the version that this host has."""
    name = f"parallax-audit-{os.getpid()}"
    first, second = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")
    is_first = (first / "cpu.cfs_quota_us").exists()
    group = (first if is_first else second) / name
    if not is_first:
        with contextlib.suppress(OSError):
            (second / "cgroup.subtree_control").write_text("+cpu")
    group.mkdir()
    try:
        if is_first:
            (group / "cpu.cfs_period_us").write_text("100000")
            (group / "cpu.cfs_quota_us").write_text("10000")
        else:
            (group / "cpu.max").write_text("10000 100000")
        yield group
    finally:
        for _ in range(100):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.05)


SHORT = False


def length(seconds):
    """How long a trial drives."""
    return ["-d", "1200ms" if SHORT else f"{seconds}s"]


class Drive:
    """A client under way."""

    def __init__(self, binary, url, arguments, prefix=(), core=CLIENT_CORE, **more):
        self.folder = tempfile.TemporaryDirectory()
        self.run = pathlib.Path(self.folder.name) / "run"
        command = [*prefix, binary, "drive", "--quiet", "-o", str(self.run), *arguments, url]
        out = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        # A ceiling that somebody measured here is no part of a trial.
        environment = {**os.environ, "XDG_CACHE_HOME": self.folder.name}
        self.process = start(command, core, env=environment, **out, **more)

    def begun(self):
        """Waits until the record is there, which is when the run begins."""
        deadline = time.monotonic() + PATIENCE_S
        while not (self.run / "run.json").exists():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"the client did not begin: {self.process.stderr.read()}")
            time.sleep(0.005)
        return self

    def workers(self):
        """The threads of the workers, by their number."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        names = {int(task.name): (task / "comm").read_text().strip() for task in tasks.iterdir()}
        return {int(name.removeprefix("worker-")): tid for tid, name in names.items() if name.startswith("worker-")}

    def ended(self):
        try:
            _, errors = self.process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        try:
            document = json.loads((self.run / "run.json").read_text())
            series = [json.loads(line) for line in (self.run / "series.ndjson").read_text().splitlines()]
        except OSError as error:
            raise RuntimeError(f"no record: {errors}") from error
        self.folder.cleanup()
        return document, series


def quiet(binary):
    # Ahead of everything that is not of the kernel: to these two, a busy host is nearly a quiet one.
    with server(binary, urgent=True) as url:
        load = ["-c", "16", "-r", "500/s", *length(3)]
        return Drive(binary, f"{url}/delay?us=2000", load, urgent=True).begun().ended()


def cpu_hog(binary):
    with server(binary) as url, hogs(CLIENT_CORE):
        return Drive(binary, f"{url}/delay?us=2000", ["-c", "16", "-r", "1000/s", *length(2)]).begun().ended()


def cpu_quota(binary):
    with server(binary) as url, quota() as group:
        load = ["-c", "16", "-r", "5000/s", *length(2)]
        return Drive(binary, f"{url}/plaintext", load, group=group).begun().ended()


def descriptors(binary):
    with server(binary) as url:
        load = ["-c", "64", "-r", "500/s", *length(2), "-H", "Connection: close"]
        drive = Drive(binary, f"{url}/delay?us=2000", load).begun()
        time.sleep(0.5)
        # As from outside, in mid-run: the client had checked its limit before.
        subprocess.run(["prlimit", "--pid", str(drive.process.pid), "--nofile=8:8"], check=True)
        return drive.ended()


def ports(binary):
    with namespace() as prefix, server(binary, prefix) as url:
        return Drive(binary, f"{url}/delay?ms=20", ["-c", "64", *length(2)], prefix).begun().ended()


def stop(binary):
    with server(binary) as url:
        drive = Drive(binary, f"{url}/delay?us=2000", ["-c", "16", "-r", "500/s", *length(2)]).begun()
        time.sleep(0.6)
        drive.process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        drive.process.send_signal(signal.SIGCONT)
        return drive.ended()


def slow_worker(binary):
    # All but this one worker are ahead of everything else, so that it alone is slow.
    with server(binary, urgent=True) as url, hogs(CLIENT_CORE):
        load = ["-w", "2", "-c", "16", "-r", "1000/s", *length(2)]
        drive = Drive(binary, f"{url}/delay?us=2000", load, core=SERVER_CORE, urgent=True).begun()
        deadline = time.monotonic() + PATIENCE_S
        while (slow := drive.workers().get(1)) is None and time.monotonic() < deadline:
            time.sleep(0.005)
        os.sched_setscheduler(slow, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(slow, {CLIENT_CORE})
        return drive.ended()


def others_late(series):
    """Whether more than the planted worker was slow, by the raw figures: others were late in a tenth of their responses."""
    others = [worker for second in series for worker in second.get("workers", []) if worker["worker"] != 1]
    return sum(each["late"] for each in others) * 10 >= sum(each["ok"] for each in others)


# The fault, the finding that has to name it, what has to stand in that, and what shows that the fault was elsewhere too.
FAULTS = {
    "cpu_hog": (cpu_hog, "run_queue", "worker 0", None),
    "cpu_quota": (cpu_quota, "cpu_quota", "quota", None),
    "descriptors": (descriptors, "descriptors", "out of file descriptors", None),
    "ports": (ports, "ports", "no local port was left", None),
    "stop": (stop, "client_stall", "whole load generator or its host", None),
    "slow_worker": (slow_worker, "slow_worker", "worker 1 was", others_late),
}


def is_found(document, check, text):
    findings = document["verdict"]["findings"]
    return any(finding["check"] == check and text in finding["measured"] for finding in findings)


def unrest(series):
    """What the record shows of a host that was not quiet, by its raw figures; empty for a quiet one."""
    shown = []
    for second in series:
        length = second["length_ns"]
        # A run's last moment is no second: its first tick of a counter would be a large share of it.
        if length < 900_000_000:
            continue
        host = second.get("host", {})
        if host.get("steal_ns", 0) > length // 100:
            shown.append(f"{host['steal_ns'] / 1e6:.0f} ms stolen")
        if second.get("hiccup_max_ns", 0) > 10_000_000:
            shown.append(f"a hiccup of {second['hiccup_max_ns'] / 1e6:.0f} ms")
        for worker in second.get("workers", []):
            if worker.get("run_queue_ns", 0) > length // 50:
                shown.append(f"{worker['run_queue_ns'] / 1e6:.0f} ms on the run queue")
    return shown


def names(document):
    return [finding["check"] for finding in document["verdict"]["findings"] if finding["makes"] != "valid"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--only", help="one fault, or quiet")
    parser.add_argument("--parallax", help="the binary to measure [default: built with the profile dist]")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--misses", type=int, help="fail when a fault is missed, or found where none is, more often")
    parser.add_argument("--short", action="store_true", help="trials of about a second")
    args = parser.parse_args()
    args.parallax = args.parallax or built()
    global SHORT
    SHORT = args.short
    failed = []
    # What it starts begins as an ordinary process again.
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(20))
    if len(CPUS) < 2:
        sys.exit("two cores are needed: one for the client, one for the server")
    for fault, (run, check, text, is_elsewhere) in FAULTS.items():
        if args.only in (None, fault):
            found, others, done, repeats = 0, {}, 0, 0
            while done < args.trials and repeats < args.trials * 5:
                document, series = run(args.parallax)
                hit = is_found(document, check, text)
                if not hit and is_elsewhere and is_elsewhere(series):
                    repeats += 1
                    continue
                done += 1
                found += hit
                for name in names(document):
                    others[name] = others.get(name, 0) + 1
                if args.verbose or not hit:
                    print(f"  {fault}: {json.dumps(document['verdict'], indent=None)}", flush=True)
            print(f"{fault:12} found {found}/{done} by {check}, {repeats} repeated; all findings: {others}", flush=True)
            if args.misses is not None and args.trials - found > args.misses:
                failed.append(fault)
    if args.only in (None, "quiet"):
        alarms, repeats, done, most = 0, 0, 0, args.trials * 5
        while done < args.trials and repeats < most:
            document, series = quiet(args.parallax)
            if shown := unrest(series):
                repeats += 1
                if args.verbose:
                    print(f"  quiet: repeated, {', '.join(shown)}; {names(document)}", flush=True)
                continue
            done += 1
            if document["verdict"]["word"] != "valid":
                alarms += 1
                print(f"  quiet: {json.dumps(document['verdict'], indent=None)}", flush=True)
        print(f"{'quiet':12} false alarms {alarms}/{done}; {repeats} repeated, for the host was not quiet", flush=True)
        if args.misses is not None and (alarms > args.misses or done < args.trials):
            failed.append("quiet")
    if failed:
        sys.exit(f"the audit failed on {', '.join(failed)}")


if __name__ == "__main__":
    main()
