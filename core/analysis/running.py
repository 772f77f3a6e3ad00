"""Runs analyses in order; a failure is reported in its place, and the others still run."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gistpoint.core.analysis.catalogue import analyses as catalogue
from gistpoint.core.analysis.findings import Findings
from gistpoint.core.analysis.pooling import as_reported
from gistpoint.core.errors import UserError, did_you_mean, extra_hint
from gistpoint.core.kinds.measures import Analysis
from gistpoint.core.running import UNATTENDED, RunContext, RunProgress
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.operations import StudyError
from gistpoint.core.text import bounded, visible_line

_PACKAGES = frozenset({"numpy", "scipy", "pandas", "statsmodels", "lifelines", "matplotlib"})
"""The packages that the extra `study` installs."""


@dataclass(frozen=True, slots=True)
class RanAnalysis:
    """An analysis that was run, with its findings or the reason why it failed."""

    analysis: Analysis
    findings: Findings = field(default_factory=Findings)
    failed: str = ""

    @property
    def printed(self) -> bool:
        """Whether a report prints this analysis, because it failed or its findings are not empty."""
        return bool(self.failed) or not self.findings.empty


PRIMARY = "primary"
"""The id of the confirmatory analysis."""


def chosen(names: Sequence[str], known: Sequence[Analysis] | None = None) -> tuple[Analysis, ...]:
    """Return the analyses with these ids, in the catalogue's order, or all of them if no id is given.

    `known` replaces the catalogue. Raises `StudyError` for an id that is not in it.
    """
    known = catalogue() if known is None else known
    ids = [analysis.id for analysis in known]
    for name in names:
        if name not in ids:
            raise StudyError(
                f"There is no analysis {visible_line(name)!r}.{did_you_mean(name, ids)}",
                hint=f"There are: {', '.join(ids)}.",
            )
    return tuple(analysis for analysis in known if not names or analysis.id in names)


def run_analyses(
    data: StudyData, analyses: Iterable[Analysis], run: RunContext = UNATTENDED
) -> tuple[RanAnalysis, ...]:
    """Run the analyses on a study, in order, and return each with its findings.

    Progress is reported before each analysis. An analysis that fails is returned with the reason. Raises
    `StudyError` if the extra `study` is not installed, and `CancelledError` when cancelled.
    """
    found, listed, data = [], tuple(analyses), as_reported(data)
    for done, analysis in enumerate(listed):
        run.check()
        run.progress(
            RunProgress(step=f"{done + 1} of {len(listed)}: {analysis.title}", done=done, total=len(listed))
        )
        found.append(_ran(analysis, data))
    return tuple(found)


def _ran(analysis: Analysis, data: StudyData) -> RanAnalysis:
    try:
        return RanAnalysis(analysis, analysis.run(data))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in _PACKAGES:
            raise missing_extra(error) from error
        return RanAnalysis(analysis, failed=_failure(error))
    except UserError as error:
        return RanAnalysis(analysis, failed=str(error))
    # One failing analysis must not abort the report: its failure is printed in its place.
    except Exception as error:
        return RanAnalysis(analysis, failed=_failure(error))


def missing_extra(error: ModuleNotFoundError) -> StudyError:
    """Return the error that explains how to install the packages for analyses and reports."""
    return StudyError(
        f"Analyses need packages that are not installed, such as {error.name}.",
        hint=extra_hint("study"),
    )


_LONGEST = 300


def _failure(error: Exception) -> str:
    """Return an exception in words, cut to 300 characters, with function and line but without paths."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" (in {frames[-1].name}, line {frames[-1].lineno})" if frames else ""
    words = error.strerror if isinstance(error, OSError) else str(error)
    return visible_line(bounded(f"{type(error).__name__}: {words}", _LONGEST)) + place
