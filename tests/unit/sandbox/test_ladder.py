from __future__ import annotations

import pytest
from shelves import declare

from gistpoint.core.errors import SandboxUnavailableError
from gistpoint.sandbox import ladder
from gistpoint.sandbox.backends.base import BackendProbe
from gistpoint.sandbox.backends.bubblewrap import BubblewrapBackend
from gistpoint.sandbox.backends.plain import PlainBackend


class Working(PlainBackend):
    name = "strong"


class Broken(PlainBackend):
    name = "strong"

    def probe(self) -> BackendProbe:
        return BackendProbe(works=False, why_not="no namespaces", fix="Raise the limit.")


def test_the_strongest_that_works():
    chosen = ladder.choose(None, consented=True, backends={"strong": Working, "plain": PlainBackend})
    assert chosen.name == "strong"


def test_no_silent_step_down():
    with pytest.raises(SandboxUnavailableError) as caught:
        ladder.choose(None, consented=False, backends={"strong": Broken, "plain": PlainBackend})
    assert "no namespaces" in caught.value.message
    assert "Raise the limit." in caught.value.message
    assert "--allow-unsandboxed" in caught.value.hint


def test_with_consent_down_to_plain():
    assert (
        ladder.choose(None, consented=True, backends={"strong": Broken, "plain": PlainBackend}).name
        == "plain"
    )


def test_a_requested_backend_is_never_replaced():
    with pytest.raises(SandboxUnavailableError) as caught:
        ladder.choose("strong", consented=True, backends={"strong": Broken, "plain": PlainBackend})
    assert caught.value.hint == "Raise the limit."


def test_plain_by_name_needs_consent_too():
    with pytest.raises(SandboxUnavailableError):
        ladder.choose("plain", consented=False)
    assert ladder.choose("plain", consented=True).name == "plain"


def test_unknown_name():
    with pytest.raises(
        SandboxUnavailableError, match=r"There is no sandbox 'chroot'.*bwrap, docker, landlock, plain"
    ):
        ladder.choose("chroot", consented=True)


class Plugin:
    name = value = "elsewhere"

    def load(self) -> type[Working]:
        return Working


def test_backends_of_other_packages_are_used_by_name_alone(monkeypatch):
    found = [Plugin()]
    declare(monkeypatch, "gistpoint.backends", found)
    assert ladder.choose("elsewhere", consented=False).name == "strong"
    assert "elsewhere" not in ladder.builtin_backends()
    found[0].name = "bwrap"
    assert "bwrap" not in ladder.installed_backends()


class Exits(PlainBackend):
    def __init__(self):
        raise SystemExit(0)


class ExitsLater(PlainBackend):
    def probe(self):
        raise SystemExit(0)


class Unprobed(PlainBackend):
    def probe(self):
        return None


@pytest.mark.parametrize(
    ("made", "why"), [(Exits, "SystemExit: 0"), (ExitsLater, "SystemExit: 0"), (Unprobed, "a NoneType")]
)
def test_a_backend_of_another_package_that_fails_is_named(monkeypatch, made, why):
    plugin = Plugin()
    plugin.load = lambda: made
    declare(monkeypatch, "gistpoint.backends", [plugin])
    with pytest.raises(SandboxUnavailableError, match=f"elsewhere does not work here: .*{why}"):
        ladder.choose("elsewhere", consented=False)
    monkeypatch.setattr(ladder, "builtin_backends", dict)
    (found,), working = ladder.diagnose()
    assert why in found.probe.why_not
    assert not working


def test_consent_is_remembered_per_machine(tmp_path, monkeypatch):
    config = tmp_path / "config"
    assert not ladder.has_consented(config)
    ladder.remember_consent(config)
    assert ladder.has_consented(config)
    monkeypatch.setattr(ladder.platform, "node", lambda: "another")
    assert not ladder.has_consented(config)
    monkeypatch.undo()
    ladder.withdraw_consent(config)
    assert not ladder.has_consented(config)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "gistpoint-consent", "version": 1}'])
def test_a_broken_consent_is_none(tmp_path, text):
    (tmp_path / "unsandboxed-consent.json").write_text(text)
    assert not ladder.has_consented(tmp_path)


def test_bubblewrap_that_is_missing_or_broken_says_how_to_repair_it(tmp_path):
    assert "not installed" in BubblewrapBackend("").probe().why_not or BubblewrapBackend("").probe().works
    script = tmp_path / "bwrap"
    script.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    script.chmod(0o755)
    tmp_path.chmod(0o755)
    probe = BubblewrapBackend(str(script)).probe()
    assert not probe.works
    assert probe.why_not
    assert probe.fix
