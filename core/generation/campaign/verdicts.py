"""What came of each candidate, kept on disk as soon as it is known."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any

from gistpoint.core.errors import UserError
from gistpoint.core.tasks.model import Failure, Target


class Reason(StrEnum):
    """What came of a candidate: a closed set, counted by every campaign."""

    KEPT = "kept"
    NOT_REMOVABLE = "body_not_removable"
    TOO_FEW_FAILING = "too_few_failing_tests"
    BREAKS_COLLECTION = "breaks_collection_only"
    HANGS = "hangs_or_exhausts_memory"
    NO_RESULT = "run_gave_no_result"
    NO_CORRUPTION = "no_corruption_fits"
    NONE_GOOD = "no_corruption_is_good"
    SUITE_DIFFERS = "suite_differs_from_probe"
    LEAKS = "original_found_elsewhere"
    NO_PARTNER = "no_partner_in_reach"
    PART_SILENT = "part_breaks_nothing_alone"
    MASKED = "repairing_one_mends_all"
    UNION_NOT_LARGER = "union_not_larger_than_each_part"
    OVERLAPS = "shares_functions_with_a_kept_one"
    LOCATED = "located_by_its_spectrum"
    NOT_SUBTLE = "not_subtle_enough"


@dataclass(frozen=True, slots=True)
class Cost:
    """What deciding a candidate took, in seconds of wall-clock time."""

    probes: tuple[float, ...] = ()
    """Each corruption that was tried on the tests that can see it."""
    warm: int = 0
    """How many of them ran on a suite that was loaded already."""
    confirmations: int = 0
    confirming: float = 0.0
    """Runs of the whole suite for what passed the probe."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A proven corruption, as the task is written from it."""

    targets: tuple[Target, ...]
    failing: tuple[Failure, ...]
    """Every failing test in the order of the run, the first few with their texts."""
    missing: tuple[str, ...]
    """Tests that passed on the original and gave no result at all."""
    any_order: bool
    provenance: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Specimen:
    """One corruption that was tried, with what the probe said, to be compared with the whole suite."""

    targets: tuple[Target, ...]
    status: str
    failed: tuple[str, ...]
    cut_short: bool
    """Whether the probe stopped at the number of failing tests that it needed to know."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one candidate."""

    key: str
    names: tuple[str, ...]
    """The functions; of a group that came to nothing, those that it began with."""
    reason: Reason
    detail: str = ""
    fates: Mapping[str, int] = field(default_factory=dict)
    """How many corruptions of it met which end."""
    cost: Cost = Cost()
    kept: Kept | None = None
    specimen: Specimen | None = None
    record: Mapping[str, Any] | None = None
    """The rounds of a model that made nothing that can be kept."""

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as a JSON value."""
        return {
            "key": self.key,
            "names": list(self.names),
            "reason": self.reason.value,
            "detail": self.detail,
            "fates": dict(sorted(self.fates.items())),
            "cost": {
                "probes": list(self.cost.probes),
                "warm": self.cost.warm,
                "confirmations": self.cost.confirmations,
                "confirming": self.cost.confirming,
            },
            "kept": None if self.kept is None else _kept_to_json(self.kept),
            "specimen": None if self.specimen is None else _specimen_to_json(self.specimen),
            **({} if self.record is None else {"record": dict(self.record)}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Verdict:
        """Return the verdict that `to_json` gave; raises KeyError, TypeError or ValueError for anything else."""
        cost = value["cost"]
        return cls(
            value["key"],
            tuple(value["names"]),
            Reason(value["reason"]),
            value["detail"],
            value["fates"],
            Cost(tuple(cost["probes"]), cost["warm"], cost["confirmations"], cost["confirming"]),
            None if value["kept"] is None else _kept_from_json(value["kept"]),
            None if value["specimen"] is None else _specimen_from_json(value["specimen"]),
            value.get("record"),
        )


def _targets_to_json(targets: Sequence[Target]) -> list[list[str]]:
    return [[target.path, target.qualname, target.original, target.corrupted] for target in targets]


def _targets_from_json(value: Sequence[Sequence[str]]) -> tuple[Target, ...]:
    return tuple(Target(path, qualname, original, corrupted) for path, qualname, original, corrupted in value)


def _kept_to_json(kept: Kept) -> dict[str, Any]:
    return {
        "targets": _targets_to_json(kept.targets),
        "failing": [[failure.id, failure.text] for failure in kept.failing],
        "missing": list(kept.missing),
        "any_order": kept.any_order,
        "provenance": dict(kept.provenance),
    }


def _kept_from_json(value: Mapping[str, Any]) -> Kept:
    failing = tuple(Failure(id, text) for id, text in value["failing"])
    targets = _targets_from_json(value["targets"])
    return Kept(targets, failing, tuple(value["missing"]), value["any_order"], value["provenance"])


def _specimen_to_json(specimen: Specimen) -> dict[str, Any]:
    return {
        "targets": _targets_to_json(specimen.targets),
        "status": specimen.status,
        "failed": list(specimen.failed),
        "cut_short": specimen.cut_short,
    }


def _specimen_from_json(value: Mapping[str, Any]) -> Specimen:
    targets = _targets_from_json(value["targets"])
    return Specimen(targets, value["status"], tuple(value["failed"]), value["cut_short"])


FORMAT = "gistpoint.campaign"
VERSION = 1


class StateFileError(UserError):
    """The state of a campaign can't be read, or another process is writing it."""


class StateFile:
    """The verdicts and tasks of one campaign, by key; a context that holds the file's lock."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        """Open the state of the campaign that `about` describes, and make it where there is none.

        Raises `StateFileError` for a file of something else, and while another process has it open.
        """
        self.path = path
        self.verdicts: dict[str, Verdict] = {}
        self.controls: dict[str, dict[str, Any]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise StateFileError(
                f"Another process is making tasks with these settings: {path} is locked.",
                hint="Wait for it, or choose another --seed.",
            ) from error
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise
        if self._empty:
            self._append({"format": FORMAT, "version": VERSION, **about})

    def __enter__(self) -> StateFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict; it is on the disk when this returns. One that is known is left as it is."""
        if verdict.key not in self.verdicts:
            self._append({"type": "verdict", **verdict.to_json()})
            self.verdicts[verdict.key] = verdict

    def add_control(self, key: str, comparison: Mapping[str, Any]) -> None:
        """Keep what the whole suite said of a specimen."""
        self._append({"type": "control", "key": key, "comparison": dict(comparison)})
        self.controls[key] = dict(comparison)

    def _append(self, value: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self) -> None:
        self._file.seek(0)
        data = self._file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            self._file.truncate(whole)
        lines = data[:whole].splitlines()
        self._empty = not lines
        for number, line in enumerate(lines, 1):
            try:
                value = json.loads(line)
                if number == 1:
                    self._check_head(value)
                elif value["type"] == "verdict":
                    verdict = Verdict.from_json(value)
                    self.verdicts[verdict.key] = verdict
                elif value["type"] == "control":
                    self.controls[value["key"]] = value["comparison"]
            except (ValueError, KeyError, TypeError) as error:
                raise StateFileError(
                    f"Line {number} of {self.path} can't be read: {error}.",
                    hint="Move the file away to begin again; tasks that were made stay.",
                ) from error

    def _check_head(self, value: Mapping[str, Any]) -> None:
        if value["format"] != FORMAT or value["version"] != VERSION:
            raise ValueError(f"it is {value['format']} version {value['version']}, not {FORMAT} version {VERSION}")
