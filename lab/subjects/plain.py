#!/usr/bin/env python3
"""A plain web server: one thread, keep-alive, one path. With --metrics on it counts and times its requests as clients of
monitoring systems do: labels looked up in a table, a histogram, a lock."""

import argparse
import http.server
import threading
import time

BOUNDS = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5]


class Metrics:
    def __init__(self):
        self.lock = threading.Lock()
        self.cells = {}

    def observe(self, method, path, status, seconds):
        labels = (("method", method), ("path", path), ("status", str(status)))
        with self.lock:
            cell = self.cells.setdefault(labels, [0, 0.0, [0] * len(BOUNDS)])
            cell[0] += 1
            cell[1] += seconds
            for index, bound in enumerate(BOUNDS):
                if seconds <= bound:
                    cell[2][index] += 1


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one segment: two small ones would wait for each other.
    wbufsize = -1
    metrics = None

    def do_GET(self):
        began = time.perf_counter()
        body = b"Hello, World!"
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if self.metrics:
            self.metrics.observe("GET", self.path, 200, time.perf_counter() - began)

    def log_message(self, *_):
        pass


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--port", type=int, required=True)
    arguments.add_argument("--metrics", choices=["off", "on"], default="off")
    given = arguments.parse_args()
    Handler.metrics = Metrics() if given.metrics == "on" else None
    http.server.ThreadingHTTPServer(("127.0.0.1", given.port), Handler).serve_forever()


main()
