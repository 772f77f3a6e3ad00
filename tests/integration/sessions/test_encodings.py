"""Files in UTF-16 and UTF-32, which Windows writes, are read like those in UTF-8, also inside archives."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from recorded_runs import make_all

from gistpoint.sessions.records.archives import BytesBlob, in_utf8
from gistpoint.sessions.runs.opening import list_runs, open_run

ENCODINGS = {
    "utf-8-sig": lambda text: text.encode("utf-8-sig"),
    "utf-16-le": lambda text: b"\xff\xfe" + text.encode("utf-16-le"),
    "utf-16-be": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "utf-32": lambda text: text.encode("utf-32"),
}


def contents(path: Path) -> list[tuple[str, int, list[str]]]:
    """Return the format, the number of steps and all strings of each run in a file."""
    found = []
    for listed in list_runs([path]):
        document = open_run(listed.name)
        document.build()
        texts = ["".join(document.full_text(step.text)) for step in document.steps()]
        found.append((document.header.format, document.step_count, texts))
    return found


@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS)
def test_a_file_of_every_format_is_read_alike_in_every_encoding(
    encode: Callable[[str], bytes], tmp_path: Path
) -> None:
    for made in make_all(tmp_path / "made"):
        try:
            text = made.path.read_text(encoding="utf-8") if made.path.is_file() else None
        except UnicodeDecodeError:  # an archive
            text = None
        if text is None:
            continue
        again = tmp_path / made.path.name
        again.write_bytes(encode(text))
        expected = contents(made.path)
        assert expected
        assert contents(again) == expected, made.path.name


def test_a_member_of_an_archive_may_be_in_another_encoding(tmp_path: Path) -> None:
    made = next(one for one in make_all(tmp_path / "made") if one.path.is_file())
    data = made.path.read_text(encoding="utf-8").encode("utf-16")
    (tmp_path / "a.gz").write_bytes(gzip.compress(data))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.json", data)
    assert contents(tmp_path / "a.gz") == contents(tmp_path / "a.zip") == contents(made.path)


def test_what_is_not_valid_becomes_a_sign_and_ends_nothing() -> None:
    halves = b"\xff\xfe" + "a".encode("utf-16-le") + b"\x00\xd8" + "b".encode("utf-16-le") + b"c"
    read = in_utf8(BytesBlob(halves))
    assert read.read(0, read.size).decode() == "a\ufffdb\ufffd"
