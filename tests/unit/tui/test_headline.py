"""The header of a run under review."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gistpoint.core.attempts.results import Standing
from gistpoint.sessions.records.model import Actor, Run
from gistpoint.tui.screens.review.headline import run_words


@pytest.mark.parametrize("standing", ["", *Standing])
def test_a_pass_that_nobody_has_confirmed_is_described_as_in_the_other_lists(standing: str) -> None:
    document: Any = SimpleNamespace(warnings=())
    run = Run("gistpoint", actor=Actor.PERSON, verdict="solved", confirmation=standing)
    words = run_words(document, run, hides=False, wide=True)
    expected = "not confirmed yet" if standing == Standing.NOT_ASKED else standing
    assert words == [word for word in ("a person", "solved", expected) if word]
