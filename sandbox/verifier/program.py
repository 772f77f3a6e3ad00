"""The program of the bundle: `verify.pyz PLACE --expected FILE --tree TAR [--reward FILE]`.

PLACE is the folder that a solver worked in, or a gist. The verdict, `{"solved": 0|1, "score": x}`, is written
to the reward file and, with a reason, to standard output. The tested code runs in a separate process and
reports over a pipe, as it does in gistpoint; the interpreter that runs the bundle also runs the tests.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gistpoint.core.entrypoints.command import Entrypoint, parse_entrypoint, with_input
from gistpoint.core.entrypoints.runs import CommandRun, GistTrial, Raised, TestRun, TestsRun
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.beginning import ControlledRunner, check_beginning
from gistpoint.core.kinds.gist.failures import gist_error, unreadable
from gistpoint.core.kinds.gist.fidelity import Fidelity, compare, name_masks
from gistpoint.core.kinds.gist.original_test import GistTest, guard_for, missing_name, ready_text, stored_test
from gistpoint.core.kinds.repair.scoring import changed_targets, score, solved, taken_over
from gistpoint.core.outcomes import FREE, Outcome, RunStatus, Writable
from gistpoint.core.ports import RunRequest
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Environment, own_interpreter
from gistpoint.sandbox.gistruns.runner import GistRunner
from gistpoint.sandbox.testruns import SuiteRunner
from gistpoint.sandbox.verifier.container import ContainerBackend
from gistpoint.sandbox.verifier.served import AttemptVerdict, asked_verdict

_PATIENCE = 3
"""The multiple of its time in gistpoint that a run may take, because the machine is a different one."""
_MOST = 16 << 20
"""The size in bytes of the largest file that is copied from a solver's folder."""
_MOST_PRINTED = 8 << 20
"""The limit on a printed verdict, in characters; a longer verdict is printed without the solver's files.

Inspect reads at most 10 MiB of output.
"""


@dataclass(frozen=True)
class _Pins:
    """The part of a task's environment that a run needs; its packages are installed in the container."""

    import_roots: tuple[str, ...] = (".",)
    plugins: tuple[str, ...] = ()
    pytest_args: tuple[str, ...] = ()
    build_steps: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    image: None = None
    """None, because the container is made from the task's image, if there is one."""


@dataclass(frozen=True)
class _Target:
    path: str
    qualname: str
    corrupted: str

    @property
    def name(self) -> str:
        return f"{self.path}::{self.qualname}"


@dataclass(frozen=True)
class _Passes:
    passed: frozenset[str]
    failing: frozenset[str]


@dataclass(frozen=True)
class _Verdict:
    solved: bool
    score: float
    reason: str
    taken: Mapping[str, bytes] = field(default_factory=dict)
    """The solver's files that were judged, by path."""
    reduced: bool = False
    """Whether this is a pass by the tests alone, which only gistpoint can confirm (decision 113)."""


class _OwnEnvironment:
    """A source that always returns the environment in which the bundle itself runs."""

    def get(self, *_: object, **__: object) -> Environment:
        interpreter = own_interpreter()
        return Environment(Path(sys.prefix), interpreter.path, interpreter.prefix, interpreter.version)


def main(arguments: Sequence[str]) -> int:
    """Judge a folder or a gist, and print the verdict; return 0 if there is one, and 2 if there is none.

    The solver's files are printed with the verdict, unless that would exceed `_MOST_PRINTED` characters.
    """
    parser = argparse.ArgumentParser(
        prog="verify.pyz", description="Judges a folder that a solver worked in."
    )
    parser.add_argument("place", type=Path, help="the solver's folder, or a gist")
    parser.add_argument("--expected", type=Path, required=True, help="the expected.json of the task")
    parser.add_argument("--tree", type=Path, required=True, help="the tree.tar of the task")
    parser.add_argument("--reward", type=Path, help="the file that the verdict is written to")
    parser.add_argument("--same-user", action="store_true", help="run the tests as root, if root runs this")
    parser.add_argument(
        "--served", default="", help="where a server of tools gives the verdict on its attempt"
    )
    options = parser.parse_args(arguments)
    backend = ContainerBackend(same_user=options.same_user)
    try:
        if options.served:
            served = asked_verdict(options.served, _expectations(options.expected)["task"])
            if served is not None:
                return _report_served(served, options.reward)
        probe = backend.probe()
        if not probe.works:
            raise UserError(f"The tests can't be started: {probe.why_not}.", hint=probe.fix)
        verdict = _judged(options.place, options.expected, options.tree, backend)
    except (OSError, ValueError, KeyError, UserError) as error:
        print(f"verify.pyz: there is no verdict. {error}", file=sys.stderr)
        return 2
    reward = {"solved": int(verdict.solved), "score": verdict.score}
    taken = {path: data.decode("utf-8", "surrogateescape") for path, data in verdict.taken.items()}
    report = {**reward, "reason": verdict.reason, "reduced": verdict.reduced}
    with_files = json.dumps({**report, "taken": taken})
    print(with_files if len(with_files) <= _MOST_PRINTED else json.dumps(report))
    if options.reward is not None:
        _write(options.reward, json.dumps(reward) + "\n")
    return 0


