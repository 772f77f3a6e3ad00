"""A format is added without changes to any other."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from project_files import ROOT
from recorded_runs import make_all
from shelves import declare, install_package

import gistpoint.sessions.formats as folder
from gistpoint.core.errors import UserError
from gistpoint.sessions.annotations.keys import run_key
from gistpoint.sessions.exports.registry import exporter
from gistpoint.sessions.formats import registry
from gistpoint.sessions.formats.chat import Chat
from gistpoint.sessions.records.archives import BytesBlob, RunFileError
from gistpoint.sessions.records.format import RunEntry
from gistpoint.sessions.records.model import Run
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.runs.searching import Query, search_document


class Turtle(Chat):
    name = "turtle"

    def sniff(self, probe: FileProbe) -> float:
        return 0.6 if probe.object.get("turtle") else 0.0

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        yield RunEntry("", Run("turtle"))


TURTLE = Turtle()


def test_the_guide_lists_the_formats_that_have_a_reader() -> None:
    text = (
        (ROOT / "docs/guide/runs.md")
        .read_text(encoding="utf-8")
        .partition("## Formats")[2]
        .partition("\n## ")[0]
    )
    assert set(re.findall(r"^\| `([\w-]+)` \|", text, re.M)) == {known.name for known in registry.formats()}


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    point = EntryPoint("turtle", f"{__name__}:TURTLE", registry.ENTRY_POINTS)
    monkeypatch.setattr(EntryPoint, "load", lambda self: TURTLE)
    declare(monkeypatch, registry.ENTRY_POINTS, [point])
    registry.formats.cache_clear()
    registry._installed.cache_clear()
    yield
    registry.formats.cache_clear()
    registry._installed.cache_clear()


@pytest.mark.usefixtures("installed")
def test_an_installed_format_is_asked_where_no_built_in_one_is_certain(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "x"}], "turtle": 1}))
    assert registry.recognise(FileProbe(BytesBlob(path.read_bytes()))).name == TURTLE.name
    assert open_run(path).step(0).text == "x"


def test_a_format_that_cannot_be_loaded_is_named_with_a_file_of_no_known_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package(tmp_path / "shelf", monkeypatch, "[gistpoint.formats]\ncart = cart_formats:FORMAT\n")
    registry.formats.cache_clear()
    registry._installed.cache_clear()
    known, unknown = make_all(tmp_path / "made")[0], tmp_path / "unknown"
    unknown.write_text('{"basket": 1}')
    try:
        assert open_run(known.path).header.format == known.format
        with pytest.raises(
            RunFileError, match=r"'cart' \(gistpoint\.formats, from cart 1\.0\) can't be loaded"
        ):
            open_run(unknown)
        listed = [item.problem for item in list_runs([unknown])]
        assert len(listed) == 1
        assert "Ask the author of the plugin" in listed[0]
    finally:
        registry.formats.cache_clear()
        registry._installed.cache_clear()


def test_an_exporter_that_cannot_be_loaded_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package(tmp_path / "shelf", monkeypatch, "[gistpoint.exporters]\ncart = cart_exports:write\n")
    with pytest.raises(UserError, match=r"'cart' \(gistpoint\.exporters, from cart 1\.0\) can't be loaded"):
        exporter("cart")
    with pytest.raises(UserError, match=r"Known: atif, .*cast, cart"):
        exporter("trolley")


def test_every_format_has_files_that_are_made_of_it(tmp_path: Path) -> None:
    assert {made.format for made in make_all(tmp_path)} == {format.name for format in registry._built_in()}


def test_no_module_names_the_others() -> None:
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(folder.__path__, f"{folder.__name__}.")
    ]
    formats = [module for module in modules if hasattr(module, "FORMAT")]
    assert len(formats) == len(registry._built_in())
    for module in formats:
        source = inspect.getsource(module)
        assert not [other for other in formats if other != module and f"{other.__name__} import" in source]


HAIKU = """
from gistpoint.sessions.records.format import RunReader, SingleRun, guarded
from gistpoint.sessions.records.model import Actor, Run, Step, StepKind
from gistpoint.sessions.records.scanning import lines
from gistpoint.sessions.records.values import as_dict, as_str


