"""Public data of a study: codes for people and attempts, omissions, and the audit that proves them."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from held_studies import Held
from hostile import HOSTILE
from study_folders import judge_of
from study_rows import World, study_data

from gistpoint.core.analysis.catalogue import analyses
from gistpoint.core.analysis.flow import participant_flow
from gistpoint.core.analysis.running import run_analyses
from gistpoint.core.attempts.events import PauseReason
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.study.data import ReviewDecision, ReviewerDecision
from gistpoint.core.study.ledger import person_sha256
from gistpoint.core.study.operations import (
    ERASED,
    ORGANISER,
    Answers,
    Erased,
    Excluded,
    Included,
    RelabelledSpan,
    Remark,
    StudyError,
    StudyOperationKind,
    TimesCorrected,
    Withdrawn,
)
from gistpoint.sessions.annotations.keys import attempt_key
from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
from gistpoint.sessions.annotations.reviews import ExcludeReason, RunVerdict
from gistpoint.sessions.exports.study.registry import StudyExport, study_exporter
from gistpoint.sessions.studies.pseudonyms import KEY, PRIVATE, Pseudonyms, key_of, monday
from gistpoint.sessions.studies.public import public_data
from gistpoint.sessions.studies.public_audit import audit_public

SOLVER = {"name": "model-x", "runs": ["runs/x/*"], "condition": "alone"}
FORM = {
    "id": "closing",
    "at": "after",
    "item": [
        {"id": "editor", "text": "Which?", "kind": "choice", "options": ["vim", "emacs"]},
        {"id": "years", "text": "Years?", "kind": "number", "min": 0, "max": 60},
        {"id": "comments", "text": "Comments?", "kind": "text"},
    ],
}
NOTED = "is it 'tax' or \"price\"?"
SAID = "I work at the desk by the window"


def _held(place: Path, **changes: Any) -> Held:
    """Return a study in which people wrote text wherever they can."""
    held = Held.at(place, solver=[SOLVER], **({"questionnaire": [FORM]} | changes))
    first = held.attempt("P01", held.tasks[1])
    second = held.attempt("P01", held.tasks[0])
    held.attempt("anna-b", held.tasks[1])
    held.model_run(held.tasks[1], "runs/x")
    record = held.folder.record
    spans = (RelabelledSpan(1_000, 11_000, "paused"),)
    record("P01", f"attempt:{first}", StudyOperationKind.CORRECTED, TimesCorrected(spans=spans, why=SAID))
    record("P01", f"attempt:{second}", StudyOperationKind.EXCLUDED, Excluded(why=SAID, reason="P01 said so"))
    record("P01", f"attempt:{first}", StudyOperationKind.INCLUDED, Included(why=SAID))
    record("P01", f"attempt:{first}", StudyOperationKind.NOTE, Remark(text=SAID))
    record("P01", "person:P01", StudyOperationKind.WITHDRAWN, Withdrawn(data="keep", words=SAID))
    values = {"editor": "vim", "years": 12, "comments": " ".join([*HOSTILE, SAID]), "unknown": SAID}
    record("P01", "person:P01", StudyOperationKind.ANSWERS, Answers(questionnaire="closing", values=values))
    return held


def _export(held: Held) -> StudyExport:
    data = held.load().data
    names = Pseudonyms.of(data, key_of(held.folder.root))
    journals = {names.attempt(one.id): one.journal for one in held.folder.attempts()}
    return StudyExport(public_data(data, names), journals, public=True)


def _written(held: Held, out: Path, *formats: str) -> dict[str, bytes]:
    export, files = _export(held), dict[str, bytes]()
    for name in formats or ("tidy",):
        files |= {f"{name}/{file}": content for file, content in study_exporter(name, public=True)(export)}
    for file, content in files.items():
        (out / file).parent.mkdir(parents=True, exist_ok=True)
        (out / file).write_bytes(content)
    return files


def _table(files: Mapping[str, bytes], name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(files[f"tidy/{name}.csv"].decode("utf-8"), newline="")))


def test_people_become_numbers_and_dates_weeks(tmp_path: Path) -> None:
    held = _held(tmp_path)
    files = _written(held, tmp_path / "out")
    assert {row["participant"] for row in _table(files, "participants")} == {"H01", "H02"}
    attempts = _table(files, "attempts")
    plain = held.load().data.rows
    assert sorted(row["primary_s"] for row in attempts) == sorted(
        f"{row.primary_s:.3f}" if row.primary_s is not None else "" for row in plain
    )
    assert {row["started_utc"] for row in attempts} == {"2026-09-21T00:00:00.000Z"}
    assert {row["attempt"] for row in attempts}.isdisjoint(row.attempt for row in plain)
    assert {row["attempt"] for row in _table(files, "calls")} == {row["attempt"] for row in attempts}
    given = {row["assignment"] for row in _table(files, "assignments")}
    assert {row["assignment"] for row in attempts if row["participant"]} == given
    assert len(given) == 3
    assert not {"P01", "anna-b"} & {row["writer"].partition("@")[0] for row in _table(files, "exclusions")}


def test_choices_and_numbers_stay_and_free_text_goes(tmp_path: Path) -> None:
    held = _held(tmp_path)
    files = _written(held, tmp_path / "out", "tidy", "metr", "breakpoint", "inspect")
    assert {name.partition("/")[0] for name in files} == {"tidy", "metr", "breakpoint", "inspect"}
    answers = {
        row["item"]: row["value"] for row in _table(files, "answers") if row["questionnaire"] == "closing"
    }
    assert answers == {"editor": "vim", "years": "12"}
    said = _table(files, "exclusions")
    assert {row["words"] for row in said} == {""}
    assert "excluded" in {row["reason"] for row in said}
    assert SAID.encode() not in b"".join(files.values())
    assert not [finding for finding in audit_public(held.folder, tmp_path / "out") if not finding.note]


def test_free_text_stays_where_the_declaration_lets_it_out(tmp_path: Path) -> None:
    held = _held(tmp_path, privacy={"contact": "the desk", "free_text_public": True})
    files = _written(held, tmp_path / "out")
    answers = {row["item"] for row in _table(files, "answers") if row["questionnaire"] == "closing"}
    assert answers == {"editor", "years", "comments", "unknown"}
    assert any(row["words"] == SAID for row in _table(files, "exclusions"))
    found = [finding for finding in audit_public(held.folder, tmp_path / "out") if not finding.note]
    assert [finding.where for finding in found] == [
        "tidy/attempts.csv",
        "tidy/exclusions.csv",
    ]  # the reason contains a code
    assert "'P01'" in found[0].sentence


def test_the_facts_of_a_person_are_the_same(tmp_path: Path) -> None:
    held = _held(tmp_path)
    before = _table(
        {f"tidy/{k}": v for k, v in study_exporter("tidy")(StudyExport(held.load().data))}, "participants"
    )
    after = _table(_written(held, tmp_path / "out"), "participants")

    def facts(rows: list[dict[str, str]]) -> list[list[str]]:
        return sorted(
            [value for name, value in row.items() if name != "participant" and not name.endswith("_utc")]
            for row in rows
        )

    assert facts(before) == facts(after)


@pytest.mark.parametrize("erased", [0, 1, 3])
def test_the_flow_of_a_public_study_has_the_same_numbers(tmp_path: Path, erased: int) -> None:
    """Words that an organiser wrote are replaced, and nobody who was erased becomes nobody erased."""
    held = _held(tmp_path)
    hashes = [person_sha256(f"gone{number}") for number in range(erased)]
    for one in hashes:
        held.folder.record(ORGANISER, ERASED, StudyOperationKind.ERASED, Erased(person_sha256=one))
    data = held.load().data
    public = public_data(data, Pseudonyms.of(data, key_of(held.folder.root)))
    numbers = [
        {key: number.value for key, number in participant_flow(one).numbers.items() if "said_so" not in key}
        for one in (data, public)
    ]
    words = "not counted because/"
    own, out = ({k: v for k, v in one.items() if not k.startswith(words)} for one in numbers)
    assert own == out
    assert out["erased"] == erased
    assert sum(v or 0 for k, v in numbers[1].items() if k.startswith(words)) == out["not counted"]
    spelled = " ".join(map(repr, public.ledger.operations))
    assert not [one for one in hashes if one in spelled]


def test_the_key_is_made_once_and_is_the_owners(tmp_path: Path) -> None:
    first = key_of(tmp_path)
    path = tmp_path / PRIVATE / KEY
    path.chmod(0o644)
    assert key_of(tmp_path) == first
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.write_text("short")
    with pytest.raises(StudyError, match="does not contain a key"):
        key_of(tmp_path)


def test_the_order_of_the_numbers_is_the_keys(tmp_path: Path) -> None:
    codes = [f"P{number:02}" for number in range(30)]
    orders = {tuple(sorted(codes, key=Pseudonyms(bytes([seed]) * 32, codes).person)) for seed in range(4)}
    assert len(orders) == 4
    assert tuple(codes) not in orders
    assert Pseudonyms(b"k" * 32, ["h3", "P1"]).person("P1").startswith("HH")
    assert len({Pseudonyms(b"k" * 32, map(str, range(150))).person(str(n)) for n in range(150)}) == 150


def _with_notes(held: Held) -> None:
    """Record an attempt with a note and a reason for a pause."""
    task = held.folder.task(held.tasks[0].id)
    who = Enrolment(participant="P03", study=held.folder.study.id, condition="alone", assignment="a")
    opened = held.machine.attempts.start(task, judge_of(task), who)
    opened.attempt.note(NOTED)
    opened.attempt.pause(PauseReason.BREAK, "my daughter\ncalled me")
    opened.close()
    held.folder.publish(opened.journal.path.parent)


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Held:
    """A study whose folder is only read."""
    held = _held(tmp_path_factory.mktemp("held"))
    _with_notes(held)
    return held


@pytest.mark.parametrize("where", ["a cell", "a name", "JSON", "an archive"])
def test_the_audit_finds_what_must_not_be_there(held: Held, tmp_path: Path, where: str) -> None:
    published = next(held.folder.attempts())
    secrets = {
        "code": "anna-b",
        "code of a header": "P03",
        "attempt": published.id,
        "assignment": "P01-remove",
        "writer": published.writer,
        "words": f"He said: {SAID}, twice",
        "note": NOTED,
        "pause": "my daughter\ncalled me".partition("\n")[0],
        "answer": " ".join(HOSTILE)[:100],
    }
    for number, (kind, text) in enumerate(secrets.items()):
        out = tmp_path / str(number)
        if where == "a name" and "/" in text:
            continue
        _put(out, where, text)
        found = [finding for finding in audit_public(held.folder, out) if not finding.note]
        assert found, kind
        assert found[0].where.startswith(("leak", "x")), kind


def _put(out: Path, where: str, text: str) -> None:
    out.mkdir()
    if where == "a cell":
        buffer = io.StringIO()
        csv.writer(buffer).writerow(["1", text, "x"])
        (out / "leak.csv").write_text(buffer.getvalue())
    elif where == "a name":
        (out / f"x {text}.txt").write_text("")
    elif where == "JSON":
        (out / "leak.jsonl").write_text(json.dumps({"a": f"\n{text}\n"}))
    else:
        with zipfile.ZipFile(out / "leak.eval", "w") as archive:
            archive.writestr("samples/1.json", json.dumps({"a": text}))


def test_an_export_with_codes_is_refused_by_the_audit(tmp_path: Path) -> None:
    held = _held(tmp_path)
    out = tmp_path / "out"
    for name, content in study_exporter("tidy")(StudyExport(held.load().data)):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_bytes(content)
    found = {finding.where for finding in audit_public(held.folder, out)}
    assert {"participants.csv", "assignments.csv", "attempts.csv", "answers.csv", "exclusions.csv"} <= found
    assert "tasks.csv" not in found


def test_a_code_that_the_bytes_of_an_archive_contain_by_chance_is_no_finding(
    held: Held, tmp_path: Path
) -> None:
    member = zipfile.ZipInfo("noise")
    member.external_attr = int.from_bytes(b"P01.", "little")
    with zipfile.ZipFile(tmp_path / "noise.zip", "w") as archive:
        archive.writestr(member, "nothing")
    assert b"\0P01." in (tmp_path / "noise.zip").read_bytes()
    assert not [finding for finding in audit_public(held.folder, tmp_path) if not finding.note]


def test_nothing_to_audit(tmp_path: Path) -> None:
    held = _held(tmp_path)
    (tmp_path / "out").mkdir()
    assert [finding.name for finding in audit_public(held.folder, tmp_path / "out") if not finding.note] == [
        "nothing_exported"
    ]
    with pytest.raises(StudyError, match="no folder"):
        list(audit_public(held.folder, tmp_path / "nowhere"))


def test_weeks_begin_on_monday() -> None:
    assert monday(1_789_990_000_000) == 1_789_948_800_000
    assert monday(1_789_948_800_000) == 1_789_948_800_000
    assert monday(1_789_948_799_999) == 1_789_948_800_000 - 7 * 86_400_000


def test_published_data_give_the_numbers_of_the_report() -> None:
    world = World(
        people=10, tasks=14, per_person=12, cap=25.0, assisted=True, metric_slope=0.5, model_rate=0.5
    )
    rows, metrics = world.rows(3)
    decisions = [
        ReviewerDecision(row.attempt, name, kind)
        for place, row in enumerate(rows)
        if not row.solver
        for name, kind in zip(
            ("Zoe", "anna", "Bert"),
            (list(ReviewDecision)[place * n // 3 % 3] for n in (1, 2, 4)),
            strict=True,
        )
    ]
    data = study_data(rows, metrics=metrics, decisions=tuple(decisions))
    known = [one for one in analyses() if one.id != "time-mixed"]
    found = run_analyses(data, known)
    published = run_analyses(public_data(data, Pseudonyms.of(data, b"key")), known)
    numbers = [
        {f"{ran.analysis.id}/{key}": number for ran in made for key, number in ran.findings.numbers.items()}
        for made in (found, published)
    ]
    assert {"agreement/R1 and R3", "bp-5/people, alone/remove/code_lines"} <= numbers[0].keys()
    assert numbers[0].keys() == numbers[1].keys()
    for key, number in numbers[0].items():
        ends = [(one.value, one.low, one.high, *(one.iid or ())) for one in (number, numbers[1][key])]
        assert ends[0] == pytest.approx(ends[1], rel=1e-6), key


def test_published_decisions_are_under_other_names(tmp_path: Path) -> None:
    held = _held(tmp_path)
    attempt = held.load().data.rows[0].attempt
    store = ReviewStore(held.folder.root / "reviews", held.clock)
    Reviewer(store, "zoe").verdict(
        attempt_key(attempt), RunVerdict.EXCLUDE, reasons=(ExcludeReason.SHORTCUT,)
    )
    Reviewer(store, "anna").verdict(
        attempt_key(attempt), RunVerdict.ACCEPT_CORRECTED_TIME, corrected_time_s=5
    )
    files = _written(held, tmp_path / "out")
    rows = [(row["reviewer"], row["decision"], row["active_s"]) for row in _table(files, "decisions")]
    assert rows == [("R01", "accept", "5.000"), ("R02", "reject_pass", "")]
    assert b"zoe" not in b"".join(files.values())
    assert not [finding for finding in audit_public(held.folder, tmp_path / "out") if not finding.note]
