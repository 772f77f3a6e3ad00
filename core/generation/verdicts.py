"""The verdicts on candidates: each is stored before its task is written, and counted (decision 32)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from statistics import mean, median
from types import TracebackType
from typing import Any

import msgspec

from gistpoint.core.confirmation.model import Controls, Unconfirmable
from gistpoint.core.corruption.blind import PacketReading
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import UserError
from gistpoint.core.logs import AppendLog, LogKind, take
from gistpoint.core.tasks.identity import SECRET_BYTES, new_secret
from gistpoint.core.tasks.model import Failure, Target
from gistpoint.core.tasks.strata import FAILING_STRATA, failing_stratum


class Reason(StrEnum):
    """The outcome of a candidate; every campaign counts its outcomes."""

    KEPT = "kept"
    NOT_REMOVABLE = "body_not_removable"
    TOO_FEW_FAILING = "too_few_failing_tests"
    BREAKS_COLLECTION = "breaks_collection_only"
    HANGS = "hangs_or_exhausts_memory"
    NO_RESULT = "run_gave_no_result"
    NO_CORRUPTION = "no_corruption_fits"
    AT_A_GLANCE = "seen_at_a_glance"
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
    IN_POOL = "in_the_pool_but_not_chosen"
    """Proven, but others of the pool are less visible."""
    NOT_ABOUT_IT = "only_failing_test_does_not_use_it"
    """The only failing test does not enter the function, so the test proves nothing about it."""
    NO_EARLIER_BODY = "no_earlier_body"
    """No earlier version or failed submission has another body of the function."""
    MISSING_FEATURE = "missing_feature"
    """The earlier or rewritten body does not have a feature that the failing tests use."""
    NOT_CONFIRMABLE = "not_confirmable"
    """The passes can't be confirmed, which the campaign or a single failing test requires."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of deciding a candidate; times are in seconds of wall-clock time."""

    probes: tuple[float, ...] = ()
    """The seconds of each probe: a run of the tests that can see a corruption."""
    warm: int = 0
    """The number of probes that ran on a suite that was already loaded."""
    confirmations: int = 0
    confirming: float = 0.0
    """The seconds for which the whole suite ran on corruptions that passed the probe."""
    tests: int = 0
    """The number of tests that the probes ran."""
    controlling: float = 0.0
    """The seconds spent on checking whether passes can be confirmed."""
    reading: float = 0.0
    """The seconds spent on finding and scoring corruptions, before any test ran; 0 in earlier verdicts."""


@dataclass(frozen=True, slots=True)
class ProvenCorruption:
    """A proven corruption, from which a task is written."""

    targets: tuple[Target, ...]
    failing: tuple[Failure, ...]
    """The failing tests in the order of the run; only the first few have their messages."""
    missing: tuple[str, ...]
    """Tests that passed on the original and had no result on the corrupted tree."""
    any_order: bool
    provenance: Mapping[str, Any]

    @property
    def failing_ids(self) -> frozenset[str]:
        """The ids of all tests that fail on the corrupted tree."""
        return frozenset(failure.id for failure in self.failing) | frozenset(self.missing)


@dataclass(frozen=True, slots=True)
class Specimen:
    """A corruption that was probed, with the result, to be compared with the whole suite."""

    targets: tuple[Target, ...]
    status: str
    failed: tuple[str, ...]
    cut_short: bool
    """Whether the probe stopped at the needed number of failing tests."""


@dataclass(frozen=True, slots=True)
class CandidateVerdict:
    """The verdict on one candidate."""

    key: str
    names: tuple[str, ...]
    """The functions; for a failed group, the function with which it began."""
    reason: Reason
    detail: str = ""
    fates: Mapping[str, int] = field(default_factory=dict)
    """The number of its corruptions by outcome."""
    cost: Cost = Cost()
    kept: ProvenCorruption | None = None
    specimen: Specimen | None = None
    record: Mapping[str, Any] | None = None
    """The rounds of a model if nothing could be kept."""
    controls: Controls | None = None
    """The controls; None for an unproven candidate, or before they were made."""

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as a JSON object."""
        value: dict[str, Any] = msgspec.to_builtins(self)
        for part in filter(None, (value["kept"], value["specimen"])):
            part.update(
                {key: [list(item.values()) for item in part[key]] for key in _ROWS.keys() & part.keys()}
            )
        value["fates"] = dict(sorted(self.fates.items()))
        unknown = {key for key in ("record", "controls") if value[key] is None}
        return {key: value[key] for key in value if key not in unknown}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CandidateVerdict:
        """Return the verdict from the result of `to_json`.

        Raises `KeyError`, `TypeError`, `ValueError` or `AttributeError` for anything else.
        """
        return msgspec.convert(
            {**value, **{key: _read_rows(value[key]) for key in ("kept", "specimen")}}, decodable(cls)
        )


def _confirmable(verdict: CandidateVerdict) -> str:
    controls = verdict.controls
    if controls is None:
        return "not_known"
    return "yes" if controls.confirmable else str(controls.reason or Unconfirmable.NO_CONTROL)


def glance_of(verdict: CandidateVerdict) -> float | None:
    """Return the mean predicted rate at which readers see the kept corruptions; None without a prediction."""
    parts = () if verdict.kept is None else verdict.kept.provenance.get("parts", ())
    values = [part["glance"]["value"] for part in parts if "glance" in part]
    return mean(values) if values else None


READER = "reader"
"""The key of a blind reader's results in a task's provenance."""


def reader_record(verdict: CandidateVerdict) -> Mapping[str, Any] | None:
    """Return the results of a blind reader's readings of a corruption; None if there are none."""
    return None if verdict.kept is None else verdict.kept.provenance.get(READER)


