"""`gistpoint findings` on the command line, with scripted judges on loopback."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from consenting import take_part
from fakes import FakeClock
from scripted_endpoint import Answer, Endpoint, completion, endpoint
from scripted_judges import (
    DELETED,
    HOSTILE,
    agreeing,
    blind,
    expensive,
    false_quotes,
    has_label,
    obeying,
    refusing,
    talkative,
    text_in,
    write_rubric,
    write_runs,
)
from study_folders import MINIMAL, Machine, declare

from gistpoint.core.locations import Locations
from gistpoint.sessions.annotations.glances import MODEL
from gistpoint.sessions.judging.hand_labels import HandReader, LabelQuestion
from gistpoint.sessions.judging.judgements import JudgementStore, LabelPart
from gistpoint.sessions.runs.opening import open_run
from gistpoint.sessions.studies.course import open_for_people
from gistpoint.tui import cli

Captured = pytest.CaptureFixture[str]
Judge = Callable[[Mapping[str, Any], Mapping[str, str]], Answer]
KEY = "sk-0123456789-secret"
RUNS = 12


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rubric and the runs, as words of a command."""
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return [str(write_rubric(tmp_path)), str(write_runs(tmp_path / "runs", RUNS, hostile=[3, 4]))]


def judged(
    words: list[str], monkeypatch: pytest.MonkeyPatch, judge: Judge, *more: str, code: int = cli.DONE
) -> Endpoint:
    with endpoint(judge) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        assert cli.main(["findings", "judge", *words, "--judge-model", "m", "--yes", *more]) == code
    return served


def report(words: list[str], capsys: Captured, *more: str) -> dict[str, Any]:
    capsys.readouterr()
    assert cli.main(["findings", "report", *words, "--json", *more]) == cli.DONE
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def row_of(found: dict[str, Any], label: str = "deleted-test") -> dict[str, Any]:
    return next(row for row in found["labels"] if row["label"] == label)


@pytest.mark.parametrize(
    ("judge", "claims"), [(agreeing, 4), (talkative, 4), (blind, 0), (false_quotes, 0), (obeying, 3)]
)
def test_what_a_judge_found_is_reported_with_its_place(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured, judge: Judge, claims: int
) -> None:
    served = judged(words, monkeypatch, judge)
    assert len(served.requests) == RUNS
    found = report(words, capsys)
    assert row_of(found)["judged"] == claims
    proofs = [claim for claim in found["findings"] if claim["label"] == "deleted-test"]
    assert len(proofs) == claims
    for claim in proofs:
        assert claim["quote"] == DELETED
        assert claim["step"] == 3
        assert claim["place"].startswith("text 1, ")
        assert has_label(int(claim["run"].rpartition("-")[2].partition(".")[0]))


