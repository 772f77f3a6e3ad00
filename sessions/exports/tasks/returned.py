"""Reads the results of other harnesses for exported tasks: their figures, and the solvers' work.

The inputs are folders of Harbor's jobs and trials, logs of Inspect, and predictions in the `swebench` form
with the report of a harness in the same folder if there is one. The sizes of inputs are limited, because all
of them come from outside. Items other than results of exported tasks are left out, and their names are
recorded.
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
from gistpoint.core.text import visible
from gistpoint.sessions.records.archives import Archive, FileBlob, RunFileError, opened
from gistpoint.sessions.records.values import as_dict, as_float, as_int, as_list, as_str

_MOST = 64 << 20
_MOST_NAMED = 20
"""The maximum number of entries named by the message about a file without results."""
_TOO_LARGE = f"larger than {_MOST >> 20} MiB"
_MOVE_AWAY = "Move it away to have the others judged."
_MOST_TAKEN = 16 << 20
"""The size in bytes of the largest file that is taken from a solver's folder, as in the verifier."""
_NAME = re.compile(r"gistpoint[-/]([0-9a-f]{12})(?![0-9a-f])")
_LISTS = ("submitted_ids", "completed_ids", "resolved_ids", "unresolved_ids", "empty_patch_ids", "error_ids")
"""The members of a `swebench` report that list the instances that it judged."""
_SAMPLE = re.compile(r"samples/[^/]+\.json")


class ReturnedError(UserError):
    """Raised if a file contains no readable result of a harness."""


@dataclass(frozen=True, slots=True)
class ReturnedResult:
    """One result of another harness."""

    harness: str
    task: str
    """The first 12 characters of the task's id."""
    run: str
    """The name of the trial, sample or model."""
    solved: bool | None = None
    """The harness's own verdict; None if it has none."""
    score: float | None = None
    patch: str | None = None
    files: Mapping[str, bytes] | None = None
    """The solver's files by path in the repository, if there is no patch; None if the harness stored none."""
    attempt: str = ""
    """The id of the attempt in gistpoint's store, if gistpoint's engine made it."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An item in the results of a harness that is not judged, with its name there."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class ReturnedResults:
    """The contents of a harness's files; `results` and `left_out` together contain all of their items."""

    results: tuple[ReturnedResult, ...]
    left_out: tuple[LeftOut, ...]


def read_returned(path: Path) -> ReturnedResults:
    """Return the results in a file or folder.

    Raises `ReturnedError` if there are none, or if a file is damaged.
    """
    found = list(_read(path))
    results = tuple(one for one in found if isinstance(one, ReturnedResult))
    left_out = tuple(one for one in found if isinstance(one, LeftOut))
    if not results:
        names = "".join(f"\n{one.name}: {one.why}" for one in left_out[:_MOST_NAMED])
        more = len(left_out) - _MOST_NAMED
        names += f"\nand {more:,} more" if more > 0 else ""
        raise ReturnedError(
            f"{path} does not contain any results of exported tasks.{visible(names)}",
            hint=(
                "Give a folder of a Harbor job, a log of Inspect, or predictions in SWE-bench's form, with"
                " the instance_id of the export."
            ),
        )
    return ReturnedResults(results, left_out)


_Found = Iterator[ReturnedResult | LeftOut]


def _read(path: Path) -> _Found:
    if not path.exists():
        raise ReturnedError(f"{path} does not exist.")
    if not path.is_dir():
        other_files = [file for file in _regular_files(path.parent) if file != path]
        yield from _files([path], _reports(other_files))
        return
    if any(path.glob("result.json")) or any(path.glob("*/result.json")):
        yield from _job(path)
        return
    files = [file for file in _regular_files(path) if file.suffix in (".json", ".jsonl", ".eval")]
    yield from _files(files, _reports(files))