_ROWS = {"targets": Target.__slots__, "failing": Failure.__slots__}
"""Members of a corruption whose items are stored as lists of the values of their fields."""


def _read_rows(part: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if part is None:
        return None
    rows = {key: part[key] for key in _ROWS.keys() & part.keys()}
    return {**part, **{key: [dict(zip(_ROWS[key], row, strict=True)) for row in rows[key]] for key in rows}}


@dataclass
class Counts:
    """The verdicts of a campaign so far, in order."""

    verdicts: list[CandidateVerdict] = field(default_factory=list)

    def with_tasks(self, present: Collection[str], known: Mapping[str, CandidateVerdict]) -> Counts:
        """Return the counts of a stopped campaign, in which the verdicts of its present tasks are kept.

        `present` contains the keys of these verdicts, and `known` all verdicts. Until the last candidate is
        decided, a verdict with a task may still count as waiting, or not have had its turn.
        """
        ordered = {verdict.key: verdict for verdict in self.verdicts}
        return Counts(list((ordered | {key: known[key] for key in present}).values()))

    @property
    def tried(self) -> int:
        """The number of candidates with a verdict."""
        return len(self.verdicts)

    @property
    def kept(self) -> int:
        """The number of candidates that became a task."""
        return sum(verdict.kept is not None for verdict in self.verdicts)

    @property
    def reasons(self) -> dict[str, int]:
        """The number of dropped candidates by reason, most frequent first."""
        found = Counter(verdict.reason.value for verdict in self.verdicts if verdict.kept is None)
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    @property
    def confirmable(self) -> dict[str, int]:
        """The number of candidates by whether their passes can be confirmed, most frequent first.

        The keys are `yes`, the reasons why not, and `not_known` for candidates without controls. Only
        candidates that became a task, or were dropped because of their controls, are counted.
        """
        counted = (
            item for item in self.verdicts if item.kept is not None or item.reason is Reason.NOT_CONFIRMABLE
        )
        found = Counter(map(_confirmable, counted))
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    @property
    def failing(self) -> dict[str, int]:
        """The number of tasks in each stratum of the number of failing tests, without empty strata."""
        counted = Counter(
            failing_stratum(len(item.kept.failing_ids)) for item in self.verdicts if item.kept is not None
        )
        return {name: counted[name] for name in FAILING_STRATA if counted[name]}

    @property
    def fates(self) -> dict[str, int]:
        """The number of corruptions by outcome, most frequent first."""
        found: Counter[str] = Counter()
        for verdict in self.verdicts:
            found.update(verdict.fates)
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def costs(self, suite_seconds: float) -> dict[str, Any]:
        """Return the cost of all candidates as a JSON object, whose keys name the quantities.

        The saved seconds are those of the whole suite for each corruption, less the seconds of the probes.
        """
        probes = [seconds for verdict in self.verdicts for seconds in verdict.cost.probes]
        middle = median(probes) if probes else None
        return {
            "probes": len(probes),
            "warm": sum(verdict.cost.warm for verdict in self.verdicts),
            "probe_seconds": round(sum(probes), 2),
            "median_probe_seconds": None if middle is None else round(middle, 4),
            "median_share_of_suite": None if middle is None else round(middle / suite_seconds, 4),
            "confirmations": sum(verdict.cost.confirmations for verdict in self.verdicts),
            "confirming_seconds": round(sum(verdict.cost.confirming for verdict in self.verdicts), 2),
            "controlling_seconds": round(sum(verdict.cost.controlling for verdict in self.verdicts), 2),
            "reading_seconds": round(sum(verdict.cost.reading for verdict in self.verdicts), 2),
            "suite_seconds": round(suite_seconds, 2),
            "saved_seconds": round(len(probes) * suite_seconds - sum(probes), 1),
        }


FORMAT = "gistpoint.campaign"
VERSION = 1


class StateFileError(UserError):
    """The state of a campaign can't be read, or another process is writing it."""


_STATE = LogKind(FORMAT, VERSION, error=StateFileError)


class StateFile:
    """The verdicts and tasks of one campaign by key; a context manager that holds the file's lock."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        """Open the state of the campaign that `about` describes, or create it.

        Raises `StateFileError` if the file can't be read or is of another version, and while another process
        has it open.
        """
        self.path = path
        self.verdicts: dict[str, CandidateVerdict] = {}
        self.controls: dict[str, dict[str, Any]] = {}
        self.readings: dict[str, dict[int, PacketReading]] = {}
        """The blind readings of proven corruptions by the verdict's key and the reading's number."""
        self.provisional: set[str] = set()
        """The ids of tasks that this campaign wrote and may remove again."""
        self.secret = b""
        """The secret from which the salts of task ids are made.

        It is the same in every run of the campaign, and stored in no task.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = take(path)
        if lock is None:
            raise StateFileError(
                f"Another process is making tasks with these settings: {path} is locked.",
                hint="Wait for it, or choose another --seed.",
            )
        self._log = AppendLog(path, _STATE, lock)
        try:
            lines = self._log.read().lines
            self._read(lines)
            if not lines:
                self._append({"format": FORMAT, "version": VERSION, **about})
            if not self.secret:  # a new campaign, or one from before ids had salts
                self.secret = new_secret()
                self._append({"type": "secret", "secret": self.secret.hex()})
        except BaseException:
            self._log.close()
            raise

    def __enter__(self) -> StateFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._log.close()

    def add(self, verdict: CandidateVerdict) -> None:
        """Store a verdict, which is on disk on return; a known verdict is not changed."""
        if verdict.key not in self.verdicts:
            self._append({"type": "verdict", **verdict.to_json()})
            self.verdicts[verdict.key] = verdict

    def add_control(self, key: str, comparison: Mapping[str, Any]) -> None:
        """Store the result of the whole suite on a specimen."""
        self._append({"type": "control", "key": key, "comparison": dict(comparison)})
        self.controls[key] = dict(comparison)

    def add_reading(self, key: str, reading: PacketReading) -> None:
        """Store a blind reading of the corruption with this key; it is on disk on return."""
        self._append({"type": "reading", "key": key, "reading": msgspec.to_builtins(reading)})
        self.readings.setdefault(key, {})[reading.number] = reading

    def add_task(self, id: str) -> None:
        """Record that a task is about to be written."""
        self._append({"type": "task", "id": id})
        self.provisional.add(id)

    def drop_task(self, id: str) -> None:
        """Record that a task was removed, or is now in use."""
        self._append({"type": "dropped_task", "id": id})
        self.provisional.discard(id)

    def settle(self) -> None:
        """Record that the written tasks are final."""
        if self.provisional:
            self._append({"type": "settled"})
            self.provisional.clear()

    def _append(self, value: Mapping[str, Any]) -> None:
        self._log.append(json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n")

    def _read(self, lines: Iterable[bytes]) -> None:
        for number, line in enumerate(lines, 1):
            try:
                value = json.loads(line)
                if number == 1:
                    self._check_head(value)
                elif value["type"] == "secret":
                    self.secret = _read_secret(value["secret"])
                elif value["type"] == "verdict":
                    verdict = CandidateVerdict.from_json(value)
                    self.verdicts[verdict.key] = verdict
                elif value["type"] == "control":
                    self.controls[value["key"]] = value["comparison"]
                elif value["type"] == "reading":
                    reading = msgspec.convert(value["reading"], decodable(PacketReading))
                    self.readings.setdefault(value["key"], {})[reading.number] = reading
                elif value["type"] == "task":
                    self.provisional.add(value["id"])
                elif value["type"] == "dropped_task":
                    self.provisional.discard(value["id"])
                elif value["type"] == "settled":
                    self.provisional.clear()
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise StateFileError(
                    f"Line {number} of {self.path} can't be read: {error}.",
                    hint="Move the file away to start again; existing tasks are kept.",
                ) from error

    def _check_head(self, value: Mapping[str, Any]) -> None:
        if value["format"] != FORMAT or value["version"] != VERSION:
            raise ValueError(
                f"it is {value['format']} version {value['version']}, not {FORMAT} version {VERSION}"
            )


def _read_secret(text: str) -> bytes:
    secret = bytes.fromhex(text)
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"the secret has {len(secret)} bytes, not {SECRET_BYTES}")
    return secret
