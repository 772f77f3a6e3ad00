"""Assembles the backends' filter on system calls, as classic BPF for x86-64 and aarch64.

Calls that a test suite does not need are refused, most of them with EPERM: for example, those on other
namespaces, mounts, kernel modules, keys, other processes' memory, io_uring, bpf and the clock. Everything
else is allowed. The numbers are from the kernel's call tables.
"""

from __future__ import annotations

import platform
import struct
from dataclasses import dataclass

_LOAD = 0x20
_EQUAL = 0x15
_AT_LEAST = 0x35
_ANY_BIT = 0x45
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERRNO = 0x00050000
_EPERM = 1
_ENOSYS = 38
_EAFNOSUPPORT = 97
# Offsets in struct seccomp_data; those of arguments are the offsets of their low words.
_AT_NUMBER = 0
_AT_ARCHITECTURE = 4
_AT_FIRST = 16
_AT_SECOND = 24
_CLONE_NEW_ANY = 0x7E020000  # all CLONE_NEW* flags that clone takes
_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
_TERMINAL_INJECTION = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_X32_BIT = 0x40000000

# System calls since Linux 5, whose numbers are the same on every architecture.
_SINCE_5 = {
    "pidfd_getfd": 438,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "quotactl_fd": 443,
}
_X86_64 = {
    "ptrace": 101,
    "syslog": 103,
    "personality": 135,
    "vhangup": 153,
    "modify_ldt": 154,
    "pivot_root": 155,
    "adjtimex": 159,
    "chroot": 161,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "sethostname": 170,
    "setdomainname": 171,
    "iopl": 172,
    "ioperm": 173,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "nfsservctl": 180,
    "lookup_dcookie": 212,
    "clock_settime": 227,
    "mbind": 237,
    "set_mempolicy": 238,
    "get_mempolicy": 239,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "migrate_pages": 256,
    "unshare": 272,
    "move_pages": 279,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "name_to_handle_at": 303,
    "open_by_handle_at": 304,
    "clock_adjtime": 305,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
    **_SINCE_5,
}
_AARCH64 = {
    "lookup_dcookie": 18,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "nfsservctl": 42,
    "chroot": 51,
    "vhangup": 58,
    "quotactl": 60,
    "acct": 89,
    "personality": 92,
    "unshare": 97,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "clock_settime": 112,
    "syslog": 116,
    "ptrace": 117,
    "reboot": 142,
    "sethostname": 161,
    "setdomainname": 162,
    "settimeofday": 170,
    "adjtimex": 171,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "swapon": 224,
    "swapoff": 225,
    "mbind": 235,
    "get_mempolicy": 236,
    "set_mempolicy": 237,
    "migrate_pages": 238,
    "move_pages": 239,
    "perf_event_open": 241,
    "fanotify_init": 262,
    "name_to_handle_at": 264,
    "open_by_handle_at": 265,
    "clock_adjtime": 266,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "finit_module": 273,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
    **_SINCE_5,
}

# Calls that are refused if no namespace hides the host: on shared memory, semaphores and queues of System V
# and POSIX, and on other processes' priorities and limits. Their effects outlive the run, or reach beyond it.
_SHARED_X86_64 = {
    "shmget": 29,
    "shmat": 30,
    "shmctl": 31,
    "semget": 64,
    "semop": 65,
    "semctl": 66,
    "msgget": 68,
    "msgsnd": 69,
    "msgrcv": 70,
    "msgctl": 71,
    "semtimedop": 220,
    "setpriority": 141,
    "mq_open": 240,
    "mq_unlink": 241,
    "ioprio_set": 251,
    "process_madvise": 440,
    "process_mrelease": 448,
}
_SHARED_AARCH64 = {
    "ioprio_set": 30,
    "setpriority": 140,
    "mq_open": 180,
    "mq_unlink": 181,
    "msgget": 186,
    "msgctl": 187,
    "msgrcv": 188,
    "msgsnd": 189,
    "semget": 190,
    "semctl": 191,
    "semtimedop": 192,
    "semop": 193,
    "shmget": 194,
    "shmctl": 195,
    "shmat": 196,
    "process_madvise": 440,
    "process_mrelease": 448,
}
# Calls that are allowed only on the calling process (0), each with the position of the argument that names
# the process.
_ON_ITSELF_X86_64 = {302: _AT_FIRST, 203: _AT_FIRST, 142: _AT_FIRST, 144: _AT_FIRST, 314: _AT_FIRST}
_ON_ITSELF_AARCH64 = {261: _AT_FIRST, 122: _AT_FIRST, 118: _AT_FIRST, 119: _AT_FIRST, 274: _AT_FIRST}
# kill, rt_sigqueueinfo, tkill, tgkill, rt_tgsigqueueinfo, pidfd_send_signal
_SIGNALS_X86_64 = {62, 129, 200, 234, 297, 424}
_SIGNALS_AARCH64 = {129, 130, 131, 138, 240, 424}


