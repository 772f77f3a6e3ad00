"""The reasons why an attempt does not count, in words, without codes of the program."""

from __future__ import annotations

import ast
import inspect

import pytest

from gistpoint.core.attempts.identity import MODEL, PERSON, REPLAY, SIMULATED, Role
from gistpoint.core.code.parsing import parse
from gistpoint.core.study import measuring
from gistpoint.core.study.exclusions import ACTOR, NO_VERDICT, ROLE, exclusion_words
from gistpoint.core.study.flags import FLAGS
from gistpoint.sessions.studies import foreign

ROLES = [f"{ROLE}{role}" for role in (*Role, "unknown") if role != Role.BASELINE]
ACTORS = [f"{ACTOR}{actor}" for actor in (PERSON, MODEL, SIMULATED, REPLAY, "unknown")]


def _returned(*functions: object) -> set[str]:
    """Return the strings that functions return literally."""
    found: set[str] = set()
    for function in functions:
        tree = parse(inspect.getsource(function))  # type: ignore[arg-type]
        for node in ast.walk(tree):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and node.value.value:
                found.add(str(node.value.value))
    return found


CODES = _returned(measuring._by_design, measuring._not_assigned, measuring.exclusion_of)


def test_every_code_of_the_program_has_words() -> None:
    assert {"unfinished", "mixed", "not_assigned", "returned", "second_exposure", "reviewers"} <= CODES
    assert "NO_VERDICT" in inspect.getsource(foreign.foreign_row)
    for code in (*CODES, *measuring.NO_ROW, *ROLES, *ACTORS, NO_VERDICT, "excluded"):
        words = exclusion_words(code)
        assert "_" not in words
        assert not words.startswith("the organiser excluded it:"), code


@pytest.mark.parametrize("flag", sorted(set(FLAGS) - {"second_exposure"}))
def test_a_flag_that_excludes_is_named(flag: str) -> None:
    assert exclusion_words(flag) == f"it has the flag {flag}"


def test_the_demo_of_a_gist_says_what_is_different() -> None:
    assert exclusion_words("role_demo") == (
        "it was made as a demo, in which results are shown during the attempt"
    )


def test_an_organisers_reason_is_shown() -> None:
    assert exclusion_words("not_serious") == "the organiser excluded it: not serious"
