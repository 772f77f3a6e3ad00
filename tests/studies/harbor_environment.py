"""An environment for Harbor that needs no Docker, and an agent that leaves prepared files.

Harbor imports both by path: `--env harbor_environment:Sandboxed` and `--agent harbor_environment:Leaving`,
with this folder in PYTHONPATH. It runs under Python 3.12 with Harbor's package, and without gistpoint.

`Sandboxed` carries out a Dockerfile that contains only the instructions of an exported task: the base image
is replaced by this machine's programs and a virtual environment. Commands run as root by bubblewrap, without a
network; if the task allows hosts, one port on this machine can be reached through a relay.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

_base: Any = importlib.import_module("harbor.environments.base")
_capabilities: Any = importlib.import_module("harbor.environments.capabilities")
_agents: Any = importlib.import_module("harbor.agents.base")

FOLDERS = (
    "repo",
    "gist",
    "tests",
    "solution",
    "logs",
    "tmp",
    "run",
    "root",
    "home",
    "opt",
    "var",
    "proc",
    "dev",
)
"""The folders below the environment's root that exist from the start."""
_COMMAND_S = 3600
_VARIABLE = re.compile(r'ENV (\w+)="?(.*?)"?')
_INSTALL = re.compile(
    r"RUN pip install --no-cache-dir (.*)-r /opt/gistpoint/requirements\.txt && rm -r /opt/gistpoint"
)
_RELAY = """
import os, socket, sys, threading
def pump(one, other):
    while data := one.recv(65536):
        other.sendall(data)
    other.shutdown(socket.SHUT_WR)
def serve(listening):
    while True:
        near, _ = listening.accept()
        far = socket.socket(socket.AF_UNIX)
        far.connect('/run/relay')
        for pair in ((near, far), (far, near)):
            threading.Thread(target=pump, args=pair, daemon=True).start()
listening = socket.create_server(('127.0.0.1', int(sys.argv[1])))
if os.fork() == 0:
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    serve(listening)
listening.close()
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Connects a port inside to the socket of the relay outside, and runs a command."""


class DockerfileError(Exception):
    """A Dockerfile contains an instruction that is not one of an exported task, or one that fails."""


