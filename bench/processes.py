"""Servers and clients as processes: pinned to their cores, ahead of other work, their CPU time taken exactly."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
SERVER_CORE, CLIENT_CORE = "0", "1"

# Set by a script whose clients sleep most of the time: whoever wakes runs at once, as on an idle machine.
REALTIME = False

NGINX = """
worker_processes 1; daemon off; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000;
  client_body_temp_path {dir}; proxy_temp_path {dir}; fastcgi_temp_path {dir};
  uwsgi_temp_path {dir}; scgi_temp_path {dir};
  server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ default_type text/plain; return 200 "Hello, World!"; }} }}
}}
"""


def built(package="parallax", example=None):
    """The path of a program, compiled with the profile `dist`: its cost is that of the packaged one."""
    if not example:
        subprocess.run([str(ROOT / "scripts/dist"), "--quick"], check=True)
        return str(TARGET / "dist" / package)
    command = [str(ROOT / "scripts/with-rust"), "cargo", "build", "--quiet", "--profile", "dist", "--locked", "-p", package]
    subprocess.run([*command, "--example", example], cwd=ROOT, check=True)
    return str(TARGET / "dist/examples" / example)


def pinned(core, command, priority=1, **options):
    """Starts a process on one core, or several with commas between, ahead of other work on this machine, which would change who wakes whom. `priority` is among those that are REALTIME."""

    def settle():
        os.sched_setaffinity(0, {int(each) for each in core.split(",")})
        try:
            if REALTIME:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
            os.nice(-19)
            # The kernel weighs sessions first and then the processes within one (`sched_autogroup_enabled`).
            os.setsid()
            Path("/proc/self/autogroup").write_text("-19")
        except OSError:
            pass  # Without the privilege, or the file, it runs among the others.

    return subprocess.Popen(command, preexec_fn=settle, **options)


def measured(command, core=CLIENT_CORE):
    """Runs a client to its end: its standard output and its CPU seconds, from wait4(2)."""
    with tempfile.TemporaryFile("w+") as out:
        child = pinned(core, command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    # 3: done, but the machine was too busy for the times to be believed; the CPU time is the kernel's own.
    if child.returncode not in (0, 3):
        sys.exit(f"{' '.join(command)} ended with {child.returncode}: {text[-400:]}")
    return text, usage.ru_utime + usage.ru_stime


def drive(parallax, options, url, prefix=(), core=CLIENT_CORE):
    """Runs `parallax drive` with one worker, on a URL or a scenario file: its run.json and its CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        text, cpu = measured([*prefix, parallax, "drive", "-w", "1", *options, "--quiet", "--json", "-o", f"{folder}/run", url], core)
    return json.loads(text), cpu


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_answers(url):
    for _ in range(200):
        try:
            urllib.request.urlopen(url, timeout=1).read()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"{url} does not answer")


@contextmanager
def serving(command, port, **options):
    server = pinned(SERVER_CORE, command, **options)
    try:
        wait_until_answers(f"http://127.0.0.1:{port}/plaintext")
        yield server
    finally:
        if server.poll() is None:
            server.send_signal(signal.SIGTERM)
        server.wait()


@contextmanager
def nginx():
    """nginx with one worker: its address, or None where it is not installed."""
    if not shutil.which("nginx"):
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        port, config = free_port(), Path(folder, "nginx.conf")
        # Its worker has another user.
        os.chmod(folder, 0o755)
        config.write_text(NGINX.format(dir=folder, port=port))
        with serving(["nginx", "-c", str(config)], port, stderr=subprocess.DEVNULL):
            yield f"127.0.0.1:{port}"


@contextmanager
def target(parallax, *options):
    """The built-in target: its address."""
    port = free_port()
    command = [parallax, "serve", "-l", f"127.0.0.1:{port}", *options]
    with serving(command, port, stdout=subprocess.DEVNULL):
        yield f"127.0.0.1:{port}"


def truth(address, reset=False):
    path = "/truth/reset" if reset else "/truth"
    return json.load(urllib.request.urlopen(f"http://{address}{path}"))


def quantile(values, q):
    """The smallest value with at least the share `q` at or below it."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * int(q * 1000) // 1000) - 1)]


def known(distribution, q):
    """A quantile of run.json in nanoseconds, or None where the sample does not carry it."""
    return next((entry.get("ns") for entry in distribution["quantiles"] if entry["q"] == q), None)


def phase(document, name):
    return next(row["distribution"] for row in document["results"]["phases"] if row["phase"] == name)
