"""Calling uv: its output as it comes, stopped on a cancel, with no more of the user's environment than it needs."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gistpoint.core.errors import CancelledError
from gistpoint.sandbox.interpreters import uv_binary

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken

_TICK_S = 0.1
_MAX_LOG = 1 << 20
# A build may run code of the package that it builds: it gets what finds indexes, proxies and caches, and no more.
_PASSED = (
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class UvResult:
    """What a call of uv left: `output` is its standard output, `log` everything else it printed."""

    ok: bool
    output: str
    log: str


def uv_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment in which uv runs: the user's settings of uv, proxies and certificates."""
    kept = {key: value for key, value in os.environ.items() if key in _PASSED or key.startswith("UV_")}
    for inherited in ("UV_PYTHON", "UV_PROJECT", "UV_PROJECT_ENVIRONMENT", "UV_CONSTRAINT", "UV_OVERRIDE"):
        kept.pop(inherited, None)
    return {**kept, "UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1", "UV_NO_PROGRESS": "1", **(extra or {})}


def call_uv(
    arguments: Sequence[str],
    *,
    standard_input: str = "",
    on_line: Callable[[str], None] | None = None,
    cancel: CancelToken | None = None,
    timeout_s: float = 900.0,
) -> UvResult:
    """Run uv to its end. Raises `CancelledError` when cancelled; past `timeout_s` it is stopped and not ok.

    It runs in an empty folder, so that no project's own settings, such as constraints, take part.
    """
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryDirectory(prefix="gistpoint-uv-") as neutral,
    ):
        given.write(standard_input.encode())
        given.seek(0)
        process = subprocess.Popen(
            [uv_binary(), *arguments],
            stdin=given,
            stdout=output,
            stderr=subprocess.PIPE,
            cwd=neutral,
            env=uv_environment(),
            start_new_session=True,
        )
        with process:
            try:
                log = _follow(process, on_line, cancel, time.monotonic() + timeout_s)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        output.seek(0)
        return UvResult(process.returncode == 0, output.read().decode("utf-8", "replace"), log)


def _follow(
    process: subprocess.Popen[bytes],
    on_line: Callable[[str], None] | None,
    cancel: CancelToken | None,
    deadline: float,
) -> str:
    assert process.stderr is not None
    descriptor, rest, lines, size = process.stderr.fileno(), b"", list[str](), 0
    os.set_blocking(descriptor, False)
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            if cancel is not None and cancel.cancelled:
                raise CancelledError("Stopped at your request.")
            if time.monotonic() > deadline:
                lines.append("uv was stopped at its time limit.")
                break
            if not selector.select(_TICK_S):
                continue
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                process.wait()
                break
            *whole, rest = (rest + chunk).split(b"\n")
            for line in (raw.decode("utf-8", "replace").rstrip() for raw in whole):
                size += len(line)
                if size < _MAX_LOG:
                    lines.append(line)
                if on_line is not None and line:
                    on_line(line)
    return "\n".join([*lines, rest.decode("utf-8", "replace")]).strip()
