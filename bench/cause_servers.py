"""Servers whose requests wait for a known cause: small programs, and nginx, Redis and MariaDB with HTTP before them."""
import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

CPUS = sorted(os.sched_getaffinity(0))
CLIENT_CORE, SERVER_CORE = CPUS[0], CPUS[-1]
PATIENCE_S = 30


def start(command, core, urgent=True, **more):
    def prepare():
        os.sched_setaffinity(0, {core})
        if urgent:
            # Ahead of all other work on this host, which would be one more thing to blame; below this program, which
            # has to act in time.
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
            return
        # One among several that are started so, and before all others. The kernel weighs sessions first and then the
        # processes within one (`sched_autogroup_enabled`).
        os.nice(-15)
        os.setsid()
        with contextlib.suppress(OSError):
            pathlib.Path("/proc/self/autogroup").write_text("-15")

    return subprocess.Popen([str(word) for word in command], preexec_fn=prepare, **more)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_open(port, process):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise RuntimeError(f"{' '.join(process.args)[:80]} does not listen on {port}")


@contextlib.contextmanager
def running(command, port, core=SERVER_CORE, urgent=True, **more):
    """A server: its process, once it accepts connections."""
    process = start(command, core, urgent, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
    try:
        wait_until_open(port, process)
        yield process
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=PATIENCE_S)
        process.kill()
        process.wait()


NODE_TIMER = "require('http').createServer((q, r) => setTimeout(() => r.end('ok'), {ms})).listen({port}, '127.0.0.1')"
NODE_BURN = """
require('http').createServer((q, r) => {{
  let sum = 0;
  for (let i = 0; i < {turns}; i++) sum += i;
  r.end(`${{sum}}`);
}}).listen({port}, '127.0.0.1')"""
NODE_UPSTREAM = """
const http = require('http'), agent = new http.Agent({{ keepAlive: {keep} }});
http.createServer((q, r) => http.get({{ port: {upstream}, host: '127.0.0.1', agent }}, (a) => {{
  let body = '';
  a.on('data', (part) => body += part);
  a.on('end', () => r.end(body));
}})).listen({port}, '127.0.0.1')"""

# An event loop: answers each request after a sleep.
PYTHON_TIMER = """
import asyncio
async def serve(reader, writer):
    try:
        while True:
            await reader.readuntil(b"\\r\\n\\r\\n")
            await asyncio.sleep({ms} / 1000)
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    await (await asyncio.start_server(serve, "127.0.0.1", {port}, backlog=1024)).serve_forever()
asyncio.run(main())
"""

# A thread per connection; what a request does is the body of `handle`.
PYTHON_THREADS = """
import http.server, threading, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, wbufsize, disable_nagle_algorithm = "HTTP/1.1", -1, True
    def log_message(self, *_): pass
    def do_GET(self):
        handle(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
lock = threading.Lock()
def handle(path):
    {handle}
http.server.ThreadingHTTPServer(("127.0.0.1", {port}), Handler).serve_forever()
"""

PYTHON_SLEEPS = "time.sleep({ms} / 1000)"
PYTHON_BURNS = """until = time.thread_time() + {ms} / 1000
    while time.thread_time() < until: pass"""
PYTHON_LOCKS = """with lock:
        if path == "/hold": time.sleep({ms} / 1000)"""

