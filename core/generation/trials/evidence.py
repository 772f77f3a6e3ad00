"""The evidence in the tests that fail on a corruption."""

from __future__ import annotations

import re

from gistpoint.core.corruption.edits import changed_lines
from gistpoint.core.corruption.evidence import Evidence, is_own_test, ochiai_rank
from gistpoint.core.generation.library import SourceLibrary
from gistpoint.core.ports import ProbeReport
from gistpoint.core.tasks.model import Target

_PARAMETERS = re.compile(r"\[.*\]$", re.DOTALL)


def evidence_of(report: ProbeReport, target: Target, library: SourceLibrary) -> Evidence:
    """Return the evidence of a probe that finished."""
    name, failed = target.name, report.failed
    steps = library.reach_from_tests.steps(name)
    return Evidence(
        failing=len(failed),
        by_assertion=sum(failure.assertion for failure in failed.values()),
        through_target=sum(failure.through_target for failure in failed.values()),
        entering=len(library.entering(name)),
        distances=tuple(steps.get(function_of_test(id)) for id in sorted(failed)),
        own_tests=sum(is_own_test(name, id) for id in failed),
        rank=ochiai_rank(name, frozenset(failed), library.test_map),
        messages=len({failure.message for failure in failed.values()}),
        changed_lines=changed_lines(target.original, target.corrupted),
    )


def function_of_test(id: str) -> str:
    """Return the name of a test's function in the call graph: `path::Class.test_it`."""
    path, _, rest = _PARAMETERS.sub("", id).partition("::")
    return f"{path}::{rest.replace('::', '.')}"
