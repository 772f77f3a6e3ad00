"""Calls uv, which finds, fetches and installs wheels, and never builds them (decision 38).

uv gets only those of the user's settings that are for locating and fetching packages. A setting that makes uv
build a distribution, or start an environment's own interpreter, is never passed on, because that would run
untrusted code.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gistpoint.core.errors import CancelledError, EnvironmentBuildError
from gistpoint.core.locations import read_toml
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.unfinished import scratch_folder

WHEELS_ALONE = ("--only-binary", ":all:")
"""The arguments of every call that resolves or installs packages."""
_TICK_S = 0.1
_MAX_LOG = 1 << 20
_PASSED = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SSL_CLIENT_CERT",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NETRC",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
)
_PASSED_OF_UV = re.compile(
    r"UV_(INDEX\w*|DEFAULT_INDEX|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|OFFLINE|CACHE_DIR|NO_CACHE|KEYRING_PROVIDER"
    r"|CREDENTIALS_DIR|INSECURE_HOST|NATIVE_TLS|SYSTEM_CERTS|HTTP_\w+|REQUEST_TIMEOUT|CONCURRENT_(DOWNLOADS|INSTALLS)"
    r"|EXCLUDE_NEWER|PRERELEASE|PYTHON_(PREFERENCE|INSTALL_DIR)|(NO_)?MANAGED_PYTHON)"
)
_KEPT_SETTINGS = frozenset(
    {
        "allow-insecure-host",
        "cache-dir",
        "concurrent-downloads",
        "concurrent-installs",
        "exclude-newer",
        "extra-index-url",
        "find-links",
        "http-proxy",
        "https-proxy",
        "index",
        "index-strategy",
        "index-url",
        "keyring-provider",
        "native-tls",
        "no-cache",
        "no-index",
        "no-proxy",
        "offline",
        "prerelease",
        "python-preference",
        "system-certs",
    }
)


@dataclass(frozen=True, slots=True)
class UvResult:
    """The result of a call of uv: `output` is its standard output, `log` everything else it printed."""

    ok: bool
    output: str
    log: str


@dataclass(frozen=True, slots=True)
class KnownMetadata:
    """Metadata of a distribution, given to uv so that it consults no other source.

    Without a version, the metadata is valid for every version.
    """

    name: str
    version: str = ""
    requirements: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    requires_python: str = ""

    def table(self) -> dict[str, Any]:
        """Return the metadata in the format of uv's settings."""
        optional = {"version": self.version, "requires-python": self.requires_python}
        return {
            "name": self.name,
            "requires-dist": list(self.requirements),
            "provides-extra": list(self.extras),
            **{key: value for key, value in optional.items() if value},
        }


def uv_binary() -> str:
    """Return the path of the uv that is installed with gistpoint."""
    import uv

    return os.fsdecode(uv.find_uv_bin())


def uv_environment() -> dict[str, str]:
    """Return uv's environment variables by name, with the user's indexes, credentials and proxies."""
    kept = {key: value for key, value in os.environ.items() if key in _PASSED or _PASSED_OF_UV.fullmatch(key)}
    return {**kept, "UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1", "UV_NO_PROGRESS": "1"}


def call_uv(
    arguments: Sequence[str],
    *,
    standard_input: str = "",
    known: Sequence[KnownMetadata] = (),
    shelf: str | None = None,
    on_line: Callable[[str], None] | None = None,
    cancel: CancelToken = NEVER,
    timeout_s: float = 900.0,
) -> UvResult:
    """Run uv, and return the result; after `timeout_s` seconds uv is stopped, and the result is not `ok`.

    It runs in an empty folder with settings that are written for this call, so that no project's settings
    apply. `known` contains metadata for uv, and `shelf` is an additional folder of wheels. Raises
    `CancelledError` if stopped, and `EnvironmentBuildError` if the user's settings can't be read.
    """
    import tomli_w

    settings = _user_settings()
    if known:
        settings["dependency-metadata"] = [item.table() for item in known]
    if shelf is not None:  # an argument would replace the user's own
        _merge(settings, {"find-links": [shelf]})
    with scratch_folder("uv") as neutral:
        file = Path(neutral, "settings.toml")
        # Written for each call, because a project's or the user's file could make uv build (decision 38).
        file.write_text(tomli_w.dumps(settings), "utf-8")
        return run_program(
            [uv_binary(), *arguments, "--config-file", str(file)],
            folder=neutral,
            environment=uv_environment(),
            standard_input=standard_input,
            on_line=on_line,
            cancel=cancel,
            timeout_s=timeout_s,
        )