# Writes its response in two pieces and leaves Nagle's algorithm on.
PYTHON_PIECES = """
import socket, threading
def serve(client):
    pending = b""
    while True:
        while b"\\r\\n\\r\\n" not in pending:
            more = client.recv(65536)
            if not more: return
            pending += more
        pending = pending.split(b"\\r\\n\\r\\n", 1)[1]
        client.send(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n")
        client.send(b"ok")
listener = socket.create_server(("127.0.0.1", {port}), backlog=1024)
while True: threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


@contextlib.contextmanager
def program(language, code, urgent=True, core=SERVER_CORE, **values):
    """A program of one of the texts above: its process and its port."""
    port = free_port()
    text = code.format(port=port, **values)
    command = ["node", "-e", text] if language == "node" else [sys.executable, "-c", text]
    with running(command, port, core, urgent) as process:
        yield process, port


def threads(handle, **values):
    """The text of a server with a thread per connection."""
    return PYTHON_THREADS.replace("{handle}", handle.format(**values))


NGINX = """
worker_processes 1; daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off; keepalive_requests 1000000;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  gzip on; gzip_comp_level 9; gzip_types text/plain; gzip_min_length 1; gzip_proxied any;
  {upstream}
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location / {{ root {folder}; default_type text/plain; {location} }}
  }}
}}
"""


@contextlib.contextmanager
def nginx(upstream=None, urgent=True, megabytes=0):
    """One process: a proxy, or files that it compresses. Its process and its port."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        port = free_port()
        block = f"upstream there {{ server 127.0.0.1:{upstream}; keepalive 16; }}" if upstream else ""
        location = 'proxy_pass http://there; proxy_http_version 1.1; proxy_set_header Connection "";' if upstream else ""
        text = "".join(f"{n * n * 7919:x} " for n in range(60_000))
        pathlib.Path(folder, "file.txt").write_text((text * 10)[: int(megabytes * 1e6)] or "ok")
        config = pathlib.Path(folder, "nginx.conf")
        config.write_text(NGINX.format(folder=folder, port=port, upstream=block, location=location))
        with running(["nginx", "-c", config], port, urgent=urgent) as process:
            yield process, port


# HTTP before a server of another protocol: for each connection one to that server, for each request one message.
GATEWAY = """
import asyncio
async def serve(reader, writer):
    there, to = await asyncio.open_connection("127.0.0.1", {behind})
    async def packet():
        head = await there.readexactly(4)
        return await there.readexactly(int.from_bytes(head[:3], "little"))
    async def answer():
        if not {mysql}:
            return await there.readuntil(b"\\r\\n")
        first = await packet()
        if first[0] in (0, 0xff):
            return
        ends = 0
        while ends < 2:
            body = await packet()
            ends += body[0] == 0xfe and len(body) < 9
    if {mysql}:
        await packet()
        login = (0x0000a285).to_bytes(4, "little") + (1 << 24).to_bytes(4, "little") + b"\\x21" + bytes(23) + b"root\\0\\0"
        to.write(len(login).to_bytes(3, "little") + b"\\1" + login)
        await packet()
    message = {message!r}
    try:
        while True:
            await reader.readuntil(b"\\r\\n\\r\\n")
            to.write(message)
            await answer()
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        to.close()
        writer.close()
async def main():
    await (await asyncio.start_server(serve, "127.0.0.1", {port}, backlog=1024)).serve_forever()
asyncio.run(main())
"""


def gateway(behind, message, mysql=False):
    return program("python", GATEWAY, core=CLIENT_CORE, behind=behind, message=message, mysql=mysql)


def redis_command(*words):
    return b"".join([b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)])


@contextlib.contextmanager
def redis(urgent=True):
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        command = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        with running(command, port, urgent=urgent) as process:
            yield process, port


@contextlib.contextmanager
def mariadb_data():
    """The folder of a MariaDB with a table of one row, for several servers one after the other."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as own:
        install = ["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={folder}", "--skip-test-db"]
        # Another server that begins removes temporary tables in the folder that they share by default.
        install.append(f"--tmpdir={own}")
        subprocess.run([*install, "--auth-root-authentication-method=normal"], check=True, capture_output=True)
        with mariadb(folder) as (_, port, ask):
            ask("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB; INSERT INTO d.t VALUES (1, 1)")
        yield folder


@contextlib.contextmanager
def mariadb(folder, urgent=True):
    """Its process, its port, and a function that lets it carry out statements."""
    port, unix = free_port(), f"{folder}/socket"
    command = ["mariadbd", "--no-defaults", "--user=root", f"--datadir={folder}", f"--port={port}", f"--socket={unix}"]
    client = ["mariadb", "--no-defaults", "-uroot", "--protocol=tcp", "--host=127.0.0.1", f"--port={port}"]
    ask = lambda text: subprocess.run([*client, "-e", text], check=True, capture_output=True)
    command += ["--bind-address=127.0.0.1", "--innodb-flush-log-at-trx-commit=0"]
    with running(command, port, urgent=urgent) as process:
            yield process, port, ask


def query(text):
    body = b"\x03" + text.encode()
    return len(body).to_bytes(3, "little") + b"\0" + body
