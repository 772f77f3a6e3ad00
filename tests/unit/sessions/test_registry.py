"""A format joins without any other being touched."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from project_files import ROOT

import gistpoint.sessions.formats as folder
from gistpoint.sessions.formats import registry
from gistpoint.sessions.formats.chat import Chat
from gistpoint.sessions.formats.probe import Probe
from gistpoint.sessions.formats.registry import RunEntry
from gistpoint.sessions.runs.archives import BytesBlob
from gistpoint.sessions.runs.model import Run
from gistpoint.sessions.runs.opening import open_run


class Turtle(Chat):
    name = "turtle"

    def sniff(self, probe: Probe) -> float:
        return 0.6 if probe.object.get("turtle") else 0.0

    def runs(self, probe: Probe) -> Iterator[RunEntry]:
        yield RunEntry("", Run("turtle"))


TURTLE = Turtle()


def test_readme_names_the_formats_that_have_a_reader() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    told = text.partition("It reads ")[2].partition(";")[0].lower().replace(" ", "-")
    assert [known.name for known in registry.formats() if known.name not in told] == []


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    point = EntryPoint("turtle", f"{__name__}:TURTLE", registry.ENTRY_POINTS)
    monkeypatch.setattr(EntryPoint, "load", lambda self: TURTLE)
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: [point] if group == registry.ENTRY_POINTS else []
    )
    registry.formats.cache_clear()
    registry._installed.cache_clear()
    yield
    registry.formats.cache_clear()
    registry._installed.cache_clear()


@pytest.mark.usefixtures("installed")
def test_an_installed_format_is_asked_where_no_built_in_one_is_certain(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "x"}], "turtle": 1}))
    assert registry.recognise(Probe(BytesBlob(path.read_bytes()))) is TURTLE
    assert open_run(path).step(0).text == "x"


def test_no_module_names_the_others() -> None:
    formats = [
        m.name
        for m in pkgutil.iter_modules(folder.__path__)
        if hasattr(registry.importlib.import_module(f"{folder.__name__}.{m.name}"), "FORMAT")
    ]
    assert len(formats) == 10
    for name in formats:
        source = (Path(folder.__path__[0]) / f"{name}.py").read_text()
        assert not [other for other in formats if other != name and f"formats.{other} import" in source]