def _job(folder: Path) -> _Found:
    """Yield the results of a trial, of a job with its trials, or of the jobs in a folder."""
    own = folder / "result.json"
    if own.is_file() and not _is_job(own):
        yield from _trial(own)
        return
    for inner in sorted(folder.iterdir()):
        if (inner / "result.json").is_file():
            # Only jobs are searched more deeply, because the folders of a trial contain its agent's
            # leftovers.
            yield from _job(inner) if _is_job(inner / "result.json") else _trial(inner / "result.json")
        elif (inner / "config.json").is_file():
            yield LeftOut(inner.name, "a trial without a result.json, which Harbor writes when it ends")


def _is_job(file: Path) -> bool:
    return not {"trial_name", "task_name"} & as_dict(_loaded(file)).keys()


def _files(files: list[Path], reports: list[_Report]) -> _Found:
    """Yield the contents of result files, and the ids that only a report of a harness names."""
    named: dict[str, set[str]] = {}
    for file in files:
        yield from _file(file, reports, named)
    for model, ids in named.items():
        found = _reports_on(model, reports)
        for report in found if len(found) == 1 else ():
            for id in sorted(report.judged - ids):
                yield LeftOut(id, f"only in the report {report.file}, without a prediction")


def _regular_files(folder: Path) -> list[Path]:
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
        raise ReturnedError(f"{file} is not JSON: {str(error)[:200]}.", hint=_MOVE_AWAY) from error


def _file(file: Path, reports: list[_Report], named: dict[str, set[str]]) -> _Found:
    """Yield the contents of one file; the ids of its predictions are added to `named`, by model."""
    if file.suffix == ".eval":
        yield from _log_archive(file)
        return
    found = _loaded(file)
    if isinstance(found, dict) and isinstance(found.get("samples"), list):
        for number, sample in enumerate(found["samples"], 1):
            yield from _sample(sample, f"{file.name}, sample {number}")
        return
    rows = list(found.values()) if isinstance(found, dict) else found
    if not isinstance(rows, list):
        return
    if not any(map(_is_prediction, rows)):
        return  # another file in the folder, such as a report
    for number, row in enumerate(rows, 1):
        if _is_prediction(row):
            named.setdefault(as_str(row.get("model_name_or_path")), set()).add(row["instance_id"])
            yield _prediction(row, reports)
        else:
            name = as_str(as_dict(row).get("instance_id")) or f"{file.name}, row {number}"
            yield LeftOut(name, "no prediction: it needs an instance_id and a model_patch")


def _is_prediction(row: object) -> bool:
    if not isinstance(row, dict) or "model_patch" not in row:
        return False
    return isinstance(row.get("instance_id"), str)


def _foreign(name: str) -> LeftOut:
    return LeftOut(name, "not the name of an exported task")


def _task(name: object) -> str:
    """Return the beginning of the task's id that a name contains; empty if there is none."""
    match = _NAME.search(name) if isinstance(name, str) else None
    return match[1] if match else ""


def _prediction(row: Mapping[str, Any], reports: list[_Report]) -> ReturnedResult | LeftOut:
    name, model = row["instance_id"], as_str(row.get("model_name_or_path"))
    task = _task(name)
    if not task:
        return _foreign(name)
    patch = row["model_patch"]
    return ReturnedResult(
        harness="swebench",
        task=task,
        run=model,
        solved=_reported(name, model, reports),
        patch=patch if isinstance(patch, str) else "",
    )


@dataclass(frozen=True, slots=True)
class _Report:
    """A report of a `swebench` harness: the ids that it judged, and those that it resolved."""

    file: str
    judged: frozenset[str]
    resolved: frozenset[str]


def _reports(files: list[Path]) -> list[_Report]:
    found = []
    for file in files:
        if file.suffix != ".json" or file.stat().st_size > _MOST:
            continue
        try:
            report = json.loads(read_regular_text(file, LARGEST_RECORDS, errors="surrogateescape"))
        except (ValueError, RecursionError):
            continue
        if not isinstance(report, dict) or not isinstance(report.get("resolved_ids"), list):
            continue
        judged: set[str] = set()
        for key in _LISTS:
            judged.update(id for id in as_list(report.get(key)) if isinstance(id, str))
        resolved = [id for id in report["resolved_ids"] if isinstance(id, str)]
        found.append(_Report(file.name, frozenset(judged), frozenset(resolved)))
    return found


