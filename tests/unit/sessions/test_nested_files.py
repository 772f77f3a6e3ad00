"""Files nested more deeply than a decoder can go: each reader of a file reports or ignores them.

There is a row for each kind of file that gistpoint writes or accepts from others;
`architecture/test_nesting.py` finds the places in the code.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from builders import build_task
from fakes import FakeClock
from small_study import opened, study_at
from study_folders import Machine
from unit.sessions.test_odd_files import READERS

from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.confirmation.controls import CONTROLS_FILE, read_controls
from gistpoint.core.errors import UserError
from gistpoint.core.generation.earlier import HISTORY_FILE, read_earlier_files
from gistpoint.core.generation.examples import read_judged
from gistpoint.core.generation.library import _Folder
from gistpoint.core.generation.progress import TrialBoard
from gistpoint.core.generation.spending import SetSpending
from gistpoint.core.generation.submissions import _file_of, read_submissions
from gistpoint.core.generation.verdicts import StateFile
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.orders import ClusterLieError
from gistpoint.core.tasks.documents import ANSWER_FILE
from gistpoint.core.tasks.entered import ENTERED_FILE, read_entered
from gistpoint.sandbox.backends.docker.engine import EngineError
from gistpoint.sandbox.backends.docker.taskimages import _decoded
from gistpoint.sandbox.backends.runtime import Runtime, RuntimeCache
from gistpoint.sandbox.cluster import _read
from gistpoint.sandbox.ladder import _CONSENT, has_consented
from gistpoint.sessions.agentruns.control import _pseudonym
from gistpoint.sessions.agentruns.store import JOBS_FILE, AgentRunStore, RunSettings
from gistpoint.sessions.annotations.glance_reader import GlanceStore
from gistpoint.sessions.annotations.reviewer import ReviewStore
from gistpoint.sessions.annotations.validator import Drafts, ValidationStore
from gistpoint.sessions.heads import BrokenHeadError, head_path, read_head
from gistpoint.sessions.imports import ImportLedger
from gistpoint.sessions.journal import JOURNAL, first_event, read_journal
from gistpoint.sessions.leases import Lease
from gistpoint.sessions.outlines import Outlines
from gistpoint.sessions.replay.reporting import _stored_reports
from gistpoint.sessions.row_index import IndexedRow
from gistpoint.sessions.runs.opening import list_runs
from gistpoint.sessions.studies.auditing import audit
from gistpoint.sessions.studies.drafts import FormDraft, FormDrafts
from gistpoint.sessions.studies.metrics import METRICS_FILE, read_metrics
from gistpoint.sessions.studies.publishing import PUBLISHED, read_note
from gistpoint.sessions.task_documents import _CODE, TaskDocuments
from gistpoint.sessions.team.lines import BrokenChainError, chained
from gistpoint.tui.screens.palette import uses
from gistpoint.tui.serving.links import LinkBook

DEPTHS = (900, 100_000)
"""Depths within and beyond a decoder's limit; the first is decoded, and then walks through it recurse."""
REFUSALS = (UserError, BrokenChainError, BrokenHeadError, ClusterLieError, EngineError)

Made = tuple[Path, Callable[[], object]]
"""The path of the deep file, and a function that reads it and returns what it found in it."""


def _in_task(file: str, read: Callable[[Path], object]) -> Callable[[Path], Made]:
    def make(folder: Path) -> Made:
        task = build_task(folder / "tasks").folder
        (place,) = task.glob(file) if "*" in file else [task / file]
        return place, lambda: read(task)

    return make


def _run(folder: Path) -> Made:
    store = AgentRunStore(folder)
    run = store.open_or_create("r", RunSettings(model="m", host="", agent=AgentSettings()), 1, "test")
    return run.folder / JOBS_FILE, lambda: store.open("r").jobs


def _study_log(folder: Path) -> Made:
    machine = Machine.at(folder / "home")
    study = opened(machine.open(study_at(folder / "s")))
    log, *_ = study.files.log.files()

    def read() -> object:
        found = machine.open(study.root)
        assert audit(found)
        return "P1" in found.ledger.people

    return log.with_name(f"P1@{'b' * 6}.jsonl"), read


def _journal(folder: Path) -> Made:
    place = folder / "01abcdefgh" / JOURNAL

    def read() -> object:
        runs = [run for run in list_runs([folder]) if run.header is not None]
        return first_event(place) or read_journal(place).events or runs

    return place, read


def _runtime(folder: Path) -> Made:
    cache, nothing = RuntimeCache(folder), Runtime("", (), ())
    cache._cached([], ["x"], lambda: nothing)
    (file,) = folder.glob("*.json")
    return file, lambda: cache._cached([], ["x"], lambda: nothing) is not nothing


def _draft_of_form(folder: Path) -> Made:
    drafts = FormDrafts(folder, "s", "P1")
    return drafts._path("form", ""), lambda: drafts.read("form") != FormDraft()


def _draft_of_validator(folder: Path) -> Made:
    drafts = Drafts(folder, "me")
    return drafts._path("t"), lambda: drafts.read("t").comment


def _side_file(store: Callable[[Path, FakeClock], Any]) -> Callable[[Path], Made]:
    return lambda folder: (folder / "me.jsonl", lambda: store(folder, FakeClock()).book.operations)


