"""Docker engines for tests: in a mount namespace, on a TCP port, killed and restarted at will."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

_START = """
for folder in $HIDDEN; do mount -t tmpfs none "$folder" || exit 1; done
exec dockerd "$@"
"""


def can_start_engines() -> bool:
    """Return whether engines can be started on this machine."""
    return os.geteuid() == 0 and shutil.which("dockerd") is not None and shutil.which("unshare") is not None


class OwnEngine:
    """A context manager for an engine that is reached over loopback and sees none of the `hidden` folders."""

    def __init__(self, place: Path, hidden: Sequence[Path] = (), options: Sequence[str] = ()) -> None:
        self.place = place
        self.hidden = hidden
        self.options = options
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the engine and wait until it answers."""
        (self.place / "pid").unlink(missing_ok=True)
        arguments = [
            "--data-root", str(self.place / "data"), "--exec-root", str(self.place / "exec"),
            "--pidfile", str(self.place / "pid"), "--host", self.address, "--tls=false", "--storage-driver", "overlay2",
            "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false",
            "--userland-proxy=false", *self.options,
        ]  # fmt: skip
        with (self.place / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", _START, "sh", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "HIDDEN": " ".join(map(str, self.hidden))},
                start_new_session=True,
            )
        deadline = time.monotonic() + 300
        while not self._answers():
            assert self.process.poll() is None, (self.place / "log").read_text()
            assert time.monotonic() < deadline, (self.place / "log").read_text()
            time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
                return b" 200 " in connection.recv(100)
        except OSError:
            return False

    def end(self, how: signal.Signals) -> None:
        """Send a signal and wait until the engine has ended."""
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(30)
        # A killed engine leaves the PID file of its containerd, which dies with it; a new engine would wait
        # for that process.
        note = self.place / "exec" / "containerd" / "containerd.pid"
        if how is signal.SIGKILL and note.exists():
            deadline = time.monotonic() + 300
            while _runs(int(note.read_text())) and time.monotonic() < deadline:
                time.sleep(0.05)
            note.unlink()

    def __enter__(self) -> OwnEngine:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.end(signal.SIGTERM)


def _runs(pid: int) -> bool:
    try:
        state = (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"
