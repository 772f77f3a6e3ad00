"""Results that other harnesses have for exported tasks: their figure, and what the solver left.

Read are folders of Harbor's jobs and trials, logs of Inspect, and predictions in SWE-bench's form, with the
report of a harness beside them if there is one. All of it is from outside: it is bounded, and what does not
fit is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gistpoint.core.errors import UserError
from gistpoint.core.locations import LARGEST_RECORDS, read_regular, read_regular_text
from gistpoint.sessions.records.archives import Archive, FileBlob, RunFileError, opened
from gistpoint.sessions.records.values import as_dict, as_float, as_int, as_list, as_str

_MOST = 64 << 20
_MOST_TAKEN = 16 << 20
"""Bytes of the largest file that is taken over from a solver's folder, as in the verifier."""
_NAME = re.compile(r"gistpoint[-/]([0-9a-f]{12})(?![0-9a-f])")
_LISTS = ("submitted_ids", "completed_ids", "resolved_ids", "unresolved_ids", "empty_patch_ids", "error_ids")
"""Where a report of SWE-bench's harness names what it judged."""
_SAMPLE = re.compile(r"samples/[^/]+\.json")


class ReturnedError(UserError):
    """A file is not a result of a harness that can be read."""


@dataclass(frozen=True, slots=True)
class ReturnedResult:
    """One result of another harness."""

    harness: str
    task: str
    """The beginning of the task's id."""
    run: str
    """The name of the trial, sample or model."""
    solved: bool | None = None
    """The harness's own figure; None if it has none."""
    score: float | None = None
    patch: str | None = None
    files: Mapping[str, bytes] | None = None
    """What the solver left, by its path in the repository, if there is no patch; None if the harness kept
    nothing.
    """
    attempt: str = ""
    """The attempt in gistpoint's own store, if its engine made it."""


def read_returned(path: Path) -> list[ReturnedResult]:
    """Return the results in a file or folder. Raises `ReturnedError` if there is none."""
    found = list(_read(path))
    if not found:
        raise ReturnedError(
            f"{path} holds no result of an exported task.",
            hint=(
                "Give a folder of a Harbor job, a log of Inspect, or predictions in SWE-bench's form, with"
                " the instance_id of the export."
            ),
        )
    return found


def _read(path: Path) -> Iterator[ReturnedResult]:
    if not path.exists():
        raise ReturnedError(f"{path} does not exist.")
    if path.is_dir():
        trials = sorted(path.glob("result.json")) + sorted(path.glob("*/result.json"))
        for file in trials:
            yield from _trial(file)
        if not trials:
            rows = [file for file in _plain(path) if file.suffix in (".json", ".jsonl", ".eval")]
            reports = _reports(rows)
            for file in rows:
                yield from _file(file, reports)
    else:
        yield from _file(path, _reports([file for file in _plain(path.parent) if file != path]))


def _plain(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.iterdir()) if file.is_file()]


def _loaded(file: Path) -> Any:
    if not file.is_file():
        raise ReturnedError(f"{file.name} is not a file.")
    if file.stat().st_size > _MOST:
        raise ReturnedError(f"{file.name} is larger than {_MOST >> 20} MiB.")
    text = read_regular(file).decode("utf-8-sig", errors="surrogateescape")
    try:
        if file.suffix == ".jsonl":
            return [json.loads(line) for line in text.split("\n") if line.strip()]
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReturnedError(
            f"{file} is not JSON: {str(error)[:200]}.", hint="Move it away to have the rest judged."
        ) from error


def _file(file: Path, reports: list[_Report]) -> Iterator[ReturnedResult]:
    if file.suffix == ".eval":
        yield from _log_archive(file)
        return
    found = _loaded(file)
    if isinstance(found, dict) and isinstance(found.get("samples"), list):
        for sample in found["samples"]:
            yield from _sample(sample)
        return
    rows = list(found.values()) if isinstance(found, dict) else found
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict) and isinstance(row.get("instance_id"), str) and "model_patch" in row:
            yield from _prediction(row, reports)


def _task(name: object) -> str:
    match = _NAME.search(name) if isinstance(name, str) else None
    return match[1] if match else ""


def _prediction(row: Mapping[str, Any], reports: list[_Report]) -> Iterator[ReturnedResult]:
    name, model = row["instance_id"], as_str(row.get("model_name_or_path"))
    if task := _task(name):
        patch = row["model_patch"]
        yield ReturnedResult(
            harness="swebench",
            task=task,
            run=model,
            solved=_reported(name, model, reports),
            patch=patch if isinstance(patch, str) else "",
        )


@dataclass(frozen=True, slots=True)
class _Report:
    """A report of SWE-bench's harness."""

    file: str
    judged: frozenset[str]
    resolved: frozenset[str]


