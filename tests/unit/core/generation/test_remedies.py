"""The remedies that would let a suite run, read from pytest's messages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gistpoint.core.errors import CancelledError
from gistpoint.core.generation import pipeline
from gistpoint.core.generation.intake import NoGood, NoTaskError, require_usable
from gistpoint.core.generation.remedies import (
    Remedy,
    remedy_for_collection,
    remedy_for_failures,
    remedy_for_start,
)
from gistpoint.core.generation.settings import SourceSpec
from gistpoint.core.outcomes import Outcome, RunStatus, SuiteReport, TestResult


def report(errors: dict[str, str], files: int = 20) -> SuiteReport:
    results = {
        f"tests/test_{n}.py::test": TestResult(f"tests/test_{n}.py::test", Outcome.PASSED)
        for n in range(files)
    }
    found = tuple(TestResult(id, Outcome.ERROR, message=message) for id, message in errors.items())
    return SuiteReport(RunStatus.FINISHED, results, collection_errors=found)


def test_unknown_options_of_the_settings_are_left_out() -> None:
    output = (
        "ERROR: usage: pytest [options]\npytest: error: unrecognized arguments: --cov=parse --cov-report\n"
    )
    found = remedy_for_start(output)
    assert found is not None
    assert (found.is_safe, str(found)) == (True, "--pytest-args '-o addopts='")
    assert remedy_for_start("no tests ran in 0.01s") is None


@pytest.mark.parametrize(
    ("module", "safe", "options"),
    [
        ("hypothesis", True, "--with hypothesis"),
        ("yaml", True, "--with pyyaml"),
        ("never_heard_of", False, "--with never_heard_of"),
    ],
)
def test_a_package_that_a_conftest_imports_is_installed_if_it_is_well_known(
    module: str, safe: bool, options: str
) -> None:
    output = (
        "ImportError while loading conftest '/sandbox/repo/tests/conftest.py'.\n"
        f"tests/conftest.py:8: in <module>\n    import {module}\n"
        f"E   ModuleNotFoundError: No module named '{module}'\n"
    )
    found = remedy_for_start(output)
    assert found is not None
    assert (found.is_safe, str(found)) == (safe, options)


def test_a_well_known_package_is_installed() -> None:
    found = remedy_for_collection(
        report({"tests/test_x.py": "E   ModuleNotFoundError: No module named 'hypothesis.strategies'"})
    )
    assert (found.is_safe, str(found)) == (True, "--with hypothesis")


@pytest.mark.parametrize(
    ("broken", "files", "is_safe"),
    [(1, 20, True), (1, 3, True), (2, 20, True), (3, 20, False), (1, 0, False)],
)
def test_files_with_another_error_are_ignored_by_themselves_only_if_they_are_few(
    broken: int, files: int, is_safe: bool
) -> None:
    errors = {
        f"tests/test_b{n}.py": "E   ModuleNotFoundError: No module named 'whatever'" for n in range(broken)
    }
    found = remedy_for_collection(report(errors, files))
    assert found.extra_requirements == ()
    assert found.pytest_args == tuple(f"--ignore={path}" for path in sorted(errors))
    assert found.is_safe is is_safe


@pytest.mark.parametrize(
    ("failing", "of", "offered"), [(1, 5, True), (10, 100, True), (11, 100, False), (59, 333, False)]
)
def test_a_few_failing_tests_are_deselected_with_all_their_parameters(
    failing: int, of: int, offered: bool
) -> None:
    found = remedy_for_failures([f"tests/test_a.py::test_{n % 3}[{n}]" for n in range(failing)], of)
    assert (found is not None) is offered
    if found is not None:
        assert found.pytest_args == tuple(
            f"--deselect=tests/test_a.py::test_{n}" for n in range(min(failing, 3))
        )


def test_words_of_the_shell_are_quoted() -> None:
    found = remedy_for_failures(["tests/a b.py::test_x"], 10)
    assert str(found) == """--pytest-args ''"'"'--deselect=tests/a b.py::test_x'"'"''"""


def test_a_refusal_shows_the_commonest_errors_of_the_files_that_cannot_be_collected() -> None:
    alone = "E   FileNotFoundError: 'tools/bench.py'"
    others = dict.fromkeys(("tests/test_c.py", "tests/test_d.py"), "E   ImportError: no known parent package")
    with pytest.raises(NoTaskError) as caught:
        require_usable(
            report({"tests/test_b.py": alone, **others, "tests/test_e.py": "E   NameError: x"}), 60
        )
    assert str(caught.value).startswith("tests/test_b.py and 3 others can't be collected on the original.")
    assert caught.value.hint.splitlines()[-2:] == [
        "2 files: ImportError: no known parent package",
        "1 file: FileNotFoundError: 'tools/bench.py'",
    ]
    with pytest.raises(NoTaskError) as caught:
        require_usable(report({"tests/test_b.py": alone}), 60)
    assert str(caught.value).startswith("tests/test_b.py can't be collected on the original.")
    assert caught.value.hint.splitlines()[-1] == "FileNotFoundError: 'tools/bench.py'"


def learned_after(
    monkeypatch: pytest.MonkeyPatch, refusals: list[Remedy | None]
) -> tuple[list[SourceSpec], list[str], str]:
    """Learn a library whose suite is refused with these remedies; return the tries, the notes and the end."""
    tried: list[SourceSpec] = []
    notes: list[str] = []

    def learned(spec: SourceSpec, *rest: object) -> str:
        tried.append(spec)
        if len(tried) <= len(refusals):
            raise NoTaskError(NoGood.NOT_GREEN, "It fails.", remedy=refusals[len(tried) - 1])
        return "the library"

    monkeypatch.setattr(pipeline, "_learned", learned)
    run: Any = SimpleNamespace(note=notes.append)
    try:
        end = pipeline._learned_with_remedies(SourceSpec("x==1", ("tests",), ("a",)), None, None, None, run)  # type: ignore[arg-type]
    except NoTaskError as refusal:
        end = refusal.message  # type: ignore[assignment]
    return tried, notes, str(end)


def test_safe_remedies_are_added_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    remedies = [
        Remedy(("-o", "addopts="), is_safe=True),
        Remedy(extra_requirements=("hypothesis",), is_safe=True),
    ]
    tried, notes, end = learned_after(monkeypatch, [*remedies])
    assert end == "the library"
    assert tried[-1] == SourceSpec("x==1", ("tests", "-o", "addopts="), ("a", "hypothesis"))
    assert notes == [
        "It fails. Trying again with --pytest-args '-o addopts='.",
        "It fails. Trying again with --with hypothesis.",
    ]


@pytest.mark.parametrize("remedy", [None, Remedy(("--ignore=x",))])
def test_without_a_safe_remedy_the_source_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, remedy: Remedy | None
) -> None:
    tried, notes, end = learned_after(monkeypatch, [remedy])
    assert (len(tried), notes, end) == (1, [], "It fails.")


def test_remedies_that_never_help_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, notes, end = learned_after(monkeypatch, [Remedy(("-x",), is_safe=True)] * 9)
    assert (len(tried), len(notes), end) == (5, 4, "It fails.")


@pytest.mark.parametrize("stop", [CancelledError("Stopped."), KeyboardInterrupt(), SystemExit(143)])
def test_a_stop_during_the_analysis_is_not_silent(
    monkeypatch: pytest.MonkeyPatch, stop: BaseException
) -> None:
    def learned(*rest: object) -> None:
        raise stop

    monkeypatch.setattr(pipeline, "_learned", learned)
    notes: list[str] = []
    run: Any = SimpleNamespace(note=notes.append)
    made = pipeline.generate([SourceSpec("x==1")], None, None, None, None, count=1, run=run)  # type: ignore[arg-type]
    with pytest.raises(type(stop)):
        next(made)
    assert notes == [
        "stopped while x==1 was analysed; finished steps are kept: run the same command again to continue"
    ]