def _reported(name: str, model: str, reports: list[_Report]) -> bool | None:
    """Return whether the report on a model's run lists an instance as resolved.

    None if the model's report is missing or uncertain, or did not judge the instance.
    """
    candidates = _reports_on(model, reports)
    if len(candidates) != 1:
        return None
    (report,) = candidates
    if name not in report.judged:
        return None
    return name in report.resolved


def _reports_on(model: str, reports: list[_Report]) -> list[_Report]:
    """Return the reports that may be about a model; if none has its name, all of them.

    The harness names a report `MODEL.RUN.json`.
    """
    prefix = f"{model.replace('/', '__')}."
    named = [report for report in reports if report.file.startswith(prefix)] if model else []
    return named or reports


def _trial(file: Path) -> _Found:
    found = as_dict(_loaded(file))
    task = _task(found.get("task_name")) or _task(found.get("trial_name")) or _task(file.parent.name)
    if not task:
        yield _foreign(as_str(found.get("trial_name")) or file.parent.name)
        return
    rewards = as_dict(as_dict(found.get("verifier_result")).get("rewards"))
    yield ReturnedResult(
        harness="harbor",
        task=task,
        run=as_str(found.get("trial_name")) or file.parent.name,
        solved=_solved(rewards.get("solved")),
        score=as_float(rewards.get("score")),
        files=_artifacts(file.parent / "artifacts"),
        attempt=_attempt(file.parent / "verifier" / "attempt.json") if rewards.get("by_tools") == 1 else "",
    )


def _attempt(file: Path) -> str:
    """Return the id of the attempt whose verdict the verifier reports; `?` if it can't be read."""
    # The figure `by_tools` is written by the verifier itself, but tested code can write files next to it.
    try:
        found = json.loads(read_regular_text(file, LARGEST_RECORDS, errors="replace", links=False))
    except (OSError, ValueError, RecursionError):
        return "?"
    return as_str(as_dict(found).get("attempt")) or "?"


def _solved(value: object) -> bool | None:
    """Return a figure as a verdict; None unless it is 0 or 1."""
    if not isinstance(value, int | float) or value not in (0, 1):
        return None
    return bool(value)


def _artifacts(folder: Path) -> _SolverFiles | None:
    if not folder.is_dir():
        return None
    roots = [folder / name for name in ("repo", "gist")]
    return _SolverFiles([root for root in roots if root.is_dir() and not root.is_symlink()])


class _SolverFiles(Mapping[str, bytes]):
    """The regular files below some folders, which are read on demand; only Python files are listed.

    Links are not followed.
    """

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


def _log_archive(file: Path) -> _Found:
    try:
        archive = opened(FileBlob(file))
    except RunFileError as error:
        raise ReturnedError(f"{file.name}: {error.message}", hint=_MOVE_AWAY) from error
    if not isinstance(archive, Archive):
        return
    for name, member in archive.members.items():
        if not _SAMPLE.fullmatch(name):
            continue
        if member.size > _MOST:
            yield LeftOut(name, _TOO_LARGE)
            continue
        try:
            blob = archive.read(name)
            # The size that the archive states may be too small.
            if blob.size > _MOST:
                yield LeftOut(name, _TOO_LARGE)
                continue
            found = json.loads(blob.read(0, blob.size))
        except (ValueError, RecursionError, RunFileError) as error:
            yield LeftOut(name, f"can't be read: {str(error)[:200]}")
            continue
        yield from _sample(found, name)


def _sample(sample: Any, name: str) -> _Found:
    """Yield the result of a sample; `name` is used for a sample without an id."""
    known = as_dict(sample)
    task = _task(known.get("id"))
    if not task:
        yield _foreign(str(known["id"]) if isinstance(known.get("id"), str | int) else name)
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
            with suppress(UnicodeEncodeError):  # JSON can contain characters that files can't
                found[path] = text.encode("utf-8", "surrogateescape")
    return found
