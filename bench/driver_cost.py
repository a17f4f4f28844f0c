#!/usr/bin/env python3
"""What one request costs the client, side by side with wrk.

Keep-alive requests over 64 connections in a closed loop, all stamps and histograms on, the record written.
Server and client are pinned to different cores, and the tools take turns, so that a drift of the machine's
speed meets both. CPU time is user + system of the whole client process, from wait4(2); requests are those the
tool says it sent. Prints one row a pair and the ratio of each pair; it judges nothing.
"""
import argparse
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SERVER_CORE, CLIENT_CORE = "0", "1"

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


def pinned(core, command, **options):
    return subprocess.Popen(["taskset", "-c", core, *command], **options)


def measured(command):
    """Runs a client to its end: its standard output and its CPU seconds."""
    with tempfile.TemporaryFile("w+") as out:
        child = pinned(CLIENT_CORE, command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    # 3: done, but the machine was too busy for the times to be believed; the CPU time is the kernel's own.
    if child.returncode not in (0, 3):
        sys.exit(f"{' '.join(command)} ended with {child.returncode}: {text[-400:]}")
    return text, usage.ru_utime + usage.ru_stime


def run_wrk(url, args):
    text, cpu = measured(args.prefix + ["wrk", "-t1", f"-c{args.connections}", f"-d{args.seconds}s", url])
    count = int(re.search(r"(\d+) requests in", text).group(1))
    rate = float(re.search(r"Requests/sec:\s*([\d.]+)", text).group(1))
    args.last_count = count
    return cpu / count * 1e6, rate


def run_parallax(url, args):
    with tempfile.TemporaryDirectory() as folder:
        text, cpu = measured(args.prefix + [
            args.parallax, "drive", "-w", "1", "-c", str(args.connections), "-d", f"{args.seconds}s",
            "--quiet", "--json", "-o", f"{folder}/run", url,
        ])
    totals = json.loads(text)["results"]["totals"]
    args.last_count = totals["sent"]
    return cpu / totals["sent"] * 1e6, totals["throughput_per_s"]


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


def compare(name, url, args):
    print(f"\n{name}, {args.connections} connections, {args.seconds} s a run")
    print(f"  {'wrk us/req':>11} {'ours':>7} {'ratio':>6}   {'wrk req/s':>10} {'ours':>9} {'ratio':>6}")
    cost, rate = [], []
    for pair in range(args.pairs):
        runs = [("wrk", run_wrk), ("ours", run_parallax)]
        # Who goes first takes turns too.
        got = {key: run(url, args) for key, run in (runs if pair % 2 == 0 else reversed(runs))}
        (wrk_us, wrk_rate), (our_us, our_rate) = got["wrk"], got["ours"]
        cost.append(our_us / wrk_us)
        rate.append(our_rate / wrk_rate)
        print(f"  {wrk_us:11.2f} {our_us:7.2f} {cost[-1]:6.3f}   {wrk_rate:10.0f} {our_rate:9.0f} {rate[-1]:6.3f}")
    for what, ratios in [("CPU a request", cost), ("throughput", rate)]:
        print(f"  {what}, ours / wrk: median {statistics.median(ratios):.3f}, "
              f"from {min(ratios):.3f} to {max(ratios):.3f} over {len(ratios)} pairs")


def instructions(name, url, args):
    """Instructions a request, user and kernel, which the neighbours on this machine do not change."""
    row = []
    for run in (run_wrk, run_parallax):
        with tempfile.NamedTemporaryFile("r") as out:
            args.prefix = ["perf", "stat", "-x,", "-e", "instructions:u,instructions:k", "-o", out.name, "--"]
            cpu_us, _ = run(url, args)
            counts = [int(line.split(",")[0]) for line in out if "instructions" in line and line[0].isdigit()]
        row.append((counts, args.last_count, cpu_us))
    args.prefix = []
    per_request = [[count / requests for count in counts] for counts, requests, _ in row]
    if any(len(counts) != 2 for counts in per_request):
        return print("  instructions: this machine does not count them")
    for tool, (user, kernel) in zip(("wrk ", "ours"), per_request):
        print(f"  instructions a request, {tool}: {user:7.0f} user + {kernel:7.0f} kernel = {user + kernel:7.0f}")
    print(f"  instructions a request, ours / wrk: {sum(per_request[1]) / sum(per_request[0]):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--parallax", default=str(ROOT / "target/release/parallax"))
    args = parser.parse_args()
    args.prefix = []
    if os.cpu_count() < 2:
        sys.exit("two cores are needed: one for the server, one for the client")
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "nginx.conf")
        nginx_port, target_port = free_port(), free_port()
        config.write_text(NGINX.format(dir=folder, port=nginx_port))
        servers = [
            pinned(SERVER_CORE, ["nginx", "-c", str(config)], stderr=subprocess.DEVNULL),
            pinned(SERVER_CORE, [args.parallax, "serve", "-l", f"127.0.0.1:{target_port}"], stdout=subprocess.DEVNULL),
        ]
        try:
            for name, port in [("nginx", nginx_port), ("the built-in target", target_port)]:
                url = f"http://127.0.0.1:{port}/plaintext"
                wait_until_answers(url)
                compare(name, url, args)
                if shutil.which("perf"):
                    instructions(name, url, args)
        finally:
            for server in servers:
                server.send_signal(signal.SIGTERM)
                server.wait()


if __name__ == "__main__":
    main()
