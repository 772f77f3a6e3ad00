"""Execution fidelity: whether a gist does what the codebase does, after normalising both outputs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from gistpoint.core.entrypoints.command import COMMAND_FILE, Entrypoint, EntrypointKind
from gistpoint.core.entrypoints.runs import DOCTEST, CommandRun, Raised, TestRun, TestsRun
from gistpoint.core.kinds.gist.patterns import OutputPattern
from gistpoint.core.outcomes import Outcome, RunStatus

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
# A number without a unit is never masked: `3 items` and `4 items` are different outputs (decision 17).
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b0x[0-9a-fA-F]{6,16}\b"), "<address>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +\d\d? \w{3} \d{4} \d\d:\d\d:\d\d(?: GMT)?"), "<time>"),
    (re.compile(r"\b\d\d/\w{3}/\d{4}[: ]\d\d:\d\d:\d\d(?: [+-]\d{4})?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)?(?:e-?\d+)? ?(?:ns|us|µs|ms|s|sec|secs|seconds?|minutes?)\b"), "<duration>"),
    (re.compile(r"(?i)\b(pid|seed|random[ _-]?seed)([ =:]+)\d+"), r"\1\2<number>"),
    (re.compile(r'(?P<q>["\']?)(?:/private)?/tmp/[^\s"\':,)]*(?P=q)'), "<path>"),
    (re.compile(r'(File ")([^"]*)(", line )\d+'), r"\1<path>\3<line>"),
    (re.compile(r"(?m)^(\S+\.py):\d+(?=: )"), r"<path>:<line>"),
    (re.compile(r"\bid=\d{9,}\b"), "id=<number>"),
)


_NO_TEST = "no such test"


def normalise_output(text: str, places: Mapping[str, str] | None = None) -> str:
    """Return an output without what usually varies between runs.

    Times, durations, addresses, process ids, seeds, temporary paths and line numbers of tracebacks are
    masked. `places` maps paths and file names of this run (working folder, gist, interpreter) to the words
    that replace them; longer ones are replaced first. ANSI sequences are removed, and all line endings become
    line feeds.
    """
    text = _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    named = dict(places or {})
    named.pop("", None)
    # Longer paths come first, because the path of a working folder may begin with that of the temporary
    # folder.
    for place in sorted(named, key=len, reverse=True):
        text = text.replace(place, named[place])
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


def name_masks(entrypoint: Entrypoint, modules: Collection[str]) -> dict[str, str]:
    """Return the names of files and modules that count as equal, mapped to their replacements.

    A gist has everything in one module with another name: `pkg.core.Bad` and `test_gist.Bad` are the same.
    Module names count only before a dot, so that words in other strings are left alone.
    """
    gist = entrypoint.gist_file
    files = {gist, *entrypoint.files, *map(_base_name, entrypoint.files)}
    if entrypoint.kind is EntrypointKind.MODULE:
        files.add("__main__.py")
    elif entrypoint.called_as:
        files.add(COMMAND_FILE)
    own = {gist.removesuffix(".py"), *map(_dotted, files)}
    names = {*modules, *own} - {""}
    masks = {f"{name}.": "<module>." for name in names}
    return masks | dict.fromkeys(files, "<file>")


def normalised(run: TestsRun | CommandRun, places: Mapping[str, str]) -> TestsRun | CommandRun:
    """Return a run with its outputs and messages normalised by `places`."""

    def raised(found: Raised | None) -> Raised | None:
        return found and Raised(found.type, normalise_output(found.message, places))

    def test(found: TestRun) -> TestRun:
        out = normalise_output(found.stdout, places)
        err = normalise_output(found.stderr, places)
        return replace(found, stdout=out, stderr=err, raised=raised(found.raised))

    if isinstance(run, TestsRun):
        return replace(run, tests={id: test(found) for id, found in run.tests.items()})
    out = normalise_output(run.stdout, places)
    err = normalise_output(run.stderr, places)
    return replace(run, stdout=out, stderr=err, raised=raised(run.raised))


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between two runs.

    `what` is `status`, `outcome`, `exception`, `exit`, `file`, `data`, `stdout` or `stderr`.
    """

    test: str
    what: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class Fidelity:
    """The differences between a gist's run and the original's runs, from which fidelity follows."""

    differences: tuple[Difference, ...]
    passed: int = 0
    instances: int = 0

    @property
    def value(self) -> int:
        """1 if the run matches the original's in everything compared, else 0."""
        return 0 if self.differences else 1

    @property
    def pass_rate(self) -> float | None:
        """The percentage of the entrypoint's instances that passed, 0-100; None if there are none."""
        if self.instances:
            return 100 * self.passed / self.instances
        return None

    @property
    def differing(self) -> tuple[str, ...]:
        """The tests that differ, sorted; for a command that is not a test, the properties that differ."""
        return tuple(sorted({one.test or one.what for one in self.differences}))

    @property
    def only_output_differs(self) -> bool:
        """Whether all differences are in output streams."""
        return bool(self.differences) and all(d.what in ("stdout", "stderr") for d in self.differences)


def instance_key(node_id: str) -> str:
    """Return a node id without its file; this part stays the same when a test moves into a gist."""
    return node_id.partition("::")[2]


def compare(
    originals: Sequence[TestsRun | CommandRun],
    gist: TestsRun | CommandRun,
    places: Sequence[Mapping[str, str]] = (),
    compared_files: Sequence[str] = (),
) -> Fidelity:
    """Return the fidelity of a run to the original's runs of the same type.

    See `compare_tests` and `compare_commands`.
    """
    if isinstance(gist, TestsRun):
        return compare_tests([run for run in originals if isinstance(run, TestsRun)], gist, places)
    commands = [run for run in originals if isinstance(run, CommandRun)]
    return compare_commands(commands, gist, places, compared_files)


