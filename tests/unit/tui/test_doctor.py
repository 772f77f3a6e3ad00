from __future__ import annotations

import io
import json
import os
import time
from importlib.metadata import EntryPoint

import pytest
from shelves import built_by_itself, declare

from gistpoint import object_graph
from gistpoint.core.errors import SandboxUnavailableError, SettingsError
from gistpoint.core.requests import IsolationChoice
from gistpoint.sandbox import housekeeping, ladder
from gistpoint.sandbox import ladder as diagnosis
from gistpoint.sandbox.attacks import trying
from gistpoint.sandbox.attacks.table import ATTACKS
from gistpoint.sandbox.backends.base import BackendProbe
from gistpoint.sandbox.backends.bubblewrap import BubblewrapBackend
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.cache import build_once
from gistpoint.tui import cli


class Isolating(PlainBackend):
    name = "strong"

    def record(self, limits):
        return BubblewrapBackend("").record(limits)


class Closed(PlainBackend):
    name = "closed"

    def probe(self) -> BackendProbe:
        return BackendProbe(works=False, why_not="the door \x1b[2Jis shut", fix="Open it.")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "config").mkdir(parents=True)
    monkeypatch.setattr(diagnosis, "installed_backends", dict)
    return tmp_path / "home"


@pytest.fixture
def only(monkeypatch):
    def use(*made):
        backends = {backend.name: backend for backend in made}
        monkeypatch.setattr(diagnosis, "builtin_backends", lambda: backends)
        monkeypatch.setattr(ladder, "builtin_backends", lambda: backends)

    return use


@pytest.mark.parametrize("fails", ["make", "probe"])
def test_a_requested_plugin_that_fails_is_reported(home, monkeypatch, fails):
    class Failing(PlainBackend):
        def __init__(self):
            if fails == "make":
                raise RuntimeError("not today")

        def probe(self):
            raise RuntimeError("not today")

    with pytest.raises(
        SandboxUnavailableError, match="The sandbox cart does not work here: RuntimeError: not today"
    ):
        ladder.choose("cart", consented=False, backends={"cart": Failing})


def test_one_that_isolates_is_enough(home, only, capsys):
    only(Closed, Isolating, PlainBackend)
    assert cli.main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert "To fix closed: Open it." in told
    assert "Tests run in strong, the strongest that works." in told
    assert "\x1b[2J" not in told


