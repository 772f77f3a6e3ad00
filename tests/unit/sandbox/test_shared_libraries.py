"""Shared libraries are found like the system's loader finds them, without starting anything."""

from __future__ import annotations

import errno
import os
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.sandbox.backends import sharedlibraries
from gistpoint.sandbox.backends.sharedlibraries import libraries_named, libraries_of, read_binary

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ELF files are Linux's")
OWN = Path(sys.executable).resolve()
MODULES = sorted(Path(sysconfig.get_path("platstdlib"), "lib-dynload").glob("_[a-d]*.so"))


@pytest.mark.skipif(shutil.which("ldd") is None, reason="there is no ldd to compare with")
def test_they_are_those_that_the_loader_opens() -> None:
    files = [OWN, *MODULES, *(Path(found) for name in ("sh", "ls", "sort") if (found := shutil.which(name)))]
    told = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False).stdout
    opened = {Path(path).resolve() for path in re.findall(r"(?:=>\s+)?(/\S+)\s+\(0x", told)}
    assert opened
    assert opened == {path.resolve() for path in libraries_of(files)}


def test_what_is_no_program_loads_nothing(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    assert read_binary(tmp_path / "script") is None
    assert libraries_of([tmp_path / "script", tmp_path / "absent"]) == set()


def elf(needed: str = "", folders: str = "", loader: str = "") -> bytes:
    """Return a 64-bit ELF file for this machine, with one needed library and one list of search folders."""
    machine = OWN.read_bytes()[18:20]
    strings = b"\0" + needed.encode() + b"\0" + folders.encode() + b"\0"
    runpath = 1 + len(needed) + 1
    dynamic = [(1, 1)] * bool(needed) + [(29, runpath)] * bool(folders) + [(5, 0x200), (0, 0)]
    table = b"".join(struct.pack("<qQ", *entry) for entry in dynamic)
    segments = [(1, 0, 0, 0x1000), (2, 0x400, 0x400, len(table))]
    if loader:
        segments.append((3, 0x600, 0x600, len(loader) + 1))
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<H", 3) + machine + struct.pack("<I", 1)
    header += struct.pack("<QQQIHHHHHH", 0, 64, 0, 0, 64, 56, len(segments), 0, 0, 0)
    for kind, offset, address, size in segments:
        header += struct.pack("<IIQQQQQQ", kind, 5, offset, address, address, size, size, 1)
    data = header.ljust(0x200, b"\0") + strings
    data = data.ljust(0x400, b"\0") + table
    return data.ljust(0x600, b"\0") + loader.encode() + b"\0"


def test_a_folder_beside_the_file_comes_first(tmp_path: Path) -> None:
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "libown.so.1").write_bytes(elf())
    (tmp_path / "module.so").write_bytes(elf("libown.so.1", "/nowhere:$ORIGIN/libs"))
    assert libraries_of([tmp_path / "module.so"]) == {tmp_path / "libs" / "libown.so.1"}


@pytest.mark.parametrize(
    ("needed", "folders", "loader"),
    [
        ("{outside}/libsecret.so", "", ""),
        ("libsecret.so", "{outside}", ""),
        ("libsecret.so", "$ORIGIN/../outside", ""),
        ("libsecret.so", "$ORIGIN/link", ""),
        ("", "", "{outside}/libsecret.so"),
        ("{outside}/secret.txt", "", ""),
    ],
)
def test_files_of_an_environment_name_nothing_outside_of_it(
    tmp_path: Path, needed: str, folders: str, loader: str
) -> None:
    environment, outside = tmp_path / "environment", tmp_path / "outside"
    environment.mkdir()
    outside.mkdir()
    (environment / "link").symlink_to(outside)
    (outside / "libsecret.so").write_bytes(elf())
    (outside / "secret.txt").write_text("secret")
    made = elf(*(text.format(outside=outside) for text in (needed, folders, loader)))
    (environment / "module.so").write_bytes(made)
    assert libraries_of([environment / "module.so"], owner=environment) == set()


def test_what_is_no_library_is_not_one_because_somebody_needs_it(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "module.so").write_bytes(elf(f"{tmp_path}/secret.txt"))
    assert libraries_of([tmp_path / "module.so"]) == set()


def test_an_environment_is_given_what_the_system_offers_to_all(tmp_path: Path) -> None:
    (tmp_path / "module.so").write_bytes(
        elf("libc.so.6" if sharedlibraries._system_libraries() else "libc.musl-x86_64.so.1")
    )
    found = libraries_of([tmp_path / "module.so"], owner=tmp_path)
    assert [path for path in found if "libc." in path.name]


def test_libraries_by_their_names(tmp_path: Path) -> None:
    for name in ("libodd.so.1", "libodd.so", "libodder.so.1", "libodd.a"):
        (tmp_path / name).touch()
    assert libraries_named(["odd"], near=[tmp_path / "libany.so"]) == {tmp_path / "libodd.so.1"}


@given(st.data())
def test_a_damaged_file_harms_nobody(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = bytearray(elf("libown.so.1", "$ORIGIN"))
    for _ in range(data.draw(st.integers(0, 8))):
        whole[data.draw(st.integers(4, 200))] = data.draw(st.integers(0, 255))
    folder = tmp_path_factory.getbasetemp() / "damaged"
    folder.mkdir(exist_ok=True)
    own, other = folder / "libown.so.1", folder / "damaged.so"
    own.write_bytes(elf())
    other.write_bytes(elf("libown.so.1", "$ORIGIN"))
    assert libraries_of([other], owner=folder) == {own}
    other.write_bytes(whole[: data.draw(st.integers(4, len(whole)))])
    assert libraries_of([other], owner=folder) <= {own}


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_library_is_not_missing_because_files_ran_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    program = tmp_path / "program"
    program.write_bytes(elf(needed="libone.so.1"))

    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", refused)
        with pytest.raises(OSError, match=re.escape(os.strerror(number))):
            read_binary(program)
    assert read_binary(program) is not None, "the failure is not remembered"
