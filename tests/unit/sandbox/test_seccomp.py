"""The filter is executed by a few lines that imitate the kernel."""

from __future__ import annotations

import struct

import pytest

from gistpoint.sandbox.backends.seccomp import ARCHITECTURES, filter_program

ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS, EAFNOSUPPORT = (0x00050000 | number for number in (1, 38, 97))


def judge(machine: str, number: int, *arguments: int, audit: int | None = None, **kind: bool) -> int:
    program = filter_program(machine, **kind)
    assert program is not None
    data = struct.pack("=IIQ", number, audit or ARCHITECTURES[machine].audit, 0)
    data += struct.pack("=6Q", *(list(arguments) + [0] * 6)[:6])
    accumulator, place = 0, 0
    while True:
        code, if_true, if_false, value = struct.unpack_from("=HBBI", program, place * 8)
        place += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif code == 0x06:
            return value
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[
                code
            ]
            place += if_true if holds else if_false


@pytest.fixture(params=sorted(ARCHITECTURES))
def machine(request):
    return request.param


def test_refused_calls(machine):
    for name, number in ARCHITECTURES[machine].refused.items():
        assert judge(machine, number) == EPERM, name


def test_calls_that_a_suite_needs(machine):
    architecture = ARCHITECTURES[machine]
    special = {architecture.clone, architecture.clone3, architecture.socket, architecture.ioctl}
    others = set(range(460)) - set(architecture.refused.values()) - special
    assert {judge(machine, number) for number in others} == {ALLOW}


def test_threads_and_forks_but_no_namespaces(machine):
    clone = ARCHITECTURES[machine].clone
    assert judge(machine, clone, 0x11) == ALLOW
    assert judge(machine, clone, 0x3D0F00) == ALLOW
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert judge(machine, clone, flag | 0x11) == EPERM
    assert judge(machine, ARCHITECTURES[machine].clone3) == ENOSYS


def test_socket_families(machine):
    socket = ARCHITECTURES[machine].socket
    families = {family: judge(machine, socket, family) for family in range(46)}
    assert {family for family, answer in families.items() if answer == ALLOW} == {1, 2, 10, 16}
    assert set(families.values()) == {ALLOW, EAFNOSUPPORT}


def test_terminal_injection(machine):
    ioctl = ARCHITECTURES[machine].ioctl
    assert [judge(machine, ioctl, 0, request) for request in (0x5412, 0x541C, 0x5413)] == [
        EPERM,
        EPERM,
        ALLOW,
    ]


def test_other_architectures(machine):
    assert judge(machine, 1, audit=0x40000003) == KILL
    assert judge(machine, 0x40000000 | 1) == EPERM
    assert filter_program("riscv64") is None


def test_without_namespaces_there_is_no_socket_and_nothing_shared(machine):
    architecture = ARCHITECTURES[machine]
    for family in (1, 2, 10, 16, 17, 40):
        assert judge(machine, architecture.socket, family, namespaces=False) == EAFNOSUPPORT
    for name, number in architecture.shared.items():
        assert judge(machine, number, namespaces=False) == EPERM, name
        assert judge(machine, number) == ALLOW, name


def test_without_namespaces_limits_and_scheduling_are_changed_on_oneself_alone(machine):
    architecture = ARCHITECTURES[machine]
    for number in architecture.on_itself:
        assert judge(machine, number, 0, namespaces=False) == ALLOW
        assert judge(machine, number, 4242, namespaces=False) == EPERM
        assert judge(machine, number, 4242) == ALLOW


def test_signals_are_refused_where_asked(machine):
    for number in ARCHITECTURES[machine].signals:
        assert judge(machine, number, 1, 9, namespaces=False) == ALLOW
        assert judge(machine, number, 1, 9, namespaces=False, signals=False) == EPERM


def test_programs_stay_below_the_kernels_bound(machine):
    program = filter_program(machine, namespaces=False, signals=False)
    assert program is not None
    assert len(program) // 8 < 4096