def _base_name(path: str) -> str:
    return path.rpartition("/")[2]


def _dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def compare_tests(
    originals: Sequence[TestsRun], gist: TestsRun, places: Sequence[Mapping[str, str]] = ()
) -> Fidelity:
    """Return the fidelity of a gist's run to two or more runs of the original, which show what varies.

    The same instances must pass, fail and be skipped; failing ones must raise similar exceptions, instances
    made at run time must have the same data, and the normalised stdout and stderr of each must match.
    Doctests that the original does not have are ignored. `places` are the paths of each run, the gist's last
    (see `normalise_output`).
    """
    known = [*places, *[{}] * (len(originals) + 1 - len(places))]
    wanted = [_by_instance(original) for original in originals]
    found = _by_instance(gist)
    expected = wanted[0]
    passed = [key for key, run in found.items() if run.outcome is Outcome.PASSED]
    differences: list[Difference] = []
    if gist.status is not RunStatus.FINISHED:
        differences.append(Difference("", "status", RunStatus.FINISHED, gist.status))
    # Docstrings of copied code may also have examples; only those of the command count (docs/guide/gists.md).
    own_doctests = {key for key in found.keys() - expected.keys() if key.startswith(DOCTEST)}
    for key in sorted((expected.keys() | found.keys()) - own_doctests):
        if key not in found:
            differences.append(Difference(key, "outcome", expected[key].outcome, _NO_TEST))
        elif key not in expected:
            differences.append(Difference(key, "outcome", _NO_TEST, found[key].outcome))
        else:
            runs = [run[key] for run in wanted if key in run]
            differences += _compare(key, runs, found[key], known)
    return Fidelity(tuple(differences), len(expected.keys() & set(passed)), len(expected))


def _by_instance(run: TestsRun) -> dict[str, TestRun]:
    return {instance_key(id): test for id, test in run.tests.items()}


def _compare(
    key: str, runs: Sequence[TestRun], found: TestRun, places: Sequence[Mapping[str, str]]
) -> list[Difference]:
    expected = runs[0]
    if expected.outcome is not found.outcome:
        return [Difference(key, "outcome", expected.outcome, found.outcome)]
    differences: list[Difference] = []
    if expected.outcome in (Outcome.FAILED, Outcome.ERROR):
        differences += _exceptions(key, [run.raised for run in runs], found.raised, places)
    # The text of a test that is made at run time does not show what it tests (decision 90).
    is_steady = len({run.fixed for run in runs}) == 1 and expected.fixed is not None
    if is_steady and found.fixed != expected.fixed:
        differences.append(
            Difference(key, "data", "the data that the original makes the test with", "other data")
        )
    differences += _streams(key, "stdout", [run.stdout for run in runs], found.stdout, places)
    differences += _streams(key, "stderr", [run.stderr for run in runs], found.stderr, places)
    return differences


def compare_commands(
    originals: Sequence[CommandRun],
    gist: CommandRun,
    places: Sequence[Mapping[str, str]] = (),
    compared_files: Sequence[str] = (),
) -> Fidelity:
    """Return the fidelity of a gist's run to the original's runs, for a command that is not a test.

    The run's status, its exit status, the streams, the exception that ended the run, and those of
    `compared_files` that do not vary must match. The stderr of an original that raised an exception is not
    compared.
    """
    known = [*places, *[{}] * (len(originals) + 1 - len(places))]
    expected = originals[0]
    differences: list[Difference] = []
    if gist.status is not expected.status:
        differences.append(Difference("", "status", expected.status, gist.status))
    if gist.exit_status != expected.exit_status:
        differences.append(Difference("", "exit", str(expected.exit_status), str(gist.exit_status)))
    differences += _exceptions("", [run.raised for run in originals], gist.raised, known)
    differences += _streams("", "stdout", [run.stdout for run in originals], gist.stdout, known)
    # If the original raised, stderr contains the traceback of the exception that is compared above.
    if expected.raised is None:
        differences += _streams("", "stderr", [run.stderr for run in originals], gist.stderr, known)
    for path in compared_files:
        hashes = {run.files.get(path, "") for run in originals}
        varies = len(hashes) > 1
        if not varies and gist.files.get(path, "") not in hashes:
            differences.append(Difference("", "file", path, gist.files.get(path, "not written")))
    return Fidelity(tuple(differences))


def _exceptions(
    key: str, expected: Sequence[Raised | None], found: Raised | None, places: Sequence[Mapping[str, str]]
) -> list[Difference]:
    first = expected[0]
    if first is None and found is None:
        return []
    if first is None or found is None:
        wanted_type = first.type if first else "none"
        found_type = found.type if found else "none"
        return [Difference(key, "exception", wanted_type, found_type)]
    # Only the last part of a type's name counts: in a flat file its module is different (decision 17).
    if first.type.rpartition(".")[2] != found.type.rpartition(".")[2]:
        return [Difference(key, "exception", first.type, found.type)]
    messages = [raised.message if raised else "" for raised in expected]
    return _streams(key, "exception", messages, found.message, places)


def _streams(
    key: str, name: str, expected: Sequence[str], found: str, places: Sequence[Mapping[str, str]]
) -> list[Difference]:
    pattern = OutputPattern.of([normalise_output(text, places[n]) for n, text in enumerate(expected)])
    text = normalise_output(found, places[-1])
    if pattern.matches(text):
        return []
    return [Difference(key, name, pattern.text, text)]
