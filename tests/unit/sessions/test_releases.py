"""What each release wrote is opened by this version: a home of each is restored, listed and read."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from fakes import FakeClock
from project_files import ROOT
from released_homes import PLACE, RELEASES, ReleasedHome

import gistpoint
from gistpoint.core.attempts.events import OtherEvent
from gistpoint.core.attempts.state import fold
from gistpoint.core.locations import Locations
from gistpoint.core.running import UNATTENDED
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.backup import restore_backup
from gistpoint.sessions.journal import JOURNAL, read_journal

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("released", RELEASES, ids=lambda released: released.version)
def test_a_home_that_a_release_wrote_is_restored_and_read(released: ReleasedHome, tmp_path: Path) -> None:
    home = Locations(tmp_path / "data", tmp_path / "config", tmp_path / "cache")
    restore_backup(home, released.archive, gistpoint.__version__, UNATTENDED)
    found = list(AttemptStore(home.attempts, FakeClock(), gistpoint.__version__).summaries())
    assert [summary.problem for summary in found if summary.problem] == []
    assert {summary.attempt_id for summary in found} == set(released.solved)
    for attempt, solved in released.solved.items():
        content = read_journal(home.attempts / attempt / JOURNAL)
        assert not content.fault
        assert [event for event in content.events if isinstance(event.data, OtherEvent)] == []
        assert fold(content.events).solved == solved


def test_every_home_of_a_release_has_a_row() -> None:
    assert sorted(path.name for path in PLACE.iterdir()) == sorted(row.archive.name for row in RELEASES)


def test_the_changelog_begins_with_what_is_in_preparation() -> None:
    assert re.findall(r"^## (.+)", CHANGELOG, re.MULTILINE)[0].endswith(", in preparation")


def test_every_tag_has_a_home_and_a_section_of_the_changelog() -> None:
    """There is nothing to compare where git or the tags are missing."""
    try:
        listed = subprocess.run(["git", "tag", "--list", "v*"], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("needs git")
    versions = [tag.removeprefix("v") for tag in listed.stdout.split()]
    if not versions:
        pytest.skip("needs a tag")
    sections = re.findall(r"^## (\S+)", CHANGELOG, re.MULTILINE)
    assert [version for version in versions if version not in sections] == []
    assert [version for version in versions if version not in {row.version for row in RELEASES}] == []