def test_without_isolation_the_answer_is_no(home, only, capsys):
    only(Closed, PlainBackend)
    assert cli.main(["doctor", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "gistpoint.doctor/1"
    assert told["chosen"] is None
    assert [(b["name"], b["works"], b["isolates"]) for b in told["backends"]] == [
        ("closed", False, False),
        ("plain", True, False),
    ]
    assert told["backends"][1]["enforced"]["network"] == "no"


def test_consent_is_told_and_taken_back(home, only, capsys):
    only(Isolating, PlainBackend)
    object_graph.build_runner(IsolationChoice(sandbox="plain", allow_unsandboxed=True))
    assert not object_graph.build_runner(IsolationChoice(sandbox="plain")).backend.isolated
    assert cli.main(["doctor"]) == 0
    assert "--withdraw-consent" in capsys.readouterr().out
    assert cli.main(["doctor", "--withdraw-consent", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unsandboxed_consent"] is False
    with pytest.raises(SandboxUnavailableError, match="has not been allowed"):
        object_graph.build_runner(IsolationChoice(sandbox="plain"), ask=lambda why: False)
    assert cli.main(["doctor", "--withdraw-consent"]) == 0


def test_what_is_asked_for_and_does_not_work(home, only, capsys):
    only(Closed, Isolating)
    assert cli.main(["doctor", "--sandbox", "closed"]) == 1
    assert "closed was requested but does not work here" in capsys.readouterr().out


def test_a_sandbox_that_there_is_none_of_names_those_that_there_are(home, only, capsys):
    only(Closed, Isolating)
    (home / "config/config.toml").write_text('sandbox = "nope"\n')
    assert cli.main(["doctor"]) == 1
    told = capsys.readouterr().out
    assert (
        "There is no sandbox 'nope': nothing runs until it is one of closed, strong, or none is requested."
        in told
    )
    assert "does not work here" not in told


def test_a_plugin_that_breaks_is_told_and_breaks_nothing(home, only, monkeypatch, capsys):
    def broken():
        raise RuntimeError("no wheels")

    only(Isolating)
    monkeypatch.setattr(diagnosis, "installed_backends", lambda: {"cart": broken})
    assert cli.main(["doctor"]) == 0
    assert "RuntimeError: no wheels" in capsys.readouterr().out


def test_a_plugin_that_cannot_be_loaded_is_named_with_what_to_do(home, only, monkeypatch, capsys):
    entry = EntryPoint("cart", "cart_formats:FORMAT", "gistpoint.formats")
    declare(monkeypatch, entry.group, [entry])
    only(Isolating)
    assert cli.main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "Plugin cart (gistpoint.formats) can't be loaded: ModuleNotFoundError: No module named" in printed
    assert "Ask the author of the plugin" in printed
    assert cli.main(["doctor", "--json"]) == 0
    (plugin,) = json.loads(capsys.readouterr().out)["plugins"]
    assert plugin["why_not"].startswith("ModuleNotFoundError")


def test_an_attack_that_comes_out_otherwise_is_told(home, only, monkeypatch, capsys):
    class Pretending(Isolating):
        name = "bwrap"

    only(Pretending)
    wanted = [attack for attack in ATTACKS if attack.name in ("home", "loop")]
    real = trying.self_test
    monkeypatch.setattr(
        "gistpoint.tui.commands.doctor.self_test",
        lambda backends, cache, answers: real(backends, cache, answers, wanted),
    )
    assert cli.main(["doctor", "--self-test"]) == 1
    told = capsys.readouterr().out
    assert "NOT AS PROMISED: read a file in the host's home on bwrap." in told
    assert "2 attacks on bwrap: 1 unexpected outcome" in told


def test_the_users_own_file_overrules_the_ladder(home, only):
    only(Isolating, Closed, PlainBackend)
    (home / "config" / "config.toml").write_text('theme = "dark"\nsandbox = "closed"\n')
    with pytest.raises(SandboxUnavailableError, match=r"The sandbox closed does not work here.*Open it\."):
        object_graph.build_runner(IsolationChoice(), ask=lambda why: True)
    assert object_graph.build_runner(IsolationChoice(sandbox="strong")).backend.name == "bwrap"


def test_a_wish_for_no_isolation_still_asks(home, only):
    only(Isolating, PlainBackend)
    (home / "config" / "config.toml").write_text('sandbox = "plain"\n')
    with pytest.raises(SandboxUnavailableError):
        object_graph.build_runner(IsolationChoice(), ask=lambda why: False)


def test_a_repository_decides_nothing(home, only, tmp_path, monkeypatch):
    only(Isolating, PlainBackend)
    repository = tmp_path / "repository"
    (repository / ".gistpoint").mkdir(parents=True)
    for name in ("gistpoint.toml", "config.toml", ".gistpoint/config.toml"):
        (repository / name).write_text('sandbox = "plain"\n')
    (repository / "pyproject.toml").write_text(
        '[tool.gistpoint]\nsandbox = "plain"\nallow_unsandboxed = true\n'
    )
    (repository / ".env").write_text("GISTPOINT_SANDBOX=plain\n")
    monkeypatch.chdir(repository)
    assert object_graph.build_runner(IsolationChoice()).backend.isolated


@pytest.mark.parametrize(
    "text",
    [
        "sandbox = 1\n",
        'sandbox = ""\n',
        "sandbox = [\n",
        "\x00",
        'sandbx = "docker"\n',
        "[llm]\nmodell = 'x'\n",
    ],
)
def test_a_wish_that_cannot_be_read_is_an_error(home, only, text):
    only(Isolating, PlainBackend)
    (home / "config" / "config.toml").write_text(text)
    with pytest.raises(SettingsError):
        object_graph.build_runner(IsolationChoice())


def test_no_wish(home, only):
    only(Isolating, PlainBackend)
    (home / "config" / "config.toml").write_text('theme = "dark"\n')
    assert object_graph.build_runner(IsolationChoice()).backend.isolated


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("answer", ["no\n", ""])
def test_without_consent_nothing_of_a_repository_is_built(home, only, tmp_path, monkeypatch, answer):
    only(Closed, PlainBackend)
    folder, screen = tmp_path / "repository", Terminal()
    folder.mkdir()
    files = built_by_itself("thing", before=f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    for path, text in {**files, "setup.py": f"open({str(tmp_path / 'ran')!r}, 'w').close()"}.items():
        (folder / path).write_text(text)
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stderr", screen)
    assert cli.main(["task", "new", str(folder)]) == 2
    assert "and so would the builds of it and of its dependencies" in screen.getvalue()
    assert "\x1b[2J" not in screen.getvalue()
    assert not (tmp_path / "ran").exists()


def test_the_cache_is_listed_and_cleaned(home, capsys, monkeypatch):
    monkeypatch.setenv(
        "DOCKER_HOST", f"unix://{home}/no-engine.sock"
    )  # the test must not clean a real engine
    folders = {kind: home / "cache" / f"{kind}s" / "abc" for kind in ("environment", "wheel")}
    for folder in folders.values():
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(bytes(10_000))
        folder.chmod(0o555)
    assert cli.main(["cache", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["kept"]
    assert [(item["kind"], item["name"]) for item in listed if item["kind"] in folders] == [
        ("environment", "abc"),
        ("wheel", "abc"),
    ]
    old = time.time() - 31 * 24 * 3600
    os.utime(folders["environment"], (old, old))
    for name in ("cluster-tasks", "study-tasks"):
        folders[name] = home / "cache" / name / "abc"
        folders[name].mkdir(parents=True)
        os.utime(folders[name], (old, old))
    build_once(folders["wheel"], lambda folder: None)
    assert cli.main(["cache", "clean", "--unused", "30"]) == 0
    assert {kind for kind, folder in folders.items() if folder.exists()} == {"wheel"}
    assert cli.main(["cache", "clean"]) == 0
    assert not any(folder.exists() for folder in folders.values())


def test_what_is_used_is_not_unused(home):
    folder, old = home / "cache" / "environments" / "abc", time.time() - 31 * 24 * 3600
    build_once(folder, lambda built: built.mkdir())
    for path in (folder, folder.with_name("abc.lock")):
        os.utime(path, (old, old))
    unused = housekeeping.kept(home / "cache", unused_s=30 * 24 * 3600)
    assert "abc" in {item.name for item in unused}
    build_once(folder, lambda built: built.mkdir())
    assert housekeeping.kept(home / "cache", unused_s=30 * 24 * 3600) == ()
