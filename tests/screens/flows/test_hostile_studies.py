"""A study from somebody else: none of its strings has any effect on a participant's screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from examples import at_the_gate
from hostile import CONTROLS, MARKUP, UNICODE
from screens.driving import LARGE, SMALL
from screens.study_driving import StudyDriver, taking
from small_study import opened, participation, study_at
from study_folders import Machine

from gistpoint.core.study.operations import Answers
from gistpoint.core.text import visible, visible_line
from gistpoint.sessions.studies.consenting import save_copy
from gistpoint.tui.cli import main

LINKS = ("[a](file:///etc/passwd)", "[b](https://example.invalid)", "<a href='file:///etc/passwd'>c</a>")


def _encoded(texts: tuple[str, ...]) -> str:
    return " ".join(texts).encode("utf-8", "replace").decode().replace("\0", "")


CORPUS = {"markup": _encoded(MARKUP + LINKS), "controls": _encoded(CONTROLS), "unicode": _encoded(UNICODE)}


def _hostile(text: str) -> dict[str, Any]:
    """Return declarations in which every string for participants is or contains `text`."""
    questions = [
        {
            "id": "years",
            "text": text,
            "kind": "number",
            "unit": text,
            "labels": [text, text],
            "required": True,
        },
        {"id": "tools", "text": text, "kind": "multi", "options": [f"a{text}", f"b{text}"]},
        {"id": "ease", "text": text, "kind": "likert", "labels": [f"c{text}", f"d{text}"]},
        {"id": "words", "text": text, "kind": "text"},
    ]
    return {
        "title": text,
        "condition": [{"id": "few", "words": text, "tool_uses": 6, "submissions": 2}],
        "texts": {
            **dict.fromkeys(("welcome", "consent", "consent_version", "rules", "debrief"), text),
            "consent_items": [f"[required] {text}"],
        },
        "privacy": dict.fromkeys(("contact", "controller", "legal_basis", "retention"), text),
        "questionnaire": [{"id": "before", "at": "before", "item": questions}],
    }  # fmt: skip


def _require_inert(driver: StudyDriver, text: str) -> None:
    """Fail if the text is not on the screen, or anything on it is a link, an action or a control character."""
    shown = driver.text()
    assert visible_line(text)[:6] in shown
    for strip in driver.app.screen._compositor.render_strips():
        for segment in strip:
            assert segment.text == visible(segment.text)
            style = segment.style
            assert style is None or not style.link
            assert style is None or not any(name in str(style.meta) for name in ("app.quit", "app.bell"))


@pytest.mark.parametrize(
    ("kind", "size"),
    [("markup", SMALL), ("controls", SMALL), ("unicode", LARGE), *at_the_gate([("markup", LARGE)])],
    ids=str,
)
async def test_no_text_of_a_study_acts_on_its_pages(tmp_path: Path, kind: str, size: tuple[int, int]) -> None:
    machine, text = Machine.at(tmp_path / "home"), CORPUS[kind]
    root = study_at(tmp_path / "study", _hostile(text))
    opened(machine.open(root))
    async with taking(machine, root, size=size) as driver:
        await driver.until_page("ConsentPage")
        _require_inert(driver, text)
        await driver.press(*["pagedown"] * 6, "tab", "space", "f9")
        await driver.until_page("FormPage")
        _require_inert(driver, text)
        await driver.type("3")
        await driver.press("tab", "1", "tab", "2", "tab")
        await driver.type(text[:5])
        await driver.press("f9")
        await driver.until_page("RulesPage")
        _require_inert(driver, text)
        await driver.press("f9")
        await driver.until_page("ReadyPage")
        _require_inert(driver, text)
    (given,) = participation(machine, root).person.facts.all(Answers)
    assert given.values["tools"] == [f"a{text}"]


@pytest.mark.parametrize("kind", CORPUS)
def test_no_text_of_a_study_acts_in_what_commands_print_and_save(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    machine, text = Machine.at(tmp_path / "home"), CORPUS[kind]
    root = study_at(tmp_path / "study", _hostile(text))
    assert main(["study", "check", str(root), "--prereg"]) == 0
    assert main(["study", "consent", str(root)]) == 0
    saved = save_copy(machine.open(root), tmp_path, [True]).read_bytes().decode("utf-8")
    for shown in (capsys.readouterr().out, saved):
        assert visible_line(text)[:20] in shown
        assert shown == visible(shown)