def _reports(files: list[Path]) -> list[_Report]:
    found = []
    for file in files:
        if file.suffix == ".json" and file.stat().st_size <= _MOST:
            try:
                report = json.loads(read_regular_text(file, LARGEST_RECORDS, errors="surrogateescape"))
            except (ValueError, RecursionError):
                continue
            if isinstance(report, dict) and isinstance(report.get("resolved_ids"), list):
                named = [id for key in _LISTS for id in as_list(report.get(key)) if isinstance(id, str)]
                resolved = [id for id in report["resolved_ids"] if isinstance(id, str)]
                found.append(_Report(file.name, frozenset(named), frozenset(resolved)))
    return found


def _reported(name: str, model: str, reports: list[_Report]) -> bool | None:
    """Return what the report of a model's run says; None without one, or if it is unknown which one is the
    model's.

    The harness calls a report `MODEL.RUN.json`; a single one may have any name.
    """
    own = [report for report in reports if model and report.file.startswith(f"{model.replace('/', '__')}.")]
    of_it = own or (reports if len(reports) == 1 else [])
    if len(of_it) != 1 or name not in of_it[0].judged:
        return None
    return name in of_it[0].resolved


def _trial(file: Path) -> Iterator[ReturnedResult]:
    found = as_dict(_loaded(file))
    task = _task(found.get("task_name")) or _task(found.get("trial_name")) or _task(file.parent.name)
    if not task:
        return
    rewards = as_dict(as_dict(found.get("verifier_result")).get("rewards"))
    yield ReturnedResult(
        harness="harbor",
        task=task,
        run=as_str(found.get("trial_name")) or file.parent.name,
        solved=_solved(rewards.get("solved")),
        score=as_float(rewards.get("score")),
        files=_artifacts(file.parent / "artifacts"),
    )


def _solved(value: object) -> bool | None:
    """Return a figure as a verdict; None for any number but 0 and 1, and for what is no number."""
    return bool(value) if isinstance(value, int | float) and value in (0, 1) else None


def _artifacts(folder: Path) -> _LeftFiles | None:
    roots = [folder / name for name in ("repo", "gist") if (folder / name).is_dir()]
    return _LeftFiles([root for root in roots if not root.is_symlink()]) if folder.is_dir() else None


class _LeftFiles(Mapping[str, bytes]):
    """Plain Python files below folders, read when they are asked for; links are not followed."""

    def __init__(self, roots: list[Path]) -> None:
        self._roots = [root.resolve() for root in roots]

    def __getitem__(self, path: str) -> bytes:
        for root in self._roots:
            place = root / path
            if _is_taken(place):
                return read_regular(place, links=False)
        raise KeyError(path)

    def __iter__(self) -> Iterator[str]:
        for root in self._roots:
            yield from (
                file.relative_to(root).as_posix() for file in sorted(root.rglob("*.py")) if _is_taken(file)
            )

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _is_taken(place: Path) -> bool:
    try:
        return place.resolve() == place and place.is_file() and place.stat().st_size <= _MOST_TAKEN
    except (OSError, RuntimeError, ValueError):
        return False


def _log_archive(file: Path) -> Iterator[ReturnedResult]:
    archive = opened(FileBlob(file))
    if not isinstance(archive, Archive):
        return
    for name, member in archive.members.items():
        if _SAMPLE.fullmatch(name) and member.size <= _MOST:
            try:
                blob = archive.read(name)
                found = json.loads(blob.read(0, blob.size)) if blob.size <= _MOST else None
            except (ValueError, RecursionError, RunFileError):
                continue
            yield from _sample(found)


def _sample(sample: Any) -> Iterator[ReturnedResult]:
    known = as_dict(sample)
    task = _task(known.get("id"))
    if not task:
        return
    score = as_dict(next(iter(as_dict(known.get("scores")).values()), None))
    metadata = as_dict(score.get("metadata"))
    yield ReturnedResult(
        harness="inspect",
        task=task,
        run=f"{as_str(known.get('id'))} epoch {as_int(known.get('epoch')) or 1}"[:200],
        solved=_solved(score.get("value")),
        score=as_float(metadata.get("score")),
        files=_taken(as_dict(metadata["taken"])) if "taken" in metadata else None,
        attempt=as_str(metadata.get("attempt")),
    )


def _taken(texts: Mapping[str, Any]) -> dict[str, bytes]:
    found = {}
    for path, text in texts.items():
        if isinstance(text, str):
            with suppress(UnicodeEncodeError):  # JSON can hold what no file can
                found[path] = text.encode("utf-8", "surrogateescape")
    return found
