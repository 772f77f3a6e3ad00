"""Restricts a process and all its children with Landlock and seccomp, using system calls alone.

Imported by `enter.py` if its order has `confine`; needs nothing but ctypes. The numbers are those of
`linux/landlock.h`; the three system calls have the same number on all architectures.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _SECCOMP_FILTER = 22, 38, 2

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_BY_VERSION = {1: (1 << 13) - 1, 2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEV}
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEV
_BIND_TCP, _CONNECT_TCP = 1, 2
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


_libc = ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    result: int = _libc.syscall(ctypes.c_long(number), *arguments)
    return result


def landlock_version() -> int:
    """Return the version of Landlock's interface; 0 if the kernel has none, or if it is switched off."""
    if sys.platform != "linux":
        return 0
    return max(0, _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG)))


def rights_of(version: int) -> int:
    """Return all file rights that a version of Landlock can restrict."""
    return sum(rights for since, rights in _BY_VERSION.items() if since <= version)


def confine(order: dict[str, dict[str, list[str]]], version: int, program: bytes) -> None:
    """Restrict this process to the files of `order`, and to the system calls that `program` allows.

    The process also gives up the network and signals to other processes, as far as the version of Landlock
    can refuse these. `order` names paths under `read` (files and folders to read and execute), `look` (only
    to read), `list` (folders whose names may be listed) and `write` (everything is allowed), each as names
    grouped by folder. A missing path is skipped. Raises `OSError` if the kernel refuses a call, or if
    files or memory run out.
    """
    handled = rights_of(version)
    network = _BIND_TCP | _CONNECT_TCP if version >= 4 else 0
    scoped = _ABSTRACT_SOCKETS | _SIGNALS if version >= 6 else 0
    attributes = struct.pack("=QQQ", handled, network, scoped)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _checked(
        _call(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0)), "landlock"
    )
    looking = READ_FILE | READ_DIR
    for kind, rights in (
        ("read", EXECUTE | looking),
        ("look", looking),
        ("list", READ_DIR),
        ("write", handled),
    ):
        for folder, names in order[kind].items():
            for name in names:
                _allow(ruleset, os.path.join(folder, name), rights & handled)
    # Without this, only a privileged process may restrict itself: a set-user-id program could escape.
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _checked(_call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)), "landlock_restrict_self")
    os.close(ruleset)
    # The filter comes last, because it may refuse the calls that restrict the files.
    instructions = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: a count, padding up to the pointer, the pointer
    filter_address = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    _checked(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, filter_address, 0, 0), "seccomp")


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _EXHAUSTED:  # without this rule, a file that exists would be refused later
            raise
        return
    try:
        # The kernel refuses a rule that grants rights of folders to a file.
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, handle)
        kind, flags = ctypes.c_int(_PATH_BENEATH), ctypes.c_uint32(0)
        _checked(_call(_ADD_RULE, ctypes.c_int(ruleset), kind, rule, flags), path)
    finally:
        os.close(handle)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result