def _file(name: str, read: Callable[[Path], object]) -> Callable[[Path], Made]:
    """Return a function that returns a file's path in a folder, and a function that calls `read` with it."""
    return lambda folder: (folder / name, lambda: read(folder / name))


def _data(read: Callable[[bytes], object]) -> Callable[[Path], Made]:
    return _file("x", lambda path: read(path.read_bytes().strip()))


def _packed(data: bytes) -> bytes:
    """Return MessagePack with as many nested lists as the JSON in `data`."""
    return b"\x91" * data.count(b"[") + b"\x90"


def _indexed_attempt(data: bytes) -> object:
    kept = Outlines(None, "1")
    kept._kept["a"] = IndexedRow("a", kept._code + b"s", _packed(data))
    return kept.get("a", b"s", remember=True)


def _indexed_task(data: bytes) -> object:
    """Read a task whose row is nested; its file does not exist, which is a `UserError`."""
    documents = TaskDocuments(None)
    documents._kept["/nowhere"] = IndexedRow("/nowhere", _CODE + b"s", _packed(data))
    return documents.read(Path("/nowhere"), b"s")


KINDS: dict[str, Callable[[Path], Made]] = {
    # tasks
    "an answer": _in_task(ANSWER_FILE, lambda task: read_answer(read_task(task))),
    "a baseline": _in_task("answer/baselines/*.json", lambda task: read_answer(read_task(task))),
    "controls": _in_task(CONTROLS_FILE, read_controls),
    "entered tests": _in_task(ENTERED_FILE, read_entered),
    "imports": _file("x", lambda path: ImportLedger(path).read().imported),
    # making tasks
    "verdicts of a campaign": _file("x", lambda path: StateFile(path, {})),
    "spending of a set": _file("x", lambda path: SetSpending(path).check()),
    "progress of trials": _file("x.json", lambda path: TrialBoard(path.parent).trials("k")),
    "a library": _file("repository.json", lambda path: _Folder(path.parent).source()),
    "the history of a library": _file(HISTORY_FILE, lambda path: read_earlier_files(path.parent)),
    "failed submissions": _file(
        _file_of(Path(), ()).name, lambda path: read_submissions(path.parent).by_function
    ),
    "judged examples": _file("x", lambda path: read_judged(path.read_text(), "x")),
    # attempts and runs
    "a journal": _journal,
    "a head": lambda folder: (head_path(folder / "a"), lambda: read_head(folder / "a")),
    "an indexed attempt": _data(_indexed_attempt),
    "an indexed task": _data(_indexed_task),
    "a lease": _file("n.json", lambda path: Lease(path.parent, "n").attempt),
    "lines of a team's store": _data(lambda data: chained([data])),
    "jobs of a run": _run,
    "a request for control": _data(_pseudonym),
    "reports on replays": _file("x", _stored_reports),
    "a reply from a cluster": _data(lambda data: _read(cast(Any, SimpleNamespace(key="k")), data)),
    "an image's description": _data(_decoded),
    # people
    "the log of a study": _study_log,
    "a draft of a form": _draft_of_form,
    "a draft of a validator": _draft_of_validator,
    "metrics of a study": _file(METRICS_FILE, lambda path: read_metrics(path.parent)),
    "a note on what is published": _file(PUBLISHED, lambda path: read_note(path.parent)),
    "reviews": _side_file(ReviewStore),
    "validations": _side_file(ValidationStore),
    "blind readings": _side_file(GlanceStore),
    "links": _file("x", lambda path: LinkBook(path, FakeClock()).all()),
    # the user's own
    "consent to no isolation": _file(_CONSENT, lambda path: has_consented(path.parent)),
    "uses of the palette": _file("x", uses),
    "a runtime of the sandbox": _runtime,
}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", KINDS)
def test_json_that_is_nested_too_deeply_is_reported_or_ignored(tmp_path: Path, name: str, depth: int) -> None:
    place, read = KINDS[name](tmp_path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text('{"x": ' + "[" * depth + "]" * depth + "}\n")
    found = None
    with suppress(*REFUSALS):  # a sentence
        found = read()
    assert not found or depth == DEPTHS[0]


_TABLES = "{" + ".".join("a" * 60) + " = "
"""Tables with dotted keys nest 60 times as deep as the parser of TOML recurses."""


@pytest.mark.parametrize(
    "deep",
    [_TABLES * 100 + "1" + "}" * 100, "[" * 450 + "]" * 450, "[" * 100_000],
    ids=["tables", "lists", "beyond"],
)
@pytest.mark.parametrize("name", [name for name, (file, _) in READERS.items() if file.endswith(".toml")])
def test_toml_that_is_nested_too_deeply_is_reported(tmp_path: Path, name: str, deep: str) -> None:
    file, read = READERS[name]
    (tmp_path / file).parent.mkdir(exist_ok=True)
    head = "[[verdict]]\nkey = " if name == "words of verdicts" else "x = "
    (tmp_path / file).write_text(f"{head}{deep}\n")
    with pytest.raises(UserError) as refused:
        read(tmp_path)
    assert len(str(refused.value)) < 2_000
