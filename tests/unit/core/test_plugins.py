"""Plugins of installed packages that can't be loaded are left out and reported."""

from __future__ import annotations

import sys
import types
import zipfile
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder
from pathlib import Path

import pytest
from assertion_kind import AssertionKind
from builders import build_task
from shelves import install_package

from gistpoint.core import plugins
from gistpoint.core.agents.scaffolds import installed_scaffold
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds import registry
from gistpoint.core.kinds.folder import read_task
from gistpoint.core.tasks.documents import TASK_FILE
from gistpoint.sandbox.ladder import installed_backends
from gistpoint.sessions.exports.registry import exporter
from gistpoint.sessions.exports.tasks.exported import TaskExportSettings
from gistpoint.sessions.exports.tasks.registry import task_exporter
from gistpoint.sessions.formats import registry as formats
from gistpoint.sessions.records.archives import RunFileError
from gistpoint.sessions.runs.opening import list_runs, open_run


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages, one of which declares a kind and a format in a missing module."""
    folder = tmp_path / "shelf"
    points = (
        "[gistpoint.kinds]\nassertion = cart_kinds:KIND\n\n[gistpoint.formats]\ncart = cart_kinds:FORMAT\n"
    )
    install_package(folder, monkeypatch, points)
    registry.all_kinds.cache_clear()
    yield folder
    registry.all_kinds.cache_clear()


def _in_folder(place: Path, package: str) -> None:
    (place / package).mkdir(parents=True)
    (place / package / "entry_points.txt").write_text(_POINTS)
    (place / package / "METADATA").write_text(_METADATA)


def _in_zip(place: Path) -> None:
    with zipfile.ZipFile(place, "w") as archive:
        archive.writestr("cart-1.0.dist-info/entry_points.txt", _POINTS)
        archive.writestr("cart-1.0.dist-info/METADATA", _METADATA)


_POINTS = "[gistpoint.exporters]\nplain = json:dumps\n"
_METADATA = "Metadata-Version: 2.1\nName: cart\nVersion: 1.0\n"
PLACES: dict[str, Callable[[Path], None]] = {
    "wheel": lambda place: _in_folder(place, "cart-1.0.dist-info"),
    "develop": lambda place: _in_folder(place, "cart.egg-info"),
    "egg": lambda place: _in_folder(place, "EGG-INFO"),
    "zip": _in_zip,
}


@pytest.mark.parametrize("kind", PLACES)
def test_a_plugin_is_found_wherever_its_package_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(sys, "path", ["", str(tmp_path / "missing"), *sys.path])
    assert plugins.declared("gistpoint.exporters") == []
    place = tmp_path / ("cart-1.0.egg" if kind == "egg" else "place")
    PLACES[kind](place)
    monkeypatch.syspath_prepend(str(place))
    assert [entry.name for entry in plugins.declared("gistpoint.exporters")] == ["plain"]


def test_packages_are_not_parsed_if_none_declares_a_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(**_: str) -> None:
        raise SystemExit

    # Earlier tests may have added finders and folders.
    monkeypatch.setattr(
        sys,
        "meta_path",
        [one for one in sys.meta_path if one is PathFinder or not hasattr(one, "find_distributions")],
    )
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place.endswith("site-packages")])
    monkeypatch.setattr("importlib.metadata.entry_points", never)
    assert plugins.declared("gistpoint.kinds") == []


def test_a_finder_of_other_packages_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finder:
        def find_distributions(self, context: object) -> list[object]:
            asked.append(context)
            return []

    asked: list[object] = []
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    assert plugins.declared("gistpoint.kinds") == []
    assert asked


def test_one_that_cannot_be_loaded_is_named_with_its_package(shelf: Path) -> None:
    (entry,) = (entry for entry in plugins.declared("gistpoint.kinds") if entry.name == "assertion")
    said = r"The plugin 'assertion' \(gistpoint\.kinds, from cart 1\.0\) can't be loaded: ModuleNotFoundError: .*cart_"
    with pytest.raises(plugins.PluginError, match=said):
        plugins.load(entry, plugins.is_callable)


def test_a_kind_that_cannot_be_loaded_hinders_no_other_and_is_named_where_it_is_missed(
    shelf: Path, tmp_path: Path
) -> None:
    assert registry.all_kinds() == registry.built_in()
    task = build_task(tmp_path / "tasks")
    file = task.folder / TASK_FILE
    file.write_text(file.read_text().replace(f'mode = "{task.mode}"', 'mode = "assertion"'))
    with pytest.raises(
        TaskError, match=r"'mode' is 'assertion'.*'assertion' \(gistpoint\.kinds.*Ask the author"
    ):
        read_task(task.folder)


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("import sys\nsys.exit('bye')\n", "SystemExit: bye"),
        ("class Panic(BaseException): pass\nraise Panic('at the disco')\n", "Panic: at the disco"),
        (
            "class Mute(Exception):\n    def __str__(self):\n        raise ValueError('no text')\nraise Mute\n",
            "Mute: its text can't be read",
        ),
        ("raise RuntimeError('long ' * 100_000)\n", "RuntimeError: long long"),
        ("KIND = 'a text'\n", "it is a str, not a TaskKind"),
        ("from assertion_kind import AssertionKind as KIND\n", "it is a ABCMeta, not a TaskKind"),
        (
            "from assertion_kind import AssertionKind\n"
            "class Clash(AssertionKind):\n    modes = ('remove',)\nKIND = Clash()\n",
            "the mode 'remove' is gistpoint's own",
        ),
        (
            "from dataclasses import replace\nfrom assertion_kind import AssertionKind\n"
            "from gistpoint.core.tools.browsing import READ_FILE\nclass Clash(AssertionKind):\n"
            "    tools = (replace(READ_FILE, description='Other.'),)\nKIND = Clash()\n",
            "the tool 'read_file' is gistpoint's own, but a different one",
        ),
        (
            "from assertion_kind import AssertionKind\n"
            "class Clash(AssertionKind):\n    reported_modes = ('assertion', 'discovery')\nKIND = Clash()\n",
            "the mode 'discovery' is gistpoint's own",
        ),
        (
            "from assertion_kind import AssertionKind\n"
            "from gistpoint.core.kinds.measures import Measure\nclass Clash(AssertionKind):\n"
            "    measures = (Measure('found', 'Other.'),)\nKIND = Clash()\n",
            "the measure 'found' is gistpoint's own, but a different one",
        ),
        (
            "from assertion_kind import AssertionKind\n"
            "from gistpoint.core.kinds.measures import Analysis\nclass Clash(AssertionKind):\n"
            "    analyses = (Analysis(OWN_ANALYSIS, 'Other.', '', 'x:y'),)\nKIND = Clash()\n",
            "is gistpoint's own",
        ),
    ],
    ids=["exit", "panic", "mute", "long", "text", "class", "mode", "tool", "reported", "measure", "analysis"],
)
def test_one_that_is_not_what_its_group_needs_is_left_out_and_named(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, module: str, why: str
) -> None:
    analysis = registry.built_in()[0].analyses[0].id
    (shelf / "cart_kinds.py").write_text(module.replace("OWN_ANALYSIS", repr(analysis)))
    monkeypatch.delitem(sys.modules, "cart_kinds", raising=False)
    assert registry.all_kinds() == registry.built_in()
    assert why in registry.not_loaded()
    assert len(registry.not_loaded()) < 1_000
    monkeypatch.delitem(sys.modules, "cart_kinds", raising=False)


def test_a_kind_does_not_replace_that_of_another_package(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cart_kinds", types.ModuleType("cart_kinds"))
    first, second = AssertionKind(), AssertionKind()
    vars(sys.modules["cart_kinds"]).update(KIND=first, OTHER=second)
    points = "[gistpoint.kinds]\nassertion = cart_kinds:OTHER\nzebra = cart_kinds:OTHER\n"
    install_package(shelf, monkeypatch, points, "barrow")
    assert registry.all_kinds() == (*registry.built_in(), first)
    why = "the mode 'assertion' is another package's"
    assert why in registry.not_loaded()
    assert (registry.fault_among_others(first), registry.fault_among_others(second)) == ("", why)


@pytest.mark.parametrize(
    ("group", "used"),
    [
        ("gistpoint.exporters", exporter),
        ("gistpoint.task_exporters", task_exporter),
        ("gistpoint.scaffolds", installed_scaffold),
        ("gistpoint.backends", lambda name: installed_backends()[name]()),
    ],
)
def test_a_name_that_two_packages_declare_is_none_of_theirs(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, group: str, used: Callable[[str], object]
) -> None:
    for package in ("barrow", "wagon"):
        install_package(shelf, monkeypatch, f"[{group}]\nsame = {package}:one\n", package)
    with pytest.raises(plugins.PluginError, match=r"'same'.*barrow 1\.0.*: wagon 1\.0 declares it as well"):
        used("same")
    assert plugins.named(group, "other") is None


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("entry_points.txt", b"[other]\n\xff = a:b\n"),
        ("entry_points.txt", b"no section = a:b\n"),
        ("METADATA", b"\xff"),
    ],
    ids=["points", "section", "metadata"],
)
def test_a_package_whose_entries_are_no_text_hinders_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, content: bytes
) -> None:
    install_package(tmp_path / "good", monkeypatch, "[gistpoint.exporters]\nplain = json:dumps\n")
    bad = tmp_path / "bad" / "odd-1.0.dist-info"
    bad.mkdir(parents=True)
    (bad / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (bad / "entry_points.txt").write_text("[gistpoint.exporters]\nodd = json:dumps\n")
    (bad / file).write_bytes(content)
    monkeypatch.syspath_prepend(str(tmp_path / "bad"))
    names = [entry.name for entry in plugins.declared("gistpoint.exporters")]
    assert "plain" in names
    assert plugins.unreadable().keys() <= {"odd"}
    for entry in plugins.declared("gistpoint.exporters"):
        assert "None" not in plugins.package_of(entry)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("yield 'a'\n    raise RuntimeError('half way')", "RuntimeError: half way"),
        ("return [b'bytes']", "TypeError: it yields a bytes, not a str"),
        ("return None", "TypeError: "),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise BaseException('panic')", "BaseException: panic"),
        ("yield 'a'\n    raise GeneratorExit('early')", "GeneratorExit: early"),
        ("yield 'a'\n    raise MemoryError", "MemoryError: "),
        (r"yield '\ud800'", "TypeError: it yields half of a surrogate pair, which is not text"),
    ],
    ids=["half", "bytes", "none", "exit", "panic", "end", "memory", "surrogate"],
)
def test_an_exporter_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, why: str
) -> None:
    install_package(tmp_path / "shelf", monkeypatch, "[gistpoint.exporters]\nodd = cart_writes:write\n")
    (tmp_path / "shelf" / "cart_writes.py").write_text(f"def write(document):\n    {body}\n")
    monkeypatch.delitem(sys.modules, "cart_writes", raising=False)
    with pytest.raises(
        plugins.PluginFailedError, match=rf"'odd' \(gistpoint.exporters, from cart 1.0\) failed: {why}"
    ):
        list(exporter("odd")(None))  # type: ignore[arg-type]
    monkeypatch.delitem(sys.modules, "cart_writes", raising=False)


@pytest.mark.parametrize(
    ("piece", "why"),
    [
        ("('../up', b'')", r"it yields the path '\.\./up'"),
        ("('/up', b'')", "it yields the path '/up'"),
        ("('a\\0b', b'')", "it yields the path"),
        ("('', b'')", "it yields the path ''"),
        ("('a', 'text')", "it yields a tuple that is not a path and its bytes"),
        ("('a', b'', 1)", "it yields a tuple that is not a path and its bytes"),
        ("'ab'", "it yields a str that is not a path and its bytes"),
    ],
    ids=["up", "absolute", "nul", "empty", "text", "three", "str"],
)
def test_an_exporter_of_tasks_writes_only_bytes_into_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: str, why: str
) -> None:
    install_package(tmp_path / "shelf", monkeypatch, "[gistpoint.task_exporters]\nodd = cart_pieces:write\n")
    (tmp_path / "shelf" / "cart_pieces.py").write_text(f"def write(tasks, settings):\n    yield {piece}\n")
    monkeypatch.delitem(sys.modules, "cart_pieces", raising=False)
    with pytest.raises(plugins.PluginFailedError, match=f"failed: TypeError: {why}"):
        list(task_exporter("odd")([], TaskExportSettings()))
    monkeypatch.delitem(sys.modules, "cart_pieces", raising=False)


@pytest.mark.parametrize("returned", ["1 / 0", "None", "'sure'", "exit()"])
def test_a_format_that_fails_recognises_nothing_and_hinders_no_other(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, returned: str
) -> None:
    (shelf / "cart_kinds.py").write_text(
        "from gistpoint.sessions.records.format import Format\n"
        "class Cart(Format):\n    name = 'cart'\n"
        f"    def sniff(self, probe):\n        return {returned}\n"
        "    def runs(self, probe):\n        return []\n    def open(self, probe, id=''):\n        raise OSError\n"
        "Cart.__abstractmethods__ = frozenset()\nFORMAT = Cart()\n"
    )
    monkeypatch.delitem(sys.modules, "cart_kinds", raising=False)
    for cached in (formats._installed, formats.formats):
        cached.cache_clear()
    file = tmp_path / "run.json"
    file.write_text(
        '{"messages": [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Yes?"}]}'
    )
    assert [format.name for format in formats._installed()] == ["cart"]
    assert len(list(open_run(file).steps())) == 2
    for cached in (formats._installed, formats.formats):
        cached.cache_clear()
    monkeypatch.delitem(sys.modules, "cart_kinds", raising=False)


@pytest.mark.parametrize(
    ("runs", "opening", "why"),
    [
        ("raise RuntimeError('half way')", "return None", "RuntimeError: half way"),
        ("raise SystemExit(0)", "return None", "SystemExit: 0"),
        ("return 5", "return None", "TypeError: "),
        ("yield 5", "return None", "TypeError: it produces a int, not a RunEntry"),
        ("yield RunEntry('', Run('cart'))", "raise KeyError('x')", "KeyError: 'x'"),
        (
            "yield RunEntry('', Run('cart'))",
            "return None",
            "TypeError: it produces a NoneType, not a RunReader",
        ),
    ],
    ids=["runs", "exit", "number", "entry", "open", "reader"],
)
def test_a_format_that_fails_on_a_file_hinders_no_other_file(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, runs: str, opening: str, why: str
) -> None:
    (shelf / "cart_kinds.py").write_text(
        "from gistpoint.sessions.records.format import Format, RunEntry\n"
        "from gistpoint.sessions.records.model import Run\n"
        "class Cart(Format):\n    name = 'cart'\n"
        "    def sniff(self, probe):\n        return float(probe.head.startswith(b'A cart'))\n"
        f"    def runs(self, probe):\n        {runs}\n    def open(self, probe, id=''):\n        {opening}\n"
        "FORMAT = Cart()\n"
    )
    monkeypatch.delitem(sys.modules, "cart_kinds", raising=False)
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "a.txt").write_text("A cart.")
    (folder / "b.json").write_text('{"messages": [{"role": "user", "content": "Hello."}]}')
    _forget_formats()
    try:
        with pytest.raises(RunFileError, match=rf"a\.txt can't be read\. The plugin 'cart' .* failed: {why}"):
            open_run(folder / "a.txt")
        listed = list(list_runs([folder], with_unread=True))
        assert [Path(run.name).name for run in listed] == ["a.txt", "b.json"]
        assert listed[1].header is not None
    finally:
        _forget_formats()
        sys.modules.pop("cart_kinds", None)


def _read_whole(path: Path) -> None:
    document = open_run(path)
    document.build()
    assert document.header
    list(document.steps())


READER = """
from gistpoint.sessions.records.format import Format, RunEntry, RunReader
from gistpoint.sessions.records.model import Run
class Reader(RunReader):
    in_lines = True
    def header(self):
        return Run('cart')
    def step(self, index, raws):
        return 'a step'
    def {member}(self, *given):
        {body}
    {decorated}
