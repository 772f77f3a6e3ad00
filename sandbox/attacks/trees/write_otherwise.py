"""Tries every other way to change the tests' bytes: links, modes, maps, descriptors, mounts."""

import contextlib
import ctypes
import mmap
import os
import subprocess
import tempfile
from collections.abc import Callable

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.join(HERE, "tests")
PATH = os.path.join(TESTS, "test_attacked.py")
PASSING = b"def test_it(): pass\ndef test_golden(): pass\ndef test_helped(): pass\n#"


def _other() -> str:
    for folder in (TESTS, HERE, tempfile.gettempdir()):
        with contextlib.suppress(OSError):
            path = os.path.join(folder, "other.py")
            with open(path, "wb") as file:
                file.write(PASSING)
            return path
    return os.devnull


def _modes() -> None:
    for path in (HERE, TESTS, PATH):
        os.chmod(path, 0o777)
    with open(PATH, "wb") as file:
        file.write(PASSING)


def _truncated() -> None:
    os.truncate(PATH, 0)


def _mapped() -> None:
    with open(PATH, "r+b") as file, mmap.mmap(file.fileno(), 0) as held:
        held[: len(PASSING)] = PASSING


def _reopened() -> None:
    held = os.open(PATH, os.O_RDONLY)
    again = os.open(f"/proc/self/fd/{held}", os.O_WRONLY | os.O_TRUNC)
    os.write(again, PASSING)


def _linked() -> None:
    link = os.path.join(tempfile.gettempdir(), "linked.py")
    os.link(PATH, link)
    with open(link, "wb") as file:
        file.write(PASSING)


def _replaced() -> None:
    os.replace(_other(), PATH)


def _removed() -> None:
    os.unlink(PATH)
    os.symlink(_other(), PATH)


def _exchanged() -> None:
    ctypes.CDLL(None).renameat2(-100, _other().encode(), -100, PATH.encode(), 2)


def _mounted() -> None:
    libc = ctypes.CDLL(None)
    libc.unshare(0x10020000)
    libc.mount(_other().encode(), PATH.encode(), None, 4096, None)
    libc.mount(b"none", HERE.encode(), None, 32 | 4096, None)


def _by_a_child() -> None:
    subprocess.run(["cp", _other(), PATH], check=True, capture_output=True)


WAYS: tuple[Callable[[], None], ...] = (
    _reopened, _linked, _mapped, _truncated, _exchanged, _replaced, _removed, _mounted, _by_a_child, _modes,
)  # fmt: skip

for way in WAYS:
    with contextlib.suppress(OSError, AttributeError, ValueError, subprocess.SubprocessError):
        way()


def f() -> str:
    return "wrong"