def test_false_quotes_are_refused_and_counted(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    judged(words, monkeypatch, false_quotes)
    shown = capsys.readouterr().out
    assert f"{RUNS} claims, {RUNS} without a quote that proves it; {2 * RUNS} quotes refused" in shown
    assert "refused: rm -rf tests" in shown
    row = row_of(report(words, capsys))
    assert (row["judged"], row["unproven"], row["refused"]) == (0, RUNS, 2 * RUNS)


def test_a_run_that_instructs_its_judge_is_reported(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    judged(words, monkeypatch, agreeing)
    assert "Text that seems to address a judge is in 2 runs" in capsys.readouterr().err
    found = report(words, capsys)["addressing_the_judge"]
    assert {Path(one["run"]).name for one in found} == {"run-003.traj.json", "run-004.traj.json"}
    assert {one["step"] for one in found} == {3}
    assert cli.main(["findings", "report", *words]) == cli.DONE
    assert "Seem to address a judge: " in capsys.readouterr().out


def test_the_table_prints_a_share_only_with_its_interval(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    judged(words, monkeypatch, agreeing)
    capsys.readouterr()
    assert cli.main(["findings", "report", *words]) == cli.DONE
    shown = capsys.readouterr().out
    line = next(line for line in shown.splitlines() if line.startswith("deleted-test\t"))
    assert line.split("\t") == [
        *("deleted-test", "4 of 12", "0", "0", "0 of 0", "-", "-", "-", "too few", "more runs"),
    ]  # 15 labels would be needed of 12 runs
    assert "deleted-test: too few: no labels" in shown
    assert f"step 3 text 1, 24-45: {DELETED}" in shown


def test_computed_labels_need_no_model(words: list[str], capsys: Captured) -> None:
    found = report(words, capsys)
    row = row_of(found, "no-tests")
    assert (row["judged"], row["labels"], row["kappa"], row["value"]) == (RUNS, 0, None, 1.0)
    assert row_of(found)["not_judged"] == RUNS
    assert row_of(found)["runs"] == 0


def test_a_judge_that_declines_is_not_asked_on(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    served = judged(words, monkeypatch, refusing, code=cli.NEGATIVE)
    assert len(served.requests) == 3
    assert "contains no answer: I can't help" in capsys.readouterr().err


def test_the_cap_ends_it_and_the_next_call_goes_on(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    served = judged(words, monkeypatch, expensive, "--max-cost", "0.45", code=cli.NEGATIVE)
    assert len(served.requests) == 4
    captured = capsys.readouterr()
    assert "The cap on the cost: 0.4000 of 0.45 dollars" in captured.err
    assert "The answers so far are kept" in captured.err
    assert f"4 of {RUNS} answers" in captured.out
    first = [re.findall(r"Fix the mean of (\d+)", text_in(request))[0] for request in served.requests]
    # A random part, rather than the first by name. The draw depends on the path of the test's folder, which
    # gives this order once in 11,880 times.
    assert first != ["0", "1", "2", "3"]
    served = judged(words, monkeypatch, expensive)
    assert len(served.requests) == RUNS - 4
    served = judged(words, monkeypatch, expensive)
    assert not served.requests
    assert "Everything has already been judged" in capsys.readouterr().err


def test_a_changed_definition_is_asked_again_alone(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    judged(words, monkeypatch, agreeing)
    rubric = Path(words[0])
    rubric.write_text(rubric.read_text().replace("only reads", "only looks"), encoding="utf-8")
    assert row_of(report(words, capsys), "read-only")["not_judged"] == RUNS
    served = judged(words, monkeypatch, agreeing)
    assert {tuple(text.split()[-1:]) for text in map(text_in, served.requests)} == {("read-only",)}


def test_a_long_run_is_read_in_pieces(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    path = next((tmp_path / "runs").iterdir())
    for other in (tmp_path / "runs").iterdir():
        if other != path:
            other.unlink()
    value = json.loads(path.read_text())
    value["messages"][2]["content"] = f"THOUGHT: go\n\n```bash\n{DELETED}\n```"
    value["messages"][3]["content"] = (
        "<returncode>0</returncode>\n<output>\n" + "a line\n" * 3_000 + "</output>"
    )
    path.write_text(json.dumps(value))
    judged(words, monkeypatch, expensive, "--context", "4000", "--max-cost", "0.25", code=cli.NEGATIVE)
    assert row_of(report(words, capsys))["not_judged"] == 1  # some pieces are not runs
    for file in (tmp_path / "home").rglob("*.jsonl"):
        file.unlink()
    served = judged(words, monkeypatch, agreeing, "--context", "4000")
    assert len(served.requests) > 3
    assert all(len(json.dumps(request["messages"])) < 3 * 4_000 for request in served.requests)
    assert row_of(report(words, capsys))["judged"] == 1


def test_nothing_is_sent_without_a_word(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    with endpoint(agreeing) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        command = ["findings", "judge", *words, "--judge-model", "m"]
        assert cli.main([*command, "--dry-run"]) == cli.DONE
        dry = capsys.readouterr()
        host = served.url.split("/")[2]
        assert f"are sent to {host} (m)" in dry.err
        assert "12 requests about 12 of 12 runs" in dry.err
        assert "the run begins" in dry.out
        assert "Label deleted-test:" in dry.out
        assert cli.main(command) == cli.MISTAKE
        assert "Nothing was sent" in capsys.readouterr().err
        assert not served.requests


def test_labels_by_hand_feed_the_estimate_and_settled_ones_do_not(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured, tmp_path: Path
) -> None:
    write_runs(tmp_path / "runs", 60, tasks=12)
    judged(words, monkeypatch, agreeing)
    store = JudgementStore(Locations.of_user().judgements, FakeClock())
    reader = HandReader(store, "ada")
    from gistpoint.core.judging.rubric import read_rubric
    from gistpoint.sessions.judging.run_texts import FACTS, run_text

    labels = [read_rubric(Path(words[0]), FACTS).label[0]]
    documents = [open_run(path) for path in sorted((tmp_path / "runs").iterdir())]
    texts = [run_text("run", document, document.header) for document in documents]
    truth = {
        text.own_key: any(p.answers[0].present for p in store.book.state(text.key, f"{MODEL}m").pieces)
        for text in texts
    }
    keys = list(truth)
    questions = reader.blind(keys, labels, 30)
    assert questions == reader.blind(keys, labels, 60)[:30]
    for question in questions:
        reader.answer(question, truth[question.run])
    for question in reader.again(keys, labels, 10):
        reader.answer(question, truth[question.run])
    row = row_of(report(words, capsys, "--reader", "ada"))
    assert (row["labels"], row["kappa"], row["read_again"], row["kappa_again"]) == (30, 1.0, 10, 1.0)
    assert row["low"] < 1 / 3 < row["high"]
    assert row["too_few"] == ""
    assert report(words, capsys, "--reader", "bob")["labels"][0]["too_few"] == "no labels"
    for key in keys:  # the opposite, with the judge's answer on the screen
        reader.answer(LabelQuestion(key, labels[0], LabelPart.DISPUTED), not truth[key])
    after = row_of(report(words, capsys, "--reader", "ada"))
    assert {**after, "settled": 0} == row
    assert after["settled"] == 60
    row = after
    capsys.readouterr()
    assert cli.main(["findings", "report", *words, "--reader", "ada", "--csv", "labels"]) == cli.DONE
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [one["label"] for one in rows] == ["deleted-test", "read-only", "no-tests"]
    assert cli.main(["findings", "report", *words, "--reader", "ada", "--csv", "findings"]) == cli.DONE
    claims = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {one["quote"] for one in claims if one["label"] == "deleted-test"} == {DELETED}
    assert {one["person"] for one in claims if one["label"] == "deleted-test"} == {"absent"}
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "elsewhere"))
    there = report(words, capsys, "--reader", "ada", "--merge", str(store.folder))
    assert row_of(there) == row


def test_neither_the_key_nor_the_file_name_is_sent_or_kept(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = judged(words, monkeypatch, agreeing)
    assert "run-003" not in json.dumps(served.requests)
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_hostile_text_is_drawn_visible(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def odd(request: Mapping[str, Any], headers: Mapping[str, str]) -> Answer:
        said = agreeing(request, headers).body["choices"][0]["message"]["content"]  # type: ignore[index]
        value = json.loads(said)
        value["labels"][0] |= {"answer": "present", "quotes": ["\x1b[2J[red]gone"]}
        return completion(json.dumps(value))

    judged(words, monkeypatch, odd)
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "[red]gone" in shown


def test_a_rubric_without_an_asked_label_needs_no_judge(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    Path(words[0]).write_text("name = 'a'\n[[label]]\nid = 'x'\ncoded = 'computed'\nfact = 'no_edit'")
    assert cli.main(["findings", "judge", *words, "--judge-model", "m"]) == cli.MISTAKE
    assert "All labels of this rubric are computed" in capsys.readouterr().err


def test_two_judges_are_told_apart(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    judged(words, monkeypatch, agreeing)
    with endpoint(blind) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        assert cli.main(["findings", "judge", *words, "--judge-model", "n", "--yes"]) == cli.DONE
    capsys.readouterr()
    assert cli.main(["findings", "report", *words]) == cli.MISTAKE
    assert "Several models have judged runs: m, n." in capsys.readouterr().err
    assert row_of(report(words, capsys, "--judge-model", "n"))["judged"] == 0
    assert row_of(report(words, capsys, "--judge-model", "m"))["judged"] == 4
    assert HOSTILE not in capsys.readouterr().out


def test_attempts_of_a_study_are_sent_only_with_the_consent_for_it(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    machine = Machine.at(tmp_path / "home")
    items = ["[required] Yes", "[models] A model may read my attempts"]
    folder = declare(tmp_path / "shop", {"texts": {**MINIMAL["texts"], "consent_items": items}})
    study = machine.open(folder)
    open_for_people(study)
    agreed = take_part(study, machine, "P1", True, True)
    refused = take_part(study, machine, "P2", True, False)
    command = [words[0], *(str(machine.locations.attempts / id) for id in (agreed, refused))]
    with endpoint(agreeing) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        judging = ["findings", "judge", *command, "--judge-model", "m", "--yes", "--unblind"]
        assert cli.main(judging) == cli.DONE
        assert not served.requests
        assert "Not sent: 2 attempts of studies" in capsys.readouterr().err
        assert cli.main([*judging, "--study", str(folder)]) == cli.DONE
        assert "Not sent: 1 attempt of studies" in capsys.readouterr().err
        assert len(served.requests) == 1


def test_labelling_needs_a_terminal(words: list[str], capsys: Captured) -> None:
    assert cli.main(["findings", "read", *words]) == cli.MISTAKE
    assert "gistpoint findings report prints what was found" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("missing", "more", "extra"),
    [
        ("numpy", ["report"], "study"),
        ("httpx2", ["judge", "--yes"], "llm"),
        ("openai", ["judge", "--yes"], "llm"),
    ],
)
def test_a_missing_extra_is_named_in_two_lines(
    words: list[str], missing: str, more: list[str], extra: str
) -> None:
    """Runs in a separate process, because these packages are already imported."""
    name = ["--judge-model", "m"] if "judge" in more else []
    call = ["findings", more[0], *words, *name, *more[1:]]
    code = f"import sys; sys.modules[{missing!r}] = None; from gistpoint.tui import cli"
    code += f"; sys.exit(cli.main({call!r}))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert f"gistpoint[{extra}]" in ended.stderr


def session(path: Path, said: str, id: str = "s1") -> None:
    """Write a session of Claude Code with an id, in which the agent says `said`."""
    common = {"sessionId": id, "timestamp": "2026-01-01T00:00:00Z", "version": "2.0.0", "cwd": "/w"}
    lines = [
        {**common, "type": "user", "uuid": "u1", "message": {"role": "user", "content": "Fix the mean."}},
        {
            **common,
            "type": "assistant",
            "uuid": "u2",
            "parentUuid": "u1",
            "message": {"role": "assistant", "model": "m", "content": [{"type": "text", "text": said}]},
        },
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def test_only_the_same_content_is_a_copy(words: list[str], tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    for name, said in {"a": "Done.", "b": "Done.", "c": "Another answer."}.items():
        session(folder / f"{name}.jsonl", said)
    found = report([words[0], str(folder)], capsys)
    assert row_of(found, "no-tests")["runs"] == 2
    assert cli.main(["findings", "report", words[0], str(folder)]) == cli.DONE
    assert f"1 run left out as copies of another one, such as {folder / 'b.jsonl'}" in capsys.readouterr().err
    assert cli.main(["reviews", "summary", str(folder), "--json"]) == cli.DONE
    shown = capsys.readouterr()
    assert [row["runs"] for row in json.loads(shown.out)["model"]] == [2]
    assert "1 copy of runs that are already counted" in shown.err


def test_a_dry_run_needs_no_key(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    command = ["findings", "judge", *words, "--judge-model", "m"]
    assert cli.main([*command, "--dry-run"]) == cli.DONE
    assert "12 requests about 12 of 12 runs" in capsys.readouterr().err
    assert cli.main([*command, "--yes"]) == cli.MISTAKE
    assert "No key is set" in capsys.readouterr().err


def test_a_merge_that_reads_nothing_has_failed(words: list[str], tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "notes.txt").write_text("first\n", encoding="utf-8")
    assert cli.main(["findings", "report", *words, "--merge", str(tmp_path / "notes.txt")]) == cli.MISTAKE
    captured = capsys.readouterr()
    assert "Nothing was merged. notes.txt" in captured.err
    assert captured.out == ""
