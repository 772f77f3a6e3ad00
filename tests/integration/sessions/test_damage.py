"""Damaged and hostile files: readable parts are shown, others are refused with a reason, nothing crashes."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard
from examples import share
from mutants import deepened, mutants, read_all
from recorded_runs import make_all

from gistpoint.sessions.records.archives import RunFileError
from gistpoint.sessions.records.model import StepKind
from gistpoint.sessions.runs.cut_files import says_cut
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import ListedRun, list_runs, open_run


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    made = make_all(tmp_path_factory.mktemp("sources"))
    return [item.path.read_bytes() for item in made if item.path.is_file()]


def test_no_mutant_breaks_the_reader(sources: list[bytes], tmp_path: Path) -> None:
    for name, data in mutants(sources, share(300)):
        path = tmp_path / "mutant"
        path.write_bytes(data)
        try:
            read_all(path)
        except Exception as error:
            raise AssertionError(name) from error


def test_no_format_breaks_on_a_value_nested_deep(sources: list[bytes], tmp_path: Path) -> None:
    path, shown = tmp_path / "deep", 0
    for data in (data for source in sources for data in deepened(source)):
        path.write_bytes(data)
        assert read_all(path, steps=2) < 10
        with contextlib.suppress(RunFileError):
            shown += open_run(path).build() is None
    assert shown > 150


def messages(count: int) -> list[dict[str, str]]:
    return [{"role": "user" if n % 2 else "assistant", "content": f"message {n}"} for n in range(count)]


def opened(path: Path, data: bytes) -> RunDocument:
    path.write_bytes(data)
    document = open_run(path)
    document.build()
    return document


def test_a_cut_file_of_any_format_is_named_as_cut(tmp_path: Path) -> None:
    """The file ends within a JSON value; the end of a line or of Markdown could be the real end."""
    unnamed = []
    for item in make_all(tmp_path / "made"):
        data = item.path.read_bytes() if item.path.is_file() else b""
        if not data.startswith((b"{", b"[")):
            continue
        closing = data.rstrip().rfind(b"}", 0, len(data.rstrip()) - 1)
        for at in (len(data) // 2, len(data) * 4 // 5, closing + 1, len(data.rstrip()) - 1):
            cut = data[:at]
            if is_json(cut.rsplit(b"\n", 1)[-1]) or is_json(cut):
                continue
            path = tmp_path / item.path.name
            path.write_bytes(cut)
            for listed in list_runs([path]):
                said = [listed.problem] if listed.header is None else read_warnings(listed)
                if not any(map(says_cut, said)) and listed.header is not None:
                    unnamed.append(f"{item.format} {item.path.name} at {at} of {len(data)}: {said}")
    assert not unnamed, "\n".join(unnamed)


def is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return not text.strip()
    return True


def read_warnings(listed: ListedRun) -> tuple[str, ...]:
    document = open_run(listed.name, known=listed.format)
    document.build()
    return document.header.warnings


@pytest.mark.parametrize("indent", [None, 2])
def test_a_broken_record_costs_no_other(indent: int | None, tmp_path: Path) -> None:
    text = json.dumps({"messages": messages(20)}, indent=indent)
    document = opened(tmp_path / "a", text.replace('"message 7"', 'message 7"').encode())
    damaged = [step.index for step in document.steps() if step.kind is StepKind.DAMAGED]
    assert len(damaged) == 1
    assert document.step_count >= 19
    assert document.warnings


@pytest.mark.parametrize("indent", [None, 2])
def test_a_cut_file_shows_all_before_the_cut(indent: int | None, tmp_path: Path) -> None:
    text = json.dumps({"messages": messages(20)}, indent=indent).encode()
    document = opened(tmp_path / "a", text[: text.index(b"message 15") + 4])
    assert [step.text for step in document.steps()][:15] == [f"message {n}" for n in range(15)]
    assert document.record_count == 16
    assert len(document.warnings) == 1
    assert "The file ends within record 16" in document.warnings[0]


def test_a_half_written_last_line_is_shown_raw(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps(message) for message in messages(6))
    document = opened(tmp_path / "a", (lines + '\n{"role": "user", "cont').encode())
    assert document.record_count == 7
    assert document.step(document.step_count - 1).text == '{"role": "user", "cont'
    assert "Record 7" in document.warnings[0]


def test_lines_without_an_object_are_told_with_their_number(tmp_path: Path) -> None:
    said = [json.dumps({"role": role, "content": role}) for role in ("user", "assistant")]
    path = tmp_path / "a"
    path.write_text("\n".join([said[0], "\0" * 500, "null", '"str"', "7", f"\0\0{said[1]}", ""]))
    document = open_run(path)
    document.build()
    told = [" ".join(warning.split()[:2]) for warning in document.warnings]
    assert told == [f"Record {number}," for number in (2, 3, 4, 5)]
    assert "NUL" in document.warnings[0]
    assert "null" in document.warnings[1]
    assert document.step(document.step_count - 1).text == "assistant"


def test_text_is_not_touched(tmp_path: Path) -> None:
    text = "[tag=value: list[int] \x1b[31m\r\n\x00 \u202e é \ud83d\ude00"
    document = opened(tmp_path / "a", json.dumps([{"role": "user", "content": text}, *messages(2)]).encode())
    assert document.step(0).text == text.encode("utf-16", "surrogatepass").decode("utf-16")


def test_deep_nesting_is_refused_with_its_reason(tmp_path: Path) -> None:
    deep = b"[" * 2_000_000
    document = opened(
        tmp_path / "a", b'{"messages": [{"role": "user", "content": "x"}, {"role": "user", "content": ' + deep
    )
    assert document.step(0).text == "x"
    assert "nested deeper" in document.warnings[0]


def test_a_line_beyond_the_limit_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a"
    line = json.dumps(messages(1)[0]).encode()
    with path.open("wb") as file:
        file.write(line + b"\n" + line + b"\n")
        file.seek(100 << 20)
        file.write(b"x\n" + line + b"\n")
    document = open_run(path)
    document.build()
    assert [step.kind is StepKind.DAMAGED for step in document.steps()] == [False, False, True, False]
    assert "longer than 64 MB" in document.warnings[0]
    assert len(document.step(2).text) < 100_000


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run.json", b'{"messages": [' + b" " * 100_000_000)
    with pytest.raises(RunFileError, match="decompression bomb"):
        open_run(path)
    assert "decompression bomb" in next(list_runs([path])).problem


def test_a_gzip_and_a_zstd_bomb_are_refused(tmp_path: Path) -> None:
    data = b'{"messages": [' + b" " * 100_000_000
    (tmp_path / "a.gz").write_bytes(gzip.compress(data, 6))
    (tmp_path / "a.zst").write_bytes(zstandard.ZstdCompressor().compress(data))
    for name in ("a.gz", "a.zst"):
        with pytest.raises(RunFileError, match="decompression bomb"):
            open_run(tmp_path / name)


def test_paths_that_climb_and_links_are_refused(tmp_path: Path) -> None:
    run = json.dumps(messages(3)).encode()
    tar = tmp_path / "runs.tar.gz"
    with tarfile.open(tar, "w:gz") as archive:
        for name in ("../outside.json", "/absolute.json", "good.json"):
            info = tarfile.TarInfo(name)
            info.size = len(run)
            archive.addfile(info, io.BytesIO(run))
        link = tarfile.TarInfo("link.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    listed = list(list_runs([tar]))
    assert [bool(entry.problem) for entry in listed] == [True, True, False, True]
    assert open_run(listed[2].name).step(0).text == "message 0"
    for entry in (listed[0], listed[3]):
        with pytest.raises(RunFileError, match="refused"):
            open_run(entry.name)


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tar.zst", "zst", "gz"])
def test_every_container_opens_by_its_content(kind: str, tmp_path: Path) -> None:
    run = json.dumps(messages(3)).encode()
    path = tmp_path / "whatever"
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("some folder/run#1.json", run)
    elif kind in ("zst", "gz"):
        path.write_bytes(gzip.compress(run) if kind == "gz" else zstandard.ZstdCompressor().compress(run))
    else:
        plain = io.BytesIO()
        with tarfile.open(fileobj=plain, mode="w") as archive:
            info = tarfile.TarInfo("some folder/run#1.json")
            info.size = len(run)
            archive.addfile(info, io.BytesIO(run))
        data = plain.getvalue()
        data = gzip.compress(data) if kind == "tar.gz" else data
        path.write_bytes(zstandard.ZstdCompressor().compress(data) if kind == "tar.zst" else data)
    listed = list(list_runs([path]))
    assert len(listed) == 1
    assert ("#some%20folder/run%231.json" in listed[0].name) == (kind not in ("zst", "gz"))
    assert [step.text for step in open_run(listed[0].name).steps()] == [f"message {n}" for n in range(3)]


def test_a_cut_zip_shows_the_members_before_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"{number}.json", json.dumps(messages(400 + number)))
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b"PK\x03\x04")])
    assert len(list(list_runs([path]))) == 2


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 900, b"\x7fELF" + b"\0" * 99, b"hello", b"{}", b"[]", b"[1, 2]", b'"x"', b"{", b"["]
)
def test_what_is_no_run_is_a_mistake_of_the_users(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(RunFileError):
        open_run(tmp_path / "a")
    assert next(list_runs([tmp_path / "a"])).problem
    assert list(list_runs([tmp_path])) == []


def test_a_flood_of_records_is_read_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gistpoint.sessions.records.limits.RECORDS", 500)
    document = opened(tmp_path / "a", json.dumps(messages(900)).encode())
    assert document.record_count == 500
    assert "Only the first 500 records" in document.warnings[0]


def test_a_file_that_grew_says_so(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps(message) for message in messages(6)) + "\n"
    document = opened(tmp_path / "a", lines.encode())
    assert not document.changed
    with (tmp_path / "a").open("a") as file:
        file.write(lines)
    assert document.changed
    again = open_run(tmp_path / "a")
    again.build()
    assert again.record_count == 12
