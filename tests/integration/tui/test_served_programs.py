"""The real server and the real programs behind its links, and what they close, keep, forward and end."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import psutil
import pytest
from served_windows import ServedPrograms, serving
from small_study import opened, study_at
from study_folders import Machine

from gistpoint.core.errors import SandboxUnavailableError
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.study.operations import StudyOperationKind, Withdrawn, person
from gistpoint.sandbox.ladder import choose
from gistpoint.sessions.attempt_summary import AttemptSummary
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.tui.cli import main
from gistpoint.tui.serving.server import FULL, OTHER_WINDOW, REVOKED, STOPPED

SECRET = "sk-the-key-of-who-serves"
ENTER, F8, F9 = "\r", "\x1b[19~", "\x1b[20~"


def isolates() -> bool:
    try:
        choose(None, consented=False)
    except SandboxUnavailableError:
        return False
    return True


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not isolates(), reason="what is served needs an isolation that works"),
]


def attempts(home: Path) -> dict[str, AttemptSummary]:
    store = AttemptStore(home / "data" / "attempts", SystemTime(), "test")
    return {one.participant: one for one in store.summaries()}


async def test_windows_come_and_go_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path))
    people = [f"--for={who}=seats-together" for who in ("P01", "P02", "P03")]
    async with (
        serving(tmp_path, 3, *people, "--sessions", "2", OPENAI_API_KEY=SECRET, EDITOR="vi") as served,
        served.window("P01", (80, 24)) as first,
    ):
        await first.until(lambda text: "0 of 1 done" in text)
        program = served.programs()["P01"]
        assert not {"OPENAI_API_KEY", "EDITOR"} & program.environ().keys()
        assert program.rlimit(psutil.RLIMIT_DATA)[0] == 1024 << 20
        assert program.memory_info().data < 700 << 20, "it has room"
        assert token_of(served, "P01") not in " ".join(program.cmdline())
        deep, unknown = "[" * 5_000, '["no such"]'
        for rubbish in ("", "{", deep, "[]", "[1]", '["stdin"]', '["stdin", 3]', '["resize", []]', unknown):
            await first.send(rubbish)
        await first.press(ENTER)
        await first.until(lambda text: "find_block" in text)
        await first.resize("wide", None)
        await first.resize(200, 60)
        await first.until(lambda text: max(len(line) for line in text.splitlines()[40:]) > 100)
        await first.press(F8)
        await first.press("remember the rows")
        await first.until(lambda text: "remember the rows" in text)

        async with served.window("P01") as second:
            assert await first.until_closed() == OTHER_WINDOW
            await second.until(lambda text: "… begun" in text)
            assert not program.is_running() or program.status() == psutil.STATUS_ZOMBIE
            await second.press(ENTER)
            await second.until(lambda text: "find_block" in text or "remember" in text)
            await second.press(F8)
            await second.until(lambda text: "remember the rows" in text)
            async with served.window("P02") as other:
                await other.until(lambda text: "not begun" in text)
                async with served.window("P03") as too_many:
                    assert await too_many.until_closed() == FULL
                assert main(["serve", "revoke", "P02"]) == 0
                assert await other.until_closed() == REVOKED
                await revoked(served)
            told = await served.stop()
            assert await second.until_closed() == STOPPED
    assert "Everything is kept" in told
    assert served.process.returncode == 0
    async with serving(tmp_path, 0) as again, aiohttp.ClientSession() as http:
        answers = [await http.get(f"{again.url}/p/{token_of(served, who)}") for who in served.links]
        assert [answer.status for answer in answers] == [200, 404, 200], (
            "a restarted server knows who has a link"
        )
    found = attempts(tmp_path)
    assert set(found) == {"P01"}
    assert found["P01"].state.notes == "remember the rows"
    assert not found["P01"].problem
    assert not found["P01"].open
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    written = b"".join(path.read_bytes() for path in files)
    for secret in (SECRET, *(token_of(served, who) for who in served.links)):
        assert secret.encode() not in written


def token_of(served: ServedPrograms, who: str) -> str:
    return served.links[who].rpartition("/")[2]


async def revoked(served: ServedPrograms) -> None:
    """Assert that a revoked link is answered like one that never existed."""
    async with aiohttp.ClientSession() as http, http.get(served.links["P02"]) as answer:
        assert answer.status == 404


async def test_a_study_is_gone_through_by_a_link(tmp_path: Path) -> None:
    home = Machine.at(tmp_path / "home", SystemTime())
    root = study_at(tmp_path / "study")
    opened(home.open(root), "P07", "P08")
    async with serving(tmp_path / "home", 2, "--study", str(root)) as served:
        assert set(served.links) == {"P07", "P08"}
        async with served.window("P07") as window:
            await window.until(lambda text: "you are P07" in text and "(needed)" in text)
            await window.press(F9)
            await window.until(lambda text: "is not ticked" in text)
            await window.press(" ")
            await window.until(lambda text: "[x]" in text or "[✔]" in text or "[X]" in text)
            await window.press(F9)
            await window.until(lambda text: "Years of programming" in text)
            await window.press("12")
            await window.until(lambda text: "12" in text)
            async with served.window("P07") as again:
                assert await window.until_closed() == OTHER_WINDOW
                await again.until(lambda text: "Years of programming" in text and "12" in text)
        home.open(root).record("P08", person("P08"), StudyOperationKind.WITHDRAWN, Withdrawn(data="keep"))
        async with served.window("P08") as window:
            await window.until(lambda text: "no longer take part" in text)
    assert home.open(root).ledger.person("P07").consent is not None
