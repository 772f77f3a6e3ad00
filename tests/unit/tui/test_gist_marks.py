"""The marks in the gutter of a gist's lines."""

from __future__ import annotations

from gistpoint.core.kinds.gist.rates import ExistenceReason
from gistpoint.core.kinds.gist.score import LineEvidence
from gistpoint.tui.widgets.gist_view import (
    FOUND,
    INVENTED,
    NO_RUN,
    NOT_RUN,
    RAN,
    figures,
    glyphs,
    marks_of,
    missing_lines,
)

THERE, INVENTION = ExistenceReason.IN_BLOCK, ExistenceReason.NOT_IN_BLOCK


def shown(*lines: LineEvidence) -> list[str]:
    return ["".join(glyph for glyph, _ in glyphs(mark)) for mark in marks_of(lines).values()]


def test_of_several_statements_on_a_line_the_one_that_keeps_a_score_down_is_shown() -> None:
    ran, idle = LineEvidence(1, 1, True, THERE), LineEvidence(1, 1, False, THERE)
    assert shown(ran, idle) == shown(idle, ran) == [NOT_RUN + FOUND]
    invented = LineEvidence(1, 1, True, INVENTION)
    assert shown(invented, idle) == shown(idle, invented) == [NOT_RUN + INVENTED]
    uncounted = LineEvidence(1, 1, None, THERE)
    assert shown(ran, uncounted) == shown(uncounted, ran) == [RAN + FOUND]
    assert shown(uncounted, LineEvidence(2, 2, True, THERE)) == [NO_RUN + FOUND, RAN + FOUND]


def test_all_that_keeps_a_score_down_is_told_of_a_line_with_several_statements() -> None:
    marks = marks_of([LineEvidence(3, 3, True, THERE), LineEvidence(3, 3, False, INVENTION)])
    assert [(lack.line, lack.words) for lack in missing_lines(marks.values(), [])] == [
        (3, "never ran"),
        (3, "is not in the original block"),
    ]


def test_the_figures_of_a_text_that_does_not_parse_are_its_fault() -> None:
    error = {"category": "pytest_runtime", "kind": "syntax", "evidence": "line 2: invalid syntax"}
    assert (
        figures({"execution_fidelity": 0, "error": error})
        == "not faithful  does not parse: line 2: invalid syntax"
    )
