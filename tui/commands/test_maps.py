"""Recording which tests enter which functions, for the commands that make tasks."""

from __future__ import annotations

from gistpoint.core.errors import RecordingError
from gistpoint.core.generation.intake import Intake, with_test_map
from gistpoint.core.locations import Locations
from gistpoint.core.ports import Runner
from gistpoint.tui.commands.output import ProgressLine


def recorded(intake: Intake, runner: Runner, progress: ProgressLine) -> Intake:
    """Return the intake with its test map; without one, told in a line, where the watched run did not end."""
    from gistpoint.sandbox.pools import SandboxBench

    bench = SandboxBench(runner.backend.name, not runner.backend.isolated, Locations.of_user().cache)
    try:
        return with_test_map(intake, bench.mapper(), on_progress=progress.making)
    except RecordingError as error:
        progress.line(f"{error.message} Attempts will not run the tests of a changed function first.")
        return intake
