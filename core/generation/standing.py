"""The tasks of a campaign on the disk while it goes on: written as soon as proven, withdrawn for better ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gistpoint.core.generation.library import SourceLibrary
from gistpoint.core.generation.making import remove_task, write_kept
from gistpoint.core.generation.progress import KeptTask
from gistpoint.core.generation.settings import CampaignSettings
from gistpoint.core.generation.verdicts import CandidateVerdict, StateFile, glance_of

InUse = Callable[[str], bool]
"""Whether somebody has done something with the task of an id: such a task is never removed."""


@dataclass
class WrittenSet:
    """Implements `gistpoint.core.generation.campaign.CampaignTasks`.

    Only tasks that this campaign wrote are removed, and none of a run that came to its end. The state names each before
    it is written, so that the next run removes what a killed one left.
    """

    library: SourceLibrary
    settings: CampaignSettings
    folder: Path
    state: StateFile
    note: Callable[[str], None]
    in_use: InUse = lambda id: False
    standing: dict[str, KeptTask] = field(default_factory=dict)
    """The tasks that stand, by the key of their verdict, in the order of their acceptance."""

    def become(self, kept: Sequence[CandidateVerdict]) -> None:
        """Write what is new, then remove what gave way to it."""
        keys = {verdict.key for verdict in kept}
        leaving = [task for key, task in self.standing.items() if key not in keys]
        before, self.standing = self.standing, {}
        for verdict in kept:
            known = before.get(verdict.key)
            if known is None:
                known = self._write(verdict, leaving[0].id if leaving else "")
                leaving = leaving[1:]
            self.standing[verdict.key] = known
        stand = {task.id for task in self.standing.values()}
        for id in sorted(self.state.provisional - stand):
            self._withdraw(id)

    def settle(self) -> None:
        """Make the tasks that stand final: no later run of the campaign removes them."""
        self.state.settle()

    def _write(self, verdict: CandidateVerdict, replaces: str) -> KeptTask:
        assert verdict.kept is not None
        task = write_kept(self.library, self.settings, verdict.kept, self.folder, announce=self.state.add_task)
        functions = tuple(target.name for target in verdict.kept.targets)
        failing = len(verdict.kept.failing) + len(verdict.kept.missing)
        instead = f", instead of {replaces[:12]}" if replaces else ""
        tests = f"{failing} of {len(self.library.intake.passed)} tests fail"
        self.note(f"  {task.short_id} {', '.join(functions)}: {tests}{instead}")
        return KeptTask(task.id, functions, failing, glance_of(verdict), replaces)

    def _withdraw(self, id: str) -> None:
        removed = remove_task(self.folder / id, self.in_use)
        self.state.drop_task(id)
        if not removed:
            self.note(f"  {id[:12]} gave way to a better one, and stays because it was worked on")
