"""Sets up the host side of attacks: decoy files, servers and a process, so that nothing real is at risk."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from gistpoint.core.unfinished import SCRATCH, mark
from gistpoint.sandbox.backends.base import Environment
from gistpoint.sandbox.environments.interpreters import find_interpreter, own_version

_ELSEWHERE = ("/usr/lib/python3", "/usr/local/lib", "/usr/lib", "/opt")
_LOOKED_AT = 1000


@dataclass
class Stage:
    """Files, servers and a process of the host that an attack must not reach."""

    base: Path
    token: str
    environment: Environment
    system: Path
    """A file of the system that no run needs, or a file of the stage if the system has none."""
    addresses: dict[str, tuple[int, int, object]] = field(default_factory=dict)
    victim: subprocess.Popen[bytes] | None = None

    @property
    def files(self) -> dict[str, Path]:
        """The files that attacks try to read, by their names in the table."""
        return {
            "secret": self.base / "home" / "secret",
            "answer": self.base / "tasks" / "other" / "answer" / "targets.json",
            "original": self.base / "original" / "package.py",
            "system": self.system,
        }

    @property
    def vendors(self) -> Path:
        """A folder of installed packages, one of which contains a copy of another package."""
        return self.base / "python" / "lib" / "python3" / "site-packages"

    def secret_of(self, target: str) -> bytes:
        """Return bytes that prove that `target` was read: the token, or a line of the file `system`."""
        if target != "system" or self.system.is_relative_to(self.base):
            return self.token.encode()
        # The longest line, because a short line could arrive over the pipe by chance.
        return max(self.system.read_bytes()[:_LOOKED_AT].split(b"\n"), key=len)

    def fresh_victim(self) -> subprocess.Popen[bytes]:
        """Return the process to attack; start a new process if the last was killed."""
        if self.victim is None or self.victim.poll() is not None:
            self.victim = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)", f"victim-{self.token}"],
                env={"SECRET": self.token},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        return self.victim

    def reset(self) -> None:
        """Undo the effects that the last attack may have left."""
        # The mode is set again, because mkdir applies the user's mask.
        shutil.rmtree(self.base / "outside", ignore_errors=True)
        (self.base / "outside").mkdir(mode=0o777)
        (self.base / "outside").chmod(0o777)
        private = self.base / "home" / "private"
        private.write_text("private")
        private.chmod(0o600)
        site = _site(self.environment)
        shutil.rmtree(site, ignore_errors=True)
        site.mkdir(parents=True)
        for place in ("/tmp", "/dev/shm"):
            for name in (
                "planted.pth",
                "sitecustomize.py",
                "conftest.py",
                "__pycache__/planted.cpython-311.pyc",
            ):
                path = Path(place, name)
                # Only files with the attack's content are removed, because the machine may have other
                # files of these names.
                with contextlib.suppress(OSError):
                    if path.read_text().startswith(("import os\n# victim-", "bytes# victim-")):
                        path.unlink()
            with contextlib.suppress(OSError):
                Path(place, "__pycache__").rmdir()
            shutil.rmtree(Path(place, "planted-1.dist-info"), ignore_errors=True)


def _unneeded(base: Path) -> Path:
    """Return a module that the system installed for its own Python, or a path for creating one."""
    for folder in _ELSEWHERE:
        for path in islice(Path(folder).rglob("*.py"), _LOOKED_AT):
            if path.is_file() and len(path.read_bytes()[:_LOOKED_AT]) == _LOOKED_AT:
                return path
    return base / "opt" / "package.py"


def _site(environment: Environment) -> Path:
    return environment.folder / "lib" / f"python{environment.version}" / "site-packages"


@contextlib.contextmanager
def staged() -> Iterator[Stage]:
    """Set up the stage and yield it; afterwards, end its servers and processes and remove it."""
    base = Path(tempfile.mkdtemp(prefix=f"{SCRATCH}attacks-{mark()}-")).resolve()
    interpreter = find_interpreter(own_version())
    folder = base / "environment"
    environment = Environment(folder, interpreter.path, interpreter.prefix, interpreter.version)
    stage = Stage(base, os.urandom(12).hex(), environment, _unneeded(base))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, base, ignore_errors=True)
        base.chmod(0o755)
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").symlink_to(interpreter.path)
        (folder / "pyvenv.cfg").write_text(f"home = {interpreter.path.parent}\n")
        carried = stage.vendors / "carrier" / "_vendor" / "package.py"
        for path in (*stage.files.values(), carried):
            if path.is_relative_to(base):
                path.parent.mkdir(parents=True)
                path.write_text(f"TOKEN = '{stage.token}'\n" if path == carried else stage.token)
        # Registered before the servers and the victim exist, so that a failure halfway ends them too.
        stack.callback(_end, stage)
        _serve(stage, stack)
        stage.reset()
        yield stage


def _end(stage: Stage) -> None:
    if stage.victim is not None:
        with contextlib.suppress(ProcessLookupError):
            stage.victim.send_signal(signal.SIGCONT)
        stage.victim.kill()
        stage.victim.wait()
    stage.reset()


def _serve(stage: Stage, stack: contextlib.ExitStack) -> None:
    """Start a server for each kind of address; each answers with the token."""
    path = str(stage.base / "engine.sock")
    servers: list[tuple[str, int, int, object]] = [
        ("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        ("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        ("unix", socket.AF_UNIX, socket.SOCK_STREAM, path),
    ]
    if sys.platform == "linux":
        servers.append(("abstract", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{stage.token[:8]}"))
    for name, family, kind, address in servers:
        server = stack.enter_context(socket.socket(family, kind))
        server.bind(address)  # type: ignore[arg-type]  # the stubs know no union of the families' addresses
        if name == "unix":
            Path(path).chmod(0o666)
        bound = server.getsockname()
        reachable = "\0" + bound[1:].decode() if isinstance(bound, bytes) else bound
        stage.addresses[name] = (int(family), int(kind), reachable)
        answer = f"{stage.token}\n".encode()
        threading.Thread(target=_answer, args=(server, kind, answer), daemon=True).start()


def _answer(server: socket.socket, kind: int, answer: bytes) -> None:
    with contextlib.suppress(OSError):
        if kind == socket.SOCK_STREAM:
            server.listen()
        while True:
            if kind == socket.SOCK_STREAM:
                client, _ = server.accept()
                with client, contextlib.suppress(OSError):
                    client.sendall(answer)
            else:
                _, sender = server.recvfrom(100)
                if sender:  # a datagram from a socket without a name can't be answered
                    server.sendto(answer, sender)
