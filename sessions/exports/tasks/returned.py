"""Results that other harnesses have for exported tasks: their figure, and what the solver left.

Read are folders of Harbor's jobs and trials, logs of Inspect, and predictions in SWE-bench's form, with the report of a
harness beside them if there is one. All of it is from outside: it is bounded, and what does not fit is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gistpoint.core.errors import UserError
from gistpoint.sessions.records.archives import Archive, FileBlob, opened
from gistpoint.sessions.records.values import as_dict, as_float, as_int, as_str

_MOST = 64 << 20
_MOST_FILES = 20_000
_NAME = re.compile(r"gistpoint[-/]([0-9a-f]{12})\b")
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
    files: Mapping[str, bytes] = field(default_factory=dict)
    """What the solver left, by its path in the repository, if there is no patch."""
    attempt: str = ""
    """The attempt in gistpoint's own store, if its engine made it."""


def read_returned(path: Path) -> list[ReturnedResult]:
    """Return the results in a file or folder. Raises `ReturnedError` if there is none."""
    found = list(_read(path))
    if not found:
        raise ReturnedError(
            f"{path} holds no result of an exported task.",
            hint="Give a folder of a Harbor job, a log of Inspect, or predictions in SWE-bench's form.",
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
            rows = [file for file in sorted(path.iterdir()) if file.suffix in (".json", ".jsonl", ".eval")]
            resolved = _resolved(rows)
            for file in rows:
                yield from _file(file, resolved)
    else:
        beside = [file for file in sorted(path.parent.glob("*.json")) if file != path]
        yield from _file(path, _resolved(beside))


def _loaded(file: Path) -> Any:
    if file.stat().st_size > _MOST:
        raise ReturnedError(f"{file.name} is larger than {_MOST >> 20} MiB.")
    text = file.read_text(encoding="utf-8", errors="surrogateescape")
    try:
        if file.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReturnedError(f"{file.name} is not JSON: {str(error)[:200]}.") from error


def _file(file: Path, resolved: frozenset[str] | None) -> Iterator[ReturnedResult]:
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
            yield from _prediction(row, resolved)


def _task(name: object) -> str:
    match = _NAME.search(name) if isinstance(name, str) else None
    return match[1] if match else ""


def _prediction(row: Mapping[str, Any], resolved: frozenset[str] | None) -> Iterator[ReturnedResult]:
    name = row["instance_id"]
    if task := _task(name):
        patch = row["model_patch"]
        yield ReturnedResult(
            harness="swebench",
            task=task,
            run=as_str(row.get("model_name_or_path")),
            solved=None if resolved is None else name in resolved,
            patch=patch if isinstance(patch, str) else "",
        )


def _resolved(files: list[Path]) -> frozenset[str] | None:
    """Return the ids that a report of SWE-bench's harness calls resolved; None without such a report."""
    for file in files:
        if file.suffix == ".json" and file.stat().st_size <= _MOST:
            try:
                found = json.loads(file.read_text(encoding="utf-8", errors="surrogateescape"))
            except (ValueError, RecursionError):
                continue
            ids = found.get("resolved_ids") if isinstance(found, dict) else None
            if isinstance(ids, list):
                return frozenset(id for id in ids if isinstance(id, str))
    return None


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
        solved=bool(as_float(rewards["solved"])) if "solved" in rewards else None,
        score=as_float(rewards.get("score")),
        files=_artifacts(file.parent / "artifacts"),
    )


def _artifacts(folder: Path) -> dict[str, bytes]:
    """Return the plain Python files below an artifact of ours; links are not followed."""
    found: dict[str, bytes] = {}
    for top in ("repo", "gist"):
        root = folder / top
        for file in sorted(root.rglob("*.py")) if root.is_dir() and not root.is_symlink() else []:
            plain = file.resolve() == root.resolve() / file.relative_to(root)
            if plain and file.is_file() and file.stat().st_size <= _MOST and len(found) < _MOST_FILES:
                found[file.relative_to(root).as_posix()] = file.read_bytes()
    return found


def _log_archive(file: Path) -> Iterator[ReturnedResult]:
    archive = opened(FileBlob(file))
    if not isinstance(archive, Archive):
        return
    for name, member in archive.members.items():
        if _SAMPLE.fullmatch(name) and member.size <= _MOST:
            blob = archive.read(name)
            try:
                yield from _sample(json.loads(blob.read(0, blob.size)))
            except (ValueError, RecursionError):
                continue


def _sample(sample: Any) -> Iterator[ReturnedResult]:
    known = as_dict(sample)
    task = _task(known.get("id"))
    if not task:
        return
    score = as_dict(next(iter(as_dict(known.get("scores")).values()), None))
    metadata, value = as_dict(score.get("metadata")), as_float(score.get("value"))
    yield ReturnedResult(
        harness="inspect",
        task=task,
        run=f"{as_str(known.get('id'))} epoch {as_int(known.get('epoch')) or 1}"[:200],
        solved=None if value is None else value == 1,
        score=as_float(metadata.get("score")),
        files={
            path: text.encode("utf-8", "surrogateescape")
            for path, text in as_dict(metadata.get("taken")).items()
            if isinstance(text, str)
        },
        attempt=as_str(metadata.get("attempt")),
    )
