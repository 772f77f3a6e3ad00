"""The header of a run under review: its solver, its ending, its cost, and the review's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gistpoint.core.attempts.results import Standing
from gistpoint.core.readable import thousands
from gistpoint.core.text import shortened
from gistpoint.sessions.records.model import Run
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.rendering import money, tilde_of
from gistpoint.tui.screens.review.loading import solver_words
from gistpoint.tui.widgets.header_bar import HeaderField

if TYPE_CHECKING:
    from gistpoint.tui.screens.review.annotations import ReviewAnnotations


_NARROW = 20
"""The maximum length of a model's name, in characters, in a narrow terminal."""


def run_words(document: RunDocument, header: Run, *, hides: bool, wide: bool) -> list[str]:
    """Return the solver and the ending of a run and its first warning, without empty strings.

    `hides` hides the solver and the ending. Unless `wide`, the solver's name is shortened.
    """
    solver = solver_words(header)
    solver = solver if wide else shortened(solver, _NARROW)
    confirmed = "not confirmed yet" if header.confirmation == Standing.NOT_ASKED else header.confirmation
    words = ["model hidden"] if hides else [solver, header.verdict or header.exit_status, confirmed]
    missing = document.warnings
    if missing:
        words.append(f"! {missing[0]}" + (f" (+{len(missing) - 1})" if len(missing) > 1 else ""))
    return [word for word in words if word]


def run_fields(
    header: Run, annotations: ReviewAnnotations | None, place: str, *, hides: bool, sums: bool = False
) -> list[HeaderField]:
    """Return the header's fields for a run.

    They are the `place` in the list, the other readers, the reviewer's verdict and number of labels, the
    cost, the tokens and the format. `hides` leaves out the cost. `sums` means that the cost and the tokens
    are still being totalled.
    """
    review = annotations.review if annotations is not None else None
    verdict = (
        review.verdict.in_words.partition(":")[0] if review is not None and review.verdict is not None else ""
    )
    tokens, mark = (header.tokens.prompt or 0) + (header.tokens.completion or 0), tilde_of(header, "tokens")
    return [
        HeaderField("run", place),
        HeaderField("also read by", ", ".join(annotations.others_reading) if annotations is not None else ""),
        HeaderField("verdict", verdict),
        HeaderField("labels", str(len(review.labels)) if review is not None and review.labels else ""),
        HeaderField(
            "cost", tilde_of(header, "cost") + money(header.cost) if header.cost and not hides else ""
        ),
        HeaderField("tokens", "…" if sums and mark else f"{mark}{thousands(tokens)}" if tokens else ""),
        HeaderField("", header.format, "$foreground 60%"),
    ]
