"""What the tests showed of one corruption, joined with the test map and the call graph."""

from __future__ import annotations

import re

from gistpoint.core.code.names import split_number
from gistpoint.core.corruption.edits import changed_lines
from gistpoint.core.corruption.evidence import Evidence, ochiai_rank
from gistpoint.core.generation.campaign.library import Library
from gistpoint.core.ports import ProbeReport
from gistpoint.core.tasks.model import Target

_PARAMETERS = re.compile(r"\[.*\]$", re.DOTALL)


def evidence_of(report: ProbeReport, target: Target, library: Library) -> Evidence:
    """Return the evidence of a probe that ran to its end."""
    name, failed = target.name, report.failed
    steps = library.reach_from_tests.steps(name)
    return Evidence(
        failing=len(failed),
        by_assertion=sum(failure.assertion for failure in failed.values()),
        through_target=sum(failure.through_target for failure in failed.values()),
        entering=len(library.entering(name)),
        distances=tuple(steps.get(function_of_test(id)) for id in sorted(failed)),
        own_tests=sum(is_own_test(id, target.qualname) for id in failed),
        rank=ochiai_rank(name, frozenset(failed), library.test_map),
        messages=len({failure.message for failure in failed.values()}),
        changed_lines=changed_lines(target.original, target.corrupted),
    )


def function_of_test(id: str) -> str:
    """Return the function of a test id as the call graph names it: `path::Class.test_it`."""
    path, _, rest = _PARAMETERS.sub("", id).partition("::")
    return f"{path}::{rest.replace('::', '.')}"


def is_own_test(id: str, qualname: str) -> bool:
    """Whether a test is about the function by its name: `test_split_lines`, `TestSplitLines`, `TestText::test_split`.

    Of a method, the test names the method and not its class alone; of `__init__` and its like, it names the class.
    """
    plain, _ = split_number(qualname)
    parts = [part for part in plain.split(".") if part != "<locals>"]
    wanted = parts[-1]
    if wanted.startswith("__") and len(parts) > 1:
        wanted = parts[-2]
    test = _PARAMETERS.sub("", id).partition("::")[2]
    folded = _folded(wanted)
    return len(folded) > 1 and any(_names(part, folded, wanted) for part in test.split("::"))


def _names(part: str, folded: str, wanted: str) -> bool:
    """Whether a part of a test's id has the words of a name, one behind the other and whole."""
    words = _words(part)
    count = len(_words(wanted))
    return any("".join(words[n : n + count]) == folded for n in range(len(words) - count + 1))


def _folded(name: str) -> str:
    return "".join(_words(name))


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)]
