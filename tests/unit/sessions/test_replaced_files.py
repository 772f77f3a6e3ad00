"""A file that replaces another one of the same size and time of modification is read anew."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gistpoint.sessions.runs.cut_files import is_cut
from gistpoint.sessions.runs.opening import list_runs, open_run

CHAT = json.dumps([{"role": "user", "content": "Go"}, {"role": "assistant", "content": "I have done it."}])
ATIF = json.dumps(
    {
        "schema_version": "ATIF-v1.6",
        "session_id": "s",
        "agent": {"name": "a", "version": "1"},
        "steps": [{"step_id": 1, "source": "user", "message": "Go"}],
    }
)


def moved_over(path: Path, text: str) -> None:
    other = path.with_name("other")
    other.write_text(text, encoding="utf-8")
    os.utime(other, (1e9, 1e9))
    other.replace(path)


def rewritten(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    os.utime(path, (1e9, 1e9))


WAYS = [moved_over, rewritten]
Way = Callable[[Path, str], None]


def dialogues(*ids: str) -> str:
    lines = ({"id": id, "messages": json.loads(CHAT)} for id in ids)
    return "".join(f"{json.dumps(line)}\n" for line in lines)


@pytest.mark.parametrize("way", WAYS)
def test_a_replaced_file_is_recognised_anew(tmp_path: Path, way: Way) -> None:
    path, size = tmp_path / "run.json", max(len(CHAT), len(ATIF))
    for text, name in ((CHAT, "chat"), (ATIF, "atif"), (CHAT, "chat")):
        way(path, text.ljust(size))
        assert [listed.header and listed.header.format for listed in list_runs([path])] == [name]
        document = open_run(path)
        document.build()
        assert document.header.format == name
        assert document.step_count == {"chat": 2, "atif": 1}[name]


@pytest.mark.parametrize("way", WAYS)
def test_the_runs_of_a_replaced_file_are_found_anew(tmp_path: Path, way: Way) -> None:
    path = tmp_path / "rows.jsonl"
    for ids in (("one", "two"), ("six", "ten"), ("two", "one")):
        way(path, dialogues(*ids))
        names = [listed.name for listed in list_runs([path])]
        assert [open_run(name).header.id for name in names] == [*ids]


@pytest.mark.parametrize("way", WAYS)
def test_whether_a_replaced_file_is_cut_off_is_found_out_anew(tmp_path: Path, way: Way) -> None:
    path = tmp_path / "run.json"
    for text, cut in ((CHAT, False), (CHAT[:-1] + ",", True), (CHAT, False)):
        way(path, text)
        assert is_cut(path) is cut
