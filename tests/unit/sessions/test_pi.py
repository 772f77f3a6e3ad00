"""Sessions of pi: a reply with its results, and calls of an interrupted reply, which were never run."""

from __future__ import annotations

from pathlib import Path

from recorded_runs.assistants import pi_session
from recorded_runs.written import answers, written_lines

from gistpoint.sessions.records.model import Actor, StepKind, Tokens


def test_a_reply_has_its_results_tokens_and_cost(tmp_path: Path) -> None:
    run = written_lines(tmp_path / "a.jsonl", pi_session())
    start, task, reply, broken, condensed, shell = run.steps()
    assert (start.kind, task.kind, condensed.kind) == (StepKind.STATE, StepKind.TASK, StepKind.CONTEXT)
    assert task.text.startswith("Fix the mean\n[image: ")
    assert answers(reply) == [("read", "x = 1", False), ("edit", "no match", True)]
    assert (reply.thought, reply.tokens, reply.cost) == ("hm", Tokens(25, 7, 20), 0.25)
    assert (broken.kind, broken.label, answers(broken)) == (StepKind.ERROR, "calls were not run", [None])
    assert broken.text == "Again\nterminated"
    assert (shell.actor, shell.kind, shell.results[0].returncode) == (Actor.USER, StepKind.TEST, 1)
    header = run.header
    assert (header.id, header.model, header.exit_status, header.cost) == ("s1", "model-x", "error", 0.5)


def test_a_result_without_its_call_is_marked(tmp_path: Path) -> None:
    entries = pi_session()
    del entries[2]
    lone = list(written_lines(tmp_path / "a.jsonl", entries).steps())[2]
    assert (lone.actor, lone.results[0].text, lone.flags) == (
        Actor.ENVIRONMENT,
        "x = 1",
        frozenset({"unpaired"}),
    )


def test_the_request_is_what_follows_the_words_about_its_sender(tmp_path: Path) -> None:
    about = 'Sender (untrusted metadata):\n```json\n{"label": "a"}\n```\n\n'
    entries = pi_session()
    entries[1]["message"]["content"] = (
        f"Conversation info (untrusted metadata):\n```json\n{{}}\n```\n\n{about}Fix it"
    )
    assert written_lines(tmp_path / "a.jsonl", entries).header.task == "Fix it"
