"""The times of recorded runs, next to a direct count of their raw records."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies.times_of_runs import TOLERANCE_S, compared

SAMPLES = Path(__file__).parents[3] / "shared" / "samples"


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="there are no samples next to the checkout")
def test_times_are_those_of_the_raw_records() -> None:
    folders = ("claude-code", "codex", "gemini_cli", "opencode", "pi", "2026_late")
    found = list(compared([str(SAMPLES / name) for name in folders]))
    assert len({format for format, *_ in found}) >= 5
    for _, name, measured, counted in found:
        assert measured == pytest.approx(counted, abs=TOLERANCE_S), name