def run_program(
    command: Sequence[str],
    *,
    folder: str,
    environment: Mapping[str, str],
    standard_input: str = "",
    on_line: Callable[[str], None] | None = None,
    cancel: CancelToken = NEVER,
    timeout_s: float = 900.0,
) -> UvResult:
    """Run a program in `folder`, with only this environment, and return the result.

    After `timeout_s` seconds the program is killed, and the result is not `ok`. Raises `CancelledError` if
    stopped.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output:
        given.write(standard_input.encode())
        given.seek(0)
        process = subprocess.Popen(
            command,
            stdin=given,
            stdout=output,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        with process:
            try:
                log = _follow(process, on_line, cancel, time.monotonic() + timeout_s)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    # The whole group, so that no process that uv has started remains.
                    os.killpg(process.pid, signal.SIGKILL)
        output.seek(0)
        return UvResult(process.returncode == 0, output.read().decode("utf-8", "replace"), log)


def _user_settings() -> dict[str, Any]:
    """Return the user's and the machine's settings for locating and fetching packages, by their keys.

    Raises `EnvironmentBuildError` if a file can't be read.
    """
    merged: dict[str, Any] = {}
    for path in _settings_files():
        try:
            read = read_toml(path)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise EnvironmentBuildError(
                f"{path}, a file with settings of uv, can't be read: {error}.",
                hint="Correct it, or move it away.",
            ) from error
        _merge(merged, read)
    return merged


def _settings_files() -> Iterator[Path]:
    """Yield the paths of files that uv would read outside of a project, highest precedence first."""
    if named := os.environ.get("UV_CONFIG_FILE"):
        yield Path(named)
    elif os.environ.get("UV_NO_CONFIG", "").lower() in ("", "0", "false"):
        yield Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "uv" / "uv.toml"
        for folder in (os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep):
            yield Path(folder) / "uv" / "uv.toml"
        yield Path("/etc/uv/uv.toml")


def _merge(settings: dict[str, Any], weaker: Mapping[str, Any]) -> None:
    """Add the settings of `weaker` that are in `_KEPT_SETTINGS`, also those below `pip`.

    Lists are joined; otherwise an existing value is kept.
    """
    for key, value in weaker.items():
        if key == "pip" and isinstance(value, dict):
            _merge(settings.setdefault(key, {}), value)
        # Only the listed keys: a user's `no-binary` would override `WHEELS_ALONE` (decision 38).
        elif key not in _KEPT_SETTINGS:
            continue
        elif key not in settings:
            settings[key] = value
        elif isinstance(settings[key], list) and isinstance(value, list):
            settings[key] = [*settings[key], *value]


class _Log:
    """The lines that a process prints, up to a limit, and the last line if it is incomplete."""

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        self.lines = list[str]()
        self._on_line = on_line
        self._incomplete = b""
        self._size = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, and report each line that they complete; keep up to `_MAX_LOG` characters."""
        *complete, self._incomplete = (self._incomplete + chunk).split(b"\n")
        for raw in complete:
            line = raw.decode("utf-8", "replace").rstrip()
            self._size += len(line)
            if self._size < _MAX_LOG:
                self.lines.append(line)
            if self._on_line is not None and line:
                self._on_line(line)

    @property
    def text(self) -> str:
        """All lines, joined."""
        return "\n".join([*self.lines, self._incomplete.decode("utf-8", "replace")]).strip()


def _follow(
    process: subprocess.Popen[bytes],
    on_line: Callable[[str], None] | None,
    cancel: CancelToken,
    deadline: float,
) -> str:
    """Return what a process prints to standard error until its end or the deadline.

    Only the first MiB of whole lines is kept. Raises `CancelledError` if stopped.
    """
    assert process.stderr is not None
    descriptor = process.stderr.fileno()
    log = _Log(on_line)
    os.set_blocking(descriptor, False)
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            if cancel.cancelled:
                raise CancelledError("Stopped at your request.")
            if time.monotonic() > deadline:
                log.lines.append("It was stopped at its time limit.")
                break
            if not selector.select(_TICK_S):
                continue
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                process.wait()
                break
            log.feed(chunk)
    return log.text
