"""Recording which tests run which functions: one run of the suite in isolation, watched from inside."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from gistpoint.core.callgraph.observed import ObservedCall
from gistpoint.core.errors import CancelledError, RecordingError
from gistpoint.core.generation.testmap import TestMap
from gistpoint.core.ports import EnvironmentPins, RunProgress
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend, Command, Ended, Invocation, Places, Stop
from gistpoint.sandbox.candidates.records import Records
from gistpoint.sandbox.limits import Limits
from gistpoint.sandbox.runfolders import run_folder
from gistpoint.sandbox.sealing import handed_over
from gistpoint.sandbox.testruns import Environments, fill_control, invoke_pytest, tools_of
from gistpoint.sandbox.workspaces import lay_out

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken

TIMEOUT_S = 900.0
_RESULTS = 1 << 30
_FILES = {
    "gistpoint_entries.py": "entries_plugin.py",
    "gistpoint_results.py": "results_plugin.py",
    "gistpoint_calls.py": "calltrace.py",
    "sitecustomize.py": "child_entries.py",
}


class SuiteTestMapper:
    """Records test maps on one backend; implements `gistpoint.core.ports.TestMapper`."""

    def __init__(
        self,
        backend: Backend,
        environments: Environments,
        limits: Limits | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._backend = backend
        self._environments = environments
        self._limits = replace(limits or Limits(), results=_RESULTS)
        self._timeout_s = timeout_s

    def record(
        self,
        tree: SourceTree,
        environment: EnvironmentPins,
        ids: Collection[str],
        *,
        on_progress: Callable[[RunProgress], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> tuple[TestMap, tuple[ObservedCall, ...]]:
        """Run the tests `ids`, in the order of the suite, and return what they entered and called.

        Raises `RecordingError`, `CancelledError`, and `EnvironmentBuildError` where there is no environment to run in.
        """
        tell = on_progress or (lambda progress: None)
        tell(RunProgress("preparing"))
        built = self._environments.get(environment, self._backend, cancel=cancel)
        records = Records()

        def on_line(line: bytes) -> None:
            before = len(records.tests)
            records.feed(line)
            if len(records.tests) != before:
                tell(RunProgress("running", len(records.tests), records.collected))

        with run_folder() as base, handed_over({"ids": sorted(ids)}) as order:
            lay_out(tree, base / "tree")
            program = fill_control(base / "control", environment, _FILES)

            def invocation(places: Places) -> Invocation:
                return invoke_pytest(places, environment, program, "gistpoint_entries.py")

            command = Command(
                tree=base / "tree",
                environment=built,
                invocation=invocation,
                timeout_s=self._timeout_s,
                folders={"control": base / "control"},
                limits=self._limits,
                shows=tools_of(environment, built),
                requests=order,
            )
            tell(RunProgress("collecting"))
            ended = self._backend.run(command, on_line=on_line, cancel=cancel)
        _require_finished(records, ended)
        tell(RunProgress("finished", len(records.tests), records.collected))
        return records.test_map(tree, round(ended.seconds, 3)), records.calls()


def _require_finished(records: Records, ended: Ended) -> None:
    if ended.stop is Stop.CANCELLED:
        raise CancelledError("Stopped at your request.")
    if not records.finished:
        last = next(reversed(records.tests), "")
        raise RecordingError(
            f"The watched run of the suite did not come to its end: {ended.stop} behind {len(records.tests)} of "
            f"{records.collected} tests{', the last one ' + last if last else ''}. {ended.reason}".strip(),
            hint=ended.output[-2000:],
        )
