"""Started as root before bubblewrap: shows it the folders that it needs, then becomes an ordinary user.

Its one argument is a JSON object: `sources` (host paths), `place` (an empty folder that everyone can reach), `user`,
`arguments` and `parent`. In a mount namespace of its own, each source appears as `place`/INDEX, also when it lies below
a folder that only root may enter. The namespace, with all of its mounts, ends with the process.
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


def main() -> None:
    """Do as the module says; only returns by way of an exit."""
    order = json.loads(sys.argv[1])
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(_CLONE_NEWNS), "a private mount namespace can't be made")
    _check(libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "mounts can't be made private")
    handles = [os.open(source, os.O_PATH | os.O_CLOEXEC) for source in order["sources"]]
    place = order["place"].encode()
    options = b"mode=0755,size=1m"
    _check(libc.mount(b"tmpfs", place, b"tmpfs", _MS_NOSUID | _MS_NODEV, options), "no folder can be mounted")
    for index, handle in enumerate(handles):
        target = os.path.join(order["place"], str(index))
        os.mkdir(target, 0o755)
        source = f"/proc/self/fd/{handle}".encode()
        _check(libc.mount(source, target.encode(), None, _MS_BIND | _MS_REC, None), f"{target} can't be mounted")
    os.setgroups([])
    os.setresgid(order["user"], order["user"], order["user"])
    os.setresuid(order["user"], order["user"], order["user"])
    libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    if os.getppid() != order["parent"]:
        sys.exit("gistpoint: the program that asked for this run is gone")
    os.execve(order["arguments"][0], order["arguments"], {})


if __name__ == "__main__":
    main()
