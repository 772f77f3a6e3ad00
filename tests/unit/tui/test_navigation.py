"""Navigation in a run: to steps of a kind, to its ends and milestones, at its own pace, and as it grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from unit.tui.owners import FakeOwner

from gistpoint.tui.screens.review.navigation import LONGEST_S, STEADY_S, Navigation
from gistpoint.tui.screens.review.survey import bit_of


@dataclass
class FakeSteps:
    """A list of steps with a cursor that stays within it."""

    count: int
    at: int = 0
    hidden: frozenset[int] = frozenset()
    held: int = 0
    moved: Any = None

    @property
    def drawing_delay(self) -> Any:
        return SimpleNamespace(hold=self._hold)

    def _hold(self) -> None:
        self.held += 1

    @property
    def cursor(self) -> int:
        return self.at

    @cursor.setter
    def cursor(self, index: int) -> None:
        self.at = min(max(0, index), self.count - 1)
        if self.moved is not None:
            self.moved()

    def lists(self, index: int) -> bool:
        return index not in self.hidden

    def set_count(self, count: int) -> None:
        self.count = count

    def action_edge(self, end: int) -> None:
        self.cursor = self.count - 1 if end > 0 else 0

    def action_move(self, by: int) -> None:
        self.cursor = self.cursor + by


@dataclass
class FakeView(FakeOwner):
    """The part of the review screen that navigation uses."""

    steps: Any = None
    said: list[str] = field(default_factory=list)
    pages: Any = field(default_factory=lambda: SimpleNamespace(current="step"))
    shown: int = 0

    def show_message(self, words: str) -> None:
        self.said.append(words)

    def show_step(self) -> None:
        self.shown += 1


@dataclass
class FakeLoader:
    """The loader, with the facts surveyed so far."""

    survey: Any
    document: Any
    asked: list[str] = field(default_factory=list)

    def index_fully(self) -> None:
        self.asked.append("index")

    def check_growth(self) -> None:
        self.asked.append("grow")

    def open_again(self) -> None:
        self.asked.append("open again")


@dataclass
class Going:
    """A navigation in a run whose steps have marks: `error`, `edit` or none."""

    navigation: Navigation
    view: FakeView
    run: Any

    @property
    def here(self) -> int:
        return int(self.view.steps.cursor)


class FakeSurvey(SimpleNamespace):
    """Facts of the surveyed steps."""

    def __len__(self) -> int:
        return len(self.bits)


def going(
    marks: Sequence[str],
    *,
    surveyed: int | None = None,
    opens_at: str = "",
    finished: bool = True,
    at: int = 0,
    seconds: float = 0.0,
) -> Going:
    known = len(marks) if surveyed is None else surveyed
    survey = FakeSurvey(
        bits=[bit_of(mark) if mark else 0 for mark in marks[:known]],
        turns=[bool(number % 2) for number in range(known)],
        seconds=[seconds] * known,
        finished=known == len(marks),
    )
    document = SimpleNamespace(finished=finished, step_count=len(marks), blobs=[], changed=False)
    view = FakeView(steps=FakeSteps(len(marks), at))
    run: Any = SimpleNamespace(loader=FakeLoader(survey, document), step=SimpleNamespace(index=at))
    navigation = Navigation(run, view, opens_at=opens_at)  # type: ignore[arg-type]
    view.steps.moved = navigation.moved
    return Going(navigation, view, run)


MARKS = ["", "edit", "error", "", "edit", "error", ""]


@pytest.mark.parametrize(
    ("at", "kind", "by", "to"),
    [(0, "error", 1, 2), (2, "error", 1, 5), (6, "error", -1, 5), (5, "error", -1, 2), (4, "edit", -1, 1)],
)
def test_the_next_step_of_a_kind_is_the_nearest_beyond_this_one(at: int, kind: str, by: int, to: int) -> None:
    found = going(MARKS, at=at)
    found.navigation.go(kind, by)
    assert found.here == to
    assert found.view.said == []


def test_where_there_is_none_the_cursor_stays_and_the_line_says_whether_that_is_certain() -> None:
    found = going(MARKS, at=5)
    found.navigation.go("error", 1)
    half = going(MARKS, at=2, surveyed=4)
    half.navigation.go("error", 1)
    assert (found.here, half.here) == (5, 2)
    assert found.view.said == ["Next error: none"]
    assert half.view.said == ["Next error: none so far: the run is still being read"]


def test_the_nearest_of_some_steps_is_taken() -> None:
    found = going(MARKS, at=3)
    found.navigation.go_among({0, 2, 5, 6}, "label", 1)
    assert found.here == 5
    found.navigation.go_among({0, 2, 5, 6}, "label", -1)
    assert found.here == 2
    found.navigation.go_among({2}, "label", -1)
    assert found.view.said == ["Previous label: none"]


def test_an_unseen_step_is_one_that_is_listed() -> None:
    found = going(MARKS)
    found.view.steps.hidden = frozenset({2})
    found.navigation.go_outside({1, 3}, "unseen", 1)
    assert found.here == 4


def test_a_turn_is_a_step_of_the_solver() -> None:
    found = going(MARKS, at=1)
    found.navigation.turn(1)
    assert found.here == 3
    found.navigation.turn(-1)
    assert found.here == 1


@pytest.mark.parametrize("surveyed", range(len(MARKS) + 1))
@pytest.mark.parametrize("by", [1, -1])
@pytest.mark.parametrize("movement", ["error", "edit", "test", "mark", "turn"])
def test_the_cursor_may_be_anywhere_while_the_run_is_being_read(
    movement: str, by: int, surveyed: int
) -> None:
    for at in range(len(MARKS)):
        found = going(MARKS, at=at, surveyed=surveyed)
        found.navigation.turn(by) if movement == "turn" else found.navigation.go(movement, by)
        ahead = range(at + 1, len(MARKS)) if by > 0 else range(at - 1, -1, -1)
        is_wanted = (lambda n: n % 2) if movement == "turn" else (lambda n: MARKS[n] == movement)
        first = next((n for n in ahead if is_wanted(n)), None)
        on_the_way = ahead if first is None else [n for n in ahead if (n - first) * by <= 0]
        if any(n >= surveyed for n in on_the_way):
            assert (found.here, len(found.view.said)) == (at, 1)
            assert "still being read" in found.view.said[0]
        else:
            assert found.here == (at if first is None else first)


def test_the_end_of_a_run_that_is_known_is_gone_to_at_once() -> None:
    found = going(MARKS)
    found.navigation.edge(1)
    assert found.here == 6
    assert found.run.loader.asked == []
    found.navigation.edge(-1)
    assert found.here == 0


def test_the_end_of_a_run_that_is_being_read_is_gone_to_when_it_is_known() -> None:
    found = going(MARKS, finished=False)
    found.navigation.edge(1)
    assert found.here == 0
    assert found.run.loader.asked == ["index"]
    assert found.view.steps.held == 1
    assert found.navigation.takes_last_step()
    assert found.navigation.uncounted
    found.navigation.run_grew()
    assert found.here == 0
    found.run.loader.document.finished = True
    found.navigation.run_grew()
    assert found.here == 6
    assert found.view.said == ["Reading to the end …", ""]
    found.navigation.step_shown()
    assert not found.navigation.uncounted


def test_another_movement_ends_the_waiting_for_the_end() -> None:
    found = going(MARKS, finished=False)
    found.navigation.edge(1)
    found.view.steps.cursor = 3
    assert not found.navigation.takes_last_step()
    found.run.loader.document.finished = True
    found.navigation.run_grew()
    assert found.here == 3


def test_the_last_step_is_shown_ahead_on_its_own_page_alone() -> None:
    found = going(MARKS, finished=False)
    found.navigation.edge(1)
    found.view.pages.current = "diff"
    assert not found.navigation.takes_last_step()


@pytest.mark.parametrize(
    ("opens_at", "to"), [("", 0), ("first edit", 1), ("last error", 5), ("end", 6), ("submission", 0)]
)
def test_a_run_opens_at_its_milestone(opens_at: str, to: int) -> None:
    found = going(MARKS, opens_at=opens_at)
    found.navigation.arrive()
    assert found.here == to
    assert found.view.said == (["Submission: this run has none."] if opens_at == "submission" else [])


def test_a_milestone_is_gone_to_once_and_only_when_all_steps_are_known() -> None:
    found = going(MARKS, opens_at="last error", surveyed=4)
    found.navigation.arrive()
    assert found.here == 0
    found.run.loader.survey = going(MARKS).run.loader.survey
    found.navigation.run_grew()
    assert found.here == 5
    found.view.steps.cursor = 1
    found.navigation.run_grew()
    assert found.here == 1


def test_a_movement_before_the_milestone_is_known_ends_the_waiting_for_it() -> None:
    found = going(MARKS, opens_at="last error", surveyed=4)
    found.navigation.arrive()
    found.view.steps.cursor = 1
    found.run.loader.survey = going(MARKS).run.loader.survey
    found.navigation.run_grew()
    assert found.here == 1


def test_the_first_step_can_be_the_milestone() -> None:
    found = going(["edit", "", "edit"], opens_at="first edit", at=1)
    found.navigation.arrive()
    assert found.here == 0


def test_the_kind_of_milestone_changes_in_turn_and_comes_back_to_none() -> None:
    found = going(MARKS)
    kinds = []
    for _ in range(5):
        found.navigation.open_at_next()
        kinds.append(found.navigation.opens_at)
    assert kinds == ["first edit", "last error", "submission", "end", ""]
    assert found.here == 6


def test_a_run_plays_at_its_own_pace_with_waits_cut_and_unknown_ones_steady() -> None:
    for recorded, waits in ((4.0, 4.0), (600.0, LONGEST_S), (0.0, STEADY_S)):
        found = going(["", "", ""], seconds=recorded)
        found.navigation.play()
        assert found.view.timers[-1].seconds == waits
        found.navigation.faster(1)
        assert found.view.timers[-1].seconds == waits / 2
        assert [timer.stopped for timer in found.view.timers] == [True, False]


def test_playing_ends_at_the_last_step() -> None:
    found = going(["", "", ""])
    found.navigation.play()
    for _ in range(3):
        found.view.timers[-1].ring()
    assert not found.navigation.player.playing
    assert found.here == 2
    assert found.view.said[-1] == "▶ The end."


def test_a_pause_stops_the_timer() -> None:
    found = going(["", "", ""])
    found.navigation.play()
    found.navigation.play()
    assert not found.navigation.player.playing
    assert found.view.timers[-1].stopped
    assert found.view.said[-1].startswith("‖ paused")


def test_a_run_that_is_followed_stays_at_its_end() -> None:
    found = going(["", "", ""])
    found.navigation.follow()
    assert found.here == 2
    found.run.loader.document.step_count = 5
    found.navigation.run_grew()
    assert found.here == 4
    found.navigation.follow()
    found.run.loader.document.step_count = 9
    found.navigation.run_grew()
    assert found.here == 4


def test_a_file_that_grew_is_read_on_once_it_is_read() -> None:
    found = going(MARKS)
    found.navigation.check_growth()
    assert found.run.loader.asked == []
    found.run.loader.document.changed = True
    found.run.loader.document.finished = False
    found.navigation.check_growth()
    assert found.run.loader.asked == []
    found.run.loader.document.finished = True
    found.navigation.check_growth()
    assert found.run.loader.asked == ["grow"]
