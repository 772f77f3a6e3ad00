"""Taking part in a team's study while its store is unreachable."""

from __future__ import annotations

from pathlib import Path

from screens.study_driving import taking
from small_study import CODE, do
from team_studies import TeamStudy, serving

from gistpoint.core.study.steps import PlanStep


async def test_the_next_task_waits_for_the_store_and_nothing_is_lost(tmp_path: Path) -> None:
    with serving() as server:
        study = TeamStudy.made(tmp_path, server, CODE)
        part = study.part("machine", CODE)
        while not isinstance(step := part.next(), PlanStep):
            do(part, step)
        machine, root = study.machine("machine")
        server.kill()
        async with taking(machine, root) as driver:
            await driver.until_page("AwayPage")
            assert "None of your work is lost" in driver.text()
            await driver.press("enter")
            await driver.until_page("AwayPage")
            server.start()
            await driver.press("enter")
            await driver.until_page("ReadyPage")
            server.kill()
            await driver.press("enter")
            await driver.until_page("AwayPage")
            server.start()
            await driver.press("f9")
            await driver.until_page("ReadyPage")
            await driver.press("enter")
            await driver.until_page("SolveScreen")
            server.kill()
            await driver.press("f9")
            await driver.until_page("FormPage")
            await driver.press("f9", "enter")
            await driver.until_page("SolveScreen")
            server.start()
            await driver.until(lambda: not driver.part.folder.store.away)  # without a key press
            (begun,) = driver.part.person.begun
            assert study.part("other", CODE).person.answers("forecast", begun) is not None
