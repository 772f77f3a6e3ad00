"""Execution fidelity: does the gist do what the codebase does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gistpoint.core.kinds.gist.output_rules import normalise_output
from gistpoint.core.kinds.gist.patterns import OutputPattern
from gistpoint.core.kinds.gist.runs import CommandRun, Raised, TestRun, TestsRun
from gistpoint.core.outcomes import Outcome, RunStatus


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which two runs differ: `what` is `status`, `outcome`, `exception`, `exit`, `file` or a stream."""

    test: str
    what: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class Fidelity:
    """The verdict and what speaks against it."""

    differences: tuple[Difference, ...]
    passed: int = 0
    instances: int = 0

    @property
    def value(self) -> int:
        """1 if the run is like the original's in all that is compared, else 0."""
        return 0 if self.differences else 1

    @property
    def pass_rate(self) -> float | None:
        """Passed instances of all instances of the entrypoint, 0-100; None where there are none."""
        return 100 * self.passed / self.instances if self.instances else None

    @property
    def only_output_differs(self) -> bool:
        """Whether every difference is one of a stream."""
        return bool(self.differences) and all(d.what in ("stdout", "stderr") for d in self.differences)


def instance_key(node_id: str) -> str:
    """Return a node id without its file: what stays the same when a test moves into a gist."""
    return node_id.partition("::")[2]


def compare_tests(originals: Sequence[TestsRun], gist: TestsRun, places: Sequence[Mapping[str, str]] = ()) -> Fidelity:
    """Compare a gist's run with the runs of the original, two or more so that what varies is known.

    The same instances must pass, fail and be skipped, exceptions of failing ones be alike, and stdout and stderr of
    each match after normalising. `places` are the paths of each run, the gist's last (see `normalise_output`).
    """
    known = [*places, *[{}] * (len(originals) + 1 - len(places))]
    wanted = [{instance_key(id): run for id, run in original.tests.items()} for original in originals]
    found = {instance_key(id): run for id, run in gist.tests.items()}
    expected = wanted[0]
    passed = sum(key in found and found[key].outcome is Outcome.PASSED for key in expected)
    differences: list[Difference] = []
    if gist.status is not RunStatus.FINISHED:
        differences.append(Difference("", "status", RunStatus.FINISHED, gist.status))
    for key in sorted(expected.keys() | found.keys()):
        if key not in expected or key not in found:
            missing = "no such test"
            there = expected.get(key) or found[key]
            sides = (there.outcome, missing) if key in expected else (missing, there.outcome)
            differences.append(Difference(key, "outcome", *sides))
        else:
            runs = [run[key] for run in wanted if key in run]
            differences.extend(_compare(key, runs, found[key], known))
    return Fidelity(tuple(differences), passed, len(expected))


def _compare(
    key: str, runs: Sequence[TestRun], found: TestRun, places: Sequence[Mapping[str, str]]
) -> list[Difference]:
    expected = runs[0]
    if expected.outcome is not found.outcome:
        return [Difference(key, "outcome", expected.outcome, found.outcome)]
    differences: list[Difference] = []
    if expected.outcome in (Outcome.FAILED, Outcome.ERROR):
        differences += _exceptions(key, [run.raised for run in runs], found.raised, places)
    differences += _streams(key, "stdout", [run.stdout for run in runs], found.stdout, places)
    differences += _streams(key, "stderr", [run.stderr for run in runs], found.stderr, places)
    return differences


def compare_commands(
    originals: Sequence[CommandRun],
    gist: CommandRun,
    places: Sequence[Mapping[str, str]] = (),
    compared_files: Sequence[str] = (),
) -> Fidelity:
    """Compare runs of a command that is no test: exit status, streams, the exception that ended it, files listed."""
    known = [*places, *[{}] * (len(originals) + 1 - len(places))]
    expected = originals[0]
    differences: list[Difference] = []
    if gist.status is not expected.status:
        differences.append(Difference("", "status", expected.status, gist.status))
    if gist.exit_status != expected.exit_status:
        differences.append(Difference("", "exit", str(expected.exit_status), str(gist.exit_status)))
    differences += _exceptions("", [run.raised for run in originals], gist.raised, known)
    differences += _streams("", "stdout", [run.stdout for run in originals], gist.stdout, known)
    if expected.raised is None:
        differences += _streams("", "stderr", [run.stderr for run in originals], gist.stderr, known)
    for path in compared_files:
        hashes = {run.files.get(path, "") for run in originals}
        if len(hashes) == 1 and gist.files.get(path, "") not in hashes:
            differences.append(Difference("", "file", path, gist.files.get(path, "not written")))
    return Fidelity(tuple(differences))


def _exceptions(
    key: str, expected: Sequence[Raised | None], found: Raised | None, places: Sequence[Mapping[str, str]]
) -> list[Difference]:
    first = expected[0]
    if first is None or found is None:
        if first is found:
            return []
        return [Difference(key, "exception", first.type if first else "none", found.type if found else "none")]
    if first.type.rpartition(".")[2] != found.type.rpartition(".")[2]:
        return [Difference(key, "exception", first.type, found.type)]
    messages = [raised.message if raised else "" for raised in expected]
    return [
        Difference(key, "exception", difference.expected, difference.found)
        for difference in _streams(key, "exception", messages, found.message, places)
    ]


def _streams(
    key: str, name: str, expected: Sequence[str], found: str, places: Sequence[Mapping[str, str]]
) -> list[Difference]:
    pattern = OutputPattern.of([normalise_output(text, places[n]) for n, text in enumerate(expected)])
    text = normalise_output(found, places[-1])
    return [] if pattern.matches(text) else [Difference(key, name, pattern.text, text)]
