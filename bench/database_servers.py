"""MariaDB, PostgreSQL and Redis in temporary directories, for the benchmarks; each is stopped at the end of its `with` block."""
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from processes import SERVER_CORE, free_port, pinned


class Server:
    """A process with a directory and a port that no other server has."""

    ENDS_BY = signal.SIGTERM

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, free_port(), None

    def begin(self, command, ready, core):
        """Starts `command` on the CPUs `core`, everywhere if that is None, and waits until `ready` succeeds."""
        with open(self.folder + "/log", "a", encoding="utf-8") as log:
            start = subprocess.Popen if core is None else lambda *a, **k: pinned(core, *a, **k)
            self.process = start(command, stdout=log, stderr=log)
        for _ in range(300):
            if self.process.poll() is not None:
                break
            try:
                return ready()
            except subprocess.CalledProcessError:
                time.sleep(0.1)
        self.stop()
        sys.exit(f"{command[0]} does not start: {Path(self.folder, 'log').read_text(encoding='utf-8')[-600:]}")

    def stop(self):
        if self.process is None:
            return
        self.process.send_signal(self.ENDS_BY)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Mariadb(Server):
    def __init__(self, folder, *more, core=None):
        super().__init__(folder)
        self.socket = folder + "/socket"
        data = f"--datadir={folder}/data"
        install = ["mariadb-install-db", "--no-defaults", "--user=root", "--skip-test-db", data]
        install.append("--auth-root-authentication-method=normal")
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        command = ["mariadbd", "--no-defaults", "--user=root", data, f"--socket={self.socket}"]
        command += [f"--port={self.port}", "--bind-address=127.0.0.1", f"--pid-file={folder}/pid", *more]
        self.begin(command, lambda: self.ask("SELECT 1"), core)
        self.ask("CREATE DATABASE sbtest; CREATE USER app@'%'; GRANT ALL ON sbtest.* TO app@'%'")

    def ask(self, statement):
        command = ["mariadb", "--no-defaults", "--user=root", f"--socket={self.socket}", "-N", "-B"]
        return subprocess.run(command + ["-e", statement], check=True, capture_output=True, text=True).stdout

    def url(self):
        return f"mysql://app@127.0.0.1:{self.port}/sbtest"

    def sysbench(self, script, *words):
        where = ["--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={self.port}"]
        return ["sysbench", script, *where, "--mysql-user=app", "--mysql-db=sbtest", *words]


class Postgres(Server):
    # Without waiting for its clients.
    ENDS_BY = signal.SIGINT

    def __init__(self, folder, *more, core=None):
        super().__init__(folder)
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
        if not programs:
            sys.exit("PostgreSQL is not installed")
        self.programs = os.path.dirname(programs[-1])
        # It refuses to run as root.
        shutil.chown(folder, "postgres", "postgres")
        user = ["runuser", "-u", "postgres", "--"]
        data = folder + "/data"
        make = [*user, self.programs + "/initdb", "--no-sync", "-A", "trust", "-D", data]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
        Path(folder, "log").touch()
        words = ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", *more]
        command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
        command += [self.programs + "/postgres", "-D", data, "-p", str(self.port), "-k", folder, *words]
        self.begin(command, lambda: self.ask("SELECT 1", "postgres"), core)
        self.ask("CREATE DATABASE bench", "postgres")

    def ask(self, statement, database="bench"):
        command = ["psql", "-X", "-U", "postgres", "-At", "-h", self.folder, "-p", str(self.port), "-d", database]
        return subprocess.run(command + ["-c", statement], check=True, capture_output=True, text=True).stdout

    def url(self):
        return f"postgres://postgres@127.0.0.1:{self.port}/bench?sslmode=disable"

    def pgbench(self, *words):
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]
        return [self.programs + "/pgbench", *where, *words, "bench"]


class Redis(Server):
    def __init__(self, folder, *more, core=None):
        super().__init__(folder)
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        self.begin([*command, *more], lambda: self.ask("PING"), core)

    def ask(self, *words):
        command = ["redis-cli", "-p", str(self.port), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def url(self):
        return f"redis://127.0.0.1:{self.port}"


@contextmanager
def server(kind, *more, core=SERVER_CORE):
    """One of the three, with these options, in a new directory."""
    folder = tempfile.mkdtemp(prefix="bench-")
    started = None
    try:
        started = kind(folder, *more, core=core)
        yield started
    finally:
        if started:
            started.stop()
        shutil.rmtree(folder, ignore_errors=True)