class Cart(Format):
    name = 'cart'
    def sniff(self, probe):
        return float(probe.head.startswith(b'{{"cart'))
    def runs(self, probe):
        yield RunEntry('', Run('cart'))
    def open(self, probe, id=''):
        return Reader(probe)
FORMAT = Cart()
"""


@pytest.mark.parametrize(
    ("member", "body", "why"),
    [
        ("header", "raise RuntimeError('x')", "RuntimeError: x"),
        ("header", "raise SystemExit(0)", "SystemExit: 0"),
        ("header", "return {}", "TypeError: it produces a dict, not a Run"),
        ("records", "raise RecursionError('x')", "RecursionError: x"),
        ("records", "yield from super().records(); raise MemoryError", "MemoryError: "),
        ("records", "raise GeneratorExit('x')", "GeneratorExit: x"),
        ("place", "return None", "TypeError: it produces a NoneType, not a int"),
        ("place", "raise SystemExit('x')", "SystemExit: x"),
        ("sum_up", "yield 1 / 0", "ZeroDivisionError: "),
        ("warnings", "raise ValueError('x')", "ValueError: x"),
        ("step", "return None", "TypeError: it produces a NoneType, not a Step"),
        ("step", "raise KeyError('x')", "KeyError: 'x'"),
    ],
)
def test_a_reader_of_a_format_that_fails_names_its_package(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, member: str, body: str, why: str
) -> None:
    decorated = f"{member} = property({member}, lambda *_: None)" if member == "warnings" else "pass"
    (shelf / "cart_kinds.py").write_text(READER.format(member=member, body=body, decorated=decorated))
    monkeypatch.delitem(sys.modules, "cart_kinds", raising=False)
    (tmp_path / "a.jsonl").write_text('{"cart": 1}\n{"cart": 2}\n')
    _forget_formats()
    try:
        with pytest.raises(
            RunFileError, match=rf"a\.jsonl can't be read\. The plugin 'cart' .* failed: {why}"
        ):
            _read_whole(tmp_path / "a.jsonl")
    finally:
        _forget_formats()
        sys.modules.pop("cart_kinds", None)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("raise RecursionError('x')", "RecursionError: x"),
        ("return None", "AttributeError: "),
        ("return type('Made', (), {'identity': 'x'})()", "TypeError: its identity is a str"),
    ],
)
def test_a_scaffold_that_is_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, why: str
) -> None:
    install_package(tmp_path / "shelf", monkeypatch, "[gistpoint.scaffolds]\nodd = cart_agents:made\n")
    (tmp_path / "shelf" / "cart_agents.py").write_text(f"def made():\n    {body}\n")
    monkeypatch.delitem(sys.modules, "cart_agents", raising=False)
    with pytest.raises(plugins.PluginFailedError, match=rf"'odd' \(gistpoint.scaffolds, .* failed: {why}"):
        installed_scaffold("odd")
    monkeypatch.delitem(sys.modules, "cart_agents", raising=False)


def _forget_formats() -> None:
    for cached in (formats._installed, formats.formats):
        cached.cache_clear()
