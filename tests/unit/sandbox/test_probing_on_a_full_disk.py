"""A disk that is full says nothing about isolation: no weaker backend takes the place of one that works."""

from __future__ import annotations

import errno
import tempfile
from typing import Any

import pytest

from gistpoint.core.errors import SandboxUnavailableError
from gistpoint.sandbox.backends.base import BackendProbe, Command, Ended, Stop, complaint_of
from gistpoint.sandbox.ladder import choose, diagnose
from gistpoint.tui.cli import main


def _full(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


class Probed:
    """A backend whose probe is that of all backends; it never gets to run anything."""

    name = "strong"

    def probe(self) -> BackendProbe:
        try:
            return BackendProbe(works=not complaint_of(self))  # type: ignore[arg-type]
        except OSError as error:
            return BackendProbe(works=False, why_not=str(error))


class Weak(Probed):
    name = "weak"

    def probe(self) -> BackendProbe:
        return BackendProbe(works=True)


BACKENDS: Any = {"strong": Probed, "weak": Weak}


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", _full)


@pytest.mark.usefixtures("full")
def test_no_weaker_backend_is_chosen() -> None:
    with pytest.raises(SandboxUnavailableError, match="could not be tried"):
        choose(None, consented=True, backends=BACKENDS)


@pytest.mark.usefixtures("full")
def test_nothing_is_said_about_any_backend() -> None:
    with pytest.raises(SandboxUnavailableError, match="could not be tried"):
        diagnose(BACKENDS)


def test_a_disk_that_fills_during_the_probe_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> Any:
        monkeypatch.setattr(tempfile, "TemporaryFile", _full)
        return _full()

    monkeypatch.setattr(Probed, "run", run, raising=False)
    with pytest.raises(SandboxUnavailableError, match="could not be tried"):
        choose(None, consented=True, backends=BACKENDS)


@pytest.mark.usefixtures("full")
def test_doctor_reports_that_it_could_not_try(
    capsys: pytest.CaptureFixture[str],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path_factory.mktemp("home")))
    assert main(["doctor"]) == 2
    shown = capsys.readouterr()
    assert "could not be tried" in shown.err
    assert "works" not in shown.out


class Late(Probed):
    """A backend whose command does not end in time."""

    def run(self, command: Command, *, on_line: object) -> Ended:
        self.command = command
        return Ended(Stop.TIMED_OUT, None, "", command.timeout_s)


def test_a_probe_waits_for_a_busy_machine_and_says_that_no_answer_came() -> None:
    backend = Late()
    assert complaint_of(backend) == "it gave no answer within 30 s"  # type: ignore[arg-type]
    assert backend.command.patience >= 10
