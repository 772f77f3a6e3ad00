"""The times of recorded runs, compared with a direct count in their raw records."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded_runs import make_all
from studies.times_of_runs import TOLERANCE_S, compared

from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.runs.time_parts import LONGEST_S
from gistpoint.sessions.runs.times import times_of

SAMPLES = Path(__file__).parents[3] / "shared" / "samples"


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="there are no samples next to the checkout")
def test_times_are_those_of_the_raw_records() -> None:
    folders = ("claude-code", "codex", "gemini_cli", "opencode", "pi", "2026_late")
    found = list(compared([str(SAMPLES / name) for name in folders]))
    assert len({format for format, *_ in found}) >= 5
    for _, name, measured, counted in found:
        assert measured == pytest.approx(counted, abs=TOLERANCE_S), name


def paths(folder: Path) -> list[str]:
    """Write a run of every format to a folder; return that folder and, if it exists, that of the samples."""
    make_all(folder)
    return [str(folder), *([str(SAMPLES)] if SAMPLES.is_dir() else [])]


def test_every_run_with_times_has_a_duration_that_its_parts_add_up_to(tmp_path: Path) -> None:
    timed = 0
    for listed in list_runs(paths(tmp_path)):
        if listed.header is None:
            continue
        document = open_run(listed.name, known=listed.format)
        document.build()
        times = [at for step in document.steps() for at in (step.started, step.ended) if at is not None]
        if not times or not 0 < max(times) - min(times) < LONGEST_S:
            continue
        timed += 1
        assert document.header.duration_s is not None, listed.name
        parts = times_of(document).parts
        assert parts.is_whole, listed.name
        assert parts.total >= document.header.duration_s - TOLERANCE_S, listed.name
        assert min(part for part in parts[:4] if part is not None) >= 0, listed.name
    assert timed > 15
