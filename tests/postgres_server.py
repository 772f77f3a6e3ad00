"""A PostgreSQL server for tests: its own folder and socket, run by an unprivileged user, killed at will."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from gistpoint.sessions.team.address import StoreAddress

_NOBODY = "nobody"
_WAIT_S = 120.0


def programs() -> Path | None:
    """Return the folder of the newest server's programs on this machine; None if none is installed."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    found = str(versions[-1]) if versions else shutil.which("initdb")
    return Path(found).parent if found else None


@dataclass
class PostgresServer:
    """A server in a folder, which can be reached only through its socket.

    It can be started, stopped and killed repeatedly.
    """

    root: Path
    port: int = 5432
    settings: tuple[str, ...] = ()
    """Further settings, as `name=value`; `listen_addresses` would open more than the socket."""
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The address as a user types it."""
        return f"postgresql://owner@/team?host={self.root / 'socket'}"

    @property
    def address(self) -> StoreAddress:
        """The parsed address."""
        from gistpoint.sessions.team.address import parse_address

        return parse_address(self.url)

    def start(self) -> None:
        """Start the server, whose folder is made at the first call; return when it answers.

        Raises `RuntimeError` with the end of its log if it ends, or does not answer within two minutes.
        """
        data = self.root / "data"
        if not data.exists():
            (self.root / "socket").mkdir(parents=True, exist_ok=True)
            if os.geteuid() == 0:
                nobody = pwd.getpwnam(_NOBODY)
                os.chown(self.root, nobody.pw_uid, nobody.pw_gid)
                os.chown(self.root / "socket", nobody.pw_uid, nobody.pw_gid)
                for place in (self.root, *self.root.parents):
                    with suppress(OSError):
                        place.chmod(place.stat().st_mode | 0o111)
            self.run(
                "initdb", "-D", str(data), "-U", "owner", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"
            )
        log = (self.root / "log").open("ab")
        self._process = subprocess.Popen(
            [
                *self._as_nobody(),
                *(str(self._program("postgres")), "-D", str(data), "-k", str(self.root / "socket")),
                *("-c", "listen_addresses=", "-c", f"port={self.port}"),
                *("-c", "shared_buffers=32MB", "-c", "max_connections=200"),
                *(word for setting in self.settings for word in ("-c", setting)),
            ],
            stdout=log,
            stderr=log,
            cwd="/",
        )
        log.close()
        until = time.monotonic() + _WAIT_S
        while (
            subprocess.call(
                [
                    str(self._program("pg_isready")),
                    "-q",
                    "-h",
                    str(self.root / "socket"),
                    "-p",
                    str(self.port),
                ]
            )
            != 0
        ):
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self.root / "log").read_text(encoding="utf-8", errors="replace")[-2000:])
            time.sleep(0.05)
        if not (self.root / "made").exists():
            self.run("createdb", "-h", str(self.root / "socket"), "-U", "owner", "team")
            (self.root / "made").touch()

    def stop(self) -> None:
        """Shut the server down cleanly, closing its connections."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill the server and its children with SIGKILL, as a power cut would."""
        if self._process is not None:
            for child in _children(self._process.pid):
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
        self._end(signal.SIGKILL)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the server and its children with SIGSTOP: connections stay open, and nothing answers."""
        assert self._process is not None
        found = [self._process.pid, *_children(self._process.pid)]
        for process in found:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in found:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

    def _end(self, by: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(by)
        self._process.wait(_WAIT_S)
        self._process = None

    def run(self, program: str, *arguments: str) -> None:
        """Run one of the server's programs as its user. Raises `RuntimeError` if it fails."""
        done = subprocess.run(
            [*self._as_nobody(), str(self._program(program)), *arguments],
            capture_output=True,
            cwd="/",
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr.decode(errors='replace')}")

    def _as_nobody(self) -> list[str]:
        """Return the prefix of a command that drops root, because the server refuses to run as root."""
        if os.geteuid() != 0:
            return []
        nobody = pwd.getpwnam(_NOBODY)
        return ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]

    def _program(self, name: str) -> Path:
        place = programs()
        assert place is not None, "PostgreSQL is not installed: apt-get install postgresql"
        return place / name


def free_port(address: str) -> int:
    """Return a port of an address on which nothing listens."""
    with socket.socket() as found:
        found.bind((address, 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    """Yield a running server in a new folder.

    It is not one of pytest's folders, which pytest closes to other users whenever another run begins.
    """
    root = Path(tempfile.mkdtemp(prefix="gistpoint-postgres-"))
    server = PostgresServer(root)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(root, ignore_errors=True)


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in found.read_text(encoding="ascii").split()] if found.exists() else []
