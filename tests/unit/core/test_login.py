"""A user without an entry in the system's list of users, as in many containers, still has a name."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from gistpoint.core.login import login_name

SOURCES = Path(__file__).parents[3]


@pytest.fixture
def unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", missing)


def test_the_number_of_the_user_is_the_name(unnamed: None) -> None:
    assert login_name() == f"uid-{os.getuid()}"


def test_a_name_of_the_environment_is_used(unnamed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    assert login_name() == "ada"


def test_no_other_module_asks_the_system_for_the_name() -> None:
    asking = [
        str(path.relative_to(SOURCES))
        for part in ("core", "sandbox", "sessions", "src", "tui")
        for path in (SOURCES / part).rglob("*.py")
        if "getpass" in path.read_text(encoding="utf-8")
    ]
    assert asking == ["core/login.py"]
