"""A validator at work: the display, the runs and the records, without loss."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest
from builders import CHECKS, REPAIR
from examples import at_the_gate
from fakes import FakeRunner
from hostile import CONTROLS, MARKUP, UNICODE
from screens.driving import LARGE, SMALL
from screens.validate.validating import make_tasks, validating, with_answer
from textual.widgets import Input

from gistpoint.core.corruption.blind import BlindAnswer, ShownVersion, blind_items
from gistpoint.core.errors import SandboxUnavailableError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.kind import TrialSubject
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.text import visible_line
from gistpoint.sessions.annotations.glance_reader import BlindReply, GlanceReader, GlanceStore
from gistpoint.sessions.annotations.validations import TaskVerdict
from gistpoint.tui.screens.dialogs.ask import MessageDialog
from gistpoint.tui.screens.validate.code_page import CodePage
from gistpoint.tui.screens.validate.pages import FixPage
from gistpoint.tui.screens.validate.tests_page import TestsPage
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.text_view import TextView

TARGET = "shop/prices.py::discount"


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
async def test_a_queue_is_judged_with_the_keyboard_alone(tmp_path: Path, size: tuple[int, int]) -> None:
    services, tasks = make_tasks(tmp_path)
    async with validating(services, tasks, size=size) as driver:
        await driver.shows(tasks[0].id)
        assert driver.said.seen
        await driver.press("1", "right_square_bracket")
        await driver.shows(tasks[1].id)
        await driver.press("5", "c")
        await driver.type("a file names it")
        await driver.press("enter", "u")
        await driver.shows(tasks[2].id)
        await driver.press("9", "backspace", "7")
        assert "too easy" in driver.text()
        await driver.press("u")
        assert "Every task shown has your verdict" in driver.text()
        await driver.press("left_square_bracket")
        await driver.shows(tasks[1].id)
        await driver.until(lambda: "a file names it" in driver.text())
        await driver.press("q")
    async with validating(services, tasks, size=size) as driver:
        validator = driver.screen.session.validator
        validations = [validator.validation(task.id) for task in tasks]
        verdicts = [one.verdict and one.verdict.verdict for one in validations]
        assert verdicts == [TaskVerdict.ACCEPT, TaskVerdict.REJECT_LEAK, TaskVerdict.REJECT_TOO_EASY]
        assert [comment.text for comment in validations[1].comments] == ["a file names it"]
        assert "3 judged, 1 accepted" in driver.text()
        assert "leak" in driver.text()


async def test_an_adjudicator_decides_where_validators_disagree(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path)
    for name, verdicts in {"bob": ("1", "1", "1"), "cleo": ("1", "5", "1")}.items():
        async with validating(services, tasks, name=name) as driver:
            for task, verdict in zip(tasks, verdicts, strict=True):
                await driver.shows(task.id)
                assert "Verdicts of the validators" not in driver.text()
                await driver.press(verdict)
                if name == "cleo" and verdict == "5":
                    await driver.press("c")
                    await driver.type("the brief names it")
                    await driver.press("enter")
                await driver.press("right_square_bracket")
    async with validating(services, tasks, adjudicates=True, size=LARGE) as driver:
        await driver.shows(tasks[1].id)
        assert len(driver.screen.queue.rows) == 1
        await driver.until(lambda: "Verdicts of the validators" in driver.text())
        assert all(
            words in driver.text() for words in ("bob", "cleo", "leak", "the brief names it", "0 decided")
        )
        await driver.press("5")
        await driver.until(
            lambda: "Decided: Leak." in driver.text() and "1 decided, 0 accepted" in driver.text()
        )
        await driver.press("backspace")
        await driver.until(lambda: "Taken back: the decision leak." in driver.text())
        assert "0 decided" in driver.text()
        await driver.press("1")
        await driver.until(lambda: "1 decided, 1 accepted" in driver.text())
    async with validating(services, tasks, name="ada", size=LARGE) as driver:
        await driver.press("right_square_bracket")
        await driver.shows(tasks[1].id)
        await driver.press("1")
        await driver.until(lambda: "left out of the agreement" in driver.text())
        assert "Verdicts of the validators" not in driver.text()


async def test_without_a_disagreement_there_is_nothing_to_decide(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks, adjudicates=True) as driver:
        await driver.until(lambda: "There is nothing to decide" in driver.text())
        await driver.press("1")


async def test_the_queue_is_narrowed_by_the_glance_rate(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path)
    reader = GlanceReader(GlanceStore(services.locations.glances, services.clock), "ada")
    for task, answer in zip(tasks[:2], (BlindAnswer.FAULT, BlindAnswer.NOTHING), strict=True):
        (item,) = blind_items(task, read_answer(task))
        reader.read(item, BlindReply(answer, min(item.changed_lines)), ShownVersion.CORRUPTED)
        reader.name = "bob"  # another person, because only first readings count
    async with validating(services, tasks, size=LARGE) as driver:
        await driver.until(lambda: "1.00 seen" in driver.text() and "0.00 seen" in driver.text())
        await driver.until(lambda: "100% of blind readings named the fault" in driver.text())
        await driver.press("slash")
        await driver.type("glance<0.2")
        await driver.until(lambda: [row.task.id for row in driver.screen.queue.shown] == [tasks[1].id])


async def test_a_short_queue_leaves_its_rows_to_the_evidence(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 2)
    async with validating(services, tasks, size=SMALL) as driver:
        await driver.shows(tasks[0].id)
        assert driver.screen.queue.outer_size.height == len(tasks) + 2
        await driver.press("slash")
        await driver.type("nothing")
        await driver.until(lambda: not driver.screen.queue.shown)
        await driver.press("escape")
        await driver.until(lambda: driver.screen.queue.outer_size.height == len(tasks) + 2)


async def test_every_verdict_has_its_digit(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks) as driver:
        for key, verdict in zip("123456789", TaskVerdict, strict=True):
            await driver.press(key)
            assert driver.said.verdict is not None, key
            assert driver.said.verdict.verdict is verdict, key
            await driver.press("backspace")
            assert driver.said.verdict is None, key


async def test_an_acceptance_without_evidence_says_so(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks, size=(160, 48)) as driver:
        await driver.press("1")
        await driver.until(lambda: "Nothing was run here" in driver.text())
        await driver.press("backspace", "exclamation_mark")
        await driver.until(lambda: driver.said.check is not None)
        await driver.press("1")
        await driver.until(lambda: "Accepted" in driver.text() or "Accept" in driver.text())
        assert "Nothing was run here" not in driver.text()


async def test_the_evidence_is_what_it_says(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks, size=LARGE) as driver:
        await driver.page("f3", "Find and repair a corrupted function")
        brief = driver.screen.pages.made["brief"]
        assert isinstance(brief, TextView)
        assert brief.raw == render_brief(tasks[0])
        await driver.page("f4", "price + price")
        diff = driver.screen.pages.made["diff"]
        assert isinstance(diff, DiffView)
        assert diff.files == driver.screen.dossier.diff  # type: ignore[union-attr]
        await driver.page("f5", "passed in 3 of 3 runs")
        tests = driver.screen.pages.made["tests"]
        assert isinstance(tests, TestsPage)
        assert {row.shown.id for row in tests.tests.rows} == {
            failure.id for failure in tasks[0].brief.failing
        }
        assert "AssertionError: None is not 90" in driver.text()
        await driver.press("down", "down", "down")
        await driver.until(lambda: "r runs the tests and shows it here" in driver.text())
        await driver.press("r")
        await driver.idle()
        await driver.until(lambda: "corrupted, in your last run" in driver.text())
        row = tests.current
        assert row is not None
        assert row.shown.corrupted_runs == 2
        assert "is not" in row.text


async def test_runs_are_counted_per_test_and_kept_as_evidence(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    shaky, calls = "tests/test_shelf.py::test_capacity", list[int]()

    def wavering(names: Mapping[str, object]) -> None:
        calls.append(1)
        assert len(calls) % 3

    async with validating(
        services, tasks, runner=FakeRunner({**CHECKS, shaky: wavering}), size=LARGE
    ) as driver:
        await driver.press("alt+o", "r")
        await driver.idle()
        await driver.until(lambda: len(driver.said.trials) == 6)
        assert [trial.subject for trial in driver.said.trials] == [TrialSubject.ORIGINAL] * 5 + [
            TrialSubject.CORRUPTED
        ]
        assert [trial.odd for trial in driver.said.trials] == [(), (), (shaky,), (), (), (shaky,)]
        await driver.until(lambda: "did not have the same result" in driver.text())
        assert "original 7/8, corrupted 1/2" in driver.text()
        await driver.press("6")
        assert driver.said.verdict is not None
        assert driver.said.verdict.evidence == tuple(trial.op for trial in driver.said.trials)
        await driver.page("f6", "1 test different from the task")
    async with validating(services, tasks, name="bob", size=LARGE) as driver:
        assert "original 7/8" in driver.text()
        assert driver.said.verdict is None
        assert "flaky" not in driver.text().splitlines()[1]


async def test_a_fix_is_tried_without_an_attempt_and_survives(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 2)
    async with validating(services, tasks) as driver:
        await driver.press("f9")
        assert "You have not written a fix yet" in driver.text()
        await driver.page("f8", "price + price")
        page = driver.screen.pages.made["fix"]
        assert isinstance(page, FixPage)
        page.editor.text = "def discount(:\n"
        await driver.press("f9")
        await driver.until(lambda: isinstance(driver.app.screen, MessageDialog))
        assert "can't replace the function" in driver.text()
        await driver.press("escape")
        page.editor.text = REPAIR
        await driver.press("f9")
        await driver.idle()
        await driver.until(lambda: "solves the task" in driver.text())
        assert [(trial.subject, trial.solved) for trial in driver.said.trials] == [(TrialSubject.FIX, True)]
        assert not services.locations.attempts.exists()
        await driver.press("escape", "escape", "right_square_bracket")
        await driver.shows(tasks[1].id)
        await driver.press("f8")
        await driver.until(lambda: "price + price" in page.editor.code)
        page.editor.text = "# half"
        await driver.press("escape", "q")
    async with validating(services, tasks) as driver:
        await driver.page("f8", "price - price")
        await driver.press("escape", "right_square_bracket")
        await driver.shows(tasks[1].id)
        await driver.page("f8", "# half")


async def test_a_run_is_stopped_and_goes_on_for_its_own_task(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 2)
    runner = FakeRunner(CHECKS, gate=threading.Event())
    async with validating(services, tasks, runner=runner) as driver:
        await driver.press("R")
        await driver.until(
            lambda: (
                "Running shop · find one, 4 fail on the corrupted code (1 of 5)"
                in " ".join(driver.text().split())
                and "1 of 6 tests" in driver.text()
            )
        )
        await driver.press("escape")
        await driver.idle()
        await driver.until(lambda: "Stopped" in driver.text())
        assert driver.said.trials == ()
        await driver.press("O", "right_square_bracket")
        await driver.shows(tasks[1].id)
        assert runner.gate is not None
        runner.gate.set()
        await driver.idle()
        validator = driver.screen.session.validator
        await driver.until(lambda: validator.validation(tasks[0].id).trials)
        assert validator.validation(tasks[1].id).trials == ()


async def test_what_can_not_run_is_reported(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks, runner=FakeRunner(CHECKS, status=RunStatus.TIMED_OUT)) as driver:
        await driver.press("r")
        await driver.idle()
        wanted = "timed out. As the test wants it."
        await driver.until(lambda: wanted in " ".join(driver.text().split()))
        assert [trial.finished for trial in driver.said.trials] == [False]

        def refuse(task: object) -> NoReturn:
            raise SandboxUnavailableError("No isolation.", hint="Get one.")

        driver.screen.trial_queue._judge_for = refuse
        await driver.press("R")
        await driver.until(lambda: isinstance(driver.app.screen, MessageDialog))
        await driver.press("escape")
        assert not driver.screen.trial_queue.busy
        assert len(driver.said.trials) == 1


async def test_the_check_is_run_and_kept(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks) as driver:
        await driver.page("f6", "has not been run here yet")
        await driver.press("exclamation_mark")
        await driver.idle()
        await driver.until(lambda: driver.said.check is not None)
        check = driver.said.check
        assert check is not None
        assert [(name, passed) for name, passed, _, _ in check.findings] == [
            ("identity", True),
            ("brief", True),
            ("tree", True),
            ("brief and answer", True),
            ("sandbox", False),  # the fake runs its own checks, not the probe from inside
            ("corrupted scores 0", True),
            ("original scores 1", True),
            ("protection", True),
            (
                "passes can be confirmed",
                True,
            ),  # unknown for an older task, which is reported but is no fault
        ]
        await driver.until(lambda: "NOT CLEAN" in driver.text())


async def test_metrics_and_subtlety_come_from_the_answer_or_are_measured(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 2)
    metrics = {"functions": {TARGET: {"cyclomatic": {"value": 1, "percentile": 12.5}}}, "population": 5}
    score = {"value": 0.75, "parts": {"few_failures": 0.5}}
    glance = {"value": 0.31, "features": {"lint": 1.0}}
    provenance = {"parts": [{"subtlety": score, "glance": glance, "families": ["sign"]}], "stars": 3}
    with_answer(tasks[0], metrics=metrics, provenance=provenance)
    async with validating(services, tasks, size=LARGE) as driver:
        assert "12.5%" in driver.text()
        assert "few failures" in driver.text()
        assert "0.75" in driver.text()
        assert "seen at a glance" in driver.text()
        assert "0.31" in driver.text()
        assert "sign" in driver.text()
        await driver.press("right_square_bracket")
        await driver.shows(tasks[1].id)
        await driver.until(lambda: "% measures the library" in driver.text())
        await driver.press("percent_sign")
        await driver.until(
            lambda: "5 functions measured" in driver.text() and "harmonic out" in driver.text()
        )


async def test_links_lead_into_the_code_and_back(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks) as driver:
        await driver.press("enter", "down", "enter")
        await driver.until(lambda: "shop/prices.py: corrupted" in driver.text())
        page = driver.screen.pages.made["code"]
        assert isinstance(page, CodePage)
        assert page.view.cursor_line == 4
        await driver.press("less_than_sign")
        await driver.until(lambda: page.view.cursor_line == 19)
        assert "def total" in page.view.lines[page.view.cursor_index]
        await driver.press("greater_than_sign")
        await driver.until(lambda: page.view.cursor_line == 4)
        await driver.press("equals_sign")
        await driver.until(
            lambda: "shop/prices.py: original" in driver.text() and "price - price" in driver.text()
        )
        await driver.press("alt+left", "alt+left")
        await driver.until(lambda: page.view.cursor_line == 19 and "corrupted" in driver.text())
        await driver.page("f5", "passed in")
        await driver.press("v")
        await driver.until(lambda: "tests/test_prices.py: corrupted" in driver.text())


async def test_a_comment_half_written_is_kept(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks) as driver:
        await driver.press("c")
        await driver.type("half a tho")
        await driver.press("escape")
        assert driver.said.comments == ()
        assert "kept as a draft" in driver.text()
    async with validating(services, tasks) as driver:
        await driver.press("c")
        assert driver.app.screen.query_one(Input).value == "half a tho"
        await driver.press("enter")
        assert [comment.text for comment in driver.said.comments] == ["half a tho"]
        await driver.press("c")
        assert driver.app.screen.query_one(Input).value == ""


async def test_the_filter_narrows_the_queue(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path)
    async with validating(services, tasks) as driver:
        await driver.press("2", "slash")
        await driver.type("-unsolvable")
        await driver.until(lambda: "1 of 2, 3 in all" in driver.text())
        await driver.shows(tasks[1].id)
        await driver.press("enter", "1")
        assert driver.screen.session.validator.validation(tasks[1].id).verdict is not None
        await driver.press("escape")
        await driver.until(lambda: " of 3   2 judged" in driver.text())


async def test_the_queue_takes_the_queries_of_every_table(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path)
    async with validating(services, tasks) as driver:
        await driver.press("2", "slash")
        for query, shown in (
            ("unjudged", 2),
            ("judged", 1),
            ("-judged", 2),
            ("mode:rem", 0),
            ("mode:disc", 3),
        ):
            driver.screen.words.value = query
            await driver.until(lambda shown=shown: len(driver.screen.queue.rows) == shown)
        driver.screen.words.value = "size>3"
        await driver.until(lambda: "There is no column size. Columns: seen," in driver.text())


async def test_a_damaged_task_stops_nobody(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 2)
    async with validating(services, tasks) as driver:
        (tasks[1].folder / "answer" / "answer.json").write_text("{")
        await driver.press("right_square_bracket")
        await driver.until(lambda: isinstance(driver.app.screen, MessageDialog))
        await driver.press("escape", "1", "r", "exclamation_mark", "f5", "f8")
        assert driver.screen.session.validator.validation(tasks[1].id).verdict is None
        await driver.press("escape", "left_square_bracket")
        await driver.shows(tasks[0].id)


async def test_a_verdict_that_can_not_be_saved_is_reported(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks) as driver:
        path = driver.screen.session.validator.store.path_of("ada")
        path.unlink()
        path.mkdir()
        await driver.press("1")
        await driver.until(lambda: isinstance(driver.app.screen, MessageDialog))
        assert "can't be saved" in driver.text()
        await driver.press("escape")
        assert driver.said.verdict is None


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("markup", SMALL),
        ("controls", LARGE),
        ("unicode", SMALL),
        *at_the_gate([("markup", LARGE), ("controls", SMALL), ("unicode", LARGE)]),
    ],
    ids=str,
)
async def test_hostile_strings_are_shown_literally(tmp_path: Path, kind: str, size: tuple[int, int]) -> None:
    corpus = {"markup": MARKUP, "controls": CONTROLS, "unicode": UNICODE}[kind]
    texts = [text.encode("utf-8", "replace").decode() for text in corpus]

    def failing(names: Mapping[str, object]) -> None:
        raise AssertionError("\n".join(texts))

    services, tasks = make_tasks(
        tmp_path,
        1,
        failure_text="\n".join(texts),
        extra_files={"odd.py": "".join(f"# {text!a}\n" for text in texts)},
    )
    with_answer(tasks[0], metrics={}, provenance={text: {text: text} for text in texts})
    checks = {**CHECKS, "tests/test_prices.py::test_half": failing}
    async with validating(services, tasks, size=size, runner=FakeRunner(checks)) as driver:
        for text in texts[:3]:
            driver.screen.session.validator.comment(tasks[0].id, text)
            driver.screen.show_message(text)
        driver.screen.pages.refill()
        await driver.press("r", "O")
        await driver.idle()
        for key in ("f2", "f3", "f4", "f5", "f6", "f7", "f8", "f2"):
            await driver.press(key)
        await driver.until(lambda: visible_line(texts[0]).strip() in driver.text())
        page = driver.screen.pages.made["fix"]
        assert isinstance(page, FixPage)
        page.editor.text = "\n".join(texts)
        await driver.press("f8", "f9")
        await driver.until(lambda: isinstance(driver.app.screen, MessageDialog))


async def test_what_is_pressed_too_soon_hits_no_other_task(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 2)
    async with validating(services, tasks) as driver:
        await driver.shows(tasks[0].id)
        screen = driver.screen
        screen.queue.cursor = 1
        screen.action_verdict("accept")
        screen.action_undo()
        screen.action_trial("corrupted", 1)
        await driver.shows(tasks[1].id)
        for task in tasks:
            validation = screen.session.validator.validation(task.id)
            assert (validation.verdict, validation.trials) == (None, ())


async def test_a_bug_in_a_thread_is_reported_and_what_was_typed_is_kept(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks, crashes=1) as driver:
        await driver.press("f8")
        page = driver.screen.pages.made["fix"]
        assert isinstance(page, FixPage)
        page.editor.text = "# typed"

        def broken(task: object) -> NoReturn:
            raise KeyError("a bug")

        driver.screen.trial_queue._judge_for = broken
        driver.screen.action_trial("original", 1)
        await driver.until(lambda: isinstance(driver.app.screen, MessageDialog))
        assert "Something unexpected" in driver.text()
        await driver.press("escape")
        await driver.until(lambda: driver.screen.dossier is not None)
        await driver.page("f8", "# typed")


LONG = "sporvei · earliest_arrival_with_changes · find one, 15 fail"


@pytest.mark.parametrize("size", [(160, 48), (200, 60), (80, 24)], ids=str)
async def test_a_long_title_is_not_cut_while_less_important_columns_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    services, tasks = make_tasks(tmp_path, 2)
    titles = dict(zip([task.id for task in tasks], [LONG, "shop · find one"], strict=True))
    monkeypatch.setattr("gistpoint.tui.screens.validate.queue.author_title", lambda task: titles[task.id])
    async with validating(services, tasks, size=size) as driver:
        await driver.until(lambda: LONG in driver.text() and "discount" in driver.text())
        assert driver.screen.pages.outer_size.width >= 80
