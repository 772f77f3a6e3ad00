"""Mounts, as root, the folders that a command needs, and becomes the command as an ordinary user.

Its one argument is a JSON object: `sources` (host paths), `place` (a folder that everyone can reach, or ""),
`user`, `arguments` and `parent`. In a new mount namespace, each source appears as `place`/INDEX, even if it
is below a folder that not everyone may enter. Without a place each source stays at its path, and an empty
folder covers the outermost folder above it that not everyone may enter. The namespace, with all of its
mounts, ends with the process (decision 9).
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

_CLONE_NEWNS = 0x20000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        sys.exit(f"gistpoint: {what}: {os.strerror(number)}")


def _closed_above(path: str) -> str:
    """Return the outermost folder above `path` that not everyone may enter; empty if there is none."""
    here = ""
    for part in os.path.dirname(path).split("/"):
        here = here.rstrip("/") + "/" + part
        if not os.stat(here).st_mode & 0o001:
            return here
    return ""


def _show(libc: ctypes.CDLL, targets: list[tuple[str, str]], covered: set[str]) -> None:
    """Mount empty folders over `covered`, and each source at its target below one of them."""
    # Opened before the empty folders cover them.
    handles = [os.open(source, os.O_PATH | os.O_CLOEXEC) for source, _ in targets]
    options = b"mode=0755,size=1m"
    for place in sorted(covered):
        flags = _MS_NOSUID | _MS_NODEV
        _check(libc.mount(b"tmpfs", place.encode(), b"tmpfs", flags, options), "no folder can be mounted")
    shown: list[str] = []
    for number, (_, target) in enumerate(targets):
        if any(target.startswith(other + "/") for other in shown):
            continue
        os.makedirs(target, mode=0o755, exist_ok=True)
        path = f"/proc/self/fd/{handles[number]}".encode()
        _check(
            libc.mount(path, target.encode(), None, _MS_BIND | _MS_REC, None), f"{target} can't be mounted"
        )
        shown.append(target)


def main() -> None:
    """Run the program, as the module's docstring describes; this process becomes the command."""
    os.umask(0o022)
    order = json.loads(sys.argv[1])
    libc = ctypes.CDLL(None, use_errno=True)
    sources: list[str] = order["sources"]
    closed = (
        {} if order["place"] else {source: cover for source in sources if (cover := _closed_above(source))}
    )
    if order["place"] or closed:
        _check(libc.unshare(_CLONE_NEWNS), "a private mount namespace can't be made")
        # Made private, because on most systems a mount would otherwise appear on the host as well.
        _check(libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "mounts can't be made private")
        if order["place"]:
            place: str = order["place"]
            _show(libc, [(source, f"{place}/{index}") for index, source in enumerate(sources)], {place})
        else:
            _show(libc, [(source, source) for source in sorted(closed)], set(closed.values()))
    os.setgroups([])
    os.setresgid(order["user"], order["user"], order["user"])
    os.setresuid(order["user"], order["user"], order["user"])
    libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    # The parent may have died before the signal was requested.
    if os.getppid() != order["parent"]:
        sys.exit("gistpoint: the program that asked for this run is gone")
    os.execve(order["arguments"][0], order["arguments"], {})


if __name__ == "__main__":
    main()
