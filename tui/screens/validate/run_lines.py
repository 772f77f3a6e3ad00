"""What was run on a task: the check's findings, each trial, and the tests in which it was not as the task says."""

from __future__ import annotations

from collections.abc import Iterator

from gistpoint.tui.screens.validate.lines import BAD, HEADING, MUTED, ODD, Line, folded, line
from gistpoint.tui.screens.validate.overview import Known, trial_line

MOST_IDS = 30


def run_lines(known: Known, width: int) -> list[Line]:
    """Return the lines of the page."""
    return [*_check(known, width), Line(), *_trials(known)]


def _check(known: Known, width: int) -> Iterator[Line]:
    check = known.said.check
    if check is None:
        yield line("`task check` was not run here yet", HEADING)
        yield line("C runs it: leaks, identity, scores of the original and of the corrupted tree", MUTED, link="check")
        return
    yield line(f"`task check` on {check.backend}: {'clean' if check.clean else 'NOT CLEAN'}", HEADING)
    for name, passed, reduced, detail in check.findings:
        sign, style = ("~", ODD) if reduced else ("✓", "$text-success") if passed else ("✗", BAD)
        yield Line(((f"{sign} ", style), (name, "bold")))
        yield from folded(detail, width, MUTED if passed else BAD, indent="    ")


def _trials(known: Known) -> Iterator[Line]:
    yield line(f"Runs of the suite: {len(known.trials)}", HEADING)
    if not known.trials:
        yield line("r runs the task's tests, o those of the original; R and O five times, F9 your fix", MUTED)
    for trial in reversed(known.trials):
        yield trial_line(trial)
        for id in trial.odd[:MOST_IDS]:
            yield Line((("    ", ""), (id, ODD)), link=f"test:{id}")
        if trial.odd_count > MOST_IDS:
            yield line(f"    … and {trial.odd_count - MOST_IDS} more", MUTED)