class Reader(RunReader):
    def records(self):
        return guarded(lines(self.probe.blob), self.probe.blob, self.warnings)

    def header(self):
        return Run("haiku", id="basho")

    def step(self, index, raws):
        text = as_str(as_dict(raws[0].value).get("verse"))
        return Step(index, Actor.AGENT, StepKind.MESSAGE, raws[0].range, text=text)


class Haiku(SingleRun):
    name = "haiku"
    unique_ids = True
    texts_in_records = True

    def sniff(self, probe):
        return 1.0 if b'{"verse"' in probe.head[:20] else 0.0

    def reader(self, probe):
        return Reader(probe)


FORMAT = Haiku()
"""


def test_one_file_is_a_format_that_lists_searches_and_reviews_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "haiku.py").write_text(HAIKU)
    monkeypatch.setattr(folder, "__path__", [*folder.__path__, str(tmp_path)])
    for known in (registry.formats, registry._built_in, registry._modules):
        known.cache_clear()
    try:
        path = tmp_path / "pond"
        path.write_text(
            "".join(json.dumps({"verse": verse}) + "\n" for verse in ("old pond", "a frog", "plop " * 9))
        )
        document = open_run(path)
        assert [step.text.split()[0] for step in document.steps()] == ["old", "a", "plop"]
        assert [listed.header.format for listed in list_runs([path]) if listed.header] == ["haiku"]
        assert run_key(document) == "haiku:basho"
        read: list[int] = []
        texts = document.texts
        monkeypatch.setattr(
            document,
            "texts",
            lambda index, wanted, **records: read.append(index) or texts(index, wanted, **records),
        )
        assert [hit.step for hit in search_document(document, Query("frog"))] == [1]
        assert read == [1]
    finally:
        for known in (registry.formats, registry._built_in, registry._modules):
            known.cache_clear()
        sys.modules.pop(f"{folder.__name__}.haiku", None)


def test_a_rewritten_file_is_recognised_again(tmp_path: Path) -> None:
    path = tmp_path / "run"
    messages = [{"role": role, "content": "Hello."} for role in ("user", "assistant")]
    path.write_text(json.dumps({"messages": messages}))
    assert [open_run(path).format.name for _ in range(2)] == ["chat"] * 2
    path.write_text(json.dumps({"messages": messages, "trajectory_format": "mini-swe-agent-1"}))
    assert open_run(path).format.name == "mini-swe-agent"


def test_at_most_one_format_is_certain_of_a_file(tmp_path: Path) -> None:
    make_all(tmp_path)
    for path in filter(Path.is_file, tmp_path.rglob("*")):
        probe = FileProbe(BytesBlob(path.read_bytes()), name=str(path))
        certain = [known.name for known in registry.formats() if registry._confidence(known, probe) >= 1]
        assert len(certain) <= 1, (path, certain)


def test_a_file_has_the_same_format_whatever_was_read_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_all(tmp_path)
    probes = [
        (path, FileProbe(BytesBlob(path.read_bytes()), name=str(path)))
        for path in filter(Path.is_file, tmp_path.rglob("*"))
    ]

    def names(*, reverse: bool = False) -> list[str]:
        monkeypatch.setattr(registry, "_certain_before", {})
        found = [_name(probe) for _, probe in (reversed(probes) if reverse else probes)]
        return found[::-1] if reverse else found

    assert names() == names(reverse=True)


def _name(probe: FileProbe) -> str:
    try:
        return registry.recognise(probe).name
    except UserError as error:
        return error.message


def test_a_file_that_is_known_whole_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    confidence = registry._confidence

    def counted(known: registry.Format, probe: FileProbe) -> float:
        asked.append(known.name)
        return confidence(known, probe)

    monkeypatch.setattr(registry, "_confidence", counted)
    messages = [{"role": "user", "content": "Fix it."}, {"role": "assistant", "content": "Done."}]
    assert registry.recognise(FileProbe(BytesBlob(json.dumps(messages).encode()))).name == "chat"
    assert len(asked) <= len(registry.formats()) + len(registry._certain_before)
