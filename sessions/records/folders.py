"""Finds the files of a run with several files: event files, a benchmark's trial, or an opencode session."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import cycle
from pathlib import Path

from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import PathBlob

EVENT_FILE = re.compile(r"event-\d{1,12}-[\w-]{1,80}\.json")
_NUMBER = re.compile(r"(\d+)")
_WIDEST = 20
_RESULT, _CONFIG = "result.json", "config.json"
_OF_A_TRIAL = (b'"trial_name"', b'"agent_info"')
"""Members of the result of one of Harbor's trials; published trials often have no settings file."""
_LONGEST_RESULT = 1 << 20
_TRIAL_OF_TERMINAL_BENCH = "results.json"
_EPISODE = ("prompt.txt", "response.txt", "response.json")
_LOGS_OF_TERMINAL_BENCH = (
    "commands.txt",
    "sessions/agent.log",
    "panes/post-agent.txt",
    "sessions/tests.log",
    "panes/post-test.txt",
)
_LOGS_OF_HARBOR = ("verifier/test-stdout.txt", "verifier/ctrf.json", "exception.txt")
_MOST_FILES = 4000
_MOST_TRIED = 8


def run_files(folder: Path) -> list[PathBlob]:
    """Return the files of a run that is a folder, in order; empty if the folder is not a run."""
    return event_files(folder) or trial_files(folder)


def event_files(folder: Path) -> list[PathBlob]:
    """Return the files of a run with one file per event, in order; empty if the folder is not such a run.

    Files after the first `limits.MEMBERS` are left out.
    """
    inner = folder / "events"
    if not inner.is_dir():
        return []
    found = [entry for entry in inner.iterdir() if EVENT_FILE.fullmatch(entry.name) and entry.is_file()]
    found.sort(key=lambda entry: (len(entry.name.split("-")[1]), entry.name))
    return [PathBlob(entry, f"events/{entry.name}") for entry in found[: limits.MEMBERS]]


def session_files(path: Path) -> list[PathBlob]:
    """Return the files of a session in opencode's storage: its own, then each message and its parts.

    Empty if the path is not such a session or has no messages; files after the first `limits.MEMBERS` are
    left out. Some releases of opencode store the messages next to the folder of the sessions, others inside
    it.
    """
    if not (path.name.startswith("ses_") and path.suffix == ".json" and path.is_file()):
        return []
    places = ((base, _sorted((base / "message" / path.stem).glob("*.json"))) for base in path.parents[1:3])
    base, messages = next((place for place in places if place[1]), (path, []))
    found = [path] if messages else []
    for message in messages:
        kept = _sorted((base / "part" / message.stem).glob("*.json"))
        kept = kept or _sorted((base / "part" / path.stem / message.stem).glob("*.json"))
        found += [message, *kept]
    return _blobs(found[: limits.MEMBERS], base)


def holding_sessions(folders: Collection[str]) -> list[str] | None:
    """Return those of `folders` that contain opencode's sessions; None if this is not opencode's storage."""
    if "message" not in folders or "part" not in folders:
        return None
    return sorted({"session", "info"} & set(folders)) or None


def is_trial(folder: Path, files: Collection[str], folders: Collection[str]) -> bool:
    """Return whether a folder with these files and folders is a trial of Harbor or of Terminal-Bench."""
    if "agent" in folders and _RESULT in files:
        return _CONFIG in files or _is_result_of_a_trial(folder / _RESULT)
    return _TRIAL_OF_TERMINAL_BENCH in files and bool({"sessions", "agent-logs", "panes"} & set(folders))


def _is_result_of_a_trial(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST_RESULT)
    except OSError:
        return False
    return all(member in text for member in _OF_A_TRIAL)


def holds_trials(folder: Path) -> bool:
    """Return whether a folder contains trials, at most one level deep; only the first entries are checked.

    A result file next to them summarises the trials and is not one itself.
    """
    inner = list(filter(Path.is_dir, sorted(folder.iterdir())))[:_MOST_TRIED]
    below = [deeper for entry in inner for deeper in sorted(entry.iterdir())[:_MOST_TRIED]]
    return any(map(trial_files, (*inner, *below)))


def trial_files(folder: Path) -> list[PathBlob]:
    """Return the files of a trial, its result first; empty if the folder is not a trial.

    Files after the first `_MOST_FILES` are left out.
    """
    if not folder.is_dir():
        return []
    entries = list(folder.iterdir())
    names = [entry.name for entry in entries if entry.is_file()]
    if not is_trial(folder, names, [entry.name for entry in entries if entry.is_dir()]):
        return []
    found = _of_terminal_bench(folder) if _TRIAL_OF_TERMINAL_BENCH in names else _of_harbor(folder)
    return _blobs(found[:_MOST_FILES], folder)


def _of_terminal_bench(folder: Path) -> list[Path]:
    settings = folder.parent.parent / "run_metadata.json"
    logs = _sorted((folder / "agent-logs").glob("episode-*/*"))
    kept = [path for path in logs if path.name in _EPISODE]
    return [
        folder / _TRIAL_OF_TERMINAL_BENCH,
        settings,
        *kept,
        *map(folder.joinpath, _LOGS_OF_TERMINAL_BENCH),
    ]


def _of_harbor(folder: Path) -> list[Path]:
    agent = _sorted((folder / "agent").rglob("*"))
    agent.sort(key=_rank)
    return [folder / _RESULT, *agent, *map(folder.joinpath, _LOGS_OF_HARBOR)]


def _blobs(paths: Iterable[Path], folder: Path) -> list[PathBlob]:
    return [PathBlob(path, _name(path, folder)) for path in paths if path.is_file()]


def _rank(path: Path) -> tuple[bool, bool, bool]:
    """Return the sort key by which files are tried as transcripts; side agents' files come last."""
    side = path.name.startswith("agent-") or path.parent.name == "subagents"
    return path.name != "trajectory.json", side, path.suffix not in (".json", ".jsonl")


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name


def _sorted(paths: Iterable[Path]) -> list[Path]:
    """Return paths in the order that people expect, with episode 10 after episode 9."""
    # Numbers are padded to one width, so that they can be compared as strings with the other parts.
    return sorted(
        paths,
        key=lambda path: [
            part.zfill(_WIDEST) if is_number else part
            for part, is_number in zip(_NUMBER.split(str(path)), cycle((False, True)), strict=False)
        ],
    )
