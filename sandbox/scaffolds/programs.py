"""Programs that speak MCP as scaffolds.

Each is started in a sandbox, without the answers and without a network. Only a proxy to its model's host, and
the task's tools as its MCP server, lead out (decision 153). Its own tools are switched off as far as its
options allow; the remaining ones are recorded.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gistpoint.core.agents.scaffolds import ScaffoldError, ScaffoldIdentity, Seat
from gistpoint.core.canonical import sha256_of_text
from gistpoint.sandbox.endpoints.settings import EndpointSettings
from gistpoint.sandbox.layout import run_folder
from gistpoint.sandbox.scaffolds.confinement import WORK, Confined, killed_at_end, last_words, python
from gistpoint.sandbox.scaffolds.known_programs import PROGRAMS, PROMPT, AgentProgram
from gistpoint.sandbox.scaffolds.proxy import proxied

_PORT: Final = 8000
_GRACE_S: Final = 2.0
"""Seconds after the end of the attempt in which a program may still write its log."""
_TICK_S: Final = 0.1
_TO_PRINT_S: Final = 60.0
_MOST_LOG: Final = 256 << 20
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


@dataclass(frozen=True, slots=True)
class McpProgram:
    """An MCP program as a scaffold; implements `core.agents.scaffolds.Scaffold`."""

    program: AgentProgram
    endpoint: EndpointSettings
    path: Path
    """The program's file."""
    version: str

    @property
    def identity(self) -> ScaffoldIdentity:
        """The name, the version, and the hash of the prompt and the options."""
        program, model = self.program, self.endpoint.model
        parts = [PROMPT, *program.words(model), *program.files(model, "").values()]
        return ScaffoldIdentity(
            program.name,
            self.version,
            program.client_tools,
            sha256_of_text("\n".join(parts).replace(python(), "python")),
            relayed=True,
        )

    @property
    def command(self) -> list[str]:
        """The words of its command, as `AgentProgram` gives them."""
        return [self.program.command, *self.program.words(self.endpoint.model)]

    def attempt(self, seat: Seat) -> None:
        """Let the program work on an attempt; its own logs are copied to the seat's folder.

        Raises `ScaffoldError` if it fails.
        """
        with run_folder() as folder:
            home = folder / "home"
            self._lay_out(folder)
            with (
                proxied(seat, self.endpoint, folder / "model.sock"),
                seat.serve_tools(folder / "tools.sock"),
            ):
                process = self._confined(folder).start(talks=False)
                with killed_at_end(process):
                    _await_end(process, seat)
            _copy_logs(home, self.program.logs, seat.folder)
            printed = {name: last_words(folder, name) for name in ("errors.txt", "output.txt")}
            self._export(folder, seat.folder)
            has_failed = process.returncode not in (0, None) and not seat.over and not seat.has_problem
            if has_failed:
                words = next(filter(None, printed.values()), "it printed nothing")
                raise ScaffoldError(f"{self.program.name} failed: {words}")

    def _export(self, folder: Path, into: Path) -> None:
        """Keep the program's output, and its log if that has to be requested."""
        for name in ("output.txt", "errors.txt"):
            shutil.copyfile(folder / name, into / name)
        if self.program.export is None:
            return
        words = self.program.export((folder / "output.txt").read_text("utf-8", "replace"))
        if words:
            environment = self.program.environment(self.endpoint.model, self._url)
            confined = Confined([str(self.path), *words], folder, shown_for(self.path), environment)
            if _printed(confined):
                shutil.copyfile(folder / "output.txt", into / f"{self.program.name}.json")

    @property
    def _url(self) -> str:
        """The address of the proxy as the program sees it, with the path of the endpoint's."""
        return f"http://127.0.0.1:{_PORT}{urlsplit(self.endpoint.base_url).path.rstrip('/')}"

    def _lay_out(self, folder: Path) -> None:
        shutil.copyfile(Path(__file__).with_name("inside.py"), folder / "inside.py")
        (folder / "home").mkdir()
        for name, text in self.program.files(self.endpoint.model, self._url).items():
            path = folder / "home" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def _confined(self, folder: Path) -> Confined:
        program, model = self.program, self.endpoint.model
        forward = [python(), f"{WORK}/inside.py", "forward", str(_PORT), f"{WORK}/model.sock", "--"]
        return Confined(
            [*forward, str(self.path), *program.words(model)],
            folder,
            shown_for(self.path),
            program.environment(model, self._url),
        )


def _await_end(process: subprocess.Popen[bytes], seat: Seat) -> None:
    """Wait until a program ends, or until shortly after the seat ends."""
    over_at: float | None = None
    while process.poll() is None:
        if seat.over and over_at is None:
            over_at = time.monotonic()
        if over_at is not None and time.monotonic() - over_at > _GRACE_S:
            return
        time.sleep(_TICK_S)


def _copy_logs(home: Path, patterns: Sequence[str], into: Path) -> None:
    """Copy a program's logs, which it may have replaced with links to anything."""
    for pattern in patterns:
        for found in sorted(home.glob(pattern)):
            with suppress(OSError):
                if found.is_symlink() or not found.is_file() or found.stat().st_size > _MOST_LOG:
                    continue
                if not found.resolve().is_relative_to(home.resolve()):
                    continue
                shutil.copyfile(found, into / found.name, follow_symlinks=False)


def shown_for(program: Path) -> list[Path]:
    """Return the folders outside /usr that an npm program needs: those of its packages and of Node.js."""
    folders = [next((p for p in program.parents if p.name == "node_modules"), program.parent)]
    node = shutil.which("node")
    if node is not None:
        folders.append(Path(node).resolve().parent.parent)
    return [folder for folder in folders if not folder.is_relative_to("/usr")]


def mcp_program(name: str, endpoint: EndpointSettings) -> McpProgram:
    """Return the program with a name as a scaffold, with the model at an endpoint.

    Raises `ScaffoldError` if it is not installed, or does not report its version.
    """
    program = PROGRAMS[name]
    found = shutil.which(program.command)
    if found is None:
        raise ScaffoldError(f"{program.command} is not in PATH.", hint=f"`{program.install}` installs it.")
    path = Path(found).resolve()
    return McpProgram(program, endpoint, path, _version_of(path))


def _printed(confined: Confined) -> bool:
    """Run a program that only prints; return whether it exited successfully in time."""
    process = confined.start(talks=False)
    with killed_at_end(process), suppress(subprocess.TimeoutExpired):
        process.wait(_TO_PRINT_S)
    return process.returncode == 0


def _version_of(path: Path) -> str:
    with run_folder() as folder:
        (folder / "home").mkdir()
        _printed(Confined([str(path), "--version"], folder, shown_for(path)))
        printed = (folder / "output.txt").read_text("utf-8", "replace")
        version = _NUMBER.search(printed)
        if version is None:
            words = last_words(folder, "errors.txt") or "it printed nothing"
            raise ScaffoldError(f"{path.name} does not report its version: {words}")
        return version[0][:60]