@dataclass(frozen=True, slots=True)
class Architecture:
    """The numbers that the filter needs for one architecture."""

    audit: int
    refused: dict[str, int]
    clone: int
    socket: int
    ioctl: int
    shared: dict[str, int]
    on_itself: dict[int, int]
    signals: set[int]
    clone3: int = 435


ARCHITECTURES = {
    "x86_64": Architecture(
        0xC000003E,
        _X86_64,
        clone=56,
        socket=41,
        ioctl=16,
        shared=_SHARED_X86_64,
        on_itself=_ON_ITSELF_X86_64,
        signals=_SIGNALS_X86_64,
    ),
    "aarch64": Architecture(
        0xC00000B7,
        _AARCH64,
        clone=220,
        socket=198,
        ioctl=29,
        shared=_SHARED_AARCH64,
        on_itself=_ON_ITSELF_AARCH64,
        signals=_SIGNALS_AARCH64,
    ),
}


def filter_program(
    machine: str | None = None, *, namespaces: bool = True, signals: bool = True
) -> bytes | None:
    """Return the filter for the architecture `machine`, by default this machine's; None if it is unknown.

    If `namespaces` is false, the filter also refuses all sockets, shared memory, semaphores and queues, and
    changes to other processes; if `signals` is false, it refuses to send any signal.
    """
    architecture = ARCHITECTURES.get(machine or platform.machine())
    if architecture is None:
        return None
    refused = set(architecture.refused.values())
    if not namespaces:
        refused |= set(architecture.shared.values())
    if not signals:
        refused |= architecture.signals
    program = [
        # Checked first, because the numbers below mean other calls on another architecture.
        _instruction(_LOAD, 0, 0, _AT_ARCHITECTURE),
        _instruction(_EQUAL, 1, 0, architecture.audit),
        _instruction(_RETURN, 0, 0, _KILL),
        _instruction(_LOAD, 0, 0, _AT_NUMBER),
        # x86-64's x32 calls carry an extra bit and would slip past the numbers below.
        _instruction(_AT_LEAST, 0, 1, _X32_BIT),
        _refuse(_EPERM),
    ]
    for number in sorted(refused):
        program += [_instruction(_EQUAL, 0, 1, number), _refuse(_EPERM)]
    # clone3 takes its flags by pointer, which a filter can't read; the C library falls back to clone.
    program += [_instruction(_EQUAL, 0, 1, architecture.clone3), _refuse(_ENOSYS)]
    program += _on_argument(
        architecture.clone, _AT_FIRST, [_instruction(_ANY_BIT, 0, 1, _CLONE_NEW_ANY)], _EPERM
    )
    injections = [
        _instruction(_EQUAL, 1, 0, _TERMINAL_INJECTION[0]),
        _instruction(_EQUAL, 0, 1, _TERMINAL_INJECTION[1]),
    ]
    program += _on_argument(architecture.ioctl, _AT_SECOND, injections, _EPERM)
    # Without a network namespace, even the loopback is that of the machine.
    families = _FAMILIES if namespaces else ()
    allowed = [
        _instruction(_EQUAL, len(families) - place, 0, family) for place, family in enumerate(families)
    ]
    program += _on_argument(architecture.socket, _AT_FIRST, allowed, _EAFNOSUPPORT)
    if not namespaces:
        for number, offset in architecture.on_itself.items():
            program += _on_argument(number, offset, [_instruction(_EQUAL, 1, 0, 0)], _EPERM)
    program.append(_instruction(_RETURN, 0, 0, _ALLOW))
    return b"".join(program)


def _on_argument(number: int, offset: int, tests: list[bytes], error: int) -> list[bytes]:
    """Return the instructions that refuse call `number` depending on an argument.

    The instructions load the argument, let `tests` fall through to the refusal or jump past it, and load the
    number again.
    """
    body = [_instruction(_LOAD, 0, 0, offset), *tests, _refuse(error), _instruction(_LOAD, 0, 0, _AT_NUMBER)]
    return [_instruction(_EQUAL, 0, len(body), number), *body]


def _refuse(error: int) -> bytes:
    return _instruction(_RETURN, 0, 0, _ERRNO | error)


def _instruction(code: int, if_true: int, if_false: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