def _report_served(verdict: AttemptVerdict, reward: Path | None) -> int:
    """Print and write the verdict on an attempt; its id is in a separate file, as rewards are numbers."""
    figures = {"solved": int(verdict.solved), "score": verdict.score, "by_tools": 1}
    reason = f"This is the verdict on the attempt {verdict.attempt}, made with gistpoint's tools."
    print(json.dumps({**figures, "reason": reason, "attempt": verdict.attempt}))
    if reward is not None:
        _write(reward.with_name("attempt.json"), json.dumps({"attempt": verdict.attempt}) + "\n")
        _write(reward, json.dumps(figures) + "\n")
    return 0


def _write(path: Path, text: str) -> None:
    """Write a file atomically, replacing whatever the tested code put there, without following links."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        os.fchmod(file.fileno(), 0o644)
    Path(part).replace(path)


def _expectations(expected: Path) -> Any:
    expectations = json.loads(expected.read_text(encoding="utf-8"))
    if expectations.get("format") != "gistpoint.expected" or expectations.get("version") != 1:
        raise ValueError(f"{expected.name} is not the expected.json of a task that this bundle can read.")
    return expectations


def _judged(place: Path, expected: Path, tar: Path, backend: ContainerBackend) -> _Verdict:
    expectations = _expectations(expected)
    # The tested code then runs as another user, who must read neither the tests' ids nor the task's files.
    if os.geteuid() == 0:
        for hidden in (expected, tar):
            with contextlib.suppress(OSError):  # the files may be on a read-only mount
                hidden.chmod(0o600)
    if expectations["kind"] == "gist":
        name, text = _gist_at(place, expectations)
        verdict = _judged_gist(text, expectations, expected, GistRunner(backend, _OwnEnvironment()))
        return replace(verdict, taken={name: text.encode("utf-8", "surrogateescape")} if text else {})
    return _judged_tree(SourceTree.open(tar), place, expectations, SuiteRunner(backend, _OwnEnvironment()))


def _pins(expectations: Mapping[str, Any]) -> Any:
    known: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in expectations.items()
    }
    return _Pins(**known)


def _judged_tree(
    given: SourceTree, place: Path, expectations: Mapping[str, Any], runner: SuiteRunner
) -> _Verdict:
    root = place.resolve()
    # Only Python files of the task that are not tests, because solvers replace only functions (decision 77).
    tree = taken_over(given, lambda path: _file(root, path), expectations["test_files"])
    fails, passes = frozenset(expectations["FAIL_TO_PASS"]), frozenset(expectations["PASS_TO_PASS"])
    writable = expectations["writable"]
    request = RunRequest(
        tree=tree,
        environment=_pins(expectations["environment"]),
        timeout_s=expectations["timeout_s"] * _PATIENCE,
        deselect=tuple(expectations["deselected"]),
        expected=frozenset(expectations["collected"]),
        writable=None if writable is None else Writable(tuple(writable["folders"]), tuple(writable["paths"])),
    )
    # `given` is the control: the machine is to blame only if that run does not begin either (decision 121).
    report = ControlledRunner(runner, lambda: given).run(request)
    if report.status in FREE:
        raise ValueError(report.reason or report.output[-500:])
    targets: Any = tuple(_Target(**target) for target in expectations["targets"])
    baseline: Any = _Passes(fails | passes, fails)
    result = score(baseline, report)
    # Only after a pass, when this Python has run the files, because old versions can crash while parsing
    # deep nesting.
    changed = changed_targets(tree, targets) if result.all_pass else ()
    reason = report.reason or f"{result.passing} of {len(baseline.passed)} tests pass."
    done = solved(result, [target.name for target in targets], changed)
    if result.all_pass and not done:
        reason += " Not every corrupted function was changed."
    if done:
        reason += " This is a reduced result: a pass by the tests alone, which is not confirmed here."
    return _Verdict(done, result.value, reason, tree.overlay, reduced=done)


def _file(root: Path, path: str) -> bytes | None:
    """Return the bytes of a plain file below `root`.

    The result is None if the path leads through a link, or if the file is missing, unreadable or larger than
    16 MiB.
    """
    place = root / path
    try:
        if place.resolve() != place or not place.is_file() or place.stat().st_size > _MOST:
            return None
        return place.read_bytes()
    except (OSError, RuntimeError):
        return None


def _gist_at(place: Path, expectations: Mapping[str, Any]) -> tuple[str, str]:
    name = _command(expectations).gist_file
    found = place / name if place.is_dir() else place
    data = _file(found.parent.resolve(), found.name)
    return name, "" if data is None else data.decode("utf-8", "surrogateescape")


def _judged_gist(text: str, expectations: Mapping[str, Any], expected: Path, runner: GistRunner) -> _Verdict:
    fault = unreadable(text)
    if fault is not None:
        return _Verdict(False, 0.0, fault.evidence)
    test = stored_test(expectations["test"]) if expectations["test"] else None
    name, owned = missing_name(text, test) if test else "", tuple(expectations["owned"])
    try:
        spliced = ready_text(text, test, owned)
    except (SyntaxError, ValueError):
        spliced = None
    error = gist_error(text, name, owned, None, None)
    # A gist is faithful if it agrees twice without a tracer, with different hash seeds (decision 77).
    for seed in (1, 0):
        if spliced is None:
            break
        trial, fidelity = _compared(spliced.text, expectations, test, seed, expected, runner)
        error = gist_error(text, name, owned, trial.run, fidelity)
        if error is not None or not fidelity.value:
            break
    if error is None:
        return _Verdict(True, 1.0, "It does what the original does.")
    return _Verdict(False, 0.0, f"{error.category} {error.kind}: {error.evidence}"[:2000])


def _compared(
    text: str,
    expectations: Mapping[str, Any],
    test: GistTest | None,
    seed: int,
    expected: Path,
    runner: GistRunner,
) -> tuple[GistTrial, Fidelity]:
    entrypoint, originals = _command(expectations), [_run(run) for run in expectations["originals"]]

    def run(text: str) -> GistTrial:
        return runner.run_gist(
            text,
            _pins(expectations["environment"]),
            entrypoint,
            owned=expectations["owned"],
            timeout_s=expectations["timeout_s"] * _PATIENCE,
            forbidden=(str(expected.resolve().parent),),
            measure_lines=False,
            hash_seed=seed,
            guard=guard_for(text, test) if test else None,
        )

    trial = run(text)
    check_beginning(trial.began, lambda: run(""))
    masks = name_masks(entrypoint, expectations["modules"])
    places = [*[masks] * len(originals), {**trial.places, **masks}]
    return trial, compare(originals, trial.run, places, expectations["compared_files"])


def _command(expectations: Mapping[str, Any]) -> Entrypoint:
    return with_input(
        parse_entrypoint(expectations["entrypoint"]),
        expectations.get("stdin", ""),
        expectations.get("variables"),
    )


def _run(document: Mapping[str, Any]) -> TestsRun | CommandRun:
    """Return a run of the original from its JSON form in an answer."""
    known = {**document, "status": RunStatus(document["status"])}
    for key in ("raised", "collection_error"):
        if known.get(key) is not None:
            known[key] = Raised(**known[key])
    if "tests" not in known:
        return CommandRun(**known)
    return TestsRun(**{**known, "tests": {id: _test(test) for id, test in known["tests"].items()}})


def _test(document: Mapping[str, Any]) -> TestRun:
    raised = document.get("raised")
    outcome = Outcome(document["outcome"])
    return TestRun(**{**document, "outcome": outcome, "raised": None if raised is None else Raised(**raised)})
