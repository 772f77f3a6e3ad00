"""aider's history: each chat is a run, and whole lines name the speaker."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded_runs.assistants import AIDER
from recorded_runs.written import read_whole

from gistpoint.sessions.records.archives import RunFileError
from gistpoint.sessions.records.model import Actor, FileEdit, StepKind, Tokens
from gistpoint.sessions.runs.facts import StepMark, marks_of
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.runs.profile import test_run_of

FIRST, SECOND = "2024-08-21%2015:16:42", "2024-08-22%2008:00:00"


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(AIDER, encoding="utf-8")
    return path


def test_chats_in_which_nothing_was_asked_are_left_out(history: Path) -> None:
    listed = list(list_runs([history]))
    assert [item.name.partition("#")[2] for item in listed] == [FIRST, SECOND]
    headers = [item.header for item in listed if item.header]
    assert [(header.model, header.format_version) for header in headers] == [
        ("model-x", "0.51.2"),
        ("", "0.51.2"),
    ]
    with pytest.raises(RunFileError):
        open_run(f"{history}#2024-08-21%2015:14:00")


def test_an_answer_has_its_edits_and_what_aider_said_of_it(history: Path) -> None:
    run = read_whole(history, FIRST)
    steps = list(run.steps())
    assert [(step.actor, step.kind) for step in steps] == [
        (Actor.ENVIRONMENT, StepKind.STATE), (Actor.USER, StepKind.NOTE), (Actor.ENVIRONMENT, StepKind.NOTE),
        (Actor.USER, StepKind.MESSAGE), (Actor.AGENT, StepKind.EDIT), (Actor.USER, StepKind.MESSAGE),
        (Actor.AGENT, StepKind.MESSAGE),
    ][:len(steps)]  # fmt: skip
    asked, answer, failed = steps[3], steps[4], steps[-1]
    assert asked.text == "Fix the mean\nof nothing"
    assert answer.text.startswith("I change it.\n\n#### A heading\n\n> a quotation")
    assert answer.edits == (FileEdit("a.py", "x = 1\n", "x = 2\n"),)
    assert (answer.tokens, answer.cost) == (Tokens(6500, 492, 1200), 0.03)
    assert answer.results[0].text.endswith("Applied edit to a.py\nCommit abcdef0 fix: mean")
    assert (failed.results[0].is_error, failed.flags) == (True, frozenset({"error"}))
    assert (run.header.tokens, run.header.cost) == (Tokens(13500, 502, 1200), 0.04)
    assert (steps[0].naive, steps[0].started) == (True, 1724253402.0)


def test_a_file_that_is_cut_within_a_line_is_read_to_its_end(history: Path) -> None:
    history.write_text(AIDER[: AIDER.index("It is one") + 5], encoding="utf-8")
    last = list(read_whole(history, SECOND).steps())[-1]
    assert (last.actor, last.text) == (Actor.AGENT, "It is")


def test_a_question_whose_spaces_were_stripped_is_one_after_two_blank_lines(history: Path) -> None:
    history.write_text(f"{AIDER}\n\n#### and why?\n\nBecause.\n", encoding="utf-8")
    asked, last = list(read_whole(history, SECOND).steps())[-2:]
    assert (asked.actor, asked.text, last.text) == (Actor.USER, "and why?", "Because.")


def test_a_notice_lasts_until_its_two_spaces_whatever_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / ".aider.chat.history.md"
    run = "> ==== test session ====\n1 failed\n\n>    assert x == 1\n\nstats.py:3: \nE  2 != 1\n==== 1 failed ====  \n"
    commit = "> Applied edit to a.py  \n> Commit abcdef0 fix: mean\n\nThe mean of nothing is nothing.  \n"
    path.write_text(
        f"# aider chat started at 2024-08-21 15:16:42\n\n#### /test pytest  \n{run}\nI change it.\n\n{commit}"
        "\n#### and now?  \n\nDone.\n",
        encoding="utf-8",
    )
    steps = list(read_whole(path).steps())
    assert [step.text.split("\n")[0] for step in steps if step.actor is Actor.AGENT] == [
        "I change it.",
        "Done.",
    ]
    assert steps[2].text.endswith("==== 1 failed ====")
    assert steps[3].results[0].text.endswith("\n\nThe mean of nothing is nothing.")


def test_thinking_is_a_thought_and_a_request_that_failed_an_error(tmp_path: Path) -> None:
    path = tmp_path / ".aider.chat.history.md"
    block = "a.py\n```python\n<<<<<<< SEARCH\nx = {}\n=======\nx = 2\n>>>>>>> REPLACE\n```\n"
    path.write_text(
        "# aider chat started at 2024-08-21 15:16:42\n\n#### fix it  \n\n--------------\n► **THINKING**\n\nThis?\n\n"
        f"{block.format(0)}\n------------\n► **ANSWER**\n\nI change it.\n\n{block.format(1)}\n"
        "> Tokens: 1k sent, 10 received.  \n"
        "\n#### and now?  \n\n> litellm.RateLimitError: too many requests  \n> Retrying in 0.2 seconds...  \n",
        encoding="utf-8",
    )
    answer, _, failed = list(read_whole(path).steps())[-3:]
    assert (answer.thought, answer.text) == (
        f"This?\n\n{block.format(0)[:-1]}",
        f"I change it.\n\n{block.format(1)[:-1]}",
    )
    assert answer.edits == (FileEdit("a.py", "x = 1\n", "x = 2\n"),)
    assert (failed.kind, failed.flags) == (StepKind.ERROR, frozenset({"error"}))


def test_tests_that_aider_ran_are_test_runs(history: Path) -> None:
    told = "> Running pytest -q  \n> 1 failed, 3 passed in 0.1s  \n"
    fed = "\n#### I ran this command: pytest -q  \n#### And got this output:  \n#### 2 failed, 5 passed in 0.1s  \n"
    edit = AIDER[AIDER.index("#### Fix the mean") : AIDER.index("\n#### and now?")]
    history.write_text(f"# aider chat started at 2024-08-21 15:16:42\n\n{edit}{told}{fed}", encoding="utf-8")
    document = open_run(history)
    marks = [found.marks for found in marks_of(document)]
    steps = list(document.steps())
    assert {StepMark.TEST_RUN, StepMark.EDIT} <= marks[-2]
    assert (steps[-1].kind, steps[-1].actor) == (StepKind.TEST, Actor.USER)
    counts = [test_run_of(step) for step in steps[-2:]]
    assert [(found.passed, found.failed) for found in counts] == [(3, 1), (5, 2)]
