"""The overview of a gist task: what is asked, what was recorded, and what speaks for or against it, as lines."""

from __future__ import annotations

from gistpoint.core.kinds.gist.model import GistAnswer
from gistpoint.core.kinds.gist.runs import TestsRun
from gistpoint.tui.screens.validate.gist_page import reference_words
from gistpoint.tui.screens.validate.lines import BAD, GOOD, HEADING, MUTED, ODD, Line, folded, line
from gistpoint.tui.screens.validate.overview import Known, about_check, about_provenance, about_runs, about_verdict

_MOST_TESTS = 12
_MOST_OUTPUT = 8


def gist_overview(known: Known, width: int) -> list[Line]:
    """Return the lines; links are names of pages."""
    answer = known.dossier.answer.gist
    if answer is None:
        return []
    return [
        *_task(known, answer),
        *about_verdict(known.said, width),
        *_recorded(answer, width),
        *_reference(answer),
        *about_check(known.said.check),
        *about_runs(known.trials),
        *about_provenance({**answer.provenance, **known.dossier.answer.provenance}, width),
    ]


def _task(known: Known, answer: GistAnswer) -> list[Line]:
    task = known.dossier.task
    settings = task.gist_settings
    allowed = ["code may be run" if settings.execution else "no code is run", *settings.tools]
    advice = [settings.strategy] if settings.strategy else []
    advice += ["the test is given"] if settings.give_test else []
    hard = answer.difficulty
    what = f"{hard.calls:,} calls, {hard.functions} functions and {hard.files} files touched, depth {hard.depth}"
    return [
        Line(((f"{task.short_id}  ", HEADING), (f"gist  {task.source.name} {task.source.revision[:12]}", ""))),
        Line((("command   ", MUTED), (task.entrypoint, "bold")), link="page:brief"),
        Line((("budget    ", MUTED), (f"{task.budgets.tool_uses} steps, one hand-in", ""))),
        Line((("solver    ", MUTED), (", ".join([*allowed, *advice]), ""))),
        Line((("original  ", MUTED), (f"{what}, {100 * hard.lines_covered:.1f} % of the lines", ""))),
        Line((("forbidden ", MUTED), (", ".join(answer.owned), ""))),
    ]


def _recorded(answer: GistAnswer, width: int) -> list[Line]:
    runs = answer.originals
    lines = [
        Line(),
        line(f"What was recorded of the original: {len(runs)} runs alike, {answer.seconds:.1f} s", HEADING),
    ]
    last = runs[-1]
    if not isinstance(last, TestsRun):
        lines.append(line(f"exit status {last.exit_status}", GOOD if last.exit_status == 0 else ODD))
        return [*lines, *_output(last.stdout + last.stderr, width)]
    for id, test in list(last.tests.items())[:_MOST_TESTS]:
        good = test.outcome.value == "passed"
        raised = f"  {test.raised.type}: {test.raised.message}" if test.raised is not None else ""
        sign, style = ("✓ ", GOOD) if good else ("✗ ", BAD)
        lines.append(Line(((sign, style), (id, ""), (f"  {test.outcome.value}{raised}", MUTED))))
        lines += _output(test.stdout + test.stderr, width)
    if len(last.tests) > _MOST_TESTS:
        lines.append(line(f"… and {len(last.tests) - _MOST_TESTS} more", MUTED))
    return lines


def _output(text: str, width: int) -> list[Line]:
    rows = folded(text.rstrip("\n"), width, MUTED, indent="    │ ") if text.strip() else []
    more = [line(f"    … {len(rows) - _MOST_OUTPUT} rows more", MUTED)] if len(rows) > _MOST_OUTPUT else []
    return rows[:_MOST_OUTPUT] + more


def _reference(answer: GistAnswer) -> list[Line]:
    reference = answer.reference
    good = reference is not None and reference.faithful
    words = reference_words(answer)
    return [
        Line(),
        line("Reference gist (F8)", HEADING, link="page:gist"),
        Line((("✓ " if good else "~ ", GOOD if good else ODD), (words, "")), link="page:gist"),
    ]
