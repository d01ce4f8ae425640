"""A PostgreSQL server of its own for tests and tools: on a socket in a directory of its own, as an ordinary user."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS_TO_START = 60


def server_programs() -> Path | None:
    """Return the directory of the newest server's programs; None if none is installed."""
    initdbs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return initdbs[-1].parent if initdbs else None


class PostgresServer:
    """A server that can be stopped and started again. Its data are not synced: they are gone with the test."""

    def __init__(self, home: Path, programs: Path) -> None:
        self.home, self._programs = home, programs
        self._as_user: list[str] = []
        if os.geteuid() == 0:  # the server refuses to run as root
            self._as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
            shutil.chown(home, "postgres", "postgres")
        options = ["-U", "kdyno", "-A", "trust", "-E", "UTF8", "--no-sync"]
        self._call("initdb", "-D", str(home / "data"), *options)
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL of its database."""
        return f"postgresql://kdyno@/postgres?host={self.home}"

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        options = ["-D", str(self.home / "data"), "-k", str(self.home), "-c", "listen_addresses=", "-c", "fsync=off"]
        serve = [*self._as_user, str(self._programs / "postgres"), *options, "-c", "max_connections=200"]
        self._server = subprocess.Popen(
            serve, cwd=self.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        ready = [str(self._programs / "pg_isready"), "-q", "-h", str(self.home), "-U", "kdyno", "-d", "postgres"]
        deadline = time.monotonic() + SECONDS_TO_START
        while subprocess.run(ready, check=False).returncode != 0:
            assert self._server.poll() is None, "the PostgreSQL server ended at once"
            assert time.monotonic() < deadline, "the PostgreSQL server didn't start within a minute"
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the server at once: its clients lose their connections."""
        if self._server:
            self._server.send_signal(signal.SIGINT)  # "fast" shutdown
            self._server.wait(timeout=60)
            self._server = None

    def _call(self, program: str, *words: str) -> None:
        command = [*self._as_user, str(self._programs / program), *words]
        subprocess.run(command, check=True, cwd=self.home, stdout=subprocess.DEVNULL)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Yield a running server; it is gone at the end."""
    programs = server_programs()
    assert programs, "no PostgreSQL is installed (/usr/lib/postgresql/*/bin/initdb)"
    home = Path(tempfile.mkdtemp(prefix="kdyno-pg-", dir="/tmp"))
    try:
        server = PostgresServer(home, programs)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(home)
