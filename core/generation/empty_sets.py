"""Suggests how to repeat a command whose set stayed empty, with different options."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gistpoint.core.generation.settings import CampaignSettings, FaultSource
from gistpoint.core.generation.verdicts import Reason


@dataclass(frozen=True, slots=True)
class Retry:
    """A call that may keep something: options to add to the command, and options to leave out."""

    why: str
    """The reason why nothing was kept, in words."""
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    def command(self, called: Sequence[str]) -> str:
        """Return the command line; `called` are the words after `gistpoint` in the call that kept nothing."""
        given = {word for word in self.add if word.startswith("--")}
        left_out = {*given, *self.drop}
        words: list[str] = []
        skips_value = False
        for word in called:
            name, separator, _ = word.partition("=")
            if skips_value and not word.startswith("--"):
                skips_value = False
                continue
            skips_value = name in left_out and not separator and name not in _WITHOUT_VALUE
            if name not in left_out:
                words.append(word)
        return shlex.join(["gistpoint", *words, *self.add])


_WITHOUT_VALUE = frozenset({"--confirmable", "--missing-features", "--chain", "--tell-count", "--rewrite"})
_OF_GROUPS = ("--size", "--chain", "--distance", "--tell-count")
"""Options that can be given only together with `--mode multi`."""
_OF_MODELS = (
    *("--model", "--rewrite", "--keep", "--rounds", "--max-tool-calls", "--examples", "--max-tokens"),
    *("--max-cost", "--max-tokens-per-function", "--max-cost-per-function", "--reader", "--readings"),
)
_OF_DISCOVERY = (
    "--max-glance",
    "--from",
    "--pool",
    "--missing-features",
    "--study",
    *_OF_GROUPS,
    *_OF_MODELS,
)
"""Options that can't be given together with `--mode remove`."""
_OWN_OPTIONS: dict[Reason, tuple[tuple[str, ...], tuple[str, ...]]] = {
    Reason.MISSING_FEATURE: (("--missing-features",), ()),
    Reason.NOT_CONFIRMABLE: ((), ("--confirmable",)),
}
"""Options to add and to leave out, for reasons that follow from a single option."""
_FEW_FAIL = frozenset(
    {
        Reason.TOO_FEW_FAILING,
        Reason.BREAKS_COLLECTION,
        Reason.PART_SILENT,
        Reason.MASKED,
        Reason.UNION_NOT_LARGER,
    }
)


def retry_of_empty_set(
    reasons: Mapping[str, int], settings: CampaignSettings, *, candidates: str = "", has_history: bool
) -> Retry | None:
    """Return the call that may keep something after no candidate became a task.

    `reasons` are the numbers of candidates by outcome, most frequent first; none for a library without
    candidates, which `candidates` describes. `has_history` is true if the source can have earlier bodies.
    None if every option has been tried.
    """
    if not reasons:
        return _fewer_failing(candidates, settings) or _removing(candidates, settings)
    reason = Reason(next(iter(reasons)))
    why = f"{reasons[reason]} of {sum(reasons.values())} functions: {reason.value.replace('_', ' ')}"
    if reason in _OWN_OPTIONS:
        add, drop = _OWN_OPTIONS[reason]
        return Retry(why, add, drop)
    if reason in _FEW_FAIL and (lower := _fewer_failing(why, settings)):
        return lower
    if settings.source is FaultSource.OPERATORS and not (settings.model or settings.mode.removes):
        return _of_edits(why, reason, settings, has_history)
    return _removing(why, settings)


def _of_edits(why: str, reason: Reason, settings: CampaignSettings, has_history: bool) -> Retry | None:
    """Return a call that tries more visible edits, single functions, earlier bodies, or removed bodies."""
    most = settings.max_glance or 0.0
    if reason is Reason.AT_A_GLANCE and most < 1:
        return Retry(why, ("--max-glance", "0.5" if most < 0.5 else "1"))
    if settings.mode.in_groups:
        return Retry(why, ("--mode", "discovery"), _OF_GROUPS)
    if has_history:
        return Retry(why, ("--from", "history"), drop=("--max-glance",))
    return _removing(why, settings)


def _fewer_failing(why: str, settings: CampaignSettings) -> Retry | None:
    if settings.min_failing == 1:
        return None
    return Retry(why, ("--min-failing", "1"), drop=("--preset",))  # a preset has its own minimum


def _removing(why: str, settings: CampaignSettings) -> Retry | None:
    """Return the call that removes bodies instead of corrupting them; None if that call kept nothing."""
    if settings.mode.removes:
        return None
    return Retry(why, ("--mode", "remove"), _OF_DISCOVERY)
