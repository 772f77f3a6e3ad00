"""Guards of a run: each permanently refuses something through an audit hook, and reports attempts.

They do not cover child processes and native code: if those matter, the codebase must be absent, and the
isolation must block the network.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

_PATHS = {"open": 0, "os.link": 0, "os.symlink": 0, "os.rename": 0, "shutil.copyfile": 0, "shutil.move": 0}


class ImportBlocker:
    """A guard that denies a gist the top-level modules `owned` and the files below `forbidden`.

    `report` is called with `import`, `read` or `preloaded`, and with the name of the module or the path, the
    first time that each combination occurs.
    """

    def __init__(
        self, owned: Iterable[str], forbidden: Iterable[str], report: Callable[[str, str], None]
    ) -> None:
        self.owned = frozenset(owned)
        self.forbidden = tuple(sorted({os.path.realpath(path) for path in forbidden}))
        self._report = report
        self._reported: set[tuple[str, str]] = set()
        self._busy = False

    def install(self) -> ImportBlocker:
        """Drop the owned modules that are loaded, install a finder and the audit hook; return the blocker."""
        for name in sorted(sys.modules):
            if self._owns(name):
                self._record("preloaded", name)
                del sys.modules[name]
        sys.meta_path.insert(0, self)
        sys.addaudithook(self._audit)
        return self

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise `ModuleNotFoundError` for an owned module, and leave all others to the next finders."""
        if self._owns(name):
            self._refuse(name)

    def _owns(self, name: object) -> bool:
        return isinstance(name, str) and name.partition(".")[0] in self.owned

    def _refuse(self, name: str) -> None:
        self._record("import", name)
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "import":
            if self._owns(arguments[0]):
                self._refuse(arguments[0])
        elif event in _PATHS:
            self._check_path(arguments[_PATHS[event]])

    def _check_path(self, path: object) -> None:
        if self._busy or not self.forbidden or not isinstance(path, (str, bytes, os.PathLike)):
            return
        # Resolving a path may itself raise these events.
        self._busy = True
        try:
            real = os.path.realpath(os.fsdecode(path))
        except (OSError, ValueError):
            return
        finally:
            self._busy = False
        for root in self.forbidden:
            if real == root or real.startswith(root + os.sep):
                self._record("read", real)
                raise PermissionError(13, "A gist may not read the codebase", real)

    def _record(self, event: str, name: str) -> None:
        if (event, name) not in self._reported:
            self._reported.add((event, name))
            self._report(event, name)


_NAMES = {"socket.getaddrinfo": 0, "socket.gethostbyname": 0, "socket.gethostbyaddr": 0}
_ADDRESSES = {"socket.connect": 1, "socket.sendto": 1}
_AGAIN, _UNREACHABLE = -3, 101


class NetworkGuard:
    """A guard that makes calls fail as without a network: no name resolves, and no address is reachable.

    The errors are the same under every isolation. Loopback addresses and Unix sockets stay usable. `report`
    is called with `network` and each host name or address, once for each.
    """

    def __init__(self, report: Callable[[str, str], None]) -> None:
        self._report = report
        self._reported: set[str] = set()
        self._own = {"localhost", "", "0.0.0.0", "::", "::1", "ip6-localhost", os.uname().nodename}

    def install(self) -> NetworkGuard:
        """Begin to refuse, permanently; return this object."""
        sys.addaudithook(self._audit)
        return self

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _NAMES:
            host = arguments[_NAMES[event]]
            if not self._is_local(host) and not _is_number(host):
                self._record(host)
                raise sys.modules["_socket"].gaierror(_AGAIN, "Temporary failure in name resolution")
        elif event in _ADDRESSES:
            address = arguments[_ADDRESSES[event]]
            if isinstance(address, tuple) and address and not self._is_local(address[0]):
                self._record(address[0])
                raise OSError(_UNREACHABLE, "Network is unreachable")

    def _is_local(self, host: object) -> bool:
        text = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        if not isinstance(text, str):
            return True
        return text.lower() in self._own or text.startswith("127.")

    def _record(self, host: object) -> None:
        text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
        if text not in self._reported:
            self._reported.add(text)
            self._report("network", text)


def _is_number(host: object) -> bool:
    """Whether a host is already an address, which needs no network to be resolved."""
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    return ":" in text or not text.strip("0123456789.")
