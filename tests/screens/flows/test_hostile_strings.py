"""External strings are drawn literally on every screen: none crashes, vanishes or acts."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import CHECKS, build_services, build_task
from examples import at_the_gate
from fakes import Check, FakeClock, FakeRunner
from hostile import CONTROLS, MARKUP, UNICODE
from screens.driving import LARGE, SMALL, driving

from gistpoint.core.attempts.events import GiveUpCode, PauseReason
from gistpoint.core.attempts.identity import Role
from gistpoint.core.tasks.model import Mode
from gistpoint.core.text import visible_line

CORPUS = {"markup": MARKUP, "controls": CONTROLS, "unicode": UNICODE}


def _failing_with(text: str) -> Check:
    def check(names: object) -> None:
        raise AssertionError(text)

    return check


@pytest.mark.parametrize(
    ("kind", "size"),
    [("markup", SMALL), ("controls", SMALL), ("unicode", LARGE), *at_the_gate([("markup", LARGE)])],
    ids=str,
)
async def test_hostile_strings_are_shown_literally(tmp_path: Path, kind: str, size: tuple[int, int]) -> None:
    corpus = [text.encode("utf-8", "replace").decode() for text in CORPUS[kind]]
    clock = FakeClock()
    checks = {
        **CHECKS,
        **{f"tests/test_x.py::test[{n}{text}]": _failing_with(text) for n, text in enumerate(corpus)},
    }
    services = build_services(tmp_path, clock=clock, runner=FakeRunner(checks), role=Role.TRAINING)
    names = [text.replace("/", "∕").replace("\0", "") for text in corpus]
    files = {f"odd/{n}{name}": text for n, (name, text) in enumerate(zip(names, corpus, strict=True))}
    files["odd/strings.py"] = "\n".join(
        f"X{n} = {text!r}  # {visible_line(text)}" for n, text in enumerate(corpus)
    )
    task = build_task(
        services.locations.tasks, Mode.DISCOVERY, extra_files=files, failure_text="\n".join(corpus)
    )
    attempt_id = ""
    async with driving(services, clock, open=task.id, size=size) as driver:
        await driver.until_screen("SolveScreen")
        attempt_id = driver.state.attempt_id
        await driver.console("list_directory odd")
        await driver.console("read_file odd/strings.py")
        driver.solve._asking.ask("read_file", {"file_path": next(iter(files))})
        await driver.until(lambda: len(driver.state.calls) == 3 and driver.state.pending is None)
        for text in corpus[:3]:
            driver.solve._asking.ask("search_code", {"pattern": text})
            await driver.until(lambda: driver.state.pending is None and not driver.solve.busy)
        driver.attempt.note("\n".join(corpus))
        driver.attempt.suspect(f"odd/strings.py::{corpus[0]}")
        await driver.press("f6")
        driver.solve.editor.open("shop/prices.py::discount")
        driver.solve.editor.editor.text = "\n".join(corpus)
        driver.app.notify(corpus[-1], title=corpus[0])
        for key in ("f2", "f3", "f4", "f5", "f6", "f7", "f8"):
            await driver.press(key)
        await driver.press("f3")
        first = visible_line(f"0{names[0]}")
        await driver.until(lambda: first in driver.text())
        await driver.press("f6", "f9", "enter")
        await driver.until(lambda: driver.state.pending is None and not driver.solve.busy)
        driver.attempt.pause(PauseReason.BREAK, corpus[0])
        driver.solve._interruptions.cover()
        await driver.until_screen("PauseCover")
        assert visible_line(corpus[0]) in driver.text()
        await driver.press("enter")
        await driver.until(lambda: driver.state.pause is None)
        driver.attempt.give_up(GiveUpCode.OTHER, corpus[0])
        await driver.until_screen("SummaryScreen")
        for _ in range(4):
            await driver.press("right_square_bracket")
        await driver.until(lambda: visible_line(corpus[0]) in driver.text())
    async with driving(services, clock, open=attempt_id, size=size) as driver:
        await driver.until_screen("SummaryScreen")
        await driver.press("escape")
        await driver.until_screen("HomeScreen")