class Sandboxed(_base.BaseEnvironment):  # type: ignore[misc]
    """A folder that bubblewrap presents as the root of a machine.

    `folder` receives the roots and the virtual environments, `python` is the interpreter of these, and
    `reached` is the port on this machine to which connections to an allowed 127.0.0.1 lead.
    """

    def __init__(self, *given: Any, folder: str, python: str, reached: int = 0, **known: Any) -> None:
        self._folder, self._python, self._reached = Path(folder).resolve(), python, int(reached)
        self._variables: dict[str, str] = {}
        self._packages: Path | None = None
        self._relay: asyncio.AbstractServer | None = None
        self._root: Path | None = None
        super().__init__(*given, **known)

    @staticmethod
    def type() -> str:
        """Return the name of this kind of environment."""
        return "gistpoint-bubblewrap"

    @property
    def capabilities(self) -> Any:
        """The features that Harbor may request: no network, or allowed hosts."""
        return _capabilities.EnvironmentCapabilities(
            disable_internet=True,
            network_allowlist=True,
            network_allowlist_hostnames=True,
            network_allowlist_ipv4_addresses=True,
            dynamic_network_policy=True,
        )

    @property
    def root(self) -> Path:
        """The folder on this machine. Raises `RuntimeError` before the start."""
        if self._root is None:
            raise RuntimeError("The environment has not started.")
        return self._root

    def _validate_definition(self) -> None:
        if not (self.environment_dir / "Dockerfile").is_file():
            raise FileNotFoundError(f"{self.environment_dir} has no Dockerfile.")

    async def _apply_network_policy(self, network_policy: Any) -> None:
        """Do nothing: every command reads the policy."""

    async def start(self, force_build: bool) -> None:
        """Carry out the Dockerfile. Raises `DockerfileError` for an unknown or failing instruction."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._root = Path(tempfile.mkdtemp(prefix="root-", dir=self._folder))
        self.root.chmod(0o755)
        for name in FOLDERS:
            (self.root / name).mkdir()
        (self.root / "tmp").chmod(0o1777)
        for mount in self._mounts:  # the folders of Harbor's logs, which Harbor expects to exist
            self._place(mount["target"]).mkdir(parents=True, exist_ok=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            if Path("/", name).exists():
                (self.root / name).symlink_to(f"usr/{name}")
        for line in (self.environment_dir / "Dockerfile").read_text("utf-8").splitlines():
            await self._build(line)
        self._relay = await asyncio.start_unix_server(self._connected, self.root / "run" / "relay")

    async def _build(self, line: str) -> None:
        if line.startswith(("#", "ARG ", "FROM ", "WORKDIR ", "COPY requirements.txt ")) or not line:
            return
        if match := _INSTALL.fullmatch(line):
            requirements = self.environment_dir / "requirements.txt"
            self._packages = await asyncio.to_thread(self._installed, requirements, match[1].split())
        elif match := _VARIABLE.fullmatch(line):
            self._variables[match[1]] = match[2]
        elif line == "ADD tree.tar /repo":
            with tarfile.open(self.environment_dir / "tree.tar") as archive:
                archive.extractall(self.root / "repo", filter="tar")
        elif line == "COPY . /tests/":
            shutil.copytree(self.environment_dir, self.root / "tests", dirs_exist_ok=True)
        elif line.startswith("RUN mkdir -p /"):
            self._place(line.removeprefix("RUN mkdir -p ")).mkdir(parents=True, exist_ok=True)
        elif line.startswith("RUN ["):
            ended = await self.exec(shlex.join(json.loads(line.removeprefix("RUN "))))
            if ended.return_code:
                raise DockerfileError(f"{line}: {ended.stderr}")
        else:
            raise DockerfileError(f"Not an instruction of an exported task: {line}")

    def _installed(self, requirements: Path, options: list[str]) -> Path:
        """Return a virtual environment with the packages, which is made once for equal requirements."""
        hash = hashlib.sha256(requirements.read_bytes() + self._python.encode()).hexdigest()[:16]
        place = self._folder / f"packages-{hash}"
        # The path of a virtual environment is in its scripts, so it is made in place; the mark comes last.
        if not (place / "complete").exists():
            with contextlib.ExitStack() as stack:
                lock = stack.enter_context((self._folder / f"packages-{hash}.lock").open("w"))
                importlib.import_module("fcntl").flock(lock, 2)
                if not (place / "complete").exists():
                    shutil.rmtree(place, ignore_errors=True)
                    subprocess.run([self._python, "-m", "venv", "--without-pip", place], check=True)
                    install = [
                        "uv",
                        "pip",
                        "install",
                        "--no-config",
                        "--quiet",
                        "--python",
                        place / "bin" / "python",
                    ]
                    subprocess.run([*install, *options, "-r", requirements], check=True)
                    (place / "complete").touch()
        return place

    async def stop(self, delete: bool) -> None:
        """Close the relay, and delete the root if `delete`."""
        if self._relay is not None:
            self._relay.close()
        if delete and self._root is not None:
            await asyncio.to_thread(shutil.rmtree, self._root, ignore_errors=True)

    def _place(self, path: str | Path) -> Path:
        """Return the location on this machine of a path in the environment.

        Raises `ValueError` if a link leads out.
        """
        place = (self.root / str(path).lstrip("/")).resolve()
        if not place.is_relative_to(self.root):
            raise ValueError(f"{path} leads out of the environment.")
        return place

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Copy a file into the environment."""
        place = self._place(target_path)
        place.parent.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(shutil.copy2, source_path, place)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Copy the content of a folder into the environment."""
        await asyncio.to_thread(
            shutil.copytree, source_dir, self._place(target_dir), symlinks=True, dirs_exist_ok=True
        )

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Copy a file out of the environment."""
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(shutil.copy2, self._place(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Copy the content of a folder out of the environment."""
        await asyncio.to_thread(
            shutil.copytree, self._place(source_dir), target_dir, symlinks=True, dirs_exist_ok=True
        )

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> Any:
        """Run a command as root, and return its output and its exit code.

        Raises `ValueError` for any other user, and `TimeoutError` if it takes too long.
        """
        if self._resolve_user(user) not in (None, "root", 0):
            raise ValueError(f"The user {user!r} does not exist here.")
        arguments = self._bubblewrap(cwd or self.task_env_config.workdir or "/")
        path = "/usr/local/bin:/usr/bin:/bin"
        if self._packages is not None:
            path = f"{self._packages}/bin:{path}"
        known = {
            "PATH": path,
            "HOME": str(Path.home()),
            "LANG": "C.UTF-8",
            **self._variables,
            **(self._merge_env(env) or {}),
        }
        process = await asyncio.create_subprocess_exec(
            *arguments,
            *self._through_relay(),
            *("bash", "-c", command),
            env=known,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, error = await asyncio.wait_for(process.communicate(), timeout_sec or _COMMAND_S)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            raise
        texts = {"stdout": out.decode("utf-8", "replace"), "stderr": error.decode("utf-8", "replace")}
        return _base.ExecResult(**texts, return_code=process.returncode)

    def _bubblewrap(self, folder: str) -> list[str]:
        """Return the bubblewrap command to put before a command.

        It creates no user namespace, because the verifier switches from root to another user.
        """
        arguments = ["bwrap", "--die-with-parent", "--new-session", "--cap-add", "ALL"]
        arguments += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
        arguments += [
            "--bind",
            str(self.root),
            "/",
            "--ro-bind",
            "/usr",
            "/usr",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
        ]
        # The base image of a solver that may not run code has no Python.
        if self._packages is None:
            for file in Path("/usr/bin").glob("python3*"):
                arguments += ["--ro-bind", "/dev/null", str(file.resolve())]
        else:
            base = Path(self._python).resolve().parents[1]
            for place in (base, self._packages):
                # bubblewrap would make the parents for root alone, and the tests run as another user.
                (self.root / str(place).lstrip("/")).mkdir(parents=True, exist_ok=True)
                arguments += ["--ro-bind", str(place), str(place)]
        return [*arguments, "--chdir", folder]

    def _through_relay(self) -> list[str]:
        """Return the program that opens the way to the allowed port; empty if there is none, or no Python."""
        allowed = self._network_is_allowlist and self._packages is not None and self._reached
        return ["python3", "-I", "-c", _RELAY, str(self._reached)] if allowed else []

    async def _connected(self, near: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client of the relay to the port, if the current policy allows this machine."""
        if not (self._network_is_allowlist and "127.0.0.1" in self.network_policy.allowed_hosts):
            writer.close()
            return
        far, sender = await asyncio.open_connection("127.0.0.1", self._reached)
        await asyncio.gather(_pump(near, sender), _pump(far, writer), return_exceptions=True)


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    async for data in _pieces(source):
        target.write(data)
        await target.drain()
    target.close()


async def _pieces(source: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while data := await source.read(65536):
        yield data


class Leaving(_agents.BaseAgent):  # type: ignore[misc]
    """An agent that uploads the folders `repo` and `gist` in `folder/TASK/kind` to the environment.

    If its settings include an MCP server, it also makes the calls in `folder/TASK/kind/calls.json`.
    """

    capabilities = importlib.import_module("harbor.agents.capabilities").AgentCapabilities(
        mcp_servers=True, mcp_http_headers=True
    )

    def __init__(self, *given: Any, folder: str, kind: str, **known: Any) -> None:
        self._folder, self._kind = Path(folder), kind
        super().__init__(*given, **known)

    @staticmethod
    def name() -> str:
        """Return the agent's name."""
        return "leaving"

    def version(self) -> str:
        """Return the agent's version."""
        return "1"

    async def setup(self, environment: Any) -> None:
        """Do nothing."""

    async def run(self, instruction: str, environment: Any, context: Any) -> None:
        """Upload the prepared files, and make the calls."""
        place = self._folder / environment.environment_name / self._kind
        for name in ("repo", "gist"):
            if (place / name).is_dir():
                await environment.upload_dir(place / name, f"/{name}")
        calls = place / "calls.json"
        if self.mcp_servers and calls.exists():
            await self._call(json.loads(calls.read_text("utf-8")))

    async def _call(self, calls: list[tuple[str, dict[str, Any]]]) -> None:
        session: Any = importlib.import_module("mcp")
        transport: Any = importlib.import_module("mcp.client.streamable_http")
        (server,) = self.mcp_servers
        headers = {
            name: value.replace("${GISTPOINT_TOKEN}", os.environ["GISTPOINT_TOKEN"])
            for name, value in server.headers.items()
        }
        async with contextlib.AsyncExitStack() as stack:
            streams = await stack.enter_async_context(
                transport.streamablehttp_client(server.url, headers=headers)
            )
            client = await stack.enter_async_context(session.ClientSession(*streams[:2]))
            await client.initialize()
            for name, arguments in calls:
                answer = await client.call_tool(name, arguments)
                with (self.logs_dir / "calls.txt").open("a", encoding="utf-8") as log:
                    log.write(f"{name}: {answer.content[0].text[-2000:]}\n")
