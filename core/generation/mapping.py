"""The intake of a repository with its test map: recorded once, for every task made of it."""

from __future__ import annotations

from dataclasses import replace

from gistpoint.core.cancel import CancelToken
from gistpoint.core.generation.intake import Intake, MakingProgress, OnMaking
from gistpoint.core.ports import RunProgress, TestMapper

STEP = "tests recorded with the functions that they enter"


def with_test_map(
    intake: Intake, mapper: TestMapper, *, on_progress: OnMaking | None = None, cancel: CancelToken | None = None
) -> Intake:
    """Return the intake with which tests enter which functions; one that has a map is returned as it is.

    Raises `RecordingError` where the watched run, four to fifteen times slower than the suite, did not come to its end,
    and `CancelledError`.
    """
    if intake.test_map is not None:
        return intake

    def tell(progress: RunProgress | None) -> None:
        if on_progress is not None:
            on_progress(MakingProgress(STEP, progress))

    tell(None)
    repository = intake.repository
    test_map, _ = mapper.record(repository.tree, repository.environment, intake.passed, on_progress=tell, cancel=cancel)
    return replace(intake, test_map=test_map)
