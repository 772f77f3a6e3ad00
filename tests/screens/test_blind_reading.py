"""Changes are read blind: answers are saved at once, and anything but a merge needs a reason."""

from __future__ import annotations

import pytest
from examples import at_sizes
from screens.settling import text_of, until

from gistpoint.core.diffs import compute
from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.core.study.data import MergeDecision
from gistpoint.tui.base_app import OneScreenApp
from gistpoint.tui.screens.dialogs.ask import MessageDialog, TextDialog
from gistpoint.tui.screens.study.reading import BlindReadingScreen, MergeAnswer, ShownChange


def change(number: int) -> ShownChange:
    old, new = "def f(x):\n    return x\n", f"def f(x):\n    return x + {number}\n"
    failing = [f"tests/test_f.py::test_{n}[\x1b[31m]" for n in range(5)]
    return ShownChange("[red]shop", failing, [compute(old, new, old_path="f.py", new_path="f.py")])


@pytest.mark.parametrize("size", at_sizes((80, 24), (160, 48)))
async def test_each_change_is_judged_and_can_be_judged_again(size: tuple[int, int]) -> None:
    kept: list[tuple[int, MergeAnswer]] = []
    changes = [change(n) for n in range(3)]
    answers = {0: MergeAnswer(MergeDecision.MERGE)}
    app = OneScreenApp(
        Locations.of_user(),
        "screens/study/reading.tcss",
        lambda: BlindReadingScreen(changes, answers, lambda place, answer: kept.append((place, answer))),
    )
    async with app.run_test(size=size) as pilot:
        screen = app.screen
        assert isinstance(screen, BlindReadingScreen)
        await until(pilot, lambda: "return x + 1" in text_of(app))
        shown = text_of(app)
        assert "Change 2 of 3" in shown
        assert "[red]shop" in shown  # shown literally, not as markup
        assert "\x1b" not in shown
        assert "and 2 more" in shown
        await pilot.press("3")
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        await pilot.press("enter")  # without a reason, so nothing is saved
        await until(pilot, lambda: app.screen is screen)
        assert kept == []
        await pilot.press("3", *"wrong sign", "enter")
        await until(pilot, lambda: "Change 3 of 3" in text_of(app))
        await pilot.press("1")
        await until(pilot, lambda: "3 read" in text_of(app))
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: "Your answer: reject it: wrong sign" in text_of(app))
        await pilot.press("2", *"x", "enter")
        await until(pilot, lambda: len(kept) == 3)
        await pilot.press("q")
    assert kept == [
        (1, MergeAnswer(MergeDecision.REJECT, "wrong sign")),
        (2, MergeAnswer(MergeDecision.MERGE)),
        (1, MergeAnswer(MergeDecision.MERGE_AFTER_CHANGES, "x")),
    ]
    assert app.crashes == []


async def test_an_answer_that_can_not_be_saved_stays_and_can_be_given_again() -> None:
    kept: list[MergeAnswer] = []
    full = [True]

    def keep(_place: int, answer: MergeAnswer) -> None:
        if full[0]:
            raise UserError("The disk is full.", hint="Free some space.")
        kept.append(answer)

    app = OneScreenApp(
        Locations.of_user(),
        "screens/study/reading.tcss",
        lambda: BlindReadingScreen([change(0), change(1)], {}, keep),
    )
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Change 1 of 2" in text_of(app))
        for keys in (["1"], ["3", *"wrong", "enter"]):
            await pilot.press(*keys)
            await until(pilot, lambda: isinstance(app.screen, MessageDialog))
            assert "Free some space." in text_of(app)
            await pilot.press("escape")
            await until(pilot, lambda: "Change 1 of 2" in text_of(app))
            assert "No answer yet" in text_of(app)
        full[0] = False
        await pilot.press("3")
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        await pilot.press("enter")  # the reason is still there
        await until(pilot, lambda: "Change 2 of 2" in text_of(app))
        await pilot.press("q")
    assert kept == [MergeAnswer(MergeDecision.REJECT, "wrong")]
    assert app.crashes == []
