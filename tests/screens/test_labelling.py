"""Runs are labelled by one key each: a random part blind, then disputed claims with their quotes."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from examples import at_sizes
from fakes import FakeClock
from screens import settling
from screens.settling import text_of

from gistpoint.core.judging.answers import RunAnswer
from gistpoint.core.judging.pieces import RunPassage
from gistpoint.core.judging.quotes import QuotePlace
from gistpoint.core.judging.rubric import RubricLabel
from gistpoint.core.locations import Locations
from gistpoint.sessions.judging.hand_labels import Dispute, HandReader
from gistpoint.sessions.judging.judgements import JudgementStore, LabelPart
from gistpoint.sessions.judging.run_texts import RunText
from gistpoint.tui.base_app import OneScreenApp
from gistpoint.tui.screens.findings.labelling import LabellingScreen

SIZES = at_sizes((80, 24), (160, 48))
until = partial(settling.until, seconds=60.0)
LABELS = (
    RubricLabel(id="deleted-test", definition="A test is deleted.", excludes=("a renamed test",)),
    RubricLabel(id="read-only", definition="Only reads."),
)
QUOTED = "rm a.py\nrm b.py"


def text(number: int) -> RunText:
    filler = "\n".join(f"line {line} [red] \x1b" for line in range(120))
    passages = (
        RunPassage(0, "text", 0, f"The task of run {number}."),
        RunPassage(1, "result", 0, f"{filler}\n{QUOTED}\nthe rest"),
    )
    return RunText(
        f"key-{number}", f"key-{number}", f"/runs/secret-{number}.json", f"task-{number}", passages
    )


TEXTS = {text(number).key: text(number) for number in range(6)}
START = TEXTS["key-0"].passages[1].text.index("rm a.py")
PLACE = QuotePlace(1, "result", 0, START, START + len(QUOTED))


def flat(app: OneScreenApp) -> str:
    """Return the text of the screen without frames and line breaks."""
    return re.sub(r"[│\s]+", " ", text_of(app))


def at_work(tmp_path: Path, seed: int = 0) -> HandReader:
    return HandReader(JudgementStore(tmp_path / "judgements", FakeClock()), "ada", seed)


def labelling(
    reader: HandReader,
    answers: dict[tuple[str, str], RunAnswer] | None = None,
    sample: int = 2,
    again: int = 0,
) -> OneScreenApp:
    questions = [*reader.blind(TEXTS, LABELS, sample), *reader.again(TEXTS, LABELS, again)]
    return OneScreenApp(
        Locations.of_user(),
        "screens/findings/findings.tcss",
        lambda: LabellingScreen(TEXTS, reader, questions, answers or {}, LABELS),
    )


def present(reader: HandReader, part: LabelPart = LabelPart.RANDOM, round: int = 1) -> list[bool | None]:
    """Return the answers in the order of the questions; None for an open one."""
    found = []
    for question in reader.blind(TEXTS, LABELS, 2):
        label = reader.given(question.run).label(question.label.sha256, part, round)
        found.append(None if label is None else label.present)
    return found


@pytest.mark.parametrize("size", SIZES)
async def test_a_random_part_is_labelled_blind(tmp_path: Path, size: tuple[int, int]) -> None:
    reader = at_work(tmp_path)
    claimed = RunAnswer(True, 0.95, (PLACE,))
    answers = {(key, label.id): claimed for key in TEXTS for label in LABELS}
    app = labelling(reader, answers)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: "Does this run show: deleted-test?" in text_of(app))
        shown = text_of(app)
        assert "Label 1 of 4" in shown
        assert "Does not count: a renamed test" in shown
        assert "[red]" in shown
        assert "\x1b" not in shown
        assert "secret" not in shown
        assert "judge" not in shown.lower()
        await pilot.press("1")
        await until(pilot, lambda: "read-only?" in text_of(app))
        assert present(at_work(tmp_path)) == [True, None, None, None]  # saved at once
        await pilot.press("2", "1")
        await until(pilot, lambda: "Label 4 of 4" in text_of(app))
        await pilot.press("backspace")
        await until(pilot, lambda: "Label 3 of 4" in text_of(app))
        assert present(reader) == [True, False, None, None]
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: "Label 4 of 4" in text_of(app))
        await pilot.press("2")
        await until(pilot, lambda: "Label 3 of 4" in text_of(app))
        assert present(reader) == [True, False, None, False]
        await pilot.press("q")


async def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    reader = at_work(tmp_path)
    for question in reader.blind(TEXTS, LABELS, 2)[:3]:
        reader.answer(question, True)
    app = labelling(at_work(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Label 4 of 4" in text_of(app))


@pytest.mark.parametrize("size", SIZES)
async def test_disputed_claims_follow_with_their_quotes(tmp_path: Path, size: tuple[int, int]) -> None:
    reader = at_work(tmp_path)
    first, second = (question.run for question in reader.blind(TEXTS, LABELS[:1], 2))
    others = [key for key in TEXTS if key not in (first, second)]
    claimed = RunAnswer(True, 0.95, (PLACE,))
    answers = {
        (first, "deleted-test"): claimed,
        (second, "deleted-test"): claimed,
        (others[0], "read-only"): RunAnswer(False, 0.9, unproven=1, refused=2),
        (others[1], "read-only"): RunAnswer(False, 0.55),
        (others[2], "read-only"): RunAnswer(False, 0.99),
    }
    app = labelling(reader, answers)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: "Label 1 of 4" in text_of(app))
        await pilot.press("2", "2", "1", "2")
        await until(pilot, lambda: "Disputed claim 1 of 3" in text_of(app))
        await until(pilot, lambda: "rm b.py" in text_of(app))
        shown = text_of(app)
        assert "The judge: present (confidence 0.95, 1 quote); you answered differently." in " ".join(
            shown.split()
        )
        assert "n Next quote" in flat(app)
        screen = app.screen
        assert isinstance(screen, LabellingScreen)
        marked = [
            screen.run_text.lines[line][start:end]
            for line, parts in screen.run_text.parts.items()
            for start, end, kind in parts
            if kind == "match"
        ]
        assert marked == ["rm a.py", "rm b.py"]
        await pilot.press("slash", *"line 11", "enter")
        await until(pilot, lambda: screen.run_text.found[1] == 11)
        assert screen.run_text.match_place[0] == 1
        await pilot.press("n")  # during a search, the next match; otherwise, the next quote
        await until(pilot, lambda: screen.run_text.match_place[0] == 2)
        await pilot.press("escape", "n")
        await until(pilot, lambda: "rm b.py" in text_of(app))
        await pilot.press("1")
        await until(pilot, lambda: "claimed without a quote" in flat(app))
        await pilot.press("2")
        await until(pilot, lambda: "the judge is unsure" in flat(app))
        await pilot.press("2")
        await until(pilot, lambda: "All questions are answered" in text_of(app))
    settled = reader.given(first).label(LABELS[0].sha256, LabelPart.DISPUTED)
    assert settled is not None
    assert settled.present
    assert present(reader)[0] is False  # the blind answer stays


async def test_a_second_reading_is_blind_and_counted_apart(tmp_path: Path) -> None:
    reader = at_work(tmp_path)
    for question in reader.blind(TEXTS, LABELS, 2):
        reader.answer(question, True)
    app = labelling(reader, again=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Label 5 of 6" in text_of(app))
        assert "you: " not in text_of(app)
        await pilot.press("2", "2")
        await until(pilot, lambda: "All questions are answered" in text_of(app))
    assert present(reader) == [True] * 4
    assert sorted(map(str, present(reader, round=2))) == ["False", "False", "None", "None"]


def test_the_random_part_grows_without_changing(tmp_path: Path) -> None:
    reader = at_work(tmp_path)
    small, large = reader.blind(TEXTS, LABELS, 2), reader.blind(TEXTS, LABELS, 5)
    assert large[: len(small)] == small
    assert [q.run for q in at_work(tmp_path, 2).blind(TEXTS, LABELS, 6)] != [
        q.run for q in reader.blind(TEXTS, LABELS, 6)
    ]


def test_what_a_run_says_to_its_judge_makes_every_answer_disputed(tmp_path: Path) -> None:
    reader, answers = at_work(tmp_path), {("key-1", "read-only"): RunAnswer(False, 0.99)}
    assert reader.disputed(answers, LABELS) == []
    (question,) = reader.disputed(answers, LABELS, {"key-1"})
    assert question.dispute is Dispute.ADDRESSED


@pytest.mark.parametrize("size", SIZES)
async def test_two_windows_see_what_the_other_answers_and_withdraws(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    reader, other = at_work(tmp_path), at_work(tmp_path)
    question = reader.blind(TEXTS, LABELS, 2)[0]
    app = labelling(reader)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "Label 1 of 4" in text_of(app))
        await pilot.press("1")
        await until(pilot, lambda: "Label 2 of 4" in text_of(app))
        other.look_again()
        other.answer(question, False)
        assert other.take_back(question)
        assert other.label(question) is None, "the earlier answer does not count again"
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: "Label 1 of 4" in text_of(app))
        assert "you:" not in text_of(app)
        assert reader.label(question) is None
        other.answer(question, False)
        await pilot.press("backspace")
        await until(pilot, lambda: present(at_work(tmp_path))[0] is None)
        await pilot.press("q")
